//! The history of a workspace: its revisions, from the current one back to the first.
//!
//! Each revision's commit has the one before it as second parent, so the history needs no reflog and
//! travels with a push.

use super::{Result, Store, Workspace};

/// One revision in the history of a workspace.
#[derive(Clone, Debug)]
pub struct Logged {
    /// The state at that revision.
    pub workspace: Workspace,
    /// When it was published, in seconds since 1970.
    pub time: i64,
}

impl Store<'_> {
    /// The newest `limit` revisions of a workspace, the one that is given first.
    ///
    /// # Errors
    /// [`Error::Damaged`](super::Error::Damaged) when an earlier revision cannot be read.
    pub fn history(&self, last: Workspace, limit: usize) -> Result<Vec<Logged>> {
        let objects = self.repository().objects()?;
        let agent = last.agent.clone();
        let mut at = Some(last);
        let mut logged = Vec::new();
        while let Some(workspace) = at.take() {
            if logged.len() == limit {
                break;
            }
            let commit = objects.commit(workspace.commit)?;
            if let Some(before) = commit.parents.get(1) {
                at = Some(self.read_revision(&agent, *before)?);
            }
            logged.push(Logged {
                workspace,
                time: commit.time,
            });
        }
        Ok(logged)
    }
}
