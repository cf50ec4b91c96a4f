//! Trees against git: the same seeded random trees through both, compared byte for byte.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice, ByteVec};

use super::testing::{Flat, Random, Store, git_command, random_path, remove, run, set, tree_entry};
use super::*;
use crate::git::merge::{MergeOptions, MergeResult, merge_file};

const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

/// Random edits of a random tree, and the flat list that they lead to.
fn random_edits(
    store: &Store,
    random: &mut Random,
    flat: &Flat,
) -> (BTreeMap<BString, Option<Entry>>, Flat) {
    let mut edits: BTreeMap<BString, Option<Entry>> = BTreeMap::new();
    for _ in 0..=random.below(8) {
        let old: Vec<&BString> = flat.keys().collect();
        let mut path = random_path(random);
        if random.chance(50) && !old.is_empty() {
            path = old[random.below(old.len())].clone();
        }
        let edit = random.chance(60).then(|| store.random_entry(random));
        let clash = |other: &BString, set: &Option<Entry>| {
            let related = other.starts_with(&path) || path.starts_with(other);
            set.is_some() && edit.is_some() && related
        };
        if !edits.iter().any(|(other, set)| clash(other, set)) {
            edits.insert(path, edit);
        }
    }
    let mut result = flat.clone();
    for (path, edit) in &edits {
        match edit {
            None => remove(&mut result, path),
            Some(entry) => set(&mut result, path.clone(), *entry),
        }
    }
    (edits, result)
}

#[test]
fn edits_make_the_trees_that_git_makes() {
    for format in FORMATS {
        let mut store = Store::new(format);
        let mut random = Random::new(1);
        for round in 0..40 {
            let size = random.below(40);
            let flat = store.random_flat(&mut random, size);
            let root = store.write_flat(&flat);
            let (edits, expected) = random_edits(&store, &mut random, &flat);
            let ours = edit(&mut store, root, &edits).unwrap();
            assert_eq!(
                ours,
                store.write_flat(&expected),
                "{format} round {round}: {flat:?} {edits:?}"
            );
            let writes = store.writes;
            assert_eq!(edit(&mut store, ours, &edits).unwrap(), ours, "again");
            let refilled = |path: &BString| {
                let below = |other: &BString| other != path && diff::within(other, path);
                edits[path].is_none()
                    && edits.iter().any(|(path, set)| set.is_some() && below(path))
            };
            if !edits.keys().any(refilled) {
                assert_eq!(store.writes, writes, "nothing to write");
            }
        }
    }
}

fn paths(list: &[(&str, Option<Entry>)]) -> BTreeMap<BString, Option<Entry>> {
    list.iter()
        .map(|(path, entry)| (BString::from(*path), *entry))
        .collect()
}

#[test]
fn only_directories_on_changed_paths_are_touched() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let file = Entry {
        mode: REGULAR,
        id: store.blob(b"x"),
    };
    let mut flat = Flat::new();
    for folder in 0..30 {
        for name in 0..5 {
            flat.insert(format!("d{folder}/sub/{name}").into(), file);
        }
    }
    let root = store.write_flat(&flat);
    store.reads.set(0);
    let edits = paths(&[("d3/sub/new", Some(file)), ("d3/gone", None)]);
    let changed = edit(&mut store, root, &edits).unwrap();
    assert_eq!((store.reads.get(), store.writes), (3, 3));
    store.reads.set(0);
    assert_eq!(diff(&store, Some(root), Some(changed)).unwrap().len(), 1);
    assert_eq!(store.reads.get(), 6);
    store.reads.set(0);
    let edits = paths(&[("d4/sub/new", Some(file))]);
    let other = edit(&mut store, root, &edits).unwrap();
    store.reads.set(0);
    let result = three_way(&store, Some(root), Some(changed), Some(other)).unwrap();
    assert_eq!(store.reads.get(), 3, "one-sided folders stay closed");
    assert_eq!(result.edits.len(), 1);
}

#[test]
fn folders_are_grafted_dropped_and_emptied() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let file = Entry {
        mode: REGULAR,
        id: store.blob(b"x"),
    };
    let empty = empty_tree(ObjectFormat::Sha1);
    let one = edit(&mut store, empty, &paths(&[("x", Some(file))])).unwrap();
    let graft = paths(&[
        ("a", Some(tree_entry(one))),
        ("a/x", None),
        ("a-b", Some(file)),
    ]);
    let root = edit(&mut store, empty, &graft).unwrap();
    assert_eq!(listing(&store, root).unwrap().files, [("a-b".into(), file)]);
    let root = edit(&mut store, root, &paths(&[("a/b", Some(tree_entry(one)))])).unwrap();
    assert_eq!(
        lookup(&store, root, "a/b/x".into()).unwrap(),
        Some(file),
        "the grafted folder is there"
    );
    for gone in [None, Some(tree_entry(empty))] {
        let edits = paths(&[("a/b", gone), ("a-b", None)]);
        assert_eq!(edit(&mut store, root, &edits).unwrap(), empty);
    }
    // A deletion counts before what is set below it.
    let edits = paths(&[("a", None), ("a/new", Some(file))]);
    let root = edit(&mut store, root, &edits).unwrap();
    let files = listing(&store, root).unwrap().files;
    assert_eq!(files, [("a-b".into(), file), ("a/new".into(), file)]);
}

#[test]
fn legacy_modes_go_only_when_their_directory_is_rewritten() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let id = store.blob(b"x");
    let file = Entry { mode: REGULAR, id };
    let mut data = b"100664 old\0".to_vec();
    data.extend_from_slice(id.as_bytes());
    let root = store.write_tree(data).unwrap();
    let same = paths(&[("old", Some(file))]);
    assert_eq!(edit(&mut store, root, &same).unwrap(), root);
    let modern = store.write_flat(&Flat::from([("old".into(), file)]));
    assert_ne!(root, modern);
    assert_eq!(diff(&store, Some(root), Some(modern)).unwrap(), []);
    let expected = store.write_flat(&Flat::from([("old".into(), file), ("z".into(), file)]));
    let edits = paths(&[("z", Some(file))]);
    assert_eq!(edit(&mut store, root, &edits).unwrap(), expected);
}

#[test]
fn edits_that_make_no_tree_are_refused() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let file = Entry {
        mode: REGULAR,
        id: store.blob(b"x"),
    };
    let root = empty_tree(ObjectFormat::Sha1);
    for bad in ["", "/a", "a/", "a//b", ".", "a/../b", "a\0b"] {
        let error = edit(&mut store, root, &paths(&[(bad, Some(file))])).unwrap_err();
        assert!(matches!(error, Error::BadPath { .. }), "{bad:?}: {error}");
    }
    let overlap = paths(&[
        ("a", Some(file)),
        ("a-b", Some(file)),
        ("a/b/c", Some(file)),
    ]);
    let error = edit(&mut store, root, &overlap).unwrap_err();
    assert_eq!(
        error.to_string(),
        "path 'a' and 'a/b/c' below it are both set"
    );
    let foreign = ObjectId::from_bytes(&[1; 32]).unwrap();
    for id in [foreign, ObjectId::ZERO_SHA1] {
        let entry = Some(Entry { mode: REGULAR, id });
        let error = edit(&mut store, root, &paths(&[("a", entry)])).unwrap_err();
        assert!(matches!(error, Error::ForeignId { .. }), "{error}");
    }
    assert_eq!(store.writes, 0);
}

#[test]
fn missing_and_malformed_trees_are_named() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let gone = ObjectId::from_bytes(&[9; 20]).unwrap();
    let bad = store.write_tree(b"100644 x".to_vec()).unwrap();
    let blob = store.blob(b"x");
    for (id, message) in [
        (gone, format!("tree {gone} of 'd/e' is missing")),
        (bad, format!("tree {bad} of 'd/e' is malformed")),
        (blob, format!("tree {blob} of 'd/e' could not be read")),
    ] {
        let edits = paths(&[("d/e", Some(tree_entry(id)))]);
        let root = edit(&mut store, empty_tree(ObjectFormat::Sha1), &edits).unwrap();
        let errors = [
            diff(&store, None, Some(root)).unwrap_err(),
            lookup(&store, root, "d/e/f".into()).unwrap_err(),
            listing(&store, root).unwrap_err(),
            edit(&mut store, root, &paths(&[("d/e/f", None)])).unwrap_err(),
            three_way(&store, Some(root), None, Some(root))
                .err()
                .unwrap_or_else(|| {
                    let other = edit(&mut store, root, &paths(&[("d/e", None)])).unwrap();
                    diff(&store, Some(other), Some(root)).unwrap_err()
                }),
        ];
        for error in errors {
            assert_eq!(error.to_string(), message);
        }
    }
}

#[test]
fn nesting_has_an_end() {
    let mut store = Store::new(ObjectFormat::Sha1);
    let mut deep = |levels: usize, content: &str| {
        let mut entry = Entry {
            mode: REGULAR,
            id: store.blob(content.as_bytes()),
        };
        for _ in 0..=levels {
            let mut data = Vec::new();
            parse::encode(&mut data, "d".into(), entry.mode, entry.id.as_bytes());
            entry = tree_entry(store.write_tree(data).unwrap());
        }
        entry.id
    };
    let sides = ["1", "2", "3"].map(|content| Some(deep(MAX_DEPTH, content)));
    let over = ["1", "2", "3"].map(|content| Some(deep(MAX_DEPTH + 1, content)));
    let below = |levels: usize| paths(&[(&vec!["d"; levels + 1].join("/"), None)]);

    let [base, ours, theirs] = sides;
    assert_eq!(listing(&store, base.unwrap()).unwrap().files.len(), 1);
    assert_eq!(diff(&store, base, ours).unwrap().len(), 1);
    assert_eq!(three_way(&store, base, ours, theirs).unwrap().both.len(), 1);
    let gone = edit(&mut store, base.unwrap(), &below(MAX_DEPTH)).unwrap();
    assert_eq!(gone, empty_tree(ObjectFormat::Sha1));

    let [base, ours, theirs] = over;
    let errors = [
        listing(&store, base.unwrap()).unwrap_err(),
        diff(&store, base, ours).unwrap_err(),
        three_way(&store, base, ours, theirs).unwrap_err(),
        edit(&mut store, base.unwrap(), &below(MAX_DEPTH + 1)).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(error, Error::TooDeep { .. }), "{error}");
    }
}

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
        let store = Store::new(format);
        let mut random = Random::new(2);
        let (mut input, mut ours, mut limited) = (String::new(), Vec::new(), 0);
        for _ in 0..50 {
            let size = random.below(40);
            let mut flat = store.random_flat(&mut random, size);
            let a = store.write_flat(&flat);
            store.mutate(&mut random, &mut flat);
            let b = store.write_flat(&flat);
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
    let store = Store::new(ObjectFormat::Sha256);
    let mut random = Random::new(3);
    for _ in 0..15 {
        let flat = store.random_flat(&mut random, 40);
        let root = store.write_flat(&flat);
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
fn a_walk_starts_prunes_and_stops_where_it_is_told() {
    let store = Store::new(ObjectFormat::Sha1);
    let file = Entry {
        mode: REGULAR,
        id: store.blob(b"x"),
    };
    let names = ["a/b/c", "a/b/d", "a/e", "f/g", "h"];
    let flat: Flat = names
        .iter()
        .map(|name| (BString::from(*name), file))
        .collect();
    let root = store.write_flat(&flat);
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
    let store = Store::new(ObjectFormat::Sha1);
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
        let (a, b) = (store.write_flat(&old), store.write_flat(&new));
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

/// What merging the content and the mode of one path comes to; `None` is a conflict.
fn merge_both(store: &Store, both: &Both) -> Option<Entry> {
    let (ours, theirs) = (both.ours?, both.theirs?);
    if !ours.is_file() || !theirs.is_file() {
        return None;
    }
    let mode = match both.base.map(|base| base.mode) {
        _ if ours.mode == theirs.mode => ours.mode,
        Some(mode) if mode == ours.mode => theirs.mode,
        Some(mode) if mode == theirs.mode => ours.mode,
        _ => return None,
    };
    let id = match both.base.map(|base| base.id) {
        _ if ours.id == theirs.id => ours.id,
        Some(id) if id == ours.id => theirs.id,
        Some(id) if id == theirs.id => ours.id,
        _ => {
            let read = |id| store.read_blob(id).unwrap();
            // A link makes no base for a file's content.
            let base = both.base.filter(Entry::is_file);
            let base = base.map_or_else(|| Rc::from([]), |base| read(base.id));
            let options = MergeOptions::default();
            match merge_file(&base, &read(ours.id), &read(theirs.id), &options).unwrap() {
                MergeResult::Clean(content) => store.blob(&content),
                _ => return None,
            }
        }
    };
    Some(Entry { mode, id })
}

#[test]
fn three_way_verdicts_and_trees_are_those_of_git() {
    for (format, rounds) in [(ObjectFormat::Sha1, 200), (ObjectFormat::Sha256, 24)] {
        let mut store = Store::new(format);
        let mut random = Random::new(5);
        let (mut clean, mut directory_file, mut merged) = (0, 0, 0);
        for round in 0..rounds {
            let base = few_names(&store, &mut random);
            let sides = [0, 1].map(|_| {
                let mut side = base.clone();
                few_changes(&store, &mut random, &mut side);
                side
            });
            let [base, ours, theirs] = [&base, &sides[0], &sides[1]].map(|flat| {
                let edits = flat
                    .iter()
                    .map(|(path, entry)| (path.clone(), Some(*entry)));
                edit(&mut store, empty_tree(format), &edits.collect()).unwrap()
            });
            let result = three_way(&store, Some(base), Some(ours), Some(theirs)).unwrap();
            let mut edits: BTreeMap<_, _> = result.edits.into_iter().collect();
            let mut conflict = !result.directory_file.is_empty();
            directory_file += usize::from(conflict);
            for both in &result.both {
                let entry = merge_both(&store, both);
                conflict |= entry.is_none();
                merged += usize::from(entry.is_some());
                assert_eq!(edits.insert(both.path.clone(), entry), None);
            }
            let mut command = git_command(store.directory.path());
            // git before 2.50 looks for renames whatever it is told, so no two paths share content.
            command.args(["merge-tree", "--write-tree", "-z", "-X", "no-renames"]);
            command.args(["-X", "diff-algorithm=myers", "--no-messages"]);
            command.arg(format!("--merge-base={base}"));
            command.args([ours, theirs].map(|id| id.to_string()));
            let output = run(command, b"");
            let note = format!(
                "{format} round {round}: {base} {ours} {theirs}\n{sides:?}\n{edits:?}\n{:?}",
                result.both
            );
            assert_eq!(output.status.code(), Some(i32::from(conflict)), "{note}");
            if !conflict {
                clean += 1;
                let tree = store.id(&output.stdout[..output.stdout.len() - 1]);
                assert_eq!(edit(&mut store, ours, &edits).unwrap(), tree, "{note}");
            }
        }
        let enough = rounds / 12;
        assert!(
            clean > enough && directory_file > enough,
            "{clean} {directory_file}"
        );
        assert!(merged > 0, "no content was merged");
    }
}

/// Paths that two sides are bound to meet at.
const MEETING: [&str; 9] = ["a", "a/b", "a/c", "a/b/d", "a-b", "e", "e/f", "e/g", "h"];

/// Content that is the path's own.
fn text_entry(store: &Store, random: &mut Random, path: &BString) -> Entry {
    let mut text: String = (1..10).map(|line| format!("{path} {line}\n")).collect();
    if random.chance(70) {
        let digit = ["1\n", "5\n", "9\n"][random.below(3)];
        text = text.replace(digit, &format!("{}{digit}", random.below(2)));
    }
    let id = store.blob(text.as_bytes());
    let mode = *random.pick(&[&REGULAR, &REGULAR, &REGULAR, &REGULAR, &EXECUTABLE, &LINK]);
    Entry { mode, id }
}

fn few_names(store: &Store, random: &mut Random) -> Flat {
    let mut flat = Flat::new();
    for _ in 0..random.below(8) {
        let path = BString::from(MEETING[random.below(MEETING.len())]);
        let entry = text_entry(store, random, &path);
        set(&mut flat, path, entry);
    }
    flat
}

fn few_changes(store: &Store, random: &mut Random, flat: &mut Flat) {
    for _ in 0..=random.below(2) {
        let path = BString::from(MEETING[random.below(MEETING.len())]);
        let old: Vec<BString> = flat.keys().cloned().collect();
        let (path, gone) = match random.below(4) {
            0 => (path, true),
            1 => (path, false),
            _ => (
                old.get(random.below(old.len().max(1)))
                    .cloned()
                    .unwrap_or(path),
                false,
            ),
        };
        if gone {
            remove(flat, &path);
        } else {
            let entry = text_entry(store, random, &path);
            set(flat, path, entry);
        }
    }
}
