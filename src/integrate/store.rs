//! Proposals in the repository: `refs/relo/changes/<agent>/<n>`.
//!
//! Each state of a proposal is a commit on top of the one before. Its tree holds
//!
//! - `proposal.json`, one object, and `changes.jsonl`, one object a line;
//! - `base` and `overlay`, the two trees that the changes lie between, so that every blob of every
//!   change stays reachable, whatever is decided and whatever becomes of the workspace;
//!
//! and its last parent is the revision's commit. The message's body says how many changes wait for
//! a decision, so that a listing opens nothing else. Fields that this version does not know survive
//! a rewrite; a higher format is refused by name.

mod form;

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use serde_json::{Map, Value, json};

use super::proposal::Proposal;
use super::{Error, Result};
use crate::git::tree::{self, Entry};
use crate::git::{Expect, NewCommit, ObjectId, ObjectKind, RefUpdate, Staging};
use crate::model::{AgentId, Revision};
use crate::workspace::{self, Store, names};
use form::{change_json, head_json, parse_change, parse_head, with_extra};

/// The format that this version writes, and the highest that it reads.
const FORMAT: u64 = 1;

/// A proposal in a listing: its ref, and what the message says.
pub(super) struct Head {
    pub(super) agent: AgentId,
    pub(super) revision: Revision,
    pub(super) undecided: u64,
    /// Whether it was built on changes of other agents.
    pub(super) lineage: bool,
    /// The commit that holds it.
    commit: ObjectId,
}

/// Every proposal of one agent, or of all, by agent and revision. A damaged one is an error: it may
/// hold undecided work.
pub(super) fn heads(store: &Store<'_>, agent: Option<&AgentId>) -> Result<Vec<Head>> {
    let prefix = match agent {
        Some(agent) => format!("{}{agent}/", names::CHANGES),
        None => names::CHANGES.to_owned(),
    };
    let objects = store.repository().objects()?;
    let mut found = Vec::new();
    for (name, id) in store.repository().refs().list(&prefix)? {
        let damaged = |why: &str| damaged(&name, why);
        let parts = name.strip_prefix(names::CHANGES);
        let parts = parts.and_then(|rest| rest.split_once('/'));
        // A name of another form is somebody else's.
        let Some((agent, revision)) =
            parts.and_then(|(agent, n)| Some((AgentId::new(agent).ok()?, n.parse().ok()?)))
        else {
            continue;
        };
        let message = objects.commit(id)?.message;
        let body = message.split_once_str("\n\n").map(|(_, body)| body);
        let body: Value = body
            .and_then(|body| serde_json::from_slice(body).ok())
            .ok_or_else(|| damaged("its message is not one of ours"))?;
        check_format(&name, &body)?;
        found.push(Head {
            agent,
            revision,
            undecided: body["undecided"].as_u64().unwrap_or(u64::MAX),
            lineage: body["lineage"].as_u64().is_some_and(|count| count > 0),
            commit: id,
        });
    }
    found.sort_by(|a, b| (&a.agent, a.revision).cmp(&(&b.agent, b.revision)));
    Ok(found)
}

/// A proposal, if there is one of this revision.
pub(super) fn find(
    store: &Store<'_>,
    agent: &AgentId,
    revision: Revision,
) -> Result<Option<Proposal>> {
    let name = names::changes(agent, revision);
    let commit = store.repository().refs().find(&name)?;
    commit
        .map(|commit| read(store, (agent, revision), commit))
        .transpose()
}

/// The proposal of a [`Head`], as it was then.
pub(super) fn open(store: &Store<'_>, head: &Head) -> Result<Proposal> {
    read(store, (&head.agent, head.revision), head.commit)
}

/// The proposal that a commit holds.
fn read(
    store: &Store<'_>,
    (agent, revision): (&AgentId, Revision),
    commit: ObjectId,
) -> Result<Proposal> {
    let name = names::changes(agent, revision);
    let objects = store.repository().objects()?;
    let format = store.repository().format();
    let stored = objects.commit(commit)?;
    let find = |part: &str| tree::lookup(&objects, stored.tree, part.into());
    let part = |part: &str| -> Result<Entry> {
        find(part)?.ok_or_else(|| damaged(&name, &format!("it has no '{part}'")))
    };
    let empty = tree::empty_tree(format);
    let head = objects.blob(part("proposal.json")?.id)?;
    let head: Value = serde_json::from_slice(&head).map_err(|e| damaged(&name, &e.to_string()))?;
    check_format(&name, &head)?;
    let lines = objects.blob(part("changes.jsonl")?.id)?;
    let mut proposal = parse_head(&head, format)
        .ok_or_else(|| damaged(&name, "'proposal.json' makes no sense"))?;
    if proposal.agent != *agent || proposal.revision != revision {
        return Err(damaged(&name, "it is the proposal of another revision"));
    }
    for (at, line) in lines.lines().enumerate() {
        let change = serde_json::from_slice(line)
            .ok()
            .and_then(|value| parse_change(value, format));
        let wrong = || {
            damaged(
                &name,
                &format!("line {} of 'changes.jsonl' makes no sense", at + 1),
            )
        };
        proposal.changes.push(change.ok_or_else(wrong)?);
    }
    proposal.changes.sort_by(|a, b| a.path.cmp(&b.path));
    proposal.base_tree = find("base")?.map_or(empty, |entry| entry.id);
    proposal.tree = find("overlay")?.map_or(empty, |entry| entry.id);
    proposal.commit = Some(commit);
    proposal.revision_commit = *stored
        .parents
        .last()
        .ok_or_else(|| damaged(&name, "it has no revision"))?;
    Ok(proposal)
}

/// As [`find`], for a proposal that must be there.
pub(super) fn load(store: &Store<'_>, agent: &AgentId, revision: Revision) -> Result<Proposal> {
    find(store, agent, revision)?.ok_or_else(|| Error::NoProposal {
        agent: agent.clone(),
        revision: Some(revision),
    })
}

/// Stages a state of a proposal and returns the step that publishes it. `what` says in a few words
/// what happened; the proposal's own commit is brought up to date.
pub(super) fn stage(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    proposal: &mut Proposal,
    what: &str,
) -> workspace::Result<RefUpdate> {
    stage_with(store, staging, proposal, what, Map::new())
}

/// As [`stage`], with more fields in the body of the message.
pub(super) fn stage_with(
    store: &Store<'_>,
    staging: &mut Staging<'_>,
    proposal: &mut Proposal,
    what: &str,
    fields: Map<String, Value>,
) -> workspace::Result<RefUpdate> {
    let mut lines = Vec::new();
    for change in &proposal.changes {
        serde_json::to_writer(&mut lines, &change_json(change))
            .expect("invariant: plain data into memory");
        lines.push(b'\n');
    }
    let mut head = head_json(proposal).to_string().into_bytes();
    head.push(b'\n');
    let mut blob = |data: &[u8]| -> workspace::Result<Option<Entry>> {
        Ok(Some(Entry {
            mode: tree::REGULAR,
            id: staging.add(ObjectKind::Blob, data)?,
        }))
    };
    let folder = |id: ObjectId| {
        let mode = tree::TREE;
        Some(Entry { mode, id })
    };
    // A tree without entries has no place in another one; reading takes its absence for it.
    let files: BTreeMap<BString, Option<Entry>> = [
        ("base".into(), folder(proposal.base_tree)),
        ("changes.jsonl".into(), blob(&lines)?),
        ("overlay".into(), folder(proposal.tree)),
        ("proposal.json".into(), blob(&head)?),
    ]
    .into();
    let empty = tree::empty_tree(store.repository().format());
    let root = tree::edit(staging, empty, &files)?;
    let undecided = proposal.undecided();
    let body = json!({
        "format": FORMAT,
        "agent": proposal.agent,
        "revision": proposal.revision,
        "changes": proposal.changes.len(),
        "undecided": undecided,
        "lineage": proposal.lineage.len(),
    });
    let body = with_extra(body, &fields);
    let message = format!(
        "vws {} r{}: {what}\n\n{body}\n",
        proposal.agent, proposal.revision
    );
    let before = proposal.commit;
    let parents: Vec<ObjectId> = before
        .into_iter()
        .chain([proposal.revision_commit])
        .collect();
    let commit = staging.commit(&NewCommit {
        tree: root,
        parents: &parents,
        time: store.now(),
        message: message.as_bytes(),
    })?;
    proposal.commit = Some(commit);
    let expect = before.map_or(Expect::Missing, Expect::Is);
    let name = names::changes(&proposal.agent, proposal.revision);
    Ok(RefUpdate::set(name, expect, commit))
}

fn damaged(name: &str, why: &str) -> Error {
    Error::Damaged {
        name: name.to_owned(),
        why: why.to_owned(),
    }
}

fn check_format(name: &str, object: &Value) -> Result<()> {
    match object.get("format").and_then(Value::as_u64) {
        Some(found) if found <= FORMAT => Ok(()),
        Some(found) => Err(damaged(
            name,
            &format!("its format is {found}, this git-vws reads up to {FORMAT}"),
        )),
        None => Err(damaged(name, "it names no format")),
    }
}
