//! Whether a workspace has a directory, and whether what stands there is the one we made.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::directory::{Places, Record, identity};
use super::{Directory, Error, Result, admin, parked, removal};
use crate::git::{Expect, ObjectId, RefUpdate, Repository};
use crate::model::AgentId;
use crate::workspace::{Store, names};

/// What is known of an agent's directory.
#[derive(Debug)]
pub(super) enum State {
    /// There is none.
    Closed,
    /// Laying out was cut short: nobody was ever given the directory.
    Unfinished(Places),
    /// It is open, and it is ours.
    Open(Box<Directory>, Places),
    /// It was open, and is gone.
    Vanished(Places),
}

/// Looks at the agent's directory.
///
/// # Errors
/// [`Error::NotOurs`] when what stands there is not what we made; failures to look.
pub(super) fn state(store: &Store<'_>, agent: &AgentId) -> Result<State> {
    let repository = store.repository();
    let Some(exec) = store.open_directory(agent)? else {
        return Ok(State::Closed);
    };
    let planned = Places::new(repository, agent)?;
    let Some(record) = Record::read(&planned.record(), agent)? else {
        let places = match admin::pointed_to(agent, &planned.admin)? {
            Some(path) => Places::at(repository, agent, &path),
            None => planned,
        };
        if removal::is_there(&places.path)? {
            // Perhaps somebody removed the git dir of a directory with work in it.
            let why = "its git dir is gone; save what is in it and move it away";
            return Err(not_ours(agent, &places.path, why));
        }
        return Ok(State::Unfinished(places));
    };
    let places = Places::at(repository, agent, &record.path);
    let cut = store.read_revision(agent, exec)?;
    if record.commit != exec.to_string() {
        let why = format!("it was cut from {}, not from {exec}", record.commit);
        return Err(not_ours(agent, &places.admin, why));
    }
    let is_overlay = record.backend == parked::OVERLAY;
    if is_overlay && !parked::is_whole(repository, agent)? {
        return gone(agent, places);
    }
    if !verify(repository, agent, &places, &record)? {
        if !is_overlay || removal::is_there(&places.unfinished(agent))? {
            return gone(agent, places);
        }
        parked::restore_place(&places)?;
    }
    let directory = Directory {
        agent: agent.clone(),
        path: places.path.clone(),
        admin: places.admin.clone(),
        cut,
        backend: record.backend,
        mounted: record.mounted,
        reason: record.reason,
        fallback: None,
        only: record.only,
        fresh: false,
        replaced: None,
        stats: record.stats,
    };
    Ok(State::Open(Box::new(directory), places))
}

/// A directory with a record that is not in its place: it never came there, or is gone from it.
fn gone(agent: &AgentId, places: Places) -> Result<State> {
    if removal::is_there(&places.unfinished(agent))? {
        Ok(State::Unfinished(places))
    } else {
        Ok(State::Vanished(places))
    }
}

/// Whether the directory is there; an error when something else is.
fn verify(
    repository: &Repository,
    agent: &AgentId,
    places: &Places,
    record: &Record,
) -> Result<bool> {
    let path = &places.path;
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(false);
        }
        Err(error) => return Err(Error::io("look at", path, error)),
    };
    if !meta.is_dir() {
        return Err(not_ours(agent, path, "it is not a folder"));
    }
    let pointer = admin::pointed_to(agent, &places.admin)?;
    if pointer.as_deref() != Some(path.as_path()) {
        let why = "its git dir points elsewhere";
        return Err(not_ours(agent, &places.admin, why));
    }
    let file = path.join(".git");
    let expected = admin::git_file(&places.admin);
    // A power cut may leave an empty one; it says as little as none.
    let found = match read_plain(&file) {
        Ok(bytes) if bytes.is_empty() => Err(ErrorKind::NotFound.into()),
        found => found,
    };
    match found {
        Ok(bytes) if bytes == expected => Ok(true),
        Err(error)
            if error.kind() == ErrorKind::NotFound
                && (identity(path).is_ok_and(|now| now == record.inode)
                    || parked::shows(repository, agent, record)?) =>
        {
            // A tool removed it. The folder is the one that we made, so the file comes back, or
            // git would take the user's repository around it for this one's.
            super::directory::replace(&file, &expected)?;
            Ok(true)
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(not_ours(agent, path, "its '.git' file is gone"))
        }
        Ok(_) => Err(not_ours(agent, path, "its '.git' file points elsewhere")),
        Err(error) => Err(not_ours(agent, path, format!("its '.git' file: {error}"))),
    }
}

/// The bytes of a regular file, not through a link.
fn read_plain(file: &Path) -> std::io::Result<Vec<u8>> {
    if fs::symlink_metadata(file)?.is_file() {
        fs::read(file)
    } else {
        Err(std::io::Error::other("it is no file"))
    }
}

pub(super) fn not_ours(agent: &AgentId, path: &Path, why: impl Into<String>) -> Error {
    Error::NotOurs {
        agent: agent.clone(),
        path: path.to_owned(),
        why: why.into(),
    }
}

/// The open directory of a workspace, verified to be the one that was made; `None` when there is
/// none, also while one is still being laid out.
///
/// # Errors
/// [`Error::Vanished`] when it was removed behind our back (a `settle` clears that up),
/// [`Error::NotOurs`] when something else stands in its place.
pub fn open(store: &Store<'_>, agent: &AgentId) -> Result<Option<Directory>> {
    match state(store, agent)? {
        State::Closed | State::Unfinished(_) => Ok(None),
        State::Open(directory, _) => Ok(Some(*directory)),
        State::Vanished(places) => Err(Error::Vanished {
            agent: agent.clone(),
            path: places.path,
            revision: store.load(agent)?.revision(),
        }),
    }
}

/// Where the directory was, if it was open and has vanished. The workspace stands at its last
/// revision then, and readers go on with that.
///
/// # Errors
/// As [`open`], apart from [`Error::Vanished`].
pub fn vanished(store: &Store<'_>, agent: &AgentId) -> Result<Option<PathBuf>> {
    match state(store, agent)? {
        State::Vanished(places) => Ok(Some(places.path)),
        _ => Ok(None),
    }
}

/// Takes the mark away that says that a directory is open.
pub(super) fn unmark(store: &Store<'_>, agent: &AgentId, cut: ObjectId) -> Result<()> {
    let step = RefUpdate::delete(names::exec(agent), Expect::Is(cut));
    Ok(store.repository().refs().apply(&[step])?)
}
