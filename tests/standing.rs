//! Mode `worktree`: a directory that stays. The same script gives the same results as in mode `virtual`;
//! what is written to the workspace reaches the files, and nothing in the directory is ever lost.

#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::cell::RefCell;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use bstr::ByteSlice;
use common::{Outcome, Sandbox};

const MODES: [&str; 2] = ["virtual", "worktree"];

/// A dirty working tree.
fn sample() -> Sandbox {
    let sandbox = Sandbox::new();
    let ten: String = (1..=10).map(|n| format!("line {n}\n")).collect();
    sandbox.write("f", ten.as_bytes());
    sandbox.write("dir/a", b"a\n");
    sandbox.write("dir/b", b"b\n");
    sandbox.write("swap/inner", b"inner\n");
    sandbox.write("gone", b"gone\n");
    sandbox.write("run.sh", b"#!/bin/sh\n");
    sandbox.write(".gitignore", b"ign*\n");
    sandbox.commit("first");
    sandbox.write("dirty", b"not committed\n");
    sandbox
}

fn ok(sandbox: &Sandbox, args: &[&str]) -> String {
    with(sandbox, args, b"")
}

fn with(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> String {
    let outcome = sandbox.vws_with_input(args, input);
    assert_eq!(outcome.code(), Some(0), "{args:?}: {outcome}");
    text(&outcome)
}

fn refused(sandbox: &Sandbox, args: &[&str], kind: &str) {
    let outcome = sandbox.vws_with_input(args, b"other\n");
    assert!(outcome.code() != Some(0), "{args:?}: {outcome}");
    let kind = format!("[{kind}]");
    assert!(outcome.stderr().contains_str(kind), "{args:?}: {outcome}");
}

fn text(outcome: &Outcome) -> String {
    outcome.stdout().to_str_lossy().into_owned()
}

fn tree(sandbox: &Sandbox, agent: &str) -> String {
    sandbox.git_text(&[
        "rev-parse",
        &format!("refs/relo/vws/{agent}/overlay^{{tree}}"),
    ])
}

fn create(sandbox: &Sandbox, agent: &str, mode: &str) {
    let mode = format!("--mode={mode}");
    ok(sandbox, &["overlay", "create", agent, &mode, "-q"]);
}

fn place(sandbox: &Sandbox, agent: &str) -> PathBuf {
    sandbox.repo().join(".relo/worktrees").join(agent)
}

/// The tree of what lies in a directory, as git sees it with an index of its own.
fn tree_on_disk(sandbox: &Sandbox, agent: &str) -> String {
    let index = sandbox.root().join("witness");
    let _ = fs::remove_file(&index);
    let mut last = String::new();
    for args in [&["add", "-A"][..], &["write-tree"]] {
        let mut command = sandbox.command("git");
        let command = command.arg("-C").arg(place(sandbox, agent)).args(args);
        let output = command.env("GIT_INDEX_FILE", &index).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        last = output.stdout.trim().to_str_lossy().into_owned();
    }
    last
}

/// Every kind of edit that there is through the view.
fn edit_by_view(sandbox: &Sandbox, agent: &str) {
    with(
        sandbox,
        &["overlay", "write", agent, "new/deep/file"],
        b"new\n",
    );
    with(
        sandbox,
        &["overlay", "write", agent, "--chmod=+x", "dir/a"],
        b"A\n",
    );
    ok(sandbox, &["overlay", "chmod", agent, "+x", "run.sh"]);
    ok(sandbox, &["overlay", "rename", agent, "dir/b", "moved/b"]);
    ok(sandbox, &["overlay", "delete", agent, "gone"]);
    ok(sandbox, &["overlay", "symlink", agent, "link", "f"]);
    // A folder becomes a file, and back in the next revision, with something else in it.
    ok(sandbox, &["overlay", "delete", "-r", agent, "swap"]);
    with(
        sandbox,
        &["overlay", "write", agent, "swap"],
        b"a file now\n",
    );
    let patch = b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n line 1\n-line 2\n+line two\n line 3\n";
    with(sandbox, &["overlay", "apply", agent], patch);
}

/// The same by a tool.
fn edit_by_tool(sandbox: &Sandbox, agent: &str) {
    let script = "mkdir -p new/deep moved; echo new >new/deep/file; echo A >dir/a; chmod +x dir/a run.sh; \
        mv dir/b moved/b; rm gone; ln -s f link; rm -r swap; echo 'a file now' >swap; \
        sed -i 's/line 2/line two/' f; echo built >ignored";
    ok(sandbox, &["exec", agent, "--", "sh", "-c", script]);
}

#[test]
fn views_of_identical_edits_have_the_same_tree() {
    let sandbox = sample();
    for mode in MODES {
        create(&sandbox, &format!("{mode}-view"), mode);
        create(&sandbox, &format!("{mode}-tool"), mode);
    }
    for mode in MODES {
        edit_by_view(&sandbox, &format!("{mode}-view"));
        edit_by_tool(&sandbox, &format!("{mode}-tool"));
    }
    let trees = [
        "virtual-view",
        "virtual-tool",
        "worktree-view",
        "worktree-tool",
    ]
    .map(|agent| tree(&sandbox, agent));
    assert!(trees.iter().all(|one| *one == trees[0]), "{trees:?}");
    assert_eq!(tree_on_disk(&sandbox, "worktree-view"), trees[0]);
    let bits = fs::metadata(place(&sandbox, "worktree-view").join("run.sh")).unwrap();
    assert_eq!(bits.permissions().mode() & 0o111, 0o111);
    // Nothing of ours is left in it, and an import finds nothing.
    let before = ok(&sandbox, &["log", "worktree-view"]);
    ok(&sandbox, &["capture", "worktree-view"]);
    let after = ok(&sandbox, &["log", "worktree-view"]);
    assert_eq!(before, after);
}

/// The main job, with everything that it printed on the way.
fn main_job(mode: &str) -> Vec<String> {
    let sandbox = sample();
    let told = RefCell::new(Vec::new());
    let tell = |args: &[&str]| {
        let outcome = sandbox.vws_with_input(args, b"");
        let code = outcome.code();
        let printed: String = text(&outcome)
            .lines()
            .filter(|line| !line.starts_with("mode ") && !line.starts_with("directory "))
            .map(|line| format!("{line}\n"))
            .collect();
        let text = format!("$ {} ({code:?})\n{printed}", args.join(" "));
        told.borrow_mut().push(text);
    };
    for agent in ["a", "b"] {
        create(&sandbox, agent, mode);
    }
    edit_by_view(&sandbox, "a");
    let script = "sed -i 's/line 9/line nine/' f; echo by b >by-b; echo x >ignored";
    ok(&sandbox, &["exec", "b", "--", "sh", "-c", script]);
    tell(&["overlay", "diff", "a"]);
    tell(&["overlay", "diff", "b"]);
    tell(&["propose", "a"]);
    tell(&["propose", "b"]);
    let stacked = format!("--mode={mode}");
    ok(&sandbox, &["stack", "c", "--on=a", &stacked]);
    with(&sandbox, &["overlay", "write", "c", "by-c"], b"on a\n");
    tell(&["overlay", "diff", "c"]);
    tell(&["propose", "c"]);
    tell(&["conflicts"]);
    // The user goes on meanwhile, and the merge keeps both.
    let mine = fs::read_to_string(sandbox.repo().join("f")).unwrap();
    sandbox.write("f", mine.replace("line 5", "line five").as_bytes());
    tell(&["reject", "a", "--", "moved/b"]);
    tell(&["overlay", "diff", "a"]);
    tell(&["accept", "c"]);
    tell(&["accept", "a"]);
    tell(&["accept", "b"]);
    tell(&["reject", "c"]);
    let merged = fs::read_to_string(sandbox.repo().join("f")).unwrap();
    told.borrow_mut().push(merged);
    let rest = ok(&sandbox, &["overlay", "list"]);
    assert_eq!(rest, "", "the last decision releases them");
    let root = sandbox.repo().join(".relo/worktrees");
    let left: Vec<_> = fs::read_dir(root).into_iter().flatten().flatten().collect();
    assert!(
        left.iter().all(|entry| entry.file_name() == ".trash"),
        "{left:?}"
    );
    assert_eq!(sandbox.git_text(&["worktree", "list"]).lines().count(), 1);
    tell(&["undo"]);
    tell(&["changes"]);
    let status = sandbox.git_text(&["status", "--short"]);
    told.borrow_mut().push(status);
    told.into_inner()
}

#[test]
fn the_main_job_is_the_same_in_both_modes() {
    let [one, other] = MODES.map(main_job);
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other);
    }
    assert_eq!(one.len(), other.len());
    assert!(one.concat().contains("line five"), "{one:?}");
    assert!(one.concat().contains("merged b"), "{one:?}");
}

#[test]
fn moves_of_the_workspace_reach_the_directory() {
    let sandbox = sample();
    create(&sandbox, "a", "worktree");
    let base = tree(&sandbox, "a");
    edit_by_view(&sandbox, "a");
    let edited = tree(&sandbox, "a");
    let revision = ok(&sandbox, &["overlay", "show", "a"]);
    let revision = revision
        .lines()
        .find_map(|line| line.strip_prefix("revision "));
    let revision = revision.unwrap().to_owned();
    let dir = place(&sandbox, "a");
    fs::write(dir.join("ignored"), "build output\n").unwrap();
    let same = |expected: &str| {
        assert_eq!(tree(&sandbox, "a"), expected);
        assert_eq!(tree_on_disk(&sandbox, "a"), expected);
        ok(&sandbox, &["capture", "a"]);
        assert_eq!(tree(&sandbox, "a"), expected);
        assert_eq!(fs::read(dir.join("ignored")).unwrap(), b"build output\n");
    };
    ok(&sandbox, &["overlay", "discard", "a"]);
    same(&base);
    assert!(!dir.join("new").exists(), "folders go with the last file");
    ok(&sandbox, &["overlay", "restore", "a", &revision]);
    same(&edited);
    ok(&sandbox, &["overlay", "restore", "a", "1"]);
    same(&base);
    with(&sandbox, &["overlay", "write", "a", "mine"], b"mine\n");
    // The user's tree goes on: a changed file, a new one, one that is gone.
    sandbox.write("dir/a", b"the user's\n");
    sandbox.write("later/x", b"later\n");
    fs::remove_file(sandbox.repo().join("gone")).unwrap();
    ok(&sandbox, &["recut", "a", "worktree"]);
    let moved = tree(&sandbox, "a");
    same(&moved);
    assert_eq!(fs::read(dir.join("later/x")).unwrap(), b"later\n");
    assert!(!dir.join("gone").exists());
    let diff = ok(&sandbox, &["overlay", "diff", "--name-status", "a"]);
    assert_eq!(diff, "A\tmine\n");
    // Somebody else's file, asked for by name.
    create(&sandbox, "s", "virtual");
    with(&sandbox, &["overlay", "write", "s", "shared"], b"from s\n");
    let reference = ok(&sandbox, &["reference", "s", "--", "shared"]);
    let args = ["import", "a", "--reference=-", "--", "shared"];
    with(&sandbox, &args, reference.as_bytes());
    assert_eq!(fs::read(dir.join("shared")).unwrap(), b"from s\n");
    // A batch is one revision, and all of it is in the files.
    let input = b"begin a\nwrite a one 2\n1\n\ndelete a shared\ncommit\nread a one\n";
    with(&sandbox, &["batch"], input);
    assert_eq!(fs::read(dir.join("one")).unwrap(), b"1\n");
    assert!(!dir.join("shared").exists());
}

#[test]
fn a_submodule_comes_moves_and_goes_with_the_base() {
    let sandbox = sample();
    let gitlink = |commit: &str| {
        let entry = format!("160000,{commit},sub");
        sandbox.git(&["update-index", "--add", "--cacheinfo", &entry]);
        sandbox.git(&["commit", "-q", "-m", "submodule"]);
    };
    let first = sandbox.git_text(&["rev-parse", "HEAD"]);
    create(&sandbox, "a", "worktree");
    with(&sandbox, &["overlay", "write", "a", "mine"], b"mine\n");
    gitlink(&first);
    let second = sandbox.git_text(&["rev-parse", "HEAD"]);
    for step in ["comes", "moves", "goes"] {
        match step {
            "comes" => {}
            "moves" => gitlink(&second),
            _ => {
                sandbox.git(&["rm", "-q", "--cached", "sub"]);
                sandbox.git(&["commit", "-q", "-m", "none"]);
            }
        }
        ok(&sandbox, &["recut", "a", "HEAD"]);
        let captured = ok(&sandbox, &["capture", "a"]);
        assert!(captured.contains("unchanged"), "{step}: {captured}");
        assert!(!captured.contains("left-out"), "{step}: {captured}");
        let diff = ok(&sandbox, &["overlay", "diff", "--name-status", "a"]);
        assert_eq!(diff, "A\tmine\n", "{step}");
    }
    ok(&sandbox, &["propose", "a"]);
    let accepted = sandbox.vws(&["accept", "a"]);
    assert!(accepted.stderr().contains_str("released"), "{accepted}");
}

#[test]
fn nothing_in_the_directory_is_overwritten_or_lost() {
    let sandbox = sample();
    create(&sandbox, "a", "worktree");
    let dir = place(&sandbox, "a");
    let outside = sandbox.root().join("outside");
    fs::write(&outside, "precious\n").unwrap();
    // Ignored, so in no revision; a link out; a folder of ignored files where a file would go.
    fs::write(dir.join("ign"), "only here\n").unwrap();
    fs::create_dir(dir.join("ign.d")).unwrap();
    fs::write(dir.join("ign.d/x"), "only here\n").unwrap();
    fs::remove_file(dir.join("gone")).unwrap();
    symlink(&outside, dir.join("gone")).unwrap();
    ok(&sandbox, &["capture", "a", "-q"]);
    let before = tree(&sandbox, "a");
    refused(
        &sandbox,
        &["overlay", "write", "a", "ign"],
        "workspace_changed",
    );
    refused(
        &sandbox,
        &["overlay", "write", "a", "ign.d"],
        "workspace_changed",
    );
    refused(&sandbox, &["overlay", "write", "a", "gone"], "type_change");
    let input = b"begin a\nwrite a fine 2\n1\n\nwrite a ign 2\n1\n\ncommit\n";
    let batch = sandbox.vws_with_input(&["batch"], input);
    assert!(batch.stdout().contains_str("workspace_changed"), "{batch}");
    assert!(!dir.join("fine").exists(), "all of it or nothing");
    assert_eq!(tree(&sandbox, "a"), before);
    assert_eq!(fs::read(dir.join("ign")).unwrap(), b"only here\n");
    assert_eq!(fs::read(&outside).unwrap(), b"precious\n");
    let strays = fs::read_dir(&dir).unwrap().flatten();
    let ours = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with(".vws-");
    assert_eq!(strays.filter(|entry| ours(&entry.file_name())).count(), 0);
    fs::remove_file(dir.join("gone")).unwrap();
    // What a tool writes counts for everybody who asks, and for nobody's clean-up.
    fs::write(dir.join("gone"), "by a tool\n").unwrap();
    refused(
        &sandbox,
        &["overlay", "write", "a", "--expect=1", "x"],
        "stale",
    );
    assert_eq!(
        ok(&sandbox, &["overlay", "read", "a", "gone"]),
        "by a tool\n"
    );
    fs::write(dir.join("gone"), "by a tool again\n").unwrap();
    refused(&sandbox, &["overlay", "dispose", "a"], "conflict");
    for upkeep in ["sweep", "recover"] {
        ok(&sandbox, &[upkeep]);
        assert_eq!(fs::read(dir.join("gone")).unwrap(), b"by a tool again\n");
    }
    let status = ok(&sandbox, &["status"]);
    assert!(
        status.contains("propose a") && !status.contains("settle a"),
        "{status}"
    );
    let settled = ok(&sandbox, &["settle", "a"]);
    assert!(settled.contains("\nstays\n"), "{settled}");
    assert!(dir.is_dir());
    // A proposal whose last change is decided waits for what was edited since.
    ok(&sandbox, &["propose", "a"]);
    fs::write(dir.join("since"), "since\n").unwrap();
    let accepted = sandbox.vws(&["accept", "a"]);
    assert_eq!(accepted.code(), Some(0), "{accepted}");
    assert!(!accepted.stderr().contains_str("released"), "{accepted}");
    assert_eq!(fs::read(dir.join("since")).unwrap(), b"since\n");
    ok(&sandbox, &["overlay", "dispose", "--force", "a"]);
    assert!(!dir.exists());
    let trash = sandbox.git_text(&["for-each-ref", "--format=%(refname)", "refs/relo/trash"]);
    assert_eq!(
        sandbox.git_text(&["show", &format!("{trash}:since")]),
        "since"
    );
}

#[test]
fn a_directory_that_was_removed_comes_back() {
    let sandbox = sample();
    create(&sandbox, "a", "worktree");
    with(&sandbox, &["overlay", "write", "a", "x"], b"x\n");
    let dir = place(&sandbox, "a");
    fs::remove_dir_all(&dir).unwrap();
    refused(&sandbox, &["overlay", "write", "a", "x"], "materialized");
    assert_eq!(ok(&sandbox, &["overlay", "read", "a", "x"]), "x\n");
    ok(&sandbox, &["settle", "a"]);
    with(&sandbox, &["overlay", "write", "a", "y"], b"y\n");
    ok(&sandbox, &["exec", "a", "--", "grep", "y", "y"]);
    assert_eq!(fs::read(dir.join("x")).unwrap(), b"x\n");
}

#[test]
fn what_a_tool_committed_stays_below_what_we_commit() {
    let sandbox = sample();
    create(&sandbox, "a", "worktree");
    let commit = "echo 1 >made; git add made; git commit -q -m tool";
    ok(&sandbox, &["exec", "a", "--", "sh", "-c", commit]);
    with(&sandbox, &["overlay", "write", "a", "more"], b"more\n");
    ok(&sandbox, &["propose", "a"]);
    let tip = sandbox.git_text(&["rev-parse", "relo/a"]);
    ok(&sandbox, &["capture", "a"]);
    assert_eq!(sandbox.git_text(&["rev-parse", "relo/a"]), tip);
    let subjects = sandbox.git_text(&["log", "--format=%s", "-2", "relo/a"]);
    assert_eq!(subjects, "vws: work of a\ntool");
    let again = "echo 2 >made; git commit -q -a -m again";
    ok(&sandbox, &["exec", "a", "--", "sh", "-c", again]);
    assert_eq!(
        sandbox.git_text(&["log", "-1", "--format=%s", "relo/a"]),
        "again"
    );
}

/// Dies at every step of making one and of writing to it; afterwards all is there or nothing is.
#[test]
fn killed_at_any_step() {
    let points = [
        "created",
        "exec-pinned",
        "admin-made",
        "layout-filled",
        "layout-recorded",
        "layout-placed",
    ];
    let sandbox = sample();
    let killed = |args: &[&str], input: &[u8], point: &str| {
        let mut command = sandbox.command(common::BINARY);
        command.args(args).env("GIT_VWS_FAULT", point);
        let outcome = sandbox.outcome(command, input);
        assert_eq!(outcome.code(), None, "{args:?} {point}: {outcome}");
    };
    for (at, point) in points.into_iter().enumerate() {
        let agent = format!("c{at}");
        let mode = "--mode=worktree";
        killed(&["overlay", "create", &agent, mode, "-q"], b"", point);
        ok(&sandbox, &["recover"]);
        with(&sandbox, &["overlay", "write", &agent, "x"], b"x\n");
        ok(&sandbox, &["exec", &agent, "--", "grep", "x", "x"]);
        assert_eq!(tree_on_disk(&sandbox, &agent), tree(&sandbox, &agent));
        ok(&sandbox, &["overlay", "dispose", "--force", &agent]);
    }
    create(&sandbox, "a", "worktree");
    let dir = place(&sandbox, "a");
    let points = [
        "deliver-noted",
        "objects-durable",
        "deliver-begun",
        "deliver-swapped",
        "deliver-swapped:2",
    ];
    for (at, point) in points.into_iter().enumerate() {
        let before = tree(&sandbox, "a");
        let line = format!("{at}\n");
        let input = format!(
            "begin a\nwrite a f 2\n{line}\nwrite a new{at}/x 2\n{line}\nrename a new{at}/x y{at}\n\
             delete a dir/a\nwrite a dir/a 2\n{line}\ncommit\n"
        );
        killed(&["batch"], input.as_bytes(), point);
        // What a tool wrote to another file meanwhile counts as ever.
        fs::write(dir.join("tool"), &line).unwrap();
        ok(&sandbox, &["capture", "a"]);
        let after = tree(&sandbox, "a");
        assert_eq!(tree_on_disk(&sandbox, "a"), after, "{point}");
        let read = |path: &str| fs::read_to_string(dir.join(path)).unwrap_or_default();
        let all = [read("f"), read("dir/a"), read(&format!("y{at}"))];
        let written = all.iter().filter(|text| **text == line).count();
        let expected = if at < 2 { 0 } else { 3 };
        assert_eq!(written, expected, "{point}: {all:?} {before}");
        let names = fs::read_dir(&dir).unwrap().flatten();
        let strays = names.filter(|e| e.file_name().to_string_lossy().starts_with(".vws-"));
        assert_eq!(strays.count(), 0, "{point}");
    }
}

#[test]
fn the_worktree_back_end_gives_what_git_gives() {
    let sandbox = sample();
    sandbox.write(".gitattributes", b"*.txt eol=crlf\n*.id ident\n");
    sandbox.write("w.txt", b"one\ntwo\n");
    sandbox.write("k.id", b"$Id$\n");
    sandbox.commit("rewritten");
    create(&sandbox, "a", "virtual");
    let made = ok(&sandbox, &["materialize", "a", "--backend=worktree"]);
    assert!(made.contains("\nbackend worktree\n"), "{made}");
    let dir = place(&sandbox, "a");
    let witness = sandbox.root().join("witness-tree");
    let witness = witness.to_str().unwrap();
    sandbox.git(&["worktree", "add", "-q", "--detach", witness, "HEAD"]);
    for file in ["f", "w.txt", "k.id", "run.sh", "swap/inner"] {
        let expected = fs::read(PathBuf::from(witness).join(file)).unwrap();
        assert_eq!(fs::read(dir.join(file)).unwrap(), expected, "{file}");
    }
    fs::write(dir.join("w.txt"), "one\r\ntwo\r\nthree\r\n").unwrap();
    ok(&sandbox, &["settle", "a"]);
    let diff = ok(&sandbox, &["overlay", "diff", "--numstat", "a"]);
    assert_eq!(diff, "1\t0\tw.txt\n");
}

#[test]
fn line_endings_that_git_keeps_are_no_change_of_the_users() {
    let sandbox = sample();
    sandbox.write("crlf", b"one\r\ntwo\r\n");
    sandbox.commit("before git was asked to convert");
    sandbox.write(".gitattributes", b"* text=auto\n");
    sandbox.commit("after");
    create(&sandbox, "a", "worktree");
    let base = tree(&sandbox, "a");
    let edited = b"one\r\n2\r\n";
    with(&sandbox, &["overlay", "write", "a", "crlf"], edited);
    let file = place(&sandbox, "a").join("crlf");
    assert_eq!(fs::read(&file).unwrap(), edited);
    ok(&sandbox, &["overlay", "discard", "a"]);
    assert_eq!(fs::read(&file).unwrap(), b"one\r\ntwo\r\n");
    ok(&sandbox, &["capture", "a"]);
    assert_eq!(tree(&sandbox, "a"), base);
}

#[test]
fn folders_that_a_killed_capture_left_go_with_a_recovery() {
    let sandbox = sample();
    create(&sandbox, "a", "worktree");
    let git_dir = sandbox.repo().join(".git");
    let admin = git_dir.join("worktrees/relo-a");
    let left = [
        admin.join("vws-rules-x"),
        admin.join("vws-clean-x"),
        git_dir.join("relo/rules-x"),
    ];
    let mine = admin.join("vws-mine");
    for folder in left.iter().chain([&mine]) {
        fs::create_dir_all(folder.join("sub")).unwrap();
        fs::write(folder.join("sub/.gitattributes"), "* text\n").unwrap();
        let mut touch = sandbox.command("touch");
        touch.args(["-d", "1 hour ago"]).arg(folder);
        let _ = sandbox.outcome(touch, b"").success();
    }
    ok(&sandbox, &["recover"]);
    for folder in left {
        assert!(!folder.exists(), "{} stays", folder.display());
    }
    assert!(mine.exists());
}
