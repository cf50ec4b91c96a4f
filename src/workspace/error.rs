//! What can go wrong with a workspace, and what is refused.

use bstr::BString;

use crate::git;
use crate::model::{AgentId, PathError, Refusal, Revision};

/// A failure or a refusal of a workspace operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Git, or the files below it, failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// A tree could not be read, edited or compared.
    #[error(transparent)]
    Tree(#[from] git::tree::Error),
    /// There is no such workspace.
    #[error("no workspace '{agent}'")]
    NoWorkspace {
        /// The name asked for.
        agent: AgentId,
    },
    /// There is one already, perhaps under another case.
    #[error("workspace '{agent}' exists already")]
    Exists {
        /// The one that exists.
        agent: AgentId,
    },
    /// A ref that is not ours stands where one of ours must go.
    #[error("ref '{blocking}' is in the way of '{wanted}'")]
    RefInTheWay {
        /// The user's ref.
        blocking: String,
        /// Ours.
        wanted: String,
    },
    /// There is no such revision any more.
    #[error("workspace '{agent}' has no revision {revision}")]
    NoRevision {
        /// The workspace.
        agent: AgentId,
        /// The number asked for.
        revision: Revision,
    },
    /// There is no such path.
    #[error("path '{path}' does not exist in {place}")]
    NoPath {
        /// The path asked for.
        path: BString,
        /// Which tree was asked, in words.
        place: String,
    },
    /// Contents could not be merged.
    #[error("cannot merge '{path}'")]
    Merge {
        /// The path.
        path: BString,
        /// Why.
        #[source]
        source: git::merge::Error,
    },
    /// A path cannot be used.
    #[error(transparent)]
    Path(#[from] PathError),
    /// A rule says no; the state is unchanged.
    #[error("{what}")]
    Refused {
        /// The stable kind.
        kind: Refusal,
        /// The sentence for people.
        what: String,
    },
    /// State in the repository makes no sense.
    #[error("{what} is damaged: {why}")]
    Damaged {
        /// What is damaged.
        what: String,
        /// How.
        why: String,
    },
    /// The working tree would not hold still.
    #[error("the working tree changed while it was recorded: {what}")]
    Unsteady {
        /// What changed, in words.
        what: String,
    },
    /// The directory that goes with the workspace failed.
    #[error(transparent)]
    Directory(Box<dyn std::error::Error + Send + Sync>),
    /// The request cannot be meant.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    /// A refusal with its stable kind.
    pub fn refused(kind: Refusal, what: impl Into<String>) -> Self {
        Error::Refused {
            kind,
            what: what.into(),
        }
    }

    /// The stable kind, where the error is a refusal.
    pub fn refusal(&self) -> Option<Refusal> {
        match self {
            Error::Refused { kind, .. } => Some(*kind),
            Error::Path(error) => Some(error.refusal()),
            Error::Damaged { .. } => Some(Refusal::Damaged),
            Error::Git(git::Error::Moved { .. }) => Some(Refusal::Moved),
            Error::Git(git::Error::Locked { .. }) => Some(Refusal::Locked),
            Error::Git(git::Error::Unsupported { .. }) => Some(Refusal::Unsupported),
            _ => None,
        }
    }
}

/// The result of a workspace operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;
