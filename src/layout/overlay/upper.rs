//! The folder above: made, filled with what differs from the template, and removed.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{Mode, OFlags, openat};
use rustix::io::Errno;

use super::marks;
use crate::git::tree::{Change, Entry, GITLINK, lookup};
use crate::git::{ObjectId, Repository, os_str};
use crate::layout::backend::LAYING_OUT;
use crate::layout::put::{Root, Users};
use crate::layout::template::Written;
use crate::layout::{Error, Result, filtered};
use crate::model::Work;

/// One workspace's part of an overlay: `files/` above, `work/` for the kernel, `lock`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upper {
    root: PathBuf,
}

impl Upper {
    /// Makes an empty one at `root`, which must not exist.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn create(root: &Path) -> Result<Self> {
        let upper = Upper {
            root: root.to_owned(),
        };
        for folder in [upper.files(), upper.work()] {
            fs::create_dir_all(&folder).map_err(|e| Error::io("create", folder, e))?;
        }
        Ok(upper)
    }

    /// The one at `root`, if it is there.
    pub fn open(root: &Path) -> Option<Self> {
        let upper = Upper {
            root: root.to_owned(),
        };
        upper.files().is_dir().then_some(upper)
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The folder above: every changed file, and nothing else.
    pub fn files(&self) -> PathBuf {
        self.root.join("files")
    }

    /// The kernel's own.
    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    /// Held while it is mounted.
    pub fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    /// Removes it.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
        remove(&self.root)
    }
}

/// Removes a folder with an overlay's parts in it. The kernel's own have no permissions at all, and a
/// command may have taken them from folders of its own.
pub(super) fn remove(root: &Path) -> Result<()> {
    let gone = |done: io::Result<()>| match done {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    };
    let done = gone(fs::remove_dir_all(root)).or_else(|_| {
        open_up(root);
        gone(fs::remove_dir_all(root))
    });
    done.map_err(|e| Error::io("remove", root, e))
}

/// Gives their owner all rights to a folder and those in it, as far as possible.
fn open_up(folder: &Path) {
    let is_folder = fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
    if is_folder && fs::set_permissions(folder, Permissions::from_mode(0o700)).is_ok() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            open_up(&entry.path());
        }
    }
}

/// Puts into the empty folder `files` what makes the template look like the tree `revision`:
/// `changes` is their difference. Files that equal those below `users` take their time of change. With
/// `by_git` git writes the files, for it rewrites their content.
///
/// # Errors
/// [`Error::Tree`], [`Error::Git`] for an object that is missing, or where a filter fails,
/// [`Error::Io`].
pub fn fill(
    (files, by_git): (&Path, bool),
    repository: &Repository,
    changes: &[Change],
    revision: ObjectId,
    users: Option<&Path>,
) -> Result<Vec<Written>> {
    let objects = repository.objects()?;
    let users = users.and_then(Users::open);
    let root = Root::open(files)?;
    let mut filler = Filler {
        root,
        folders: BTreeSet::new(),
    };
    let mut hidden = BTreeSet::new();
    for change in changes.iter().filter(|change| change.new.is_none()) {
        let path = gone_at(&change.path, |path| Ok(lookup(&objects, revision, path)?))?;
        match path {
            Gone::At(path) if hidden.insert(path.to_owned()) => filler.whiteout(path)?,
            Gone::Folder => filler.opaque(change.path.as_bstr())?,
            Gone::At(_) | Gone::Covered => {}
        }
    }
    let new = |change: &Change| Some((change.path.clone(), change.new?));
    let new: Vec<(BString, Entry)> = changes.iter().filter_map(new).collect();
    for (path, _) in &new {
        filler.parents(path.as_bstr())?;
    }
    let total = Some(new.len() as u64);
    let work = Work::start(repository.progress(), LAYING_OUT, total);
    if by_git {
        let is_file = |(_, entry): &&(BString, Entry)| entry.mode != GITLINK;
        let theirs: Vec<_> = new.iter().filter(is_file).cloned().collect();
        filtered::write_some(repository, revision, &theirs, files)?;
    }
    let mut written = Vec::new();
    for (path, entry) in new {
        work.step(1);
        let name = path.as_bstr();
        let put = match entry.mode {
            GITLINK => filler.root.put(name, entry.mode, &[], None)?,
            _ if by_git => filler.root.found(name, users.as_ref())?,
            _ => {
                let bytes = objects.blob_at(name, entry.id)?;
                filler.root.put(name, entry.mode, &bytes, users.as_ref())?
            }
        };
        written.push(Written {
            path,
            entry,
            stat: put.stat,
        });
    }
    Ok(written)
}

/// What hides a file of the template that the revision has not.
enum Gone<'p> {
    /// A whiteout here: of the file, or of the topmost folder that is gone with it.
    At(&'p BStr),
    /// A file or link of the revision stands where a folder was.
    Covered,
    /// A folder of the revision stands where the file was.
    Folder,
}

fn gone_at(path: &BString, find: impl Fn(&BStr) -> Result<Option<Entry>>) -> Result<Gone<'_>> {
    let slashes = path.find_iter("/").chain([path.len()]);
    for end in slashes {
        let at = path[..end].as_bstr();
        match find(at)? {
            None => return Ok(Gone::At(at)),
            Some(entry) if end == path.len() => {
                let folder = entry.is_tree();
                return Ok(if folder { Gone::Folder } else { Gone::Covered });
            }
            Some(entry) if !entry.is_tree() => return Ok(Gone::Covered),
            Some(_) => {}
        }
    }
    Ok(Gone::Covered)
}

struct Filler {
    root: Root,
    folders: BTreeSet<BString>,
}

impl Filler {
    /// Makes the folders that lead to a path.
    fn parents(&mut self, path: &BStr) -> Result<()> {
        for end in path.find_iter("/") {
            self.folder(path[..end].as_bstr())?;
        }
        Ok(())
    }

    fn folder(&mut self, path: &BStr) -> Result<()> {
        if !self.folders.contains(path) {
            self.root.folder(path)?;
            self.folders.insert(path.to_owned());
        }
        Ok(())
    }

    fn opened(&self, path: &BStr) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let path = if path.is_empty() {
            BStr::new(".")
        } else {
            path
        };
        openat(self.root.fd(), path.as_bytes(), flags, Mode::empty())
            .map_err(|e| Error::io("open", os_str(path), e))
    }

    fn whiteout(&mut self, path: &BStr) -> Result<()> {
        self.parents(path)?;
        let (folder, name) = path
            .rsplit_once_str("/")
            .map_or((BStr::new(""), path), |(f, n)| (f.as_bstr(), n.as_bstr()));
        let failed = |e: Errno| Error::io("hide", os_str(path), e);
        marks::set_whiteout(&self.opened(folder)?, name).map_err(failed)
    }

    fn opaque(&mut self, path: &BStr) -> Result<()> {
        self.parents(path)?;
        self.folder(path)?;
        marks::set_opaque(&self.opened(path)?).map_err(|e| Error::io("hide", os_str(path), e))
    }
}
