//! The journal: what makes a write to the user's working tree safe to interrupt and to take back.
//!
//! An *entry* is one accept or one undo: a commit on `refs/relo/journal/<n>` whose tree holds
//! `entry.json` and, under `blobs/`, every pre-image and every result, so that no collection takes
//! them. It is durable before the first byte is written ([`Journal::begin`]). Then the steps are
//! carried out ([`Journal::apply`]), each under a compare-and-swap against what the plan saw, and
//! the entry is ended ([`Journal::finish`]) in one go with the caller's decisions. Each state of an
//! entry is a commit on top of the one before.
//!
//! # Groups
//! Steps with the same [`Step::group`] land together or not at all: when one of them is refused or
//! fails, those written already are taken back where the disk still holds exactly what was written.
//! Groups do not depend on each other.
//!
//! # Invariants
//! - Nothing is written over content that is not in the journal.
//! - Content that the user made since is never written over, neither by a step nor by its way back.
//! - One accept, undo or recovery at a time in a working tree: a [`Journal`] holds the lock.
//! - An entry is carried out, recovered and undone in the working tree that it was made in.

mod apply;
mod back;
mod ended;
mod entry;
mod error;
mod folders;
mod form;
mod list;
mod one;
mod recover;
mod store;
#[cfg(test)]
mod tests;

pub use apply::{Hooks, OnDisk, Resolution, go_on};
pub use entry::{Entry, FileState, Folder, JournalId, Kind, Outcome, State, Step};
pub use error::{Error, Result};
pub use list::{Summary, interrupted, list, load};
pub use recover::Recovered;
pub use store::{Decide, Draft, Journal};
