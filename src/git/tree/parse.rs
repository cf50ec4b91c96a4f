//! The format of a tree object, read one entry at a time without copying.
//!
//! An entry is `<octal mode> SP <name> NUL <raw id>`. Names are not empty, hold no slash, and ascend in
//! git's order; a tree that breaks this is refused, because merges of sorted lists would silently lose
//! entries of it.

use std::cmp::Ordering;

use bstr::{BStr, ByteSlice};

use super::{Entry, TREE, canonical_mode};
use crate::git::{ObjectFormat, ObjectId};

/// What is wrong with a tree object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    /// An entry ends before its name or its id does.
    #[error("an entry is cut off")]
    Truncated,
    /// A mode that is no octal number.
    #[error("an entry has no valid mode")]
    Mode,
    /// An entry without a name.
    #[error("an entry has no name")]
    NoName,
    /// A name that holds a slash.
    #[error("the name of an entry holds a slash")]
    Slash,
    /// Entries that do not ascend, or are there twice.
    #[error("the entries are not sorted")]
    Unsorted,
}

/// One entry, still in the bytes of its tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryRef<'a> {
    /// The name, without a slash.
    pub name: &'a BStr,
    /// The canonical mode.
    pub mode: u32,
    raw_id: &'a [u8],
}

impl<'a> EntryRef<'a> {
    /// The object of the entry.
    pub fn id(&self) -> ObjectId {
        ObjectId::from_bytes(self.raw_id).expect("invariant: an entry's id has the hash's length")
    }

    /// The entry without its name.
    pub fn entry(&self) -> Entry {
        Entry {
            mode: self.mode,
            id: self.id(),
        }
    }

    /// Whether the entry is a folder.
    pub fn is_tree(&self) -> bool {
        self.mode == TREE
    }

    /// Whether both have the same mode and object, whatever their names.
    pub(super) fn same_content(&self, other: &EntryRef<'_>) -> bool {
        self.mode == other.mode && self.raw_id == other.raw_id
    }

    /// Where the entry stands to another in the order of trees.
    pub(super) fn order(&self, other: &EntryRef<'_>) -> Ordering {
        tree_order(self.name, self.is_tree(), other.name, other.is_tree())
    }
}

/// The order of trees: bytes of the name, a folder's name continued by `/`.
pub(super) fn tree_order(a: &[u8], a_is_tree: bool, b: &[u8], b_is_tree: bool) -> Ordering {
    let common = a.len().min(b.len());
    let next = |name: &[u8], is_tree: bool| match name.get(common) {
        Some(byte) => *byte,
        None if is_tree => b'/',
        None => 0,
    };
    a[..common]
        .cmp(&b[..common])
        .then_with(|| next(a, a_is_tree).cmp(&next(b, b_is_tree)))
}

/// Iterates over the entries of a tree object. After a defect it ends.
#[derive(Debug, Clone)]
pub struct Entries<'a> {
    rest: &'a [u8],
    id_length: usize,
    last: Option<EntryRef<'a>>,
}

/// Parses the bytes of a tree object, entry by entry.
pub fn entries(data: &[u8], format: ObjectFormat) -> Entries<'_> {
    Entries {
        rest: data,
        id_length: id_length(format),
        last: None,
    }
}

/// The length of a raw id, in bytes.
fn id_length(format: ObjectFormat) -> usize {
    match format {
        ObjectFormat::Sha1 => 20,
        ObjectFormat::Sha256 => 32,
    }
}

impl<'a> Entries<'a> {
    fn parse(&mut self) -> Result<EntryRef<'a>, Defect> {
        let space = self.rest.find_byte(b' ').ok_or(Defect::Truncated)?;
        let (mode, rest) = (&self.rest[..space], &self.rest[space + 1..]);
        if mode.is_empty() || mode.len() > 7 {
            return Err(Defect::Mode);
        }
        let raw = mode.iter().try_fold(0u32, |sum, byte| match byte {
            b'0'..=b'7' => Ok(sum << 3 | u32::from(byte - b'0')),
            _ => Err(Defect::Mode),
        })?;
        let end = rest.find_byte(0).ok_or(Defect::Truncated)?;
        let (name, rest) = (rest[..end].as_bstr(), &rest[end + 1..]);
        if name.is_empty() {
            return Err(Defect::NoName);
        }
        if name.contains(&b'/') {
            return Err(Defect::Slash);
        }
        if rest.len() < self.id_length {
            return Err(Defect::Truncated);
        }
        let (raw_id, rest) = rest.split_at(self.id_length);
        let entry = EntryRef {
            name,
            mode: canonical_mode(raw),
            raw_id,
        };
        if self
            .last
            .is_some_and(|last| last.order(&entry) != Ordering::Less)
        {
            return Err(Defect::Unsorted);
        }
        self.rest = rest;
        self.last = Some(entry);
        Ok(entry)
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = Result<EntryRef<'a>, Defect>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let entry = self.parse();
        if entry.is_err() {
            self.rest = &[];
        }
        Some(entry)
    }
}

/// Appends an entry to the bytes of a tree.
pub(super) fn encode(data: &mut Vec<u8>, name: &BStr, mode: u32, raw_id: &[u8]) {
    data.extend_from_slice(format!("{mode:o} ").as_bytes());
    data.extend_from_slice(name);
    data.push(0);
    data.extend_from_slice(raw_id);
}

impl EntryRef<'_> {
    /// Appends the entry to the bytes of a tree, with its canonical mode.
    pub(super) fn encode(&self, data: &mut Vec<u8>) {
        encode(data, self.name, self.mode, self.raw_id);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn all(data: &[u8]) -> Result<Vec<(&BStr, u32)>, Defect> {
        entries(data, ObjectFormat::Sha1)
            .map(|entry| entry.map(|entry| (entry.name, entry.mode)))
            .collect()
    }

    fn tree(parts: &[(&str, &str)]) -> Vec<u8> {
        let mut data = Vec::new();
        for (mode, name) in parts {
            data.extend_from_slice(format!("{mode} {name}\0").as_bytes());
            data.extend_from_slice(&[7; 20]);
        }
        data
    }

    #[test]
    fn modes_are_canonical_and_padding_is_read() {
        let data = tree(&[
            ("100664", "a"),
            ("100775", "b"),
            ("040000", "c"),
            ("120777", "d"),
        ]);
        let modes: Vec<u32> = all(&data)
            .unwrap()
            .into_iter()
            .map(|entry| entry.1)
            .collect();
        assert_eq!(modes, [super::super::REGULAR, 0o100_755, TREE, 0o120_000]);
    }

    #[test]
    fn every_defect_has_its_name() {
        let good = tree(&[("100644", "a")]);
        for cut in 1..good.len() {
            assert_eq!(all(&good[..cut]), Err(Defect::Truncated), "cut at {cut}");
        }
        let cases = [
            (tree(&[("10064x", "a")]), Defect::Mode),
            (tree(&[("", "a")]), Defect::Mode),
            (tree(&[("7777777777777", "a")]), Defect::Mode),
            (tree(&[("100644", "")]), Defect::NoName),
            (tree(&[("100644", "a/b")]), Defect::Slash),
            (tree(&[("100644", "b"), ("100644", "a")]), Defect::Unsorted),
            (tree(&[("100644", "a"), ("100755", "a")]), Defect::Unsorted),
            (tree(&[("40000", "a"), ("100644", "a-b")]), Defect::Unsorted),
        ];
        for (data, defect) in cases {
            assert_eq!(all(&data), Err(defect), "{}", data.as_bstr());
        }
        assert!(all(&tree(&[("100644", "a-b"), ("40000", "a")])).is_ok());
    }

    #[test]
    fn an_iterator_ends_after_a_defect() {
        let data = tree(&[("100644", "b"), ("100644", "a")]);
        assert_eq!(entries(&data, ObjectFormat::Sha1).count(), 2);
    }
}
