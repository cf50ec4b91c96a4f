//! Flushing several files or folders at once.
//!
//! One after the other, each waits for a commit of the file system's journal of its own. Asked for
//! together, they share one or two: several times faster where the disk is slow or busy.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicUsize, Ordering};

use rustix::fs::fsync;
use rustix::io::Errno;

/// How many wait at the same time; they do nothing but wait.
const TOGETHER: usize = 16;

/// Flushes all of them.
///
/// # Errors
/// The first failure that was seen; the others have been flushed all the same, or have failed too.
pub fn flush(open: &[OwnedFd]) -> Result<(), Errno> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut result = Ok(());
        while let Some(one) = open.get(next.fetch_add(1, Ordering::Relaxed)) {
            result = result.and(fsync(one));
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
