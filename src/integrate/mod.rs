//! Deciding: what an agent made is offered, accepted into the user's working tree, and undone.
//!
//! - [`journal`]: the record that makes a write to the working tree safe to interrupt
//! - [`undo`]: takes an accept (or an undo) back

pub mod journal;
pub mod undo;
