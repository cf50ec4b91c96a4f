//! What upkeep found and did, as records: each says first what it is about.

use super::report::{left_out, place};
use super::{Record, Value};
use crate::integrate::journal::{self, State};
use crate::integrate::upkeep::{Clear, Item, Kept, Report, Sweep};
use crate::layout::{Adopted, Fate};
use crate::mirror::Shown;
use crate::workspace::{Difference, LockFile};

/// A recovery: what was found, one record each, and last how many of each kind.
pub fn recovered(report: &Report) -> Vec<Record> {
    let mut records = Vec::new();
    let refs = &report.refs;
    for damage in &refs.damaged {
        let agent = damage.agent.as_ref();
        records.push(about("damaged", &damage.name, &damage.why).maybe("agent", agent));
    }
    for broken in &report.broken {
        records.push(about("damaged", &broken.name, &broken.why).maybe("agent", None::<&str>));
    }
    for moved in &refs.moved {
        records.push(
            Record::new()
                .with("moved", &moved.agent)
                .with("commit", moved.commit)
                .with("why", moved.why.clone()),
        );
    }
    for leftover in &refs.leftovers {
        records.push(
            Record::new()
                .with("leftover", leftover.name.clone())
                .flag("removed", leftover.removed),
        );
    }
    records.extend(refs.locks.iter().map(lock));
    records.extend(report.ended.iter().map(ended));
    for (id, worktree) in &report.elsewhere {
        let worktree = worktree.clone().map(Value::Path);
        records.push(
            Record::new()
                .with("interrupted", id.get())
                .maybe("worktree", worktree),
        );
    }
    records.extend(report.adoption.directories.iter().map(adopted));
    let left = report.adoption.left_behind.iter();
    records.extend(left.map(|path| Record::new().with("left-behind", place(path))));
    let released = report.released.iter();
    records.extend(released.map(|agent| Record::new().with("released", agent)));
    let forgotten = refs.mirror.forgotten.iter();
    records.extend(forgotten.chain(&report.mirror.forgotten).map(|shown| {
        Record::new()
            .with("forgotten", shown.agent.clone())
            .maybe("revision", shown.revision)
            .maybe("tree", shown.effective_tree.clone())
    }));
    let sound = refs.workspaces.len().saturating_sub(report.released.len());
    records.push(
        Record::new()
            .with("workspaces", count(sound))
            .with(
                "damaged-refs",
                count(refs.damaged.len() + report.broken.len()),
            )
            .with("packs-released", count(refs.packs.released))
            .with("packs-removed", count(refs.packs.removed))
            .with("mirror-corrected", count(refs.mirror.differences.len())),
    );
    records
}

fn about(what: &'static str, name: &str, why: &str) -> Record {
    Record::new()
        .with(what, name.to_owned())
        .with("why", why.to_owned())
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn lock(lock: &LockFile) -> Record {
    Record::new()
        .with("lock", place(&lock.path))
        .with("age", lock.age.as_secs())
        .flag("removed", lock.removed)
}

fn ended(one: &journal::Recovered) -> Record {
    let state = match one.entry.state {
        State::Done => "finished",
        State::Open | State::RolledBack => "rolled-back",
    };
    Record::new()
        .with("journal", one.entry.id.get())
        .with("ended", state)
        .list(
            "written",
            "written",
            one.entry.written().map(|step| &step.path),
        )
        .list("kept", "kept", &one.kept)
}

/// What became of a directory.
pub fn adopted(one: &Adopted) -> Record {
    let record = Record::new().with("directory", &one.agent);
    let (fate, path, captured, why) = match &one.fate {
        Fate::Imported { path, captured } => ("imported", Some(path), Some(captured), None),
        Fate::Vanished(path) => ("vanished", Some(path), None, None),
        Fate::Cleared(path) => ("cleared", Some(path), None, None),
        Fate::Busy => ("busy", None, None, None),
        Fate::Failed(error) => ("failed", None, None, Some(error.to_string())),
    };
    let left = captured.map(|c| &c.left_out[..]).unwrap_or_default();
    record
        .with("fate", fate)
        .maybe("path", path.map(|path| place(path)))
        .maybe("revision", captured.map(|c| c.workspace.revision()))
        .flag("unchanged", captured.is_some_and(|c| !c.changed))
        .list("left-out", "left-out", left.iter().map(left_out))
        .maybe("why", why)
}

/// A damaged workspace that was cleared away.
pub fn cleared(clear: &Clear) -> Record {
    Record::new()
        .with("cleared", &clear.refs.agent)
        .list("trash", "trash", clear.refs.kept.iter().map(String::as_str))
        .list(
            "aside",
            "aside",
            clear.refs.aside.iter().map(|path| place(path)),
        )
        .maybe("branch", clear.refs.branch.clone())
        .maybe("directory", clear.directory.as_deref().map(place))
}

/// A sweep: what went or would go, one record each, and the directories.
pub fn swept(sweep: &Sweep) -> Vec<Record> {
    let directories = sweep.adoption.directories.iter().map(adopted);
    let left = sweep.adoption.left_behind.iter();
    let left = left.map(|path| Record::new().with("left-behind", place(path)));
    directories
        .chain(left)
        .chain(sweep.items.iter().map(item))
        .collect()
}

fn item(item: &Item) -> Record {
    let (fate, because) = match &item.kept {
        None => ("removed", None),
        Some(Kept::DryRun) => ("would-go", None),
        Some(Kept::Used) => ("kept", Some("it is in use".to_owned())),
        Some(Kept::Because(why)) => ("kept", Some(why.clone())),
    };
    Record::new()
        .with(fate, item.what)
        .with("name", Value::Path(item.name.clone()))
        .maybe("agent", item.agent.as_ref())
        .with("age", u64::try_from(item.age).unwrap_or(0))
        .with("size", item.size)
        .with("why", item.why.clone())
        .maybe("because", because)
}

/// A workspace as the mirror shows it.
pub fn shown(shown: &Shown) -> Record {
    let state = serde_json::to_value(shown.state).ok();
    let path = |value: &serde_json::Value| crate::model::path_from_json(value).map(Value::Path);
    Record::new()
        .with("agent", shown.agent.clone())
        .maybe("root", path(&shown.root))
        .maybe("session", shown.session.clone())
        .maybe("base", shown.base.clone())
        .maybe("revision", shown.revision)
        .maybe("tree", shown.effective_tree.clone())
        .maybe("state", state.as_ref().and_then(|state| state.as_str()))
        .maybe("directory", shown.directory.as_ref().and_then(path))
        .maybe("proposal", shown.proposal)
}

/// One thing in which the mirror differs from the refs.
pub fn difference(difference: &Difference) -> Record {
    let revision = |one: &Option<Shown>| one.as_ref().and_then(|one| one.revision);
    Record::new()
        .with("agent", difference.agent.clone())
        .flag("missing", difference.shown.is_none())
        .flag("gone", difference.actual.is_none())
        .maybe("shown", revision(&difference.shown))
        .maybe("actual", revision(&difference.actual))
}
