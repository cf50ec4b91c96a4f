//! `git vws propose` and `changes`: what agents offer.

use bstr::BStr;
use git_vws::integrate::{self, Proposal, ProposedChange, State};
use git_vws::model::AgentId;
use git_vws::output::{PathStyle, Record, Value};

use super::args::{FormArgs, Spec};
use super::report::Failure;
use super::session::{Out, Session, say};

#[derive(clap::Args, Debug)]
pub(crate) struct ProposeArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing where there is nothing to propose
    #[arg(short, long)]
    quiet: bool,
    /// The message of the commit on the agent's branch
    #[arg(short, long, value_name = "message")]
    message: Option<String>,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ChangesArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Whose changes, perhaps of which proposal; all if left out
    #[arg(value_name = "agent[@n]")]
    of: Option<Spec>,
}

pub(crate) fn propose(args: &ProposeArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let message = args.message.as_deref().map(BStr::new);
    let proposal = integrate::propose(&session.store(), &args.agent, message)?;
    print(&mut out, &proposal)?;
    if proposal.changes.is_empty() && !args.quiet {
        say(
            "warning",
            &format!("workspace '{}' has nothing to propose", args.agent),
        );
    }
    Ok(out.finish()?)
}

pub(crate) fn changes(args: &ChangesArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let of = args.of.as_ref().map(|spec| (&spec.agent, spec.revision));
    for proposal in integrate::changes(&session.store(), of)? {
        print(&mut out, &proposal)?;
    }
    Ok(out.finish()?)
}

/// Prints a proposal: `<state> <status> <added> <deleted> <agent> <revision>`, tab, path, for each change.
pub(super) fn print(out: &mut Out, proposal: &Proposal) -> Result<(), Failure> {
    for change in &proposal.changes {
        let count = |of: fn((u64, u64)) -> u64| {
            change
                .lines
                .map_or_else(|| "-".to_owned(), |lines| of(lines).to_string())
        };
        let fields = format!(
            "{} {} {} {} {} {}",
            change.state.as_str(),
            change.status().letter(),
            count(|(added, _)| added),
            count(|(_, deleted)| deleted),
            proposal.agent,
            proposal.revision,
        );
        let json = || record(proposal, change);
        out.path_line(PathStyle::Tree, &fields, &[change.path.as_ref()], json)?;
    }
    Ok(())
}

fn record(proposal: &Proposal, change: &ProposedChange) -> Record {
    let journal = match change.state {
        State::Accepted { journal } => journal.map(|id| id.get()),
        _ => None,
    };
    let mode = |entry: Option<git_vws::git::tree::Entry>| entry.map(|e| format!("{:06o}", e.mode));
    let rename = change.rename.as_ref().map(|pair| {
        Value::Group(vec![
            ("path", (&pair.path).into()),
            ("similarity", u64::from(pair.similarity).into()),
        ])
    });
    Record::new()
        .with("agent", &proposal.agent)
        .with("revision", proposal.revision)
        .with("path", &change.path)
        .with("state", change.state.as_str())
        .maybe("journal", journal)
        .with("status", change.status().letter().to_string())
        .maybe("added", change.lines.map(|(added, _)| added))
        .maybe("deleted", change.lines.map(|(_, deleted)| deleted))
        .maybe("old-mode", mode(change.old))
        .maybe("new-mode", mode(change.new))
        .maybe("old-oid", change.old.map(|entry| entry.id))
        .maybe("new-oid", change.new.map(|entry| entry.id))
        .maybe("rename", rename)
}
