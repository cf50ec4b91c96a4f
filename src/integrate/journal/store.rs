//! Entries in the repository: begun, amended and ended, under the lock of their working tree.

use std::cell::RefCell;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};

use super::entry::{Entry, FileState, JournalId, Kind, State, Step};
use super::form;
use super::{Error, Result};
use crate::disk::{self, WorkTree};
use crate::git::tree::{self, Entry as TreeEntry};
use crate::git::{
    self, Expect, Lock, NewCommit, ObjectId, ObjectKind, PATIENCE, Publish, RefUpdate, Staging,
    fault,
};
use crate::model::RepoPath;
use crate::workspace::{Store, names};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, HashMap};

/// How many bytes to be written are kept in memory.
const FRESH: usize = 4 << 20;
/// How often a number is taken anew because somebody without our lock took it.
const TRIES: usize = 8;

/// What the caller decides when an entry ends: given the entry with its final outcomes, it stages
/// what it needs and returns the ref updates that record the decisions. They are carried out just
/// before the entry is marked as ended, and must be harmless when carried out twice: after a crash in
/// between, recovery asks again.
pub type Decide<'d> = &'d mut dyn FnMut(&Entry, &mut Staging<'_>) -> Result<Vec<RefUpdate>>;

/// A new entry.
#[derive(Clone, Debug)]
pub struct Draft {
    /// What it is.
    pub kind: Kind,
    /// What it does.
    pub steps: Vec<Step>,
    /// Whatever else the caller wants to find again.
    pub extra: Map<String, Value>,
}

/// The journal of a working tree, locked: one accept, undo or recovery at a time.
pub struct Journal<'r> {
    pub(super) store: Store<'r>,
    pub(super) top: PathBuf,
    pub(super) executable_bit: bool,
    worktree: Option<BString>,
    /// Files and folders to be flushed with whatever is waited for next.
    owed: RefCell<Vec<OwnedFd>>,
    /// What the steps of the entry that was begun shall write, as far as it is small: it has just been
    /// stored, and would be looked for among all packs.
    fresh: RefCell<HashMap<ObjectId, Vec<u8>>>,
    _lock: Lock,
}

impl<'r> Journal<'r> {
    /// Takes the lock of the working tree, waiting for another accept or undo to end.
    ///
    /// # Errors
    /// [`git::Error::Locked`] after [`PATIENCE`], [`git::Error::NoWorkTree`] in a bare repository.
    pub fn lock(store: Store<'r>) -> Result<Self> {
        Self::lock_for(store, PATIENCE)
    }

    /// As [`Journal::lock`], waiting no longer than `patience`.
    ///
    /// # Errors
    /// As [`Journal::lock`].
    pub fn lock_for(store: Store<'r>, patience: Duration) -> Result<Self> {
        let repository = store.repository();
        let top = repository.require_work_dir()?.to_owned();
        let worktree = worktree_name(store);
        let mut name = BString::from("accept");
        if let Some(worktree) = &worktree {
            name.push(b'-');
            name.extend_from_slice(worktree);
        }
        let folder = repository.relo_dir().join("locks");
        let lock = Lock::exclusive(&folder.join(git::os_str(name.as_bstr())), patience)?;
        let executable_bit = repository.config()?.bool("core.filemode")?.unwrap_or(true);
        Ok(Journal {
            store,
            top,
            executable_bit,
            worktree,
            owed: RefCell::new(Vec::new()),
            fresh: RefCell::default(),
            _lock: lock,
        })
    }

    /// The linked worktree that this is; `None` for the main one.
    pub fn worktree(&self) -> Option<&BString> {
        self.worktree.as_ref()
    }

    /// The store below.
    pub fn store(&self) -> Store<'r> {
        self.store
    }

    /// Whether a path holds exactly this: type, execute bit and bytes. `None` is no file and no link: a
    /// folder there, or a file on the way, is as good as nothing.
    ///
    /// # Errors
    /// When it cannot be hashed.
    pub fn holds(&self, path: &RepoPath, state: Option<&FileState>) -> Result<bool> {
        match self.disk().state(path.as_bstr()) {
            Ok(found) => self.is(found.as_ref(), state),
            Err(obstacle) => Ok(state.is_none() && obstacle.is_no_file()),
        }
    }

    /// All permission bits of the file at a path; `None` where there is no file.
    pub(in crate::integrate) fn permissions(&self, path: &RepoPath) -> Option<u32> {
        let stat = disk::stat(&self.top, path.as_bstr()).ok()?;
        let mode = disk::mode_of(&stat, true)?;
        (mode != disk::LINK).then_some(stat.st_mode & 0o7777)
    }

    /// Ends an entry whose only group did not land; there is nothing to decide.
    pub(in crate::integrate) fn give_up(&self, entry: &mut Entry) -> Result<()> {
        self.end(entry, State::RolledBack, &mut |_, _| Ok(Vec::new()))
    }

    /// The bytes of a blob that a step names.
    pub(super) fn bytes(&self, path: &BStr, id: ObjectId) -> Result<Vec<u8>> {
        if let Some(fresh) = self.fresh.borrow().get(&id) {
            return Ok(fresh.clone());
        }
        Ok(self.store.repository().objects()?.blob_at(path, id)?)
    }

    /// Has these flushed with what is waited for next.
    pub(super) fn owe(&self, open: Vec<OwnedFd>) {
        self.owed.borrow_mut().extend(open);
    }

    /// What is to be flushed with what is waited for now.
    pub(super) fn take_owed(&self) -> Vec<OwnedFd> {
        self.owed.take()
    }

    pub(super) fn disk(&self) -> WorkTree<'_> {
        WorkTree::new(&self.top, self.executable_bit)
    }

    /// Begins an entry: when this returns, the pre-images and the results are durable, the intention is
    /// written, and nothing has been written to the working tree. [`Journal::apply`] flushes the
    /// intention with what it prepares beside the paths, before it changes the first of them.
    ///
    /// `staging` holds the blobs that the steps name; those that it does not hold are copied from
    /// the object database. Permission bits and folders are looked up on disk.
    ///
    /// # Errors
    /// When objects or the ref cannot be written; then nothing may be written to the working tree.
    pub fn begin(&self, draft: Draft, staging: Staging<'_>) -> Result<Entry> {
        self.begin_after(draft, staging, None)
    }

    /// As [`Journal::begin`], for an undo of `original`: what that one made may go.
    pub(in crate::integrate) fn begin_after(
        &self,
        draft: Draft,
        mut staging: Staging<'_>,
        original: Option<&Entry>,
    ) -> Result<Entry> {
        let folders = self.folders(&draft.steps, original);
        let mut entry = Entry {
            id: JournalId::FIRST,
            commit: self.store.repository().empty_tree()?,
            kind: draft.kind,
            state: State::Open,
            worktree: self.worktree.clone(),
            time: self.store.now(),
            steps: draft.steps,
            folders,
            extra: draft.extra,
        };
        self.note_permissions(&mut entry.steps);
        for blob in places(&entry).into_values().flatten() {
            staging.copy(blob.id, ObjectKind::Blob)?;
        }
        let mut room = FRESH;
        let mut fresh = HashMap::new();
        for after in entry.steps.iter().filter_map(|step| step.after) {
            let bytes = staging.read(after.id, ObjectKind::Blob)?;
            room = room.saturating_sub(bytes.len());
            if room == 0 {
                break;
            }
            fresh.insert(after.id, bytes);
        }
        self.fresh.replace(fresh);
        let path = self.store.repository().relo_dir().join("locks/journal");
        let _numbers = Lock::exclusive(&path, PATIENCE)?;
        entry.id = self.next_id()?;
        // Staged once more per try would grow the pack; one entry.json per number is small.
        entry.commit = self.stage(&mut staging, &entry, None)?;
        let mut publish = Publish::begin(staging)?;
        // Those of numbers that were taken meanwhile: the blobs are in the first.
        let mut earlier = Vec::new();
        fault::point("journal-stored");
        let mut tries = 0;
        loop {
            let name = names::journal(&entry.id.to_string());
            let step = RefUpdate::create(name, entry.commit);
            match publish.apply(&[step]) {
                Ok(()) => break,
                Err(git::Error::Moved { .. }) if tries < TRIES => {
                    tries += 1;
                    entry.id = self.next_id()?.max(entry.id.next());
                    let mut again = Staging::new(self.store.repository())?;
                    entry.commit = self.stage(&mut again, &entry, None)?;
                    let next = Publish::begin(again)?;
                    let mut taken = std::mem::replace(&mut publish, next);
                    taken.apply(&[])?;
                    earlier.push(taken);
                }
                Err(error) => return Err(error.into()),
            }
        }
        fault::point("journal-begun");
        earlier.push(publish);
        for publish in earlier {
            self.owe(publish.finish_unflushed());
        }
        Ok(entry)
    }

    /// Ends an entry: records what became of each step, together with the caller's decisions.
    ///
    /// # Errors
    /// Whatever `decide` returns; failures of Git. The entry is open then, and recovery ends it.
    pub fn finish(&self, entry: &mut Entry, decide: Decide<'_>) -> Result<()> {
        self.end(entry, State::Done, decide)
    }

    pub(super) fn end(&self, entry: &mut Entry, state: State, decide: Decide<'_>) -> Result<()> {
        let mut staging = Staging::new(self.store.repository())?;
        let mut ended = entry.clone();
        ended.state = state;
        // A power failure may leave the end alone: the changes are proposed again then, and whoever
        // accepts them finds the working tree as it shall be.
        let decided = decide(&ended, &mut staging)?;
        let mut updates: Vec<_> = decided.into_iter().map(RefUpdate::unordered).collect();
        if let Kind::Undo { of } = ended.kind {
            updates.extend(self.mark_undone(of, &ended, &mut staging)?);
        }
        let (commit, update) = self.next_state(&mut staging, &ended)?;
        updates.push(update);
        fault::point("journal-decided");
        let mut publish = Publish::begin(staging)?;
        publish.flush_first(self.take_owed());
        publish.apply(&updates)?;
        publish.finish();
        fault::point("journal-ended");
        ended.commit = commit;
        *entry = ended;
        Ok(())
    }

    /// Records a changed step before it is carried out: its new pre-image and result are durable
    /// when this returns.
    pub(super) fn amend(&self, entry: &mut Entry, mut staging: Staging<'_>) -> Result<()> {
        let (commit, update) = self.next_state(&mut staging, entry)?;
        self.store.put(staging, &[update])?;
        let repository = self.store.repository();
        repository.catch_up_before(&[repository.require_work_dir()?]);
        entry.commit = commit;
        Ok(())
    }

    /// Stages a new state of an entry and gives the ref update that makes it current.
    fn next_state(
        &self,
        staging: &mut Staging<'_>,
        entry: &Entry,
    ) -> Result<(ObjectId, RefUpdate)> {
        let commit = self.stage(staging, entry, Some(entry.commit))?;
        let name = names::journal(&entry.id.to_string());
        Ok((
            commit,
            RefUpdate::set(name, Expect::Is(entry.commit), commit),
        ))
    }

    /// The steps of `of` that this undo has taken back are marked in it, so that whether an entry
    /// is undone is told from the entry alone.
    fn mark_undone(
        &self,
        of: JournalId,
        undo: &Entry,
        staging: &mut Staging<'_>,
    ) -> Result<Vec<RefUpdate>> {
        let mut original = match super::load(self.store, of) {
            Ok(original) => original,
            // What cannot be read cannot be marked, and cannot be undone once more either.
            Err(Error::Damaged { .. } | Error::NoEntry { .. }) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut marked = false;
        for step in &mut original.steps {
            let mut taken_back = undo.written().chain(undo.identical());
            if step.undone.is_none() && taken_back.any(|back| back.path == step.path) {
                step.undone = Some(undo.id);
                marked = true;
            }
        }
        if !marked {
            return Ok(Vec::new());
        }
        let (_, update) = self.next_state(staging, &original)?;
        Ok(vec![update])
    }

    fn stage(
        &self,
        staging: &mut Staging<'_>,
        entry: &Entry,
        parent: Option<ObjectId>,
    ) -> Result<ObjectId> {
        let text = form::write(entry);
        let id = staging.add(ObjectKind::Blob, &text)?;
        let mut edits = places(entry);
        let mode = tree::REGULAR;
        edits.insert("entry.json".into(), Some(TreeEntry { mode, id }));
        // Earlier pre-images stay in the tree of the parent, which history keeps.
        let empty = tree::empty_tree(self.store.repository().format());
        let tree = tree::edit(staging, empty, &edits)?;
        let parents: Vec<ObjectId> = parent.into_iter().collect();
        let message = form::subject(entry);
        Ok(staging.commit(&NewCommit {
            tree,
            parents: &parents,
            time: self.store.now(),
            message: message.as_bytes(),
        })?)
    }

    fn next_id(&self) -> Result<JournalId> {
        let ids = super::list::ids(self.store)?;
        Ok(ids.last().map_or(JournalId::FIRST, |last| last.next()))
    }
}

/// The number in the name of a journal ref.
pub(super) fn id_of_ref(name: &str) -> Option<JournalId> {
    name.strip_prefix(names::JOURNAL)?.parse().ok()
}

/// The name of the linked worktree that a repository was opened in; `None` for the main one.
pub(super) fn worktree_name(store: Store<'_>) -> Option<BString> {
    let repository = store.repository();
    if repository.git_dir() == repository.common_dir() {
        return None;
    }
    let name = repository.git_dir().file_name()?;
    Some(std::os::unix::ffi::OsStrExt::as_bytes(name).into())
}

/// The blobs that an entry names, at their places in its tree.
fn places(entry: &Entry) -> BTreeMap<BString, Option<TreeEntry>> {
    let states = entry
        .steps
        .iter()
        .flat_map(|step| [step.before, step.after]);
    let place = |state: FileState| {
        let mode = tree::REGULAR;
        let entry = TreeEntry { mode, id: state.id };
        (format!("blobs/{}", state.id).into(), Some(entry))
    };
    states.flatten().map(place).collect()
}
