//! The index of a directory on a template: the template's own, with what was put above it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::Template;
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index};
use crate::git::tree::{Change, Entry, listing};
use crate::git::{ObjectId, Repository};
use crate::layout::{Error, Result};

/// A file that was put above a template, or in place of the template's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its path.
    pub path: BString,
    /// What it is.
    pub entry: Entry,
    /// Its stat data, as seen in the directory.
    pub stat: StatData,
}

/// Writes the index of a directory to `to`, a path where no file is: the layout of the tree
/// `revision`, whose difference from the template is `changes`, put above as `written`. The stat data
/// are true in the directory.
///
/// Where nothing differs the template's file itself is linked: git and libgit2 replace an index by a
/// new file, and never write to it.
///
/// # Errors
/// [`Error::Index`], [`Error::Io`], [`Error::Tree`].
pub fn lay_index(
    repository: &Repository,
    template: &Template,
    (changes, written): (&[Change], &[Written]),
    revision: ObjectId,
    to: &Path,
) -> Result<()> {
    if changes.is_empty() && written.is_empty() {
        let from = template.index_path();
        if fs::hard_link(&from, to).is_ok() {
            return Ok(());
        }
        return fs::copy(&from, to)
            .map(drop)
            .map_err(|e| Error::io("write", to, e));
    }
    let below = template.index(repository.format())?;
    let gone = changes.iter().filter(|change| change.new.is_none());
    let mut above: HashMap<&BStr, Option<&Written>> =
        gone.map(|change| (change.path.as_bstr(), None)).collect();
    above.extend(written.iter().map(|one| (one.path.as_bstr(), Some(one))));
    let mut entries = Vec::with_capacity(below.len() + written.len());
    for entry in below
        .entries()
        .filter(|entry| !above.contains_key(entry.path))
    {
        entries.push(IndexEntry {
            path: entry.path.to_owned(),
            mode: entry.mode,
            id: entry.id,
            stat: entry.stat,
        });
    }
    entries.extend(written.iter().map(|one| IndexEntry {
        path: one.path.clone(),
        mode: one.entry.mode,
        id: one.entry.id,
        stat: one.stat,
    }));
    entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let mut trees = TreeCache::new();
    for directory in listing(&repository.objects()?, revision)?.directories {
        trees.record(directory.path, directory.id);
    }
    write_index(to, repository.format(), &entries, Some(&trees))?;
    Ok(())
}
