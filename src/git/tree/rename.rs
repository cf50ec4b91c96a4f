//! Which deleted file became which new one, by git's rules (`git diff -M`).
//!
//! Three rounds, each on what the one before left over: the same object; the same file name, where one
//! deleted and one new file alone have it, and the content three quarters alike; then every pair, best
//! scores first. The last round is quadratic, so above a limit it is left out, and the result says so.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use bstr::BString;

use super::{Change, Entry, Error, StoreError};
use crate::git::{ObjectId, ObjectKind};

mod folders;
mod search;

use search::Search;

/// git's default for `diff.renameLimit`.
pub const RENAME_LIMIT: usize = 1000;
/// git's default for `merge.renameLimit`.
const MERGE_RENAME_LIMIT: usize = 7000;

/// The score of equal content.
const MAX_SCORE: u64 = 60_000;

/// Where the content of files is read from.
pub trait BlobSource {
    /// Reads a blob.
    ///
    /// # Errors
    ///
    /// Whatever the store runs into, a missing blob included.
    fn read_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, StoreError>;

    /// The size of a blob in bytes. A store that knows it without reading the blob overrides this.
    ///
    /// # Errors
    ///
    /// As for [`read_blob`](Self::read_blob).
    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        Ok(self.read_blob(id)?.len() as u64)
    }
}

/// How renames are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenameOptions {
    /// The least likeness, in percent (git's `-M<n>`). From 100 on, only identical files are matched.
    pub threshold: u8,
    /// Inexact renames are looked for among at most `limit * limit` pairs; 0 is without limit.
    pub limit: usize,
}

impl Default for RenameOptions {
    fn default() -> Self {
        Self {
            threshold: 50,
            limit: RENAME_LIMIT,
        }
    }
}

impl RenameOptions {
    /// As git's merges look for renames where no setting says otherwise.
    pub fn of_merge() -> Self {
        Self {
            limit: MERGE_RENAME_LIMIT,
            ..Self::default()
        }
    }
}

/// A file that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Where it was.
    pub from: BString,
    /// Where it is.
    pub to: BString,
    /// What it was.
    pub old: Entry,
    /// What it is.
    pub new: Entry,
    /// The likeness, out of 60,000.
    pub score: u32,
}

impl Rename {
    /// The likeness in percent, rounded down, as git prints it after the `R`.
    pub fn similarity(&self) -> u32 {
        self.score * 100 / MAX_SCORE as u32
    }
}

/// A record of a diff with renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// A change in place.
    Change(Change),
    /// A rename; it stands where its new path stands.
    Rename(Rename),
}

/// A diff with renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renames {
    /// The records, in git's order.
    pub deltas: Vec<Delta>,
    /// Set when there were too many pairs and inexact renames between files of different names were not
    /// looked for: the limit that would have been enough.
    pub needed_limit: Option<usize>,
}

/// Finds renames among `changes`, which are in git's order (as [`diff`](super::diff()) lists them).
///
/// # Errors
///
/// [`Error::Blob`] for a file that cannot be read.
pub fn find_renames<B: BlobSource + ?Sized>(
    changes: Vec<Change>,
    blobs: &B,
    options: RenameOptions,
) -> Result<Renames, Error> {
    let mut search = Search::new(&changes, blobs);
    let needed_limit = search.run(options, None)?;
    let Search { found, used, .. } = search;
    Ok(Renames {
        deltas: deltas(changes, &found, &used),
        needed_limit,
    })
}

/// Finds what became of the files in `wanted`, which are among the deleted ones in `changes`, by the rules
/// of git's merges: every file may be the source of an exact rename, but only the wanted ones are compared
/// by content; empty files never moved; and where several files have one name, the folder to which most
/// of a folder's files moved is tried first.
///
/// # Errors
///
/// As for [`find_renames`].
pub fn find_moved<B: BlobSource + ?Sized>(
    mut changes: Vec<Change>,
    wanted: &HashSet<BString>,
    blobs: &B,
    options: RenameOptions,
) -> Result<Vec<Rename>, Error> {
    let empty = |entry: Option<Entry>| entry.is_some_and(|entry| is_empty(entry.id));
    changes.retain(|change| !empty(change.old.or(change.new)));
    let mut search = Search::new(&changes, blobs);
    search.run(options, Some(wanted))?;
    let Search { found, used, .. } = search;
    let moved = deltas(changes, &found, &used);
    let rename = |delta| match delta {
        Delta::Rename(rename) if wanted.contains(&rename.from) => Some(rename),
        _ => None,
    };
    Ok(moved.into_iter().filter_map(rename).collect())
}

fn is_empty(id: ObjectId) -> bool {
    let empty = ObjectId::hash_object_ext(ObjectKind::Blob, b"", id.object_format());
    empty.is_ok_and(|empty| empty == id)
}

/// Puts the renames in the place of the additions and deletions that they are made of.
fn deltas(changes: Vec<Change>, found: &HashMap<usize, (usize, u64)>, used: &[bool]) -> Vec<Delta> {
    let rename = |to: &Change, source: usize, score: u64| {
        let from: &Change = &changes[source];
        Some(Delta::Rename(Rename {
            from: from.path.clone(),
            to: to.path.clone(),
            old: from.old?,
            new: to.new?,
            score: score as u32,
        }))
    };
    changes
        .iter()
        .enumerate()
        .filter(|(at, _)| !used[*at])
        .map(|(at, change)| {
            found
                .get(&at)
                .and_then(|&(source, score)| rename(change, source, score))
                .unwrap_or_else(|| Delta::Change(change.clone()))
        })
        .collect()
}
