//! Creating a workspace: a base, its pin, and revision 1.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::meta::{Kind, Metadata, Mode};
use super::{Base, Error, Result, Store, Workspace, names};
use crate::git::{self, Expect, Lock, NewCommit, ObjectId, RefUpdate, Staging, fault};
use crate::model::{AgentId, Revision};

/// What a workspace starts from.
#[derive(Clone, Debug)]
pub enum From {
    /// The user's working tree as it is.
    WorkTree,
    /// A commit, in git's own syntax.
    Commit(String),
    /// The overlay of another workspace, at its current or an earlier revision.
    Workspace(AgentId, Option<Revision>),
    /// A workspace that was let go with undecided edits, as it was: its base, its edits, and under its
    /// own name its revisions and its branch. The newest one of that name where no revision is given.
    Trash(AgentId, Option<Revision>),
}

/// The word for the user's working tree where a base is named.
const WORK_TREE: &str = "worktree";

impl From {
    /// What a base is by its name: a commit, or the word `worktree`.
    pub fn named(name: &str) -> Self {
        match name {
            WORK_TREE => From::WorkTree,
            commit => From::Commit(commit.to_owned()),
        }
    }
}

/// What a new workspace begins with.
pub(super) struct Start {
    pub(super) base: ObjectId,
    pub(super) tree: ObjectId,
    /// The parents of its first revision.
    parents: Vec<ObjectId>,
    /// The number of its first revision.
    revision: Revision,
    /// Where its branch goes, if it has one already.
    branch: Option<ObjectId>,
    proposal: Option<Revision>,
    extra: Map<String, Value>,
    pub(super) record: Option<Base>,
}

impl Start {
    pub(super) fn new(base: ObjectId, tree: ObjectId) -> Self {
        Start {
            base,
            tree,
            parents: vec![base],
            revision: Revision::FIRST,
            branch: None,
            proposal: None,
            extra: Map::new(),
            record: None,
        }
    }

    /// The user's working tree as it was recorded.
    fn recorded(record: Base) -> Self {
        let mut start = Start::new(record.commit, record.tree);
        start.record = Some(record);
        start
    }
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
    /// Its directory, where it has one that stays.
    pub directory: Option<PathBuf>,
}

impl Store<'_> {
    /// Creates a workspace.
    ///
    /// # Errors
    /// [`Error::Exists`] (also for an id equal but for case), [`Error::RefInTheWay`] when a branch
    /// of the user's blocks one of our names, [`git::Error::BadRevision`], failures of Git.
    /// Nothing is created then.
    pub fn create(&self, agent: &AgentId, new: &NewWorkspace) -> Result<Created> {
        let lock = self.lock(agent)?;
        // Git looks at the working tree while we look at the refs.
        let begun = match &new.from {
            From::WorkTree => Some(self.begin_look()?),
            _ => None,
        };
        self.check_free(agent)?;
        let mut staging = Staging::new(self.repository)?;
        let start = match begun {
            Some(begun) => Start::recorded(self.record_base_seen(&mut staging, begun)?),
            None => self.start(&mut staging, agent, &new.from)?,
        };
        self.establish((agent, &lock), staging, new, start, |_| ())
    }

    /// Publishes the first revision of a workspace under a name that was found to be free, on what
    /// `start` says; where `new` says it starts from does not count any more. `amend` has the last
    /// word on the metadata. In mode `worktree` the directory comes with it, or nothing does.
    pub(super) fn establish(
        &self,
        (agent, lock): (&AgentId, &Lock),
        mut staging: Staging<'_>,
        new: &NewWorkspace,
        start: Start,
        amend: impl FnOnce(&mut Metadata),
    ) -> Result<Created> {
        let (base, tree) = (start.base, start.tree);
        let mut meta = Metadata {
            agent: agent.clone(),
            session: new.session.clone(),
            revision: start.revision,
            kind: Kind::Create,
            paths: Vec::new(),
            path_count: 0,
            base,
            mode: new.mode,
            read_only: new.read_only,
            proposal: start.proposal,
            extra: start.extra,
        };
        if let Some(last) = self.last_proposal(agent)?
            && meta.proposal.is_none()
            && last >= meta.revision
        {
            meta.set_former(last);
        }
        amend(&mut meta);
        let message = meta.to_message();
        let commit = staging.commit(&NewCommit {
            tree,
            parents: &start.parents,
            time: self.now,
            message: &message,
        })?;
        // A create that was killed between the two leaves a base pin and no overlay: no workspace
        // yet, so the next create may put its own base there. The overlay alone leads to its base.
        let pin = RefUpdate::set(names::base(agent), Expect::Anything, base).unordered();
        let point = RefUpdate::create(names::overlay(agent), commit);
        let branch = start
            .branch
            .map(|tip| RefUpdate::create(names::branch(agent), tip));
        let mut steps = vec![pin];
        steps.extend(branch);
        steps.push(point.logged(super::revision::subject(&message)));
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
        fault::point("created");
        let directory = match (new.mode, self.keeper) {
            (Mode::Worktree, Some(keeper)) => match keeper.lay_out(self, lock, agent) {
                Ok(directory) => Some(directory),
                Err(error) => {
                    // What was brought back from the trash is there still.
                    let ended = self.release(lock, workspace, false)?;
                    self.note_end(&ended.workspace, "dispose");
                    return Err(error);
                }
            },
            _ => None,
        };
        Ok(Created {
            workspace,
            base: start.record,
            directory,
        })
    }

    /// What a workspace starts from.
    pub(super) fn start(
        &self,
        staging: &mut Staging<'_>,
        agent: &AgentId,
        from: &From,
    ) -> Result<Start> {
        match from {
            From::WorkTree => Ok(Start::recorded(self.record_base(staging)?)),
            From::Commit(spec) => {
                let commit = self.repository.resolve_commit(spec)?;
                Ok(Start::new(commit, staging.objects().commit(commit)?.tree))
            }
            From::Workspace(other, revision) => {
                let source = match revision {
                    Some(revision) => self.load_at(other, *revision)?,
                    None => self.load(other)?,
                };
                Ok(Start::new(source.commit, source.tree))
            }
            From::Trash(dropped, revision) => self.start_again(agent, dropped, *revision),
        }
    }

    /// Goes on from a workspace in the trash. Under its own name its revisions go on counting; under
    /// another one they stay reachable and the metadata says where they are from.
    fn start_again(
        &self,
        agent: &AgentId,
        dropped: &AgentId,
        revision: Option<Revision>,
    ) -> Result<Start> {
        let last = self.trashed(dropped, revision)?;
        let parents = self.repository.objects()?.commit(last.commit)?.parents;
        let on = parents.first().copied().unwrap_or(last.base());
        let mut start = Start::new(last.base(), last.tree);
        start.parents = vec![on, last.commit];
        // A revision sits on the agent's branch, where there was one, else on its base.
        start.branch = (on != last.base()).then_some(on);
        start.extra = last.meta.extra.clone();
        if agent == dropped {
            start.revision = last.revision().next();
            start.proposal = last.meta.proposal;
        } else {
            let origin = json!({"agent": dropped.as_str(), "revision": last.revision(),
                "commit": last.commit.to_string()});
            start.extra.insert("restoredFrom".to_owned(), origin);
        }
        Ok(start)
    }

    /// Refuses a name that is taken, that another equals but for case, or whose refs could not be
    /// made beside the user's.
    pub(super) fn check_free(&self, agent: &AgentId) -> Result<()> {
        let refs = self.repository.refs();
        // A damaged one is in no listing, and is not to be built over.
        if self.overlay_ref(agent)?.is_some() {
            let agent = agent.clone();
            return Err(Error::Exists { agent });
        }
        for name in refs.names_in(names::WORKSPACES)? {
            if let Ok(other) = AgentId::new(&name)
                && other != *agent
                && other.clashes_with(agent)
                && self.overlay_ref(&other)?.is_some()
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
