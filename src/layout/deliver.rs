//! Taking over files of another agent: into the overlay, or into the open directory.
//!
//! An open directory is the authority, so what is imported is written there, file by file under a
//! compare-and-swap and without following any link, and then captured like tool output. What would
//! be refused is refused before the first file is written; a failure in between takes back what was.

use std::collections::BTreeSet;

use bstr::{BStr, ByteSlice};

use super::capture::capture_locked;
use super::state::{State, state};
use super::{Directory, Error, Result};
use crate::disk::{self, Content, Fault, New, Seal, Spot, Swap, WorkTree};
use crate::git::tree::{self, Entry};
use crate::git::{Lock, ObjectKind, Repository, Staging};
use crate::model::{AgentId, Refusal, RepoPath};
use crate::workspace::{Imported, Published, Reference, Store, Terms};

/// Takes the sender's version of some paths of a reference over into a recipient's workspace, and
/// nowhere else, and notes it in the recipient's lineage.
///
/// # Errors
/// The refusals of [`Store::resolve_reference`] and of [`Store::publish_import`]; `workspace_changed`
/// when a tool writes to one of the paths at the same time. Nothing is changed then.
pub fn import_reference(
    store: &Store<'_>,
    recipient: &AgentId,
    reference: &Reference,
    paths: &[RepoPath],
    terms: Terms,
) -> Result<Published> {
    let lock = store.lock(recipient)?;
    let State::Open(directory, _) = state(store, recipient)? else {
        store.load(recipient)?;
        let imported = store.resolve_reference(reference, paths)?;
        return Ok(store.publish_import(&lock, recipient, &imported, terms)?);
    };
    let current = capture_locked(store, &lock, &directory)?.workspace;
    let open = Terms {
        while_open: true,
        ..terms
    };
    store.check(&current, open)?;
    let imported = store.resolve_reference(reference, paths)?;
    // Everything that the overlay would refuse, said before a file is touched.
    let mut staging = Staging::new(store.repository())?;
    store.import_tree(&mut staging, current.tree, &imported)?;
    drop(staging);
    let written = Written::new(store.repository(), &directory, &imported)?;
    publish(store, &lock, &directory, &imported).inspect_err(|_| written.take_back())
}

/// Captures what was written, and records where it came from. A path that the capture leaves out, as
/// an ignored one, is taken over all the same: it was asked for by name.
fn publish(
    store: &Store<'_>,
    lock: &Lock,
    directory: &Directory,
    imported: &Imported,
) -> Result<Published> {
    capture_locked(store, lock, directory)?;
    let terms = Terms {
        while_open: true,
        ..Terms::default()
    };
    Ok(store.publish_import(lock, &directory.agent, imported, terms)?)
}

/// A file that is about to be written.
struct Job<'i> {
    path: &'i RepoPath,
    tag: String,
    before: Option<Content>,
    after: Option<(u32, Vec<u8>)>,
}

impl Job<'_> {
    fn spot(&self) -> Spot<'_> {
        Spot {
            path: self.path.as_bstr(),
            tag: &self.tag,
        }
    }
}

/// What was written into a directory, and can be taken back.
struct Written<'i> {
    tree: WorkTree<'i>,
    jobs: Vec<Job<'i>>,
    /// The seals of what was put there, job by job.
    done: Vec<Option<Seal>>,
    /// The folders that were not there before.
    folders: BTreeSet<&'i BStr>,
}

impl<'i> Written<'i> {
    /// Writes all of it or nothing.
    fn new(
        repository: &Repository,
        directory: &'i Directory,
        imported: &'i Imported,
    ) -> Result<Self> {
        let executable_bit = repository.config()?.bool("core.filemode")?.unwrap_or(true);
        let tree = WorkTree::new(&directory.path, executable_bit);
        let jobs = jobs(repository, &tree, imported)?;
        let come = jobs.iter().filter(|job| job.after.is_some());
        let above = come.flat_map(|job| above(job.path.as_bstr()));
        let folders = above
            .filter(|folder| tree.folder(folder).is_none())
            .collect();
        let mut written = Written {
            tree,
            jobs,
            done: Vec::new(),
            folders,
        };
        for at in 0..written.jobs.len() {
            match put(&written.tree, &written.jobs[at]) {
                Ok(ours) => written.done.push(ours),
                Err(error) => {
                    written.take_back();
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    fn take_back(&self) {
        for (job, ours) in self.jobs.iter().zip(&self.done).rev() {
            take_back(&self.tree, job, ours.as_ref());
        }
        // In the order of paths a folder comes before those in it.
        for folder in self.folders.iter().rev() {
            self.tree.remove_folder(folder);
        }
    }
}

/// The folders that a path lies in.
fn above(path: &BStr) -> impl Iterator<Item = &BStr> {
    path.find_iter("/").map(|slash| path[..slash].as_bstr())
}

fn jobs<'i>(
    repository: &Repository,
    tree: &WorkTree<'_>,
    imported: &'i Imported,
) -> Result<Vec<Job<'i>>> {
    let mut jobs = Vec::new();
    for (at, (path, entry)) in imported.entries.iter().enumerate() {
        let before = tree.state(path.as_bstr()).map_err(|obstacle| {
            let what = format!("'{path}' cannot be written in the directory");
            Error::refused(obstacle.refusal(), what)
        })?;
        if before.as_ref().is_some_and(|b| b.mode == disk::LINK) && !is_link(*entry) {
            let what = format!("'{path}' is a link, which is never written through");
            return Err(Error::refused(Refusal::TypeChange, what));
        }
        let after = match entry {
            Some(entry) => Some((entry.mode, on_disk(repository, path.as_bstr(), *entry)?)),
            None => None,
        };
        jobs.push(Job {
            path,
            tag: format!("import-{at}"),
            before,
            after,
        });
    }
    Ok(jobs)
}

fn is_link(entry: Option<Entry>) -> bool {
    entry.is_some_and(|entry| entry.mode == tree::LINK)
}

fn on_disk(repository: &Repository, path: &BStr, entry: Entry) -> Result<Vec<u8>> {
    let bytes = repository.objects()?.read(entry.id, ObjectKind::Blob)?;
    Ok(match entry.mode {
        tree::LINK => bytes,
        _ => repository.smudge(path, &bytes)?.into_owned(),
    })
}

/// Brings one path to what it is to be; gives the seal of what was put there.
fn put(tree: &WorkTree<'_>, job: &Job<'_>) -> Result<Option<Seal>> {
    let spot = job.spot();
    let failed = |fault| failed(job.path, fault);
    let old = job.before.as_ref().map(Content::seal);
    let mut probe = |_| std::ops::ControlFlow::Continue(());
    let (swapped, ours) = match &job.after {
        Some((mode, bytes)) => {
            tree.make_folders(spot.path, &|_| None).map_err(failed)?;
            let permissions = match &job.before {
                Some(before) if before.mode != disk::LINK => {
                    Some(disk::with_execute_bit(before.permissions, *mode))
                }
                _ => None,
            };
            let new = New {
                mode: *mode,
                permissions: permissions.filter(|_| *mode != disk::LINK),
                bytes,
            };
            let ours = tree.prepare(spot, new, false).map_err(failed)?;
            let swapped = tree.swap(spot, old.as_ref(), &ours, &mut probe);
            (swapped.map_err(failed)?, Some(ours))
        }
        None => match &old {
            Some(old) => (tree.remove(spot, old, &mut probe).map_err(failed)?, None),
            None => return Ok(None),
        },
    };
    let settled = match swapped {
        Swap::Done => tree.settle(spot, old.as_ref(), ours.as_ref(), &mut probe),
        other => Ok(other),
    };
    match settled.map_err(failed)? {
        Swap::Done => Ok(ours),
        Swap::Changed | Swap::Kept(_) => {
            let what = format!("'{}' changed while it was imported", job.path);
            Err(Error::refused(Refusal::WorkspaceChanged, what))
        }
    }
}

/// Puts back what stood at a path before, as well as that goes.
fn take_back(tree: &WorkTree<'_>, job: &Job<'_>, ours: Option<&Seal>) {
    let spot = job.spot();
    let mut probe = |_| std::ops::ControlFlow::Continue(());
    let Some(before) = &job.before else {
        if let Some(ours) = ours
            && matches!(tree.remove(spot, ours, &mut probe), Ok(Swap::Done))
        {
            let _ = tree.settle(spot, Some(ours), None, &mut probe);
        }
        return;
    };
    let new = New {
        mode: before.mode,
        permissions: (before.mode != disk::LINK).then_some(before.permissions),
        bytes: &before.bytes,
    };
    if let Ok(seal) = tree.prepare(spot, new, false)
        && matches!(tree.swap(spot, ours, &seal, &mut probe), Ok(Swap::Done))
    {
        let _ = tree.settle(spot, ours, Some(&seal), &mut probe);
    }
}

fn failed(path: &RepoPath, fault: Fault) -> Error {
    match fault {
        Fault::Obstacle(obstacle) => {
            let what = format!("'{path}' cannot be written in the directory");
            Error::refused(obstacle.refusal(), what)
        }
        Fault::Failed { action, source } => {
            Error::io(action, crate::git::os_str(path.as_bstr()), source)
        }
        // Nobody asks for that here.
        Fault::Stopped => {
            Error::refused(Refusal::WorkspaceChanged, format!("'{path}' was stopped"))
        }
    }
}
