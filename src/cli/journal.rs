//! `git vws journal`: what accept and undo have written.

use git_vws::integrate::journal;
use git_vws::output::report;

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    for summary in journal::list(session.store())? {
        out.record(&report::journal(&summary))?;
    }
    out.finish()?;
    super::upkeep::remark_interrupted(session);
    Ok(())
}
