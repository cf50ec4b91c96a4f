//! The end of a directory: capture, and removal.
//!
//! Nothing is removed that was not captured. When a capture fails, the directory stays; when it had
//! to leave something out that exists nowhere else, the directory stays too, unless the caller
//! insists. The removal is a rename (the directory is gone), the exec ref (the workspace is its own
//! authority again), the git dir, and the deletion. Killed in between, the next call finds a
//! vanished directory whose content was captured, or leftovers in the trash.

use std::path::PathBuf;

use rustix::fs::{Access, access};

use super::capture::{self, Captured};
use super::directory::Places;
use super::materialize::clear;
use super::removal::{Aside, Clearance};
use super::state::{State, state, unmark};
use super::{Directory, Error, Result, admin, in_use, parked, peek, removal};
use crate::git::{Lock, fault};
use crate::model::{AgentId, Refusal};
use crate::workspace::{LeftOut, Mode, Store, Workspace};

/// How a directory ended.
#[derive(Clone, Debug)]
pub struct Settled {
    /// What was captured.
    pub captured: Captured,
    /// The directory, where it stays: it was open before, another command is running in it, what was
    /// left out exists nowhere else (see [`would_be_lost`]), or it is one that stays.
    pub kept: Option<PathBuf>,
    /// Whether it stays because the workspace was made with a directory that does.
    pub stays: bool,
    /// Where the directory was, if it had vanished before: nothing could be captured.
    pub vanished: Option<PathBuf>,
    /// What would not be deleted, in the trash; the next removal tries again.
    pub left_behind: Vec<PathBuf>,
}

/// Whether a directory may go although a capture had to leave things out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Insist {
    /// It stays then.
    #[default]
    No,
    /// It goes with what could not be captured.
    Yes,
}

/// Whether what was left out is gone for good when the directory is. Ignored files are left out on
/// purpose, and a FIFO or socket holds nothing.
pub fn would_be_lost(left_out: &LeftOut) -> bool {
    !matches!(left_out.kind, Refusal::Ignored | Refusal::SpecialFile)
}

/// Imports what tools did in the open directory as one revision; none where nothing differs.
///
/// # Errors
/// [`Error::NotOpen`], [`Error::Vanished`], [`Error::NotOurs`]; failures of Git and of the disk. The
/// previous revision stands then.
pub fn capture(store: &Store<'_>, agent: &AgentId) -> Result<Captured> {
    let lock = store.lock(agent)?;
    match super::open(store, agent)? {
        Some(directory) => capture::capture_locked(store, &lock, &directory),
        None => {
            store.load(agent)?;
            Err(not_open(agent))
        }
    }
}

/// The current state of a workspace, after an import of its directory where one is open: what every
/// reader calls first. A directory that has vanished leaves the last revision; so does a repository
/// that nothing can be written to, in which reading goes on.
///
/// # Errors
/// As [`capture()`], apart from a missing directory.
pub fn import(store: &Store<'_>, agent: &AgentId) -> Result<Workspace> {
    if store.open_directory(agent)?.is_none() {
        return Ok(store.load(agent)?);
    }
    let lock = match store.lock(agent) {
        Err(_) if access(store.repository().common_dir(), Access::WRITE_OK).is_err() => {
            return Ok(store.load(agent)?);
        }
        lock => lock?,
    };
    import_locked(store, &lock, agent)
}

/// As [`import`], for a caller that holds the agent's lock.
///
/// # Errors
/// As [`import`].
pub fn import_locked(store: &Store<'_>, lock: &Lock, agent: &AgentId) -> Result<Workspace> {
    match state(store, agent)? {
        State::Open(directory, _) => {
            Ok(capture::capture_locked(store, lock, &directory)?.workspace)
        }
        _ => Ok(store.load(agent)?),
    }
}

/// Captures an open directory and removes it, unless it is one that stays with its workspace. One that
/// has vanished, or was never finished, is cleared away.
///
/// # Errors
/// As [`capture()`], apart from [`Error::Vanished`]; the refusal `locked` while a command is running in
/// the directory. It stays where it is then.
pub fn settle(store: &Store<'_>, agent: &AgentId, insist: Insist) -> Result<Settled> {
    let workspace = store.load(agent)?;
    if stays(&workspace)
        && let Some(_) = peek(store, agent)?
    {
        return Ok(Settled {
            stays: true,
            ..keep(store, agent)?
        });
    }
    close(store, agent, insist)
}

/// Whether the directory of a workspace is one that stays.
pub(super) fn stays(workspace: &Workspace) -> bool {
    workspace.meta.mode == Mode::Worktree
}

/// As [`settle`], for the end of the workspace: the directory goes in any mode.
///
/// # Errors
/// As [`settle`].
pub fn close(store: &Store<'_>, agent: &AgentId, insist: Insist) -> Result<Settled> {
    let alone = in_use::alone(store.repository(), agent)?;
    let lock = store.lock(agent)?;
    match state(store, agent)? {
        State::Closed => {
            let workspace = store.load(agent)?;
            match parked::set_aside(store.repository(), agent)? {
                Some(aside) => {
                    drop((alone, lock));
                    let mut settled = without_capture(workspace, None);
                    settled.left_behind.extend(aside.delete());
                    Ok(settled)
                }
                None => Err(not_open(agent)),
            }
        }
        State::Unfinished(places) => {
            clear(store, agent, &places)?;
            let aside = parked::set_aside(store.repository(), agent)?;
            aside.map(Aside::delete);
            store.refresh_mirror(agent);
            Ok(without_capture(store.load(agent)?, None))
        }
        State::Vanished(places) => {
            clear(store, agent, &places)?;
            let aside = parked::set_aside(store.repository(), agent)?;
            aside.map(Aside::delete);
            store.refresh_mirror(agent);
            Ok(without_capture(store.load(agent)?, Some(places.path)))
        }
        State::Open(directory, places) => {
            let captured = capture::capture_locked(store, &lock, &directory)?;
            let stays = |captured: &Captured| {
                insist == Insist::No && captured.left_out.iter().any(would_be_lost)
            };
            #[cfg(target_os = "linux")]
            let captured = match stays(&captured) {
                false => super::mounted::hide(store, &lock, &directory, captured, stays)?,
                true => captured,
            };
            let mut settled = Settled {
                captured,
                kept: None,
                stays: false,
                vanished: None,
                left_behind: Vec::new(),
            };
            if stays(&settled.captured) {
                settled.kept = Some(directory.files(store.repository()));
            } else {
                let aside = take_away(store, (&directory, &places), true)?;
                // The agent is free again as soon as the directory is out of its place.
                drop((alone, lock));
                settled.left_behind = delete(store, &places, aside);
            }
            Ok(settled)
        }
    }
}

/// Removes the directory that stays with a workspace, for the end of that; the caller holds the
/// agent's lock. Tells whether there is no directory any more: one in which a command runs, or which
/// holds something that the workspace does not, is left.
///
/// # Errors
/// Failures of the capture, and of the removal.
pub fn close_standing(store: &Store<'_>, lock: &Lock, workspace: &Workspace) -> Result<bool> {
    let agent = &workspace.agent;
    let (directory, places) = match state(store, agent)? {
        State::Closed => return Ok(true),
        State::Open(directory, places) if stays(workspace) => (directory, places),
        _ => return Ok(false),
    };
    let alone = match in_use::alone(store.repository(), agent) {
        Err(error) if error.refusal() == Some(Refusal::Locked) => return Ok(false),
        other => other?,
    };
    let captured = capture::capture_locked(store, lock, &directory)?;
    if captured.workspace.commit != workspace.commit || captured.left_out.iter().any(would_be_lost)
    {
        return Ok(false);
    }
    let aside = take_away(store, (&directory, &places), true)?;
    drop(alone);
    delete(store, &places, aside);
    Ok(true)
}

/// Settles after a command, unless another one is still running in the directory.
pub(super) fn settle_after_run(store: &Store<'_>, agent: &AgentId) -> Result<Settled> {
    match settle(store, agent, Insist::No) {
        Err(error) if error.refusal() == Some(Refusal::Locked) => keep(store, agent),
        other => other,
    }
}

/// Captures an open directory and lets it stay.
pub(super) fn keep(store: &Store<'_>, agent: &AgentId) -> Result<Settled> {
    let lock = store.lock(agent)?;
    match state(store, agent)? {
        State::Open(directory, _) => Ok(Settled {
            captured: capture::capture_locked(store, &lock, &directory)?,
            kept: Some(directory.path),
            stays: false,
            vanished: None,
            left_behind: Vec::new(),
        }),
        State::Vanished(places) => Ok(without_capture(store.load(agent)?, Some(places.path))),
        State::Closed | State::Unfinished(_) => Err(not_open(agent)),
    }
}

pub(super) fn without_capture(workspace: Workspace, vanished: Option<PathBuf>) -> Settled {
    Settled {
        captured: Captured {
            workspace,
            changed: false,
            left_out: Vec::new(),
            branches: Vec::new(),
        },
        kept: None,
        stays: false,
        vanished,
        left_behind: Vec::new(),
    }
}

pub(super) fn not_open(agent: &AgentId) -> Error {
    Error::NotOpen {
        agent: agent.clone(),
    }
}

/// Takes a directory whose content is captured out of its place, and, if `whole`, what an overlay has
/// above it. The caller holds both locks of the agent.
pub(super) fn take_away(
    store: &Store<'_>,
    (directory, places): (&Directory, &Places),
    whole: bool,
) -> Result<Vec<Aside>> {
    if directory.backend == parked::OVERLAY {
        parked::check_place(&directory.agent, places)?;
    }
    // The capture is on disk before what it was taken from is gone.
    let repository = store.repository();
    repository.catch_up_before(&[&places.root, &repository.relo_dir()]);
    let mut aside = vec![removal::set_aside(&places.root, &directory.path)?];
    fault::point("settle-aside");
    unmark(store, &directory.agent, directory.cut.commit)?;
    fault::point("settle-unmarked");
    admin::remove(store.repository(), places)?;
    if whole {
        aside.extend(parked::set_aside(store.repository(), &directory.agent)?);
    }
    store.refresh_mirror(&directory.agent);
    fault::point("settle-closed");
    Ok(aside)
}

/// Deletes what was taken away; gives back what would not go.
pub(super) fn delete(store: &Store<'_>, places: &Places, aside: Vec<Aside>) -> Vec<PathBuf> {
    let progress = store.repository().progress();
    let aside = aside.into_iter();
    let mut left: Vec<PathBuf> = aside
        .filter_map(|aside| aside.delete_telling(progress))
        .collect();
    for more in sweep(store, places) {
        if !left.contains(&more) {
            left.push(more);
        }
    }
    left
}

/// As [`delete`], while others work, where nobody wants to hear how far it is.
pub(super) fn delete_meanwhile(
    store: &Store<'_>,
    places: &Places,
    aside: Vec<Aside>,
) -> Option<Clearance> {
    let repository = store.repository();
    if repository.is_heard() {
        delete(store, places, aside);
        return None;
    }
    let roots = vec![places.root.clone(), repository.relo_dir()];
    Some(Clearance::begin(aside, roots))
}

/// Deletes what earlier removals have left in the trash.
fn sweep(store: &Store<'_>, places: &Places) -> Vec<PathBuf> {
    let mut left = removal::sweep(&places.root);
    left.extend(removal::sweep(&store.repository().relo_dir()));
    left
}

/// Deletes what interrupted removals have left behind; gives back what would not go.
///
/// # Errors
/// When the settings make no sense.
pub fn sweep_trash(store: &Store<'_>, agent: &AgentId) -> Result<Vec<PathBuf>> {
    Ok(sweep(store, &Places::new(store.repository(), agent)?))
}
