//! Warm layers: the build output of the user's checkout, shared with every directory.
//!
//! What git ignores there, folder by folder, is copied into a frozen layer of its own, with times kept,
//! so that a build tool in a directory finds what it built in the checkout. A layer belongs to one
//! checkout and has a number; the next one links what has not changed, which is safe because nobody
//! writes to a layer. Nothing that a name hides (`.venv`, `.idea`) is shared unless
//! `relo.template.share` names it, and no loose file (`.env`) unless `.worktreeinclude` does.
//!
//! The output was built from the files that the checkout had then. A directory with other content must
//! not let its older files pass for the ones that were built: [`Warm::tree`] says what the layer stands
//! for, and files that differ from it are to be laid out anew, with the time of now.

mod collect;
mod select;

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::BString;
use serde::{Deserialize, Serialize};

use super::shelf::{Shelf, fnv};
use crate::git::tree::{Change, diff};
use crate::git::{Lock, ObjectId, Repository};
use crate::layout::directory::{path_bytes, replace};
use crate::layout::probes::boot_id;
use crate::layout::queue::threads;
use crate::layout::{Error, Result};

const FORMAT: u64 = 1;
/// How many seconds a layer is good for, unless `relo.template.warmInterval` says otherwise.
const INTERVAL: u64 = 3600;

/// A published layer, held against removal as long as this value lives.
#[derive(Debug)]
pub struct Warm {
    shelf: Shelf,
    name: String,
    tree: Option<ObjectId>,
    made: u64,
    _held: Lock,
}

/// How a layer is made.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The tree that the checkout's files make now, if known.
    pub tree: Option<ObjectId>,
    /// Now: seconds since 1970.
    pub now: u64,
    /// How many threads copy; at least two.
    pub threads: usize,
    /// Whether to make a new one even if the last is young enough.
    pub force: bool,
    /// Where the output is taken from.
    pub from: Origin,
}

/// Where build output is taken from.
#[derive(Clone, Debug, Default)]
pub enum Origin {
    /// The user's checkout.
    #[default]
    Checkout,
    /// Another directory of the repository, and its git dir.
    Directory(PathBuf, PathBuf),
    /// These folders of an overlay's layers, the upper one first.
    Layers(Vec<PathBuf>, Vec<BString>),
}

#[derive(Serialize, Deserialize)]
struct Meta {
    format: u64,
    made: u64,
    tree: Option<String>,
    boot: String,
    files: usize,
    bytes: u64,
}

impl Warm {
    /// The layer's files, to stand below a template's.
    pub fn files(&self) -> PathBuf {
        self.shelf.folder(&self.name).join("files")
    }

    /// Its name, to be found again by.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The tree from whose files the output was built, if known.
    pub fn tree(&self) -> Option<ObjectId> {
        self.tree
    }

    /// Adds to `changes`, the files to be laid out above a template, every file of the revision that
    /// differs from the tree of which the output was built: laid out anew they are newer than that
    /// output, whatever time the template gave them, and no build tool takes what was built of other
    /// content for theirs. `false` where nobody knows any more what it was built of.
    ///
    /// # Errors
    /// Objects that cannot be had.
    pub fn freshen(
        &self,
        repository: &Repository,
        revision: ObjectId,
        changes: &mut Vec<Change>,
    ) -> Result<bool> {
        let Some(built_of) = self.tree() else {
            return Ok(true);
        };
        // That tree is nobody's revision, and may have been collected.
        let Ok(since) = diff(&repository.objects()?, Some(built_of), Some(revision)) else {
            return Ok(false);
        };
        let known: HashSet<BString> = changes.iter().map(|change| change.path.clone()).collect();
        changes.extend(since.into_iter().filter_map(|change| {
            let new = change.new.filter(|_| !known.contains(&change.path))?;
            Some(Change {
                path: change.path,
                old: Some(new),
                new: Some(new),
            })
        }));
        changes.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        Ok(true)
    }

    /// Copies the output into a directory with the git dir `admin`, as far as git ignores it there and
    /// nothing stands in its place; blocks are shared where the file system can.
    ///
    /// # Errors
    /// [`Error::Git`] when git cannot tell what is ignored, [`Error::Io`].
    pub fn pour(&self, repository: &Repository, into: &Path, admin: &Path) -> Result<()> {
        let layer = self.files();
        let selection = select::lacking(repository, &layer, into, admin)?;
        if !selection.is_empty() {
            collect::collect(
                &[layer],
                &selection,
                into,
                None,
                (threads(), repository.progress()),
            )?;
        }
        Ok(())
    }

    /// When it was made: seconds since 1970.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Keeps it from being removed as long as the folder `what` exists, even when nobody runs.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn stand(&self, what: &Path) -> Result<()> {
        self.shelf.stand(&self.name, what)
    }
}

/// Whether [`refresh`] would look at the checkout: it wants to know the tree of the user's files then.
///
/// # Errors
/// [`Error::Io`], [`Error::Git`] for settings that make no sense.
pub fn is_due(repository: &Repository, options: &Options) -> Result<bool> {
    let Some((shelf, key)) = place(repository)? else {
        return Ok(false);
    };
    if options.force {
        return Ok(true);
    }
    let interval = interval(repository)?;
    let recent = |made: u64| options.now < made.saturating_add(interval);
    if nothing_since(&shelf, &key).is_some_and(recent) {
        return Ok(false);
    }
    let last = match numbers(&shelf, &key)?.last() {
        Some(number) => take(&shelf, name(&key, *number), repository)?,
        None => None,
    };
    Ok(!last.is_some_and(|warm| recent(warm.made)))
}

/// The shelf and the checkout's name on it; `None` where nothing is shared.
fn place(repository: &Repository) -> Result<Option<(Shelf, String)>> {
    if repository.config()?.bool("relo.template.warm")? == Some(false) {
        return Ok(None);
    }
    Ok(repository.work_dir().map(|top| {
        let shelf = Shelf::new(&repository.relo_dir(), "warm");
        (shelf, format!("{:016x}", fnv(path_bytes(top))))
    }))
}

fn interval(repository: &Repository) -> Result<u64> {
    let set = repository.config()?.size("relo.template.warminterval")?;
    Ok(set.unwrap_or(INTERVAL))
}

/// Where it is noted that there was nothing to share.
fn nothing(shelf: &Shelf, key: &str) -> PathBuf {
    shelf.mark(&format!("{key}.nothing"))
}

/// When there was nothing to share: seconds since 1970.
fn nothing_since(shelf: &Shelf, key: &str) -> Option<u64> {
    fs::read_to_string(nothing(shelf, key)).ok()?.parse().ok()
}

/// The layer of the checkout's build output; a new one where the last is too old. `None` where there
/// is nothing to share, in a bare repository, and with `relo.template.warm=false`.
///
/// While another process makes the next one, the last is served.
///
/// # Errors
/// [`Error::Git`] when git cannot list what is ignored, [`Error::Io`].
pub fn refresh(repository: &Repository, options: &Options) -> Result<Option<Warm>> {
    let Some((shelf, key)) = place(repository)? else {
        return Ok(None);
    };
    let top = repository.require_work_dir()?;
    let numbers = numbers(&shelf, &key)?;
    let last = numbers.last().copied();
    let held = match last {
        Some(number) => take(&shelf, name(&key, number), repository)?,
        None => None,
    };
    if !is_due(repository, options)? {
        return Ok(held);
    }
    let selection = select::select(repository, &options.from)?;
    if selection.is_empty() {
        // To look again costs a walk of the checkout.
        let note = nothing(&shelf, &key);
        let folder = note.parent().unwrap_or(&note);
        fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
        replace(&note, options.now.to_string().as_bytes())?;
        return Ok(held);
    }
    let next = last.map_or(1, |last| last + 1);
    let sources = match &options.from {
        Origin::Checkout => vec![top.to_owned()],
        Origin::Directory(top, _) => vec![top.clone()],
        Origin::Layers(layers, _) => layers.clone(),
    };
    let before = held.as_ref().map(Warm::files);
    let there = shelf.make(&name(&key, next), held.is_none(), |folder| {
        let threads = options.threads.max(2);
        let files = folder.join("files");
        fs::create_dir(&files).map_err(|e| Error::io("create", &files, e))?;
        let told = (threads, repository.progress());
        let made = collect::collect(&sources, &selection, &files, before, told)?;
        let meta = Meta {
            format: FORMAT,
            made: options.now,
            tree: options.tree.map(|tree| tree.to_string()),
            boot: boot_id(),
            files: made.files,
            bytes: made.bytes,
        };
        let json = serde_json::to_vec(&meta).expect("invariant: plain data");
        replace(&folder.join("meta.json"), &json)
    })?;
    if !there {
        return Ok(held);
    }
    drop(held);
    for number in numbers {
        // One that is stood on goes with a later one.
        shelf.remove(&name(&key, number))?;
    }
    take(&shelf, name(&key, next), repository)
}

/// The layer of this name, if it is still there.
///
/// # Errors
/// [`Error::Io`], [`Error::Git`] when its lock cannot be had.
pub fn find(repository: &Repository, name: &str) -> Result<Option<Warm>> {
    let shelf = Shelf::new(&repository.relo_dir(), "warm");
    take(&shelf, name.to_owned(), repository)
}

fn name(key: &str, number: u64) -> String {
    format!("{key}-{number}")
}

/// The numbers of a checkout's layers, in order.
fn numbers(shelf: &Shelf, key: &str) -> Result<Vec<u64>> {
    let names = shelf.names()?;
    let number = |name: &String| name.strip_prefix(key)?.strip_prefix('-')?.parse().ok();
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// Takes a layer. One of an earlier start of the machine may lack what was not on disk yet: it is not
/// served, and nothing is linked from it.
fn take(shelf: &Shelf, name: String, repository: &Repository) -> Result<Option<Warm>> {
    let Some(held) = shelf.take(&name)? else {
        return Ok(None);
    };
    let file = shelf.folder(&name).join("meta.json");
    let bytes = fs::read(&file).map_err(|e| Error::io("read", &file, e))?;
    let meta = serde_json::from_slice::<Meta>(&bytes).ok();
    Ok(meta
        .filter(|meta| meta.format == FORMAT && meta.boot == boot_id())
        .map(|meta| Warm {
            shelf: shelf.clone(),
            name,
            tree: meta
                .tree
                .and_then(|hex| ObjectId::from_str_ext(&hex, repository.format()).ok()),
            made: meta.made,
            _held: held,
        }))
}
