//! Snaps: revisions that somebody still needs, pinned by a ref each.

use super::{Error, Result, Store, Workspace, names};
use crate::git::{Expect, ObjectId, RefUpdate};
use crate::model::{AgentId, Revision};

impl Store<'_> {
    /// Pins the current revision, or an earlier one; pinning it again changes nothing.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`], [`Error::NoRevision`], failures of Git.
    pub fn snap(&self, agent: &AgentId, revision: Option<Revision>) -> Result<Workspace> {
        let _lock = self.lock(agent)?;
        let workspace = match revision {
            Some(revision) => self.load_at(agent, revision)?,
            None => self.load(agent)?,
        };
        let name = names::snap(agent, workspace.revision());
        if self.repository.refs().find(&name)? != Some(workspace.commit) {
            let pin = RefUpdate::set(name, Expect::Anything, workspace.commit);
            self.repository.refs().apply(&[pin])?;
        }
        Ok(workspace)
    }

    /// The pinned revisions of a workspace with their commits, in order.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`], failures of Git.
    pub fn snaps(&self, agent: &AgentId) -> Result<Vec<(Revision, ObjectId)>> {
        self.load(agent)?;
        let prefix = format!("{}snap/", names::workspace(agent));
        let mut snaps: Vec<(Revision, ObjectId)> = self
            .repository
            .refs()
            .list(&prefix)?
            .into_iter()
            .filter_map(|(name, id)| Some((name[prefix.len()..].parse().ok()?, id)))
            .collect();
        snaps.sort();
        Ok(snaps)
    }

    /// Lets go of a pinned revision.
    ///
    /// # Errors
    /// [`Error::NoRevision`] when it is not pinned, failures of Git.
    pub fn drop_snap(&self, agent: &AgentId, revision: Revision) -> Result<()> {
        let _lock = self.lock(agent)?;
        let name = names::snap(agent, revision);
        let Some(id) = self.repository.refs().find(&name)? else {
            return Err(Error::NoRevision {
                agent: agent.clone(),
                revision,
            });
        };
        let unpin = RefUpdate::delete(name, Expect::Is(id));
        Ok(self.repository.refs().apply(&[unpin])?)
    }
}
