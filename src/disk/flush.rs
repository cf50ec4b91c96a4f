//! Flushing several files or folders at once.
//!
//! One after the other, each waits for a commit of the file system's journal of its own. Where all are
//! being written before the first is waited for, one or two commits serve them all.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::{Advice, fadvise, fsync, stat, statfs};
use rustix::io::Errno;

/// How many wait at the same time: to start a thread takes half as long as a flush.
const TOGETHER: usize = 5;
/// So few are waited for one after the other: threads would cost more than they bring, and on btrfs two
/// that are flushed at the same time commit the whole file system.
const FEW: usize = 8;
/// What `statfs` says of ext4 (and its forerunners) and of XFS. Their one journal takes all changes of names
/// to the disk in the order in which they were made.
const IN_ORDER: [i64; 2] = [0xef53, 0x5846_5342];

/// Flushes all of them. What a file system cannot flush at all, as some cannot flush a folder, it has made
/// no promise about.
///
/// # Errors
/// The first failure that was seen; the others have been flushed all the same, or have failed too.
pub fn flush(open: &[OwnedFd]) -> Result<(), Errno> {
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

fn flush_one(one: &OwnedFd) -> Result<(), Errno> {
    match fsync(one) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => Ok(()),
        flushed => flushed,
    }
}

/// Whether a name that changes below one of two folders is never on disk without those that changed before
/// it below the other: both are of one file system that keeps the order. What a crash then leaves is some
/// first part of the changes, so that it is enough to flush all of them in the end. (An ext4 without its
/// journal says the same of itself; there the order holds but for a crash in the moment before that flush.)
pub fn keeps_order(one: &Path, other: &Path) -> bool {
    let (Ok(left), Ok(right)) = (stat(one), stat(other)) else {
        return false;
    };
    // The width of the field differs between systems.
    #[allow(clippy::unnecessary_cast)]
    let kind = statfs(one).map(|found| found.f_type as i64);
    left.st_dev == right.st_dev && kind.is_ok_and(|kind| IN_ORDER.contains(&kind))
}
