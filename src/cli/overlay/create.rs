//! `git vws overlay create`.

use git_vws::model::AgentId;
use git_vws::output::report;
use git_vws::workspace::{Created, From, NewWorkspace};

use super::args::{FormArgs, Source};
use crate::cli::form::{Mode, form};
use crate::cli::report::Failure;
use crate::cli::session::{Session, say};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing about what was left out
    #[arg(short, long)]
    quiet: bool,
    /// Start from a commit instead of the working tree
    #[arg(long, value_name = "rev", conflicts_with = "from")]
    base: Option<String>,
    /// Start from another workspace or a revision of it, or bring one back from the trash
    #[arg(long, value_name = "agent[@n]|trash/agent[/n]")]
    from: Option<Source>,
    /// How it is held (default: relo.workspace.mode, else virtual)
    #[arg(long, value_name = "mode", value_enum)]
    mode: Option<Mode>,
    /// Refuse every write
    #[arg(long)]
    read_only: bool,
    /// The session it belongs to, for the log
    #[arg(long, value_name = "session")]
    session: Option<String>,
    /// The new workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let from = match (&args.base, &args.from) {
        (Some(spec), _) => From::Commit(spec.clone()),
        (_, Some(Source { spec, trash: true })) => From::Trash(spec.agent.clone(), spec.revision),
        (_, Some(Source { spec, .. })) => From::Workspace(spec.agent.clone(), spec.revision),
        _ => From::WorkTree,
    };
    let new = NewWorkspace {
        from,
        mode: form(args.mode, session)?,
        read_only: args.read_only,
        session: args.session.clone(),
    };
    let created = session.store().create(&args.agent, &new)?;
    if !args.quiet {
        remark(&created);
    }
    out.record(&report::created(&created))?;
    out.finish()?;
    if created.base.is_some() {
        crate::cli::upkeep::remark_interrupted(session);
    }
    Ok(())
}

fn remark(created: &Created) {
    let Some(base) = &created.base else { return };
    if base.untracked_left_out > 0 {
        let count = base.untracked_left_out;
        say(
            "warning",
            &format!("left out {count} untracked files: more than relo.workspace.maxUntracked"),
        );
    }
    for left_out in &base.left_out {
        let text = format!("left out '{}' [{}]", left_out.path, left_out.kind);
        say("warning", &text);
    }
}
