//! Open directories: what tools did there counts before a base moves, before anybody answers, and is what
//! an import adds to. And every way in which an import is refused.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use bstr::ByteSlice;

use super::{create, started, write};
use crate::common::Sandbox;

/// Opens a directory.
fn open(sandbox: &Sandbox, agent: &str) -> PathBuf {
    let args = ["materialize", "--backend=checkout", agent];
    let _ = sandbox.vws(&args).success();
    sandbox.repo().join(".relo/worktrees").join(agent)
}

fn text(sandbox: &Sandbox, agent: &str, path: &str) -> String {
    let out = sandbox.vws(&["overlay", "read", agent, path]).success();
    out.stdout().to_str().unwrap().to_owned()
}

/// The kind of a refusal, as it ends the line.
#[track_caller]
fn kind(sandbox: &Sandbox, args: &[&str], input: &[u8]) -> String {
    let out = sandbox.vws_with_input(args, input);
    assert_eq!(out.code(), Some(1), "{args:?}: {out}");
    let said = out.stderr().to_str().unwrap();
    let line = said
        .lines()
        .find(|line| line.starts_with("error: "))
        .unwrap();
    let kind = line
        .rsplit_once('[')
        .map_or("", |(_, kind)| kind.trim_end_matches(']'));
    kind.to_owned()
}

#[test]
fn a_base_moves_only_after_the_directory_was_imported() {
    let sandbox = started();
    create(&sandbox, "p");
    write(&sandbox, "p", "by-p", "p\n");
    let _ = sandbox.vws(&["stack", "a", "--on=p"]).success();
    let directory = open(&sandbox, "a");
    for (at, args) in [
        &["recut", "a", "HEAD"][..],
        &["rebase-onto", "a", "HEAD"],
        &[
            "rebase-onto",
            "a",
            "HEAD",
            "--without=p",
            "--keep-conflicts",
        ],
        &["overlay", "discard", "a"],
    ]
    .into_iter()
    .enumerate()
    {
        let unsaved = format!("unsaved {at}\n");
        fs::write(directory.join("dir/b.txt"), &unsaved).unwrap();
        let base = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/base"]);
        assert_eq!(kind(&sandbox, args, b""), "materialized", "{args:?}");
        assert_eq!(
            fs::read_to_string(directory.join("dir/b.txt")).unwrap(),
            unsaved
        );
        assert_eq!(text(&sandbox, "a", "dir/b.txt"), unsaved);
        assert_eq!(
            sandbox.git_text(&["rev-parse", "refs/relo/vws/a/base"]),
            base
        );
        // It is in the workspace itself, not only in what is read of the directory.
        if at < 3 {
            let stored = sandbox.git(&["show", "refs/relo/vws/a/overlay:dir/b.txt"]);
            assert_eq!(stored, unsaved.as_bytes());
        }
    }
    fs::write(directory.join("dir/b.txt"), "last\n").unwrap();
    let _ = sandbox.vws(&["settle", "a"]).success();
    sandbox.write("a.txt", "by the user\n");
    let _ = sandbox
        .vws(&["rebase-onto", "a", "worktree", "--without=p"])
        .success();
    assert_eq!(text(&sandbox, "a", "dir/b.txt"), "last\n");
    assert_eq!(text(&sandbox, "a", "a.txt"), "by the user\n");
}

#[test]
fn answers_count_what_tools_did() {
    let sandbox = started();
    create(&sandbox, "a");
    write(&sandbox, "a", "new", "1\n");
    let _ = sandbox.vws(&["stack", "b", "--on=a"]).success();
    let blob = sandbox.git_text(&["rev-parse", "HEAD:dir/b.txt"]);
    let state = |args: &[&str]| {
        let out = sandbox.vws(args).success();
        out.stdout().to_str().unwrap().to_owned()
    };
    let (a, b) = (open(&sandbox, "a"), open(&sandbox, "b"));
    assert!(state(&["stack", "--status", "b"]).contains("\nstate current\n"));
    fs::write(a.join("new"), "2\n").unwrap();
    assert!(state(&["stack", "--status", "b"]).contains("\nstate behind\n"));
    fs::write(b.join("own"), "x\n").unwrap();
    let graph = state(&["stack", "--graph"]);
    assert_eq!(
        graph,
        "a r3  1 change, directory open\n`-- b r2  1 change, directory open, behind a\n"
    );
    fs::write(b.join("dir/b.txt"), "tool\n").unwrap();
    fs::remove_file(b.join("new")).unwrap();
    let input = format!("{blob} dir/b.txt\n{blob} new\n{blob} a.txt\n");
    let checked = sandbox.vws_with_input(&["context", "--check", "b"], input.as_bytes());
    assert_eq!(
        checked.stdout().as_bstr(),
        format!("stale {blob}\tdir/b.txt\ndeleted {blob}\tnew\nstale {blob}\ta.txt\n")
    );
    let tool = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/overlay:dir/b.txt"]);
    let input = format!("{tool} dir/b.txt\n");
    let checked = sandbox.vws_with_input(&["context", "--check", "b"], input.as_bytes());
    assert_eq!(
        checked.stdout().as_bstr(),
        format!("fresh {tool}\tdir/b.txt\n")
    );
}

/// A sender `s` of several files, and a reference to them.
fn sent(sandbox: &Sandbox) -> Vec<u8> {
    create(sandbox, "s");
    write(sandbox, "s", "a.txt", "by s\n");
    write(sandbox, "s", "new/file", "by s\n");
    write(sandbox, "s", "z-large", &"0".repeat(1 << 20));
    let _ = sandbox
        .vws(&["overlay", "delete", "s", "dir/b.txt"])
        .success();
    let args = [
        "reference",
        "s",
        "--",
        "a.txt",
        "dir/b.txt",
        "new/file",
        "z-large",
    ];
    let reference = sandbox.vws(&args).success();
    reference.stdout().to_vec()
}

const IMPORT: [&str; 4] = ["import", "r", "--reference=-", "--"];

#[test]
fn an_import_that_fails_half_way_is_taken_back() {
    let sandbox = started();
    let reference = sent(&sandbox);
    create(&sandbox, "r");
    let directory = open(&sandbox, "r");
    fs::write(directory.join("a.txt"), "by a tool\n").unwrap();
    fs::set_permissions(
        directory.join("dir/b.txt"),
        fs::Permissions::from_mode(0o600),
    )
    .unwrap();
    let _ = sandbox.vws(&["capture", "r"]).success();
    let seen = || {
        let mut command = sandbox.command("find");
        command.arg(&directory).args(["-printf", "%P %m %s %l\\n"]);
        let out = sandbox.outcome(command, b"").success();
        let mut lines: Vec<String> = out
            .stdout()
            .lines()
            .map(|l| l.to_str_lossy().into())
            .collect();
        lines.sort();
        (
            lines,
            fs::read(directory.join("a.txt")).unwrap(),
            sandbox.git_text(&["for-each-ref"]),
        )
    };
    let before = seen();
    // No file may grow beyond 64 KiB: three are written before the last one fails.
    let mut command = sandbox.command("sh");
    command.args([
        "-c",
        "trap '' XFSZ; ulimit -f 128; exec git vws import r --reference=- -- \
         a.txt dir/b.txt new/file z-large",
    ]);
    let failed = sandbox.outcome(command, &reference);
    assert_eq!(failed.code(), Some(128), "{failed}");
    assert_eq!(seen(), before);
    // All are written, and what they come to in the repository is what does not go in.
    let mut number = 1u32;
    let noise = |_: usize| {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (number >> 24) as u8
    };
    let noise: Vec<u8> = (0..100_000).map(noise).collect();
    for (path, part) in [("noise/1", &noise[..50_000]), ("noise/2", &noise[50_000..])] {
        let args = ["overlay", "write", "s", path];
        let _ = sandbox.vws_with_input(&args, part).success();
    }
    let args = ["reference", "s", "--", "noise/1", "noise/2"];
    let noisy = sandbox.vws(&args).success().stdout().to_vec();
    let before = seen();
    let mut command = sandbox.command("sh");
    command.args([
        "-c",
        "trap '' XFSZ; ulimit -f 128; exec git vws import r --reference=- -- noise/1 noise/2",
    ]);
    let failed = sandbox.outcome(command, &noisy);
    assert_eq!(failed.code(), Some(128), "{failed}");
    assert_eq!(seen(), before);
    let all = [&IMPORT[..], &["a.txt", "dir/b.txt", "new/file", "z-large"]].concat();
    let _ = sandbox.vws_with_input(&all, &reference).success();
    assert_eq!(fs::read(directory.join("a.txt")).unwrap(), b"by s\n");
    assert!(!directory.join("dir/b.txt").exists());
    assert_eq!(
        fs::metadata(directory.join("z-large")).unwrap().len(),
        1 << 20
    );
    let stored = sandbox.git(&["show", "refs/relo/vws/r/overlay:new/file"]);
    assert_eq!(stored, b"by s\n");
}

#[test]
fn every_refusal_of_an_import_changes_nothing() {
    let sandbox = started();
    let reference = sent(&sandbox);
    let text = reference.to_str().unwrap();
    create(&sandbox, "r");
    let _ = sandbox
        .vws(&["overlay", "create", "ro", "--read-only"])
        .success();
    let closed = sandbox.git_text(&["for-each-ref"]);
    let refused = |args: &[&str], text: &str| kind(&sandbox, args, text.as_bytes());
    let import = |path: &'static str| [&IMPORT[..], &[path]].concat();
    let to = |recipient: &'static str| ["import", recipient, "--reference=-", "--", "a.txt"];
    let commit = sandbox.git_text(&["rev-parse", "HEAD"]);
    let sent = sandbox.git_text(&["rev-parse", "refs/relo/vws/s/overlay"]);
    let base = sandbox.git_text(&["rev-parse", "refs/relo/vws/s/base"]);
    let many: Vec<String> = (0..33).map(|n| format!("\"n{n}\"")).collect();
    let many = text.replace("\"a.txt\"", &many.join(","));
    let long = text.replace("\"a.txt\"", &format!("\"{}\"", "x".repeat(513)));
    for (args, text, kind) in [
        (&to("ro")[..], text.to_owned(), "read_only"),
        (
            &["import", "r", "--expect=9", "--reference=-", "--", "a.txt"],
            text.to_owned(),
            "stale",
        ),
        (&import("a.txt"), text.replace(&sent, &commit), "stale"),
        (
            &import("a.txt"),
            text.replace("\"revision\":5", "\"revision\":4"),
            "stale",
        ),
        (&import("a.txt"), text.replace(&base, &sent), "stale"),
        (&import("a.txt"), text.replace("\"s\"", "\"r\""), "stale"),
        (&import("a.txt"), text.replace("relo/s", "relo/r"), "stale"),
        (&import("unnamed"), text.to_owned(), ""),
        (&import("x"), text.replace("\"a.txt\"", "\"x\""), ""),
        (
            &import("a.txt"),
            text.replace("\"a.txt\"", "\"../a.txt\""),
            "escapes",
        ),
        (
            &import("a.txt"),
            text.replace("\"a.txt\"", "\".git/config\""),
            "protected_path",
        ),
        (&import("n0"), many, "too_large"),
        (&import("a.txt"), long, "too_large"),
    ] {
        assert_eq!(refused(args, &text), kind, "{args:?} {text}");
    }
    let limited = ["-c", "relo.workspace.maxFileSize=1000", "vws"];
    let mut command = sandbox.command("git");
    command.args(limited).args(import("z-large"));
    let out = sandbox.outcome(command, &reference);
    assert!(out.stderr().contains_str("[too_large]"), "{out}");
    let nobody = sandbox.vws_with_input(&to("nobody"), &reference);
    assert_eq!(nobody.code(), Some(128), "{nobody}");
    for nonsense in ["", "{}", "[]", "null", "{\"senderAgent\":3}"] {
        let out = sandbox.vws_with_input(&import("a.txt"), nonsense.as_bytes());
        assert_eq!(out.code(), Some(128), "{out}");
    }
    assert_eq!(sandbox.git_text(&["for-each-ref"]), closed);
    // The same with directories open: nothing in them changes either.
    let ro = open(&sandbox, "ro");
    assert_eq!(refused(&to("ro"), text), "read_only");
    assert_eq!(fs::read(ro.join("a.txt")).unwrap(), b"1\n2\n3\n4\n5\n");
    let directory = open(&sandbox, "r");
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "precious\n").unwrap();
    symlink(&outside, directory.join("new")).unwrap();
    fs::remove_file(directory.join("a.txt")).unwrap();
    symlink(outside.join("file"), directory.join("a.txt")).unwrap();
    fs::create_dir(directory.join("z-large")).unwrap();
    fs::write(directory.join("z-large/in"), "x\n").unwrap();
    let refs = || sandbox.git_text(&["for-each-ref", "refs/relo/vws/r/overlay"]);
    let _ = sandbox.vws(&["capture", "r"]);
    let before = refs();
    for (path, expected) in [
        ("new/file", &["escapes", "type_change"][..]),
        ("a.txt", &["type_change"]),
        ("z-large", &["type_change"]),
    ] {
        let args = [&IMPORT[..], &["dir/b.txt", path]].concat();
        let found = refused(&args, text);
        assert!(expected.contains(&&*found), "{path}: {found}");
        assert!(directory.join("dir/b.txt").exists());
    }
    assert_eq!(
        refused(&import("a.txt"), &text.replace(&base, &sent)),
        "stale"
    );
    assert_eq!(refs(), before);
    // What git ignores, and the workspace does not hold, is never written over.
    fs::remove_file(directory.join("new")).unwrap();
    fs::create_dir(directory.join("new")).unwrap();
    fs::write(directory.join("new/file"), "a tool's\n").unwrap();
    let exclude = sandbox.repo().join(".git/info/exclude");
    let mut rules = fs::read(&exclude).unwrap_or_default();
    rules.extend_from_slice(b"\n/new/\n");
    fs::write(&exclude, rules).unwrap();
    let _ = sandbox.vws(&["capture", "r"]);
    let before = refs();
    assert_eq!(refused(&import("new/file"), text), "workspace_changed");
    assert_eq!(fs::read(directory.join("new/file")).unwrap(), b"a tool's\n");
    assert_eq!(refs(), before);
    assert_eq!(fs::read(outside.join("file")).unwrap(), b"precious\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}
