//! `git vws materialize`, `capture` and `settle`: a directory for tools, and back.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::BString;
use clap::builder::PossibleValuesParser;
use git_vws::git;
use git_vws::layout::{self, Captured, Choice, Directory, Insist, Made, Options};
use git_vws::model::AgentId;
use git_vws::output::{Record, Value};
use git_vws::workspace::LeftOut;

use super::args::FormArgs;
use super::base::left_out;
use super::report::Failure;
use super::session::{Session, say};

#[derive(clap::Args, Debug)]
pub(crate) struct MaterializeArgs {
    #[command(flatten)]
    form: FormArgs,
    /// How it is laid out (default: relo.workspace.materialization, else auto)
    #[arg(long, value_name = "backend", value_parser = backends())]
    backend: Option<String>,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
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
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

fn backends() -> PossibleValuesParser {
    PossibleValuesParser::new(Choice::ALL.map(Choice::as_str))
}

/// How directories are laid out: by the option, or else by the setting.
pub(super) fn options(asked: Option<&str>, session: &Session) -> Result<Options, Failure> {
    const KEY: &str = "relo.workspace.materialization";
    let backend = match (asked, session.repository().config()?.string(KEY)) {
        (Some(word), _) => word.parse()?,
        (None, None) => Choice::Auto,
        (None, Some(value)) => value.parse().map_err(|_| git::Error::Config {
            key: KEY.to_owned(),
            value,
            why: "expected automatic or the name of a back end",
        })?,
    };
    Ok(Options {
        backend,
        ..Options::default()
    })
}

pub(crate) fn materialize(args: &MaterializeArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let options = options(args.backend.as_deref(), session)?;
    let directory = layout::materialize(&session.store(), &args.agent, &options)?;
    out.record(&described(&directory))?;
    Ok(out.finish()?)
}

pub(crate) fn capture(args: &CaptureArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let captured = layout::capture(&session.store(), &args.agent)?;
    if !args.quiet {
        remark(&captured.left_out);
    }
    out.record(&record(&captured))?;
    Ok(out.finish()?)
}

pub(crate) fn settle(args: &SettleArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let insist = if args.force { Insist::Yes } else { Insist::No };
    let settled = layout::settle(&session.store(), &args.agent, insist)?;
    if !args.quiet {
        remark(&settled.captured.left_out);
    }
    let kept = settled.kept.as_deref();
    out.record(
        &record(&settled.captured)
            .maybe("kept", kept.map(place))
            .maybe("vanished", settled.vanished.as_deref().map(place))
            .list(
                "left-behind",
                "left-behind",
                settled.left_behind.iter().map(|p| place(p)),
            ),
    )?;
    out.finish()?;
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

/// A ref that holds what a tool committed: `<commit> <ref>`.
fn made(made: &Made) -> Value {
    Value::Group(vec![
        ("commit", made.commit.into()),
        ("ref", made.name.clone().into()),
    ])
}

fn described(directory: &Directory) -> Record {
    Record::new()
        .with("agent", &directory.agent)
        .with("directory", place(&directory.path))
        .with("git-dir", place(&directory.admin))
        .with("revision", directory.cut.revision())
        .with("commit", directory.cut.commit)
        .with("backend", directory.backend.clone())
        .with("reason", directory.reason.clone())
        .flag("fresh", directory.fresh)
        .with("files", directory.stats.files)
        .maybe("replaced", directory.replaced.as_deref().map(place))
}

/// What a capture made of a directory.
pub(super) fn record(captured: &Captured) -> Record {
    let workspace = &captured.workspace;
    Record::new()
        .with("agent", &workspace.agent)
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("tree", workspace.tree)
        .flag("unchanged", !captured.changed)
        .list(
            "left-out",
            "left-out",
            captured.left_out.iter().map(left_out),
        )
        .list("made", "made", captured.branches.iter().map(made))
}

/// A path of the file system.
pub(super) fn place(path: &Path) -> Value {
    Value::Path(BString::from(path.as_os_str().as_bytes()))
}
