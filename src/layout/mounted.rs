//! Directories by overlay mount that stay: mounted in their place, for all to see.
//!
//! Only who may mount in the caller's own namespace can make one. What tools write goes to the upper
//! folder at once, so the mount itself holds nothing: after a restart of the machine, or when somebody
//! unmounts it, readers and `settle` capture as before, and `materialize` mounts it again. While it is not
//! mounted its place is an empty folder, in which nobody's files may get lost: see
//! [`parked::check_place`].

use std::time::Duration;

use super::backend::{Choice, Ladder};
use super::capture::{self, Captured};
use super::directory::Places;
use super::overlay::visible::{self, Stuck};
use super::overlay::{At, Overlay, Place, Stand};
use super::removal::{self, Aside};
use super::state::{State, state};
use super::{Directory, Error, Options, Result, in_use, materialize, overlaid, parked};
use crate::git::{self, Lock, fault};
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// Lays out, and mounts, where that is asked for; mounts one that is open again. `None` where it is for
/// another back end to do it.
///
/// # Errors
/// The refusal `unsupported` where the caller may not mount;
/// `locked` while it is mounted elsewhere; as [`materialize()`](super::materialize()).
pub(super) fn lay_out(
    store: &Store<'_>,
    agent: &AgentId,
    options: &Options,
) -> Result<Option<Directory>> {
    let is_mounted = match state(store, agent)? {
        State::Open(directory, _) => directory.mounted,
        _ => false,
    };
    if !is_mounted && options.backend != Choice::Overlay {
        return Ok(None);
    }
    let repository = store.repository();
    if !is_mounted {
        let Some(_) = &options.program else {
            return Err(refused("the caller cannot start itself"));
        };
        let relo = repository.relo_dir();
        std::fs::create_dir_all(&relo).map_err(|e| Error::io("create", &relo, e))?;
        visible::may_mount(&relo).map_err(|why| refused(&why))?;
        overlaid::retire(store, agent)?;
    }
    // Nobody takes a parked folder away meanwhile.
    let _used = in_use::shared(repository, agent, git::PATIENCE)?;
    let lock = store.lock(agent)?;
    if let State::Open(directory, places) = state(store, agent)? {
        if directory.mounted {
            show(store, &directory, &places)?;
        }
        return Ok(Some(*directory));
    }
    let Some(program) = options.program.as_deref().filter(|_| !is_mounted) else {
        // Settled meanwhile.
        return Ok(None);
    };
    let backend = Overlay {
        store,
        agent,
        program,
        mounted: true,
    };
    let ladder = Ladder {
        steps: vec![Box::new(backend)],
        asked: true,
    };
    let directory = materialize::lay_out(store, &lock, agent, &ladder)?;
    let places = Places::at(repository, agent, &directory.path);
    fault::point("layout-unmounted");
    if let Err(error) = show(store, &directory, &places) {
        // Nobody was given it. What fails here too is an open directory without a mount.
        let _ = take_back(store, &directory, &places);
        return Err(error);
    }
    Ok(Some(directory))
}

/// Takes a directory back that is in its place already.
fn take_back(store: &Store<'_>, directory: &Directory, places: &Places) -> Result<()> {
    let aside = removal::set_aside(&places.root, &directory.path)?;
    materialize::clear(store, &directory.agent, places)?;
    let above = parked::set_aside(store.repository(), &directory.agent)?;
    store.refresh_mirror(&directory.agent);
    aside.delete();
    above.map(Aside::delete);
    Ok(())
}

fn refused(why: &str) -> Error {
    let what = format!("no overlay for all to see here: {why}");
    Error::refused(Refusal::Unsupported, what)
}

/// Mounts an open one in its place, unless it is. The caller holds the agent's lock.
fn show(store: &Store<'_>, directory: &Directory, places: &Places) -> Result<()> {
    let repository = store.repository();
    let agent = &directory.agent;
    let root = parked::root(repository, agent);
    let name = visible::name(&root);
    if visible::is_at(&places.path, &name)? {
        return Ok(());
    }
    let locked = |what: String| Err(Error::refused(Refusal::Locked, what));
    // Two mounts of one upper folder do not know of each other.
    if let Some(at) = visible::elsewhere(&name)? {
        return locked(format!(
            "the directory of workspace '{agent}' is still mounted in {at}"
        ));
    }
    parked::check_place(agent, places)?;
    let gone = || Error::io("open", &root, std::io::ErrorKind::NotFound);
    let stand = Stand::open(repository, &root)?.ok_or_else(gone)?;
    let _held = match Lock::exclusive(&stand.upper().lock(), Duration::ZERO) {
        Err(git::Error::Locked { .. }) => {
            return locked(format!(
                "a process of an earlier run is left in the directory of workspace '{agent}'"
            ));
        }
        held => held?,
    };
    let place = Place {
        own: places.path.clone(),
        admin: places.admin.clone(),
        fence: false,
    };
    let mut spec = stand.spec(repository, &place, At::Own)?;
    // It stays, and what is in it is nobody's to lose.
    spec.volatile = false;
    visible::mount(&spec, &name)
}

/// Unmounts a directory that was `captured` and shall go, and captures what was written until then. One
/// that `stays` after all, because of what was written last, is mounted again. Others are passed
/// over.
///
/// # Errors
/// The refusal `locked` while anybody is in it; as a capture. It stays as it is then.
pub(super) fn hide(
    store: &Store<'_>,
    lock: &Lock,
    directory: &Directory,
    captured: Captured,
    stays: impl Fn(&Captured) -> bool,
) -> Result<Captured> {
    let agent = &directory.agent;
    let name = visible::name(&parked::root(store.repository(), agent));
    if !directory.mounted || !visible::is_at(&directory.path, &name)? {
        return Ok(captured);
    }
    match visible::unmount(&directory.path) {
        Ok(()) => {}
        Err(Stuck::Busy(users)) => {
            let who = match users.is_empty() {
                true => "somebody has it in use".to_owned(),
                false => format!("in use by process {}", users.join(", ")),
            };
            let path = directory.path.display();
            let what = format!("directory '{path}' of workspace '{agent}' is busy: {who}");
            return Err(Error::refused(Refusal::Locked, what));
        }
        Err(Stuck::Failed(error)) => return Err(Error::io("unmount", &directory.path, error)),
    }
    fault::point("settle-unmounted");
    let again = capture::capture_locked(store, lock, directory);
    if again.as_ref().map_or(true, stays) {
        let places = Places::at(store.repository(), agent, &directory.path);
        show(store, directory, &places)?;
    }
    let mut last = again?;
    last.changed |= captured.changed;
    let mut branches = captured.branches;
    branches.retain(|made| !last.branches.contains(made));
    last.branches.splice(..0, branches);
    Ok(last)
}
