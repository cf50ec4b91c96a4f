//! Looking at a workspace: read, stat, ls.

use bstr::{BStr, BString, ByteSlice};

use super::{Error, Result, Store, Workspace};
use crate::git::tree::{self, Entry, TreeSource};
use crate::git::{ObjectId, Objects};
use crate::model::{Refusal, RepoPath};

/// How many links a read follows before it takes them for a loop, as the file system does.
const LINKS: usize = 40;

/// Which tree of a workspace is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Side {
    /// What the workspace started from.
    Base,
    /// The base with the agent's changes in it.
    #[default]
    Overlay,
}

impl Side {
    /// The tree in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Side::Base => "the base",
            Side::Overlay => "the overlay",
        }
    }
}

/// One entry of a tree, by its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// The path.
    pub path: BString,
    /// Mode and id.
    pub entry: Entry,
    /// The size in bytes of a file or of a link's text; `None` for folders and submodules.
    pub size: Option<u64>,
}

impl Store<'_> {
    /// The tree of a workspace that `side` means.
    ///
    /// # Errors
    /// When the base commit cannot be read.
    pub fn tree_of(&self, workspace: &Workspace, side: Side) -> Result<ObjectId> {
        match side {
            Side::Overlay => Ok(workspace.tree),
            Side::Base => self.base_tree(workspace),
        }
    }

    /// The content of a file. Links are followed as the file system would, inside the tree.
    ///
    /// # Errors
    /// [`Error::NoPath`]; the refusals `escapes` for a link that leaves the tree, `type_change`
    /// for a folder, `nested_repository` for a submodule.
    pub fn read(&self, workspace: &Workspace, side: Side, path: &RepoPath) -> Result<Vec<u8>> {
        let root = self.tree_of(workspace, side)?;
        let objects = self.repository.objects()?;
        let missing = || Error::NoPath {
            path: path.as_bstr().to_owned(),
            place: side.as_str().to_owned(),
        };
        let text = |id| Ok(objects.blob(id)?);
        let entry = resolve(&objects, &text, root, path)?.ok_or_else(missing)?;
        check_file(path, entry)?;
        Ok(objects.blob_at(path.as_bstr(), entry.id)?)
    }

    /// Mode, id and size of what is at a path; links are not followed.
    ///
    /// # Errors
    /// [`Error::NoPath`].
    pub fn stat(&self, workspace: &Workspace, side: Side, path: &RepoPath) -> Result<Found> {
        let root = self.tree_of(workspace, side)?;
        let objects = self.repository.objects()?;
        let entry = tree::lookup(&objects, root, path.as_bstr())?.ok_or_else(|| Error::NoPath {
            path: path.as_bstr().to_owned(),
            place: side.as_str().to_owned(),
        })?;
        Ok(Found {
            path: path.as_bstr().to_owned(),
            size: size_of(&objects, entry)?,
            entry,
        })
    }

    /// The files below `under` (everything where it is `None`), in git's order; the file itself
    /// where it names one.
    ///
    /// # Errors
    /// [`Error::NoPath`] when there is nothing.
    pub fn ls(
        &self,
        workspace: &Workspace,
        side: Side,
        under: Option<&RepoPath>,
        recursive: bool,
    ) -> Result<Vec<(BString, Entry)>> {
        let root = self.tree_of(workspace, side)?;
        let objects = self.repository.objects()?;
        list_tree(&objects, root, side, under, recursive)
    }
}

/// The files that a tree holds below `under`, as [`Store::ls`] lists them; `side` is for the error.
///
/// # Errors
/// As [`Store::ls`].
pub fn list_tree<S: TreeSource + ?Sized>(
    source: &S,
    root: ObjectId,
    side: Side,
    under: Option<&RepoPath>,
    recursive: bool,
) -> Result<Vec<(BString, Entry)>> {
    let prefix = match under {
        None => BString::default(),
        Some(path) => {
            let found = tree::lookup(source, root, path.as_bstr())?;
            let found = found.ok_or_else(|| Error::NoPath {
                path: path.as_bstr().to_owned(),
                place: side.as_str().to_owned(),
            })?;
            if !found.is_tree() {
                return Ok(vec![(path.as_bstr().to_owned(), found)]);
            }
            path.as_bstr().to_owned()
        }
    };
    let mut all = Vec::new();
    tree::walk(source, root, prefix.as_bstr(), |path, entry| {
        if path == prefix.as_bstr() {
            return tree::Step::Continue;
        }
        if !entry.is_tree() || !recursive {
            all.push((path.to_owned(), entry));
        }
        if entry.is_tree() && !recursive {
            tree::Step::Prune
        } else {
            tree::Step::Continue
        }
    })?;
    Ok(all)
}

pub(super) fn size_of(objects: &Objects<'_>, entry: Entry) -> Result<Option<u64>> {
    Ok(match entry.mode {
        tree::TREE | tree::GITLINK => None,
        _ => Some(objects.blob_size(entry.id)?),
    })
}

/// Refuses to read what is no file: a folder (`type_change`) or a submodule (`nested_repository`).
///
/// # Errors
/// The refusal.
pub fn check_file(path: &RepoPath, entry: Entry) -> Result<()> {
    let (kind, is) = match entry.mode {
        tree::TREE => (Refusal::TypeChange, "a folder"),
        tree::GITLINK => (Refusal::NestedRepository, "a submodule"),
        _ => return Ok(()),
    };
    Err(Error::refused(kind, format!("'{path}' is {is}")))
}

/// Finds what a path leads to in the tree `root`, links followed inside the tree as the file system
/// would. `text` reads what a link says.
///
/// # Errors
/// The refusal `escapes` for a link that leaves the tree; when a tree cannot be read.
pub fn resolve<S: TreeSource + ?Sized>(
    source: &S,
    text: &dyn Fn(ObjectId) -> Result<Vec<u8>>,
    root: ObjectId,
    path: &RepoPath,
) -> Result<Option<Entry>> {
    // The plain case first: one look-up, no link anywhere.
    match tree::lookup(source, root, path.as_bstr())? {
        Some(entry) if entry.mode != tree::LINK => return Ok(Some(entry)),
        _ => {}
    }
    let escapes = || {
        let what = format!("'{path}' leads out of the workspace");
        Error::refused(Refusal::Escapes, what)
    };
    let mut left: Vec<BString> = parts(path.as_bstr());
    let mut at: Vec<BString> = Vec::new();
    let mut found = Entry {
        mode: tree::TREE,
        id: root,
    };
    let mut links = 0;
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop().ok_or_else(escapes)?;
            continue;
        }
        at.push(part);
        let here = bstr::join("/", &at);
        let Some(entry) = tree::lookup(source, root, here.as_bstr())? else {
            return Ok(None);
        };
        if entry.mode != tree::LINK {
            found = entry;
            continue;
        }
        links += 1;
        if links > LINKS {
            let what = format!("'{path}' leads through too many links");
            return Err(Error::refused(Refusal::Escapes, what));
        }
        let target = text(entry.id)?;
        if target.starts_with(b"/") {
            return Err(escapes());
        }
        at.pop();
        left.extend(parts(target.as_bstr()));
    }
    if at.is_empty() {
        return Ok(Some(Entry {
            mode: tree::TREE,
            id: root,
        }));
    }
    // A final `..` may have left the last look-up behind.
    let here = bstr::join("/", &at);
    Ok(tree::lookup(source, root, here.as_bstr())?.or(Some(found)))
}

/// The components of a path, last one first.
fn parts(path: &BStr) -> Vec<BString> {
    path.rsplit_str("/")
        .filter(|part| !part.is_empty() && *part != b".")
        .map(BString::from)
        .collect()
}
