//! All workspaces with what they rest on and what was decided: for `stack --status` and `--graph`.

use std::collections::{BTreeMap, HashMap};

use super::proposal::State;
use super::stack::{Live, live, source};
use super::{Result, store as changes};
use crate::git::{ObjectId, Staging};
use crate::layout;
use crate::model::{AgentId, Revision};
use crate::workspace::{Parent, Store, Workspace};

/// How a parent stands to a workspace that was stacked on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// What went in is what the parent has.
    Current,
    /// The parent has edited since.
    Behind,
    /// Nothing of the parent's work waits for a decision any more.
    Decided,
    /// The parent is gone, and left nothing that could be decided.
    Gone,
}

impl Standing {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Standing::Current => "current",
            Standing::Behind => "behind",
            Standing::Decided => "decided",
            Standing::Gone => "gone",
        }
    }
}

/// A parent of a workspace, as it was and as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Below {
    /// The parent as it went in.
    pub parent: Parent,
    /// The revision that it has now.
    pub now: Option<Revision>,
    /// How it stands.
    pub standing: Standing,
}

/// One workspace in the graph.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its agent.
    pub agent: AgentId,
    /// Its state; `None` for one that cannot be read.
    pub workspace: Option<Workspace>,
    /// What it was stacked on.
    pub below: Vec<Below>,
    /// How many paths it adds to its base, undecided ones.
    pub changes: usize,
    /// How many of its changes are in each state, by the word for it.
    pub states: BTreeMap<&'static str, usize>,
    /// Whether a directory is open.
    pub open: bool,
}

/// Every workspace, or one, with what it rests on, by name. What tools made in open directories is
/// imported first.
///
/// # Errors
/// When there is no such workspace, or a ref or a proposal cannot be read; as [`layout::import`].
pub fn graph(store: &Store<'_>, only: Option<&AgentId>) -> Result<Vec<Node>> {
    let mut nodes = Vec::new();
    if let Some(agent) = only {
        store.load(agent)?;
    }
    for listed in store.list()? {
        if only.is_some_and(|only| *only != listed.agent) {
            continue;
        }
        let workspace = match listed.state.ok() {
            Some(_) if listed.directory.is_some() => Some(layout::import(store, &listed.agent)?),
            state => state,
        };
        let mut node = Node {
            agent: listed.agent.clone(),
            workspace,
            below: Vec::new(),
            changes: 0,
            states: states(store, &listed.agent)?,
            open: listed.directory.is_some(),
        };
        if let Some(workspace) = &node.workspace {
            for parent in workspace.meta.parents() {
                node.below.push(below(store, parent)?);
            }
            node.changes = undecided(store, workspace)?;
        }
        nodes.push(node);
    }
    Ok(nodes)
}

fn states(store: &Store<'_>, agent: &AgentId) -> Result<BTreeMap<&'static str, usize>> {
    let mut latest: HashMap<_, State> = HashMap::new();
    for head in changes::heads(store, Some(agent))? {
        for change in changes::open(store, &head)?.changes {
            latest.insert(change.path, change.state);
        }
    }
    let mut states = BTreeMap::new();
    for state in latest.into_values() {
        *states.entry(state.as_str()).or_insert(0) += 1;
    }
    Ok(states)
}

fn undecided(store: &Store<'_>, workspace: &Workspace) -> Result<usize> {
    let source = source(store, workspace.clone())?;
    // The trees that are staged serve the comparison only.
    let mut staging = Staging::new(store.repository())?;
    Ok(store.own_changes(&mut staging, &source)?.len())
}

pub(super) fn below(store: &Store<'_>, parent: Parent) -> Result<Below> {
    let tree_then = store.read_revision(&parent.agent, parent.commit)?.tree;
    let (now, standing) = match at(store, &parent)? {
        None => (None, Standing::Gone),
        Some((revision, None)) => (Some(revision), Standing::Decided),
        Some((revision, Some(tree))) if tree == tree_then => (Some(revision), Standing::Current),
        Some((revision, _)) => (Some(revision), Standing::Behind),
    };
    Ok(Below {
        parent,
        now,
        standing,
    })
}

/// The revision that a parent has now, and its tree where it has undecided work.
fn at(store: &Store<'_>, parent: &Parent) -> Result<Option<(Revision, Option<ObjectId>)>> {
    Ok(match live(store, &parent.agent)? {
        Live::At(workspace) => Some((workspace.revision(), Some(workspace.tree))),
        Live::Decided(workspace) => Some((workspace.revision(), None)),
        Live::Unknown => None,
    })
}
