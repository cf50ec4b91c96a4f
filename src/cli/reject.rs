//! `git vws reject` and `undo`: no, and back.

use std::ffi::OsString;

use git_vws::integrate;
use git_vws::integrate::journal::JournalId;
use git_vws::model::AgentId;
use git_vws::output::{PathStyle, report};

use super::args::{self, FormArgs};
use super::report::Failure;
use super::session::{Session, count_of, say};

#[derive(clap::Args, Debug)]
pub(crate) struct RejectArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,
    /// Whose changes
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// Only those of these files and folders
    #[arg(value_name = "path")]
    paths: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    form: FormArgs,
    /// A number that 'git vws journal' shows; the last accept if left out
    #[arg(value_name = "journal-id")]
    id: Option<JournalId>,
    /// Only these files and folders
    #[arg(value_name = "path", last = true)]
    paths: Vec<OsString>,
}

pub(crate) fn reject(args: &RejectArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let agent = &args.agent;
    let rejected = integrate::reject(&session.store(), agent, &args::folders(&args.paths)?)?;
    let mut refused = 0;
    for change in &rejected.changes {
        let word = change.refused.map_or("rejected", |kind| kind.as_str());
        let fields = format!("{word} {agent} {}", change.revision);
        let paths = [change.path.as_ref()];
        out.path_line(PathStyle::Tree, &fields, &paths, || {
            report::rejected(agent, change)
        })?;
    }
    out.finish()?;
    for change in &rejected.changes {
        let path = &change.path;
        if let Some(kind) = change.refused {
            refused += 1;
            say(
                "error",
                &format!("cannot reject '{path}' of agent '{agent}' [{kind}]"),
            );
        } else if change.edited_since && !args.quiet {
            let text = format!("'{path}' was edited since; those edits stay in the workspace");
            say("warning", &text);
        }
    }
    for (agent, count) in rejected.blocked.iter().filter(|_| !args.quiet) {
        let text = format!(
            "{} of agent '{agent}' built on it and cannot be accepted now [parent_rejected]",
            count_of(*count, "change")
        );
        say("warning", &text);
    }
    if rejected.changes.is_empty() && !args.quiet {
        say("warning", "nothing waits for a decision");
    }
    if rejected.released && !args.quiet {
        say(
            agent.as_str(),
            "nothing waits any more, the workspace is released",
        );
    }
    if refused == 0 {
        return Ok(());
    }
    let were = if refused == 1 { "was" } else { "were" };
    Err(Failure::Partial {
        what: format!(
            "{refused} of {} {were} not rejected",
            count_of(rejected.changes.len(), "change")
        ),
        hint: None,
    })
}

pub(crate) fn undo(args: &UndoArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let undone = integrate::undo(&session.store(), args.id, &args::folders(&args.paths)?)?;
    for step in undone.entry.written() {
        let fields = report::undone_fields(&undone, step);
        let path = step.path.as_bstr();
        out.path_line(PathStyle::Tree, &fields, &[path], || {
            report::undone(&undone, step)
        })?;
    }
    out.finish()?;
    super::accept::remark_recovered(&undone.recovered);
    for path in &undone.kept {
        say(
            "warning",
            &format!("what you saved in this moment is in '{path}'"),
        );
    }
    Ok(())
}
