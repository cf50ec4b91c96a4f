//! One path of a delivery.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};

use crate::disk::{Content, Fault, Seal, Spot};
use crate::git::tree::{self, Entry};
use crate::layout::Error;
use crate::model::Refusal;

/// A path that changes.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) path: BString,
    pub(super) tag: String,
    /// What the workspace held there.
    pub(super) old: Option<Entry>,
    /// What it holds now.
    pub(super) new: Option<Entry>,
    /// What the directory holds.
    pub(super) before: Option<Content>,
    /// What was written beside the path.
    pub(super) ready: Option<Seal>,
    /// Whether a file stands where its folder will be: it is written when that is gone.
    pub(super) late: bool,
}

/// How the files of the job at this place of the list are named.
pub(super) fn tag(at: usize) -> String {
    format!("deliver-{at}")
}

impl Job {
    pub(super) fn new(at: usize, change: &tree::Change) -> Self {
        Job {
            path: change.path.clone(),
            tag: tag(at),
            old: change.old,
            new: change.new,
            before: None,
            ready: None,
            late: false,
        }
    }

    /// The same, to be started anew at what stands there now.
    pub(super) fn again(&self, found: Option<Content>) -> Self {
        Job {
            path: self.path.clone(),
            tag: self.tag.clone(),
            old: self.old,
            new: self.new,
            before: found,
            ready: None,
            late: true,
        }
    }

    pub(super) fn spot(&self) -> Spot<'_> {
        Spot {
            path: self.path.as_bstr(),
            tag: &self.tag,
        }
    }

    /// Why it cannot be done: the directory holds something that the workspace does not know.
    pub(super) fn changed(&self) -> Error {
        let what = format!(
            "'{}' in the directory is not what the workspace holds",
            self.path
        );
        Error::refused(Refusal::WorkspaceChanged, what)
    }

    pub(super) fn in_the_way(&self, kind: Refusal) -> Error {
        let what = format!("'{}' cannot be written in the directory", self.path);
        Error::refused(kind, what)
    }

    pub(super) fn failed(&self, fault: Fault) -> Error {
        match fault {
            Fault::Obstacle(obstacle) => self.in_the_way(obstacle.refusal()),
            Fault::Failed { action, source } => {
                Error::io(action, crate::git::os_str(self.path.as_bstr()), source)
            }
            // Nobody asks for that here.
            Fault::Stopped => self.changed(),
        }
    }
}

/// The entry as a file on disk; `None` for a submodule, of which the workspace holds nothing there.
pub(super) fn file(entry: Option<Entry>) -> Option<Entry> {
    entry.filter(|entry| entry.mode != tree::GITLINK)
}

/// The folders above a path, the top first.
pub(super) fn folders(path: &BStr) -> impl Iterator<Item = &BStr> {
    let slashes = path.find_iter("/").map(|slash| path[..slash].as_bstr());
    std::iter::once(b"".as_bstr()).chain(slashes.collect::<Vec<_>>())
}

/// Whether one of the folders above a path is in a set.
pub(super) fn is_below(path: &BStr, set: &HashSet<&BStr>) -> bool {
    folders(path).any(|folder| set.contains(folder))
}
