//! What is in the object database needs no process: the plain commands start none, not even git.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::io::Write;
use std::process::Command;

use bstr::ByteSlice;
use common::{BINARY, Sandbox};

fn has_strace() -> bool {
    Command::new("strace")
        .args(["-o", "/dev/null", "true"])
        .status()
        .is_ok_and(|status| status.success())
}

#[test]
fn plain_commands_start_no_process() {
    if !has_strace() {
        // Past libtest's capture: a skipped test is to be seen.
        let _ = std::io::stderr().write_all(b"skipped: strace is missing or may not trace\n");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write("dir/b.txt", "two\n");
    sandbox.commit("first");
    let log = sandbox.root().join("strace.log");
    let trace = |args: &[&str]| {
        let mut command = sandbox.command("strace");
        command
            .args([
                "-f",
                "-e",
                "trace=execve,execveat,fork,vfork,clone,clone3",
                "-o",
            ])
            .arg(&log)
            .arg(BINARY)
            .args(args);
        let outcome = sandbox.outcome(command, b"new\n");
        assert_eq!(outcome.code(), Some(0), "{args:?}: {outcome}");
        std::fs::read(&log).unwrap()
    };
    for args in [
        &["overlay", "create", "a", "--base=HEAD"][..],
        &["overlay", "create", "b", "--from=a"],
        &["overlay", "write", "a", "dir/new.txt"],
        &["overlay", "chmod", "a", "+x", "a.txt"],
        &["overlay", "rename", "a", "dir", "moved"],
        &["overlay", "symlink", "a", "link", "a.txt"],
        &["overlay", "delete", "a", "a.txt"],
        &["overlay", "read", "a", "moved/b.txt"],
        &["overlay", "ls", "-r", "a"],
        &["overlay", "stat", "a", "moved"],
        &["overlay", "diff", "a"],
        &["overlay", "list"],
        &["overlay", "show", "a"],
        &["snap", "a"],
        &["context", "a"],
        &["overlay", "discard", "a"],
        &["overlay", "restore", "a", "3"],
        &["overlay", "dispose", "-f", "a"],
    ] {
        let log = trace(args);
        let calls = |name: &str| log.lines().filter(|line| line.contains_str(name)).count();
        assert_eq!(calls("exec"), 1, "{args:?}\n{}", log.as_bstr());
        // A thread is a clone too, and none of these needs one.
        assert_eq!(
            calls("clone") + calls("fork"),
            0,
            "{args:?}\n{}",
            log.as_bstr()
        );
    }
    // What the working tree holds is git's to say: once in a tree where all is tracked, and once more
    // where there are strangers, however many and of whatever kind.
    let git = |args: &[&str]| {
        let log = trace(args);
        // A process that finds git in `PATH` tries its folders one after the other.
        let started = |line: &&[u8]| line.contains_str("exec") && line.ends_with_str("= 0");
        let resumed =
            |line: &&[u8]| line.contains_str("execve resumed") && line.ends_with_str("= 0");
        let count = log.lines().filter(|line| started(line) || resumed(line));
        count.count() - 1
    };
    sandbox.write("a.txt", "edited\n");
    for (agent, command) in [("c", "create"), ("", "base")] {
        let args = ["overlay", command, agent];
        let args = if agent.is_empty() {
            &["base"][..]
        } else {
            &args
        };
        assert_eq!(git(args), 1, "{args:?}");
    }
    sandbox.write(".gitignore", "out/\n*.o\n");
    for path in ["out/x", "x.o", "dir/y.o", "new", "fresh/one", "fresh/two"] {
        sandbox.write(path, "new\n");
    }
    assert_eq!(git(&["overlay", "create", "d"]), 2);
    assert_eq!(git(&["base"]), 2);
    // Which of the new files a rule might speak of is told without git, where that is plain.
    if cfg!(target_os = "linux") && sandbox.vws(&["template", "warm"]).code() == Some(0) {
        let probes = std::fs::read_dir(sandbox.repo().join(".git/relo/probes"));
        let overlays = probes.is_ok_and(|mut answers| {
            answers.any(|one| {
                one.is_ok_and(|one| std::fs::read(one.path()).unwrap().lines().count() == 1)
            })
        });
        if !overlays {
            let _ = std::io::stderr().write_all(b"skipped: no overlays here\n");
            return;
        }
        let script = |text: &str| ["exec", "d", "--", "sh", "-c", text].map(str::to_owned);
        let count = |text: &str| git(&script(text).each_ref().map(String::as_str));
        // The shell, and ourselves once more where a user namespace is needed.
        let plain = count("echo >added.c; echo >dir/more.c; echo >a.txt");
        assert!(
            plain == 1 || plain == 2 && !rustix::process::geteuid().is_root(),
            "{plain}"
        );
        assert_eq!(count("echo >added.o"), plain + 1);
    }
}
