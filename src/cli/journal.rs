//! `git vws journal`: what accept and undo have written.

use git_vws::integrate::journal::{self, Entry, Kind, Outcome, State, Step, Summary};
use git_vws::output::{Record, Value};

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    for summary in journal::list(session.store())? {
        out.record(&record(&summary))?;
    }
    Ok(out.finish()?)
}

fn record(summary: &Summary) -> Record {
    let entry = summary.entry.as_ref().ok();
    let of = entry.and_then(|entry| match entry.kind {
        Kind::Undo { of } => Some(of.get()),
        Kind::Accept => None,
    });
    let steps = entry.map(|entry| &entry.steps[..]).unwrap_or_default();
    Record::new()
        .with("journal", summary.id.get())
        .maybe("kind", entry.map(kind))
        .maybe("of", of)
        .maybe("state", entry.map(|entry| state(entry.state)))
        .maybe(
            "time",
            entry.map(|entry| u64::try_from(entry.time).unwrap_or(0)),
        )
        .flag("undone", entry.is_some_and(Entry::is_undone))
        .flag("elsewhere", entry.is_some() && !summary.here)
        .maybe(
            "damaged",
            summary.entry.as_ref().err().map(ToString::to_string),
        )
        .list("step", "steps", steps.iter().map(step))
}

fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        Kind::Accept => "accept",
        Kind::Undo { .. } => "undo",
    }
}

fn state(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Done => "done",
        State::RolledBack => "rolled-back",
    }
}

/// `<outcome> <agent> <path>`.
fn step(step: &Step) -> Value {
    let agent = step
        .agent
        .as_ref()
        .map_or_else(|| "-".to_owned(), ToString::to_string);
    Value::Group(vec![
        ("outcome", outcome(&step.outcome).into()),
        ("agent", agent.into()),
        ("path", (&step.path).into()),
    ])
}

fn outcome(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pending => "pending",
        Outcome::Written => "written",
        Outcome::Identical => "identical",
        Outcome::Refused(kind) => kind.as_str(),
        Outcome::Failed(_) => "failed",
        Outcome::RolledBack => "rolled-back",
        Outcome::Overtaken => "overtaken",
    }
}
