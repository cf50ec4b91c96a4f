//! `git vws exec` and `run`: a command in a directory of its own.
//!
//! Both exit as the command did; 125 is a failure of ours, 126 and 127 mean what they mean for
//! `env`. Standard output is the command's; only `run` adds to it, the proposal's lines at the end.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use git_vws::integrate;
use git_vws::layout::{self, ExitKind, Finished, Options, Where};
use git_vws::model::AgentId;
use git_vws::workspace::{Base, From, NewWorkspace, Store};

use super::args::{FormArgs, FromArgs};
use super::form::form;
use super::progress::ProgressArgs;
use super::report::Failure;
use super::session::{self, Session, count_of, say};
use super::{accept, changes, directory};

/// Where the command runs.
#[derive(clap::Args, Debug)]
struct HowArgs {
    /// How files are laid out (default: relo.workspace.materialization, else auto)
    #[arg(long, value_name = "backend", value_parser = directory::backends())]
    backend: Option<String>,
    /// Where the command sees them: at the path of the checkout or at their own
    #[arg(long, value_name = "checkout|own", value_parser = ["checkout", "own"])]
    at: Option<String>,
    #[command(flatten)]
    progress: ProgressArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ExecArgs {
    /// Say nothing about what was left out
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    how: HowArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The command and its arguments
    #[arg(value_name = "command", required = true, last = true)]
    command: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Don't tell what is being done
    #[arg(short, long)]
    quiet: bool,
    /// Accept what is proposed, where the command exited with 0
    #[arg(long)]
    accept: bool,
    #[command(flatten)]
    from: FromArgs,
    #[command(flatten)]
    how: HowArgs,
    /// The workspace, made from the working tree where it is missing
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The command and its arguments
    #[arg(value_name = "command", required = true, last = true)]
    command: Vec<OsString>,
}

pub(crate) fn exec(args: &ExecArgs, session: &Session) -> Result<ExitCode, Failure> {
    args.how.progress.show(session, args.quiet);
    let finished = start(&args.agent, &args.command, (&args.how, false), session)?;
    let tell = |level: &str, text: &str| {
        if !args.quiet {
            say(level, text);
        }
    };
    finish(&finished, &args.command, args.quiet, &tell);
    code(finished)
}

pub(crate) fn run(args: &RunArgs, session: &Session) -> Result<ExitCode, Failure> {
    let mut out = session.printer(args.form.form())?;
    args.how.progress.show(session, args.quiet);
    let (store, agent) = (session.store(), &args.agent);
    let tell = |level: &str, text: &str| {
        if !args.quiet {
            say(level, text);
        }
    };
    // No record is printed before all of it is on disk.
    let wait = session.repository().in_one_wait();
    if args.from.is_named() || store.find(agent)?.is_none() {
        cut(&store, args, session, &tell)?;
    }
    let mut finished = start(agent, &args.command, (&args.how, true), session)?;
    // What is not needed any more goes while the rest is done.
    let _removal = finished.removal.take();
    finish(&finished, &args.command, args.quiet, &tell);
    let started = finished.start_error.is_none();
    let exited_well = finished.status.code() == 0;
    let status = code(finished)?;
    if started {
        let proposal = integrate::propose(&store, agent, None)?;
        if args.accept && proposal.undecided() > 0 && exited_well {
            let shown = (out, args.form.form(), args.quiet);
            return match accept::at_once(agent, shown, wait, session) {
                // What cannot be merged is no failure of ours.
                Err(refused @ Failure::Partial { .. }) => Ok(refused.report()),
                other => other.map(|()| status),
            };
        }
        drop(wait);
        changes::print(&mut out, &proposal)?;
        out.finish()?;
        let mut text = match proposal.undecided() {
            0 => "nothing to propose".to_owned(),
            count => format!("proposed {}", count_of(count, "change")),
        };
        if proposal.undecided() > 0 && session::advice(Some(session)) {
            let what = if proposal.undecided() == 1 {
                "it"
            } else {
                "them"
            };
            let next = format!(
                "; 'git vws changes {agent}' shows {what}, 'git vws accept {agent}' merges {what}"
            );
            text.push_str(&next);
        }
        tell(agent.as_str(), &text);
    }
    Ok(status)
}

/// Makes the workspace of `run`.
fn cut(
    store: &Store<'_>,
    args: &RunArgs,
    session: &Session,
    tell: &dyn Fn(&str, &str),
) -> Result<(), Failure> {
    let new = NewWorkspace {
        from: args.from.source(),
        mode: form(None, session)?,
        read_only: false,
        session: None,
    };
    let created = store.create(&args.agent, &new)?;
    let dirt = |base: &Base| (base.dirty.len(), base.untracked.len());
    let text = match (created.base.as_ref().map(dirt), args.from.source()) {
        (None, From::Commit(spec)) => format!("cut from commit '{spec}'"),
        (None, From::Workspace(other, _)) => format!("cut from workspace '{other}'"),
        (None, From::Trash(dropped, _)) => format!("brought back '{dropped}' from the trash"),
        (None | Some((0, 0)), _) => "cut from the working tree, which is clean".to_owned(),
        (Some((dirty, untracked)), _) => format!(
            "cut from the working tree, {dirty} edited and {untracked} untracked paths in it"
        ),
    };
    tell(args.agent.as_str(), &text);
    if created.base.is_some() {
        super::upkeep::remark_interrupted(session);
    }
    Ok(())
}

fn start(
    agent: &AgentId,
    argv: &[OsString],
    (how, settle): (&HowArgs, bool),
    session: &Session,
) -> Result<Finished, Failure> {
    let command = layout::Command {
        argv: argv.to_vec(),
        environment: session.repository().environment().variables.clone(),
    };
    let options = Options {
        program: own_program(),
        at: match how.at.as_deref() {
            Some("checkout") => Where::Checkout,
            Some("own") => Where::Own,
            _ => Where::Best,
        },
        settle,
        ..directory::options(how.backend.as_deref(), session)?
    };
    Ok(layout::exec(&session.store(), agent, &command, &options)?)
}

/// This program, to be started again; `None` where the system does not say.
pub(super) fn own_program() -> Option<PathBuf> {
    std::env::current_exe().ok()
}

/// Tells what became of the command and its directory.
fn finish(finished: &Finished, argv: &[OsString], quiet: bool, tell: &dyn Fn(&str, &str)) {
    let agent = finished.directory.agent.as_str();
    if let Some(why) = &finished.fallback {
        tell(
            "hint",
            &format!("files are written out, for there is no overlay: {why}"),
        );
    }
    if let Some(why) = &finished.directory.fallback {
        tell("hint", &directory::fell_back(why, &finished.directory));
    }
    if let Some(error) = &finished.start_error {
        let program = argv
            .first()
            .map(|p| p.to_string_lossy())
            .unwrap_or_default();
        say("fatal", &format!("cannot run '{program}': {error}"));
    } else if let ExitKind::Signal(signal) = finished.status {
        tell(agent, &format!("the command was ended by signal {signal}"));
    }
    if finished.ended > 0 {
        let text = format!(
            "ended {} processes that the command left behind",
            finished.ended
        );
        tell("warning", &text);
    }
    let kept = match &finished.settled {
        Ok(settled) => {
            let left_out = &settled.captured.left_out;
            if !quiet {
                directory::remark(left_out);
            }
            // One that was open before stays in any case.
            let lost = finished.survivors > 0 || left_out.iter().any(layout::would_be_lost);
            settled.kept.as_deref().filter(|_| lost)
        }
        Err(_) => None,
    };
    if let Some(kept) = kept {
        let text = format!(
            "directory '{}' stays: not all of it could be captured",
            kept.display()
        );
        say("warning", &text);
    }
}

/// The command's exit code, unless what it made could not be captured.
fn code(finished: Finished) -> Result<ExitCode, Failure> {
    match finished.settled {
        Ok(_) => Ok(ExitCode::from(finished.status.code().to_le_bytes()[0])),
        Err(error) => {
            let directory = finished.directory.path.display();
            let text = format!("directory '{directory}' stays as the command left it");
            say("warning", &text);
            Err(error.into())
        }
    }
}
