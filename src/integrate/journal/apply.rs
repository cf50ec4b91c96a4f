//! Carrying out the steps of an entry.

use std::ops::ControlFlow;

use super::entry::{Entry, Step};
use super::{Journal, Result};
use crate::disk::Point;
use crate::model::Refusal;

/// What stands at a path, as the callback for a changed path sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnDisk {
    /// Git's mode: 100644, 100755 or 120000.
    pub mode: u32,
    /// The bytes as they are on disk (of a link: its target).
    pub bytes: Vec<u8>,
}

/// What to do about a path that changed since the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    /// Write this instead (`None`: remove the path).
    Again(Option<OnDisk>),
    /// Leave the path as it is.
    Refuse(Refusal),
}

/// What [`Journal::apply`] asks on the way.
pub struct Hooks<'h> {
    /// A path changed since the plan: merge again? Given the step and what stands there now.
    /// Called at most three times for a step.
    pub changed: &'h mut dyn FnMut(&Step, Option<&OnDisk>) -> Result<Resolution>,
    /// Passed at every point where a kill could strike; `Break` stops the work as a kill would.
    /// Production code passes [`go_on`].
    pub at: &'h mut dyn FnMut(Point) -> ControlFlow<()>,
}

/// The [`Hooks::at`] of production code.
pub fn go_on(_: Point) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

impl Journal<'_> {
    /// Carries out the steps of an open entry, group by group. What became of each stands in
    /// [`Step::outcome`]; nothing is recorded before [`Journal::finish`].
    ///
    /// # Errors
    /// Failures of Git, and whatever a hook returns. The entry is open then, and recovery ends it.
    /// A path that cannot be written is an outcome and no error.
    pub fn apply(&self, entry: &mut Entry, hooks: &mut Hooks<'_>) -> Result<()> {
        let _ = (entry, hooks);
        todo!("next commit")
    }
}
