//! Taking what was written to a workspace to its open directory.
//!
//! An open directory is the authority, so a revision that did not come out of it has to reach its
//! files, or the next import would take that revision back. The new files are written beside their
//! places first; then the revision is published, and they are swapped in, path by path under a
//! compare-and-swap and without following any link. A file that holds anything but what the workspace
//! held is never replaced.
//!
//! A note in the directory's git dir (`vws-delivery`) names the two trees from before the publish until
//! the last swap. Killed in between, the next import finds it: it goes on where the revision was
//! published, else it throws away what was made ready.

mod ground;
mod job;
mod note;

use std::collections::BTreeSet;
use std::path::PathBuf;

use bstr::{BString, ByteSlice};

use self::ground::Ground;
use self::job::Job;
use self::note::{Note, Trees};
use super::capture::capture_locked;
use super::materialize::lay_out_standing;
use super::state::{State, state};
use super::{Directory, Error, Result};
use crate::disk::{Seal, Spot, WorkTree};
use crate::git::{Lock, ObjectId, Repository, Staging, fault};
use crate::model::{AgentId, Refusal, RepoPath};
use crate::workspace::{self, Delivery, Keeper, Published, Reference, Store, Terms, Workspace};

/// The workspaces of a repository as [`Store::new`] gives them, with their directories kept in step.
pub fn store(repository: &Repository, now: i64) -> Store<'_> {
    Store::new(repository, now).kept_by(&Keeps)
}

struct Keeps;

impl Keeper for Keeps {
    fn lay_out(
        &self,
        store: &Store<'_>,
        lock: &Lock,
        agent: &AgentId,
    ) -> workspace::Result<PathBuf> {
        let made = lay_out_standing(store, lock, agent);
        Ok(made.map_err(below)?.path)
    }

    fn import(&self, store: &Store<'_>, lock: &Lock, agent: &AgentId) -> workspace::Result<()> {
        match state(store, agent).map_err(below)? {
            State::Open(directory, _) => {
                capture_locked(store, lock, &directory).map_err(below)?;
                Ok(())
            }
            State::Vanished(places) => {
                let what = format!(
                    "the directory '{}' of workspace '{agent}' has vanished",
                    places.path.display()
                );
                Err(workspace::Error::refused(Refusal::Materialized, what))
            }
            State::Unfinished(_) => self.lay_out(store, lock, agent).map(|_| ()),
            State::Closed => Ok(()),
        }
    }

    fn prepare<'k>(
        &self,
        store: &Store<'k>,
        from: &Workspace,
        to: ObjectId,
        staging: &Staging<'_>,
    ) -> workspace::Result<Box<dyn Delivery + 'k>> {
        let open = super::open(store, &from.agent).map_err(below)?;
        let directory = open.ok_or_else(|| below(super::settle::not_open(&from.agent)))?;
        let trees = Trees {
            from: from.tree,
            to,
        };
        let under_way = UnderWay::prepare(store.repository(), directory, trees, staging);
        Ok(Box::new(under_way.map_err(below)?))
    }
}

/// An error of this module, as the layer below passes it on.
fn below(error: Error) -> workspace::Error {
    match error {
        Error::Workspace(error) => error,
        Error::Git(error) => error.into(),
        Error::Tree(error) => error.into(),
        other => match other.refusal() {
            Some(kind) => workspace::Error::refused(kind, other.to_string()),
            None => workspace::Error::Directory(Box::new(other)),
        },
    }
}

/// A delivery between the making of its files and the last swap.
struct UnderWay<'r> {
    repository: &'r Repository,
    directory: Directory,
    trees: Trees,
    jobs: Vec<Job>,
    /// The folders that were not there before.
    folders: BTreeSet<BString>,
}

impl<'r> UnderWay<'r> {
    fn prepare(
        repository: &'r Repository,
        directory: Directory,
        trees: Trees,
        staging: &Staging<'_>,
    ) -> Result<Self> {
        let mut under_way = UnderWay {
            repository,
            directory,
            trees,
            jobs: Vec::new(),
            folders: BTreeSet::new(),
        };
        let directory = under_way.directory.clone();
        let ground = Ground::new(repository, &directory, trees, staging)?;
        under_way.jobs = ground.plan()?;
        under_way.folders = ground.new_folders(&under_way.jobs);
        let paths = under_way.jobs.iter().map(|job| job.path.clone()).collect();
        Note { trees, paths }.write(&directory)?;
        fault::point("deliver-noted");
        for job in &mut under_way.jobs {
            ground.make_ready(job)?;
        }
        Ok(under_way)
    }

    fn swap_in(&mut self) -> Result<()> {
        let staging = Staging::new(self.repository)?;
        let ground = Ground::new(self.repository, &self.directory, self.trees, &staging)?;
        let mut done: Vec<(&Job, Option<Seal>)> = Vec::new();
        for job in order(&mut self.jobs) {
            match ground.put(job) {
                Ok(ours) => done.push((job, ours)),
                Err(error) => {
                    for (job, ours) in done.into_iter().rev() {
                        ground.take_back(job, ours.as_ref());
                    }
                    return Err(error);
                }
            }
            fault::point("deliver-swapped");
        }
        Ok(())
    }
}

/// What goes makes room for what comes.
fn order(jobs: &mut [Job]) -> impl Iterator<Item = &Job> {
    jobs.sort_by_key(|job| job.new.is_some());
    jobs.iter()
}

impl Delivery for UnderWay<'_> {
    fn put_in_place(mut self: Box<Self>, store: &Store<'_>, lock: &Lock) -> workspace::Result<()> {
        let swapped = self.swap_in();
        let directory = self.directory.clone();
        // What is left of it goes, and the note.
        drop(self);
        let Err(error) = swapped else {
            return Ok(());
        };
        capture_locked(store, lock, &directory).map_err(below)?;
        Err(below(error))
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        let tree = WorkTree::new(&self.directory.path, true);
        for job in &self.jobs {
            tree.discard(job.spot());
        }
        // Those with nothing in them; in the order of paths a folder comes before those in it.
        for folder in self.folders.iter().rev() {
            tree.remove_folder(folder.as_bstr());
        }
        Note::remove(&self.directory);
    }
}

/// Ends a delivery that was killed; the caller holds the agent's lock. What tools wrote since stays.
///
/// # Errors
/// Where it cannot be ended: then nothing is known about the directory.
pub(super) fn resume(store: &Store<'_>, directory: &Directory) -> Result<()> {
    let repository = store.repository();
    let Some(note) = Note::read(directory, repository.format())? else {
        return Ok(());
    };
    let current = store.load(&directory.agent)?;
    if current.tree == note.trees.to {
        let staging = Staging::new(repository)?;
        let ground = Ground::new(repository, directory, note.trees, &staging)?;
        let mut jobs = ground.jobs();
        order(&mut jobs).try_for_each(|job| ground.finish(job))?;
    }
    let tree = WorkTree::new(&directory.path, true);
    for (at, path) in note.paths.iter().enumerate() {
        let tag = job::tag(at);
        let spot = Spot {
            path: path.as_bstr(),
            tag: &tag,
        };
        tree.discard(spot);
    }
    Note::remove(directory);
    Ok(())
}

/// Takes the sender's version of some paths of a reference over into a recipient's workspace, and
/// nowhere else, and notes it in the recipient's lineage. An open directory of it gets them too.
///
/// # Errors
/// The refusals of [`Store::resolve_reference`] and of [`Store::publish_import`]; `workspace_changed`
/// where the directory holds something at one of the paths that the workspace does not. Nothing is
/// changed then.
pub fn import_reference(
    store: &Store<'_>,
    recipient: &AgentId,
    reference: &Reference,
    paths: &[RepoPath],
    terms: Terms,
) -> Result<Published> {
    #[cfg(target_os = "linux")]
    super::overlaid::retire(store, recipient)?;
    let lock = store.lock(recipient)?;
    let terms = Terms {
        into_directory: matches!(state(store, recipient)?, State::Open(..)),
        ..terms
    };
    let imported = store.resolve_reference(reference, paths)?;
    let store = store.kept_by(&Keeps);
    Ok(store.publish_import(&lock, recipient, &imported, terms)?)
}
