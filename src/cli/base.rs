//! `git vws base`: the user's working tree as a commit.

use git_vws::git::Staging;
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
    let store = session.store();
    let mut staging = Staging::new(session.repository())?;
    let base = store.record_base(&mut staging)?;
    store.put(staging, &[])?;
    out.record(&report::base(&base))?;
    out.finish()?;
    super::upkeep::remark_interrupted(session);
    Ok(())
}
