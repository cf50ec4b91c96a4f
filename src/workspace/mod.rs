//! Workspaces: their state, and every operation on it that needs no real files.
//!
//! A [`Store`] is a repository seen as a set of workspaces; a [`Workspace`] is the state of one at
//! one revision, read once and never changed. All changes go through [`Store::publish`].

mod apply;
mod base;
mod branch;
mod check;
mod context;
mod create;
mod diff;
mod dispose;
mod edit;
mod error;
mod form;
mod keeper;
mod lineage;
mod list;
mod log;
mod merge;
mod meta;
mod mirrored;
mod moves;
pub mod names;
mod read;
mod rebase;
mod recover;
mod reference;
mod revision;
mod snap;
mod stack;
mod sweep;
mod trash;

pub(crate) use base::max_file_size;
pub use base::{Base, LeftOut};
pub use check::{Check, Limit, Way};
pub use context::{ContextCheck, Freshness};
pub use create::{Created, From, NewWorkspace};
pub use diff::{count_lines, patch};
pub use dispose::Disposed;
pub(crate) use edit::check_link;
pub use edit::{Edit, Editor};
pub use error::{Error, Result};
pub use form::{Form, Wanted};
pub use keeper::{Delivery, Keeper};
pub use lineage::{Origin, Parent, patch_hash};
pub use list::Listed;
pub use log::Logged;
pub use merge::{Conflict, Keep, Merged, Trees, merge_trees};
pub use meta::{FORMAT, Kind, Metadata, Mode};
pub use mirrored::{Difference, Reconciled};
pub(crate) use moves::{merge_renames, moved};
pub use read::{Found, Side, check_file, list_tree, resolve};
pub use rebase::{Rebase, Rebased};
pub use recover::{
    Cleared, Damage, Leftover, LockFile, Moved, RecoverOptions, Recovered, STALE_AFTER,
};
pub use reference::{Imported, MAX_PATH_LENGTH, MAX_PATHS, Reference};
pub use revision::{Amend, Change, Published, Terms};
pub use stack::{Contribution, Decided, NewStack, NotApplied, Source, Stacked};
pub use sweep::{Doomed, Inputs, Journalled, Offered, Plan, Policy, Swept, What};
pub use trash::Trashed;

use crate::git::{self, Commit, ObjectId, Repository};
use crate::model::{AgentId, Revision};
use bstr::ByteSlice;

/// A repository, seen as a set of workspaces.
#[derive(Clone, Copy)]
pub struct Store<'r> {
    repository: &'r Repository,
    now: i64,
    keeper: Option<&'r dyn Keeper>,
    /// Whether what is published is shown in the mirror later, by the caller.
    shown_later: bool,
}

/// The state of a workspace at one revision.
#[derive(Clone, Debug)]
pub struct Workspace {
    /// Its agent.
    pub agent: AgentId,
    /// The revision's commit.
    pub commit: ObjectId,
    /// The overlay: the base with the agent's changes in it.
    pub tree: ObjectId,
    /// The revision's metadata.
    pub meta: Metadata,
}

impl Workspace {
    /// The number of this revision.
    pub fn revision(&self) -> Revision {
        self.meta.revision
    }

    /// The base commit.
    pub fn base(&self) -> ObjectId {
        self.meta.base
    }
}

impl<'r> Store<'r> {
    /// The workspaces of a repository, at `now` (seconds since 1970), which stamps what is made.
    pub fn new(repository: &'r Repository, now: i64) -> Self {
        Store {
            repository,
            now,
            keeper: None,
            shown_later: false,
        }
    }

    /// The same, with somebody who keeps the directories of its workspaces.
    pub fn kept_by(self, keeper: &'r dyn Keeper) -> Self {
        Store {
            keeper: Some(keeper),
            ..self
        }
    }

    /// The same, for a caller that calls [`Store::refresh_mirror`] when all is done: what is published until
    /// then is not shown in the mirror. Killed before, it is shown with the next change, or by
    /// [`Store::reconcile_mirror`].
    pub fn shown_later(self) -> Self {
        Store {
            shown_later: true,
            ..self
        }
    }

    /// The repository below.
    pub fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// The time that stamps what is made, in seconds since 1970.
    pub fn now(&self) -> i64 {
        self.now
    }

    /// The current state of a workspace.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`], or [`Error::Damaged`] when its ref or commit makes no sense.
    pub fn load(&self, agent: &AgentId) -> Result<Workspace> {
        let Some(commit) = self.overlay_ref(agent)? else {
            return Err(Error::NoWorkspace {
                agent: agent.clone(),
            });
        };
        self.read_revision(agent, commit)
    }

    /// What the overlay ref holds.
    fn overlay_ref(&self, agent: &AgentId) -> Result<Option<ObjectId>> {
        match self.repository.refs().find(&names::overlay(agent)) {
            Err(error @ git::Error::Ref { .. }) => Err(Error::Damaged {
                what: format!("workspace '{agent}'"),
                why: error.to_string(),
            }),
            other => Ok(other?),
        }
    }

    /// The current state of a workspace, if there is such a workspace.
    ///
    /// # Errors
    /// As [`Store::load`], apart from [`Error::NoWorkspace`].
    pub fn find(&self, agent: &AgentId) -> Result<Option<Workspace>> {
        match self.load(agent) {
            Ok(workspace) => Ok(Some(workspace)),
            Err(Error::NoWorkspace { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The state that a revision's commit holds.
    ///
    /// # Errors
    /// [`Error::Damaged`] when the commit is missing, not a revision, or another agent's.
    pub fn read_revision(&self, agent: &AgentId, commit: ObjectId) -> Result<Workspace> {
        let objects = self.repository.objects()?;
        let Commit { tree, message, .. } =
            objects.commit(commit).map_err(|error| Error::Damaged {
                what: format!("workspace '{agent}'"),
                why: error.to_string(),
            })?;
        let meta = Metadata::parse(commit, message.as_bstr(), self.repository.format())?;
        if meta.agent != *agent {
            return Err(Error::Damaged {
                what: format!("workspace '{agent}'"),
                why: format!("its revision {commit} belongs to '{}'", meta.agent),
            });
        }
        Ok(Workspace {
            agent: agent.clone(),
            commit,
            tree,
            meta,
        })
    }

    /// The revision of a workspace with a given number, current or earlier.
    ///
    /// # Errors
    /// [`Error::NoRevision`] when there is none; as [`Store::load`].
    pub fn load_at(&self, agent: &AgentId, revision: Revision) -> Result<Workspace> {
        let mut at = self.load(agent)?;
        let none = || Error::NoRevision {
            agent: agent.clone(),
            revision,
        };
        if revision > at.revision() {
            return Err(none());
        }
        let objects = self.repository.objects()?;
        while at.revision() > revision {
            let commit = objects.commit(at.commit)?;
            let before = *commit.parents.get(1).ok_or_else(none)?;
            at = self.read_revision(agent, before)?;
        }
        if at.revision() == revision {
            Ok(at)
        } else {
            Err(none())
        }
    }

    /// The tree of the workspace's base commit.
    ///
    /// # Errors
    /// When the commit cannot be read.
    pub fn base_tree(&self, workspace: &Workspace) -> Result<ObjectId> {
        Ok(self.repository.objects()?.commit(workspace.base())?.tree)
    }

    /// The revision that an open directory was cut from; `None` when no directory is open.
    ///
    /// # Errors
    /// When the ref cannot be read.
    pub fn open_directory(&self, agent: &AgentId) -> Result<Option<ObjectId>> {
        Ok(self.repository.refs().find(&names::exec(agent))?)
    }
}
