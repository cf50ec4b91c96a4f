//! The index file of a directory that we lay out: version 2 (3 where a part is laid out), written whole and read back.
//!
//! Git in the directory must find every file unchanged without reading it, and so must our own
//! capture. Both compare the stat data in the index with the file's.
//!
//! # Racy entries
//!
//! A file changed right after the index was written, without changing size, may keep the very times
//! that the index has. So an entry that is not older than the index file is *racy*: equal stat data
//! prove nothing, and the content is hashed again.
//!
//! - Git counts in seconds (unless built with `USE_NSEC`): an entry whose mtime is in the second in
//!   which the index was written, or later, is racy. A directory laid out with fresh times and indexed
//!   in the same second is therefore hashed again by the first `git status`. A layout that wants to
//!   spare that gives its files an earlier mtime. That is sound: any later write sets the time to now.
//!   To set the *index's* time forward instead would not be; an edit in between would go unseen.
//! - Our own readers count in nanoseconds, in [`IndexFile::is_racy`] as in [`StatData::matches`]; the
//!   two belong together. The kernel's clock ticks in milliseconds: files made in the tick of the
//!   index are racy, those before it are not, and what a tool writes later differs.
//!
//! We write what we have just laid out, before any tool runs, so no entry is stale at that moment and
//! nothing like Git's smudging of sizes is needed.

mod cache_tree;
mod names;
mod read;
mod stat;
#[cfg(test)]
mod tests;
mod write;

pub use cache_tree::{CachedTree, TreeCache};
pub use names::{AttributesFile, IndexStamp, TrackedNames};
pub use read::{Entry, IndexFile};
pub use stat::StatData;
pub use write::{IndexEntry, write_index, write_index_like, write_sparse_index};

use bstr::BString;
use std::io;
use std::path::PathBuf;

/// What can go wrong with an index file.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused a file operation.
    #[error("cannot {action} '{}'", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The file is not a sound index.
    #[error("index '{}' is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The file is an index of a kind that we do not write and so do not read.
    #[error("index '{}' is not one of ours: {what}", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it has that ours have not.
        what: &'static str,
    },
    /// The entries to write are not sorted by path, or a path comes twice.
    #[error("index entry '{0}' is out of order")]
    Order(BString),
    /// The entry to write cannot stand in an index.
    #[error("index entry '{path}' has {what}")]
    Entry {
        /// The entry's path.
        path: BString,
        /// What is wrong with it.
        what: &'static str,
    },
    /// The tree cache has a directory but not its parent, or the same one twice.
    #[error("tree cache directory '{0}' does not fit the others")]
    Directory(BString),
}

/// The result of an index operation.
pub type Result<T> = std::result::Result<T, Error>;
