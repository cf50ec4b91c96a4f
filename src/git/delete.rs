//! Deleting a ref in the files back end, as git does it and libgit2 does not.
//!
//! libgit2 locks the packed refs only when it sees the ref in them. A `git pack-refs` that has read the
//! ref's file by then writes it to the packed refs afterwards, and the deleted ref is back. So the lock on
//! the packed refs is taken first and always, then the ref's own; the packed line goes before the file
//! does, so that a death in between leaves the ref as it was.
//!
//! Our locks are hard links to the mark of the steps under way (see [`super::marks`]): complete with their
//! content from the first moment, and known as a dead process's by their inode.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use git2::{ErrorClass, ErrorCode};

use super::marks::Mark;
use super::{Expect, Refs, Repository, fault};

/// A lock file that goes when this is dropped.
struct Held(PathBuf);

impl Held {
    fn take(path: PathBuf, mark: Option<&Mark>) -> Result<Held, git2::Error> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|e| failed(folder, &e))?;
        }
        let create = || {
            let made = OpenOptions::new().write(true).create_new(true).open(&path);
            made.map(drop)
        };
        // A file system may have no hard links.
        let made = match mark.map(|mark| fs::hard_link(mark.path(), &path)) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) if error.kind() == io::ErrorKind::AlreadyExists => Err(error),
            _ => create(),
        };
        match made {
            Ok(()) => Ok(Held(path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(raised(ErrorCode::Locked, ErrorClass::Reference, "locked"))
            }
            Err(error) => Err(failed(&path, &error)),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

impl Refs<'_> {
    /// Deletes a ref that holds what `expect` says, with its reflog. The error's code is one of those that
    /// libgit2 gives: `Locked`, `Modified`, `NotFound`.
    pub(super) fn delete(
        &self,
        name: &str,
        expect: Expect,
        mark: Option<&Mark>,
    ) -> Result<(), git2::Error> {
        let root = self.repository().common_dir();
        let packed = Held::take(root.join("packed-refs.lock"), mark)?;
        let own = Held::take(self.path_of(&format!("{name}.lock")), mark)?;
        fault::point("delete-locked");
        let found = match self.repository().raw().refname_to_id(name) {
            Ok(id) => Some(id),
            Err(e) if e.code() == ErrorCode::NotFound => None,
            Err(e) => return Err(e),
        };
        match (expect, found) {
            (Expect::Anything, None) => return Ok(()),
            (Expect::Is(_), None) => {
                return Err(raised(ErrorCode::NotFound, ErrorClass::Reference, "gone"));
            }
            (Expect::Is(id), Some(found)) if id != found => {
                return Err(raised(ErrorCode::Modified, ErrorClass::Reference, "moved"));
            }
            (Expect::Missing, Some(_)) => {
                return Err(raised(ErrorCode::Exists, ErrorClass::Reference, "is there"));
            }
            _ => {}
        }
        without_packed(root, name).map_err(|e| failed(&root.join("packed-refs"), &e))?;
        fault::point("delete-unpacked");
        remove(&self.path_of(name))?;
        fault::point("delete-gone");
        remove(&root.join("logs").join(name))?;
        drop(own);
        drop(packed);
        for top in ["", "logs"] {
            prune(&root.join(top), name);
        }
        Ok(())
    }
}

/// Takes a ref out of the packed refs, whose lock the caller holds.
fn without_packed(root: &Path, name: &str) -> io::Result<()> {
    let path = root.join("packed-refs");
    let old = match fs::read(&path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::with_capacity(old.len());
    let mut dropping = false;
    for line in old.lines_with_terminator() {
        // `<id> <name>`, and what a tag peels to in a line of its own after it.
        if line.starts_with(b"^") && dropping {
            continue;
        }
        dropping = !line.starts_with(b"#")
            && line
                .trim_ascii_end()
                .split_once_str(" ")
                .is_some_and(|(_, found)| found == name.as_bytes());
        if !dropping {
            text.extend_from_slice(line);
        }
    }
    if text.len() == old.len() {
        return Ok(());
    }
    // Git's own name for it: under the lock nobody else writes it, and a left one is replaced.
    let new = root.join("packed-refs.new");
    let write = || {
        let mut file = File::create(&new)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(&text)?;
        file.sync_data()?;
        fault::point("delete-repacked");
        fs::rename(&new, &path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    let _ = Repository::flush_dir(root);
    written
}

fn remove(path: &Path) -> Result<(), git2::Error> {
    match fs::remove_file(path) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(failed(path, &error))
        }
        _ => {
            if let Some(folder) = path.parent() {
                let _ = Repository::flush_dir(folder);
            }
            Ok(())
        }
    }
}

/// Removes the folders of a ref that are empty now, but none of the first three: `refs/relo/vws`.
fn prune(root: &Path, name: &str) {
    let mut at = root.join(name);
    for _ in 3..name.split('/').count() {
        if !at.pop() || fs::remove_dir(&at).is_err() {
            return;
        }
    }
}

fn raised(code: ErrorCode, class: ErrorClass, message: &str) -> git2::Error {
    git2::Error::new(code, class, message)
}

fn failed(path: &Path, error: &io::Error) -> git2::Error {
    let message = format!("cannot change '{}': {error}", path.display());
    raised(ErrorCode::GenericError, ErrorClass::Os, &message)
}
