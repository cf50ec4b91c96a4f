//! Every workspace command through `git vws`: its records in the three forms, and its refusals.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use bstr::ByteSlice;
use common::{Outcome, Sandbox};
use insta::assert_snapshot;

/// A repository with one commit, and the workspace `a` on it.
fn with_workspace() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("dir/b.txt", "two\n");
    sandbox.commit("first");
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--base=HEAD"])
        .success();
    sandbox
}

fn write(sandbox: &Sandbox, path: &str, text: &str) {
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", path], text.as_bytes())
        .success();
}

/// Runs several commands on one sandbox; the outcomes in a row.
fn session(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    commands
        .iter()
        .map(|args| format!("$ {}\n{}\n", args.join(" "), sandbox.vws(args)))
        .collect()
}

#[test]
fn create_from_a_commit() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.commit("first");
    sandbox.write("a.txt", "edited\n");
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "create", "a", "--base=HEAD"],
        &["overlay", "create", "b", "--base=main", "--read-only", "--session=s 1\n2"],
        &["overlay", "create", "c", "--from=a@1", "--json"],
        &["overlay", "create", "a"],
        &["overlay", "create", "A"],
        &["overlay", "create", "d", "--base=nope"],
        &["overlay", "create", "d", "--from=nobody"],
        &["overlay", "create", "d", "--from=a@2"],
        &["overlay", "create", "d", "--mode=worktree"],
        &["overlay", "write", "b", "f"],
    ]), @r#"
    $ overlay create a --base=HEAD
    agent a
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual

    exit: 0
    $ overlay create b --base=main --read-only --session=s 1
    2
    agent b
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual
    read-only
    session "s 1\n2"

    exit: 0
    $ overlay create c --from=a@1 --json
    {"v":1,"agent":"c","revision":1,"commit":"<oid:1>","base":"<oid:2>","tree":"<oid:3>","mode":"virtual","readOnly":false,"session":null,"uncommitted":null,"untracked":null,"untrackedLeftOut":null,"leftOut":[],"directory":null}
    exit: 0
    $ overlay create a
    --- stderr
    fatal: workspace 'a' exists already
    hint: 'git vws overlay show a' shows it, 'git vws overlay dispose a' lets it go
    exit: 128
    $ overlay create A
    --- stderr
    fatal: workspace 'a' exists already
    hint: 'git vws overlay show a' shows it, 'git vws overlay dispose a' lets it go
    exit: 128
    $ overlay create d --base=nope
    --- stderr
    fatal: not a valid revision: 'nope'
    hint: 'git rev-parse' shows what a name stands for
    exit: 128
    $ overlay create d --from=nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ overlay create d --from=a@2
    --- stderr
    fatal: workspace 'a' has no revision 2
    hint: 'git vws log a' shows its revisions
    exit: 128
    $ overlay create d --mode=worktree
    agent d
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode worktree
    uncommitted 1
    untracked 0
    untracked-left-out 0
    directory $SANDBOX/repo/.relo/worktrees/d

    exit: 0
    $ overlay write b f
    --- stderr
    error: workspace 'b' is read-only [read_only]
    hint: make a writable one: 'git vws overlay create <agent> --from=<agent>'
    exit: 1
    "#);
}

#[test]
fn create_from_the_working_tree() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("b.txt", "one\n");
    sandbox.write(".gitignore", "*.o\n");
    sandbox.commit("first");
    sandbox.write("a.txt", "edited\n");
    std::fs::remove_file(sandbox.repo().join("b.txt")).unwrap();
    sandbox.write("new.txt", "new\n");
    sandbox.write("x.o", "object\n");
    std::fs::create_dir(sandbox.repo().join("nested")).unwrap();
    sandbox.git(&["-C", "nested", "init", "-q"]);
    sandbox.write("nested/f", "f");
    assert_snapshot!(sandbox.vws(&["overlay", "create", "a"]), @"
    agent a
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual
    uncommitted 2
    untracked 1
    untracked-left-out 0
    left-out nested_repository nested

    --- stderr
    warning: left out 'nested' [nested_repository]
    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["overlay", "create", "-q", "b"]), @"
    agent b
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual
    uncommitted 2
    untracked 1
    untracked-left-out 0
    left-out nested_repository nested

    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["base"]), @"
    commit <oid:1>
    tree <oid:2>
    head <oid:3>
    branch refs/heads/main
    dirty a.txt
    dirty b.txt
    untracked new.txt
    left-out nested_repository nested
    untracked-left-out 0

    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["base", "--json"]), @r#"
    {"v":1,"commit":"<oid:1>","tree":"<oid:2>","head":"<oid:3>","branch":"refs/heads/main","detached":false,"dirty":["a.txt","b.txt"],"untracked":["new.txt"],"leftOut":[{"kind":"nested_repository","path":"nested"}],"untrackedLeftOut":0}
    exit: 0
    "#);
    assert_snapshot!(sandbox.vws(&["overlay", "read", "a", "a.txt"]), @"
    edited
    exit: 0
    ");
    let mut command = sandbox.command("git");
    command.args(["-c", "relo.workspace.maxUntracked=0", "vws", "base", "-z"]);
    assert_snapshot!(sandbox.outcome(command, b""), @r"
    commit <oid:1>\0tree <oid:2>\0head <oid:3>\0branch refs/heads/main\0dirty a.txt\0dirty b.txt\0left-out nested_repository nested\0untracked-left-out 1\0\0<no line end>
    exit: 0
    ");
}

#[test]
fn list_and_show() {
    let sandbox = with_workspace();
    write(&sandbox, "new", "new\n");
    let _ = sandbox.vws(&["snap", "a"]).success();
    let _ = sandbox
        .vws(&["overlay", "create", "b", "--base=HEAD", "--read-only"])
        .success();
    sandbox.git(&["update-ref", "refs/relo/vws/c/overlay", "HEAD"]);
    sandbox.git(&["update-ref", "refs/relo/vws/b/exec", "HEAD"]);
    assert_snapshot!(sandbox.vws(&["overlay", "list"]), @"
    agent a
    revision 2
    commit <oid:1>
    tree <oid:2>
    base <oid:3>
    mode virtual
    last write
    edited
    snap 2

    agent b
    revision 1
    commit <oid:4>
    tree <oid:5>
    base <oid:3>
    mode virtual
    read-only
    last create
    exec <oid:3>

    agent c
    damaged revision <oid:3> is damaged: it holds no metadata

    --- stderr
    hint: 'git vws recover' shows what is damaged, and clears it away
    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["overlay", "list", "--json"]), @r#"
    {"v":1,"agent":"a","revision":2,"commit":"<oid:1>","tree":"<oid:2>","base":"<oid:3>","mode":"virtual","readOnly":false,"session":null,"last":"write","proposal":null,"edited":true,"exec":null,"directory":null,"snaps":[2],"damaged":null}
    {"v":1,"agent":"b","revision":1,"commit":"<oid:4>","tree":"<oid:5>","base":"<oid:3>","mode":"virtual","readOnly":true,"session":null,"last":"create","proposal":null,"edited":false,"exec":"<oid:3>","directory":null,"snaps":[],"damaged":null}
    {"v":1,"agent":"c","revision":null,"commit":null,"tree":null,"base":null,"mode":null,"readOnly":false,"session":null,"last":null,"proposal":null,"edited":false,"exec":null,"directory":null,"snaps":[],"damaged":"revision <oid:3> is damaged: it holds no metadata"}
    --- stderr
    hint: 'git vws recover' shows what is damaged, and clears it away
    exit: 0
    "#);
    assert_snapshot!(sandbox.vws(&["overlay", "show", "-z", "b"]), @r"
    agent b\0revision 1\0commit <oid:1>\0tree <oid:2>\0base <oid:3>\0mode virtual\0read-only\0last create\0exec <oid:3>\0\0<no line end>
    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["overlay", "show", "c"]), @"
    --- stderr
    fatal: revision <oid:1> is damaged: it holds no metadata [damaged]
    hint: 'git vws recover' shows what is damaged, and clears it away
    exit: 128
    ");
    assert_snapshot!(sandbox.vws(&["overlay", "show", "nobody"]), @"
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    ");
    assert_snapshot!(sandbox.vws(&["context", "a"]), @"
    agent-id a
    base-commit <oid:1>
    overlay-revision 2
    effective-tree-oid <oid:2>

    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["context", "a", "--json"]), @r#"
    {"v":1,"agentId":"a","baseCommit":"<oid:1>","overlayRevision":2,"effectiveTreeOid":"<oid:2>"}
    exit: 0
    "#);
}

#[test]
fn edits() {
    let sandbox = with_workspace();
    let put = |args: &[&str], text: &str| sandbox.vws_with_input(args, text.as_bytes());
    assert_snapshot!(put(&["overlay", "write", "a", "x/new"], "new\n"), @"
    agent a
    revision 2
    commit <oid:1>
    tree <oid:2>

    exit: 0
    ");
    assert_snapshot!(put(&["overlay", "write", "a", "x/new", "--json"], "new\n"), @r#"
    {"v":1,"agent":"a","revision":2,"commit":"<oid:1>","tree":"<oid:2>","unchanged":true}
    exit: 0
    "#);
    assert_snapshot!(put(&["overlay", "write", "--chmod=+x", "a", "x/new", "-z"], "new\n"), @r"
    agent a\0revision 3\0commit <oid:1>\0tree <oid:2>\0\0<no line end>
    exit: 0
    ");
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "chmod", "a", "+x", "a.txt"],
        &["overlay", "symlink", "a", "link", "x/new"],
        &["overlay", "rename", "a", "dir/", "moved"],
        &["overlay", "rename", "a", "a.txt", "link"],
        &["overlay", "rename", "--force", "a", "a.txt", "link"],
        &["overlay", "delete", "a", "x", "moved/b.txt"],
        &["overlay", "delete", "-r", "a", "x/", "moved/b.txt"],
        &["overlay", "ls", "-r", "a"],
    ]), @"
    $ overlay chmod a +x a.txt
    agent a
    revision 4
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay symlink a link x/new
    agent a
    revision 5
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay rename a dir/ moved
    agent a
    revision 6
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay rename a a.txt link
    --- stderr
    error: 'link' exists already [conflict]
    exit: 1
    $ overlay rename --force a a.txt link
    agent a
    revision 7
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay delete a x moved/b.txt
    --- stderr
    error: 'x' is a folder [type_change]
    exit: 1
    $ overlay delete -r a x/ moved/b.txt
    agent a
    revision 8
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay ls -r a
    100755 blob <oid:1>	link
    exit: 0
    ");
}

#[test]
fn refusals_leave_everything_as_it_was() {
    let sandbox = with_workspace();
    let _ = sandbox
        .vws(&["overlay", "symlink", "a", "out", "dir"])
        .success();
    let before = sandbox.vws(&["overlay", "show", "a"]);
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "write", "a", "../up"],
        &["overlay", "write", "a", "/etc/passwd"],
        &["overlay", "write", "a", "sub/.GIT/config"],
        &["overlay", "write", "a", ".relo/x"],
        &["overlay", "write", "a", ""],
        &["overlay", "write", "a", "dir"],
        &["overlay", "write", "a", "dir/b.txt/c"],
        &["overlay", "write", "a", "out/f"],
        &["overlay", "write", "--expect=1", "a", "f"],
        &["overlay", "write", "nobody", "f"],
        &["overlay", "symlink", "a", "l", "../../etc"],
        &["overlay", "delete", "a", "dir"],
        &["overlay", "delete", "a", "a.txt", "nope"],
        &["overlay", "rename", "a", "dir", "dir/in"],
        &["overlay", "chmod", "a", "+x", "dir"],
        &["overlay", "read", "a", "nope"],
        &["overlay", "read", "a", "dir"],
        &["overlay", "read", "a", "nope\u{1b}[2J"],
        &["overlay", "ls", "a", "nope"],
        &["overlay", "restore", "a", "9"],
        &["overlay", "discard", "a", "nope"],
        &["overlay", "dispose", "a"],
        &["snap", "--drop=1", "a"],
    ]), @r"
    $ overlay write a ../up
    --- stderr
    error: path '../up' leads out of the repository [escapes]
    exit: 1
    $ overlay write a /etc/passwd
    --- stderr
    error: path '/etc/passwd' leads out of the repository [escapes]
    exit: 1
    $ overlay write a sub/.GIT/config
    --- stderr
    error: path 'sub/.GIT/config' is protected [protected_path]
    exit: 1
    $ overlay write a .relo/x
    --- stderr
    error: path '.relo/x' is protected [protected_path]
    exit: 1
    $ overlay write a 
    --- stderr
    error: path '' is empty [escapes]
    exit: 1
    $ overlay write a dir
    --- stderr
    error: 'dir' is a folder [type_change]
    exit: 1
    $ overlay write a dir/b.txt/c
    --- stderr
    error: 'dir/b.txt' is a file [type_change]
    exit: 1
    $ overlay write a out/f
    --- stderr
    error: 'out' is a link, which is never written through [escapes]
    exit: 1
    $ overlay write --expect=1 a f
    --- stderr
    error: workspace 'a' is at revision 2, not 1 [stale]
    hint: read it again, then repeat the change on the current revision
    exit: 1
    $ overlay write nobody f
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ overlay symlink a l ../../etc
    --- stderr
    error: link 'l' would leave the workspace [escapes]
    exit: 1
    $ overlay delete a dir
    --- stderr
    error: 'dir' is a folder [type_change]
    exit: 1
    $ overlay delete a a.txt nope
    --- stderr
    error: path 'nope' does not exist in the overlay
    exit: 1
    $ overlay rename a dir dir/in
    --- stderr
    fatal: cannot rename 'dir' to 'dir/in': one is inside the other
    exit: 128
    $ overlay chmod a +x dir
    --- stderr
    error: 'dir' is not a regular file [type_change]
    exit: 1
    $ overlay read a nope
    --- stderr
    error: path 'nope' does not exist in the overlay
    exit: 1
    $ overlay read a dir
    --- stderr
    error: 'dir' is a folder [type_change]
    exit: 1
    $ overlay read a nope[2J
    --- stderr
    error: path 'nope\x1b[2J' does not exist in the overlay
    exit: 1
    $ overlay ls a nope
    --- stderr
    error: path 'nope' does not exist in the overlay
    exit: 1
    $ overlay restore a 9
    --- stderr
    fatal: workspace 'a' has no revision 9
    hint: 'git vws log a' shows its revisions
    exit: 128
    $ overlay discard a nope
    --- stderr
    error: path 'nope' does not exist in workspace 'a' or its base
    exit: 1
    $ overlay dispose a
    --- stderr
    error: workspace 'a' has edits that nobody has decided on [conflict]
    hint: with --force it goes, and the edits stay under refs/relo/trash/
    exit: 1
    $ snap --drop=1 a
    --- stderr
    fatal: workspace 'a' has no revision 1
    hint: 'git vws log a' shows its revisions
    exit: 128
    ");
    sandbox.git(&[
        "update-ref",
        "refs/relo/vws/a/exec",
        "refs/relo/vws/a/overlay",
    ]);
    assert_snapshot!(sandbox.vws(&["overlay", "write", "a", "f"]), @"
    --- stderr
    error: workspace 'a' has a directory open, which is the authority [materialized]
    hint: 'git vws settle <agent>' saves what it holds and removes it
    exit: 1
    ");
    sandbox.git(&["update-ref", "-d", "refs/relo/vws/a/exec"]);
    let after = sandbox.vws(&["overlay", "show", "a"]);
    assert_eq!(after.stdout().as_bstr(), before.stdout().as_bstr());
}

#[test]
fn looking() {
    let sandbox = with_workspace();
    let _ = sandbox
        .vws(&["overlay", "symlink", "a", "link", "dir/b.txt"])
        .success();
    let _ = sandbox.vws(&["overlay", "delete", "a", "a.txt"]).success();
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "read", "a", "link"],
        &["overlay", "read", "a", "a.txt"],
        &["overlay", "read", "--base", "a", "a.txt"],
        &["overlay", "ls", "a"],
        &["overlay", "ls", "a", "dir/"],
        &["overlay", "ls", "--base", "-r", "-z", "a"],
        &["overlay", "ls", "--json", "a"],
        &["overlay", "stat", "a", "link"],
        &["overlay", "stat", "a", "dir"],
        &["overlay", "stat", "--base", "--json", "a", "a.txt"],
    ]), @r#"
    $ overlay read a link
    two
    exit: 0
    $ overlay read a a.txt
    --- stderr
    error: path 'a.txt' does not exist in the overlay
    exit: 1
    $ overlay read --base a a.txt
    one
    exit: 0
    $ overlay ls a
    040000 tree <oid:1>	dir
    120000 blob <oid:2>	link
    exit: 0
    $ overlay ls a dir/
    100644 blob <oid:1>	dir/b.txt
    exit: 0
    $ overlay ls --base -r -z a
    100644 blob <oid:1>	a.txt\0100644 blob <oid:2>	dir/b.txt\0<no line end>
    exit: 0
    $ overlay ls --json a
    {"v":1,"path":"dir","mode":"040000","type":"tree","oid":"<oid:1>"}
    {"v":1,"path":"link","mode":"120000","type":"blob","oid":"<oid:2>"}
    exit: 0
    $ overlay stat a link
    path link
    mode 120000
    type blob
    oid <oid:1>
    size 9

    exit: 0
    $ overlay stat a dir
    path dir
    mode 040000
    type tree
    oid <oid:1>

    exit: 0
    $ overlay stat --base --json a a.txt
    {"v":1,"path":"a.txt","mode":"100644","type":"blob","oid":"<oid:1>","size":4}
    exit: 0
    "#);
}

#[test]
fn diff_forms() {
    let sandbox = with_workspace();
    assert_snapshot!(sandbox.vws(&["overlay", "diff", "a"]), @"exit: 0");
    write(&sandbox, "a.txt", "edited\n");
    write(&sandbox, "new", "new\n");
    let _ = sandbox
        .vws(&["overlay", "delete", "-r", "a", "dir"])
        .success();
    let _ = sandbox
        .vws(&["overlay", "symlink", "a", "dir", "new"])
        .success();
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "diff", "a"],
        &["overlay", "diff", "--raw", "-z", "a"],
        &["overlay", "diff", "--name-status", "a"],
        &["overlay", "diff", "--name-status", "-z", "a"],
        &["overlay", "diff", "--json", "a"],
        &["overlay", "diff", "--numstat", "a"],
        &["overlay", "diff", "--numstat", "--json", "a"],
    ]), @r#"
    $ overlay diff a
    :100644 100644 <oid:1> <oid:2> M	a.txt
    :000000 120000 <oid:null> <oid:3> A	dir
    :100644 000000 <oid:4> <oid:null> D	dir/b.txt
    :000000 100644 <oid:null> <oid:5> A	new
    exit: 0
    $ overlay diff --raw -z a
    :100644 100644 <oid:1> <oid:2> M\0a.txt\0:000000 120000 <oid:null> <oid:3> A\0dir\0:100644 000000 <oid:4> <oid:null> D\0dir/b.txt\0:000000 100644 <oid:null> <oid:5> A\0new\0<no line end>
    exit: 0
    $ overlay diff --name-status a
    M	a.txt
    A	dir
    D	dir/b.txt
    A	new
    exit: 0
    $ overlay diff --name-status -z a
    M\0a.txt\0A\0dir\0D\0dir/b.txt\0A\0new\0<no line end>
    exit: 0
    $ overlay diff --json a
    {"v":1,"path":"a.txt","status":"M","oldMode":"100644","newMode":"100644","oldOid":"<oid:1>","newOid":"<oid:2>"}
    {"v":1,"path":"dir","status":"A","oldMode":null,"newMode":"120000","oldOid":null,"newOid":"<oid:3>"}
    {"v":1,"path":"dir/b.txt","status":"D","oldMode":"100644","newMode":null,"oldOid":"<oid:4>","newOid":null}
    {"v":1,"path":"new","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:5>"}
    exit: 0
    $ overlay diff --numstat a
    1	1	a.txt
    1	0	dir
    0	1	dir/b.txt
    1	0	new
    exit: 0
    $ overlay diff --numstat --json a
    {"v":1,"path":"a.txt","status":"M","oldMode":"100644","newMode":"100644","oldOid":"<oid:1>","newOid":"<oid:2>","added":1,"deleted":1}
    {"v":1,"path":"dir","status":"A","oldMode":null,"newMode":"120000","oldOid":null,"newOid":"<oid:3>","added":1,"deleted":0}
    {"v":1,"path":"dir/b.txt","status":"D","oldMode":"100644","newMode":null,"oldOid":"<oid:4>","newOid":null,"added":0,"deleted":1}
    {"v":1,"path":"new","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:5>","added":1,"deleted":0}
    exit: 0
    "#);
}

#[test]
fn back_and_away() {
    let sandbox = with_workspace();
    write(&sandbox, "a.txt", "edited\n");
    write(&sandbox, "dir/new", "new\n");
    assert_snapshot!(session(&sandbox, &[
        &["snap", "a"],
        &["snap", "--json", "a"],
        &["overlay", "discard", "a", "dir/"],
        &["overlay", "discard", "a", "dir"],
        &["overlay", "discard", "a"],
        &["overlay", "restore", "--expect=4", "a", "3"],
        &["overlay", "restore", "a", "3"],
        &["overlay", "diff", "--name-status", "a"],
        &["snap", "a"],
        &["snap", "--list", "a"],
        &["snap", "--drop=3", "a"],
        &["snap", "--list", "--json", "a"],
        &["overlay", "dispose", "--force", "a"],
        &["overlay", "list"],
        &["overlay", "create", "b", "--base=refs/relo/trash/a/6"],
        &["overlay", "dispose", "b"],
    ]), @r#"
    $ snap a
    agent a
    revision 3
    commit <oid:1>

    exit: 0
    $ snap --json a
    {"v":1,"agent":"a","revision":3,"commit":"<oid:1>"}
    exit: 0
    $ overlay discard a dir/
    agent a
    revision 4
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay discard a dir
    agent a
    revision 4
    commit <oid:1>
    tree <oid:2>
    unchanged

    exit: 0
    $ overlay discard a
    agent a
    revision 5
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay restore --expect=4 a 3
    --- stderr
    error: workspace 'a' is at revision 5, not 4 [stale]
    hint: read it again, then repeat the change on the current revision
    exit: 1
    $ overlay restore a 3
    agent a
    revision 6
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay diff --name-status a
    M	a.txt
    A	dir/new
    exit: 0
    $ snap a
    agent a
    revision 6
    commit <oid:1>

    exit: 0
    $ snap --list a
    agent a
    revision 3
    commit <oid:1>

    agent a
    revision 6
    commit <oid:2>

    exit: 0
    $ snap --drop=3 a
    exit: 0
    $ snap --list --json a
    {"v":1,"agent":"a","revision":6,"commit":"<oid:1>"}
    exit: 0
    $ overlay dispose --force a
    agent a
    revision 6
    commit <oid:1>
    trash refs/relo/trash/a/6

    exit: 0
    $ overlay list
    exit: 0
    $ overlay create b --base=refs/relo/trash/a/6
    agent b
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual

    exit: 0
    $ overlay dispose b
    agent b
    revision 1
    commit <oid:1>

    exit: 0
    "#);
}

/// Runs `git vws overlay <args>` with raw bytes in them.
fn raw(sandbox: &Sandbox, args: &[&[u8]], input: &[u8]) -> Outcome {
    let mut command = sandbox.command("git");
    command.args(["vws", "overlay"]);
    command.args(args.iter().map(|arg| OsStr::from_bytes(arg)));
    sandbox.outcome(command, input)
}

#[test]
fn hostile_names_come_back_as_they_went_in() {
    let sandbox = with_workspace();
    let names: [&[u8]; 8] = [
        b"-r",
        b"a b",
        b"new\nline\t",
        b"\xff\xfe",
        b"\x1b[31m",
        b"\"quoted\\",
        "\u{202e}txt".as_bytes(),
        b":(top)*",
    ];
    for name in names {
        let _ = raw(&sandbox, &[b"write", b"a", b"--", name], name).success();
        let read = raw(&sandbox, &[b"read", b"a", b"--", name], b"").success();
        assert_eq!(read.stdout().as_bstr(), name.as_bstr());
    }
    assert_snapshot!(sandbox.vws(&["overlay", "diff", "--name-status", "a"]), @r#"
    A	"\033[31m"
    A	"\"quoted\\"
    A	-r
    A	:(top)*
    A	a b
    A	"new\nline\t"
    A	"\342\200\256txt"
    A	"\377\376"
    exit: 0
    "#);
    let json = sandbox.vws(&["overlay", "diff", "--name-status", "--json", "a"]);
    let json = json.to_string().replace('\u{202e}', "<U+202E>");
    assert_snapshot!(json, @r#"
    {"v":1,"path":"\u001b[31m","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:1>"}
    {"v":1,"path":"\"quoted\\","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:2>"}
    {"v":1,"path":"-r","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:3>"}
    {"v":1,"path":":(top)*","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:4>"}
    {"v":1,"path":"a b","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:5>"}
    {"v":1,"path":"new\nline\t","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:6>"}
    {"v":1,"path":"<U+202E>txt","status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:7>"}
    {"v":1,"path":{"bytes":"//4="},"status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:8>"}
    exit: 0
    "#);
    assert_snapshot!(sandbox.vws(&["overlay", "stat", "a", "new\nline\t"]), @r#"
    path "new\nline\t"
    mode 100644
    type blob
    oid <oid:1>
    size 9

    exit: 0
    "#);
    assert_snapshot!(raw(&sandbox, &[b"stat", b"--json", b"a", b"\xff\xfe"], b""), @r#"
    {"v":1,"path":{"bytes":"//4="},"mode":"100644","type":"blob","oid":"<oid:1>","size":2}
    exit: 0
    "#);
    assert_snapshot!(raw(&sandbox, &[b"read", b"a", b"\xff\x1b[31m"], b""), @r"
    --- stderr
    error: path '�\x1b[31m' does not exist in the overlay
    exit: 1
    ");
    // -z prints them raw: they are what git holds.
    let listed = raw(&sandbox, &[b"diff", b"--name-status", b"-z", b"a"], b"").success();
    let git = sandbox.git(&[
        "diff-tree",
        "-r",
        "-z",
        "--name-status",
        "refs/relo/vws/a/base",
        "refs/relo/vws/a/overlay",
    ]);
    assert_eq!(listed.stdout().as_bstr(), git.as_bstr());
}
