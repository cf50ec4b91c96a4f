//! Laying a tree out beside a template of one that is near: what is the same is taken from the
//! template, the rest is written from the object database.
//!
//! Several threads share one list of folders, as in [`super::checkout`]: whoever takes a folder opens
//! the template's and the new one, and works by their handles. For each file that is the same the
//! system is asked for no more than it must be: open, create, bytes (or their sharing), times, stat
//! data and two closes. Nothing is hashed; the stat data are what the index gets. Git rewrites no content
//! of a tree of which there may be a template.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timestamps, fstat, futimens, mkdirat, openat, readlinkat, statat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::backend::LAYING_OUT;
use super::put::{Users, set_time, time_in, times_of};
use super::queue::{Queue, threads};
use super::template::{Template, copy_sized};
use super::{Error, Result, Stats};
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index};
use crate::git::tree::{Change, EXECUTABLE, Entry, GITLINK, LINK, Listing, listing};
use crate::git::{self, Door, ObjectId, Repository};
use crate::model;

/// So many files of one folder are one piece of work.
const CHUNK: usize = 128;
/// How the bytes of a template's file get over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Its blocks are shared; where they cannot be, it is a failure.
    Sharing,
    /// They are copied.
    Copying,
}

/// What is laid out, and of what.
pub(super) struct Plan<'a> {
    pub(super) repository: &'a Repository,
    /// The tree.
    pub(super) tree: ObjectId,
    /// What most of it is taken from.
    pub(super) template: &'a Template,
    /// The paths to be written anew: all that differ, and perhaps others.
    pub(super) changes: &'a [Change],
    pub(super) by: By,
    /// The user's own files, whose times equal ones that are written anew take.
    pub(super) users: Option<Users>,
    /// The times of other files that are written anew; `None` for those of now.
    pub(super) times: Option<Timestamps>,
}

impl Plan<'_> {
    /// Fills the empty folder `into`, and writes its index to `index`.
    ///
    /// # Errors
    /// As [`super::backend::Backend::lay_out`].
    pub(super) fn fill(&self, into: &Path, index: &Path) -> Result<Stats> {
        let listing = listing(&self.repository.objects()?, self.tree)?;
        let total = listing.files.len() as u64;
        let told = model::Work::start(self.repository.progress(), LAYING_OUT, Some(total));
        let written = Work::new(self, &listing, into, &told)?.run()?;
        drop(told);
        let mut trees = TreeCache::new();
        for directory in &listing.directories {
            trees.record(directory.path.clone(), directory.id);
        }
        let links = listing.files.iter().filter(|(_, e)| e.mode == GITLINK);
        let stats = Stats {
            files: (listing.files.len() - links.count()) as u64,
            bytes: written.iter().map(|stat| u64::from(stat.size)).sum(),
            threads: threads(),
        };
        let entries: Vec<IndexEntry> = listing
            .files
            .into_iter()
            .zip(written)
            .map(|((path, entry), stat)| IndexEntry {
                path,
                mode: entry.mode,
                id: entry.id,
                stat,
            })
            .collect();
        write_index(index, self.repository.format(), &entries, Some(&trees))?;
        Ok(stats)
    }
}

/// A folder, with the numbers of what it holds directly.
#[derive(Default)]
struct Folder {
    files: Vec<usize>,
    folders: Vec<usize>,
}

/// The two folders of one path.
struct Pair {
    new: OwnedFd,
    /// `None` where the template has no such folder.
    old: Option<OwnedFd>,
}

enum Task {
    Folder(Arc<Pair>, usize),
    Files(Arc<Pair>, usize, Range<usize>),
}

struct Work<'a> {
    told: &'a model::Work<'a>,
    by: By,
    users: Option<&'a Users>,
    times: Option<&'a Timestamps>,
    listing: &'a Listing,
    into: &'a Path,
    folders: Vec<Folder>,
    anew: HashSet<&'a BStr>,
    door: Door,
    queue: Queue<Task>,
    failure: Mutex<Option<Error>>,
}

/// What one thread has of its own.
struct Hand<'w> {
    door: &'w Door,
    repository: OnceCell<Repository>,
    buffer: Vec<u8>,
    done: Vec<(usize, StatData)>,
}

impl<'a> Work<'a> {
    fn new(
        plan: &'a Plan<'a>,
        listing: &'a Listing,
        into: &'a Path,
        told: &'a model::Work<'a>,
    ) -> Result<Self> {
        let mut folders: Vec<Folder> = Vec::new();
        folders.resize_with(listing.directories.len(), Folder::default);
        let number: HashMap<&BStr, usize> = listing
            .directories
            .iter()
            .enumerate()
            .map(|(at, folder)| (folder.path.as_bstr(), at))
            .collect();
        for (at, folder) in listing.directories.iter().enumerate().skip(1) {
            folders[number[parent(&folder.path)]].folders.push(at);
        }
        for (at, (path, entry)) in listing.files.iter().enumerate() {
            super::legal::check(path, entry.mode)?;
            folders[number[parent(path)]].files.push(at);
        }
        let open = |path: &Path| {
            rustix::fs::open(path, FOLDER, Mode::empty()).map_err(|e| Error::io("open", path, e))
        };
        let top = Pair {
            new: open(into)?,
            old: Some(open(&plan.template.files())?),
        };
        Ok(Work {
            told,
            by: plan.by,
            users: plan.users.as_ref(),
            times: plan.times.as_ref(),
            listing,
            into,
            folders,
            anew: plan.changes.iter().map(|one| one.path.as_bstr()).collect(),
            door: plan.repository.door(),
            queue: Queue::new(Task::Folder(Arc::new(top), 0)),
            failure: Mutex::new(None),
        })
    }

    /// Does it all; the stat data are in the order of the listing.
    fn run(self) -> Result<Vec<StatData>> {
        let mut all = vec![StatData::default(); self.listing.files.len()];
        std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads())
                .map(|_| scope.spawn(|| self.work()))
                .collect();
            let mut done = self.work();
            for other in others {
                match other.join() {
                    Ok(more) => done.extend(more),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
            for (at, stat) in done {
                all[at] = stat;
            }
        });
        let failure = self.failure.into_inner();
        match failure.unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    fn work(&self) -> Vec<(usize, StatData)> {
        let mut hand = Hand {
            door: &self.door,
            repository: OnceCell::new(),
            buffer: Vec::new(),
            done: Vec::new(),
        };
        self.queue.work(|task| {
            if let Err(error) = self.step(task, &mut hand) {
                let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
                first.get_or_insert(error);
                self.queue.stop();
            }
        });
        hand.done
    }

    fn step(&self, task: Task, hand: &mut Hand<'_>) -> Result<()> {
        let (pair, folder, range) = match task {
            Task::Folder(above, folder) => {
                let pair = match folder {
                    0 => above,
                    _ => Arc::new(self.enter(&above, folder)?),
                };
                let inner = self.folders[folder].folders.iter().rev();
                self.queue
                    .push(inner.map(|at| Task::Folder(Arc::clone(&pair), *at)));
                let count = self.folders[folder].files.len();
                self.queue.push((CHUNK..count).step_by(CHUNK).map(|from| {
                    Task::Files(Arc::clone(&pair), folder, from..count.min(from + CHUNK))
                }));
                (pair, folder, 0..count.min(CHUNK))
            }
            Task::Files(pair, folder, range) => (pair, folder, range),
        };
        let files = &self.folders[folder].files[range];
        for &at in files {
            let (path, entry) = &self.listing.files[at];
            let stat = self.file(&pair, path.as_bstr(), *entry, hand)?;
            hand.done.push((at, stat));
        }
        self.told.step(files.len() as u64);
        Ok(())
    }

    fn enter(&self, above: &Pair, folder: usize) -> Result<Pair> {
        let path = self.listing.directories[folder].path.as_bstr();
        let name = last(path);
        let old = match &above.old {
            None => None,
            // The template may have a file or a link there: nothing of it is wanted then.
            Some(old) => match openat(old, name, FOLDER, Mode::empty()) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
                old => Some(old.map_err(|e| Error::io("open", git::os_str(path), e))?),
            },
        };
        mkdirat(&above.new, name, Mode::from_raw_mode(0o777))
            .and_then(|()| openat(&above.new, name, FOLDER, Mode::empty()))
            .map(|new| Pair { new, old })
            .map_err(|error| Error::not_placed(path, self.into, error))
    }

    fn file(
        &self,
        pair: &Pair,
        path: &BStr,
        entry: Entry,
        hand: &mut Hand<'_>,
    ) -> Result<StatData> {
        let name = last(path);
        let placed = |error: Errno| Error::not_placed(path, self.into, error);
        match (&pair.old, entry.mode) {
            (_, GITLINK) => {
                mkdirat(&pair.new, name, Mode::from_raw_mode(0o777)).map_err(placed)?;
                Ok(StatData::default())
            }
            (Some(old), mode) if !self.anew.contains(path) => match mode {
                LINK => copy_link(old, &pair.new, name).map_err(placed),
                _ => self.take(old, &pair.new, path, (mode, &mut hand.buffer)),
            },
            _ => self.write(&pair.new, path, entry, hand),
        }
    }

    /// Takes a file over from the template.
    fn take(
        &self,
        old: &OwnedFd,
        new: &OwnedFd,
        path: &BStr,
        (mode, buffer): (u32, &mut Vec<u8>),
    ) -> Result<StatData> {
        let failed = |e: io::Error| Error::io("copy", git::os_str(path), e);
        let name = last(path);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = openat(old, name, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
        let was = fstat(&from).map_err(|e| failed(e.into()))?;
        let size = u64::try_from(was.st_size).unwrap_or(0);
        let to = self.create(new, path, mode)?;
        let (from, to) = (File::from(from), File::from(to));
        match self.by {
            _ if size == 0 => {}
            #[cfg(target_os = "linux")]
            By::Sharing => rustix::fs::ioctl_ficlone(&to, &from).map_err(|e| failed(e.into()))?,
            #[cfg(not(target_os = "linux"))]
            By::Sharing => return Err(failed(io::ErrorKind::Unsupported.into())),
            By::Copying => copy_sized(&from, &to, size, buffer).map_err(failed)?,
        }
        set_time(&to, time_in(&was))
            .and_then(|()| fstat(&to))
            .map(|stat| StatData::from(&stat))
            .map_err(|e| failed(e.into()))
    }

    /// Writes a file or link from the object database.
    fn write(
        &self,
        new: &OwnedFd,
        path: &BStr,
        entry: Entry,
        hand: &mut Hand<'_>,
    ) -> Result<StatData> {
        let repository = match hand.repository.get() {
            Some(repository) => repository,
            None => {
                let opened = hand.door.open()?;
                hand.repository.get_or_init(|| opened)
            }
        };
        let stored = repository.objects()?.blob_at(path, entry.id)?;
        let placed = |error: Errno| Error::not_placed(path, self.into, error);
        if entry.mode == LINK {
            let name = last(path);
            symlinkat(&stored[..], new, name).map_err(placed)?;
            if let Some(times) = self.times {
                utimensat(new, name, times, AtFlags::SYMLINK_NOFOLLOW).map_err(placed)?;
            }
            let stat = statat(new, name, AtFlags::SYMLINK_NOFOLLOW).map_err(placed)?;
            return Ok(StatData::from(&stat));
        }
        let mut file = File::from(self.create(new, path, entry.mode)?);
        let failed = |e: io::Error| Error::io("write", self.into.join(git::os_str(path)), e);
        io::Write::write_all(&mut file, &stored).map_err(failed)?;
        let time = self.users.and_then(|users| users.time_of(path, &stored));
        match (time, self.times) {
            (Some(time), _) => set_time(&file, time),
            (None, Some(times)) => futimens(&file, times),
            (None, None) => Ok(()),
        }
        .and_then(|()| fstat(&file))
        .map(|stat| StatData::from(&stat))
        .map_err(|e| failed(e.into()))
    }

    fn create(&self, folder: &OwnedFd, path: &BStr, mode: u32) -> Result<OwnedFd> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = if mode == EXECUTABLE { 0o777 } else { 0o666 };
        openat(folder, last(path), flags, Mode::from_raw_mode(bits))
            .map_err(|error| Error::not_placed(path, self.into, error))
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn copy_link(old: &OwnedFd, new: &OwnedFd, name: &[u8]) -> Result<StatData, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let was = statat(old, name, flags)?;
    symlinkat(readlinkat(old, name, Vec::new())?, new, name)?;
    utimensat(new, name, &times_of(time_in(&was)), flags)?;
    Ok(StatData::from(&statat(new, name, flags)?))
}

fn parent(path: &BString) -> &BStr {
    path.rsplit_once_str("/")
        .map_or(BStr::new(""), |(folder, _)| folder.as_bstr())
}

fn last(path: &BStr) -> &[u8] {
    path.rsplit_once_str("/")
        .map_or(path.as_bytes(), |(_, name)| name)
}
