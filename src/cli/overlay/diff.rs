//! `git vws overlay diff`: what the agent changed, in git's own lines.

use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::{PathStyle, report};
use git_vws::workspace::{count_lines, patch};

use super::args::FormArgs;
use crate::cli::report::Failure;
use crate::cli::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Print modes, object ids and status (the default)
    #[arg(long, conflicts_with_all = ["name_status", "numstat", "patch"])]
    raw: bool,
    /// Print only the status
    #[arg(long, conflicts_with_all = ["numstat", "patch"])]
    name_status: bool,
    /// Print how many lines were added and deleted, '-' for binary content
    #[arg(long, conflicts_with = "patch")]
    numstat: bool,
    /// Print the changes as a patch that 'git apply' takes
    #[arg(short, long, conflicts_with_all = ["nul", "json"])]
    patch: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let mut out = session.printer(args.form.form())?;
    let objects = session.repository().objects()?;
    let blob = |id| Ok(objects.blob(id)?);
    let changes = store.diff(&workspace)?;
    if args.patch {
        let quote_path = session.repository().config()?.bool("core.quotepath")?;
        out.bytes(&patch(&blob, &changes, quote_path.unwrap_or(true))?)?;
        return Ok(out.finish()?);
    }
    for change in &changes {
        let paths = [change.path.as_ref()];
        if args.numstat {
            let lines = count_lines(&blob, change)?;
            let fields = report::counted_fields(lines);
            out.path_line(PathStyle::Tree, &fields, &paths, || {
                report::counted(change, lines)
            })?;
            continue;
        }
        let fields = match args.name_status {
            true => change.status().letter().to_string(),
            false => report::raw_fields(change, session.repository().format()),
        };
        out.path_line(PathStyle::Diff, &fields, &paths, || report::change(change))?;
    }
    Ok(out.finish()?)
}
