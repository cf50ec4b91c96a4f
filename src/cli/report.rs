//! From an error to what the user sees: one table for text, kind, hint and exit code.
//!
//! Exit codes: 1 is a command's own documented "no" (`error:`), 128 is a failure (`fatal:`), 141 a
//! reader that went away (silent). Usage errors, 129, are made in `usage`.

use std::io;
use std::process::ExitCode;

use git_vws::integrate::{self, journal};
use git_vws::model::{PathError, Refusal};
use git_vws::{git, layout, output, workspace};

use super::session::{self, say};

/// A documented "no".
const REFUSED: u8 = 1;
/// Anything that went wrong.
const FAILED: u8 = 128;
/// What a shell shows for death by SIGPIPE.
const CLOSED_PIPE: u8 = 141;

/// Why a command did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A workspace operation failed or was refused.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    /// An operation on a directory failed or was refused.
    #[error(transparent)]
    Layout(#[from] layout::Error),
    /// A proposal or a decision failed or was refused.
    #[error(transparent)]
    Integrate(#[from] integrate::Error),
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] journal::Error),
    /// Standard output failed.
    #[error(transparent)]
    Output(#[from] output::Error),
    /// Standard input failed.
    #[error("cannot read standard input: {0}")]
    Input(#[source] io::Error),
    /// A part was done, and the record says which; the rest is refused.
    #[error("{what}")]
    Partial {
        /// What was not done.
        what: String,
        /// What to do next.
        hint: Option<&'static str>,
    },
    /// A failure for which the command itself knows what to do next.
    #[error("{failure}")]
    Hinted {
        /// The failure.
        #[source]
        failure: Box<Failure>,
        /// What to do next.
        hint: &'static str,
    },
}

impl Failure {
    /// Adds what to do next, where the error is a refusal of this kind.
    pub(crate) fn hint_on(self, kind: Refusal, hint: &'static str) -> Self {
        if self.refusal() != Some(kind) {
            return self;
        }
        Failure::Hinted {
            failure: Box::new(self),
            hint,
        }
    }

    /// The stable kind, where it is a refusal.
    fn refusal(&self) -> Option<Refusal> {
        match self {
            Failure::Workspace(error) => error.refusal(),
            Failure::Layout(error) => error.refusal(),
            Failure::Integrate(error) => error.refusal(),
            Failure::Journal(error) => error.refusal(),
            _ => None,
        }
    }
}

impl From<git::Error> for Failure {
    fn from(error: git::Error) -> Self {
        Failure::Workspace(error.into())
    }
}

impl From<PathError> for Failure {
    fn from(error: PathError) -> Self {
        Failure::Workspace(error.into())
    }
}

/// What is printed about a failure, and the exit code.
#[derive(Debug, PartialEq)]
struct Report {
    code: u8,
    kind: Option<Refusal>,
    hint: Option<String>,
}

impl Failure {
    /// Tells the user, and returns the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        self.report_as(None)
    }

    /// As [`Failure::report`], with another exit code for all but a closed pipe.
    pub(crate) fn report_as(&self, other: Option<u8>) -> ExitCode {
        let Report { code, kind, hint } = self.classify();
        if code != CLOSED_PIPE {
            let level = if code == REFUSED { "error" } else { "fatal" };
            let kind = kind.map(|kind| format!(" [{kind}]")).unwrap_or_default();
            say(level, &format!("{}{kind}", output::sentence(self)));
            if let Some(hint) = hint {
                session::hint(&hint);
            }
        }
        ExitCode::from(other.filter(|_| code != CLOSED_PIPE).unwrap_or(code))
    }

    fn classify(&self) -> Report {
        if let Some(kind) = self.refusal() {
            return refused(kind);
        }
        match self {
            Failure::Output(error) if error.is_closed_pipe() => Report {
                code: CLOSED_PIPE,
                kind: None,
                hint: None,
            },
            Failure::Output(_) | Failure::Input(_) => failed(None),
            Failure::Partial { hint, .. } => Report {
                code: REFUSED,
                kind: None,
                hint: hint.map(str::to_owned),
            },
            Failure::Hinted { failure, hint } => Report {
                hint: Some((*hint).to_owned()),
                ..failure.classify()
            },
            Failure::Workspace(error) => workspace_failed(error),
            Failure::Layout(error) => layout_failed(error),
            Failure::Integrate(error) => integrate_failed(error),
            Failure::Journal(error) => journal_failed(error),
        }
    }
}

fn layout_failed(error: &layout::Error) -> Report {
    match error {
        layout::Error::Workspace(error) => workspace_failed(error),
        layout::Error::Git(error) => failed(hint_of_git(error).as_deref()),
        layout::Error::NotOpen { agent } => {
            failed(Some(&format!("'git vws materialize {agent}' makes one")))
        }
        _ => failed(None),
    }
}

fn integrate_failed(error: &integrate::Error) -> Report {
    match error {
        integrate::Error::Workspace(error) => workspace_failed(error),
        integrate::Error::Layout(error) => layout_failed(error),
        integrate::Error::Journal(error) => journal_failed(error),
        integrate::Error::NoProposal { agent, .. } => failed(Some(&format!(
            "'git vws propose {agent}' makes one, 'git vws changes' shows all"
        ))),
        integrate::Error::NotOn { agent, .. } => failed(Some(&format!(
            "'git vws stack --status {agent}' shows what it was stacked on"
        ))),
        integrate::Error::NoChange {
            agent,
            from: Some(from),
            ..
        } => failed(Some(&format!(
            "name it: 'git vws accept {agent} -- {from}'"
        ))),
        integrate::Error::NoChange { agent, .. } => failed(Some(&format!(
            "'git vws changes {agent}' shows what is proposed"
        ))),
        _ => failed(None),
    }
}

fn journal_failed(error: &journal::Error) -> Report {
    match error {
        journal::Error::Workspace(error) => workspace_failed(error),
        journal::Error::Git(error) => failed(hint_of_git(error).as_deref()),
        journal::Error::NoEntry { .. } => failed(Some("'git vws journal' shows the entries")),
        _ => failed(None),
    }
}

fn workspace_failed(error: &workspace::Error) -> Report {
    match error {
        workspace::Error::Git(error) => failed(hint_of_git(error).as_deref()),
        workspace::Error::NoWorkspace { .. } => {
            failed(Some("'git vws overlay list' shows the workspaces"))
        }
        workspace::Error::Exists { agent } => failed(Some(&format!(
            "'git vws overlay show {agent}' shows it, 'git vws overlay dispose {agent}' lets it go"
        ))),
        workspace::Error::RefInTheWay { blocking, .. } => failed(Some(&format!(
            "rename it ('git branch -m'), or take another agent id: '{blocking}' leaves no room"
        ))),
        workspace::Error::NoRevision { agent, .. } => {
            failed(Some(&format!("'git vws log {agent}' shows its revisions")))
        }
        workspace::Error::Unsteady { .. } => failed(Some(
            "try again when nothing writes to the working tree, or name a commit with --base",
        )),
        // A caller has to tell "not there" from "could not look".
        workspace::Error::NoPath { .. } => Report {
            code: REFUSED,
            kind: None,
            hint: None,
        },
        _ => failed(None),
    }
}

fn failed(hint: Option<&str>) -> Report {
    Report {
        code: FAILED,
        kind: None,
        hint: hint.map(str::to_owned),
    }
}

/// The exit code of each kind of refusal, and what to do next where we know it.
fn refused(kind: Refusal) -> Report {
    let code = match kind {
        Refusal::Damaged | Refusal::Locked | Refusal::Moved | Refusal::Unsupported => FAILED,
        _ => REFUSED,
    };
    let hint = match kind {
        Refusal::Materialized => {
            Some("'git vws settle <agent>' saves what it holds and removes it")
        }
        Refusal::ReadOnly => {
            Some("make a writable one: 'git vws overlay create <agent> --from=<agent>'")
        }
        Refusal::Stale => Some("read it again, then repeat the change on the current revision"),
        Refusal::TooLarge => {
            Some("'git config relo.workspace.maxFileSize <bytes>' moves the limit")
        }
        Refusal::Locked => Some("another command is at work on it; try again when it is done"),
        Refusal::Moved => Some("somebody else changed it at the same time; try again"),
        Refusal::Damaged => Some("'git vws recover' shows what is damaged, and clears it away"),
        _ => None,
    };
    Report {
        code,
        kind: Some(kind),
        hint: hint.map(str::to_owned),
    }
}

fn hint_of_git(error: &git::Error) -> Option<String> {
    let hint = match error {
        git::Error::NotARepository { .. } => "'git init' makes one here".to_owned(),
        git::Error::NotOwned { path } => format!(
            "to trust it: 'git config --global --add safe.directory {}'",
            path.display()
        ),
        git::Error::NoWorkTree => "name a commit with --base".to_owned(),
        git::Error::BadRevision { .. } => "'git rev-parse' shows what a name stands for".to_owned(),
        git::Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
            "nothing was changed; make room and try again".to_owned()
        }
        _ => return None,
    };
    Some(hint)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use git_vws::model::AgentId;

    use super::*;

    fn code(error: impl Into<Failure>) -> u8 {
        error.into().classify().code
    }

    #[test]
    fn every_kind_has_its_exit_code() {
        for kind in Refusal::ALL {
            let failure = ["damaged", "locked", "moved", "unsupported"].contains(&kind.as_str());
            let expected = if failure { 128 } else { 1 };
            assert_eq!(
                code(workspace::Error::refused(*kind, "x")),
                expected,
                "{kind}"
            );
        }
    }

    #[test]
    fn absent_differs_from_failed() {
        let agent = AgentId::new("a").unwrap();
        assert_eq!(code(workspace::Error::NoWorkspace { agent }), 128);
        let path = "x".into();
        let place = "the overlay".to_owned();
        assert_eq!(code(workspace::Error::NoPath { path, place }), 1);
        let closed = output::Error::Write(io::ErrorKind::BrokenPipe.into());
        assert_eq!(code(closed), 141);
        let full = output::Error::Write(io::ErrorKind::StorageFull.into());
        assert_eq!(code(full), 128);
    }

    #[test]
    fn causes_are_said_once() {
        let io = git::Error::io("read", "f", io::Error::other("gone"));
        assert_eq!(
            output::sentence(&Failure::from(io)),
            "cannot read 'f': gone"
        );
        let source = "the disk is on fire".into();
        let id = git::ObjectId::ZERO_SHA1;
        let path = "d".into();
        let tree = git::tree::Error::Read { id, path, source };
        let text = output::sentence(&Failure::from(workspace::Error::from(tree)));
        assert!(
            text.ends_with("could not be read: the disk is on fire"),
            "{text}"
        );
    }
}
