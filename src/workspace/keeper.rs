//! What a workspace asks of whoever keeps its files on disk.
//!
//! A workspace in [`Mode::Worktree`] has a directory that stays, and that directory is the authority: a
//! write through the view has to reach the files too, or the next import would take it back. Files
//! are the business of the layer above, which lends itself to the [`Store`] as a [`Keeper`]; without
//! one, every write to a workspace with an open directory is refused `materialized`.
//!
//! [`Mode::Worktree`]: super::Mode::Worktree

use std::path::PathBuf;

use super::{Result, Store, Workspace};
use crate::git::{Lock, ObjectId, Staging};
use crate::model::AgentId;

/// Who keeps the directories of workspaces. All calls are made under the agent's lock.
pub trait Keeper: Sync {
    /// Lays out the directory of a workspace that was just created, and says where it is.
    ///
    /// # Errors
    /// Whatever stops it; nothing is left behind then.
    fn lay_out(&self, store: &Store<'_>, lock: &Lock, agent: &AgentId) -> Result<PathBuf>;

    /// Imports what tools did in the open directory, and finishes one whose making was interrupted.
    ///
    /// # Errors
    /// Failures of the import; the refusal `materialized` where the directory is gone, `moved`
    /// where it is not ours.
    fn import(&self, store: &Store<'_>, lock: &Lock, agent: &AgentId) -> Result<()>;

    /// Gets everything ready to take the open directory from the tree of `from` to the tree `to`, of
    /// which some objects may only be staged. No path of the directory changes yet.
    ///
    /// # Errors
    /// Where the directory holds something else than `from` at a path that is to change; failures of
    /// the disk. Nothing is left behind then.
    fn prepare<'k>(
        &self,
        store: &Store<'k>,
        from: &Workspace,
        to: ObjectId,
        staging: &Staging<'_>,
    ) -> Result<Box<dyn Delivery + 'k>>;
}

/// Files that are ready to take their places. Dropped, they go, and the directory is as it was.
pub trait Delivery {
    /// Puts them in place, now that the revision is published.
    ///
    /// # Errors
    /// Where a tool changed one of the paths meanwhile, or the disk fails. What was put in place is
    /// taken back then, and the directory is imported again: the workspace holds what it held.
    fn put_in_place(self: Box<Self>, store: &Store<'_>, lock: &Lock) -> Result<()>;
}
