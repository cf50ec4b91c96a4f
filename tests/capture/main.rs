//! Captures of directories that tools changed, through the library, in real repositories. What a
//! capture makes of a directory is held against what git makes of the same one.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
#[path = "../common/volume.rs"]
mod volume;

mod commits;
mod edges;
#[cfg(target_os = "linux")]
mod every_backend;
mod ignore;
mod lay;
mod rewriting;
mod rows;
mod trouble;
