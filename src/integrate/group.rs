//! Which changes land together: what hangs together in a proposal, joined by what needs what.
//!
//! A dependent lands with the undecided changes that it was built on, or not at all, and after them.
//! Whatever has no such ties stays on its own. A change whose parent is not among those to be
//! accepted, or will never come, is refused here, before it can draw others into its refusal.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::lineage::{Need, Obstacle, Parents, Place, Standing};
use super::proposal::Proposal;
use super::select::{Selection, Sets, select};
use super::{Result, store as changes};
use crate::model::{AgentId, Refusal, Revision};
use crate::workspace::Store;

/// A unit: the index of its proposal, and those of its changes.
pub(super) type Unit = (usize, Vec<usize>);

/// What is to be accepted, in groups.
pub(super) struct Arranged {
    pub(super) proposals: Vec<Proposal>,
    /// The units that land together, each group in the order in which it is to be written.
    pub(super) groups: Vec<Vec<Unit>>,
    /// Units that cannot be accepted, and what stands in the way.
    pub(super) refused: Vec<(Unit, Obstacle)>,
}

/// Arranges what was selected. With `parents`, the undecided changes that it needs come along, those
/// of the agents listed there.
///
/// # Errors
/// When a proposal cannot be read.
pub(super) fn arrange(
    store: &Store<'_>,
    selections: Vec<Selection>,
    parents: Option<&HashSet<AgentId>>,
) -> Result<Arranged> {
    let mut graph = Graph {
        store,
        parents: Parents::new(store)?,
        along: parents,
        whole: HashMap::new(),
        proposals: Vec::new(),
        by_key: HashMap::new(),
        units: Vec::new(),
        by_place: HashMap::new(),
        needs: Vec::new(),
        obstacles: Vec::new(),
    };
    for selection in selections {
        for (at, members) in &selection.units {
            graph.push(&selection.proposals[*at], members);
        }
    }
    let mut done = 0;
    while done < graph.proposals.len() {
        graph.tie(done)?;
        done += 1;
    }
    graph.spread_obstacles();
    Ok(graph.groups())
}

/// The agents whose changes an agent's undecided changes need, and those that these need in turn; the
/// agent itself among them.
///
/// # Errors
/// When a proposal cannot be read.
pub(super) fn kin(store: &Store<'_>, agent: &AgentId) -> Result<HashSet<AgentId>> {
    let mut found: HashSet<AgentId> = [agent.clone()].into();
    let mut open = vec![agent.clone()];
    while let Some(agent) = open.pop() {
        for head in changes::heads(store, Some(&agent))? {
            if head.undecided == 0 || !head.lineage {
                continue;
            }
            for need in changes::open(store, &head)?.lineage {
                if found.insert(need.agent.clone()) {
                    open.push(need.agent);
                }
            }
        }
    }
    Ok(found)
}

struct Graph<'g, 'r> {
    store: &'g Store<'r>,
    parents: Parents<'g, 'r>,
    along: Option<&'g HashSet<AgentId>>,
    /// All that an agent has open, where parents come along.
    whole: HashMap<AgentId, Option<Selection>>,
    proposals: Vec<Proposal>,
    by_key: HashMap<(AgentId, Revision), usize>,
    units: Vec<Unit>,
    by_place: HashMap<Place, usize>,
    /// By proposal: the units that it needs.
    needs: Vec<Vec<usize>>,
    /// By proposal: what stands in its way.
    obstacles: Vec<Option<Obstacle>>,
}

impl Graph<'_, '_> {
    fn push(&mut self, proposal: &Proposal, members: &[usize]) {
        let key = (proposal.agent.clone(), proposal.revision);
        let at = *self.by_key.entry(key).or_insert_with(|| {
            self.proposals.push(proposal.clone());
            self.needs.push(Vec::new());
            self.obstacles.push(None);
            self.proposals.len() - 1
        });
        for member in members {
            let path = proposal.changes[*member].path.clone();
            let place = (proposal.agent.clone(), proposal.revision, path);
            self.by_place.insert(place, self.units.len());
        }
        self.units.push((at, members.to_vec()));
    }

    /// Finds the units that a proposal needs, or what stands in its way.
    fn tie(&mut self, at: usize) -> Result<()> {
        if let Some(obstacle) = self.parents.obstacle(&self.proposals[at])? {
            self.obstacles[at] = Some(obstacle);
            return Ok(());
        }
        let needs: Vec<Need> = self.parents.needs(&self.proposals[at]).cloned().collect();
        let mut units = HashSet::new();
        for need in needs {
            let need = self.parents.renewed(need)?;
            if self.parents.standing(&need)? == Standing::Met {
                continue;
            }
            match self.unit_of(&need)? {
                Some(unit) => {
                    units.insert(unit);
                }
                None => {
                    self.obstacles[at] = Some((Refusal::NeedsParent, need.id()));
                    return Ok(());
                }
            }
        }
        self.needs[at] = units.into_iter().collect();
        self.needs[at].sort_unstable();
        Ok(())
    }

    /// The unit that a needed change is in; it comes along where it may.
    fn unit_of(&mut self, need: &Need) -> Result<Option<usize>> {
        let place = need.place();
        if let Some(unit) = self.by_place.get(&place) {
            return Ok(Some(*unit));
        }
        if !self.along.is_some_and(|along| along.contains(&need.agent)) {
            return Ok(None);
        }
        if !self.whole.contains_key(&need.agent) {
            let whole = select(self.store, &need.agent, &[])?;
            self.whole.insert(need.agent.clone(), Some(whole));
        }
        let slot = self.whole.get_mut(&need.agent);
        let slot = slot.expect("invariant: just selected");
        let whole = slot.take().expect("invariant: always put back");
        let found = whole.units.iter().find(|(at, members)| {
            let proposal = &whole.proposals[*at];
            let mut members = members.iter();
            proposal.revision == need.proposal
                && members.any(|member| proposal.changes[*member].path == need.path)
        });
        if let Some((at, members)) = found {
            self.push(&whole.proposals[*at], members);
        }
        self.whole.insert(need.agent.clone(), Some(whole));
        Ok(self.by_place.get(&place).copied())
    }

    /// What stands in a parent's way stands in that of its dependents.
    fn spread_obstacles(&mut self) {
        loop {
            let next = (0..self.proposals.len()).find_map(|at| {
                if self.obstacles[at].is_some() {
                    return None;
                }
                let mut parents = self.needs[at].iter().map(|unit| self.units[*unit].0);
                let obstacle = parents.find_map(|parent| self.obstacles[parent].clone())?;
                Some((at, obstacle))
            });
            let Some((at, obstacle)) = next else { break };
            self.obstacles[at] = Some(obstacle);
        }
    }

    fn groups(self) -> Arranged {
        let mut sets = Sets::new(self.units.len());
        let mut first: HashMap<usize, usize> = HashMap::new();
        for (unit, (at, _)) in self.units.iter().enumerate() {
            if self.obstacles[*at].is_some() || self.needs[*at].is_empty() {
                continue;
            }
            match first.get(at) {
                Some(first) => sets.join(*first, unit),
                None => {
                    self.needs[*at].iter().for_each(|n| sets.join(unit, *n));
                    first.insert(*at, unit);
                }
            }
        }
        let ranks = self.ranks();
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|unit| (ranks[self.units[*unit].0], *unit));
        let mut place: BTreeMap<usize, usize> = BTreeMap::new();
        let mut groups: Vec<Vec<Unit>> = Vec::new();
        let mut refused = Vec::new();
        for unit in order {
            let (at, members) = self.units[unit].clone();
            if let Some(obstacle) = &self.obstacles[at] {
                refused.push(((at, members), obstacle.clone()));
                continue;
            }
            let group = *place.entry(sets.find(unit)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[group].push((at, members));
        }
        Arranged {
            proposals: self.proposals,
            groups,
            refused,
        }
    }

    /// The places of the proposals in an order in which parents come before their dependents. Where
    /// two need each other, the first one comes first.
    fn ranks(&self) -> Vec<usize> {
        let mut ranks = vec![usize::MAX; self.proposals.len()];
        let mut seen = vec![false; self.proposals.len()];
        let mut next = 0;
        for start in 0..self.proposals.len() {
            // A proposal is on the stack twice: on the way down, and when all it needs has a rank.
            let mut stack = vec![(start, false)];
            while let Some((at, back)) = stack.pop() {
                if back {
                    ranks[at] = next;
                    next += 1;
                } else if !seen[at] {
                    seen[at] = true;
                    stack.push((at, true));
                    let parents = self.needs[at].iter().map(|unit| self.units[*unit].0);
                    stack.extend(parents.rev().map(|parent| (parent, false)));
                }
            }
        }
        ranks
    }
}
