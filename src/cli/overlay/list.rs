//! `git vws overlay list` and `show`: one record a workspace.

use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::Record;
use git_vws::workspace::Workspace;

use super::args::FormArgs;
use crate::cli::directory::place;
use crate::cli::report::Failure;
use crate::cli::session::Session;

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
    for listed in store.list()? {
        // One that is not what we made has no path to show; `exec` still says that it is open.
        let directory = match listed.directory {
            Some(_) => layout::open(&store, &listed.agent).unwrap_or_default(),
            None => None,
        };
        let record = attributes(&listed.agent, listed.state.as_ref().ok())
            .flag("edited", listed.edited)
            .maybe("exec", listed.directory)
            .maybe("directory", directory.map(|d| place(&d.path)))
            .list("snap", "snaps", listed.snaps.iter().copied())
            .maybe("damaged", listed.damage());
        out.record(&record)?;
    }
    Ok(out.finish()?)
}

pub(crate) fn show(args: &ShowArgs, session: &Session) -> Result<(), Failure> {
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let snaps = store.snaps(&args.agent)?;
    let directory = layout::open(&store, &args.agent).unwrap_or_default();
    let record = attributes(&args.agent, Some(&workspace))
        .flag("edited", store.base_tree(&workspace)? != workspace.tree)
        .maybe("exec", store.open_directory(&args.agent)?)
        .maybe("directory", directory.map(|d| place(&d.path)))
        .list(
            "snap",
            "snaps",
            snaps.into_iter().map(|(revision, _)| revision),
        )
        .maybe("damaged", None::<&str>);
    let mut out = session.printer(args.form.form())?;
    out.record(&record)?;
    Ok(out.finish()?)
}

fn attributes(agent: &AgentId, workspace: Option<&Workspace>) -> Record {
    let meta = workspace.map(|workspace| &workspace.meta);
    Record::new()
        .with("agent", agent)
        .maybe("revision", workspace.map(Workspace::revision))
        .maybe("commit", workspace.map(|workspace| workspace.commit))
        .maybe("tree", workspace.map(|workspace| workspace.tree))
        .maybe("base", workspace.map(Workspace::base))
        .maybe("mode", meta.map(|meta| meta.mode.as_str()))
        .flag("read-only", meta.is_some_and(|meta| meta.read_only))
        .maybe("session", meta.and_then(|meta| meta.session.clone()))
        .maybe("last", meta.map(|meta| meta.kind.as_str()))
        .maybe("proposal", meta.and_then(|meta| meta.proposal))
}
