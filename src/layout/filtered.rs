//! Laying out through git itself, for trees whose content git rewrites on the way to the disk: line
//! endings, `ident`, filter drivers, encodings.
//!
//! One `git read-tree -u` writes every file as a checkout would, hooks excepted; a few files of a tree
//! are written by `git checkout-index`. The index is then written again by us, from what is on disk.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, statat, utimensat};
use rustix::io::Errno;

use super::backend::{Job, LAYING_OUT};
use super::checkout::times;
use super::legal::check;
use super::{Error, Result, Stats};
use crate::git::index::{IndexEntry, IndexFile, StatData, TreeCache, write_index};
use crate::git::tree::{self, Change, Listing};
use crate::git::{self, ObjectId, Objects, Repository};
use crate::model::Work;

const RULES: &[u8] = b".gitattributes";
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
    Ok(!rules_outside(repository)?.is_empty())
}

/// The texts of the attribute files outside the tree that may make git rewrite content.
fn rules_outside(repository: &Repository) -> Result<Vec<Vec<u8>>> {
    let files = attribute_files(repository)?.into_iter();
    // One that cannot be read, git passes over too.
    let texts = files.filter_map(|file| fs::read(file).ok());
    Ok(texts.filter(|text| mentioned_in(text)).collect())
}

/// What has a say, apart from the tree itself, in the bytes that git writes to disk: for equal words the
/// same tree gives the same files. Empty where nothing is set.
///
/// # Errors
/// Settings that make no sense.
pub(super) fn terms(repository: &Repository) -> Result<Vec<u8>> {
    let config = repository.config()?;
    let mut said = Vec::new();
    for (key, default) in [
        ("core.autocrlf", "false"),
        ("core.eol", "false"),
        ("core.symlinks", "true"),
        ("attr.tree", ""),
    ] {
        let value = config.string(key).filter(|value| value != default);
        if let Some(value) = value {
            said.extend_from_slice(format!("{key}={value}\n").as_bytes());
        }
    }
    for (key, value) in config.smudging() {
        said.extend_from_slice(format!("{key}={value}\n").as_bytes());
    }
    for text in rules_outside(repository)? {
        said.extend_from_slice(&text);
        said.push(b'\n');
    }
    Ok(said)
}

/// Whether the files of a tree are to be written by git: their content may be rewritten, links may
/// become files, or objects are still to be fetched, which git does for all at once.
///
/// # Errors
/// An object that cannot be read.
pub(super) fn is_needed(repository: &Repository, tree: ObjectId) -> Result<bool> {
    Ok(repository.is_partial()
        || repository.config()?.bool("core.symlinks")? == Some(false)
        || set_everywhere(repository)?
        || set_in_tree(repository, tree)?)
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
fn set_in_tree(repository: &Repository, tree: ObjectId) -> Result<bool> {
    let objects = repository.objects()?;
    for (path, entry) in tree::listing(&objects, tree)?.files {
        if is_rules(&path) && entry.is_file() && mentioned_in(&objects.blob(entry.id)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether it is the path of an attributes file.
fn is_rules(path: &[u8]) -> bool {
    path.rsplit_str("/").next() == Some(RULES)
}

/// Whether these changes of a tree may change how git writes files that they do not name.
///
/// # Errors
/// An object that cannot be read.
pub(super) fn rules_differ(objects: &Objects<'_>, changes: &[Change]) -> Result<bool> {
    for change in changes.iter().filter(|change| is_rules(&change.path)) {
        let sides = [change.old, change.new];
        for side in sides.into_iter().flatten().filter(tree::Entry::is_file) {
            if mentioned_in(&objects.blob(side.id)?) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Lets git write a whole tree into a folder without files. The index is nobody's afterwards.
///
/// # Errors
/// As [`lay_out`].
pub(super) fn check_out(
    repository: &Repository,
    (tree, listing): (ObjectId, &Listing),
    (into, git_dir): (&Path, &Path),
    index: &Path,
) -> Result<()> {
    let mut command = repository.git().in_directory(into, git_dir);
    for setting in PLAIN {
        command = command.args(["-c", setting]);
    }
    command
        .index_file(index)
        .args(["read-tree", "--reset", "-u"])
        .arg(tree.to_string())
        .output()
        .map_err(|error| match repository.objects() {
            Ok(objects) => blame(&objects, listing, error),
            Err(_) => error.into(),
        })?;
    Ok(())
}

/// Lets git write some files of a tree into a folder that has none of them, by the rules of that tree.
///
/// # Errors
/// As [`lay_out`].
pub(super) fn write_some(
    repository: &Repository,
    tree: ObjectId,
    files: &[(BString, tree::Entry)],
    into: &Path,
) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let objects = repository.objects()?;
    let mut indexed: BTreeMap<BString, tree::Entry> = files.iter().cloned().collect();
    let mut asked = HashSet::new();
    for (path, _) in files {
        let slashes = path.find_iter("/").map(|slash| slash + 1);
        for start in std::iter::once(0).chain(slashes) {
            let folder = &path[..start];
            if !asked.insert(folder) {
                continue;
            }
            let mut rules = BString::from(folder);
            rules.extend_from_slice(RULES);
            if let Some(entry) = tree::lookup(&objects, tree, rules.as_bstr())?
                && entry.is_file()
            {
                indexed.insert(rules, entry);
            }
        }
    }
    let entries: Vec<IndexEntry> = indexed
        .into_iter()
        .map(|(path, entry)| IndexEntry {
            path,
            mode: entry.mode,
            id: entry.id,
            stat: StatData::default(),
        })
        .collect();
    let parent = into.parent().unwrap_or(into);
    let folder = tempfile::Builder::new().prefix("index-").tempdir_in(parent);
    let folder = folder.map_err(|e| Error::io("create a folder in", parent, e))?;
    let index = folder.path().join("index");
    write_index(&index, repository.format(), &entries, None)?;
    let mut names = Vec::new();
    for (path, _) in files {
        names.extend_from_slice(path);
        names.push(0);
    }
    let mut command = repository.git().in_directory(into, repository.git_dir());
    for setting in PLAIN {
        command = command.args(["-c", setting]);
    }
    command
        .index_file(&index)
        .args(["checkout-index", "--force", "-z", "--stdin"])
        .stdin(names)
        .output()?;
    Ok(())
}

/// Lays a tree out through git.
///
/// # Errors
/// [`git::Error::Git`] with git's own words, as when a required filter is missing.
pub(super) fn lay_out(job: &Job<'_, '_>) -> Result<Stats> {
    let listing = tree::listing(&job.repository.objects()?, job.tree)?;
    for (path, entry) in &listing.files {
        check(path, entry.mode)?;
    }
    let total = Some(listing.files.len() as u64);
    let work = Work::start(job.repository.progress(), LAYING_OUT, total);
    let index = job.admin.join("index");
    let place = (job.into, job.admin);
    check_out(job.repository, (job.tree, &listing), place, &index)?;
    let (entries, bytes) = entries(job, &listing, &index, &work)?;
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
fn entries(
    job: &Job<'_, '_>,
    listing: &Listing,
    index: &Path,
    work: &Work<'_>,
) -> Result<(Vec<IndexEntry>, u64)> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let top = rustix::fs::open(job.into, flags, Mode::empty())
        .map_err(|error| Error::io("open", job.into, error))?;
    let times = times(&top).map_err(|error| Error::io("look at", job.into, error))?;
    let written = IndexFile::open(index, job.repository.format())?;
    let mut seen = HashMap::new();
    let mut bytes = 0;
    let mut entries = Vec::with_capacity(listing.files.len());
    for (path, entry) in &listing.files {
        work.step(1);
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
