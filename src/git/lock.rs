//! Locks of our own: `flock(2)` on files below `<common-dir>/relo/locks/`.
//!
//! The kernel frees such a lock when its holder dies, so a lock left behind never blocks anyone,
//! and the files themselves are never removed (removing one while another waits for it would give
//! two holders).

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::{Error, Result};

/// How long a writer waits for another writer of the same thing before it gives up.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A held lock; dropping it frees it.
#[derive(Debug)]
#[must_use = "the lock is free again when this is dropped"]
pub struct Lock {
    file: File,
    path: PathBuf,
}

impl Lock {
    /// Takes the lock at `path` for this process alone, waiting up to `patience`.
    ///
    /// # Errors
    /// [`Error::Locked`] when it stays held, [`Error::Io`] when the file cannot be made.
    pub fn exclusive(path: &Path, patience: Duration) -> Result<Lock> {
        Self::take(path, FlockOperation::NonBlockingLockExclusive, patience)
    }

    /// Takes the lock at `path` together with other shared holders, waiting up to `patience`.
    ///
    /// # Errors
    /// As [`Lock::exclusive`].
    pub fn shared(path: &Path, patience: Duration) -> Result<Lock> {
        Self::take(path, FlockOperation::NonBlockingLockShared, patience)
    }

    fn take(path: &Path, operation: FlockOperation, patience: Duration) -> Result<Lock> {
        let file = open(path)?;
        let mut waited = Duration::ZERO;
        let mut nap = Duration::from_micros(200);
        loop {
            match flock(&file, operation) {
                Ok(()) => {
                    return Ok(Lock {
                        file,
                        path: path.to_owned(),
                    });
                }
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) if waited < patience => {
                    sleep(nap);
                    waited += nap;
                    // Short naps keep a queue of writers moving, a cap keeps a long wait cheap.
                    nap = (nap * 2).min(Duration::from_millis(5));
                }
                Err(Errno::WOULDBLOCK) => {
                    return Err(Error::Locked {
                        path: path.to_owned(),
                    });
                }
                Err(error) => return Err(Error::io("lock", path, error.into())),
            }
        }
    }

    /// The open lock file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Opens a lock file without taking the lock.
    ///
    /// # Errors
    /// [`Error::Io`] when the file cannot be made.
    pub fn open(path: &Path) -> Result<File> {
        open(path)
    }

    /// Where the lock file is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn open(path: &Path) -> Result<File> {
    let open = || {
        OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(path)
    };
    match open() {
        Ok(file) => Ok(file),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(Path::new("."));
            std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
            open().map_err(|e| Error::io("open", path, e))
        }
        Err(error) => Err(Error::io("open", path, error)),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_holder_at_a_time_and_free_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("locks/a");
        let held = Lock::exclusive(&path, Duration::ZERO).unwrap();
        let refused = Lock::exclusive(&path, Duration::from_millis(2));
        assert!(matches!(refused, Err(Error::Locked { .. })));
        drop(held);
        // Not at once: a process that another test starts holds a copy until it has become it.
        let soon = Duration::from_secs(20);
        let one = Lock::shared(&path, soon).unwrap();
        let two = Lock::shared(&path, soon).unwrap();
        assert!(Lock::exclusive(&path, Duration::ZERO).is_err());
        drop((one, two));
        Lock::exclusive(&path, soon).map(drop).unwrap();
    }
}
