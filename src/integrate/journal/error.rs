//! What can go wrong with the journal.

use std::io;

use bstr::BString;

use super::JournalId;
use crate::model::{Refusal, sanitize_terminal};
use crate::{git, workspace};

/// A failure or a refusal of the journal.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Git, or the files below it, failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A workspace operation failed.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// A tree could not be written.
    #[error(transparent)]
    Tree(#[from] git::tree::Error),
    /// There is no such entry.
    #[error("no journal entry {id}")]
    NoEntry {
        /// The number asked for.
        id: JournalId,
    },
    /// There is nothing that could be undone.
    #[error("there is no accept to undo in this working tree")]
    NothingToUndo,
    /// An entry makes no sense.
    #[error("journal entry {id} is damaged: {why}")]
    Damaged {
        /// Which one.
        id: JournalId,
        /// How.
        why: String,
    },
    /// A rule says no; the state is unchanged.
    #[error("{what}")]
    Refused {
        /// The stable kind.
        kind: Refusal,
        /// The path that it is about, where it is one.
        path: Option<BString>,
        /// The sentence for people.
        what: String,
    },
    /// A file of the working tree could not be used.
    #[error("cannot {action} '{}': {source}", sanitize_terminal(.path.as_ref()))]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: BString,
        /// The system's answer.
        #[source]
        source: io::Error,
    },
    /// A test stopped the work at this point, as a kill would have.
    #[error("stopped on the way")]
    Stopped,
}

impl Error {
    /// A refusal with its stable kind, about no path in particular.
    pub fn refused(kind: Refusal, what: impl Into<String>) -> Self {
        Error::Refused {
            kind,
            path: None,
            what: what.into(),
        }
    }

    /// The stable kind, where the error is a refusal.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Error::Refused { kind, .. } => Some(*kind),
            Error::Damaged { .. } => Some(Refusal::Damaged),
            Error::Workspace(error) => error.refusal(),
            Error::Git(git::Error::Moved { .. }) => Some(Refusal::Moved),
            Error::Git(git::Error::Locked { .. }) => Some(Refusal::Locked),
            Error::Git(git::Error::Unsupported { .. }) => Some(Refusal::Unsupported),
            _ => None,
        }
    }
}

/// The result of a call to the journal.
pub type Result<T, E = Error> = std::result::Result<T, E>;
