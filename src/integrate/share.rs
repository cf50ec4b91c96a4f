//! What an agent has built, for all others to start from.

use std::ffi::OsStr;
use std::path::Path;

use super::{Error, Result, State, store as changes};
use crate::git::Repository;
use crate::layout::template::{warm::Warm, warm_from_agent, warm_from_tree};
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// Makes the next layer of shared build output from an agent's, named by its id or by its directory, or
/// from another working tree of this repository.
///
/// # Errors
/// The refusal `unsupported` where the agent's last command failed, where something of its newest proposal
/// was rejected, or where the folder is no working tree of this repository; as
/// [`warm_from_agent`] and [`warm_from_tree`].
pub fn warm_from(store: &Store<'_>, from: &OsStr) -> Result<Option<Warm>> {
    if let Some(agent) = from.to_str().and_then(|name| AgentId::new(name).ok())
        && store.find(&agent)?.is_some()
    {
        return of_agent(store, &agent);
    }
    let repository = store.repository();
    let environment = repository.environment();
    let folder = environment.current_dir.join(Path::new(from));
    if !folder.is_dir() {
        let what = format!("'{}' is neither a workspace nor a folder", from.display());
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    let other = Repository::open_at(&folder, environment.clone());
    let other = other.ok().filter(|other| {
        other.common_dir() == repository.common_dir() && other.work_dir().is_some()
    });
    let Some(other) = other else {
        let what = format!("'{}' is no working tree of this repository", from.display());
        return Err(Error::refused(Refusal::Unsupported, what));
    };
    let name = other.git_dir().file_name().and_then(OsStr::to_str);
    let agent = name
        .and_then(|name| name.strip_prefix("relo-"))
        .and_then(|name| AgentId::new(name).ok());
    match agent {
        Some(agent) if store.find(&agent)?.is_some() => of_agent(store, &agent),
        _ => Ok(warm_from_tree(store, &Store::new(&other, store.now()))?),
    }
}

fn of_agent(store: &Store<'_>, agent: &AgentId) -> Result<Option<Warm>> {
    let newest = store.load(agent)?.meta.proposal;
    let proposal = match newest {
        Some(newest) => changes::find(store, agent, newest)?,
        None => None,
    };
    let rejected = proposal.is_some_and(|proposal| {
        let mut changes = proposal.changes.iter();
        changes.any(|change| matches!(change.state, State::Rejected))
    });
    if rejected {
        let what =
            format!("changes of workspace '{agent}' were rejected: its build output is not shared");
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    Ok(warm_from_agent(store, agent)?)
}
