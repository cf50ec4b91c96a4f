//! The face of the binary as a whole: help, usage errors, exit codes, streams, and what git says about
//! which repository and which settings count.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::{Command, Stdio};

use bstr::ByteSlice;
use common::{BINARY, Outcome, Sandbox};
use insta::assert_snapshot;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.commit("first");
    sandbox
}

fn sh(sandbox: &Sandbox, script: &str) -> Outcome {
    let mut command = sandbox.command("sh");
    command.args(["-c", script]);
    sandbox.outcome(command, b"")
}

#[test]
fn help_goes_to_stdout() {
    let sandbox = Sandbox::without_repo();
    let help = sandbox.binary(&["-h"], b"").success();
    assert!(help.stdout().starts_with(b"usage: git vws <command>"));
    assert_eq!(sandbox.binary(&["--help"], b"").stdout(), help.stdout());
    let nothing = sandbox.binary(&[], b"");
    assert_eq!(
        (nothing.code(), nothing.stdout()),
        (Some(129), help.stdout())
    );
    assert!(nothing.stderr().is_empty());
    assert_snapshot!(sandbox.binary(&["overlay", "write", "-h"], b""), @"
    usage: git vws overlay write [<options>] <agent> <path>

    Put standard input at a path

    arguments
      <agent>  The workspace
      <path>   The file, from the top of the workspace

    options
          --chmod <+x|-x>      Set or clear the executable bit; it stays as it is otherwise
      -z                       End lines with NUL and print paths raw
          --json               Print one JSON object a line
          --expect <revision>  Refuse unless the workspace is at this revision
      -h, --help               Print help
    exit: 0
    ");
    assert_snapshot!(sandbox.binary(&["snap", "--help"], b""), @"
    usage: git vws snap [<options>] <agent>

    Pin a revision of a workspace

    arguments
      <agent>  The workspace

    options
      -z                     End lines with NUL and print paths raw
          --json             Print one JSON object a line
          --list             List the pinned revisions
          --drop <revision>  Let go of a pinned revision
      -h, --help             Print help
    exit: 0
    ");
    assert_snapshot!(sandbox.binary(&["overlay"], b""), @"
    usage: git vws overlay <command>

    Make, look at, edit and let go workspaces

    commands
      create   Make a workspace
      list     List the workspaces
      show     Show one workspace
      read     Print a file's content
      ls       List files, as 'git ls-tree' does
      stat     Show what is at a path
      diff     Show what the agent changed
      write    Put standard input at a path
      delete   Remove files or folders
      rename   Give a file or folder another name
      chmod    Set or clear a file's executable bit
      symlink  Make a symbolic link
      apply    Apply a patch from standard input
      commit   Commit the overlay to the agent's branch
      discard  Take edits back to the base
      restore  Make an earlier revision current again
      dispose  Let a workspace go

    options
      -h, --help  Print help
    exit: 129
    ");
    let version = format!("git-vws {}\n", env!("CARGO_PKG_VERSION"));
    let outcome = sandbox.binary(&["--version"], b"").success();
    assert_eq!(outcome.stdout().as_bstr(), version.as_bytes().as_bstr());
    let outcome = sandbox.binary(&["version"], b"").success();
    assert!(outcome.stdout().starts_with(version.as_bytes()));
    assert!(outcome.stdout().contains_str("\nlibgit2 1."), "{outcome}");
    assert!(
        outcome.stdout().contains_str("\nbackend checkout\n"),
        "{outcome}"
    );
}

#[test]
fn usage_errors_are_129_and_say_what_is_wrong() {
    let sandbox = Sandbox::without_repo();
    let outcomes: String = [
        &["overlya"][..],
        &["overlay", "creat"],
        &["overlay", "\u{1b}[31m\nred"],
        &["overlay", "create"],
        &["overlay", "create", "x..y"],
        &["overlay", "create", "a", "b"],
        &["overlay", "create", "a", "--bse=HEAD"],
        &["overlay", "create", "a", "--base"],
        &["overlay", "create", "a", "--base=HEAD", "--from=b"],
        &["overlay", "create", "a", "--from=b@0"],
        &["overlay", "create", "a", "--mode=virtal"],
        &["overlay", "create", "a", "--session=x", "--session=y"],
        &["overlay", "list", "-z", "--json"],
        &["overlay", "write", "a", "f", "--expect=seven"],
        &["overlay", "write", "a", "f", "--chmod=755"],
        &["overlay", "chmod", "a", "f"],
        &["overlay", "delete", "a"],
        &["overlay", "restore", "a", "07"],
        &["snap", "a", "--list", "--drop=1"],
        &["-z"],
    ]
    .iter()
    .map(|args| {
        format!(
            "$ {}\n{}\n",
            args.join(" ").escape_debug(),
            sandbox.binary(args, b"")
        )
    })
    .collect();
    assert_snapshot!(outcomes, @r"
    $ overlya
    --- stderr
    fatal: 'overlya' is not a command
    hint: did you mean 'overlay'?
    usage: git vws <command>
    exit: 129
    $ overlay creat
    --- stderr
    fatal: 'creat' is not a command
    hint: did you mean 'create'?
    usage: git vws overlay <command>
    exit: 129
    $ overlay \u{1b}[31m\nred
    --- stderr
    fatal: '\x1b[31m\nred' is not a command
    usage: git vws overlay <command>
    exit: 129
    $ overlay create
    --- stderr
    fatal: missing <agent>
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create x..y
    --- stderr
    fatal: agent id 'x..y' holds '..'
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a b
    --- stderr
    fatal: unexpected argument 'b'
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --bse=HEAD
    --- stderr
    fatal: unknown option '--bse'
    hint: did you mean '--base'?
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --base
    --- stderr
    fatal: '--base' needs a value
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --base=HEAD --from=b
    --- stderr
    fatal: '--base' cannot be used together with '--from'
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --from=b@0
    --- stderr
    fatal: '0' is not a revision number
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --mode=virtal
    --- stderr
    fatal: 'virtal' is no value for '--mode'; expected one of virtual, worktree, auto
    hint: did you mean 'virtual'?
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay create a --session=x --session=y
    --- stderr
    fatal: '--session' is given twice
    usage: git vws overlay create [<options>] <agent>
    exit: 129
    $ overlay list -z --json
    --- stderr
    fatal: '-z' cannot be used together with '--json'
    usage: git vws overlay list [<options>]
    exit: 129
    $ overlay write a f --expect=seven
    --- stderr
    fatal: 'seven' is not a revision number
    usage: git vws overlay write [<options>] <agent> <path>
    exit: 129
    $ overlay write a f --chmod=755
    --- stderr
    fatal: '755' is no value for '--chmod'; expected one of +x, -x
    usage: git vws overlay write [<options>] <agent> <path>
    exit: 129
    $ overlay chmod a f
    --- stderr
    fatal: 'f' is no value for '<+x|-x>'; expected one of +x, -x
    usage: git vws overlay chmod [<options>] <agent> <+x|-x> <path>
    exit: 129
    $ overlay delete a
    --- stderr
    fatal: missing <path>...
    usage: git vws overlay delete [<options>] <agent> <path>...
    exit: 129
    $ overlay restore a 07
    --- stderr
    fatal: '07' is not a revision number
    usage: git vws overlay restore [<options>] <agent> <revision>
    exit: 129
    $ snap a --list --drop=1
    --- stderr
    fatal: '--list' cannot be used together with '--drop'
    usage: git vws snap [<options>] <agent>
    exit: 129
    $ -z
    --- stderr
    fatal: unknown option '-z'
    usage: git vws <command>
    exit: 129
    ");
    let mut bytes = sandbox.command(BINARY);
    let odd: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"a\xff");
    bytes.args(["overlay", "show"]).arg(odd);
    assert_snapshot!(sandbox.outcome(bytes, b""), @"
    --- stderr
    fatal: an argument that must be text is not UTF-8
    usage: git vws overlay show [<options>] <agent>
    exit: 129
    ");
}

#[test]
fn without_a_repository() {
    let sandbox = Sandbox::without_repo();
    assert_snapshot!(sandbox.vws(&["overlay", "list"]), @"
    --- stderr
    fatal: not a git repository (or any of the parent directories): '$SANDBOX/repo'
    hint: 'git init' makes one here
    exit: 128
    ");
    let mut command = sandbox.command(BINARY);
    command.env("GIT_DIR", "nowhere").arg("base");
    assert_snapshot!(sandbox.outcome(command, b""), @"
    --- stderr
    fatal: not a git repository (or any of the parent directories): '$SANDBOX/repo/nowhere'
    hint: 'git init' makes one here
    exit: 128
    ");
    sandbox.git(&["init", "-q", "--bare", "."]);
    assert_snapshot!(sandbox.vws(&["overlay", "create", "a"]), @"
    --- stderr
    fatal: this operation must be run in a work tree
    hint: name a commit with --base
    exit: 128
    ");
}

#[test]
fn a_repository_of_somebody_else_is_refused_as_git_does() {
    if rustix::process::geteuid().is_root() {
        let sandbox = started();
        let path = sandbox.repo();
        std::os::unix::fs::chown(&path, Some(12345), Some(12345)).unwrap();
        std::os::unix::fs::chown(path.join(".git"), Some(12345), Some(12345)).unwrap();
        assert_snapshot!(sandbox.binary(&["overlay", "list"], b""), @"
        --- stderr
        fatal: detected dubious ownership in repository at '$SANDBOX/repo'
        hint: to trust it: 'git config --global --add safe.directory $SANDBOX/repo'
        exit: 128
        ");
    } else {
        // Past libtest's capture: a skipped test is to be seen.
        let _ = std::io::stderr().write_all(b"skipped: only root can give a repository away\n");
    }
}

#[test]
fn git_says_which_repository() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--base=HEAD"])
        .success();
    fs::create_dir(sandbox.root().join("other")).unwrap();
    let listed = sandbox.vws(&["overlay", "show", "a"]).success();
    for script in [
        "cd / && git -C \"$OLDPWD\" vws overlay show a",
        "cd ../other && git --git-dir=../repo/.git vws overlay show a",
        "cd ../other && GIT_DIR=../repo/.git git vws overlay show a",
        "cd ../other && GIT_DIR=../repo/.git GIT_WORK_TREE=\"$OLDPWD\" git-vws overlay show a",
        "mkdir -p sub/dir && cd sub/dir && git vws overlay show a",
    ] {
        let outcome = sh(&sandbox, script).success();
        assert_eq!(
            outcome.stdout().as_bstr(),
            listed.stdout().as_bstr(),
            "{script}"
        );
    }
    // Paths start at the top of the workspace, wherever the command runs.
    let read = "mkdir -p sub/dir && cd sub/dir && git vws overlay read a a.txt";
    assert_snapshot!(sh(&sandbox, read), @"
    one
    exit: 0
    ");
}

#[test]
fn settings_of_one_call_count() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--base=HEAD"])
        .success();
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "\u{fc}"], b"x")
        .success();
    let with = |settings: &[&str]| {
        let mut command = sandbox.command("git");
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.args(["vws", "overlay", "diff", "--name-status", "a"]);
        sandbox.outcome(command, b"")
    };
    assert_snapshot!(with(&[]), @r#"
    A	"\303\274"
    exit: 0
    "#);
    assert_snapshot!(with(&["core.quotePath=false"]), @"
    A	ü
    exit: 0
    ");
    assert_snapshot!(with(&["core.quotepath=maybe"]), @"
    --- stderr
    fatal: bad config value 'maybe' for 'core.quotepath': expected true or false
    exit: 128
    ");
    let mut command = sandbox.command("git");
    command.args([
        "-c",
        "relo.workspace.mode=tarball",
        "vws",
        "overlay",
        "create",
        "b",
    ]);
    assert_snapshot!(sandbox.outcome(command, b""), @"
    --- stderr
    fatal: bad config value 'tarball' for 'relo.workspace.mode': expected virtual, worktree or auto
    exit: 128
    ");
    let mut command = sandbox.command("git");
    command.args([
        "-c",
        "relo.workspace.maxFileSize=3",
        "vws",
        "overlay",
        "write",
        "a",
        "f",
    ]);
    assert_snapshot!(sandbox.outcome(command, b"four"), @"
    --- stderr
    error: 'f' is larger than 3 bytes [too_large]
    hint: 'git config relo.workspace.maxFileSize <bytes>' moves the limit
    exit: 1
    ");
}

/// Runs the binary with stdout of our choice; returns the exit code and stderr.
fn with_stdout(sandbox: &Sandbox, args: &[&str], stdout: Stdio) -> (Option<i32>, String) {
    let mut command: Command = sandbox.command("git");
    let output = command
        .arg("vws")
        .args(args)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[test]
fn a_full_disk_is_no_success_and_a_closed_pipe_no_failure() {
    let sandbox = started();
    let _ = sandbox
        .vws(&["overlay", "create", "a", "--base=HEAD"])
        .success();
    // More than the buffer holds, and less.
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "big"], &vec![b'x'; 300 << 10])
        .success();
    for args in [
        &["overlay", "list"][..],
        &["overlay", "list", "--json"],
        &["overlay", "ls", "-z", "a"],
        &["overlay", "read", "a", "big"],
        &["overlay", "diff", "a"],
        &["overlay", "write", "a", "empty"],
        &["base"],
        &["snap", "a"],
        &["-h"],
        &["overlay", "read", "-h"],
        &["version"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (code, stderr) = with_stdout(&sandbox, args, full.into());
        let wanted =
            "fatal: cannot write to standard output: No space left on device (os error 28)\n";
        assert_eq!((code, &*stderr), (Some(128), wanted), "{args:?}");
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, stderr) = with_stdout(&sandbox, args, writer.into());
        assert_eq!((code, &*stderr), (Some(141), ""), "{args:?}");
    }
    // The write had been published before its report could not be printed.
    assert!(sandbox.vws(&["overlay", "stat", "a", "empty"]).code() == Some(0));
}

#[test]
fn a_closed_stderr_changes_nothing() {
    let sandbox = started();
    assert_snapshot!(sh(&sandbox, "git-vws overlay show a 2>&-"), @"exit: 128");
    assert_snapshot!(sh(&sandbox, "git-vws overlay shw 2>/dev/full"), @"exit: 129");
}
