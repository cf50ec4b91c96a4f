//! Renames in a merge of trees: the one side moved a file, and the other one edited it where it was.
//!
//! Only files that one side no longer has, and the other one changed or does not have either, are asked
//! about; where there are none, no rename is looked for. The cost is that of the two differences, and
//! as git's bounded by its `merge.renameLimit`.
//!
//! - Renamed here, edited there: one merge of the three contents, at the new path.
//! - Renamed on both sides to the same path: merged there, against the file as it was.
//! - Renamed to different paths, or renamed here and deleted there: a conflict, at the new path.
//! - Anything at the new path that the rename did not bring, and files that met folders: left to the
//!   rules for paths, for which the old path was edited here and deleted there: a conflict.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::Result;
use super::merge::{Conflict, Trees, merge_path};
use crate::git::tree::{self, Both, Entry, Lost, Rename, RenameOptions, ThreeWay};
use crate::git::{self, Config, ObjectId, Staging};
use crate::model::Refusal;

/// What renames have to say about a merge.
#[derive(Default)]
pub(super) struct Moves {
    /// What paths become; it counts after everything else.
    pub(super) edits: BTreeMap<BString, Option<Entry>>,
    /// Contradictions.
    pub(super) conflicts: Vec<Conflict>,
    /// The paths that need no merge of their own any more.
    pub(super) settled: HashSet<BString>,
}

/// By the path where the file was.
type Renames = HashMap<BString, Rename>;

/// Finds the renames that matter for a merge, and what they come to.
pub(super) fn follow(
    staging: &mut Staging<'_>,
    trees: Trees,
    relation: &ThreeWay,
) -> Result<Moves> {
    let lost = tree::lost(staging, trees.base, trees.ours, trees.theirs)?;
    let options = RenameOptions::of_merge();
    let by_ours = renames_of_ours(staging, trees, &lost, options)?;
    let sides = (trees.base, trees.theirs);
    let by_theirs = renames(staging, sides, &lost, |l| l.theirs, options)?;
    let mut follower = Follower {
        staging,
        trees,
        relation,
        moves: Moves::default(),
    };
    for file in &lost {
        match (by_ours.get(&file.path), by_theirs.get(&file.path)) {
            (None, None) => {}
            (Some(ours), Some(theirs)) if ours.to == theirs.to => {
                follower.both_moved(file, &ours.to)?;
            }
            (Some(_), Some(theirs)) => follower.contradict(file, theirs, Refusal::Conflict)?,
            (Some(rename), None) => follower.one_side(file, rename, file.theirs, true)?,
            (None, Some(rename)) => follower.one_side(file, rename, file.ours, false)?,
        }
    }
    Ok(follower.moves)
}

/// Where ours moved the files that it no longer has, by their old paths; of those that theirs left as
/// they were nothing is said.
///
/// # Errors
/// When a tree or a blob cannot be read.
pub(crate) fn moved(
    staging: &Staging<'_>,
    trees: Trees,
    options: RenameOptions,
) -> Result<HashMap<BString, BString>> {
    let lost = tree::lost(staging, trees.base, trees.ours, trees.theirs)?;
    let found = renames_of_ours(staging, trees, &lost, options)?;
    Ok(found.into_iter().map(|(from, to)| (from, to.to)).collect())
}

/// How a merge looks for renames, as `merge.renames`, `merge.renameLimit` and the same keys of `diff`
/// say; `None` where they turn it off.
///
/// # Errors
/// [`git::Error::Config`] for a value that git does not take either.
pub(crate) fn merge_renames(config: &Config) -> git::Result<Option<RenameOptions>> {
    for key in ["merge.renames", "diff.renames"] {
        match config.string(key).as_deref() {
            None => continue,
            Some("copies" | "copy") => {}
            Some(_) if config.bool(key)? == Some(false) => return Ok(None),
            Some(_) => {}
        }
        break;
    }
    let mut options = RenameOptions::of_merge();
    for key in ["merge.renamelimit", "diff.renamelimit"] {
        let Some(value) = config.string(key) else {
            continue;
        };
        // No limit at all, for a merge, is its own one.
        let limit = match value.starts_with('-') {
            true => 0,
            false => config.size(key)?.unwrap_or(0),
        };
        if limit > 0 {
            options.limit = usize::try_from(limit).unwrap_or(usize::MAX);
        }
        break;
    }
    Ok(Some(options))
}

fn renames_of_ours(
    staging: &Staging<'_>,
    trees: Trees,
    lost: &[Lost],
    options: RenameOptions,
) -> Result<Renames> {
    let sides = (trees.base, trees.ours);
    renames(staging, sides, lost, |l| l.ours, options)
}

fn renames(
    staging: &Staging<'_>,
    (base, side): (ObjectId, ObjectId),
    lost: &[Lost],
    on: fn(&Lost) -> Option<Entry>,
    options: RenameOptions,
) -> Result<Renames> {
    let gone = lost.iter().filter(|file| on(file).is_none());
    let wanted: HashSet<BString> = gone.map(|file| file.path.clone()).collect();
    if wanted.is_empty() {
        return Ok(Renames::new());
    }
    let changes = tree::diff(staging, Some(base), Some(side))?;
    let found = tree::find_moved(changes, &wanted, staging, options)?;
    let by_source = |rename: Rename| (rename.from.clone(), rename);
    Ok(found.into_iter().map(by_source).collect())
}

struct Follower<'s, 'r> {
    staging: &'s mut Staging<'r>,
    trees: Trees,
    relation: &'s ThreeWay,
    moves: Moves,
}

impl Follower<'_, '_> {
    /// Both sides moved a file to the same path.
    fn both_moved(&mut self, file: &Lost, to: &BString) -> Result<()> {
        let added = |both: &&Both| both.path == *to && both.base.is_none();
        let Some(both) = self.relation.both.iter().find(added) else {
            return Ok(());
        };
        let merge = Both {
            base: Some(file.base),
            ..both.clone()
        };
        self.moves.settled.insert(to.clone());
        self.merge(&merge)
    }

    /// One side, which is ours or theirs, moved a file, of which the other one has `edited`.
    fn one_side(
        &mut self,
        file: &Lost,
        rename: &Rename,
        edited: Option<Entry>,
        ours: bool,
    ) -> Result<()> {
        let Some(edited) = edited else {
            return self.contradict(file, rename, Refusal::DeleteEdit);
        };
        let other = match ours {
            true => self.trees.theirs,
            false => self.trees.ours,
        };
        let occupied = tree::lookup(self.staging, other, rename.to.as_ref())?.is_some();
        let by_path = self.relation.both.iter().any(|both| both.path == file.path);
        if occupied || !by_path || self.is_in_the_way(&rename.to) {
            return Ok(());
        }
        let (ours, theirs) = match ours {
            true => (rename.new, edited),
            false => (edited, rename.new),
        };
        if ours.is_file() != theirs.is_file() {
            return Ok(());
        }
        let merge = Both {
            path: rename.to.clone(),
            base: Some(file.base),
            ours: Some(ours),
            theirs: Some(theirs),
        };
        self.moves.settled.insert(file.path.clone());
        self.moves.edits.insert(file.path.clone(), None);
        self.merge(&merge)
    }

    fn merge(&mut self, both: &Both) -> Result<()> {
        match merge_path(self.staging, both)? {
            Ok(entry) => {
                self.moves.edits.insert(both.path.clone(), Some(entry));
            }
            Err(kind) => self.moves.conflicts.push(Conflict {
                path: both.path.clone(),
                kind,
                base: both.base,
                ours: both.ours,
                theirs: both.theirs,
            }),
        }
        Ok(())
    }

    /// Whether a file met a folder at a path or above it, which is a conflict of its own.
    fn is_in_the_way(&self, path: &BString) -> bool {
        let met = |above: &BString| is_above(above.as_ref(), path.as_ref());
        self.relation.directory_file.iter().any(met)
    }

    /// The sides contradict each other about where a file is, or whether it is at all.
    fn contradict(&mut self, file: &Lost, rename: &Rename, kind: Refusal) -> Result<()> {
        if self.is_in_the_way(&rename.to) {
            return Ok(());
        }
        let at = |root| tree::lookup(self.staging, root, rename.to.as_ref());
        let (ours, theirs) = (at(self.trees.ours)?, at(self.trees.theirs)?);
        self.moves.conflicts.push(Conflict {
            path: rename.to.clone(),
            kind,
            base: Some(file.base),
            ours,
            theirs,
        });
        Ok(())
    }
}

/// Whether `path` is `above` or lies below it.
fn is_above(above: &BStr, path: &BStr) -> bool {
    path.strip_prefix(above.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
