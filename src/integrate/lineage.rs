//! What a change was built on: the undecided changes of other agents, and what follows from their fate.
//!
//! A workspace that was cut from another agent's undecided work carries in its metadata, under
//! `lineage`, which changes that were. `propose` copies the list into the proposal; every change of it
//! needs every change of the list, since nobody can tell which of its files was written in view of
//! which. The list is kept once for a proposal, not once for a change.
//!
//! What a need has come to is read from the parent's own proposal each time it counts. The state
//! `blocked` in a dependent's proposal says the same to whoever only looks; it decides nothing.
//!
//! With `relo.changes.dependentSemantics` off, lineage is recorded and has no consequences.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use bstr::{BString, ByteSlice, ByteVec};
use serde_json::{Value, json};

use super::decide::{Decision, Next};
use super::proposal::{Proposal, State};
use super::{Error, Result, Rules, store as changes};
use crate::git::ObjectId;
use crate::model::{AgentId, Refusal, Revision, json_path, path_from_json};
use crate::workspace::{self, Store, Workspace};

/// The key in a workspace's metadata and in a proposal.
pub(super) const KEY: &str = "lineage";

/// Whether lineage has consequences.
const SETTING: &str = "relo.changes.dependentsemantics";

/// A change of another agent that a proposal was built on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    /// The other agent.
    pub agent: AgentId,
    /// The revision that it proposed the change with.
    pub proposal: Revision,
    /// The path.
    pub path: BString,
    /// The hash of the change that was built on, see
    /// [`ProposedChange::patch_hash`](super::ProposedChange::patch_hash).
    pub patch_hash: String,
}

/// A change, as the parts of its id.
pub(super) type Place = (AgentId, Revision, BString);

impl Need {
    /// The id of the change: `<agent>/<revision>:<path>`.
    pub fn id(&self) -> BString {
        id_of(&self.place())
    }

    pub(super) fn place(&self) -> Place {
        (self.agent.clone(), self.proposal, self.path.clone())
    }

    /// The form in metadata and in a proposal.
    pub fn to_json(&self) -> Value {
        json!({
            "agent": self.agent,
            "proposal": self.proposal,
            "path": json_path(self.path.as_bstr()),
            "patchHash": self.patch_hash,
        })
    }

    /// Reads the form back; `None` where it makes no sense.
    pub fn from_json(value: &Value) -> Option<Need> {
        Some(Need {
            agent: AgentId::new(value.get("agent")?.as_str()?).ok()?,
            proposal: Revision::new(value.get("proposal")?.as_u64()?)?,
            path: path_from_json(value.get("path")?)?,
            patch_hash: value.get("patchHash")?.as_str()?.to_owned(),
        })
    }
}

/// The id of a change.
pub(super) fn id_of((agent, revision, path): &Place) -> BString {
    let mut id = BString::from(format!("{agent}/{revision}:"));
    id.push_str(path);
    id
}

/// The list in its JSON form.
pub(super) fn list_from_json(list: &Value) -> Option<Vec<Need>> {
    list.as_array()?.iter().map(Need::from_json).collect()
}

/// The changes that a workspace was built on, as its metadata say. What came by a change reference is
/// the workspace's own by now, and needs nobody.
///
/// # Errors
/// [`workspace::Error::Damaged`]: what cannot be read is not taken for nothing.
pub(super) fn of_workspace(workspace: &Workspace) -> Result<Vec<Need>> {
    let Some(list) = workspace.meta.extra.get(KEY) else {
        return Ok(Vec::new());
    };
    let imported = |entry: &&Value| entry.get("import").and_then(Value::as_bool) == Some(true);
    let needs = list.as_array().map(|list| {
        let needs = list.iter().filter(|entry| !imported(entry));
        needs.map(Need::from_json).collect::<Option<Vec<Need>>>()
    });
    needs.flatten().ok_or_else(|| {
        Error::from(workspace::Error::Damaged {
            what: format!("workspace '{}'", workspace.agent),
            why: "its lineage makes no sense".to_owned(),
        })
    })
}

/// Where a need stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The parent is accepted.
    Met,
    /// The parent waits for a decision.
    Open,
    /// The parent will not come as it was built on, or nobody can tell.
    Lost(Refusal),
}

/// Why a proposal cannot be accepted, and the id of the change that stands in the way.
pub(super) type Obstacle = (Refusal, BString);

/// Looks parents up, each once.
pub(super) struct Parents<'s, 'r> {
    store: &'s Store<'r>,
    enforced: bool,
    rules: Rules,
    known: HashMap<(AgentId, Revision), Option<Rc<Proposal>>>,
    /// By agent: the revisions of all its proposals.
    revisions: HashMap<AgentId, Rc<[Revision]>>,
}

impl<'s, 'r> Parents<'s, 'r> {
    pub(super) fn new(store: &'s Store<'r>) -> Result<Self> {
        let setting = store.repository().config()?.bool(SETTING)?;
        Ok(Parents {
            store,
            enforced: setting.unwrap_or(true),
            rules: Rules::new(store.repository().config()?)?,
            known: HashMap::new(),
            revisions: HashMap::new(),
        })
    }

    /// Whether lineage has consequences.
    pub(super) fn is_enforced(&self) -> bool {
        self.enforced
    }

    /// A proposal, if it is there.
    pub(super) fn find(&mut self, agent: &AgentId, at: Revision) -> Result<Option<Rc<Proposal>>> {
        let key = (agent.clone(), at);
        if let Some(known) = self.known.get(&key) {
            return Ok(known.clone());
        }
        let found = changes::find(self.store, agent, at)?.map(Rc::new);
        self.known.insert(key, found.clone());
        Ok(found)
    }

    /// What a proposal needs of others, as far as that has consequences.
    pub(super) fn needs<'p>(&self, proposal: &'p Proposal) -> impl Iterator<Item = &'p Need> {
        let agent = &proposal.agent;
        let enforced = self.enforced;
        proposal
            .lineage
            .iter()
            .filter(move |need| enforced && need.agent != *agent)
    }

    /// Where a need stands.
    pub(super) fn standing(&mut self, need: &Need) -> Result<Standing> {
        // What is never offered is nothing to wait for.
        if self.rules.ignores(need.path.as_bstr()) {
            return Ok(Standing::Met);
        }
        let Some(parent) = self.find(&need.agent, need.proposal)? else {
            // Not proposed yet; proposed in another state; or swept, and nobody can tell.
            let revisions = self.revisions(&need.agent)?;
            return Ok(Standing::Lost(
                match revisions.iter().any(|later| *later > need.proposal) {
                    true => Refusal::ParentSuperseded,
                    false => Refusal::NeedsParent,
                },
            ));
        };
        Ok(match parent.change(&need.path).map(|change| change.state) {
            Some(State::Accepted { .. }) | None => Standing::Met,
            Some(State::Proposed | State::Blocked(_)) => Standing::Open,
            Some(State::Rejected) => Standing::Lost(Refusal::ParentRejected),
            Some(State::Superseded) => Standing::Lost(Refusal::ParentSuperseded),
        })
    }

    fn revisions(&mut self, agent: &AgentId) -> Result<Rc<[Revision]>> {
        if let Some(known) = self.revisions.get(agent) {
            return Ok(known.clone());
        }
        let heads = changes::heads(self.store, Some(agent))?;
        let revisions: Rc<[Revision]> = heads.iter().map(|head| head.revision).collect();
        self.revisions.insert(agent.clone(), revisions.clone());
        Ok(revisions)
    }

    /// Why a proposal can never be accepted as it is: a parent of it, or of a parent, was rejected or
    /// superseded.
    pub(super) fn obstacle(&mut self, proposal: &Proposal) -> Result<Option<Obstacle>> {
        self.obstacle_within(proposal, &mut HashSet::new())
    }

    fn obstacle_within(
        &mut self,
        proposal: &Proposal,
        visited: &mut HashSet<(AgentId, Revision)>,
    ) -> Result<Option<Obstacle>> {
        if !visited.insert((proposal.agent.clone(), proposal.revision)) {
            return Ok(None);
        }
        let needs: Vec<Need> = self.needs(proposal).cloned().collect();
        let mut open: Vec<(AgentId, Revision)> = Vec::new();
        for need in needs {
            let need = self.renewed(need)?;
            match self.standing(&need)? {
                Standing::Met => {}
                Standing::Lost(kind) => return Ok(Some((kind, need.id()))),
                Standing::Open => open.push((need.agent.clone(), need.proposal)),
            }
        }
        open.dedup();
        for (agent, revision) in open {
            if let Some(parent) = self.find(&agent, revision)?
                && let Some(found) = self.obstacle_within(&parent, visited)?
            {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// A need, or what has taken its place: the newest change of the same path that the same agent
    /// has proposed since. A workspace may be built on before it is proposed, and edited further.
    pub(super) fn renewed(&mut self, need: Need) -> Result<Need> {
        if self.standing(&need)? != Standing::Lost(Refusal::ParentSuperseded) {
            return Ok(need);
        }
        for revision in self.revisions(&need.agent)?.iter().rev() {
            if *revision <= need.proposal {
                break;
            }
            let Some(later) = self.find(&need.agent, *revision)? else {
                continue;
            };
            let change = later.change(&need.path);
            if let Some(change) = change.filter(|change| change.state != State::Superseded) {
                return Ok(Need {
                    proposal: *revision,
                    patch_hash: change.patch_hash(self.store.repository())?.to_string(),
                    ..need
                });
            }
        }
        Ok(need)
    }
}

/// The proposals with undecided changes and a lineage, what they need under its present name.
pub(super) fn dependents(store: &Store<'_>) -> Result<Vec<Proposal>> {
    let heads = changes::heads(store, None)?;
    let open = heads.into_iter().filter(|h| h.undecided > 0 && h.lineage);
    let mut parents = Parents::new(store)?;
    open.map(|head| {
        let mut proposal = changes::open(store, &head)?;
        for need in &mut proposal.lineage {
            *need = parents.renewed(need.clone())?;
        }
        Ok(proposal)
    })
    .collect()
}

/// The decisions that mark as blocked whatever rests on the given changes, which are rejected, and
/// whatever rests on that in turn.
pub(super) fn block(store: &Store<'_>, gone: &[Place], why: Refusal) -> Result<Vec<Decision>> {
    if gone.is_empty() || !Parents::new(store)?.is_enforced() {
        return Ok(Vec::new());
    }
    let all = dependents(store)?;
    let mut decisions = Vec::new();
    for at in resting_on(&all, gone.iter().cloned().collect()) {
        let open = open_places(&all[at]);
        decisions.extend(open.map(|(agent, revision, path)| Decision {
            agent,
            revision,
            path,
            state: Next::Blocked(why),
        }));
    }
    Ok(decisions)
}

/// Which of the proposals rest on the given changes, directly or through one another.
pub(super) fn resting_on(all: &[Proposal], mut gone: HashSet<Place>) -> Vec<usize> {
    let mut found = vec![false; all.len()];
    loop {
        let next = (0..all.len()).find(|at| {
            let proposal = &all[*at];
            let mut others = proposal
                .lineage
                .iter()
                .filter(|n| n.agent != proposal.agent);
            !found[*at] && others.any(|need| gone.contains(&need.place()))
        });
        let Some(at) = next else { break };
        found[at] = true;
        gone.extend(open_places(&all[at]));
    }
    (0..all.len()).filter(|at| found[*at]).collect()
}

/// What became of changes that a newer proposal took the place of: the change that stands for each
/// now, with its hash, or nothing.
pub(super) type Replaced = BTreeMap<Place, Option<(Place, ObjectId)>>;

/// What a replacement changed in a dependent's proposal, for the message of its commit.
pub(super) struct Followed {
    /// The needs as they were, and what took their place.
    audit: Vec<Value>,
    /// Whether a need has no successor.
    pub(super) lost: bool,
}

impl Followed {
    /// The fields of the message.
    pub(super) fn fields(self) -> serde_json::Map<String, Value> {
        [("replaced".to_owned(), Value::Array(self.audit))]
            .into_iter()
            .collect()
    }
}

/// Follows replacements in the lineage of a proposal: a need whose change has a successor is
/// rewritten to it, one without is lost. `None` where the proposal is not concerned.
pub(super) fn follow(proposal: &mut Proposal, replaced: &Replaced) -> Option<Followed> {
    let mut audit = Vec::new();
    let mut lost = false;
    let mut lineage = Vec::with_capacity(proposal.lineage.len());
    for need in std::mem::take(&mut proposal.lineage) {
        let Some(successor) = replaced.get(&need.place()) else {
            lineage.push(need);
            continue;
        };
        let by = successor.as_ref().map(|(place, hash)| {
            json!({ "id": json_path(id_of(place).as_bstr()), "patchHash": hash.to_string() })
        });
        audit.push(json!({
            "id": json_path(need.id().as_bstr()),
            "patchHash": need.patch_hash,
            "by": by,
        }));
        match successor {
            // What an agent itself has replaced, it does not wait for.
            Some((place, _)) if place.0 == proposal.agent => {}
            Some(((agent, revision, path), hash)) => lineage.push(Need {
                agent: agent.clone(),
                proposal: *revision,
                path: path.clone(),
                patch_hash: hash.to_string(),
            }),
            None => {
                lost = true;
                lineage.push(need);
            }
        }
    }
    proposal.lineage = lineage;
    (!audit.is_empty()).then_some(Followed { audit, lost })
}

/// Marks all that is undecided in a proposal as blocked.
pub(super) fn mark(proposal: &mut Proposal, why: Refusal) {
    let open = proposal.changes.iter_mut().filter(|c| c.is_undecided());
    open.for_each(|change| change.state = State::Blocked(why));
}

/// The undecided changes of a proposal.
pub(super) fn open_places(proposal: &Proposal) -> impl Iterator<Item = Place> {
    let open = proposal.changes.iter().filter(|c| c.is_undecided());
    open.map(|change| {
        (
            proposal.agent.clone(),
            proposal.revision,
            change.path.clone(),
        )
    })
}
