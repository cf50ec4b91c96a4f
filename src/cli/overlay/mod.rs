//! `git vws overlay`: workspaces and the files in them.

mod create;
mod diff;
mod edit;
mod life;
mod list;
mod look;

use clap::Subcommand;

use super::args;
use super::later::Later;
use super::report::Failure;
use super::session::Session;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a workspace
    Create(Later<create::Args>),
    /// List the workspaces
    List(Later<list::ListArgs>),
    /// Show one workspace
    Show(Later<list::ShowArgs>),
    /// Print a file's content
    Read(Later<look::ReadArgs>),
    /// List files, as 'git ls-tree' does
    Ls(Later<look::LsArgs>),
    /// Show what is at a path
    Stat(Later<look::StatArgs>),
    /// Show what the agent changed
    Diff(Later<diff::Args>),
    /// Put standard input at a path
    Write(Later<edit::WriteArgs>),
    /// Remove files or folders
    Delete(Later<edit::DeleteArgs>),
    /// Give a file or folder another name
    Rename(Later<edit::RenameArgs>),
    /// Set or clear a file's executable bit
    Chmod(Later<edit::ChmodArgs>),
    /// Make a symbolic link
    Symlink(Later<edit::SymlinkArgs>),
    /// Apply a patch from standard input
    Apply(Later<life::ApplyArgs>),
    /// Commit the overlay to the agent's branch
    Commit(Later<life::CommitArgs>),
    /// Take edits back to the base
    Discard(Later<life::DiscardArgs>),
    /// Make an earlier revision current again
    Restore(Later<life::RestoreArgs>),
    /// Let a workspace go
    Dispose(Later<life::DisposeArgs>),
}

pub(crate) fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Create(args) => create::run(args, session),
        Command::List(args) => list::list(args, session),
        Command::Show(args) => list::show(args, session),
        Command::Read(args) => look::read(args, session),
        Command::Ls(args) => look::ls(args, session),
        Command::Stat(args) => look::stat(args, session),
        Command::Diff(args) => diff::run(args, session),
        Command::Write(args) => edit::write(args, session),
        Command::Delete(args) => edit::delete(args, session),
        Command::Rename(args) => edit::rename(args, session),
        Command::Chmod(args) => edit::chmod(args, session),
        Command::Symlink(args) => edit::symlink(args, session),
        Command::Apply(args) => life::apply(args, session),
        Command::Commit(args) => life::commit(args, session),
        Command::Discard(args) => life::discard(args, session),
        Command::Restore(args) => life::restore(args, session),
        Command::Dispose(args) => life::dispose(args, session),
    }
}
