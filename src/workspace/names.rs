//! The refs of a workspace, by name. The table is in design.md, section 3.

use crate::git::ObjectId;
use crate::model::{AgentId, Revision};

/// Where all workspaces live.
pub const WORKSPACES: &str = "refs/relo/vws/";
/// Where the last revisions of workspaces dropped with undecided edits live.
pub const TRASH: &str = "refs/relo/trash/";
/// Where proposals live.
pub const CHANGES: &str = "refs/relo/changes/";
/// Where accepts and undos are journalled.
pub const JOURNAL: &str = "refs/relo/journal/";
/// Where the agents' branches live.
pub const BRANCHES: &str = "refs/heads/relo/";

/// The current revision: the one commit point of a workspace.
pub fn overlay(agent: &AgentId) -> String {
    format!("{WORKSPACES}{agent}/overlay")
}

/// The base commit, pinned for the workspace's life.
pub fn base(agent: &AgentId) -> String {
    format!("{WORKSPACES}{agent}/base")
}

/// The revision that an open directory was cut from.
pub fn exec(agent: &AgentId) -> String {
    format!("{WORKSPACES}{agent}/exec")
}

/// A pinned revision.
pub fn snap(agent: &AgentId, revision: Revision) -> String {
    format!("{WORKSPACES}{agent}/snap/{revision}")
}

/// A commit that a tool made in a directory and that nothing else keeps.
pub fn stray(agent: &AgentId, commit: ObjectId) -> String {
    format!("{WORKSPACES}{agent}/stray/{commit}")
}

/// All refs of one workspace.
pub fn workspace(agent: &AgentId) -> String {
    format!("{WORKSPACES}{agent}/")
}

/// The agent's branch, from its first commit.
pub fn branch(agent: &AgentId) -> String {
    format!("{BRANCHES}{agent}")
}

/// The proposal of a revision.
pub fn changes(agent: &AgentId, revision: Revision) -> String {
    format!("{CHANGES}{agent}/{revision}")
}

/// The last revision of a dropped workspace.
pub fn trash(agent: &AgentId, revision: Revision) -> String {
    format!("{TRASH}{agent}/{revision}")
}

/// One journal entry.
pub fn journal(id: &str) -> String {
    format!("{JOURNAL}{id}")
}

/// The agent of an overlay ref, if it is one and well named.
pub fn agent_of_overlay(name: &str) -> Option<AgentId> {
    let agent = name.strip_prefix(WORKSPACES)?.strip_suffix("/overlay")?;
    AgentId::new(agent).ok()
}
