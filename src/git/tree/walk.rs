//! Everything that a tree holds, in git's order, one directory in memory at a time.

use bstr::{BStr, BString, ByteSlice};

use super::{Entry, Error, TREE, TreeSource, check_depth, entries, lookup, malformed, open, push};
use crate::git::ObjectId;

/// What a visitor wants next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Go on, into the folder if this is one.
    Continue,
    /// Go on, but not into this folder.
    Prune,
    /// End the walk.
    Stop,
}

/// Visits all that the tree `root` holds at `prefix` and below, in the order of `git ls-tree -r -t`: folders
/// are visited too, each before its content. A visitor that wants files only passes over entries for
/// which [`Entry::is_tree`] holds. The empty prefix stands for the root, which itself is not visited; a
/// prefix that is not there visits nothing.
///
/// # Errors
///
/// [`Error::Missing`], [`Error::Read`], [`Error::Malformed`] and [`Error::TooDeep`] for the trees opened.
pub fn walk<S: TreeSource + ?Sized>(
    source: &S,
    root: ObjectId,
    prefix: &BStr,
    mut visit: impl FnMut(&BStr, Entry) -> Step,
) -> Result<(), Error> {
    let mut start = root;
    if !prefix.is_empty() {
        let Some(entry) = lookup(source, root, prefix)? else {
            return Ok(());
        };
        if visit(prefix, entry) != Step::Continue || !entry.is_tree() {
            return Ok(());
        }
        start = entry.id;
    }
    let mut path = prefix.to_owned();
    let mut events = |event: Event<'_>| match event {
        Event::Enter(path, entry) | Event::File(path, entry) => visit(path, entry),
        Event::Leave => Step::Continue,
    };
    below(source, start, &mut path, 0, &mut events)?;
    Ok(())
}

/// A folder of a [`Listing`], with what an index's cache-tree extension says about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directory {
    /// The path from the root; empty for the root itself.
    pub path: BString,
    /// The tree.
    pub id: ObjectId,
    /// How many files, links and submodules it holds, those in folders below included.
    pub entries: usize,
    /// How many folders it holds directly.
    pub folders: usize,
}

/// All that a tree holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// Files, links and submodules, in git's order (an index's order too).
    pub files: Vec<(BString, Entry)>,
    /// Folders, each before those below it, the root first.
    pub directories: Vec<Directory>,
}

/// Lists all that the tree `root` holds, in one pass.
///
/// # Errors
///
/// As for [`walk`].
pub fn listing<S: TreeSource + ?Sized>(source: &S, root: ObjectId) -> Result<Listing, Error> {
    let directory = |path: &BStr, id| Directory {
        path: path.to_owned(),
        id,
        entries: 0,
        folders: 0,
    };
    let mut files = Vec::new();
    let mut directories = vec![directory(BStr::new(""), root)];
    // The open folders, as indexes into `directories`.
    let mut open = vec![0];
    below(source, root, &mut BString::default(), 0, &mut |event| {
        let here = open[open.len() - 1];
        match event {
            Event::File(path, entry) => {
                files.push((path.to_owned(), entry));
                directories[here].entries += 1;
            }
            Event::Enter(path, entry) => {
                directories[here].folders += 1;
                open.push(directories.len());
                directories.push(directory(path, entry.id));
            }
            Event::Leave => {
                open.pop();
                directories[open[open.len() - 1]].entries += directories[here].entries;
            }
        }
        Step::Continue
    })?;
    Ok(Listing { files, directories })
}

/// What happens on the way through a tree.
enum Event<'p> {
    File(&'p BStr, Entry),
    Enter(&'p BStr, Entry),
    Leave,
}

/// Goes through a directory; returns whether to go on.
fn below<S: TreeSource + ?Sized>(
    source: &S,
    id: ObjectId,
    path: &mut BString,
    depth: usize,
    visit: &mut dyn FnMut(Event<'_>) -> Step,
) -> Result<bool, Error> {
    check_depth(depth, path)?;
    let data = open(source, id, path.as_bstr())?;
    let list: Result<Vec<_>, _> = entries(&data, source.format()).collect();
    for entry in list.map_err(|defect| malformed(id, path.as_bstr(), defect))? {
        let is_tree = entry.mode == TREE;
        let length = push(path, entry.name);
        let event = if is_tree { Event::Enter } else { Event::File };
        let step = visit(event(path.as_bstr(), entry.entry()));
        if step == Step::Stop {
            return Ok(false);
        }
        if is_tree && step == Step::Continue {
            if !below(source, entry.id(), path, depth + 1, visit)? {
                return Ok(false);
            }
            visit(Event::Leave);
        }
        path.truncate(length);
    }
    Ok(true)
}
