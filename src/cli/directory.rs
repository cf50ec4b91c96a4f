//! `git vws materialize`, `capture` and `settle`: a directory for tools, and back.

use std::ffi::OsString;

use clap::builder::PossibleValuesParser;
use git_vws::layout::{self, Choice, Directory, Insist, Options};
use git_vws::model::{AgentId, Refusal};
use git_vws::output::report;
use git_vws::workspace::LeftOut;

use super::args::{self, FormArgs};
use super::exec;
use super::progress::ProgressArgs;
use super::report::Failure;
use super::session::{Session, say};

/// What to do where no overlay can be mounted for all to see.
const NO_MOUNT: &str =
    "'--backend=checkout' writes the files out; 'git vws exec' mounts without any rights";

#[derive(clap::Args, Debug)]
pub(crate) struct MaterializeArgs {
    #[command(flatten)]
    form: FormArgs,
    /// How it is laid out (default: relo.workspace.materialization, else auto)
    #[arg(long, value_name = "backend", value_parser = backends())]
    backend: Option<String>,
    #[command(flatten)]
    progress: ProgressArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// Lay out only these files and folders
    #[arg(value_name = "path", last = true)]
    paths: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct CaptureArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing about what was left out
    #[arg(short, long)]
    quiet: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

#[derive(clap::Args, Debug)]
pub(crate) struct SettleArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing about what was left out
    #[arg(short, long)]
    quiet: bool,
    /// Remove it with what could not be captured
    #[arg(short, long)]
    force: bool,
    #[command(flatten)]
    progress: ProgressArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(super) fn backends() -> PossibleValuesParser {
    PossibleValuesParser::new(Choice::ALL.map(Choice::as_str))
}

/// How directories are laid out: by the option, or else by the setting.
pub(super) fn options(asked: Option<&str>, session: &Session) -> Result<Options, Failure> {
    let backend = match asked {
        Some(word) => word.parse()?,
        None => layout::setting(session.repository())?,
    };
    Ok(Options {
        backend,
        ..Options::default()
    })
}

pub(crate) fn materialize(args: &MaterializeArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let options = Options {
        program: exec::own_program(),
        pathspecs: args::folders(&args.paths)?,
        ..options(args.backend.as_deref(), session)?
    };
    args.progress.show(session, false);
    let laid_out = layout::materialize(&session.store(), &args.agent, &options);
    let directory = laid_out.map_err(|error| match options.backend {
        Choice::Overlay => Failure::from(error).hint_on(Refusal::Unsupported, NO_MOUNT),
        _ => error.into(),
    })?;
    if let Some(why) = &directory.fallback {
        say("hint", &fell_back(why, &directory));
    }
    out.record(&report::laid_out(&directory))?;
    Ok(out.finish()?)
}

/// Which back end took the place of one that failed.
pub(super) fn fell_back(why: &str, directory: &Directory) -> String {
    format!("laid out by '{}': {why}", directory.backend)
}

pub(crate) fn capture(args: &CaptureArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let captured = layout::capture(&session.store(), &args.agent)?;
    if !args.quiet {
        remark(&captured.left_out);
    }
    out.record(&report::captured(&captured))?;
    Ok(out.finish()?)
}

pub(crate) fn settle(args: &SettleArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    args.progress.show(session, args.quiet);
    let insist = if args.force { Insist::Yes } else { Insist::No };
    let settled = layout::settle(&session.store(), &args.agent, insist)?;
    if !args.quiet {
        remark(&settled.captured.left_out);
    }
    let kept = settled.kept.as_deref().filter(|_| !settled.stays);
    out.record(&report::settled(&settled))?;
    out.finish()?;
    if settled.stays && !args.quiet {
        let agent = args.agent.as_str();
        say(
            agent,
            "captured; its directory stays until the last decision",
        );
    }
    match kept {
        None => Ok(()),
        Some(kept) => Err(Failure::Partial {
            what: format!(
                "directory '{}' stays: not all of it could be captured",
                kept.display()
            ),
            hint: Some("'git vws settle --force' removes it with what was left out"),
        }),
    }
}

/// Tells what a capture left out; what git ignores is left out on purpose.
pub(super) fn remark(all: &[LeftOut]) {
    for one in all.iter().filter(|one| layout::would_be_lost(one)) {
        say(
            "warning",
            &format!("left out '{}' [{}]", one.path, one.kind),
        );
    }
}
