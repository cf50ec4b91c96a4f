//! Diffs, listings and renames against git's.
#![allow(clippy::unwrap_used)]

use bstr::{BStr, BString, ByteSlice, ByteVec};

use super::FORMATS;
use crate::git::tree::testing::{Flat, Random, Store, random_path, set, tree_entry};
use crate::git::tree::*;

/// Git's raw record of a change.
fn raw(out: &mut Vec<u8>, old: Option<Entry>, new: Option<Entry>, format: ObjectFormat) {
    let zero = "0".repeat(if format == ObjectFormat::Sha1 { 40 } else { 64 });
    let mode = |entry: Option<Entry>| entry.map_or(0, |entry| entry.mode);
    let id = |entry: Option<Entry>| entry.map_or(zero.clone(), |entry| entry.id.to_string());
    let record = format!(
        ":{:06o} {:06o} {} {} ",
        mode(old),
        mode(new),
        id(old),
        id(new)
    );
    out.extend_from_slice(record.as_bytes());
}

fn raw_change(out: &mut Vec<u8>, change: &Change, format: ObjectFormat) {
    raw(out, change.old, change.new, format);
    out.extend_from_slice(format!("{}\0", change.status().letter()).as_bytes());
    out.extend_from_slice(&change.path);
    out.push(0);
}

#[test]
fn diffs_are_those_of_git() {
    for format in FORMATS {
        let mut store = Store::new(format);
        let mut random = Random::new(2);
        let (mut input, mut ours, mut limited) = (String::new(), Vec::new(), 0);
        for _ in 0..50 {
            let size = random.below(40);
            let mut flat = store.random_flat(&mut random, size);
            let a = store.build(&flat);
            store.mutate(&mut random, &mut flat);
            let b = store.build(&flat);
            input.push_str(&format!("{a} {b}\n"));
            ours.extend_from_slice(format!("{a} {b}\n").as_bytes());
            let changes = diff(&store, Some(a), Some(b)).unwrap();
            for change in &changes {
                raw_change(&mut ours, change, format);
            }
            // Prefixes pick out of the same list.
            let top = flat.keys().next().cloned().unwrap_or_default();
            let top = top.split(|byte| *byte == b'/').next().unwrap().into();
            let prefixes: [BString; 2] = [top, random_path(&mut random)];
            let list: Vec<&BStr> = prefixes.iter().map(|path| path.as_bstr()).collect();
            let mut picked = Vec::new();
            diff_under(&store, Some(a), Some(b), &list, |change| {
                picked.push(change);
                std::ops::ControlFlow::Continue(())
            })
            .unwrap();
            let under = |change: &Change| {
                let above =
                    |prefix: &&BStr| prefix.is_empty() || diff::within(&change.path, prefix);
                list.iter().any(above)
            };
            let expected: Vec<Change> = changes.into_iter().filter(under).collect();
            limited += expected.len();
            assert_eq!(picked, expected);
        }
        assert!(limited > 10, "prefixes match something");
        let args = [
            "diff-tree",
            "--stdin",
            "-r",
            "--raw",
            "-z",
            "--no-renames",
            "--full-index",
        ];
        let theirs = store.git(&args, input.as_bytes());
        assert_eq!(ours.as_bstr(), theirs.as_bstr());
    }
}

#[test]
fn listings_are_those_of_git() {
    let mut store = Store::new(ObjectFormat::Sha256);
    let mut random = Random::new(3);
    for _ in 0..15 {
        let flat = store.random_flat(&mut random, 40);
        let root = store.build(&flat);
        let mut ours = Vec::new();
        walk(&store, root, "".into(), |path, entry| {
            let kind = match entry.mode {
                TREE => "tree",
                GITLINK => "commit",
                _ => "blob",
            };
            let record = format!("{:06o} {kind} {}\t", entry.mode, entry.id);
            ours.push_str(record);
            ours.push_str(path);
            ours.push(0);
            Step::Continue
        })
        .unwrap();
        let theirs = store.git(&["ls-tree", "-r", "-t", "-z", &root.to_string()], b"");
        assert_eq!(ours.as_bstr(), theirs.as_bstr());

        let listing = listing(&store, root).unwrap();
        assert!(listing.files.iter().cloned().eq(flat.clone()));
        for directory in &listing.directories {
            let below: Vec<&BString> = flat
                .keys()
                .filter(|path| directory.path.is_empty() || diff::within(path, &directory.path))
                .collect();
            assert_eq!(directory.entries, below.len());
            let folders = listing.directories.iter().filter(|other| {
                let parent = other.path.rfind_byte(b'/').map_or(0, |slash| slash);
                !other.path.is_empty() && other.path[..parent] == directory.path[..]
            });
            assert_eq!(directory.folders, folders.count());
            let found = lookup(&store, root, directory.path.as_bstr()).unwrap();
            let expected = (!directory.path.is_empty()).then(|| tree_entry(directory.id));
            assert_eq!(found, expected);
        }
        for (path, entry) in &flat {
            assert_eq!(lookup(&store, root, path.as_bstr()).unwrap(), Some(*entry));
            let below = [path.as_slice(), b"/x"].concat();
            assert_eq!(lookup(&store, root, below.as_bstr()).unwrap(), None);
        }
    }
}

#[test]
fn a_listing_beside_another_is_the_same_and_opens_only_what_differs() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let mut random = Random::new(4);
    for _ in 0..60 {
        let mut flat = store.random_flat(&mut random, 40);
        let near = store.build(&flat);
        store.mutate(&mut random, &mut flat);
        let root = store.build(&flat);
        let near = listing(&store, near).unwrap();
        let expected = listing(&store, root).unwrap();
        let before = store.reads.get();
        let made = listing_beside(&store, root, near.clone()).unwrap();
        let opened = store.reads.get() - before;
        let known = |one: &&Directory| {
            let same = |other: &Directory| (&other.path, other.id) == (&one.path, one.id);
            !near.directories.iter().any(same)
        };
        let differ = expected.directories.iter().filter(known).count();
        assert_eq!((made, opened), (expected, differ));
    }
}

#[test]
fn a_walk_starts_prunes_and_stops_where_it_is_told() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let file = Entry {
        mode: REGULAR,
        id: store.blob(b"x"),
    };
    let names = ["a/b/c", "a/b/d", "a/e", "f/g", "h"];
    let flat: Flat = names
        .iter()
        .map(|name| (BString::from(*name), file))
        .collect();
    let root = store.build(&flat);
    let seen = |prefix: &str, prune: &str, stop: &str| {
        let mut seen = Vec::new();
        walk(&store, root, prefix.into(), |path, _| {
            seen.push(path.to_str().unwrap().to_owned());
            match path.to_str().unwrap() {
                path if path == prune => Step::Prune,
                path if path == stop => Step::Stop,
                _ => Step::Continue,
            }
        })
        .unwrap();
        seen.join(" ")
    };
    assert_eq!(seen("", "", ""), "a a/b a/b/c a/b/d a/e f f/g h");
    assert_eq!(seen("a", "", ""), "a a/b a/b/c a/b/d a/e");
    assert_eq!(seen("", "a/b", ""), "a a/b a/e f f/g h");
    assert_eq!(seen("", "", "a/b/c"), "a a/b a/b/c");
    assert_eq!(seen("a/e", "", ""), "a/e");
    assert_eq!(seen("a/e/x", "", ""), "");
    assert_eq!(seen("f", "f", ""), "f");
}

/// Random text whose lines are shared between files.
fn random_text(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    let topic = random.below(3);
    let eol: &[u8] = if random.chance(20) { b"\r\n" } else { b"\n" };
    for _ in 0..random.below(25) {
        let line = format!(
            "topic {topic} line {} {}",
            random.below(12),
            "x".repeat(random.below(90))
        );
        text.extend_from_slice(line.as_bytes());
        text.extend_from_slice(eol);
    }
    if random.chance(20) {
        text.pop();
    }
    if random.chance(10) {
        text.push(0);
    }
    text
}

#[test]
fn renames_and_scores_are_those_of_git() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let mut random = Random::new(4);
    let (mut input, mut ours, mut inexact) = (String::new(), Vec::new(), 0);
    let mut pairs = Vec::new();
    for _ in 0..150 {
        let (mut old, mut new) = (Flat::new(), Flat::new());
        for _ in 0..random.below(14) {
            let mut entry = store.random_entry(&mut random);
            let mut text = random_text(&mut random);
            if entry.is_file() {
                entry.id = store.blob(&text);
            }
            set(&mut old, random_path(&mut random), entry);
            if random.chance(30) {
                set(&mut new, random_path(&mut random), entry);
            }
            for _ in 0..random.below(3) {
                let mut copy = entry;
                if random.chance(70) && entry.is_file() {
                    let at = random.below(text.len() + 1);
                    text.splice(at..at, random_text(&mut random));
                    text.truncate(text.len().saturating_sub(random.below(300)));
                    copy.id = store.blob(&text);
                }
                set(&mut new, random_path(&mut random), copy);
            }
        }
        let (a, b) = (store.build(&old), store.build(&new));
        input.push_str(&format!("{a} {b}\n"));
        pairs.push((a, b));
    }
    for (a, b) in pairs {
        ours.extend_from_slice(format!("{a} {b}\n").as_bytes());
        let changes = diff(&store, Some(a), Some(b)).unwrap();
        let renames = find_renames(changes, &store, RenameOptions::default()).unwrap();
        assert_eq!(renames.needed_limit, None);
        for delta in renames.deltas {
            match delta {
                Delta::Change(change) => raw_change(&mut ours, &change, ObjectFormat::Sha1),
                Delta::Rename(rename) => {
                    raw(
                        &mut ours,
                        Some(rename.old),
                        Some(rename.new),
                        ObjectFormat::Sha1,
                    );
                    inexact += usize::from(rename.similarity() < 100);
                    ours.push_str(format!("R{:03}\0", rename.similarity()));
                    ours.push_str(&rename.from);
                    ours.push(0);
                    ours.push_str(&rename.to);
                    ours.push(0);
                }
            }
        }
    }
    let args = [
        "diff-tree",
        "--stdin",
        "-r",
        "--raw",
        "-z",
        "-M",
        "--full-index",
    ];
    let theirs = store.git(&args, input.as_bytes());
    assert_eq!(ours.as_bstr(), theirs.as_bstr());
    assert!(inexact > 30, "only {inexact} inexact renames were tried");
}

#[test]
fn too_many_pairs_are_left_out_and_reported() {
    let store = Store::new(ObjectFormat::Sha1);
    let mut changes = Vec::new();
    let file = |text: String| {
        Some(Entry {
            mode: REGULAR,
            id: store.blob(text.as_bytes()),
        })
    };
    for number in 0..3 {
        let text = format!("{number} one\ntwo\nthree\nfour\n").repeat(5);
        changes.push(Change {
            path: format!("new{number}").into(),
            old: None,
            new: file(format!("{text}more\n")),
        });
        changes.push(Change {
            path: format!("old{number}").into(),
            old: file(text),
            new: None,
        });
    }
    changes.sort_by(|a, b| a.path.cmp(&b.path));
    let count = |threshold, limit| {
        let options = RenameOptions { threshold, limit };
        let renames = find_renames(changes.clone(), &store, options).unwrap();
        (renames.deltas.len(), renames.needed_limit)
    };
    assert_eq!(count(50, 3), (3, None));
    assert_eq!(count(50, 0), (3, None));
    assert_eq!(count(50, 2), (6, Some(3)));
    assert_eq!(count(100, 1), (6, None));
}

#[test]
fn a_name_that_two_lost_files_have_settles_nothing_in_a_merge() {
    let store = Store::new(ObjectFormat::Sha1);
    let file = |word: &str, edited: usize| {
        let line = |n| match n < edited {
            true => format!("line {n} has other words\n"),
            false => format!("line {n} of {word}\n"),
        };
        let text: String = (0..20).map(line).collect();
        let id = store.blob(text.as_bytes());
        Some(Entry { mode: REGULAR, id })
    };
    let change = |path: &str, old, new| Change {
        path: path.into(),
        old,
        new,
    };
    let moved = |changes: &[Change]| {
        let wanted = [BString::from("x/mod")].into();
        let options = RenameOptions::of_merge();
        let found = find_moved(changes.to_vec(), &wanted, &store, options).unwrap();
        found.into_iter().map(|found| found.to).collect::<Vec<_>>()
    };
    let mut changes = vec![
        change("w", None, file("x", 1)),
        change("x/mod", file("x", 0), None),
        change("z/mod", None, file("x", 3)),
    ];
    // The only one of its name goes where the name is, though something else is more like it.
    assert_eq!(moved(&changes), ["z/mod"]);
    // Nobody asks about the other one of that name, but it is there.
    changes.insert(2, change("y/mod", file("y", 0), None));
    assert_eq!(moved(&changes), ["w"]);
}
