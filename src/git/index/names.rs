//! The paths in the user's own index, whatever form git has given it, and nothing else of it.
//!
//! Not for what depends on flags or stat data, which is git's to say; only for telling the names that
//! are tracked from those that are not. Unlike [`super::IndexFile`], this reads what git writes:
//! versions 2 to 4, unmerged and flagged entries. A split or a sparse index does not hold all
//! names, and is refused.

use crate::git::checksum::be32;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::write::{NAME_MASK, STAT_LEN, padded};
use crate::git::checksum::hash_len;
use crate::git::{ObjectFormat, ObjectId};

/// Where the mode is in an entry, and the bits of it that say that it is a gitlink.
const MODE_AT: usize = 24;
const GITLINK: u32 = 0o160_000;
const ATTRIBUTES: &[u8] = b".gitattributes";
/// A small file of version 4 can unfold to names without end; an honest one comes nowhere near this.
const MOST_BYTES: usize = 1 << 30;
/// The flag for two more bytes of flags, and the stage of an unmerged entry.
const EXTENDED: u16 = 0x4000;
const STAGE: u16 = 0x3000;

/// The tracked names, sorted by path; an unmerged one comes once for each stage.
#[derive(Debug, Default)]
pub struct TrackedNames {
    bytes: Vec<u8>,
    /// Start and length of each path, and whether it is a gitlink.
    places: Vec<(u32, u32, bool)>,
    attributes: Vec<AttributesFile>,
}

/// A tracked `.gitattributes` file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributesFile {
    /// Its path.
    pub path: BString,
    /// Its mode as it stands in the index.
    pub mode: u32,
    /// Its content.
    pub id: ObjectId,
}

/// One state of an index file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndexStamp(Option<[i64; 7]>);

impl IndexStamp {
    /// The state of the index at `path`; of one that is not there, that it is not. Git replaces the file
    /// with each change, so two different contents have two stamps.
    pub fn of(path: &Path) -> IndexStamp {
        let meta = std::fs::metadata(path).ok();
        IndexStamp(meta.map(|meta| {
            [
                meta.dev() as i64,
                meta.ino() as i64,
                meta.size() as i64,
                meta.mtime(),
                meta.mtime_nsec(),
                meta.ctime(),
                meta.ctime_nsec(),
            ]
        }))
    }
}

impl TrackedNames {
    /// Reads the names in the index at `path`; without a file there are none. `None` for an index that
    /// does not hold all names, and for whatever makes no sense here: git has to be asked then.
    pub fn read(path: &Path, format: ObjectFormat) -> Option<TrackedNames> {
        let mut file = match File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Some(TrackedNames::default());
            }
            other => other.ok()?,
        };
        let size = file.metadata().ok()?.len();
        let mut bytes = Vec::with_capacity(usize::try_from(size).ok()?.saturating_add(1));
        file.read_to_end(&mut bytes).ok()?;
        Self::parse(&bytes, hash_len(format))
    }

    fn parse(bytes: &[u8], hash: usize) -> Option<TrackedNames> {
        let body = bytes.get(..bytes.len().checked_sub(hash)?)?;
        let version = body.strip_prefix(b"DIRC").and_then(|_| be32(body, 4))?;
        if !(2..=4).contains(&version) || u32::try_from(body.len()).is_err() {
            return None;
        }
        let count = be32(body, 8)? as usize;
        // A count beyond what the file can hold must not reserve memory.
        if count > body.len() / (STAT_LEN + hash + 2) {
            return None;
        }
        let mut names = TrackedNames {
            bytes: Vec::with_capacity(body.len() / 2),
            places: Vec::with_capacity(count),
            attributes: Vec::new(),
        };
        let mut at = 12;
        for _ in 0..count {
            at = names.entry(body, at, hash, version)?;
        }
        let mut rest = body.get(at..)?;
        while !rest.is_empty() {
            // One that must be understood: entries are elsewhere, or stand for folders.
            if !rest[0].is_ascii_uppercase() {
                return None;
            }
            rest = rest.get(8..)?.get(be32(rest, 4)? as usize..)?;
        }
        Some(names)
    }

    /// Takes in the entry at `at` and says where the next one starts.
    fn entry(&mut self, body: &[u8], at: usize, hash: usize, version: u32) -> Option<usize> {
        let mode = be32(body, at + MODE_AT)?;
        let gitlink = mode & 0o170_000 == GITLINK;
        let flags_at = at + STAT_LEN + hash;
        let flags = body.get(flags_at..flags_at + 2)?;
        let flags = u16::from_be_bytes([flags[0], flags[1]]);
        let mut start = flags_at + 2;
        if flags & EXTENDED != 0 {
            start += 2;
        }
        let from = self.bytes.len();
        let before = self.places.last().copied().unwrap_or_default();
        if version == 4 {
            // As many bytes less of the path before, then the rest of this one.
            let dropped = varint(body, &mut start)?;
            let kept = (before.1 as usize).checked_sub(dropped)?;
            let before = before.0 as usize;
            self.bytes.extend_from_within(before..before + kept);
        }
        let rest = body.get(start..)?;
        let said = usize::from(flags & NAME_MASK);
        let length = match said < usize::from(NAME_MASK) && version < 4 {
            true => said,
            false => rest.find_byte(0)?,
        };
        let path = rest.get(..length)?;
        if rest.get(length) != Some(&0) || path.find_byte(0).is_some() {
            return None;
        }
        self.bytes.extend_from_slice(path);
        if self.bytes.len() > MOST_BYTES {
            return None;
        }
        let path = &self.bytes[from..];
        let previous = &self.bytes[before.0 as usize..][..before.1 as usize];
        if path.is_empty() || path < previous {
            return None;
        }
        if flags & STAGE == 0 && path.rsplit_str("/").next() == Some(ATTRIBUTES) {
            self.attributes.push(AttributesFile {
                path: path.into(),
                mode,
                id: ObjectId::from_bytes(&body[at + STAT_LEN..flags_at]).ok()?,
            });
        }
        self.places.push((from as u32, path.len() as u32, gitlink));
        Some(match version {
            4 => start + length + 1,
            _ => at + padded(start - at + length),
        })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// One of them, by its place in the order.
    pub fn path(&self, n: usize) -> &BStr {
        let (start, length, _) = self.places[n];
        self.bytes[start as usize..][..length as usize].as_bstr()
    }

    /// The attribute files among them, but for unmerged ones.
    pub fn attribute_files(&self) -> &[AttributesFile] {
        &self.attributes
    }

    /// Whether one of them is a gitlink.
    pub fn is_gitlink(&self, n: usize) -> bool {
        self.places[n].2
    }
}

/// The number at `at`, in the form that git calls the offset encoding of packs.
fn varint(bytes: &[u8], at: &mut usize) -> Option<usize> {
    let mut next = || {
        let byte = *bytes.get(*at)?;
        *at += 1;
        Some(byte)
    };
    let mut byte = next()?;
    let mut value = usize::from(byte & 0x7f);
    while byte & 0x80 != 0 {
        byte = next()?;
        value = value.checked_add(1)?.checked_mul(128)?;
        value = value.checked_add(usize::from(byte & 0x7f))?;
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::scratch::Scratch;
    use proptest::prelude::*;

    fn listed(names: &TrackedNames) -> Vec<String> {
        let one = |n| names.path(n).to_string();
        (0..names.len()).map(one).collect()
    }

    #[test]
    fn every_version_and_hash_gives_the_names_that_git_lists() {
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let scratch = Scratch::new(format);
            let long = format!("{0}/{0}", "l".repeat(250));
            for path in [
                "a",
                "a b",
                ".gitattributes",
                "dir/.gitattributes",
                "dir/x.gitattributes",
                "dir/x",
                "dir/xy",
                "dir.c",
                "dir0",
                "last",
                &long,
            ] {
                let path = scratch.top().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, "text\n").unwrap();
            }
            scratch.git(&["add", "-A"]);
            let id = scratch.line(&["rev-parse", ":a"]);
            let stages: String = (1..4)
                .map(|stage| format!("100644 {id} {stage}\tdir/both\n"))
                .collect();
            let more = format!("{stages}160000 {id} 0\tsub\n");
            scratch.git_with(&["update-index", "--index-info"], more.as_bytes());
            scratch.git(&["update-index", "--skip-worktree", "last"]);
            let git = scratch.git(&["ls-files", "-z", "--cached"]);
            let git: Vec<_> = git.split_str("\0").filter(|p| !p.is_empty()).collect();
            for version in ["2", "3", "4"] {
                scratch.git(&["update-index", "--index-version", version]);
                let index = scratch.top().join(".git/index");
                let names = TrackedNames::read(&index, format).unwrap();
                assert_eq!(names.len(), git.len(), "{version}");
                for (n, path) in git.iter().enumerate() {
                    assert_eq!(names.path(n), path.as_bstr());
                    assert_eq!(names.is_gitlink(n), *path == b"sub");
                }
                let rules = names.attribute_files().iter();
                let rules: Vec<_> = rules.map(|file| (file.path.as_bstr(), file.id)).collect();
                assert_eq!(
                    rules,
                    [
                        (".gitattributes".into(), scratch.id(&["rev-parse", ":a"])),
                        (
                            "dir/.gitattributes".into(),
                            scratch.id(&["rev-parse", ":a"])
                        ),
                    ]
                );
            }
            scratch.git(&["update-index", "--split-index"]);
            let index = scratch.top().join(".git/index");
            assert!(TrackedNames::read(&index, format).is_none(), "split");
            std::fs::remove_file(&index).unwrap();
            assert!(TrackedNames::read(&index, format).unwrap().is_empty());
        }
    }

    /// Two entries of version 4 and an extension.
    fn sound() -> Vec<u8> {
        let mut bytes = b"DIRC\0\0\0\x04\0\0\0\x02".to_vec();
        for (dropped, rest) in [(0_u8, &b"dir/a"[..]), (1, b"bc")] {
            bytes.extend_from_slice(&[0; STAT_LEN + 20 + 2]);
            bytes.push(dropped);
            bytes.extend_from_slice(rest);
            bytes.push(0);
        }
        bytes.extend_from_slice(b"TREE\0\0\0\x01x");
        bytes.extend_from_slice(&[0; 20]);
        bytes
    }

    #[test]
    fn what_makes_no_sense_is_left_to_git() {
        let bytes = sound();
        let names = TrackedNames::parse(&bytes, 20).unwrap();
        assert_eq!(listed(&names), ["dir/a", "dir/bc"]);
        for cut in 0..bytes.len() - 30 {
            assert!(TrackedNames::parse(&bytes[..cut], 20).is_none(), "{cut}");
        }
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            TrackedNames::parse(&bytes, 20)
        };
        assert!(with(7, 5).is_none(), "a later version");
        assert!(with(11, 3).is_none(), "more entries than there are");
        let extension = bytes.len() - 29;
        assert!(with(extension, b't').is_none(), "it must be understood");
        assert!(with(extension + 7, 9).is_none(), "longer than the file");
        let first_path = 12 + STAT_LEN + 22 + 1;
        assert!(with(first_path, b'z').is_none_or(|names| listed(&names)[0] == "zir/a"));
        let second = first_path + 6 + STAT_LEN + 22;
        assert!(with(second, 9).is_none(), "dropped more than there is");
    }

    proptest! {
        #[test]
        fn garbage_never_panics(
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
            version in 2..5_u8,
        ) {
            let mut bytes = sound();
            bytes[7] = version;
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            if let Some(names) = TrackedNames::parse(&bytes, 20) {
                listed(&names);
            }
        }
    }
}
