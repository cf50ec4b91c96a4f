//! The end of a workspace: with the last decision, and nothing edited since, it is released.
//!
//! Its refs and its branch go; its proposals and the journal stay, so that undo, redo and accepting
//! again need no workspace.

use super::propose::untouched_since;
use super::{Result, store as changes};
use crate::git::Lock;
use crate::layout;
use crate::model::AgentId;
use crate::workspace::{Store, Workspace};

/// Releases the workspace of an agent where nothing waits in it any more; tells whether it did. For
/// when the last obstacle was no decision: a directory that stayed open until now.
///
/// # Errors
/// When the agent's lock is not to be had; failures of Git.
pub fn release(store: &Store<'_>, agent: &AgentId) -> Result<bool> {
    let lock = store.lock(agent)?;
    release_if_done(store, &lock, agent)
}

/// Releases the workspace of an agent where nothing waits in it: every change of its newest proposal
/// is decided, its overlay holds nothing besides, and no directory is open but one that stays, which goes
/// if nothing is lost with it. Tells whether it did.
pub(super) fn release_if_done(store: &Store<'_>, lock: &Lock, agent: &AgentId) -> Result<bool> {
    Ok(!release_all_done(store, &[(agent, lock)])?.is_empty())
}

/// As [`release_if_done`], of many, each under its lock: the refs of all that are done go together.
pub(super) fn release_all_done(
    store: &Store<'_>,
    agents: &[(&AgentId, &Lock)],
) -> Result<Vec<AgentId>> {
    let mut released = Vec::new();
    for (agent, lock) in agents {
        let is_open = store.open_directory(agent)?.is_some();
        let Some(workspace) = done(store, agent)? else {
            continue;
        };
        if !is_open || layout::close_standing(store, lock, &workspace)? {
            released.push((*lock, workspace));
        }
    }
    if released.is_empty() {
        return Ok(Vec::new());
    }
    store.release_all(&released)?;
    let agents = released.into_iter().map(|(_, workspace)| workspace.agent);
    let agents: Vec<AgentId> = agents.collect();
    for agent in &agents {
        // A cache: what stays of it is nobody's loss.
        let _ = layout::forget(store, agent);
    }
    Ok(agents)
}

/// Whether nothing waits in a workspace, apart from a directory that may be open.
pub(super) fn is_done(store: &Store<'_>, agent: &AgentId) -> Result<bool> {
    Ok(done(store, agent)?.is_some())
}

/// The workspace, where nothing waits in it any more.
fn done(store: &Store<'_>, agent: &AgentId) -> Result<Option<Workspace>> {
    let Some(workspace) = store.find(agent)? else {
        return Ok(None);
    };
    let Some(newest) = workspace.meta.proposal else {
        return Ok(None);
    };
    let heads = changes::heads(store, Some(agent))?;
    if heads.iter().any(|head| head.undecided > 0) {
        return Ok(None);
    }
    let Some(head) = heads.iter().find(|head| head.revision == newest) else {
        return Ok(None);
    };
    let proposal = changes::open(store, head)?;
    if proposal.base != workspace.base() || !untouched_since(store, &workspace, &proposal)? {
        return Ok(None);
    }
    Ok(Some(workspace))
}
