//! The `worktree` back end: git itself writes every file, as `git worktree add` does.
//!
//! It is the last step, for what the others cannot do: whatever git does to content on its way to the
//! disk (filters, line endings, encodings), and whatever it fetches for that, is git's own.

use super::backend::{Backend, Fit, Ground, Job};
use super::{Result, Stats, filtered};

/// The back end.
pub(super) struct Worktree;

impl Backend for Worktree {
    fn name(&self) -> &'static str {
        "worktree"
    }

    fn fits(&self, _: &Ground<'_, '_>) -> Result<Fit> {
        Ok(Ok("git lays out whatever it holds".to_owned()))
    }

    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats> {
        filtered::lay_out(job)
    }
}
