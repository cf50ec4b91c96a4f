//! Many changes to a tree in one pass.
//!
//! Only the directories on changed paths are read, and only those whose content differs are written, so
//! unchanged subtrees keep their ids. The result is the tree that `git write-tree` makes of the same
//! paths: sorted in git's order, without empty folders.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::parse::{encode, tree_order};
use super::{
    Defect, Entry, EntryRef, Error, TREE, TreeStore, canonical_mode, check_depth, empty_tree,
    entries, malformed, open_side, push,
};
use crate::git::{ObjectFormat, ObjectId};

/// The changes to one path: `None` deletes it.
type Edit = Option<Entry>;

/// Applies `edits` to the tree `root` and returns the new root.
///
/// - `Some` sets a path: a file, a link, a submodule, or with mode [`TREE`] a whole folder (the empty tree
///   removes it). What was there makes way: a folder for a file, a file for the folder of `a/b`.
/// - `None` deletes a path, and all below it where it is a folder. A path that is not there is no error.
/// - Where a path and one below it are both named, the upper one counts first.
/// - An emptied folder vanishes; an emptied root becomes the empty tree.
///
/// When nothing changes the same id comes back, and nothing is written but the trees of folders that were
/// deleted and filled again.
///
/// # Errors
///
/// [`Error::BadPath`], [`Error::Overlap`] and [`Error::ForeignId`] for edits that make no tree; the rest
/// for trees that cannot be read or written. An error may leave trees behind that nothing points to.
pub fn edit<S: TreeStore + ?Sized>(
    store: &mut S,
    root: ObjectId,
    edits: &BTreeMap<BString, Edit>,
) -> Result<ObjectId, Error> {
    check(edits, store.format())?;
    let edits: Vec<(&[u8], Edit)> = edits
        .iter()
        .map(|(path, entry)| (path.as_slice(), *entry))
        .collect();
    let mut pass = Pass {
        empty: empty_tree(store.format()),
        store,
        path: BString::default(),
    };
    match pass.rewrite(Some(root), &edits, 0)? {
        Outcome::Same => Ok(root),
        Outcome::Empty => pass.write(Vec::new()),
        Outcome::Tree(id) => Ok(id),
    }
}

/// Refuses edits that make no tree, before anything is read or written.
fn check(edits: &BTreeMap<BString, Edit>, format: ObjectFormat) -> Result<(), Error> {
    for (path, entry) in edits {
        let bad = |name: &[u8]| matches!(name, b"" | b"." | b"..");
        if path.contains(&0) || path.split_str("/").any(bad) {
            return Err(Error::BadPath { path: path.clone() });
        }
        let Some(entry) = entry else { continue };
        if entry.id.object_format() != format || entry.id.is_zero() {
            return Err(Error::ForeignId {
                id: entry.id,
                path: path.clone(),
            });
        }
        for slash in path.find_iter("/") {
            let above = path[..slash].as_bstr();
            if edits.get(above).is_some_and(Option::is_some) {
                return Err(Error::Overlap {
                    path: above.to_owned(),
                    below: path.clone(),
                });
            }
        }
    }
    Ok(())
}

/// What became of a directory.
enum Outcome {
    Same,
    Empty,
    Tree(ObjectId),
}

/// All that happens to one name of a directory.
struct Slot<'e> {
    /// The edit of the name itself.
    own: Option<Edit>,
    /// The edits below it.
    below: &'e [(&'e [u8], Edit)],
    /// What the directory holds now.
    old: Option<Entry>,
}

struct Pass<'s, S: ?Sized> {
    store: &'s mut S,
    empty: ObjectId,
    path: BString,
}

impl Slot<'_> {
    /// What the name's own edit makes of it, before those below it.
    fn after_own(&self, empty: ObjectId) -> Option<Entry> {
        match self.own {
            None => self.old,
            Some(edit) => edit
                .map(|entry| Entry {
                    mode: canonical_mode(entry.mode),
                    id: entry.id,
                })
                .filter(|entry| !entry.is_tree() || entry.id != empty),
        }
    }

    /// Whether the edits below do anything to `entry`: deletions need a folder, and what is set makes one.
    fn goes_below(&self, entry: Option<Entry>) -> bool {
        let is_tree = entry.is_some_and(|entry| entry.is_tree());
        !self.below.is_empty() && (is_tree || self.below.iter().any(|(_, edit)| edit.is_some()))
    }
}

impl<S: TreeStore + ?Sized> Pass<'_, S> {
    /// Rewrites the directory at `self.path`; `edits` are full paths below it, in order, and their
    /// first `skip` bytes lead to the directory.
    fn rewrite(
        &mut self,
        id: Option<ObjectId>,
        edits: &[(&[u8], Edit)],
        skip: usize,
    ) -> Result<Outcome, Error> {
        let mut slots = slots(edits, skip);
        let data = open_side(self.store, id, self.path.as_bstr())?;
        let kept = self.sort_out(id, &data, &mut slots)?;
        let mut changed = false;
        let mut fresh = Vec::new();
        for (name, slot) in &slots {
            let mut new = slot.after_own(self.empty);
            if slot.goes_below(new) {
                let length = push(&mut self.path, name);
                check_depth(slashes(&self.path) + 1, &self.path)?;
                let tree = new.filter(Entry::is_tree).map(|entry| entry.id);
                match self.rewrite(tree, slot.below, self.path.len() + 1)? {
                    Outcome::Same => {}
                    Outcome::Empty => new = None,
                    Outcome::Tree(id) => new = Some(Entry { mode: TREE, id }),
                }
                self.path.truncate(length);
            }
            changed |= new != slot.old;
            fresh.extend(new.map(|entry| (*name, entry)));
        }
        if !changed {
            return Ok(Outcome::Same);
        }
        if kept.is_empty() && fresh.is_empty() {
            return Ok(Outcome::Empty);
        }
        self.write(merge(&kept, fresh)).map(Outcome::Tree)
    }

    /// Puts a directory's entries into the slots of their names and returns those without one.
    fn sort_out<'d>(
        &self,
        id: Option<ObjectId>,
        data: &'d [u8],
        slots: &mut BTreeMap<&BStr, Slot<'_>>,
    ) -> Result<Vec<EntryRef<'d>>, Error> {
        let mut kept = Vec::new();
        let Some(id) = id else { return Ok(kept) };
        let defect = |defect| malformed(id, self.path.as_bstr(), defect);
        for entry in entries(data, self.store.format()) {
            let entry = entry.map_err(defect)?;
            match slots.get_mut(entry.name) {
                None => kept.push(entry),
                Some(slot) if slot.old.is_none() => slot.old = Some(entry.entry()),
                // A file and a folder of one name.
                Some(_) => return Err(defect(Defect::Unsorted)),
            }
        }
        Ok(kept)
    }

    fn write(&mut self, data: Vec<u8>) -> Result<ObjectId, Error> {
        self.store.write_tree(data).map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }
}

fn slashes(path: &BString) -> usize {
    path.iter().filter(|byte| **byte == b'/').count()
}

/// Sorts edits by the name in the directory that they touch.
fn slots<'e>(edits: &'e [(&'e [u8], Edit)], skip: usize) -> BTreeMap<&'e BStr, Slot<'e>> {
    let mut slots = BTreeMap::new();
    let empty = || Slot {
        own: None,
        below: &[],
        old: None,
    };
    let mut at = 0;
    while let Some((path, edit)) = edits.get(at) {
        let rest = &path[skip..];
        let Some(length) = rest.find_byte(b'/') else {
            slots.entry(rest.as_bstr()).or_insert_with(empty).own = Some(*edit);
            at += 1;
            continue;
        };
        // In byte order, all paths of one folder stand together.
        let folder = &path[..=skip + length];
        let count = edits[at..].partition_point(|(path, _)| path.starts_with(folder));
        let slot = slots.entry(rest[..length].as_bstr()).or_insert_with(empty);
        slot.below = &edits[at..at + count];
        at += count;
    }
    slots
}

/// Makes the bytes of a directory from the entries that stay, in order, and the others.
fn merge(kept: &[EntryRef<'_>], mut fresh: Vec<(&BStr, Entry)>) -> Vec<u8> {
    fresh.sort_by(|(a, left), (b, right)| tree_order(a, left.is_tree(), b, right.is_tree()));
    let mut data = Vec::new();
    let mut kept = kept.iter().peekable();
    for (name, entry) in fresh {
        let before = |old: &&EntryRef<'_>| {
            tree_order(old.name, old.is_tree(), name, entry.is_tree()) == Ordering::Less
        };
        while let Some(old) = kept.next_if(before) {
            old.encode(&mut data);
        }
        encode(&mut data, name, entry.mode, entry.id.as_bytes());
    }
    for old in kept {
        old.encode(&mut data);
    }
    data
}
