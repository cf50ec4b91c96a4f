//! Working trees of ours, in which git finds the attributes that are to hold.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bstr::BString;
use bstr::ByteSlice;
use tempfile::TempDir;

use super::put;
use crate::git::{Error, Lock, Repository, Result};

/// How the names of their folders begin.
const PREFIX: &str = "rules";
/// The lock in such a folder, held as long as it is in use.
const OWNER: &str = "owner";
/// A folder that nobody holds and that is younger may be one whose maker has not come to the lock yet.
const YOUNG: Duration = Duration::from_secs(60);

/// Such a tree; it goes when this is dropped.
pub(super) struct Top {
    folder: TempDir,
    _owner: Lock,
}

impl Top {
    /// The folder that the tree is in; what else is put there goes with it.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The top of the tree.
    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("top")
    }
}

impl Repository {
    /// A working tree that holds these attribute files.
    pub(super) fn tree_of(&self, attributes: &[(BString, Vec<u8>)]) -> Result<Top> {
        let relo = self.relo_dir();
        let folder = std::fs::create_dir_all(&relo)
            .and_then(|()| tempfile::Builder::new().prefix(PREFIX).tempdir_in(&relo))
            .map_err(|e| Error::io("create", &relo, e))?;
        let owner = Lock::exclusive(&folder.path().join(OWNER), Duration::ZERO)?;
        let top = Top {
            folder,
            _owner: owner,
        };
        let path = top.path();
        std::fs::create_dir(&path).map_err(|e| Error::io("create", &path, e))?;
        for (file, text) in attributes {
            put(&path, file.as_bstr(), text)?;
        }
        Ok(top)
    }

    /// Removes the working trees of ours that a process has left behind which died.
    pub fn clear_dead_trees(&self, now: SystemTime) {
        let Ok(entries) = std::fs::read_dir(self.relo_dir()) else {
            return;
        };
        for entry in entries.flatten() {
            let ours = entry.file_name().to_string_lossy().starts_with(PREFIX)
                && entry.file_type().is_ok_and(|kind| kind.is_dir());
            let old = || {
                let made = entry.metadata().and_then(|meta| meta.modified()).ok()?;
                let age = now.duration_since(made).ok()?;
                (age >= YOUNG).then_some(())
            };
            if !ours || old().is_none() {
                continue;
            }
            let owner = entry.path().join(OWNER);
            // Of a version without the lock, or killed before it.
            let free = !owner.exists() || Lock::exclusive(&owner, Duration::ZERO).is_ok();
            if free {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::ObjectFormat;
    use crate::git::scratch::Scratch;

    const NOW: Duration = Duration::from_secs(1_700_000_000);

    fn change(folder: &Path, ago: Duration) {
        let then = SystemTime::UNIX_EPOCH + NOW - ago;
        let folder = std::fs::File::open(folder).unwrap();
        folder.set_modified(then).unwrap();
    }

    #[test]
    fn what_a_dead_process_has_left_goes_and_nothing_else() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let repository = scratch.open();
        let attributes = [(".gitattributes".into(), b"* text\n".to_vec())];
        let held = repository.tree_of(&attributes).unwrap();
        // As a kill leaves them: with the lock's file, before it, and a moment after it was made.
        let dead = repository.tree_of(&attributes).unwrap();
        let Top {
            folder,
            _owner: owner,
        } = dead;
        let (dead, early) = (folder.keep(), repository.relo_dir().join("rules-early"));
        drop(owner);
        let young = repository.relo_dir().join("rules-young");
        std::fs::create_dir(&early).unwrap();
        std::fs::create_dir(&young).unwrap();
        for folder in [held.folder(), &dead, &early] {
            change(folder, 2 * YOUNG);
        }
        change(&young, YOUNG / 2);
        repository.clear_dead_trees(SystemTime::UNIX_EPOCH + NOW);
        assert!(held.path().join(".gitattributes").exists());
        assert!(young.exists());
        assert!(!dead.exists() && !early.exists());
        let folder = held.folder().to_owned();
        drop(held);
        assert!(!folder.exists());
    }
}
