//! Proposals, decisions and the journal as records and lines.

use super::super::{Record, Value};
use crate::git::tree::Entry as TreeEntry;
use crate::integrate::journal::{
    Entry, Kind, Outcome as StepOutcome, State as Phase, Step, Summary,
};
use crate::integrate::undo::Undone;
use crate::integrate::{Collision, Outcome, Proposal, ProposedChange, Rejection, State, Verdict};
use crate::model::AgentId;

/// How many needs a record names; beyond that only their count is told.
const NAMED_NEEDS: usize = 32;

/// The fields before the path of a proposed change: `<state> <status> <added> <deleted> <agent> <revision>`.
pub fn proposed_fields(proposal: &Proposal, change: &ProposedChange) -> String {
    let count = |of: fn((u64, u64)) -> u64| {
        change
            .lines
            .map_or_else(|| "-".to_owned(), |lines| of(lines).to_string())
    };
    format!(
        "{} {} {} {} {} {}",
        change.state.as_str(),
        change.status().letter(),
        count(|(added, _)| added),
        count(|(_, deleted)| deleted),
        proposal.agent,
        proposal.revision,
    )
}

/// A proposed change.
pub fn proposed(proposal: &Proposal, change: &ProposedChange) -> Record {
    let journal = match change.state {
        State::Accepted { journal } => journal.map(|id| id.get()),
        _ => None,
    };
    let reason = match change.state {
        State::Blocked(why) => Some(why.as_str()),
        _ => None,
    };
    let needs = proposal.lineage.iter().take(NAMED_NEEDS).map(|need| {
        Value::Group(vec![
            ("id", need.id().into()),
            ("patch-hash", need.patch_hash.as_str().into()),
        ])
    });
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
        .maybe("reason", reason)
        .maybe("journal", journal)
        .with("status", change.status().letter().to_string())
        .maybe("added", change.lines.map(|(added, _)| added))
        .maybe("deleted", change.lines.map(|(_, deleted)| deleted))
        .maybe("old-mode", mode(change.old))
        .maybe("new-mode", mode(change.new))
        .maybe("old-oid", change.old.map(|entry| entry.id))
        .maybe("new-oid", change.new.map(|entry| entry.id))
        .maybe("rename", rename)
        .list("needs", "needs", needs)
        .with("needs-count", proposal.lineage.len())
}

fn mode(entry: Option<TreeEntry>) -> Option<String> {
    entry.map(|entry| format!("{:06o}", entry.mode))
}

/// The fields before the path of a change that was to be accepted: `<verdict> <agent> <revision>
/// <journal>`, and `into` where a second path follows.
pub fn accepted_fields(outcome: &Outcome, journal: Option<u64>) -> String {
    let into = outcome.into.as_ref().map_or("", |_| " into");
    format!(
        "{} {} {} {}{into}",
        outcome.verdict.as_str(),
        outcome.agent,
        outcome.revision,
        journal.map_or_else(|| "-".to_owned(), |id| id.to_string())
    )
}

/// What became of a change that was to be accepted.
pub fn accepted(outcome: &Outcome, journal: Option<u64>) -> Record {
    let error = match &outcome.verdict {
        Verdict::Failed(why) => Some(why.clone()),
        _ => None,
    };
    Record::new()
        .with("agent", &outcome.agent)
        .with("revision", outcome.revision)
        .with("path", &outcome.path)
        .maybe("into", outcome.into.clone())
        .with("verdict", outcome.verdict.as_str())
        .flag("accepted", outcome.verdict.is_done())
        .maybe("journal", journal)
        .maybe("because", outcome.because.clone())
        .maybe("needs", outcome.needs.clone())
        .maybe("error", error)
        .maybe("mode", mode(outcome.result))
        .maybe("oid", outcome.result.map(|entry| entry.id))
}

/// What became of a change that was to be rejected.
pub fn rejected(agent: &AgentId, change: &Rejection) -> Record {
    Record::new()
        .with("agent", agent)
        .with("revision", change.revision)
        .with("path", &change.path)
        .maybe("refused", change.refused.map(|kind| kind.as_str()))
        .flag("edited-since", change.edited_since)
}

/// The fields before the path of what was taken back: `(undone | redone) <agent> <journal> <of>`.
pub fn undone_fields(undone: &Undone, step: &Step) -> String {
    let word = if undone.redo { "redone" } else { "undone" };
    format!("{word} {} {} {}", whose(step), undone.entry.id, undone.of)
}

/// A path that was taken back.
pub fn undone(undone: &Undone, step: &Step) -> Record {
    Record::new()
        .with("path", &step.path)
        .maybe("agent", step.agent.as_ref())
        .with("journal", undone.entry.id.get())
        .with("of", undone.of.get())
        .flag("redo", undone.redo)
}

/// An entry of the journal.
pub fn journal(summary: &Summary) -> Record {
    let entry = summary.entry.as_ref().ok();
    let of = entry.and_then(|entry| match entry.kind {
        Kind::Undo { of } => Some(of.get()),
        Kind::Accept => None,
    });
    let steps = entry.map(|entry| &entry.steps[..]).unwrap_or_default();
    let damage = summary.entry.as_ref().err();
    Record::new()
        .with("journal", summary.id.get())
        .maybe("kind", entry.map(kind))
        .maybe("of", of)
        .maybe("state", entry.map(|entry| phase(entry.state)))
        .maybe("time", entry.map(|e| u64::try_from(e.time).unwrap_or(0)))
        .flag("undone", entry.is_some_and(Entry::is_undone))
        .flag("elsewhere", entry.is_some() && !summary.here)
        .maybe("damaged", damage.map(ToString::to_string))
        .list("step", "steps", steps.iter().map(step))
}

fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        Kind::Accept => "accept",
        Kind::Undo { .. } => "undo",
    }
}

fn phase(state: Phase) -> &'static str {
    match state {
        Phase::Open => "open",
        Phase::Done => "done",
        Phase::RolledBack => "rolled-back",
    }
}

/// `<outcome> <agent> <path>`.
fn step(step: &Step) -> Value {
    Value::Group(vec![
        ("outcome", outcome(&step.outcome).into()),
        ("agent", whose(step).into()),
        ("path", (&step.path).into()),
    ])
}

fn whose(step: &Step) -> String {
    let agent = step.agent.as_ref();
    agent.map_or_else(|| "-".to_owned(), ToString::to_string)
}

fn outcome(outcome: &StepOutcome) -> &'static str {
    match outcome {
        StepOutcome::Pending => "pending",
        StepOutcome::Written => "written",
        StepOutcome::Identical => "identical",
        StepOutcome::Refused(kind) => kind.as_str(),
        StepOutcome::Failed(_) => "failed",
        StepOutcome::RolledBack => "rolled-back",
        StepOutcome::Overtaken => "overtaken",
    }
}

/// The fields before the path of a collision: `<kind> <agent> <with>`.
pub fn collision_fields(collision: &Collision) -> String {
    // No agent is called '-'.
    let with = collision.with.as_ref().map_or("-", AgentId::as_str);
    format!("{} {} {with}", collision.kind, collision.agent)
}

/// Two workspaces, or one and the working tree, that collide at a path.
pub fn collision(collision: &Collision) -> Record {
    Record::new()
        .with("path", &collision.path)
        .with("kind", collision.kind.as_str())
        .with("agent", &collision.agent)
        .maybe("with", collision.with.as_ref())
}
