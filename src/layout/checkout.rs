//! The `checkout` back end: files written in parallel, which works everywhere.
//!
//! Where a near template lies ready, it is [copied](super::copied).
//!
//! Otherwise files come straight from the object database. Several threads share one list of folders. Whoever takes a folder makes it, reads its tree,
//! writes its files through the folder's handle (create, write, two calls for the times, close) and
//! adds its folders to the list. No path is ever resolved, so the depth of the place does not
//! matter and no link can lead out.
//!
//! All files written so get the same time, a little before the layout: nothing is newer than anything else,
//! and no entry of the index is racy (see [`crate::git::index`]).
//!
//! A tree that needs git's filters is left to [`super::filtered`], once its `.gitattributes` is met.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, Timestamps, fstat, futimens, mkdirat, openat, statat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::backend::{Backend, Fit, Ground, Job, LAYING_OUT};
use super::legal::check;
use super::queue::{Queue, threads};
use super::{Error, Result, Stats, copied, filtered};
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index};
use crate::git::tree::{self, Entry, TreeSource};
use crate::git::{Door, ObjectFormat, ObjectId, Objects, Repository};
use crate::model::Work;

/// So many files of one folder are one piece of work.
const CHUNK: usize = 128;
/// How long before the layout the files' times lie, in seconds: git counts whole ones.
const BEFORE: i64 = 2;

/// The back end.
pub(super) struct Checkout;

impl Backend for Checkout {
    fn name(&self) -> &'static str {
        "checkout"
    }

    fn fits(&self, _: &Ground<'_, '_>) -> Result<Fit> {
        Ok(Ok("it works everywhere".to_owned()))
    }

    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats> {
        if filtered::set_everywhere(job.repository)? {
            return filtered::lay_out(job);
        }
        if let Some(stats) = copied::lay_out(job)? {
            return Ok(stats);
        }
        match write_all(job)? {
            Some(stats) => Ok(stats),
            None => {
                super::removal::refill(job.into)?;
                filtered::lay_out(job)
            }
        }
    }
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);

/// The times that the files of a layout in `folder` get.
pub(super) fn times(folder: &OwnedFd) -> Result<Timestamps, Errno> {
    // The file system's own clock, by the folder that was just made.
    let made = fstat(folder)?.st_mtime;
    let time = Timespec {
        tv_sec: made - BEFORE,
        tv_nsec: 0,
    };
    Ok(Timestamps {
        last_access: time,
        last_modification: time,
    })
}

/// Writes everything; `None` when the tree turned out to need git.
fn write_all(job: &Job<'_, '_>) -> Result<Option<Stats>> {
    let failed = |error: Errno| Error::io("open", job.into, error);
    let top = rustix::fs::open(job.into, FOLDER, Mode::empty()).map_err(failed)?;
    let work = Work::start(job.repository.progress(), LAYING_OUT, None);
    let layout = Layout {
        work: &work,
        door: job.repository.door(),
        into: job.into,
        format: job.repository.format(),
        links: job.repository.config()?.bool("core.symlinks")? != Some(false),
        times: times(&top).map_err(failed)?,
        queue: Queue::new(Task::Folder {
            parent: Arc::new(top),
            path: BString::default(),
            id: job.tree,
        }),
        git: AtomicBool::new(false),
        look_first: job.repository.is_partial(),
        failure: Mutex::new(None),
    };
    let threads = threads();
    let mut made = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads)
            .map(|_| scope.spawn(|| layout.work_apart()))
            .collect();
        let mut made = layout.work(job.repository);
        for other in others {
            match other.join() {
                Ok(more) => made.append(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    });
    let failure = layout.failure.into_inner();
    if let Some(error) = failure.unwrap_or_else(PoisonError::into_inner) {
        return Err(error);
    }
    if layout.git.into_inner() {
        return Ok(None);
    }
    made.entries.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    let index = job.admin.join("index");
    write_index(&index, layout.format, &made.entries, Some(&made.trees))?;
    Ok(Some(Stats {
        threads,
        ..made.stats
    }))
}

/// A piece of work.
enum Task {
    /// Make this folder (the top is there already) and look into its tree.
    Folder {
        parent: Arc<OwnedFd>,
        path: BString,
        id: ObjectId,
    },
    /// Write these files of a folder.
    Files {
        folder: Arc<OwnedFd>,
        path: BString,
        files: Vec<(BString, Entry)>,
    },
}

/// What one thread has made.
#[derive(Default)]
struct Made {
    entries: Vec<IndexEntry>,
    trees: TreeCache,
    stats: Stats,
}

impl Made {
    fn append(&mut self, mut other: Made) {
        self.entries.append(&mut other.entries);
        self.trees.append(other.trees);
        self.stats.files += other.stats.files;
        self.stats.bytes += other.stats.bytes;
    }
}

struct Layout<'a> {
    work: &'a Work<'a>,
    /// For the threads; an open repository belongs to one.
    door: Door,
    into: &'a Path,
    format: ObjectFormat,
    links: bool,
    times: Timestamps,
    queue: Queue<Task>,
    /// Set when git must do it: a file of attributes asks for its filters, or objects are missing.
    git: AtomicBool,
    /// Whether a blob may be missing: git shall fetch all such at once then.
    look_first: bool,
    failure: Mutex<Option<Error>>,
}

impl Layout<'_> {
    /// One thread's share, with a repository of its own.
    fn work_apart(&self) -> Made {
        match self.door.open() {
            Ok(repository) => self.work(&repository),
            Err(error) => {
                self.fail(error.into());
                Made::default()
            }
        }
    }

    fn work(&self, repository: &Repository) -> Made {
        let mut made = Made::default();
        let objects = match repository.objects() {
            Ok(objects) => objects,
            Err(error) => {
                self.fail(error.into());
                return made;
            }
        };
        self.queue.work(|task| {
            let done = match task {
                Task::Folder { parent, path, id } => {
                    self.folder(&objects, &mut made, (parent, path, id))
                }
                Task::Files {
                    folder,
                    path,
                    files,
                } => files.into_iter().try_for_each(|(name, entry)| {
                    self.file(&objects, &mut made, &folder, (&path, &name, entry))
                }),
            };
            if let Err(error) = done {
                self.fail(error);
            }
        });
        made
    }

    fn fail(&self, error: Error) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error);
        self.queue.stop();
    }

    fn leave_to_git(&self) {
        self.git.store(true, Ordering::Relaxed);
        self.queue.stop();
    }

    /// Makes a folder, writes its first files and passes the rest on.
    fn folder(
        &self,
        objects: &Objects<'_>,
        made: &mut Made,
        (parent, path, id): (Arc<OwnedFd>, BString, ObjectId),
    ) -> Result<()> {
        let folder = if path.is_empty() {
            parent
        } else {
            Arc::new(self.make_folder(&parent, path.as_bstr())?)
        };
        made.trees.record(path.clone(), id);
        let data = match objects.read_tree(id) {
            Ok(Some(data)) => data,
            Ok(None) if id == tree::empty_tree(self.format) => return Ok(()),
            Ok(None) => return Err(tree::Error::Missing { id, path }.into()),
            Err(source) => return Err(tree::Error::Read { id, path, source }.into()),
        };
        let mut files = Vec::new();
        let mut folders = Vec::new();
        for entry in tree::entries(&data, self.format) {
            let entry = entry.map_err(|source| tree::Error::Malformed {
                id,
                path: path.clone(),
                source,
            })?;
            check(&join(&path, entry.name), entry.mode)?;
            if entry.is_tree() {
                folders.push(Task::Folder {
                    parent: Arc::clone(&folder),
                    path: join(&path, entry.name),
                    id: entry.id(),
                });
                continue;
            }
            if entry.name == ".gitattributes" && entry.entry().is_file() {
                let text = self.blob(objects, &join(&path, entry.name), entry.id())?;
                if filtered::mentioned_in(&text) {
                    self.leave_to_git();
                    return Ok(());
                }
            }
            files.push((entry.name.to_owned(), entry.entry()));
        }
        folders.reverse();
        self.queue.push(folders);
        let rest = files.split_off(files.len().min(CHUNK));
        self.queue.push(rest.chunks(CHUNK).map(|files| Task::Files {
            folder: Arc::clone(&folder),
            path: path.clone(),
            files: files.to_vec(),
        }));
        files
            .into_iter()
            .try_for_each(|(name, entry)| self.file(objects, made, &folder, (&path, &name, entry)))
    }

    fn make_folder(&self, parent: &OwnedFd, path: &BStr) -> Result<OwnedFd> {
        let name = path.rsplit_str("/").next().unwrap_or_default();
        mkdirat(parent, name, Mode::from_raw_mode(0o777))
            .and_then(|()| openat(parent, name, FOLDER, Mode::empty()))
            .map_err(|error| self.refused(path, error))
    }

    fn file(
        &self,
        objects: &Objects<'_>,
        made: &mut Made,
        folder: &OwnedFd,
        (path, name, entry): (&BString, &BString, Entry),
    ) -> Result<()> {
        let path = join(path, name.as_bstr());
        let name = name.as_slice();
        let stat = if entry.mode == tree::GITLINK {
            mkdirat(folder, name, Mode::from_raw_mode(0o777))
                .map_err(|error| self.refused(path.as_bstr(), error))?;
            StatData::default()
        } else {
            if self.look_first && !objects.exists(entry.id) {
                self.leave_to_git();
                return Ok(());
            }
            let bytes = self.blob(objects, &path, entry.id)?;
            made.stats.files += 1;
            made.stats.bytes += bytes.len() as u64;
            let written = if entry.mode == tree::LINK && self.links {
                self.write_link(folder, name, &bytes)
            } else {
                self.write_file(folder, name, &bytes, entry.mode)
            };
            written.map_err(|error| self.refused(path.as_bstr(), error))?
        };
        self.work.step(1);
        made.entries.push(IndexEntry {
            path,
            mode: entry.mode,
            id: entry.id,
            stat,
        });
        Ok(())
    }

    fn write_file(
        &self,
        folder: &OwnedFd,
        name: &[u8],
        mut bytes: &[u8],
        mode: u32,
    ) -> Result<StatData, Errno> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = if mode == tree::EXECUTABLE {
            0o777
        } else {
            0o666
        };
        let file = openat(folder, name, flags, Mode::from_raw_mode(mode))?;
        while !bytes.is_empty() {
            match rustix::io::write(&file, bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        futimens(&file, &self.times)?;
        Ok(StatData::from(&fstat(&file)?))
    }

    fn write_link(&self, folder: &OwnedFd, name: &[u8], text: &[u8]) -> Result<StatData, Errno> {
        symlinkat(text, folder, name)?;
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(folder, name, &self.times, flags)?;
        Ok(StatData::from(&statat(folder, name, flags)?))
    }

    fn blob(&self, objects: &Objects<'_>, path: &BString, id: ObjectId) -> Result<Vec<u8>> {
        objects.blob(id).map_err(|source| {
            Error::Tree(tree::Error::Blob {
                id,
                path: path.clone(),
                source: Box::new(source),
            })
        })
    }

    fn refused(&self, path: &BStr, error: Errno) -> Error {
        Error::not_placed(path, self.into, error)
    }
}

fn join(folder: &BString, name: &BStr) -> BString {
    let mut path = BString::from(Vec::with_capacity(folder.len() + name.len() + 1));
    if !folder.is_empty() {
        path.extend_from_slice(folder);
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
