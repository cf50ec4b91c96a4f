//! A work list that several threads take from and add to: newest first, so that a walk through
//! folders goes deep before it goes wide and holds few of them open.

use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many threads to use for work on the file system: two even on one core, for one may wait for
/// the disk while the other computes; more than eight only get into each other's way.
pub(super) fn threads() -> usize {
    /// The system is asked once: its answer takes a dozen files to put together.
    static THREADS: OnceLock<usize> = OnceLock::new();
    *THREADS.get_or_init(|| std::thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8)))
}

struct State<T> {
    tasks: Vec<T>,
    /// Tasks that are being worked on, and may add others.
    active: usize,
    /// Threads that wait for a task: with none of them, nobody is woken, which is a system call.
    waiting: usize,
    stopped: bool,
}

/// The list.
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    wake: Condvar,
}

impl<T> Queue<T> {
    /// A list with one task.
    pub(super) fn new(first: T) -> Self {
        Queue {
            state: Mutex::new(State {
                tasks: vec![first],
                active: 0,
                waiting: 0,
                stopped: false,
            }),
            wake: Condvar::new(),
        }
    }

    /// Adds tasks; the last of them is taken first.
    pub(super) fn push(&self, tasks: impl IntoIterator<Item = T>) {
        let mut state = self.lock();
        state.tasks.extend(tasks);
        if state.waiting > 0 && !state.tasks.is_empty() {
            self.wake.notify_all();
        }
    }

    /// Lets every thread end after the task it is at.
    pub(super) fn stop(&self) {
        self.lock().stopped = true;
        self.wake.notify_all();
    }

    /// Works until the list is empty and nobody can add to it any more.
    pub(super) fn work(&self, mut on: impl FnMut(T)) {
        while let Some(task) = self.next() {
            let _done = Done(self);
            on(task);
        }
    }

    /// As [`Queue::work`], but not more than so many tasks; says whether some are left then. What is done
    /// sooner than other threads are started is better done alone.
    pub(super) fn work_alone(&self, most: usize, mut on: impl FnMut(T)) -> bool {
        for _ in 0..most {
            let Some(task) = self.next() else {
                return false;
            };
            let _done = Done(self);
            on(task);
        }
        let state = self.lock();
        !state.stopped && !state.tasks.is_empty()
    }

    fn next(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return None;
            }
            if let Some(task) = state.tasks.pop() {
                state.active += 1;
                return Some(task);
            }
            if state.active == 0 {
                return None;
            }
            state.waiting += 1;
            state = self
                .wake
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
            state.waiting -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes a task off the count even when working on it panics, or the other threads would wait for
/// ever.
struct Done<'q, T>(&'q Queue<T>);

impl<T> Drop for Done<'_, T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.active -= 1;
        if state.active == 0 && state.tasks.is_empty() {
            self.0.wake.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn who_works_alone_calls_others_when_it_gets_much() {
        let queue = Queue::new(3_u32);
        assert!(!queue.work_alone(8, |n| queue.push(0..n)));
        queue.push(0..8);
        assert!(!queue.work_alone(8, |_| {}));
        queue.push(0..9);
        assert!(queue.work_alone(8, |_| {}));
        queue.stop();
        assert!(!queue.work_alone(8, |_| {}));
    }

    #[test]
    fn tasks_that_add_tasks_are_all_done_once() {
        let queue = Queue::new(10_u32);
        let sum = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    queue.work(|n| {
                        sum.fetch_add(1, Ordering::Relaxed);
                        queue.push((0..n).map(|_| n / 2));
                    });
                });
            }
        });
        // t(n) = 1 + n * t(n / 2): t(0) = 1, t(1) = 2, t(2) = 5, t(5) = 26, t(10) = 261.
        assert_eq!(sum.into_inner(), 261);
    }

    #[test]
    fn stopping_leaves_the_rest() {
        let queue = Queue::new(0);
        let mut done = 0;
        queue.work(|_| {
            queue.push([1, 2, 3]);
            queue.stop();
            done += 1;
        });
        assert_eq!(done, 1);
    }
}
