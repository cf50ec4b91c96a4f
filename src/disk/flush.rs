//! Flushing several files or folders at once.
//!
//! One after the other, each waits for a commit of the file system's journal of its own. Where all are
//! being written before the first is waited for, one or two commits serve them all.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Advice, FileType, fadvise, fstat, fsync, major, minor, stat, statfs};
use rustix::io::Errno;

/// How many wait at the same time: to start a thread takes half as long as a flush.
const TOGETHER: usize = 5;
/// So few are waited for one after the other: threads would cost more than they bring, and on btrfs two
/// that are flushed at the same time commit the whole file system.
const FEW: usize = 8;
/// What `statfs` says of ext4 (and its forerunners) and of XFS. Their one journal takes all changes of names
/// to the disk in the order in which they were made.
const IN_ORDER: [i64; 2] = [EXT4, 0x5846_5342];
/// Of these, the one whose content is known to follow the order, too: on XFS a cut was seen to leave names
/// without the content that had been written out before them (`tests/power_cut`).
const EXT4: i64 = 0xef53;

/// Flushes all of them. What a file system cannot flush at all, as some cannot flush a folder, it has made
/// no promise about.
///
/// # Errors
/// The first failure that was seen; the others have been flushed all the same, or have failed too.
pub fn flush(open: &[impl AsFd + Sync]) -> Result<(), Errno> {
    if open.len() > 1 {
        // What will not be needed soon is written out at once and without waiting. It does not leave the
        // cache, being busy, and a folder, or a file system that knows no advice, does as it likes.
        for one in open {
            let _ = fadvise(one, 0, None, Advice::DontNeed);
        }
    }
    if open.len() <= FEW {
        let each = open.iter().map(flush_one);
        return each.fold(Ok(()), Result::and);
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut result = Ok(());
        while let Some(one) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            result = result.and(flush_one(one));
        }
        result
    };
    std::thread::scope(|scope| {
        // Where there is no other thread to be had, this one does it all.
        let others: Vec<_> = (1..open.len().min(TOGETHER))
            .map_while(|_| std::thread::Builder::new().spawn_scoped(scope, work).ok())
            .collect();
        let mut result = work();
        for other in others {
            // A flush that panics has not been done.
            result = result.and(other.join().unwrap_or(Err(Errno::IO)));
        }
        result
    })
}

/// Flushes folders of a [`Volume`] one after the other: the first takes the others along, so no more is waited
/// for. A file system that cannot flush a folder has no promise to keep here.
pub fn flush_each(folders: &[OwnedFd]) {
    for folder in folders {
        let _ = flush_one(folder);
    }
}

fn flush_one(one: impl AsFd) -> Result<(), Errno> {
    match fsync(one) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        flushed => flushed,
    }
}

/// A file system that keeps the order of names: one that changes is never on disk without those that changed
/// before it. What a crash leaves is some first part of the changes, so that it is enough to flush the last
/// of them in the end. An ext4 without its journal is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Volume {
    device: u64,
    /// Whether content that is written out is on disk before names that change later.
    content: bool,
}

impl Volume {
    /// The one that both folders are on, if it keeps the order.
    pub fn of(one: &Path, other: &Path) -> Option<Volume> {
        // The width of the fields differs between systems.
        #[allow(clippy::unnecessary_cast)]
        let kind = statfs(one).map(|found| found.f_type as i64);
        let kind = kind.ok().filter(|kind| IN_ORDER.contains(kind))?;
        let volume = Volume {
            device: stat(one).ok()?.st_dev,
            content: kind == EXT4,
        };
        if kind == EXT4 && !has_journal(volume.device) {
            return None;
        }
        volume.has(other).then_some(volume)
    }

    /// Whether content follows the order, too, when it is written out before a name changes.
    pub fn keeps_content(self) -> bool {
        self.content
    }

    /// Whether a folder is on it.
    pub fn has(self, folder: &Path) -> bool {
        stat(folder).is_ok_and(|found| found.st_dev == self.device)
    }
}

/// Whether an ext4 has a journal, without which nothing is kept in order: ext2 says the same of itself to
/// `statfs`. Its driver tells who writes it, in `/sys`; where that is not to be read, there is none.
fn has_journal(device: u64) -> bool {
    let block = format!("/sys/dev/block/{}:{}", major(device), minor(device));
    let told = std::fs::read_link(block).ok().and_then(|link| {
        let name = link.file_name()?;
        std::fs::read_to_string(Path::new("/sys/fs/ext4").join(name).join("journal_task")).ok()
    });
    told.is_some_and(|writer| writer.trim().parse::<u32>().is_ok())
}

/// Sees that what these files hold, and the names in these folders, are on disk before any name that changes
/// from now on beside any of them or on `volume`; they need not be sooner.
///
/// Where all are on one volume that keeps the order of names, folders need nothing, and on ext4 content is
/// written out and not waited for further: it notes a file's length and blocks in the journal when the
/// content has been written, so ahead of every later name, and flushes the device before the journal. It is
/// git's own `core.fsyncMethod=batch`, with the flush at the end. Anywhere else all of them are flushed.
///
/// # Errors
/// As [`flush`]; a full disk is found out here at the latest.
pub fn put_before(open: &[impl AsFd + Sync], volume: Option<Volume>) -> Result<(), Errno> {
    let mut files = Vec::with_capacity(open.len());
    for one in open {
        match (fstat(one), volume) {
            (Ok(found), Some(volume)) if found.st_dev == volume.device => {
                if FileType::from_raw_mode(found.st_mode) == FileType::RegularFile {
                    files.push(one.as_fd());
                }
            }
            _ => return flush(open),
        }
    }
    match volume.is_some_and(Volume::keeps_content) {
        true => write_out(&files),
        false => flush(&files),
    }
}

#[cfg(target_os = "linux")]
fn write_out(files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    use super::out;
    // One that cannot be begun says why at its end.
    for file in files {
        let _ = out::begin(*file);
    }
    let each = files.iter().map(|file| match out::end(*file) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP | Errno::SPIPE) => flush_one(file),
        written => written,
    });
    each.fold(Ok(()), Result::and)
}

#[cfg(not(target_os = "linux"))]
fn write_out(files: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let each = files.iter().map(|file| flush_one(file));
    each.fold(Ok(()), Result::and)
}
