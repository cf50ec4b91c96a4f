//! An open directory: where it is, what it was cut from, and how it is known to be ours.
//!
//! Beside git's own files, the directory's git dir holds two of ours:
//!
//! - the *manifest* (`vws-manifest`): an index, byte for byte as the directory was laid out, with
//!   every file's stat data. Tools rewrite `index`; they do not know of this one, so a capture can
//!   tell from it what changed since;
//! - the *record* (`vws-directory`): one JSON object that says which back end made the directory, where it
//!   is, and from which revision.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use bstr::{BStr, ByteSlice};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Error, Result, parked};
use crate::disk::{self, Volume};
use crate::git::index::IndexFile;
use crate::git::{ObjectFormat, Repository, os_str};
use crate::model::{AgentId, RepoPath, json_path, path_from_json};
use crate::workspace::Workspace;

/// The format of the record that this version writes and the highest it reads.
const FORMAT: u64 = 1;
/// The record's name in the git dir of a directory.
const RECORD: &str = "vws-directory";
/// The folder of directories that are being laid out, one for each agent.
pub(super) const NEW: &str = ".new";
/// How the names of folders begin in which a capture has git store files.
pub(super) const CLEANING: &str = "vws-clean-";
/// How the names of folders begin in which a capture shows git the rules of a directory.
pub(super) const RULES: &str = "vws-rules-";
/// How the names of files begin that are about to take another's place.
pub(super) const TEMPORARY: &str = ".vws-new-";
/// The manifest's name there.
pub(super) const MANIFEST: &str = "vws-manifest";

/// What it took to lay a directory out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Stats {
    /// Files and links written.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How many threads wrote them.
    pub threads: usize,
}

/// An open directory.
#[derive(Clone, Debug)]
pub struct Directory {
    /// Whose it is.
    pub agent: AgentId,
    /// The directory.
    pub path: PathBuf,
    /// Its own git dir.
    pub admin: PathBuf,
    /// The revision that it was cut from; a capture compares with this, never with `HEAD`.
    pub cut: Workspace,
    /// The back end that made it.
    pub backend: String,
    /// Whether it is mounted in its place, for all to see, or was when the machine went down.
    pub mounted: bool,
    /// Why that one.
    pub reason: String,
    /// Which cheaper back end failed in this call and why, where that is to be told.
    pub fallback: Option<String>,
    /// The files and folders that were laid out; empty: all.
    pub only: Vec<RepoPath>,
    /// Whether this call laid it out; otherwise it was open already.
    pub fresh: bool,
    /// Where an earlier directory of the workspace was that had vanished before this call.
    pub replaced: Option<PathBuf>,
    /// What laying it out took.
    pub stats: Stats,
}

impl Directory {
    /// The index as the directory was laid out, with every file's stat data.
    ///
    /// # Errors
    /// [`Error::Index`] when it is gone or damaged.
    pub fn manifest(&self, format: ObjectFormat) -> Result<IndexFile> {
        Ok(IndexFile::open(&self.manifest_path(), format)?)
    }

    /// Where its changed files are to be seen when no command runs: the directory itself, or of an
    /// overlay that nobody sees the folder above.
    pub fn files(&self, repository: &Repository) -> PathBuf {
        if self.backend == parked::OVERLAY && !self.mounted {
            parked::root(repository, &self.agent).join("files")
        } else {
            self.path.clone()
        }
    }

    /// Where the manifest is.
    pub fn manifest_path(&self) -> PathBuf {
        self.admin.join(MANIFEST)
    }

    /// The directory's own index, which tools use and rewrite.
    pub fn index_path(&self) -> PathBuf {
        self.admin.join("index")
    }
}

/// The parts of an agent's directory, whether they exist or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// The folder that holds all directories.
    pub(super) root: PathBuf,
    /// The directory.
    pub(super) path: PathBuf,
    /// Its git dir.
    pub(super) admin: PathBuf,
}

impl Places {
    /// Where a new directory of `agent` goes: below `relo.workspace.root`, which is relative to the
    /// top of the working tree, else `<top>/.relo/worktrees`, in a bare repository
    /// `<common-dir>/relo/worktrees`.
    pub(super) fn new(repository: &Repository, agent: &AgentId) -> Result<Self> {
        let top = repository.work_dir();
        // Called from inside another agent's directory: the new one goes beside that, or it would
        // be removed with it.
        if let Some(root) = root_of_own(repository) {
            return Ok(Places {
                path: root.join(agent.as_str()),
                admin: admin(repository, agent),
                root,
            });
        }
        let set = repository.config()?.string("relo.workspace.root");
        let root = match (set.filter(|set| !set.is_empty()), top) {
            (Some(set), _) => {
                let from = top.unwrap_or(repository.common_dir());
                without_dots(&from.join(expand_home(&set, repository)))
            }
            (None, Some(top)) => top.join(".relo/worktrees"),
            (None, None) => repository.relo_dir().join("worktrees"),
        };
        Ok(Places {
            path: root.join(agent.as_str()),
            admin: admin(repository, agent),
            root,
        })
    }

    /// The places of a directory that exists at `path`, perhaps made from another working tree of
    /// the repository or under another `relo.workspace.root`.
    pub(super) fn at(repository: &Repository, agent: &AgentId, path: &Path) -> Self {
        Places {
            root: path.parent().unwrap_or(path).to_owned(),
            path: path.to_owned(),
            admin: admin(repository, agent),
        }
    }

    /// Where it is while it is being laid out.
    pub(super) fn unfinished(&self, agent: &AgentId) -> PathBuf {
        self.root.join(NEW).join(agent.as_str())
    }

    pub(super) fn record(&self) -> PathBuf {
        self.admin.join(RECORD)
    }

    pub(super) fn manifest(&self) -> PathBuf {
        self.admin.join(MANIFEST)
    }
}

/// The folder of directories, where the repository was opened from inside one of them.
fn root_of_own(repository: &Repository) -> Option<PathBuf> {
    let git_dir = repository.git_dir();
    if git_dir == repository.common_dir() {
        return None;
    }
    let bytes = fs::read(git_dir.join(RECORD)).ok()?;
    let stored: Stored = serde_json::from_slice(&bytes).ok()?;
    let path = PathBuf::from(os_str(path_from_json(&stored.path)?.as_bstr()));
    path.parent().map(Path::to_owned)
}

fn admin(repository: &Repository, agent: &AgentId) -> PathBuf {
    let name = format!("relo-{agent}");
    repository.common_dir().join("worktrees").join(name)
}

/// The path without `.` and `..`, as text: whether it lies in the working tree is told from it.
fn without_dots(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            part => clean.push(part),
        }
    }
    clean
}

fn expand_home(path: &str, repository: &Repository) -> PathBuf {
    match (
        path.strip_prefix("~/"),
        repository.environment().path("HOME"),
    ) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// The record of a directory that was laid out completely.
#[derive(Clone, Debug)]
pub(super) struct Record {
    pub(super) path: PathBuf,
    /// The directory's [`identity`]: what it is known by when its `.git` file is gone.
    pub(super) inode: u64,
    pub(super) commit: String,
    pub(super) backend: String,
    pub(super) mounted: bool,
    pub(super) reason: String,
    pub(super) only: Vec<RepoPath>,
    pub(super) stats: Stats,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    format: u64,
    agent: String,
    path: Value,
    inode: u64,
    commit: String,
    backend: String,
    #[serde(default)]
    mounted: bool,
    reason: String,
    #[serde(default)]
    only: Vec<Value>,
    #[serde(default)]
    stats: Stats,
}

impl Record {
    /// Reads the record at `file`; `None` where there is none.
    pub(super) fn read(file: &Path, agent: &AgentId) -> Result<Option<Self>> {
        let bytes = match fs::read(file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", file, error)),
        };
        let wrong = |why: String| Error::NotOurs {
            agent: agent.clone(),
            path: file.to_owned(),
            why,
        };
        let stored: Stored = serde_json::from_slice(&bytes).map_err(|e| wrong(e.to_string()))?;
        if stored.format > FORMAT {
            let why = format!("format {} is newer than {FORMAT}", stored.format);
            return Err(wrong(why));
        }
        if stored.agent != agent.as_str() {
            return Err(wrong(format!("it names agent '{}'", stored.agent)));
        }
        let path = path_from_json(&stored.path).ok_or_else(|| wrong("it has no path".into()))?;
        let only = stored.only.iter().map(|one| {
            let path = path_from_json(one).and_then(|path| RepoPath::new(path).ok());
            path.ok_or_else(|| wrong("it names a path that none can be".into()))
        });
        let only = only.collect::<Result<_>>()?;
        Ok(Some(Record {
            path: PathBuf::from(os_str(path.as_bstr())),
            inode: stored.inode,
            commit: stored.commit,
            backend: stored.backend,
            mounted: stored.mounted,
            reason: stored.reason,
            only,
            stats: stored.stats,
        }))
    }

    /// Writes the record, whole or not at all.
    pub(super) fn write(&self, file: &Path, agent: &AgentId, volume: Option<Volume>) -> Result<()> {
        let stored = Stored {
            format: FORMAT,
            agent: agent.to_string(),
            path: json_path(path_bytes(&self.path)),
            inode: self.inode,
            commit: self.commit.clone(),
            backend: self.backend.clone(),
            mounted: self.mounted,
            reason: self.reason.clone(),
            only: self
                .only
                .iter()
                .map(|path| json_path(path.as_bstr()))
                .collect(),
            stats: self.stats,
        };
        let mut bytes = serde_json::to_vec(&stored).expect("invariant: plain data");
        bytes.push(b'\n');
        replace_in_order(file, &bytes, volume)
    }
}

/// The number by which a folder is known while it exists: its inode number. Every btrfs subvolume has
/// the same one, and is known by its own number.
pub(super) fn identity(folder: &Path) -> std::io::Result<u64> {
    let inode = fs::symlink_metadata(folder)?.ino();
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{Mode, OFlags, open};
        // No inode number is that high.
        const SUBVOLUME: u64 = 1 << 62;
        if inode == super::sys::TOP {
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let number = super::sys::subvolume_of(open(folder, flags, Mode::empty())?);
            return Ok(number.map_or(inode, |number| number | SUBVOLUME));
        }
    }
    Ok(inode)
}

/// Puts a file in place at once and whole, in place of an older one.
pub(super) fn replace(file: &Path, bytes: &[u8]) -> Result<()> {
    put(file, bytes, |_| Ok(()))
}

/// As [`replace`], for a file that says what stands beside it: no power cut leaves its name and not its
/// content (see [`disk::put_before`]).
pub(super) fn replace_in_order(file: &Path, bytes: &[u8], volume: Option<Volume>) -> Result<()> {
    put(file, bytes, |new| Ok(disk::put_before(&[new], volume)?))
}

fn put(file: &Path, bytes: &[u8], settle: impl FnOnce(&fs::File) -> io::Result<()>) -> Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new()
        .prefix(TEMPORARY)
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| Error::io("create a file in", folder, error))?;
    std::io::Write::write_all(&mut new, bytes)
        .and_then(|()| settle(new.as_file()))
        .map_err(|error| Error::io("write", file, error))?;
    new.persist(file)
        .map_err(|error| Error::io("replace", file, error.error))?;
    Ok(())
}

/// The bytes of a path of the file system.
pub(super) fn path_bytes(path: &Path) -> &BStr {
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).as_bstr()
}
