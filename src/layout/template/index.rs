//! The index of a directory on a template: the template's own, with what was put above it.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::Template;
use crate::git::index::{self, IndexEntry, IndexFile, StatData, TreeCache, write_index};
use crate::git::tree::{self, Change, Directory, Entry, Listing};
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
    for directory in tree::listing(&repository.objects()?, revision)?.directories {
        trees.record(directory.path, directory.id);
    }
    write_index(to, repository.format(), &entries, Some(&trees))?;
    Ok(())
}

/// The listing of the tree that an index is of; `None` where its tree cache does not tell all of it.
pub(super) fn listing(index: &IndexFile) -> Option<Listing> {
    let directories: Vec<Directory> = index
        .trees()?
        .into_iter()
        .map(|one| Directory {
            path: one.path,
            id: one.id,
            entries: one.entries,
            folders: one.subtrees,
        })
        .collect();
    let entry = |one: index::Entry<'_>| Entry {
        mode: one.mode,
        id: one.id,
    };
    let files = index.entries().map(|one| (one.path.to_owned(), entry(one)));
    let files: Vec<_> = files.collect();
    fit(&files, &directories).then_some(Listing { files, directories })
}

/// Whether each file's folder is there, and each folder holds as many files as it says.
fn fit(files: &[(BString, Entry)], directories: &[Directory]) -> bool {
    let numbers: HashMap<&BStr, usize> = directories
        .iter()
        .enumerate()
        .map(|(at, one)| (one.path.as_bstr(), at))
        .collect();
    let above = |path: &[u8]| {
        let folder = path
            .rsplit_once_str("/")
            .map_or(&b""[..], |(folder, _)| folder);
        numbers.get(folder.as_bstr()).copied()
    };
    let mut counts = vec![0; directories.len()];
    for (path, _) in files {
        match above(path) {
            Some(folder) => counts[folder] += 1,
            None => return false,
        }
    }
    // Each folder comes before those below it.
    for at in (1..directories.len()).rev() {
        match above(&directories[at].path) {
            Some(folder) if folder < at => counts[folder] += counts[at],
            _ => return false,
        }
    }
    let said = directories.iter().map(|one| one.entries);
    numbers.len() == directories.len() && said.eq(counts)
}
