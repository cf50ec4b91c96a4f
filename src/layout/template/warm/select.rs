//! What of the checkout is shared.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::Origin;
use crate::git::{GitCommand, Repository, os_str};
use crate::layout::directory::path_bytes;
use crate::layout::{Error, Result};

/// The list of ignored files that the user wants in every directory, in the form of `.gitignore`.
const INCLUDE: &str = ".worktreeinclude";

/// What is copied.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Selection {
    /// Whole folders, none inside another, without a slash at the end.
    pub(super) folders: Vec<BString>,
    /// Single files.
    pub(super) files: Vec<BString>,
}

impl Selection {
    pub(super) fn is_empty(&self) -> bool {
        self.folders.is_empty() && self.files.is_empty()
    }
}

/// Asks git what it ignores in the checkout, or in another directory of the repository; of the layers of an
/// overlay that is known.
pub(super) fn select(repository: &Repository, from: &Origin) -> Result<Selection> {
    let shared = repository.config()?.all("relo.template.share");
    if let Origin::Layers(_, folders) = from {
        let is_shared = |folder: &&BString| is_shared(folder.as_bstr(), &shared);
        return Ok(Selection {
            folders: folders.iter().filter(is_shared).cloned().collect(),
            files: Vec::new(),
        });
    }
    let git = || -> GitCommand<'_> {
        match from {
            Origin::Directory(top, admin) => repository.git().in_directory(top, admin),
            _ => repository.git().users_index(),
        }
    };
    let list = git()
        .args(["ls-files", "--others", "--ignored", "--exclude-standard"])
        .args(["--directory", "-z"])
        .output()?;
    let mut selection = Selection::default();
    for path in list.split_str("\0") {
        // Without the slash it is a loose file.
        let Some(folder) = path.strip_suffix(b"/") else {
            continue;
        };
        if is_shared(folder.as_bstr(), &shared) {
            selection.folders.push(folder.into());
        }
    }
    let top = match from {
        Origin::Directory(top, _) => Some(top.as_path()),
        _ => repository.work_dir(),
    };
    let include = top.map(|top| top.join(INCLUDE));
    if let Some(include) = include.filter(|file| file.is_file()) {
        let mut option = std::ffi::OsString::from("--exclude-from=");
        option.push(&include);
        let wanted = git()
            .args(["ls-files", "--others", "--ignored", "-z"])
            .arg(option)
            .output()?;
        // Untracked files that are not ignored are part of the base already.
        let ignored = git()
            .args(["check-ignore", "-z", "--stdin"])
            .stdin(wanted)
            .run()?;
        let ignored = match ignored.code() {
            Some(0 | 1) => ignored.stdout,
            _ => return Err(ignored.into_error().into()),
        };
        for path in ignored.split_str("\0").filter(|path| !path.is_empty()) {
            let inside = |folder: &BString| {
                path.strip_prefix(&folder[..])
                    .is_some_and(|rest| rest.starts_with(b"/"))
            };
            if is_safe(path.as_bstr()) && !selection.folders.iter().any(inside) {
                selection.files.push(path.into());
            }
        }
    }
    Ok(selection)
}

/// What of a layer a directory has not: the topmost folders and files that git ignores there. The
/// directory's revision may have other rules than the checkout, and what it does not ignore would be
/// captured as the agent's own work. The folders are made, because rules may be for folders only.
pub(super) fn lacking(
    repository: &Repository,
    layer: &Path,
    into: &Path,
    admin: &Path,
) -> Result<Selection> {
    let mut selection = Selection::default();
    compare(layer, into, &mut BString::default(), &mut selection)?;
    if selection.is_empty() {
        return Ok(selection);
    }
    let mut list = Vec::new();
    for path in selection.folders.iter().chain(&selection.files) {
        list.extend_from_slice(path);
        list.push(0);
    }
    let asked = repository
        .git()
        .in_directory(into, admin)
        .args(["check-ignore", "-z", "--stdin"])
        .stdin(list)
        .run()?;
    let ignored = match asked.code() {
        Some(0 | 1) => asked.stdout,
        _ => return Err(asked.into_error().into()),
    };
    let ignored: HashSet<&[u8]> = ignored.split_str("\0").collect();
    let Selection { folders, files } = selection;
    let (folders, others): (Vec<_>, Vec<_>) = folders
        .into_iter()
        .partition(|path| ignored.contains(&path[..]));
    for path in others {
        let folder = into.join(os_str(path.as_bstr()));
        fs::remove_dir(&folder).map_err(|e| Error::io("remove", &folder, e))?;
    }
    Ok(Selection {
        folders,
        files: files
            .into_iter()
            .filter(|path| ignored.contains(&path[..]))
            .collect(),
    })
}

fn compare(layer: &Path, into: &Path, path: &mut BString, found: &mut Selection) -> Result<()> {
    let failed = |e: std::io::Error| Error::io("read", layer, e);
    for entry in fs::read_dir(layer).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let is_folder = entry.file_type().map_err(failed)?.is_dir();
        let place = into.join(entry.file_name());
        let length = path.len();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(path_bytes(Path::new(&entry.file_name())));
        match (fs::symlink_metadata(&place), is_folder) {
            (Ok(there), true) if there.is_dir() => compare(&entry.path(), &place, path, found)?,
            (Ok(_), _) => {}
            (Err(error), _) if error.kind() != ErrorKind::NotFound => {
                return Err(Error::io("look at", place, error));
            }
            (Err(_), true) => {
                fs::create_dir(&place).map_err(|e| Error::io("create", &place, e))?;
                found.folders.push(path.clone());
            }
            (Err(_), false) => found.files.push(path.clone()),
        }
        path.truncate(length);
    }
    Ok(())
}

/// Whether a folder may be shared: no part of its name is hidden, or the user named that part.
fn is_shared(folder: &BStr, shared: &[String]) -> bool {
    is_safe(folder)
        && folder.split_str("/").all(|part| {
            !part.starts_with(b".") || shared.iter().any(|name| name.as_bytes() == part)
        })
}

/// Git's own folders and ours are never shared, whatever a setting says.
fn is_safe(path: &BStr) -> bool {
    crate::model::RepoPath::new(path).is_ok() && !os_str(path).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_parts_must_be_named() {
        let none = [];
        let venv = [".venv".to_owned(), ".git".to_owned(), ".relo".to_owned()];
        let cases = [
            ("target", true, true),
            ("a/node_modules", true, true),
            (".venv", false, true),
            ("a/.venv/b", false, true),
            (".cache", false, false),
            (".venv/.cache", false, false),
            (".git", false, false),
            ("a/.git", false, false),
            (".relo", false, false),
        ];
        for (path, plain, named) in cases {
            assert_eq!(is_shared(path.into(), &none), plain, "{path}");
            assert_eq!(is_shared(path.into(), &venv), named, "{path}");
        }
    }
}
