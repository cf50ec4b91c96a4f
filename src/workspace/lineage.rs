//! What a workspace was built on: the parts of its metadata that say so.
//!
//! Four keys of [`Metadata::extra`]:
//!
//! - `parents`: the workspaces that it was stacked on, each with the revision that went in, so that a
//!   parent that moved on since can be told from one that did not;
//! - `lineage`: the unaccepted changes of other agents that are in it, one entry
//!   `{agent, proposal, path, patchHash}` each; an entry with `"import": true` came by a change
//!   reference into its overlay, the others are in its base;
//! - `conflicts`: paths that a rebase left at the agent's version although the new base has another
//!   one. An entry goes when its path is written;
//! - `former`: the highest number of a proposal that an earlier workspace of the name left.
//!
//! Entries that this version cannot read are left alone.

use bstr::{BStr, BString, ByteSlice};
use serde_json::{Map, Value, json};

use super::merge::Conflict;
use super::{Metadata, Result};
use crate::git::tree::{Change, Entry};
use crate::git::{self, ObjectFormat, ObjectId, Repository};
use crate::model::{AgentId, Revision, json_path, path_from_json};

const PARENTS: &str = "parents";
const LINEAGE: &str = "lineage";
const CONFLICTS: &str = "conflicts";
const IMPORT: &str = "import";
const FORMER: &str = "former";

/// A workspace that another one was stacked on, as it was then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    /// Its agent.
    pub agent: AgentId,
    /// The revision that went in.
    pub revision: Revision,
    /// That revision's commit.
    pub commit: ObjectId,
}

/// An unaccepted change of another agent that is in a workspace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Whose change it is.
    pub agent: AgentId,
    /// The revision that it is proposed with, or would be if nothing else is edited before.
    pub proposal: Revision,
    /// The path.
    pub path: BString,
    /// See [`patch_hash`].
    pub patch_hash: String,
    /// Whether it came by a change reference, into the overlay.
    pub imported: bool,
}

/// What a change does, as a hash: of the blob `<old mode> <old id> <new mode> <new id>`, a NUL and the
/// path, with zeros where nothing is.
///
/// # Errors
/// When it cannot be hashed: out of memory.
pub fn patch_hash(repository: &Repository, change: &Change) -> git::Result<ObjectId> {
    let null = "0".repeat(git::hex_len(repository.format()));
    let side = |entry: Option<Entry>| match entry {
        Some(entry) => format!("{:06o} {}", entry.mode, entry.id),
        None => format!("{:06o} {null}", 0),
    };
    let mut text = format!("{} {}\0", side(change.old), side(change.new)).into_bytes();
    text.extend_from_slice(&change.path);
    repository.hash_blob(&text)
}

impl Origin {
    pub(super) fn to_json(&self) -> Value {
        let mut value = json!({
            "agent": self.agent,
            "proposal": self.proposal,
            "path": json_path(self.path.as_bstr()),
            "patchHash": self.patch_hash,
        });
        if self.imported {
            value[IMPORT] = true.into();
        }
        value
    }

    fn from_json(value: &Value) -> Option<Self> {
        Some(Origin {
            agent: AgentId::new(value.get("agent")?.as_str()?).ok()?,
            proposal: Revision::new(value.get("proposal")?.as_u64()?)?,
            path: path_from_json(value.get("path")?)?,
            patch_hash: value.get("patchHash")?.as_str()?.to_owned(),
            imported: is_import(value),
        })
    }
}

impl Parent {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "agent": self.agent,
            "revision": self.revision,
            "commit": self.commit.to_string(),
        })
    }

    fn from_json(value: &Value, format: ObjectFormat) -> Option<Self> {
        let commit = value.get("commit")?.as_str()?;
        Some(Parent {
            agent: AgentId::new(value.get("agent")?.as_str()?).ok()?,
            revision: Revision::new(value.get("revision")?.as_u64()?)?,
            commit: ObjectId::from_str_ext(commit, format).ok()?,
        })
    }
}

pub(super) fn is_import(value: &Value) -> bool {
    value.get(IMPORT).and_then(Value::as_bool) == Some(true)
}

impl Metadata {
    /// The workspaces that this one was stacked on.
    pub fn parents(&self) -> Vec<Parent> {
        let format = self.base.object_format();
        let read = |value| Parent::from_json(value, format);
        self.entries(PARENTS).iter().filter_map(read).collect()
    }

    /// The unaccepted changes of other agents that are in this workspace.
    pub fn lineage(&self) -> Vec<Origin> {
        let entries = self.entries(LINEAGE);
        entries.iter().filter_map(Origin::from_json).collect()
    }

    /// The paths that a rebase left at the agent's version, in conflict with the base.
    pub fn conflicts(&self) -> Vec<BString> {
        let entries = self.entries(CONFLICTS);
        entries.iter().filter_map(conflict_path).collect()
    }

    /// The highest number that a proposal of an earlier workspace of this name had when this one was
    /// made. Revisions start from 1 again then, the proposals stay: what this one offers has a higher
    /// number, so that nobody takes it for theirs.
    pub fn former(&self) -> Option<Revision> {
        self.extra
            .get(FORMER)
            .and_then(Value::as_u64)
            .and_then(Revision::new)
    }

    pub(super) fn set_former(&mut self, last: Revision) {
        self.extra.insert(FORMER.to_owned(), json!(last));
    }

    pub(super) fn raw_lineage(&self) -> &[Value] {
        self.entries(LINEAGE)
    }

    pub(super) fn set_parents(&mut self, parents: &[Parent]) {
        let entries = parents.iter().map(Parent::to_json).collect();
        set(&mut self.extra, PARENTS, entries);
    }

    pub(super) fn set_lineage(&mut self, entries: Vec<Value>) {
        set(&mut self.extra, LINEAGE, entries);
    }

    pub(super) fn add_lineage(&mut self, origins: &[Origin]) {
        let mut entries = self.entries(LINEAGE).to_vec();
        for origin in origins {
            let value = origin.to_json();
            if !entries.contains(&value) {
                entries.push(value);
            }
        }
        set(&mut self.extra, LINEAGE, entries);
    }

    pub(super) fn add_conflicts(&mut self, conflicts: &[Conflict]) {
        let fresh = |value: &Value| {
            let path = conflict_path(value);
            !conflicts.iter().any(|new| path.as_ref() == Some(&new.path))
        };
        let mut entries = self.entries(CONFLICTS).to_vec();
        entries.retain(fresh);
        entries.extend(conflicts.iter().map(Conflict::to_json));
        set(&mut self.extra, CONFLICTS, entries);
    }

    /// Forgets the conflicts of paths for which `settled` says so.
    pub(super) fn settle_conflicts(
        &mut self,
        mut settled: impl FnMut(&BStr) -> Result<bool>,
    ) -> Result<()> {
        let mut left = Vec::new();
        for value in self.entries(CONFLICTS) {
            match conflict_path(value) {
                Some(path) if settled(path.as_bstr())? => {}
                _ => left.push(value.clone()),
            }
        }
        set(&mut self.extra, CONFLICTS, left);
        Ok(())
    }

    fn entries(&self, key: &str) -> &[Value] {
        self.extra
            .get(key)
            .and_then(Value::as_array)
            .map_or(&[], Vec::as_slice)
    }
}

fn conflict_path(value: &Value) -> Option<BString> {
    path_from_json(value.get("path")?)
}

fn set(extra: &mut Map<String, Value>, key: &str, entries: Vec<Value>) {
    if entries.is_empty() {
        extra.shift_remove(key);
    } else {
        extra.insert(key.to_owned(), entries.into());
    }
}
