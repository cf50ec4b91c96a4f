//! Whether a revision is sound: its metadata, and the objects it needs.

use std::collections::{BTreeMap, HashSet};

use super::{Damage, damage};
use crate::git::{self, ObjectId, ObjectKind, Objects, tree};
use crate::model::AgentId;
use crate::workspace::{Error, Kind, Result, Store, Workspace, names};

/// How many revisions back the numbers are followed where the check is not deep.
const NEAR: usize = 1;

impl Store<'_> {
    /// What is wrong with the workspace whose overlay ref holds `commit`. Deep: every object of all its
    /// revisions and of its base is looked for; `seen` spares those that were looked at before.
    pub(super) fn examine(
        &self,
        agent: &AgentId,
        commit: ObjectId,
        deep: bool,
        seen: &mut HashSet<ObjectId>,
    ) -> Result<Vec<Damage>> {
        let name = names::overlay(agent);
        let workspace = match self.read_revision(agent, commit) {
            Ok(workspace) => workspace,
            Err(error) => return Ok(vec![damage(agent, name, &error)]),
        };
        let objects = self.repository().objects()?;
        let mut found = Vec::new();
        let overlay = self.sound_tree(&objects, workspace.tree, deep, seen);
        if let Err(error) = overlay {
            found.push(damage(agent, name.clone(), &error));
        }
        if let Err(error) = self.sound_base(&objects, &workspace, deep, seen) {
            found.push(damage(agent, names::base(agent), &error));
        }
        if let Err(error) = self.sound_history(&objects, &workspace, deep, seen) {
            found.push(damage(agent, name, &error));
        }
        Ok(found)
    }

    /// What is wrong with the pinned revisions of a workspace.
    pub(super) fn check_pins(
        &self,
        agent: &AgentId,
        refs: &BTreeMap<String, ObjectId>,
        found: &mut Vec<Damage>,
    ) -> Result<()> {
        let own = names::workspace(agent);
        for (name, id) in refs.range(own.clone()..) {
            if !name.starts_with(&own) {
                break;
            }
            let kind = &name[own.len()..];
            if (kind == "exec" || kind.starts_with("snap/"))
                && let Err(error) = self.read_revision(agent, *id)
            {
                found.push(damage(agent, name.clone(), &error));
            }
        }
        Ok(())
    }

    /// Whether a tree is there; deep: with all that is in it.
    pub(super) fn sound_tree(
        &self,
        objects: &Objects<'_>,
        root: ObjectId,
        deep: bool,
        seen: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        let mut left = vec![root];
        // In a partial clone a missing object is promised, and looking for it would fetch it.
        let partial = self.repository().is_partial();
        while let Some(id) = left.pop() {
            if seen.contains(&id) || partial && !objects.exists(id) {
                continue;
            }
            let data = objects.read(id, ObjectKind::Tree)?;
            for entry in tree::entries(&data, objects.format()) {
                let entry = entry.map_err(|defect| git::Error::DamagedObject {
                    id,
                    why: defect.to_string(),
                })?;
                if !deep || entry.mode == tree::GITLINK {
                    continue;
                }
                if entry.is_tree() {
                    left.push(entry.id());
                } else if !partial && !seen.contains(&entry.id()) {
                    objects.blob_size(entry.id())?;
                    seen.insert(entry.id());
                }
            }
            if deep {
                // Not before: what is not sound must fail again for the next who asks.
                seen.insert(id);
            }
        }
        Ok(())
    }

    pub(super) fn sound_base(
        &self,
        objects: &Objects<'_>,
        workspace: &Workspace,
        deep: bool,
        seen: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        let base = objects.commit(workspace.base())?;
        self.sound_tree(objects, base.tree, deep, seen)
    }

    /// Whether the revisions before this one are there and count as they should.
    pub(super) fn sound_history(
        &self,
        objects: &Objects<'_>,
        workspace: &Workspace,
        deep: bool,
        seen: &mut HashSet<ObjectId>,
    ) -> Result<()> {
        let mut at = workspace.clone();
        let mut left = if deep { usize::MAX } else { NEAR };
        loop {
            let parents = objects.commit(at.commit)?.parents;
            if let Some(on) = parents.first() {
                objects.commit(*on)?;
            }
            if left == 0 {
                return Ok(());
            }
            left -= 1;
            let before = match parents.get(1) {
                // Another agent's, brought back under a new name.
                Some(_) if at.revision().get() == 1 => return Ok(()),
                Some(before) => self.read_revision(&at.agent, *before)?,
                None => return Ok(()),
            };
            // A new workspace of a name that had proposals before goes on above their numbers, with a
            // revision that changes nothing else.
            let jumps = at.meta.kind == Kind::Note && at.revision() > before.revision();
            if before.revision().next() != at.revision() && !jumps {
                let (old, new) = (before.revision(), at.revision());
                return Err(Error::Damaged {
                    what: format!("workspace '{}'", at.agent),
                    why: format!("its revision {new} follows revision {old}"),
                });
            }
            if deep {
                if !seen.insert(before.commit) {
                    return Ok(());
                }
                self.sound_tree(objects, before.tree, deep, seen)?;
            }
            at = before;
        }
    }
}
