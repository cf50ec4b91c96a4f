//! Laying a tree out beside a template of one that is near: what is the same is taken from the
//! template, the rest is written from the object database.
//!
//! Several threads share one list of folders, as in [`super::checkout`]: whoever takes some folders opens
//! the template's and the new ones, and works by their handles. For each file that is the same the
//! system is asked for no more than it must be: open, create, bytes (or their sharing), times, stat
//! data and two closes. Where the bytes of the small ones are [in one file](super::template::Frozen), that
//! one is read instead, many files at once, and nothing else of the template is opened. Nothing is
//! hashed; the stat data are what the index gets. Git rewrites no content of a tree of which there may
//! be a template.
//!
//! What the tree holds is taken from the template's index, and only what differs from the objects.

mod files;

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{Mode, OFlags, Timestamps, mkdirat, openat};
use rustix::io::Errno;

use self::files::{BATCH, Hand};
use super::backend::LAYING_OUT;
use super::put::Users;
use super::queue::{Queue, threads};
use super::template::{Frozen, Template};
use super::{Error, Result, Stats};
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index, write_index_like};
use crate::git::tree::{Change, GITLINK, LINK, Listing, listing, listing_beside};
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
        let format = self.repository.format();
        let objects = self.repository.objects()?;
        let theirs = self.template.index(format)?;
        let near = self.template.listing(&theirs);
        let is_same = near.is_some() && self.tree == self.template.tree();
        let listing = match near {
            Some(near) => listing_beside(&objects, self.tree, near)?,
            None => listing(&objects, self.tree)?,
        };
        let copied = self.by == By::Copying;
        let frozen = self.template.frozen(&theirs, &listing, copied);
        let total = listing.files.len() as u64;
        let told = model::Work::start(self.repository.progress(), LAYING_OUT, Some(total));
        let written = Work::new(self, &listing, &frozen, into, &told)?.run()?;
        drop(told);
        frozen.finish();
        let links = listing.files.iter().filter(|(_, e)| e.mode == GITLINK);
        let stats = Stats {
            files: (listing.files.len() - links.count()) as u64,
            bytes: written.iter().map(|stat| u64::from(stat.size)).sum(),
            threads: threads(),
        };
        if is_same {
            write_index_like(index, &theirs, &written)?;
            return Ok(stats);
        }
        let mut trees = TreeCache::new();
        for directory in &listing.directories {
            trees.record(directory.path.clone(), directory.id);
        }
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
        write_index(index, format, &entries, Some(&trees))?;
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
    /// `None` where the template has no such folder, and where little of it will be wanted.
    old: Option<OwnedFd>,
}

enum Task {
    /// What is in the top.
    Top(Arc<Pair>),
    /// Make these folders of a folder that is open.
    Folders(Arc<Pair>, usize, Range<usize>),
    /// Lay out these files of a folder that is open.
    Files(Arc<Pair>, usize, Range<usize>),
}

struct Work<'a> {
    told: &'a model::Work<'a>,
    by: By,
    users: Option<&'a Users>,
    times: Option<&'a Timestamps>,
    listing: &'a Listing,
    frozen: &'a Frozen,
    /// The template's top.
    theirs: OwnedFd,
    into: &'a Path,
    folders: Vec<Folder>,
    anew: HashSet<&'a BStr>,
    door: Door,
    queue: Queue<Task>,
    failure: Mutex<Option<Error>>,
}

impl<'a> Work<'a> {
    fn new(
        plan: &'a Plan<'a>,
        listing: &'a Listing,
        frozen: &'a Frozen,
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
        let anew: HashSet<&BStr> = plan.changes.iter().map(|one| one.path.as_bstr()).collect();
        for (at, (path, entry)) in listing.files.iter().enumerate() {
            // The paths of a template were looked at when it was made, but not what is a link.
            if entry.mode == LINK || anew.contains(path.as_bstr()) {
                super::legal::check(path, entry.mode)?;
            }
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
            frozen,
            theirs: open(&plan.template.files())?,
            into,
            folders,
            anew,
            door: plan.repository.door(),
            queue: Queue::new(Task::Top(Arc::new(top))),
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
        let mut hand = Hand::new(&self.door);
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
        let open = match task {
            Task::Top(top) => vec![(0, top)],
            Task::Folders(above, of, range) => {
                self.enter(&above, &self.folders[of].folders[range])?
            }
            Task::Files(pair, folder, range) => {
                let files = &self.folders[folder].files[range];
                let files: Vec<_> = files.iter().map(|at| (&*pair, *at)).collect();
                return self.files(&files, hand);
            }
        };
        let mut files = Vec::new();
        for (folder, pair) in &open {
            let groups = self.groups(*folder).into_iter().rev();
            self.queue
                .push(groups.map(|range| Task::Folders(Arc::clone(pair), *folder, range)));
            let all = &self.folders[*folder].files;
            self.queue
                .push((CHUNK..all.len()).step_by(CHUNK).map(|from| {
                    let range = from..all.len().min(from + CHUNK);
                    Task::Files(Arc::clone(pair), *folder, range)
                }));
            files.extend(all.iter().take(CHUNK).map(|at| (&**pair, *at)));
        }
        self.files(&files, hand)
    }

    /// The folders in a folder, parted so that each group has about a batch of files. One with folders
    /// in it ends its group: it stays open until they are done.
    fn groups(&self, folder: usize) -> Vec<Range<usize>> {
        let inner = &self.folders[folder].folders;
        let mut groups = Vec::new();
        let (mut from, mut files) = (0, 0);
        for (at, number) in inner.iter().enumerate() {
            let one = &self.folders[*number];
            files += one.files.len().max(1);
            if files >= BATCH || !one.folders.is_empty() || at + 1 == inner.len() {
                groups.push(from..at + 1);
                (from, files) = (at + 1, 0);
            }
        }
        groups
    }

    /// Makes folders in a folder, and opens them and the template's.
    fn enter(&self, above: &Pair, folders: &[usize]) -> Result<Vec<(usize, Arc<Pair>)>> {
        let path = |folder: usize| self.listing.directories[folder].path.as_bstr();
        for &folder in folders {
            let path = path(folder);
            mkdirat(&above.new, last(path), Mode::from_raw_mode(0o777))
                .map_err(|error| Error::not_placed(path, self.into, error))?;
        }
        let mut open = Vec::with_capacity(folders.len());
        for &folder in folders {
            let path = path(folder);
            let old = match &above.old {
                _ if self.frozen.is_ready() => None,
                None => None,
                // The template may have a file or a link there: nothing of it is wanted then.
                Some(old) => match openat(old, last(path), FOLDER, Mode::empty()) {
                    Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => None,
                    old => Some(old.map_err(|e| Error::io("open", git::os_str(path), e))?),
                },
            };
            let new = openat(&above.new, last(path), FOLDER, Mode::empty())
                .map_err(|error| Error::not_placed(path, self.into, error))?;
            open.push((folder, Arc::new(Pair { new, old })));
        }
        Ok(open)
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

fn parent(path: &BString) -> &BStr {
    path.rsplit_once_str("/")
        .map_or(BStr::new(""), |(folder, _)| folder.as_bstr())
}

fn last(path: &BStr) -> &[u8] {
    path.rsplit_once_str("/")
        .map_or(path.as_bytes(), |(_, name)| name)
}
