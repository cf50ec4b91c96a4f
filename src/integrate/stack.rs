//! Stacks: what the parents of a dependent workspace bring, with what was decided about it.
//!
//! The merging of trees is [`workspace`]'s; here the proposals are asked which edits are still
//! unaccepted, and open directories are imported before anybody looks. A parent's own parents count as
//! they were when it was stacked: a dependent never moves because somebody below it did.

use std::collections::{BTreeMap, HashSet};

use bstr::BString;

use super::proposal::{Proposal, State};
use super::{Error, Result, store as changes};
use crate::git::ObjectId;
use crate::git::tree;
use crate::layout;
use crate::model::{AgentId, Refusal, Revision};
use crate::workspace::{
    self, Contribution, Decided, From, Mode, NewStack, Parent, Rebase, Rebased, Source, Stacked,
    Store, Terms, Workspace,
};

/// A dependent workspace to be created.
#[derive(Clone, Debug)]
pub struct StackRequest {
    /// The workspaces that it depends on.
    pub on: Vec<AgentId>,
    /// What their work is put on; `None` for what that of the first was put on.
    pub onto: Option<From>,
    /// Whether a parent that does not apply is a reason not to create it.
    pub strict: bool,
    /// How it is held.
    pub mode: Mode,
    /// Whether it refuses every write.
    pub read_only: bool,
    /// The orchestrator's session, if it names one.
    pub session: Option<String>,
}

/// A move of a workspace to another base.
#[derive(Clone, Debug)]
pub struct RebaseRequest {
    /// The new base.
    pub onto: From,
    /// Whether the parents' unaccepted work is put on the new base first (`rebase-onto`), or the new
    /// base is taken exactly as it is (`recut`).
    pub with_parents: bool,
    /// Those, anywhere below, whose work does not come along. What they rest on themselves does.
    pub without: Vec<AgentId>,
    /// Whether paths in conflict stay at the agent's version.
    pub keep_conflicts: bool,
}

/// Creates a workspace on the unaccepted work of others. What tools made in their directories is
/// imported first.
///
/// # Errors
/// When there is no such parent; as [`Store::stack`].
pub fn stack(store: &Store<'_>, agent: &AgentId, request: &StackRequest) -> Result<Stacked> {
    let mut contributions = Vec::new();
    for parent in &request.on {
        let live = live(store, parent)?;
        if let Live::Unknown = live {
            let agent = parent.clone();
            return Err(workspace::Error::NoWorkspace { agent }.into());
        }
        add(store, &mut contributions, live, &HashSet::new())?;
    }
    let new = NewStack {
        onto: request.onto.clone(),
        contributions,
        strict: request.strict,
        mode: request.mode,
        read_only: request.read_only,
        session: request.session.clone(),
    };
    Ok(store.stack(agent, &new)?)
}

/// Moves a workspace to another base: its own edits are replayed there. What tools made in its
/// directory is imported first. A directory that stays follows; any other is in the way.
///
/// # Errors
/// The refusal `materialized` while a directory is open; [`Error::NotOn`] for a parent to be left
/// out that is none; as [`Store::rebase`].
pub fn rebase(
    store: &Store<'_>,
    agent: &AgentId,
    request: &RebaseRequest,
    terms: Terms,
) -> Result<Rebased> {
    let workspace = layout::import(store, agent)?;
    store.check(&workspace, terms)?;
    let without: HashSet<AgentId> = request.without.iter().cloned().collect();
    let mut contributions = Vec::new();
    let mut known = HashSet::new();
    ancestors(store, &workspace, &mut known)?;
    if let Some(parent) = request.without.iter().find(|agent| !known.contains(*agent)) {
        return Err(Error::NotOn {
            agent: agent.clone(),
            parent: parent.clone(),
        });
    }
    if request.with_parents {
        add_below(store, &mut contributions, &workspace, &without)?;
    }
    let rebase = Rebase {
        own: source(store, workspace)?,
        onto: request.onto.clone(),
        contributions,
        keep_conflicts: request.keep_conflicts,
    };
    Ok(store.rebase(&rebase, terms)?)
}

/// What there is of an agent's unaccepted work.
pub(super) enum Live {
    /// A workspace, or the open proposal that it left.
    At(Workspace),
    /// Nothing is left to decide on; this is the last that is known of it.
    Decided(Workspace),
    /// The agent has neither workspace nor proposal.
    Unknown,
}

/// What there is of an agent's work now, with what tools made in its directory.
pub(super) fn live(store: &Store<'_>, agent: &AgentId) -> Result<Live> {
    if store.find(agent)?.is_some() {
        return Ok(Live::At(layout::import(store, agent)?));
    }
    let mut heads = changes::heads(store, Some(agent))?;
    let newest = heads.iter().rposition(|head| head.undecided > 0);
    let open = newest.is_some();
    let Some(head) = newest
        .map(|at| heads.swap_remove(at))
        .or_else(|| heads.pop())
    else {
        return Ok(Live::Unknown);
    };
    let proposal = changes::open(store, &head)?;
    let workspace = store.read_revision(agent, proposal.revision_commit)?;
    Ok(match open {
        true => Live::At(workspace),
        false => Live::Decided(workspace),
    })
}

/// As [`live`], for the parent of a stack: what it is now, or what it was when nothing else is known. A
/// workspace that was made anew under the name is another one.
fn current(store: &Store<'_>, parent: &Parent) -> Result<Live> {
    let recorded = || store.read_revision(&parent.agent, parent.commit);
    match live(store, &parent.agent)? {
        Live::At(now) if same_life(store, &now, parent.revision, parent.commit)? => {
            Ok(Live::At(now))
        }
        _ => Ok(Live::Decided(recorded()?)),
    }
}

/// Adds what a parent brings; where nothing of it is left, what its own parents bring.
fn add(
    store: &Store<'_>,
    contributions: &mut Vec<Contribution>,
    live: Live,
    without: &HashSet<AgentId>,
) -> Result<()> {
    match live {
        Live::Unknown => Ok(()),
        Live::Decided(workspace) => add_below(store, contributions, &workspace, without),
        Live::At(workspace) => {
            let parent = Parent {
                agent: workspace.agent.clone(),
                revision: workspace.revision(),
                commit: workspace.commit,
            };
            if contributions.iter().any(|c| c.parent == parent) {
                return Ok(());
            }
            let mut sources = Vec::new();
            gather(store, workspace, without, &mut sources)?;
            contributions.push(Contribution { parent, sources });
            Ok(())
        }
    }
}

/// Adds what the parents of a workspace bring; in the place of one that is left out, its own parents.
fn add_below(
    store: &Store<'_>,
    contributions: &mut Vec<Contribution>,
    workspace: &Workspace,
    without: &HashSet<AgentId>,
) -> Result<()> {
    for parent in workspace.meta.parents() {
        if without.contains(&parent.agent) {
            let left_out = store.read_revision(&parent.agent, parent.commit)?;
            add_below(store, contributions, &left_out, without)?;
        } else {
            let now = current(store, &parent)?;
            add(store, contributions, now, without)?;
        }
    }
    Ok(())
}

/// A workspace and all that it was stacked on, the lowest first, each once. What rests on one that is
/// left out rests on what that one does.
fn gather(
    store: &Store<'_>,
    workspace: Workspace,
    without: &HashSet<AgentId>,
    sources: &mut Vec<Source>,
) -> Result<()> {
    gather_below(store, &workspace, without, sources)?;
    sources.push(source(store, workspace)?);
    Ok(())
}

fn gather_below(
    store: &Store<'_>,
    workspace: &Workspace,
    without: &HashSet<AgentId>,
    sources: &mut Vec<Source>,
) -> Result<()> {
    for parent in workspace.meta.parents() {
        let seen = |source: &Source| source.workspace.commit == parent.commit;
        if sources.iter().any(seen) {
            continue;
        }
        let below = store.read_revision(&parent.agent, parent.commit)?;
        match without.contains(&parent.agent) {
            true => gather_below(store, &below, without, sources)?,
            false => gather(store, below, without, sources)?,
        }
    }
    Ok(())
}

/// The agents that a workspace rests on, directly or not.
fn ancestors(store: &Store<'_>, workspace: &Workspace, known: &mut HashSet<AgentId>) -> Result<()> {
    for parent in workspace.meta.parents() {
        if known.insert(parent.agent.clone()) {
            let below = store.read_revision(&parent.agent, parent.commit)?;
            ancestors(store, &below, known)?;
        }
    }
    Ok(())
}

/// A revision with what has been decided about its edits.
pub(super) fn source(store: &Store<'_>, workspace: Workspace) -> Result<Source> {
    let mut decided = BTreeMap::new();
    for head in changes::heads(store, Some(&workspace.agent))? {
        let proposal = changes::open(store, &head)?;
        if is_of(store, &workspace, &proposal)? {
            note(store, &workspace, &proposal, &mut decided)?;
        }
    }
    Ok(Source {
        proposal: store.proposal_number(&workspace)?,
        workspace,
        decided,
    })
}

/// Whether a proposal says something about a revision: they are of one life of the workspace, and
/// the proposal is not of a base that the workspace has left since.
fn is_of(store: &Store<'_>, workspace: &Workspace, proposal: &Proposal) -> Result<bool> {
    if proposal.revision <= workspace.revision() {
        let (revision, commit) = (proposal.revision, proposal.revision_commit);
        return Ok(
            proposal.base == workspace.base() && same_life(store, workspace, revision, commit)?
        );
    }
    let newer = store.read_revision(&proposal.agent, proposal.revision_commit)?;
    same_life(store, &newer, workspace.revision(), workspace.commit)
}

/// Whether an earlier revision is in the history of a later one.
fn same_life(
    store: &Store<'_>,
    newer: &Workspace,
    revision: Revision,
    commit: ObjectId,
) -> Result<bool> {
    let objects = store.repository().objects()?;
    let (mut at, mut number) = (newer.commit, newer.revision());
    while number > revision {
        let Some(before) = objects.commit(at)?.parents.get(1).copied() else {
            return Ok(false);
        };
        at = before;
        number = store.read_revision(&newer.agent, at)?.revision();
    }
    Ok(at == commit)
}

fn note(
    store: &Store<'_>,
    workspace: &Workspace,
    proposal: &Proposal,
    decided: &mut BTreeMap<BString, Decided>,
) -> Result<()> {
    let objects = store.repository().objects()?;
    let earlier = proposal.revision <= workspace.revision();
    for change in &proposal.changes {
        let what = match change.state {
            State::Accepted { .. } if earlier => Decided::Landed(change.new),
            State::Accepted { .. } => Decided::Settled,
            State::Rejected if !earlier => Decided::Settled,
            State::Rejected => {
                let now = tree::lookup(&objects, workspace.tree, change.path.as_ref())?;
                if now != change.new {
                    continue;
                }
                Decided::Settled
            }
            State::Proposed | State::Blocked(_) | State::Superseded => continue,
        };
        decided.insert(change.path.clone(), what);
    }
    Ok(())
}

/// Refuses to go on with a workspace in which a rebase left conflicts: what it offers there would
/// undo what the new base holds.
pub(super) fn check_settled(workspace: &Workspace) -> Result<()> {
    match workspace.meta.conflicts().first() {
        None => Ok(()),
        Some(path) => {
            let what = format!(
                "'{path}' of workspace '{}' is in conflict with its new base",
                workspace.agent
            );
            Err(Error::refused(Refusal::Conflict, what))
        }
    }
}
