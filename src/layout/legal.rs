//! Which paths of a tree may be laid out at all: a tree made by hand may hold anything.

use bstr::BString;

use super::{Error, Result};
use crate::git::tree;
use crate::model::{Refusal, RepoPath};
use crate::workspace;

/// Refuses what git would not check out.
pub(super) fn check(path: &BString, mode: u32) -> Result<()> {
    let own = path.strip_prefix(b".relo/".as_slice());
    let checked = match own {
        // Our own folder is off limits for writes, but a commit of the user's may hold it.
        Some(below) => RepoPath::from_tree(below),
        None if path == ".relo" => return Ok(()),
        None => RepoPath::from_tree(path),
    };
    let checked = checked.map_err(workspace::Error::from)?;
    if mode == tree::LINK && checked.is_dotfile_link_forbidden() {
        let what = format!("path '{path}' must not be a symbolic link");
        return Err(Error::refused(Refusal::ProtectedPath, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn hostile_paths_are_refused() {
        for (path, mode, fine) in [
            ("a/b", tree::REGULAR, true),
            (".relo", tree::TREE, true),
            (".relo/f", tree::REGULAR, true),
            ("a/.relo", tree::TREE, true),
            (".relo/.git", tree::TREE, false),
            ("a/.GIT/hooks/x", tree::EXECUTABLE, false),
            ("a/../b", tree::REGULAR, false),
            (".gitmodules", tree::REGULAR, true),
            (".gitmodules", tree::LINK, false),
        ] {
            assert_eq!(check(&BString::from(path), mode).is_ok(), fine, "{path}");
        }
    }
}
