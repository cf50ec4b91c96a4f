//! How the last command in a workspace's directory ended: what was built by one that failed is shared
//! with nobody.

use std::path::PathBuf;

use crate::git::Repository;
use crate::model::AgentId;

use super::ExitKind;

fn file(repository: &Repository, agent: &AgentId) -> PathBuf {
    repository.relo_dir().join("ended").join(agent.as_str())
}

/// Notes it. Where that fails nothing is known, and an earlier note is gone.
pub(super) fn note(repository: &Repository, agent: &AgentId, how: ExitKind) {
    let file = file(repository, agent);
    forget(repository, agent);
    let folder = file.parent().unwrap_or(&file);
    let _ = std::fs::create_dir_all(folder);
    let _ = super::directory::replace(&file, how.code().to_string().as_bytes());
}

/// The exit code of the last one, if it is known.
pub(super) fn last(repository: &Repository, agent: &AgentId) -> Option<String> {
    std::fs::read_to_string(file(repository, agent)).ok()
}

/// Nothing is known any more.
pub(super) fn forget(repository: &Repository, agent: &AgentId) {
    let _ = std::fs::remove_file(file(repository, agent));
}
