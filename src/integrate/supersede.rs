//! Which older changes a new proposal takes the place of.

use std::collections::HashSet;

use bstr::{BString, ByteSlice};

use super::proposal::{Proposal, ProposedChange, State};
use super::{Result, Rules, store as changes};
use crate::git::{RefUpdate, Staging};
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
        let proposal = changes::load(store, &head.agent, head.revision)?;
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

/// Stages the superseded states and gives the ref updates that publish them.
pub(super) fn supersede(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    older: &mut [Outdated],
    what: &str,
) -> workspace::Result<Vec<RefUpdate>> {
    let mut updates = Vec::new();
    for outdated in older {
        let covered: Vec<bool> = (outdated.proposal.changes.iter())
            .map(|change| outdated.covers(change))
            .collect();
        let proposal = &mut outdated.proposal;
        for (change, covered) in proposal.changes.iter_mut().zip(covered) {
            if covered {
                change.state = State::Superseded;
            }
        }
        updates.push(changes::stage(store, staging, proposal, what)?);
    }
    Ok(updates)
}
