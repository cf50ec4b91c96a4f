//! What the library returns, as records: one description for the command line, for `batch` and for
//! `mcp`, so that all print the same. Here workspaces and what is in them; directories, proposals,
//! decisions and the journal in the modules below.

mod decision;
mod directory;
mod repository;

use std::path::Path;

pub use decision::{accepted, accepted_fields, collision, collision_fields, journal};
pub use decision::{proposed, proposed_fields, rejected, undone, undone_fields};
pub use directory::{captured, laid_out, place, settled};
pub use repository::{check, pruned, template, warmed};

use super::{Record, Value};
use crate::git::tree::{self, Change, Entry};
use crate::git::{ObjectFormat, ObjectId};
use crate::integrate::{Below, Node};
use crate::model::{AgentId, Revision};
use crate::workspace::{
    Base, Conflict, Created, Disposed, Found, Freshness, LeftOut, Listed, Logged, NotApplied,
    Parent, Published, Rebased, Stacked, Workspace,
};

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
        .maybe("directory", created.directory.as_deref().map(place))
}

/// One workspace of a listing. `open` is its directory, where it is known to be ours.
pub fn listed(listed: &Listed, open: Option<&Path>) -> Record {
    attributes(&listed.agent, listed.state.as_ref().ok())
        .flag("edited", listed.edited)
        .maybe("exec", listed.directory)
        .maybe("directory", open.map(place))
        .list("snap", "snaps", listed.snaps.iter().copied())
        .maybe("damaged", listed.damage())
}

/// One workspace; what a listing says of it.
pub fn shown(
    workspace: &Workspace,
    edited: bool,
    exec: Option<ObjectId>,
    open: Option<&Path>,
    snaps: &[Revision],
) -> Record {
    attributes(&workspace.agent, Some(workspace))
        .flag("edited", edited)
        .maybe("exec", exec)
        .maybe("directory", open.map(place))
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
        .with("agent-id", &workspace.agent)
        .with("base-commit", workspace.base())
        .with("overlay-revision", workspace.revision())
        .with("effective-tree-oid", workspace.tree)
}

/// What became of a file that somebody read.
pub fn freshness(state: Freshness, blob: ObjectId, path: &bstr::BStr) -> Record {
    Record::new()
        .with("state", state.as_str())
        .with("blob", blob)
        .with("path", path.to_owned())
}

/// A workspace that was stacked on others, or why it was not.
pub fn stacked(agent: &AgentId, stacked: &Stacked) -> Record {
    let workspace = stacked.workspace.as_ref();
    let conflicts = stacked.left_out.iter().flat_map(conflicts_of);
    Record::new()
        .with("agent", agent)
        .maybe("revision", workspace.map(Workspace::revision))
        .maybe("commit", workspace.map(|workspace| workspace.commit))
        .maybe("base", workspace.map(Workspace::base))
        .maybe("tree", workspace.map(|workspace| workspace.tree))
        .maybe("mode", workspace.map(|w| w.meta.mode.as_str()))
        .flag("read-only", workspace.is_some_and(|w| w.meta.read_only))
        .maybe("directory", stacked.directory.as_deref().map(place))
        .list("parent", "parents", stacked.parents.iter().map(parent))
        .list(
            "left-out",
            "left-out",
            stacked.left_out.iter().map(|l| &l.agent),
        )
        .list("conflict", "conflicts", conflicts)
}

/// A workspace after its move to another base.
pub fn rebased(rebased: &Rebased) -> Record {
    let own = rebased
        .conflicts
        .iter()
        .map(|c| conflict(&rebased.published.workspace.agent, c));
    let conflicts = rebased.left_out.iter().flat_map(conflicts_of).chain(own);
    let workspace = &rebased.published.workspace;
    Record::new()
        .with("agent", &workspace.agent)
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("base", workspace.base())
        .with("tree", workspace.tree)
        .flag("unchanged", !rebased.published.changed)
        .list("parent", "parents", rebased.parents.iter().map(parent))
        .list(
            "left-out",
            "left-out",
            rebased.left_out.iter().map(|l| &l.agent),
        )
        .list("conflict", "conflicts", conflicts)
}

fn parent(parent: &Parent) -> Value {
    Value::Group(vec![
        ("agent", (&parent.agent).into()),
        ("revision", parent.revision.into()),
        ("commit", parent.commit.into()),
    ])
}

fn conflicts_of(left: &NotApplied) -> impl Iterator<Item = Value> {
    left.conflicts.iter().map(|c| conflict(&left.culprit, c))
}

/// A conflict, and whose edits are in it: `<agent> <kind> <path>`.
fn conflict(agent: &AgentId, conflict: &Conflict) -> Value {
    Value::Group(vec![
        ("agent", agent.into()),
        ("kind", conflict.kind.as_str().into()),
        ("path", (&conflict.path).into()),
    ])
}

/// How a workspace stands to one that it was stacked on.
pub fn standing(agent: &AgentId, below: &Below) -> Record {
    Record::new()
        .with("agent", agent)
        .with("parent", &below.parent.agent)
        .with("state", below.standing.as_str())
        .with("revision", below.parent.revision)
        .maybe("now", below.now)
        .with("commit", below.parent.commit)
}

/// A workspace in the graph of all.
pub fn node(node: &Node) -> Record {
    let workspace = node.workspace.as_ref();
    let count = |state: &str| node.states.get(state).copied().unwrap_or(0);
    let conflicts = workspace.map(|w| w.meta.conflicts()).unwrap_or_default();
    let below = node.below.iter().map(|below| {
        Value::Group(vec![
            ("agent", (&below.parent.agent).into()),
            ("revision", below.parent.revision.into()),
            ("state", below.standing.as_str().into()),
        ])
    });
    Record::new()
        .with("agent", &node.agent)
        .maybe("revision", workspace.map(Workspace::revision))
        .maybe("base", workspace.map(Workspace::base))
        .list("parent", "parents", below)
        .with("changes", node.changes)
        .with("proposed", count("proposed"))
        .with("accepted", count("accepted"))
        .with("rejected", count("rejected"))
        .with("blocked", count("blocked"))
        .list("conflict", "conflicts", &conflicts)
        .flag("open", node.open)
        .flag("damaged", workspace.is_none())
}

/// One revision in the history of a workspace.
pub fn logged(logged: &Logged) -> Record {
    let workspace = &logged.workspace;
    let meta = &workspace.meta;
    Record::new()
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("kind", meta.kind.as_str())
        .with("time", u64::try_from(logged.time).unwrap_or(0))
        .with("tree", workspace.tree)
        .with("base", workspace.base())
        .with("path-count", meta.path_count)
        .list("path", "paths", &meta.paths)
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

/// A change of a path with its lines added and deleted; `None` for binary content.
pub fn counted(of: &Change, lines: Option<(u64, u64)>) -> Record {
    change(of)
        .maybe("added", lines.map(|(added, _)| added))
        .maybe("deleted", lines.map(|(_, deleted)| deleted))
}

/// The fields before the path in a line of `git diff --numstat`.
pub fn counted_fields(lines: Option<(u64, u64)>) -> String {
    lines.map_or_else(
        || "-\t-".to_owned(),
        |(added, deleted)| format!("{added}\t{deleted}"),
    )
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
