//! The part of the caller's world that decides which repository is meant.
//!
//! Only `main` and `cli` read the process's environment; they hand it down as a value, so that the
//! library can be called in another's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
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

    /// The value of a variable as a path below the current directory, if it is set and not empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .map(|value| self.current_dir.join(value))
    }
}
