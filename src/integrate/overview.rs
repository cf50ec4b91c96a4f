//! Everything at once, for a person: each agent with its workspace, its directory, what it rests on,
//! what waits for a decision and what would collide, and what was interrupted. Nothing is captured or changed by looking.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::graph::{Below, below};
use super::journal::{self, JournalId, Kind, State as Phase};
use super::{Proposal, Result, State, changes, radar};
use crate::git::ObjectId;
use crate::layout;
use crate::model::{AgentId, Revision};
use crate::workspace::{Mode, Store};

/// What there is.
#[derive(Clone, Debug, Default)]
pub struct Overview {
    /// Every agent that has a workspace or a change that waits, by name.
    pub agents: Vec<Seen>,
    /// Journal entries of this working tree that were begun and not ended, the oldest first.
    pub interrupted: Vec<JournalId>,
    /// The newest accept (or redo) of this working tree that can be taken back.
    pub last_accept: Option<JournalId>,
}

/// One agent.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Its id.
    pub agent: AgentId,
    /// Its workspace; `None` after it was released.
    pub workspace: Option<Held>,
    /// How many changes wait for a decision.
    pub waiting: usize,
    /// Changes that wait, and cannot be accepted as they are: what they were built on is gone.
    pub blocked: usize,
    /// Changes that are in the user's tree.
    pub accepted: usize,
    /// Changes that were turned down.
    pub rejected: usize,
    /// With whom its workspace would collide, and at how many paths; `None` is the user's tree.
    pub collides: BTreeMap<Option<AgentId>, usize>,
}

/// A workspace.
#[derive(Clone, Debug)]
pub struct Held {
    /// Its revision; `None` for one that is damaged.
    pub revision: Option<Revision>,
    /// What is wrong with it.
    pub damage: Option<String>,
    /// Whether it holds edits that no proposal offers.
    pub unproposed: bool,
    /// Whether it refuses writes.
    pub read_only: bool,
    /// Its open directory.
    pub directory: Option<Place>,
    /// What it was stacked on.
    pub below: Vec<Below>,
    /// Whether that stays as long as the workspace.
    pub stays: bool,
}

/// An open directory.
#[derive(Clone, Debug)]
pub enum Place {
    /// It is where it was laid out.
    Open(PathBuf),
    /// It is gone, was never finished, or something else stands in its place; why.
    Lost(String),
}

/// Looks at everything.
///
/// # Errors
/// When refs cannot be listed or a proposal cannot be read.
pub fn overview(store: &Store<'_>) -> Result<Overview> {
    let mut by_agent: BTreeMap<AgentId, Vec<Proposal>> = BTreeMap::new();
    for proposal in changes(store, None)? {
        let all = by_agent.entry(proposal.agent.clone()).or_default();
        all.push(proposal);
    }
    let mut agents = Vec::new();
    for listed in store.list()? {
        let proposals = by_agent.remove(&listed.agent).unwrap_or_default();
        let directory = listed.directory.map(|_| place(store, &listed.agent));
        let workspace = listed.state.as_ref().ok();
        let held = Held {
            revision: workspace.map(|workspace| workspace.revision()),
            damage: listed.damage(),
            unproposed: listed.edited && !offers(&proposals, workspace.map(|w| w.tree)),
            read_only: workspace.is_some_and(|workspace| workspace.meta.read_only),
            directory,
            below: match workspace {
                Some(workspace) => {
                    let parents = workspace.meta.parents().into_iter();
                    parents
                        .map(|parent| below(store, parent))
                        .collect::<Result<_>>()?
                }
                None => Vec::new(),
            },
            stays: workspace.is_some_and(|workspace| workspace.meta.mode == Mode::Worktree),
        };
        agents.push(seen(listed.agent, Some(held), &proposals));
    }
    collide(store, &mut agents)?;
    for (agent, proposals) in by_agent {
        let released = seen(agent, None, &proposals);
        if released.waiting + released.blocked > 0 {
            agents.push(released);
        }
    }
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    let mut overview = Overview {
        agents,
        ..Overview::default()
    };
    // The newest first.
    for summary in journal::list(*store)?.iter().filter(|one| one.here) {
        let Ok(entry) = &summary.entry else { continue };
        match (entry.state, entry.kind) {
            (Phase::Open, _) => overview.interrupted.insert(0, summary.id),
            (Phase::Done, Kind::Accept) if !entry.is_undone() => {
                overview.last_accept.get_or_insert(summary.id);
            }
            _ => {}
        }
    }
    Ok(overview)
}

/// Notes the collisions of each agent, with both where two collide.
fn collide(store: &Store<'_>, agents: &mut [Seen]) -> Result<()> {
    for collision in radar::recorded(store)?.collisions {
        let mut note = |of: &AgentId, with: Option<AgentId>| {
            if let Some(seen) = agents.iter_mut().find(|seen| seen.agent == *of) {
                *seen.collides.entry(with).or_default() += 1;
            }
        };
        if let Some(with) = &collision.with {
            note(with, Some(collision.agent.clone()));
        }
        note(&collision.agent, collision.with);
    }
    Ok(())
}

/// Whether the last proposal offers what the workspace holds.
fn offers(proposals: &[Proposal], tree: Option<ObjectId>) -> bool {
    let last = proposals.iter().max_by_key(|proposal| proposal.revision);
    last.is_some_and(|last| Some(last.tree) == tree)
}

fn place(store: &Store<'_>, agent: &AgentId) -> Place {
    match layout::open(store, agent) {
        Ok(Some(directory)) => Place::Open(directory.path),
        Ok(None) => Place::Lost("its directory was never finished".to_owned()),
        Err(error) => Place::Lost(error.to_string()),
    }
}

fn seen(agent: AgentId, workspace: Option<Held>, proposals: &[Proposal]) -> Seen {
    let states = || proposals.iter().flat_map(|p| &p.changes).map(|c| c.state);
    Seen {
        agent,
        workspace,
        waiting: states().filter(|state| *state == State::Proposed).count(),
        blocked: states()
            .filter(|state| matches!(state, State::Blocked(_)))
            .count(),
        accepted: states()
            .filter(|state| matches!(state, State::Accepted { .. }))
            .count(),
        rejected: states().filter(|state| *state == State::Rejected).count(),
        collides: BTreeMap::new(),
    }
}
