//! `git vws stack`, `recut` and `rebase-onto`: workspaces on the unaccepted work of others.

use git_vws::integrate::{self, Node, RebaseRequest, StackRequest};
use git_vws::model::{AgentId, Refusal};
use git_vws::output::report;
use git_vws::workspace::{self, Conflict, From, NotApplied};

use super::args::{ExpectArgs, FormArgs};
use super::form::{Mode, form};
use super::report::Failure;
use super::session::{Out, Session, count_of, say};

#[derive(clap::Args, Debug)]
pub(crate) struct StackArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing about what was left out
    #[arg(short, long)]
    quiet: bool,
    /// The workspaces whose unaccepted work it starts from
    #[arg(
        long,
        value_name = "agent",
        value_delimiter = ',',
        required_unless_present_any = ["status", "graph"],
        conflicts_with_all = ["status", "graph"]
    )]
    on: Vec<AgentId>,
    /// Create nothing unless all of that applies
    #[arg(long, requires = "on")]
    strict: bool,
    /// Put it on this commit, or 'worktree', not on what the first was made on
    #[arg(long, value_name = "base", requires = "on")]
    base: Option<String>,
    /// How it is held (default: relo.workspace.mode, else virtual)
    #[arg(long, value_name = "mode", value_enum, requires = "on")]
    mode: Option<Mode>,
    /// Refuse every write
    #[arg(long, requires = "on")]
    read_only: bool,
    /// The session it belongs to, for the log
    #[arg(long, value_name = "session", requires = "on")]
    session: Option<String>,
    /// Show which workspaces are behind what they were stacked on
    #[arg(long, conflicts_with = "graph")]
    status: bool,
    /// Draw all workspaces and what they were stacked on
    #[arg(long)]
    graph: bool,
    /// The new workspace; with --status or --graph the one to look at
    #[arg(value_name = "agent", required_unless_present_any = ["status", "graph"])]
    agent: Option<AgentId>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RecutArgs {
    #[command(flatten)]
    common: MoveArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct RebaseArgs {
    #[command(flatten)]
    common: MoveArgs,
    /// Leave out the work of a workspace that it was stacked on
    #[arg(long, value_name = "agent", value_delimiter = ',')]
    without: Vec<AgentId>,
}

#[derive(clap::Args, Debug)]
struct MoveArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// Move it all the same; paths in conflict stay as the agent has them
    #[arg(long)]
    keep_conflicts: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The new base: a commit, or 'worktree' for the working tree as it is
    #[arg(value_name = "base")]
    base: String,
}

pub(crate) fn stack(args: &StackArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    if args.status || args.graph {
        let nodes = integrate::graph(&session.store(), args.agent.as_ref())?;
        if args.status {
            status(&mut out, &nodes)?;
        } else if args.form.is_lines() {
            out.bytes(super::graph::draw(&nodes).as_bytes())?;
        } else {
            for node in &nodes {
                out.record(&report::node(node))?;
            }
        }
        return Ok(out.finish()?);
    }
    let Some(agent) = &args.agent else {
        return Ok(out.finish()?);
    };
    let request = StackRequest {
        on: args.on.clone(),
        onto: args.base.as_deref().map(From::named),
        strict: args.strict,
        mode: form(args.mode, session)?,
        read_only: args.read_only,
        session: args.session.clone(),
    };
    let stacked = integrate::stack(&session.store(), agent, &request)?;
    out.record(&report::stacked(agent, &stacked))?;
    out.finish()?;
    if stacked.workspace.is_none() {
        return Err(not_applied(&stacked.left_out, "nothing was created"));
    }
    if !args.quiet {
        for left in &stacked.left_out {
            say("warning", &format!("left out {}", in_words(left)));
        }
    }
    Ok(())
}

pub(crate) fn recut(args: &RecutArgs, session: &Session) -> Result<(), Failure> {
    rebase(&args.common, false, &[], session)
}

pub(crate) fn rebase_onto(args: &RebaseArgs, session: &Session) -> Result<(), Failure> {
    rebase(&args.common, true, &args.without, session)
}

fn rebase(
    args: &MoveArgs,
    with_parents: bool,
    without: &[AgentId],
    session: &Session,
) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let request = RebaseRequest {
        onto: From::named(&args.base),
        with_parents,
        without: without.to_vec(),
        keep_conflicts: args.keep_conflicts,
    };
    let terms = args.expect.terms();
    let rebased = integrate::rebase(&session.store(), &args.agent, &request, terms)?;
    out.record(&report::rebased(&rebased))?;
    out.finish()?;
    if !rebased.left_out.is_empty() {
        let failure = not_applied(&rebased.left_out, "nothing was changed");
        return Err(failure.hint_on(
            Refusal::Conflict,
            "'--without=<agent>' leaves its work out of the new base",
        ));
    }
    if !rebased.conflicts.is_empty() && !args.keep_conflicts {
        let what = format!(
            "workspace '{}' contradicts the new base on {}; nothing was changed",
            args.agent,
            paths(&rebased.conflicts)
        );
        return Err(refused(what).hint_on(
            Refusal::Conflict,
            "with --keep-conflicts these paths stay as the agent has them",
        ));
    }
    Ok(())
}

fn status(out: &mut Out, nodes: &[Node]) -> Result<(), Failure> {
    for node in nodes {
        for below in &node.below {
            out.record(&report::standing(&node.agent, below))?;
        }
    }
    Ok(())
}

fn refused(what: String) -> Failure {
    workspace::Error::refused(Refusal::Conflict, what).into()
}

fn not_applied(left_out: &[NotApplied], outcome: &str) -> Failure {
    let all: Vec<String> = left_out.iter().map(in_words).collect();
    refused(format!("cannot apply {}; {outcome}", all.join(", ")))
}

fn in_words(left: &NotApplied) -> String {
    let through = match left.culprit == left.agent {
        true => String::new(),
        false => format!(" (the edits of '{}')", left.culprit),
    };
    format!(
        "'{}'{through}: conflict on {}",
        left.agent,
        paths(&left.conflicts)
    )
}

fn paths(conflicts: &[Conflict]) -> String {
    match conflicts {
        [one] => format!("'{}'", one.path),
        all => count_of(all.len(), "path"),
    }
}
