//! Writing an index: whole, beside its place, then renamed into it.

use super::{Error, IndexFile, Result, StatData, TreeCache};
use crate::git::checksum::{checksum, hash_len};
use crate::git::{ObjectFormat, ObjectId};
use bstr::{BStr, BString, ByteSlice};
use std::fs::{self, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Write;
use std::path::Path;

/// One path of an index, merged and without flags.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The path from the top of the directory, without a slash at either end.
    pub path: BString,
    /// 100644, 100755, 120000 (symbolic link) or 160000 (gitlink), octal.
    pub mode: u32,
    /// The blob, or the commit of a gitlink.
    pub id: ObjectId,
    /// The file's stat data as laid out; all zero makes git read the file.
    pub stat: StatData,
}

/// Says in the flags that more of them follow.
const EXTENDED: u16 = 0x4000;
/// Of the flags that follow.
const SKIP_WORKTREE: u16 = 0x4000;
/// The part of an entry before the id: ten words.
pub(super) const STAT_LEN: usize = 40;
/// The path's length in the flags; this value means "at least so long".
pub(super) const NAME_MASK: u16 = 0xfff;

/// The length of an entry with padding: a multiple of eight, with one NUL at least after the path.
pub(super) fn padded(len: usize) -> usize {
    (len + 8) & !7
}

/// Writes the index of `entries`, which are sorted by path, to `path`.
///
/// The file appears at once and whole, in place of an older one. It is not flushed: an index is a
/// cache, and its trailer tells when a power failure has spoilt it.
///
/// # Errors
///
/// Fails for entries that are out of order or that no index can hold, for a tree cache whose
/// directories do not fit each other, and if the file cannot be written; `path` is as before then.
pub fn write_index(
    path: &Path,
    format: ObjectFormat,
    entries: &[IndexEntry],
    trees: Option<&TreeCache>,
) -> Result<()> {
    put(path, &serialize(format, entries, trees, &|_| false)?)
}

/// As [`write_index`], in the form (version 3) that has git's skip-worktree bit at the paths of which
/// `skips` says so: git takes them for present, whatever is on disk.
///
/// # Errors
/// As [`write_index`].
pub fn write_sparse_index(
    path: &Path,
    format: ObjectFormat,
    entries: &[IndexEntry],
    trees: Option<&TreeCache>,
    skips: &dyn Fn(&BStr) -> bool,
) -> Result<()> {
    put(path, &serialize(format, entries, trees, skips)?)
}

/// Writes the index of a directory that holds what that of `same` holds, to `path`: the entries and the
/// tree cache are the same, the stat data are `stats`, in the order of the entries.
///
/// # Errors
/// As [`write_index`]. More or fewer stat data than entries are out of order.
pub fn write_index_like(path: &Path, same: &IndexFile, stats: &[StatData]) -> Result<()> {
    put(path, &same.with_stats(stats)?)
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut tmp = path.as_os_str().to_owned();
    let random = RandomState::new().build_hasher().finish();
    tmp.push(format!(".vws-{random:016x}.tmp"));
    let tmp = Path::new(&tmp);
    let io = |action| {
        move |source| Error::Io {
            action,
            path: path.to_owned(),
            source,
        }
    };
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(tmp)
        .map_err(io("create"))?;
    let written = file
        .write_all(bytes)
        .map_err(io("write"))
        .and_then(|()| fs::rename(tmp, path).map_err(io("replace")));
    if written.is_err() {
        fs::remove_file(tmp).ok();
    }
    written
}

fn serialize(
    format: ObjectFormat,
    entries: &[IndexEntry],
    trees: Option<&TreeCache>,
    skips: &dyn Fn(&BStr) -> bool,
) -> Result<Vec<u8>> {
    let fixed = STAT_LEN + hash_len(format) + 2;
    let size: usize = entries.iter().map(|e| padded(fixed + e.path.len())).sum();
    let mut out = Vec::with_capacity(12 + size + 4096);
    let extended = entries.iter().any(|entry| skips(entry.path.as_bstr()));
    out.extend_from_slice(b"DIRC\0\0\0");
    out.push(if extended { 3 } else { 2 });
    let count = u32::try_from(entries.len()).expect("invariant: entries can be counted");
    out.extend_from_slice(&count.to_be_bytes());
    let mut before: Option<&IndexEntry> = None;
    for entry in entries {
        if before.is_some_and(|before| before.path >= entry.path) {
            return Err(Error::Order(entry.path.clone()));
        }
        push_entry(&mut out, format, entry, skips(entry.path.as_bstr()))?;
        before = Some(entry);
    }
    if let Some(trees) = trees {
        let data = trees.serialize(entries)?;
        let len = u32::try_from(data.len()).expect("invariant: trees take less than their entries");
        out.extend_from_slice(b"TREE");
        out.extend_from_slice(&len.to_be_bytes());
        out.extend_from_slice(&data);
    }
    let trailer = checksum(format, &out);
    out.extend_from_slice(&trailer);
    Ok(out)
}

fn push_entry(
    out: &mut Vec<u8>,
    format: ObjectFormat,
    entry: &IndexEntry,
    skip: bool,
) -> Result<()> {
    if let Some(what) = fault(format, entry) {
        return Err(Error::Entry {
            path: entry.path.clone(),
            what,
        });
    }
    let start = out.len();
    out.extend_from_slice(&words_of(&entry.stat, entry.mode));
    out.extend_from_slice(entry.id.as_bytes());
    let flags = entry.path.len().min(usize::from(NAME_MASK)) as u16;
    if skip {
        out.extend_from_slice(&(flags | EXTENDED).to_be_bytes());
        out.extend_from_slice(&SKIP_WORKTREE.to_be_bytes());
    } else {
        out.extend_from_slice(&flags.to_be_bytes());
    }
    out.extend_from_slice(&entry.path);
    out.resize(start + padded(out.len() - start), 0);
    Ok(())
}

/// The part of an entry before the id.
pub(super) fn words_of(stat: &StatData, mode: u32) -> [u8; STAT_LEN] {
    let words = [
        stat.ctime.0,
        stat.ctime.1,
        stat.mtime.0,
        stat.mtime.1,
        stat.dev,
        stat.ino,
        mode,
        stat.uid,
        stat.gid,
        stat.size,
    ];
    let mut bytes = [0; STAT_LEN];
    for (at, word) in bytes.chunks_exact_mut(4).zip(words) {
        at.copy_from_slice(&word.to_be_bytes());
    }
    bytes
}

/// Why the entry cannot stand in an index.
fn fault(format: ObjectFormat, entry: &IndexEntry) -> Option<&'static str> {
    if entry.path.is_empty() || entry.path.contains(&0) {
        Some("an empty path or a NUL in it")
    } else if !matches!(entry.mode, 0o100644 | 0o100755 | 0o120000 | 0o160000) {
        Some("a mode that is not a file's")
    } else if entry.id.object_format() != format {
        Some("an id of another hash")
    } else {
        None
    }
}
