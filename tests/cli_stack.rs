//! `git vws stack`, `recut`, `rebase-onto`, `reference`, `import`, `context --check`, `log`, `overlay
//! apply` and `overlay commit`: every record and refusal, and a workspace handed to another clone.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "stack/deep.rs"]
mod deep;
#[path = "stack/handed.rs"]
mod handed;
#[path = "stack/many.rs"]
mod many;
#[path = "stack/open.rs"]
mod open;

use std::fs;

use bstr::ByteSlice;
use common::Sandbox;
use insta::assert_snapshot;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
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
            _ => match line.split_once("\"time\":") {
                Some((before, after)) => {
                    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
                    format!("{before}\"time\":<now>{rest}\n")
                }
                None => format!("{line}\n"),
            },
        })
        .collect()
}

fn create(sandbox: &Sandbox, agent: &str) {
    let _ = sandbox.vws(&["overlay", "create", agent]).success();
}

fn write(sandbox: &Sandbox, agent: &str, path: &str, text: &str) {
    let args = ["overlay", "write", agent, path];
    let _ = sandbox.vws_with_input(&args, text.as_bytes()).success();
}

#[test]
fn stacking() {
    let sandbox = started();
    for agent in ["a", "b"] {
        create(&sandbox, agent);
    }
    write(&sandbox, "a", "a.txt", "1\n2\na\n4\n5\n");
    write(&sandbox, "b", "a.txt", "1\n2\nb\n4\n5\n");
    assert_snapshot!(session(&sandbox, &[
        &["stack", "c", "--on=a,b", "--strict"],
        &["stack", "c", "--on=a,b"],
        &["stack", "c", "--on=a"],
        &["stack", "d", "--on=nobody"],
        &["stack", "d", "--on=c", "--base=worktree", "--read-only", "--json"],
        &["stack", "--status"],
        &["stack"],
        &["stack", "--graph", "--on=a"],
    ]), @r#"
    $ stack c --on=a,b --strict
    agent c
    parent a 2 <oid:1>
    left-out b
    conflict b conflict a.txt

    --- stderr
    error: cannot apply 'b': conflict on 'a.txt'; nothing was created [conflict]
    exit: 1
    $ stack c --on=a,b
    agent c
    revision 1
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    mode virtual
    parent a 2 <oid:4>
    left-out b
    conflict b conflict a.txt

    --- stderr
    warning: left out 'b': conflict on 'a.txt'
    exit: 0
    $ stack c --on=a
    --- stderr
    fatal: workspace 'c' exists already
    hint: 'git vws overlay show c' shows it, 'git vws overlay dispose c' lets it go
    exit: 128
    $ stack d --on=nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    $ stack d --on=c --base=worktree --read-only --json
    {"v":1,"agent":"d","revision":1,"commit":"<oid:1>","base":"<oid:2>","tree":"<oid:3>","mode":"virtual","readOnly":true,"directory":null,"parents":[{"agent":"c","revision":1,"commit":"<oid:4>"}],"leftOut":[],"conflicts":[]}
    exit: 0
    $ stack --status
    agent c
    parent a
    state current
    revision 2
    now 2
    commit <oid:1>

    agent d
    parent c
    state current
    revision 1
    now 1
    commit <oid:2>

    exit: 0
    $ stack
    --- stderr
    fatal: missing --on
    usage: git vws stack [<options>] [agent]
    exit: 129
    $ stack --graph --on=a
    --- stderr
    fatal: '--graph' cannot be used together with '--on'
    usage: git vws stack [<options>] [agent]
    exit: 129
    "#);
    write(&sandbox, "a", "new", "x\n");
    write(&sandbox, "c", "own", "x\n");
    let _ = sandbox.vws(&["propose", "c"]).success();
    let _ = sandbox.vws(&["stack", "e", "--on=a"]).success();
    assert_snapshot!(session(&sandbox, &[
        &["stack", "--status", "c"],
        &["stack", "--status", "--json"],
        &["stack", "--graph"],
        &["stack", "--graph", "--json", "c"],
    ]), @r#"
    $ stack --status c
    agent c
    parent a
    state behind
    revision 2
    now 3
    commit <oid:1>

    exit: 0
    $ stack --status --json
    {"v":1,"agent":"c","parent":"a","state":"behind","revision":2,"now":3,"commit":"<oid:1>"}
    {"v":1,"agent":"d","parent":"c","state":"behind","revision":1,"now":3,"commit":"<oid:2>"}
    {"v":1,"agent":"e","parent":"a","state":"current","revision":3,"now":3,"commit":"<oid:3>"}
    exit: 0
    $ stack --graph
    a r3  2 changes
    |-- c r3  1 change, 1 proposed, behind a
    |   `-- d r1  0 changes, behind c
    `-- e r1  0 changes
    b r2  1 change
    exit: 0
    $ stack --graph --json c
    {"v":1,"agent":"c","revision":3,"base":"<oid:1>","parents":[{"agent":"a","revision":2,"state":"behind"}],"changes":1,"proposed":1,"accepted":0,"rejected":0,"blocked":0,"conflicts":[],"open":false,"damaged":false}
    exit: 0
    "#);
}

#[test]
fn rebasing() {
    let sandbox = started();
    create(&sandbox, "a");
    write(&sandbox, "a", "a.txt", "1\n2\na\n4\n5\n");
    let _ = sandbox.vws(&["stack", "b", "--on=a"]).success();
    write(&sandbox, "b", "own", "b\n");
    sandbox.write("a.txt", "1\n2\nuser\n4\n5\n");
    sandbox.write("user", "u\n");
    assert_snapshot!(session(&sandbox, &[
        &["rebase-onto", "b", "worktree"],
        &["rebase-onto", "b", "worktree", "--without=x"],
        &["rebase-onto", "b", "worktree", "--without=a"],
        &["rebase-onto", "b", "worktree"],
        &["overlay", "diff", "--name-status", "b"],
        &["recut", "a", "nowhere"],
        &["recut", "a", "worktree"],
        &["recut", "a", "worktree", "--expect=1"],
        &["recut", "a", "worktree", "--keep-conflicts", "--json"],
        &["propose", "a"],
    ]), @r#"
    $ rebase-onto b worktree
    agent b
    revision 2
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    unchanged
    left-out a
    conflict a conflict a.txt

    --- stderr
    error: cannot apply 'a': conflict on 'a.txt'; nothing was changed [conflict]
    hint: '--without=<agent>' leaves its work out of the new base
    exit: 1
    $ rebase-onto b worktree --without=x
    --- stderr
    fatal: workspace 'b' is not stacked on 'x'
    hint: 'git vws stack --status b' shows what it was stacked on
    exit: 128
    $ rebase-onto b worktree --without=a
    agent b
    revision 3
    commit <oid:1>
    base <oid:2>
    tree <oid:3>

    exit: 0
    $ rebase-onto b worktree
    agent b
    revision 3
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    unchanged

    exit: 0
    $ overlay diff --name-status b
    A	own
    exit: 0
    $ recut a nowhere
    --- stderr
    fatal: not a valid revision: 'nowhere'
    hint: 'git rev-parse' shows what a name stands for
    exit: 128
    $ recut a worktree
    agent a
    revision 2
    commit <oid:1>
    base <oid:2>
    tree <oid:3>
    unchanged
    conflict a conflict a.txt

    --- stderr
    error: workspace 'a' contradicts the new base on 'a.txt'; nothing was changed [conflict]
    hint: with --keep-conflicts these paths stay as the agent has them
    exit: 1
    $ recut a worktree --expect=1
    --- stderr
    error: workspace 'a' is at revision 2, not 1 [stale]
    hint: read it again, then repeat the change on the current revision
    exit: 1
    $ recut a worktree --keep-conflicts --json
    {"v":1,"agent":"a","revision":3,"commit":"<oid:1>","base":"<oid:2>","tree":"<oid:3>","unchanged":false,"parents":[],"leftOut":[],"conflicts":[{"agent":"a","kind":"conflict","path":"a.txt"}]}
    exit: 0
    $ propose a
    --- stderr
    error: 'a.txt' of workspace 'a' is in conflict with its new base [conflict]
    exit: 1
    "#);
}

#[test]
fn references() {
    let sandbox = started();
    create(&sandbox, "s");
    write(&sandbox, "s", "a.txt", "by s\n");
    write(&sandbox, "s", "new", "by s\n");
    create(&sandbox, "r");
    assert_snapshot!(sandbox.vws(&["reference", "s", "--", "new", "a.txt"]), @r#"
    {"senderAgent":"s","branch":"refs/heads/relo/s","commit":"<oid:1>","revision":3,"baseCommit":"<oid:2>","paths":["a.txt","new"]}
    exit: 0
    "#);
    let reference = sandbox
        .vws(&["reference", "s", "--", "new", "a.txt"])
        .success();
    fs::write(sandbox.root().join("reference"), reference.stdout()).unwrap();
    assert_snapshot!(session(&sandbox, &[
        &["reference", "s", "dir/b.txt"],
        &["import", "r", "--reference=../reference", "--", "dir/b.txt"],
        &["import", "r", "--reference=../nowhere", "--", "new"],
        &["import", "r", "--reference=../reference", "--expect=7", "--", "new"],
        &["import", "r", "--reference=../reference", "--", "new", "a.txt"],
        &["overlay", "diff", "--name-status", "r"],
        &["log", "r"],
        &["log", "-n", "1", "--json", "s"],
        &["log", "nobody"],
    ]), @r#"
    $ reference s dir/b.txt
    --- stderr
    error: path 'dir/b.txt' does not exist in the changes of 's'
    exit: 1
    $ import r --reference=../reference -- dir/b.txt
    --- stderr
    error: path 'dir/b.txt' does not exist in the reference
    exit: 1
    $ import r --reference=../nowhere -- new
    --- stderr
    fatal: cannot read '../nowhere': No such file or directory (os error 2)
    exit: 128
    $ import r --reference=../reference --expect=7 -- new
    --- stderr
    error: workspace 'r' is at revision 1, not 7 [stale]
    hint: read it again, then repeat the change on the current revision
    exit: 1
    $ import r --reference=../reference -- new a.txt
    agent r
    revision 2
    commit <oid:1>
    tree <oid:2>

    exit: 0
    $ overlay diff --name-status r
    M	a.txt
    A	new
    exit: 0
    $ log r
    revision 2
    commit <oid:1>
    kind import
    time <now>
    tree <oid:2>
    base <oid:3>
    path-count 2
    path a.txt
    path new

    revision 1
    commit <oid:4>
    kind create
    time <now>
    tree <oid:5>
    base <oid:3>
    path-count 0

    exit: 0
    $ log -n 1 --json s
    {"v":1,"revision":3,"commit":"<oid:1>","kind":"write","time":<now>,"tree":"<oid:2>","base":"<oid:3>","pathCount":1,"paths":["new"]}
    exit: 0
    $ log nobody
    --- stderr
    fatal: no workspace 'nobody'
    hint: 'git vws overlay list' shows the workspaces
    exit: 128
    "#);
    let args = ["import", "r", "--reference=-", "--", "new"];
    assert_snapshot!(sandbox.vws_with_input(&args, b"{}"), @"
    --- stderr
    fatal: not a change reference: it has no 'senderAgent'
    exit: 128
    ");
}

#[test]
fn what_an_agent_knows() {
    let sandbox = started();
    create(&sandbox, "a");
    write(&sandbox, "a", "a.txt", "other\n");
    write(&sandbox, "a", "tab\there", "x\n");
    let base = sandbox.git_text(&["rev-parse", "HEAD:a.txt"]);
    let tab = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay:tab\there"]);
    let input = format!("{base} a.txt\n{base} gone\n{base} ../up\n{tab} \"tab\\there\"\n");
    let check = ["context", "a", "--check"];
    assert_snapshot!(sandbox.vws(&["context", "a", "--json"]), @r#"
    {"v":1,"agentId":"a","baseCommit":"<oid:1>","overlayRevision":3,"effectiveTreeOid":"<oid:2>"}
    exit: 0
    "#);
    assert_snapshot!(sandbox.vws_with_input(&check, input.as_bytes()), @r#"
    stale <oid:1>	a.txt
    deleted <oid:1>	gone
    unreadable <oid:1>	../up
    fresh <oid:2>	"tab\there"
    exit: 0
    "#);
    let nul = format!("{tab} tab\there\0{base} \"a.txt\"");
    let args = ["context", "a", "--check", "-z"];
    assert_snapshot!(sandbox.vws_with_input(&args, nul.as_bytes()), @r#"
    fresh <oid:1>	tab	here\0deleted <oid:2>	"a.txt"\0<no line end>
    exit: 0
    "#);
    let args = ["context", "a", "--check", "--json"];
    assert_snapshot!(sandbox.vws_with_input(&args, input.as_bytes()), @r#"
    {"v":1,"state":"stale","blob":"<oid:1>","path":"a.txt"}
    {"v":1,"state":"deleted","blob":"<oid:1>","path":"gone"}
    {"v":1,"state":"unreadable","blob":"<oid:1>","path":"../up"}
    {"v":1,"state":"fresh","blob":"<oid:2>","path":"tab\there"}
    exit: 0
    "#);
    for bad in ["x\n", "1234 a.txt\n", "\n"] {
        assert_eq!(
            sandbox.vws_with_input(&check, bad.as_bytes()).code(),
            Some(128),
            "{bad}"
        );
    }
}

#[test]
fn a_patch_and_the_branch() {
    let sandbox = started();
    create(&sandbox, "a");
    sandbox.write("a.txt", "1\n2\nthree\n4\n5\n");
    sandbox.write("n w", b"\0binary\0");
    fs::rename(
        sandbox.repo().join("dir/b.txt"),
        sandbox.repo().join("moved"),
    )
    .unwrap();
    sandbox.git(&["add", "-A"]);
    let patch = sandbox.git(&["diff", "--cached", "--binary", "-M", "HEAD"]);
    let tree = sandbox.git_text(&["write-tree"]);
    sandbox.git(&["reset", "-q", "--hard"]);
    let apply = ["overlay", "apply", "a"];
    assert_snapshot!(sandbox.vws_with_input(&apply, &patch), @"
    agent a
    revision 2
    commit <oid:1>
    tree <oid:2>

    exit: 0
    ");
    assert_eq!(
        sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]),
        tree
    );
    assert_eq!(sandbox.git_text(&["status", "--porcelain"]), "");
    let refused = |patch: &[u8]| sandbox.vws_with_input(&apply, patch).to_string();
    let new = |path: &str, mode: &str, text: &str| {
        format!(
            "diff --git a/{path} b/{path}\nnew file mode {mode}\n--- /dev/null\n+++ b/{path}\n\
             @@ -0,0 +1 @@\n+{text}\n\\ No newline at end of file\n"
        )
    };
    let all: Vec<String> = [
        patch.clone(),
        b"nonsense\n".to_vec(),
        new("../up", "100644", "x").into_bytes(),
        new(".git/hooks/x", "100755", "x").into_bytes(),
        new(".relo/x", "100644", "x").into_bytes(),
        new("out", "120000", "/etc/passwd").into_bytes(),
        new("a.txt/below", "100644", "x").into_bytes(),
    ]
    .iter()
    .map(|patch| refused(patch))
    .collect();
    assert_snapshot!(all.join("\n"), @r#"
    --- stderr
    error: the patch does not apply to 'a': patch failed: a.txt:1 [conflict]
    exit: 1
    --- stderr
    fatal: not a patch: No valid patches in input (allow with "--allow-empty")
    exit: 128
    --- stderr
    error: path '../up' leads out of the repository [escapes]
    exit: 1
    --- stderr
    error: path '.git/hooks/x' is protected [protected_path]
    exit: 1
    --- stderr
    error: path '.relo/x' is protected [protected_path]
    exit: 1
    --- stderr
    error: link 'out' would leave the workspace [escapes]
    exit: 1
    --- stderr
    error: 'a.txt' is a file [type_change]
    exit: 1
    "#);
    assert_eq!(
        sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]),
        tree
    );
    assert_snapshot!(session(&sandbox, &[
        &["overlay", "commit", "a", "-m", "what a made"],
        &["overlay", "commit", "a"],
    ]), @"
    $ overlay commit a -m what a made
    agent a
    revision 3
    commit <oid:1>
    tree <oid:2>
    branch refs/heads/relo/a
    branch-commit <oid:3>

    exit: 0
    $ overlay commit a
    agent a
    revision 3
    commit <oid:1>
    tree <oid:2>
    unchanged
    branch refs/heads/relo/a
    branch-commit <oid:3>

    exit: 0
    ");
    let branch = sandbox.git_text(&["log", "--format=%s %T", "relo/a"]);
    assert!(
        branch.starts_with(&format!("what a made {tree}\nfirst ")),
        "{branch}"
    );
    for entry in fs::read_dir(sandbox.repo().join(".git/relo")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.as_encoded_bytes().starts_with(b"apply-"), "{name:?}");
    }
}

#[test]
fn a_workspace_is_handed_to_another_clone() {
    let hub = Sandbox::without_repo();
    hub.git(&["init", "-q", "--bare"]);
    let url = hub.repo().to_str().unwrap().to_owned();
    let ours = started();
    ours.git(&["remote", "add", "hub", &url]);
    ours.git(&["push", "-q", "hub", "main"]);
    let theirs = Sandbox::without_repo();
    theirs.git(&["clone", "-q", "-o", "hub", &url, "."]);
    ours.write("a.txt", "1\n2\n3\n4\ndirty\n");
    create(&ours, "a");
    write(&ours, "a", "a.txt", "agent\n2\n3\n4\ndirty\n");
    let _ = ours.vws(&["overlay", "delete", "a", "dir/b.txt"]).success();
    let _ = ours.vws(&["propose", "a"]).success();
    let specs = |from: &str| {
        ["vws", "changes"]
            .map(|kind| format!("refs/relo/{kind}/{from}/*:refs/relo/{kind}/{from}/*"))
    };
    let [workspace, changes] = specs("a");
    ours.git(&[
        "push",
        "-q",
        "--atomic",
        "hub",
        &workspace,
        &changes,
        "refs/heads/relo/a",
    ]);
    // The other side has work of its own.
    theirs.write("a.txt", "1\n2\n3\n4\ndirty\n");
    theirs.write("mine", "mine\n");
    theirs.git(&["fetch", "-q", "hub", &workspace, &changes]);
    let before = ours.vws(&["overlay", "show", "a"]).success();
    let after = theirs.vws(&["overlay", "show", "a"]).success();
    assert_eq!(after.stdout().as_bstr(), before.stdout().as_bstr());
    assert_eq!(
        theirs.vws(&["changes", "a"]).stdout().as_bstr(),
        ours.vws(&["changes", "a"]).stdout().as_bstr()
    );
    let _ = theirs.vws(&["accept", "a"]).success();
    assert_eq!(theirs.read("a.txt"), b"agent\n2\n3\n4\ndirty\n");
    assert!(!theirs.repo().join("dir/b.txt").exists());
    let _ = theirs.vws(&["undo"]).success();
    assert_eq!(theirs.read("a.txt"), b"1\n2\n3\n4\ndirty\n");
    assert_eq!(theirs.read("dir/b.txt"), b"two\n");
    assert_eq!(theirs.read("mine"), b"mine\n");
    theirs.git(&["fsck", "--strict"]);
    // What the manual says to keep our refs out of the way.
    let all = "log.initialDecorationSet=all";
    let decorated = ["-c", all, "log", "--all", "--decorate=full", "--format=%D"];
    assert!(ours.git(&decorated).contains_str("refs/relo/"));
    ours.git(&["config", "log.excludeDecoration", "refs/relo/"]);
    assert!(!ours.git(&decorated).contains_str("refs/relo/"));
    hub.git(&["config", "transfer.hideRefs", "refs/relo"]);
    assert!(!theirs.git(&["ls-remote", "hub"]).contains_str("refs/relo/"));
    hub.git(&["config", "--unset", "transfer.hideRefs"]);
    // A second arrival goes forward only: what the other side has done since is not overwritten.
    write(&ours, "a", "later", "x\n");
    ours.git(&["push", "-q", "hub", &workspace]);
    theirs.git(&["fetch", "-q", "hub", &workspace]);
    write(&ours, "a", "later", "y\n");
    ours.git(&["push", "-q", "hub", &workspace]);
    write(&theirs, "a", "their own", "z\n");
    let mut fetch = theirs.command("git");
    fetch.args(["fetch", "-q", "hub", &workspace]);
    let refused = theirs.outcome(fetch, b"");
    assert_eq!(refused.code(), Some(1), "{refused}");
    let read = theirs.vws(&["overlay", "read", "a", "their own"]);
    assert_eq!(read.stdout(), b"z\n");
    // A base moves anywhere, so after a rebase it is the one ref that has to be forced.
    ours.git(&["update-ref", "refs/heads/elsewhere", "HEAD"]);
    let _ = ours
        .vws(&["recut", "a", "elsewhere", "--keep-conflicts"])
        .success();
    let forced = "+refs/relo/vws/a/base:refs/relo/vws/a/base";
    ours.git(&["push", "-q", "hub", "refs/relo/vws/a/overlay", forced]);
}
