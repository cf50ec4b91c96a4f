//! The seam between directories and the ways of making one.
//!
//! A back end fills an empty folder with the files of one tree and writes the index that goes with
//! them. It knows nothing of refs or locks: [`super::materialize`] holds the agent's lock, gives it a
//! folder that nobody else knows of, moves that into place when it is complete, and clears it away
//! when it is not.
//!
//! `auto` is a list of them, the cheapest first. Each is asked whether it [fits](Backend::fits), which it
//! finds out by doing; one that fits and fails nevertheless leaves the tree to the next.

use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

use super::checkout::Checkout;
#[cfg(target_os = "linux")]
use super::reflink::Reflink;
use super::worktree::Worktree;
use super::{Error, Result, Stats};
use crate::git::{ObjectId, Repository};
use crate::model::{Refusal, RepoPath};
use crate::workspace::Store;

/// Which back end shall lay a directory out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The cheapest one that works here.
    #[default]
    Auto,
    /// Parallel writes from the object database.
    Checkout,
    /// Clones of a template, where the file system shares blocks.
    Reflink,
    /// An overlay mount above a template.
    Overlay,
    /// A plain `git worktree`.
    Worktree,
}

impl Choice {
    /// Every choice, in the order of the manual.
    pub const ALL: [Choice; 5] = [
        Choice::Auto,
        Choice::Checkout,
        Choice::Reflink,
        Choice::Overlay,
        Choice::Worktree,
    ];

    /// Whether this version has the back end; whether it works on a disk shows only there.
    pub fn is_built(self) -> bool {
        // What mounts is chosen elsewhere: it knows more of a workspace than a back end does.
        (self == Choice::Overlay && cfg!(target_os = "linux"))
            || (self != Choice::Auto && choose(self).is_ok())
    }

    /// The word in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Choice::Auto => "auto",
            Choice::Checkout => "checkout",
            Choice::Reflink => "reflink",
            Choice::Overlay => "overlay",
            Choice::Worktree => "worktree",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Choice {
    type Err = Error;

    /// Reads the word; `automatic` is the setting's name for `auto`.
    fn from_str(word: &str) -> Result<Self> {
        let known = Choice::ALL.into_iter().find(|one| one.as_str() == word);
        match known {
            Some(choice) => Ok(choice),
            None if word == "automatic" => Ok(Choice::Auto),
            None => {
                let what = format!("there is no back end '{word}'");
                Err(Error::refused(Refusal::Unsupported, what))
            }
        }
    }
}

/// What is told while files are written.
pub(super) const LAYING_OUT: &str = "Laying out files";

/// What shall be laid out, and where, before anything is made.
pub(super) struct Ground<'a, 'r> {
    /// The workspaces of the repository.
    pub(super) store: &'a Store<'r>,
    /// The tree.
    pub(super) tree: ObjectId,
    /// The folder, which exists, in which the directory will be.
    pub(super) root: &'a Path,
}

/// One tree to be laid out.
pub(super) struct Job<'a, 'r> {
    /// The workspaces of the repository.
    pub(super) store: &'a Store<'r>,
    /// The repository that holds the tree.
    pub(super) repository: &'a Repository,
    /// The tree.
    pub(super) tree: ObjectId,
    /// The empty folder to fill.
    pub(super) into: &'a Path,
    /// The git dir of the directory, where its `index` goes.
    pub(super) admin: &'a Path,
}

/// Whether a back end can do it: why it is a good choice, or why it cannot.
pub(super) type Fit = std::result::Result<String, String>;

/// A way of laying a tree out.
pub(super) trait Backend {
    /// Its name in records and settings.
    fn name(&self) -> &'static str;

    /// Whether it works for this tree on this disk, found out by doing; the answer may be kept.
    ///
    /// # Errors
    /// Whatever keeps it from finding out.
    fn fits(&self, ground: &Ground<'_, '_>) -> Result<Fit>;

    /// Fills the folder and writes `index` in the git dir, with true stat data and with times that
    /// make no entry racy. What it leaves behind when it fails, the caller removes.
    ///
    /// # Errors
    /// Whatever stops it: the layout is complete or it is an error.
    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats>;

    /// The files and folders to which it keeps; empty: all.
    fn only(&self) -> &[RepoPath] {
        &[]
    }

    /// Whether the directory is to be mounted in its place, for all to see.
    fn mounts(&self) -> bool {
        false
    }

    /// Whether a capture needs the index as it was laid out.
    fn keeps_manifest(&self) -> bool {
        true
    }
}

/// The back ends to be tried in this order, and whether the user named the one.
pub(super) struct Ladder<'a> {
    pub(super) steps: Vec<Box<dyn Backend + 'a>>,
    pub(super) asked: bool,
}

/// Which back ends a choice stands for.
///
/// # Errors
/// The refusal `unsupported` for one that this version does not have.
pub(super) fn choose(choice: Choice) -> Result<Ladder<'static>> {
    let steps: Vec<Box<dyn Backend>> = match choice {
        Choice::Auto => vec![
            #[cfg(target_os = "linux")]
            Box::new(Reflink),
            Box::new(Checkout),
            Box::new(Worktree),
        ],
        #[cfg(target_os = "linux")]
        Choice::Reflink => vec![Box::new(Reflink)],
        Choice::Checkout => vec![Box::new(Checkout)],
        Choice::Overlay => {
            let what = "back end 'overlay' is not for this system";
            return Err(Error::refused(Refusal::Unsupported, what));
        }
        Choice::Worktree => vec![Box::new(Worktree)],
        #[cfg(not(target_os = "linux"))]
        Choice::Reflink => {
            let what = format!("back end '{choice}' is not available yet");
            return Err(Error::refused(Refusal::Unsupported, what));
        }
    };
    Ok(Ladder {
        steps,
        asked: choice != Choice::Auto,
    })
}

/// Whether another back end would fail in the same way: the tree cannot be laid out here at all, or
/// the disk is full.
pub(super) fn is_final(error: &Error) -> bool {
    let full = |kind| matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    match error {
        Error::Io { source, .. } => full(source.kind()),
        Error::Tree(_) => true,
        error => error.refusal().is_some(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn words_go_there_and_back() {
        for choice in Choice::ALL {
            assert_eq!(choice.as_str().parse::<Choice>().unwrap(), choice);
        }
        assert_eq!("automatic".parse::<Choice>().unwrap(), Choice::Auto);
        let refused = "Checkout".parse::<Choice>().unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::Unsupported));
    }

    #[test]
    fn a_mount_is_no_step_and_git_is_the_last() {
        let refused = choose(Choice::Overlay).map(|_| ()).unwrap_err();
        assert_eq!(refused.refusal(), Some(Refusal::Unsupported));
        let last = choose(Choice::Auto).unwrap().steps.pop().unwrap();
        assert_eq!(last.name(), "worktree");
    }
}
