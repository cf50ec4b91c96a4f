//! The face: arguments to one library call to records.
//!
//! Only here are arguments, environment and clock read and streams written. One file a command, or
//! a small group of them; none decides anything that the library could.

mod accept;
mod args;
mod base;
mod batch;
mod changes;
mod check;
mod complete;
mod conflicts;
mod context;
mod directory;
mod exec;
mod form;
mod graph;
mod hook;
mod journal;
mod later;
mod log;
mod manual;
mod mcp;
mod overlay;
mod progress;
mod reference;
mod reject;
mod report;
mod session;
mod snap;
mod stack;
mod status;
mod template;
mod upkeep;
mod usage;
mod version;
mod watch;

use std::panic::PanicHookInfo;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use later::Later;
use report::Failure;
use session::{Session, say};

#[derive(Debug, Parser)]
#[command(
    name = "git-vws",
    bin_name = "git vws",
    version,
    override_help = usage::HELP,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make, look at, edit and let go workspaces
    #[command(subcommand)]
    Overlay(Later<overlay::Command>),
    /// Record the working tree as a commit and print it
    Base(Later<base::Args>),
    /// Pin a revision of a workspace
    Snap(Later<snap::Args>),
    /// Print what answers about a workspace are based on
    Context(Later<context::Args>),
    /// Make a workspace on the unaccepted work of others
    Stack(Later<stack::StackArgs>),
    /// Move a workspace to exactly this base
    Recut(Later<stack::RecutArgs>),
    /// Move a workspace, with what it was stacked on, to another base
    RebaseOnto(Later<stack::RebaseArgs>),
    /// Print a pointer to files that an agent changed
    Reference(Later<reference::ReferenceArgs>),
    /// Take over files that a reference points to
    Import(Later<reference::ImportArgs>),
    /// List the revisions of a workspace
    Log(Later<log::Args>),
    /// Carry out many commands in one process
    Batch(Later<batch::Args>),
    /// Lay out a directory for tools
    Materialize(Later<directory::MaterializeArgs>),
    /// Import what tools did in the directory
    Capture(Later<directory::CaptureArgs>),
    /// Import, and remove the directory
    Settle(Later<directory::SettleArgs>),
    /// Run a command in a directory of its own
    Exec(Later<exec::ExecArgs>),
    /// Make a workspace, run a command in it, propose what it made
    Run(Later<exec::RunArgs>),
    /// Frozen layouts that overlays stand on
    #[command(subcommand)]
    Template(Later<template::Command>),
    /// Offer what an agent made
    Propose(Later<changes::ProposeArgs>),
    /// List what is offered
    Changes(Later<changes::ChangesArgs>),
    /// List what would collide, with each other and with the working tree
    Conflicts(Later<conflicts::Args>),
    /// Merge changes into the working tree
    Accept(Later<accept::Args>),
    /// Turn changes down
    Reject(Later<reject::RejectArgs>),
    /// Take back what an accept wrote
    Undo(Later<reject::UndoArgs>),
    /// List what was written to the working tree
    Journal(Later<journal::Args>),
    /// Put in order what an interrupted run has left
    Recover(Later<upkeep::RecoverArgs>),
    /// Remove what has outlived its time
    Sweep(Later<upkeep::SweepArgs>),
    /// Print what user interfaces are shown of the workspaces
    Mirror(Later<watch::MirrorArgs>),
    /// Print the log of what happened
    Events(Later<watch::EventsArgs>),
    /// Tell what this repository is, and what can and cannot be done in it
    Check(Later<check::Args>),
    /// Show all of it on one screen
    Status(Later<status::Args>),
    /// Serve a workspace as tools of a Model Context Protocol server
    Mcp(Later<mcp::Args>),
    /// Make and remove directories for a harness, JSON on standard input
    #[command(subcommand)]
    Hook(Later<hook::Command>),
    /// Print the version, and what is built in
    Version(Later<version::Args>),
    /// Write man pages and completions where the system looks for them
    #[command(hide = true)]
    InstallDocs(Later<manual::InstallArgs>),
    /// Complete a command line for a shell
    #[command(hide = true, name = "__complete")]
    Complete(Later<complete::Args>),
}

/// Parses, runs, reports. Returns the exit code.
pub(crate) fn main() -> ExitCode {
    std::panic::set_hook(Box::new(bug));
    #[cfg(any(debug_assertions, feature = "fault-points"))]
    if let Ok(point) = std::env::var("GIT_VWS_FAULT") {
        git_vws::git::fault::arm(&point);
    }
    let args: Vec<_> = std::env::args_os().collect();
    let parsed = command()
        .try_get_matches_from(&args)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Err(error) => usage::answer(&error, command(), &args),
        Ok(cli) => match run(&cli.command) {
            Ok(code) => code,
            Err(failure) => failure.report_as(cli.command.own_failure()),
        },
    }
}

impl Command {
    /// The exit code of our own failures, where the other codes are those of a command we run.
    fn own_failure(&self) -> Option<u8> {
        matches!(self, Command::Exec(_) | Command::Run(_)).then_some(125)
    }
}

/// The parser.
fn command() -> clap::Command {
    usage::styled(Cli::command())
}

fn run(command: &Command) -> Result<ExitCode, Failure> {
    // What works outside of a repository, or finds it by itself.
    let done = match command {
        Command::Version(args) => Some(version::run(args)),
        Command::InstallDocs(args) => Some(manual::install(args, self::command())),
        Command::Complete(args) => Some(complete::run(args, self::command())),
        Command::Hook(command) => Some(hook::run(command)),
        _ => None,
    };
    if let Some(done) = done {
        return done.map(|()| ExitCode::SUCCESS);
    }
    let session = Session::open()?;
    let done = match command {
        Command::Exec(args) => return exec::exec(args, &session),
        Command::Run(args) => return exec::run(args, &session),
        Command::Check(args) => return check::run(args, &session),
        Command::Overlay(command) => overlay::run(command, &session),
        Command::Base(args) => base::run(args, &session),
        Command::Snap(args) => snap::run(args, &session),
        Command::Context(args) => context::run(args, &session),
        Command::Stack(args) => stack::stack(args, &session),
        Command::Recut(args) => stack::recut(args, &session),
        Command::RebaseOnto(args) => stack::rebase_onto(args, &session),
        Command::Reference(args) => reference::reference(args, &session),
        Command::Import(args) => reference::import(args, &session),
        Command::Log(args) => log::run(args, &session),
        Command::Batch(args) => batch::run(args, &session),
        Command::Materialize(args) => directory::materialize(args, &session),
        Command::Capture(args) => directory::capture(args, &session),
        Command::Settle(args) => directory::settle(args, &session),
        Command::Template(command) => template::run(command, &session),
        Command::Propose(args) => changes::propose(args, &session),
        Command::Changes(args) => changes::changes(args, &session),
        Command::Conflicts(args) => conflicts::run(args, &session),
        Command::Accept(args) => accept::run(args, &session),
        Command::Reject(args) => reject::reject(args, &session),
        Command::Undo(args) => reject::undo(args, &session),
        Command::Journal(args) => journal::run(args, &session),
        Command::Status(args) => status::run(args, &session),
        Command::Mcp(args) => mcp::run(args, &session),
        Command::Recover(args) => upkeep::recover(args, &session),
        Command::Sweep(args) => upkeep::sweep(args, &session),
        Command::Mirror(args) => watch::mirror(args, &session),
        Command::Events(args) => watch::events(args, &session),
        Command::Version(_) | Command::InstallDocs(_) | Command::Complete(_) | Command::Hook(_) => {
            Ok(())
        }
    };
    done.map(|()| ExitCode::SUCCESS)
}

/// A panic is a bug of ours, and is said so, as git does.
fn bug(info: &PanicHookInfo<'_>) {
    let what = info
        .payload()
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| info.payload().downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked".to_owned());
    let place = info
        .location()
        .map(|place| format!("{}:{}: ", place.file(), place.line()))
        .unwrap_or_default();
    say("BUG", &format!("{place}{what}"));
}
