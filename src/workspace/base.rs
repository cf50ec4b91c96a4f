//! The user's working tree as a commit: what a workspace starts from.
//!
//! Git names every path that differs from `HEAD`; their bytes are read from disk and
//! grafted onto `HEAD`'s tree. What is recorded is then read and hashed once more; a difference
//! starts over, twice, and then fails: no agent starts from a tree that nobody saw. The user's
//! index is read, never written. Ignored files stay out, and so does `.relo/`, even where it is
//! tracked.
//!
//! Flags count as they do for git: a path marked `skip-worktree` or `assume-unchanged` has the
//! content that the index holds, whatever lies on disk.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::{Error, Result, Store};
use crate::disk;
use crate::git::tree::{self, Entry};
use crate::git::{NewCommit, ObjectId, ObjectKind, Repository, Staging, StatusEntry, StatusRun};
use crate::model::Refusal;

/// How often an unsteady working tree is recorded anew.
const TRIES: usize = 3;
/// More untracked files than this are taken for output that nobody meant (`relo.workspace.maxUntracked`).
const MAX_UNTRACKED: u64 = 2000;

/// A path that a record does not hold as it lies on disk, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The path.
    pub path: BString,
    /// The stable kind of the reason.
    pub kind: Refusal,
}

/// The recorded working tree.
#[derive(Clone, Debug)]
pub struct Base {
    /// The commit: `HEAD` itself where nothing differs from it.
    pub commit: ObjectId,
    /// Its tree.
    pub tree: ObjectId,
    /// The commit that `HEAD` names; `None` on an unborn branch.
    pub head: Option<ObjectId>,
    /// The branch that `HEAD` is on; `None` when detached.
    pub branch: Option<String>,
    /// Tracked paths that differ from `HEAD`.
    pub dirty: Vec<BString>,
    /// Untracked paths that it holds.
    pub untracked: Vec<BString>,
    /// Paths that it does not hold as they lie on disk.
    pub left_out: Vec<LeftOut>,
    /// How many untracked files were too many to hold; 0 where all are held.
    pub untracked_left_out: usize,
}

/// A look at the working tree under way: git is at it.
pub(super) struct Begun<'r> {
    /// The commit that `HEAD` named before.
    head: Option<ObjectId>,
    status: StatusRun<'r>,
}

/// What one look at the working tree found.
#[derive(Default)]
struct Look {
    edits: BTreeMap<BString, Option<Entry>>,
    /// Paths that were read from disk, and the id that their bytes have as they lie there; `None` where
    /// nothing was there. For the second reading.
    read: Vec<(BString, Option<ObjectId>)>,
    dirty: Vec<BString>,
    untracked: Vec<BString>,
    left_out: Vec<LeftOut>,
    untracked_left_out: usize,
    limit: u64,
    executable_bit: bool,
}

impl Look {
    fn leave_out(&mut self, path: BString, kind: Refusal) {
        self.left_out.push(LeftOut { path, kind });
    }
}

impl<'r> Store<'r> {
    /// Records the user's working tree as it is, staging the objects that it needs.
    ///
    /// The same tree on the same `HEAD` gives the same commit.
    ///
    /// # Errors
    /// [`Error::Unsteady`] when the tree would not hold still; failures of git, which are never
    /// taken for a clean tree.
    pub fn record_base(&self, staging: &mut Staging<'_>) -> Result<Base> {
        self.record_base_seen(staging, self.begin_look()?)
    }

    /// Begins a look at the user's working tree, for [`Store::record_base_seen`].
    pub(super) fn begin_look(&self) -> Result<Begun<'r>> {
        Ok(Begun {
            head: self.repository.head()?,
            status: self.repository.begin_status()?,
        })
    }

    /// As [`Store::record_base`], with a look that was begun a moment ago.
    pub(super) fn record_base_seen(
        &self,
        staging: &mut Staging<'_>,
        begun: Begun<'r>,
    ) -> Result<Base> {
        let mut changed = BString::default();
        let mut begun = Some(begun);
        for _ in 0..TRIES {
            let Begun { head, status } = match begun.take() {
                Some(begun) => begun,
                None => self.begin_look()?,
            };
            let root = match head {
                Some(head) => staging.objects().commit(head)?.tree,
                None => self.repository.empty_tree()?,
            };
            let mut look = self.look(staging, status)?;
            match self.read_again(&look)? {
                Some(path) => changed = path,
                None if self.repository.head()? != head => changed = "HEAD".into(),
                None => {
                    // Tracked or not, our own folder is no part of anybody's base.
                    look.edits.insert(".relo".into(), None);
                    return self.graft(staging, head, root, look);
                }
            }
        }
        Err(Error::Unsteady {
            what: format!("'{changed}' differed between two readings"),
        })
    }

    fn look(&self, staging: &mut Staging<'_>, status: StatusRun<'_>) -> Result<Look> {
        let repository = self.repository;
        let config = repository.config()?;
        let most = config.size("relo.workspace.maxuntracked")?;
        let mut entries = status.finish(is_ours)?;
        let is_untracked = |entry: &StatusEntry| matches!(entry, StatusEntry::Untracked { .. });
        let untracked = entries.iter().filter(|entry| is_untracked(entry)).count();
        let mut look = Look {
            limit: super::max_file_size(repository)?,
            executable_bit: config.bool("core.filemode")?.unwrap_or(true),
            ..Look::default()
        };
        if untracked as u64 > most.unwrap_or(MAX_UNTRACKED) {
            look.untracked_left_out = untracked;
            entries.retain(|entry| !is_untracked(entry));
        }
        for entry in entries {
            self.look_at(staging, &mut look, entry)?;
        }
        Ok(look)
    }

    fn look_at(
        &self,
        staging: &mut Staging<'_>,
        look: &mut Look,
        entry: StatusEntry,
    ) -> Result<()> {
        match entry {
            StatusEntry::Nested { path } => look.leave_out(path, Refusal::NestedRepository),
            StatusEntry::Untracked { path } => {
                let top = self.repository.require_work_dir()?;
                let mode = disk::mode(top, path.as_bstr(), look.executable_bit);
                look.untracked.push(path.clone());
                self.take(staging, look, path, (mode, None))?;
            }
            StatusEntry::Unmerged { path, disk } => {
                look.dirty.push(path.clone());
                self.take(staging, look, path, (disk, None))?;
            }
            StatusEntry::Tracked {
                path,
                index,
                disk,
                edited: true,
            } => {
                look.dirty.push(path.clone());
                self.take(staging, look, path, (disk, index))?;
            }
            StatusEntry::Tracked { path, index, .. } => {
                // Staged and not edited since: the index names the content. It may be reachable
                // from the user's index alone, so a copy travels in our pack.
                if let Some(index) = index.filter(|index| index.mode != tree::GITLINK) {
                    staging.copy(index.id, ObjectKind::Blob)?;
                }
                look.dirty.push(path.clone());
                look.edits.insert(path, index);
            }
        }
        Ok(())
    }

    /// Takes one path as it lies on disk with the mode that git sees there, or what the index
    /// holds instead where that cannot be.
    fn take(
        &self,
        staging: &mut Staging<'_>,
        look: &mut Look,
        path: BString,
        (mode, instead): (Option<u32>, Option<Entry>),
    ) -> Result<()> {
        let Some(mode) = mode else {
            look.edits.insert(path, None);
            return Ok(());
        };
        let top = self.repository.require_work_dir()?;
        if mode == tree::GITLINK {
            let head = self.repository.submodule_head(path.as_bstr())?;
            let id = head.or(instead.map(|entry| entry.id));
            look.edits.insert(path, id.map(|id| Entry { mode, id }));
            return Ok(());
        }
        let kind = match disk::read(top, path.as_bstr(), look.limit) {
            Ok(bytes) => {
                let stored = self.stored(path.as_bstr(), mode, &bytes)?;
                let id = staging.add(ObjectKind::Blob, &stored)?;
                let raw = match stored {
                    Cow::Borrowed(_) => id,
                    Cow::Owned(_) => self.repository.hash_blob(&bytes)?,
                };
                look.edits.insert(path.clone(), Some(Entry { mode, id }));
                look.read.push((path, Some(raw)));
                return Ok(());
            }
            Err(disk::Unread::Gone) => {
                // Seen by git a moment ago: the second reading decides whether it is back.
                look.edits.insert(path.clone(), None);
                look.read.push((path, None));
                return Ok(());
            }
            Err(disk::Unread::Special) => Refusal::SpecialFile,
            Err(disk::Unread::TooLarge) => Refusal::TooLarge,
            Err(disk::Unread::Denied(_)) => Refusal::Unreadable,
        };
        if let Some(instead) = instead {
            staging.copy(instead.id, ObjectKind::Blob)?;
            look.edits.insert(path.clone(), Some(instead));
        }
        look.untracked.retain(|known| *known != path);
        look.leave_out(path, kind);
        Ok(())
    }

    /// What git would store for these bytes from disk.
    fn stored<'b>(&self, path: &BStr, mode: u32, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        Ok(match mode {
            tree::LINK => Cow::Borrowed(bytes),
            _ => self.repository.clean(path, bytes)?,
        })
    }

    /// Reads again what was read from disk; gives back a path that is not the same.
    fn read_again(&self, look: &Look) -> Result<Option<BString>> {
        let top: &Path = self.repository.require_work_dir()?;
        for (path, raw) in &look.read {
            let same = match (disk::read(top, path.as_bstr(), u64::MAX), raw) {
                // Git makes the same of the same bytes, so there is no need to ask it again.
                (Ok(bytes), Some(raw)) => self.repository.hash_blob(&bytes)? == *raw,
                (Err(disk::Unread::Gone), None) => true,
                _ => false,
            };
            if !same {
                return Ok(Some(path.clone()));
            }
        }
        Ok(None)
    }

    fn graft(
        &self,
        staging: &mut Staging<'_>,
        head: Option<ObjectId>,
        root: ObjectId,
        look: Look,
    ) -> Result<Base> {
        let tree = tree::edit(staging, root, &look.edits)?;
        let branch = self.repository.head_branch()?;
        let commit = match head {
            Some(head) if tree == root => head,
            _ => {
                // Stamped with HEAD's own time, so that the same tree gives the same commit.
                let time = match head {
                    Some(head) => staging.objects().commit(head)?.time,
                    None => 0,
                };
                staging.commit(&NewCommit {
                    tree,
                    parents: head.as_slice(),
                    time,
                    message: b"vws base: the working tree\n",
                })?
            }
        };
        Ok(Base {
            commit,
            tree,
            head,
            branch,
            dirty: look.dirty,
            untracked: look.untracked,
            left_out: look.left_out,
            untracked_left_out: look.untracked_left_out,
        })
    }
}

/// Whether a path is in our own folder at the top of the working tree, or a file that an accept
/// which was stopped in the middle has left.
fn is_ours(path: &BStr) -> bool {
    let mut parts = path.split_str("/");
    let first = parts.next().unwrap_or_default();
    first == b".relo" || disk::is_temporary(parts.last().unwrap_or(first).as_bstr())
}

/// The limit on the size of a file in bytes (`relo.workspace.maxFileSize`, default 100 MiB).
pub(crate) fn max_file_size(repository: &Repository) -> Result<u64> {
    const DEFAULT: u64 = 100 << 20;
    let set = repository.config()?.size("relo.workspace.maxfilesize")?;
    Ok(set.unwrap_or(DEFAULT))
}
