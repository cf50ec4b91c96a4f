//! Moving a workspace to another base: what it adds is replayed on it.
//!
//! The replay is a merge of trees with the *stored* base in the middle: what the workspace was cut
//! from, with what was accepted of it since. No merge base is looked for, so that a shallow clone, a
//! rewritten branch or a base that was never committed change nothing. A parent that is accepted, as
//! it was or merged with the user's edits, is in the new base; the workspace's own edits are all
//! that is replayed.
//!
//! A conflict leaves everything as it was, unless the caller wants it kept: then the path stays at the
//! agent's version and is listed in the metadata until it is written.

use super::lineage::{Parent, is_import};
use super::merge::{Conflict, Keep, Trees, merge_trees};
use super::stack::{Contribution, Ground, NotApplied, Source};
use super::{Base, Change, Error, From, Kind, Published, Result, Store, Terms};
use crate::git::tree;
use crate::model::Refusal;

/// A move to another base.
#[derive(Clone, Debug)]
pub struct Rebase {
    /// The workspace as the caller has seen it.
    pub own: Source,
    /// The new base.
    pub onto: From,
    /// The unaccepted work that is put on the new base first, parent by parent.
    pub contributions: Vec<Contribution>,
    /// Whether paths in conflict stay at the agent's version.
    pub keep_conflicts: bool,
}

/// What a move to another base came to.
#[derive(Clone, Debug)]
pub struct Rebased {
    /// The workspace as it stands now.
    pub published: Published,
    /// The paths on which the agent's edits contradict the new base.
    pub conflicts: Vec<Conflict>,
    /// The parents that do not apply to the new base. Nothing is changed where there are any.
    pub left_out: Vec<NotApplied>,
    /// The parents that the workspace rests on now, or would.
    pub parents: Vec<Parent>,
    /// The record of the user's working tree, where the new base is that.
    pub base: Option<Base>,
}

impl Store<'_> {
    /// Replays what a workspace adds on another base.
    ///
    /// # Errors
    /// The refusal `moved` when the workspace is not the one that the caller has seen; as
    /// [`Store::publish`].
    pub fn rebase(&self, rebase: &Rebase, terms: Terms) -> Result<Rebased> {
        let seen = &rebase.own.workspace;
        let agent = &seen.agent;
        let mut outcome = (Vec::new(), Vec::new(), Vec::new(), None);
        let published = self.publish(agent, terms, |workspace, staging| {
            if workspace.commit != seen.commit {
                let what = format!("workspace '{agent}' changed while it was rebased");
                return Err(Error::refused(Refusal::Moved, what));
            }
            let start = self.start(staging, agent, &rebase.onto)?;
            let ground = Ground::bare(start.base, start.tree);
            let laid = self.lay(staging, ground, &rebase.contributions)?;
            let own = self.layer(staging, &rebase.own)?;
            let trees = Trees {
                base: own.before,
                ours: laid.tree,
                theirs: own.after,
            };
            let merged = merge_trees(staging, trees, Keep::Theirs)?;
            let stopped =
                !laid.left_out.is_empty() || !merged.conflicts.is_empty() && !rebase.keep_conflicts;
            outcome = (merged.conflicts, laid.left_out, laid.parents, start.record);
            let (conflicts, _, parents, _) = &outcome;
            let same = laid.commit == workspace.base() && merged.tree == workspace.tree;
            if stopped || same && workspace.meta.parents() == *parents {
                return Ok(None);
            }
            let changed = tree::diff(staging, Some(workspace.tree), Some(merged.tree))?;
            let paths = changed.into_iter().map(|change| change.path).collect();
            let mut change = Change::new(Kind::Rebase, paths, merged.tree);
            change.base = Some(laid.commit);
            let (conflicts, parents) = (conflicts.clone(), parents.clone());
            change.amend = Some(Box::new(move |meta| {
                let imported = meta.raw_lineage().iter().filter(|v| is_import(v)).cloned();
                let mut lineage = laid.lineage;
                lineage.extend(imported.collect::<Vec<_>>());
                meta.set_lineage(lineage);
                meta.set_parents(&parents);
                meta.add_conflicts(&conflicts);
            }));
            Ok(Some(change))
        })?;
        let (conflicts, left_out, parents, base) = outcome;
        Ok(Rebased {
            published,
            conflicts,
            left_out,
            parents,
            base,
        })
    }
}
