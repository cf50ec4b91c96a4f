//! The journal through the library, on real repositories: writing, crashing, recovering, undoing.

#![allow(clippy::unwrap_used, unreachable_pub)]
#![allow(clippy::print_stderr)] // a skipped test says so

#[path = "../common/mod.rs"]
mod common;

mod crash;
mod race;
mod rig;
mod undo;
mod write;
