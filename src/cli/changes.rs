//! `git vws propose` and `changes`: what agents offer.

use bstr::{BStr, BString, ByteSlice};
use git_vws::integrate::{self, Proposal, State};
use git_vws::model::AgentId;
use git_vws::output::{Form, PathStyle, report};

use super::args::{FormArgs, Spec};
use super::report::Failure;
use super::session::{self, Out, Session, count_of, say};

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
    /// Print the changes as patches
    #[arg(short, long, conflicts_with = "nul")]
    patch: bool,
    /// Cut the patches after so many bytes in all
    #[arg(long, value_name = "n", requires = "patch")]
    max_bytes: Option<usize>,
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
    out.finish()?;
    super::upkeep::remark_interrupted(session);
    Ok(())
}

pub(crate) fn changes(args: &ChangesArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let of = args.of.as_ref().map(|spec| (&spec.agent, spec.revision));
    let proposals = integrate::changes(&session.store(), of)?;
    if args.patch {
        patches(args, session, &mut out, &proposals)?;
    } else {
        for proposal in &proposals {
            print(&mut out, proposal)?;
        }
    }
    out.finish()?;
    super::upkeep::remark_interrupted(session);
    if args.form.form() == Form::Lines {
        advise(&proposals);
    }
    Ok(())
}

/// Prints what is undecided (of a proposal that is named: everything) as patches, within the limit; in
/// JSON as a field of each record.
fn patches(
    args: &ChangesArgs,
    session: &Session,
    out: &mut Out,
    proposals: &[Proposal],
) -> Result<(), Failure> {
    let repository = session.repository();
    let quote_path = repository.config()?.bool("core.quotepath")?.unwrap_or(true);
    let mut left = args.max_bytes.unwrap_or(usize::MAX);
    let mut cut = 0;
    let named = args.of.as_ref().is_some_and(|of| of.revision.is_some());
    for proposal in proposals {
        for change in &proposal.changes {
            if !named && !change.is_undecided() {
                continue;
            }
            let mut text = if left == 0 {
                Vec::new()
            } else {
                integrate::patch_of(repository, change, quote_path)?
            };
            let whole = left > 0 && text.len() <= left;
            if whole {
                left -= text.len();
            } else {
                // To the end of the last line that fits.
                let fits = text[..left.min(text.len())].rfind_byte(b'\n');
                text.truncate(fits.map_or(0, |at| at + 1));
                left = 0;
                cut += 1;
            }
            if args.form.form() == Form::Json {
                let record = report::proposed(proposal, change)
                    .with("patch", BString::from(text))
                    .flag("patch-cut", !whole);
                out.record(&record)?;
            } else {
                out.bytes(&text)?;
            }
        }
    }
    if cut > 0 {
        let text = format!("the patches of {} are cut", count_of(cut, "change"));
        say("warning", &text);
    }
    Ok(())
}

/// Says what to do next.
fn advise(proposals: &[Proposal]) {
    let mut changes = proposals.iter().flat_map(|proposal| &proposal.changes);
    let blocked = changes
        .clone()
        .any(|c| matches!(c.state, State::Blocked(_)));
    if changes.any(|change| change.state == State::Proposed) {
        session::hint(
            "'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down",
        );
    } else if blocked {
        session::hint(
            "'git vws rebase-onto <agent> <base> --without=<parent>' frees what is blocked",
        );
    }
}

/// Prints a proposal: `<state> <status> <added> <deleted> <agent> <revision>`, tab, path, for each change.
pub(super) fn print(out: &mut Out, proposal: &Proposal) -> Result<(), Failure> {
    for change in &proposal.changes {
        let fields = report::proposed_fields(proposal, change);
        let json = || report::proposed(proposal, change);
        out.path_line(PathStyle::Tree, &fields, &[change.path.as_ref()], json)?;
    }
    Ok(())
}
