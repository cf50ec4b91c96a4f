//! Decisions at the command line: conflicts seen and marked, patches for reviewers, what was built on
//! other agents' work.
#![allow(clippy::unwrap_used)]

mod common;

use common::Sandbox;
use insta::assert_snapshot;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    sandbox.write("dir/b.c", "1\n2\n3\n4\n5\n");
    sandbox.commit("first");
    sandbox
}

/// Runs several commands on one sandbox; the outcomes in a row.
fn session(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    commands
        .iter()
        .map(|args| format!("$ {}\n{}\n", args.join(" "), sandbox.vws(args)))
        .collect()
}

/// Lets an agent do something and offers it.
fn run(sandbox: &Sandbox, agent: &str, script: &str) {
    let _ = sandbox
        .vws(&["run", "-q", agent, "--", "sh", "-c", script])
        .success();
}

/// Writes down that a workspace was built on what another offers in a file, as `stack` does.
fn rest_on(sandbox: &Sandbox, child: &str, parent: &str, path: &str, hash: &str) {
    let name = format!("refs/relo/vws/{child}/overlay");
    let message = sandbox.git_text(&["log", "-1", "--format=%B", &name]);
    let lineage = format!(
        "{{\"format\":1,\"lineage\":[{{\"agent\":\"{parent}\",\"proposal\":2,\"path\":\"{path}\",\"patchHash\":\"{hash}\"}}],"
    );
    let message = message.replacen("{\"format\":1,", &lineage, 1);
    let tree = format!("{name}^{{tree}}");
    let parents = sandbox.git_text(&["log", "-1", "--format=%P", &name]);
    let mut args = vec!["commit-tree", &tree];
    for parent in parents.split(' ') {
        args.extend(["-p", parent]);
    }
    let commit = String::from_utf8(sandbox.git_with_input(&args, message.as_bytes())).unwrap();
    sandbox.git(&["update-ref", &name, commit.trim()]);
}

#[test]
fn collisions_are_listed_and_nothing_is_laid_out() {
    let sandbox = started();
    assert_snapshot!(session(&sandbox, &[&["conflicts"]]), @"
    $ conflicts
    exit: 0
    ");
    for (agent, text) in [("a", "A\n"), ("b", "B\n")] {
        let _ = sandbox.vws(&["overlay", "create", "-q", agent]);
        let _ = sandbox
            .vws_with_input(&["overlay", "write", agent, "dir/b.c"], text.as_bytes())
            .success();
        let _ = sandbox
            .vws_with_input(&["overlay", "write", agent, "n\tw"], text.as_bytes())
            .success();
    }
    let _ = sandbox.vws(&["overlay", "create", "c"]).success();
    std::fs::remove_file(sandbox.repo().join("dir/b.c")).unwrap();
    assert_snapshot!(session(&sandbox, &[
        &["conflicts"],
        &["conflicts", "--json", "b"],
        &["conflicts", "c"],
        &["conflicts", "nobody"],
        &["conflicts", "-z", "a"],
    ]), @r#"
    $ conflicts
    delete_edit a -	dir/b.c
    conflict a b	dir/b.c
    conflict a b	"n\tw"
    delete_edit b -	dir/b.c
    --- stderr
    error: 4 collisions among 3 workspaces
    exit: 1
    $ conflicts --json b
    {"v":1,"path":"dir/b.c","kind":"conflict","agent":"a","with":"b"}
    {"v":1,"path":"n\tw","kind":"conflict","agent":"a","with":"b"}
    {"v":1,"path":"dir/b.c","kind":"delete_edit","agent":"b","with":null}
    --- stderr
    error: 3 collisions among 3 workspaces
    exit: 1
    $ conflicts c
    exit: 0
    $ conflicts nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ conflicts -z a
    delete_edit a -	dir/b.c\0conflict a b	dir/b.c\0conflict a b	n	w\0<no line end>
    --- stderr
    error: 3 collisions among 3 workspaces
    exit: 1
    "#);
    assert!(!sandbox.repo().join(".relo").exists());
}

#[test]
fn a_conflict_is_marked_in_the_named_file() {
    let sandbox = started();
    run(&sandbox, "a", "sed -i s/two/agent/ a.txt; echo new >new");
    sandbox.write("a.txt", "one\nuser\nthree\n");
    assert_snapshot!(session(&sandbox, &[
        &["accept", "--conflict=markers", "a"],
        &["accept", "--conflict=both", "a", "--", "a.txt"],
        &["accept", "--dry-run", "--conflict=markers", "a", "--", "a.txt"],
    ]), @"
    $ accept --conflict=markers a
    --- stderr
    fatal: missing <path>...
    usage: git vws accept [<options>] [agent] [path]...
    exit: 129
    $ accept --conflict=both a -- a.txt
    --- stderr
    fatal: 'both' is no value for '--conflict'; expected one of markers
    usage: git vws accept [<options>] [agent] [path]...
    exit: 129
    $ accept --dry-run --conflict=markers a -- a.txt
    marked a 2 -	a.txt
    --- stderr
    warning: conflicts would be marked in 'a.txt'
    exit: 0
    ");
    let mut git = sandbox.command("git");
    git.args(["-c", "merge.conflictStyle=diff3", "vws", "accept"]);
    git.args(["--conflict=markers", "a", "--", "a.txt"]);
    assert_snapshot!(sandbox.outcome(git, b""), @"
    marked a 2 1	a.txt
    --- stderr
    warning: conflicts are marked in 'a.txt'
    exit: 0
    ");
    assert_snapshot!(session(&sandbox, &[
        &["changes", "a"],
    ]), @"
    $ changes a
    accepted M 1 1 a 2	a.txt
    proposed A 1 0 a 2	new
    --- stderr
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    ");
    let text = String::from_utf8(sandbox.read("a.txt")).unwrap();
    assert_snapshot!(text, @"
    one
    <<<<<<< working tree
    user
    ||||||| base
    two
    =======
    agent
    >>>>>>> a r2
    three
    ");
    let _ = sandbox.vws(&["undo"]).success();
    assert_eq!(sandbox.read("a.txt"), b"one\nuser\nthree\n");
}

#[test]
fn patches_for_reviewers_end_where_they_shall() {
    let sandbox = started();
    run(
        &sandbox,
        "a",
        "sed -i s/two/2/ a.txt; printf 'b\\0' >bin; mv dir/b.c dir/c.c",
    );
    assert_snapshot!(session(&sandbox, &[
        &["changes", "-p", "a"],
        &["changes", "-p", "--max-bytes=150", "a"],
        &["changes", "-p", "--json", "--max-bytes=150", "a"],
        &["changes", "--max-bytes=150", "a"],
        &["changes", "-p", "-z", "a"],
    ]), @r#"
    $ changes -p a
    diff --git a/a.txt b/a.txt
    index <oid:1>..<oid:2> 100644
    --- a/a.txt
    +++ b/a.txt
    @@ -1,3 +1,3 @@
     one
    -two
    +2
     three
    diff --git a/bin b/bin
    new file mode 100644
    index <oid:null>..<oid:3>
    Binary files /dev/null and b/bin differ
    diff --git a/dir/b.c b/dir/b.c
    deleted file mode 100644
    index <oid:4>..<oid:null>
    --- a/dir/b.c
    +++ /dev/null
    @@ -1,5 +0,0 @@
    -1
    -2
    -3
    -4
    -5
    diff --git a/dir/c.c b/dir/c.c
    new file mode 100644
    index <oid:null>..<oid:4>
    --- /dev/null
    +++ b/dir/c.c
    @@ -0,0 +1,5 @@
    +1
    +2
    +3
    +4
    +5
    --- stderr
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ changes -p --max-bytes=150 a
    diff --git a/a.txt b/a.txt
    index <oid:1>..<oid:2> 100644
    --- a/a.txt
    +++ b/a.txt
    --- stderr
    warning: the patches of 4 changes are cut
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ changes -p --json --max-bytes=150 a
    {"v":1,"agent":"a","revision":2,"path":"a.txt","state":"proposed","reason":null,"journal":null,"status":"M","added":1,"deleted":1,"oldMode":"100644","newMode":"100644","oldOid":"<oid:1>","newOid":"<oid:2>","rename":null,"needs":[],"needsCount":0,"patch":"diff --git a/a.txt b/a.txt\nindex <oid:1>..<oid:2> 100644\n--- a/a.txt\n+++ b/a.txt\n","patchCut":true}
    {"v":1,"agent":"a","revision":2,"path":"bin","state":"proposed","reason":null,"journal":null,"status":"A","added":null,"deleted":null,"oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:3>","rename":null,"needs":[],"needsCount":0,"patch":"","patchCut":true}
    {"v":1,"agent":"a","revision":2,"path":"dir/b.c","state":"proposed","reason":null,"journal":null,"status":"D","added":0,"deleted":5,"oldMode":"100644","newMode":null,"oldOid":"<oid:4>","newOid":null,"rename":{"path":"dir/c.c","similarity":100},"needs":[],"needsCount":0,"patch":"","patchCut":true}
    {"v":1,"agent":"a","revision":2,"path":"dir/c.c","state":"proposed","reason":null,"journal":null,"status":"A","added":5,"deleted":0,"oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:4>","rename":{"path":"dir/b.c","similarity":100},"needs":[],"needsCount":0,"patch":"","patchCut":true}
    --- stderr
    warning: the patches of 4 changes are cut
    exit: 0
    $ changes --max-bytes=150 a
    --- stderr
    fatal: missing --patch
    usage: git vws changes [<options>] [agent[@n]]
    exit: 129
    $ changes -p -z a
    --- stderr
    fatal: '--patch' cannot be used together with '-z'
    usage: git vws changes [<options>] [agent[@n]]
    exit: 129
    "#);
    // What git itself prints.
    let ours = sandbox.vws(&["changes", "-p", "a"]);
    let range = [
        "diff",
        "-p",
        "--full-index",
        "--no-renames",
        "HEAD",
        "relo/a",
    ];
    assert_eq!(ours.stdout(), sandbox.git(&range));
}

#[test]
fn what_was_built_on_other_work_waits_for_it() {
    let sandbox = started();
    run(&sandbox, "parent", "echo p >p");
    let _ = sandbox
        .vws(&["overlay", "create", "child", "--from=parent"])
        .success();
    let blob = sandbox.git_text(&["rev-parse", "relo/parent:p"]);
    let patch = format!("000000 {} 100644 {blob}\0p", "0".repeat(40));
    let hash = sandbox.git_with_input(&["hash-object", "--stdin"], patch.as_bytes());
    let hash = String::from_utf8(hash).unwrap();
    rest_on(&sandbox, "child", "parent", "p", hash.trim());
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "child", "c"], b"c\n")
        .success();
    assert_snapshot!(session(&sandbox, &[
        &["propose", "child"],
        &["changes", "--json", "child"],
        &["accept", "child"],
        &["accept", "--dry-run", "--with-parents", "--json", "child"],
        &["accept", "--with-parents", "child"],
        &["undo"],
        &["reject", "parent"],
        &["changes", "child"],
        &["changes", "--json", "child"],
        &["accept", "--all"],
        &["reject", "child"],
    ]), @r#"
    $ propose child
    proposed A 1 0 child 2	c
    exit: 0
    $ changes --json child
    {"v":1,"agent":"child","revision":2,"path":"c","state":"proposed","reason":null,"journal":null,"status":"A","added":1,"deleted":0,"oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:1>","rename":null,"needs":[{"id":"parent/2:p","patchHash":"<oid:2>"}],"needsCount":1}
    exit: 0
    $ accept child
    needs_parent child 2 -	c
    --- stderr
    error: cannot accept 'c' of agent 'child', which was built on 'parent/2:p' [needs_parent]
    error: 1 of 1 change were not accepted
    hint: '--with-parents' accepts what they were built on with them
    exit: 1
    $ accept --dry-run --with-parents --json child
    {"v":1,"agent":"child","revision":2,"path":"c","verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:1>"}
    {"v":1,"agent":"parent","revision":2,"path":"p","verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:2>"}
    exit: 0
    $ accept --with-parents child
    clean child 2 1	c
    clean parent 2 1	p
    --- stderr
    child: nothing waits any more, the workspace is released
    parent: nothing waits any more, the workspace is released
    exit: 0
    $ undo
    undone parent 2 1	p
    undone child 2 1	c
    exit: 0
    $ reject parent
    rejected parent 2	p
    --- stderr
    warning: 1 change of agent 'child' built on it and cannot be accepted now [parent_rejected]
    exit: 0
    $ changes child
    blocked A 1 0 child 2	c
    --- stderr
    hint: 'git vws rebase-onto <agent> <base> --without=<parent>' frees what is blocked
    exit: 0
    $ changes --json child
    {"v":1,"agent":"child","revision":2,"path":"c","state":"blocked","reason":"parent_rejected","journal":null,"status":"A","added":1,"deleted":0,"oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:1>","rename":null,"needs":[{"id":"parent/2:p","patchHash":"<oid:2>"}],"needsCount":1}
    exit: 0
    $ accept --all
    parent_rejected child 2 -	c
    --- stderr
    error: cannot accept 'c' of agent 'child', which was built on 'parent/2:p' [parent_rejected]
    error: 1 of 1 change were not accepted
    hint: 'git vws rebase-onto <agent> <base> --without=<parent>' takes what they were built on out
    exit: 1
    $ reject child
    rejected child 2	c
    exit: 0
    "#);
}
