//! Proposing: what an agent made is pinned and offered for a decision.
//!
//! The order is that of every publish: the objects, then the pins (the agent's branch, the snap, the
//! proposal, the older proposals whose place it takes), then the overlay ref, the one commit point.
//! A crash in between leaves pins that the same call finds again.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};
use serde_json::Map;

use super::lineage::{self, Parents};
use super::proposal::{Pair, Proposal, ProposedChange, State};
use super::supersede::{Outdated, outdated, supersede};
use super::{Error, Result, Rules, store as changes};
use crate::git::patch::count_lines;
use crate::git::tree::{self, Delta, Entry};
use crate::git::{Expect, Lock, ObjectId, Objects, RefUpdate, Staging};
use crate::layout;
use crate::model::{AgentId, Refusal, Revision};
use crate::workspace::{self, Change, Kind, Store, Terms, Workspace, names};

/// What a publish that belongs to a decision may do: a directory may be open, and no content changes.
const TERMS: Terms = Terms {
    expect: None,
    while_open: true,
    into_directory: false,
    although_read_only: true,
};

/// Offers what a workspace holds for a decision. What tools made in an open directory is imported
/// first. Without a `message` the commit on the agent's branch says `vws: work of <agent>`.
///
/// Proposing again without edits gives the same proposal. After edits, the new proposal takes the
/// place of what is still undecided in the older ones; what was accepted counts as the base, and
/// what was rejected is not offered again. With nothing to propose the result holds no changes, and
/// nothing is recorded.
///
/// # Errors
/// No such workspace; failures of the import, of Git; a damaged older proposal.
pub fn propose(store: &Store<'_>, agent: &AgentId, message: Option<&BStr>) -> Result<Proposal> {
    layout::import(store, agent)?;
    let lock = store.lock(agent)?;
    let workspace = store.load(agent)?;
    super::stack::check_settled(&workspace)?;
    let chain = chain(store, &workspace)?;
    if let Some(newest) = chain.first()
        && untouched_since(store, &workspace, newest)?
    {
        return Ok(newest.clone());
    }
    let workspace = numbered(store, &lock, workspace)?;
    let mut staging = Staging::new(store.repository())?;
    let mut proposal = prepare(store, &mut staging, &workspace, &chain)?;
    let mut older = outdated(store, &proposal)?;
    if proposal.changes.is_empty() {
        withdraw(store, staging, &proposal, &mut older)?;
        return Ok(proposal);
    }
    // The trees that are staged here become part of the proposal's own pack below.
    drop(staging);
    let mut outcome = None;
    store.publish_locked(&lock, agent, TERMS, |current, staging| {
        if current.commit != workspace.commit {
            let what = format!("workspace '{agent}' changed while it was proposed");
            return Err(workspace::Error::refused(Refusal::Moved, what));
        }
        proposal.base_tree = base_tree(store, staging, &workspace, &chain)?;
        let mut pins = Vec::new();
        pins.extend(store.stage_branch(staging, &workspace, message)?);
        let snap = names::snap(agent, workspace.revision());
        // The overlay's chain of revisions leads to it.
        pins.push(RefUpdate::set(snap, Expect::Anything, workspace.commit).unordered());
        if proposal.commit.is_none() {
            let what = format!("proposal of {} paths", proposal.changes.len());
            pins.push(changes::stage(store, staging, &mut proposal, &what)?);
        }
        pins.extend(supersede(store, staging, &proposal, &mut older)?);
        let paths = proposal.changes.iter().map(|c| c.path.clone()).collect();
        let mut change = Change::new(Kind::Commit, paths, workspace.tree);
        change.pins = pins;
        let revision = proposal.revision;
        change.amend = Some(Box::new(move |meta| meta.proposal = Some(revision)));
        outcome = Some(proposal.clone());
        Ok(Some(change))
    })?;
    Ok(outcome.expect("invariant: what was published was built"))
}

/// The proposals of a workspace since its base last moved, the newest first.
pub(super) fn chain(store: &Store<'_>, workspace: &Workspace) -> Result<Vec<Proposal>> {
    let mut found: Vec<Proposal> = Vec::new();
    let mut at = workspace.meta.proposal;
    while let Some(revision) = at {
        // One that was swept, or whose base was another, ends the chain.
        let Some(proposal) = changes::find(store, &workspace.agent, revision)? else {
            break;
        };
        if proposal.base != workspace.base() {
            break;
        }
        // Revisions only grow; anything else would be a loop that somebody made.
        at = proposal.previous.filter(|before| *before < revision);
        found.push(proposal);
    }
    Ok(found)
}

/// Whether the overlay is what a proposal offers, apart from what was rejected since.
pub(super) fn untouched_since(
    store: &Store<'_>,
    workspace: &Workspace,
    proposal: &Proposal,
) -> Result<bool> {
    let rejected: BTreeMap<BString, Option<Entry>> = proposal
        .changes
        .iter()
        .filter(|change| change.state == State::Rejected)
        .map(|change| (change.path.clone(), change.old))
        .collect();
    if rejected.is_empty() || workspace.tree == proposal.tree {
        return Ok(workspace.tree == proposal.tree);
    }
    // The staging is thrown away: only the id counts.
    let mut staging = Staging::new(store.repository())?;
    Ok(tree::edit(&mut staging, proposal.tree, &rejected)? == workspace.tree)
}

/// The workspace at a revision whose number no earlier proposal of this agent has: a workspace that
/// was released and made anew counts from 1 again, its old proposals stay.
fn numbered(store: &Store<'_>, lock: &Lock, workspace: Workspace) -> Result<Workspace> {
    let agent = &workspace.agent;
    let mut next = match workspace.meta.proposal {
        Some(_) => workspace.revision(),
        None => store.proposal_number(&workspace)?,
    };
    // One that was brought back by hand can meet a number of before all the same.
    if changes::find(store, agent, next)?
        .is_some_and(|proposal| proposal.revision_commit != workspace.commit)
    {
        let heads = changes::heads(store, Some(agent))?;
        let highest = heads.iter().map(|head| head.revision).max();
        next = highest.map_or(next, Revision::next);
    }
    if next == workspace.revision() {
        return Ok(workspace);
    }
    let published = store.publish_locked(lock, agent, TERMS, |current, _| {
        let mut change = Change::new(Kind::Note, Vec::new(), current.tree);
        change.amend = Some(Box::new(move |meta| {
            meta.revision = meta.revision.max(next);
        }));
        Ok(Some(change))
    })?;
    Ok(published.workspace)
}

/// The base of a workspace with everything that was accepted since in it, each as the agent made it.
fn base_tree(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    workspace: &Workspace,
    chain: &[Proposal],
) -> workspace::Result<ObjectId> {
    let base = store.base_tree(workspace)?;
    let mut accepted: BTreeMap<BString, Option<Entry>> = BTreeMap::new();
    for proposal in chain.iter().rev() {
        for change in &proposal.changes {
            if matches!(change.state, State::Accepted { .. }) {
                accepted.insert(change.path.clone(), change.new);
            }
        }
    }
    Ok(tree::edit(staging, base, &accepted)?)
}

/// The proposal of the current revision: as it was recorded by a call that did not get to its end,
/// else made from the difference of the trees.
fn prepare(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    workspace: &Workspace,
    chain: &[Proposal],
) -> Result<Proposal> {
    if let Some(recorded) = changes::find(store, &workspace.agent, workspace.revision())? {
        return Ok(recorded);
    }
    let mut proposal = difference(store, staging, workspace, chain)?;
    for change in &mut proposal.changes {
        change.lines = count(
            staging.objects(),
            change.path.as_bstr(),
            change.old,
            change.new,
        )?;
    }
    let mut parents = Parents::new(store)?;
    for need in lineage::of_workspace(workspace)? {
        proposal.lineage.push(parents.renewed(need)?);
    }
    // It may come to it too late: what it was built on is gone already.
    if let Some((why, _)) = parents.obstacle(&proposal)?
        && why != Refusal::NeedsParent
    {
        lineage::mark(&mut proposal, why);
    }
    Ok(proposal)
}

/// What a workspace would propose as it is, its lines not counted; nothing is recorded.
pub(super) fn sketch(store: &Store<'_>, workspace: &Workspace) -> Result<Proposal> {
    let mut staging = Staging::new(store.repository())?;
    let chain = chain(store, workspace)?;
    difference(store, &mut staging, workspace, &chain)
}

/// The difference of a workspace from its base and what was decided since, as a proposal.
fn difference(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    workspace: &Workspace,
    chain: &[Proposal],
) -> Result<Proposal> {
    let base_tree = base_tree(store, staging, workspace, chain)?;
    let rules = Rules::new(store.repository().config()?)?;
    let rejected: HashSet<(&BStr, Option<Entry>)> = chain
        .iter()
        .flat_map(|proposal| &proposal.changes)
        .filter(|change| change.state == State::Rejected)
        .map(|change| (change.path.as_bstr(), change.new))
        .collect();
    let mut differences = tree::diff(staging, Some(base_tree), Some(workspace.tree))?;
    differences.retain(|change| {
        let path = change.path.as_bstr();
        !rules.ignores(path) && !rejected.contains(&(path, change.new))
    });
    let meta = &workspace.meta;
    Ok(Proposal {
        agent: workspace.agent.clone(),
        revision: workspace.revision(),
        previous: meta.proposal,
        base: workspace.base(),
        base_tree,
        tree: workspace.tree,
        revision_commit: workspace.commit,
        commit: None,
        session: meta.session.clone(),
        time: store.now(),
        lineage: Vec::new(),
        changes: described(staging.objects(), differences)?,
        extra: Map::new(),
    })
}

/// The changes with the halves of renames paired; the lines are not counted yet.
fn described(objects: &Objects<'_>, changes: Vec<tree::Change>) -> Result<Vec<ProposedChange>> {
    let mut pairs: HashMap<BString, Pair> = HashMap::new();
    let renames = tree::find_renames(changes.clone(), objects, tree::RenameOptions::default())?;
    for delta in renames.deltas {
        if let Delta::Rename(rename) = delta {
            let similarity = rename.similarity();
            let half = |path: &BString| Pair {
                path: path.clone(),
                similarity,
            };
            pairs.insert(rename.from.clone(), half(&rename.to));
            pairs.insert(rename.to.clone(), half(&rename.from));
        }
    }
    let described = changes.into_iter().map(|change| ProposedChange {
        lines: None,
        rename: pairs.remove(&change.path),
        path: change.path,
        old: change.old,
        new: change.new,
        state: State::Proposed,
        extra: Map::new(),
    });
    Ok(described.collect())
}

/// The lines added and deleted between two versions of a path; `None` for binary content.
pub(super) fn count(
    objects: &Objects<'_>,
    path: &BStr,
    old: Option<Entry>,
    new: Option<Entry>,
) -> Result<Option<(u64, u64)>> {
    if let (Some(old), Some(new)) = (old, new)
        && old.id == new.id
    {
        return Ok(Some((0, 0)));
    }
    Ok(count_lines(
        &text_of(objects, path, old)?,
        &text_of(objects, path, new)?,
    ))
}

/// The content that a diff shows of an entry; of a submodule, the line that git shows.
fn text_of(objects: &Objects<'_>, path: &BStr, entry: Option<Entry>) -> Result<Vec<u8>> {
    Ok(match entry {
        None => Vec::new(),
        Some(entry) if entry.mode == tree::GITLINK => {
            format!("Subproject commit {}\n", entry.id).into_bytes()
        }
        Some(entry) => objects.blob_at(path, entry.id)?,
    })
}

/// The agent took back all that it had proposed: nothing of it is offered any more.
fn withdraw(
    store: &Store<'_>,
    mut staging: Staging<'_>,
    newest: &Proposal,
    older: &mut [Outdated],
) -> Result<()> {
    let updates = supersede(store, &mut staging, newest, older)?;
    if !updates.is_empty() {
        store.put(staging, &updates)?;
    }
    Ok(())
}

/// The proposals of all agents, of one, or one of them, by agent and revision.
///
/// # Errors
/// [`Error::NoProposal`] when the one asked for, or any of the agent asked for, is not there;
/// [`Error::Damaged`].
pub fn changes(
    store: &Store<'_>,
    of: Option<(&AgentId, Option<Revision>)>,
) -> Result<Vec<Proposal>> {
    if let Some((agent, Some(revision))) = of {
        return Ok(vec![changes::load(store, agent, revision)?]);
    }
    let agent = of.map(|(agent, _)| agent);
    let heads = changes::heads(store, agent)?;
    if let (Some(agent), true) = (agent, heads.is_empty()) {
        return Err(Error::NoProposal {
            agent: agent.clone(),
            revision: None,
        });
    }
    heads
        .into_iter()
        .map(|head| changes::load(store, &head.agent, head.revision))
        .collect()
}
