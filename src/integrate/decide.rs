//! Decisions, recorded: the states of changes that follow from a journal entry or from a plan.
//!
//! What is written to the working tree and what is recorded as decided are two things that a crash
//! can come between. So the states are a function of the journal entry: asked again after a crash,
//! or in an undo, they come out the same, and a state that stands already is not recorded twice.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use serde_json::Value;

use super::journal::{self, Entry, JournalId, Kind, Outcome, Step};
use super::lineage::Place;
use super::planner::into_journal;
use super::proposal::{Proposal, State};
use super::{Result, propose, store as changes};
use crate::git::{RefUpdate, Staging};
use crate::model::{AgentId, Refusal, Revision, path_from_json};
use crate::workspace::Store;

/// One change and the state that it gets.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    pub(super) agent: AgentId,
    pub(super) revision: Revision,
    pub(super) path: BString,
    pub(super) state: Next,
}

/// The state that a change goes to, and from which one it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// From proposed to accepted.
    Accepted(Option<JournalId>),
    /// From proposed to rejected.
    Rejected,
    /// From accepted by this entry back to proposed.
    Undone(JournalId),
    /// From proposed to blocked: what it was built on is gone.
    Blocked(Refusal),
}

/// The decisions that follow from an ended entry, whatever it is: an accept, an undo, or an undo of
/// an undo. For [`journal::Journal::finish`] and its like; harmless when carried out twice.
///
/// # Errors
/// When a proposal or an entry cannot be read.
pub fn decide(
    store: &Store<'_>,
    entry: &Entry,
    staging: &mut Staging<'_>,
) -> journal::Result<Vec<RefUpdate>> {
    let decisions = from_entry(store, entry)?;
    record(store, staging, decisions).map_err(into_journal)
}

/// The decisions in an entry.
pub(super) fn from_entry(store: &Store<'_>, entry: &Entry) -> journal::Result<Vec<Decision>> {
    let mut takes_back = false;
    let mut at = entry.kind;
    while let Kind::Undo { of } = at {
        takes_back = !takes_back;
        at = journal::load(*store, of)?.kind;
    }
    let mut decisions = Vec::new();
    for step in &entry.steps {
        let state = match (&step.outcome, entry.kind, takes_back) {
            (Outcome::Written | Outcome::Identical, Kind::Undo { of }, true) => Next::Undone(of),
            (Outcome::Written, ..) => Next::Accepted(Some(entry.id)),
            (Outcome::Identical, ..) => Next::Accepted(None),
            _ => continue,
        };
        for (agent, revision, path) in of_step(step) {
            decisions.push(Decision {
                agent,
                revision,
                path,
                state,
            });
        }
    }
    Ok(decisions)
}

/// The changes that a step carries out: one of its own path, or all that are listed. A change of a file
/// that the user has moved is listed with its own path, which is not the step's.
pub(super) fn of_step(step: &Step) -> Vec<Place> {
    let own = || step.path.as_bstr().to_owned();
    let listed = step.extra.get("changes").and_then(Value::as_array);
    if let Some(listed) = listed {
        let one = |of: &Value| {
            let agent = AgentId::new(of.get(0)?.as_str()?).ok()?;
            let path = match of.get(2) {
                Some(path) => path_from_json(path)?,
                None => own(),
            };
            Some((agent, Revision::new(of.get(1)?.as_u64()?)?, path))
        };
        return listed.iter().filter_map(one).collect();
    }
    let one = step.agent.clone().zip(step.proposal);
    one.map(|(agent, revision)| (agent, revision, own()))
        .into_iter()
        .collect()
}

/// Stages the new states of the proposals that the decisions are about, and gives the ref updates
/// that publish them, one a proposal. A decision that does not fit the present state of its change,
/// or whose proposal was swept, is left out.
///
/// # Errors
/// When a proposal cannot be read.
pub(super) fn record(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    decisions: Vec<Decision>,
) -> Result<Vec<RefUpdate>> {
    let mut by_proposal: BTreeMap<(AgentId, Revision), Vec<Decision>> = BTreeMap::new();
    for decision in decisions {
        let key = (decision.agent.clone(), decision.revision);
        by_proposal.entry(key).or_default().push(decision);
    }
    let mut loaded: BTreeMap<(AgentId, Revision), Touched> = BTreeMap::new();
    for ((agent, revision), decisions) in by_proposal {
        let key = (agent.clone(), revision);
        if !loaded.contains_key(&key) {
            let Some(proposal) = changes::find(store, &agent, revision)? else {
                continue;
            };
            loaded.insert(key.clone(), Touched::new(proposal));
        }
        let touched = loaded.get_mut(&key).expect("invariant: just loaded");
        let mut reopened = Vec::new();
        for decision in decisions {
            if let Some(path) = touched.apply(&decision) {
                reopened.push(path);
            }
        }
        if !reopened.is_empty() {
            hand_over(store, &mut loaded, &key, reopened)?;
        }
    }
    let mut updates = Vec::new();
    for touched in loaded.values_mut().filter(|touched| touched.changed) {
        let what = touched.summary();
        let proposal = &mut touched.proposal;
        updates.push(changes::stage(store, staging, proposal, &what)?);
    }
    Ok(updates)
}

/// A proposal whose states change.
struct Touched {
    proposal: Proposal,
    changed: bool,
}

impl Touched {
    fn new(proposal: Proposal) -> Self {
        Touched {
            proposal,
            changed: false,
        }
    }

    /// Applies a decision where it fits; gives the path of a change that is open again.
    fn apply(&mut self, decision: &Decision) -> Option<BString> {
        let change = self.proposal.change_mut(&decision.path)?;
        let next = match (change.state, decision.state) {
            (State::Proposed | State::Blocked(_), Next::Accepted(journal)) => {
                State::Accepted { journal }
            }
            (State::Proposed | State::Blocked(_), Next::Rejected) => State::Rejected,
            (State::Proposed, Next::Blocked(why)) => State::Blocked(why),
            (State::Accepted { journal: Some(by) }, Next::Undone(of)) if by == of => {
                State::Proposed
            }
            _ => return None,
        };
        change.state = next;
        self.changed = true;
        (next == State::Proposed).then(|| decision.path.clone())
    }

    fn summary(&self) -> String {
        let undecided = self.proposal.undecided();
        format!("{undecided} of {} undecided", self.proposal.changes.len())
    }
}

/// Where a later proposal of the agent has an undecided change of a path that was reopened, that
/// change takes the older one's place: it starts from where the older one started.
fn hand_over(
    store: &Store<'_>,
    loaded: &mut BTreeMap<(AgentId, Revision), Touched>,
    from: &(AgentId, Revision),
    reopened: Vec<BString>,
) -> Result<()> {
    let (agent, revision) = from;
    for head in changes::heads(store, Some(agent))? {
        if head.revision <= *revision || head.undecided == 0 {
            continue;
        }
        let key = (agent.clone(), head.revision);
        if !loaded.contains_key(&key) {
            let later = changes::open(store, &head)?;
            loaded.insert(key.clone(), Touched::new(later));
        }
        for path in &reopened {
            let older = &loaded[from].proposal;
            let Some(start) = older.change(path.as_bytes()).map(|change| change.old) else {
                continue;
            };
            let later = loaded.get_mut(&key).expect("invariant: just loaded");
            let change = later.proposal.change_mut(path);
            let Some(change) = change.filter(|change| change.is_undecided()) else {
                continue;
            };
            change.old = start;
            change.lines = propose::count(
                &store.repository().objects()?,
                change.path.as_bstr(),
                start,
                change.new,
            )?;
            later.changed = true;
            let older = loaded.get_mut(from).expect("invariant: it was changed");
            if let Some(change) = older.proposal.change_mut(path) {
                change.state = State::Superseded;
            }
        }
    }
    Ok(())
}
