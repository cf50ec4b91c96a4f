//! Capture: what tools did in a directory becomes one revision.
//!
//! The directory is compared with the revision it was cut from, never with `HEAD` in it. In order:
//!
//! 1. [`scan`]: a walk that tells from stat data which known files may have changed, which are gone,
//!    and what is new. An unchanged directory costs no more than this, and no process. Of an overlay
//!    the upper folder says it, and nothing is walked: see [`ground`].
//! 2. [`sift`]: git's own rules say which of the new paths are ignored. A failure of git fails the
//!    capture.
//! 3. [`rewrite`] and [`import`]: the changed and new files are read, hashed and deflated, through git
//!    where attributes rewrite content.
//! 4. The tree is the cut's with these edits, and is published if the overlay is another one.
//!
//! What cannot be imported is left out, told once, and stops nothing: the overlay keeps what it has
//! at such a path. A failure anywhere leaves the previous revision and the directory.

#[cfg(target_os = "linux")]
mod above;
mod commits;
mod crew;
mod ground;
mod import;
mod known;
mod live;
mod part;
mod rewrite;
mod scan;
mod scratch;
mod sift;

pub use commits::Made;
pub use live::{Live, LiveFile, read};

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use self::ground::Ground;
use self::import::{Rules, Taken, Wanted};
use self::known::Known;
use super::{Directory, Error, Result, deliver};
use crate::disk::{self, Unread};
use crate::git::pack::PackEntry;
use crate::git::tree::{self, Entry};
use crate::git::{Conversion, Lock, ObjectId, ObjectKind, Repository, Staging, fault};
use crate::model::Refusal;
use crate::workspace::{self, Change, Kind, LeftOut, Store, Terms, Workspace, max_file_size};

/// How often a capture starts over when the workspace moved under it.
const TRIES: usize = 4;

/// What a capture did.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The workspace as it stands now.
    pub workspace: Workspace,
    /// Whether there was anything to publish.
    pub changed: bool,
    /// What the directory has and the overlay has not, by path, each once.
    pub left_out: Vec<LeftOut>,
    /// The refs that hold what tools committed.
    pub branches: Vec<Made>,
}

/// Imports an open directory as one revision; none where nothing differs. May be repeated.
///
/// The caller holds the agent's lock, under which the directory was found.
///
/// # Errors
/// Failures of git, of the disk, and those of [`Store::publish`]. The previous revision stands then.
pub(super) fn capture_locked(
    store: &Store<'_>,
    lock: &Lock,
    directory: &Directory,
) -> Result<Captured> {
    deliver::resume(store, directory)?;
    let mut tries = 0;
    loop {
        let current = store.load(&directory.agent)?;
        if current.meta.read_only {
            return Ok(Captured {
                workspace: current,
                changed: false,
                left_out: Vec::new(),
                branches: Vec::new(),
            });
        }
        fault::point("capture-begun");
        let adopted = commits::adopt(store, directory)?;
        fault::point("capture-adopted");
        let found = look(store.repository(), directory, &current, adopted.head)?;
        let left_out = found.left_out.clone();
        fault::point("capture-read");
        tries += 1;
        match publish(store, lock, &current, directory, found) {
            // Somebody who does not take the lock has published: what is known is old.
            Err(error) if error.refusal() == Some(Refusal::Stale) && tries < TRIES => {}
            Err(error) => return Err(error),
            Ok((workspace, changed)) => {
                return Ok(Captured {
                    workspace,
                    changed,
                    left_out,
                    branches: adopted.made,
                });
            }
        }
    }
}

/// As a capture for a caller that has the directory at hand, and not the lock.
///
/// # Errors
/// [`crate::git::Error::Locked`]; failures of git, of the disk, and those of [`Store::publish`].
pub fn capture_directory(store: &Store<'_>, directory: &Directory) -> Result<Captured> {
    let lock = store.lock(&directory.agent)?;
    capture_locked(store, &lock, directory)
}

/// What a capture found, ready to be published.
#[derive(Default)]
struct Found {
    /// The edits of the cut's tree.
    edits: BTreeMap<BString, Option<Entry>>,
    packed: Vec<PackEntry>,
    /// Blobs that git has stored, to which nothing refers.
    loose: Vec<ObjectId>,
    left_out: Vec<LeftOut>,
}

fn look(
    repository: &Repository,
    directory: &Directory,
    current: &Workspace,
    head: Option<ObjectId>,
) -> Result<Found> {
    let mut ground = Ground::open(repository, directory)?;
    let mut seen = ground.look()?;
    let known = Known::new(repository, directory, ground.manifest.take(), current, head)?;
    let files = sift::sift(repository, directory, (&mut ground, &known), &mut seen)?;
    let mut wanted: Vec<Wanted> = seen
        .suspects
        .into_iter()
        .chain(files)
        .map(|path| {
            Ok(Wanted {
                known: known.file(path.as_bstr())?,
                path,
                conversion: Conversion::Never,
            })
        })
        .collect::<Result<_>>()?;
    ground.show_rules(wanted.iter().map(|one| (&one.path, false)))?;
    seen.attributes.extend(ground.attributes());
    rewrite::find_conversions(
        (repository, directory),
        &ground,
        &seen.attributes,
        &mut wanted,
    )?;
    let read = rewrite::read((repository, directory), &ground, rules(repository)?, wanted)?;
    let mut found = Found {
        left_out: seen.left_out,
        ..Found::default()
    };
    found
        .edits
        .extend(seen.gone.into_iter().map(|path| (path, None)));
    let restored = seen.restored.into_iter();
    found
        .edits
        .extend(restored.map(|(path, entry)| (path, Some(entry))));
    for (path, taken) in read.taken {
        let entry = match taken {
            Taken::Held(entry) => Some(entry),
            Taken::New(entry, packed) => {
                found.packed.push(packed);
                Some(entry)
            }
            Taken::LeftOut(kind) => {
                found.left_out.push(LeftOut { path, kind });
                continue;
            }
            Taken::Gone | Taken::ForGit(..) => None,
        };
        found.edits.insert(path, entry);
    }
    for (path, entry) in read.stored {
        found.loose.push(entry.id);
        found.edits.insert(path, Some(entry));
    }
    for (path, entry) in known.submodules() {
        // Files that took a submodule's place are found as such.
        if entry.is_none_or(|entry| entry.mode == tree::GITLINK) {
            let edit = found.edits.entry(path.clone());
            edit.or_insert(entry);
        }
        // One that the workspace has no more is not missing.
        let nothing = || {
            matches!(
                disk::stat(ground.files(), path.as_bstr()),
                Err(Unread::Gone)
            )
        };
        if entry.is_none() && nothing() {
            found.left_out.retain(|one| one.path != *path);
        }
    }
    found.keep_left_out(&known)?;
    Ok(found)
}

/// The settings that say how files are read.
fn rules(repository: &Repository) -> Result<Rules> {
    let config = repository.config()?;
    Ok(Rules {
        format: repository.format(),
        limit: max_file_size(repository)?,
        executable_bit: config.bool("core.filemode")?.unwrap_or(true),
        links: config.bool("core.symlinks")?.unwrap_or(true),
    })
}

impl Found {
    /// At what is left out, the overlay stays as it is now, whatever the walk made of it.
    fn keep_left_out(&mut self, known: &Known<'_>) -> Result<()> {
        self.left_out.sort_by(|a, b| a.path.cmp(&b.path));
        self.left_out.dedup_by(|a, b| a.path == b.path);
        for LeftOut { path, .. } in &self.left_out {
            let mut below = path.clone();
            below.push(b'/');
            let inside: Vec<BString> = self
                .edits
                .range(below.clone()..)
                .take_while(|(path, _)| path.starts_with(&below))
                .map(|(path, _)| path.clone())
                .collect();
            for path in inside {
                self.edits.remove(&path);
            }
            // Below a new file there is no place to keep anything in.
            if !self.is_covered(path.as_bstr()) {
                let kept = known.in_overlay(path.as_bstr())?;
                self.edits.insert(path.clone(), kept);
            }
        }
        Ok(())
    }

    fn is_covered(&self, path: &BStr) -> bool {
        path.find_iter("/").any(|slash| {
            let above = path[..slash].as_bstr();
            self.edits.get(above).is_some_and(Option::is_some)
        })
    }

    fn tree(&mut self, staging: &mut Staging<'_>, cut: ObjectId) -> workspace::Result<ObjectId> {
        for packed in std::mem::take(&mut self.packed) {
            staging.push(packed);
        }
        for id in std::mem::take(&mut self.loose) {
            staging.copy(id, ObjectKind::Blob)?;
        }
        Ok(tree::edit(staging, cut, &self.edits)?)
    }
}

fn publish(
    store: &Store<'_>,
    lock: &Lock,
    current: &Workspace,
    directory: &Directory,
    mut found: Found,
) -> Result<(Workspace, bool)> {
    if found.edits.is_empty() && current.tree == directory.cut.tree {
        return Ok((current.clone(), false));
    }
    let terms = Terms {
        // What was found holds against this revision. The closure runs once at most: a lost
        // compare-and-swap comes back as stale.
        expect: Some(current.revision()),
        while_open: true,
        ..Terms::default()
    };
    let done = store.publish_locked(lock, &directory.agent, terms, |workspace, staging| {
        let tree = found.tree(staging, directory.cut.tree)?;
        if tree == workspace.tree {
            return Ok(None);
        }
        let changed = tree::diff(staging, Some(workspace.tree), Some(tree))?;
        let paths = changed.into_iter().map(|change| change.path).collect();
        Ok(Some(Change::new(Kind::Capture, paths, tree)))
    });
    let done = done.map_err(Error::from)?;
    Ok((done.workspace, done.changed))
}
