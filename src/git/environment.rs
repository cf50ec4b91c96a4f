//! The part of the caller's world that decides which repository is meant.
//!
//! Only `main` and `cli` read the process's environment; they hand it down as a value, so that the
//! library can be called in another's.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::fs::Access;

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

    /// A process of this program, found as the shell would find it. Looked up here, it can be started
    /// without a copy of this process first, which costs more the more memory this process has.
    pub(super) fn command(&self, program: &str) -> Command {
        let found = self.look_up(program);
        let mut command = Command::new(found.as_deref().unwrap_or(Path::new(program)));
        command.arg0(program);
        command
    }

    /// Where a program is; `None` where the system has to look: it is nowhere, or a folder comes first
    /// that depends on where the process will start.
    fn look_up(&self, program: &str) -> Option<PathBuf> {
        for folder in self.get("PATH")?.as_bytes().split(|b| *b == b':') {
            let folder = Path::new(OsStr::from_bytes(folder));
            if !folder.is_absolute() {
                return None;
            }
            let file = folder.join(program);
            if file.is_file() && rustix::fs::access(&file, Access::EXEC_OK).is_ok() {
                return Some(file);
            }
        }
        None
    }

    /// Where `git` may have its settings for the whole system, going by where it is: beside its own folder
    /// and beside that of what a link leads to. `None` where that says nothing: a script that starts
    /// another one.
    pub(super) fn settings_beside_git(&self) -> Option<Vec<PathBuf>> {
        let program = self.look_up("git")?;
        let mut start = [0; 2];
        File::open(&program).ok()?.read_exact(&mut start).ok()?;
        if &start == b"#!" {
            return None;
        }
        let mut places = vec![fs::canonicalize(&program).ok()?, program];
        places.dedup();
        let beside = |program: &PathBuf| Some(program.parent()?.parent()?.join("etc/gitconfig"));
        places.iter().map(beside).collect()
    }

    /// The value of a variable as a path below the current directory, if it is set and not empty.
    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name)
            .filter(|value| !value.is_empty())
            .map(|value| self.current_dir.join(value))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_program_is_looked_up_where_the_place_is_sure() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for (name, mode) in [("none", 0o644), ("one", 0o755), ("two", 0o755)] {
            std::fs::create_dir(at(name)).unwrap();
            let file = at(name).join("tool");
            std::fs::write(&file, "").unwrap();
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            std::fs::set_permissions(&file, mode).unwrap();
        }
        std::fs::create_dir_all(at("folder/tool")).unwrap();
        let found = |folders: &[&str]| {
            let folders = folders.iter().map(|name| match *name {
                "." => ".".into(),
                name => at(name).into_os_string(),
            });
            let path = folders.collect::<Vec<_>>().join(OsStr::new(":"));
            let environment = Environment {
                variables: [("PATH".into(), path)].into(),
                ..Environment::default()
            };
            environment.look_up("tool")
        };
        let one = Some(at("one").join("tool"));
        assert_eq!(found(&["missing", "folder", "none", "one", "two"]), one);
        assert_eq!(found(&[".", "one"]), None);
        assert_eq!(found(&["one", "."]), one);
        assert_eq!(found(&["missing"]), None);
        assert_eq!(Environment::default().look_up("tool"), None);
    }
}
