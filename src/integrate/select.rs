//! Which changes a decision is about, and which of them hang together.
//!
//! A *unit* is decided as one: the two halves of a rename, and the deletions and additions by which
//! a folder takes a file's place or a file a folder's. Naming one member names the whole unit.

use std::collections::{BTreeSet, HashMap};

use bstr::{BStr, ByteSlice};

use super::proposal::{Proposal, State};
use super::{Error, Result, store as changes};
use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::workspace::Store;

/// The changes of one agent that a decision is about.
pub(super) struct Selection {
    /// The proposals that hold them, oldest first.
    pub(super) proposals: Vec<Proposal>,
    /// The units: of each the index of its proposal and those of its changes.
    pub(super) units: Vec<(usize, Vec<usize>)>,
    /// Paths that were named and are not to be decided any more, and why.
    pub(super) decided: Vec<(Revision, bstr::BString, Refusal)>,
}

/// Selects the undecided changes of an agent: those of the given paths (a folder stands for all
/// below it), or all where no path is given.
///
/// # Errors
/// [`Error::NoProposal`] when the agent has none at all, [`Error::NoChange`] for a path that none
/// of them changes.
pub(super) fn select(store: &Store<'_>, agent: &AgentId, paths: &[RepoPath]) -> Result<Selection> {
    let heads = changes::heads(store, Some(agent))?;
    if heads.is_empty() {
        return Err(Error::NoProposal {
            agent: agent.clone(),
            revision: None,
        });
    }
    let mut proposals = Vec::new();
    for head in heads.iter().filter(|head| head.undecided > 0) {
        proposals.push(changes::open(store, head)?);
    }
    let units = open_units(&proposals);
    if paths.is_empty() {
        return Ok(Selection {
            proposals,
            units,
            decided: Vec::new(),
        });
    }
    let mut wanted = BTreeSet::new();
    let mut decided = Vec::new();
    for path in paths {
        let holds = |(proposal, members): &(usize, Vec<usize>)| {
            let changes = &proposals[*proposal].changes;
            let mut members = members.iter();
            members.any(|member| covers(path.as_bstr(), changes[*member].path.as_bstr()))
        };
        let found = units.iter().enumerate().filter(|(_, unit)| holds(unit));
        let found: Vec<usize> = found.map(|(at, _)| at).collect();
        if found.is_empty() {
            decided.extend(past_decisions(store, agent, path, &heads)?);
        }
        wanted.extend(found);
    }
    let units = units.into_iter().enumerate();
    Ok(Selection {
        proposals,
        units: units
            .filter(|(at, _)| wanted.contains(at))
            .map(|(_, unit)| unit)
            .collect(),
        decided,
    })
}

/// Whether `path` is this path, or a folder above it.
pub(super) fn covers(path: &BStr, other: &BStr) -> bool {
    let rest = other.strip_prefix(path.as_bytes());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// What was decided about a path, in the newest proposal that has it.
fn past_decisions(
    store: &Store<'_>,
    agent: &AgentId,
    path: &RepoPath,
    heads: &[changes::Head],
) -> Result<Vec<(Revision, bstr::BString, Refusal)>> {
    for head in heads.iter().rev() {
        let proposal = changes::open(store, head)?;
        let found: Vec<_> = proposal
            .changes
            .iter()
            .filter(|change| covers(path.as_bstr(), change.path.as_bstr()))
            .map(|change| {
                let why = match change.state {
                    State::Superseded => Refusal::Superseded,
                    _ => Refusal::AlreadyDecided,
                };
                (proposal.revision, change.path.clone(), why)
            })
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    Err(Error::NoChange {
        agent: agent.clone(),
        path: path.as_bstr().to_owned(),
        from: None,
    })
}

/// The units of what is undecided. Should a path be undecided in two proposals (a `propose` that
/// was interrupted before it superseded the older one), the newer one counts.
fn open_units(proposals: &[Proposal]) -> Vec<(usize, Vec<usize>)> {
    let mut newest: HashMap<&BStr, usize> = HashMap::new();
    for (at, proposal) in proposals.iter().enumerate() {
        for change in proposal.changes.iter().filter(|c| c.is_undecided()) {
            newest.insert(change.path.as_bstr(), at);
        }
    }
    let mut all = Vec::new();
    for (at, proposal) in proposals.iter().enumerate() {
        let members: Vec<usize> = (0..proposal.changes.len())
            .filter(|member| {
                let change = &proposal.changes[*member];
                change.is_undecided() && newest.get(change.path.as_bstr()) == Some(&at)
            })
            .collect();
        all.extend(units(proposal, &members).into_iter().map(|unit| (at, unit)));
    }
    all
}

/// Joins what hangs together; units and their members stay in order.
pub(super) fn units(proposal: &Proposal, members: &[usize]) -> Vec<Vec<usize>> {
    let mut sets = Sets::new(members.len());
    let by_path: HashMap<&BStr, usize> = members
        .iter()
        .enumerate()
        .map(|(at, member)| (proposal.changes[*member].path.as_bstr(), at))
        .collect();
    for (at, member) in members.iter().enumerate() {
        let change = &proposal.changes[*member];
        if let Some(pair) = &change.rename
            && let Some(other) = by_path.get(pair.path.as_bstr())
        {
            sets.join(at, *other);
        }
        for slash in change.path.find_iter("/") {
            if let Some(above) = by_path.get(change.path[..slash].as_bstr()) {
                sets.join(at, *above);
            }
        }
    }
    let mut found: Vec<Vec<usize>> = Vec::new();
    let mut place: HashMap<usize, usize> = HashMap::new();
    for (at, member) in members.iter().enumerate() {
        let unit = *place.entry(sets.find(at)).or_insert_with(|| {
            found.push(Vec::new());
            found.len() - 1
        });
        found[unit].push(*member);
    }
    found
}

/// Sets that can be joined; each is known by its first member.
pub(super) struct Sets(Vec<usize>);

impl Sets {
    pub(super) fn new(count: usize) -> Self {
        Sets((0..count).collect())
    }

    pub(super) fn find(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    pub(super) fn join(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.0[one.max(other)] = one.min(other);
    }
}
