//! Recovery: what the refs alone still say, what is damaged, and what dead processes left lying about.
//!
//! One pass. Whatever is sound is left alone; whatever is damaged is named, and nothing is done about it
//! until the user asks for it by name ([`Store::clear`]). Removed without asking is only what is
//! known to be a leftover of ours: locks of dead processes, holds on packs, pins of a create that
//! never got to its commit point. A ref that somebody else moved is theirs: it is reported and stays.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::time::{Duration, SystemTime};

use bstr::{BStr, ByteSlice};

use super::{Error, Reconciled, Result, Store, Workspace, names};
use crate::git::pack::{self, Cleaned};
use crate::git::{self, Expect, Lock, LooseRef, LooseState, ObjectId, RefUpdate, StaleRule};
use crate::mirror;
use crate::model::{AgentId, Revision};

mod check;
mod clear;

pub use crate::git::LockFile;
pub use clear::Cleared;

/// From when on a lock file of unknown owner counts as left behind: an hour.
pub const STALE_AFTER: Duration = Duration::from_secs(60 * 60);

/// Where refs of ours are.
const OURS: [&str; 2] = ["refs/relo/", names::BRANCHES];

/// How a recovery goes about it.
#[derive(Clone, Copy, Debug)]
pub struct RecoverOptions {
    /// The time.
    pub now: SystemTime,
    /// From when on a lock file of unknown owner counts as left behind.
    pub stale_after: Duration,
    /// Every lock file on a ref of ours counts as left behind.
    pub force: bool,
    /// Every object of every workspace is looked for, not just the first few of each.
    pub deep: bool,
}

impl RecoverOptions {
    /// A recovery at this time, with [`STALE_AFTER`], neither forced nor deep.
    pub fn new(now: SystemTime) -> Self {
        RecoverOptions {
            now,
            stale_after: STALE_AFTER,
            force: false,
            deep: false,
        }
    }
}

/// Something that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The workspace it belongs to; `None` where the ref is of no workspace.
    pub agent: Option<AgentId>,
    /// The ref.
    pub name: String,
    /// What is wrong.
    pub why: String,
}

/// An overlay ref that somebody else moved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    /// The workspace.
    pub agent: AgentId,
    /// What the ref holds now.
    pub commit: ObjectId,
    /// How it is known.
    pub why: String,
}

/// A ref that belongs to no workspace any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leftover {
    /// The ref.
    pub name: String,
    /// Whether it was removed; otherwise it holds what nothing else holds, and stays.
    pub removed: bool,
}

/// What a recovery found and did.
#[derive(Clone, Debug, Default)]
pub struct Recovered {
    /// The workspaces that are sound.
    pub workspaces: Vec<Workspace>,
    /// What is damaged; nothing was done about it.
    pub damaged: Vec<Damage>,
    /// Overlay refs that somebody else moved; they stay where they are.
    pub moved: Vec<Moved>,
    /// Refs without a workspace.
    pub leftovers: Vec<Leftover>,
    /// Git's lock files on refs of ours.
    pub locks: Vec<LockFile>,
    /// Packs that a dead writer held or never completed.
    pub packs: Cleaned,
    /// In what the mirror had been wrong, and the workspaces it knew that are gone.
    pub mirror: Reconciled,
}

impl Recovered {
    /// Whether anything is left that needs the user.
    pub fn needs_attention(&self) -> bool {
        !self.damaged.is_empty()
            || !self.moved.is_empty()
            || !self.mirror.forgotten.is_empty()
            || self.locks.iter().any(|lock| !lock.removed)
    }
}

impl Store<'_> {
    /// Puts the state of all workspaces together again from the refs alone, clears up after processes that
    /// died, and names what is damaged. Directories and unfinished accepts are for the layers above.
    ///
    /// # Errors
    /// When refs or object folders cannot be listed. Damage is no error.
    pub fn recover(&self, options: RecoverOptions) -> Result<Recovered> {
        let repository = self.repository();
        let rule = StaleRule {
            now: options.now,
            older_than: options.stale_after,
            force: options.force,
        };
        // Locks first: what follows moves refs.
        let locks = repository.clear_stale_locks(&OURS, rule)?;
        let packs = pack::clean_leftovers(repository.objects_dir(), options.now)
            .map_err(git::Error::from)?;
        mirror::clean(repository);
        let mut report = Recovered {
            locks,
            packs,
            ..Recovered::default()
        };
        let mut files = Vec::new();
        for prefix in OURS {
            files.extend(repository.refs().files(prefix)?);
        }
        report.damaged = files.iter().filter_map(damaged_file).collect();
        let refs = repository.refs().list(names::WORKSPACES)?;
        let mut agents: BTreeSet<&str> = BTreeSet::new();
        agents.extend(refs.keys().filter_map(|name| first_part(name)));
        let mut seen = HashSet::new();
        let shown = self.shown_revisions();
        for text in agents {
            let Ok(agent) = AgentId::new(text) else {
                continue;
            };
            match refs.get(&names::overlay(&agent)) {
                Some(commit) => {
                    let damage = self.examine(&agent, *commit, options.deep, &mut seen)?;
                    let moved = self.moved(&agent, *commit, shown.get(text).copied());
                    if damage.is_empty() {
                        report.workspaces.push(self.read_revision(&agent, *commit)?);
                    }
                    report.damaged.extend(damage);
                    report.moved.extend(moved);
                }
                None => self.without_overlay(&agent, &refs, &mut report)?,
            }
            self.check_pins(&agent, &refs, &mut report.damaged)?;
        }
        self.branches(&refs, &mut report)?;
        report.mirror = self.reconcile_mirror()?;
        Ok(report)
    }

    fn shown_revisions(&self) -> BTreeMap<String, Revision> {
        let shown = mirror::read(self.repository()).unwrap_or_default();
        shown
            .into_iter()
            .filter_map(|shown| Some((shown.agent, shown.revision?)))
            .collect()
    }

    /// How it shows that somebody else moved an overlay ref, if it does.
    fn moved(&self, agent: &AgentId, commit: ObjectId, shown: Option<Revision>) -> Option<Moved> {
        let moved = |why: String| {
            let agent = agent.clone();
            Some(Moved { agent, commit, why })
        };
        // A reftable's log costs a process each.
        let log = if self.repository().is_reftable() {
            Vec::new()
        } else {
            self.repository().refs().log(&names::overlay(agent))
        };
        let prefix = format!("vws {agent} r");
        let ours = |entry: &&git::LogEntry| entry.message.starts_with(prefix.as_bytes());
        // The log is written before the ref moves: steps of ours that died or failed between are ahead
        // of it. A log that ends before it comes to what the ref holds was cut off, and says nothing.
        let ahead = |entry: &&git::LogEntry| ours(entry) && entry.new != commit;
        if let Some(last) = log.iter().find(|entry| !ahead(entry)) {
            if last.new != commit {
                return moved(format!("its reflog ends at {}", last.new));
            }
            if !ours(&last) {
                return moved(format!("its reflog says '{}'", last.message));
            }
        }
        let revision = self.read_revision(agent, commit).ok()?.revision();
        match shown {
            Some(shown) if shown > revision => {
                moved(format!("it was at revision {shown} and is at {revision}"))
            }
            _ => None,
        }
    }

    /// Refs of a workspace that has no overlay ref.
    fn without_overlay(
        &self,
        agent: &AgentId,
        refs: &BTreeMap<String, ObjectId>,
        report: &mut Recovered,
    ) -> Result<()> {
        let overlay = names::overlay(agent);
        if report.damaged.iter().any(|damage| damage.name == overlay) {
            return Ok(());
        }
        let own = names::workspace(agent);
        let base = names::base(agent);
        if refs
            .keys()
            .any(|name| name.starts_with(&own) && *name != base)
        {
            report.damaged.push(Damage {
                agent: Some(agent.clone()),
                name: overlay,
                why: "it is gone, and pinned revisions are left".to_owned(),
            });
            return Ok(());
        }
        // A create that is under way holds the lock.
        let Ok(_lock) = Lock::exclusive(&self.lock_path(agent), Duration::ZERO) else {
            return Ok(());
        };
        let handle = self.repository().refs();
        if handle.find(&overlay)?.is_some() {
            return Ok(());
        }
        if let Some(id) = handle.find(&base)? {
            handle.apply(&[RefUpdate::delete(&base, Expect::Is(id))])?;
            report.leftovers.push(Leftover {
                name: base,
                removed: true,
            });
        }
        Ok(())
    }

    /// Branches below `relo/` without a workspace. One goes only if the agent's own change or trash refs
    /// hold all of it: whatever else is there may be the user's.
    fn branches(&self, refs: &BTreeMap<String, ObjectId>, report: &mut Recovered) -> Result<()> {
        let handle = self.repository().refs();
        for (name, tip) in handle.list(names::BRANCHES)? {
            let agent = name.strip_prefix(names::BRANCHES).map(AgentId::new);
            let Some(Ok(agent)) = agent else { continue };
            let own = names::workspace(&agent);
            let lives = refs.keys().any(|name| name.starts_with(&own));
            let damaged = |damage: &Damage| damage.name.starts_with(&own);
            if lives || report.damaged.iter().any(damaged) {
                continue;
            }
            let mut held = false;
            for kept in [names::CHANGES, names::TRASH] {
                for id in handle.list(&format!("{kept}{agent}/"))?.into_values() {
                    held |= self.repository().is_ancestor(tip, id).unwrap_or(false);
                }
            }
            let Ok(_lock) = Lock::exclusive(&self.lock_path(&agent), Duration::ZERO) else {
                continue;
            };
            let lives = self
                .overlay_ref(&agent)
                .map_or(true, |found| found.is_some());
            if lives {
                continue;
            }
            if held {
                handle.apply(&[RefUpdate::delete(&name, Expect::Is(tip))])?;
            }
            report.leftovers.push(Leftover {
                name,
                removed: held,
            });
        }
        Ok(())
    }
}

/// The workspace that a ref below `refs/relo/vws/` belongs to.
fn first_part(name: &str) -> Option<&str> {
    name.strip_prefix(names::WORKSPACES)?.split('/').next()
}

/// The agent of a ref of ours, whatever kind it is.
fn agent_of(name: &BStr) -> Option<AgentId> {
    let name = name.to_str().ok()?;
    let kinds = [
        names::WORKSPACES,
        names::TRASH,
        names::CHANGES,
        names::BRANCHES,
    ];
    let rest = kinds.iter().find_map(|kind| name.strip_prefix(kind))?;
    AgentId::new(rest.split('/').next()?).ok()
}

fn damaged_file(file: &LooseRef) -> Option<Damage> {
    let LooseState::Damaged(why) = &file.state else {
        return None;
    };
    Some(Damage {
        agent: agent_of(file.name.as_bstr()),
        name: file.name.to_str_lossy().into_owned(),
        why: why.clone(),
    })
}

/// What an error says about a ref of an agent.
fn damage(agent: &AgentId, name: String, error: &Error) -> Damage {
    let why = match error {
        Error::Damaged { why, .. } => why.clone(),
        other => other.to_string(),
    };
    Damage {
        agent: Some(agent.clone()),
        name,
        why,
    }
}
