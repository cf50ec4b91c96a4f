//! The part of the caller's world that decides which repository is meant.
//!
//! Only `main` and `cli` read the process's environment; they hand it down as a value, so that the
//! library can be called in another's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

/// Environment variables and the current directory, as the caller has them.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// Where relative paths start.
    pub current_dir: PathBuf,
    /// All environment variables.
    pub variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// The value of a variable; an empty one counts as set, as it does for git.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
    }

    /// The value of `GIT_ALTERNATE_OBJECT_DIRECTORIES` with its relative folders taken from the
    /// current directory. Folders in git's quotes are left as they are.
    pub fn alternates(&self) -> Option<OsString> {
        let value = self.get("GIT_ALTERNATE_OBJECT_DIRECTORIES")?;
        let folders = value.as_bytes().split(|b| *b == b':').map(|folder| {
            if folder.is_empty() || folder.contains(&b'"') {
                folder.to_vec()
            } else {
                let folder = self.current_dir.join(OsStr::from_bytes(folder));
                folder.into_os_string().into_vec()
            }
        });
        let folders: Vec<Vec<u8>> = folders.collect();
        Some(OsString::from_vec(folders.join(&b':')))
    }

    /// The value of a variable as a path below the current directory, if it is set and not empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .map(|value| self.current_dir.join(value))
    }
}
