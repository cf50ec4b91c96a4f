//! Who is running a command in a directory: a lock that commands share and a removal needs alone, so
//! that no directory goes away under a running command.

use std::path::PathBuf;
use std::time::Duration;

use super::{Error, Result};
use crate::git::{self, Lock, Repository};
use crate::model::{AgentId, Refusal};

fn path(repository: &Repository, agent: &AgentId) -> PathBuf {
    let name = agent.as_str().to_ascii_lowercase();
    repository.relo_dir().join("locks/directories").join(name)
}

/// Marks the directory as in use; several may.
pub(super) fn shared(repository: &Repository, agent: &AgentId, patience: Duration) -> Result<Lock> {
    Ok(Lock::shared(&path(repository, agent), patience)?)
}

/// Takes the directory for a removal.
///
/// # Errors
/// The refusal `locked` while a command is running in it.
pub(super) fn alone(repository: &Repository, agent: &AgentId) -> Result<Lock> {
    alone_within(repository, agent, Duration::ZERO)
}

/// As [`alone`], after some patience.
pub(super) fn alone_within(
    repository: &Repository,
    agent: &AgentId,
    patience: Duration,
) -> Result<Lock> {
    match Lock::exclusive(&path(repository, agent), patience) {
        Err(git::Error::Locked { .. }) => {
            let what = format!("a command is running in the directory of workspace '{agent}'");
            Err(Error::refused(Refusal::Locked, what))
        }
        other => Ok(other?),
    }
}
