//! The correctness matrix in `docs/correctness.md`: every test that it names exists and runs. Here
//! stand the rows' own tests, where no other file has them.
#![allow(clippy::unwrap_used, missing_docs, unused_must_use)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bstr::ByteSlice;
use common::Sandbox;

const MATRIX: &str = include_str!("../docs/correctness.md");
const ROWS: usize = 15;

/// The names of all tests that run: `#[test]` right above, no `#[ignore]`.
fn tests(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            tests(&path, found);
            continue;
        }
        if path.extension().is_none_or(|ending| ending != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let (mut is_test, mut is_off) = (false, false);
        for line in text.lines().map(str::trim) {
            if line == "#[test]" {
                is_test = true;
            } else if line.starts_with("#[ignore") {
                is_off = true;
            } else if let Some(rest) = line.strip_prefix("fn ") {
                let name = rest.split('(').next().unwrap();
                if is_test && !is_off {
                    found.insert(name.to_owned());
                }
                (is_test, is_off) = (false, false);
            }
        }
    }
}

#[test]
fn every_row_names_tests_that_run() {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = BTreeSet::new();
    tests(&package.join("tests"), &mut all);
    tests(&package.join("src"), &mut all);
    let rows: Vec<_> = MATRIX
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert_eq!(rows.len(), ROWS + 1, "a heading, and a line each");
    for (number, row) in rows.iter().enumerate().skip(1) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        assert_eq!(cells[1], number.to_string());
        let named: Vec<_> = cells[3].split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "row {number}");
        for name in named {
            assert!(
                all.contains(name),
                "row {number}: there is no test '{name}'"
            );
        }
    }
}

#[test]
fn binary_files_are_taken_whole_or_refused() {
    let sandbox = Sandbox::new();
    for name in ["free", "both", "same", "gone"] {
        sandbox.write(name, b"\0old\n");
    }
    sandbox.commit("start");
    let edit =
        "for f in free both same; do printf '\\0new\\n' >$f; done; rm gone; printf '\\0' >made";
    sandbox.vws(&["run", "a", "--", "sh", "-c", edit]).success();
    sandbox.write("both", b"\0mine\n");
    sandbox.write("same", b"\0new\n");
    let outcome = sandbox.vws(&["accept", "a"]);
    assert_eq!(outcome.code(), Some(1), "{outcome}");
    assert!(
        outcome
            .stderr()
            .contains_str("'both' of agent 'a' [binary]"),
        "{outcome}"
    );
    assert_eq!(sandbox.read("free"), b"\0new\n");
    assert_eq!(sandbox.read("both"), b"\0mine\n");
    assert_eq!(sandbox.read("made"), b"\0");
    assert!(!sandbox.repo().join("gone").exists());
    sandbox.vws(&["undo"]).success();
    assert_eq!(sandbox.read("free"), b"\0old\n");
    assert_eq!(sandbox.read("gone"), b"\0old\n");
    assert_eq!(sandbox.read("same"), b"\0new\n");
}

#[test]
fn what_was_read_is_of_one_revision_and_edits_stay() {
    let sandbox = Sandbox::new();
    sandbox.write("f", "one\n");
    sandbox.commit("start");
    sandbox
        .vws(&["overlay", "create", "a", "--base=HEAD"])
        .success();
    let context = || sandbox.vws(&["context", "a"]).success().stdout().to_vec();
    let first = context();
    assert_eq!(context(), first, "looking changes nothing");
    sandbox
        .vws_with_input(&["overlay", "write", "a", "f"], b"two\n")
        .success();
    let second = context();
    assert_ne!(second, first);
    // The user goes on; the workspace does not.
    sandbox.write("f", "three\n");
    sandbox.commit("next");
    assert_eq!(context(), second);
    // What a tool did is in what is read next, and the record says so.
    sandbox.vws(&["materialize", "a"]).success();
    sandbox.write(".relo/worktrees/a/g", "made\n");
    let third = context();
    assert_ne!(third, second);
    let tree = third
        .lines()
        .find_map(|line| line.strip_prefix(b"effective-tree-oid "))
        .unwrap();
    let tree = tree.to_str().unwrap();
    assert_eq!(sandbox.git_text(&["show", &format!("{tree}:f")]), "two");
    assert_eq!(sandbox.git_text(&["show", &format!("{tree}:g")]), "made");
    sandbox.vws(&["settle", "a"]).success();
    assert_eq!(context(), third);
}
