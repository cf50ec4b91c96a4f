//! Undo and redo: an entry's steps turned round, all or nothing.
//!
//! An undo is an entry of its own, so it survives a crash as an accept does, and the undo of an undo is
//! the redo. Every path is checked before anything is written: its bytes, mode and type must be what the
//! entry wrote. Without a number the newest accept (or redo) that is not undone is meant, never an
//! undo, so that `undo` given twice does not bring back what the first has taken away.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use serde_json::Map;

use crate::git::Staging;
use crate::integrate::journal::{
    self, Decide, Draft, Entry, Error, FileState, Hooks, Journal, JournalId, Kind, Outcome,
    Resolution, Result, State, Step, go_on,
};
use crate::integrate::{decide, select::covers};
use crate::model::{Refusal, RepoPath, sanitize_terminal};
use crate::workspace::{self, Store};

/// What was taken back.
#[derive(Clone, Debug)]
pub struct Undone {
    /// The new entry, ended. Its steps name agent, proposal and path of each change.
    pub entry: Entry,
    /// The entry that was taken back.
    pub of: JournalId,
    /// Whether changes of agents stand in the working tree again: an undo of an undo.
    pub redo: bool,
    /// Files beside a path that hold bytes of the user's that stand nowhere else.
    pub kept: Vec<BString>,
    /// Earlier entries that had been interrupted and were ended first.
    pub recovered: Vec<journal::Recovered>,
}

/// Takes an entry back: `id`, or the newest accept (or redo) of this working tree that is not undone
/// yet; of it the given paths (a folder stands for all below it), or all that is not undone yet.
///
/// The caller holds the journal's lock and has recovered what was interrupted.
///
/// # Errors
/// The refusals `already_decided`, `workspace_changed` (naming the path) and `moved` (an entry of another
/// working tree): nothing is changed then. [`Error::NoEntry`], [`Error::NothingToUndo`].
pub fn undo(
    journal: &Journal<'_>,
    id: Option<JournalId>,
    paths: &[RepoPath],
    decide: Decide<'_>,
) -> Result<Undone> {
    undo_with(journal, id, paths, decide, &mut go_on)
}

/// As [`undo`], passing `probe` at every point where a kill could strike.
///
/// # Errors
/// As [`undo`].
pub fn undo_with(
    journal: &Journal<'_>,
    id: Option<JournalId>,
    paths: &[RepoPath],
    decide: Decide<'_>,
    probe: crate::disk::Probe<'_>,
) -> Result<Undone> {
    let known = Known::read(journal.store())?;
    let original = known.pick(journal, id)?;
    let chosen = choose(original, paths)?;
    known.check_later(journal, original, &chosen)?;
    check_disk(journal, original, &chosen)?;
    let draft = Draft {
        kind: Kind::Undo { of: original.id },
        steps: turned_round(journal, &chosen),
        extra: Map::new(),
    };
    let redo = !known.brings_in(original.id);
    let staging = Staging::new(journal.store().repository())?;
    let mut entry = journal.begin_after(draft, staging, Some(original))?;
    let mut changed =
        |_: &Step, _: Option<&journal::OnDisk>| Ok(Resolution::Refuse(Refusal::WorkspaceChanged));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: probe,
    };
    let kept = journal.apply(&mut entry, &mut hooks)?;
    let stopped = entry.steps.iter().find_map(|step| match &step.outcome {
        Outcome::Refused(kind) => Some((*kind, step, "it changed meanwhile".to_owned())),
        Outcome::Failed(why) => Some((Refusal::Unreadable, step, why.clone())),
        _ => None,
    });
    if let Some((kind, step, why)) = stopped {
        let error = refused_path(kind, &step.path, &format!("cannot be restored: {why}"));
        journal.give_up(&mut entry)?;
        return Err(error);
    }
    journal.finish(&mut entry, decide)?;
    Ok(Undone {
        of: original.id,
        entry,
        redo,
        kept,
        recovered: Vec::new(),
    })
}

/// The entries that can be read.
struct Known(BTreeMap<JournalId, Entry>);

impl Known {
    fn read(store: Store<'_>) -> Result<Self> {
        let all = journal::list(store)?;
        let readable = all.into_iter().filter_map(|summary| {
            let entry = summary.entry.ok()?;
            Some((summary.id, entry))
        });
        Ok(Known(readable.collect()))
    }

    /// Whether an entry brings changes of agents in (an accept, a redo) rather than taking them back.
    fn brings_in(&self, id: JournalId) -> bool {
        let mut at = id;
        let mut brings_in = true;
        // An undo is younger than what it undoes, so this ends.
        while let Some(Entry {
            kind: Kind::Undo { of },
            ..
        }) = self.0.get(&at)
            && *of < at
        {
            brings_in = !brings_in;
            at = *of;
        }
        brings_in
    }

    fn pick(&self, journal: &Journal<'_>, id: Option<JournalId>) -> Result<&Entry> {
        if let Some(id) = id {
            let Some(entry) = self.0.get(&id) else {
                // Damaged and missing are told apart.
                journal::load(journal.store(), id)?;
                return Err(Error::NoEntry { id });
            };
            if entry.worktree.as_ref() != journal.worktree() {
                let what = format!("journal entry {id} was made in another working tree");
                return Err(Error::refused(Refusal::Moved, what));
            }
            if entry.written().next().is_none() || entry.state != State::Done {
                let what = format!("journal entry {id} has written nothing that could be undone");
                return Err(Error::refused(Refusal::AlreadyDecided, what));
            }
            if entry.is_undone() {
                return Err(undone_already(entry));
            }
            return Ok(entry);
        }
        let here = |entry: &&Entry| {
            entry.worktree.as_ref() == journal.worktree()
                && entry.state == State::Done
                && entry.written().next().is_some()
                && self.brings_in(entry.id)
        };
        let mut newest_first = self.0.values().rev().filter(here).peekable();
        let newest = newest_first.peek().copied();
        match (newest_first.find(|entry| !entry.is_undone()), newest) {
            (Some(entry), _) => Ok(entry),
            (None, Some(newest)) => Err(undone_already(newest)),
            (None, None) => Err(Error::NothingToUndo),
        }
    }

    /// Refuses where a later entry that stands has written one of the paths: it comes first.
    fn check_later(&self, journal: &Journal<'_>, of: &Entry, chosen: &[&Step]) -> Result<()> {
        for later in self.0.values().filter(|entry| entry.id > of.id) {
            let stands = later.state == State::Done
                && later.worktree.as_ref() == journal.worktree()
                && self.brings_in(later.id);
            if !stands {
                continue;
            }
            let mut written = later.written().filter(|step| step.undone.is_none());
            if let Some(step) = written.find(|step| chosen.iter().any(|c| c.path == step.path)) {
                let why = format!(
                    "was written again by journal entry {}: undo that first",
                    later.id
                );
                return Err(refused_path(Refusal::WorkspaceChanged, &step.path, &why));
            }
        }
        Ok(())
    }
}

fn undone_already(entry: &Entry) -> Error {
    let by = entry.written().filter_map(|step| step.undone).max();
    let by = by.map_or_else(String::new, |by| format!(" by entry {by}"));
    let what = format!("journal entry {} was undone already{by}", entry.id);
    Error::refused(Refusal::AlreadyDecided, what)
}

fn refused_path(kind: Refusal, path: &RepoPath, what: &str) -> Error {
    Error::Refused {
        kind,
        what: format!("'{}' {what}", sanitize_terminal(path.as_bstr())),
        path: Some(path.as_bstr().to_owned()),
    }
}

/// The steps of an entry that are meant.
fn choose<'e>(entry: &'e Entry, paths: &[RepoPath]) -> Result<Vec<&'e Step>> {
    let meant = |step: &Step, path: &RepoPath| {
        let mut changes = decide::of_step(step).into_iter();
        step.path == *path
            || step.path.starts_with_dir(path.as_bstr())
            // A change of a file that the user had moved goes by its own path, too.
            || changes.any(|(_, _, of)| covers(path.as_bstr(), of.as_bstr()))
    };
    for path in paths {
        let mut of_path = entry.written().filter(|step| meant(step, path)).peekable();
        if of_path.peek().is_none() {
            return Err(Error::Workspace(workspace::Error::NoPath {
                path: path.as_bstr().to_owned(),
                place: format!("journal entry {}", entry.id),
            }));
        }
        if of_path.all(|step| step.undone.is_some()) {
            let what = format!("was taken back from journal entry {} already", entry.id);
            return Err(refused_path(Refusal::AlreadyDecided, path, &what));
        }
    }
    let open = entry.written().filter(|step| step.undone.is_none());
    let chosen = open.filter(|step| paths.is_empty() || paths.iter().any(|path| meant(step, path)));
    Ok(chosen.collect())
}

/// Refuses, before anything is written, where a path does not hold what the entry wrote.
fn check_disk(journal: &Journal<'_>, of: &Entry, chosen: &[&Step]) -> Result<()> {
    for step in chosen {
        if !journal.holds(&step.path, step.after.as_ref())? {
            let what = format!("has changed since journal entry {}", of.id);
            return Err(refused_path(Refusal::WorkspaceChanged, &step.path, &what));
        }
    }
    Ok(())
}

/// The way back: one group, so that it lands as a whole.
fn turned_round(journal: &Journal<'_>, chosen: &[&Step]) -> Vec<Step> {
    let turned = chosen.iter().map(|step| {
        let now = journal.permissions(&step.path);
        // The bits go back only where they are still the ones that were written.
        let same = step.after.is_none_or(|after| after.permissions == now);
        let back = step.before.map(|before| FileState {
            permissions: before.permissions.filter(|_| same),
            ..before
        });
        let from = step.after.map(|after| FileState {
            permissions: now,
            ..after
        });
        let mut turned = Step::new(step.path.clone(), from, back);
        turned.agent.clone_from(&step.agent);
        turned.proposal = step.proposal;
        turned.extra.clone_from(&step.extra);
        turned
    });
    turned.collect()
}
