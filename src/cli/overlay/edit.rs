//! `git vws overlay write`, `delete`, `rename`, `chmod` and `symlink`: each one revision.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

use git_vws::model::AgentId;
use git_vws::output::report;
use git_vws::workspace::Edit;

use super::args::{self, Bit, ExpectArgs, FormArgs};
use crate::cli::report::Failure;
use crate::cli::session::{Session, read_input};

/// What every edit takes.
#[derive(clap::Args, Debug)]
pub(crate) struct Common {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WriteArgs {
    /// Set or clear the executable bit; it stays as it is otherwise
    #[arg(
        long,
        value_name = "+x|-x",
        allow_hyphen_values = true,
        hide_possible_values = true
    )]
    chmod: Option<Bit>,
    #[command(flatten)]
    common: Common,
    /// The file, from the top of the workspace
    #[arg(value_name = "path")]
    path: OsString,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DeleteArgs {
    /// Remove folders with all that is in them
    #[arg(short = 'r')]
    recursive: bool,
    #[command(flatten)]
    common: Common,
    /// The paths, from the top of the workspace
    #[arg(value_name = "path", required = true)]
    paths: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RenameArgs {
    /// Replace a file that is in the way
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    common: Common,
    /// The path now, from the top of the workspace
    #[arg(value_name = "from")]
    from: OsString,
    /// The path then
    #[arg(value_name = "to")]
    to: OsString,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChmodArgs {
    #[command(flatten)]
    common: Common,
    /// Whether the file can be run
    #[arg(
        value_name = "+x|-x",
        allow_hyphen_values = true,
        hide_possible_values = true
    )]
    bit: Bit,
    /// The file, from the top of the workspace
    #[arg(value_name = "path")]
    path: OsString,
}

#[derive(clap::Args, Debug)]
pub(crate) struct SymlinkArgs {
    #[command(flatten)]
    common: Common,
    /// The link, from the top of the workspace
    #[arg(value_name = "path")]
    path: OsString,
    /// What it says, relative to the link's folder
    #[arg(value_name = "target")]
    target: OsString,
}

pub(crate) fn write(args: &WriteArgs, session: &Session) -> Result<(), Failure> {
    let path = args::path(&args.path)?;
    // Whoever is told "no workspace" need not have sent the bytes.
    session.store().load(&args.common.agent)?;
    let edit = Edit::Write {
        path,
        bytes: read_input()?,
        executable: args.chmod.map(|bit| bit == Bit::Set),
    };
    publish(&args.common, &[edit], session)
}

pub(crate) fn delete(args: &DeleteArgs, session: &Session) -> Result<(), Failure> {
    let recursive = args.recursive;
    let edit = |path| {
        let path = if recursive {
            args::folder(path)?
        } else {
            args::path(path)?
        };
        Ok(Edit::Delete { path, recursive })
    };
    let edits: Vec<Edit> = args
        .paths
        .iter()
        .map(edit)
        .collect::<Result<_, Failure>>()?;
    publish(&args.common, &edits, session)
}

pub(crate) fn rename(args: &RenameArgs, session: &Session) -> Result<(), Failure> {
    let edit = Edit::Rename {
        from: args::folder(&args.from)?,
        to: args::folder(&args.to)?,
        force: args.force,
    };
    publish(&args.common, &[edit], session)
}

pub(crate) fn chmod(args: &ChmodArgs, session: &Session) -> Result<(), Failure> {
    let edit = Edit::Chmod {
        path: args::path(&args.path)?,
        executable: args.bit == Bit::Set,
    };
    publish(&args.common, &[edit], session)
}

pub(crate) fn symlink(args: &SymlinkArgs, session: &Session) -> Result<(), Failure> {
    let edit = Edit::Symlink {
        path: args::path(&args.path)?,
        target: args.target.as_bytes().into(),
    };
    publish(&args.common, &[edit], session)
}

fn publish(common: &Common, edits: &[Edit], session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(common.form.form())?;
    let terms = common.expect.terms();
    let published = session.store().edit(&common.agent, terms, edits)?;
    out.record(&report::published(&published))?;
    Ok(out.finish()?)
}
