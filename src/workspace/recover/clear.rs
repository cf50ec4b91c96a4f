//! Taking a damaged workspace out of git's way, so that the user's `git fetch` and `git gc` work again.

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;

use bstr::ByteSlice;
use serde_json::json;

use super::agent_of;
use crate::git::{Expect, LooseState, NewCommit, ObjectId, RefUpdate, Staging};
use crate::mirror;
use crate::model::{AgentId, Revision};
use crate::workspace::{Error, Result, Store, Workspace, names};

/// How far back in the reflog a sound revision is looked for.
const LOGGED: usize = 500;

/// What became of a damaged workspace.
#[derive(Clone, Debug)]
pub struct Cleared {
    /// Its agent.
    pub agent: AgentId,
    /// The trash refs that hold what could still be read, newest revision last. `overlay create
    /// --from=<trash>` brings one back.
    pub kept: Vec<String>,
    /// Where the files of refs went that even git could not delete.
    pub aside: Vec<PathBuf>,
    /// The agent's branch, where nothing else holds what is on it: it stays.
    pub branch: Option<String>,
}

impl Store<'_> {
    /// Takes a damaged workspace apart. Its newest revision that is whole, from its ref or its reflog, and
    /// its pinned ones go to the trash first; then its refs go, and files that are no refs any more are
    /// moved to `<common-dir>/relo/damaged/`. A directory that is open stays where it is, with all that
    /// is in it.
    ///
    /// # Errors
    /// [`Error::NoWorkspace`]; [`Error::Invalid`] when nothing is wrong with it; failures of Git.
    pub fn clear(&self, agent: &AgentId) -> Result<Cleared> {
        let _lock = self.lock(agent)?;
        let broken = self.broken_files(agent)?;
        let refs = self.repository().refs().list(&names::workspace(agent))?;
        if broken.is_empty() && refs.is_empty() {
            return Err(Error::NoWorkspace {
                agent: agent.clone(),
            });
        }
        if broken.is_empty() && self.is_sound(agent, &refs)? {
            return Err(Error::Invalid(format!(
                "workspace '{agent}' is not damaged; 'dispose' lets it go"
            )));
        }
        let mut cleared = Cleared {
            agent: agent.clone(),
            kept: Vec::new(),
            aside: Vec::new(),
            branch: None,
        };
        // What can be kept is kept before anything goes.
        let mut kept = self.keep(agent, &refs)?;
        for name in &broken {
            cleared
                .aside
                .extend(self.repository().refs().set_aside(name)?);
        }
        // Under a broken file an older value may have been packed.
        let refs = self.repository().refs().list(&names::workspace(agent))?;
        if kept.is_empty() {
            kept = self.keep(agent, &refs)?;
        }
        cleared.kept = kept.keys().map(|n| names::trash(agent, *n)).collect();
        self.remove_refs(agent, refs, &kept, &mut cleared)?;
        let _ = mirror::drop_agents(self.repository(), &[agent.as_str()].into());
        Ok(cleared)
    }

    /// The refs of an agent whose files git cannot read.
    fn broken_files(&self, agent: &AgentId) -> Result<Vec<String>> {
        let handle = self.repository().refs();
        let mut found = Vec::new();
        for prefix in super::OURS {
            for file in handle.files(prefix)? {
                let own = agent_of(file.name.as_bstr()).as_ref() == Some(agent);
                if own && matches!(file.state, LooseState::Damaged(_)) {
                    // A name of ours is ASCII; another could not be spelled to git.
                    found.extend(file.name.to_str().ok().map(str::to_owned));
                }
            }
        }
        Ok(found)
    }

    fn is_sound(&self, agent: &AgentId, refs: &BTreeMap<String, ObjectId>) -> Result<bool> {
        let Some(commit) = refs.get(&names::overlay(agent)) else {
            return Ok(false);
        };
        let mut found = self.examine(agent, *commit, true, &mut HashSet::new())?;
        self.check_pins(agent, refs, &mut found)?;
        Ok(found.is_empty())
    }

    /// Puts what is whole into the trash: the newest of what the overlay ref has held, and the pins.
    fn keep(
        &self,
        agent: &AgentId,
        refs: &BTreeMap<String, ObjectId>,
    ) -> Result<BTreeMap<Revision, ObjectId>> {
        let overlay = names::overlay(agent);
        let logged = self.repository().refs().log(&overlay);
        let history = logged.into_iter().take(LOGGED).map(|entry| entry.new);
        let mut seen = HashSet::new();
        let mut whole = |id: ObjectId| self.whole(agent, id, &mut seen);
        let mut states: Vec<Workspace> = Vec::new();
        states.extend(
            refs.get(&overlay)
                .copied()
                .into_iter()
                .chain(history)
                .find_map(&mut whole),
        );
        for (name, id) in refs {
            if *name != overlay && *name != names::base(agent) {
                states.extend(whole(*id));
            }
        }
        let mut kept = BTreeMap::new();
        let mut steps: Vec<RefUpdate> = refs
            .get(&overlay)
            .and_then(|id| self.keep_foreign(agent, *id))
            .into_iter()
            .collect();
        let mut staging = Staging::new(self.repository())?;
        for state in states {
            if kept.contains_key(&state.revision()) {
                continue;
            }
            let commit = self.mended(&state, &mut staging)?;
            kept.insert(state.revision(), commit);
            let name = names::trash(agent, state.revision());
            steps.push(RefUpdate::set(name, Expect::Anything, commit));
        }
        self.put(staging, &steps)?;
        Ok(kept)
    }

    /// The step that keeps a commit which is no revision of ours, and which somebody else put there.
    fn keep_foreign(&self, agent: &AgentId, id: ObjectId) -> Option<RefUpdate> {
        let objects = self.repository().objects().ok()?;
        let tree = objects.commit(id).ok()?.tree;
        let whole = self.sound_tree(&objects, tree, true, &mut HashSet::new());
        if whole.is_err() || self.read_revision(agent, id).is_ok() {
            return None;
        }
        let name = format!("{}{agent}/foreign-{id}", names::TRASH);
        Some(RefUpdate::set(name, Expect::Anything, id))
    }

    /// The state in a commit, if the overlay is there with all that is in it.
    fn whole(
        &self,
        agent: &AgentId,
        commit: ObjectId,
        seen: &mut HashSet<ObjectId>,
    ) -> Option<Workspace> {
        let state = self.read_revision(agent, commit).ok()?;
        let objects = self.repository().objects().ok()?;
        self.sound_tree(&objects, state.tree, true, seen).ok()?;
        Some(state)
    }

    /// A commit of this state that refers to nothing that is missing: the commit itself where its base
    /// and its history are whole, else a new one without what is lost.
    fn mended(&self, state: &Workspace, staging: &mut Staging<'_>) -> Result<ObjectId> {
        let objects = self.repository().objects()?;
        let seen = &mut HashSet::new();
        let base = self.sound_base(&objects, state, true, seen).is_ok();
        if base && self.sound_history(&objects, state, true, seen).is_ok() {
            return Ok(state.commit);
        }
        let mut meta = state.meta.clone();
        if !base {
            // The edits cannot be told from the base any more; the files are all there.
            let lost = meta.base.to_string();
            meta.base = staging.commit(&NewCommit {
                tree: state.tree,
                parents: &[],
                time: self.now(),
                message: format!("vws {}: base {lost} is lost\n", state.agent).as_bytes(),
            })?;
            meta.extra.insert("lostBase".to_owned(), json!(lost));
        }
        let lost = state.commit.to_string();
        meta.extra.insert("lostHistoryOf".to_owned(), json!(lost));
        let message = meta.to_message();
        Ok(staging.commit(&NewCommit {
            tree: state.tree,
            parents: &[meta.base],
            time: self.now(),
            message: &message,
        })?)
    }

    fn remove_refs(
        &self,
        agent: &AgentId,
        refs: BTreeMap<String, ObjectId>,
        kept: &BTreeMap<Revision, ObjectId>,
        cleared: &mut Cleared,
    ) -> Result<()> {
        let handle = self.repository().refs();
        let overlay = names::overlay(agent);
        let mut steps = Vec::new();
        let branch = names::branch(agent);
        if let Some(tip) = handle.find(&branch)? {
            let held = kept
                .values()
                .any(|id| self.repository().is_ancestor(tip, *id).unwrap_or(false));
            if held {
                steps.push(RefUpdate::delete(branch, Expect::Is(tip)));
            } else {
                cleared.branch = Some(branch);
            }
        }
        let (last, others): (Vec<_>, Vec<_>) =
            refs.into_iter().partition(|(name, _)| *name == overlay);
        for (name, id) in others.into_iter().chain(last) {
            steps.push(RefUpdate::delete(name, Expect::Is(id)));
        }
        Ok(handle.apply(&steps)?)
    }
}
