//! Commits and branches that a tool made inside a directory.
//!
//! A commit on top of the cut becomes the agent's branch. A branch that the tool put `HEAD` on is
//! told and left alone. Whatever else `HEAD` has been on is pinned below the workspace's refs: the
//! directory's reflog, which keeps it until now, goes with the directory.

use crate::git::{Expect, ObjectId, RefUpdate, Repository};
use crate::layout::directory::replace;
use crate::layout::{Directory, Result};
use crate::workspace::{Store, names};

/// The file in the directory's git dir that names the commit of `HEAD` that was taken over last.
const SEEN: &str = "vws-head";

/// A ref that holds commits which a tool made in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The full name of the ref.
    pub name: String,
    /// The commit that it holds.
    pub commit: ObjectId,
}

/// What [`adopt`] found.
#[derive(Default)]
pub(super) struct Adopted {
    /// The tree of `HEAD`, where a tool has moved that.
    pub(super) head: Option<ObjectId>,
    pub(super) made: Vec<Made>,
}

/// Takes over what a tool committed.
///
/// # Errors
/// When a ref or the history cannot be read, or the agent's branch moved meanwhile.
pub(super) fn adopt(store: &Store<'_>, directory: &Directory) -> Result<Adopted> {
    let repository = store.repository();
    let cut = directory.cut.commit;
    let head = repository.head_of(&directory.path, &directory.admin)?;
    let past = repository.heads_in_reflog(&directory.admin);
    if head.branch.is_none() && head.commit == Some(cut) && past.iter().all(|id| *id == cut) {
        return Ok(Adopted::default());
    }
    let mut adopted = Adopted::default();
    let branch = names::branch(&directory.agent);
    let mut tip = repository.refs().find(&branch)?;
    let mut stray = past;
    if let Some(commit) = head.commit.filter(|commit| *commit != cut) {
        adopted.head = Some(repository.objects()?.commit(commit)?.tree);
        if repository.is_in_history(cut, commit)? {
            // What was taken over already may have commits of ours on top of it by now.
            let is_new = seen(directory) != Some(commit.to_string()) || tip.is_none();
            if is_new && tip != Some(commit) {
                let expect = tip.map_or(Expect::Missing, Expect::Is);
                let step = RefUpdate::set(&branch, expect, commit);
                stray.extend(tip);
                let why = "commit: made in the directory";
                repository.refs().apply(&[step.logged(why)])?;
                tip = Some(commit);
            }
            if is_new {
                replace(&directory.admin.join(SEEN), commit.to_string().as_bytes())?;
            }
            let name = branch.clone();
            let commit = tip.unwrap_or(commit);
            adopted.made.push(Made { name, commit });
        } else if head.branch.is_none() {
            stray.push(commit);
        }
    }
    let mut kept = vec![cut];
    kept.extend(tip);
    if let (Some(name), Some(commit)) = (head.branch, head.commit) {
        kept.push(commit);
        if name != branch {
            adopted.made.push(Made { name, commit });
        }
    }
    kept.extend(repository.head()?);
    pin(store, directory, stray, kept, &mut adopted.made)?;
    Ok(adopted)
}

/// The commit of `HEAD` that was taken over last.
fn seen(directory: &Directory) -> Option<String> {
    std::fs::read_to_string(directory.admin.join(SEEN)).ok()
}

/// Pins the commits that are in the history of none of those kept, newest first, each once.
fn pin(
    store: &Store<'_>,
    directory: &Directory,
    stray: Vec<ObjectId>,
    mut kept: Vec<ObjectId>,
    made: &mut Vec<Made>,
) -> Result<()> {
    let repository: &Repository = store.repository();
    let objects = repository.objects()?;
    for commit in stray.into_iter().rev() {
        // What is not there any more cannot be kept.
        if !objects.exists(commit) {
            continue;
        }
        let mut is_kept = false;
        for tip in &kept {
            is_kept = is_kept || repository.is_in_history(commit, *tip)?;
        }
        if is_kept {
            continue;
        }
        let name = names::stray(&directory.agent, commit);
        if repository.refs().find(&name)? != Some(commit) {
            let step = RefUpdate::set(&name, Expect::Anything, commit);
            repository.refs().apply(&[step])?;
        }
        kept.push(commit);
        made.push(Made { name, commit });
    }
    Ok(())
}
