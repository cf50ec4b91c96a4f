//! The text of a change, for whoever reviews it.

use bstr::ByteSlice;

use super::Result;
use super::proposal::ProposedChange;
use crate::git::patch::{self, PatchOptions};
use crate::git::tree::{Entry, GITLINK};
use crate::git::{Objects, Repository};

/// The text of a change as `git diff-tree -p` prints it. `quote_path` is `core.quotePath`.
///
/// # Errors
/// When a blob cannot be read.
pub fn patch_of(
    repository: &Repository,
    change: &ProposedChange,
    quote_path: bool,
) -> Result<Vec<u8>> {
    let objects = repository.objects()?;
    let (old, new) = (
        content(&objects, change.old)?,
        content(&objects, change.new)?,
    );
    let options = PatchOptions {
        quote_path,
        ..PatchOptions::default()
    };
    let sides = (
        change.old.map(|entry| (entry, &old[..])),
        change.new.map(|entry| (entry, &new[..])),
    );
    let path = change.path.as_bstr();
    Ok(patch::patch(sides.0, sides.1, path, &options)?)
}

fn content(objects: &Objects<'_>, entry: Option<Entry>) -> Result<Vec<u8>> {
    Ok(match entry {
        None => Vec::new(),
        Some(entry) if entry.mode == GITLINK => Vec::new(),
        Some(entry) => objects.blob(entry.id)?,
    })
}
