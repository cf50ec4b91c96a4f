//! What a command did, read from the upper folder alone.
//!
//! Every path that may differ from the revision stands in the list, and a path that does not stand
//! there is as the revision has it. Three trees of names meet in each folder that exists above: what
//! is above, what the template has, and what the revision has; the revision's own difference from the
//! template was put above by [`super::fill`], so where the revision has something else than the template
//! and nothing is above, somebody removed it.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::marks::{Opacity, is_whiteout, opacity};
use crate::git::tree::{Entry, GITLINK, Step, TreeSource, diff, walk};
use crate::git::{ObjectId, os_str};
use crate::layout::{Error, Result};

/// A path that may not be as the revision has it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Touched {
    /// The path from the top of the directory.
    pub path: BString,
    /// What stands there.
    pub what: What,
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A regular file; its bytes may still be the revision's.
    File,
    /// A symbolic link.
    Link,
    /// Nothing, or only a folder: what the revision has is gone.
    Removed,
    /// The template's file, which is not the revision's.
    Template,
    /// A folder that neither the revision nor the template has, not looked into: see [`expand`].
    Folder,
    /// A folder with a `.git` in it, not looked into.
    Repository,
    /// A FIFO, a socket or a device.
    Special,
    /// A folder that could not be read. What the revision has below it is to be kept.
    Unreadable,
}

/// Lists what may differ from the tree `revision` in the directory whose upper folder is `files`, and
/// whose lower one is laid out from the tree `template`. Costs what is above, whatever is below;
/// folders of untracked files stand for all that is in them.
///
/// # Errors
/// [`Error::Io`] when the folder itself cannot be read, [`Error::Tree`].
pub fn read_back<S: TreeSource>(
    files: &Path,
    source: &S,
    template: ObjectId,
    revision: ObjectId,
) -> Result<Vec<Touched>> {
    let mut reader = Reader {
        source,
        found: Vec::new(),
        collapse: true,
    };
    let trees = Trees {
        template: Some(template),
        revision: Some(revision),
    };
    let top = open(None, files.as_os_str().as_encoded_bytes().as_bstr())
        .map_err(|e| Error::io("read", files, e))?;
    reader.folder(&top, &mut BString::default(), trees)?;
    Ok(reader.sorted())
}

/// Lists what is in an untracked folder that [`read_back`] gave; with `collapse`, folders in it stand
/// for their content again.
///
/// # Errors
/// As [`read_back`].
pub fn expand<S: TreeSource>(
    files: &Path,
    source: &S,
    folder: &BStr,
    collapse: bool,
) -> Result<Vec<Touched>> {
    let mut reader = Reader {
        source,
        found: Vec::new(),
        collapse,
    };
    let top = open(None, files.as_os_str().as_encoded_bytes().as_bstr())
        .map_err(|e| Error::io("read", files, e))?;
    let mut path = folder.to_owned();
    reader.enter(&top, folder, &mut path, Trees::default())?;
    Ok(reader.sorted())
}

/// The trees of one folder, where there are any.
#[derive(Clone, Copy, Default)]
struct Trees {
    template: Option<ObjectId>,
    revision: Option<ObjectId>,
}

/// What template and revision have of one name.
#[derive(Clone, Copy, Default)]
struct Pair {
    template: Option<Entry>,
    revision: Option<Entry>,
}

impl Pair {
    fn trees(self) -> Trees {
        let tree = |entry: Option<Entry>| entry.filter(Entry::is_tree).map(|entry| entry.id);
        Trees {
            template: tree(self.template),
            revision: tree(self.revision),
        }
    }
}

struct Reader<'s, S> {
    source: &'s S,
    found: Vec<Touched>,
    collapse: bool,
}

impl<S: TreeSource> Reader<'_, S> {
    fn sorted(mut self) -> Vec<Touched> {
        self.found.sort_unstable();
        self.found.dedup();
        self.found
    }

    fn add(&mut self, path: &BStr, what: What) {
        self.found.push(Touched {
            path: path.to_owned(),
            what,
        });
    }

    /// Goes through a folder that exists above.
    fn folder(&mut self, folder: &OwnedFd, path: &mut BString, mut trees: Trees) -> Result<()> {
        let failed = |path: &BString, e: Errno| Error::io("read", os_str(path.as_bstr()), e);
        let opacity = opacity(folder).map_err(|e| failed(path, e))?;
        if opacity == Opacity::Opaque {
            // Nothing of the template shows here, nor in the folders within, which bear no mark.
            trees.template = None;
        }
        let mut names = self.names(trees)?;
        let length = path.len();
        for name in list(folder).map_err(|e| failed(path, e))? {
            if length == 0 && (name == ".git" || name == ".relo") {
                continue;
            }
            let pair = names.remove(&name).unwrap_or_default();
            push(path, name.as_bstr());
            let stat = statat(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
            match stat.map(|stat| (FileType::from_raw_mode(stat.st_mode), stat)) {
                // Gone since the folder was read: as if it had not been there.
                Err(Errno::NOENT) => self.removed(path.as_bstr(), pair)?,
                Err(error) => return Err(failed(path, error)),
                Ok((FileType::Directory, _)) => self.directory(folder, path, pair)?,
                Ok((kind, stat)) => {
                    let hides = is_whiteout(folder, name.as_bstr(), &stat, opacity);
                    if hides.map_err(|e| failed(path, e))? {
                        self.removed(path.as_bstr(), pair)?;
                    } else {
                        self.below(path.as_bstr(), pair)?;
                        let what = match kind {
                            FileType::RegularFile => What::File,
                            FileType::Symlink => What::Link,
                            _ => What::Special,
                        };
                        self.add(path.as_bstr(), what);
                    }
                }
            }
            path.truncate(length);
        }
        for (name, pair) in names {
            push(path, name.as_bstr());
            self.fallen_back(path.as_bstr(), pair)?;
            path.truncate(length);
        }
        Ok(())
    }

    /// A folder above, at a path where the trees may have something else.
    fn directory(&mut self, parent: &OwnedFd, path: &mut BString, pair: Pair) -> Result<()> {
        let file = pair.revision.filter(|entry| !entry.is_tree());
        // A submodule is a folder on disk.
        if file.is_some_and(|file| file.mode != GITLINK) {
            self.add(path.as_bstr(), What::Removed);
        }
        let name = path
            .rsplit_once_str("/")
            .map_or(&path[..], |(_, name)| name);
        let name = name.as_bstr().to_owned();
        let trees = pair.trees();
        let tracked = trees.template.or(trees.revision).is_some();
        if !tracked && self.collapse {
            let is_repository = open(Some(parent), name.as_bstr())
                .is_ok_and(|folder| statat(&folder, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok());
            let what = if is_repository {
                What::Repository
            } else {
                What::Folder
            };
            self.add(path.as_bstr(), what);
            return Ok(());
        }
        self.enter(parent, name.as_bstr(), path, trees)
    }

    fn enter(
        &mut self,
        parent: &OwnedFd,
        name: &BStr,
        path: &mut BString,
        trees: Trees,
    ) -> Result<()> {
        let folder = match open(Some(parent), name) {
            Ok(folder) => folder,
            Err(Errno::ACCESS) => {
                self.add(path.as_bstr(), What::Unreadable);
                return Ok(());
            }
            Err(error) => return Err(Error::io("read", os_str(path.as_bstr()), error)),
        };
        if statat(&folder, ".git", AtFlags::SYMLINK_NOFOLLOW).is_ok() {
            self.add(path.as_bstr(), What::Repository);
            return Ok(());
        }
        self.folder(&folder, path, trees)
    }

    /// The names that template and revision have in a folder.
    fn names(&self, trees: Trees) -> Result<BTreeMap<BString, Pair>> {
        let mut names = BTreeMap::<BString, Pair>::new();
        let mut add = |tree: Option<ObjectId>, is_template: bool| -> Result<()> {
            let Some(tree) = tree else { return Ok(()) };
            for (name, entry) in children(self.source, tree)? {
                let pair = names.entry(name).or_default();
                let side = if is_template {
                    &mut pair.template
                } else {
                    &mut pair.revision
                };
                *side = Some(entry);
            }
            Ok(())
        };
        add(trees.template, true)?;
        add(trees.revision, false)?;
        Ok(names)
    }

    /// Nothing is left at a path of what the revision has there.
    fn removed(&mut self, path: &BStr, pair: Pair) -> Result<()> {
        if pair.revision.is_some_and(|entry| !entry.is_tree()) {
            self.add(path, What::Removed);
        }
        self.below(path, pair)
    }

    /// A file hides what the revision has below its path.
    fn below(&mut self, path: &BStr, pair: Pair) -> Result<()> {
        let Some(tree) = pair.trees().revision else {
            return Ok(());
        };
        let mut files = Vec::new();
        walk(self.source, tree, BStr::new(""), |inner, entry| {
            if !entry.is_tree() {
                files.push(inner.to_owned());
            }
            Step::Continue
        })?;
        for inner in files {
            let mut whole = path.to_owned();
            push(&mut whole, inner.as_bstr());
            self.add(whole.as_bstr(), What::Removed);
        }
        Ok(())
    }

    /// Nothing is above, so the template's shows: a change where the revision has something else.
    fn fallen_back(&mut self, path: &BStr, pair: Pair) -> Result<()> {
        if pair.template == pair.revision {
            return Ok(());
        }
        for (entry, what) in [
            (pair.template, What::Template),
            (pair.revision, What::Removed),
        ] {
            let file = entry.filter(|entry| !entry.is_tree());
            if file.is_some()
                && (what == What::Template || pair.template.is_none_or(|t| t.is_tree()))
            {
                self.add(path, what);
            }
        }
        let trees = pair.trees();
        for change in diff(self.source, trees.template, trees.revision)? {
            let mut whole = path.to_owned();
            push(&mut whole, change.path.as_bstr());
            let what = match change.old {
                Some(_) => What::Template,
                None => What::Removed,
            };
            self.add(whole.as_bstr(), what);
        }
        Ok(())
    }
}

/// The entries of a tree, as of one folder.
fn children<S: TreeSource>(source: &S, tree: ObjectId) -> Result<Vec<(BString, Entry)>> {
    let mut found = Vec::new();
    walk(source, tree, BStr::new(""), |name, entry| {
        found.push((name.to_owned(), entry));
        Step::Prune
    })?;
    Ok(found)
}

fn push(path: &mut BString, name: &BStr) {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}

fn open(parent: Option<&OwnedFd>, path: &BStr) -> std::result::Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match parent {
        Some(parent) => openat(parent, path.as_bytes(), flags, Mode::empty()),
        None => rustix::fs::open(path.as_bytes(), flags, Mode::empty()),
    }
}

/// The names in a folder, sorted.
fn list(folder: &OwnedFd) -> std::result::Result<Vec<BString>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if name != b"." && name != b".." {
            names.push(BString::from(name));
        }
    }
    names.sort_unstable();
    Ok(names)
}
