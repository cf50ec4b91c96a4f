//! Trees: reading, editing, comparing and merging them at the cost of what changed.
//!
//! libgit2's own tree diff and tree merge walk the whole repository, and its tree builder cannot put
//! a folder where a file was in one pass. The functions here open a tree only where its id says that
//! something differs, and rewrite only the directories on changed paths. Each is held against git's
//! result by a test.
//!
//! Two rules hold everywhere:
//! - **Order.** A tree sorts a folder as if its name ended in `/`. With that, the order of full paths is
//!   plain byte order, and every list that leaves this module is in it.
//! - **Modes.** A mode is canonical as soon as it is parsed ([`canonical_mode`]), as in git: a legacy
//!   `100664` equals `100644`, is written as `100644` when its directory is rewritten for another reason,
//!   and stays as it is otherwise.
//!
//! A tree that breaks the format (or its order) is an error that names the tree and its path, never a
//! panic and never a guess.

use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};

use super::{ObjectFormat, ObjectId, ObjectKind};

mod beside;
mod diff;
mod edit;
mod lost;
mod parse;
mod rename;
mod spans;
#[cfg(test)]
pub(super) mod testing;
mod three_way;
mod walk;

pub use beside::listing_beside;
pub use diff::{Change, Status, diff, diff_under};
pub use edit::edit;
pub use lost::{Lost, lost};
pub use parse::{Defect, Entries, EntryRef, entries};
pub use rename::{
    BlobSource, Delta, RENAME_LIMIT, Rename, RenameOptions, Renames, find_moved, find_renames,
};
pub use three_way::{Both, ThreeWay, three_way};
pub use walk::{Directory, Listing, Step, listing, walk};

/// The mode of a plain file.
pub const REGULAR: u32 = 0o100_644;
/// The mode of an executable file.
pub const EXECUTABLE: u32 = 0o100_755;
/// The mode of a symbolic link.
pub const LINK: u32 = 0o120_000;
/// The mode of a submodule's commit.
pub const GITLINK: u32 = 0o160_000;
/// The mode of a folder.
pub const TREE: u32 = 0o040_000;

/// How deep folders may nest. git's own limit (`core.maxTreeDepth`) is 2048, and 512 where stacks are
/// small; ours has to fit the 2 MiB of a thread, in a debug build too.
pub const MAX_DEPTH: usize = 512;

/// An error of the object store behind a [`TreeSource`].
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// What a path in a tree is: its canonical mode and its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry {
    /// One of [`REGULAR`], [`EXECUTABLE`], [`LINK`], [`GITLINK`] and [`TREE`].
    pub mode: u32,
    /// The blob, the submodule's commit, or the tree.
    pub id: ObjectId,
}

impl Entry {
    /// Whether this is a folder.
    pub fn is_tree(&self) -> bool {
        self.mode == TREE
    }

    /// Whether this is a plain or an executable file.
    pub fn is_file(&self) -> bool {
        matches!(self.mode, REGULAR | EXECUTABLE)
    }
}

/// Why trees could not be read, compared or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The object database does not hold a tree.
    #[error("tree {id} of '{path}' is missing")]
    Missing {
        /// The tree.
        id: ObjectId,
        /// Its path; empty for the root.
        path: BString,
    },
    /// The object database failed on a tree.
    #[error("tree {id} of '{path}' could not be read")]
    Read {
        /// The tree.
        id: ObjectId,
        /// Its path; empty for the root.
        path: BString,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A tree does not follow the format.
    #[error("tree {id} of '{path}' is malformed")]
    Malformed {
        /// The tree.
        id: ObjectId,
        /// Its path; empty for the root.
        path: BString,
        /// What is wrong with it.
        #[source]
        source: Defect,
    },
    /// The object database took no new tree.
    #[error("the tree of '{path}' could not be written")]
    Write {
        /// Its path; empty for the root.
        path: BString,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// A blob could not be read to compare its content.
    #[error("blob {id} of '{path}' could not be read")]
    Blob {
        /// The blob.
        id: ObjectId,
        /// Its path.
        path: BString,
        /// What the store said.
        #[source]
        source: StoreError,
    },
    /// Folders nest deeper than [`MAX_DEPTH`].
    #[error("folder '{path}' is nested too deeply")]
    TooDeep {
        /// The folder.
        path: BString,
    },
    /// A path that no tree can hold: empty, or with an empty part, `.`, `..` or a NUL byte.
    #[error("path '{path}' cannot be in a tree")]
    BadPath {
        /// The path.
        path: BString,
    },
    /// An edit sets a path and another one below it.
    #[error("path '{path}' and '{below}' below it are both set")]
    Overlap {
        /// The upper path.
        path: BString,
        /// The path below it.
        below: BString,
    },
    /// An edit sets a path to an object of another hash, or to the null id.
    #[error("object {id} of '{path}' does not belong in this repository")]
    ForeignId {
        /// The object.
        id: ObjectId,
        /// The path.
        path: BString,
    },
}

/// Where trees are read from.
pub trait TreeSource {
    /// Reads the raw bytes of a tree; `None` where the object does not exist.
    ///
    /// # Errors
    ///
    /// Whatever the store runs into, an object that is no tree included.
    fn read_tree(&self, id: ObjectId) -> Result<Option<Rc<[u8]>>, StoreError>;

    /// The hash of the repository.
    fn format(&self) -> ObjectFormat;
}

/// Where trees are written to.
pub trait TreeStore: TreeSource {
    /// Stores a tree and returns its id. It must be readable through
    /// [`read_tree`](TreeSource::read_tree) at once.
    ///
    /// # Errors
    ///
    /// Whatever the store runs into.
    fn write_tree(&mut self, data: Vec<u8>) -> Result<ObjectId, StoreError>;
}

/// Returns the mode that git takes a raw mode of a tree for (its `canon_mode`): the permissions of a file
/// collapse to 644 or 755, and what is no file, link or folder counts as a submodule.
pub fn canonical_mode(raw: u32) -> u32 {
    match raw & 0o170_000 {
        0o100_000 if raw & 0o100 != 0 => EXECUTABLE,
        0o100_000 => REGULAR,
        0o120_000 => LINK,
        0o040_000 => TREE,
        _ => GITLINK,
    }
}

/// Returns the id of the tree without entries.
pub fn empty_tree(format: ObjectFormat) -> ObjectId {
    ObjectId::hash_object_ext(ObjectKind::Tree, b"", format)
        .expect("invariant: hashing bytes in memory cannot fail")
}

/// Finds what `path` is in the tree `root`: a file, a link, a submodule or a folder. `None` where there
/// is nothing, also below a file or a submodule. The empty path has no entry.
///
/// # Errors
///
/// [`Error::Missing`], [`Error::Read`] and [`Error::Malformed`] for the trees on the path.
pub fn lookup<S: TreeSource + ?Sized>(
    source: &S,
    root: ObjectId,
    path: &BStr,
) -> Result<Option<Entry>, Error> {
    let mut at = root;
    let mut start = 0;
    loop {
        let name = match path[start..].find_byte(b'/') {
            Some(length) => &path[start..start + length],
            None => &path[start..],
        };
        let folder = path[..start.saturating_sub(1)].as_bstr();
        let data = open(source, at, folder)?;
        let mut found = None;
        for entry in entries(&data, source.format()) {
            let entry = entry.map_err(|defect| malformed(at, folder, defect))?;
            if entry.name == name {
                found = Some(entry.entry());
                break;
            }
        }
        start += name.len() + 1;
        match found {
            Some(entry) if start > path.len() => return Ok(Some(entry)),
            Some(entry) if entry.is_tree() => at = entry.id,
            _ => return Ok(None),
        }
    }
}

/// Reads a tree. The empty tree need not be in the database: git knows it by heart, so do we.
fn open<S: TreeSource + ?Sized>(source: &S, id: ObjectId, path: &BStr) -> Result<Rc<[u8]>, Error> {
    match source.read_tree(id) {
        Ok(Some(data)) => Ok(data),
        Ok(None) if id == empty_tree(source.format()) => Ok(Rc::from([])),
        Ok(None) => Err(Error::Missing {
            id,
            path: path.to_owned(),
        }),
        Err(source) => Err(Error::Read {
            id,
            path: path.to_owned(),
            source,
        }),
    }
}

/// Reads a tree that one side of a comparison may not have.
fn open_side<S: TreeSource + ?Sized>(
    source: &S,
    id: Option<ObjectId>,
    path: &BStr,
) -> Result<Rc<[u8]>, Error> {
    id.map_or_else(|| Ok(Rc::from([])), |id| open(source, id, path))
}

fn malformed(id: ObjectId, path: &BStr, source: Defect) -> Error {
    Error::Malformed {
        id,
        path: path.to_owned(),
        source,
    }
}

/// Appends a name to a folder's path and returns the length to truncate back to.
fn push(path: &mut BString, name: &BStr) -> usize {
    let length = path.len();
    if length > 0 {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    length
}

/// Refuses folders that nest deeper than git allows, before the stack feels it.
fn check_depth(depth: usize, path: &BString) -> Result<(), Error> {
    if depth > MAX_DEPTH {
        return Err(Error::TooDeep { path: path.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
