//! What can go wrong at the door to Git.

use std::io;
use std::path::PathBuf;

use bstr::{BStr, BString};

use super::ObjectId;

/// A failure of Git, libgit2 or the files below the repository.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No repository here or above.
    #[error("not a git repository (or any of the parent directories): '{}'", .from.display())]
    NotARepository {
        /// Where the search began.
        from: PathBuf,
    },
    /// The repository belongs to another user, and git's own rule refuses it.
    #[error("detected dubious ownership in repository at '{}'", .path.display())]
    NotOwned {
        /// The repository.
        path: PathBuf,
    },
    /// The repository has a form that cannot be served.
    #[error("{what}")]
    Unsupported {
        /// What it is, in words.
        what: String,
    },
    /// The command needs a working tree.
    #[error("this operation must be run in a work tree")]
    NoWorkTree,
    /// libgit2 refused to open the repository.
    #[error("cannot open the repository: {}", .source.message())]
    Open {
        /// libgit2's own words.
        #[source]
        source: git2::Error,
    },
    /// A revision that does not name an object of the wanted kind.
    #[error("not a valid revision: '{spec}'")]
    BadRevision {
        /// What was asked for.
        spec: String,
    },
    /// An object is not in the object database.
    #[error("missing object {id}")]
    MissingObject {
        /// Its id.
        id: ObjectId,
    },
    /// An object of a partial clone is not here, and no promisor remote gave it.
    #[error("missing object {id}; no promisor remote gave it: {why}")]
    NotGiven {
        /// Its id.
        id: ObjectId,
        /// Git's own words.
        why: String,
    },
    /// What is at a path could not be read.
    #[error("cannot read '{path}': {source}")]
    At {
        /// The path.
        path: BString,
        /// Why not.
        #[source]
        source: Box<Error>,
    },
    /// An object could not be read.
    #[error("cannot read object {id}: {}", .source.message())]
    Object {
        /// Its id.
        id: ObjectId,
        /// libgit2's own words.
        #[source]
        source: git2::Error,
    },
    /// An object is not of the kind it should be, or its bytes make no sense.
    #[error("object {id} is damaged: {why}")]
    DamagedObject {
        /// Its id.
        id: ObjectId,
        /// What is wrong with it.
        why: String,
    },
    /// A ref could not be read or written.
    #[error("cannot {action} ref '{name}': {why}")]
    Ref {
        /// What was tried: `read`, `update`, ...
        action: &'static str,
        /// The ref.
        name: String,
        /// Git's own words.
        why: String,
    },
    /// A compare-and-swap met another value.
    #[error("ref '{name}' moved: expected {}, found {}", or_nothing(.expected), or_nothing(.found))]
    Moved {
        /// The ref.
        name: String,
        /// The value that the caller had seen.
        expected: Option<ObjectId>,
        /// The value that stands there now.
        found: Option<ObjectId>,
    },
    /// A lock was not to be had in time.
    #[error("cannot lock '{}': it is held by another process", .path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The user's `reference-transaction` hook said no.
    #[error("the 'reference-transaction' hook refused '{name}': {why}")]
    Hook {
        /// The first ref of the transaction.
        name: String,
        /// What the hook or git printed.
        why: String,
    },
    /// A file or folder could not be used.
    #[error("cannot {action} '{}': {source}", .path.display())]
    Io {
        /// What was tried: `read`, `create`, ...
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A `git` process failed.
    #[error("'git {command}' failed with {status}: {stderr}")]
    Git {
        /// The subcommand and its first words.
        command: String,
        /// Its exit status, in words.
        status: String,
        /// The last line it printed to stderr.
        stderr: String,
    },
    /// `git` gave an answer that could not be understood.
    #[error("cannot understand the answer of 'git {command}': {why}")]
    Answer {
        /// The subcommand.
        command: String,
        /// What was wrong.
        why: String,
    },
    /// A setting has a value that makes no sense.
    #[error("bad config value '{value}' for '{key}': {why}")]
    Config {
        /// The setting.
        key: String,
        /// Its value.
        value: String,
        /// What it should be.
        why: &'static str,
    },
    /// Objects could not be packed.
    #[error(transparent)]
    Pack(#[from] super::pack::Error),
    /// Any other libgit2 failure.
    #[error("{}", .0.message())]
    Library(#[from] git2::Error),
}

impl Error {
    /// Wraps a system error with what was tried on which file.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        Error::Io {
            action,
            path: path.into(),
            source,
        }
    }

    /// Says at which path it happened.
    pub fn at(self, path: &BStr) -> Self {
        Error::At {
            path: path.to_owned(),
            source: Box::new(self),
        }
    }
}

fn or_nothing(id: &Option<ObjectId>) -> String {
    id.map_or_else(|| "nothing".to_owned(), |id| id.to_string())
}

/// The result of a call through the door to Git.
pub type Result<T, E = Error> = std::result::Result<T, E>;
