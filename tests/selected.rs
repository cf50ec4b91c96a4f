//! Directories with a part of the tree only.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fs;
use std::path::PathBuf;

use common::Sandbox;

fn seeded() -> Sandbox {
    let sandbox = Sandbox::new();
    for path in ["f", "g", "d/a", "d/b", "d/deep/c", "d.x", "e/x"] {
        sandbox.write(path, format!("{path}\n"));
    }
    sandbox.write(".gitignore", "*.log\n");
    sandbox.write("e/kept.log", "tracked\n");
    sandbox.git(&["add", "-f", "e/kept.log"]);
    sandbox.commit("one");
    let _ = sandbox
        .vws(&["overlay", "create", "--base=HEAD", "a"])
        .success();
    sandbox
}

fn place(sandbox: &Sandbox) -> PathBuf {
    sandbox.repo().join(".relo/worktrees/a")
}

fn git(sandbox: &Sandbox, args: &[&str]) -> String {
    let mut command = sandbox.command("git");
    let output = command
        .current_dir(place(sandbox))
        .args(args)
        .output()
        .unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn files(sandbox: &Sandbox) -> Vec<String> {
    let mut command = sandbox.command("find");
    let output = command
        .current_dir(place(sandbox))
        .args([".", "-type", "f", "-printf", "%P\n"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
    names.retain(|name| name != ".git");
    names.sort_unstable();
    names
}

fn diff(sandbox: &Sandbox) -> String {
    let shown = sandbox.vws(&["overlay", "diff", "--name-status", "a"]);
    String::from_utf8(shown.success().stdout().to_vec()).unwrap()
}

#[test]
fn what_is_not_laid_out_is_not_deleted() {
    let sandbox = seeded();
    let mut shown = sandbox.vws(&["materialize", "a", "--", "d/deep/", "f"]);
    shown = shown.success();
    let text = String::from_utf8_lossy(shown.stdout()).into_owned();
    assert!(text.contains("\nonly d/deep\nonly f\n"), "{text}");
    assert_eq!(files(&sandbox), ["d/deep/c", "f"]);
    // Git misses nothing, and knows all of the tree.
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    assert_eq!(
        git(&sandbox, &["ls-files", "-t"]),
        "S .gitignore\nS d.x\nS d/a\nS d/b\nH d/deep/c\nS e/kept.log\nS e/x\nH f\nS g\n"
    );
    git(&sandbox, &["fsck", "--no-dangling"]);
    let captured = sandbox.vws(&["capture", "a"]).success();
    assert!(String::from_utf8_lossy(captured.stdout()).contains("unchanged"));
    // The rules that were not laid out hold: a new file is ignored, a tracked one is not.
    let place = place(&sandbox);
    fs::create_dir(place.join("e")).unwrap();
    for (name, text) in [
        ("f", "edited\n"),
        ("d/deep/n", "new\n"),
        ("n", "new\n"),
        ("g", "written over\n"),
        ("e/kept.log", "written over\n"),
        ("e/other.log", "ignored\n"),
        ("d/a", "d/a\n"),
    ] {
        fs::write(place.join(name), text).unwrap();
    }
    fs::remove_file(place.join("d/deep/c")).unwrap();
    let expected = "D\td/deep/c\nA\td/deep/n\nM\te/kept.log\nM\tf\nM\tg\nA\tn\n";
    assert_eq!(diff(&sandbox), expected);
    // A commit inside is of the whole tree.
    git(&sandbox, &["commit", "-qam", "inside"]);
    let inside = git(&sandbox, &["ls-tree", "-r", "--name-only", "HEAD"]);
    assert!(inside.contains("d.x\n") && !inside.contains("d/deep/c"));
    assert_eq!(diff(&sandbox), expected);
    // One that goes again was never laid out: the overlay has what it had.
    fs::remove_file(place.join("g")).unwrap();
    let without_g = expected.replace("M\tg\n", "");
    assert_eq!(diff(&sandbox), without_g);
    // Open, it serves only who wants no more of it.
    let _ = sandbox.vws(&["materialize", "a", "--", "f"]).success();
    let _ = sandbox.vws(&["exec", "a", "--", "cat", "f"]).success();
    insta::assert_snapshot!(sandbox.vws(&["materialize", "a", "--", "d"]), @r"
    --- stderr
    error: a directory of workspace 'a' is open in which 'd' is not laid out [materialized]
    hint: 'git vws settle <agent>' saves what it holds and removes it
    exit: 1
    ");
    let _ = sandbox.vws(&["settle", "a"]).success();
    assert_eq!(diff(&sandbox), without_g);
}

#[test]
fn a_path_that_is_not_there_is_named_and_nothing_is_made() {
    let sandbox = seeded();
    insta::assert_snapshot!(sandbox.vws(&["materialize", "a", "--", "f", "no"]), @r"
    --- stderr
    fatal: workspace 'a' has no path 'no'
    exit: 128
    ");
    insta::assert_snapshot!(sandbox.vws(&["materialize", "a", "--", "../x"]), @r"
    --- stderr
    error: path '../x' leads out of the repository [escapes]
    exit: 1
    ");
    let refused = sandbox.vws(&["materialize", "--backend=overlay", "a", "--", "f"]);
    insta::assert_snapshot!(refused, @r"
    --- stderr
    fatal: back end 'overlay' lays out whole trees; some paths only are for 'checkout' [unsupported]
    hint: '--backend=checkout' writes the files out; 'git vws exec' mounts without any rights
    exit: 128
    ");
    assert!(!place(&sandbox).exists());
    assert_eq!(
        sandbox.git_text(&["for-each-ref", "refs/relo/vws/a/exec"]),
        ""
    );
}

#[test]
fn content_is_rewritten_by_rules_that_are_not_laid_out() {
    let sandbox = seeded();
    sandbox.write(".gitattributes", "*.txt text eol=crlf\n");
    sandbox.write("d/t.txt", "one\n");
    sandbox.commit("two");
    let _ = sandbox
        .vws(&["overlay", "dispose", "--force", "a"])
        .success();
    let _ = sandbox
        .vws(&["overlay", "create", "--base=HEAD", "a"])
        .success();
    let _ = sandbox.vws(&["materialize", "a", "--", "d"]).success();
    let place = place(&sandbox);
    assert_eq!(fs::read(place.join("d/t.txt")).unwrap(), b"one\r\n");
    assert_eq!(git(&sandbox, &["status", "--porcelain"]), "");
    fs::write(place.join("d/t.txt"), "one\r\ntwo\r\n").unwrap();
    fs::write(place.join("n.txt"), "n\r\n").unwrap();
    assert_eq!(diff(&sandbox), "M\td/t.txt\nA\tn.txt\n");
    let read = |path: &str| sandbox.vws(&["overlay", "read", "a", path]);
    assert_eq!(read("d/t.txt").stdout(), b"one\ntwo\n");
    assert_eq!(read("n.txt").stdout(), b"n\n");
}
