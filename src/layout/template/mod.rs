//! Templates: frozen layouts of one tree, shared by all directories that are cut from it or from a
//! tree that is near enough.
//!
//! `<common-dir>/relo/templates/<tree>/` holds `files/`, the layout; `index`, with the stat data of
//! these very files; and `meta.json`. It is made once, under a lock of its own, and never written
//! after it has been published, so that any number of overlays may stand on it. Like everything in
//! `relo/` it is a cache: it is not flushed, and looked at again after a restart of the machine. The
//! first that copies it adds [the bytes](bytes) of its small files in one file, for the next.
//!
//! Beside it lie [warm layers](warm): the build output of the user's checkout.

mod bytes;
mod copy;
mod index;
mod make;
mod origin;
mod prune;
mod shelf;
#[cfg(target_os = "linux")]
mod twin;
mod users;
pub mod warm;

pub(in crate::layout) use bytes::{Frozen, SMALL};
pub(in crate::layout) use copy::{copy, in_parallel};
pub use index::{Written, lay_index};
pub use origin::{warm_from_agent, warm_from_tree};
pub use prune::{Info, Policy, Pruned, list, prune};
#[cfg(target_os = "linux")]
pub(super) use twin::twin;
pub(super) use users::ready;
pub use users::{unfit, users_tree, warm_layer, warm_up};

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use self::shelf::Shelf;
use super::Result;
use super::directory::replace;
use super::probes::boot_id;
use crate::git::index::{IndexFile, StatData};
use crate::git::tree::{Change, Listing, diff_under};
use crate::git::{Lock, ObjectFormat, ObjectId, Repository};

/// The format of `meta.json` that this version writes and the only one it reads.
const FORMAT: u64 = 1;
/// A template is near when it differs in so many paths, or in a tenth of its files.
const NEAR: usize = 1000;

/// A published template, held against removal as long as this value lives.
#[derive(Debug)]
pub struct Template {
    tree: ObjectId,
    shelf: Shelf,
    name: String,
    meta: Meta,
    _held: Lock,
}

/// How a template is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The top of the user's checkout, whose times of change equal files take.
    pub users: Option<PathBuf>,
    /// How many threads write, at least two; 0 for as many as suit the machine.
    pub threads: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Meta {
    format: u64,
    tree: String,
    files: usize,
    bytes: u64,
    /// Whether git wrote the files, because it rewrites their content.
    #[serde(default)]
    by_git: bool,
    /// The start of the machine in which it was written.
    boot: String,
}

impl Template {
    /// The tree that it is a layout of.
    pub fn tree(&self) -> ObjectId {
        self.tree
    }

    /// Its name: the tree, and a suffix where settings change what git writes.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The layout.
    pub fn files(&self) -> PathBuf {
        self.shelf.folder(&self.name).join("files")
    }

    /// Its index.
    pub fn index_path(&self) -> PathBuf {
        self.shelf.folder(&self.name).join("index")
    }

    /// Its index, read.
    ///
    /// # Errors
    /// [`Error::Index`](super::Error::Index) when it is damaged.
    pub fn index(&self, format: ObjectFormat) -> Result<IndexFile> {
        Ok(IndexFile::open(&self.index_path(), format)?)
    }

    /// The listing of its tree, as far as its index tells it: no object is read.
    pub(super) fn listing(&self, index: &IndexFile) -> Option<Listing> {
        let listing = index::listing(index)?;
        (listing.directories.first()?.id == self.tree).then_some(listing)
    }

    /// How many files it has.
    pub fn file_count(&self) -> usize {
        self.meta.files
    }

    /// Whether its files are not what is stored, or may not be: git writes those of a directory on it.
    pub fn is_by_git(&self) -> bool {
        self.meta.by_git
    }

    /// Keeps it from being removed as long as the folder `what` exists, even when nobody runs.
    ///
    /// # Errors
    /// [`Error::Io`](super::Error::Io).
    pub fn stand(&self, what: &Path) -> Result<()> {
        self.shelf.stand(&self.name, what)
    }
}

/// The template of a tree; made where there is none.
///
/// # Errors
/// [`Error::Git`](super::Error::Git) for a missing object, [`Error::Io`], [`Error::Refused`] for a tree with a path that no
/// directory may hold.
pub fn obtain(repository: &Repository, tree: ObjectId, options: &Options) -> Result<Template> {
    let shelf = shelf(repository);
    let name = name(repository, tree)?;
    loop {
        if let Some(template) = find(repository, tree)? {
            return Ok(template);
        }
        let near = match find_near(repository, tree)? {
            // Made by somebody just now. To make it again would wait for the lock held here.
            Some((template, _)) if template.tree == tree => return Ok(template),
            near => near,
        };
        shelf.make(&name, true, |folder| {
            let made = make::make(repository, tree, folder, near.as_ref(), options)?;
            let meta = Meta {
                format: FORMAT,
                tree: tree.to_string(),
                files: made.files,
                bytes: made.bytes,
                by_git: made.by_git,
                boot: boot_id(),
            };
            let json = serde_json::to_vec(&meta).expect("invariant: plain data");
            replace(&folder.join("meta.json"), &json)
        })?;
    }
}

/// The template of exactly this tree, if there is one.
///
/// # Errors
/// [`Error::Io`](super::Error::Io), [`Error::Git`] when its lock cannot be had.
pub fn find(repository: &Repository, tree: ObjectId) -> Result<Option<Template>> {
    take(repository, tree, name(repository, tree)?)
}

/// The template that differs least from a tree, if one is near enough, and the changes from its tree
/// to this one.
///
/// # Errors
/// As [`find`].
pub fn find_near(
    repository: &Repository,
    tree: ObjectId,
) -> Result<Option<(Template, Vec<Change>)>> {
    let objects = repository.objects()?;
    let variant = variant(repository)?;
    let mut best: Option<(String, ObjectId, Vec<Change>)> = None;
    for name in shelf(repository).names()? {
        let Some(id) = tree_of(&name, &variant, repository.format()) else {
            continue;
        };
        let files = read_meta(&shelf(repository).folder(&name)).map_or(0, |meta| meta.files);
        let bound = match &best {
            Some((_, _, changes)) => changes.len().saturating_sub(1),
            None => NEAR.max(files / 10),
        };
        let mut changes = Vec::new();
        let walked = diff_under(&objects, Some(id), Some(tree), &[], |change| {
            changes.push(change);
            match changes.len() > bound {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        // Its tree may have been collected: it serves only who knows its id.
        if walked.is_ok()
            && changes.len() <= bound
            && !super::filtered::rules_differ(&objects, &changes)?
        {
            best = Some((name, id, changes));
        }
    }
    let Some((name, id, changes)) = best else {
        return Ok(None);
    };
    Ok(take(repository, id, name)?.map(|template| (template, changes)))
}

fn take(repository: &Repository, tree: ObjectId, name: String) -> Result<Option<Template>> {
    take_from(&shelf(repository), repository, tree, name)
}

fn take_from(
    shelf: &Shelf,
    repository: &Repository,
    tree: ObjectId,
    name: String,
) -> Result<Option<Template>> {
    let Some(held) = shelf.take(&name)? else {
        return Ok(None);
    };
    let folder = shelf.folder(&name);
    match read_meta(&folder) {
        Some(meta) if survived(shelf, &name, &meta, repository.format()) => Ok(Some(Template {
            tree,
            shelf: shelf.clone(),
            name,
            meta,
            _held: held,
        })),
        // Of another version, or spoilt by a power cut.
        _ => {
            drop(held);
            shelf.remove(&name)?;
            Ok(None)
        }
    }
}

fn shelf(repository: &Repository) -> Shelf {
    Shelf::new(&repository.relo_dir(), "templates")
}

/// The name of a tree's template: settings that change what git writes to disk make it another one.
fn name(repository: &Repository, tree: ObjectId) -> Result<String> {
    Ok(format!("{tree}{}", variant(repository)?))
}

fn variant(repository: &Repository) -> Result<String> {
    let terms = super::filtered::terms(repository)?;
    Ok(match terms.is_empty() {
        true => String::new(),
        false => format!("-{}", short_name(&terms)),
    })
}

fn tree_of(name: &str, variant: &str, format: ObjectFormat) -> Option<ObjectId> {
    let hex = name.strip_suffix(variant)?;
    (hex.len() == crate::git::hex_len(format))
        .then(|| ObjectId::from_str_ext(hex, format).ok())
        .flatten()
}

fn read_meta(folder: &Path) -> Option<Meta> {
    let bytes = fs::read(folder.join("meta.json")).ok()?;
    let meta: Meta = serde_json::from_slice(&bytes).ok()?;
    (meta.format == FORMAT).then_some(meta)
}

/// Whether a template is whole. One of an earlier start of the machine may have lost what was not on
/// disk yet; then sizes or times in the index do not fit.
fn survived(shelf: &Shelf, name: &str, meta: &Meta, format: ObjectFormat) -> bool {
    let boot = boot_id();
    let (folder, mark) = (shelf.folder(name), shelf.mark(name));
    if meta.boot == boot || fs::read_to_string(&mark).is_ok_and(|text| text == boot) {
        return true;
    }
    let Ok(index) = IndexFile::open(&folder.join("index"), format) else {
        return false;
    };
    let files = folder.join("files");
    let whole = index.len() == meta.files
        && index.entries().all(|entry| {
            entry.mode == crate::git::tree::GITLINK
                || crate::disk::stat(&files, entry.path)
                    .is_ok_and(|stat| StatData::from(&stat).matches(&entry.stat))
        });
    if whole {
        let _ = replace(&mark, boot.as_bytes());
    }
    whole
}

/// A short name for something with a long one.
pub(super) fn short_name(long: &[u8]) -> String {
    format!("{:016x}", shelf::fnv(long))
}
