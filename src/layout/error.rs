//! What can go wrong with a directory, and what is refused.

use std::io;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString};
use rustix::io::Errno;

use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::{git, workspace};

/// A failure or a refusal of an operation on a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The workspace below said no, or failed.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// Git, or the files below it, failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A tree could not be read or edited.
    #[error(transparent)]
    Tree(#[from] git::tree::Error),
    /// An index could not be read or written.
    #[error(transparent)]
    Index(#[from] git::index::Error),
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
    /// The workspace has no directory.
    #[error("workspace '{agent}' has no directory open")]
    NotOpen {
        /// The workspace.
        agent: AgentId,
    },
    /// The directory was removed behind our back; what was captured before is safe.
    #[error("the directory '{}' of workspace '{agent}' has vanished; the workspace stands at revision {revision}", .path.display())]
    Vanished {
        /// The workspace.
        agent: AgentId,
        /// Where the directory was.
        path: PathBuf,
        /// The revision that is left.
        revision: Revision,
    },
    /// What stands in the directory's place, or in its git dir's, is not what we made.
    #[error("'{}' is not the directory that was made for workspace '{agent}': {why}", .path.display())]
    NotOurs {
        /// The workspace.
        agent: AgentId,
        /// The directory or git dir.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// `.relo/` cannot be hidden from the user's `git add`.
    #[error("cannot lay out inside '{}': '.relo/' cannot be added to '{}': {source}", .top.display(), .exclude.display())]
    Exposed {
        /// The top of the user's working tree.
        top: PathBuf,
        /// The list of excluded paths.
        exclude: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A path that was to be laid out is not in the workspace.
    #[error("workspace '{agent}' has no path '{path}'")]
    Absent {
        /// The workspace.
        agent: AgentId,
        /// The path.
        path: RepoPath,
    },
    /// Two paths of the revision are one on this disk.
    #[error("path '{path}' is the same as another one on the file system of '{}'", .root.display())]
    Collision {
        /// The one that was to be laid out second.
        path: BString,
        /// The directory.
        root: PathBuf,
    },
    /// A path cannot exist on this file system.
    #[error("path '{path}' cannot be laid out below '{}': {source}", .root.display())]
    Unplaceable {
        /// The path.
        path: BString,
        /// The directory.
        root: PathBuf,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// The user's command could not be started or followed.
    #[error("cannot run '{}': {source}", .program.to_string_lossy())]
    Command {
        /// The program.
        program: std::ffi::OsString,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A rule says no; the state is unchanged.
    #[error("{what}")]
    Refused {
        /// The stable kind.
        kind: Refusal,
        /// The sentence for people.
        what: String,
    },
}

impl Error {
    /// A refusal with its stable kind.
    pub fn refused(kind: Refusal, what: impl Into<String>) -> Self {
        Error::Refused {
            kind,
            what: what.into(),
        }
    }

    /// Wraps a system error with what was tried on which file.
    pub fn io(
        action: &'static str,
        path: impl Into<PathBuf>,
        source: impl Into<io::Error>,
    ) -> Self {
        Error::Io {
            action,
            path: path.into(),
            source: source.into(),
        }
    }

    /// What it means that the system would not make `path` in the directory at `root`.
    pub(super) fn not_placed(path: &BStr, root: &Path, errno: Errno) -> Self {
        match errno {
            Errno::EXIST => Error::Collision {
                path: path.to_owned(),
                root: root.to_owned(),
            },
            Errno::NAMETOOLONG | Errno::ILSEQ | Errno::INVAL => Error::Unplaceable {
                path: path.to_owned(),
                root: root.to_owned(),
                source: errno.into(),
            },
            _ => Error::io("create", root.join(git::os_str(path)), errno),
        }
    }

    /// The stable kind, where the error is a refusal.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Error::Workspace(error) => error.refusal(),
            Error::Git(git::Error::Moved { .. }) => Some(Refusal::Moved),
            Error::Git(git::Error::Locked { .. }) => Some(Refusal::Locked),
            Error::Git(git::Error::Unsupported { .. }) => Some(Refusal::Unsupported),
            Error::Vanished { .. } | Error::NotOurs { .. } => Some(Refusal::Moved),
            Error::Exposed { .. } | Error::Collision { .. } | Error::Unplaceable { .. } => {
                Some(Refusal::Unsupported)
            }
            Error::Refused { kind, .. } => Some(*kind),
            _ => None,
        }
    }
}

/// The result of an operation on a directory.
pub type Result<T, E = Error> = std::result::Result<T, E>;
