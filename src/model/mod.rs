//! The words: names, paths, numbers and kinds that everything above speaks in.
//!
//! The bottom of the house: nothing here imports another module of the crate, asks git or touches a
//! disk. Each type is checked when it is made and can't be made unchecked, so the rest of the crate
//! takes an [`AgentId`], a [`RepoPath`] or a [`Revision`] at its word. Each has one text form, which
//! is the one that refs, records and JSON hold.
//!
//! - [`AgentId`]: the name of a workspace
//! - [`RepoPath`]: a path inside a repository that can't lead out of it or into git's own files
//! - [`Revision`]: the number of a published state
//! - [`FileMode`]: what a tree entry is
//! - [`Refusal`]: the stable kinds of "no"
//! - [`Progress`]: who hears how far the work is
//! - [`json`], [`quote`]: paths in JSON and in lines
//! - [`text`]: names made safe to print

pub mod agent;
pub mod json;
pub mod mode;
pub mod path;
pub mod progress;
mod protected;
pub mod quote;
pub mod refusal;
pub mod revision;
pub mod text;

pub use agent::{AgentId, AgentIdError};
pub use json::{json_path, path_from_json};
pub use mode::FileMode;
pub use path::{PathError, RepoPath};
pub use progress::{Progress, Silent, Work};
pub use refusal::{Refusal, UnknownRefusal};
pub use revision::{Revision, RevisionError};
pub use text::sanitize_terminal;
