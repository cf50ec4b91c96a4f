//! The upper folders of overlays, by agent: where they are, and how they go.
//!
//! `<common-dir>/relo/upper/<agent>` outlives the run that made it. While the exec ref is there, it
//! holds the work of an open directory. Without, it is *parked*: everything in it that counts is in
//! the workspace, which is its own authority again, and what git ignores waits for the next run, so
//! that its build is incremental. A parked one is a cache and blocks nothing.

use std::path::{Path, PathBuf};

use super::directory::{Places, Record};
#[cfg(target_os = "linux")]
use super::overlay::visible;
use super::removal::{self, Aside};
use super::state::not_ours;
use super::{Error, Result, admin, in_use};
use crate::git::Repository;
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// The name of the back end in records.
pub(super) const OVERLAY: &str = "overlay";
/// The note that makes an upper folder complete.
#[cfg(target_os = "linux")]
const NOTE: &str = super::overlay::NOTE;
#[cfg(not(target_os = "linux"))]
const NOTE: &str = "stand.json";

/// Where the upper folder of an agent is, if it has one.
pub(super) fn root(repository: &Repository, agent: &AgentId) -> PathBuf {
    repository.relo_dir().join("upper").join(agent.as_str())
}

/// Whether the agent has an upper folder that was made to its end.
pub(super) fn is_whole(repository: &Repository, agent: &AgentId) -> Result<bool> {
    removal::is_there(&root(repository, agent).join(NOTE))
}

/// Takes the upper folder away, to be deleted; `None` where there is none. The caller has the
/// directory alone.
pub(super) fn set_aside(repository: &Repository, agent: &AgentId) -> Result<Option<Aside>> {
    let root = root(repository, agent);
    if !removal::is_there(&root)? {
        return Ok(None);
    }
    removal::set_aside(&repository.relo_dir(), &root).map(Some)
}

/// Makes the place of an overlay anew, where somebody has removed it: nothing was in it.
pub(super) fn restore_place(places: &Places) -> Result<()> {
    let path = &places.path;
    std::fs::create_dir_all(path).map_err(|e| Error::io("create", path, e))?;
    super::directory::replace(&path.join(".git"), &admin::git_file(&places.admin))
}

/// Whether the directory of this record is mounted in its place.
pub(super) fn shows(repository: &Repository, agent: &AgentId, record: &Record) -> Result<bool> {
    #[cfg(target_os = "linux")]
    if record.mounted {
        let name = visible::name(&root(repository, agent));
        return visible::is_at(&record.path, &name);
    }
    let _ = (repository, agent, record);
    Ok(false)
}

/// Sees that nothing was written into the place of an overlay while that was not mounted: it is in
/// nobody's hands, and would be hidden, or removed with the place.
///
/// # Errors
/// [`Error::NotOurs`], naming what is there; failures to look.
pub(super) fn check_place(agent: &AgentId, places: &Places) -> Result<()> {
    let failed = |e| Error::io("read", &places.path, e);
    for entry in std::fs::read_dir(&places.path).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        if name != ".git" {
            let why = format!(
                "'{}' was written there while nothing was mounted; move it away",
                name.to_string_lossy()
            );
            return Err(not_ours(agent, &places.path, why));
        }
    }
    Ok(())
}

/// The upper folders of agents that have no workspace any more: whoever let those go did not know of
/// them, or was stopped.
///
/// # Errors
/// When a workspace cannot be looked for.
pub fn orphans(store: &Store<'_>) -> Result<Vec<(AgentId, PathBuf)>> {
    let folder = store.repository().relo_dir().join("upper");
    let mut found = Vec::new();
    for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
        let name = entry.file_name().into_string().ok();
        let Some(agent) = name.and_then(|name| AgentId::new(&name).ok()) else {
            continue;
        };
        // Damaged, it is a workspace all the same.
        let gone = store.find(&agent).is_ok_and(|found| found.is_none());
        if gone && store.open_directory(&agent)?.is_none() {
            found.push((agent, entry.path()));
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// When a folder was made, in seconds since 1970, and how many bytes of files are in it.
pub fn measure(folder: &Path) -> (i64, u64) {
    use std::os::unix::fs::MetadataExt;
    let made = std::fs::symlink_metadata(folder).map_or(0, |meta| meta.mtime());
    let (mut size, mut left) = (0, vec![folder.to_owned()]);
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => left.push(entry.path()),
                Ok(meta) => size += meta.len(),
                Err(_) => {}
            }
        }
    }
    (made, size)
}

/// Removes what a workspace that is gone, or that has no more use for it, has parked; tells whether
/// there was anything. Of a directory that is open, or in which a command runs, nothing is touched.
///
/// # Errors
/// [`Error::Io`].
pub fn forget(store: &Store<'_>, agent: &AgentId) -> Result<bool> {
    if !removal::is_there(&root(store.repository(), agent))? {
        return Ok(false);
    }
    let _alone = match in_use::alone(store.repository(), agent) {
        Err(error) if error.refusal() == Some(Refusal::Locked) => return Ok(false),
        alone => alone?,
    };
    if store.open_directory(agent)?.is_some() {
        return Ok(false);
    }
    super::ended::forget(store.repository(), agent);
    let aside = set_aside(store.repository(), agent)?;
    Ok(aside.map(Aside::delete).is_some())
}
