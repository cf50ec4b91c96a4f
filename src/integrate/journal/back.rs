//! One step on its way back, and what is left beside its path after a stop.
//!
//! All of this works from the disk and the entry alone, so that recovery can use it.

use bstr::{BString, ByteSlice};

use super::entry::{Entry, FileState, Outcome, Step};
use super::{Error, Journal, Result};
use crate::disk::{Content, Fault, Probe, Seal, Spot, Swap};
use crate::model::sanitize_terminal;

/// How often a step is taken back anew because its path keeps changing.
const BACK: u32 = 3;

impl Journal<'_> {
    /// Takes a step back where the disk still holds exactly what it wrote. Works from the disk and the
    /// entry alone, so recovery uses it too.
    pub(super) fn take_back(
        &self,
        entry: &Entry,
        index: usize,
        kept: &mut Vec<BString>,
        probe: Probe<'_>,
    ) -> Result<Outcome> {
        let step = &entry.steps[index];
        let tag = Self::tag(entry, index);
        let path = step.path.as_bstr();
        let spot = Spot { path, tag: &tag };
        for _ in 0..=BACK {
            if self.disk().state(path).is_err() {
                // Perhaps the folder that this entry made where a file was.
                self.prune_below(entry, path);
            }
            if self.sweep(entry, index, kept)? {
                return Ok(Outcome::RolledBack);
            }
            let found = match self.disk().state(path) {
                Ok(found) => found,
                Err(obstacle) => {
                    self.drop_held(spot)?;
                    let nothing_of_ours = step.before.is_none() && obstacle.is_no_file();
                    return Ok(match nothing_of_ours {
                        true => Outcome::RolledBack,
                        false => Outcome::Overtaken,
                    });
                }
            };
            if self.is(found.as_ref(), step.before.as_ref())? {
                self.drop_held(spot)?;
                return Ok(Outcome::RolledBack);
            }
            if !self.is(found.as_ref(), step.after.as_ref())? {
                self.drop_held(spot)?;
                return Ok(Outcome::Overtaken);
            }
            let wrote = found.as_ref().map(Content::seal);
            let back = match &step.before {
                None => None,
                Some(before) => {
                    let seal = self.before_beside(entry, index, before, found.as_ref())?;
                    Some(seal.map_err(|fault| self.broken(fault, step))?)
                }
            };
            let swapped = self.swap(entry, index, wrote.as_ref(), back.as_ref(), &mut *probe);
            match swapped.map_err(|fault| self.broken(fault, step))? {
                Swap::Done => {}
                Swap::Changed => continue,
                Swap::Kept(name) => {
                    kept.push(name);
                    continue;
                }
            }
            self.disk().flush_folder(path);
            let settled = self
                .disk()
                .settle(spot, wrote.as_ref(), back.as_ref(), &mut *probe);
            match settled.map_err(|fault| self.broken(fault, step))? {
                Swap::Done => return Ok(Outcome::RolledBack),
                Swap::Changed => {}
                Swap::Kept(name) => kept.push(name),
            }
        }
        Ok(Outcome::Overtaken)
    }

    /// The pre-image beside its path: the very file where the swap still holds it (this needs no room on
    /// the disk and keeps its links and attributes), else a new one from the journal.
    fn before_beside(
        &self,
        entry: &Entry,
        index: usize,
        before: &FileState,
        found: Option<&Content>,
    ) -> Result<Result<Seal, Fault>> {
        let tag = Self::tag(entry, index);
        let path = entry.steps[index].path.as_bstr();
        let spot = Spot { path, tag: &tag };
        if let Ok(Some(held)) = self.disk().held(spot)
            && self.is(Some(&held), Some(before))?
        {
            return Ok(self.disk().reuse_held(spot).map(|()| held.seal()));
        }
        self.drop_held(spot)?;
        self.put_beside(entry, index, before, found, true)
    }

    /// Clears up beside a path: what is ours goes, except a pre-image that a way back can use; bytes
    /// of the user's go back in place, or to a name of their own. Whether the path holds the user's
    /// bytes again.
    pub(super) fn sweep(
        &self,
        entry: &Entry,
        index: usize,
        kept: &mut Vec<BString>,
    ) -> Result<bool> {
        let step = &entry.steps[index];
        let tag = Self::tag(entry, index);
        let path = step.path.as_bstr();
        let spot = Spot { path, tag: &tag };
        let broken = |fault| self.broken(fault, step);
        self.disk().discard(spot);
        let held = match self.disk().held(spot) {
            Ok(None) => return Ok(false),
            Ok(held) => held,
            Err(_) if self.disk().state(path).is_err() => return Ok(false),
            Err(_) => None,
        };
        let known = held.is_some()
            && (self.is(held.as_ref(), step.before.as_ref())?
                || self.is(held.as_ref(), step.after.as_ref())?);
        if known {
            return Ok(false);
        }
        if let Ok(found) = self.disk().state(path)
            && self.is(found.as_ref(), step.after.as_ref())?
        {
            let ours = found.as_ref().map(Content::seal);
            return match self
                .disk()
                .bring_back(spot, ours.as_ref())
                .map_err(broken)?
            {
                Swap::Kept(name) => {
                    kept.push(name);
                    Ok(false)
                }
                _ => Ok(true),
            };
        }
        kept.push(self.disk().keep_held(spot).map_err(broken)?);
        Ok(false)
    }

    /// Removes what lies beside a path: known to the journal.
    pub(super) fn drop_held(&self, spot: Spot<'_>) -> Result<()> {
        self.disk().drop_held(spot).map_err(|fault| match fault {
            Fault::Failed { action, source } => Error::File {
                action,
                path: spot.path.to_owned(),
                source,
            },
            _ => Error::Stopped,
        })
    }

    fn broken(&self, fault: Fault, step: &Step) -> Error {
        let path = step.path.as_bstr().to_owned();
        match fault {
            Fault::Stopped => Error::Stopped,
            Fault::Failed { action, source } => Error::File {
                action,
                path,
                source,
            },
            Fault::Obstacle(obstacle) => Error::Refused {
                kind: obstacle.refusal(),
                what: format!(
                    "something is in the way of '{}'",
                    sanitize_terminal(path.as_bstr())
                ),
                path: Some(path),
            },
        }
    }
}
