//! Git's lock files on refs, `<ref>.lock`, taken by our own code, and what it says when something is in the
//! way. The error codes are those that libgit2 gives.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};

use super::marks::Mark;
use super::refs::Seen;
use super::{Expect, ObjectId, RefUpdate, Refs};

/// The step that failed, by its place in the list, and why.
pub(super) type Failed = (usize, git2::Error);

/// A lock file that goes when this is dropped.
pub(super) struct Held(PathBuf);

impl Held {
    /// Takes a lock that says nothing. It is another name of the mark, so that it is known as a dead process's by
    /// its inode.
    pub(super) fn take(path: PathBuf, mark: Option<&Mark>) -> Result<Held, git2::Error> {
        // A file system may have no hard links.
        let make = |path: &Path| match mark.map(|mark| fs::hard_link(mark.path(), path)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            _ => create(path).map(drop),
        };
        made(path, make).map(|(held, ())| held)
    }

    /// Takes a lock whose file is to take the ref's place.
    pub(super) fn begin(path: PathBuf) -> Result<(Held, File), git2::Error> {
        made(path, create)
    }

    /// As [`Held::begin`], for a ref that shall hold what another one's file holds: the lock is one more name of
    /// that file, whose content is on disk. Files of refs are replaced and never written to. `None` where
    /// that file holds something else, or cannot be had so; then nothing is locked.
    pub(super) fn link(path: &Path, twin: &Path, content: &[u8]) -> Option<Held> {
        made(path.to_owned(), |path| fs::hard_link(twin, path))
            .ok()
            .map(|(held, ())| held)
            .filter(|_| fs::read(path).is_ok_and(|found| found == content))
    }

    /// Puts the file in the ref's place, which lets the lock go.
    pub(super) fn put(self, place: &Path) -> io::Result<()> {
        fs::rename(&self.0, place)?;
        // Whatever is there from now on is somebody else's.
        std::mem::forget(self);
        Ok(())
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

fn made<T>(path: PathBuf, make: impl Fn(&Path) -> io::Result<T>) -> Result<(Held, T), git2::Error> {
    let made = match (make(&path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
            make(&path)
        }
        (made, _) => made,
    };
    match made {
        Ok(made) => Ok((Held(path), made)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(raised(ErrorCode::Locked, "locked"))
        }
        Err(error) => Err(failed(&path, &error)),
    }
}

impl Refs<'_> {
    /// What a ref holds, if that is what is expected of it. The caller holds its lock.
    pub(super) fn check(&self, update: &RefUpdate) -> Result<Option<ObjectId>, git2::Error> {
        let found = match self.look(&update.name) {
            Seen::Id(id) => Some(id),
            Seen::Absent => None,
            Seen::Odd => match self.repository().raw().refname_to_id(&update.name) {
                Ok(id) => Some(id),
                Err(e) if e.code() == ErrorCode::NotFound => None,
                Err(e) => return Err(e),
            },
        };
        match (update.expect, found) {
            (Expect::Is(_), None) => Err(raised(ErrorCode::NotFound, "gone")),
            (Expect::Is(id), Some(found)) if id != found => {
                Err(raised(ErrorCode::Modified, "moved"))
            }
            (Expect::Missing, Some(_)) => Err(raised(ErrorCode::Exists, "is there")),
            _ => Ok(found),
        }
    }
}

pub(super) fn raised(code: ErrorCode, message: &str) -> git2::Error {
    git2::Error::new(code, ErrorClass::Reference, message)
}

pub(super) fn failed(path: &Path, error: &io::Error) -> git2::Error {
    let message = format!("cannot change '{}': {error}", path.display());
    git2::Error::new(ErrorCode::GenericError, ErrorClass::Os, &message)
}
