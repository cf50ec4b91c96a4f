//! Which older changes a new proposal takes the place of.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};
use serde_json::Map;

use super::error::into_workspace;
use super::lineage::{self, Followed, Parents, Replaced};
use super::proposal::{Proposal, ProposedChange, State};
use super::{Result, Rules, store as changes};
use crate::git::{RefUpdate, Staging};
use crate::model::Refusal;
use crate::workspace::{self, Store};

/// A proposal of which the undecided changes are superseded: all, or those of some paths.
pub(super) struct Outdated {
    proposal: Proposal,
    only: Option<HashSet<BString>>,
}

/// What a proposal takes the place of: all that is undecided in the agent's other proposals, and on
/// paths of which the latest version counts also what other agents have proposed.
pub(super) fn outdated(store: &Store<'_>, newest: &Proposal) -> Result<Vec<Outdated>> {
    let rules = Rules::new(store.repository().config()?)?;
    let paths = newest.changes.iter().map(|change| &change.path);
    let latest: HashSet<BString> = paths
        .filter(|path| rules.takes_latest(path.as_bstr()))
        .cloned()
        .collect();
    let agent = Some(&newest.agent).filter(|_| latest.is_empty());
    let mut found = Vec::new();
    for head in changes::heads(store, agent)? {
        let own = head.agent == newest.agent;
        if head.undecided == 0 || own && head.revision == newest.revision {
            continue;
        }
        let proposal = changes::open(store, &head)?;
        let only = (!own).then(|| latest.clone());
        let outdated = Outdated { proposal, only };
        if outdated.proposal.changes.iter().any(|c| outdated.covers(c)) {
            found.push(outdated);
        }
    }
    Ok(found)
}

impl Outdated {
    fn covers(&self, change: &ProposedChange) -> bool {
        let only = self.only.as_ref();
        change.is_undecided() && only.is_none_or(|paths| paths.contains(&change.path))
    }
}

/// Stages the superseded states, and in the proposals that were built on what is superseded the
/// change that stands for it now; gives the ref updates that publish them. Dependents come first: a
/// stop in between leaves what the same call finds again.
pub(super) fn supersede(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    newest: &Proposal,
    older: &mut [Outdated],
) -> workspace::Result<Vec<RefUpdate>> {
    let mut replaced = Replaced::new();
    for outdated in older.iter_mut() {
        let covered: Vec<bool> = (outdated.proposal.changes.iter())
            .map(|change| outdated.covers(change))
            .collect();
        let proposal = &mut outdated.proposal;
        for (change, covered) in proposal.changes.iter_mut().zip(covered) {
            if !covered {
                continue;
            }
            change.state = State::Superseded;
            let successor = match newest.change(&change.path) {
                Some(by) => {
                    let place = (newest.agent.clone(), newest.revision, by.path.clone());
                    Some((place, by.patch_hash(store.repository())?))
                }
                None => None,
            };
            let place = (
                proposal.agent.clone(),
                proposal.revision,
                change.path.clone(),
            );
            replaced.insert(place, successor);
        }
    }
    let what = if newest.changes.is_empty() {
        "withdrawn".to_owned()
    } else {
        format!("superseded by {} r{}", newest.agent, newest.revision)
    };
    let mut updates = followers(store, staging, (newest, older), &replaced)?;
    for outdated in older {
        let proposal = &mut outdated.proposal;
        let fields = match lineage::follow(proposal, &replaced) {
            Some(followed) => followed.fields(),
            None => Map::new(),
        };
        updates.push(changes::stage_with(
            store, staging, proposal, &what, fields,
        )?);
    }
    Ok(updates)
}

/// Brings the lineage of all other proposals up to date.
fn followers(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    (newest, older): (&Proposal, &[Outdated]),
    replaced: &Replaced,
) -> workspace::Result<Vec<RefUpdate>> {
    let mut updates = Vec::new();
    if replaced.is_empty() {
        return Ok(updates);
    }
    let what = format!("follows {} r{}", newest.agent, newest.revision);
    let mut others = lineage::dependents(store).map_err(into_workspace)?;
    others.retain(|proposal| {
        let same = |other: &Proposal| {
            (&proposal.agent, proposal.revision) == (&other.agent, other.revision)
        };
        !same(newest) && !older.iter().any(|outdated| same(&outdated.proposal))
    });
    let followed: Vec<_> = others
        .iter_mut()
        .map(|proposal| lineage::follow(proposal, replaced))
        .collect();
    let lost = |at: &usize| followed[*at].as_ref().is_some_and(|followed| followed.lost);
    let mut blocked: HashSet<usize> = HashSet::new();
    if Parents::new(store).map_err(into_workspace)?.is_enforced() {
        blocked.extend((0..others.len()).filter(lost));
        let gone = blocked
            .iter()
            .flat_map(|at| lineage::open_places(&others[*at]));
        blocked.extend(lineage::resting_on(&others, gone.collect()));
    }
    for (at, (mut proposal, followed)) in others.into_iter().zip(followed).enumerate() {
        if blocked.contains(&at) {
            lineage::mark(&mut proposal, Refusal::ParentSuperseded);
        } else if followed.is_none() {
            continue;
        }
        let fields = followed.map(Followed::fields).unwrap_or_default();
        let update = changes::stage_with(store, staging, &mut proposal, &what, fields)?;
        updates.push(update);
    }
    Ok(updates)
}
