//! Files that one side of a merge no longer has where they were, and that the other side does not leave
//! as they were either: those for which a merge has to know whether they were renamed.

use bstr::{BString, ByteSlice};

use super::diff::{Cursor, first};
use super::{Entry, EntryRef, Error, TreeSource, check_depth, entries, open_side, push};
use crate::git::ObjectId;

/// A file, link or submodule of the base that at least one side no longer has, and neither left as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    /// The path from the root.
    pub path: BString,
    /// What it was.
    pub base: Entry,
    /// What ours has there; `None` also for a folder.
    pub ours: Option<Entry>,
    /// What theirs has there; `None` also for a folder.
    pub theirs: Option<Entry>,
}

/// Finds what two sides lost of `base`. Nothing that one of them left alone is opened.
///
/// # Errors
///
/// [`Error::Missing`], [`Error::Read`], [`Error::Malformed`] and [`Error::TooDeep`] for the trees opened.
pub fn lost<S: TreeSource + ?Sized>(
    source: &S,
    base: ObjectId,
    ours: ObjectId,
    theirs: ObjectId,
) -> Result<Vec<Lost>, Error> {
    let mut pass = Pass {
        source,
        path: BString::default(),
        found: Vec::new(),
    };
    if base != ours && base != theirs {
        pass.folder(base, [Some(ours), Some(theirs)], 0)?;
    }
    Ok(pass.found)
}

/// A name, what it was, and what the sides have there.
type Changed = (BString, Entry, [Option<Entry>; 2]);

struct Pass<'s, S: ?Sized> {
    source: &'s S,
    path: BString,
    found: Vec<Lost>,
}

impl<S: TreeSource + ?Sized> Pass<'_, S> {
    fn folder(
        &mut self,
        base: ObjectId,
        sides: [Option<ObjectId>; 2],
        depth: usize,
    ) -> Result<(), Error> {
        check_depth(depth, &self.path)?;
        for (name, base, [ours, theirs]) in self.changed(base, sides)? {
            let length = push(&mut self.path, name.as_ref());
            if base.is_tree() {
                let tree = |side: Option<Entry>| side.filter(Entry::is_tree).map(|side| side.id);
                self.folder(base.id, [tree(ours), tree(theirs)], depth + 1)?;
            } else if ours.is_none() || theirs.is_none() {
                self.found.push(Lost {
                    path: self.path.clone(),
                    base,
                    ours,
                    theirs,
                });
            }
            self.path.truncate(length);
        }
        Ok(())
    }

    /// The entries of a folder of the base that both sides changed. A file does not pair with a folder.
    fn changed(
        &self,
        base: ObjectId,
        [ours, theirs]: [Option<ObjectId>; 2],
    ) -> Result<Vec<Changed>, Error> {
        let place = self.path.as_bstr();
        let sides = [Some(base), ours, theirs];
        let mut data = Vec::with_capacity(3);
        for side in sides {
            data.push(open_side(self.source, side, place)?);
        }
        let parse = |side: usize| entries(&data[side], self.source.format());
        let cursor = |side: usize| Cursor::new(parse(side), sides[side], place);
        let (mut base, mut ours, mut theirs) = (cursor(0)?, cursor(1)?, cursor(2)?);
        let mut changed = Vec::new();
        while let Some(at) = first([base.head(), ours.head(), theirs.head()]) {
            let (base, on) = (base.take(&at)?, [ours.take(&at)?, theirs.take(&at)?]);
            let Some(base) = base else { continue };
            let differs =
                |side: &Option<EntryRef<'_>>| !side.is_some_and(|side| side.same_content(&base));
            if on.iter().all(differs) {
                let on = on.map(|side| side.map(|side| side.entry()));
                changed.push((at.name.to_owned(), base.entry(), on));
            }
        }
        Ok(changed)
    }
}
