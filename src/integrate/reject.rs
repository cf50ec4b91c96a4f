//! Rejecting: a path goes back in the overlay, and is not offered again.
//!
//! The user's tree is not touched. What was rejected stays readable under `refs/relo/changes/`.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};

use super::decide::{self, Decision, Next};
use super::error::into_workspace;
use super::lineage;
use super::propose::chain;
use super::release::release_if_done;
use super::select::{Selection, select};
use super::{Error, Result};
use crate::git::tree::{self, Entry};
use crate::git::{RefUpdate, Staging};
use crate::layout;
use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::workspace::{self, Change, Kind, Store, Terms, Workspace, names};

/// What became of one change that was to be rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The revision that it was proposed with.
    pub revision: Revision,
    /// The path.
    pub path: BString,
    /// Why it was not rejected, where it was not.
    pub refused: Option<Refusal>,
    /// Whether the agent has edited the path since: those edits stay in the overlay.
    pub edited_since: bool,
}

/// What became of a reject.
#[derive(Clone, Debug)]
pub struct Rejected {
    /// Every change that was asked for, by revision and path.
    pub changes: Vec<Rejection>,
    /// Whose changes are blocked by this, being built on what was rejected, and how many.
    pub blocked: Vec<(AgentId, usize)>,
    /// The revision that took the paths back, where one was published.
    pub revision: Option<Revision>,
    /// Whether the workspace was released: nothing waits in it any more.
    pub released: bool,
}

/// Rejects the undecided changes of an agent: those of the given paths (a folder stands for all
/// below it; a rename's half for both), or all.
///
/// # Errors
/// No proposal, or no change of a named path; the refusal `materialized` while a directory is open that
/// does not stay;
/// failures of Git. Nothing is changed then.
pub fn reject(store: &Store<'_>, agent: &AgentId, paths: &[RepoPath]) -> Result<Rejected> {
    let lock = store.lock(agent)?;
    let found = store.find(agent)?;
    if found.is_some_and(|workspace| store.is_followed(&workspace)) {
        layout::import_locked(store, &lock, agent)?;
    } else if store.open_directory(agent)?.is_some() {
        let what = format!("workspace '{agent}' has a directory open; settle it first");
        return Err(Error::refused(Refusal::Materialized, what));
    }
    let selection = select(store, agent, paths)?;
    let workspace = store.find(agent)?;
    let mut rejections = Vec::new();
    let back = match &workspace {
        Some(workspace) => overlay_edits(store, workspace, &selection, &mut rejections)?,
        None => overlay_edits_of_none(&selection, &mut rejections),
    };
    let mut decisions: Vec<Decision> = rejections
        .iter()
        .map(|rejection| Decision {
            agent: agent.clone(),
            revision: rejection.revision,
            path: rejection.path.clone(),
            state: Next::Rejected,
        })
        .collect();
    let gone: Vec<_> = decisions
        .iter()
        .map(|one| (one.agent.clone(), one.revision, one.path.clone()))
        .collect();
    let marks = lineage::block(store, &gone, Refusal::ParentRejected)?;
    let blocked = count_blocked(&marks);
    decisions.extend(marks);
    let mut revision = None;
    if !decisions.is_empty() {
        if back.is_empty() {
            let mut staging = Staging::new(store.repository())?;
            let updates = pins(store, &mut staging, agent, decisions)?;
            store.put(staging, &updates)?;
        } else {
            let terms = Terms {
                although_read_only: true,
                ..Terms::default()
            };
            let seen = workspace.as_ref().map(|workspace| workspace.commit);
            let published = store.publish_locked(&lock, agent, terms, |current, staging| {
                if Some(current.commit) != seen {
                    let what = format!("workspace '{agent}' changed while it was decided on");
                    return Err(workspace::Error::refused(Refusal::Moved, what));
                }
                let pins =
                    pins(store, staging, agent, decisions.clone()).map_err(into_workspace)?;
                let tree = tree::edit(staging, current.tree, &back)?;
                let mut change = Change::new(Kind::Reject, back.keys().cloned().collect(), tree);
                change.pins = pins;
                Ok(Some(change))
            })?;
            revision = Some(published.workspace.revision());
        }
    }
    for (revision, path, why) in selection.decided {
        rejections.push(Rejection {
            revision,
            path,
            refused: Some(why),
            edited_since: false,
        });
    }
    rejections.sort_by(|a, b| (a.revision, &a.path).cmp(&(b.revision, &b.path)));
    let any = rejections.iter().any(|one| one.refused.is_none());
    Ok(Rejected {
        changes: rejections,
        blocked,
        revision,
        released: any && release_if_done(store, &lock, agent)?,
    })
}

/// How many changes of each agent get blocked.
fn count_blocked(marks: &[Decision]) -> Vec<(AgentId, usize)> {
    let mut counts: BTreeMap<AgentId, usize> = BTreeMap::new();
    for mark in marks {
        *counts.entry(mark.agent.clone()).or_default() += 1;
    }
    counts.into_iter().collect()
}

/// The new states of the proposals, those of the agent itself last.
fn pins(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    agent: &AgentId,
    decisions: Vec<Decision>,
) -> Result<Vec<RefUpdate>> {
    let own = format!("{}{agent}/", names::CHANGES);
    let mut updates = decide::record(store, staging, decisions)?;
    // A stop in between leaves dependents marked too early, never a rejection that they missed.
    updates.sort_by_key(|update| update.name.starts_with(&own));
    Ok(updates)
}

/// What takes the selected changes back in the overlay. A path that the agent has edited since it
/// was proposed is left: that edit was never offered, so nobody has rejected it.
fn overlay_edits(
    store: &Store<'_>,
    workspace: &Workspace,
    selection: &Selection,
    rejections: &mut Vec<Rejection>,
) -> Result<BTreeMap<BString, Option<Entry>>> {
    let own: Vec<Revision> = chain(store, workspace)?
        .iter()
        .map(|p| p.revision)
        .collect();
    let objects = store.repository().objects()?;
    let mut back = BTreeMap::new();
    for (at, members) in &selection.units {
        let proposal = &selection.proposals[*at];
        for member in members {
            let change = &proposal.changes[*member];
            let mut edited_since = false;
            // A proposal of an earlier workspace of this name has no part in this overlay.
            if own.contains(&proposal.revision) {
                let now = tree::lookup(&objects, workspace.tree, change.path.as_bstr())?;
                // A folder that took a deleted file's place is the addition's business.
                let now = now.filter(|entry| !entry.is_tree());
                edited_since = now != change.new;
                if !edited_since {
                    back.insert(change.path.clone(), change.old);
                }
            }
            rejections.push(Rejection {
                revision: proposal.revision,
                path: change.path.clone(),
                refused: None,
                edited_since,
            });
        }
    }
    Ok(back)
}

/// As [`overlay_edits`], where the workspace is gone.
fn overlay_edits_of_none(
    selection: &Selection,
    rejections: &mut Vec<Rejection>,
) -> BTreeMap<BString, Option<Entry>> {
    for (at, members) in &selection.units {
        let proposal = &selection.proposals[*at];
        rejections.extend(members.iter().map(|member| Rejection {
            revision: proposal.revision,
            path: proposal.changes[*member].path.clone(),
            refused: None,
            edited_since: false,
        }));
    }
    BTreeMap::new()
}
