//! A proposal and its changes as JSON, and back.

use bstr::ByteSlice;
use serde_json::{Map, Value, json};

use super::FORMAT;
use crate::git::tree::Entry;
use crate::git::{ObjectFormat, ObjectId};
use crate::integrate::journal::JournalId;
use crate::integrate::lineage::{self, Need};
use crate::integrate::proposal::{Pair, Proposal, ProposedChange, State};
use crate::model::{AgentId, Revision, json_path, path_from_json};

pub(super) fn head_json(proposal: &Proposal) -> Value {
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

pub(super) fn with_extra(mut object: Value, extra: &Map<String, Value>) -> Value {
    for (key, value) in extra {
        object[key] = value.clone();
    }
    object
}

pub(super) fn parse_head(head: &Value, format: ObjectFormat) -> Option<Proposal> {
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

pub(super) fn entry_json(entry: Option<Entry>) -> Value {
    entry.map_or(
        Value::Null,
        |entry| json!({ "mode": format!("{:06o}", entry.mode), "id": entry.id.to_string() }),
    )
}

pub(super) fn parse_entry(value: &Value, format: ObjectFormat) -> Option<Option<Entry>> {
    if value.is_null() {
        return Some(None);
    }
    let mode = u32::from_str_radix(value.get("mode")?.as_str()?, 8).ok()?;
    let id = ObjectId::from_str_ext(value.get("id")?.as_str()?, format).ok()?;
    Some(Some(Entry { mode, id }))
}

pub(super) fn change_json(change: &ProposedChange) -> Value {
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

pub(super) fn parse_change(value: Value, format: ObjectFormat) -> Option<ProposedChange> {
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
        assert_eq!(change.status(), crate::git::tree::Status::TypeChanged);
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
