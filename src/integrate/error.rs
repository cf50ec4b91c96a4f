//! What can go wrong with a proposal or a decision, and what is refused.

use bstr::BString;

use crate::model::{AgentId, Refusal, Revision, sanitize_terminal};
use crate::{git, layout, workspace};

use super::journal;

/// A failure or a refusal of a proposal or of a decision.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The workspace, or Git below it, failed or refused.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// The import of an open directory failed or was refused.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// The journal, or a write that it describes, failed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Contents could not be merged.
    #[error("cannot merge '{}'", sanitize_terminal(.path.as_ref()))]
    Merge {
        /// The path.
        path: BString,
        /// Why.
        #[source]
        source: git::merge::Error,
    },
    /// The agent has no such proposal.
    #[error("agent '{agent}' has no proposal{}", of(.revision))]
    NoProposal {
        /// The agent.
        agent: AgentId,
        /// The revision asked for, if one was.
        revision: Option<Revision>,
    },
    /// No proposal of the agent changes the path.
    #[error("agent '{agent}' proposes no change of '{}'{}", sanitize_terminal(.path.as_ref()), goes_there(.from))]
    NoChange {
        /// The agent.
        agent: AgentId,
        /// The path asked for.
        path: BString,
        /// The path of a change that would go there, because the user has moved the file.
        from: Option<BString>,
    },
    /// The workspace was not stacked on the parent that is to be left out.
    #[error("workspace '{agent}' is not stacked on '{parent}'")]
    NotOn {
        /// The workspace.
        agent: AgentId,
        /// The parent.
        parent: AgentId,
    },
    /// A proposal in the repository makes no sense.
    #[error("proposal '{name}' is damaged: {why}")]
    Damaged {
        /// Its ref.
        name: String,
        /// How.
        why: String,
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

fn of(revision: &Option<Revision>) -> String {
    revision.map_or_else(String::new, |revision| format!(" of revision {revision}"))
}

fn goes_there(from: &Option<BString>) -> String {
    from.as_ref().map_or_else(String::new, |from| {
        let from = sanitize_terminal(from.as_ref());
        format!(": that of '{from}', which was moved there, would go into it")
    })
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
            Error::Workspace(error) => error.refusal(),
            Error::Layout(error) => error.refusal(),
            Error::Journal(error) => error.refusal(),
            Error::Refused { kind, .. } => Some(*kind),
            Error::Damaged { .. } => Some(Refusal::Damaged),
            _ => None,
        }
    }
}

impl From<git::Error> for Error {
    fn from(error: git::Error) -> Self {
        workspace::Error::from(error).into()
    }
}

impl From<git::tree::Error> for Error {
    fn from(error: git::tree::Error) -> Self {
        workspace::Error::from(error).into()
    }
}

/// What went wrong, as the layer below reports it from within a publish.
pub(super) fn into_workspace(error: Error) -> workspace::Error {
    match error {
        Error::Workspace(error) => error,
        other => workspace::Error::Damaged {
            what: "a proposal".to_owned(),
            why: other.to_string(),
        },
    }
}

/// The result of a proposal or a decision.
pub type Result<T, E = Error> = std::result::Result<T, E>;
