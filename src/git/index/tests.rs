//! The index held against Git: what we write, git must list, find clean and turn into the same tree.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::git::scratch::Scratch;
use crate::git::{ObjectFormat, ObjectId, ObjectKind};
use bstr::{BStr, ByteSlice};
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

/// What the directory of the tests holds: path, mode, content.
fn layout() -> Vec<(Vec<u8>, u32, Vec<u8>)> {
    let mut files = vec![
        (&b"Makefile"[..], 0o100644, &b"all:\n"[..]),
        (b"a-b", 0o100644, b"sorts before a/"),
        (b"a/deep/er/file", 0o100644, b"deep\n"),
        (b"a/run.sh", 0o100755, b"#!/bin/sh\n"),
        (b"a0", 0o100644, b"sorts after a/"),
        (b"bb/x", 0o100644, b""),
        (b"link", 0o120000, b"a/run.sh"),
        (b"new\nline\t\"quoted\"", 0o100644, b"odd"),
        (b"not-\xff-utf8/\xfe", 0o100644, b"bytes"),
    ];
    files.sort();
    let owned = |(path, mode, data): (&[u8], u32, &[u8])| (path.to_vec(), mode, data.to_vec());
    files.into_iter().map(owned).collect()
}

fn stat_of(path: &Path) -> StatData {
    StatData::from(&rustix::fs::lstat(path).unwrap())
}

/// Lays the files out with times in the past, and returns their entries.
fn lay_out(repo: &Scratch) -> Vec<IndexEntry> {
    let past = SystemTime::now() - Duration::from_secs(100);
    let mut entries = Vec::new();
    for (path, mode, data) in layout() {
        let file = repo.top().join(OsStr::from_bytes(&path));
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        if mode == 0o120000 {
            symlink(OsStr::from_bytes(&data), &file).unwrap();
            let time = rustix::fs::Timespec {
                tv_sec: 1_700_000_000,
                tv_nsec: 5,
            };
            let times = rustix::fs::Timestamps {
                last_access: time,
                last_modification: time,
            };
            let flags = rustix::fs::AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(rustix::fs::CWD, &file, &times, flags).unwrap();
        } else {
            fs::write(&file, &data).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(mode & 0o777)).unwrap();
            let open = fs::File::options().write(true).open(&file).unwrap();
            open.set_modified(past).unwrap();
        }
        entries.push(IndexEntry {
            path: path.into(),
            mode,
            id: ObjectId::hash_object_ext(ObjectKind::Blob, &data, repo.format).unwrap(),
            stat: stat_of(&file),
        });
    }
    entries
}

/// The tree ids of all directories of `tree`, as git knows them.
fn trees_of(repo: &Scratch, tree: &str) -> TreeCache {
    let mut trees = TreeCache::new();
    trees.record("", repo.id(&["rev-parse", tree]));
    for row in repo
        .git(&["ls-tree", "-r", "-d", "-z", tree])
        .split_str("\0")
    {
        let Some((meta, path)) = row.split_once_str("\t") else {
            continue;
        };
        // A gitlink passes for a directory here.
        let Some(id) = meta.strip_prefix(b"040000 tree ") else {
            continue;
        };
        let id = ObjectId::from_str_ext(id.to_str().unwrap(), repo.format).unwrap();
        trees.record(path, id);
    }
    trees
}

/// The data of an extension of git's or our index file.
fn extension(bytes: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let at = bytes.rfind(name)?;
    let len = u32::from_be_bytes(bytes[at + 4..at + 8].try_into().unwrap());
    Some(bytes[at + 8..at + 8 + len as usize].to_vec())
}

/// A repository whose HEAD holds the layout, and its index as we write it.
fn committed(format: ObjectFormat) -> (Scratch, Vec<IndexEntry>) {
    let repo = Scratch::new(format);
    let entries = lay_out(&repo);
    repo.git(&["add", "."]);
    repo.git(&["commit", "-q", "-m", "layout"]);
    let trees = trees_of(&repo, "HEAD^{tree}");
    let index = repo.top().join(".git/index");
    fs::remove_file(&index).unwrap();
    write_index(&index, format, &entries, Some(&trees)).unwrap();
    (repo, entries)
}

#[test]
fn git_lists_the_entries_as_its_own() {
    for format in FORMATS {
        let repo = Scratch::new(format);
        let entries = lay_out(&repo);
        repo.git(&["add", "."]);
        let args = ["ls-files", "--stage", "--debug", "-z"];
        let gits = repo.git(&args);
        let index = repo.top().join(".git/index");
        fs::remove_file(&index).unwrap();
        write_index(&index, format, &entries, None).unwrap();
        assert_eq!(repo.git(&args).as_bstr(), gits.as_bstr());
        let left: Vec<_> = fs::read_dir(repo.top().join(".git"))
            .unwrap()
            .filter(|f| f.as_ref().unwrap().path().extension() == Some(OsStr::new("tmp")))
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn git_finds_the_directory_clean_without_reading_a_file() {
    for format in FORMATS {
        let (repo, entries) = committed(format);
        repo.git(&["fsck", "--full", "--strict"]);
        assert_eq!(repo.git(&["status", "--porcelain"]), b"");
        // Neither of these refreshes: an entry whose stat data or content differ would be shown.
        assert_eq!(repo.git(&["diff-files", "--raw"]), b"");
        assert_eq!(repo.git(&["diff-index", "--cached", "HEAD"]), b"");
        // Content changed behind the stat data's back goes unseen, so the content was not read.
        let target = repo.top().join("a0");
        let file = fs::File::options().write(true).open(&target).unwrap();
        let modified = file.metadata().unwrap().modified().unwrap();
        std::os::unix::fs::FileExt::write_all_at(&file, b"S", 0).unwrap();
        file.set_modified(modified).unwrap();
        repo.git(&["config", "core.trustctime", "false"]);
        assert_eq!(repo.git(&["diff-files", "--raw"]), b"", "no file is read");
        // Whereas a changed time makes git look, and see.
        file.set_modified(modified + Duration::from_secs(3))
            .unwrap();
        assert_eq!(repo.git(&["status", "--porcelain"]), b" M a0\n");
        assert_eq!(entries.len(), layout().len());
    }
}

#[test]
fn the_tree_cache_is_the_one_git_would_write() {
    for format in FORMATS {
        let (repo, _) = committed(format);
        let index = repo.top().join(".git/index");
        let ours = extension(&fs::read(&index).unwrap(), b"TREE").unwrap();
        let tree = repo.line(&["rev-parse", "HEAD^{tree}"]);
        assert_eq!(repo.line(&["write-tree"]), tree);
        repo.git(&["read-tree", "HEAD"]);
        let gits = extension(&fs::read(&index).unwrap(), b"TREE").unwrap();
        assert_eq!(ours.as_bstr(), gits.as_bstr());
        repo.git(&["update-index", "-q", "--refresh"]);
        assert_eq!(repo.line(&["write-tree"]), tree);
    }
}

#[test]
fn what_is_written_reads_back() {
    for format in FORMATS {
        let (repo, entries) = committed(format);
        let path = repo.top().join(".git/index");
        let index = IndexFile::open(&path, format).unwrap();
        let read: Vec<IndexEntry> = index
            .entries()
            .map(|e| IndexEntry {
                path: e.path.to_owned(),
                mode: e.mode,
                id: e.id,
                stat: e.stat,
            })
            .collect();
        assert_eq!(read, entries);
        for entry in &entries {
            let file = repo.top().join(OsStr::from_bytes(&entry.path));
            let found = index.find(entry.path.as_ref()).unwrap();
            assert_eq!(found.id, entry.id);
            assert!(found.stat.matches(&stat_of(&file)));
            assert!(!index.is_racy(&found.stat));
        }
        for absent in ["", "a", "a/", "zzz", "Makefile/x"] {
            assert_eq!(index.find(BStr::new(absent)), None, "{absent}");
        }
        assert_eq!(index.written(), stat_of(&path).mtime);
        let mut stat = StatData {
            mtime: index.written(),
            ..StatData::default()
        };
        assert!(index.is_racy(&stat), "of the same instant");
        stat.mtime.0 += 1;
        assert!(index.is_racy(&stat), "later");
        stat.mtime = (index.written().0 - 1, 999_999_999);
        assert!(!index.is_racy(&stat));
    }
}

#[test]
fn an_index_with_other_stat_data_is_the_one_that_would_be_written() {
    for format in FORMATS {
        let (repo, mut entries) = committed(format);
        let mut trees = TreeCache::new();
        trees.record("", entries[0].id);
        let at = |name: &str| repo.top().join(name);
        write_index(&at("one"), format, &entries, Some(&trees)).unwrap();
        for (n, entry) in entries.iter_mut().enumerate() {
            entry.stat.ino = n as u32;
            entry.stat.mtime = (n as u32, 5);
        }
        write_index(&at("two"), format, &entries, Some(&trees)).unwrap();
        let one = IndexFile::open(&at("one"), format).unwrap();
        let stats: Vec<StatData> = entries.iter().map(|entry| entry.stat).collect();
        write_index_like(&at("like"), &one, &stats).unwrap();
        let [two, like] = ["two", "like"].map(|name| std::fs::read(at(name)).unwrap());
        assert_eq!(two, like);
        assert!(write_index_like(&at("like"), &one, &stats[1..]).is_err());
    }
}

#[test]
fn git_reads_what_we_write_of_paths_without_files_and_we_what_git_writes() {
    for format in FORMATS {
        let repo = Scratch::new(format);
        let long = ["d".repeat(200).as_str(); 25].join("/");
        let id = ObjectId::hash_object_ext(ObjectKind::Blob, b"", format).unwrap();
        repo.git(&["hash-object", "-w", "/dev/null"]);
        let paths = [
            (&b"edge/"[..], 4089usize), // 4094, 4095 and 4096 bytes: around the length's limit
            (b"edge/", 4090),
            (b"edge/", 4091),
        ];
        let mut entries: Vec<IndexEntry> = paths
            .iter()
            .map(|(dir, len)| [dir, &vec![b'n'; *len][..]].concat())
            .chain([long.into_bytes(), b"sub".to_vec()])
            .map(|path| IndexEntry {
                mode: if path == b"sub" { 0o160000 } else { 0o100644 },
                path: path.into(),
                id,
                stat: StatData::default(),
            })
            .collect();
        entries.sort_by(|a, b| a.path.cmp(&b.path));
        let index = repo.top().join(".git/index");
        write_index(&index, format, &entries, None).unwrap();
        let listed = repo.git(&["ls-files", "--stage", "-z"]);
        let wanted: Vec<u8> = entries
            .iter()
            .flat_map(|e| [format!("{:o} {id} 0\t", e.mode).as_bytes(), &e.path, b"\0"].concat())
            .collect();
        assert_eq!(listed.as_bstr(), wanted.as_bstr());
        let tree = repo.line(&["write-tree"]);

        // Git has written the index now, with a tree cache of its own.
        let trees = trees_of(&repo, &tree);
        let gits = fs::read(&index).unwrap();
        let read = IndexFile::open(&index, format).unwrap();
        assert!(
            read.entries()
                .map(|e| e.path)
                .eq(entries.iter().map(|e| &e.path))
        );
        fs::remove_file(&index).unwrap();
        write_index(&index, format, &entries, Some(&trees)).unwrap();
        assert!(fs::read(&index).unwrap() == gits, "byte for byte");
    }
}

#[test]
fn entries_that_no_index_can_hold_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let entry = |path: &str| IndexEntry {
        path: path.into(),
        mode: 0o100644,
        id: ObjectId::ZERO_SHA1,
        stat: StatData::default(),
    };
    let write = |entries: &[IndexEntry]| write_index(&path, ObjectFormat::Sha1, entries, None);
    for names in [["b", "a"], ["a", "a"], ["a/b", "a-b"]] {
        let error = write(&names.map(entry)).unwrap_err();
        assert!(matches!(error, Error::Order(path) if path == names[1]));
    }
    let directory = IndexEntry {
        mode: 0o040000,
        ..entry("d")
    };
    let foreign = IndexEntry {
        id: ObjectId::ZERO_SHA256,
        ..entry("f")
    };
    for wrong in [directory, foreign, entry(""), entry("nul\0")] {
        assert!(matches!(write(&[wrong]), Err(Error::Entry { .. })));
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    write(&[]).unwrap();
    let index = IndexFile::open(&path, ObjectFormat::Sha1).unwrap();
    assert!(index.is_empty());
    let error = IndexFile::open(&dir.path().join("none"), ObjectFormat::Sha1).unwrap_err();
    assert!(matches!(error, Error::Io { action: "read", .. }));
    assert!(IndexFile::open(&path, ObjectFormat::Sha256).is_err());
}
