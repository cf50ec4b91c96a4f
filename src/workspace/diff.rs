//! What an agent changed: its overlay against its own base, never against anything else.

use super::{Result, Store, Workspace};
use crate::git::ObjectId;
use crate::git::patch::{self, PatchOptions};
use crate::git::tree::{self, Change, Entry};

impl Store<'_> {
    /// The changes from the base to the overlay, one per path, in git's order.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn diff(&self, workspace: &Workspace) -> Result<Vec<Change>> {
        let objects = self.repository.objects()?;
        let base = self.base_tree(workspace)?;
        Ok(tree::diff(&objects, Some(base), Some(workspace.tree))?)
    }
}

/// The text of changes, as `git diff -p` prints it. `blob` gives the bytes of one; `quote_path` is
/// `core.quotePath`.
///
/// # Errors
/// When a blob cannot be read or compared.
pub fn patch(
    blob: &dyn Fn(ObjectId) -> Result<Vec<u8>>,
    changes: &[Change],
    quote_path: bool,
) -> Result<Vec<u8>> {
    let options = PatchOptions {
        quote_path,
        ..PatchOptions::default()
    };
    let mut text = Vec::new();
    for change in changes {
        let (old, new) = (side(blob, change.old)?, side(blob, change.new)?);
        let path = change.path.as_ref();
        text.extend(patch::patch(borrow(&old), borrow(&new), path, &options)?);
    }
    Ok(text)
}

/// How many lines a change adds and takes away; `None` where it is binary. `blob` gives the bytes
/// of one.
///
/// # Errors
/// When a blob cannot be read.
pub fn count_lines(
    blob: &dyn Fn(ObjectId) -> Result<Vec<u8>>,
    change: &Change,
) -> Result<Option<(u64, u64)>> {
    let (old, new) = (side(blob, change.old)?, side(blob, change.new)?);
    let (old, new) = (borrow(&old), borrow(&new));
    Ok(patch::count_lines(
        &patch::content(old),
        &patch::content(new),
    ))
}

/// What a change reads in a comparison; nothing of a submodule.
fn side(
    blob: &dyn Fn(ObjectId) -> Result<Vec<u8>>,
    entry: Option<Entry>,
) -> Result<Option<(Entry, Vec<u8>)>> {
    entry
        .map(|entry| match entry.mode {
            tree::GITLINK => Ok((entry, Vec::new())),
            _ => Ok((entry, blob(entry.id)?)),
        })
        .transpose()
}

fn borrow(side: &Option<(Entry, Vec<u8>)>) -> patch::Side<'_> {
    side.as_ref().map(|(entry, bytes)| (*entry, &bytes[..]))
}
