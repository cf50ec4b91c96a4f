//! `git vws recover`, `sweep`, `mirror`, `events`, and what brings a workspace back from the trash: every
//! record and refusal of those commands.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use common::Sandbox;
use insta::assert_snapshot;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", "one\n");
    sandbox.commit("first");
    sandbox
}

/// Runs several commands on one sandbox; the outcomes in a row, without what differs from run to run.
fn session(sandbox: &Sandbox, commands: &[&[&str]]) -> String {
    let all: String = commands
        .iter()
        .map(|args| format!("$ {}\n{}\n", args.join(" "), sandbox.vws(args)))
        .collect();
    let timed = |line: &str| {
        let (key, value) = line.split_once(' ').unwrap_or_default();
        let varies = matches!(key, "time" | "id" | "age") && value.parse::<u64>().is_ok();
        if varies {
            format!("{key} <n>\n")
        } else {
            format!("{line}\n")
        }
    };
    all.lines().map(timed).collect()
}

#[test]
fn an_interrupted_state_is_put_in_order() {
    let sandbox = started();
    assert_snapshot!(session(&sandbox, &[&["recover"], &["recover", "--json", "--deep"]]), @r#"
    $ recover
    workspaces 0
    damaged-refs 0
    packs-released 0
    packs-removed 0
    mirror-corrected 0

    exit: 0
    $ recover --json --deep
    {"v":1,"workspaces":0,"damagedRefs":0,"packsReleased":0,"packsRemoved":0,"mirrorCorrected":0}
    exit: 0
    "#);
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    let _ = sandbox.vws(&["overlay", "create", "b"]).success();
    let _ = sandbox.vws(&["materialize", "a"]).success();
    let _ = sandbox.vws(&["materialize", "b"]).success();
    sandbox.write(".relo/worktrees/a/new", "untracked\n");
    std::fs::remove_dir_all(sandbox.repo().join(".relo/worktrees/b")).unwrap();
    sandbox.write(".git/refs/relo/vws/x/overlay", "");
    sandbox.write(".git/refs/relo/vws/a/base.lock", "");
    sandbox.git(&["update-ref", "refs/relo/vws/half/base", "HEAD"]);
    assert_snapshot!(session(&sandbox, &[
        &["recover"],
        &["recover", "--force"],
        &["recover", "--clear", "b"],
        &["recover", "--clear", "nobody"],
        &["recover", "--clear", "x"],
        &["overlay", "read", "a", "new"],
        &["recover"],
    ]), @r#"
    $ recover
    damaged refs/relo/vws/x/overlay
    why an empty file
    agent x

    leftover refs/relo/vws/half/base
    removed

    lock $SANDBOX/repo/.git/refs/relo/vws/a/base.lock
    age <n>

    directory a
    fate imported
    path $SANDBOX/repo/.relo/worktrees/a
    revision 2

    directory b
    fate vanished
    path $SANDBOX/repo/.relo/worktrees/b

    workspaces 2
    damaged-refs 1
    packs-released 0
    packs-removed 0
    mirror-corrected 0

    --- stderr
    hint: 'git vws recover --clear x' takes it out of git's way
    hint: a lock may be somebody's; with --force it goes: when no git is running
    error: not all is in order; the records say what is not
    exit: 1
    $ recover --force
    damaged refs/relo/vws/x/overlay
    why an empty file
    agent x

    lock $SANDBOX/repo/.git/refs/relo/vws/a/base.lock
    age <n>
    removed

    directory a
    fate imported
    path $SANDBOX/repo/.relo/worktrees/a
    revision 2
    unchanged

    workspaces 2
    damaged-refs 1
    packs-released 0
    packs-removed 0
    mirror-corrected 0

    --- stderr
    hint: 'git vws recover --clear x' takes it out of git's way
    error: not all is in order; the records say what is not
    exit: 1
    $ recover --clear b
    --- stderr
    fatal: workspace 'b' is not damaged; 'dispose' lets it go
    exit: 128
    $ recover --clear nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ recover --clear x
    cleared x
    aside $SANDBOX/repo/.git/relo/damaged/refs%2frelo%2fvws%2fx%2foverlay

    exit: 0
    $ overlay read a new
    untracked
    exit: 0
    $ recover
    directory a
    fate imported
    path $SANDBOX/repo/.relo/worktrees/a
    revision 2
    unchanged

    workspaces 2
    damaged-refs 0
    packs-released 0
    packs-removed 0
    mirror-corrected 0

    exit: 0
    "#);
}

#[test]
fn a_stopped_accept_is_ended_and_told() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["run", "a", "--", "sh", "-c", "echo two >f; echo n >new"])
        .success();
    let mut all = String::new();
    for (point, left) in [("journal-begun", "one\n"), ("steps-done", "two\n")] {
        let mut command = sandbox.command("git");
        command
            .args(["vws", "accept", "a"])
            .env("GIT_VWS_FAULT", point);
        let _ = sandbox.outcome(command, b"");
        all += &format!("killed at {point}\n");
        all += &session(&sandbox, &[&["changes"], &["journal"], &["recover"]]);
        assert_eq!(sandbox.read("f"), left.as_bytes());
    }
    assert_snapshot!(all, @r#"
    killed at journal-begun
    $ changes
    proposed M 1 1 a 2	f
    proposed A 1 0 a 2	new
    --- stderr
    warning: journal entry 1 was interrupted
    hint: 'git vws recover' ends it, or takes it back
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ journal
    journal 1
    kind accept
    state open
    time <n>
    step pending a f
    step pending a new

    --- stderr
    warning: journal entry 1 was interrupted
    hint: 'git vws recover' ends it, or takes it back
    exit: 0
    $ recover
    journal 1
    ended rolled-back

    workspaces 1
    damaged-refs 0
    packs-released 1
    packs-removed 0
    mirror-corrected 0

    exit: 0
    killed at steps-done
    $ changes
    proposed M 1 1 a 2	f
    proposed A 1 0 a 2	new
    --- stderr
    warning: journal entry 2 was interrupted
    hint: 'git vws recover' ends it, or takes it back
    hint: 'git vws accept <agent>' merges them, 'git vws reject <agent>' turns them down
    exit: 0
    $ journal
    journal 2
    kind accept
    state open
    time <n>
    step pending a f
    step pending a new

    journal 1
    kind accept
    state rolled-back
    time <n>
    step rolled-back a f
    step rolled-back a new

    --- stderr
    warning: journal entry 2 was interrupted
    hint: 'git vws recover' ends it, or takes it back
    exit: 0
    $ recover
    journal 2
    ended finished
    written f
    written new

    released a

    workspaces 0
    damaged-refs 0
    packs-released 0
    packs-removed 0
    mirror-corrected 0

    exit: 0
    "#);
}

#[test]
fn what_outlived_its_time_is_shown_and_then_removed() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["run", "a", "--", "sh", "-c", "echo two >f"])
        .success();
    let _ = sandbox.vws(&["accept", "a", "-q"]).success();
    let _ = sandbox.vws(&["overlay", "create", "b"]).success();
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "b", "f"], b"mine\n")
        .success();
    let _ = sandbox.vws(&["materialize", "b"]).success();
    sandbox.write(".relo/worktrees/b/new", "untracked\n");
    assert_snapshot!(session(&sandbox, &[
        &["sweep", "--dry-run"],
        &["sweep", "--json"],
        &["overlay", "dispose", "b"],
        &["overlay", "dispose", "--force", "b"],
        &["overlay", "create", "--from=trash/b/3", "b"],
        &["overlay", "create", "--from=refs/relo/trash/b/9", "c"],
        &["overlay", "create", "--from=trash/b/0", "c"],
        &["overlay", "read", "b", "new"],
    ]), @r#"
    $ sweep --dry-run
    exit: 0
    $ sweep --json
    {"v":1,"directory":"b","fate":"imported","path":"$SANDBOX/repo/.relo/worktrees/b","revision":3,"unchanged":false,"leftOut":[],"why":null}
    exit: 0
    $ overlay dispose b
    --- stderr
    error: workspace 'b' has edits that nobody has decided on [conflict]
    hint: with --force it goes, and the edits stay under refs/relo/trash/
    exit: 1
    $ overlay dispose --force b
    agent b
    revision 3
    commit <oid:1>
    trash refs/relo/trash/b/3

    exit: 0
    $ overlay create --from=trash/b/3 b
    agent b
    revision 4
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual

    exit: 0
    $ overlay create --from=refs/relo/trash/b/9 c
    --- stderr
    fatal: workspace 'b' has no revision 9
    hint: 'git vws log b' shows its revisions
    exit: 128
    $ overlay create --from=trash/b/0 c
    --- stderr
    fatal: '0' is not a revision number
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay read b new
    untracked
    exit: 0
    "#);
}

#[test]
fn the_mirror_is_printed_verified_and_written_anew() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--session=s 1"])
        .success();
    let _ = sandbox.vws(&["materialize", "a"]).success();
    let first = session(
        &sandbox,
        &[&["mirror"], &["mirror", "--verify"], &["mirror", "--json"]],
    );
    assert_snapshot!(first, @r#"
    $ mirror
    agent a
    root $SANDBOX/repo
    session s 1
    base <oid:1>
    revision 1
    tree <oid:2>
    state open
    directory $SANDBOX/repo/.relo/worktrees/a

    exit: 0
    $ mirror --verify
    exit: 0
    $ mirror --json
    {"v":1,"agent":"a","root":"$SANDBOX/repo","session":"s 1","base":"<oid:1>","revision":1,"tree":"<oid:2>","state":"open","directory":"$SANDBOX/repo/.relo/worktrees/a","proposal":null}
    exit: 0
    "#);
    sandbox.git(&["update-ref", "-d", "refs/relo/vws/a/exec"]);
    std::fs::remove_dir_all(sandbox.repo().join(".git/worktrees")).unwrap();
    assert_snapshot!(session(&sandbox, &[
        &["mirror", "--verify"],
        &["mirror", "--verify", "--rebuild"],
        &["mirror", "--rebuild"],
        &["mirror", "--verify"],
    ]), @r#"
    $ mirror --verify
    agent a
    shown 1
    actual 1

    --- stderr
    error: the mirror differs from the refs
    hint: 'git vws mirror --rebuild' writes it anew
    exit: 1
    $ mirror --verify --rebuild
    --- stderr
    fatal: '--verify' cannot be used together with '--rebuild'
    usage: git vws mirror [<options>]
    exit: 129
    $ mirror --rebuild
    agent a
    root $SANDBOX/repo
    session s 1
    base <oid:1>
    revision 1
    tree <oid:2>
    state clean

    exit: 0
    $ mirror --verify
    exit: 0
    "#);
}

#[test]
fn events_are_read_from_a_place_and_followed() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--session=s"])
        .success();
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "n\tw"], b"x")
        .success();
    assert_snapshot!(session(&sandbox, &[&["events"]]), @r#"
    $ events
    id <n>
    time <n>
    event workspace.create
    agent a
    session s
    revision 1
    path-count 0

    id <n>
    time <n>
    event workspace.write
    agent a
    session s
    revision 2
    path "n\tw"
    path-count 1

    exit: 0
    "#);
    let raw = sandbox.vws(&["events", "-z"]).success();
    let has = |text: &[u8]| raw.stdout().windows(text.len()).any(|part| part == text);
    assert!(has(b"\0path n\tw\0path-count 1\0\0"), "{raw}");
    let all = sandbox.vws(&["events", "--json"]).success();
    let lines: Vec<serde_json::Value> = all
        .stdout()
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2);
    let since = format!("--since={}", lines[0]["id"]);
    let rest = sandbox.vws(&["events", "--json", &since]).success();
    assert_eq!(
        rest.stdout(),
        &all.stdout()[all.stdout().len() - rest.stdout().len()..]
    );
    assert_eq!(rest.stdout().split(|b| *b == b'\n').count(), 2);

    // The binary itself: git would leave it behind when it is killed.
    let mut child = sandbox
        .command(env!("CARGO_BIN_EXE_git-vws"))
        .args(["events", "--follow", "--json", &since])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut reader = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        std::io::BufRead::read_line(&mut reader, &mut line).unwrap();
        serde_json::from_str::<serde_json::Value>(&line).unwrap()["event"].clone()
    };
    assert_eq!(next(), "workspace.write");
    let _ = sandbox.vws(&["overlay", "delete", "a", "f"]).success();
    assert_eq!(next(), "workspace.delete");
    child.kill().unwrap();
    child.wait().unwrap();
}
