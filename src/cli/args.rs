//! Arguments that several commands share, and the edge where text becomes a checked name.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::str::FromStr;

use git_vws::git;
use git_vws::model::{AgentId, AgentIdError, RepoPath, Revision, RevisionError};
use git_vws::output::Form;
use git_vws::output::quote::unquote_c;
use git_vws::workspace::{From, Side, Terms};

use super::report::Failure;
use super::session::read_input;

/// How records are printed.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct FormArgs {
    /// End lines with NUL and print paths raw
    #[arg(short = 'z', conflicts_with = "json")]
    nul: bool,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

impl FormArgs {
    /// Whether a person may be reading.
    pub(crate) fn is_lines(self) -> bool {
        self.form() == Form::Lines
    }

    pub(crate) fn form(self) -> Form {
        match (self.nul, self.json) {
            (true, _) => Form::Nul,
            (_, true) => Form::Json,
            _ => Form::Lines,
        }
    }
}

/// What a new workspace starts from.
#[derive(clap::Args, Debug)]
pub(crate) struct FromArgs {
    /// Start from a commit instead of the working tree
    #[arg(long, value_name = "rev", conflicts_with = "from")]
    base: Option<String>,
    /// Start from another workspace or a revision of it, or bring one back from the trash
    #[arg(long, value_name = "agent[@n]|trash/agent[/n]")]
    from: Option<Source>,
}

impl FromArgs {
    /// Whether it is named; the working tree is not.
    pub(crate) fn is_named(&self) -> bool {
        self.base.is_some() || self.from.is_some()
    }

    pub(crate) fn source(&self) -> From {
        match (&self.base, &self.from) {
            (Some(spec), _) => From::Commit(spec.clone()),
            (_, Some(Source { spec, trash: true })) => {
                From::Trash(spec.agent.clone(), spec.revision)
            }
            (_, Some(Source { spec, .. })) => From::Workspace(spec.agent.clone(), spec.revision),
            _ => From::WorkTree,
        }
    }
}

/// The condition of a write.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ExpectArgs {
    /// Refuse unless the workspace is at this revision
    #[arg(long, value_name = "revision")]
    expect: Option<Revision>,
}

impl ExpectArgs {
    pub(crate) fn terms(self) -> Terms {
        Terms {
            expect: self.expect,
            ..Terms::default()
        }
    }
}

/// Which tree is looked at.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct SideArgs {
    /// Look at the base instead of the overlay
    #[arg(long)]
    base: bool,
}

impl SideArgs {
    pub(crate) fn side(self) -> Side {
        if self.base { Side::Base } else { Side::Overlay }
    }
}

/// A workspace, perhaps at an earlier revision: `<agent>[@<n>]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spec {
    pub(crate) agent: AgentId,
    pub(crate) revision: Option<Revision>,
}

/// Why a text names no workspace.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum SpecError {
    #[error(transparent)]
    Agent(#[from] AgentIdError),
    #[error(transparent)]
    Revision(#[from] RevisionError),
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        // An agent id holds no '@'.
        let (agent, revision) = match text.split_once('@') {
            Some((agent, revision)) => (agent, Some(revision.parse()?)),
            None => (text, None),
        };
        Ok(Spec {
            agent: agent.parse()?,
            revision,
        })
    }
}

/// Where a workspace starts from: `<agent>[@<n>]`, or `trash/<agent>[/<n>]` (or the whole ref) for one
/// that was let go.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(crate) spec: Spec,
    pub(crate) trash: bool,
}

impl FromStr for Source {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let short = text.strip_prefix("refs/relo/").unwrap_or(text);
        let Some(dropped) = short.strip_prefix("trash/") else {
            let spec = text.parse()?;
            return Ok(Source { spec, trash: false });
        };
        let (agent, revision) = match dropped.split_once('/') {
            Some((agent, revision)) => (agent, Some(revision.parse()?)),
            None => (dropped, None),
        };
        let agent = agent.parse()?;
        let spec = Spec { agent, revision };
        Ok(Source { spec, trash: true })
    }
}

/// The executable bit: `+x` or `-x`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Bit {
    #[value(name = "+x")]
    Set,
    #[value(name = "-x")]
    Cleared,
}

/// A path in a workspace, from its top.
pub(crate) fn path(arg: &OsString) -> Result<RepoPath, Failure> {
    Ok(RepoPath::new(arg.as_bytes())?)
}

/// A path that may be a folder, and may be written as one: `dir/`.
pub(crate) fn folder(arg: &OsString) -> Result<RepoPath, Failure> {
    let bytes = arg.as_bytes();
    match bytes.strip_suffix(b"/") {
        Some(name) if !name.is_empty() => Ok(RepoPath::new(name)?),
        _ => Ok(RepoPath::new(bytes)?),
    }
}

/// Paths that may be folders.
pub(crate) fn folders(args: &[OsString]) -> Result<Vec<RepoPath>, Failure> {
    args.iter().map(folder).collect()
}

/// The paths that a file lists, or standard input for `-`: one a line, C-quoted where that line says
/// so, or NUL-terminated and raw.
pub(crate) fn listed_paths(file: &OsString, nul: bool) -> Result<Vec<RepoPath>, Failure> {
    let bytes = if file == "-" {
        read_input()?
    } else {
        std::fs::read(file).map_err(|e| git::Error::io("read", file, e))?
    };
    let lines = bytes.split(|byte| *byte == if nul { 0 } else { b'\n' });
    let mut paths = Vec::new();
    for line in lines.filter(|line| !line.is_empty()) {
        let path = match unquote_c(line) {
            Ok((path, [])) if !nul => RepoPath::new(path)?,
            _ => RepoPath::new(line)?,
        };
        paths.push(path);
    }
    Ok(paths)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_workspace_may_be_named_with_a_revision() {
        let spec: Spec = "a.b@7".parse().unwrap();
        assert_eq!(
            (spec.agent.as_str(), spec.revision),
            ("a.b", Revision::new(7))
        );
        assert_eq!("a".parse::<Spec>().unwrap().revision, None);
        for bad in ["", "@1", "a@", "a@0", "a@07", "a@1@2", "a/b"] {
            assert!(bad.parse::<Spec>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_trash_is_named_in_short_or_in_full() {
        for (text, agent, revision) in [
            ("trash/a/7", "a", Revision::new(7)),
            ("refs/relo/trash/a/7", "a", Revision::new(7)),
            ("trash/a", "a", None),
        ] {
            let source: Source = text.parse().unwrap();
            assert!(source.trash);
            assert_eq!(
                (source.spec.agent.as_str(), source.spec.revision),
                (agent, revision)
            );
        }
        assert!(!"trash@2".parse::<Source>().unwrap().trash);
        for bad in [
            "trash/",
            "trash/a/0",
            "trash/a/x",
            "refs/relo/vws/a",
            "trash/a@2",
        ] {
            assert!(bad.parse::<Source>().is_err(), "{bad}");
        }
    }

    #[test]
    fn one_slash_may_end_a_folder() {
        let ok = |text: &str| folder(&text.into()).map(|p| p.as_bstr().to_string()).ok();
        assert_eq!(ok("d/e/").as_deref(), Some("d/e"));
        assert_eq!(ok("d").as_deref(), Some("d"));
        for bad in ["/", "", "d//", ".git/"] {
            assert_eq!(ok(bad), None, "{bad}");
        }
    }
}
