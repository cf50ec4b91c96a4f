//! `git vws context`: what every answer about a workspace is based on.

use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::Record;

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let workspace = layout::import(&session.store(), &args.agent)?;
    let mut out = session.printer(args.form.form())?;
    out.record(
        &Record::new()
            .with("agent", &workspace.agent)
            .with("base", workspace.base())
            .with("revision", workspace.revision())
            .with("tree", workspace.tree),
    )?;
    Ok(out.finish()?)
}
