//! Trees against git: the same seeded random trees through both, compared byte for byte.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use bstr::BString;

use super::testing::{Flat, Random, Store, random_path, remove, set, tree_entry};
use super::*;

mod compare;
mod merging;

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
    store.reads.set(0);
    assert_eq!(lost(&store, root, changed, other).unwrap(), []);
    assert_eq!(store.reads.get(), 3, "and for what was lost");
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
