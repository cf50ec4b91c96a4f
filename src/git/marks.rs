//! Marks of ref steps under way, so that a lock file of a dead process of ours can be told from
//! one that a living process, or somebody's git, holds.
//!
//! Git's `<ref>.lock` names no owner. Before the first step of a list a process of ours makes a mark in
//! `<common-dir>/relo/locks/steps/`, holds it with `flock(2)`, writes the names of the refs into it,
//! and removes it after the last step. A mark whose lock is free belongs to a process that died in
//! the middle; a lock file at one of its refs is then most likely the dead process's: it cannot be
//! newer than that lock file, which kept everybody else out. What remains is somebody else's lock
//! at the very same ref when ours had none, so whoever breaks a lock watches it first: one that
//! lives lasts for milliseconds.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

/// What a mark calls git's lock on the packed refs, which a deletion takes.
pub(super) const PACKED: &str = "packed-refs";
/// Names longer than this in all are no mark of ours.
const MAX_MARK: u64 = 1 << 20;

/// The mark of this process's own steps; gone when this is dropped.
pub(super) struct Mark {
    path: PathBuf,
    _file: File,
}

impl Mark {
    /// Marks steps at these refs. `None` where no mark can be made: a full disk must not keep anybody from
    /// trying, and a lock left then waits for its age.
    pub(super) fn new(relo: &Path, names: &[&str]) -> Option<Mark> {
        let folder = folder(relo);
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{}-{random:016x}", std::process::id()));
        let open = || OpenOptions::new().write(true).create_new(true).open(&path);
        let file = open()
            .or_else(|_| {
                fs::create_dir_all(&folder)?;
                open()
            })
            .ok()?;
        let mark = Mark { path, _file: file };
        flock(&mark._file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let text = format!("{}\n", names.join("\n"));
        (&mark._file).write_all(text.as_bytes()).ok()?;
        Some(mark)
    }

    /// The mark's file. A lock of our own making is another name of it.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Mark {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The mark of a process that died in its steps. Held while this lives, so that one process at a time
/// clears up after it.
pub(super) struct Dead {
    path: PathBuf,
    /// The refs that it was about to move.
    pub(super) names: Vec<String>,
    inode: u64,
    _file: File,
}

impl Dead {
    /// Whether a lock file is another name of this mark: then it is the dead process's for certain.
    pub(super) fn is(&self, lock: &Path) -> bool {
        fs::symlink_metadata(lock).is_ok_and(|meta| meta.ino() == self.inode)
    }

    /// Removes the mark: what it stood for has been seen to.
    pub(super) fn clear(self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// The marks of dead processes.
pub(super) fn dead(relo: &Path) -> Vec<Dead> {
    let Ok(listing) = fs::read_dir(folder(relo)) else {
        return Vec::new();
    };
    listing
        .filter_map(|entry| dead_one(entry.ok()?.path()))
        .collect()
}

fn dead_one(path: PathBuf) -> Option<Dead> {
    let mut file = OpenOptions::new().read(true).open(&path).ok()?;
    flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
    let meta = file.metadata().ok()?;
    if meta.nlink() == 0 {
        return None;
    }
    let mut text = String::new();
    (&mut file).take(MAX_MARK).read_to_string(&mut text).ok()?;
    // Without its final line end it may be a mark that is just being made: it names nothing yet.
    let names = text.strip_suffix('\n').unwrap_or_default();
    Some(Dead {
        path,
        names: names.lines().map(str::to_owned).collect(),
        inode: meta.ino(),
        _file: file,
    })
}

fn folder(relo: &Path) -> PathBuf {
    relo.join("locks/steps")
}

/// What tells one lock file from the next at the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    inode: u64,
    changed: (i64, i64),
    size: u64,
}

/// Looks at a lock file.
pub(super) fn look(path: &Path) -> Option<Seen> {
    let meta = fs::symlink_metadata(path).ok()?;
    Some(Seen {
        inode: meta.ino(),
        changed: (meta.ctime(), meta.ctime_nsec()),
        size: meta.len(),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_living_mark_is_not_dead_and_a_dead_one_names_its_refs() {
        let relo = tempfile::tempdir().unwrap();
        let mark = Mark::new(relo.path(), &["refs/a", PACKED]).unwrap();
        assert!(dead(relo.path()).is_empty());
        // Its holder dies: the file stays, the lock goes.
        let path = mark.path.clone();
        let text = fs::read(&path).unwrap();
        drop(mark);
        assert!(!path.exists());
        fs::write(&path, text).unwrap();
        let found = dead(relo.path());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].names, ["refs/a", PACKED]);
        assert!(dead(relo.path()).is_empty(), "one at a time");
        for one in found {
            one.clear();
        }
        assert!(dead(relo.path()).is_empty());
        assert!(!path.exists());
    }
}
