//! Rolling up: many small packs of ours become one.
//!
//! Every pack costs each look-up of every git process a little, and more than `gc.autoPackLimit` (50)
//! of them make the user's next command repack the repository. Entries are copied as they stand.
//!
//! The new pack is complete, durable and held before the first old one goes. Of an old pack the
//! `.idx` goes first, as in Git's own deletion: a reader that lists the directory meanwhile never
//! takes up a pack that is about to vanish. A reader that knows the old pack already finds its file
//! missing, looks at the directory again and finds the object in the new pack; Git and libgit2 both
//! do. A stop at any point leaves duplicates and nothing worse, so the deletions are not flushed.

use super::entry::{crc32, is_whole};
use super::listing::{multi_pack_named, ours};
use super::publish::with_suffix;
use super::{Error, PackOptions, PackWriter, Result, idx};
use crate::git::ObjectFormat;
use crate::git::checksum::{checksum, hash_len};
use crate::git::fault;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Packs of this size and more are left as they are.
const MAX_PACK: u64 = 16 << 20;
/// What one roll-up reads at most. It is held in memory, and the next one does the rest.
const MAX_TOTAL: u64 = 64 << 20;

/// What a roll-up did; all zero if there was too little to do or another one was running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RollUp {
    /// The packs that are one now.
    pub merged: usize,
    /// The objects in the new pack.
    pub objects: usize,
    /// The size of the new pack, in bytes.
    pub bytes: u64,
}

/// Merges our small packs below `objects_dir` into one, if there are at least `threshold`.
///
/// Left alone are packs that are held by a `.keep`, of 16 MiB and more, named in a multi-pack index,
/// damaged, or with anything in them but whole objects. `lock` is an open file that every roll-up of
/// this repository uses: it is locked with `flock(2)` here, without waiting, and unlocked at the end.
///
/// # Errors
///
/// Fails if the directory cannot be listed, or the new pack not written, or an old one not removed.
pub fn roll_up(
    objects_dir: &Path,
    format: ObjectFormat,
    threshold: usize,
    options: PackOptions,
    lock: &File,
) -> Result<RollUp> {
    // Counting needs no lock, and nearly every call ends here.
    let dir = objects_dir.join("pack");
    if candidates(&dir)?.len() < threshold.max(2) {
        return Ok(RollUp::default());
    }
    let Some(_locked) = Locked::take(lock) else {
        return Ok(RollUp::default());
    };
    let packs = candidates(&dir)?;
    if packs.len() < threshold.max(2) {
        return Ok(RollUp::default());
    }
    let mut writer = PackWriter::new(format);
    let mut merged = Vec::new();
    let mut total = 0;
    for pack in packs {
        if total + pack.size > MAX_TOTAL {
            break;
        }
        if copy_entries(&pack.stem, format, &mut writer) {
            total += pack.size;
            merged.push(pack.stem);
        }
    }
    if merged.len() < 2 {
        return Ok(RollUp::default());
    }
    let mut done = RollUp {
        merged: 0,
        objects: writer.len(),
        bytes: (writer.bytes() + hash_len(format)) as u64,
    };
    let Some(held) = writer.publish(objects_dir, options)? else {
        return Ok(RollUp::default());
    };
    fault::point("roll-written");
    done.merged = remove_packs(&dir, &merged)?;
    held.release()?;
    Ok(done)
}

/// The roll-up's lock, given back when this is dropped.
struct Locked<'a>(&'a File);

impl<'a> Locked<'a> {
    fn take(file: &'a File) -> Option<Self> {
        flock(file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Locked(file))
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        flock(self.0, FlockOperation::Unlock).ok();
    }
}

struct Candidate {
    size: u64,
    stem: PathBuf,
}

/// The packs that may be merged, the smallest first.
fn candidates(dir: &Path) -> Result<Vec<Candidate>> {
    let listing = ours(dir)?;
    let Some(named) = multi_pack_named(dir) else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (name, suffixes) in listing {
        let whole = suffixes.contains(".pack") && suffixes.contains(".idx");
        // A promisor mark promises something of the pack that its merger could not promise.
        let kept = suffixes.contains(".keep") || suffixes.contains(".promisor");
        if !whole || kept || named.contains(&name) {
            continue;
        }
        let stem = dir.join(name);
        // A pack that is gone by now was collected, and is none of ours to merge.
        let Ok(meta) = fs::metadata(with_suffix(&stem, ".pack")) else {
            continue;
        };
        if meta.len() < MAX_PACK {
            found.push(Candidate {
                size: meta.len(),
                stem,
            });
        }
    }
    found.sort_by(|a, b| a.size.cmp(&b.size).then_with(|| a.stem.cmp(&b.stem)));
    Ok(found)
}

/// Copies all entries of a pack; copies none and says no if it is gone, damaged or holds deltas.
fn copy_entries(stem: &Path, format: ObjectFormat, writer: &mut PackWriter) -> bool {
    let read = |suffix| fs::read(with_suffix(stem, suffix)).ok();
    let (Some(pack), Some(index)) = (read(".pack"), read(".idx")) else {
        return false;
    };
    let Some(entries) = whole_entries(&pack, &index, format) else {
        return false;
    };
    for (entry, body) in entries {
        writer.push_raw(entry.id, body, entry.crc);
    }
    true
}

/// The entries of a pack in the order in which they stand, each with its bytes.
fn whole_entries<'a>(
    pack: &'a [u8],
    index: &[u8],
    format: ObjectFormat,
) -> Option<Vec<(idx::Entry, &'a [u8])>> {
    let (mut entries, trailer) = idx::read(format, index)?;
    let end = pack.len().checked_sub(hash_len(format))?;
    if &pack[end..] != trailer || checksum(format, &pack[..end]) != trailer {
        return None;
    }
    entries.sort_unstable_by_key(|entry| entry.offset);
    let mut found = Vec::with_capacity(entries.len());
    for (n, entry) in entries.iter().enumerate() {
        let next = entries.get(n + 1).map_or(end as u64, |next| next.offset);
        let range = usize::try_from(entry.offset).ok()?..usize::try_from(next).ok()?;
        let body = pack[..end].get(range)?;
        if !is_whole(*body.first()?) || crc32(body) != entry.crc {
            return None;
        }
        found.push((*entry, body));
    }
    Some(found)
}

/// Removes packs that are merged; returns how many.
fn remove_packs(dir: &Path, stems: &[PathBuf]) -> Result<usize> {
    // Asked again: a multi-pack index may have been written meanwhile, and a keep be wanted.
    let Some(named) = multi_pack_named(dir) else {
        return Ok(0);
    };
    let mut removed = 0;
    for stem in stems {
        let name = stem.file_name().and_then(|name| name.to_str());
        let is_named = name.is_none_or(|name| named.contains(name));
        if is_named || with_suffix(stem, ".keep").exists() {
            continue;
        }
        for suffix in [".idx", ".pack", ".rev", ".bitmap", ".mtimes"] {
            let path = with_suffix(stem, suffix);
            match fs::remove_file(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other.map_err(Error::io("remove", &path))?,
            }
            fault::point("roll-removed");
        }
        removed += 1;
    }
    Ok(removed)
}
