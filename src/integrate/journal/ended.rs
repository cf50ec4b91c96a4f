//! Which entries are known to have ended, so that who looks for interrupted ones need not read them all.
//!
//! An entry that has ended stays ended. The note in `<relo>/journal.ended` says up to which number all have,
//! apart from those it names, and the commit of the entry with that number, by which it is known whether
//! the journal is still the one it speaks of. It is a convenience: without it, or with one that makes no
//! sense, every entry is read.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::JournalId;
use crate::git::{ObjectId, Repository};

/// So many more entries must have ended for the note to be written anew.
const STRIDE: usize = 16;

/// What is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    /// The last entry that was looked at.
    last: Option<JournalId>,
    /// Those up to it that had not ended, or could not be read.
    open: BTreeSet<JournalId>,
}

/// The note as it is written.
#[derive(Serialize, Deserialize)]
struct Note {
    up_to: u64,
    commit: String,
    open: Vec<u64>,
}

impl Ended {
    /// Reads the note; `commit_of` says where an entry stands now.
    pub(super) fn read(
        repository: &Repository,
        commit_of: impl FnOnce(JournalId) -> Option<ObjectId>,
    ) -> Self {
        let read = || {
            let note: Note =
                serde_json::from_slice(&std::fs::read(place(repository)).ok()?).ok()?;
            let last = JournalId::new(note.up_to)?;
            let open = note.open.into_iter().map(JournalId::new);
            let known = Ended {
                last: Some(last),
                open: open.collect::<Option<_>>()?,
            };
            (commit_of(last)?.to_string() == note.commit).then_some(known)
        };
        read().unwrap_or_default()
    }

    /// Whether an entry need not be read.
    pub(super) fn has(&self, id: JournalId) -> bool {
        self.last.is_some_and(|last| id <= last) && !self.open.contains(&id)
    }

    /// Notes what a look at all other entries has shown, if it is enough to be worth it. A note that cannot
    /// be written is not needed.
    pub(super) fn note(
        &self,
        repository: &Repository,
        read: usize,
        (last, commit): (JournalId, ObjectId),
        open: &BTreeSet<JournalId>,
    ) {
        if read < STRIDE + self.open.len() {
            return;
        }
        let note = Note {
            up_to: last.get(),
            commit: commit.to_string(),
            open: open.iter().map(|id| id.get()).collect(),
        };
        let write = || {
            let mut file = tempfile::NamedTempFile::new_in(repository.relo_dir()).ok()?;
            serde_json::to_writer(&mut file, &note).ok()?;
            file.flush().ok()?;
            file.persist(place(repository)).ok()
        };
        let _ = write();
    }
}

fn place(repository: &Repository) -> PathBuf {
    repository.relo_dir().join("journal.ended")
}
