//! Clean-up: what has outlived its time, listed first, removed only when asked.
//!
//! Gone for good are only refs of ours that nobody can want back by the policy: journal entries, the trash,
//! proposals whose every change is decided, and workspaces whose last change is decided. What they
//! hold in objects goes with git's own collection. Everything is removed by compare-and-swap under its
//! agent's lock, after a second look: whatever moved since the plan stays.

use std::collections::{BTreeMap, BTreeSet};

use super::{Error, Result, Store, Workspace, names};
use crate::git::{self, Expect, ObjectId, RefUpdate, tree};
use crate::model::{AgentId, Revision};

/// How many entries of a tree are added up for its size.
const SIZED: usize = 10_000;

/// What is kept: the newest `entries` of each kind, as long as they are not older than `age`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// How many journal entries, and how many refs in the trash.
    pub entries: usize,
    /// In seconds.
    pub age: i64,
}

impl Default for Policy {
    /// The newest 200 of the last 14 days.
    fn default() -> Self {
        Policy {
            entries: 200,
            age: 14 * 24 * 60 * 60,
        }
    }
}

/// A journal entry, as the layer above reads it.
#[derive(Clone, Debug)]
pub struct Journalled {
    /// Its ref.
    pub name: String,
    /// What the ref holds.
    pub id: ObjectId,
    /// When it was made, in seconds since 1970.
    pub time: i64,
    /// Whether it is still under way: such a one is never removed.
    pub open: bool,
    /// The proposals whose changes it is about.
    pub proposals: Vec<(AgentId, Revision)>,
}

/// A proposal, as the layer above reads it.
#[derive(Clone, Debug)]
pub struct Offered {
    /// Whose it is.
    pub agent: AgentId,
    /// The revision it offers.
    pub revision: Revision,
    /// What its ref holds.
    pub id: ObjectId,
    /// When it was last decided on, in seconds since 1970.
    pub time: i64,
    /// Whether each of its changes is decided.
    pub decided: bool,
    /// Whether something that waits for a decision was built on it: what became of it still counts.
    pub needed: bool,
}

/// What the layers above know of the refs that they keep.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// All journal entries.
    pub journal: Vec<Journalled>,
    /// All proposals.
    pub proposals: Vec<Offered>,
}

/// The kinds of what a sweep removes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A journal entry: its accept or undo cannot be taken back any more.
    Journal,
    /// A proposal, all of it decided.
    Proposal,
    /// The last revision of a workspace that was let go.
    Trash,
    /// A workspace, all of it decided and nothing edited since.
    Workspace,
}

/// Something that would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Doomed {
    /// Its kind.
    pub what: What,
    /// The ref; of a workspace, its overlay.
    pub name: String,
    /// What the ref must still hold.
    pub id: ObjectId,
    /// The workspace it belongs to; `None` for a journal entry.
    pub agent: Option<AgentId>,
    /// In seconds.
    pub age: i64,
    /// The bytes of the files in it that differ from what it was made on; git stores them compressed.
    pub size: u64,
    /// Why it goes, in words.
    pub why: String,
}

/// What a sweep would remove.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// All of it, in the order in which it goes.
    pub doomed: Vec<Doomed>,
}

/// What a sweep removed, and what it left because it had changed since the plan.
#[derive(Clone, Debug, Default)]
pub struct Swept {
    /// Gone.
    pub removed: Vec<Doomed>,
    /// Still there: somebody used it meanwhile.
    pub left: Vec<Doomed>,
}

impl Store<'_> {
    /// What a sweep would remove now. Nothing is changed: this is the dry run.
    ///
    /// # Errors
    /// When refs cannot be listed.
    pub fn plan_sweep(&self, policy: Policy, inputs: &Inputs) -> Result<Plan> {
        let mut doomed = Vec::new();
        let kept = self.doom_journal(policy, &inputs.journal, &mut doomed);
        self.doom_proposals(policy, inputs, &kept, &mut doomed);
        self.doom_trash(policy, &mut doomed)?;
        self.doom_workspaces(&inputs.proposals, &mut doomed)?;
        Ok(Plan { doomed })
    }

    /// Removes what was planned, as far as it is still as it was.
    ///
    /// # Errors
    /// When a ref cannot be removed for another reason than that it moved.
    pub fn apply_sweep(&self, plan: Plan) -> Result<Swept> {
        let mut swept = Swept::default();
        for doomed in plan.doomed {
            let gone = match self.remove(&doomed) {
                Ok(gone) => gone,
                Err(Error::Git(git::Error::Moved { .. }) | Error::NoWorkspace { .. }) => false,
                Err(error) => return Err(error),
            };
            if gone {
                swept.removed.push(doomed);
            } else {
                swept.left.push(doomed);
            }
        }
        Ok(swept)
    }

    /// Returns the proposals that the entries which stay are about.
    fn doom_journal(
        &self,
        policy: Policy,
        journal: &[Journalled],
        doomed: &mut Vec<Doomed>,
    ) -> BTreeSet<(AgentId, Revision)> {
        let mut entries: Vec<&Journalled> = journal.iter().collect();
        entries.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| b.name.cmp(&a.name)));
        let mut kept = BTreeSet::new();
        for (rank, entry) in entries.into_iter().enumerate() {
            match self.outlived(policy, rank, entry.time) {
                Some(why) if !entry.open => doomed.push(Doomed {
                    what: What::Journal,
                    name: entry.name.clone(),
                    id: entry.id,
                    agent: None,
                    age: self.age(entry.time),
                    size: self.size(entry.id),
                    why,
                }),
                _ => kept.extend(entry.proposals.iter().cloned()),
            }
        }
        kept
    }

    fn doom_proposals(
        &self,
        policy: Policy,
        inputs: &Inputs,
        kept: &BTreeSet<(AgentId, Revision)>,
        doomed: &mut Vec<Doomed>,
    ) {
        let mut all: Vec<&Offered> = inputs.proposals.iter().collect();
        all.sort_by_key(|offered| std::cmp::Reverse(offered.time));
        for (rank, offered) in all.into_iter().enumerate() {
            let needed = kept.contains(&(offered.agent.clone(), offered.revision));
            if !offered.decided || offered.needed || needed {
                continue;
            }
            if let Some(why) = self.outlived(policy, rank, offered.time) {
                doomed.push(Doomed {
                    what: What::Proposal,
                    name: names::changes(&offered.agent, offered.revision),
                    id: offered.id,
                    agent: Some(offered.agent.clone()),
                    age: self.age(offered.time),
                    size: self.size(offered.id),
                    why,
                });
            }
        }
    }

    fn doom_trash(&self, policy: Policy, doomed: &mut Vec<Doomed>) -> Result<()> {
        // A damaged one has no time to go by: it is for `recover` to name.
        let mut trash: Vec<(i64, super::Trashed)> = self
            .trash()?
            .into_iter()
            .filter_map(|one| Some((one.time?, one)))
            .collect();
        trash.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| b.1.name.cmp(&a.1.name)));
        for (rank, (time, one)) in trash.into_iter().enumerate() {
            if let (Some(why), Ok(state)) = (self.outlived(policy, rank, time), &one.state) {
                doomed.push(Doomed {
                    what: What::Trash,
                    agent: Some(state.agent.clone()),
                    id: one.commit,
                    age: self.age(time),
                    size: self.size(one.commit),
                    name: one.name,
                    why,
                });
            }
        }
        Ok(())
    }

    fn doom_workspaces(&self, proposals: &[Offered], doomed: &mut Vec<Doomed>) -> Result<()> {
        let mut by_agent: BTreeMap<&AgentId, Vec<&Offered>> = BTreeMap::new();
        for offered in proposals {
            by_agent.entry(&offered.agent).or_default().push(offered);
        }
        for (agent, offered) in by_agent {
            let Ok(workspace) = self.load(agent) else {
                continue;
            };
            if offered.iter().all(|one| one.decided) && self.is_finished(&workspace)? {
                let time = self.repository().objects()?.commit(workspace.commit)?.time;
                doomed.push(Doomed {
                    what: What::Workspace,
                    name: names::overlay(agent),
                    id: workspace.commit,
                    agent: Some(agent.clone()),
                    age: self.age(time),
                    size: self.size(workspace.commit),
                    why: "all its changes are decided".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Whether nothing was edited since the newest proposal, and no directory is open.
    fn is_finished(&self, workspace: &Workspace) -> Result<bool> {
        let Some(proposed) = workspace.meta.proposal else {
            return Ok(false);
        };
        if self.open_directory(&workspace.agent)?.is_some() {
            return Ok(false);
        }
        let unedited = self.base_tree(workspace)? == workspace.tree;
        let as_proposed = || {
            let at = self.load_at(&workspace.agent, proposed);
            at.is_ok_and(|at| at.tree == workspace.tree)
        };
        Ok(unedited || as_proposed())
    }

    fn remove(&self, doomed: &Doomed) -> Result<bool> {
        let lock = match &doomed.agent {
            Some(agent) => Some(self.lock(agent)?),
            None => None,
        };
        if let (What::Workspace, Some(agent), Some(lock)) = (doomed.what, &doomed.agent, &lock) {
            let workspace = self.load(agent)?;
            if workspace.commit != doomed.id || !self.is_finished(&workspace)? {
                return Ok(false);
            }
            let ended = self.release(lock, workspace, false)?;
            self.note_end(&ended.workspace, "release");
            return Ok(true);
        }
        let step = RefUpdate::delete(&doomed.name, Expect::Is(doomed.id));
        self.repository().refs().apply(&[step])?;
        Ok(true)
    }

    /// Why something of this rank (0 is the newest) and time goes, if it does.
    fn outlived(&self, policy: Policy, rank: usize, time: i64) -> Option<String> {
        let days = policy.age / (24 * 60 * 60);
        if self.age(time) > policy.age {
            Some(format!("older than {days} days"))
        } else if rank >= policy.entries {
            Some(format!("beyond the newest {}", policy.entries))
        } else {
            None
        }
    }

    fn age(&self, time: i64) -> i64 {
        self.now().saturating_sub(time).max(0)
    }

    /// The bytes of a commit's files that its first parent does not have; 0 where that cannot be told.
    fn size(&self, id: ObjectId) -> u64 {
        let sum = || -> Result<u64> {
            let objects = self.repository().objects()?;
            let commit = objects.commit(id)?;
            let on = match commit.parents.first() {
                Some(parent) => Some(objects.commit(*parent)?.tree),
                None => None,
            };
            let changed = tree::diff(&objects, on, Some(commit.tree))?;
            let blobs = changed.iter().filter_map(|change| change.new).take(SIZED);
            Ok(blobs
                .filter_map(|entry| super::read::size_of(&objects, entry).ok().flatten())
                .sum())
        };
        sum().unwrap_or(0)
    }
}
