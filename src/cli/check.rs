//! `git vws check`: what this repository is, what is done how in it, and what cannot be done.
//!
//! Exit code 1 where no workspace can be made.

use std::process::ExitCode;

use git_vws::output::report;

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<ExitCode, Failure> {
    let mut out = session.printer(args.form.form())?;
    let check = session.store().check_repository()?;
    out.record(&report::check(&check))?;
    out.finish()?;
    Ok(ExitCode::from(u8::from(!check.holds_workspaces())))
}
