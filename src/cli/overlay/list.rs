//! `git vws overlay list` and `show`: one record a workspace.

use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::report;

use super::args::FormArgs;
use crate::cli::report::Failure;
use crate::cli::session::{Session, say};

#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    #[command(flatten)]
    form: FormArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    form: FormArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn list(args: &ListArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    let mut damaged = false;
    for listed in store.list()? {
        damaged |= listed.state.is_err();
        // One that is not what we made has no path to show; `exec` still says that it is open.
        let directory = match listed.directory {
            Some(_) => layout::open(&store, &listed.agent).unwrap_or_default(),
            None => None,
        };
        let record = report::listed(&listed, directory.as_ref().map(|d| &*d.path));
        out.record(&record)?;
    }
    out.finish()?;
    if damaged {
        say(
            "hint",
            "'git vws recover' shows what is damaged, and clears it away",
        );
    }
    Ok(())
}

pub(crate) fn show(args: &ShowArgs, session: &Session) -> Result<(), Failure> {
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let snaps: Vec<_> = store
        .snaps(&args.agent)?
        .into_iter()
        .map(|(n, _)| n)
        .collect();
    let directory = layout::open(&store, &args.agent).unwrap_or_default();
    let edited = store.base_tree(&workspace)? != workspace.tree;
    let exec = store.open_directory(&args.agent)?;
    let open = directory.as_ref().map(|d| &*d.path);
    let record = report::shown(&workspace, edited, exec, open, &snaps);
    let mut out = session.printer(args.form.form())?;
    out.record(&record)?;
    Ok(out.finish()?)
}
