//! Publishing: the one protocol by which a workspace changes.
//!
//! 1. Take the agent's lock; writers of one agent queue here.
//! 2. Read the current revision; refuse what its state forbids.
//! 3. Build the new tree; its objects gather in memory.
//! 4. Write them as one small pack, held by a `.keep`, and flush it.
//! 5. Move the pins, then the overlay ref, the one commit point, by compare-and-swap.
//! 6. Let go of the pack, and note the event.
//!
//! Where an open directory follows the workspace (see [`Keeper`]), it is imported before step 2, its
//! new files are made ready before step 5 and take their places after it; killed in between, the
//! next import puts them there.
//!
//! Killed before step 5 leaves the old revision and an unreferenced pack; killed after it, the new
//! revision and a `.keep` that the next roll-up clears. Losing the compare-and-swap to somebody
//! who does not take the lock starts again from step 2.

use std::time::Duration;

use bstr::BString;

use super::meta::{Kind, Metadata, Mode};
use super::{Error, Keeper, Result, Store, Workspace, names};
use crate::git::tree;
use crate::git::{
    self, Expect, Lock, NewCommit, ObjectId, PATIENCE, Publish, RefUpdate, Staging, fault,
};
use crate::model::{AgentId, Refusal, Revision};

/// How often a lost compare-and-swap is tried again.
const TRIES: usize = 8;

/// What a writer insists on before its change may go through.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms {
    /// The revision that the writer has seen, if it cares (`--expect`).
    pub expect: Option<Revision>,
    /// Whether the change may go through while a directory is open: only the directory's own
    /// import and decisions may.
    pub while_open: bool,
    /// Whether an open directory follows the change, whatever the mode: the change was meant for it.
    pub into_directory: bool,
    /// Whether it may go through in a read-only workspace: only what changes no content may.
    pub although_read_only: bool,
}

/// A last touch on the metadata of a revision.
pub type Amend = Box<dyn FnOnce(&mut Metadata)>;

/// A change that is ready to be published.
pub struct Change {
    /// What it does.
    pub kind: Kind,
    /// The paths that it changes.
    pub paths: Vec<BString>,
    /// The overlay after it.
    pub tree: ObjectId,
    /// The base commit after it; it stays where this is `None`.
    pub base: Option<ObjectId>,
    /// Pins that must stand before the overlay ref moves.
    pub pins: Vec<RefUpdate>,
    /// The last word on the metadata.
    pub amend: Option<Amend>,
}

impl Change {
    /// A change of content and nothing else.
    pub fn new(kind: Kind, paths: Vec<BString>, tree: ObjectId) -> Self {
        Change {
            kind,
            paths,
            tree,
            base: None,
            pins: Vec::new(),
            amend: None,
        }
    }
}

/// What a writer gets back.
#[derive(Clone, Debug)]
pub struct Published {
    /// The workspace as it stands now.
    pub workspace: Workspace,
    /// Whether there was anything to publish.
    pub changed: bool,
}

impl Store<'_> {
    /// Takes the lock under which an agent's workspace changes.
    ///
    /// # Errors
    /// [`git::Error::Locked`] when another writer holds it for longer than [`PATIENCE`].
    pub fn lock(&self, agent: &AgentId) -> Result<Lock> {
        self.try_lock(agent, PATIENCE)
    }

    /// As [`Store::lock`], waiting no longer than `patience`.
    ///
    /// # Errors
    /// As [`Store::lock`].
    pub fn try_lock(&self, agent: &AgentId, patience: Duration) -> Result<Lock> {
        Ok(Lock::exclusive(&self.lock_path(agent), patience)?)
    }

    /// Where that lock is. Ids that differ only in case share it.
    pub(super) fn lock_path(&self, agent: &AgentId) -> std::path::PathBuf {
        let folder = self.repository.relo_dir().join("locks/agents");
        folder.join(agent.as_str().to_ascii_lowercase())
    }

    /// Publishes one revision: `build` makes the change from the current state, and is called
    /// again when somebody else published first. `None` from it means there is nothing to do.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`]; the refusals `stale`, `read_only`, `materialized`; whatever `build`
    /// returns; failures of Git. In each case the current revision is unchanged.
    pub fn publish<F>(&self, agent: &AgentId, terms: Terms, build: F) -> Result<Published>
    where
        F: FnMut(&Workspace, &mut Staging<'_>) -> Result<Option<Change>>,
    {
        let lock = self.lock(agent)?;
        self.publish_locked(&lock, agent, terms, build)
    }

    /// As [`Store::publish`], for a caller that holds the agent's lock already.
    ///
    /// # Errors
    /// As [`Store::publish`].
    pub fn publish_locked<F>(
        &self,
        lock: &Lock,
        agent: &AgentId,
        terms: Terms,
        mut build: F,
    ) -> Result<Published>
    where
        F: FnMut(&Workspace, &mut Staging<'_>) -> Result<Option<Change>>,
    {
        let mut tries = 0;
        let mut workspace = self.load(agent)?;
        let keeper = match self.keeper_of(&workspace, terms) {
            Some(keeper) if self.open_directory(agent)?.is_some() => Some(keeper),
            _ => None,
        };
        if let Some(keeper) = keeper {
            keeper.import(self, lock, agent)?;
            workspace = self.load(agent)?;
        }
        loop {
            self.check(&workspace, terms)?;
            let mut staging = Staging::new(self.repository)?;
            let Some(change) = build(&workspace, &mut staging)? else {
                return Ok(Published {
                    workspace,
                    changed: false,
                });
            };
            let delivery = match keeper {
                Some(keeper) if change.tree != workspace.tree => {
                    Some(keeper.prepare(self, &workspace, change.tree, &staging)?)
                }
                _ => None,
            };
            tries += 1;
            match self.commit(&workspace, staging, change) {
                Err(Error::Git(git::Error::Moved { name, .. }))
                    if tries < TRIES && name == names::overlay(agent) =>
                {
                    workspace = self.load(agent)?;
                }
                Err(error) => return Err(error),
                Ok(workspace) => {
                    if let Some(delivery) = delivery {
                        fault::point("deliver-begun");
                        delivery.put_in_place(self, lock)?;
                    }
                    return Ok(Published {
                        workspace,
                        changed: true,
                    });
                }
            }
        }
    }

    /// Refuses a write that the state of a workspace, or the writer's own terms, forbid.
    pub(crate) fn check(&self, workspace: &Workspace, terms: Terms) -> Result<()> {
        let agent = &workspace.agent;
        if let Some(expected) = terms.expect
            && expected != workspace.revision()
        {
            let what = format!(
                "workspace '{agent}' is at revision {}, not {expected}",
                workspace.revision()
            );
            return Err(Error::refused(Refusal::Stale, what));
        }
        if workspace.meta.read_only && !terms.although_read_only {
            let what = format!("workspace '{agent}' is read-only");
            return Err(Error::refused(Refusal::ReadOnly, what));
        }
        let follows = terms.while_open || self.keeper_of(workspace, terms).is_some();
        if !follows && self.open_directory(agent)?.is_some() {
            let what = format!("workspace '{agent}' has a directory open, which is the authority");
            return Err(Error::refused(Refusal::Materialized, what));
        }
        Ok(())
    }

    /// Who takes a change of this workspace to its open directory; `None` where nobody does.
    fn keeper_of(&self, workspace: &Workspace, terms: Terms) -> Option<&dyn Keeper> {
        let follows = terms.into_directory || workspace.meta.mode == Mode::Worktree;
        self.keeper.filter(|_| follows && !terms.while_open)
    }

    /// Whether an open directory of this workspace follows what is written to the workspace.
    pub fn is_followed(&self, workspace: &Workspace) -> bool {
        self.keeper_of(workspace, Terms::default()).is_some()
    }

    fn commit(
        &self,
        before: &Workspace,
        mut staging: Staging<'_>,
        change: Change,
    ) -> Result<Workspace> {
        let agent = before.agent.clone();
        let mut meta = before.meta.next(change.kind, &change.paths);
        self.settle_conflicts(&staging, before, &change, &mut meta)?;
        let mut steps = change.pins;
        if let Some(base) = change.base {
            meta.base = base;
        }
        if let Some(amend) = change.amend {
            amend(&mut meta);
        }
        // A commit to the agent's branch travels with the revision that it belongs to.
        let branch = names::branch(&agent);
        let moved = steps.iter().find(|step| step.name == branch);
        let tip = match moved {
            Some(step) => step.new,
            None => self.repository.refs().find(&branch)?,
        };
        let on = match tip {
            Some(tip) if change.base.is_none() => tip,
            _ => meta.base,
        };
        let message = meta.to_message();
        let commit = staging.commit(&NewCommit {
            tree: change.tree,
            // The second parent keeps every earlier revision reachable: history that no reflog
            // expiry and no collection can take away, and that `git log` shows.
            parents: &[on, before.commit],
            time: self.now,
            message: &message,
        })?;
        let step = RefUpdate::set(names::overlay(&agent), Expect::Is(before.commit), commit);
        steps.push(step.logged(subject(&message)));
        if let Some(base) = change.base {
            // The base pin may be behind the commit point, never ahead of it: the overlay's own
            // commit has the new base as its parent, so it is reachable either way.
            let pin = RefUpdate::set(names::base(&agent), Expect::Anything, base);
            steps.push(pin);
        }
        self.put(staging, &steps)?;
        let after = Workspace {
            agent,
            commit,
            tree: change.tree,
            meta,
        };
        self.note(&after);
        Ok(after)
    }

    /// A conflict that a rebase left is over when its path is written, even with what it holds.
    fn settle_conflicts(
        &self,
        staging: &Staging<'_>,
        before: &Workspace,
        change: &Change,
        meta: &mut Metadata,
    ) -> Result<()> {
        let edits = !matches!(change.kind, Kind::Commit | Kind::Note | Kind::Rebase);
        meta.settle_conflicts(|path| {
            if edits && change.paths.iter().any(|edited| edited == path) {
                return Ok(true);
            }
            let old = tree::lookup(staging, before.tree, path)?;
            Ok(old != tree::lookup(staging, change.tree, path)?)
        })
    }

    /// Publishes what is staged together with the ref steps (see [`Publish`]).
    ///
    /// # Errors
    /// As [`git::Refs::apply`]; failures to write the pack.
    pub fn put(&self, staging: Staging<'_>, steps: &[RefUpdate]) -> Result<()> {
        let mut publish = Publish::begin(staging)?;
        publish.apply(steps)?;
        publish.finish();
        Ok(())
    }
}

/// The first line of a message, for the reflog.
pub(super) fn subject(message: &[u8]) -> String {
    let line = message.split(|b| *b == b'\n').next().unwrap_or_default();
    String::from_utf8_lossy(line).into_owned()
}
