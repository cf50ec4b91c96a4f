//! What writers that died have left behind.

use super::listing::ours;
use super::publish::{KEEP_PREFIX, with_suffix};
use super::{Error, Result};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::SystemTime;

/// What [`clean_leftovers`] did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Cleaned {
    /// Complete packs that a dead writer still held, and that Git may collect again now.
    pub released: usize,
    /// Packs that a dead writer never completed, removed.
    pub removed: usize,
}

/// Removes what dead writers left below `objects_dir`: incomplete packs, and holds on complete ones.
///
/// A writer is dead if the lock on its `.keep` file is free; only files last modified before
/// `older_than` are looked at, which spares new ones the attention. A complete pack is never removed:
/// its ref may have moved. Nor is a `.pack` without `.idx` and `.keep`, which a roll-up killed between
/// two deletions may leave: it cannot be told from a pack whose index somebody lost and wants back.
///
/// # Errors
///
/// Fails if the directory cannot be listed or a leftover not removed.
pub fn clean_leftovers(objects_dir: &Path, older_than: SystemTime) -> Result<Cleaned> {
    let dir = objects_dir.join("pack");
    let mut cleaned = Cleaned::default();
    for (name, suffixes) in ours(&dir)? {
        let stem = dir.join(name);
        if suffixes.contains(".keep") {
            clean_one(&stem, older_than, &mut cleaned)?;
        } else if lost_index(&stem, &suffixes, older_than) {
            remove(&with_suffix(&stem, ".idx.tmp"))?;
            cleaned.removed += 1;
        }
    }
    Ok(cleaned)
}

/// Whether an unfinished index has lost its `.keep`: git or the user may remove one at any time.
fn lost_index(stem: &Path, suffixes: &BTreeSet<String>, older_than: SystemTime) -> bool {
    suffixes.contains(".idx.tmp")
        && is_older(&with_suffix(stem, ".idx.tmp"), older_than)
        // Listing a directory is not atomic: the publish may have begun while it ran.
        && !with_suffix(stem, ".keep").exists()
}

fn is_older(path: &Path, than: SystemTime) -> bool {
    fs::metadata(path)
        .and_then(|meta| meta.modified())
        .is_ok_and(|modified| modified < than)
}

fn clean_one(stem: &Path, older_than: SystemTime, cleaned: &mut Cleaned) -> Result<()> {
    let keep = with_suffix(stem, ".keep");
    if !is_older(&keep, older_than) {
        return Ok(());
    }
    // A keep that cannot be opened or locked is somebody's; the next run may do better.
    let Ok(mut file) = File::open(&keep) else {
        return Ok(());
    };
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Ok(());
    }
    let mut text = Vec::new();
    (&mut file)
        .take(64)
        .read_to_end(&mut text)
        .map_err(Error::io("read", &keep))?;
    let complete = with_suffix(stem, ".idx").exists();
    // An empty keep is what a power failure leaves of ours, or what a user touched: beside a complete
    // pack it is given the benefit of the doubt.
    let is_ours = text.starts_with(KEEP_PREFIX.as_bytes()) || (text.is_empty() && !complete);
    if !is_ours {
        return Ok(());
    }
    if complete {
        cleaned.released += 1;
    } else {
        remove(&with_suffix(stem, ".idx.tmp"))?;
        remove(&with_suffix(stem, ".pack"))?;
        cleaned.removed += 1;
    }
    remove(&keep)
}

fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(Error::io("remove", path)),
    }
}
