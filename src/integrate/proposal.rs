//! A proposal and its changes as values.
//!
//! A proposal is what one revision of a workspace offers for a decision: one change per path, each
//! with its own state. Its form in the repository is in [`store`](super::store).

use bstr::{BString, ByteSlice};
use serde_json::{Map, Value};

use super::journal::JournalId;
use super::lineage::{self, Need};
use crate::git::tree::{self, Entry};
use crate::git::{self, ObjectId, Repository};
use crate::model::{AgentId, Refusal, Revision};
use crate::workspace;

/// What has been decided about a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing yet.
    Proposed,
    /// It is in the user's tree.
    Accepted {
        /// The entry that wrote it; `None` where the user's tree held it already.
        journal: Option<JournalId>,
    },
    /// The user does not want it.
    Rejected,
    /// A later proposal took its place.
    Superseded,
    /// Nothing yet, and it cannot be accepted as it is: what it was built on was rejected
    /// (`parent_rejected`) or replaced (`parent_superseded`).
    Blocked(Refusal),
}

impl State {
    /// The word in records and in the repository.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Proposed => "proposed",
            State::Accepted { .. } => "accepted",
            State::Rejected => "rejected",
            State::Superseded => "superseded",
            State::Blocked(_) => "blocked",
        }
    }
}

/// The other half of a rename.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pair {
    /// Its path: of the deleted half the new one, of the added half the old one.
    pub path: BString,
    /// How alike the contents are, in percent.
    pub similarity: u32,
}

/// The change of one path.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposedChange {
    /// The path.
    pub path: BString,
    /// What the agent started from; `None` where nothing was there.
    pub old: Option<Entry>,
    /// What the agent made; `None` where it deleted the path.
    pub new: Option<Entry>,
    /// The lines added and deleted from `old` to `new`; `None` for binary content.
    pub lines: Option<(u64, u64)>,
    /// The other half, where the change is half of a rename.
    pub rename: Option<Pair>,
    /// What has been decided.
    pub state: State,
    /// Fields that a later version wrote.
    pub extra: Map<String, Value>,
}

impl ProposedChange {
    /// The kind of the change, as in git's raw format.
    pub fn status(&self) -> tree::Status {
        let change = tree::Change {
            path: BString::default(),
            old: self.old,
            new: self.new,
        };
        change.status()
    }

    /// What other changes name this one by: `<agent>/<revision>:<path>`.
    pub fn id(&self, agent: &AgentId, revision: Revision) -> BString {
        lineage::id_of(&(agent.clone(), revision, self.path.clone()))
    }

    /// What the change does, as a hash: see [`workspace::patch_hash`].
    ///
    /// # Errors
    /// When it cannot be hashed: out of memory.
    pub fn patch_hash(&self, repository: &Repository) -> git::Result<ObjectId> {
        let change = tree::Change {
            path: self.path.clone(),
            old: self.old,
            new: self.new,
        };
        workspace::patch_hash(repository, &change)
    }

    /// Whether a decision is still to be made.
    pub fn is_undecided(&self) -> bool {
        matches!(self.state, State::Proposed | State::Blocked(_))
    }
}

/// What one revision of a workspace offers.
#[derive(Clone, Debug, PartialEq)]
pub struct Proposal {
    /// Whose it is.
    pub agent: AgentId,
    /// The revision that it offers.
    pub revision: Revision,
    /// The proposal of the same workspace before it.
    pub previous: Option<Revision>,
    /// The workspace's base commit.
    pub base: ObjectId,
    /// The tree that the changes start from: the base with what was accepted before.
    pub base_tree: ObjectId,
    /// The tree that the changes lead to: the overlay of the revision.
    pub tree: ObjectId,
    /// The revision's commit.
    pub revision_commit: ObjectId,
    /// The commit that holds this state of the proposal; `None` where there was nothing to propose
    /// and so nothing was recorded.
    pub commit: Option<ObjectId>,
    /// The orchestrator's session, if it named one.
    pub session: Option<String>,
    /// When it was proposed, in seconds since 1970.
    pub time: i64,
    /// The changes of other agents that every change of this proposal needs.
    pub lineage: Vec<Need>,
    /// The changes, in git's order.
    pub changes: Vec<ProposedChange>,
    /// Fields that a later version wrote.
    pub extra: Map<String, Value>,
}

impl Proposal {
    /// How many changes wait for a decision.
    pub fn undecided(&self) -> usize {
        self.changes.iter().filter(|c| c.is_undecided()).count()
    }

    /// The change of a path.
    pub fn change(&self, path: &[u8]) -> Option<&ProposedChange> {
        let at = self.place(path)?;
        self.changes.get(at)
    }

    pub(super) fn change_mut(&mut self, path: &[u8]) -> Option<&mut ProposedChange> {
        let at = self.place(path)?;
        self.changes.get_mut(at)
    }

    /// Git's order is for full paths that of their bytes.
    fn place(&self, path: &[u8]) -> Option<usize> {
        let by_path = |change: &ProposedChange| change.path.as_bytes().cmp(path);
        self.changes.binary_search_by(by_path).ok()
    }
}
