//! A workspace with an open proposal, handed over through a bare repository: recovered, accepted and undone on
//! the other side, whatever keeps the refs and whatever hashes the objects.

use bstr::ByteSlice;

use super::{create, write};
use crate::common::Sandbox;

/// A hub and two clones of it, made by `git init` with the given options.
fn clones(options: &[&str]) -> [Sandbox; 3] {
    let hub = Sandbox::without_repo();
    hub.git(&[&["init", "-q", "--bare"], options].concat());
    let url = hub.repo().to_str().unwrap().to_owned();
    let side = || {
        let side = Sandbox::without_repo();
        side.git(&[&["init", "-q"], options].concat());
        side.git(&["remote", "add", "hub", &url]);
        side
    };
    let [ours, theirs] = [side(), side()];
    ours.write("a.txt", "1\n2\n3\n4\n5\n");
    ours.write("dir/b.txt", "two\n");
    ours.commit("first");
    ours.git(&["push", "-q", "hub", "main"]);
    theirs.git(&["fetch", "-q", "hub"]);
    theirs.git(&["checkout", "-q", "-B", "main", "hub/main"]);
    [hub, ours, theirs]
}

fn handed_over(options: &[&str]) {
    let [_hub, ours, theirs] = clones(options);
    create(&ours, "p");
    write(&ours, "p", "a.txt", "parent\n2\n3\n4\n5\n");
    let _ = ours.vws(&["stack", "a", "--on=p"]).success();
    write(&ours, "a", "a.txt", "parent\n2\n3\n4\nchild\n");
    write(&ours, "a", "new", "child\n");
    let _ = ours.vws(&["overlay", "delete", "a", "dir/b.txt"]).success();
    for agent in ["p", "a"] {
        let _ = ours.vws(&["propose", agent]).success();
        write(&ours, agent, "later", "not offered yet\n");
    }
    let specs: Vec<String> = ["p", "a"]
        .iter()
        .flat_map(|agent| {
            let spec = |kind| format!("refs/relo/{kind}/{agent}/*:refs/relo/{kind}/{agent}/*");
            ["vws", "changes"].map(spec)
        })
        .collect();
    let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
    ours.git(&[&["push", "-q", "--atomic", "hub"], &specs[..]].concat());
    theirs.git(&[&["fetch", "-q", "hub"], &specs[..]].concat());
    let refs =
        |side: &Sandbox| side.git_text(&["for-each-ref", "refs/relo/vws", "refs/relo/changes"]);
    let arrived = refs(&theirs);
    assert_eq!(arrived, refs(&ours));
    let recovered = theirs.vws(&["recover"]).success();
    assert!(
        recovered
            .stdout()
            .contains_str("workspaces 2\ndamaged-refs 0\n"),
        "{recovered}"
    );
    assert_eq!(refs(&theirs), arrived, "recovering took nothing away");
    for args in [
        &["overlay", "show", "a"][..],
        &["changes", "a"],
        &["log", "a"],
        &["context", "a"],
        &["overlay", "diff", "-p", "a"],
        &["stack", "--graph"],
        &["stack", "--status", "--json"],
    ] {
        let (here, there) = (theirs.vws(args).success(), ours.vws(args).success());
        assert_eq!(
            here.stdout().as_bstr(),
            there.stdout().as_bstr(),
            "{args:?}"
        );
    }
    theirs.write("a.txt", "1\n2\nuser\n4\n5\n");
    theirs.write("mine", "mine\n");
    assert_eq!(
        theirs.vws(&["accept", "a"]).code(),
        Some(1),
        "not before its parent"
    );
    let _ = theirs.vws(&["accept", "--with-parents", "a"]).success();
    assert_eq!(theirs.read("a.txt"), b"parent\n2\nuser\n4\nchild\n");
    assert_eq!(theirs.read("new"), b"child\n");
    assert!(!theirs.repo().join("dir/b.txt").exists());
    assert!(!theirs.repo().join("later").exists());
    let _ = theirs.vws(&["undo"]).success();
    assert_eq!(theirs.read("a.txt"), b"1\n2\nuser\n4\n5\n");
    assert_eq!(theirs.read("dir/b.txt"), b"two\n");
    assert_eq!(theirs.read("mine"), b"mine\n");
    assert!(!theirs.repo().join("new").exists());
    let changes = theirs.vws(&["changes", "a"]).success();
    let states = changes
        .stdout()
        .lines()
        .map(|line| line.split_once_str(" ").unwrap().0);
    assert!(
        states.clone().count() == 3 && states.clone().all(|state| state == b"proposed"),
        "{changes}"
    );
    theirs.git(&["gc", "-q", "--prune=now"]);
    theirs.git(&["fsck", "--strict", "--no-dangling"]);
    assert_eq!(
        theirs.vws(&["overlay", "read", "a", "later"]).stdout(),
        b"not offered yet\n"
    );
}

#[test]
fn recovered_and_accepted_on_the_other_side() {
    handed_over(&[]);
}

#[test]
fn with_the_refs_in_tables() {
    handed_over(&["--ref-format=reftable"]);
}

#[test]
fn with_longer_hashes() {
    handed_over(&["--object-format=sha256"]);
}

#[test]
fn a_base_that_a_shallow_clone_lacks_is_named() {
    let [_hub, ours, theirs] = clones(&[]);
    ours.write("a.txt", "1\n2\n3\n4\ndirty\n");
    create(&ours, "a");
    write(&ours, "a", "new", "by a\n");
    ours.git(&["push", "-q", "hub", "refs/relo/vws/a/*:refs/relo/vws/a/*"]);
    // One revision and nothing behind it: its base is cut off.
    let overlay = "refs/relo/vws/a/overlay:refs/relo/vws/a/overlay";
    theirs.git(&["fetch", "-q", "--depth=1", "hub", overlay]);
    for args in [
        &["recut", "a", "HEAD"][..],
        &["rebase-onto", "a", "HEAD"],
        &["stack", "b", "--on=a"],
    ] {
        let out = theirs.vws(args);
        assert_eq!(out.code(), Some(128), "{out}");
        let said = out.stderr().to_str().unwrap();
        assert!(
            said.contains("of 'a' is not in this shallow clone [unsupported]"),
            "{args:?}: {said}"
        );
    }
    // The base ref brings it, and the move is clean.
    let base = "refs/relo/vws/a/base:refs/relo/vws/a/base";
    theirs.git(&["fetch", "-q", "--depth=1", "hub", base]);
    let _ = theirs.vws(&["recut", "a", "HEAD"]).success();
    let diff = theirs
        .vws(&["overlay", "diff", "--name-status", "a"])
        .success();
    assert_eq!(diff.stdout(), b"A\tnew\n");
    assert_eq!(
        theirs.vws(&["overlay", "read", "a", "a.txt"]).stdout(),
        b"1\n2\n3\n4\n5\n"
    );
}
