//! A few threads on one list of work, and what each of them has found.

use crate::layout::Result;
use crate::layout::queue::Queue;

/// Does all the work with as many as `threads` threads; a piece of work may bring more. Gives back
/// what each thread has found.
///
/// # Errors
/// The first failure; what is not begun by then is left.
pub(super) fn work_off<T, R>(
    mut start: Vec<T>,
    threads: usize,
    work: impl Fn(T, &mut R, &mut Vec<T>) -> Result<()> + Sync,
) -> Result<Vec<R>>
where
    T: Send,
    R: Send + Default,
{
    let Some(first) = start.pop() else {
        return Ok(Vec::new());
    };
    let queue = Queue::new(first);
    queue.push(start);
    let worker = || {
        let mut found = R::default();
        let mut more = Vec::new();
        let mut done = Ok(());
        queue.work(|piece| {
            let outcome = work(piece, &mut found, &mut more);
            queue.push(more.drain(..));
            if outcome.is_err() {
                queue.stop();
                done = outcome;
            }
        });
        done.map(|()| found)
    };
    if threads <= 1 {
        return Ok(vec![worker()?]);
    }
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(worker)).collect();
        let mut all = vec![worker()];
        for other in others {
            all.push(match other.join() {
                Ok(found) => found,
                Err(panic) => std::panic::resume_unwind(panic),
            });
        }
        all.into_iter().collect()
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::layout::Error;

    #[test]
    fn work_that_brings_work_is_all_done() {
        for threads in [1, 4] {
            let count = |n: u32, found: &mut Vec<u32>, more: &mut Vec<u32>| {
                found.push(n);
                more.extend(0..n);
                Ok(())
            };
            let found = work_off(vec![6u32], threads, count).unwrap();
            assert_eq!(found.iter().map(Vec::len).sum::<usize>(), 64);
        }
    }

    #[test]
    fn a_failure_ends_it() {
        let done = work_off(vec![1u32, 2, 3], 2, |n, _: &mut (), _| match n {
            2 => Err(Error::io("read", "x", std::io::Error::other("no"))),
            _ => Ok(()),
        });
        assert!(done.is_err());
    }
}
