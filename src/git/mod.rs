//! The only door to Git: nothing outside this folder names `git2` or starts a `git` process.
//!
//! libgit2 is the engine, `git` the oracle for what libgit2 cannot answer as git does, and what
//! libgit2 does in O(repository) or without flushing (tree edit and diff, packs, indexes) is ours.

pub mod fault;
pub mod index;
pub mod merge;
pub mod pack;
pub mod patch;
pub mod tree;

mod apply;
mod attributes;
mod checksum;
mod config;
mod delete;
mod environment;
mod error;
mod filter;
mod flags;
mod forms;
mod head;
mod held;
mod ignore;
mod library;
mod lock;
mod loose;
mod marks;
mod objects;
mod oracle;
mod publish;
mod refs;
mod repository;
#[cfg(test)]
pub(crate) mod scratch;
mod set;
mod stale;
mod status;
mod untracked;

pub use apply::{Patched, paths_of_patch};
pub use attributes::{Conversion, mentions_rewriting};
pub use config::Config;
pub use environment::Environment;
pub use error::{Error, Result};
pub use filter::PlainFolders;
pub use head::Head;
pub use ignore::IgnoreRules;
pub use lock::{Lock, PATIENCE};
pub use loose::{LogEntry, LooseRef, LooseState};
pub use objects::{Commit, NewCommit, Objects, Staging};
pub use oracle::{Finished, GitCommand};
pub use publish::{OneWait, Publish};
pub use refs::{Expect, PackedStamp, RefUpdate, Refs};
pub use repository::{Door, RefBackend, Repository};
pub use stale::{LockFile, StaleRule};
pub use status::{StatusEntry, StatusRun};

/// The hash that names a repository's objects: SHA-1 or SHA-256.
pub use git2::ObjectFormat;
/// The kind of an object: commit, tree, blob or tag.
pub use git2::ObjectType as ObjectKind;
/// The name of an object, in the repository's own hash.
pub use git2::Oid as ObjectId;

/// Who our commits and reflog entries say they are from; settings of the user's change nothing.
pub const IDENTITY_NAME: &str = "git-vws";
/// The mail address that goes with [`IDENTITY_NAME`].
pub const IDENTITY_EMAIL: &str = "git-vws@localhost";

/// The version of libgit2 that is built in.
pub fn libgit2_version() -> String {
    let (major, minor, patch) = git2::Version::get().libgit2_version();
    format!("{major}.{minor}.{patch}")
}

/// How many hex digits an object id has.
pub fn hex_len(format: ObjectFormat) -> usize {
    match format {
        ObjectFormat::Sha256 => 64,
        _ => 40,
    }
}

/// A path of a repository as the file system takes it: on Unix the same bytes.
pub fn os_str(path: &bstr::BStr) -> &std::ffi::OsStr {
    std::os::unix::ffi::OsStrExt::from_bytes(path)
}
