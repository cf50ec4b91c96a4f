//! `git vws reject` and `undo`: no, and back.

use std::ffi::OsString;

use git_vws::integrate::journal::JournalId;
use git_vws::integrate::{self, Rejection};
use git_vws::model::AgentId;
use git_vws::output::{PathStyle, Record};

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
        out.path_line(PathStyle::Tree, &fields, &paths, || record(agent, change))?;
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
    Err(Failure::Partial {
        what: format!(
            "{refused} of {} were not rejected",
            count_of(rejected.changes.len(), "change")
        ),
        hint: None,
    })
}

fn record(agent: &AgentId, change: &Rejection) -> Record {
    Record::new()
        .with("agent", agent)
        .with("revision", change.revision)
        .with("path", &change.path)
        .maybe("refused", change.refused.map(|kind| kind.as_str()))
        .flag("edited-since", change.edited_since)
}

pub(crate) fn undo(args: &UndoArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let undone = integrate::undo(&session.store(), args.id, &args::folders(&args.paths)?)?;
    let word = if undone.redo { "redone" } else { "undone" };
    for step in undone.entry.written() {
        let agent = step.agent.as_ref().map(ToString::to_string);
        let fields = format!(
            "{word} {} {} {}",
            agent.as_deref().unwrap_or("-"),
            undone.entry.id,
            undone.of
        );
        let path = step.path.as_bstr();
        out.path_line(PathStyle::Tree, &fields, &[path], || {
            Record::new()
                .with("path", &step.path)
                .maybe("agent", agent.clone())
                .with("journal", undone.entry.id.get())
                .with("of", undone.of.get())
                .flag("redo", undone.redo)
        })?;
    }
    out.finish()?;
    for path in &undone.kept {
        say(
            "warning",
            &format!("what you saved in this moment is in '{path}'"),
        );
    }
    Ok(())
}
