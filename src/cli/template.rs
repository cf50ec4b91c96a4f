//! `git vws template`: the frozen layouts that overlays stand on.

use std::ffi::OsString;

use clap::Subcommand;
use git_vws::integrate;
use git_vws::layout::template::{self, Policy};
use git_vws::output::report;

use super::args::FormArgs;
#[cfg(target_os = "linux")]
use super::exec;
use super::progress::ProgressArgs;
use super::report::Failure;
use super::session::Session;

/// So many bytes of templates stay unless the caller says otherwise.
const MAX_BYTES: u64 = 4 << 30;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List the templates
    List(ListArgs),
    /// Make the template and the warm layer of the working tree
    Warm(WarmArgs),
    /// Remove templates that nothing stands on
    Prune(PruneArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    form: FormArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct WarmArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Show no progress
    #[arg(short, long)]
    quiet: bool,
    /// Take build output from a workspace or another working tree, not from here
    #[arg(long, value_name = "dir|agent")]
    from: Option<OsString>,
    #[command(flatten)]
    progress: ProgressArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Only say what would go
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// So many bytes may stay; the least recently used go first
    #[arg(long, value_name = "n", default_value_t = MAX_BYTES)]
    max_bytes: u64,
}

pub(crate) fn run(command: &Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::List(args) => list(args, session),
        Command::Warm(args) => warm(args, session),
        Command::Prune(args) => prune(args, session),
    }
}

fn list(args: &ListArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    for info in template::list(session.repository())? {
        out.record(&report::template(&info))?;
    }
    Ok(out.finish()?)
}

fn warm(args: &WarmArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    args.progress.show(session, args.quiet);
    if let Some(from) = &args.from {
        let warm = integrate::warm_from(&session.store(), from)?;
        out.record(&report::warmed(None, warm.as_ref()))?;
        return Ok(out.finish()?);
    }
    #[cfg(target_os = "linux")]
    if let Some(program) = exec::own_program() {
        git_vws::layout::try_overlays(session.repository(), &program);
    }
    let (template, warm) = template::warm_up(&session.store())?;
    out.record(&report::warmed(Some(&template), warm.as_ref()))?;
    Ok(out.finish()?)
}

fn prune(args: &PruneArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let policy = Policy {
        max_bytes: args.max_bytes,
        dry_run: args.dry_run,
    };
    let pruned = template::prune(session.repository(), &policy)?;
    for info in &pruned.removed {
        out.record(&report::pruned(info, true))?;
    }
    for info in &pruned.in_use {
        out.record(&report::pruned(info, false))?;
    }
    Ok(out.finish()?)
}
