//! Copying files: by sharing their blocks where the file system can, else inside the kernel.

use std::fs::File;
use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::layout::{Error, Result};

/// How many files a thread takes at a time.
const BATCH: usize = 32;

/// Gives the empty file `to` the content of `from`.
#[cfg(target_os = "linux")]
pub(in crate::layout) fn copy(from: &File, to: &File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(to, from).is_ok() {
        return Ok(());
    }
    let mut done = 0_u64;
    loop {
        // A gigabyte at once, so that the length fits anywhere.
        match rustix::fs::copy_file_range(from, None, to, None, 1 << 30) {
            Ok(0) => return Ok(()),
            Ok(n) => done += n as u64,
            // Not between these two file systems: the standard library knows other ways.
            Err(_) if done == 0 => return io::copy(&mut &*from, &mut &*to).map(drop),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Gives the empty file `to` the content of `from`.
#[cfg(not(target_os = "linux"))]
pub(in crate::layout) fn copy(mut from: &File, mut to: &File) -> io::Result<()> {
    io::copy(&mut from, &mut to).map(drop)
}

/// Runs `job` for each number below `count` on as many threads as there are `seeds`, and gives the
/// results in order. Each thread makes its own state of its seed. The first failure stops all.
pub(in crate::layout) fn in_parallel<D: Send, S, T: Send>(
    seeds: Vec<D>,
    count: usize,
    start: impl Fn(D) -> Result<S> + Sync,
    job: impl Fn(&mut S, usize) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let results = Mutex::new(Vec::<(usize, Vec<T>)>::new());
    let failure = Mutex::new(None::<Error>);
    let work = |seed: D| -> Result<()> {
        let mut state = start(seed)?;
        while !stop.load(Ordering::Relaxed) {
            let from = next.fetch_add(BATCH, Ordering::Relaxed);
            if from >= count {
                break;
            }
            let batch = from..count.min(from + BATCH);
            let done = batch.map(|at| job(&mut state, at)).collect::<Result<_>>()?;
            lock(&results).push((from, done));
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        for seed in seeds {
            scope.spawn(|| {
                if let Err(error) = work(seed) {
                    stop.store(true, Ordering::Relaxed);
                    lock(&failure).get_or_insert(error);
                }
            });
        }
    });
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let mut results = std::mem::take(&mut *lock(&results));
    results.sort_unstable_by_key(|(start, _)| *start);
    Ok(results.into_iter().flat_map(|(_, done)| done).collect())
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .expect("invariant: no thread panics while it holds this")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn results_are_in_order_and_a_failure_stops() {
        let squares = in_parallel(vec![(); 3], 1000, Ok, |(), at| Ok(at * at)).unwrap();
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(at, square)| at * at == *square)
        );
        assert_eq!(squares.len(), 1000);
        let failed = in_parallel(vec![(); 2], 1000, Ok, |(), at| match at {
            500 => Err(Error::io("try", "500", io::ErrorKind::Other)),
            _ => Ok(()),
        });
        assert!(failed.is_err());
    }

    #[test]
    fn content_is_copied() {
        let top = tempfile::tempdir().unwrap();
        let content = vec![7_u8; 100_000];
        std::fs::write(top.path().join("a"), &content).unwrap();
        let to = File::create(top.path().join("b")).unwrap();
        copy(&File::open(top.path().join("a")).unwrap(), &to).unwrap();
        assert_eq!(std::fs::read(top.path().join("b")).unwrap(), content);
    }
}
