//! The history of an agent: of its workspace, or of what is kept of one that is gone.

use super::{Result, store as changes};
use crate::layout;
use crate::model::AgentId;
use crate::workspace::{Error, Logged, Store, Workspace};

/// The newest `limit` revisions of an agent, the last one first. What tools made in its directory is
/// imported before. Where the workspace is gone, the history is that of its last revision that a
/// proposal or the trash keeps.
///
/// # Errors
/// [`Error::NoWorkspace`] where nothing is kept; as [`layout::import`] and [`Store::history`].
pub fn history(store: &Store<'_>, agent: &AgentId, limit: usize) -> Result<Vec<Logged>> {
    let last = match store.find(agent)? {
        Some(_) => layout::import(store, agent)?,
        None => last_kept(store, agent)?,
    };
    Ok(store.history(last, limit)?)
}

fn last_kept(store: &Store<'_>, agent: &AgentId) -> Result<Workspace> {
    let mut kept = Vec::new();
    match store.trashed(agent, None) {
        Ok(workspace) => kept.push(workspace),
        Err(Error::NoWorkspace { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    for head in changes::heads(store, Some(agent))? {
        let proposal = changes::open(store, &head)?;
        kept.push(store.read_revision(agent, proposal.revision_commit)?);
    }
    let objects = store.repository().objects()?;
    let mut last = None;
    for workspace in kept {
        // A name may have had several lives, each with numbers from 1.
        let when = (objects.commit(workspace.commit)?.time, workspace.revision());
        if last.as_ref().is_none_or(|(newest, _)| when > *newest) {
            last = Some((when, workspace));
        }
    }
    let agent = agent.clone();
    last.map(|(_, workspace)| workspace)
        .ok_or_else(|| Error::NoWorkspace { agent }.into())
}
