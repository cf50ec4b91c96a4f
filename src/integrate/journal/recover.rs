//! Interrupted entries, ended or taken back.

use bstr::BString;

use super::entry::Entry;
use super::store::Decide;
use super::{Journal, Result};

/// What became of an interrupted entry.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The entry, ended: `Done` or `RolledBack`, each step with its outcome.
    pub entry: Entry,
    /// Files that were left beside a path and hold bytes of the user's that stand nowhere else.
    pub kept: Vec<BString>,
}

impl Journal<'_> {
    /// Ends an interrupted entry: finished where every step of a group is on disk, else taken back,
    /// group by group, where the disk still holds exactly what was written.
    ///
    /// # Errors
    /// Failures of Git, and whatever `decide` returns. The entry is open then, to be tried again.
    pub fn recover(&self, entry: &Entry, decide: Decide<'_>) -> Result<Recovered> {
        let _ = (entry, decide);
        todo!("next commit")
    }

    /// Takes an open entry back as a whole.
    ///
    /// # Errors
    /// As [`Journal::recover`].
    pub fn roll_back(&self, entry: &Entry, decide: Decide<'_>) -> Result<Recovered> {
        let _ = (entry, decide);
        todo!("next commit")
    }
}
