//! What the library returns, as records: one description for the command line and for `batch`, so
//! that both print the same.

use super::{Record, Value};
use crate::git::tree::{self, Change, Entry};
use crate::git::{ObjectFormat, ObjectId};
use crate::model::{AgentId, Revision};
use crate::workspace::{Base, Created, Disposed, Found, LeftOut, Listed, Published, Workspace};

/// A path that was left out, and why: `<kind> <path>`.
pub fn left_out(left_out: &LeftOut) -> Value {
    Value::Group(vec![
        ("kind", left_out.kind.as_str().into()),
        ("path", (&left_out.path).into()),
    ])
}

/// The user's working tree, recorded.
pub fn base(base: &Base) -> Record {
    Record::new()
        .with("commit", base.commit)
        .with("tree", base.tree)
        .maybe("head", base.head)
        .maybe("branch", base.branch.clone())
        .flag("detached", base.branch.is_none())
        .list("dirty", "dirty", &base.dirty)
        .list("untracked", "untracked", &base.untracked)
        .list("left-out", "left-out", base.left_out.iter().map(left_out))
        .with("untracked-left-out", base.untracked_left_out)
}

/// A new workspace.
pub fn created(created: &Created) -> Record {
    let workspace = &created.workspace;
    let base = created.base.as_ref();
    let left = base.map(|base| &base.left_out[..]).unwrap_or_default();
    let too_many = base.map(|base| base.untracked_left_out);
    Record::new()
        .with("agent", &workspace.agent)
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("base", workspace.base())
        .with("tree", workspace.tree)
        .with("mode", workspace.meta.mode.as_str())
        .flag("read-only", workspace.meta.read_only)
        .maybe("session", workspace.meta.session.clone())
        .maybe("uncommitted", base.map(|base| base.dirty.len()))
        .maybe("untracked", base.map(|base| base.untracked.len()))
        .maybe("untracked-left-out", too_many)
        .list("left-out", "left-out", left.iter().map(left_out))
}

/// One workspace of a listing.
pub fn listed(listed: &Listed) -> Record {
    attributes(&listed.agent, listed.state.as_ref().ok())
        .flag("edited", listed.edited)
        .maybe("exec", listed.directory)
        .list("snap", "snaps", listed.snaps.iter().copied())
        .maybe("damaged", listed.damage())
}

/// One workspace; what a listing says of it.
pub fn shown(
    workspace: &Workspace,
    edited: bool,
    directory: Option<ObjectId>,
    snaps: &[Revision],
) -> Record {
    attributes(&workspace.agent, Some(workspace))
        .flag("edited", edited)
        .maybe("exec", directory)
        .list("snap", "snaps", snaps.iter().copied())
        .maybe("damaged", None::<&str>)
}

fn attributes(agent: &AgentId, workspace: Option<&Workspace>) -> Record {
    let meta = workspace.map(|workspace| &workspace.meta);
    Record::new()
        .with("agent", agent)
        .maybe("revision", workspace.map(Workspace::revision))
        .maybe("commit", workspace.map(|workspace| workspace.commit))
        .maybe("tree", workspace.map(|workspace| workspace.tree))
        .maybe("base", workspace.map(Workspace::base))
        .maybe("mode", meta.map(|meta| meta.mode.as_str()))
        .flag("read-only", meta.is_some_and(|meta| meta.read_only))
        .maybe("session", meta.and_then(|meta| meta.session.clone()))
        .maybe("last", meta.map(|meta| meta.kind.as_str()))
        .maybe("proposal", meta.and_then(|meta| meta.proposal))
}

/// The revision after a change; `unchanged` where there was nothing to do.
pub fn published(published: &Published) -> Record {
    let workspace = &published.workspace;
    Record::new()
        .with("agent", &workspace.agent)
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("tree", workspace.tree)
        .flag("unchanged", !published.changed)
}

/// What became of a workspace that was let go.
pub fn disposed(disposed: &Disposed) -> Record {
    Record::new()
        .with("agent", &disposed.workspace.agent)
        .with("revision", disposed.workspace.revision())
        .with("commit", disposed.workspace.commit)
        .maybe("trash", disposed.trash.clone())
}

/// A pinned revision.
pub fn snap(agent: &AgentId, revision: Revision, commit: ObjectId) -> Record {
    Record::new()
        .with("agent", agent)
        .with("revision", revision)
        .with("commit", commit)
}

/// What answers about a workspace are based on.
pub fn context(workspace: &Workspace) -> Record {
    Record::new()
        .with("agent", &workspace.agent)
        .with("base", workspace.base())
        .with("revision", workspace.revision())
        .with("tree", workspace.tree)
}

/// What is at a path, with its size.
pub fn found(found: &Found) -> Record {
    let record = Record::new().with("path", &found.path);
    describe(record, &found.entry).maybe("size", found.size)
}

/// An entry of a tree at a path.
pub fn entry(path: &bstr::BString, entry: &Entry) -> Record {
    describe(Record::new().with("path", path), entry)
}

fn describe(record: Record, entry: &Entry) -> Record {
    record
        .with("mode", format!("{:06o}", entry.mode))
        .with("type", type_of(entry))
        .with("oid", entry.id)
}

/// The fields before the path in a line of `git ls-tree`.
pub fn entry_fields(entry: &Entry) -> String {
    format!("{:06o} {} {}", entry.mode, type_of(entry), entry.id)
}

/// What `git ls-tree` calls an entry.
pub fn type_of(entry: &Entry) -> &'static str {
    match entry.mode {
        tree::TREE => "tree",
        tree::GITLINK => "commit",
        _ => "blob",
    }
}

/// A change of a path.
pub fn change(change: &Change) -> Record {
    let mode = |entry: Option<Entry>| entry.map(|entry| format!("{:06o}", entry.mode));
    Record::new()
        .with("path", &change.path)
        .with("status", change.status().letter().to_string())
        .maybe("old-mode", mode(change.old))
        .maybe("new-mode", mode(change.new))
        .maybe("old-oid", change.old.map(|entry| entry.id))
        .maybe("new-oid", change.new.map(|entry| entry.id))
}

/// The fields before the path in a line of `git diff --raw`.
pub fn raw_fields(change: &Change, format: ObjectFormat) -> String {
    let mode = |entry: Option<Entry>| entry.map_or(0, |entry| entry.mode);
    let null = "0".repeat(crate::git::hex_len(format));
    let id = |entry: Option<Entry>| entry.map_or_else(|| null.clone(), |e| e.id.to_string());
    let (old, new) = (change.old, change.new);
    let status = change.status().letter();
    let (from, to) = (mode(old), mode(new));
    format!(":{from:06o} {to:06o} {} {} {status}", id(old), id(new))
}
