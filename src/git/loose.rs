//! The files of refs, looked at and never written: damage that a listing leaves out, lock files, and
//! the reflog.
//!
//! git and libgit2 leave a ref file that makes no sense out of their listings, so nobody would learn
//! that a workspace is gone. On a reftable there are no such files, and nothing is found.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bstr::{BString, ByteSlice};

use super::{Error, ObjectId, Refs, Repository, Result};

/// What a file below `refs/` holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LooseState {
    /// An object id.
    Id(ObjectId),
    /// `ref: <another>`.
    Symbolic,
    /// Git's lock on the ref of the same name without `.lock`.
    Lock,
    /// Nothing that git would read as a ref, in words.
    Damaged(String),
}

/// A file below `refs/`.
#[derive(Clone, Debug)]
pub struct LooseRef {
    /// The ref's full name; of a lock, the name with `.lock`.
    pub name: BString,
    /// The file.
    pub path: PathBuf,
    /// When it was last modified.
    pub modified: Option<SystemTime>,
    /// What it holds.
    pub state: LooseState,
}

/// One step in a ref's history.
#[derive(Clone, Debug)]
pub struct LogEntry {
    /// What the ref held after it.
    pub new: ObjectId,
    /// Its message.
    pub message: BString,
}

impl Refs<'_> {
    /// The files of the refs below `prefix` (which ends in a slash), damaged ones and locks included,
    /// by name. Empty on a reftable.
    ///
    /// # Errors
    /// [`Error::Io`] when a folder cannot be listed.
    pub fn files(&self, prefix: &str) -> Result<Vec<LooseRef>> {
        let mut found = Vec::new();
        if !self.repository().is_reftable() {
            let repository = self.repository();
            let below = prefix.trim_end_matches('/');
            walk(repository.common_dir(), below, &mut |name, path| {
                found.extend(one(repository, name, path));
            })?;
            found.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Ok(found)
    }

    /// What a ref has held, newest first, as far as its reflog tells; empty where there is none.
    pub fn log(&self, name: &str) -> Vec<LogEntry> {
        if self.repository().is_reftable() {
            return self.log_by_git(name);
        }
        let Ok(log) = self.repository().raw().reflog(name) else {
            return Vec::new();
        };
        log.iter()
            .map(|entry| LogEntry {
                new: entry.id_new(),
                message: entry.message_bytes().unwrap_or_default().into(),
            })
            .collect()
    }

    fn log_by_git(&self, name: &str) -> Vec<LogEntry> {
        let out = self
            .repository()
            .git()
            .args(["log", "-g", "--format=%H %gs", name, "--"])
            .output()
            .unwrap_or_default();
        out.lines()
            .filter_map(|line| {
                let (id, message) = line.split_once_str(" ")?;
                Some(LogEntry {
                    new: ObjectId::from_str_ext(id.to_str().ok()?, self.repository().format())
                        .ok()?,
                    message: message.into(),
                })
            })
            .collect()
    }

    /// Takes a ref that git cannot read out of git's way: the file goes to
    /// `<common-dir>/relo/damaged/`, with its reflog, and the new place of the file is returned.
    /// `None` where git itself could delete the ref.
    ///
    /// # Errors
    /// [`Error::Locked`] when somebody holds the ref, [`Error::Io`].
    pub fn set_aside(&self, name: &str) -> Result<Option<PathBuf>> {
        let root = self.repository().common_dir();
        let file = root.join(name);
        let deleted = self
            .repository()
            .git()
            .args(["update-ref", "--no-deref", "-d", name])
            .run()?;
        if deleted.success() && fs::symlink_metadata(&file).is_err() {
            return Ok(None);
        }
        let lock = root.join(format!("{name}.lock"));
        let made = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&lock);
        if let Err(error) = made {
            return Err(match error.kind() {
                std::io::ErrorKind::AlreadyExists => Error::Locked { path: lock },
                _ => Error::io("create", lock, error),
            });
        }
        let moved = self.move_away(name, &file);
        let _ = fs::remove_file(&lock);
        moved.map(Some)
    }

    fn move_away(&self, name: &str, file: &Path) -> Result<PathBuf> {
        let folder = self.repository().relo_dir().join("damaged");
        fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
        // A name has no `%` in what we make of it, so it can be told back.
        let flat = name.replace('%', "%25").replace('/', "%2f");
        let free = (0..)
            .map(|n| match n {
                0 => folder.join(&flat),
                n => folder.join(format!("{flat}.{n}")),
            })
            .find(|path| fs::symlink_metadata(path).is_err())
            .expect("invariant: the numbers do not end");
        let log = self.repository().common_dir().join("logs").join(name);
        let mut beside = free.clone().into_os_string();
        beside.push(".log");
        let _ = fs::rename(log, beside);
        fs::rename(file, &free).map_err(|e| Error::io("move", file, e))?;
        for folder in file.parent().into_iter().chain([folder.as_path()]) {
            let _ = Repository::flush_dir(folder);
        }
        Ok(free)
    }
}

/// Goes through the files below a folder of refs, each with its full name.
pub(super) fn walk(root: &Path, below: &str, each: &mut dyn FnMut(BString, PathBuf)) -> Result<()> {
    let folder = root.join(below);
    let listing = match fs::read_dir(&folder) {
        Ok(listing) => listing,
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            return Ok(());
        }
        Err(error) => return Err(Error::io("list", folder, error)),
    };
    let mut folders = vec![(BString::from(below), listing)];
    while let Some((prefix, listing)) = folders.pop() {
        for entry in listing {
            let entry = entry.map_err(|e| Error::io("list", &folder, e))?;
            let mut name = prefix.clone();
            name.push(b'/');
            name.extend_from_slice(std::os::unix::ffi::OsStrExt::as_bytes(
                entry.file_name().as_os_str(),
            ));
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => {
                    match fs::read_dir(&path) {
                        Ok(inner) => folders.push((name, inner)),
                        // Emptied folders come and go beside us.
                        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                        Err(error) => return Err(Error::io("list", path, error)),
                    }
                }
                Ok(_) => each(name, path),
                Err(_) => {}
            }
        }
    }
    Ok(())
}

/// Looks at one file; `None` where it is gone by now.
fn one(repository: &Repository, name: BString, path: PathBuf) -> Option<LooseRef> {
    let meta = fs::symlink_metadata(&path).ok()?;
    let state = if name.ends_with(b".lock") {
        LooseState::Lock
    } else if meta.is_symlink() {
        LooseState::Symbolic
    } else if !meta.is_file() {
        LooseState::Damaged("not a file".to_owned())
    } else {
        let mut text = Vec::new();
        match fs::File::open(&path).and_then(|file| file.take(4096).read_to_end(&mut text)) {
            Ok(_) => content(&text, repository),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => LooseState::Damaged(format!("unreadable: {error}")),
        }
    };
    Some(LooseRef {
        name,
        path,
        modified: meta.modified().ok(),
        state,
    })
}

fn content(text: &[u8], repository: &Repository) -> LooseState {
    if text.is_empty() {
        return LooseState::Damaged("an empty file".to_owned());
    }
    if text.starts_with(b"ref:") {
        return LooseState::Symbolic;
    }
    let digits = super::hex_len(repository.format());
    let id = text
        .get(..digits)
        .filter(|_| text.get(digits).is_none_or(u8::is_ascii_whitespace))
        .and_then(|id| id.to_str().ok())
        .and_then(|id| ObjectId::from_str_ext(id, repository.format()).ok());
    match id {
        Some(id) if !id.is_zero() => LooseState::Id(id),
        _ => LooseState::Damaged("no object id".to_owned()),
    }
}
