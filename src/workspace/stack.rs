//! Stacks: a workspace that starts from the unaccepted work of others.
//!
//! What an agent contributes is a [`Source`]: one of its revisions, and what has been decided about the
//! edits in it. The edits that are still its own are a *layer*, the difference of two trees; layers
//! are merged one after the other onto a commit, as trees, never as patches. The result is the base
//! of the dependent workspace, so that its own difference holds only what it adds. The base is a
//! commit of ours: its first parent is the commit that the layers were put on, the others are the
//! revisions that went in, which therefore stay reachable whatever becomes of their workspaces.
//!
//! A parent goes in as a whole, with everything that it rests on itself, or not at all.

use std::collections::BTreeMap;
use std::path::PathBuf;

use bstr::BString;
use serde_json::Value;

use super::create::Start;
use super::lineage::{Origin, Parent, is_import, patch_hash};
use super::merge::{Conflict, Keep, Trees, merge_trees};
use super::{Base, Error, From, Mode, NewWorkspace, Result, Store, Workspace};
use crate::git::tree::{self, Entry};
use crate::git::{self, NewCommit, ObjectId, Staging};
use crate::model::{AgentId, Refusal, Revision};

/// What has been decided about a path of a revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// It was accepted as this; what differs from it is a new edit.
    Landed(Option<Entry>),
    /// It was accepted or rejected in a form that stands for this one too: nothing is left to say.
    Settled,
}

/// A revision of a workspace, and what has been decided about its edits.
#[derive(Clone, Debug)]
pub struct Source {
    /// The workspace at that revision.
    pub workspace: Workspace,
    /// The number that its edits are proposed with.
    pub proposal: Revision,
    /// The decisions, by path.
    pub decided: BTreeMap<BString, Decided>,
}

/// What one parent brings: the sources that it rests on, each before those that rest on it, itself last.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// The parent, as it goes in.
    pub parent: Parent,
    /// The sources.
    pub sources: Vec<Source>,
}

/// A dependent workspace to be created.
#[derive(Clone, Debug)]
pub struct NewStack {
    /// What the parents' work is put on; `None` for what the first of them was put on.
    pub onto: Option<From>,
    /// What the parents bring, in order.
    pub contributions: Vec<Contribution>,
    /// Whether a parent that does not apply is a reason not to create it.
    pub strict: bool,
    /// How it is held.
    pub mode: Mode,
    /// Whether it refuses every write.
    pub read_only: bool,
    /// The orchestrator's session, if it names one.
    pub session: Option<String>,
}

/// A parent that was left out, and where it contradicts what was there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotApplied {
    /// The parent.
    pub agent: AgentId,
    /// Whose edits do not apply: the parent's own, or those of one that it rests on.
    pub culprit: AgentId,
    /// The conflicts.
    pub conflicts: Vec<Conflict>,
}

/// A dependent workspace, created.
#[derive(Clone, Debug)]
pub struct Stacked {
    /// Its state; `None` where it was not created, because the caller was strict.
    pub workspace: Option<Workspace>,
    /// The parents that went in.
    pub parents: Vec<Parent>,
    /// The parents that did not.
    pub left_out: Vec<NotApplied>,
    /// The record of the user's working tree, where the stack was put on that.
    pub base: Option<Base>,
    /// Its directory, where it has one that stays.
    pub directory: Option<PathBuf>,
}

/// The edits of one source that are still its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer {
    pub(super) before: ObjectId,
    pub(super) after: ObjectId,
}

/// What a dependent workspace rests on.
pub(super) struct Foundation {
    pub(super) commit: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) parents: Vec<Parent>,
    pub(super) lineage: Vec<Value>,
    pub(super) left_out: Vec<NotApplied>,
}

/// A commit that layers are put on, and what is in it already.
pub(super) struct Ground {
    pub(super) commit: ObjectId,
    pub(super) tree: ObjectId,
    pub(super) lineage: Vec<Value>,
    /// The revisions whose layers are in the tree.
    pub(super) included: Vec<ObjectId>,
}

impl Ground {
    pub(super) fn bare(commit: ObjectId, tree: ObjectId) -> Self {
        Ground {
            commit,
            tree,
            lineage: Vec::new(),
            included: Vec::new(),
        }
    }
}

impl Store<'_> {
    /// Creates a workspace that starts from the unaccepted work of others. A parent that does not
    /// apply is left out and named.
    ///
    /// # Errors
    /// As [`Store::create`]. Nothing is created then.
    pub fn stack(&self, agent: &AgentId, new: &NewStack) -> Result<Stacked> {
        let lock = self.lock(agent)?;
        self.check_free(agent)?;
        let mut staging = Staging::new(self.repository)?;
        let (ground, base) = self.ground(&mut staging, agent, new)?;
        let laid = self.lay(&mut staging, ground, &new.contributions)?;
        let mut stacked = Stacked {
            workspace: None,
            parents: laid.parents.clone(),
            left_out: laid.left_out,
            base,
            directory: None,
        };
        if new.strict && !stacked.left_out.is_empty() {
            return Ok(stacked);
        }
        let start = Start::new(laid.commit, laid.tree);
        let how = NewWorkspace {
            from: From::WorkTree,
            mode: new.mode,
            read_only: new.read_only,
            session: new.session.clone(),
        };
        let created = self.establish((agent, &lock), staging, &how, start, |meta| {
            meta.set_parents(&laid.parents);
            meta.set_lineage(laid.lineage);
        })?;
        stacked.workspace = Some(created.workspace);
        stacked.directory = created.directory;
        Ok(stacked)
    }

    fn ground(
        &self,
        staging: &mut Staging<'_>,
        agent: &AgentId,
        new: &NewStack,
    ) -> Result<(Ground, Option<Base>)> {
        // Where nothing else is said, the first parent's work stays on what it was made on: nothing
        // is merged then, and the child starts from exactly what that parent has.
        let first = new.contributions.first();
        match (
            &new.onto,
            first.and_then(|first| first.sources.split_last()),
        ) {
            (None, Some((own, below))) => {
                let ground = Ground {
                    commit: own.workspace.base(),
                    tree: self.layer(staging, own)?.before,
                    lineage: own.workspace.meta.raw_lineage().to_vec(),
                    included: below.iter().map(|source| source.workspace.commit).collect(),
                };
                Ok((ground, None))
            }
            (onto, _) => {
                let from = onto.as_ref().unwrap_or(&From::WorkTree);
                let start = self.start(staging, agent, from)?;
                Ok((Ground::bare(start.base, start.tree), start.record))
            }
        }
    }

    /// Puts what the parents bring onto a commit, parent by parent.
    pub(super) fn lay(
        &self,
        staging: &mut Staging<'_>,
        mut ground: Ground,
        contributions: &[Contribution],
    ) -> Result<Foundation> {
        let onto = ground.commit;
        let (mut parents, mut left_out) = (Vec::new(), Vec::new());
        for contribution in contributions {
            match self.lay_one(staging, &ground, contribution)? {
                Ok(with) => {
                    ground = with;
                    parents.push(contribution.parent.clone());
                }
                Err(not_applied) => left_out.push(not_applied),
            }
        }
        let commit = match parents.is_empty() {
            true => onto,
            false => self.stack_commit(staging, onto, ground.tree, &parents)?,
        };
        Ok(Foundation {
            commit,
            tree: ground.tree,
            parents,
            lineage: ground.lineage,
            left_out,
        })
    }

    fn lay_one(
        &self,
        staging: &mut Staging<'_>,
        ground: &Ground,
        contribution: &Contribution,
    ) -> Result<Result<Ground, NotApplied>> {
        let mut tree = ground.tree;
        let mut lineage = ground.lineage.clone();
        let mut included = ground.included.clone();
        for source in &contribution.sources {
            if included.contains(&source.workspace.commit) {
                continue;
            }
            let layer = self.layer(staging, source)?;
            let trees = Trees {
                base: layer.before,
                ours: tree,
                theirs: layer.after,
            };
            let merged = merge_trees(staging, trees, Keep::Ours)?;
            if !merged.conflicts.is_empty() {
                return Ok(Err(NotApplied {
                    agent: contribution.parent.agent.clone(),
                    culprit: source.workspace.agent.clone(),
                    conflicts: merged.conflicts,
                }));
            }
            tree = merged.tree;
            included.push(source.workspace.commit);
            let own = self.origins(staging, source, layer)?;
            let meta = &source.workspace.meta;
            let imported = meta.raw_lineage().iter().filter(|v| is_import(v)).cloned();
            for entry in own.iter().map(Origin::to_json).chain(imported) {
                if !lineage.contains(&entry) {
                    lineage.push(entry);
                }
            }
        }
        Ok(Ok(Ground {
            commit: ground.commit,
            tree,
            lineage,
            included,
        }))
    }

    /// The edits of a source that nothing has been decided about.
    pub(super) fn layer(&self, staging: &mut Staging<'_>, source: &Source) -> Result<Layer> {
        let after = source.workspace.tree;
        let base = self.stored_base(&source.workspace)?;
        let mut edits: BTreeMap<BString, Option<Entry>> = BTreeMap::new();
        for (path, decided) in &source.decided {
            let entry = match decided {
                Decided::Landed(entry) => *entry,
                Decided::Settled => tree::lookup(staging, after, path.as_ref())?,
            };
            // Where a folder stands now, the files in it speak for themselves.
            if entry.is_none_or(|entry| !entry.is_tree()) {
                edits.insert(path.clone(), entry);
            }
        }
        let before = tree::edit(staging, base, &edits)?;
        Ok(Layer { before, after })
    }

    /// What a source adds to its base and nothing has been decided about, by path.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn own_changes(
        &self,
        staging: &mut Staging<'_>,
        source: &Source,
    ) -> Result<Vec<tree::Change>> {
        let layer = self.layer(staging, source)?;
        Ok(tree::diff(staging, Some(layer.before), Some(layer.after))?)
    }

    /// The tree of the base that a workspace was cut from. It is the stored one, never one that a
    /// history would name: a shallow clone has no history to ask.
    pub(super) fn stored_base(&self, workspace: &Workspace) -> Result<ObjectId> {
        match self.base_tree(workspace) {
            Err(Error::Git(git::Error::MissingObject { id })) if self.repository.is_shallow() => {
                let agent = &workspace.agent;
                let what = format!("base {id} of '{agent}' is not in this shallow clone");
                Err(Error::refused(Refusal::Unsupported, what))
            }
            other => other,
        }
    }

    fn origins(&self, staging: &Staging<'_>, source: &Source, layer: Layer) -> Result<Vec<Origin>> {
        let changes = tree::diff(staging, Some(layer.before), Some(layer.after))?;
        let origin = |change: tree::Change| {
            Ok(Origin {
                agent: source.workspace.agent.clone(),
                proposal: source.proposal,
                patch_hash: patch_hash(self.repository, &change)?.to_string(),
                path: change.path,
                imported: false,
            })
        };
        changes.into_iter().map(origin).collect()
    }

    /// The base of a dependent: the same parts give the same commit.
    fn stack_commit(
        &self,
        staging: &mut Staging<'_>,
        onto: ObjectId,
        tree: ObjectId,
        parents: &[Parent],
    ) -> Result<ObjectId> {
        let mut ids = vec![onto];
        ids.extend(parents.iter().map(|parent| parent.commit));
        let mut time = 0;
        for id in &ids {
            time = time.max(staging.read_commit(*id)?.time);
        }
        let names: Vec<String> = parents
            .iter()
            .map(|parent| format!("{} r{}", parent.agent, parent.revision))
            .collect();
        let message = format!("vws base: stack on {}\n", names.join(", "));
        Ok(staging.commit(&NewCommit {
            tree,
            parents: &ids,
            time,
            message: message.as_bytes(),
        })?)
    }
}
