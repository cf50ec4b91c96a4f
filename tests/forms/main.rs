//! The main job in every form that git can give a repository, with every setting that must change
//! nothing, and over content that git rewrites; through the binary, with git as the witness.
//!
//! A form that this machine's git cannot make is skipped with a line on standard error that says so.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    unreachable_pub,
    missing_docs
)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/volume.rs"]
mod volume;

mod check;
mod content;
mod disks;
mod job;
mod kinds;
mod limits;
mod refused;
mod volumes;
mod ways;
mod world;
