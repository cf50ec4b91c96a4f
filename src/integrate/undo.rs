//! Undo and redo: an entry's steps turned round, all or nothing.

use crate::integrate::journal::{Decide, Entry, JournalId, Result};
use crate::model::RepoPath;
use crate::workspace::Store;

/// What was taken back.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The new entry, ended. Its steps name agent, proposal and path of each change.
    pub entry: Entry,
    /// The entry that was taken back.
    pub of: JournalId,
    /// Whether changes of agents stand in the working tree again: an undo of an undo.
    pub redo: bool,
}

/// Takes an entry back: `id`, or the newest accept (or redo) of this working tree that is not undone
/// yet; of it the given paths (a folder stands for all below it), or all.
///
/// # Errors
/// The refusals `already_decided` and `workspace_changed` (naming the path; nothing is changed).
pub fn undo(
    store: Store<'_>,
    id: Option<JournalId>,
    paths: &[RepoPath],
    decide: Decide<'_>,
) -> Result<Undone> {
    let _ = (store, id, paths, decide);
    todo!("next commit")
}
