//! Laying out through git itself, for trees whose content git rewrites on the way to the disk: line
//! endings, `ident`, filter drivers, encodings.
//!
//! One `git read-tree -u` in the directory's own git dir writes every file as a checkout would,
//! hooks excepted. The index is then written again by us, from what is on disk.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat, utimensat};
use rustix::io::Errno;

use super::backend::Job;
use super::checkout::times;
use super::legal::check;
use super::{Error, Result, Stats};
use crate::git::index::{IndexEntry, IndexFile, StatData, TreeCache, write_index};
use crate::git::tree::{self, Listing};
use crate::git::{self, ObjectId, Objects, Repository};

/// Settings of the user's that would give the index a form that we do not read back, or leave
/// files out.
pub(super) const PLAIN: [&str; 9] = [
    "index.version=2",
    "index.skipHash=false",
    "index.sparse=false",
    "core.splitIndex=false",
    "core.untrackedCache=false",
    "core.sparseCheckout=false",
    "feature.manyFiles=false",
    "submodule.recurse=false",
    "checkout.workers=0",
];

/// Whether settings or attributes outside the tree may rewrite content.
pub(super) fn set_everywhere(repository: &Repository) -> Result<bool> {
    let config = repository.config()?;
    let is = |key: &str, value: &str| {
        let set = config.string(key);
        set.is_some_and(|set| set.eq_ignore_ascii_case(value))
    };
    let autocrlf = !is("core.autocrlf", "input") && config.bool("core.autocrlf")? == Some(true);
    if autocrlf || is("core.eol", "crlf") {
        return Ok(true);
    }
    let files = attribute_files(repository)?;
    for file in files {
        match fs::read(&file) {
            Ok(text) if mentioned_in(&text) => return Ok(true),
            // One that cannot be read, git passes over too.
            _ => {}
        }
    }
    Ok(false)
}

fn attribute_files(repository: &Repository) -> Result<Vec<PathBuf>> {
    let environment = repository.environment();
    let mut files = vec![repository.common_dir().join("info/attributes")];
    let home = environment.path("HOME");
    match repository.config()?.string("core.attributesfile") {
        Some(set) => files.push(match (set.strip_prefix("~/"), &home) {
            (Some(rest), Some(home)) => home.join(rest),
            _ => environment.current_dir.join(set),
        }),
        None => {
            let folder = environment.path("XDG_CONFIG_HOME");
            let folder = folder.or_else(|| Some(home?.join(".config")));
            files.extend(folder.map(|folder| folder.join("git/attributes")));
        }
    }
    if environment.get("GIT_ATTR_NOSYSTEM").is_none() {
        files.push("/etc/gitattributes".into());
    }
    Ok(files)
}

/// Whether a file of attributes may make git rewrite content on the way to the disk. It may say yes
/// too often, which costs time, never too seldom.
pub(super) fn mentioned_in(attributes: &[u8]) -> bool {
    const WORDS: [&str; 4] = ["filter", "ident", "working-tree-encoding", "eol=crlf"];
    attributes
        .lines()
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"))
        .any(|line| WORDS.iter().any(|word| line.contains_str(word)))
}

/// Whether an attributes file of the tree may make git rewrite content on the way to the disk.
///
/// # Errors
/// An object that cannot be read.
pub(super) fn set_in_tree(repository: &Repository, tree: ObjectId) -> Result<bool> {
    let objects = repository.objects()?;
    for (path, entry) in tree::listing(&objects, tree)?.files {
        let name = path
            .rsplit_once_str("/")
            .map_or(&path[..], |(_, name)| name);
        if name == b".gitattributes" && entry.is_file() && mentioned_in(&objects.blob(entry.id)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Lays a tree out through git.
///
/// # Errors
/// [`git::Error::Git`] with git's own words, as when a required filter is missing.
pub(super) fn lay_out(job: &Job<'_, '_>) -> Result<Stats> {
    let objects = job.repository.objects()?;
    let listing = tree::listing(&objects, job.tree)?;
    for (path, entry) in &listing.files {
        check(path, entry.mode)?;
    }
    let mut command = job.repository.git().in_directory(job.into, job.admin);
    for setting in PLAIN {
        command = command.args(["-c", setting]);
    }
    command
        .args(["read-tree", "--reset", "-u"])
        .arg(job.tree.to_string())
        .output()
        .map_err(|error| blame(&objects, &listing, error))?;
    let index = job.admin.join("index");
    let (entries, bytes) = entries(job, &listing, &index)?;
    let mut trees = TreeCache::new();
    for directory in listing.directories {
        trees.record(directory.path, directory.id);
    }
    write_index(&index, job.repository.format(), &entries, Some(&trees))?;
    let links = entries.iter().filter(|e| e.mode == tree::GITLINK).count();
    Ok(Stats {
        files: (entries.len() - links) as u64,
        bytes,
        threads: 1,
    })
}

/// Names the path where git could not get an object, which it itself does not.
fn blame(objects: &Objects<'_>, listing: &Listing, error: git::Error) -> Error {
    let files = listing.files.iter();
    let mut missing = files.filter(|(_, e)| e.mode != tree::GITLINK && !objects.exists(e.id));
    match missing.next() {
        Some((path, entry)) => Error::Tree(tree::Error::Blob {
            id: entry.id,
            path: path.clone(),
            source: Box::new(error),
        }),
        None => error.into(),
    }
}

/// The index entries with the stat data of what git wrote, and its size in bytes.
fn entries(job: &Job<'_, '_>, listing: &Listing, index: &Path) -> Result<(Vec<IndexEntry>, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::open(job.into, flags, Mode::empty())
        .map_err(|error| Error::io("open", job.into, error))?;
    let times = times(&top).map_err(|error| Error::io("look at", job.into, error))?;
    let written = IndexFile::open(index, job.repository.format())?;
    let mut seen = HashMap::new();
    let mut bytes = 0;
    let mut entries = Vec::with_capacity(listing.files.len());
    for (path, entry) in &listing.files {
        let place = job.into.join(git::os_str(path.as_bstr()));
        let failed = |error: Errno| Error::io("look at", &place, error);
        let mut stat = StatData::default();
        if entry.mode != tree::GITLINK {
            let (folder, name) = crate::disk::parent(job.into, path.as_bstr()).map_err(failed)?;
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            utimensat(&folder, name.as_bytes(), &times, flags).map_err(failed)?;
            let found = statat(&folder, name.as_bytes(), flags).map_err(failed)?;
            if FileType::from_raw_mode(found.st_mode) == FileType::Directory
                || seen.insert(found.st_ino, ()).is_some()
                || written.find(path.as_bstr()).is_none()
            {
                return Err(Error::Collision {
                    path: path.clone(),
                    root: job.into.to_owned(),
                });
            }
            bytes += u64::try_from(found.st_size).unwrap_or(0);
            stat = StatData::from(&found);
        }
        entries.push(IndexEntry {
            path: path.clone(),
            mode: entry.mode,
            id: entry.id,
            stat,
        });
    }
    Ok((entries, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_that_rewrite_are_noticed() {
        for (text, rewrites) in [
            ("* text=auto\n*.sh eol=lf\n", false),
            ("# filter=lfs\n", false),
            ("", false),
            ("*.bin binary -diff\n*.bat eol=crlf", true),
            ("[attr]lfs filter=lfs -text\n", true),
            ("*.c ident\n", true),
            ("a\tworking-tree-encoding=UTF-16\n", true),
        ] {
            assert_eq!(mentioned_in(text.as_bytes()), rewrites, "{text}");
        }
    }
}
