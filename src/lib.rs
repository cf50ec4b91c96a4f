//! Virtual workspaces for coding agents, on plain Git.
//!
//! A workspace is a tree in the repository's object database plus a few refs under
//! `refs/relo/vws/<agent>/`. Its state is a chain of *revisions*: each is a commit whose tree is the
//! *overlay* (the base with the agent's changes in it) and whose message holds the metadata, so
//! content and metadata cannot disagree. Real files are laid out only while a tool needs them; what
//! the tool made is captured as one more revision. What an agent made is *proposed*, and each of
//! its changes is accepted into the user's working tree by a three-way merge under a
//! compare-and-swap, with the pre-images kept in a journal, so that it can be undone.
//!
//! # Map
//!
//! Imports run down this list and never up; `tests/house.rs` holds the line.
//!
//! - `cli` (the binary's own): arguments to one library call to records
//! - [`batch`]: the stdin protocol over the same library calls
//! - [`mcp`]: one workspace as tools of a Model Context Protocol server
//! - [`output`]: records as porcelain, NUL-separated fields, or JSON
//! - [`integrate`]: proposal, merge, accept, reject, journal, undo
//! - [`layout`]: directories for tools: lay out, capture, settle, exec
//! - [`workspace`]: revisions and how they are published; edits, diff, base, snap
//! - [`events`]: the log of what happened; [`mirror`]: what the refs say, for user interfaces
//! - [`git`]: the only door to Git: repository, objects, packs, trees, refs, index, `git` itself
//! - [`disk`]: files of a working tree, no link followed
//! - [`model`]: the words: agent ids, paths, refusal kinds

pub mod batch;
pub mod disk;
pub mod events;
pub mod git;
pub mod integrate;
pub mod layout;
pub mod mcp;
pub mod mirror;
pub mod model;
pub mod output;
pub mod workspace;
