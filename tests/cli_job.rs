//! The job through `git vws`: a directory for a tool, a command in it, and the decisions; every record
//! and refusal of those commands.
#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

mod common;

use bstr::ByteSlice;
use common::Sandbox;
use insta::assert_snapshot;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    sandbox.write("dir/b.txt", "two\n");
    sandbox.commit("first");
    sandbox
}

/// Runs several commands on one sandbox; the outcomes in a row.
fn session(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    let all: String = commands
        .iter()
        .map(|args| format!("$ {}\n{}\n", args.join(" "), sandbox.vws(args)))
        .collect();
    // The one thing that differs from run to run.
    all.lines()
        .map(|line| match line.strip_prefix("time ") {
            Some(time) if time.parse::<u64>().is_ok_and(|time| time > 1_700_000_000) => {
                "time <now>\n".to_owned()
            }
            _ => format!("{line}\n"),
        })
        .collect()
}

#[test]
fn a_directory_and_back() {
    let sandbox = started();
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    assert_snapshot!(session(&sandbox, &[
        &["capture", "a"],
        &["materialize", "nobody"],
        &["materialize", "a", "--backend=tarball"],
        &["materialize", "a", "--backend=checkout"],
        &["materialize", "a", "--json"],
    ]), @r#"
    $ capture a
    --- stderr
    fatal: workspace 'a' has no directory open
    hint: 'git vws materialize a' makes one
    exit: 128
    $ materialize nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ materialize a --backend=tarball
    --- stderr
    fatal: 'tarball' is no value for '--backend'; expected one of auto, checkout, reflink, overlay, worktree
    usage: git vws materialize [<options>] <agent> [-- <path>...]
    exit: 129
    $ materialize a --backend=checkout
    agent a
    directory $SANDBOX/repo/.relo/worktrees/a
    git-dir $SANDBOX/repo/.git/worktrees/relo-a
    revision 1
    commit <oid:1>
    backend checkout
    reason asked for
    fresh
    files 2

    exit: 0
    $ materialize a --json
    {"v":1,"agent":"a","directory":"$SANDBOX/repo/.relo/worktrees/a","gitDir":"$SANDBOX/repo/.git/worktrees/relo-a","revision":1,"commit":"<oid:1>","backend":"checkout","reason":"asked for","only":[],"fresh":false,"files":2,"replaced":null}
    exit: 0
    "#);
    sandbox.write(".relo/worktrees/a/new.txt", "new\n");
    sandbox.write(".relo/worktrees/a/a.txt", "edited\n");
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "read", "a", "a.txt"],
        &["overlay", "diff", "--name-status", "a"],
        &["overlay", "write", "a", "f"],
        &["overlay", "show", "a"],
        &["capture", "a"],
        &["settle", "a", "--json"],
        &["settle", "a"],
        &["overlay", "read", "a", "new.txt"],
    ]), @r#"
    $ overlay read a a.txt
    edited
    exit: 0
    $ overlay diff --name-status a
    M	a.txt
    A	new.txt
    exit: 0
    $ overlay write a f
    --- stderr
    error: workspace 'a' has a directory open, which is the authority [materialized]
    hint: 'git vws settle <agent>' saves what it holds and removes it
    exit: 1
    $ overlay show a
    agent a
    revision 2
    commit <oid:1>
    tree <oid:2>
    base <oid:3>
    mode virtual
    last capture
    edited
    exec <oid:4>
    directory $SANDBOX/repo/.relo/worktrees/a

    exit: 0
    $ capture a
    agent a
    revision 2
    commit <oid:1>
    tree <oid:2>
    unchanged

    exit: 0
    $ settle a --json
    {"v":1,"agent":"a","revision":2,"commit":"<oid:1>","tree":"<oid:2>","unchanged":true,"leftOut":[],"made":[],"kept":null,"stays":false,"vanished":null,"leftBehind":[]}
    exit: 0
    $ settle a
    --- stderr
    fatal: workspace 'a' has no directory open
    hint: 'git vws materialize a' makes one
    exit: 128
    $ overlay read a new.txt
    new
    exit: 0
    "#);
    assert!(!sandbox.repo().join(".relo/worktrees/a").exists());
}

#[test]
fn exec_exits_as_the_command_did() {
    let sandbox = started();
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    let sh = |script| sandbox.vws(&["exec", "a", "--", "sh", "-c", script]);
    assert_snapshot!(sh("cat a.txt; echo more >more; echo said >&2; exit 3"), @"
    one
    two
    three
    --- stderr
    said
    exit: 3
    ");
    assert_snapshot!(sandbox.vws(&["overlay", "read", "a", "more"]), @"
    more
    exit: 0
    ");
    assert_snapshot!(sh("kill -9 $$"), @"
    --- stderr
    a: the command was ended by signal 9
    exit: 137
    ");
    assert_snapshot!(sandbox.vws(&["exec", "a", "--", "no-such-program"]), @"
    --- stderr
    fatal: cannot run 'no-such-program': No such file or directory (os error 2)
    exit: 127
    ");
    assert_snapshot!(sandbox.vws(&["exec", "a", "--", "./a.txt"]), @"
    --- stderr
    fatal: cannot run './a.txt': Permission denied (os error 13)
    exit: 126
    ");
    assert_snapshot!(sandbox.vws(&["exec", "nobody", "--", "true"]), @"
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 125
    ");
    assert_snapshot!(sandbox.vws(&["exec", "a"]), @"
    --- stderr
    fatal: missing <command>...
    usage: git vws exec [<options>] <agent> -- <command>...
    exit: 129
    ");
    assert_snapshot!(sandbox.vws(&["exec", "a", "true"]), @"
    --- stderr
    fatal: unexpected argument 'true'
    usage: git vws exec [<options>] <agent> -- <command>...
    exit: 129
    ");
    let input = sandbox.vws_with_input(&["exec", "a", "--", "cat"], b"through\n");
    assert_snapshot!(input, @"
    through
    exit: 0
    ");
}

#[test]
fn run_accepts_at_once_what_a_command_that_went_well_has_made() {
    let sandbox = started();
    let run = |agent: &str, script: &str| {
        sandbox.vws(&["run", "--accept", agent, "--", "sh", "-c", script])
    };
    assert_snapshot!(run("a", "echo zero >new; sed -i s/one/ONE/ a.txt"), @"
    clean a 2 1	a.txt
    clean a 2 1	new
    --- stderr
    a: cut from the working tree, which is clean
    a: nothing waits any more, the workspace is released
    exit: 0
    ");
    assert_snapshot!(sandbox.git_text(&["status", "--porcelain"]), @"
     M a.txt
    ?? new
    ");
    assert_snapshot!(run("b", "echo b >b; exit 4"), @"
    proposed A 1 0 b 2	b
    --- stderr
    b: cut from the working tree, 1 edited and 1 untracked paths in it
    b: proposed 1 change; 'git vws changes b' shows it, 'git vws accept b' merges it
    exit: 4
    ");
    // The user goes on while the command runs: one change meets his, the other is merged.
    let top = sandbox.repo().display().to_string();
    let at_once = ["run", "--accept", "--at=own", "-q", "c", "--", "sh", "-c"];
    let script = format!("sed -i s/two/TWO/ a.txt; echo c >c; echo mine >{top}/a.txt");
    let args: Vec<&str> = at_once.iter().copied().chain([script.as_str()]).collect();
    sandbox.git(&["config", "relo.exec.fence", "off"]);
    assert_snapshot!(sandbox.vws(&args), @"
    conflict c 2 -	a.txt
    clean c 2 2	c
    --- stderr
    error: cannot accept 'a.txt' of agent 'c' [conflict]
    error: 1 of 2 changes was not accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    ");
    assert_eq!(sandbox.read("a.txt"), b"mine\n");
    assert_snapshot!(run("d", "true"), @"
    --- stderr
    d: cut from the working tree, 1 edited and 2 untracked paths in it
    d: nothing to propose
    exit: 0
    ");
    // What was merged at once is an entry like any other.
    let _ = sandbox.vws(&["undo"]).success();
    assert!(!sandbox.repo().join("c").exists());
}

#[test]
fn run_is_the_whole_job() {
    let sandbox = started();
    sandbox.write("a.txt", "one\ntwo\nthree, edited\n");
    sandbox.write("mine", "mine\n");
    let script = "echo working; echo zero >new; sed -i s/one/ONE/ a.txt; rm dir/b.txt; exit 4";
    assert_snapshot!(sandbox.vws(&["run", "a", "--", "sh", "-c", script]), @"
    working
    proposed M 1 1 a 2	a.txt
    proposed D 0 1 a 2	dir/b.txt
    proposed A 1 0 a 2	new
    --- stderr
    a: cut from the working tree, 1 edited and 1 untracked paths in it
    a: proposed 3 changes; 'git vws changes a' shows them, 'git vws accept a' merges them
    exit: 4
    ");
    assert_snapshot!(sandbox.vws(&["run", "-q", "--json", "b", "--", "sh", "-c", "echo b >b"]), @r#"
    {"v":1,"agent":"b","revision":2,"path":"b","state":"proposed","reason":null,"journal":null,"status":"A","added":1,"deleted":0,"oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid:1>","rename":null,"needs":[],"needsCount":0}
    exit: 0
    "#);
    assert_snapshot!(sandbox.vws(&["run", "c", "--", "true"]), @"
    --- stderr
    c: cut from the working tree, 1 edited and 1 untracked paths in it
    c: nothing to propose
    exit: 0
    ");
    assert_snapshot!(sandbox.vws(&["run", "c", "--", "no-such-program"]), @"
    --- stderr
    fatal: cannot run 'no-such-program': No such file or directory (os error 2)
    exit: 127
    ");
    assert_snapshot!(session(&sandbox, &[
        &["changes"],
        &["changes", "a@1"],
        &["changes", "c"],
        &["propose", "c"],
        &["propose", "a", "-m", "the work"],
        &["accept", "--dry-run", "a"],
        &["accept", "a", "dir/", "new"],
        &["changes", "a"],
        &["accept", "--json", "--all"],
        &["accept", "a"],
        &["accept", "nobody"],
        &["accept"],
        &["journal"],
        &["undo", "--json"],
        &["undo"],
        &["undo"],
        &["undo", "1"],
        &["undo", "99"],
        &["changes", "a"],
    ]), @r#"
    $ changes
    proposed M 1 1 a 2	a.txt
    proposed D 0 1 a 2	dir/b.txt
    proposed A 1 0 a 2	new
    proposed A 1 0 b 2	b
    --- stderr
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ changes a@1
    --- stderr
    fatal: agent 'a' has no proposal of revision 1
    hint: 'git vws propose a' makes one, 'git vws changes' shows all
    exit: 128
    $ changes c
    --- stderr
    fatal: agent 'c' has no proposal
    hint: 'git vws propose c' makes one, 'git vws changes' shows all
    exit: 128
    $ propose c
    --- stderr
    warning: workspace 'c' has nothing to propose
    exit: 0
    $ propose a -m the work
    proposed M 1 1 a 2	a.txt
    proposed D 0 1 a 2	dir/b.txt
    proposed A 1 0 a 2	new
    exit: 0
    $ accept --dry-run a
    clean a 2 -	a.txt
    clean a 2 -	dir/b.txt
    clean a 2 -	new
    exit: 0
    $ accept a dir/ new
    clean a 2 1	dir/b.txt
    clean a 2 1	new
    exit: 0
    $ changes a
    proposed M 1 1 a 2	a.txt
    accepted D 0 1 a 2	dir/b.txt
    accepted A 1 0 a 2	new
    --- stderr
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ accept --json --all
    {"v":1,"agent":"a","revision":2,"path":"a.txt","into":null,"verdict":"clean","accepted":true,"journal":2,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:1>"}
    {"v":1,"agent":"b","revision":2,"path":"b","into":null,"verdict":"clean","accepted":true,"journal":2,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:2>"}
    --- stderr
    a: nothing waits any more, the workspace is released
    b: nothing waits any more, the workspace is released
    exit: 0
    $ accept a
    --- stderr
    warning: nothing waits for a decision
    exit: 0
    $ accept nobody
    --- stderr
    fatal: agent 'nobody' has no proposal
    hint: 'git vws propose nobody' makes one, 'git vws changes' shows all
    exit: 128
    $ accept
    --- stderr
    fatal: missing <agent>
    usage: git vws accept [<options>] [agent] [path]...
    exit: 129
    $ journal
    journal 2
    kind accept
    state done
    time <now>
    step written a a.txt
    step written b b

    journal 1
    kind accept
    state done
    time <now>
    step written a dir/b.txt
    step written a new

    exit: 0
    $ undo --json
    {"v":1,"path":"a.txt","agent":"a","journal":3,"of":2,"redo":false}
    {"v":1,"path":"b","agent":"b","journal":3,"of":2,"redo":false}
    exit: 0
    $ undo
    undone a 4 1	dir/b.txt
    undone a 4 1	new
    exit: 0
    $ undo
    --- stderr
    error: journal entry 2 was undone already by entry 3 [already_decided]
    exit: 1
    $ undo 1
    --- stderr
    error: journal entry 1 was undone already by entry 4 [already_decided]
    exit: 1
    $ undo 99
    --- stderr
    fatal: no journal entry 99
    hint: 'git vws journal' shows the entries
    exit: 128
    $ changes a
    proposed M 1 1 a 2	a.txt
    proposed D 0 1 a 2	dir/b.txt
    proposed A 1 0 a 2	new
    --- stderr
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    "#);
    assert_eq!(
        sandbox.read("a.txt").as_bstr(),
        "one\ntwo\nthree, edited\n".as_bytes().as_bstr()
    );
    assert!(!sandbox.repo().join("new").exists());
}

#[test]
fn a_run_starts_from_what_it_is_told() {
    let sandbox = started();
    sandbox.write("a.txt", "edited and not committed\n");
    let cat = [
        "sh",
        "-c",
        "tail -n 1 a.txt; echo by $GIT_VWS_AGENT >>a.txt",
    ];
    let run = |args: &[&str]| sandbox.vws(&[&["run"], args, &["--"], &cat].concat());
    assert_snapshot!(run(&["--base=HEAD", "a"]), @"
    three
    proposed M 1 0 a 2	a.txt
    --- stderr
    a: cut from commit 'HEAD'
    a: proposed 1 change; 'git vws changes a' shows it, 'git vws accept a' merges it
    exit: 0
    ");
    assert_snapshot!(run(&["--from=a", "-q", "b"]), @"
    by a
    proposed M 1 0 b 2	a.txt
    exit: 0
    ");
    assert_snapshot!(run(&["--base=HEAD", "a"]), @"
    --- stderr
    fatal: workspace 'a' exists already
    hint: 'git vws overlay show a' shows it, 'git vws overlay dispose a' lets it go
    exit: 125
    ");
    assert_snapshot!(run(&["--from=nobody", "c"]), @"
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 125
    ");
    assert_snapshot!(run(&["--base=HEAD", "--from=a", "c"]), @"
    --- stderr
    fatal: '--base' cannot be used together with '--from'
    usage: git vws run [<options>] <agent> -- <command>...
    exit: 129
    ");
    let _ = sandbox
        .vws(&["overlay", "dispose", "--force", "b"])
        .success();
    assert_snapshot!(run(&["--from=trash/b", "b"]), @"
    by b
    proposed M 2 0 b 5	a.txt
    --- stderr
    b: brought back 'b' from the trash
    b: proposed 1 change; 'git vws changes b' shows it, 'git vws accept b' merges it
    exit: 0
    ");
    let shown = sandbox.vws(&["overlay", "read", "b", "a.txt"]);
    assert_snapshot!(shown, @"
    one
    two
    three
    by a
    by b
    by b
    exit: 0
    ");
}

#[test]
fn conflicts_and_rejections() {
    let sandbox = started();
    let script = "sed -i s/two/TWO/ a.txt; echo new >new; echo other >'odd\tname'";
    let _ = sandbox
        .vws(&["run", "-q", "a", "--", "sh", "-c", script])
        .success();
    sandbox.write("a.txt", "one\n2\nthree\n");
    assert_snapshot!(session(&sandbox, &[
        &["accept", "--atomic", "a"],
        &["accept", "--dry-run", "--json", "a"],
        &["accept", "a", "nope"],
    ]), @r#"
    $ accept --atomic a
    conflict a 2 -	a.txt
    conflict a 2 -	new
    conflict a 2 -	"odd\tname"
    --- stderr
    error: cannot accept 'a.txt' of agent 'a' [conflict]
    error: cannot accept 'new' of agent 'a', because of 'a.txt' [conflict]
    error: cannot accept 'odd\tname' of agent 'a', because of 'a.txt' [conflict]
    error: 3 of 3 changes were not accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ accept --dry-run --json a
    {"v":1,"agent":"a","revision":2,"path":"a.txt","into":null,"verdict":"conflict","accepted":false,"journal":null,"because":null,"needs":null,"error":null,"mode":null,"oid":null}
    {"v":1,"agent":"a","revision":2,"path":"new","into":null,"verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:1>"}
    {"v":1,"agent":"a","revision":2,"path":"odd\tname","into":null,"verdict":"clean","accepted":true,"journal":null,"because":null,"needs":null,"error":null,"mode":"100644","oid":"<oid:2>"}
    --- stderr
    error: cannot accept 'a.txt' of agent 'a' [conflict]
    error: 1 of 3 changes would not be accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ accept a nope
    --- stderr
    fatal: agent 'a' proposes no change of 'nope'
    hint: 'git vws changes a' shows what is proposed
    exit: 128
    "#);
    let unsaved = sandbox.vws_with_input(
        &["accept", "--dry-run", "--dirty-from=-", "a"],
        b"\"odd\\tname\"\nnew\n",
    );
    assert_snapshot!(unsaved, @r#"
    conflict a 2 -	a.txt
    unsaved_buffer a 2 -	new
    unsaved_buffer a 2 -	"odd\tname"
    --- stderr
    error: cannot accept 'a.txt' of agent 'a' [conflict]
    error: cannot accept 'new' of agent 'a' [unsaved_buffer]
    error: cannot accept 'odd\tname' of agent 'a' [unsaved_buffer]
    error: 3 of 3 changes would not be accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    "#);
    let unsaved = sandbox.vws_with_input(
        &[
            "accept",
            "--dry-run",
            "-z",
            "--dirty-from=-",
            "a",
            "odd\tname",
        ],
        b"odd\tname\0",
    );
    assert_snapshot!(unsaved, @r"
    unsaved_buffer a 2 -	odd	name\0<no line end>
    --- stderr
    error: cannot accept 'odd\tname' of agent 'a' [unsaved_buffer]
    error: 1 of 1 change would not be accepted
    exit: 1
    ");
    assert_snapshot!(session(&sandbox, &[
        &["accept", "a"],
        &["reject", "a", "new"],
        &["reject", "--json", "a", "a.txt"],
        &["reject", "a"],
        &["changes", "a"],
    ]), @r#"
    $ accept a
    conflict a 2 -	a.txt
    clean a 2 1	new
    clean a 2 1	"odd\tname"
    --- stderr
    error: cannot accept 'a.txt' of agent 'a' [conflict]
    error: 1 of 3 changes was not accepted
    hint: 'git vws accept --conflict=markers <agent> -- <path>' marks the conflicts in the file
    exit: 1
    $ reject a new
    already_decided a 2	new
    --- stderr
    error: cannot reject 'new' of agent 'a' [already_decided]
    error: 1 of 1 change was not rejected
    exit: 1
    $ reject --json a a.txt
    {"v":1,"agent":"a","revision":2,"path":"a.txt","refused":null,"editedSince":false}
    --- stderr
    a: nothing waits any more, the workspace is released
    exit: 0
    $ reject a
    --- stderr
    warning: nothing waits for a decision
    exit: 0
    $ changes a
    rejected M 1 1 a 2	a.txt
    accepted A 1 0 a 2	new
    accepted A 1 0 a 2	"odd\tname"
    exit: 0
    "#);
}

#[test]
fn what_cannot_be_captured_is_told_and_kept() {
    let sandbox = started();
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    let _ = sandbox.vws(&["materialize", "a"]).success();
    sandbox.git(&["init", "-q", ".relo/worktrees/a/nested"]);
    sandbox.write(".relo/worktrees/a/nested/f", "f");
    assert_snapshot!(session(&sandbox, &[
        &["capture", "--json", "a"],
        &["settle", "-q", "a"],
        &["settle", "--force", "a"],
    ]), @r#"
    $ capture --json a
    {"v":1,"agent":"a","revision":1,"commit":"<oid:1>","tree":"<oid:2>","unchanged":true,"leftOut":[{"kind":"nested_repository","path":"nested"}],"made":[]}
    --- stderr
    warning: left out 'nested' [nested_repository]
    exit: 0
    $ settle -q a
    agent a
    revision 1
    commit <oid:1>
    tree <oid:2>
    unchanged
    left-out nested_repository nested
    kept $SANDBOX/repo/.relo/worktrees/a

    --- stderr
    error: directory '$SANDBOX/repo/.relo/worktrees/a' stays: not all of it could be captured
    hint: 'git vws settle --force' removes it with what was left out
    exit: 1
    $ settle --force a
    agent a
    revision 1
    commit <oid:1>
    tree <oid:2>
    unchanged
    left-out nested_repository nested

    --- stderr
    warning: left out 'nested' [nested_repository]
    exit: 0
    "#);
    let commit = "echo c >c && git add c && git commit -q -m work";
    assert_snapshot!(sandbox.vws(&["run", "a", "--", "sh", "-c", commit]), @"
    proposed A 1 0 a 2	c
    --- stderr
    a: proposed 1 change; 'git vws changes a' shows it, 'git vws accept a' merges it
    exit: 0
    ");
}

#[test]
fn progress_is_for_terminals_and_for_what_takes_long() {
    let sandbox = started();
    sandbox.git(&["config", "filter.slow.smudge", "sleep ${SLOW:-0}; cat"]);
    sandbox.write(".gitattributes", "*.slow filter=slow\n");
    sandbox.write("1.slow", "1\n");
    sandbox.write("2.slow", "2\n");
    sandbox.commit("slow ones");
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    let materialize = ["materialize", "a", "--", "1.slow", "2.slow"];
    let settle = || {
        let _ = sandbox.vws(&["settle", "a"]).success();
    };
    // No terminal.
    let out = sandbox.vws(&materialize).success();
    assert_eq!(out.stderr(), b"");
    settle();
    let shown = "Laying out files: 100% (2/2), done.\n";
    let out = sandbox.vws(&[&["materialize", "--progress"], &materialize[1..]].concat());
    let text = String::from_utf8_lossy(out.success().stderr()).into_owned();
    assert!(text.ends_with(shown), "{text}");
    let out = sandbox.vws(&["settle", "--progress", "a"]).success();
    let text = String::from_utf8_lossy(out.stderr()).into_owned();
    assert!(text.ends_with("Removing files: 3, done.\n"), "{text}");
    let on_terminal = |line: &str| {
        let mut command = sandbox.command("script");
        command.args(["-qec", line, "/dev/null"]);
        let output = command.output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    // A second and more.
    let line = "SLOW=0.55 git vws materialize a -- 1.slow 2.slow";
    let Some(text) = on_terminal(line) else {
        println!("skipped: no 'script' for a terminal");
        return;
    };
    assert!(text.contains("Laying out files:  50% (1/2)\r"), "{text}");
    assert!(
        text.contains("Laying out files: 100% (2/2), done."),
        "{text}"
    );
    // What is quick says nothing.
    let text = on_terminal("git vws settle a").unwrap();
    assert!(!text.contains("Removing"), "{text}");
    let text = on_terminal(&line.replace("a --", "--no-progress a --")).unwrap();
    assert!(!text.contains("Laying out"), "{text}");
    settle();
}
