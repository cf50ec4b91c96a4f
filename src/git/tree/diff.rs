//! The difference of two trees, found by their ids: what is equal is never opened.
//!
//! The records and their order are those of `git diff-tree -r --raw --no-renames`.

use std::cmp::Ordering;
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice};

use super::{
    Entries, Entry, EntryRef, Error, TreeSource, check_depth, entries, malformed, open_side, push,
};
use crate::git::ObjectId;

/// A file, link or submodule that differs between two trees. Where a folder took the place of a file, or
/// the other way round, the deletion and the additions are records of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path from the root.
    pub path: BString,
    /// What it was; `None` where it was not there.
    pub old: Option<Entry>,
    /// What it is; `None` where it is gone.
    pub new: Option<Entry>,
}

/// The kind of a change, as in git's raw format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// `A`: new.
    Added,
    /// `D`: gone.
    Deleted,
    /// `M`: other content or another permission.
    Modified,
    /// `T`: a file became a link or a submodule, or the like.
    TypeChanged,
}

impl Status {
    /// The letter that git prints.
    pub fn letter(self) -> char {
        match self {
            Self::Added => 'A',
            Self::Deleted => 'D',
            Self::Modified => 'M',
            Self::TypeChanged => 'T',
        }
    }
}

impl Change {
    /// The kind of the change.
    pub fn status(&self) -> Status {
        match (self.old, self.new) {
            (None, _) => Status::Added,
            (Some(_), None) => Status::Deleted,
            (Some(old), Some(new)) if old.mode & 0o170_000 != new.mode & 0o170_000 => {
                Status::TypeChanged
            }
            _ => Status::Modified,
        }
    }
}

/// Lists the changes from tree `a` to tree `b`; `None` stands for an empty tree.
///
/// # Errors
///
/// [`Error::Missing`], [`Error::Read`], [`Error::Malformed`] and [`Error::TooDeep`] for the trees opened.
pub fn diff<S: TreeSource + ?Sized>(
    source: &S,
    a: Option<ObjectId>,
    b: Option<ObjectId>,
) -> Result<Vec<Change>, Error> {
    let mut changes = Vec::new();
    diff_under(source, a, b, &[], |change| {
        changes.push(change);
        ControlFlow::Continue(())
    })?;
    Ok(changes)
}

/// Hands the changes from `a` to `b` to `visit`, one by one, until it breaks off. With `prefixes`, only
/// changes at one of them or below one are looked for; they are literal paths without a final slash. An
/// empty list limits nothing, as git's empty pathspec does.
///
/// # Errors
///
/// As for [`diff`].
pub fn diff_under<S: TreeSource + ?Sized>(
    source: &S,
    a: Option<ObjectId>,
    b: Option<ObjectId>,
    prefixes: &[&BStr],
    visit: impl FnMut(Change) -> ControlFlow<()>,
) -> Result<(), Error> {
    let mut pass = Pass {
        source,
        prefixes,
        visit,
        path: BString::default(),
    };
    let wanted = prefixes.is_empty() || prefixes.iter().any(|prefix| prefix.is_empty());
    if a != b {
        // A break only means that the caller has seen enough.
        let _ = pass.trees([a, b], wanted, 0)?;
    }
    Ok(())
}

/// One side of a merge walk over the entries of a directory.
pub(super) struct Cursor<'d, 'p> {
    entries: Entries<'d>,
    head: Option<EntryRef<'d>>,
    id: Option<ObjectId>,
    path: &'p BStr,
}

impl<'d, 'p> Cursor<'d, 'p> {
    pub(super) fn new(
        entries: Entries<'d>,
        id: Option<ObjectId>,
        path: &'p BStr,
    ) -> Result<Self, Error> {
        let mut cursor = Self {
            entries,
            head: None,
            id,
            path,
        };
        cursor.step()?;
        Ok(cursor)
    }

    pub(super) fn head(&self) -> Option<EntryRef<'d>> {
        self.head
    }

    fn step(&mut self) -> Result<(), Error> {
        self.head = match (self.entries.next(), self.id) {
            (Some(Ok(entry)), _) => Some(entry),
            (Some(Err(defect)), Some(id)) => return Err(malformed(id, self.path, defect)),
            _ => None,
        };
        Ok(())
    }

    /// Takes the entry that stands where `at` stands in the order, if there is one.
    pub(super) fn take(&mut self, at: &EntryRef<'_>) -> Result<Option<EntryRef<'d>>, Error> {
        match self.head {
            Some(head) if head.order(at) == Ordering::Equal => {
                self.step()?;
                Ok(Some(head))
            }
            _ => Ok(None),
        }
    }
}

/// Returns the entry that comes first in the order.
pub(super) fn first<'d, const N: usize>(heads: [Option<EntryRef<'d>>; N]) -> Option<EntryRef<'d>> {
    heads.into_iter().flatten().min_by(|a, b| a.order(b))
}

/// An entry on both sides of a comparison.
type Pair<T> = [Option<T>; 2];

struct Pass<'s, S: ?Sized, F> {
    source: &'s S,
    prefixes: &'s [&'s BStr],
    visit: F,
    path: BString,
}

impl<S: TreeSource + ?Sized, F: FnMut(Change) -> ControlFlow<()>> Pass<'_, S, F> {
    /// Compares two directories at `self.path`; `wanted` says that a prefix lies at or above it.
    ///
    /// The comparison of the entries is a function of its own, so that little is on the stack when this
    /// one calls itself.
    fn trees(
        &mut self,
        sides: Pair<ObjectId>,
        wanted: bool,
        depth: usize,
    ) -> Result<ControlFlow<()>, Error> {
        check_depth(depth, &self.path)?;
        let old = open_side(self.source, sides[0], self.path.as_bstr())?;
        let new = open_side(self.source, sides[1], self.path.as_bstr())?;
        let pairs = self.differing(sides, &old, &new)?;
        for (name, pair) in pairs {
            let length = push(&mut self.path, name);
            let wanted = wanted
                || self
                    .prefixes
                    .iter()
                    .any(|prefix| within(&self.path, prefix));
            let flow = match folders(&pair) {
                Some(sides) if wanted || self.leads_to_prefix() => {
                    self.trees(sides, wanted, depth + 1)?
                }
                None if wanted => self.file(&pair),
                _ => ControlFlow::Continue(()),
            };
            self.path.truncate(length);
            if flow.is_break() {
                return Ok(flow);
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The entries in which two directories differ.
    fn differing<'d>(
        &self,
        sides: Pair<ObjectId>,
        old: &'d [u8],
        new: &'d [u8],
    ) -> Result<Vec<(&'d BStr, Pair<EntryRef<'d>>)>, Error> {
        let (format, place) = (self.source.format(), self.path.as_bstr());
        let mut left = Cursor::new(entries(old, format), sides[0], place)?;
        let mut right = Cursor::new(entries(new, format), sides[1], place)?;
        let mut pairs = Vec::new();
        while let Some(at) = first([left.head(), right.head()]) {
            let pair = [left.take(&at)?, right.take(&at)?];
            if let [Some(old), Some(new)] = pair
                && old.same_content(&new)
            {
                continue;
            }
            pairs.push((at.name, pair));
        }
        Ok(pairs)
    }

    fn leads_to_prefix(&self) -> bool {
        self.prefixes
            .iter()
            .any(|prefix| within(prefix, &self.path))
    }

    fn file(&mut self, pair: &Pair<EntryRef<'_>>) -> ControlFlow<()> {
        let [old, new] = pair.map(|entry| entry.map(|entry| entry.entry()));
        (self.visit)(Change {
            path: self.path.clone(),
            old,
            new,
        })
    }
}

/// The trees of a pair of folders; `None` for anything else. A folder only pairs with a folder.
fn folders(pair: &Pair<EntryRef<'_>>) -> Option<Pair<ObjectId>> {
    let is_tree = pair.iter().flatten().all(EntryRef::is_tree);
    is_tree.then(|| pair.map(|entry| entry.map(|entry| entry.id())))
}

/// Whether `path` is `above` or lies below it.
pub(super) fn within(path: &[u8], above: &[u8]) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
}
