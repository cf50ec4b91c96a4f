//! Clean-up by age, over all that git-vws keeps.
//!
//! What goes is decided one layer down ([`crate::workspace::Plan`]); what is known only here is told to
//! it: journal entries, proposals, and directories. A directory goes only if everything in its
//! workspace is decided after its content was imported.

use std::collections::BTreeMap;

use bstr::BString;

use super::dispose::is_decided;
use super::proposal_of;
use crate::git::{self, pack};
use crate::integrate::journal::{self, State};
use crate::integrate::lineage::{self, Need};
use crate::integrate::{Result, decide, release, store as changes};
use crate::layout::{self, Adoption, Insist};
use crate::model::{AgentId, Revision};
use crate::workspace::{Doomed, Inputs, Journalled, Offered, Policy, Store, What, names};

/// Something that a sweep removes, or would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// `journal`, `proposal`, `trash`, `workspace`, `directory` or `leftover`.
    pub what: &'static str,
    /// The ref, or the path of a directory.
    pub name: BString,
    /// Whose it is; `None` for a journal entry.
    pub agent: Option<AgentId>,
    /// In seconds.
    pub age: i64,
    /// In bytes.
    pub size: u64,
    /// Why it goes.
    pub why: String,
    /// Why it is still there although it was to go.
    pub kept: Option<Kept>,
}

/// Why something stays that was to go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Nothing was to be removed: a dry run.
    DryRun,
    /// Somebody used it meanwhile.
    Used,
    /// Something went wrong, or it holds what could not be captured.
    Because(String),
}

/// What a sweep did, or would do.
#[derive(Debug, Default)]
pub struct Sweep {
    /// What was to go, in this order.
    pub items: Vec<Item>,
    /// The directories that were imported; none in a dry run, which changes nothing.
    pub adoption: Adoption,
    /// Packs that dead writers held or never completed.
    pub packs: pack::Cleaned,
}

/// Removes what has outlived its time by `policy`; with `dry_run` only says what would go. Open
/// directories are imported first.
///
/// # Errors
/// When refs cannot be listed or removed.
pub fn sweep(
    store: &Store<'_>,
    policy: Policy,
    now: std::time::SystemTime,
    dry_run: bool,
) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    if !dry_run {
        sweep.adoption = layout::adopt(store)?;
        let objects = store.repository().objects_dir();
        sweep.packs = pack::clean_leftovers(objects, now).map_err(git::Error::from)?;
    }
    directories(store, dry_run, &mut sweep.items)?;
    orphans(store, dry_run, &mut sweep.items)?;
    let plan = store.plan_sweep(policy, &inputs(store)?)?;
    if dry_run {
        let planned = plan.doomed.into_iter();
        sweep
            .items
            .extend(planned.map(|one| item(one, Some(Kept::DryRun))));
        return Ok(sweep);
    }
    let swept = store.apply_sweep(plan)?;
    sweep
        .items
        .extend(swept.removed.into_iter().map(|one| item(one, None)));
    sweep.items.extend(
        swept
            .left
            .into_iter()
            .map(|one| item(one, Some(Kept::Used))),
    );
    Ok(sweep)
}

fn item(doomed: Doomed, kept: Option<Kept>) -> Item {
    Item {
        what: match doomed.what {
            What::Journal => "journal",
            What::Proposal => "proposal",
            What::Trash => "trash",
            What::Workspace => "workspace",
        },
        name: doomed.name.into(),
        agent: doomed.agent,
        age: doomed.age,
        size: doomed.size,
        why: doomed.why,
        kept,
    }
}

/// The directories of workspaces in which everything is decided: settled, and their workspaces released.
fn directories(store: &Store<'_>, dry_run: bool, items: &mut Vec<Item>) -> Result<()> {
    for agent in layout::marked(store)? {
        // One that is not what we made, or a damaged proposal: for `recover` to name.
        let Ok(Some(directory)) = layout::peek(store, &agent) else {
            continue;
        };
        if !is_decided(store, &agent).unwrap_or(false) {
            continue;
        }
        let made = store.repository().objects()?.commit(directory.cut.commit)?;
        let mut item = Item {
            what: "directory",
            name: std::os::unix::ffi::OsStrExt::as_bytes(directory.path.as_os_str()).into(),
            agent: Some(agent.clone()),
            age: store.now().saturating_sub(made.time).max(0),
            size: directory.stats.bytes,
            why: "all changes of its workspace are decided".to_owned(),
            kept: Some(Kept::DryRun),
        };
        if !dry_run {
            item.kept = match layout::close(store, &agent, Insist::No) {
                Ok(settled) if settled.kept.is_none() => {
                    release::release(store, &agent)?;
                    None
                }
                Ok(_) => Some(Kept::Because("not all of it could be captured".to_owned())),
                Err(error) => Some(Kept::Because(error.to_string())),
            };
        }
        items.push(item);
    }
    Ok(())
}

/// What commands have left to be found again by the next one, of agents that will have none.
fn orphans(store: &Store<'_>, dry_run: bool, items: &mut Vec<Item>) -> Result<()> {
    for (agent, folder) in layout::orphans(store)? {
        let (made, size) = layout::measure(&folder);
        let kept = match dry_run {
            true => Some(Kept::DryRun),
            false if layout::forget(store, &agent)? => None,
            false => Some(Kept::Used),
        };
        items.push(Item {
            what: "leftover",
            name: std::os::unix::ffi::OsStrExt::as_bytes(folder.as_os_str()).into(),
            agent: Some(agent),
            age: store.now().saturating_sub(made).max(0),
            size,
            why: "its workspace is gone".to_owned(),
            kept,
        });
    }
    Ok(())
}

/// Journal and proposals, as far as they can be read; what cannot be read stays.
fn inputs(store: &Store<'_>) -> Result<Inputs> {
    let mut inputs = Inputs::default();
    for summary in journal::list(*store)? {
        let Ok(entry) = summary.entry else { continue };
        let changes = entry.steps.iter().flat_map(decide::of_step);
        let proposals = changes.map(|(agent, revision, _)| (agent, revision));
        inputs.journal.push(Journalled {
            name: names::journal(&summary.id.to_string()),
            id: entry.commit,
            time: entry.time,
            open: entry.state == State::Open,
            proposals: proposals.collect(),
        });
    }
    let objects = store.repository().objects()?;
    let mut needs = needs_of_workspaces(store)?;
    for (name, id) in store.repository().refs().list(names::CHANGES)? {
        let Some((agent, revision)) = proposal_of(&name) else {
            continue;
        };
        // Undecided, as far as anybody can tell: neither it nor its workspace goes.
        let found = changes::find(store, &agent, revision).ok().flatten();
        let decided = found.as_ref().is_some_and(|found| found.undecided() == 0);
        if let Some(found) = found.filter(|_| !decided) {
            needs.extend(found.lineage);
        }
        let time = objects.commit(id).map_or(store.now(), |commit| commit.time);
        inputs.proposals.push(Offered {
            agent,
            revision,
            id,
            time,
            decided,
            needed: false,
        });
    }
    // The oldest that anybody names, and all that may have taken its place since.
    let mut oldest: BTreeMap<AgentId, Revision> = BTreeMap::new();
    for need in needs {
        let oldest = oldest.entry(need.agent).or_insert(need.proposal);
        *oldest = (*oldest).min(need.proposal);
    }
    for offered in &mut inputs.proposals {
        let oldest = oldest.get(&offered.agent);
        offered.needed = oldest.is_some_and(|oldest| offered.revision >= *oldest);
    }
    Ok(inputs)
}

/// What workspaces were built on that are there, proposed or not. A damaged one needs what its undecided
/// proposals say.
fn needs_of_workspaces(store: &Store<'_>) -> Result<Vec<Need>> {
    let workspaces = store.list()?.into_iter();
    let needs = workspaces
        .filter_map(|listed| lineage::of_workspace(&listed.state.ok()?).ok())
        .flatten();
    Ok(needs.collect())
}
