//! Captures of directories that tools changed, through the library, in real repositories. What a
//! capture makes of a directory is held against what git makes of the same one.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod commits;
mod edges;
mod ignore;
mod lay;
mod rewriting;
mod trouble;
