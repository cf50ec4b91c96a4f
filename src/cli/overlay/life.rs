//! `git vws overlay apply`, `commit`, `discard`, `restore` and `dispose`: what concerns a workspace as a
//! whole.

use std::ffi::OsString;

use bstr::BStr;
use git_vws::integrate::upkeep;
use git_vws::layout;
use git_vws::model::{AgentId, Refusal, Revision};
use git_vws::output::report;
use git_vws::workspace::names;

use super::args::{self, ExpectArgs, FormArgs};
use crate::cli::report::Failure;
use crate::cli::session::{Session, read_input};

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

#[derive(clap::Args, Debug)]
pub(crate) struct ApplyArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CommitArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The message of the commit
    #[arg(short, long, value_name = "message")]
    message: Option<String>,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn apply(args: &ApplyArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    // Whoever is told "no workspace" need not have sent the patch.
    session.store().load(&args.agent)?;
    let terms = args.expect.terms();
    let published = session.store().apply(&args.agent, terms, &read_input()?)?;
    out.record(&report::published(&published))?;
    Ok(out.finish()?)
}

pub(crate) fn commit(args: &CommitArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    layout::import(&store, &args.agent)?;
    let (terms, message) = (args.expect.terms(), args.message.as_deref().map(BStr::new));
    let published = store.commit_overlay(&args.agent, terms, message)?;
    let branch = names::branch(&args.agent);
    let tip = session.repository().refs().find(&branch)?;
    let record = report::published(&published).with("branch", branch);
    out.record(&record.maybe("branch-commit", tip))?;
    Ok(out.finish()?)
}

pub(crate) fn discard(args: &DiscardArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let paths = args::folders(&args.paths)?;
    let terms = args.expect.terms();
    let published = session.store().discard(&args.agent, terms, &paths)?;
    out.record(&report::published(&published))?;
    Ok(out.finish()?)
}

pub(crate) fn restore(args: &RestoreArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let terms = args.expect.terms();
    let published = session.store().restore(&args.agent, terms, args.revision)?;
    out.record(&report::published(&published))?;
    Ok(out.finish()?)
}

pub(crate) fn dispose(args: &DisposeArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let disposed = upkeep::dispose(&session.store(), &args.agent, args.force).map_err(|error| {
        Failure::from(error).hint_on(
            Refusal::Conflict,
            "with --force it goes, and the edits stay under refs/relo/trash/",
        )
    })?;
    // A cache: what stays of it is nobody's loss.
    let _ = layout::forget(&session.store(), &args.agent);
    out.record(&report::disposed(&disposed))?;
    Ok(out.finish()?)
}
