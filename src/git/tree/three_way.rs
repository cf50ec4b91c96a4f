//! Three trees, compared by id: what one side changed, what both changed, and where a file meets a
//! folder.
//!
//! Renames are not followed: a rename is a deletion and an addition. A subtree that is equal on two
//! sides is never opened, so the cost follows what *both* sides changed.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};

use super::diff::{Cursor, first};
use super::{
    Defect, Entry, EntryRef, Error, TreeSource, check_depth, diff_under, entries, malformed,
    open_side, push,
};
use crate::git::ObjectId;

/// A path that both sides changed, each in its own way. It is a file, link, submodule or nothing on each
/// side; never a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Both {
    /// The path from the root.
    pub path: BString,
    /// What both started from.
    pub base: Option<Entry>,
    /// What ours made of it.
    pub ours: Option<Entry>,
    /// What theirs made of it.
    pub theirs: Option<Entry>,
}

/// How three trees relate. A path, or one below it, is in one of the three lists only. All are in the
/// byte order of their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreeWay {
    /// What only theirs changed, to be applied onto ours by [`edit`](super::edit()): a folder that ours left
    /// alone is one entry (mode [`TREE`](super::TREE), or `None` where theirs deleted it whole).
    pub edits: Vec<(BString, Option<Entry>)>,
    /// What both changed: a content merge or a conflict.
    pub both: Vec<Both>,
    /// A file on one side, a folder with changes on the other, so that neither can make way. Nothing at
    /// or below such a path is in the other lists.
    pub directory_file: Vec<BString>,
}

/// Compares what `ours` and `theirs` made of `base`; `None` stands for an empty tree.
///
/// # Errors
///
/// [`Error::Missing`], [`Error::Read`], [`Error::Malformed`] and [`Error::TooDeep`] for the trees opened.
pub fn three_way<S: TreeSource + ?Sized>(
    source: &S,
    base: Option<ObjectId>,
    ours: Option<ObjectId>,
    theirs: Option<ObjectId>,
) -> Result<ThreeWay, Error> {
    let mut pass = Pass {
        source,
        path: BString::default(),
        result: ThreeWay::default(),
    };
    pass.trees([base, ours, theirs], 0)?;
    let mut result = pass.result;
    result.edits.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    result.both.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    result.directory_file.sort_unstable();
    Ok(result)
}

/// Base, ours, theirs.
type Sides<T> = [Option<T>; 3];

struct Pass<'s, S: ?Sized> {
    source: &'s S,
    path: BString,
    result: ThreeWay,
}

impl<S: TreeSource + ?Sized> Pass<'_, S> {
    /// Compares three directories at `self.path`.
    fn trees(&mut self, sides: Sides<ObjectId>, depth: usize) -> Result<(), Error> {
        check_depth(depth, &self.path)?;
        for (name, sides) in self.names(sides)? {
            let length = push(&mut self.path, name.as_bstr());
            if let Some(folders) = self.name(sides)? {
                self.trees(folders, depth + 1)?;
            }
            self.path.truncate(length);
        }
        Ok(())
    }

    /// The names of a directory where theirs has something to say, and what the three sides hold there.
    fn names(&self, sides: Sides<ObjectId>) -> Result<Vec<(BString, Sides<Entry>)>, Error> {
        let place = self.path.as_bstr();
        let mut data = Vec::with_capacity(3);
        for side in sides {
            data.push(open_side(self.source, side, place)?);
        }
        let parse = |side: usize| entries(&data[side], self.source.format());
        let cursor = |side: usize| Cursor::new(parse(side), sides[side], place);
        let (mut base, mut ours, mut theirs) = (cursor(0)?, cursor(1)?, cursor(2)?);
        // A file and a folder of one name stand apart in the order, so the names are found first, and
        // all that the three sides hold there second.
        let mut names: BTreeMap<&BStr, Sides<Entry>> = BTreeMap::new();
        while let Some(at) = first([base.head(), ours.head(), theirs.head()]) {
            let (b, o, t) = (base.take(&at)?, ours.take(&at)?, theirs.take(&at)?);
            if !same(t, b) && !same(t, o) {
                names.insert(at.name, [None; 3]);
            }
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        for (side, id) in sides.into_iter().enumerate() {
            for entry in parse(side).flatten() {
                let Some(slots) = names.get_mut(entry.name) else {
                    continue;
                };
                if let (Some(_), Some(id)) = (slots[side].replace(entry.entry()), id) {
                    return Err(malformed(id, place, Defect::Unsorted));
                }
            }
        }
        let owned = |(name, sides): (&BStr, Sides<Entry>)| (name.to_owned(), sides);
        Ok(names.into_iter().map(owned).collect())
    }

    /// Decides one name, or returns the folders to go into.
    fn name(&mut self, sides: Sides<Entry>) -> Result<Option<Sides<ObjectId>>, Error> {
        let [base, ours, theirs] = sides;
        if theirs == base || theirs == ours {
            return Ok(None);
        }
        if ours == base {
            self.result.edits.push((self.path.clone(), theirs));
            return Ok(None);
        }
        let folders = sides.map(|entry| entry.filter(Entry::is_tree).map(|entry| entry.id));
        match (folders[1], folders[2]) {
            (Some(_), Some(_)) => Ok(Some(folders)),
            (None, None) => {
                self.files(sides);
                Ok(None)
            }
            (Some(folder), None) => self.folder_against(folders, folder, theirs),
            (None, Some(folder)) => self.folder_against(folders, folder, ours),
        }
    }

    /// No folder on either side; the base may have had one, which then is gone on both.
    fn files(&mut self, [base, ours, theirs]: Sides<Entry>) {
        let base = base.filter(|entry| !entry.is_tree());
        let path = self.path.clone();
        if ours == base {
            self.result.edits.push((path, theirs));
        } else if theirs != base {
            self.result.both.push(Both {
                path,
                base,
                ours,
                theirs,
            });
        }
    }

    /// One side has `folder` here, changed against the base; the other has a file, changed too, or nothing.
    fn folder_against(
        &mut self,
        folders: Sides<ObjectId>,
        folder: ObjectId,
        file: Option<Entry>,
    ) -> Result<Option<Sides<ObjectId>>, Error> {
        let path = self.path.clone();
        let ours_is_folder = folders[1].is_some();
        match (folders[0], file) {
            // The one deleted a folder in which the other made changes.
            (Some(_), None) => return Ok(Some(folders)),
            (Some(base), Some(file)) => {
                if self.leaves_something(base, folder)? {
                    self.result.directory_file.push(path);
                } else if ours_is_folder {
                    self.result.edits.push((path, Some(file)));
                }
            }
            (None, Some(_)) => self.result.directory_file.push(path),
            // Both took the base's file away, and one put a folder in its place.
            (None, None) if ours_is_folder => {}
            (None, None) => {
                let tree = Entry {
                    mode: super::TREE,
                    id: folder,
                };
                self.result.edits.push((path, Some(tree)));
            }
        }
        Ok(None)
    }

    /// Whether a folder still holds something once the base's content is taken out of it: something new
    /// or changed, rather than deletions alone.
    fn leaves_something(&self, base: ObjectId, folder: ObjectId) -> Result<bool, Error> {
        let mut found = false;
        diff_under(self.source, Some(base), Some(folder), &[], |change| {
            found = change.new.is_some();
            if found {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(found)
    }
}

/// Whether two sides hold the same, or both nothing.
fn same(a: Option<EntryRef<'_>>, b: Option<EntryRef<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => a.same_content(&b),
        (None, None) => true,
        _ => false,
    }
}
