//! Writing to a working tree under a compare-and-swap.

use std::path::Path;

/// A point on the way at which a kill could strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The new content lies beside the path, complete.
    Staged,
    /// The new content is in place, the old one beside it, unchecked.
    Swapped,
    /// The old content has been checked and is about to go.
    Checked,
    /// The path is done.
    Done,
}

/// A working tree that is written to.
pub struct WorkTree<'t> {
    top: &'t Path,
    executable_bit: bool,
}

impl<'t> WorkTree<'t> {
    /// The working tree at `top`; `executable_bit` is `core.fileMode`.
    pub fn new(top: &'t Path, executable_bit: bool) -> Self {
        WorkTree {
            top,
            executable_bit,
        }
    }
}
