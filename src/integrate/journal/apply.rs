//! Carrying out the steps of an entry.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;

use bstr::BString;

use super::entry::{Entry, Outcome, Step};
use super::one::{At, Progress, Verdict};
use super::{Error, Journal, Result};
use crate::disk::{self, Fault, Point, Probe, Spot};
use crate::git::fault;
use crate::model::{Refusal, RepoPath};

/// What stands at a path, as the callback for a changed path sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// Git's mode: 100644, 100755 or 120000.
    pub mode: u32,
    /// The bytes as they are on disk (of a link: its target).
    pub bytes: Vec<u8>,
}

/// What to do about a path that changed since the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Write this instead (`None`: remove the path).
    Again(Option<OnDisk>),
    /// Leave the path as it is.
    Refuse(Refusal),
}

/// What [`Journal::apply`] asks on the way.
pub struct Hooks<'h> {
    /// A path changed since the plan: merge again? Given the step and what stands there now.
    /// Called at most three times for a step.
    pub changed: &'h mut dyn FnMut(&Step, Option<&OnDisk>) -> Result<Resolution>,
    /// Passed at every point where a kill could strike; `Break` stops the work as a kill would.
    /// Production code passes [`go_on`].
    pub at: &'h mut dyn FnMut(Point) -> ControlFlow<()>,
}

/// The [`Hooks::at`] of production code: each point is a fault point.
pub fn go_on(point: Point) -> ControlFlow<()> {
    fault::point(match point {
        Point::Staged => "step-staged",
        Point::Swapped => "step-swapped",
        Point::Checked => "step-checked",
        Point::Settled => "step-settled",
        Point::Ending => "steps-done",
    });
    ControlFlow::Continue(())
}

/// What is done to one step of an entry.
type Act<J> = fn(&J, &mut Entry, usize, &mut [Progress], &mut Hooks<'_>) -> Result<Verdict>;

/// Up to so many files are flushed each by itself; more, with all of the file system.
const FLUSH_EACH: usize = 16;

impl Journal<'_> {
    /// Carries out the steps of an open entry, group by group; within a group what is removed goes
    /// first. What became of each stands in [`Step::outcome`]; nothing is recorded before
    /// [`Journal::finish`].
    ///
    /// All new content is written and flushed beside the paths before the first path changes, so a
    /// full disk is found out while nothing has happened yet.
    ///
    /// # Errors
    /// Failures of Git, and whatever a hook returns. The entry is open then, and recovery ends it.
    /// A path that cannot be written is an outcome and no error.
    pub fn apply(&self, entry: &mut Entry, hooks: &mut Hooks<'_>) -> Result<Vec<BString>> {
        let groups = groups(entry);
        let mut all: Vec<Progress> = entry.steps.iter().map(|_| Progress::default()).collect();
        let mut kept = Vec::new();
        let each = entry.steps.len() <= FLUSH_EACH;
        for group in &groups {
            for index in group {
                let prepared = self.prepare(entry, *index, &mut all[*index], hooks, false)?;
                note(entry, *index, prepared);
                if is_dead(&entry.steps[*index].outcome) {
                    break;
                }
            }
        }
        fault::point("steps-prepared");
        let flushed = match each {
            true => self.flush_prepared(entry, &all, self.take_owed()),
            false => {
                let _ = disk::flush(&self.take_owed());
                self.disk().flush_all()
            }
        };
        if let Err(fault) = flushed {
            // Then each is flushed as it is swapped in: prepared anew.
            drop(fault);
            let prepared = all
                .iter_mut()
                .filter(|one| matches!(one.at, At::Ready { .. }));
            prepared.for_each(|progress| progress.at = At::Start);
        }
        self.each_group(entry, &groups, &mut all, (hooks, &mut kept), Self::forward)?;
        fault::point("steps-swapped");
        self.owe(self.changed_folders(entry));
        let swapped: Vec<_> = all.iter().enumerate().collect();
        self.rest(entry, &swapped);
        // The others have been taken back.
        let landed = groups.into_iter().filter(|group| !dead(entry, group));
        let landed: Vec<_> = landed.collect();
        self.each_group(entry, &landed, &mut all, (hooks, &mut kept), Self::let_go)?;
        self.prune(entry);
        for (progress, step) in all.into_iter().zip(&entry.steps) {
            let folder = step.path.parent();
            kept.extend(progress.kept.map(|name| beside(folder.as_ref(), name)));
        }
        if (hooks.at)(Point::Ending).is_break() {
            return Err(Error::Stopped);
        }
        Ok(kept)
    }

    /// Does the same to each step of each group; a group in which a step is dead, or dies of it, is
    /// taken back.
    fn each_group(
        &self,
        entry: &mut Entry,
        groups: &[Vec<usize>],
        all: &mut [Progress],
        (hooks, kept): (&mut Hooks<'_>, &mut Vec<BString>),
        act: Act<Self>,
    ) -> Result<()> {
        for group in groups {
            let mut lives = !dead(entry, group);
            for index in group {
                if lives && entry.steps[*index].outcome != Outcome::Identical {
                    let done = act(self, entry, *index, all, hooks)?;
                    note(entry, *index, done);
                    lives = !is_dead(&entry.steps[*index].outcome);
                }
            }
            if !lives {
                self.take_back_group(entry, group, all, (&mut *kept, &mut *hooks.at))?;
            }
        }
        Ok(())
    }

    /// Puts the new content of a step in place.
    fn forward(
        &self,
        entry: &mut Entry,
        index: usize,
        all: &mut [Progress],
        hooks: &mut Hooks<'_>,
    ) -> Result<Verdict> {
        if matches!(all[index].at, At::Waiting) {
            self.clear_the_way(entry, index, all, hooks)?;
        }
        self.carry_out(entry, index, &mut all[index], hooks)
    }

    /// Lets the old content of a step go: the new one is on disk, and the old one in the journal.
    fn let_go(
        &self,
        entry: &mut Entry,
        index: usize,
        all: &mut [Progress],
        hooks: &mut Hooks<'_>,
    ) -> Result<Verdict> {
        let settled = self.settle(entry, index, &mut all[index], hooks)?;
        let outcome = &mut entry.steps[index].outcome;
        if matches!(settled, Verdict::Fine) && *outcome == Outcome::Pending {
            *outcome = Outcome::Written;
        }
        Ok(settled)
    }

    /// Empties the folder at a step's path: what its group has removed from there lies beside its
    /// old path still, and goes (it is in the journal), then the folders.
    fn clear_the_way(
        &self,
        entry: &mut Entry,
        index: usize,
        all: &mut [Progress],
        hooks: &mut Hooks<'_>,
    ) -> Result<()> {
        let (path, group) = (entry.steps[index].path.clone(), entry.steps[index].group);
        for (other, progress) in all.iter_mut().enumerate() {
            let step = &entry.steps[other];
            if step.group == group && step.path.starts_with_dir(path.as_bstr()) {
                let settled = self.settle(entry, other, progress, hooks)?;
                note(entry, other, settled);
            }
        }
        self.prune_below(entry, path.as_bstr());
        Ok(())
    }

    /// Takes back all of a group; its refused or failed steps stay refused or failed.
    fn take_back_group(
        &self,
        entry: &mut Entry,
        group: &[usize],
        all: &[Progress],
        (kept, probe): (&mut Vec<BString>, Probe<'_>),
    ) -> Result<()> {
        for index in group.iter().rev() {
            let swapped = matches!(all[*index].at, At::Swapped { .. } | At::Over);
            let back = match &entry.steps[*index].outcome {
                Outcome::Identical => Outcome::RolledBack,
                Outcome::Pending | Outcome::Written if swapped => {
                    self.take_back(entry, *index, kept, &mut *probe)?
                }
                // Its path was never changed, or it is back as it was.
                other => {
                    let dead = is_dead(other).then(|| other.clone());
                    self.sweep(entry, *index, kept)?;
                    dead.unwrap_or(Outcome::RolledBack)
                }
            };
            entry.steps[*index].outcome = back;
        }
        Ok(())
    }

    /// Flushes what was prepared beside the paths, and what is owed.
    fn flush_prepared(
        &self,
        entry: &Entry,
        all: &[Progress],
        owed: Vec<OwnedFd>,
    ) -> std::result::Result<(), Fault> {
        let prepared = all.iter().enumerate().filter_map(|(index, progress)| {
            let there = matches!(&progress.at, At::Ready { ours: Some(_), .. });
            there.then(|| (entry.steps[index].path.as_bstr(), Self::tag(entry, index)))
        });
        let prepared: Vec<_> = prepared.collect();
        let spots: Vec<Spot<'_>> = prepared
            .iter()
            .map(|(path, tag)| Spot { path, tag })
            .collect();
        let changing = entry.steps.iter().map(|step| step.path.as_bstr());
        let volume = self.store.repository().volume();
        self.disk().flush_prepared(&spots, owed, (changing, volume))
    }

    /// Flushes each folder that the entry changed something in. A file system that cannot do so has
    /// no promise to keep here.
    pub(super) fn flush_folders(&self, entry: &Entry) {
        let _ = disk::flush(&self.changed_folders(entry));
    }

    fn changed_folders(&self, entry: &Entry) -> Vec<OwnedFd> {
        self.disk()
            .folders_of(entry.steps.iter().map(|step| step.path.as_bstr()))
    }
}

/// The steps by group, in the order in which the groups appear; what is removed comes first.
pub(super) fn groups(entry: &Entry) -> Vec<Vec<usize>> {
    let mut order: Vec<u32> = Vec::new();
    let mut members: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (index, step) in entry.steps.iter().enumerate() {
        let group = members.entry(step.group).or_insert_with(|| {
            order.push(step.group);
            Vec::new()
        });
        group.push(index);
    }
    let mut groups = Vec::with_capacity(order.len());
    for number in order {
        let mut group = members.remove(&number).unwrap_or_default();
        group.sort_by_key(|index| entry.steps[*index].after.is_some());
        groups.push(group);
    }
    groups
}

/// Whether a group cannot land any more.
fn dead(entry: &Entry, group: &[usize]) -> bool {
    group
        .iter()
        .any(|index| is_dead(&entry.steps[*index].outcome))
}

pub(super) fn is_dead(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Refused(_) | Outcome::Failed(_) | Outcome::RolledBack | Outcome::Overtaken
    )
}

fn note(entry: &mut Entry, index: usize, verdict: Verdict) {
    if let Verdict::Not(outcome) = verdict {
        entry.steps[index].outcome = outcome;
    }
}

/// The path of a file in the folder of a step.
fn beside(folder: Option<&RepoPath>, name: BString) -> BString {
    match folder {
        None => name,
        Some(folder) => {
            let mut path = folder.as_bstr().to_owned();
            path.push(b'/');
            path.extend_from_slice(&name);
            path
        }
    }
}
