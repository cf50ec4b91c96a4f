//! Interrupted entries, ended or taken back.

use bstr::BString;

use super::apply::{go_on, groups, is_dead};
use super::entry::{Entry, Outcome, State};
use super::store::Decide;
use super::{Journal, Result};
use crate::disk::{self, Probe, Spot};

/// What became of an interrupted entry.
#[derive(Clone, Debug)]
pub struct Recovered {
    /// The entry, ended: `Done` or `RolledBack`, each step with its outcome.
    pub entry: Entry,
    /// Files that were left beside a path and hold bytes of the user's that stand nowhere else.
    pub kept: Vec<BString>,
}

impl Journal<'_> {
    /// Ends an interrupted entry: a group whose steps all stand on disk is finished, any other is
    /// taken back where the disk still holds exactly what was written; nothing is written forward, so
    /// nothing is applied twice. The entry is `Done` if a group is finished, else `RolledBack`.
    ///
    /// A path that holds neither what the entry found nor what it wrote has been changed by somebody
    /// since: it is not touched, and its step is `Overtaken`.
    ///
    /// # Errors
    /// Failures of Git, and whatever `decide` returns. The entry is open then, to be tried again.
    pub fn recover(&self, entry: &Entry, decide: Decide<'_>) -> Result<Recovered> {
        self.end_interrupted(entry, true, decide, &mut go_on)
    }

    /// Takes an open entry back as a whole, as far as the disk still holds what it wrote.
    ///
    /// # Errors
    /// As [`Journal::recover`].
    pub fn roll_back(&self, entry: &Entry, decide: Decide<'_>) -> Result<Recovered> {
        self.end_interrupted(entry, false, decide, &mut go_on)
    }

    /// As [`Journal::recover`] (`forward`) or [`Journal::roll_back`], passing `probe` on the way.
    ///
    /// # Errors
    /// As [`Journal::recover`].
    pub fn end_interrupted(
        &self,
        entry: &Entry,
        forward: bool,
        decide: Decide<'_>,
        probe: Probe<'_>,
    ) -> Result<Recovered> {
        let mut entry = entry.clone();
        let mut kept = Vec::new();
        let mut landed = false;
        for group in groups(&entry) {
            if forward && self.stands(&mut entry, &group, &mut kept)? {
                landed = true;
                continue;
            }
            for index in group.iter().rev() {
                let back = self.take_back(&entry, *index, &mut kept, &mut *probe)?;
                let outcome = &mut entry.steps[*index].outcome;
                if !matches!(outcome, Outcome::Refused(_) | Outcome::Failed(_)) {
                    *outcome = back;
                }
            }
        }
        self.flush_folders(&entry);
        self.prune(&entry);
        let state = if landed {
            State::Done
        } else {
            State::RolledBack
        };
        self.end(&mut entry, state, decide)?;
        Ok(Recovered { entry, kept })
    }

    /// Whether all steps of a group stand on disk; then they are noted as written and what lies beside
    /// their paths is cleared up.
    fn stands(&self, entry: &mut Entry, group: &[usize], kept: &mut Vec<BString>) -> Result<bool> {
        let mut found = Vec::with_capacity(group.len());
        for index in group {
            // Bytes of the user's that a swap took out go back in first.
            self.sweep(entry, *index, kept)?;
            let step = &entry.steps[*index];
            if is_dead(&step.outcome) || !self.holds(&step.path, step.after.as_ref())? {
                return Ok(false);
            }
            found.push(self.permissions(&step.path));
        }
        for (index, permissions) in group.iter().zip(found) {
            let tag = Self::tag(entry, *index);
            let path = entry.steps[*index].path.as_bstr();
            self.drop_held(Spot { path, tag: &tag })?;
            let step = &mut entry.steps[*index];
            step.outcome = Outcome::Written;
            if let Some(after) = &mut step.after
                && after.mode != disk::LINK
            {
                after.permissions = permissions;
            }
        }
        Ok(true)
    }
}
