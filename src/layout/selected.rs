//! The `checkout` back end for some paths only: a directory with a part of the tree.
//!
//! In the directory's index every other path has git's skip-worktree bit, as in a sparse checkout, so git
//! misses nothing there, and a commit made inside has the whole tree. In the manifest they are not at
//! all: a capture takes no path for deleted that was never laid out, and takes one that a tool makes there
//! for new.

use std::collections::HashSet;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, Timestamps, statat, utimensat};

use super::backend::{Backend, Fit, Ground, Job, LAYING_OUT};
use super::checkout::times;
use super::directory::MANIFEST;
use super::legal::check;
use super::put::Root;
use super::queue::threads;
use super::template::in_parallel;
use super::{Error, Result, Stats, filtered};
use crate::git::index::{IndexEntry, StatData, TreeCache, write_index, write_sparse_index};
use crate::git::tree::{self, Entry, GITLINK};
use crate::git::{Door, ObjectId, Repository, os_str};
use crate::model::{AgentId, Refusal, RepoPath, Work};

/// The back end, for some files and folders.
pub(super) struct Selected {
    paths: Vec<RepoPath>,
}

impl Selected {
    /// Sees that each of the paths is in the tree.
    ///
    /// # Errors
    /// [`Error::Absent`] for the first that is not.
    pub(super) fn new(
        repository: &Repository,
        (agent, tree): (&AgentId, ObjectId),
        paths: &[RepoPath],
    ) -> Result<Self> {
        let objects = repository.objects()?;
        for path in paths {
            if tree::lookup(&objects, tree, path.as_bstr())?.is_none() {
                return Err(Error::Absent {
                    agent: agent.clone(),
                    path: path.clone(),
                });
            }
        }
        let mut paths = paths.to_vec();
        paths.sort_unstable();
        paths.dedup();
        Ok(Selected { paths })
    }
}

/// Whether a path is one of these, or below one.
pub(super) fn covers(selection: &[RepoPath], path: &BStr) -> bool {
    selection.iter().any(|one| {
        path.strip_prefix(one.as_bstr().as_bytes())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

impl Backend for Selected {
    fn name(&self) -> &'static str {
        "checkout"
    }

    fn only(&self) -> &[RepoPath] {
        &self.paths
    }

    /// It is another one than the index, and written here.
    fn keeps_manifest(&self) -> bool {
        false
    }

    fn fits(&self, _: &Ground<'_, '_>) -> Result<Fit> {
        Ok(Ok("only some paths are asked for".to_owned()))
    }

    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats> {
        let repository = job.repository;
        let listing = tree::listing(&repository.objects()?, job.tree)?;
        let is_wanted = |(path, _): &&(BString, Entry)| covers(&self.paths, path.as_bstr());
        let wanted: Vec<(BString, Entry)> =
            listing.files.iter().filter(is_wanted).cloned().collect();
        let root = Root::open(job.into)?;
        let mut folders = HashSet::new();
        for (path, entry) in &wanted {
            check(path, entry.mode)?;
            for end in path.find_iter("/") {
                if folders.insert(&path[..end]) {
                    root.folder(path[..end].as_bstr())?;
                }
            }
        }
        let total = Some(wanted.len() as u64);
        let work = Work::start(repository.progress(), LAYING_OUT, total);
        let by_git = filtered::is_needed(repository, job.tree)?;
        if by_git {
            let is_file = |(_, entry): &&(BString, Entry)| entry.mode != GITLINK;
            let theirs: Vec<_> = wanted.iter().filter(is_file).cloned().collect();
            filtered::write_some(repository, job.tree, &theirs, job.into)?;
        }
        let times = times(root.fd()).map_err(|e| Error::io("look at", job.into, e))?;
        let threads = threads();
        let doors = vec![repository.door(); threads];
        let puts = in_parallel(
            doors,
            wanted.len(),
            |door: Door| Ok(door.open()?),
            |repository, at| {
                let (path, entry) = &wanted[at];
                write(repository, &root, (path.as_bstr(), *entry), by_git)?;
                work.step(1);
                finish(&root, path.as_bstr(), *entry, &times)
            },
        )?;
        drop(work);
        let laid_out: Vec<IndexEntry> = wanted
            .iter()
            .zip(&puts)
            .map(|((path, entry), stat)| index_entry(path, *entry, *stat))
            .collect();
        let manifest = job.admin.join(MANIFEST);
        write_index(&manifest, repository.format(), &laid_out, None)?;
        let rest = listing.files.iter().filter(|one| !is_wanted(one));
        let mut all: Vec<IndexEntry> = rest
            .map(|(path, entry)| index_entry(path, *entry, StatData::default()))
            .collect();
        all.extend(laid_out);
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let mut trees = TreeCache::new();
        for directory in listing.directories {
            trees.record(directory.path, directory.id);
        }
        let index = job.admin.join("index");
        let skips = |path: &BStr| !covers(&self.paths, path);
        write_sparse_index(&index, repository.format(), &all, Some(&trees), &skips)?;
        let files = wanted.iter().filter(|(_, entry)| entry.mode != GITLINK);
        Ok(Stats {
            files: files.count() as u64,
            bytes: puts.iter().map(|stat| u64::from(stat.size)).sum(),
            threads,
        })
    }
}

fn index_entry(path: &BString, entry: Entry, stat: StatData) -> IndexEntry {
    IndexEntry {
        path: path.clone(),
        mode: entry.mode,
        id: entry.id,
        stat,
    }
}

fn write(
    repository: &Repository,
    root: &Root,
    (path, entry): (&BStr, Entry),
    by_git: bool,
) -> Result<()> {
    if by_git && entry.mode != GITLINK {
        return Ok(());
    }
    let bytes = match entry.mode {
        GITLINK => Vec::new(),
        _ => repository.objects()?.blob_at(path, entry.id)?,
    };
    root.put(path, entry.mode, &bytes, None).map(drop)
}

/// Gives a file the time that all have, a little before now, so that it is not racy.
fn finish(root: &Root, path: &BStr, entry: Entry, times: &Timestamps) -> Result<StatData> {
    if entry.mode == GITLINK {
        return Ok(StatData::default());
    }
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let found = utimensat(root.fd(), path.as_bytes(), times, flags)
        .and_then(|()| statat(root.fd(), path.as_bytes(), flags));
    let stat = found.map_err(|e| Error::io("look at", os_str(path), e))?;
    Ok(StatData::from(&stat))
}

/// What is refused where an open directory has not all of the wanted paths.
pub(super) fn lacking(agent: &AgentId, only: &[RepoPath], wanted: &[RepoPath]) -> Result<()> {
    let lacks = |path: &&RepoPath| !only.is_empty() && !covers(only, path.as_bstr());
    match wanted.iter().find(lacks) {
        None => Ok(()),
        Some(path) => {
            let what = format!(
                "a directory of workspace '{agent}' is open in which '{path}' is not laid out"
            );
            Err(Error::refused(Refusal::Materialized, what))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_folder_covers_what_is_in_it_and_nothing_beside() {
        let selection = [RepoPath::new("d/e").unwrap(), RepoPath::new("f").unwrap()];
        for (path, covered) in [
            ("d/e", true),
            ("d/e/x", true),
            ("d/e.x", false),
            ("d", false),
            ("f", true),
            ("ff", false),
        ] {
            assert_eq!(covers(&selection, path.into()), covered, "{path}");
        }
    }
}
