//! `git vws overlay discard`, `restore` and `dispose`: back, and away.

use std::ffi::OsString;

use git_vws::model::{AgentId, Refusal, Revision};
use git_vws::output::Record;

use super::args::{self, ExpectArgs, FormArgs};
use super::edit::record;
use crate::cli::report::Failure;
use crate::cli::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct DiscardArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// Files and folders; everything if none is given
    #[arg(value_name = "path")]
    paths: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The revision to go back to
    #[arg(value_name = "revision")]
    revision: Revision,
}

#[derive(clap::Args, Debug)]
pub(crate) struct DisposeArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Let it go with edits that nobody decided on; they are kept as a ref
    #[arg(short, long)]
    force: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn discard(args: &DiscardArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let paths = args::folders(&args.paths)?;
    let terms = args.expect.terms();
    let published = session.store().discard(&args.agent, terms, &paths)?;
    out.record(&record(&published))?;
    Ok(out.finish()?)
}

pub(crate) fn restore(args: &RestoreArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let terms = args.expect.terms();
    let published = session.store().restore(&args.agent, terms, args.revision)?;
    out.record(&record(&published))?;
    Ok(out.finish()?)
}

pub(crate) fn dispose(args: &DisposeArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let disposed = session
        .store()
        .dispose(&args.agent, args.force)
        .map_err(|error| {
            Failure::from(error).hint_on(
                Refusal::Conflict,
                "with --force it goes, and the edits stay under refs/relo/trash/",
            )
        })?;
    let record = Record::new()
        .with("agent", &args.agent)
        .with("revision", disposed.workspace.revision())
        .with("commit", disposed.workspace.commit)
        .maybe("trash", disposed.trash);
    out.record(&record)?;
    Ok(out.finish()?)
}
