//! Reading back an index that we have written.
//!
//! The file is checked once, whole, when it is opened; entries are decoded when they are asked for.

use super::cache_tree::{self, CachedTree};
use super::write::{NAME_MASK, STAT_LEN, padded, words_of};
use super::{Error, Result, StatData};
use crate::git::checksum::be32;
use crate::git::checksum::{checksum, hash_len};
use crate::git::{ObjectFormat, ObjectId};
use bstr::{BStr, BString, ByteSlice};
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::path::Path;

/// An index in memory.
#[derive(Debug, Clone)]
pub struct IndexFile {
    bytes: Vec<u8>,
    hash: usize,
    /// Start of each entry, and the length of its path.
    places: Vec<(u32, u32)>,
    /// Where the data of the tree cache are.
    trees: Option<Range<usize>>,
    written: (u32, u32),
}

/// One path of an index that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The path from the top of the directory.
    pub path: &'a BStr,
    /// The mode as it stands in the file, octal 100644 and so on.
    pub mode: u32,
    /// The blob, or the commit of a gitlink.
    pub id: ObjectId,
    /// The file's stat data when the index was written.
    pub stat: StatData,
}

/// Why a file was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Damaged(&'static str),
    Unsupported(&'static str),
}

impl IndexFile {
    /// Reads the index at `path`.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, is damaged, or is an index that Git has written in a way that
    /// we do not: another version, unmerged entries, a split or sparse index.
    pub fn open(path: &Path, format: ObjectFormat) -> Result<IndexFile> {
        let io = |source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        };
        let mut file = File::open(path).map_err(io)?;
        let stat = rustix::fs::fstat(&file).map_err(|error| io(io::Error::from(error)))?;
        let mut bytes = Vec::with_capacity(usize::try_from(stat.st_size).unwrap_or(0) + 1);
        file.read_to_end(&mut bytes).map_err(io)?;
        let written = StatData::from(&stat).mtime;
        IndexFile::parse(bytes, format, written).map_err(|refusal| match refusal {
            Refusal::Damaged(what) => Error::Damaged {
                path: path.to_owned(),
                what,
            },
            Refusal::Unsupported(what) => Error::Unsupported {
                path: path.to_owned(),
                what,
            },
        })
    }

    fn parse(
        bytes: Vec<u8>,
        format: ObjectFormat,
        written: (u32, u32),
    ) -> std::result::Result<IndexFile, Refusal> {
        let hash = hash_len(format);
        let end = bytes.len().checked_sub(hash);
        let end = end.ok_or(Refusal::Damaged("it is too short"))?;
        let (body, trailer) = bytes.split_at(end);
        // With `index.skipHash` git leaves the trailer zero.
        if trailer.iter().any(|byte| *byte != 0) && checksum(format, body) != trailer {
            return Err(Refusal::Damaged("its checksum is wrong"));
        }
        let (places, trees) = places(body, hash)?;
        Ok(IndexFile {
            bytes,
            hash,
            places,
            trees,
            written,
        })
    }

    /// When the index file was last written: seconds since 1970 and nanoseconds.
    pub fn written(&self) -> (u32, u32) {
        self.written
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All entries, sorted by path.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = Entry<'_>> + DoubleEndedIterator {
        self.places.iter().map(|place| self.entry(*place))
    }

    /// The entry of exactly this path.
    pub fn find(&self, path: &BStr) -> Option<Entry<'_>> {
        let at = self
            .places
            .binary_search_by(|place| self.path(*place).cmp(path))
            .ok()?;
        Some(self.entry(self.places[at]))
    }

    /// The directories of the tree cache, each before those below it and the root first; `None` where the
    /// cache does not tell the tree of each, or makes no sense.
    pub fn trees(&self) -> Option<Vec<CachedTree>> {
        cache_tree::parse(&self.bytes[self.trees.clone()?], self.hash, self.len())
    }

    /// The bytes of this index with other stat data.
    pub(super) fn with_stats(&self, stats: &[StatData]) -> Result<Vec<u8>> {
        if stats.len() != self.len() {
            return Err(Error::Order(BString::default()));
        }
        let mut bytes = self.bytes.clone();
        for (place, stat) in self.places.iter().zip(stats) {
            let words = words_of(stat, self.entry(*place).mode);
            let start = place.0 as usize;
            bytes[start..start + STAT_LEN].copy_from_slice(&words);
        }
        let end = bytes.len() - self.hash;
        let format = match self.hash {
            20 => ObjectFormat::Sha1,
            _ => ObjectFormat::Sha256,
        };
        let trailer = checksum(format, &bytes[..end]);
        bytes[end..].copy_from_slice(&trailer);
        Ok(bytes)
    }

    /// Whether a file with these stat data may have changed since without showing it.
    ///
    /// See the module's documentation. To be asked whenever [`StatData::matches`] says yes.
    pub fn is_racy(&self, stat: &StatData) -> bool {
        stat.mtime >= self.written
    }

    fn path(&self, (start, len): (u32, u32)) -> &BStr {
        let start = start as usize + STAT_LEN + self.hash + 2;
        self.bytes[start..start + len as usize].as_bstr()
    }

    fn entry(&self, place: (u32, u32)) -> Entry<'_> {
        let start = place.0 as usize;
        let words = &self.bytes[start..start + STAT_LEN];
        let word = |n: usize| {
            let word = words[n * 4..][..4].try_into();
            u32::from_be_bytes(word.expect("invariant: four bytes are a word"))
        };
        let id = &self.bytes[start + STAT_LEN..][..self.hash];
        Entry {
            path: self.path(place),
            mode: word(6),
            id: ObjectId::from_bytes(id).expect("invariant: an id has the hash's length"),
            stat: StatData {
                ctime: (word(0), word(1)),
                mtime: (word(2), word(3)),
                dev: word(4),
                ino: word(5),
                uid: word(7),
                gid: word(8),
                size: word(9),
            },
        }
    }
}

/// The places of the entries, and of the tree cache.
type Places = (Vec<(u32, u32)>, Option<Range<usize>>);

/// Finds every entry, and refuses what is not a sound version 2 index without its trailer.
fn places(body: &[u8], hash: usize) -> std::result::Result<Places, Refusal> {
    const CUT: Refusal = Refusal::Damaged("it ends too early");
    if !body.starts_with(b"DIRC") {
        return Err(Refusal::Damaged("it has no index header"));
    }
    let version = be32(body, 4).ok_or(CUT)?;
    if version != 2 {
        return Err(Refusal::Unsupported("its version is not 2"));
    }
    let count = be32(body, 8).ok_or(CUT)? as usize;
    let fixed = STAT_LEN + hash + 2;
    // A count beyond what the file can hold must not reserve memory.
    if count > body.len() / fixed || u32::try_from(body.len()).is_err() {
        return Err(Refusal::Damaged("its size does not fit its count"));
    }
    let mut places: Vec<(u32, u32)> = Vec::with_capacity(count);
    let mut start = 12;
    let mut before: &[u8] = b"";
    for _ in 0..count {
        let rest = body.get(start + fixed..).ok_or(CUT)?;
        let flags = &body[start + fixed - 2..start + fixed];
        let flags = u16::from_be_bytes([flags[0], flags[1]]);
        if flags & 0x3000 != 0 {
            return Err(Refusal::Unsupported("it has unmerged entries"));
        }
        let said = usize::from(flags & NAME_MASK);
        let len = if said < usize::from(NAME_MASK) {
            said
        } else {
            rest.find_byte(0).ok_or(CUT)?
        };
        let path = rest.get(..len).ok_or(CUT)?;
        if len < said || rest.get(len) != Some(&0) || path.find_byte(0).is_some() {
            return Err(Refusal::Damaged("a path has not the length it says"));
        }
        // An empty path is out of order, too: it does not come after the empty start.
        if path <= before {
            return Err(Refusal::Damaged("its entries are out of order"));
        }
        before = path;
        places.push((start as u32, len as u32));
        start += padded(fixed + len);
    }
    let trees = extensions(body, start)?;
    Ok((places, trees))
}

/// Steps over the extensions, and tells where the tree cache is; none of them changes what the entries
/// mean, or the index is refused.
fn extensions(body: &[u8], start: usize) -> std::result::Result<Option<Range<usize>>, Refusal> {
    let mut trees = None;
    let mut rest = body
        .get(start..)
        .ok_or(Refusal::Damaged("it ends too early"))?;
    while !rest.is_empty() {
        let len = be32(rest, 4).ok_or(Refusal::Damaged("an extension is cut"))?;
        if !rest[0].is_ascii_uppercase() {
            return Err(Refusal::Unsupported(
                "it has an extension that must be understood",
            ));
        }
        let next = rest[8..].get(len as usize..);
        let next = next.ok_or(Refusal::Damaged("an extension is cut"))?;
        if rest.starts_with(b"TREE") {
            trees = Some(body.len() - rest.len() + 8..body.len() - next.len());
        }
        rest = next;
    }
    Ok(trees)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::index::{IndexEntry, TreeCache, write_index};
    use proptest::prelude::*;

    const FORMAT: ObjectFormat = ObjectFormat::Sha1;

    fn sound() -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("index");
        let long = "l".repeat(5000);
        let mut trees = TreeCache::new();
        trees.record("", ObjectId::ZERO_SHA1);
        trees.record("b", ObjectId::ZERO_SHA1);
        let entries: Vec<IndexEntry> = ["a", "b/c", "b/d", &long, "z"]
            .iter()
            .map(|path| IndexEntry {
                path: (*path).into(),
                mode: 0o100644,
                id: ObjectId::ZERO_SHA1,
                stat: StatData::default(),
            })
            .collect();
        write_index(&path, FORMAT, &entries, Some(&trees)).unwrap();
        std::fs::read(path).unwrap()
    }

    fn sealed(mut body: Vec<u8>) -> Vec<u8> {
        let trailer = checksum(FORMAT, &body);
        body.extend_from_slice(&trailer);
        body
    }

    /// Reads all there is, so that a place beyond the bounds cannot hide.
    fn read_all(bytes: Vec<u8>) -> std::result::Result<usize, Refusal> {
        let index = IndexFile::parse(bytes, FORMAT, (0, 0))?;
        for entry in index.entries() {
            assert_eq!(index.find(entry.path), Some(entry));
        }
        index.trees();
        Ok(index.len())
    }

    #[test]
    fn each_cut_and_each_flipped_bit_is_refused() {
        let bytes = sound();
        assert_eq!(read_all(bytes.clone()), Ok(5));
        for at in 0..bytes.len() {
            assert!(read_all(bytes[..at].to_vec()).is_err(), "cut at {at}");
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(read_all(other).is_err(), "flipped at {at}");
        }
        let body = &bytes[..bytes.len() - 20];
        for at in 0..body.len() {
            let cut = read_all(sealed(body[..at].to_vec()));
            // Where an extension begins is a sound end.
            assert!(cut.is_err() || cut == Ok(5), "cut at {at}");
        }
        assert_eq!(read_all([body, &[0; 20]].concat()), Ok(5), "skipHash");
    }

    #[test]
    fn other_kinds_of_index_are_told_apart_from_damage() {
        let body = sound();
        let body = &body[..body.len() - 20];
        let mut four = body.to_vec();
        four[7] = 4;
        let mut staged = body.to_vec();
        staged[12 + STAT_LEN + 20] |= 0x10;
        let split = [body, b"link\0\0\0\0"].concat();
        for bytes in [four, staged, split] {
            let refusal = read_all(sealed(bytes));
            assert!(
                matches!(refusal, Err(Refusal::Unsupported(_))),
                "{refusal:?}"
            );
        }
    }

    proptest! {
        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            read_all(sealed([b"DIRC\0\0\0\x02\0\0", &bytes[..]].concat())).ok();
            read_all(bytes).ok();
        }

        #[test]
        fn changed_bytes_never_panic(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            cut in any::<prop::sample::Index>(),
            cuts in any::<bool>(),
        ) {
            let mut body = sound();
            body.truncate(body.len() - 20);
            for (at, byte) in changes {
                let at = at.index(body.len());
                body[at] = byte;
            }
            if cuts {
                body.truncate(cut.index(body.len()));
            }
            read_all(sealed(body)).ok();
        }
    }
}
