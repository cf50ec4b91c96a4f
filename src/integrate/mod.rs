//! Deciding: what an agent made is offered, accepted into the user's working tree, and undone.
//!
//! - [`propose`] pins a revision and offers its changes, one per path, under `refs/relo/changes/`
//! - [`accept`](accept()) plans every change first, then merges it into the user's tree
//! - [`reject`](reject()) takes a path back to the base in the overlay
//! - [`journal`]: the record that makes a write to the working tree safe to interrupt
//! - [`undo`]: takes an accept (or an undo) back
//! - [`upkeep`]: what comes after a crash, and what has outlived its time
//!
//! The user's index, `HEAD`, branches, stash and configuration are never written.

mod accept;
mod decide;
mod error;
mod graph;
mod group;
mod history;
pub mod journal;
mod lineage;
mod overview;
mod plan;
mod planner;
mod proposal;
mod propose;
mod radar;
mod reject;
mod release;
mod review;
mod rules;
mod select;
mod share;
mod stack;
mod store;
mod supersede;
pub mod undo;
pub mod upkeep;
mod view;

pub use accept::{Accept, Accepted, Which, accept, accept_with, recover, undo};
pub use decide::decide;
pub use error::{Error, Result};
pub use graph::{Below, Node, Standing, graph};
pub use history::history;
pub use lineage::Need;
pub use overview::{Held, Overview, Place, Seen, overview};
pub use plan::Verdict;
pub use planner::{Conflicts, Outcome};
pub use proposal::{Pair, Proposal, ProposedChange, State};
pub use propose::{changes, propose};
pub use radar::{Collision, Radar, conflicts};
pub use reject::{Rejected, Rejection, reject};
pub use release::release;
pub use review::patch_of;
pub use rules::Rules;
pub use share::warm_from;
pub use stack::{RebaseRequest, StackRequest, rebase, stack};
