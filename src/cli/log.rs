//! `git vws log`: the revisions of a workspace, the newest first.

use git_vws::integrate;
use git_vws::model::AgentId;
use git_vws::output::report;

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Show only so many revisions
    #[arg(short = 'n', long, value_name = "number")]
    max_count: Option<usize>,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    let limit = args.max_count.unwrap_or(usize::MAX);
    for logged in integrate::history(&store, &args.agent, limit)? {
        out.record(&report::logged(&logged))?;
    }
    Ok(out.finish()?)
}
