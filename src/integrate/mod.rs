//! Deciding: what an agent made is offered, accepted into the user's working tree, and undone.
//!
//! - [`propose`] pins a revision and offers its changes, one per path, under `refs/relo/changes/`
//! - [`accept`](accept()) plans every change first, then merges it into the user's tree
//! - [`reject`](reject()) takes a path back to the base in the overlay
//! - [`journal`]: the record that makes a write to the working tree safe to interrupt
//! - [`undo`]: takes an accept (or an undo) back
//!
//! The user's index, `HEAD`, branches, stash and configuration are never written.

mod error;
pub mod journal;
mod plan;
mod proposal;
mod propose;
mod rules;
mod store;
pub mod undo;

pub use error::{Error, Result};
pub use plan::Verdict;
pub use proposal::{Pair, Proposal, ProposedChange, State};
pub use propose::{changes, propose};
pub use rules::Rules;
