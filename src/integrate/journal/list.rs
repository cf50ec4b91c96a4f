//! Entries read back.

use std::collections::BTreeSet;

use super::ended::Ended;
use super::entry::{Entry, JournalId, Kind, State};
use super::store::{id_of_ref, worktree_name};
use super::{Error, Result, form};
use crate::git::{self, ObjectId, ObjectKind, tree};
use crate::workspace::{Store, names};
use bstr::ByteSlice;

/// One entry as a list shows it.
#[derive(Debug)]
pub struct Summary {
    /// Its number.
    pub id: JournalId,
    /// The entry, or why it cannot be read.
    pub entry: Result<Entry>,
    /// Whether it was made in this working tree; `false` where it cannot be read.
    pub here: bool,
}

/// All entries, the newest first; damaged ones are listed as such.
///
/// # Errors
/// When the refs cannot be listed.
pub fn list(store: Store<'_>) -> Result<Vec<Summary>> {
    let here = worktree_name(store);
    let refs = store.repository().refs().list(names::JOURNAL)?;
    let mut found: Vec<Summary> = refs
        .iter()
        .filter_map(|(name, commit)| {
            let id = id_of_ref(name)?;
            let entry = read(store, id, *commit);
            let here = entry.as_ref().is_ok_and(|entry| entry.worktree == here);
            Some(Summary { id, entry, here })
        })
        .collect();
    found.sort_by_key(|summary| std::cmp::Reverse(summary.id));
    Ok(found)
}

/// The entry with a number.
///
/// # Errors
/// [`Error::NoEntry`], or [`Error::Damaged`].
pub fn load(store: Store<'_>, id: JournalId) -> Result<Entry> {
    let name = names::journal(&id.to_string());
    match store.repository().refs().find(&name) {
        Ok(Some(commit)) => read(store, id, commit),
        Ok(None) => Err(Error::NoEntry { id }),
        Err(git::Error::Ref { why, .. }) => Err(Error::Damaged { id, why }),
        Err(error) => Err(error.into()),
    }
}

/// The entries of this working tree that were begun and not ended, the oldest first: one under way
/// in another process, or interrupted ones. Who holds the lock ([`super::Journal::lock`]) sees
/// interrupted ones only.
///
/// # Errors
/// As [`list`]. A damaged entry is left out: nothing can be done about it here, and [`list`] shows it.
pub fn interrupted(store: Store<'_>) -> Result<Vec<Entry>> {
    let (repository, here) = (store.repository(), worktree_name(store));
    let refs = repository.refs();
    let commit_of = |id: JournalId| refs.find(&names::journal(&id.to_string())).ok().flatten();
    let ended = Ended::read(repository, commit_of);
    let (mut found, mut open, mut last, mut count) = (Vec::new(), BTreeSet::new(), None, 0);
    for id in ids(store)? {
        let known = ended.has(id);
        count += usize::from(!known);
        let entry = match known {
            true => continue,
            false => load(store, id),
        };
        last = entry.as_ref().ok().map(|entry| (id, entry.commit));
        match entry {
            Ok(entry) if entry.state != State::Open => {}
            Ok(entry) if entry.worktree == here => {
                open.insert(id);
                found.push(entry);
            }
            // One of another working tree; or one that cannot be read, and perhaps can another time.
            Ok(_) | Err(Error::Damaged { .. } | Error::NoEntry { .. }) => drop(open.insert(id)),
            Err(error) => return Err(error),
        }
    }
    if let Some(last) = last {
        ended.note(repository, count, last, &open);
    }
    Ok(found)
}

/// The numbers of all entries, in order.
///
/// # Errors
/// When the refs cannot be listed.
pub(super) fn ids(store: Store<'_>) -> Result<BTreeSet<JournalId>> {
    let names = store.repository().refs().names_in(names::JOURNAL)?;
    Ok(names.iter().filter_map(|name| name.parse().ok()).collect())
}

fn read(store: Store<'_>, id: JournalId, commit: ObjectId) -> Result<Entry> {
    let damaged = |why: String| Error::Damaged { id, why };
    let objects = store.repository().objects()?;
    let at = objects.commit(commit).map_err(|e| damaged(e.to_string()))?;
    let entry = tree::lookup(&objects, at.tree, b"entry.json".as_bstr());
    let Some(file) = entry.map_err(|e| damaged(e.to_string()))? else {
        return Err(damaged("it has no 'entry.json'".to_owned()));
    };
    let text = objects.read(file.id, ObjectKind::Blob);
    let text = text.map_err(|e| damaged(e.to_string()))?;
    let entry = form::read(&text, commit, store.repository().format()).map_err(damaged)?;
    if entry.id != id {
        return Err(damaged(format!("it says that it is entry {}", entry.id)));
    }
    if entry.kind == (Kind::Undo { of: id }) {
        return Err(damaged("it is the undo of itself".to_owned()));
    }
    Ok(entry)
}
