//! Frozen folders: made aside under a lock of their own, published by a rename, never written again,
//! and removed only when nobody stands on them.
//!
//! Who uses one right now holds its lock shared. What outlives a process (an upper folder between two
//! runs) stands on it by a note, which counts as long as the folder that it names exists.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::ByteSlice;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, futimens};

use crate::git::{self, Lock, os_str};
use crate::layout::directory::{path_bytes, replace};
use crate::layout::{Error, Result, removal};

/// How long one waits for another process to make the same folder: large ones take their time.
const PATIENCE: Duration = Duration::from_secs(900);

/// A place for frozen folders of one kind.
#[derive(Clone, Debug)]
pub(super) struct Shelf {
    folders: PathBuf,
    locks: PathBuf,
}

impl Shelf {
    /// The shelf `kind` in `<common-dir>/relo`.
    pub(super) fn new(relo: &Path, kind: &str) -> Self {
        Shelf {
            folders: relo.join(kind),
            locks: relo.join("locks").join(kind),
        }
    }

    /// Where a published folder is.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.folders.join(name)
    }

    /// The names of the published folders.
    pub(super) fn names(&self) -> Result<Vec<String>> {
        let failed = |e| Error::io("read", &self.folders, e);
        let entries = match fs::read_dir(&self.folders) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            names.extend(
                name.to_str()
                    .filter(|n| !n.starts_with('.'))
                    .map(str::to_owned),
            );
        }
        names.sort_unstable();
        Ok(names)
    }

    fn lock(&self, name: &str) -> PathBuf {
        self.locks.join(name)
    }

    /// Takes a published folder for use; `None` where there is none.
    pub(super) fn take(&self, name: &str) -> Result<Option<Lock>> {
        if !self.folder(name).is_dir() {
            return Ok(None);
        }
        let held = Lock::shared(&self.lock(name), PATIENCE)?;
        // It may have gone before the lock was ours.
        if !self.folder(name).is_dir() {
            return Ok(None);
        }
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_NOW,
        };
        // The time of the lock file says when the folder was last used; only pruning looks at it.
        let _ = futimens(
            held.file(),
            &Timestamps {
                last_access: now,
                last_modification: now,
            },
        );
        Ok(Some(held))
    }

    /// Makes and publishes a folder unless it is there: `fill` gets an empty one. Tells whether it is
    /// there now: not when another process is at it and this one does not want to `wait`.
    pub(super) fn make(
        &self,
        name: &str,
        wait: bool,
        fill: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<bool> {
        let patience = if wait { PATIENCE } else { Duration::ZERO };
        let _held = match Lock::exclusive(&self.lock(name), patience) {
            Err(git::Error::Locked { .. }) if !wait => return Ok(false),
            held => held?,
        };
        let folder = self.folder(name);
        if folder.is_dir() {
            return Ok(true);
        }
        let aside = self.folders.join(format!(".new-{name}"));
        // Left by a process that died at it.
        clear(&aside)?;
        fs::create_dir_all(&aside).map_err(|e| Error::io("create", &aside, e))?;
        let made = fill(&aside).and_then(|()| {
            fs::rename(&aside, &folder).map_err(|e| Error::io("publish", &folder, e))
        });
        if made.is_err() {
            let _ = clear(&aside);
        }
        made.map(|()| true)
    }

    /// Removes a folder unless somebody uses it or stands on it; tells whether it is gone.
    pub(super) fn remove(&self, name: &str) -> Result<bool> {
        let held = match Lock::exclusive(&self.lock(name), Duration::ZERO) {
            Err(git::Error::Locked { .. }) => return Ok(false),
            held => held?,
        };
        if self.is_stood_on(name)? {
            return Ok(false);
        }
        let folder = self.folder(name);
        let away = self.folders.join(format!(".old-{name}"));
        clear(&away)?;
        match fs::rename(&folder, &away) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
            done => done.map_err(|e| Error::io("remove", &folder, e))?,
        }
        // The name is free for a new one while the old one's files go.
        drop(held);
        clear(&away)?;
        Ok(true)
    }

    /// When a folder was last taken: seconds since 1970.
    pub(super) fn last_used(&self, name: &str) -> u64 {
        let time = fs::metadata(self.lock(name)).and_then(|meta| meta.modified());
        let since = time
            .ok()
            .and_then(|t| t.duration_since(std::time::UNIX_EPOCH).ok());
        since.map_or(0, |since| since.as_secs())
    }

    /// What whoever makes the one file of a folder's bytes holds.
    pub(super) fn bytes_lock(&self, name: &str) -> PathBuf {
        self.locks.join(format!("{name}.bytes"))
    }

    /// Where to note in which start of the machine a folder was last looked over.
    pub(super) fn mark(&self, name: &str) -> PathBuf {
        self.locks.join(format!("{name}.boot"))
    }

    fn notes(&self, name: &str) -> PathBuf {
        self.locks.join(format!("{name}.stands"))
    }

    /// Notes that `what`, a folder, stands on a taken folder, until it exists no more.
    pub(super) fn stand(&self, name: &str, what: &Path) -> Result<()> {
        let notes = self.notes(name);
        fs::create_dir_all(&notes).map_err(|e| Error::io("create", &notes, e))?;
        // The last component alone may come twice; the whole path is in the note.
        let bytes = path_bytes(what);
        let file = notes.join(format!("{:016x}", fnv(bytes)));
        replace(&file, bytes)
    }

    /// Whether any folder that exists stands on this one; notes of others are removed.
    pub(super) fn is_stood_on(&self, name: &str) -> Result<bool> {
        let notes = self.notes(name);
        let entries = match fs::read_dir(&notes) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
            entries => entries.map_err(|e| Error::io("read", &notes, e))?,
        };
        let mut standing = false;
        for entry in entries {
            let file = entry.map_err(|e| Error::io("read", &notes, e))?.path();
            let what = fs::read(&file).map_err(|e| Error::io("read", &file, e))?;
            match fs::symlink_metadata(os_str(what.as_bstr())) {
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    let _ = fs::remove_file(&file);
                }
                // Not to be looked at, so it may be there.
                _ => standing = true,
            }
        }
        Ok(standing)
    }

    /// Removes what processes that died have left.
    pub(super) fn sweep(&self) -> Result<()> {
        let Ok(entries) = fs::read_dir(&self.folders) else {
            return Ok(());
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let left = name.to_str().and_then(|name| {
                let new = name.strip_prefix(".new-");
                new.or_else(|| name.strip_prefix(".old-"))
            });
            let Some(name) = left else { continue };
            if Lock::exclusive(&self.lock(name), Duration::ZERO).is_ok() {
                clear(&entry.path())?;
            }
        }
        Ok(())
    }
}

fn clear(folder: &Path) -> Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    match removal::delete(parent, folder.file_name().unwrap_or_default()) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Error::io("remove", folder, error))
        }
        _ => Ok(()),
    }
}

/// A short name for a long one: FNV-1a.
pub(super) fn fnv(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
