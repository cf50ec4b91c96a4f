//! Upkeep: after a crash, and after a while.
//!
//! - [`recover`] puts together what an interrupted run has left: refs, directories, accepts, the mirror
//! - [`clear`] takes a damaged workspace out of git's way
//! - [`sweep`] removes what has outlived its time, or says what it would remove
//! - [`dispose`] lets a workspace go
//!
//! Here because this is the highest layer of the library: a workspace goes only with what is known of
//! its directory and its proposals. Nothing goes that was not imported first.

mod dispose;
mod sweep;

use std::path::PathBuf;
use std::time::Duration;

use bstr::BString;

use super::journal::{self, Journal, JournalId};
use super::release::release_if_done;
use super::{Error, Result, accept, store as changes};
use crate::git;
use crate::layout::{self, Adoption, Fate};
use crate::model::{AgentId, Revision};
use crate::workspace::{
    self, Cleared, Reconciled, RecoverOptions, Recovered, Store, Workspace, names,
};

pub use dispose::dispose;
pub use sweep::{Item, Kept, Sweep, sweep};

/// Something that cannot be read, apart from workspaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Its ref.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

/// What a recovery found and did.
#[derive(Debug, Default)]
pub struct Report {
    /// Refs, locks and packs.
    pub refs: Recovered,
    /// Directories.
    pub adoption: Adoption,
    /// Accepts and undos that were interrupted in this working tree, ended.
    pub ended: Vec<journal::Recovered>,
    /// Those that were interrupted in another working tree: a recovery there ends them.
    pub elsewhere: Vec<(JournalId, Option<BString>)>,
    /// Journal entries and proposals that cannot be read.
    pub broken: Vec<Broken>,
    /// Workspaces in which nothing waited any more: released.
    pub released: Vec<AgentId>,
    /// In what the mirror was wrong after all that.
    pub mirror: Reconciled,
}

impl Report {
    /// Whether anything is left that needs the user.
    pub fn needs_attention(&self) -> bool {
        let failed = |one: &layout::Adopted| matches!(one.fate, Fate::Failed(_));
        self.refs.needs_attention()
            || self.adoption.directories.iter().any(failed)
            || !self.elsewhere.is_empty()
            || !self.broken.is_empty()
            || !self.mirror.forgotten.is_empty()
    }
}

/// Recovers everything, from the refs alone. What is damaged is named, and nothing is done about it; the
/// rest is put in order.
///
/// # Errors
/// When refs or object folders cannot be listed, or an interrupted accept cannot be ended.
pub fn recover(store: &Store<'_>, options: RecoverOptions) -> Result<Report> {
    let mut report = Report {
        refs: store.recover(options)?,
        ..Report::default()
    };
    // Before the directories: what a stopped accept has written is decided then.
    match Journal::lock_for(*store, Duration::ZERO) {
        Ok(journal) => report.ended = accept::end_interrupted(store, &journal)?,
        // Nothing can have been interrupted in a bare repository, and nothing is while one is at work.
        Err(journal::Error::Git(git::Error::NoWorkTree | git::Error::Locked { .. })) => {}
        Err(error) => return Err(error.into()),
    }
    report.adoption = layout::adopt(store)?;
    for (agent, folder) in layout::orphans(store)? {
        if layout::forget(store, &agent)? {
            let fate = Fate::Cleared(folder);
            report
                .adoption
                .directories
                .push(layout::Adopted { agent, fate });
        }
    }
    report.broken = broken(store, &mut report.elsewhere)?;
    report.released = release_decided(store)?;
    report.mirror = store.reconcile_mirror()?;
    Ok(report)
}

/// What became of a damaged workspace.
#[derive(Debug)]
pub struct Clear {
    /// Its refs.
    pub refs: Cleared,
    /// Its directory, which stays with all that is in it.
    pub directory: Option<PathBuf>,
}

/// Takes a damaged workspace apart; see [`Store::clear`]. A directory of it that is open is imported
/// first if that is still possible, and stays in any case.
///
/// # Errors
/// As [`Store::clear`].
pub fn clear(store: &Store<'_>, agent: &AgentId) -> Result<Clear> {
    // Its last content is part of what is kept where the workspace can still take it.
    let _ = layout::import(store, agent);
    let directory = layout::peek(store, agent).ok().flatten();
    Ok(Clear {
        refs: store.clear(agent)?,
        directory: directory.map(|directory| directory.path),
    })
}

/// An interrupted accept or undo of this working tree, if there is one: what a command that reads says.
///
/// # Errors
/// When the journal cannot be listed.
pub fn interrupted(store: &Store<'_>) -> Result<Option<JournalId>> {
    let open = journal::interrupted(*store)?;
    let Some(first) = open.first() else {
        return Ok(None);
    };
    // Who holds the lock is at work on it.
    match Journal::lock_for(*store, Duration::ZERO) {
        Ok(_lock) => Ok(Some(first.id)),
        Err(_) => Ok(None),
    }
}

/// Journal entries and proposals that cannot be read, and entries that another working tree has to end.
fn broken(
    store: &Store<'_>,
    elsewhere: &mut Vec<(JournalId, Option<BString>)>,
) -> Result<Vec<Broken>> {
    let mut found = Vec::new();
    let mut note = |name: String, why: String| found.push(Broken { name, why });
    for summary in journal::list(*store)? {
        match summary.entry {
            Err(error) => note(names::journal(&summary.id.to_string()), error.to_string()),
            Ok(entry) if entry.state == journal::State::Open && !summary.here => {
                elsewhere.push((entry.id, entry.worktree));
            }
            Ok(_) => {}
        }
    }
    for name in store.repository().refs().list(names::CHANGES)?.into_keys() {
        if let Some((agent, revision)) = proposal_of(&name)
            && let Err(error) = changes::find(store, &agent, revision)
        {
            note(name, error.to_string());
        }
    }
    Ok(found)
}

/// Releases the workspaces in which nothing waits any more: a stop came between the last decision and
/// this.
fn release_decided(store: &Store<'_>) -> Result<Vec<AgentId>> {
    let mut released = Vec::new();
    for listed in store.list()? {
        let proposed = listed.state.as_ref().ok().and_then(|w| w.meta.proposal);
        let stays = |w: &Workspace| store.is_followed(w);
        let followed = listed.state.as_ref().is_ok_and(stays);
        if proposed.is_none() || listed.directory.is_some() && !followed {
            continue;
        }
        let lock = match store.try_lock(&listed.agent, Duration::ZERO) {
            Err(workspace::Error::Git(git::Error::Locked { .. })) => continue,
            other => other?,
        };
        match release_if_done(store, &lock, &listed.agent) {
            Ok(true) => released.push(listed.agent),
            // A damaged proposal is named elsewhere, and holds its workspace.
            Ok(false) | Err(Error::Damaged { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(released)
}

/// Agent and revision in the name of a proposal's ref.
fn proposal_of(name: &str) -> Option<(AgentId, Revision)> {
    let (agent, revision) = name.strip_prefix(names::CHANGES)?.split_once('/')?;
    Some((AgentId::new(agent).ok()?, revision.parse().ok()?))
}
