//! `git vws hook`: what a harness calls to make and remove the directory of an agent: JSON on
//! standard input, the directory's path on standard output.
//!
//! The fields are those of Claude Code's `WorktreeCreate` and `WorktreeRemove` hooks; others are
//! ignored. The protocol is theirs: all that is printed on success is the path.

use std::path::{Path, PathBuf};

use git_vws::integrate;
use git_vws::layout::{self, Insist};
use git_vws::model::AgentId;
use git_vws::output::Form;
use git_vws::workspace::{From, NewWorkspace};
use serde::Deserialize;

use super::directory;
use super::form::form;
use super::report::Failure;
use super::session::{self, Session, count_of, read_input, say};

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Make a workspace and its directory, print the directory's path
    WorktreeCreate(CreateArgs),
    /// Capture a directory, remove it, propose what was made in it
    WorktreeRemove(RemoveArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct CreateArgs {
    /// Start from a commit instead of the working tree
    #[arg(long, value_name = "rev")]
    base: Option<String>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RemoveArgs {}

/// What a harness tells when it wants a directory.
#[derive(Debug, Deserialize)]
struct Wanted {
    #[serde(alias = "worktree_name")]
    name: String,
    cwd: Option<PathBuf>,
    session_id: Option<String>,
}

/// What it tells when it is done with one.
#[derive(Debug, Deserialize)]
struct Done {
    worktree_path: PathBuf,
    cwd: Option<PathBuf>,
}

pub(crate) fn run(command: &Command) -> Result<(), Failure> {
    match command {
        Command::WorktreeCreate(args) => create(args),
        Command::WorktreeRemove(_) => remove(),
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let wanted: Wanted = input()?;
    if let Some(cwd) = &wanted.cwd {
        go_to(cwd)?;
    }
    let session = Session::open()?;
    let store = session.store();
    let agent = agent(&wanted.name)?;
    if store.find(&agent)?.is_none() {
        let new = NewWorkspace {
            from: args.base.clone().map_or(From::WorkTree, From::Commit),
            mode: form(None, &session)?,
            read_only: false,
            session: wanted.session_id,
        };
        store.create(&agent, &new)?;
    }
    let options = directory::options(None, &session)?;
    let made = layout::materialize(&store, &agent, &options)?;
    let mut out = session.printer(Form::Lines)?;
    out.bytes(made.path.as_os_str().as_encoded_bytes())?;
    out.bytes(b"\n")?;
    Ok(out.finish()?)
}

fn remove() -> Result<(), Failure> {
    let done: Done = input()?;
    leave(&done)?;
    let session = Session::open()?;
    let store = session.store();
    let agent = owner(&session, &done.worktree_path)?;
    let settled = layout::close(&store, &agent, Insist::No)?;
    directory::remark(&settled.captured.left_out);
    if let Some(kept) = settled.kept {
        return Err(Failure::Partial {
            what: format!(
                "directory '{}' stays: not all of it could be captured",
                kept.display()
            ),
            hint: Some("'git vws settle --force' removes it with what was left out"),
        });
    }
    let proposal = integrate::propose(&store, &agent, None)?;
    let count = proposal.undecided();
    if count > 0 {
        let what = count_of(count, "change");
        say(agent.as_str(), &format!("proposed {what}"));
        session::hint(&format!("'git vws changes {agent}' shows it"));
    } else if proposal.changes.is_empty() {
        store.dispose(&agent, false)?;
    }
    Ok(())
}

fn input<T: serde::de::DeserializeOwned>() -> Result<T, Failure> {
    let bytes = read_input()?;
    serde_json::from_slice(&bytes).map_err(|error| Failure::Input(error.into()))
}

fn go_to(folder: &Path) -> Result<(), Failure> {
    std::env::set_current_dir(folder)
        .map_err(|error| git_vws::git::Error::io("change to", folder, error).into())
}

/// Goes out of the directory that is to be removed, to the repository that it belongs to.
fn leave(done: &Done) -> Result<(), Failure> {
    let outside = |cwd: &&PathBuf| !cwd.starts_with(&done.worktree_path) && cwd.is_dir();
    if let Some(cwd) = done.cwd.as_ref().filter(outside) {
        return go_to(cwd);
    }
    if !done.worktree_path.is_dir() {
        return Ok(());
    }
    go_to(&done.worktree_path)?;
    let common = Session::open()?.repository().common_dir().to_owned();
    let is_hidden = common.file_name().is_some_and(|name| name == ".git");
    match common.parent().filter(|_| is_hidden) {
        Some(top) => go_to(top),
        None => go_to(&common),
    }
}

/// Whose directory it is.
fn owner(session: &Session, path: &Path) -> Result<AgentId, Failure> {
    let store = session.store();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let wanted = real(path);
    for listed in store.list()?.into_iter().filter(|l| l.directory.is_some()) {
        let place = match layout::open(&store, &listed.agent) {
            Ok(open) => open.map(|directory| directory.path),
            Err(_) => layout::vanished(&store, &listed.agent).unwrap_or_default(),
        };
        if place.is_some_and(|place| real(&place) == wanted) {
            return Ok(listed.agent);
        }
    }
    Err(Failure::Partial {
        what: format!("'{}' is no directory of a workspace", path.display()),
        hint: Some("'git vws overlay list' shows the open directories"),
    })
}

/// The agent id for a name: what an id cannot hold becomes a dash.
fn agent(name: &str) -> Result<AgentId, Failure> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let mut id: String = name
        .chars()
        .map(|c| if legal(c) { c } else { '-' })
        .collect();
    while id.contains("..") {
        id = id.replace("..", ".");
    }
    id.truncate(AgentId::MAX_LEN);
    let id = id.trim_matches(['.', '-', '_']);
    let id = id.strip_suffix(".lock").unwrap_or(id);
    AgentId::new(id).map_err(|error| Failure::Partial {
        what: format!("no agent id can be made of the name: {error}"),
        hint: None,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn any_name_gives_an_id_or_a_no() {
        let id = |name: &str| agent(name).map(|agent| agent.to_string()).ok();
        assert_eq!(id("feat-auth").as_deref(), Some("feat-auth"));
        assert_eq!(id("feat/auth two").as_deref(), Some("feat-auth-two"));
        assert_eq!(id("../../x..y.lock").as_deref(), Some("x.y"));
        assert_eq!(id(&"x".repeat(99)).unwrap().len(), 64);
        assert_eq!(id("///"), None);
        assert_eq!(id("HEAD"), None);
    }
}
