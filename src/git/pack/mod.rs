//! The small pack of one publish: all objects of a revision in one file pair, made durable by three
//! flushes in two goes, however many objects there are.
//!
//! # Files
//!
//! A pack is written under its final name, in this order:
//!
//! 1. `pack-<name>.keep`, created exclusively and locked with `flock(2)` for as long as the writer
//!    lives. It says `git-vws pid <n>`. Git never touches a pack that has one.
//! 2. `pack-<name>.pack`, then `pack-<name>.idx.tmp`; both are flushed, together with what else the
//!    publish has to flush before its refs move (see [`super::publish`]).
//! 3. `pack-<name>.idx.tmp` is renamed to `.idx`; then the directory is flushed.
//!
//! A `.pack` without `.idx` is invisible to Git, so the rename of the index is the moment at which
//! all objects appear, complete. That makes a temporary name for the pack needless, and the absence
//! of one protects it: `git prune` removes `tmp_*`, `git repack` its `.tmp-*`, while neither removes a
//! `.pack` that has no `.idx`. (`git gc` does remove an `.idx` that has no `.pack`, which is one more
//! reason for this order.) While a publish is under way `git count-objects -v` counts its files as
//! garbage, as it does for a fetch of Git's own.
//!
//! `fdatasync` is enough for the files: it flushes the data and the metadata needed to read it back,
//! size included; their names are flushed with the directory. The `.keep` is not flushed: it guards
//! against a running collector, and no collector runs through a power failure.
//!
//! A writer that died leaves a `.keep` whose lock is free; [`clean_leftovers`] finds it. The lock is
//! the only state, so there is no guessing from process numbers.
//!
//! # Names
//!
//! `pack-` and as many hex digits as the repository's hash has, so that every tool takes them for
//! ordinary packs: the magic `76777301` (`vws`, 1), sixteen random digits, then the end of the pack's
//! own checksum. Git does not check a name against the content. The random part is there because the
//! same objects may be published twice at the same time, and two writers must never share a `.keep`:
//! the first to let go would expose the other's pack; nor may a roll-up that deletes a pack hit a new
//! one of the same name.
//!
//! # Why objects that exist are written again
//!
//! A writer never leaves an object out because the object database has it. What exists may be
//! unreachable, and a `git gc` that is running may have decided already to drop it; Git's answer, to
//! freshen the file's time, has the same race. Only objects in a pack of ours under `.keep` are safe
//! until the ref has moved. A duplicate costs a few hundred bytes until the next repack.
//!
//! # Why there are no deltas
//!
//! Making them costs more than the flush, and packs without deltas are rolled up by copying bytes
//! ([`roll_up`]). The user's next repack deltifies what has lasted.

mod entry;
mod idx;
mod leftovers;
mod listing;
mod publish;
mod roll;
#[cfg(test)]
mod tests;
mod writer;

pub use entry::PackEntry;
pub use leftovers::{Cleaned, clean_leftovers};
pub use publish::{HeldPack, WrittenPack};
pub use roll::{RollUp, roll_up};
pub use writer::PackWriter;

use std::io;
use std::path::{Path, PathBuf};

/// What can go wrong with a pack.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused a file operation.
    #[error("cannot {action} '{}'", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The object could not be named.
    #[error("cannot hash an object")]
    Hash(#[source] git2::Error),
    /// The object could not be compressed.
    #[error("cannot deflate an object")]
    Deflate(#[source] flate2::CompressError),
    /// Only commits, trees, blobs and tags go into a pack.
    #[error("a pack cannot hold an object of kind '{0}'")]
    Kind(super::ObjectKind),
    /// No free name was found; something else owns every one that was tried.
    #[error("cannot find a free pack name in '{}'", .0.display())]
    NoName(PathBuf),
}

impl Error {
    fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

/// The result of a pack operation.
pub type Result<T> = std::result::Result<T, Error>;

/// How a pack's files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackOptions {
    /// Whether files and directory are flushed. Without it a power failure may lose the objects.
    pub fsync: bool,
    /// The exact permission bits, for a repository with `core.sharedRepository`; without, the files
    /// are made as Git makes them, 0444 less the umask.
    pub mode: Option<u32>,
}

impl Default for PackOptions {
    /// Durable, permissions as the umask says.
    fn default() -> Self {
        PackOptions {
            fsync: true,
            mode: None,
        }
    }
}
