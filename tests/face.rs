//! What a person and a harness see: `status`, hints and how to switch them off, colours, `hook`.
#![allow(clippy::unwrap_used, missing_docs, unused_must_use)]

mod common;

use bstr::ByteSlice;
use common::Sandbox;
use insta::assert_snapshot;
use serde_json::json;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", "one\n");
    sandbox.commit("start");
    sandbox
}

#[test]
fn status_is_one_screen() {
    let sandbox = started();
    assert_snapshot!(sandbox.vws(&["status"]), @"
    no workspaces, and nothing waits for a decision

    next
      git vws run <agent> -- <command>  make a workspace, run a command in it, propose what it made
    exit: 0
    ");
    sandbox
        .vws(&["run", "-q", "alice", "--", "touch", "a", "b"])
        .success();
    sandbox.vws(&["overlay", "create", "-q", "bob"]).success();
    sandbox.vws(&["materialize", "bob"]).success();
    sandbox
        .vws(&["overlay", "create", "carol", "--base=HEAD"])
        .success();
    sandbox
        .vws_with_input(&["overlay", "write", "carol", "f"], b"two\n")
        .success();
    sandbox
        .vws(&["overlay", "create", "dave", "--read-only"])
        .success();
    sandbox.vws(&["accept", "-q", "alice", "a"]).success();
    sandbox
        .vws(&["run", "-q", "erin", "--", "touch", "e"])
        .success();
    sandbox.vws(&["accept", "-q", "erin"]).success();
    sandbox.vws(&["undo"]).success();
    assert_snapshot!(sandbox.vws(&["status"]), @"
    5 agents
      alice  r3    1 change waits, 1 accepted
      bob    r1    directory open at .relo/worktrees/bob
      carol  r2    edits that are not proposed
      dave   r1    read-only
      erin   -     1 change waits, released

    next
      git vws changes -p alice  look at what is offered
      git vws accept alice      merge it into your working tree ('reject' turns it down)
      git vws settle bob        capture the directory and remove it
      git vws propose carol     offer the edits
      git vws undo 1            take the last accept back
    exit: 0
    ");
    // Looking captures nothing.
    sandbox.write(".relo/worktrees/bob/made", "x");
    sandbox.vws(&["status"]).success();
    let listed = sandbox.vws(&["overlay", "list"]).success();
    assert!(!listed.stdout().contains_str("capture"), "{listed}");
}

#[test]
fn stacks_and_collisions_are_on_the_screen() {
    let sandbox = started();
    let run = |agent: &str, script: &str| {
        let words = ["run", "-q", agent, "--", "sh", "-c", script];
        sandbox.vws(&words).success();
    };
    run("alice", "echo alice >f");
    run("bob", "echo bob >f");
    sandbox.vws(&["stack", "carol", "--on=alice"]).success();
    sandbox.vws(&["overlay", "create", "dave"]).success();
    sandbox.vws(&["materialize", "dave"]).success();
    // Not captured yet, so nobody knows.
    sandbox.write(".relo/worktrees/dave/f", "dave\n");
    let words = ["overlay", "write", "alice", "g"];
    sandbox.vws_with_input(&words, b"more\n").success();
    sandbox.write("f", "mine\n");
    assert_snapshot!(sandbox.vws(&["status"]), @"
    4 agents
      alice  r4    1 change waits, collides with your working tree at 1 path, collides with bob at 1 path, edits that are not proposed
      bob    r3    1 change waits, collides with your working tree at 1 path, collides with alice at 1 path
      carol  r1    on alice (behind)
      dave   r1    directory open at .relo/worktrees/dave

    next
      git vws changes -p alice  look at what is offered
      git vws accept alice      merge it into your working tree ('reject' turns it down)
      git vws conflicts         see which paths collide, before anybody decides
      git vws stack --status    see what is behind the work that it rests on
      git vws settle dave       capture the directory and remove it
      git vws propose alice     offer the edits
    exit: 0
    ");
}

#[test]
fn a_lost_directory_and_a_damaged_workspace_are_told() {
    let sandbox = started();
    sandbox.vws(&["overlay", "create", "a"]).success();
    sandbox.vws(&["materialize", "a"]).success();
    std::fs::remove_dir_all(sandbox.repo().join(".relo/worktrees/a")).unwrap();
    sandbox.git(&["update-ref", "refs/relo/vws/b/overlay", "HEAD"]);
    let outcome = sandbox.outcome(
        {
            let mut git = sandbox.command("git");
            git.args(["-c", "advice.vws=false", "vws", "status"]);
            git
        },
        b"",
    );
    assert_snapshot!(outcome, @"
    2 agents
      a  r1    the directory '$SANDBOX/repo/.relo/worktrees/a' of workspace 'a' has vanished; the workspace stands at revision 1
      b  -     damaged: revision <oid:1> is damaged: it holds no metadata
    exit: 0
    ");
}

#[test]
fn colours_are_those_of_the_settings() {
    let sandbox = started();
    sandbox.vws(&["overlay", "create", "a"]).success();
    let colours = |settings: &[&str]| {
        let mut git = sandbox.command("git");
        settings.iter().for_each(|setting| {
            git.args(["-c", setting]);
        });
        git.args(["vws", "status"]);
        let outcome = sandbox.outcome(git, b"");
        outcome
            .code()
            .map(|code| (code, outcome.stdout().contains(&0x1b)))
    };
    assert_eq!(colours(&[]), Some((0, false)), "it is no terminal");
    assert_eq!(colours(&["color.ui=always"]), Some((0, true)));
    assert_eq!(
        colours(&["color.ui=always", "color.vws=never"]),
        Some((0, false))
    );
    assert_eq!(
        colours(&["color.ui=never", "color.vws=always"]),
        Some((0, true))
    );
    assert_eq!(colours(&["color.ui=true"]), Some((0, false)));
    assert_eq!(colours(&["color.vws=blue"]), Some((128, false)));
}

#[test]
fn hints_can_be_switched_off_in_one_place() {
    let mut sandbox = started();
    let all: &[&[&str]] = &[&["overlay", "show", "none"], &["overlay", "shwo"]];
    for args in all {
        assert!(
            sandbox.vws(args).stderr().contains_str("hint: "),
            "{args:?}"
        );
        let mut git = sandbox.command("git");
        git.args(["-c", "advice.vws=false", "vws"]).args(*args);
        let outcome = sandbox.outcome(git, b"");
        assert!(!outcome.stderr().contains_str("hint: "), "{outcome}");
        assert!(outcome.stderr().contains_str("fatal: "), "{outcome}");
    }
    sandbox.set_env("GIT_ADVICE", "0");
    for args in all {
        assert!(
            !sandbox.vws(args).stderr().contains_str("hint: "),
            "{args:?}"
        );
    }
}

#[test]
fn a_harness_gets_a_directory_and_gives_it_back() {
    let sandbox = started();
    sandbox.write("f", "edited by the user\n");
    let cwd = sandbox.repo();
    let wanted = json!({ "session_id": "s1", "transcript_path": "/t", "cwd": cwd,
        "hook_event_name": "WorktreeCreate", "name": "fix/login" });
    // Called from elsewhere: the payload says where the repository is.
    let hook = |event: &str, input: &serde_json::Value| {
        let mut command = sandbox.command("git-vws");
        command.args(["hook", event]).current_dir(sandbox.root());
        sandbox.outcome(command, input.to_string().as_bytes())
    };
    let made = hook("worktree-create", &wanted).success();
    let path = cwd.join(".relo/worktrees/fix-login");
    assert_eq!(made.stdout(), format!("{}\n", path.display()).as_bytes());
    assert_eq!(sandbox.read(path.join("f")), b"edited by the user\n");
    // Once more: the same.
    let again = hook("worktree-create", &wanted).success();
    assert_eq!(again.stdout(), made.stdout());
    let shown = sandbox.vws(&["overlay", "show", "fix-login"]).success();
    assert!(shown.stdout().contains_str("session s1"), "{shown}");

    std::fs::write(path.join("made"), "by the agent\n").unwrap();
    let done = json!({ "cwd": path, "hook_event_name": "WorktreeRemove", "worktree_path": path });
    assert_snapshot!(hook("worktree-remove", &done), @"
    --- stderr
    fix-login: proposed 1 change
    hint: 'git vws changes fix-login' shows it
    exit: 0
    ");
    assert!(!path.exists());
    sandbox.vws(&["accept", "fix-login"]).success();
    assert_eq!(sandbox.read("made"), b"by the agent\n");

    // Nothing made: nothing stays.
    let _ = hook("worktree-create", &wanted).success();
    let _ = hook("worktree-remove", &done).success();
    assert_eq!(sandbox.vws(&["overlay", "list"]).success().stdout(), b"");
    let refused = hook(
        "worktree-remove",
        &json!({ "cwd": cwd, "worktree_path": cwd }),
    );
    assert_eq!(refused.code(), Some(1), "{refused}");
    assert_eq!(
        hook("worktree-create", &json!({ "name": 7 })).code(),
        Some(128)
    );
}
