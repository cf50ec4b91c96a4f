//! The trash: the last revisions of workspaces that were let go with undecided edits.

use super::{Error, Result, Store, Workspace, names};
use crate::git::ObjectId;
use crate::model::{AgentId, Revision};

/// One workspace in the trash.
#[derive(Debug)]
pub struct Trashed {
    /// Its ref.
    pub name: String,
    /// What the ref holds.
    pub commit: ObjectId,
    /// The workspace's last state, or why it cannot be read.
    pub state: Result<Workspace>,
    /// When it was made, in seconds since 1970; `None` in a damaged one.
    pub time: Option<i64>,
}

impl Store<'_> {
    /// All that is in the trash, by name.
    ///
    /// # Errors
    /// When the refs cannot be listed.
    pub fn trash(&self) -> Result<Vec<Trashed>> {
        let objects = self.repository().objects()?;
        let all = self.repository().refs().list(names::TRASH)?;
        Ok(all
            .into_iter()
            .filter_map(|(name, commit)| {
                let (agent, _) = split(&name)?;
                Some(Trashed {
                    state: self.read_revision(&agent, commit),
                    time: objects.commit(commit).ok().map(|commit| commit.time),
                    name,
                    commit,
                })
            })
            .collect())
    }

    /// The state of a workspace in the trash: at the given revision, else the newest.
    ///
    /// # Errors
    /// [`Error::NoRevision`] or [`Error::NoWorkspace`] when there is none; [`Error::Damaged`].
    pub fn trashed(&self, agent: &AgentId, revision: Option<Revision>) -> Result<Workspace> {
        let all = self
            .repository()
            .refs()
            .list(&format!("{}{agent}/", names::TRASH))?;
        let found = all
            .into_iter()
            .filter_map(|(name, commit)| Some((split(&name)?.1, commit)))
            .filter(|(number, _)| revision.is_none_or(|wanted| wanted == *number))
            .max();
        match (found, revision) {
            (Some((_, commit)), _) => self.read_revision(agent, commit),
            (None, Some(revision)) => Err(Error::NoRevision {
                agent: agent.clone(),
                revision,
            }),
            (None, None) => Err(Error::NoWorkspace {
                agent: agent.clone(),
            }),
        }
    }
}

/// Agent and revision of a trash ref.
fn split(name: &str) -> Option<(AgentId, Revision)> {
    let (agent, revision) = name.strip_prefix(names::TRASH)?.split_once('/')?;
    Some((AgentId::new(agent).ok()?, revision.parse().ok()?))
}
