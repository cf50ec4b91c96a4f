//! The user's working tree as a plan sees it: what is on disk, and over it what the plan has put there.
//!
//! A file is read once, through directory handles, no link followed. What one change puts at a path
//! is what the next change of the same path finds, so that the work of many agents on one file is
//! planned before anything is written.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, Dir, FileType, statat};

use super::Result;
use super::journal::OnDisk;
use super::plan::Content;
use crate::disk::{self, Unread};
use crate::git::tree::{EXECUTABLE, GITLINK, LINK, REGULAR};
use crate::git::{self, PlainFolders, Repository};
use crate::model::Refusal;
use crate::workspace::{self, Store};

/// What stands at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum There {
    /// This, as git would store it; or nothing.
    Version(Option<Content>),
    /// A folder.
    Folder,
    /// Something that no change may touch.
    Blocked(Refusal),
}

/// A path that the plan has looked at.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// What is on disk, byte for byte.
    pub(super) disk: Option<OnDisk>,
    /// All permission bits of a file there.
    pub(super) permissions: Option<u32>,
    /// What stands there after the changes planned so far.
    pub(super) now: There,
}

/// The user's tree under a plan.
pub(super) struct View<'r> {
    repository: &'r Repository,
    top: PathBuf,
    executable_bit: bool,
    links: bool,
    limit: u64,
    unmerged: HashSet<BString>,
    sparse: Option<HashSet<BString>>,
    seen: HashMap<BString, Seen>,
    /// What attribute files say of files, as far as a look at them tells.
    attributes: PlainFolders<'r>,
}

impl<'r> View<'r> {
    pub(super) fn new(store: &Store<'r>) -> Result<Self> {
        let repository = store.repository();
        let config = repository.config()?;
        Ok(View {
            repository,
            top: repository.require_work_dir()?.to_owned(),
            executable_bit: config.bool("core.filemode")?.unwrap_or(true),
            links: config.bool("core.symlinks")?.unwrap_or(true),
            limit: workspace::max_file_size(repository)?,
            unmerged: repository.unmerged_paths()?.into_iter().collect(),
            sparse: None,
            seen: HashMap::new(),
            attributes: PlainFolders::new(repository),
        })
    }

    /// Whether the user's index holds unmerged stages of the path.
    pub(super) fn is_unmerged(&self, path: &BStr) -> bool {
        self.unmerged.contains(path)
    }

    /// Whether a sparse checkout keeps the path out of the working tree.
    pub(super) fn is_sparse(&mut self, path: &BStr) -> Result<bool> {
        if self.sparse.is_none() {
            self.sparse = Some(self.repository.sparse_paths()?.into_iter().collect());
        }
        Ok(self
            .sparse
            .as_ref()
            .is_some_and(|paths| paths.contains(path)))
    }

    /// What stands at a path. `likely` is what the agent started from: where the disk cannot tell
    /// (no execute bit, a submodule that is not checked out), it is taken to be unchanged.
    pub(super) fn look(&mut self, path: &BStr, likely: Option<&Content>) -> Result<There> {
        if let Some(seen) = self.seen.get(path) {
            return Ok(match &seen.now {
                There::Folder if self.is_cleared(path)? => There::Version(None),
                now => now.clone(),
            });
        }
        let Seen {
            disk,
            permissions,
            now,
        } = self.read(path, likely)?;
        let shown = match &now {
            There::Folder if self.is_cleared(path)? => There::Version(None),
            now => now.clone(),
        };
        // What blocks the way may be gone when this is asked again.
        if !matches!(now, There::Blocked(_)) {
            let seen = Seen {
                disk,
                permissions,
                now,
            };
            self.seen.insert(path.to_owned(), seen);
        }
        Ok(shown)
    }

    /// What the plan knows of a path that it has looked at.
    pub(super) fn seen(&self, path: &BStr) -> Option<&Seen> {
        self.seen.get(path)
    }

    /// Puts something at a path, and gives what was there for [`View::put_back`].
    pub(super) fn put(&mut self, path: &BStr, content: Option<Content>) -> There {
        let seen = self.seen.entry(path.to_owned()).or_insert(Seen {
            disk: None,
            permissions: None,
            now: There::Version(None),
        });
        std::mem::replace(&mut seen.now, There::Version(content))
    }

    /// Forgets what was looked at and what was put.
    pub(super) fn forget(&mut self) {
        self.seen.clear();
    }

    /// Takes a [`View::put`] back.
    pub(super) fn put_back(&mut self, path: &BStr, there: There) {
        if let Some(seen) = self.seen.get_mut(path) {
            seen.now = there;
        }
    }

    /// What is on disk, as git would store it. Where the disk has no execute bit, a file has the
    /// one that is `likely`; where it has no links, a file is one if that is.
    pub(super) fn cleaned(
        &self,
        path: &BStr,
        disk: &OnDisk,
        likely: Option<&Content>,
    ) -> Result<Content> {
        if !self.links && disk.mode == REGULAR && likely.is_some_and(|likely| likely.mode == LINK) {
            return Ok(Content {
                mode: LINK,
                bytes: disk.bytes.clone(),
            });
        }
        let executable = likely.is_some_and(|likely| likely.mode == EXECUTABLE);
        let bytes = match disk.mode {
            LINK => disk.bytes.clone(),
            _ if self.attributes.is_plain(path)? => disk.bytes.clone(),
            _ => self.repository.clean(path, &disk.bytes)?.into_owned(),
        };
        let mode = match disk.mode {
            REGULAR if !self.executable_bit && executable => EXECUTABLE,
            mode => mode,
        };
        Ok(Content { mode, bytes })
    }

    /// What git would write to disk for a version of a path.
    pub(super) fn smudged(&self, path: &BStr, content: &Content) -> Result<OnDisk> {
        let bytes = match content.mode {
            LINK => content.bytes.clone(),
            _ => match self.planned_attributes(path) {
                Some(files) => self.repository.smudge_with(path, &content.bytes, &files)?,
                None if self.attributes.is_plain(path)? => content.bytes.clone(),
                None => self.repository.smudge(path, &content.bytes)?.into_owned(),
            },
        };
        let mode = match content.mode {
            EXECUTABLE if !self.executable_bit => REGULAR,
            LINK if !self.links => REGULAR,
            mode => mode,
        };
        Ok(OnDisk { mode, bytes })
    }

    /// The attribute files that will hold for a path, where the plan changes any of them: git too
    /// goes by those that a checkout brings. One that is removed is there without a rule in it.
    fn planned_attributes(&self, path: &BStr) -> Option<Vec<(BString, Vec<u8>)>> {
        const NAME: &str = ".gitattributes";
        let folders = path.find_iter("/").map(|slash| &path.as_bytes()[..=slash]);
        let name = |folder: &[u8]| BString::from([folder, NAME.as_bytes()].concat());
        let names: Vec<BString> = std::iter::once(&b""[..]).chain(folders).map(name).collect();
        let changed = |file: &BString| {
            let seen = self.seen.get(file)?;
            match &seen.now {
                There::Version(now) => {
                    let bytes = now.as_ref().map(|content| &content.bytes);
                    let before = seen.disk.as_ref().map(|disk| &disk.bytes);
                    // One that goes is as good as one without a rule.
                    (bytes != before).then(|| bytes.cloned().unwrap_or_default())
                }
                _ => None,
            }
        };
        let planned: Vec<Option<Vec<u8>>> = names.iter().map(changed).collect();
        if planned.iter().all(Option::is_none) {
            return None;
        }
        let mut files = Vec::new();
        for (file, planned) in names.into_iter().zip(planned) {
            let on_disk = || disk::read(&self.top, file.as_bstr(), self.limit).ok();
            if let Some(bytes) = planned.or_else(on_disk) {
                files.push((file, bytes));
            }
        }
        Some(files)
    }

    fn read(&self, path: &BStr, likely: Option<&Content>) -> Result<Seen> {
        let nothing = |now| Seen {
            disk: None,
            permissions: None,
            now,
        };
        let blocked = |kind| Ok(nothing(There::Blocked(kind)));
        if let Some(Err(kind)) = self.way_planned(path) {
            return blocked(kind);
        }
        let found = disk::state_within(&self.top, path, self.executable_bit, self.limit);
        let found = match found {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(nothing(There::Version(None))),
            Err(disk::Obstacle::Folder) => {
                return Ok(nothing(match likely {
                    Some(content) if content.mode == GITLINK => {
                        There::Version(Some(self.submodule(path, content)?))
                    }
                    _ => There::Folder,
                }));
            }
            Err(disk::Obstacle::Blocked) => {
                return match self.way_blocked(path) {
                    Some(kind) => blocked(kind),
                    None => Ok(nothing(There::Version(None))),
                };
            }
            Err(obstacle) => return blocked(obstacle.refusal()),
        };
        let permissions = (found.mode != LINK).then_some(found.permissions);
        let disk = OnDisk {
            mode: found.mode,
            bytes: found.bytes,
        };
        let content = self.cleaned(path, &disk, likely)?;
        Ok(Seen {
            disk: Some(disk),
            permissions,
            now: There::Version(Some(content)),
        })
    }

    fn submodule(&self, path: &BStr, likely: &Content) -> Result<Content> {
        let head = self.repository.submodule_head(path)?;
        Ok(match head {
            Some(id) => Content {
                mode: GITLINK,
                bytes: id.to_string().into_bytes(),
            },
            None => likely.clone(),
        })
    }

    /// What the plan has put on the way to a path: why no file can be there (`Err`), or that what is
    /// in the way is removed (`Ok`). `None` where the plan has nothing to say.
    fn way_planned(&self, path: &BStr) -> Option<Result<(), Refusal>> {
        for slash in path.find_iter("/") {
            let Some(seen) = self.seen.get(&path[..slash]) else {
                continue;
            };
            match &seen.now {
                // Removed: what is below it is new.
                There::Version(None) => return Some(Ok(())),
                There::Version(Some(content)) if content.mode == LINK => {
                    return Some(Err(Refusal::Escapes));
                }
                There::Version(Some(_)) => return Some(Err(Refusal::TypeChange)),
                There::Folder => {}
                There::Blocked(kind) => return Some(Err(*kind)),
            }
        }
        None
    }

    /// Why no file can be at a path: a link or a file stands where a folder above it must be, and
    /// the plan has not removed it.
    fn way_blocked(&self, path: &BStr) -> Option<Refusal> {
        if let Some(planned) = self.way_planned(path) {
            return planned.err();
        }
        for slash in path.find_iter("/") {
            match disk::stat(&self.top, path[..slash].as_bstr()) {
                Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                    FileType::Directory => {}
                    FileType::Symlink => return Some(Refusal::Escapes),
                    _ => return Some(Refusal::TypeChange),
                },
                Err(Unread::Gone) => return None,
                Err(_) => return Some(Refusal::Unreadable),
            }
        }
        None
    }

    /// Whether the plan removes everything in a folder, so that a file can take its place.
    fn is_cleared(&self, folder: &BStr) -> Result<bool> {
        let Ok((parent, name)) = disk::parent(&self.top, folder) else {
            return Ok(false);
        };
        let flags = rustix::fs::OFlags::RDONLY
            | rustix::fs::OFlags::DIRECTORY
            | rustix::fs::OFlags::NOFOLLOW
            | rustix::fs::OFlags::CLOEXEC;
        let none = rustix::fs::Mode::empty();
        let Ok(open) = rustix::fs::openat(&parent, name.as_bytes(), flags, none) else {
            return Ok(false);
        };
        let unreadable = |error: rustix::io::Errno| {
            let path = self.top.join(git::os_str(folder));
            git::Error::io("read", path, error.into())
        };
        for entry in Dir::read_from(&open).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." {
                continue;
            }
            let mut path = folder.to_owned();
            path.push(b'/');
            path.extend_from_slice(name);
            let gone = match self.seen.get(&path).map(|seen| &seen.now) {
                Some(There::Version(None)) => true,
                Some(There::Folder) | None => {
                    let stat = statat(&open, name, AtFlags::SYMLINK_NOFOLLOW);
                    stat.is_ok_and(|stat| {
                        FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                    }) && self.is_cleared(path.as_bstr())?
                }
                Some(_) => false,
            };
            if !gone {
                return Ok(false);
            }
        }
        Ok(true)
    }
}
