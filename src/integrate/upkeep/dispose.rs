//! Letting a workspace go.

use crate::integrate::release::release;
use crate::integrate::{Error, Result};
use crate::layout::{self, Insist, would_be_lost};
use crate::model::{AgentId, Refusal};
use crate::workspace::{Disposed, Store};

/// Lets a workspace go. An open directory is imported first (untracked files included) and removed;
/// edits that nobody decided on go only with `force`, and even then stay in the trash.
///
/// # Errors
/// A failed import: directory and workspace are as they were. The refusal `conflict` for undecided
/// edits without `force`, and the kind of what could not be captured and exists nowhere else: then,
/// too, the directory stays.
pub fn dispose(store: &Store<'_>, agent: &AgentId, force: bool) -> Result<Disposed> {
    let workspace = layout::import(store, agent)?;
    if store.open_directory(agent)?.is_some() {
        if !force && store.base_tree(&workspace)? != workspace.tree && !is_decided(store, agent)? {
            return Err(undecided(agent));
        }
        let insist = if force { Insist::Yes } else { Insist::No };
        let settled = layout::close(store, agent, insist)?;
        if let Some(kept) = settled.kept {
            let lost = settled
                .captured
                .left_out
                .iter()
                .find(|one| would_be_lost(one));
            let kind = lost.map_or(Refusal::Conflict, |one| one.kind);
            let what = format!(
                "directory '{}' of workspace '{agent}' stays: not all of it could be captured",
                kept.display()
            );
            return Err(Error::refused(kind, what));
        }
    }
    let workspace = store.load(agent)?;
    // What is decided needs no force, and nothing of it goes to the trash.
    if release(store, agent)? {
        return Ok(Disposed {
            workspace,
            trash: None,
        });
    }
    Ok(store.dispose(agent, force)?)
}

/// Whether all that the workspace holds is decided: nothing would go that anybody waits for.
pub(super) fn is_decided(store: &Store<'_>, agent: &AgentId) -> Result<bool> {
    crate::integrate::release::is_done(store, agent)
}

fn undecided(agent: &AgentId) -> Error {
    let what = format!("workspace '{agent}' has edits that nobody has decided on");
    Error::refused(Refusal::Conflict, what)
}
