//! The agent's branch: its overlay as ordinary commits, which any git command can use.

use bstr::BStr;

use super::{Change, Kind, Published, Result, Store, Terms, Workspace, names};
use crate::git::tree;
use crate::git::{Expect, NewCommit, RefUpdate, Staging};
use crate::model::AgentId;

impl Store<'_> {
    /// Commits the overlay to the agent's branch, which starts from the base. Nothing to do where the
    /// branch has it already.
    ///
    /// # Errors
    /// As [`Store::publish`].
    pub fn commit_overlay(
        &self,
        agent: &AgentId,
        terms: Terms,
        message: Option<&BStr>,
    ) -> Result<Published> {
        // No content changes, so an open directory is not in the way.
        let terms = Terms {
            while_open: true,
            ..terms
        };
        self.publish(agent, terms, |workspace, staging| {
            let Some(pin) = self.stage_branch(staging, workspace, message)? else {
                return Ok(None);
            };
            let base = self.base_tree(workspace)?;
            let changed = tree::diff(staging, Some(base), Some(workspace.tree))?;
            let paths = changed.into_iter().map(|change| change.path).collect();
            let mut change = Change::new(Kind::Commit, paths, workspace.tree);
            change.pins.push(pin);
            Ok(Some(change))
        })
    }

    /// Stages a commit of the overlay on the agent's branch, where its tip is another tree, and gives
    /// the step that moves the branch there.
    ///
    /// # Errors
    /// When the branch cannot be read.
    pub fn stage_branch(
        &self,
        staging: &mut Staging<'_>,
        workspace: &Workspace,
        message: Option<&BStr>,
    ) -> Result<Option<RefUpdate>> {
        let name = names::branch(&workspace.agent);
        let tip = self.repository().refs().find(&name)?;
        let parent = tip.unwrap_or(workspace.base());
        if staging.objects().commit(parent)?.tree == workspace.tree && tip.is_some() {
            return Ok(None);
        }
        let mut text = match message {
            Some(message) => message.to_vec(),
            None => format!("vws: work of {}", workspace.agent).into_bytes(),
        };
        if !text.ends_with(b"\n") {
            text.push(b'\n');
        }
        let id = staging.commit(&NewCommit {
            tree: workspace.tree,
            parents: &[parent],
            time: self.now(),
            message: &text,
        })?;
        let expect = tip.map_or(Expect::Missing, Expect::Is);
        Ok(Some(RefUpdate::set(name, expect, id)))
    }
}
