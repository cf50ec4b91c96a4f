//! Laying out a template: by several writers, from the object database, or from a near template; by
//! git itself, where that rewrites content.

use std::collections::HashSet;
use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{Mode, OFlags, fstat, openat};

use super::copy::{copy, in_parallel};
use super::{Options, Template};
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index};
use crate::git::tree::{Change, Entry, GITLINK, Listing, listing};
use crate::git::{Door, ObjectId, Repository, os_str};
use crate::layout::backend::LAYING_OUT;
use crate::layout::put::{Put, Root, Users, set_time, time_in};
use crate::layout::queue::threads;
use crate::layout::{Error, Result, filtered};
use crate::model::{RepoPath, Work};

/// So many files that git would hash again are worth waiting for the next second.
const WORTH_WAITING: usize = 2000;

/// What was made.
pub(super) struct Made {
    pub(super) files: usize,
    pub(super) bytes: u64,
    /// Whether git has written it.
    pub(super) by_git: bool,
}

/// What all threads share.
struct Plan<'a> {
    listing: &'a Listing,
    root: Root,
    users: Option<Users>,
    near: Option<(Root, HashSet<&'a BStr>)>,
    /// Whether git has written what is not copied from the near one.
    by_git: bool,
}

/// Fills `folder` with `files/` and `index`.
pub(super) fn make(
    repository: &Repository,
    tree: ObjectId,
    folder: &Path,
    near_one: Option<&(Template, Vec<Change>)>,
    options: &Options,
) -> Result<Made> {
    let listing = listing(&repository.objects()?, tree)?;
    for (path, _) in &listing.files {
        RepoPath::from_tree(path).map_err(|e| Error::refused(e.refusal(), e.to_string()))?;
    }
    let files = folder.join("files");
    fs::create_dir(&files).map_err(|e| Error::io("create", &files, e))?;
    let root = Root::open(&files)?;
    for directory in listing.directories.iter().skip(1) {
        root.folder(directory.path.as_bstr())?;
    }
    let near = match near_one {
        Some((template, changes)) => {
            let changed = changes.iter().map(|change| change.path.as_bstr());
            Some((Root::open(&template.files())?, changed.collect()))
        }
        None => None,
    };
    let plan = Plan {
        listing: &listing,
        root,
        users: options.users.as_deref().and_then(Users::open),
        near,
        by_git: match near_one {
            // The same attributes hold in it.
            Some((template, _)) => template.is_by_git(),
            None => filtered::is_needed(repository, tree)?,
        },
    };
    let total = Some(listing.files.len() as u64);
    let work = Work::start(repository.progress(), LAYING_OUT, total);
    if plan.by_git {
        plan.let_git_write(repository, tree, folder)?;
    }
    let threads = match options.threads {
        0 => threads(),
        some => some.max(2),
    };
    let doors = vec![repository.door(); threads];
    let puts = in_parallel(
        doors,
        listing.files.len(),
        |door: Door| Ok(door.open()?),
        |repository, at| {
            let (path, entry) = &plan.listing.files[at];
            work.step(1);
            plan.write(repository, path, *entry)
        },
    )?;
    drop(work);
    settle_times(&puts);
    index(repository, folder, &listing, &puts)?;
    Ok(Made {
        files: puts.len(),
        bytes: puts.iter().map(|put| u64::from(put.stat.size)).sum(),
        by_git: plan.by_git,
    })
}

impl Plan<'_> {
    /// The near template's top, where a file of it is this one.
    fn source_of(&self, path: &BStr, entry: Entry) -> Option<&Root> {
        let (near, changed) = self.near.as_ref()?;
        (entry.is_file() && !changed.contains(path)).then_some(near)
    }

    /// Lets git write what is not copied.
    fn let_git_write(&self, repository: &Repository, tree: ObjectId, folder: &Path) -> Result<()> {
        let files = folder.join("files");
        if self.near.is_none() {
            let place = (&*files, repository.git_dir());
            let index = folder.join("index");
            return filtered::check_out(repository, (tree, self.listing), place, &index);
        }
        let is_theirs = |(path, entry): &&(BString, Entry)| {
            entry.mode != GITLINK && self.source_of(path.as_bstr(), *entry).is_none()
        };
        let theirs: Vec<_> = self
            .listing
            .files
            .iter()
            .filter(is_theirs)
            .cloned()
            .collect();
        filtered::write_some(repository, tree, &theirs, &files)
    }

    fn write(&self, repository: &Repository, path: &BString, entry: Entry) -> Result<Put> {
        let path = path.as_bstr();
        if let Some(near) = self.source_of(path, entry) {
            return self.clone_file(near, path, entry);
        }
        if self.by_git && entry.mode != GITLINK {
            return self.root.found(path, self.users.as_ref());
        }
        let stored = match entry.mode {
            GITLINK => Vec::new(),
            _ => repository.objects()?.blob_at(path, entry.id)?,
        };
        // Nothing rewrites it: see `by_git`.
        self.root
            .put(path, entry.mode, &stored, self.users.as_ref())
    }

    /// Copies an unchanged file; its time is the user's if the user's file is the same.
    fn clone_file(&self, near: &Root, path: &BStr, entry: Entry) -> Result<Put> {
        let failed = |e: std::io::Error| Error::io("copy", os_str(path), e);
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = openat(near.fd(), path.as_bytes(), flags, Mode::empty());
        let from = File::from(from.map_err(|e| failed(e.into()))?);
        let old = fstat(&from).map_err(|e| failed(e.into()))?;
        let to = self.root.create(path, entry.mode)?;
        copy(&from, &to).map_err(failed)?;
        let size = u64::try_from(old.st_size).unwrap_or(0);
        let time = self.users.as_ref().and_then(|users| {
            let users_stat = users.candidate(path, size)?;
            let time = time_in(&users_stat);
            if time == time_in(&old) {
                return Some(time);
            }
            // The same bytes with another time: the user went to another branch and back.
            let bytes = crate::disk::read_at(near.fd(), path, u64::MAX).ok();
            users.time_of(path, &bytes?)
        });
        if let Some(time) = time {
            set_time(&to, time).map_err(|e| failed(e.into()))?;
        }
        let stat = fstat(&to).map_err(|e| failed(e.into()))?;
        Ok(Put {
            stat: StatData::from(&stat),
            adopted: time.is_some(),
        })
    }
}

/// Git hashes files again that are as new as the index, in whole seconds. Where many are, the index
/// waits for the next second: once for a template, instead of in each directory that is cut from it.
/// Giving the files an earlier time instead could make them look older than build output.
fn settle_times(puts: &[Put]) {
    let fresh = puts.iter().filter(|put| !put.adopted);
    let latest = fresh.clone().map(|put| put.stat.mtime).max();
    if let Some((_, nanoseconds)) = latest.filter(|_| fresh.count() > WORTH_WAITING) {
        let left = 1_000_000_000_u64.saturating_sub(u64::from(nanoseconds));
        std::thread::sleep(Duration::from_nanos(left));
    }
}

fn index(repository: &Repository, folder: &Path, listing: &Listing, puts: &[Put]) -> Result<()> {
    let entries: Vec<IndexEntry> = listing
        .files
        .iter()
        .zip(puts)
        .map(|((path, entry), put)| IndexEntry {
            path: path.clone(),
            mode: entry.mode,
            id: entry.id,
            stat: put.stat,
        })
        .collect();
    let mut trees = TreeCache::new();
    for directory in &listing.directories {
        trees.record(directory.path.clone(), directory.id);
    }
    write_index(
        &folder.join("index"),
        repository.format(),
        &entries,
        Some(&trees),
    )?;
    Ok(())
}
