//! Directories after a stop: taken in hand again, or cleared away.
//!
//! A directory that stands and is ours is imported, and stays open: somebody may be at work in it. What
//! was never finished, or is gone, is cleared away (one that stays with its workspace is finished), and so is what an interrupted removal has left: a
//! git dir of ours that points nowhere, the trash, a layout that nobody came to finish. Everything
//! happens under the agent's lock; an agent that is busy is left to whoever is at work. What is
//! not known to be ours is never touched.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::capture::{self, Captured};
use super::directory::{Directory, Places};
use super::materialize::{check_folders, clear, lay_out_standing};
use super::settle::stays;
use super::state::{State, not_ours, state};
use super::{Error, Result, admin, removal};
use crate::git;
use crate::model::AgentId;
use crate::workspace::{Store, names};

/// What became of an agent's directory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Fate {
    /// It stands, and what tools did in it is imported.
    Imported {
        /// The directory.
        path: PathBuf,
        /// What was captured.
        captured: Box<Captured>,
    },
    /// It was gone; the workspace stands at its last revision.
    Vanished(PathBuf),
    /// Nobody was ever given it, or its removal was interrupted: cleared away.
    Cleared(PathBuf),
    /// Somebody is at work on the workspace.
    Busy,
    /// It is as it was.
    Failed(Error),
}

/// What became of the directory of one agent.
#[derive(Debug)]
pub struct Adopted {
    /// The agent.
    pub agent: AgentId,
    /// What became of it.
    pub fate: Fate,
}

/// What [`adopt`] did.
#[derive(Debug, Default)]
pub struct Adoption {
    /// The directories, by agent.
    pub directories: Vec<Adopted>,
    /// Files and folders in the trash that would not be deleted.
    pub left_behind: Vec<PathBuf>,
}

/// Imports every open directory, and clears away what interrupted runs have left.
///
/// # Errors
/// When the refs cannot be listed. What goes wrong with one directory is told of that one.
pub fn adopt(store: &Store<'_>) -> Result<Adoption> {
    let open = marked(store)?;
    let mut roots = BTreeSet::from([store.repository().relo_dir()]);
    let mut adoption = Adoption::default();
    let unmarked = left_of(store).into_iter();
    for agent in open.iter().cloned().chain(unmarked) {
        if let Ok(places) = Places::new(store.repository(), &agent) {
            roots.insert(places.root);
        }
        if let Some(fate) = adopt_one(store, &agent, &mut roots).transpose() {
            let fate = fate.unwrap_or_else(Fate::Failed);
            adoption.directories.push(Adopted { agent, fate });
        }
    }
    roots.extend(home(store));
    for root in roots.iter().filter(|root| is_safe(store, root)) {
        adoption.left_behind.extend(removal::sweep(root));
        let _ = fs::remove_dir(root.join(removal::TRASH));
    }
    let now = Duration::from_secs(u64::try_from(store.now()).unwrap_or(0));
    store
        .repository()
        .clear_dead_trees(SystemTime::UNIX_EPOCH + now);
    Ok(adoption)
}

/// The agents that have a directory open, or had when they were interrupted.
///
/// # Errors
/// When the refs cannot be listed.
pub fn marked(store: &Store<'_>) -> Result<BTreeSet<AgentId>> {
    let refs = store.repository().refs().list(names::WORKSPACES)?;
    let agents = refs.keys().filter_map(|name| {
        let agent = name
            .strip_prefix(names::WORKSPACES)?
            .strip_suffix("/exec")?;
        AgentId::new(agent).ok()
    });
    Ok(agents.collect())
}

/// The open directory of an agent as it stands; nothing is imported.
///
/// # Errors
/// As [`super::open`]; a vanished one is no error here.
pub fn peek(store: &Store<'_>, agent: &AgentId) -> Result<Option<Directory>> {
    match state(store, agent)? {
        State::Open(directory, _) => Ok(Some(*directory)),
        _ => Ok(None),
    }
}

fn adopt_one(
    store: &Store<'_>,
    agent: &AgentId,
    roots: &mut BTreeSet<PathBuf>,
) -> Result<Option<Fate>> {
    let lock = match store.try_lock(agent, Duration::ZERO) {
        Err(error) if is_locked(&error) => return Ok(Some(Fate::Busy)),
        other => other?,
    };
    let fate = match state(store, agent)? {
        State::Closed => return leftovers(store, agent),
        State::Open(directory, places) => {
            admin::clear_temporary(&places);
            roots.insert(places.root);
            let captured = capture::capture_locked(store, &lock, &directory)?.into();
            let path = directory.path;
            return Ok(Some(Fate::Imported { path, captured }));
        }
        State::Unfinished(places) if stays(&store.load(agent)?) => {
            let directory = lay_out_standing(store, &lock, agent)?;
            roots.insert(places.root);
            let captured = capture::capture_locked(store, &lock, &directory)?.into();
            let path = directory.path;
            return Ok(Some(Fate::Imported { path, captured }));
        }
        State::Unfinished(places) => {
            clear(store, agent, &places)?;
            roots.insert(places.root);
            Fate::Cleared(places.path)
        }
        State::Vanished(places) => {
            clear(store, agent, &places)?;
            roots.insert(places.root);
            Fate::Vanished(places.path)
        }
    };
    store.refresh_mirror(agent);
    Ok(Some(fate))
}

fn is_locked(error: &crate::workspace::Error) -> bool {
    matches!(
        error,
        crate::workspace::Error::Git(git::Error::Locked { .. })
    )
}

/// Clears away what an agent without an open directory has left of one.
fn leftovers(store: &Store<'_>, agent: &AgentId) -> Result<Option<Fate>> {
    let repository = store.repository();
    let mut places = Places::new(repository, agent)?;
    if let Some(path) = admin::pointed_to(agent, &places.admin)? {
        if removal::is_there(&path)? {
            let why = "no directory of this workspace is open, yet it is there; \
                       save what is in it and move it away";
            return Err(not_ours(agent, &path, why));
        }
        places = Places::at(repository, agent, &path);
    }
    let admin = admin::pointed_to(agent, &places.admin)?.is_some();
    let unfinished = removal::is_there(&places.unfinished(agent))?;
    if !admin::clear_staged(repository, agent)? && !admin && !unfinished {
        return Ok(None);
    }
    if is_safe(store, &places.root) {
        clear(store, agent, &places)?;
    }
    Ok(Some(Fate::Cleared(places.path)))
}

/// The agents of whom something lies about, as far as it is not marked as open.
fn left_of(store: &Store<'_>) -> BTreeSet<AgentId> {
    let repository = store.repository();
    let worktrees = repository.common_dir().join("worktrees");
    let mut found: BTreeSet<AgentId> = entries(&worktrees)
        .iter()
        .filter_map(|name| AgentId::new(name.strip_prefix("relo-")?).ok())
        .collect();
    let mut folders = vec![repository.relo_dir().join("new")];
    folders.extend(home(store).map(|root| root.join(super::directory::NEW)));
    for folder in folders {
        found.extend(entries(&folder).iter().filter_map(|n| AgentId::new(n).ok()));
    }
    let open = marked(store).unwrap_or_default();
    found.difference(&open).cloned().collect()
}

/// Where directories go by default, or by the settings.
fn home(store: &Store<'_>) -> Option<PathBuf> {
    let any = AgentId::new("any").ok()?;
    Some(Places::new(store.repository(), &any).ok()?.root)
}

fn entries(folder: &Path) -> Vec<String> {
    let read = fs::read_dir(folder).into_iter().flatten().flatten();
    read.filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
}

/// Whether no link leads from the user's tree to this folder: what lies behind one is not ours.
fn is_safe(store: &Store<'_>, root: &Path) -> bool {
    match store.repository().work_dir() {
        Some(top) if root.starts_with(top) => check_folders(top, root).is_ok(),
        _ => true,
    }
}
