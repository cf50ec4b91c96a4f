//! Accepting: changes are merged into the user's working tree.
//!
//! Everything is planned before anything is written. Then the journal entry is begun, the steps are
//! carried out under their compare-and-swap, and the decisions are recorded with the entry's end. An
//! accept that was interrupted is ended, or taken back, by whoever comes next.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bstr::BString;

use super::decide::{self, Decision, Next};
use super::journal::{
    self, Draft, Entry, Hooks, Journal, JournalId, Kind, Recovered, Step, interrupted,
};
use super::plan::Verdict;
use super::planner::{Conflicts, Outcome, Plan, into_journal};
use super::release::release_all_done;
use super::select::select;
use super::undo::{self, Undone};
use super::{Error, Result, group, store as changes};
use crate::events::{self, Event};
use crate::git::{Lock, Staging};
use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::workspace::Store;

/// Whose changes are accepted.
#[derive(Clone, Debug)]
pub enum Which {
    /// Every agent's undecided changes.
    All,
    /// Those of one agent.
    Of {
        /// The agent.
        agent: AgentId,
        /// The paths (a folder stands for all below it); none means all of them.
        paths: Vec<RepoPath>,
    },
}

/// What is to be accepted.
#[derive(Clone, Debug)]
pub struct Accept {
    /// Which changes.
    pub which: Which,
    /// Whether to plan only.
    pub dry_run: bool,
    /// Whether a single refusal refuses everything.
    pub atomic: bool,
    /// Whether the undecided changes that these were built on are accepted with them.
    pub with_parents: bool,
    /// What becomes of lines that contradict each other.
    pub conflicts: Conflicts,
    /// Paths that the user's editor holds unsaved changes of.
    pub unsaved: Vec<RepoPath>,
    /// Whether each outcome names what its path holds after it ([`Outcome::result`]). It costs the
    /// hash of every file on the way: where many change one file, of every step.
    pub results: bool,
}

impl Accept {
    /// A request for all that is undecided among `which`, and nothing special.
    pub fn new(which: Which) -> Self {
        Accept {
            which,
            dry_run: false,
            atomic: false,
            with_parents: false,
            conflicts: Conflicts::Refuse,
            unsaved: Vec::new(),
            results: true,
        }
    }
}

/// What became of an accept.
#[derive(Clone, Debug)]
pub struct Accepted {
    /// The entry that holds the pre-images; `None` where nothing was written.
    pub journal: Option<JournalId>,
    /// Every change that was asked for, by agent, revision and path.
    pub outcomes: Vec<Outcome>,
    /// The agents whose workspaces were released.
    pub released: Vec<AgentId>,
    /// Earlier entries that had been interrupted and were ended first.
    pub recovered: Vec<Recovered>,
    /// Files beside a path that hold bytes of the user's that stand nowhere else: what was saved at
    /// the very moment in which the path was written.
    pub kept: Vec<BString>,
}

impl Accepted {
    /// Whether something that was asked for is not in the user's tree.
    pub fn is_partial(&self) -> bool {
        self.outcomes
            .iter()
            .any(|outcome| !outcome.verdict.is_done())
    }
}

/// Accepts changes, or plans to. A refused change leaves the others free to land, apart from those
/// it hangs together with (and from all of them where the request is `atomic`).
///
/// # Errors
/// No proposal, or no change of a named path; failures of Git and of the journal. What was begun is
/// then ended by the next accept, or by [`recover`].
pub fn accept(store: &Store<'_>, request: &Accept) -> Result<Accepted> {
    accept_with(store, request, &mut journal::go_on)
}

/// As [`accept`], passing `probe` at every point where a kill could strike.
///
/// # Errors
/// As [`accept`].
pub fn accept_with(
    store: &Store<'_>,
    request: &Accept,
    probe: crate::disk::Probe<'_>,
) -> Result<Accepted> {
    let marks = request.conflicts == Conflicts::Mark;
    if marks && !matches!(&request.which, Which::Of { paths, .. } if !paths.is_empty()) {
        let what = "conflicts are marked only in files that are named";
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    if request.dry_run {
        let agents = agents(store, request)?;
        let (plan, mut outcomes) = plan(store, request, &agents)?;
        outcomes.extend(plan.items.into_iter().map(|item| item.outcome));
        return Ok(finished(None, outcomes));
    }
    let journal = Journal::lock(*store)?;
    let recovered = end_interrupted(store, &journal)?;
    let mut agents = agents(store, request)?;
    let mut locked = BTreeSet::new();
    for (agent, lock) in &mut agents {
        // Names equal but for case have one lock: only one of them can have a workspace.
        if locked.insert(agent.as_str().to_ascii_lowercase()) {
            *lock = Some(store.lock(agent)?);
        }
    }
    let (mut plan, mut outcomes) = plan(store, request, &agents)?;
    let (id, kept) = carry_out((store, &journal), &mut plan, request.atomic, probe)?;
    drop(journal);
    outcomes.extend(plan.items.into_iter().map(|item| item.outcome));
    let mut accepted = finished(id, outcomes);
    accepted.recovered = recovered;
    accepted.kept = kept;
    let locked = agents
        .iter()
        .filter_map(|(agent, lock)| Some((agent, lock.as_ref()?)));
    let took_part = note(store, locked, &accepted.outcomes);
    accepted.released = release_all_done(store, &took_part)?;
    Ok(accepted)
}

fn finished(journal: Option<JournalId>, mut outcomes: Vec<Outcome>) -> Accepted {
    outcomes.sort_by(|a, b| {
        let key = |o: &Outcome| (o.agent.clone(), o.revision, o.path.clone());
        key(a).cmp(&key(b))
    });
    Accepted {
        journal,
        outcomes,
        released: Vec::new(),
        recovered: Vec::new(),
        kept: Vec::new(),
    }
}

/// The agents that a request is about, each with a place for its lock, in the order of their names:
/// locks are always taken in that order.
fn agents(store: &Store<'_>, request: &Accept) -> Result<BTreeMap<AgentId, Option<Lock>>> {
    Ok(match &request.which {
        Which::Of { agent, .. } if request.with_parents => {
            let kin = group::kin(store, agent)?.into_iter();
            kin.map(|agent| (agent, None)).collect()
        }
        Which::Of { agent, .. } => [(agent.clone(), None)].into(),
        Which::All => changes::heads(store, None)?
            .into_iter()
            .filter(|head| head.undecided > 0)
            .map(|head| (head.agent, None))
            .collect(),
    })
}

/// The plan, and the outcomes of what was named and is decided already.
fn plan<'r>(
    store: &Store<'r>,
    request: &Accept,
    agents: &BTreeMap<AgentId, Option<Lock>>,
) -> Result<(Plan<'r>, Vec<Outcome>)> {
    let mut plan = Plan::new(store, &request.unsaved)?;
    let mut outcomes = Vec::new();
    let paths: &[RepoPath] = match &request.which {
        Which::All => &[],
        Which::Of { paths, .. } => paths,
    };
    plan.on_conflict(request.conflicts)?;
    plan.names_results = request.results;
    let mut selections = Vec::new();
    for agent in agents.keys() {
        if let Which::Of { agent: named, .. } = &request.which
            && agent != named
        {
            continue;
        }
        let mut selection = match select(store, agent, paths) {
            Err(Error::NoChange { agent, path, .. }) => return Err(plan.no_change(agent, path)?),
            selected => selected?,
        };
        for (revision, path, why) in std::mem::take(&mut selection.decided) {
            outcomes.push(Outcome {
                agent: agent.clone(),
                revision,
                path,
                into: None,
                verdict: Verdict::Refused(why),
                result: None,
                because: None,
                needs: None,
                marked: None,
            });
        }
        selections.push(selection);
    }
    let along: HashSet<AgentId> = agents.keys().cloned().collect();
    let along = Some(&along).filter(|_| request.with_parents);
    let arranged = group::arrange(store, selections, along)?;
    let proposals = &arranged.proposals;
    for group in &arranged.groups {
        let units: Vec<_> = group
            .iter()
            .map(|(at, members)| (&proposals[*at], &members[..]))
            .collect();
        plan.add(&units)?;
    }
    for ((at, members), why) in arranged.refused {
        plan.refuse(&proposals[at], &members, why);
    }
    if request.atomic {
        plan.all_or_nothing(outcomes.first());
    }
    Ok((plan, outcomes))
}

/// Writes what the plan says and records the decisions.
fn carry_out(
    (store, journal): (&Store<'_>, &Journal<'_>),
    plan: &mut Plan<'_>,
    atomic: bool,
    probe: crate::disk::Probe<'_>,
) -> Result<(Option<JournalId>, Vec<BString>)> {
    let mut staging = Staging::new(store.repository())?;
    let steps = plan.steps(&mut staging, atomic)?;
    if steps.is_empty() {
        let decisions = identical(plan, atomic);
        let mut staging = Staging::new(store.repository())?;
        let updates = decide::record(store, &mut staging, decisions)?;
        if !updates.is_empty() {
            store.put(staging, &updates)?;
        }
        return Ok((None, Vec::new()));
    }
    let draft = Draft {
        kind: Kind::Accept,
        steps,
        extra: serde_json::Map::new(),
    };
    let mut entry = journal.begin(draft, staging)?;
    let kept = journal.apply(
        &mut entry,
        &mut Hooks {
            changed: &mut |step: &Step, disk| {
                plan.again(step.path.as_bstr(), disk).map_err(into_journal)
            },
            at: probe,
        },
    )?;
    tell(plan, &entry, atomic);
    let decisions = identical(plan, atomic);
    journal.finish(&mut entry, &mut |entry, staging| {
        let mut all = decide::from_entry(store, entry)?;
        // What the journal wrote is decided by its entry; the rest held the result already.
        all.extend(decisions.iter().cloned());
        decide::record(store, staging, all).map_err(into_journal)
    })?;
    let wrote = entry.written().next().is_some();
    Ok((wrote.then_some(entry.id), kept))
}

/// What was done without a step: the user's tree held the result.
fn identical(plan: &mut Plan<'_>, atomic: bool) -> Vec<Decision> {
    plan.landed(atomic)
        .map(|(_, outcome)| Decision {
            agent: outcome.agent.clone(),
            revision: outcome.revision,
            path: outcome.path.clone(),
            state: Next::Accepted(None),
        })
        .collect()
}

/// Tells the plan what became of its steps. A group in which a step did not land was taken back.
fn tell(plan: &mut Plan<'_>, entry: &Entry, atomic: bool) {
    let mut failed: BTreeMap<u32, (Verdict, BString)> = BTreeMap::new();
    for step in &entry.steps {
        let verdict = match &step.outcome {
            journal::Outcome::Written | journal::Outcome::Identical => continue,
            journal::Outcome::Refused(kind) => Verdict::Refused(*kind),
            journal::Outcome::Failed(why) => Verdict::Failed(why.clone()),
            journal::Outcome::Overtaken => Verdict::Refused(Refusal::WorkspaceChanged),
            journal::Outcome::RolledBack | journal::Outcome::Pending => continue,
        };
        let path = step.path.as_bstr().to_owned();
        failed.entry(step.group).or_insert((verdict, path));
    }
    for (group, outcome) in plan.landed(atomic) {
        if let Some((verdict, path)) = failed.get(&group) {
            outcome.verdict = verdict.clone();
            outcome.result = None;
            outcome.because = (*path != outcome.place()).then(|| path.clone());
        }
    }
}

/// Notes the events of an accept; gives the agents that had any part in it.
fn note<'a>(
    store: &Store<'_>,
    agents: impl Iterator<Item = (&'a AgentId, &'a Lock)>,
    outcomes: &[Outcome],
) -> Vec<(&'a AgentId, &'a Lock)> {
    let mut took_part = Vec::new();
    let mut parts: Vec<(Revision, Vec<BString>, usize)> = Vec::new();
    for (agent, lock) in agents {
        let done = |o: &&Outcome| o.agent == *agent && o.verdict.is_done();
        let done: Vec<&Outcome> = outcomes.iter().filter(done).collect();
        if let Some(last) = done.last() {
            let paths = done.iter().take(32).map(|o| o.path.clone()).collect();
            parts.push((last.revision, paths, done.len()));
            took_part.push((agent, lock));
        }
    }
    let events = took_part.iter().zip(&parts);
    let events = events.map(|((agent, _), (revision, paths, count))| Event {
        time: store.now(),
        kind: "accept",
        agent: agent.as_str(),
        session: None,
        revision: *revision,
        paths,
        path_count: *count as u64,
    });
    events::append_all(store.repository(), &events.collect::<Vec<_>>());
    took_part
}

/// Ends what was interrupted in this working tree: finishes it, or takes it back, and records the
/// decisions that follow.
///
/// # Errors
/// Failures of Git and of the journal.
pub fn recover(store: &Store<'_>) -> Result<Vec<Recovered>> {
    let journal = Journal::lock(*store)?;
    end_interrupted(store, &journal)
}

pub(super) fn end_interrupted(store: &Store<'_>, journal: &Journal<'_>) -> Result<Vec<Recovered>> {
    let mut ended = Vec::new();
    for entry in interrupted(*store)? {
        let mut decide =
            |entry: &Entry, staging: &mut Staging<'_>| decide::decide(store, entry, staging);
        ended.push(journal.recover(&entry, &mut decide)?);
    }
    Ok(ended)
}

/// Takes an accept (or an undo) of this working tree back: `id`, or the newest one; all of it, or the
/// given paths. Its changes stand as proposed again, also where the workspace is released.
///
/// # Errors
/// As [`undo::undo`]; nothing is changed then.
pub fn undo(store: &Store<'_>, id: Option<JournalId>, paths: &[RepoPath]) -> Result<Undone> {
    let journal = Journal::lock(*store)?;
    let recovered = end_interrupted(store, &journal)?;
    let undone = undo::undo(&journal, id, paths, &mut |entry, staging| {
        decide::decide(store, entry, staging)
    })?;
    Ok(Undone {
        recovered,
        ..undone
    })
}
