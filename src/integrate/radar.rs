//! The conflict radar: which workspaces would collide with each other and with the user's tree, now.
//!
//! Nothing is written and no file is laid out. What a workspace would offer is the difference of two
//! trees; against the user's tree it is planned as an accept would plan it; against another workspace
//! it is merged in memory, and only where both changed the same path. So the cost follows what the
//! workspaces changed.
//!
//! Two workspaces collide at a path where neither order of accepting them lands both. A file that
//! stands where the other has a folder is a collision too.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::plan::Verdict;
use super::planner::Plan;
use super::proposal::{Proposal, ProposedChange};
use super::propose::sketch;
use super::select::units;
use super::{Result, Rules};
use crate::layout;
use crate::model::{AgentId, Refusal};
use crate::workspace::{Store, Workspace};

/// A path at which two would collide.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Collision {
    /// Whose workspace.
    pub agent: AgentId,
    /// The other workspace, later in the order of names; `None` stands for the user's tree.
    pub with: Option<AgentId>,
    /// The path.
    pub path: BString,
    /// What an accept would say.
    pub kind: Refusal,
}

/// What the radar shows.
#[derive(Clone, Debug, Default)]
pub struct Radar {
    /// The workspaces that were looked at, by name.
    pub agents: Vec<AgentId>,
    /// The collisions, by agent, other and path.
    pub collisions: Vec<Collision>,
    /// Workspaces that could not be read, and why: nobody can tell what they collide with.
    pub unreadable: Vec<(AgentId, String)>,
}

/// Looks for collisions among all workspaces and with the user's tree; where agents are named, only
/// for theirs. What tools made in an open directory is imported first.
///
/// # Errors
/// A named agent without a workspace, or one that cannot be read; failures of Git. Where none is named,
/// a workspace that cannot be read is told and the others are looked at.
pub fn conflicts(store: &Store<'_>, named: &[AgentId]) -> Result<Radar> {
    let imported = |agent: &AgentId| Ok(layout::import(store, agent)?);
    look(store, named, &imported)
}

/// The same of all workspaces as they are recorded: nothing is imported, so what stands in an open
/// directory and is not captured yet does not count.
///
/// # Errors
/// Failures of Git.
pub(super) fn recorded(store: &Store<'_>) -> Result<Radar> {
    let loaded = |agent: &AgentId| Ok(store.load(agent)?);
    look(store, &[], &loaded)
}

fn look(
    store: &Store<'_>,
    named: &[AgentId],
    state: &dyn Fn(&AgentId) -> Result<Workspace>,
) -> Result<Radar> {
    for agent in named {
        store.load(agent)?;
    }
    let mut radar = Radar::default();
    let mut offers: Vec<Proposal> = Vec::new();
    for listed in store.list()? {
        let agent = listed.agent;
        let offer = state(&agent).and_then(|workspace| sketch(store, &workspace));
        match offer {
            Ok(offer) => {
                radar.agents.push(agent);
                offers.push(offer);
            }
            Err(error) if named.contains(&agent) => return Err(error),
            Err(error) => radar.unreadable.push((agent, error.to_string())),
        }
    }
    let meant = |agent: &AgentId| named.is_empty() || named.contains(agent);
    let mut plan = Plan::new(store, &[])?;
    for offer in offers.iter().filter(|offer| meant(&offer.agent)) {
        with_user(&mut plan, offer, &mut radar.collisions)?;
    }
    let changed = by_path(&offers);
    let rules = Rules::new(store.repository().config()?)?;
    for (path, of) in &changed {
        for (at, one) in of.iter().enumerate() {
            for other in &of[at + 1..] {
                if meant(one.agent) || meant(other.agent) {
                    let kind = collide(&plan, &rules, path, (one.change, other.change))?;
                    radar.collisions.extend(kind.map(|kind| Collision {
                        agent: one.agent.clone(),
                        with: Some(other.agent.clone()),
                        path: (*path).to_owned(),
                        kind,
                    }));
                }
            }
        }
    }
    let in_folders = files_and_folders(&changed);
    let theirs = |other: &AgentId| meant(other);
    radar.collisions.extend(
        in_folders
            .into_iter()
            .filter(|one| meant(&one.agent) || one.with.as_ref().is_some_and(theirs)),
    );
    radar.collisions.sort();
    radar.collisions.dedup();
    Ok(radar)
}

/// A change, and whose it is.
struct Of<'o> {
    agent: &'o AgentId,
    change: &'o ProposedChange,
}

fn by_path(offers: &[Proposal]) -> BTreeMap<&BStr, Vec<Of<'_>>> {
    let mut changed: BTreeMap<&BStr, Vec<Of<'_>>> = BTreeMap::new();
    for offer in offers {
        for change in &offer.changes {
            let agent = &offer.agent;
            let of = changed.entry(change.path.as_bstr()).or_default();
            of.push(Of { agent, change });
        }
    }
    changed
}

/// What an accept of all that a workspace offers would refuse.
fn with_user(plan: &mut Plan<'_>, offer: &Proposal, found: &mut Vec<Collision>) -> Result<()> {
    let all: Vec<usize> = (0..offer.changes.len()).collect();
    for (path, verdict) in plan.try_out(offer, &units(offer, &all))? {
        if let Verdict::Refused(kind) = verdict {
            found.push(Collision {
                agent: offer.agent.clone(),
                with: None,
                path,
                kind,
            });
        }
    }
    Ok(())
}

/// Why two changes of one path cannot both land; `None` where one order of them lands both.
fn collide(
    plan: &Plan<'_>,
    rules: &Rules,
    path: &BStr,
    (one, other): (&ProposedChange, &ProposedChange),
) -> Result<Option<Refusal>> {
    if one.new == other.new || rules.takes_latest(path) {
        return Ok(None);
    }
    let first = plan.merged(path, [other.old, one.new, other.new])?;
    let Verdict::Refused(kind) = first else {
        return Ok(None);
    };
    if one.old == other.old {
        return Ok(Some(kind));
    }
    // Cut from different bases, perhaps the one from the work of the other.
    match plan.merged(path, [one.old, other.new, one.new])? {
        Verdict::Refused(_) => Ok(Some(kind)),
        _ => Ok(None),
    }
}

/// Where one puts a file and another something below the same name.
fn files_and_folders(changed: &BTreeMap<&BStr, Vec<Of<'_>>>) -> Vec<Collision> {
    let mut found = Vec::new();
    for (path, below) in changed {
        for slash in path.find_iter("/") {
            let Some(files) = changed.get(path[..slash].as_bstr()) else {
                continue;
            };
            for file in files.iter().filter(|of| of.change.new.is_some()) {
                for inner in below.iter().filter(|of| of.change.new.is_some()) {
                    if file.agent == inner.agent {
                        continue;
                    }
                    let (agent, with) = (file.agent.min(inner.agent), file.agent.max(inner.agent));
                    found.push(Collision {
                        agent: agent.clone(),
                        with: Some(with.clone()),
                        path: path[..slash].into(),
                        kind: Refusal::TypeChange,
                    });
                }
            }
        }
    }
    found
}
