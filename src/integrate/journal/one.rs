//! One step on its way forward: looked at, prepared, swapped in, settled.

use super::apply::{Hooks, OnDisk, Resolution};
use super::entry::{Entry, FileState, Outcome, Step};
use super::{Error, Journal, Result};
use crate::disk::{self, Content, Fault, New, Probe, Seal, Spot, Swap};
use crate::git::{ObjectKind, Staging, fault};
use crate::model::Refusal;

/// How often a step is merged again because its path changed since the plan.
const TRIES: u32 = 3;

/// How far a step got.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// How often it was merged again.
    pub(super) tries: u32,
    pub(super) at: At,
    /// A file beside the path that holds bytes of the user's that stand nowhere else.
    pub(super) kept: Option<bstr::BString>,
}

/// Where a step stands.
#[derive(Debug, Default)]
pub(super) enum At {
    /// Nothing done.
    #[default]
    Start,
    /// A file or folder that this group removes is in its way: to be looked at again then.
    Waiting,
    /// Its new content (`ours`; `None`: none) lies beside the path, where `old` stood.
    Ready {
        old: Option<Seal>,
        ours: Option<Seal>,
    },
    /// Its new content is in place.
    Swapped {
        old: Option<Seal>,
        ours: Option<Seal>,
    },
    /// The old content is gone, or there is nothing more to do.
    Over,
}

/// What is known of a step after an attempt.
pub(super) enum Verdict {
    /// It goes on.
    Fine,
    /// It will not be written, and why.
    Not(Outcome),
}

impl Journal<'_> {
    pub(super) fn tag(entry: &Entry, index: usize) -> String {
        format!("{}-{index}", entry.id)
    }

    /// Whether content on disk is a state of the journal's: type, execute bit and bytes.
    pub(super) fn is(&self, found: Option<&Content>, state: Option<&FileState>) -> Result<bool> {
        Ok(self.same(self.identify(found)?.as_ref(), state))
    }

    fn identify(&self, found: Option<&Content>) -> Result<Option<FileState>> {
        let Some(found) = found else { return Ok(None) };
        let id = self.store.repository().hash_blob(&found.bytes)?;
        Ok(Some(FileState::new(found.mode, id)))
    }

    /// Whether two states are the same, the execute bit as far as `core.fileMode` lets it count.
    fn same(&self, one: Option<&FileState>, other: Option<&FileState>) -> bool {
        let (Some(one), Some(other)) = (one, other) else {
            return one.is_none() && other.is_none();
        };
        let file = |mode: u32| mode != disk::LINK;
        let bit = !self.executable_bit && file(one.mode) && file(other.mode);
        one.id == other.id && (bit || one.mode == other.mode)
    }

    /// Looks at a step's path and writes the new content beside it; asks again for a merge where
    /// the path is not as planned.
    pub(super) fn prepare(
        &self,
        entry: &mut Entry,
        index: usize,
        progress: &mut Progress,
        hooks: &mut Hooks<'_>,
        flush: bool,
    ) -> Result<Verdict> {
        loop {
            let step = &entry.steps[index];
            let found = match self.disk().state(step.path.as_bstr()) {
                Ok(found) => found,
                Err(_) if step.before.is_none() && makes_way(entry, index) => {
                    progress.at = At::Waiting;
                    return Ok(Verdict::Fine);
                }
                Err(obstacle) => return Ok(Verdict::Not(Outcome::Refused(obstacle.refusal()))),
            };
            let now = self.identify(found.as_ref())?;
            if self.same(now.as_ref(), step.after.as_ref()) {
                progress.at = At::Over;
                return Ok(Verdict::Not(Outcome::Identical));
            }
            if self.same(now.as_ref(), step.before.as_ref()) {
                return self.write_beside(entry, index, found, progress, flush);
            }
            if let Some(refusal) = self.merge_again(entry, index, found, progress, hooks)? {
                return Ok(Verdict::Not(Outcome::Refused(refusal)));
            }
        }
    }

    /// Asks for another merge of a changed path, and makes it durable.
    fn merge_again(
        &self,
        entry: &mut Entry,
        index: usize,
        found: Option<Content>,
        progress: &mut Progress,
        hooks: &mut Hooks<'_>,
    ) -> Result<Option<Refusal>> {
        if progress.tries >= TRIES {
            return Ok(Some(Refusal::WorkspaceChanged));
        }
        progress.tries += 1;
        let permissions = found.as_ref().filter(|found| found.mode != disk::LINK);
        let permissions = permissions.map(|found| found.permissions);
        let found = found.map(|Content { mode, bytes, .. }| OnDisk { mode, bytes });
        let after = match (hooks.changed)(&entry.steps[index], found.as_ref())? {
            Resolution::Refuse(refusal) => return Ok(Some(refusal)),
            Resolution::Again(after) => after,
        };
        let mut staging = Staging::new(self.store.repository())?;
        let mut state = |content: Option<OnDisk>| -> Result<Option<FileState>> {
            let Some(OnDisk { mode, bytes }) = content else {
                return Ok(None);
            };
            let id = staging.add(ObjectKind::Blob, &bytes)?;
            Ok(Some(FileState::new(mode, id)))
        };
        let mut before = state(found)?;
        let after = state(after)?;
        if let Some(before) = &mut before {
            before.permissions = permissions;
        }
        let step = &mut entry.steps[index];
        (step.before, step.after) = (before, after);
        self.amend(entry, staging)?;
        Ok(None)
    }

    fn write_beside(
        &self,
        entry: &Entry,
        index: usize,
        found: Option<Content>,
        progress: &mut Progress,
        flush: bool,
    ) -> Result<Verdict> {
        let step = &entry.steps[index];
        let old = found.as_ref().map(Content::seal);
        let ours = match &step.after {
            None => None,
            Some(after) => {
                let written = self.put_beside(entry, index, after, found.as_ref(), flush);
                match verdict(written)? {
                    Ok(ours) => Some(ours),
                    // The way there is a file that this group removes first.
                    Err(_) if step.before.is_none() && makes_way(entry, index) => {
                        progress.at = At::Waiting;
                        return Ok(Verdict::Fine);
                    }
                    Err(outcome) => return Ok(Verdict::Not(outcome)),
                }
            }
        };
        progress.at = At::Ready { old, ours };
        Ok(Verdict::Fine)
    }

    /// Writes a state beside a path, with the permission bits that belong to it.
    pub(super) fn put_beside(
        &self,
        entry: &Entry,
        index: usize,
        state: &FileState,
        found: Option<&Content>,
        flush: bool,
    ) -> Result<Result<Seal, Fault>> {
        let step = &entry.steps[index];
        let tag = Self::tag(entry, index);
        let path = step.path.as_bstr();
        let spot = Spot { path, tag: &tag };
        // Where a file stands its folder does.
        if found.is_none()
            && let Err(fault) = self.make_folders(entry, path)
        {
            return Ok(Err(fault));
        }
        let bytes = self.bytes(path, state.id)?;
        fault::leaving("step-torn", || self.disk().tear(spot));
        let new = New {
            mode: state.mode,
            permissions: self.bits(step, state, found),
            bytes: &bytes,
        };
        Ok(self.disk().prepare(spot, new, flush))
    }

    /// The permission bits for `state`: those that it is known to have had, as long as the file there
    /// has the bits that this step found or wrote; else the bits of the file there, with the execute
    /// bit of `state`. So neither an accept nor an undo widens what the user has narrowed.
    fn bits(&self, step: &Step, state: &FileState, found: Option<&Content>) -> Option<u32> {
        let found = match found {
            Some(found) if found.mode != disk::LINK => found,
            _ => return state.permissions,
        };
        let other = match step.after.as_ref() {
            Some(after) if after == state => step.before.as_ref(),
            other => other,
        };
        let as_known = other.is_some_and(|other| {
            let wrote = other.permissions.or_else(|| {
                let kept = state.permissions?;
                Some(disk::with_execute_bit(kept, other.mode))
            });
            wrote == Some(found.permissions)
        });
        match state.permissions {
            Some(bits) if as_known => Some(bits),
            _ if self.executable_bit => Some(disk::with_execute_bit(found.permissions, state.mode)),
            _ => Some(found.permissions),
        }
    }

    /// Carries out a prepared step; asks for merges where its path keeps changing.
    pub(super) fn carry_out(
        &self,
        entry: &mut Entry,
        index: usize,
        progress: &mut Progress,
        hooks: &mut Hooks<'_>,
    ) -> Result<Verdict> {
        loop {
            let At::Ready { old, ours } = std::mem::take(&mut progress.at) else {
                match self.prepare(entry, index, progress, hooks, true)? {
                    Verdict::Fine if matches!(progress.at, At::Ready { .. }) => continue,
                    Verdict::Fine => return Ok(refused(Refusal::TypeChange)),
                    not @ Verdict::Not(_) => return Ok(not),
                }
            };
            let swapped = self.swap(entry, index, old.as_ref(), ours.as_ref(), hooks.at);
            match verdict(Ok(swapped))? {
                Ok(Swap::Done) => {
                    progress.at = At::Swapped { old, ours };
                    return Ok(Verdict::Fine);
                }
                Ok(Swap::Changed) => {}
                Ok(Swap::Kept(name)) => {
                    progress.kept = Some(name);
                    return Ok(refused(Refusal::WorkspaceChanged));
                }
                Err(outcome) => return Ok(Verdict::Not(outcome)),
            }
        }
    }

    pub(super) fn swap(
        &self,
        entry: &Entry,
        index: usize,
        old: Option<&Seal>,
        ours: Option<&Seal>,
        probe: Probe<'_>,
    ) -> Result<Swap, Fault> {
        let tag = Self::tag(entry, index);
        let path = entry.steps[index].path.as_bstr();
        let spot = Spot { path, tag: &tag };
        match (old, ours) {
            (_, Some(ours)) => self.disk().swap(spot, old, ours, probe),
            (Some(old), None) => self.disk().remove(spot, old, probe),
            (None, None) => Ok(Swap::Done),
        }
    }

    /// Leaves the old files alone for a moment where somebody may still be writing to one.
    pub(super) fn rest(&self, entry: &Entry, steps: &[(usize, &Progress)]) {
        let swapped = steps
            .iter()
            .filter_map(|(index, progress)| match &progress.at {
                At::Swapped { old: Some(old), .. } => Some((*index, Self::tag(entry, *index), old)),
                _ => None,
            });
        let swapped: Vec<_> = swapped.collect();
        let spots = swapped.iter().map(|(index, tag, old)| {
            let path = entry.steps[*index].path.as_bstr();
            (Spot { path, tag }, *old)
        });
        self.disk().rest(&spots.collect::<Vec<_>>());
    }

    /// Lets the old content of a step go. Where somebody wrote into it after the swap, it is back in
    /// place and the step is carried out again.
    pub(super) fn settle(
        &self,
        entry: &mut Entry,
        index: usize,
        progress: &mut Progress,
        hooks: &mut Hooks<'_>,
    ) -> Result<Verdict> {
        loop {
            let At::Swapped { old, ours } = &progress.at else {
                return Ok(Verdict::Fine);
            };
            let tag = Self::tag(entry, index);
            let path = entry.steps[index].path.as_bstr();
            let spot = Spot { path, tag: &tag };
            let settled = self
                .disk()
                .settle(spot, old.as_ref(), ours.as_ref(), hooks.at);
            match verdict(Ok(settled))? {
                Ok(Swap::Done) => {
                    let permissions = ours.as_ref().map(Seal::permissions);
                    if let Some(after) = &mut entry.steps[index].after
                        && after.mode != disk::LINK
                    {
                        after.permissions = permissions;
                    }
                    progress.at = At::Over;
                    return Ok(Verdict::Fine);
                }
                Ok(Swap::Changed) => {
                    progress.at = At::Start;
                    match self.carry_out(entry, index, progress, hooks)? {
                        Verdict::Fine => {
                            let path = entry.steps[index].path.as_bstr();
                            self.disk().flush_folder(path);
                            self.rest(entry, &[(index, &*progress)]);
                        }
                        not @ Verdict::Not(_) => return Ok(not),
                    }
                }
                Ok(Swap::Kept(name)) => {
                    progress.kept = Some(name);
                    return Ok(refused(Refusal::WorkspaceChanged));
                }
                Err(outcome) => return Ok(Verdict::Not(outcome)),
            }
        }
    }
}

/// Whether a step's group removes a file on the way to its path, or what lies below it.
pub(super) fn makes_way(entry: &Entry, index: usize) -> bool {
    let step = &entry.steps[index];
    entry.steps.iter().any(|other| {
        other.group == step.group
            && other.after.is_none()
            && (step.path.starts_with_dir(other.path.as_bstr())
                || other.path.starts_with_dir(step.path.as_bstr()))
    })
}

fn refused(kind: Refusal) -> Verdict {
    Verdict::Not(Outcome::Refused(kind))
}

/// Turns what the disk says into an outcome; only a stop is an error.
fn verdict<T>(result: Result<Result<T, Fault>>) -> Result<Result<T, Outcome>> {
    match result? {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Stopped) => Err(Error::Stopped),
        Err(Fault::Obstacle(obstacle)) => Ok(Err(Outcome::Refused(obstacle.refusal()))),
        Err(Fault::Failed { action, source }) => Ok(Err(Outcome::Failed(format!(
            "cannot {action} it: {source}"
        )))),
    }
}
