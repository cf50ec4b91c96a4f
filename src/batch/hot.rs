//! What stays in memory between commands, so that a read costs one look at the ref and no more.
//!
//! A revision is known by its commit, a directory by its tree: both never change, so what is kept
//! is never stale, and another process's revision is seen as soon as its ref has moved.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};

use crate::git::tree::{self, Entry, TreeSource};
use crate::git::{ObjectId, Objects, PackedStamp, Repository};
use crate::layout::{self, Live};
use crate::model::AgentId;
use crate::workspace::{Error, Result, Side, Store, Workspace, names};

/// How many workspaces are known at once.
const WORKSPACES: usize = 512;
/// How many entries of directories are kept: some 100 bytes each.
const ENTRIES: usize = 400_000;

/// A workspace as it was last seen.
struct Known {
    workspace: Workspace,
    base_tree: Option<ObjectId>,
}

/// What a directory holds, by name.
type Directory = HashMap<BString, Entry>;

/// The caches.
pub(super) struct Hot<'r> {
    repository: &'r Repository,
    objects: Objects<'r>,
    workspaces: HashMap<AgentId, Known>,
    directories: RefCell<HashMap<ObjectId, Rc<Directory>>>,
    /// Workspaces without an open directory, and the packed refs as they were when that was seen.
    closed: HashMap<AgentId, PackedStamp>,
    /// Open directories.
    live: HashMap<AgentId, Live>,
    held: Cell<usize>,
}

impl<'r> Hot<'r> {
    pub(super) fn new(repository: &'r Repository) -> Result<Self> {
        Ok(Hot {
            repository,
            objects: repository.objects()?,
            workspaces: HashMap::new(),
            directories: RefCell::default(),
            closed: HashMap::new(),
            live: HashMap::new(),
            held: Cell::new(0),
        })
    }

    pub(super) fn objects(&self) -> &Objects<'r> {
        &self.objects
    }

    /// The revision that an open directory was cut from; `None` without one, at the cost of a
    /// look at two files.
    pub(super) fn open_directory(&mut self, agent: &AgentId) -> Result<Option<ObjectId>> {
        let name = names::exec(agent);
        let refs = self.repository.refs();
        let closed = self.closed.get(agent);
        if closed.is_some_and(|then| refs.still_absent(&name, then)) {
            return Ok(None);
        }
        // Taken before the look, so that a change in between is seen the next time.
        let stamp = refs.packed_stamp();
        let cut = refs.find(&name)?;
        self.closed.remove(agent);
        if cut.is_none()
            && let Some(stamp) = stamp
        {
            self.live.remove(agent);
            self.closed.insert(agent.clone(), stamp);
        }
        Ok(cut)
    }

    /// The open directory of a workspace, its manifest read once; `None` where it cannot be used
    /// and an import has to say why.
    pub(super) fn live(
        &mut self,
        store: &Store<'r>,
        agent: &AgentId,
        cut: ObjectId,
    ) -> Option<&Live> {
        if self.live.get(agent).is_none_or(|live| live.cut() != cut) {
            self.live.remove(agent);
            let directory = layout::open(store, agent).ok()??;
            let live = Live::new(store, directory).ok()?;
            self.live.insert(agent.clone(), live);
        }
        self.live.get(agent)
    }

    /// The current state of a workspace.
    pub(super) fn load(&mut self, store: &Store<'r>, agent: &AgentId) -> Result<&Workspace> {
        Ok(&self.known(store, agent)?.workspace)
    }

    /// The tree of a workspace that a read means.
    pub(super) fn root(
        &mut self,
        store: &Store<'r>,
        agent: &AgentId,
        side: Side,
    ) -> Result<ObjectId> {
        let known = self.known(store, agent)?;
        match (side, known.base_tree) {
            (Side::Overlay, _) => Ok(known.workspace.tree),
            (Side::Base, Some(tree)) => Ok(tree),
            (Side::Base, None) => {
                let tree = store.base_tree(&known.workspace)?;
                known.base_tree = Some(tree);
                Ok(tree)
            }
        }
    }

    fn known(&mut self, store: &Store<'r>, agent: &AgentId) -> Result<&mut Known> {
        let commit = self.repository.refs().find(&names::overlay(agent))?;
        let Some(commit) = commit else {
            self.workspaces.remove(agent);
            let agent = agent.clone();
            return Err(Error::NoWorkspace { agent });
        };
        let fresh = |known: &Known| known.workspace.commit == commit;
        if !self.workspaces.get(agent).is_some_and(fresh) {
            if self.workspaces.len() >= WORKSPACES {
                self.workspaces.clear();
            }
            let workspace = store.read_revision(agent, commit)?;
            let known = Known {
                workspace,
                base_tree: None,
            };
            self.workspaces.insert(agent.clone(), known);
        }
        let known = self.workspaces.get_mut(agent);
        Ok(known.expect("invariant: it was there or was just inserted"))
    }

    /// Finds what a path is in a tree: [`tree::lookup`] with the directories kept.
    pub(super) fn lookup(&self, root: ObjectId, path: &BStr) -> Result<Option<Entry>> {
        let mut at = root;
        let mut rest: &[u8] = path;
        loop {
            let directory = self.directory(at)?;
            let Some((name, below)) = rest.split_once_str("/") else {
                return Ok(directory.get(rest.as_bstr()).copied());
            };
            match directory.get(name.as_bstr()) {
                Some(entry) if entry.is_tree() => at = entry.id,
                _ => return Ok(None),
            }
            rest = below;
        }
    }

    fn directory(&self, id: ObjectId) -> Result<Rc<Directory>> {
        if let Some(known) = self.directories.borrow().get(&id) {
            return Ok(Rc::clone(known));
        }
        let data = self
            .objects
            .read_tree(id)
            .map_err(|source| tree::Error::Read {
                id,
                path: "".into(),
                source,
            })?;
        let data = match data {
            Some(data) => data,
            None if id == tree::empty_tree(self.objects.format()) => Rc::from([]),
            None => {
                let path = "".into();
                return Err(tree::Error::Missing { id, path }.into());
            }
        };
        let parsed: std::result::Result<Directory, _> = tree::entries(&data, self.objects.format())
            .map(|entry| entry.map(|entry| (entry.name.to_owned(), entry.entry())))
            .collect();
        let directory = Rc::new(parsed.map_err(|source| tree::Error::Malformed {
            id,
            path: "".into(),
            source,
        })?);
        let mut directories = self.directories.borrow_mut();
        if self.held.get() + directory.len() > ENTRIES {
            directories.clear();
            self.held.set(0);
        }
        self.held.set(self.held.get() + directory.len());
        directories.insert(id, Rc::clone(&directory));
        Ok(directory)
    }
}
