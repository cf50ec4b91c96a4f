//! Merging whole trees: what one side made of a base is carried over to what the other made of it.
//!
//! The result is the one that `git merge-tree` has for the same three trees: a path that one side alone
//! changed is that side's, a file that both changed is merged line by line, its mode by itself, and
//! where the one renamed a file that the other edited, the edit goes along (see [`moves`]). A
//! folder's rename is that of its files, as with git's `merge.directoryRenames=false`: a new file
//! stays where its side has put it. Where the sides contradict each other nothing is marked in the
//! content: the path is a [`Conflict`] and one side's version stands there whole.
//!
//! [`moves`]: super::moves

use std::collections::BTreeMap;

use bstr::BString;
use serde_json::{Value, json};

use super::{Error, Result, moves};
use crate::git::merge::{MergeOptions, MergeResult, merge_file};
use crate::git::tree::{self, Both, Entry};
use crate::git::{ObjectId, ObjectKind, Staging};
use crate::model::{Refusal, json_path};

/// Three trees: what two sides made of a base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trees {
    /// What both started from.
    pub base: ObjectId,
    /// The side that is kept where nothing else is said.
    pub ours: ObjectId,
    /// The side whose changes are carried over.
    pub theirs: ObjectId,
}

/// Whose version stands at a path on which the sides contradict each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// Ours.
    #[default]
    Ours,
    /// Theirs.
    Theirs,
}

/// A path on which the sides contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The path.
    pub path: BString,
    /// Why: `conflict`, `binary`, `delete_edit` or `type_change`.
    pub kind: Refusal,
    /// What both started from.
    pub base: Option<Entry>,
    /// What ours has.
    pub ours: Option<Entry>,
    /// What theirs has.
    pub theirs: Option<Entry>,
}

/// A merged tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Merged {
    /// The tree; whole and clean only where there is no conflict.
    pub tree: ObjectId,
    /// Where the sides contradict each other, by path.
    pub conflicts: Vec<Conflict>,
}

impl Conflict {
    /// The form in the metadata of a revision.
    pub(super) fn to_json(&self) -> Value {
        json!({
            "path": json_path(self.path.as_ref()),
            "kind": self.kind.as_str(),
            "base": entry_json(self.base),
            "ours": entry_json(self.ours),
            "theirs": entry_json(self.theirs),
        })
    }
}

fn entry_json(entry: Option<Entry>) -> Value {
    entry.map_or(
        Value::Null,
        |entry| json!({ "mode": format!("{:06o}", entry.mode), "id": entry.id.to_string() }),
    )
}

/// Merges three trees; new blobs and trees are staged.
///
/// # Errors
/// When a tree or a blob cannot be read.
pub fn merge_trees(staging: &mut Staging<'_>, trees: Trees, keep: Keep) -> Result<Merged> {
    let Trees { base, ours, theirs } = trees;
    let mut relation = tree::three_way(staging, Some(base), Some(ours), Some(theirs))?;
    let moves = moves::follow(staging, trees, &relation)?;
    relation
        .both
        .retain(|both| !moves.settled.contains(&both.path));
    let mut edits: BTreeMap<BString, Option<Entry>> = relation.edits.into_iter().collect();
    let mut conflicts = moves.conflicts;
    for both in relation.both {
        match merge_path(staging, &both)? {
            Ok(entry) => {
                edits.insert(both.path, Some(entry));
            }
            Err(kind) => conflicts.push(Conflict {
                path: both.path,
                kind,
                base: both.base,
                ours: both.ours,
                theirs: both.theirs,
            }),
        }
    }
    for path in relation.directory_file {
        let at = |root| tree::lookup(staging, root, path.as_ref());
        conflicts.push(Conflict {
            kind: Refusal::TypeChange,
            base: at(base)?,
            ours: at(ours)?,
            theirs: at(theirs)?,
            path,
        });
    }
    // What a rename says of a path counts before what the path says by itself.
    conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    conflicts.dedup_by(|a, b| a.path == b.path);
    let mut tree = tree::edit(staging, ours, &edits)?;
    // One edit may put a whole folder in place, with a file in it that another one is about.
    let mut late = moves.edits;
    let kept = |conflict: &Conflict| match keep {
        Keep::Ours => (conflict.path.clone(), conflict.ours),
        Keep::Theirs => (conflict.path.clone(), conflict.theirs),
    };
    late.extend(conflicts.iter().map(kept));
    if !late.is_empty() {
        tree = tree::edit(staging, tree, &late)?;
    }
    Ok(Merged { tree, conflicts })
}

/// Merges the mode and the content of one path that both sides changed.
pub(super) fn merge_path(staging: &mut Staging<'_>, both: &Both) -> Result<Result<Entry, Refusal>> {
    let (Some(ours), Some(theirs)) = (both.ours, both.theirs) else {
        return Ok(Err(Refusal::DeleteEdit));
    };
    if ours.is_file() != theirs.is_file() || !ours.is_file() && ours.mode != theirs.mode {
        return Ok(Err(Refusal::TypeChange));
    }
    let (base_mode, base_id) = (both.base.map(|b| b.mode), both.base.map(|b| b.id));
    let Some(mode) = pick(base_mode, ours.mode, theirs.mode) else {
        return Ok(Err(Refusal::Conflict));
    };
    if let Some(id) = pick(base_id, ours.id, theirs.id) {
        return Ok(Ok(Entry { mode, id }));
    }
    if !ours.is_file() {
        return Ok(Err(Refusal::Conflict));
    }
    let read = |id| staging.read(id, ObjectKind::Blob);
    let base = match both.base.filter(Entry::is_file) {
        Some(base) => read(base.id)?,
        // A link makes no base for a file's content.
        None => Vec::new(),
    };
    let options = MergeOptions::default();
    let merged = merge_file(&base, &read(ours.id)?, &read(theirs.id)?, &options);
    let merged = merged.map_err(|source| Error::Merge {
        path: both.path.clone(),
        source,
    })?;
    Ok(match merged {
        MergeResult::Clean(content) => Ok(Entry {
            mode,
            id: staging.add(ObjectKind::Blob, &content)?,
        }),
        MergeResult::Conflict { .. } => Err(Refusal::Conflict),
        MergeResult::Binary => Err(Refusal::Binary),
    })
}

/// What three values come to where at most one side changed it.
fn pick<T: PartialEq>(base: Option<T>, ours: T, theirs: T) -> Option<T> {
    if ours == theirs || base.as_ref() == Some(&theirs) {
        Some(ours)
    } else {
        (base.as_ref() == Some(&ours)).then_some(theirs)
    }
}
