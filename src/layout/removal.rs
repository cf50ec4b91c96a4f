//! Removing a directory: first a rename, which takes it away at once, then the deletion.
//!
//! The deletion goes by folder handles and never through a path: no link is followed and no mount
//! is entered, whatever somebody swaps in meanwhile. What a kill or a stubborn file leaves in
//! `.trash` is deleted the next time.

use std::fs;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, RenameFlags, fchmod, fstat, openat, renameat,
    renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use super::queue::{Queue, threads};
use super::{Error, Result};
use crate::git::fault;
use crate::model::{Progress, Silent, Work};

/// Where directories go to be deleted.
pub(super) const TRASH: &str = ".trash";
/// So many nested folders are held open at once; deeper ones are moved up first.
const DEPTH: usize = 48;
/// So many folders are emptied before other threads are called.
const ALONE: usize = 16;

/// A directory that has left its place and waits for its deletion.
#[must_use = "it takes up space until it is deleted"]
pub(super) struct Aside {
    trash: PathBuf,
    name: String,
}

/// Moves `path` into the trash of `root`, which must be on the same file system.
///
/// # Errors
/// [`Error::Io`]; the directory is in its place then.
pub(super) fn set_aside(root: &Path, path: &Path) -> Result<Aside> {
    let trash = root.join(TRASH);
    fs::create_dir_all(&trash).map_err(|e| Error::io("create", &trash, e))?;
    fault::point("removal-begun");
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = format!("{name}-{:016x}", random());
    let target = trash.join(&name);
    match renameat_with(CWD, path, CWD, &target, RenameFlags::NOREPLACE) {
        // The name is random: nothing is there that could be replaced.
        Err(Errno::INVAL | Errno::NOSYS) => renameat(CWD, path, CWD, &target),
        other => other,
    }
    .map_err(|e| Error::io("move away", path, e))?;
    fault::point("removal-aside");
    Ok(Aside { trash, name })
}

impl Aside {
    /// Deletes it; gives back where the rest is if something would not go.
    pub(super) fn delete(self) -> Option<PathBuf> {
        self.delete_telling(&Silent)
    }

    /// As [`Aside::delete`], and tells how far it is.
    pub(super) fn delete_telling(self, progress: &dyn Progress) -> Option<PathBuf> {
        let work = Work::start(progress, "Removing files", None);
        let failed = delete_telling(&self.trash, &self.name, &work).is_err();
        failed.then(|| self.trash.join(&self.name))
    }
}

/// A deletion that goes on while others work. Who lets go of it waits for its end.
#[derive(Debug)]
pub struct Clearance(Option<JoinHandle<()>>);

impl Clearance {
    /// Deletes what was set aside, and what earlier removals have left in the trash of these folders. What
    /// would not go is left to a later sweep.
    pub(super) fn begin(aside: Vec<Aside>, roots: Vec<PathBuf>) -> Self {
        let work = move || {
            for one in aside {
                one.delete();
            }
            for root in &roots {
                sweep(root);
            }
        };
        // Where there is no other thread to be had, the next sweep does it.
        Clearance(std::thread::Builder::new().spawn(work).ok())
    }
}

impl Drop for Clearance {
    fn drop(&mut self) {
        if let Some(thread) = self.0.take() {
            let _ = thread.join();
        }
    }
}

/// Moves a directory away and deletes it; what would not go is left to a later sweep.
pub(super) fn discard(root: &Path, path: &Path) -> Result<()> {
    set_aside(root, path)?.delete();
    Ok(())
}

/// Empties a folder that nobody else knows of.
pub(super) fn refill(folder: &Path) -> Result<()> {
    let parent = folder.parent().unwrap_or(folder);
    // With it gone, somebody may find the folder around it empty, and remove that.
    delete(parent, folder.file_name().unwrap_or_default())
        .and_then(|()| despite_removals(|| fs::create_dir_all(folder)))
        .map_err(|error| Error::io("empty", folder, error))
}

/// Deletes what earlier removals left in the trash of `root`; gives back what would not go.
pub(super) fn sweep(root: &Path) -> Vec<PathBuf> {
    let trash = root.join(TRASH);
    // A link in its place leads to what is not ours.
    let is_folder = fs::symlink_metadata(&trash).is_ok_and(|meta| meta.is_dir());
    let Some(entries) = is_folder.then(|| fs::read_dir(&trash).ok()).flatten() else {
        return Vec::new();
    };
    let mut left = Vec::new();
    for entry in entries.flatten() {
        if delete(&trash, entry.file_name()).is_err() {
            left.push(entry.path());
        }
    }
    left
}

/// Deletes an entry of a folder, and all below it.
///
/// # Errors
/// The first failure; the rest is deleted nevertheless.
pub(super) fn delete(folder: &Path, name: impl AsRef<std::ffi::OsStr>) -> io::Result<()> {
    delete_telling(folder, name, &Work::start(&Silent, "", None))
}

fn delete_telling(
    folder: &Path,
    name: impl AsRef<std::ffi::OsStr>,
    work: &Work<'_>,
) -> io::Result<()> {
    let name = std::os::unix::ffi::OsStrExt::as_bytes(name.as_ref()).to_vec();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::open(folder, flags, Mode::empty())?;
    match unlinkat(&fd, &name[..], AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => return Ok(()),
        // Linux says `ISDIR`, others `PERM`.
        Err(_) => {}
    }
    let trash = Arc::new(Node {
        fd,
        name: Vec::new(),
        parent: None,
        pending: AtomicUsize::new(1),
    });
    let first = Task {
        parent: Arc::clone(&trash),
        name,
        depth: 0,
    };
    trash.pending.fetch_add(1, Ordering::Relaxed);
    let removal = Removal {
        queue: Queue::new(first),
        trash,
        failure: Mutex::new(None),
        work,
    };
    if removal.queue.work_alone(ALONE, |task| removal.step(task)) {
        std::thread::scope(|scope| {
            for _ in 1..threads() {
                scope.spawn(|| removal.queue.work(|task| removal.step(task)));
            }
            removal.queue.work(|task| removal.step(task));
        });
    }
    let failure = removal.failure.into_inner();
    match failure.unwrap_or_else(PoisonError::into_inner) {
        None => Ok(()),
        Some(error) => Err(error),
    }
}

/// A folder whose entries are being deleted.
struct Node {
    fd: OwnedFd,
    name: Vec<u8>,
    /// `None` for the folder around it all, which stays.
    parent: Option<Arc<Node>>,
    /// Folders in it that are not gone yet, and one while it is being read.
    pending: AtomicUsize,
}

/// A folder to delete.
struct Task {
    parent: Arc<Node>,
    name: Vec<u8>,
    depth: usize,
}

struct Removal<'w> {
    work: &'w Work<'w>,
    queue: Queue<Task>,
    trash: Arc<Node>,
    failure: Mutex<Option<io::Error>>,
}

impl Removal<'_> {
    fn step(&self, task: Task) {
        let fd = match open_folder(&task.parent.fd, &task.name) {
            Ok(fd) => fd,
            Err(error) => {
                self.note(error);
                self.leave(task.parent);
                return;
            }
        };
        #[cfg(target_os = "linux")]
        if super::sys::subvolume_of(&fd).is_some()
            && super::sys::destroy_subvolume(&task.parent.fd, &task.name).is_ok()
        {
            // Where its owner may not do that, or another one is in it, it is emptied like a folder.
            self.leave(task.parent);
            return;
        }
        let node = Arc::new(Node {
            fd,
            name: task.name,
            parent: Some(task.parent),
            pending: AtomicUsize::new(1),
        });
        match self.empty(&node, task.depth) {
            Ok(folders) => self.queue.push(folders),
            Err(error) => self.note(error),
        }
        self.leave(node);
    }

    /// Deletes what is no folder, and gives back the folders.
    fn empty(&self, node: &Arc<Node>, depth: usize) -> Result<Vec<Task>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(&node.fd)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push((name.to_vec(), entry.file_type()));
            }
        }
        let mut folders = Vec::new();
        for (name, kind) in names {
            let is_folder = match kind {
                FileType::Directory => true,
                FileType::Unknown => {
                    let stat = statat(&node.fd, &name[..], AtFlags::SYMLINK_NOFOLLOW)?;
                    FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                }
                _ => false,
            };
            if !is_folder {
                match unlinkat(&node.fd, &name[..], AtFlags::empty()) {
                    Ok(()) | Err(Errno::NOENT) => self.work.step(1),
                    Err(error) => self.note(error),
                }
                continue;
            }
            folders.push(self.task(node, name, depth + 1));
        }
        Ok(folders)
    }

    /// A task for a folder in `node`; one that lies very deep is moved up first, so that the number
    /// of open handles stays bounded.
    fn task(&self, node: &Arc<Node>, name: Vec<u8>, depth: usize) -> Task {
        let mut task = Task {
            parent: Arc::clone(node),
            name,
            depth,
        };
        if depth > DEPTH {
            let up = format!("deep-{:016x}", random()).into_bytes();
            if renameat(&node.fd, &task.name[..], &self.trash.fd, &up[..]).is_ok() {
                task = Task {
                    parent: Arc::clone(&self.trash),
                    name: up,
                    depth: 0,
                };
            }
        }
        task.parent.pending.fetch_add(1, Ordering::Relaxed);
        task
    }

    /// Counts down what is left in a folder; the last one out removes it.
    fn leave(&self, mut node: Arc<Node>) {
        while node.pending.fetch_sub(1, Ordering::AcqRel) == 1 {
            let Some(parent) = node.parent.clone() else {
                return;
            };
            match unlinkat(&parent.fd, &node.name[..], AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => self.note(error),
            }
            node = parent;
        }
    }

    fn note(&self, error: Errno) {
        let mut first = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(error.into());
    }
}

/// Opens a folder to empty it: no link, no other mount. One that its owner has closed is opened up.
fn open_folder(parent: &OwnedFd, name: &[u8]) -> Result<OwnedFd, Errno> {
    let fd = match open_below(parent, name, OFlags::RDONLY) {
        #[cfg(target_os = "linux")]
        Err(Errno::ACCESS) => {
            // A handle that needs no permission, and the one way to change the mode through it.
            let handle = open_below(parent, name, OFlags::PATH)?;
            let raw = std::os::fd::AsRawFd::as_raw_fd(&handle);
            rustix::fs::chmod(format!("/proc/self/fd/{raw}"), Mode::RWXU)?;
            open_below(parent, name, OFlags::RDONLY)?
        }
        other => other?,
    };
    let mode = Mode::from_raw_mode(fstat(&fd)?.st_mode);
    if !mode.contains(Mode::RWXU) {
        fchmod(&fd, mode | Mode::RWXU)?;
    }
    Ok(fd)
}

fn open_below(parent: &OwnedFd, name: &[u8], how: OFlags) -> Result<OwnedFd, Errno> {
    let flags = how | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        match openat2(parent, name, flags, Mode::empty(), ResolveFlags::NO_XDEV) {
            // An old kernel, or a sandbox that does not know the call.
            Err(Errno::NOSYS | Errno::PERM | Errno::INVAL) => {}
            other => return other,
        }
    }
    let fd = openat(parent, name, flags, Mode::empty())?;
    if fstat(&fd)?.st_dev != fstat(parent)?.st_dev {
        return Err(Errno::XDEV);
    }
    Ok(fd)
}

/// Makes something in a folder that others remove whenever they find it empty.
pub(super) fn despite_removals(mut make: impl FnMut() -> io::Result<()>) -> io::Result<()> {
    const TRIES: usize = 20;
    let mut tries = 1;
    loop {
        match make() {
            Err(error) if error.kind() == ErrorKind::NotFound && tries < TRIES => tries += 1,
            other => return other,
        }
    }
}

/// A number that no other process makes at this moment.
pub(super) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Whether something stands at `path`, a dangling link included.
pub(super) fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(Error::io("look at", path, error)),
    }
}

#[cfg(test)]
mod tests;
