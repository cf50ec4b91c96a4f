//! `git vws accept`: merges changes into the user's working tree.

use std::ffi::OsString;

use bstr::{BStr, ByteSlice};
use git_vws::git::OneWait;
use git_vws::integrate::journal::{Recovered, State};
use git_vws::integrate::{self, Accept, Accepted, Conflicts, Verdict, Which};
use git_vws::model::{AgentId, Refusal};
use git_vws::output::quote::quote_c;
use git_vws::output::{Form, PathStyle, report};

use super::args::{self, FormArgs};
use super::report::Failure;
use super::session::{Out, Session, count_of, say};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Say nothing but what went wrong
    #[arg(short, long)]
    quiet: bool,
    /// Accept the changes of all agents
    #[arg(long, conflicts_with = "agent")]
    all: bool,
    /// Accept the changes that these were built on with them
    #[arg(long)]
    with_parents: bool,
    /// Write conflicts into the named files, between markers
    #[arg(long, value_name = "markers", requires = "paths", value_enum)]
    conflict: Option<OnConflict>,
    /// Accept all of it or nothing
    #[arg(long)]
    atomic: bool,
    /// Show what would happen, change nothing
    #[arg(long)]
    dry_run: bool,
    /// Print the text of each conflict, with its markers
    #[arg(short, long, requires = "dry_run", conflicts_with_all = ["nul", "conflict"])]
    patch: bool,
    /// Leave alone the paths listed in a file, or on standard input: unsaved in an editor
    #[arg(long, value_name = "file|-")]
    dirty_from: Option<OsString>,
    /// Whose changes
    #[arg(value_name = "agent", required_unless_present = "all")]
    agent: Option<AgentId>,
    /// Only those of these files and folders
    #[arg(value_name = "path")]
    paths: Vec<OsString>,
}

/// What becomes of a conflict, other than a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum OnConflict {
    /// It stands in the file, between markers.
    Markers,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let unsaved = match &args.dirty_from {
        Some(file) => args::listed_paths(file, args.form.form() == Form::Nul)?,
        None => Vec::new(),
    };
    let which = match &args.agent {
        Some(agent) => Which::Of {
            agent: agent.clone(),
            paths: args::folders(&args.paths)?,
        },
        None => Which::All,
    };
    let request = Accept {
        dry_run: args.dry_run,
        atomic: args.atomic,
        with_parents: args.with_parents,
        conflicts: match args.conflict {
            Some(OnConflict::Markers) => Conflicts::Mark,
            None if args.patch => Conflicts::Show,
            None => Conflicts::Refuse,
        },
        unsaved,
        results: args.form.form() == Form::Json,
        ..Accept::new(which)
    };
    let accepted = integrate::accept(&session.store(), &request)?;
    if args.patch && args.form.form() == Form::Lines {
        let config = session.repository().config()?;
        let quote_path = config.bool("core.quotepath")?.unwrap_or(true);
        marked(&mut out, &accepted, quote_path)?;
    } else {
        print(&mut out, &accepted, args.patch)?;
    }
    out.finish()?;
    remark(&accepted, args.dry_run, args.quiet);
    refused(&accepted, args.dry_run)
}

/// Merges all that an agent has proposed, as `run --accept` does at its end, and tells of it when the
/// waiting for the disk has ended.
pub(super) fn at_once(
    agent: &AgentId,
    (mut out, form, quiet): (Out, Form, bool),
    wait: OneWait<'_>,
    session: &Session,
) -> Result<(), Failure> {
    let which = Which::Of {
        agent: agent.clone(),
        paths: Vec::new(),
    };
    let request = Accept {
        results: form == Form::Json,
        ..Accept::new(which)
    };
    let accepted = integrate::accept(&session.store(), &request)?;
    drop(wait);
    print(&mut out, &accepted, false)?;
    out.finish()?;
    remark(&accepted, false, quiet);
    refused(&accepted, false)
}

/// Prints what became, or would become, of each change.
fn print(out: &mut Out, accepted: &Accepted, patch: bool) -> Result<(), Failure> {
    for outcome in &accepted.outcomes {
        let journal = accepted.journal.map(|id| id.get());
        let journal = journal.filter(|_| outcome.verdict.is_done());
        let fields = report::accepted_fields(outcome, journal);
        let paths: Vec<&BStr> = std::iter::once(&outcome.path)
            .chain(&outcome.into)
            .map(|path| path.as_bstr())
            .collect();
        out.path_line(PathStyle::Tree, &fields, &paths, || {
            let record = report::accepted(outcome, journal);
            match patch {
                true => record.maybe("marked", outcome.marked.clone()),
                false => record,
            }
        })?;
    }
    Ok(())
}

/// Prints the marked text of each conflict, byte for byte; where there are several, each below a line
/// that names its agent and path.
fn marked(out: &mut Out, accepted: &Accepted, quote_path: bool) -> Result<(), Failure> {
    let texts = accepted.outcomes.iter().filter_map(|outcome| {
        let text = outcome.marked.as_ref()?;
        Some((outcome, text))
    });
    let several = texts.clone().count() > 1;
    for (outcome, text) in texts {
        if several {
            let (agent, revision) = (&outcome.agent, outcome.revision);
            let path = quote_c(outcome.path.as_ref(), quote_path);
            let into = outcome.into.as_ref().map(|into| {
                let into = quote_c(into.as_ref(), quote_path);
                format!(" -> {into}")
            });
            let into = into.unwrap_or_default();
            out.bytes(format!("==> {agent} {revision} {path}{into} <==\n").as_bytes())?;
        }
        out.bytes(text)?;
    }
    Ok(())
}

/// Tells of entries that had been interrupted: finished, or taken back.
pub(super) fn remark_recovered(all: &[Recovered]) {
    for recovered in all {
        let id = recovered.entry.id;
        let how = match recovered.entry.state {
            State::Done => "finished",
            State::Open | State::RolledBack => "taken back",
        };
        let text = format!("journal entry {id} had been interrupted, and was {how} first");
        say("warning", &text);
    }
}

fn remark(accepted: &Accepted, dry_run: bool, quiet: bool) {
    let are = if dry_run { "would be" } else { "are" };
    for outcome in &accepted.outcomes {
        if outcome.verdict == Verdict::Marked {
            let path = outcome.place();
            say("warning", &format!("conflicts {are} marked in '{path}'"));
        }
    }
    remark_recovered(&accepted.recovered);
    for path in &accepted.kept {
        say(
            "warning",
            &format!("what you saved in this moment is in '{path}'"),
        );
    }
    if !quiet {
        if accepted.outcomes.is_empty() {
            say("warning", "nothing waits for a decision");
        }
        for agent in &accepted.released {
            say(
                agent.as_str(),
                "nothing waits any more, the workspace is released",
            );
        }
    }
}

/// Says what was refused, each with its kind, and how many in all.
fn refused(accepted: &Accepted, dry_run: bool) -> Result<(), Failure> {
    let all = accepted.outcomes.len();
    let mut count = 0;
    for outcome in &accepted.outcomes {
        let why = match &outcome.verdict {
            Verdict::Refused(kind) => format!(" [{kind}]"),
            Verdict::Failed(why) => format!(": {why}"),
            _ => continue,
        };
        count += 1;
        let because = match (&outcome.because, &outcome.needs) {
            (Some(path), _) => format!(", because of '{path}'"),
            (None, Some(id)) => format!(", which was built on '{id}'"),
            (None, None) => String::new(),
        };
        let (agent, path) = (&outcome.agent, &outcome.path);
        let moved = outcome.into.as_ref();
        let moved = moved.map_or_else(String::new, |into| format!(", which is '{into}' now,"));
        say(
            "error",
            &format!("cannot accept '{path}'{moved} of agent '{agent}'{because}{why}"),
        );
    }
    if count == 0 {
        return Ok(());
    }
    let were = match (dry_run, count) {
        (true, _) => "would not be",
        (false, 1) => "was not",
        (false, _) => "were not",
    };
    Err(Failure::Partial {
        what: format!("{count} of {} {were} accepted", count_of(all, "change")),
        hint: hint(accepted),
    })
}

/// What to do next about what was refused, where one thing helps.
fn hint(accepted: &Accepted) -> Option<&'static str> {
    let any = |kind| {
        let mut all = accepted.outcomes.iter();
        all.any(|outcome| outcome.verdict == Verdict::Refused(kind))
    };
    if any(Refusal::NeedsParent) {
        Some("'--with-parents' accepts what they were built on with them")
    } else if any(Refusal::ParentRejected) || any(Refusal::ParentSuperseded) {
        Some(
            "'git vws rebase-onto <agent> <base> --without=<parent>' takes what they were built on out",
        )
    } else if any(Refusal::Conflict) {
        Some(
            "'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file",
        )
    } else {
        None
    }
}
