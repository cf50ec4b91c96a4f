//! One publish: objects, then the refs that name them, on disk in this order with as few waits as it takes.
//!
//! 1. The objects are written as one pack of ours, which nobody sees and nothing has flushed.
//! 2. The refs are locked and looked at, and what they shall hold is written beside them.
//! 3. All of that content is put on disk in one go, with whatever else the caller needs there first.
//! 4. The pack appears, and its folder is flushed.
//! 5. The refs move, each in its turn; where the order counts, folders are flushed before the last one.
//! 6. The folders of the refs are flushed. The caller may have something to flush in the same go.
//!
//! Each go waits about as long as one flush (see [`disk::flush`]), so a publish of any size takes three or
//! four: one where the file system keeps the order of names by itself (see [`disk::Volume`]), for there
//! content is only written out in step 3, and all folders are flushed in step 6. Killed before step 5, or refused in step 2, it leaves every ref as it
//! was.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::pack::{HeldPack, WrittenPack};
use super::{Error, RefUpdate, Repository, Result, Staging, fault};
use crate::disk::{self, Volume};

/// A publish under way.
pub struct Publish<'r> {
    repository: &'r Repository,
    pack: Pack,
    /// Files and folders to flush before a ref moves.
    first: Vec<OwnedFd>,
    /// The folders whose flush makes the moves last.
    folders: BTreeSet<PathBuf>,
    /// The file system of objects and refs, where none of their names can reach the disk before those that
    /// changed earlier.
    volume: Option<Volume>,
}

enum Pack {
    None,
    Written(WrittenPack),
    Durable(HeldPack),
}

impl<'r> Publish<'r> {
    /// Writes what is staged, unseen by others so far.
    ///
    /// # Errors
    /// When the pack cannot be written.
    pub fn begin(staging: Staging<'r>) -> Result<Self> {
        let mut publish = Self::of_refs(staging.repository());
        if let Some(pack) = staging.write()? {
            publish.pack = Pack::Written(pack);
        }
        Ok(publish)
    }

    /// A publish without objects.
    pub(super) fn of_refs(repository: &'r Repository) -> Self {
        Publish {
            repository,
            pack: Pack::None,
            first: Vec::new(),
            folders: BTreeSet::new(),
            volume: repository.volume(),
        }
    }

    /// Whether the order in which names change is kept without a flush in between.
    pub(super) fn keeps_order(&self) -> bool {
        self.volume.is_some()
    }

    /// Has files and folders flushed before the first ref moves.
    pub fn flush_first(&mut self, open: Vec<OwnedFd>) {
        self.first.extend(open);
    }

    /// As [`super::Refs::apply`], when the objects are on disk. May be called again where it was refused.
    ///
    /// # Errors
    /// As [`super::Refs::apply`]; when something cannot be flushed.
    pub fn apply(&mut self, updates: &[RefUpdate]) -> Result<()> {
        self.repository.refs().apply_in(updates, self)?;
        // Where no ref moves there is still the pack.
        self.make_durable(Vec::new())
    }

    /// Makes the moves last, and lets go of the objects: they are reachable now, or were for a moment
    /// only. Where the order is kept and somebody puts it off, the moves last with those of a later publish.
    pub fn finish(mut self) {
        self.release();
        if !self.keeps_order() || !self.repository.put_off.take(&self.folders) {
            self.flush();
        }
    }

    /// As [`Publish::finish`], for moves that are on disk early enough where the file system keeps the order
    /// of names: with the next change in any of these folders.
    pub(super) fn finish_before(mut self, changes: &[&Path]) {
        self.release();
        if !self.repository.keeps_order_with(changes) {
            self.flush();
        }
    }

    /// As [`Publish::finish`], for a caller who flushes more in the same go: these are the folders to flush.
    #[must_use = "the moves do not last before these are flushed"]
    pub fn finish_unflushed(mut self) -> Vec<OwnedFd> {
        self.release();
        opened(&self.folders)
    }

    /// Flushes the folders, and with them the moves of earlier publishes.
    fn flush(self) {
        if self.keeps_order() && !self.folders.is_empty() {
            self.repository.put_off.clear();
            disk::flush_each(&opened(&self.folders));
        } else {
            flush_folders(&self.folders);
        }
    }

    /// Lets go of the objects.
    fn release(&mut self) {
        fault::point("published");
        if let Pack::Durable(held) = std::mem::replace(&mut self.pack, Pack::None) {
            // A `.keep` that stays is cleared by the next roll-up.
            let _ = held.release();
            fault::point("pack-released");
            self.repository.tidy_packs();
        }
    }

    /// Flushes everything that must be on disk before a ref moves: these files, in which refs shall
    /// find their content, among them.
    pub(super) fn make_durable(&mut self, files: Vec<OwnedFd>) -> Result<()> {
        let mut first = std::mem::take(&mut self.first);
        first.extend(files);
        if let Pack::Written(pack) = &mut self.pack {
            first.extend(pack.take_contents());
        }
        if !first.is_empty() {
            let common_dir = self.repository.common_dir();
            disk::put_before(&first, self.volume)
                .map_err(|e| Error::io("flush files of", common_dir, e.into()))?;
        }
        self.pack = match std::mem::replace(&mut self.pack, Pack::None) {
            Pack::Written(pack) => {
                let (held, folder) = pack.complete()?;
                match folder {
                    Some(folder) if self.keeps_order() => self.changed([folder]),
                    Some(folder) => Repository::flush_dir(&folder)?,
                    None => {}
                }
                fault::point("objects-durable");
                Pack::Durable(held)
            }
            other => other,
        };
        Ok(())
    }

    /// Notes a folder that a ref has moved in.
    pub(super) fn changed(&mut self, folders: impl IntoIterator<Item = PathBuf>) {
        self.folders.extend(folders);
    }
}

/// Flushes that are put off, on a file system that keeps the order of names.
///
/// A command that publishes several times, and tells of it in the end only, waits once for all: what has
/// been flushed last has everything before it on disk. Until then a crash of the machine leaves some first
/// part of it, as a crash in the middle of the last publish would.
#[derive(Debug, Default)]
pub(super) struct PutOff(RefCell<Option<BTreeSet<PathBuf>>>);

impl PutOff {
    /// Takes folders that are to be flushed; false where nobody puts it off.
    fn take(&self, folders: &BTreeSet<PathBuf>) -> bool {
        let mut owed = self.0.borrow_mut();
        if let Some(owed) = owed.as_mut() {
            owed.extend(folders.iter().cloned());
        }
        owed.is_some()
    }

    /// Nothing is owed any more: something later is on disk, or about to be.
    fn clear(&self) {
        if let Some(owed) = self.0.borrow_mut().as_mut() {
            owed.clear();
        }
    }
}

/// While it is there, a publish may leave its last flush to the next one. What is owed in the end is
/// flushed when it goes.
#[must_use = "it puts flushes off as long as it is there"]
pub struct OneWait<'r>(&'r Repository);

impl Drop for OneWait<'_> {
    fn drop(&mut self) {
        self.0.catch_up();
        self.0.put_off.0.take();
    }
}

impl Repository {
    /// Has publishes wait for the disk together, as far as the file system lets them, until the end of what
    /// is returned: before that, nothing may be told of them.
    pub fn in_one_wait(&self) -> OneWait<'_> {
        self.put_off.0.borrow_mut().get_or_insert_default();
        OneWait(self)
    }

    /// Sees that what has been published is on disk before what changes from now on below these folders. To be
    /// called where a directory goes whose content the publish has.
    pub fn catch_up_before(&self, changes: &[&Path]) {
        let owes = self
            .put_off
            .0
            .borrow()
            .as_ref()
            .is_some_and(|owed| !owed.is_empty());
        if owes && !self.keeps_order_with(changes) {
            self.catch_up();
        }
    }

    fn catch_up(&self) {
        let owed = self.put_off.0.borrow_mut().as_mut().map(std::mem::take);
        disk::flush_each(&opened(&owed.unwrap_or_default()));
    }

    fn keeps_order_with(&self, changes: &[&Path]) -> bool {
        let volume = self.volume();
        volume.is_some_and(|volume| changes.iter().all(|folder| volume.has(folder)))
    }

    /// The file system on which objects and refs get their names, if it is one and keeps their order.
    pub fn volume(&self) -> Option<Volume> {
        let look = || Volume::of(&self.objects_dir().join("pack"), self.common_dir());
        *self.volume.get_or_init(look)
    }
}

/// Flushes folders of refs. A file system that cannot flush a folder has no promise to keep here.
pub(super) fn flush_folders(folders: &BTreeSet<PathBuf>) {
    let _ = disk::flush(&opened(folders));
}

fn opened(folders: &BTreeSet<PathBuf>) -> Vec<OwnedFd> {
    let open = |folder: &PathBuf| File::open(folder).ok().map(OwnedFd::from);
    folders.iter().filter_map(open).collect()
}
