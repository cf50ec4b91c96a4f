//! An entry of the journal as a value.

use std::fmt;
use std::str::FromStr;

use bstr::BString;
use serde_json::{Map, Value};

use crate::git::ObjectId;
use crate::model::{AgentId, Refusal, RepoPath, Revision};

/// The number of an entry: 1, 2, 3, ... in the order in which they were begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JournalId(Revision);

impl JournalId {
    pub(super) const FIRST: Self = JournalId(Revision::FIRST);

    /// The number.
    pub fn get(self) -> u64 {
        self.0.get()
    }

    /// The entry with this number; `None` for 0.
    pub fn new(number: u64) -> Option<Self> {
        Revision::new(number).map(JournalId)
    }

    pub(super) fn next(self) -> Self {
        JournalId(self.0.next())
    }
}

impl fmt::Display for JournalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for JournalId {
    type Err = crate::model::RevisionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(JournalId)
    }
}

/// What stands at a path of the working tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileState {
    /// Git's mode: 100644, 100755 or 120000.
    pub mode: u32,
    /// The blob of the bytes as they are on disk (of a link: its target).
    pub id: ObjectId,
    /// All permission bits of a file, where they are known; the journal fills them in.
    pub permissions: Option<u32>,
}

impl FileState {
    /// A state whose permission bits are not known, or shall be what the umask says.
    pub fn new(mode: u32, id: ObjectId) -> Self {
        FileState {
            mode,
            id,
            permissions: None,
        }
    }

    /// Whether type, execute bit and bytes are the same.
    pub fn is_same(&self, other: &FileState) -> bool {
        self.mode == other.mode && self.id == other.id
    }
}

/// What became of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Not carried out yet.
    Pending,
    /// The disk holds what the step wrote.
    Written,
    /// The disk held the result already; an undo leaves it alone.
    Identical,
    /// A rule said no; the disk is as it was.
    Refused(Refusal),
    /// The system failed; the disk is as it was.
    Failed(String),
    /// Taken back, or never written, because its group or its entry did not go through.
    RolledBack,
    /// To be taken back, but somebody has changed the path since it was written: what they made of
    /// it stays. It counts as not accepted.
    Overtaken,
}

/// One path that an entry changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The path.
    pub path: RepoPath,
    /// Steps of one group land together or not at all.
    pub group: u32,
    /// What stands there before; `None` where nothing does.
    pub before: Option<FileState>,
    /// What shall stand there; `None` where nothing shall.
    pub after: Option<FileState>,
    /// Whose change this is.
    pub agent: Option<AgentId>,
    /// The revision that it was proposed with.
    pub proposal: Option<Revision>,
    /// What became of it.
    pub outcome: Outcome,
    /// The entry that took this step back.
    pub undone: Option<JournalId>,
    /// Whatever else the caller wants to find again.
    pub extra: Map<String, Value>,
}

impl Step {
    /// A step on its own, to be carried out.
    pub fn new(path: RepoPath, before: Option<FileState>, after: Option<FileState>) -> Self {
        Step {
            path,
            group: 0,
            before,
            after,
            agent: None,
            proposal: None,
            outcome: Outcome::Pending,
            undone: None,
            extra: Map::new(),
        }
    }
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Changes of agents, written into the working tree.
    Accept,
    /// Another entry, taken back; of an undo, this is the redo.
    Undo {
        /// The entry that is taken back.
        of: JournalId,
    },
}

/// How far an entry got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Begun and not ended: under way, or interrupted.
    Open,
    /// Ended; each step says what became of it.
    Done,
    /// Taken back as a whole.
    RolledBack,
}

/// A folder that an entry makes, or may remove when it has emptied it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    /// Its path.
    pub path: BString,
    /// Whether it was there when the entry began.
    pub existed: bool,
    /// Its permission bits, where they are known.
    pub permissions: Option<u32>,
    /// Whether it goes away once it is empty.
    pub prune: bool,
}

/// One accept or one undo.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Its number.
    pub id: JournalId,
    /// The commit that holds this state of it.
    pub commit: ObjectId,
    /// What it is.
    pub kind: Kind,
    /// How far it got.
    pub state: State,
    /// The linked worktree that it was made in; `None` for the main one.
    pub worktree: Option<BString>,
    /// When it was begun, in seconds since 1970.
    pub time: i64,
    /// What it does.
    pub steps: Vec<Step>,
    /// The folders that it makes or may remove.
    pub folders: Vec<Folder>,
    /// Keys that a later version wrote, or the caller.
    pub extra: Map<String, Value>,
}

impl Entry {
    /// Whether all that it wrote has been taken back (and it wrote something).
    pub fn is_undone(&self) -> bool {
        let mut written = self.written().peekable();
        written.peek().is_some() && written.all(|step| step.undone.is_some())
    }

    /// The steps whose result the disk held when the entry ended.
    pub fn written(&self) -> impl Iterator<Item = &Step> {
        self.steps
            .iter()
            .filter(|step| step.outcome == Outcome::Written)
    }

    /// The steps whose result the disk held already.
    pub fn identical(&self) -> impl Iterator<Item = &Step> {
        self.steps
            .iter()
            .filter(|step| step.outcome == Outcome::Identical)
    }
}
