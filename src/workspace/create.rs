//! Creating a workspace: a base, its pin, and revision 1.

use serde_json::Map;

use super::meta::{Kind, Metadata, Mode};
use super::{Base, Error, Result, Store, Workspace, names};
use crate::git::{self, Expect, NewCommit, ObjectId, RefUpdate, Staging};
use crate::model::{AgentId, Refusal, Revision};

/// What a workspace starts from.
#[derive(Clone, Debug)]
pub enum From {
    /// The user's working tree as it is.
    WorkTree,
    /// A commit, in git's own syntax.
    Commit(String),
    /// The overlay of another workspace, at its current or an earlier revision.
    Workspace(AgentId, Option<Revision>),
}

/// A workspace to be created.
#[derive(Clone, Debug)]
pub struct NewWorkspace {
    /// What it starts from.
    pub from: From,
    /// How it is held.
    pub mode: Mode,
    /// Whether it refuses every write.
    pub read_only: bool,
    /// The orchestrator's session, if it names one.
    pub session: Option<String>,
}

/// A workspace that was created.
#[derive(Clone, Debug)]
pub struct Created {
    /// Its state.
    pub workspace: Workspace,
    /// The record of the user's working tree, where it started from that.
    pub base: Option<Base>,
}

impl Store<'_> {
    /// Creates a workspace.
    ///
    /// # Errors
    /// [`Error::Exists`] (also for an id equal but for case), [`Error::RefInTheWay`] when a branch
    /// of the user's blocks one of our names, [`git::Error::BadRevision`], failures of Git.
    /// Nothing is created then.
    pub fn create(&self, agent: &AgentId, new: &NewWorkspace) -> Result<Created> {
        if new.mode == Mode::Worktree {
            let what = "mode 'worktree' is not available yet";
            return Err(Error::refused(Refusal::Unsupported, what));
        }
        let _lock = self.lock(agent)?;
        self.check_free(agent)?;
        let mut staging = Staging::new(self.repository)?;
        let (base, tree, record) = self.start(&mut staging, &new.from)?;
        let meta = Metadata {
            agent: agent.clone(),
            session: new.session.clone(),
            revision: Revision::FIRST,
            kind: Kind::Create,
            paths: Vec::new(),
            path_count: 0,
            base,
            mode: new.mode,
            read_only: new.read_only,
            proposal: None,
            extra: Map::new(),
        };
        let message = meta.to_message();
        let commit = staging.commit(&NewCommit {
            tree,
            parents: &[base],
            time: self.now,
            message: &message,
        })?;
        // A create that was killed between the two leaves a base pin and no overlay: no workspace
        // yet, so the next create may put its own base there.
        let pin = RefUpdate::set(names::base(agent), Expect::Anything, base);
        let point = RefUpdate::create(names::overlay(agent), commit);
        let steps = [pin, point.logged(super::revision::subject(&message))];
        match self.put(staging, &steps) {
            Err(Error::Git(git::Error::Moved { .. })) => {
                return Err(Error::Exists {
                    agent: agent.clone(),
                });
            }
            other => other?,
        }
        let workspace = Workspace {
            agent: agent.clone(),
            commit,
            tree,
            meta,
        };
        self.note(&workspace);
        Ok(Created {
            workspace,
            base: record,
        })
    }

    fn start(
        &self,
        staging: &mut Staging<'_>,
        from: &From,
    ) -> Result<(ObjectId, ObjectId, Option<Base>)> {
        match from {
            From::WorkTree => {
                let record = self.record_base(staging)?;
                Ok((record.commit, record.tree, Some(record)))
            }
            From::Commit(spec) => {
                let commit = self.repository.resolve_commit(spec)?;
                let tree = staging.objects().commit(commit)?.tree;
                Ok((commit, tree, None))
            }
            From::Workspace(agent, revision) => {
                let source = match revision {
                    Some(revision) => self.load_at(agent, *revision)?,
                    None => self.load(agent)?,
                };
                Ok((source.commit, source.tree, None))
            }
        }
    }

    /// Refuses a name that is taken, that another equals but for case, or whose refs could not be
    /// made beside the user's.
    fn check_free(&self, agent: &AgentId) -> Result<()> {
        let refs = self.repository.refs();
        for name in refs.list(names::WORKSPACES)?.keys() {
            if let Some(other) = names::agent_of_overlay(name)
                && (other == *agent || other.clashes_with(agent))
            {
                return Err(Error::Exists { agent: other });
            }
        }
        let wanted = names::branch(agent);
        let parents = ["refs/relo", "refs/relo/vws", "refs/heads/relo"];
        let own = names::workspace(agent);
        for blocking in parents
            .iter()
            .chain([&wanted.as_str(), &own.trim_end_matches('/')])
        {
            if refs.find(blocking)?.is_some() {
                return Err(Error::RefInTheWay {
                    blocking: (*blocking).to_owned(),
                    wanted: if own.starts_with(blocking) {
                        own.clone()
                    } else {
                        wanted.clone()
                    },
                });
            }
        }
        if let Some(below) = refs.list(&format!("{wanted}/"))?.into_keys().next() {
            return Err(Error::RefInTheWay {
                blocking: below,
                wanted,
            });
        }
        Ok(())
    }
}
