//! What takes its time, told as it goes.
//!
//! The library says what it is at and counts; whether anybody is shown it, when and how, is for who calls
//! to decide. A repository carries it ([`Repository::progress`](crate::git::Repository::progress)), so
//! that no function on the way has to hand it on.

/// Hears of work that may take long. One piece of work goes at a time.
pub trait Progress: Send + Sync {
    /// A piece of work begins, in words that fit before a colon; `total` steps, where that is known.
    fn start(&self, what: &'static str, total: Option<u64>);

    /// So many steps more are done. Called often, and by several threads.
    fn step(&self, steps: u64);

    /// The work is done, or given up.
    fn end(&self);
}

/// Nobody hears of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn start(&self, _what: &'static str, _total: Option<u64>) {}

    fn step(&self, _steps: u64) {}

    fn end(&self) {}
}

/// A piece of work; it ends with this value.
pub struct Work<'p> {
    progress: &'p dyn Progress,
}

impl<'p> Work<'p> {
    /// Begins it.
    pub fn start(progress: &'p dyn Progress, what: &'static str, total: Option<u64>) -> Self {
        progress.start(what, total);
        Work { progress }
    }

    /// So many steps more are done.
    pub fn step(&self, steps: u64) {
        self.progress.step(steps);
    }
}

impl Drop for Work<'_> {
    fn drop(&mut self) {
        self.progress.end();
    }
}
