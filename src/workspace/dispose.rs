//! Taking edits back, going back to an earlier revision, and letting a workspace go.

use std::collections::BTreeMap;

use bstr::BString;

use super::{Change, Error, Kind, Published, Result, Store, Terms, Workspace, names};
use crate::git::tree::{self, Entry};
use crate::git::{Expect, Lock, RefUpdate};
use crate::model::{AgentId, Refusal, RepoPath, Revision};

/// What became of a workspace that was let go.
#[derive(Clone, Debug)]
pub struct Disposed {
    /// Its last state.
    pub workspace: Workspace,
    /// The ref that keeps its edits, where it had any.
    pub trash: Option<String>,
}

impl Store<'_> {
    /// Takes the given paths back to the base, folders with all that is in them; everything where
    /// no path is given. One revision, or none where nothing differs.
    ///
    /// # Errors
    /// [`Error::NoPath`] for a path in neither tree; as [`Store::publish`].
    pub fn discard(&self, agent: &AgentId, terms: Terms, paths: &[RepoPath]) -> Result<Published> {
        self.publish(agent, terms, |workspace, staging| {
            let base = self.base_tree(workspace)?;
            let changed = tree::diff(staging, Some(base), Some(workspace.tree))?;
            let (tree, touched) = if paths.is_empty() {
                (
                    base,
                    changed.into_iter().map(|change| change.path).collect(),
                )
            } else {
                let mut edits: BTreeMap<BString, Option<Entry>> = BTreeMap::new();
                for path in paths {
                    let original = tree::lookup(staging, base, path.as_bstr())?;
                    let current = tree::lookup(staging, workspace.tree, path.as_bstr())?;
                    if original.is_none() && current.is_none() {
                        return Err(Error::NoPath {
                            path: path.as_bstr().to_owned(),
                            place: format!("workspace '{agent}' or its base"),
                        });
                    }
                    edits.insert(path.as_bstr().to_owned(), original);
                }
                let tree = tree::edit(staging, workspace.tree, &edits)?;
                (tree, edits.into_keys().collect::<Vec<_>>())
            };
            let differs = tree != workspace.tree;
            Ok(differs.then(|| Change::new(Kind::Discard, touched, tree)))
        })
    }

    /// Makes an earlier revision's content current again, as a new revision.
    ///
    /// # Errors
    /// [`Error::NoRevision`]; as [`Store::publish`].
    pub fn restore(&self, agent: &AgentId, terms: Terms, revision: Revision) -> Result<Published> {
        self.publish(agent, terms, |workspace, staging| {
            let earlier = self.load_at(agent, revision)?;
            let changed = tree::diff(staging, Some(workspace.tree), Some(earlier.tree))?;
            let paths = changed.into_iter().map(|change| change.path).collect();
            let mut change = Change::new(Kind::Restore, paths, earlier.tree);
            if earlier.base() != workspace.base() {
                change.base = Some(earlier.base());
            }
            let differs = earlier.tree != workspace.tree || change.base.is_some();
            Ok(differs.then_some(change))
        })
    }

    /// Lets a workspace go: its refs go; edits that nobody decided on stay under
    /// `refs/relo/trash/` and can be brought back with `overlay create --from`.
    ///
    /// # Errors
    /// The refusal `conflict` when there are edits and not `force`; `materialized` when a
    /// directory is open: settle it first, so that what it holds is saved.
    pub fn dispose(&self, agent: &AgentId, force: bool) -> Result<Disposed> {
        let lock = self.lock(agent)?;
        let workspace = self.load(agent)?;
        if self.open_directory(agent)?.is_some() {
            let what = format!("workspace '{agent}' has a directory open; settle it first");
            return Err(Error::refused(Refusal::Materialized, what));
        }
        let edited = self.base_tree(&workspace)? != workspace.tree;
        if edited && !force {
            let what = format!("workspace '{agent}' has edits that nobody has decided on");
            return Err(Error::refused(Refusal::Conflict, what));
        }
        let disposed = self.release(&lock, workspace, edited)?;
        self.note_end(&disposed.workspace, "dispose");
        Ok(disposed)
    }

    /// Removes the refs of a workspace, the overlay last: killed before, it is still a workspace
    /// with all its edits, and the next attempt goes on. `keep` puts its last revision in the
    /// trash before anything else.
    ///
    /// # Errors
    /// When a ref cannot be moved.
    pub fn release(&self, _lock: &Lock, workspace: Workspace, keep: bool) -> Result<Disposed> {
        let trash = keep.then(|| names::trash(&workspace.agent, workspace.revision()));
        let pin = trash
            .as_ref()
            .map(|name| RefUpdate::set(name, Expect::Anything, workspace.commit));
        self.let_go(pin, std::slice::from_ref(&workspace))?;
        Ok(Disposed { workspace, trash })
    }

    /// Releases workspaces of which nothing has to be kept, all in one list of ref updates, and notes
    /// that they are gone. The caller has looked at each under its lock.
    ///
    /// # Errors
    /// When a ref cannot be moved. A ref that is not as it was found leaves all of them as they were.
    pub fn release_all(&self, released: &[(&Lock, Workspace)]) -> Result<()> {
        let workspaces: Vec<Workspace> = released.iter().map(|(_, one)| one.clone()).collect();
        self.let_go(None, &workspaces)?;
        self.note_ends(&workspaces, "release");
        Ok(())
    }

    /// All pins go before the first overlay does.
    fn let_go(&self, pin: Option<RefUpdate>, workspaces: &[Workspace]) -> Result<()> {
        let refs = self.repository.refs();
        let (mut pins, mut overlays) = (Vec::new(), Vec::new());
        for workspace in workspaces {
            let agent = &workspace.agent;
            if let Some(tip) = refs.find(&names::branch(agent))? {
                pins.push(RefUpdate::delete(names::branch(agent), Expect::Is(tip)));
            }
            for (name, id) in refs.list(&names::workspace(agent))? {
                if name != names::overlay(agent) {
                    pins.push(RefUpdate::delete(name, Expect::Is(id)));
                }
            }
            let expect = Expect::Is(workspace.commit);
            overlays.push(RefUpdate::delete(names::overlay(agent), expect));
        }
        let steps: Vec<RefUpdate> = pin.into_iter().chain(pins).chain(overlays).collect();
        Ok(refs.apply(&steps)?)
    }
}
