//! `git vws snap`: pins a revision, lists the pinned ones, lets one go.

use git_vws::layout;
use git_vws::model::{AgentId, Revision};
use git_vws::output::report;

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// List the pinned revisions
    #[arg(long, conflicts_with = "drop")]
    list: bool,
    /// Let go of a pinned revision
    #[arg(long, value_name = "revision")]
    drop: Option<Revision>,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let store = session.store();
    let agent = &args.agent;
    let mut out = session.printer(args.form.form())?;
    if let Some(revision) = args.drop {
        store.drop_snap(agent, revision)?;
    } else if args.list {
        for (revision, commit) in store.snaps(agent)? {
            out.record(&report::snap(agent, revision, commit))?;
        }
    } else {
        layout::import(&store, agent)?;
        let pinned = store.snap(agent, None)?;
        out.record(&report::snap(agent, pinned.revision(), pinned.commit))?;
    }
    Ok(out.finish()?)
}
