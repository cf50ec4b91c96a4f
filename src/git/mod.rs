//! The only door to Git: nothing outside this folder names `git2` or starts a `git` process.

/// The hash that names a repository's objects: SHA-1 or SHA-256.
pub use git2::ObjectFormat;
/// The kind of an object: commit, tree, blob or tag.
pub use git2::ObjectType as ObjectKind;
/// The name of an object, in the repository's own hash.
pub use git2::Oid as ObjectId;

pub mod merge;
pub mod tree;
mod checksum;
pub mod index;
pub mod pack;
#[cfg(test)]
mod scratch;
