//! From a plan to the steps of a journal entry, and back to outcomes.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};
use serde_json::{Value, json};

use super::{Outcome, Plan, Role};
use crate::git::tree::GITLINK;
use crate::git::{ObjectKind, Staging};
use crate::integrate::Result;
use crate::integrate::journal::{FileState, OnDisk, Resolution, Step};
use crate::integrate::plan::{Content, Settled, Sides, Verdict};
use crate::integrate::select::Sets;
use crate::integrate::view::There;
use crate::model::{Refusal, RepoPath, json_path};
use crate::workspace;

impl Plan<'_> {
    /// Refuses everything where anything is refused: `other`, or a change of the plan.
    pub(in crate::integrate) fn all_or_nothing(&mut self, other: Option<&Outcome>) {
        let mut refused = self.items.iter().map(|item| &item.outcome);
        let culprit = other.or_else(|| refused.find(|outcome| !outcome.verdict.is_done()));
        let Some(culprit) = culprit.cloned() else {
            return;
        };
        for item in &mut self.items {
            if item.outcome.verdict.is_done() {
                item.outcome.verdict = culprit.verdict.clone();
                item.outcome.result = None;
                item.outcome.because = Some(culprit.path.clone());
            }
        }
        self.done.clear();
    }

    /// The groups of the units, by unit: units that share a path land together or not at all.
    fn groups(&self, atomic: bool) -> Vec<u32> {
        let mut sets = Sets::new(self.units);
        for items in self.done.values() {
            for item in items {
                sets.join(self.items[items[0]].unit, self.items[*item].unit);
            }
        }
        (0..self.units)
            .map(|unit| if atomic { 0 } else { sets.find(unit) as u32 })
            .collect()
    }

    /// The steps that carry the plan out, their contents staged. Within a group what goes comes
    /// first, so that a folder can take a file's place, and the deepest first.
    pub(in crate::integrate) fn steps(
        &self,
        staging: &mut Staging<'_>,
        atomic: bool,
    ) -> Result<Vec<Step>> {
        let groups = self.groups(atomic);
        let mut steps = Vec::new();
        let mut ranks: HashMap<BString, usize> = HashMap::new();
        for (path, items) in &self.done {
            let Some(seen) = self.view.seen(path.as_bstr()) else {
                continue;
            };
            let There::Version(now) = &seen.now else {
                continue;
            };
            let after = match now {
                Some(content) if content.mode == GITLINK => continue,
                Some(content) => Some(self.view.smudged(path.as_bstr(), content)?),
                None => None,
            };
            if after == seen.disk {
                continue;
            }
            let mut state = |version: &Option<OnDisk>| -> Result<Option<FileState>> {
                let Some(version) = version else {
                    return Ok(None);
                };
                let id = staging.add(ObjectKind::Blob, &version.bytes)?;
                Ok(Some(FileState::new(version.mode, id)))
            };
            let (mut before, after) = (state(&seen.disk)?, state(&after)?);
            if let Some(before) = &mut before {
                before.permissions = seen.permissions;
            }
            let at = RepoPath::from_tree(path).map_err(workspace::Error::from)?;
            let mut step = Step::new(at, before, after);
            let last = &self.items[items[items.len() - 1]].outcome;
            step.group = groups[self.items[items[0]].unit];
            step.agent = Some(last.agent.clone());
            step.proposal = Some(last.revision);
            let all = items.iter().map(|item| &self.items[*item].outcome);
            if items.len() > 1 || all.clone().any(|outcome| outcome.path != *path) {
                let all: Vec<_> = all
                    .map(|outcome| of_change(outcome, path.as_bstr()))
                    .collect();
                step.extra.insert("changes".to_owned(), all.into());
            }
            ranks.insert(path.clone(), self.items[items[0]].rank);
            steps.push(step);
        }
        steps.sort_by(|a, b| {
            // What comes is written after what it was built on.
            let key = |step: &Step| {
                let comes = step.after.is_some();
                let rank = ranks.get(step.path.as_bstr()).filter(|_| comes);
                (step.group, comes, rank.copied())
            };
            let by_path = if a.after.is_some() {
                a.path.cmp(&b.path)
            } else {
                b.path.cmp(&a.path)
            };
            key(a).cmp(&key(b)).then(by_path)
        });
        Ok(steps)
    }

    /// The file changed since the plan: the same changes, planned on what stands there now.
    pub(in crate::integrate) fn again(
        &mut self,
        path: &BStr,
        disk: Option<&OnDisk>,
    ) -> Result<Resolution> {
        let items = self.done.get(path).cloned().unwrap_or_default();
        let mut now: Option<Option<Content>> = None;
        for at in items {
            let item = &self.items[at];
            if item.role == Role::Rename {
                // What is at the new path was merged from what was at the old one.
                return Ok(Resolution::Refuse(Refusal::WorkspaceChanged));
            }
            if item.outcome.into.is_some() && disk.is_none() {
                // The user has moved it on: the next plan finds where.
                return Ok(Resolution::Refuse(Refusal::WorkspaceChanged));
            }
            let who = (&item.outcome.agent, item.outcome.revision);
            let base = self.content(path, item.change.old)?;
            let theirs = self.content(path, item.change.new)?;
            let ours = match now {
                Some(now) => now,
                None => match disk {
                    Some(disk) => Some(self.view.cleaned(path, disk, base.as_ref())?),
                    None => None,
                },
            };
            let sides = Sides {
                base: base.as_ref(),
                ours: ours.as_ref(),
                theirs: theirs.as_ref(),
            };
            let Settled {
                verdict, result, ..
            } = self.settle(path, sides, who)?;
            if let Verdict::Refused(kind) = verdict {
                return Ok(Resolution::Refuse(kind));
            }
            let entry = match &result {
                Some(content) if self.names_results => Some(self.entry(content)?),
                _ => None,
            };
            self.items[at].outcome.verdict = verdict;
            self.items[at].outcome.result = entry;
            now = Some(result);
        }
        Ok(match now.flatten() {
            Some(content) => Resolution::Again(Some(self.view.smudged(path, &content)?)),
            None => Resolution::Again(None),
        })
    }

    /// The items that were done, with the group that each landed in.
    pub(in crate::integrate) fn landed(
        &mut self,
        atomic: bool,
    ) -> impl Iterator<Item = (u32, &mut Outcome)> {
        let groups = self.groups(atomic);
        self.items
            .iter_mut()
            .filter(|item| item.outcome.verdict.is_done())
            .map(move |item| (groups[item.unit], &mut item.outcome))
    }
}

/// What a step says of a change that it carries out: whose it is, its revision, and its path where the
/// step is about another one, to which the user has moved the file.
fn of_change(outcome: &Outcome, path: &BStr) -> Value {
    let (agent, revision) = (&outcome.agent, outcome.revision);
    match outcome.path == *path {
        true => json!([agent, revision]),
        false => json!([agent, revision, json_path(outcome.path.as_bstr())]),
    }
}
