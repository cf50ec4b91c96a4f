//! Edits between `begin` and `commit`: checked as they come, published as one revision.
//!
//! They are applied to the revision that was current at `begin`, in memory, so that each is answered at
//! once and reads see the state so far. Nobody is kept waiting meanwhile: no lock is held. At
//! `commit` they are applied once more, to the revision that is then current, under the agent's
//! lock, as [`Store::edit`] does. All of them or none: after one that failed, `commit` is refused.

use super::answer::Failure;
use super::session::Trouble;
use crate::git::{ObjectId, Staging};
use crate::model::AgentId;
use crate::workspace::{Edit, Editor, Published, Result, Store, Terms, Workspace};

/// A revision that is being made.
pub(super) struct Pending<'r> {
    terms: Terms,
    from: Workspace,
    staging: Staging<'r>,
    editor: Editor,
    edits: Vec<Edit>,
    spoiled: Option<Failure>,
}

impl<'r> Pending<'r> {
    /// Begins with the current revision, which must allow edits.
    pub(super) fn begin(
        store: &Store<'r>,
        agent: AgentId,
        terms: Terms,
        limit: u64,
    ) -> Result<Self> {
        // Nothing to do: but the terms are looked at, and the state comes back.
        let from = store.publish(&agent, terms, |_, _| Ok(None))?.workspace;
        Ok(Pending {
            terms,
            staging: Staging::new(store.repository())?,
            editor: Editor::new(from.tree, limit),
            from,
            edits: Vec::new(),
            spoiled: None,
        })
    }

    pub(super) fn agent(&self) -> &AgentId {
        &self.from.agent
    }

    /// The revision that was begun from.
    pub(super) fn from(&self) -> &Workspace {
        &self.from
    }

    pub(super) fn staging(&self) -> &Staging<'r> {
        &self.staging
    }

    /// Applies edits and keeps them for the commit.
    pub(super) fn apply(&mut self, edits: Vec<Edit>) -> Result<()> {
        for edit in &edits {
            self.editor.apply(&mut self.staging, edit)?;
        }
        self.edits.extend(edits);
        Ok(())
    }

    /// The tree with all edits so far in it.
    pub(super) fn tree(&mut self) -> Result<ObjectId> {
        self.editor.finish(&mut self.staging)
    }

    /// Notes the first failure.
    pub(super) fn spoil(&mut self, failure: &Failure) {
        self.spoiled.get_or_insert_with(|| failure.clone());
    }

    /// Publishes the edits.
    pub(super) fn commit(self, store: &Store<'r>) -> std::result::Result<Published, Trouble> {
        if let Some(mut failure) = self.spoiled {
            failure.message = format!("nothing was published: {}", failure.message);
            return Err(Trouble(failure));
        }
        Ok(store.edit(&self.from.agent, self.terms, &self.edits)?)
    }
}
