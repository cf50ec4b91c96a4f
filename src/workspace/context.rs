//! Whether what an agent knows is still true: blob ids against the overlay, thousands in one pass.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};

use super::{Error, Result, Store, Workspace, resolve};
use crate::git::tree::{self, Entry, TreeSource};
use crate::git::{ObjectFormat, ObjectId, Objects};
use crate::model::RepoPath;

/// What became of a file since somebody read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freshness {
    /// It has the content that was read.
    Fresh,
    /// It has another content.
    Stale,
    /// There is no such file any more.
    Deleted,
    /// It cannot be told: the path is none that can be read, or what it should hold now is missing.
    Unreadable,
}

impl Freshness {
    /// The word in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Freshness::Fresh => "fresh",
            Freshness::Stale => "stale",
            Freshness::Deleted => "deleted",
            Freshness::Unreadable => "unreadable",
        }
    }
}

/// Compares blob ids with a workspace's overlay; every folder is read once, however many are asked
/// about.
pub struct ContextCheck<'r> {
    objects: Objects<'r>,
    root: ObjectId,
    /// Whether a blob that is not here can be fetched.
    partial: bool,
    folders: HashMap<BString, Folder>,
}

/// What stands at the path of a folder.
enum Folder {
    Entries(Names),
    /// Nothing, or a file.
    Missing,
    /// A link, here or above, which only a closer look follows.
    Link,
    Unreadable,
}

/// What a folder holds, by name: where in the tree's bytes the name is, and what is there. One
/// allocation a folder, for there are many folders and mostly few files in each.
struct Names {
    data: Rc<[u8]>,
    entries: Vec<(Range<usize>, Entry)>,
}

impl Names {
    /// `None` where the tree makes no sense.
    fn new(data: Rc<[u8]>, format: ObjectFormat) -> Option<Self> {
        let start = data.as_ptr() as usize;
        let mut entries = Vec::new();
        for entry in tree::entries(&data, format) {
            let entry = entry.ok()?;
            let at = entry.name.as_ptr() as usize - start;
            entries.push((at..at + entry.name.len(), entry.entry()));
        }
        // A tree has its folders as if their names ended in a slash.
        entries.sort_by(|(a, _), (b, _)| data[a.clone()].cmp(&data[b.clone()]));
        Some(Names { data, entries })
    }

    fn find(&self, name: &BStr) -> Option<Entry> {
        let of = |(at, _): &(Range<usize>, Entry)| self.data[at.clone()].cmp(name.as_bytes());
        let at = self.entries.binary_search_by(of).ok()?;
        Some(self.entries[at].1)
    }
}

/// What a look at one path found.
enum Look {
    Found(Option<Entry>),
    Link,
    Unreadable,
}

impl<'r> Store<'r> {
    /// Starts a check against a workspace's overlay.
    ///
    /// # Errors
    /// When the object database cannot be opened.
    pub fn context_check(&self, workspace: &Workspace) -> Result<ContextCheck<'r>> {
        Ok(ContextCheck {
            objects: self.repository().objects()?,
            root: workspace.tree,
            partial: self.repository().is_partial(),
            folders: HashMap::new(),
        })
    }
}

impl ContextCheck<'_> {
    /// What became of the file at `path`, which had the content `blob`. Links are followed as a read
    /// follows them.
    pub fn check(&mut self, blob: ObjectId, path: &BStr) -> Freshness {
        let Ok(path) = RepoPath::new(path) else {
            return Freshness::Unreadable;
        };
        let entry = match self.look(path.as_bstr()) {
            Look::Found(Some(entry)) if entry.mode == tree::LINK => self.behind_links(&path),
            Look::Found(entry) => Some(entry),
            Look::Link => self.behind_links(&path),
            Look::Unreadable => None,
        };
        match entry {
            None => Freshness::Unreadable,
            Some(Some(entry)) if !matches!(entry.mode, tree::TREE | tree::GITLINK) => {
                if entry.id == blob {
                    Freshness::Fresh
                } else if self.partial || self.objects.exists(entry.id) {
                    Freshness::Stale
                } else {
                    Freshness::Unreadable
                }
            }
            Some(_) => Freshness::Deleted,
        }
    }

    fn look(&mut self, path: &BStr) -> Look {
        let (folder, name) = match path.rsplit_once_str("/") {
            Some((folder, name)) => (folder.as_bstr(), name.as_bstr()),
            None => (BStr::new(""), path),
        };
        if !self.folders.contains_key(folder) {
            let read = self.read(folder);
            self.folders.insert(folder.to_owned(), read);
        }
        match self.folders.get(folder) {
            Some(Folder::Entries(names)) => Look::Found(names.find(name)),
            Some(Folder::Missing) => Look::Found(None),
            Some(Folder::Link) => Look::Link,
            Some(Folder::Unreadable) | None => Look::Unreadable,
        }
    }

    fn read(&mut self, folder: &BStr) -> Folder {
        let id = match folder.is_empty() {
            true => self.root,
            false => match self.look(folder) {
                Look::Found(Some(entry)) if entry.is_tree() => entry.id,
                Look::Found(Some(entry)) if entry.mode == tree::LINK => return Folder::Link,
                Look::Found(_) => return Folder::Missing,
                Look::Link => return Folder::Link,
                Look::Unreadable => return Folder::Unreadable,
            },
        };
        let format = self.objects.format();
        let data = match self.objects.read_tree(id) {
            Ok(Some(data)) => data,
            // The empty tree need not be in the database.
            Ok(None) if id == tree::empty_tree(format) => Rc::from([]),
            Ok(None) | Err(_) => return Folder::Unreadable,
        };
        Names::new(data, format).map_or(Folder::Unreadable, Folder::Entries)
    }

    fn behind_links(&self, path: &RepoPath) -> Option<Option<Entry>> {
        let text = |id| self.objects.blob(id).map_err(Error::from);
        resolve(&self.objects, &text, self.root, path).ok()
    }
}
