//! Proposing, accepting, rejecting and undoing through the library, in real repositories, with `git`
//! as the witness: what is reachable, what the user's index and branches say, what is on disk.

#![allow(clippy::print_stdout, clippy::unwrap_used, unreachable_pub)]

#[path = "../common/mod.rs"]
mod common;

mod decide;
mod forms;
mod kinds;
mod lineage;
mod merge;
mod moved;
mod moved_corpus;
mod place;
mod radar;
mod reject;
mod renames;
mod scale;
