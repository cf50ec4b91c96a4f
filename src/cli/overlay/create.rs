//! `git vws overlay create`.

use git_vws::model::AgentId;
use git_vws::output::report;
use git_vws::workspace::{Created, NewWorkspace};

use super::args::{FormArgs, FromArgs};
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
    #[command(flatten)]
    from: FromArgs,
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
    let new = NewWorkspace {
        from: args.from.source(),
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
