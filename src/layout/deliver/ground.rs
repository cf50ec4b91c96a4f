//! The directory that a delivery goes to, and what stands in it.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ops::ControlFlow;

use bstr::{BStr, BString, ByteSlice, ByteVec};

use super::job::{Job, file, folders, is_below};
use super::note::Trees;
use crate::disk::{self, Content, New, Obstacle, Seal, Swap, WorkTree};
use crate::git::tree::{self, Change, Entry};
use crate::git::{ObjectId, ObjectKind, Repository, Staging, mentions_rewriting};
use crate::layout::directory::CLEANING;
use crate::layout::{Directory, Error, Result};
use crate::model::Refusal;

pub(super) struct Ground<'a> {
    repository: &'a Repository,
    directory: &'a Directory,
    source: &'a Staging<'a>,
    trees: Trees,
    changes: Vec<Change>,
    work: WorkTree<'a>,
    executable_bit: bool,
    links: bool,
    /// Whether git may rewrite content at one of the paths.
    filtered: bool,
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        directory: &'a Directory,
        trees: Trees,
        source: &'a Staging<'a>,
    ) -> Result<Self> {
        let config = repository.config()?;
        let executable_bit = config.bool("core.filemode")?.unwrap_or(true);
        let links = config.bool("core.symlinks")?.unwrap_or(true);
        let mut ground = Ground {
            repository,
            directory,
            source,
            trees,
            changes: tree::diff(source, Some(trees.from), Some(trees.to))?,
            work: WorkTree::new(&directory.path, executable_bit),
            executable_bit,
            links,
            filtered: repository.rewrites_everywhere()?,
        };
        ground.filtered = ground.filtered || ground.speaks_of_rewriting()?;
        Ok(ground)
    }

    /// The paths that change, in the order by which they are tagged.
    pub(super) fn jobs(&self) -> Vec<Job> {
        let changes = self.changes.iter().enumerate();
        changes.map(|(at, change)| Job::new(at, change)).collect()
    }

    /// Looks at what stands at each path.
    ///
    /// # Errors
    /// Refusals, where the directory holds anything but what the workspace did.
    pub(super) fn plan(&self) -> Result<Vec<Job>> {
        let mut jobs = self.jobs();
        let gone: HashSet<&BStr> = self
            .changes
            .iter()
            .filter(|change| change.new.is_none())
            .map(|change| change.path.as_bstr())
            .collect();
        for job in &mut jobs {
            let expected = file(job.old);
            job.late = is_below(job.path.as_bstr(), &gone);
            job.before = match self.work.state(job.path.as_bstr()) {
                Ok(found) if self.holds(job, expected, found.as_ref())? => found,
                Err(Obstacle::Blocked) if expected.is_none() && job.late => None,
                // It goes with the last file in it; a submodule's is not ours to look into.
                Err(Obstacle::Folder) if expected.is_none() => None,
                // Nothing is ever written over a link that the workspace does not know.
                Ok(Some(found)) if found.mode == disk::LINK => {
                    return Err(job.in_the_way(Refusal::TypeChange));
                }
                Ok(_) => return Err(job.changed()),
                Err(obstacle) => return Err(job.in_the_way(obstacle.refusal())),
            };
        }
        Ok(jobs)
    }

    /// The folders that have to be made for what comes.
    pub(super) fn new_folders(&self, jobs: &[Job]) -> BTreeSet<BString> {
        let come = jobs.iter().filter(|job| file(job.new).is_some());
        let above = come.flat_map(|job| {
            let slashes = job.path.find_iter("/");
            slashes.map(|end| job.path[..end].as_bstr())
        });
        above
            .filter(|folder| self.work.folder(folder).is_none())
            .map(BStr::to_owned)
            .collect()
    }

    /// Writes the new content beside its path.
    pub(super) fn make_ready(&self, job: &mut Job) -> Result<()> {
        if !job.late && file(job.new).is_some() {
            job.ready = Some(self.write_beside(job)?);
        }
        Ok(())
    }

    fn write_beside(&self, job: &Job) -> Result<Seal> {
        let Some(entry) = file(job.new) else {
            return Err(job.changed());
        };
        let bytes = self.on_disk(job.path.as_bstr(), entry, self.trees.to)?;
        let mode = self.mode(entry);
        let permissions = match &job.before {
            Some(before) if before.mode != disk::LINK => {
                Some(disk::with_execute_bit(before.permissions, mode))
            }
            _ => None,
        };
        let new = New {
            mode,
            permissions: permissions.filter(|_| mode != disk::LINK),
            bytes: &bytes,
        };
        self.work
            .make_folders(job.path.as_bstr(), &|_| None)
            .and_then(|()| self.work.prepare(job.spot(), new, true))
            .map_err(|fault| job.failed(fault))
    }

    /// Brings one path to what it is to be; gives the seal of what was put there.
    pub(super) fn put(&self, job: &Job) -> Result<Option<Seal>> {
        let spot = job.spot();
        let failed = |fault| job.failed(fault);
        let old = job.before.as_ref().map(Content::seal);
        let mut probe = |_| ControlFlow::Continue(());
        let (swapped, ours) = match (file(job.new), &old) {
            (Some(_), old) => {
                let ours = match &job.ready {
                    Some(ready) => ready.clone(),
                    None => self.write_beside(job)?,
                };
                let swapped = self.work.swap(spot, old.as_ref(), &ours, &mut probe);
                (swapped.map_err(failed)?, Some(ours))
            }
            (None, Some(old)) => {
                let removed = self.work.remove(spot, old, &mut probe);
                (removed.map_err(failed)?, None)
            }
            (None, None) => (Swap::Done, None),
        };
        let settled = match swapped {
            Swap::Done => self
                .work
                .settle(spot, old.as_ref(), ours.as_ref(), &mut probe),
            other => Ok(other),
        };
        if settled.map_err(failed)? != Swap::Done {
            return Err(job.changed());
        }
        match job.new {
            None => {
                if job.old.is_some_and(|old| old.mode == tree::GITLINK) {
                    self.work.remove_folder(job.path.as_bstr());
                }
                self.remove_emptied(job.path.as_bstr());
            }
            Some(entry) if entry.mode == tree::GITLINK => {
                let mut inside = job.path.clone();
                inside.push_str("/.");
                self.work
                    .make_folders(inside.as_bstr(), &|_| None)
                    .map_err(failed)?;
            }
            Some(_) => {}
        }
        Ok(ours)
    }

    /// Removes the folders above a path that went, as far as they are empty; as git does.
    fn remove_emptied(&self, path: &BStr) {
        let above: Vec<&BStr> = folders(path).filter(|folder| !folder.is_empty()).collect();
        let _ = above.into_iter().rev().all(|f| self.work.remove_folder(f));
    }

    /// Puts back what stood at a path before, as well as that goes.
    pub(super) fn take_back(&self, job: &Job, ours: Option<&Seal>) {
        let spot = job.spot();
        let mut probe = |_| ControlFlow::Continue(());
        let Some(before) = &job.before else {
            if let Some(ours) = ours
                && matches!(self.work.remove(spot, ours, &mut probe), Ok(Swap::Done))
            {
                let _ = self.work.settle(spot, Some(ours), None, &mut probe);
                self.remove_emptied(job.path.as_bstr());
            }
            return;
        };
        let new = New {
            mode: before.mode,
            permissions: (before.mode != disk::LINK).then_some(before.permissions),
            bytes: &before.bytes,
        };
        let _ = self.work.make_folders(spot.path, &|_| None);
        if let Ok(seal) = self.work.prepare(spot, new, false)
            && matches!(
                self.work.swap(spot, ours, &seal, &mut probe),
                Ok(Swap::Done)
            )
        {
            let _ = self.work.settle(spot, ours, Some(&seal), &mut probe);
        }
    }

    /// Ends a job that was killed: a path that still holds what it held gets what it is to hold. At any
    /// other, a tool has been since.
    pub(super) fn finish(&self, job: &Job) -> Result<()> {
        let (old, new) = (file(job.old), file(job.new));
        match self.work.held(job.spot()) {
            Ok(None) => {}
            Ok(held)
                if self.holds(job, old, held.as_ref())?
                    || self.holds(job, new, held.as_ref())? =>
            {
                let dropped = self.work.drop_held(job.spot());
                dropped.map_err(|fault| job.failed(fault))?;
            }
            // Bytes of a tool's: they get a name under which they are imported.
            Ok(Some(_)) | Err(_) => {
                let _ = self.work.keep_held(job.spot());
            }
        }
        let found = match self.work.state(job.path.as_bstr()) {
            Ok(found) => found,
            Err(Obstacle::Folder | Obstacle::Blocked) if old.is_none() => None,
            Err(_) => return Ok(()),
        };
        if self.holds(job, new, found.as_ref())? || !self.holds(job, old, found.as_ref())? {
            return Ok(());
        }
        match self.put(&job.again(found)) {
            Err(error) if error.refusal().is_some() => Ok(()),
            other => other.map(|_| ()),
        }
    }

    /// Whether what stands on disk is what an entry says.
    fn holds(&self, job: &Job, entry: Option<Entry>, found: Option<&Content>) -> Result<bool> {
        let (entry, found) = match (entry, found) {
            (None, None) => return Ok(true),
            (Some(entry), Some(found)) => (entry, found),
            _ => return Ok(false),
        };
        let mode = self.mode(entry);
        let same_kind = (mode == disk::LINK) == (found.mode == disk::LINK);
        if !same_kind || self.executable_bit && mode != found.mode {
            return Ok(false);
        }
        if entry.mode != tree::LINK && self.filtered {
            return self.stores(job.path.as_bstr(), entry);
        }
        Ok(self.repository.hash_blob(&found.bytes)? == entry.id)
    }

    /// Whether git stores what lies at a path as this entry, which its index has. Line endings that the
    /// index has already stay, so git is asked as a capture asks it.
    fn stores(&self, path: &BStr, entry: Entry) -> Result<bool> {
        let admin = &self.directory.admin;
        // It goes with the directory if we die here.
        let folder = tempfile::Builder::new()
            .prefix(CLEANING)
            .tempdir_in(admin)
            .map_err(|error| Error::io("create a folder in", admin, error))?;
        let index = folder.path().join("index");
        let files = [(path.to_owned(), Some(entry))];
        let stored = self
            .repository
            .store_files(&self.directory.path, admin, &index, &files)?;
        Ok(stored.first().is_some_and(|one| one.id == entry.id))
    }

    /// The mode on this disk.
    fn mode(&self, entry: Entry) -> u32 {
        match entry.mode {
            tree::LINK if !self.links => disk::REGULAR,
            mode => tree::canonical_mode(mode),
        }
    }

    /// The bytes that a checkout of the tree writes at a path.
    fn on_disk(&self, path: &BStr, entry: Entry, root: ObjectId) -> Result<Vec<u8>> {
        let bytes = self.source.read(entry.id, ObjectKind::Blob)?;
        if entry.mode == tree::LINK || !self.filtered {
            return Ok(bytes);
        }
        let mut rules = Vec::new();
        for folder in folders(path) {
            if let Some((name, text)) = self.attributes(folder, root)? {
                rules.push((name, text));
            }
        }
        Ok(self.repository.smudge_with(path, &bytes, &rules)?)
    }

    /// The attributes file of a folder in a tree.
    fn attributes(&self, folder: &BStr, root: ObjectId) -> Result<Option<(BString, Vec<u8>)>> {
        let mut name = folder.to_owned();
        if !name.is_empty() {
            name.push(b'/');
        }
        name.push_str(".gitattributes");
        let entry = tree::lookup(self.source, root, name.as_bstr())?;
        match entry.filter(Entry::is_file) {
            Some(entry) => Ok(Some((name, self.source.read(entry.id, ObjectKind::Blob)?))),
            None => Ok(None),
        }
    }

    /// Whether an attributes file above one of the paths speaks of content, before or after.
    fn speaks_of_rewriting(&self) -> Result<bool> {
        let mut asked: BTreeMap<&BStr, ()> = BTreeMap::new();
        for change in &self.changes {
            for folder in folders(change.path.as_bstr()) {
                if asked.insert(folder, ()).is_some() {
                    continue;
                }
                for root in [self.trees.from, self.trees.to] {
                    let found = self.attributes(folder, root)?;
                    if found.is_some_and(|(_, text)| mentions_rewriting(&text)) {
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }
}
