//! Generated three-way cases: `git merge-tree` is asked the same, and says the same, of each.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::HashMap;

use bstr::ByteSlice;

use super::tests::{Version, content, file, rules, settled};
use super::*;
use crate::git::ObjectFormat;
use crate::git::scratch::Scratch;
use crate::git::tree::EXECUTABLE;

/// The versions that the generated cases are made of.
fn versions() -> Vec<Version> {
    let link = |text: &str| content(LINK, text);
    let exec = |text: &str| content(EXECUTABLE, text);
    vec![
        None,
        file(""),
        file("1\n2\n3\n4\n5\n"),
        file("x\n2\n3\n4\n5\n"),
        file("1\n2\n3\n4\ny\n"),
        file("1\n2\n3\n4\ny"),
        file("1\r\n2\r\n3\r\n4\r\n5\r\n"),
        file("1\n2\nnew\n3\n4\n5\n"),
        file("\0binary"),
        file("\0other"),
        exec("1\n2\n3\n4\n5\n"),
        exec("x\n2\n3\n4\n5\n"),
        link("1"),
        link("2"),
        file("1\r\nx\r\n3\r\n4\r\n5\r\n"),
        file("1\n2\n3\n4\n5"),
        file("1\n3\n4\n5\n"),
        file("\n1\n2\n3\n4\n5\n\n"),
    ]
}

/// Every triple of those versions: git's own merge gives the same verdict and the same content.
#[test]
fn as_git_merges() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let rules = rules(&scratch);
    let versions = versions();
    let trees: Vec<String> = versions
        .iter()
        .map(|version| tree(&scratch, version.as_ref()))
        .collect();
    let commits =
        |from: &str, tree: &str| scratch.line(&["commit-tree", "-m", "x", "-p", from, tree]);
    let mut input = String::new();
    let mut cases = Vec::new();
    for (b, base) in versions.iter().enumerate() {
        let root = scratch.line(&["commit-tree", "-m", "base", &trees[b]]);
        let tips: Vec<String> = trees.iter().map(|tree| commits(&root, tree)).collect();
        for (o, ours) in versions.iter().enumerate() {
            for (t, theirs) in versions.iter().enumerate() {
                input.push_str(&format!("{root} -- {} {}\n", tips[o], tips[t]));
                cases.push([base.clone(), ours.clone(), theirs.clone()]);
            }
        }
    }
    let out = scratch.git_with(
        &["merge-tree", "--stdin", "--no-messages"],
        input.as_bytes(),
    );
    let mut fields = out.split_str("\0");
    for case in &cases {
        // `<clean>`, the tree, the conflicted entries, and an empty field after each answer.
        let clean = fields.next().unwrap() == b"1";
        let tree = fields.next().unwrap().to_str().unwrap().to_owned();
        while !fields.next().unwrap().is_empty() {}
        // Blanks at line ends settle what git calls a conflict; that rule has a test of its own.
        if case[0].is_none() && alike(case) {
            continue;
        }
        let found = settled(&rules, "f", case);
        assert_eq!(
            found.verdict.is_done(),
            clean,
            "{case:?} {:?}",
            found.verdict
        );
        if clean {
            let expected = self::tree(&scratch, found.result.as_ref());
            assert_eq!(tree, expected, "{case:?}");
        }
    }
    assert_eq!(cases.len(), 18 * 18 * 18);
}

fn alike([_, ours, theirs]: &[Version; 3]) -> bool {
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => alike_but_for_blanks(&ours.bytes, &theirs.bytes),
        _ => false,
    }
}

/// A tree with the version at `f`, beside a file that is always there.
fn tree(scratch: &Scratch, version: Option<&Content>) -> String {
    type Made = HashMap<Option<(u32, Vec<u8>)>, String>;
    thread_local! {
        static MADE: RefCell<Made> = RefCell::default();
    }
    let key = version.map(|content| (content.mode, content.bytes.clone()));
    if let Some(tree) = MADE.with_borrow(|made| made.get(&key).cloned()) {
        return tree;
    }
    let blob = |text: &[u8]| {
        let out = scratch.git_with(&["hash-object", "-w", "--stdin"], text);
        out.trim().to_str().unwrap().to_owned()
    };
    let mut lines = format!("100644 blob {}\tbeside\n", blob(b"always there\n"));
    if let Some(content) = version {
        let id = blob(&content.bytes);
        lines.push_str(&format!("{:06o} blob {id}\tf\n", content.mode));
    }
    let out = scratch.git_with(&["mktree"], lines.as_bytes());
    let tree = out.trim().to_str().unwrap().to_owned();
    MADE.with_borrow_mut(|made| made.insert(key, tree.clone()));
    tree
}
