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

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use serde_json::{Map, Value, json};

use super::journal::JournalId;
use super::lineage::{self, Need};
use super::proposal::{Pair, Proposal, ProposedChange, State};
use super::{Error, Result};
use crate::git::tree::{self, Entry};
use crate::git::{Expect, NewCommit, ObjectFormat, ObjectId, ObjectKind, RefUpdate, Staging};
use crate::model::{AgentId, Revision, json_path, path_from_json};
use crate::workspace::{self, Store, names};

/// The format that this version writes, and the highest that it reads.
const FORMAT: u64 = 1;

/// A proposal in a listing: its ref, and what the message says.
pub(super) struct Head {
    pub(super) agent: AgentId,
    pub(super) revision: Revision,
    pub(super) undecided: u64,
    /// Whether it was built on changes of other agents.
    pub(super) lineage: bool,
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
    let Some(commit) = store.repository().refs().find(&name)? else {
        return Ok(None);
    };
    let objects = store.repository().objects()?;
    let format = store.repository().format();
    let read = objects.commit(commit)?;
    let find = |part: &str| tree::lookup(&objects, read.tree, part.into());
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
    proposal.revision_commit = *read
        .parents
        .last()
        .ok_or_else(|| damaged(&name, "it has no revision"))?;
    Ok(Some(proposal))
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

fn head_json(proposal: &Proposal) -> Value {
    let mut object = json!({
        "format": FORMAT,
        "agent": proposal.agent,
        "revision": proposal.revision,
        "base": proposal.base.to_string(),
        "time": proposal.time,
    });
    if let Some(previous) = proposal.previous {
        object["previous"] = json!(previous);
    }
    if let Some(session) = &proposal.session {
        object["session"] = json!(session);
    }
    if !proposal.lineage.is_empty() {
        object[lineage::KEY] = proposal.lineage.iter().map(Need::to_json).collect();
    }
    with_extra(object, &proposal.extra)
}

fn with_extra(mut object: Value, extra: &Map<String, Value>) -> Value {
    for (key, value) in extra {
        object[key] = value.clone();
    }
    object
}

fn parse_head(head: &Value, format: ObjectFormat) -> Option<Proposal> {
    let mut rest = head.as_object()?.clone();
    let mut take = |key: &str| rest.shift_remove(key);
    take("format");
    let agent = AgentId::new(take("agent")?.as_str()?).ok()?;
    let revision = Revision::new(take("revision")?.as_u64()?)?;
    let base = ObjectId::from_str_ext(take("base")?.as_str()?, format).ok()?;
    let time = take("time")?.as_i64()?;
    let previous = match take("previous") {
        Some(value) => Some(Revision::new(value.as_u64()?)?),
        None => None,
    };
    let session = match take("session") {
        Some(value) => Some(value.as_str()?.to_owned()),
        None => None,
    };
    let lineage = match take(lineage::KEY) {
        Some(list) => lineage::list_from_json(&list)?,
        None => Vec::new(),
    };
    Some(Proposal {
        agent,
        revision,
        previous,
        base,
        base_tree: base,
        tree: base,
        revision_commit: base,
        commit: None,
        session,
        time,
        lineage,
        changes: Vec::new(),
        extra: rest,
    })
}

fn entry_json(entry: Option<Entry>) -> Value {
    entry.map_or(
        Value::Null,
        |entry| json!({ "mode": format!("{:06o}", entry.mode), "id": entry.id.to_string() }),
    )
}

fn parse_entry(value: &Value, format: ObjectFormat) -> Option<Option<Entry>> {
    if value.is_null() {
        return Some(None);
    }
    let mode = u32::from_str_radix(value.get("mode")?.as_str()?, 8).ok()?;
    let id = ObjectId::from_str_ext(value.get("id")?.as_str()?, format).ok()?;
    Some(Some(Entry { mode, id }))
}

fn change_json(change: &ProposedChange) -> Value {
    let mut object = json!({
        "path": json_path(change.path.as_bstr()),
        "status": change.status().letter().to_string(),
        "old": entry_json(change.old),
        "new": entry_json(change.new),
        "added": change.lines.map(|(added, _)| added),
        "deleted": change.lines.map(|(_, deleted)| deleted),
        "state": change.state.as_str(),
    });
    if let State::Accepted { journal: Some(id) } = change.state {
        object["journal"] = json!(id.get());
    }
    if let State::Blocked(why) = change.state {
        object["reason"] = json!(why);
    }
    if let Some(pair) = &change.rename {
        object["rename"] = json!({
            "path": json_path(pair.path.as_bstr()),
            "similarity": pair.similarity,
        });
    }
    with_extra(object, &change.extra)
}

fn parse_change(value: Value, format: ObjectFormat) -> Option<ProposedChange> {
    let Value::Object(mut rest) = value else {
        return None;
    };
    let mut take = |key: &str| rest.shift_remove(key);
    let path = path_from_json(&take("path")?)?;
    take("status");
    let old = parse_entry(&take("old")?, format)?;
    let new = parse_entry(&take("new")?, format)?;
    let lines = (take("added")?.as_u64(), take("deleted")?.as_u64());
    let journal = take("journal");
    let reason = take("reason");
    let state = match take("state")?.as_str()? {
        "proposed" => State::Proposed,
        "accepted" => State::Accepted {
            journal: match journal {
                Some(id) => Some(JournalId::new(id.as_u64()?)?),
                None => None,
            },
        },
        "rejected" => State::Rejected,
        "superseded" => State::Superseded,
        "blocked" => State::Blocked(reason?.as_str()?.parse().ok()?),
        _ => return None,
    };
    let rename = match take("rename") {
        Some(pair) => Some(Pair {
            path: path_from_json(pair.get("path")?)?,
            similarity: u32::try_from(pair.get("similarity")?.as_u64()?).ok()?,
        }),
        None => None,
    };
    Some(ProposedChange {
        path,
        old,
        new,
        lines: lines.0.zip(lines.1),
        rename,
        state,
        extra: rest,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::model::Refusal;

    #[test]
    fn a_change_reads_back_with_the_fields_of_a_later_version() {
        let id = "0123456789012345678901234567890123456789";
        let line = json!({
            "path": {"bytes": "//4="}, "status": "M",
            "old": {"mode": "100644", "id": id}, "new": {"mode": "120000", "id": id},
            "added": null, "deleted": null, "state": "accepted", "journal": 7,
            "rename": {"path": "a\nb", "similarity": 62},
            "needs": [{"id": 3}], "colour": [1, {"x": 2}],
        });
        let change = parse_change(line.clone(), ObjectFormat::Sha1).unwrap();
        assert_eq!(change.path, b"\xff\xfe".as_bstr());
        assert_eq!(change.status(), tree::Status::TypeChanged);
        let again = change_json(&change);
        assert_eq!(again["needs"], line["needs"]);
        let mut blocked = line.clone();
        blocked["state"] = json!("blocked");
        blocked["reason"] = json!("parent_rejected");
        let blocked = parse_change(blocked, ObjectFormat::Sha1).unwrap();
        assert_eq!(blocked.state, State::Blocked(Refusal::ParentRejected));
        assert_eq!(change_json(&blocked)["reason"], "parent_rejected");
        assert_eq!(again["colour"], line["colour"]);
        assert_eq!(parse_change(again, ObjectFormat::Sha1).unwrap(), change);
    }

    #[test]
    fn nonsense_is_no_change() {
        for line in [
            json!(null),
            json!({}),
            json!({"path": "a", "old": null, "new": null, "added": 1, "deleted": 0, "state": "x"}),
            json!({"path": "a", "old": 7, "new": null, "added": 1, "deleted": 0, "state": "proposed"}),
        ] {
            assert_eq!(
                parse_change(line.clone(), ObjectFormat::Sha1),
                None,
                "{line}"
            );
        }
    }
}
