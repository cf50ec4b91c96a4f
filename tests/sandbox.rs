//! The sandbox of the binary tests is itself tested: a leak in it would make every other test lie.

mod common;

use common::{BINARY, Sandbox};

#[test]
fn an_outcome_is_one_text() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    let first = sandbox.commit("first");
    let script = "git rev-parse HEAD HEAD^{tree} HEAD; pwd; echo careful >&2; exit 3";
    let sh = |text: &str| {
        let mut command = sandbox.command("sh");
        command.args(["-c", text]);
        sandbox.outcome(command, b"")
    };
    insta::assert_snapshot!(sh(script), @r"
    <oid:1>
    <oid:2>
    <oid:1>
    $SANDBOX/repo
    --- stderr
    careful
    exit: 3
    ");
    assert!(sh(script).keep_ids().to_string().starts_with(&first));
    insta::assert_snapshot!(sh(r"printf 'a\0b\377c'"), @r"
    a\0b\xffc<no line end>
    exit: 0
    ");
    insta::assert_snapshot!(sh("kill -9 $$"), @"exit: signal 9");
    // Not ids: too short, too long, upper case, part of a word.
    let long = "a".repeat(41);
    let text = format!(
        "echo {} {long} {} x{}",
        &long[..39],
        "A".repeat(40),
        &long[..40]
    );
    assert!(!sh(&text).to_string().contains("<oid"));
    insta::assert_snapshot!(sh(&format!("echo {}:{}", "0".repeat(40), "b".repeat(64))), @r"
    <oid:null>:<oid:1>
    exit: 0
    ");
}

#[test]
fn stdin_is_passed_and_may_be_left_unread() {
    let sandbox = Sandbox::new();
    let id = sandbox.git_with_input(&["hash-object", "--stdin"], b"text\n");
    assert_eq!(id, b"8e27be7d6154a1f68ea9160ef0e18691d20560dc\n");
    let big = vec![b'x'; 1 << 20];
    let outcome = sandbox.outcome(sandbox.command("true"), &big);
    assert_eq!(outcome.code(), Some(0));
    let outcome = sandbox.outcome(sandbox.command("cat"), &big).success();
    assert_eq!(outcome.stdout(), big);
}

#[test]
fn nothing_of_the_machine_comes_in() {
    let mut sandbox = Sandbox::new();
    sandbox.write("deep/er/a.txt", b"\xff\0");
    assert_eq!(sandbox.read("deep/er/a.txt"), b"\xff\0");
    let first = sandbox.commit("first");
    // Known bytes, identity and dates give a known commit.
    assert_eq!(
        sandbox.git_text(&["log", "--format=%an %ae %at %cn %ct %s"]),
        "A U Thor author@example.com 1112911993 C O Mitter 1112911993 first"
    );
    assert_eq!(sandbox.git_text(&["rev-parse", "main"]), first);
    assert_eq!(first, "be9238353fc24a30b08aa29f40423ecf49d2ac37");
    let config = sandbox.git_text(&["config", "--list", "--show-origin"]);
    for line in config.lines() {
        let ours = line.starts_with("file:.git/config") || line.contains("/home/.gitconfig");
        assert!(ours, "{line}");
    }
    let names = |sandbox: &Sandbox| {
        let outcome = sandbox.outcome(sandbox.command("env"), b"").success();
        String::from_utf8_lossy(outcome.stdout()).into_owned()
    };
    assert!(!names(&sandbox).contains("CARGO"));
    sandbox.set_env("EXTRA", "one");
    sandbox.set_env("EXTRA", "two");
    assert!(names(&sandbox).contains("EXTRA=two"));
}

#[test]
fn a_sandbox_without_a_repository_finds_none() {
    let sandbox = Sandbox::without_repo();
    let mut command = sandbox.command("git");
    command.args(["rev-parse", "--git-dir"]);
    assert_eq!(sandbox.outcome(command, b"").code(), Some(128));
}

#[test]
#[should_panic(expected = "not a git repository")]
fn a_failing_git_panics_with_what_it_said() {
    Sandbox::without_repo().git(&["status"]);
}

#[test]
fn git_finds_the_binary_under_test() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command("sh");
    command.args(["-c", "command -v git-vws"]);
    let outcome = sandbox.outcome(command, b"").success();
    assert_eq!(outcome.stdout(), format!("{BINARY}\n").as_bytes());
}
