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
    let _ = sandbox.vws(&["stack", "child", "--on=parent"]).success();
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
    error: 1 of 1 change was not accepted
    hint: '--with-parents' accepts what they were built on with them
    exit: 1
    $ accept --dry-run --with-parents --json child
    {"v":1,"agent":"child","revision":2,"path":"c","into":null,"verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:1>"}
    {"v":1,"agent":"parent","revision":2,"path":"p","into":null,"verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:2>"}
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
    error: 1 of 1 change was not accepted
    hint: 'git vws rebase-onto <agent> <base> --without=<parent>' takes what they were built on out
    exit: 1
    $ reject child
    rejected child 2	c
    exit: 0
    "#);
}

#[test]
fn a_dry_run_shows_conflicts_byte_for_byte_as_git_marks_them() {
    let sandbox = Sandbox::new();
    let lines = |edits: &[(usize, &str)], end: &str| -> String {
        let line = |n| match edits.iter().find(|(at, _)| *at == n) {
            Some((_, text)) => format!("{text}{end}"),
            None => format!("line {n}{end}"),
        };
        (1..=30).map(line).collect()
    };
    let same = [(5, "same"), (6, "same too")];
    let base = lines(&[], "\n");
    let ours = lines(&[same[0], (6, "user"), (7, "same three"), (20, "u")], "\n");
    let theirs = lines(&[same[0], (6, "agent"), (7, "same three"), (25, "a")], "\n");
    let cases = [
        ("f", base.clone(), ours.clone(), theirs.clone()),
        // Without a final line end, and with those of another system.
        (
            "no-end",
            "x".to_owned(),
            "x\nuser".to_owned(),
            "x\nagent".to_owned(),
        ),
        (
            "sp ace\n\u{fc}",
            lines(&[], "\r\n"),
            lines(&[(3, "user")], "\r\n"),
            lines(&[(3, "agent")], "\r\n"),
        ),
    ];
    for (name, base, ..) in &cases {
        sandbox.write(name, base);
    }
    sandbox.commit("base");
    let _ = sandbox.vws(&["overlay", "create", "-q", "a"]).success();
    for (name, _, ours, theirs) in &cases {
        let args = ["overlay", "write", "a", name];
        let _ = sandbox.vws_with_input(&args, theirs.as_bytes()).success();
        sandbox.write(name, ours);
    }
    let _ = sandbox.vws(&["propose", "a"]).success();
    let revision = sandbox.git_text(&[
        "for-each-ref",
        "--format=%(refname:lstrip=4)",
        "refs/relo/changes",
    ]);
    let label = format!("a r{revision}");
    for (at, bytes) in [("base", 1), ("ours", 2), ("theirs", 3)] {
        for (n, case) in cases.iter().enumerate() {
            let bytes = [&case.1, &case.2, &case.3][bytes - 1];
            std::fs::write(sandbox.root().join(format!("{at}{n}")), bytes).unwrap();
        }
    }
    for style in ["merge", "diff3", "zdiff3"] {
        let config = format!("merge.conflictStyle={style}");
        let ours = |args: &[&str]| {
            let mut git = sandbox.command("git");
            git.args(["-c", &config, "vws", "accept", "--dry-run", "-p"])
                .args(args);
            sandbox.outcome(git, b"")
        };
        let mut all = Vec::new();
        for (n, (name, ..)) in cases.iter().enumerate() {
            let mut git = sandbox.command("git");
            git.args([
                "merge-file",
                "-p",
                "-L",
                "working tree",
                "-L",
                "base",
                "-L",
                &label,
            ]);
            if style != "merge" {
                git.arg(format!("--{style}"));
            }
            let files =
                ["ours", "base", "theirs"].map(|at| sandbox.root().join(format!("{at}{n}")));
            git.args(files);
            let marked = sandbox.outcome(git, b"");
            assert_eq!(marked.code(), Some(1), "{marked}");
            let out = ours(&["a", "--", name]);
            assert_eq!(out.code(), Some(1), "{out}");
            assert_eq!(out.stdout(), marked.stdout(), "{style} {name}");
            all.push((*name, marked.stdout().to_vec()));
        }
        // Several are told apart by a line above each.
        let heading = |name: &str| match name {
            "f" | "no-end" => format!("==> a {revision} {name} <==\n"),
            _ => format!("==> a {revision} \"sp ace\\n\\303\\274\" <==\n"),
        };
        let expected: Vec<u8> = all
            .iter()
            .flat_map(|(name, text)| [heading(name).as_bytes(), text].concat())
            .collect();
        assert_eq!(ours(&["a"]).stdout(), expected, "{style}");
    }
    // Nothing has changed, and the record of a conflict has the text too.
    assert_eq!(sandbox.read("f"), ours.as_bytes());
    assert_snapshot!(session(&sandbox, &[
        &["accept", "--dry-run", "-p", "--json", "a", "--", "no-end"],
        &["accept", "-p", "a"],
        &["accept", "--dry-run", "-p", "-z", "a"],
    ]), @r#"
    $ accept --dry-run -p --json a -- no-end
    {"v":1,"agent":"a","revision":4,"path":"no-end","into":null,"verdict":"conflict","accepted":false,"journal":null,"because":null,"needs":null,"error":null,"mode":null,"oid":null,"marked":"x\n<<<<<<< working tree\nuser\n=======\nagent\n>>>>>>> a r4\n"}
    --- stderr
    error: cannot accept 'no-end' of agent 'a' [conflict]
    error: 1 of 1 change would not be accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ accept -p a
    --- stderr
    fatal: missing --dry-run
    usage: git vws accept [<options>] [agent] [path]...
    exit: 129
    $ accept --dry-run -p -z a
    --- stderr
    fatal: '--patch' cannot be used together with '-z'
    usage: git vws accept [<options>] [agent] [path]...
    exit: 129
    "#);
}

#[test]
fn a_change_of_what_the_user_renamed_says_where_it_goes() {
    let sandbox = started();
    run(&sandbox, "a", "sed -i 's/^5$/agent/' dir/b.c");
    let top = sandbox.repo();
    std::fs::rename(top.join("dir/b.c"), top.join("sp ace.c")).unwrap();
    assert_snapshot!(session(&sandbox, &[
        &["conflicts"],
        &["accept", "--dry-run", "a"],
        &["accept", "--dry-run", "--json", "a"],
        &["accept", "--dry-run", "-z", "a"],
        &["accept", "a", "--", "sp ace.c"],
        &["accept", "a", "--", "dir"],
        &["undo", "--", "dir/b.c"],
    ]), @r#"
    $ conflicts
    exit: 0
    $ accept --dry-run a
    clean a 2 - into	dir/b.c	sp ace.c
    exit: 0
    $ accept --dry-run --json a
    {"v":1,"agent":"a","revision":2,"path":"dir/b.c","into":"sp ace.c","verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:1>"}
    exit: 0
    $ accept --dry-run -z a
    clean a 2 - into	dir/b.c\0sp ace.c\0<no line end>
    exit: 0
    $ accept a -- sp ace.c
    --- stderr
    fatal: agent 'a' proposes no change of 'sp ace.c': that of 'dir/b.c', which was moved there, would go into it
    hint: name it: 'git vws accept a -- dir/b.c'
    exit: 128
    $ accept a -- dir
    clean a 2 1 into	dir/b.c	sp ace.c
    --- stderr
    a: nothing waits any more, the workspace is released
    exit: 0
    $ undo -- dir/b.c
    undone a 2 1	sp ace.c
    exit: 0
    "#);
    sandbox.write("sp ace.c", "1\n2\n3\n4\nuser\n");
    assert_snapshot!(session(&sandbox, &[
        &["conflicts"],
        &["accept", "--dry-run", "-p", "a"],
        &["accept", "a"],
        &["accept", "--conflict=markers", "a", "--", "dir/b.c"],
    ]), @r#"
    $ conflicts
    exit: 0
    $ accept --dry-run -p a
    1
    2
    3
    4
    <<<<<<< working tree
    user
    =======
    agent
    >>>>>>> a r2
    --- stderr
    error: cannot accept 'dir/b.c', which is 'sp ace.c' now, of agent 'a' [conflict]
    error: 1 of 1 change would not be accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ accept a
    conflict a 2 - into	dir/b.c	sp ace.c
    --- stderr
    error: cannot accept 'dir/b.c', which is 'sp ace.c' now, of agent 'a' [conflict]
    error: 1 of 1 change was not accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ accept --conflict=markers a -- dir/b.c
    marked a 2 3 into	dir/b.c	sp ace.c
    --- stderr
    warning: conflicts are marked in 'sp ace.c'
    exit: 0
    "#);
}
