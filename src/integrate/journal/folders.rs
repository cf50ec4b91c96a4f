//! What an entry notes about the disk before it begins: permission bits, and the folders that it
//! makes or may remove.

use super::Journal;
use super::entry::{Folder, Step};

impl Journal<'_> {
    pub(super) fn folders(&self, steps: &[Step]) -> Vec<Folder> {
        let _ = steps;
        Vec::new()
    }

    pub(super) fn note_permissions(&self, steps: &mut [Step]) {
        let _ = steps;
    }
}
