//! TEMPORARY, until the capture lands: a stand-in with its signatures, through `git add`.

use std::fs;

use super::{Directory, Error, Result};
use crate::git::{Lock, ObjectId};
use crate::workspace::{Change, Kind, LeftOut, Store, Terms, Workspace};

/// What a capture did.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The workspace as it stands now.
    pub workspace: Workspace,
    /// Whether there was anything to publish.
    pub changed: bool,
    /// What the directory has and the overlay has not, by path, each once.
    pub left_out: Vec<LeftOut>,
    /// The refs that hold what tools committed.
    pub branches: Vec<Made>,
}

/// A ref that holds what a tool committed.
#[derive(Clone, Debug)]
pub struct Made;

/// Imports an open directory as one revision.
///
/// # Errors
/// Failures of git, of the disk, and those of [`Store::publish`].
pub(super) fn capture_locked(
    store: &Store<'_>,
    lock: &Lock,
    directory: &Directory,
) -> Result<Captured> {
    let repository = store.repository();
    let index = directory.admin.join("stand-in-index");
    fs::copy(directory.manifest_path(), &index).map_err(|e| Error::io("write", &index, e))?;
    let git = || {
        let git = repository.git().index_file(&index);
        git.in_directory(&directory.path, &directory.admin)
    };
    git().args(["add", "-A"]).output()?;
    let out = git().args(["write-tree"]).output()?;
    let text = String::from_utf8_lossy(&out).trim_end().to_owned();
    let tree =
        ObjectId::from_str_ext(&text, repository.format()).map_err(crate::git::Error::from)?;
    let terms = Terms {
        while_open: true,
        ..Terms::default()
    };
    let done = store.publish_locked(lock, &directory.agent, terms, |workspace, _| {
        let change = Change::new(Kind::Capture, Vec::new(), tree);
        Ok((workspace.tree != tree).then_some(change))
    })?;
    Ok(Captured {
        workspace: done.workspace,
        changed: done.changed,
        left_out: Vec::new(),
        branches: Vec::new(),
    })
}
