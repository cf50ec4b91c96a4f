//! Directories: real files of one revision, while a tool needs them.
//!
//! While a directory is open it is the authority on its workspace: writes through the view are
//! refused, and every reader imports it first. Three things make it, besides its files:
//!
//! - `refs/relo/vws/<agent>/exec`, the revision it was cut from. It is set before the first file is
//!   made and goes after the last capture, so no crash leaves a directory that nobody knows of;
//! - a git dir of its own, `<common-dir>/worktrees/relo-<agent>`: to git, the directory is a linked
//!   worktree with a detached `HEAD`, locked against pruning;
//! - in that git dir, our private *manifest* and *record* (see [`Directory`]), which tools never
//!   touch. Only when all of that is there does the directory come into its place.
//!
//! Of an overlay the changed files are in an upper folder. One that `exec` made is mounted for its
//! command alone, and the directory is an empty place; after the capture that folder is *parked*, and
//! blocks nothing: it holds what the workspace holds, and the ignored build output that the next command
//! finds again. One that `materialize` made is mounted in its place for all to see, and that mount may
//! go at any time without loss.
//!
//! The directory of a workspace in mode `worktree` is made with the workspace and stays until the last
//! decision. Writes through the view are not refused there: they are taken to its files, see
//! [`deliver`].
//!
//! `.git/config` is never written, no hook of the user's runs, and nobody else's worktree is
//! touched.

#[cfg(target_os = "linux")]
pub mod overlay;
pub mod template;

mod admin;
mod adopt;
mod backend;
mod capture;
mod checkout;
mod copied;
mod deliver;
mod directory;
mod ended;
mod error;
mod exclude;
mod exec;
mod filtered;
mod in_use;
mod legal;
mod materialize;
#[cfg(target_os = "linux")]
mod mounted;
#[cfg(target_os = "linux")]
mod overlaid;
mod parked;
mod probes;
mod processes;
mod put;
mod queue;
#[cfg(target_os = "linux")]
mod reflink;
mod removal;
mod selected;
mod settle;
mod spread;
mod state;
#[cfg(target_os = "linux")]
mod sys;
mod told;
mod worktree;

pub use adopt::{Adopted, Adoption, Fate, adopt, marked, peek};
pub use backend::Choice;
pub use capture::{Captured, Live, LiveFile, Made, capture_directory, read};
pub use deliver::{import_reference, store};
pub use directory::{Directory, Stats};
pub use error::{Error, Result};
pub use exec::{Command, ExitKind, Finished, exec};
pub use materialize::{Options, Where, materialize, setting};
#[cfg(target_os = "linux")]
pub use overlaid::try_overlays;
pub use parked::{forget, measure, orphans};
pub use removal::Clearance;
pub use settle::{
    Insist, Settled, capture, close, close_standing, import, import_locked, settle, sweep_trash,
    would_be_lost,
};
pub use state::{open, vanished};
pub use told::told_once;
