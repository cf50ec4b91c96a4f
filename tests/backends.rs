//! Back ends that share blocks, on file systems that can: what they lay out is what git has, costs no
//! space, is found clean by stat data alone, and leaves nothing behind when it is cut short.
//!
//! Skipped, visibly, where no such file system can be mounted.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
#[path = "common/volume.rs"]
mod volume;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use common::{BINARY, Sandbox};
use volume::Volume;

/// A repository with some files, build output that git ignores, and the workspace `a`.
fn seeded(folder: &Path) -> Sandbox {
    let sandbox = Sandbox::new_in(folder);
    for n in 0..20 {
        sandbox.write(format!("d{}/e/f{n}", n % 4), vec![b'a' + n; 9000]);
    }
    sandbox.write("run.sh", "#!/bin/sh\n");
    sandbox.write("empty", "");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(sandbox.repo().join("run.sh"), mode).unwrap();
    std::os::unix::fs::symlink("d1/e", sandbox.repo().join("l")).unwrap();
    sandbox.write(".gitignore", "target/\n");
    // Files as new as the index are hashed again, whoever wrote them.
    let mut touch = sandbox.command("sh");
    touch.args([
        "-c",
        "find . -name .git -prune -o -type f -exec touch -d '1 hour ago' {} +",
    ]);
    let _ = sandbox.outcome(touch, b"").success();
    sandbox.commit("one");
    sandbox.write("target/debug/out", "built\n");
    sandbox.write("d1/target/out", "built\n");
    create(&sandbox, "a");
    sandbox
}

fn create(sandbox: &Sandbox, agent: &str) {
    let _ = sandbox.vws(&["overlay", "create", agent]).success();
}

/// Lays the workspace out and says by what and why.
fn lay_out(sandbox: &Sandbox, agent: &str, backend: &str) -> (PathBuf, String, String) {
    let option = format!("--backend={backend}");
    let out = sandbox.vws(&["materialize", agent, &option]).success();
    let text = String::from_utf8(out.stdout().to_vec()).unwrap();
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().trim().to_owned()
    };
    (
        field("directory ").into(),
        field("backend "),
        field("reason "),
    )
}

fn git_in(sandbox: &Sandbox, directory: &Path, args: &[&str]) -> String {
    let mut command = sandbox.command("git");
    command.current_dir(directory).args(args);
    let outcome = sandbox.outcome(command, b"").success();
    String::from_utf8_lossy(outcome.stdout()).into_owned()
}

/// Git finds the directory clean, and by stat data alone.
fn assert_clean_by_stat(sandbox: &Sandbox, at: &Path) {
    assert_eq!(git_in(sandbox, at, &["diff-files"]), "");
    let status = ["--no-optional-locks", "status", "--porcelain"];
    assert_eq!(git_in(sandbox, at, &status), "");
    let index = git_in(sandbox, at, &["rev-parse", "--git-path", "index"]);
    let written = fs::metadata(at.join(index.trim_end())).unwrap().mtime();
    for path in git_in(sandbox, at, &["ls-files", "-z"]).split_terminator('\0') {
        let meta = fs::symlink_metadata(at.join(path)).unwrap();
        assert!(meta.mtime() < written, "{path} is racy");
    }
}

/// Nothing of a directory is left: no folder, no git dir, no ref.
fn assert_nothing_left(sandbox: &Sandbox, agent: &str) {
    let root = sandbox.repo().join(".relo/worktrees");
    for place in [root.join(agent), root.join(".new").join(agent)] {
        assert!(fs::symlink_metadata(&place).is_err(), "{}", place.display());
    }
    let trash = fs::read_dir(root.join(".trash")).map_or(0, Iterator::count);
    assert_eq!(trash, 0);
    assert!(!sandbox.repo().join(".git/worktrees").exists());
    let exec = format!("refs/relo/vws/{agent}/exec");
    assert_eq!(sandbox.git_text(&["for-each-ref", &exec]), "");
    for shelf in ["templates", "snapshots", "warm"] {
        let shelf = sandbox.repo().join(".git/relo").join(shelf);
        for entry in fs::read_dir(shelf).into_iter().flatten().flatten() {
            assert!(
                !entry.file_name().to_string_lossy().starts_with('.'),
                "{entry:?}"
            );
        }
    }
}

/// On each file system that shares blocks.
fn on_each(test: impl Fn(&str, &Path)) {
    for kind in ["xfs", "btrfs"] {
        if let Some(volume) = Volume::new(kind) {
            test(kind, volume.path());
        }
    }
}

#[test]
fn what_is_shared_is_what_git_has() {
    on_each(|kind, folder| {
        let sandbox = seeded(folder);
        let (at, backend, reason) = lay_out(&sandbox, "a", "auto");
        let how = if kind == "btrfs" {
            "snapshots"
        } else {
            "clones"
        };
        assert_eq!(
            (&*backend, &*reason),
            ("reflink", &*format!("auto: {how} work here"))
        );
        assert_clean_by_stat(&sandbox, &at);
        // The user's build output is there, and is nobody's work; files keep the user's times.
        assert_eq!(fs::read(at.join("target/debug/out")).unwrap(), b"built\n");
        assert_eq!(fs::read(at.join("d1/target/out")).unwrap(), b"built\n");
        for path in ["d0/e/f0", "run.sh", "target/debug/out"] {
            let [own, users] =
                [&at, &sandbox.repo()].map(|top| fs::metadata(top.join(path)).unwrap());
            assert_eq!(
                (own.mtime(), own.mtime_nsec()),
                (users.mtime(), users.mtime_nsec()),
                "{path}"
            );
            assert_eq!(own.mode(), users.mode(), "{path}");
        }
        // The template is not written to, and neither is the user's checkout.
        fs::write(at.join("d0/e/f0"), "edited\n").unwrap();
        fs::remove_file(at.join("d1/e/f1")).unwrap();
        fs::write(at.join("new"), "new\n").unwrap();
        let _ = sandbox.vws(&["settle", "a"]).success();
        assert_nothing_left(&sandbox, "a");
        let names = sandbox.git_text(&["diff", "--name-status", "HEAD", "refs/relo/vws/a/overlay"]);
        assert_eq!(names, "M\td0/e/f0\nD\td1/e/f1\nA\tnew", "{kind}");
        // A tree that is near: what differs is written, what is gone goes, with its folder.
        sandbox.git(&["rm", "-rq", "d2"]);
        sandbox.write("d3/e/f3", "other\n");
        sandbox.write("d2", "now a file\n");
        sandbox.commit("two");
        create(&sandbox, "b");
        for (agent, revision) in [("a", "refs/relo/vws/a/overlay"), ("b", "HEAD")] {
            let (at, backend, _) = lay_out(&sandbox, agent, "reflink");
            assert_eq!(backend, "reflink");
            assert_eq!(
                git_in(&sandbox, &at, &["diff", "--raw", revision]),
                "",
                "{kind} {agent}"
            );
            assert_eq!(git_in(&sandbox, &at, &["status", "--porcelain"]), "");
            let _ = sandbox.vws(&["settle", agent]).success();
        }
        let shelf = fs::read_dir(sandbox.repo().join(".git/relo/templates")).unwrap();
        assert_eq!(shelf.count(), 1, "one template serves them all");
        assert_nothing_left(&sandbox, "b");
        if kind == "btrfs" {
            let left = std::process::Command::new("btrfs")
                .args(["subvolume", "list"])
                .arg(folder)
                .output()
                .unwrap();
            let left = String::from_utf8_lossy(&left.stdout).into_owned();
            assert_eq!(left.lines().count(), 1, "only the template's: {left}");
            let _ = sandbox
                .vws(&["template", "prune", "--max-bytes=0"])
                .success();
            assert_eq!(
                fs::read_dir(sandbox.repo().join(".git/relo/snapshots"))
                    .unwrap()
                    .count(),
                0
            );
        }
    });
}

/// Output that the directory's own revision does not ignore would be captured as the agent's work.
#[test]
fn output_that_is_not_ignored_there_stays_away() {
    on_each(|kind, folder| {
        let sandbox = seeded(folder);
        let _ = sandbox
            .vws_with_input(&["overlay", "write", "a", ".gitignore"], b"d1/target/\n")
            .success();
        let (at, ..) = lay_out(&sandbox, "a", "reflink");
        assert!(!at.join("target").exists(), "{kind}");
        assert!(at.join("d1/target/out").exists(), "{kind}");
        let _ = sandbox.vws(&["settle", "a"]).success();
        let names = sandbox.git_text(&["diff", "--name-only", "HEAD", "refs/relo/vws/a/overlay"]);
        assert_eq!(names, ".gitignore");
    });
}

#[test]
fn a_kill_at_any_point_leaves_what_the_next_call_clears() {
    on_each(|kind, folder| {
        let sandbox = seeded(folder);
        let trace = sandbox.root().join("trace");
        let run = |fault: &str| {
            let mut command = sandbox.command(BINARY);
            command
                .args(["materialize", "a", "--backend=reflink"])
                .env("GIT_VWS_FAULT", fault);
            sandbox.outcome(command, b"")
        };
        let _ = run(&format!("trace:{}", trace.display())).success();
        let _ = sandbox.vws(&["settle", "a"]).success();
        let points = fs::read_to_string(trace).unwrap();
        let reached = |name: &str| points.lines().any(|line| line == name);
        assert!(reached("template-cloned"), "{points}");
        assert_eq!(reached("snapshot-made"), kind == "btrfs");
        for point in [
            "layout-begun",
            "snapshot-made",
            "template-cloned",
            "layout-filled",
            "layout-recorded",
        ] {
            if !reached(point) {
                continue;
            }
            assert_eq!(run(point).code(), None, "{point}");
            let (at, backend, _) = lay_out(&sandbox, "a", "reflink");
            assert_eq!(backend, "reflink");
            assert_clean_by_stat(&sandbox, &at);
            assert_eq!(run(point).code(), Some(0), "it is open: {point}");
            let _ = sandbox.vws(&["settle", "a"]).success();
            assert_nothing_left(&sandbox, "a");
        }
        // A template, or its twin, that was cut short is made anew.
        let _ = sandbox
            .vws(&["template", "prune", "--max-bytes=0"])
            .success();
        let snapshots = (kind == "btrfs").then_some("snapshots");
        for name in std::iter::once("templates").chain(snapshots) {
            let shelf = sandbox.repo().join(".git/relo").join(name);
            let tree = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
            fs::create_dir_all(shelf.join(format!(".new-{tree}/files/half"))).unwrap();
        }
        let (at, ..) = lay_out(&sandbox, "a", "reflink");
        assert_clean_by_stat(&sandbox, &at);
        let _ = sandbox.vws(&["settle", "a"]).success();
        assert_nothing_left(&sandbox, "a");
    });
}

/// The file system is taken to share blocks, and does not: `auto` falls to the next and says so once.
#[test]
fn a_back_end_that_fails_leaves_the_tree_to_the_next() {
    let sandbox = seeded(&std::env::temp_dir());
    let (_, backend, reason) = lay_out(&sandbox, "a", "auto");
    let _ = sandbox.vws(&["settle", "a"]).success();
    if backend == "reflink" {
        println!("skipped: the temporary folder shares blocks");
        return;
    }
    assert!(
        reason.starts_with("auto: no reflink: blocks cannot be shared"),
        "{reason}"
    );
    let refused = sandbox.vws(&["materialize", "a", "--backend=reflink"]);
    let said = String::from_utf8_lossy(refused.stderr()).into_owned();
    assert!(
        said.starts_with("fatal: back end 'reflink' does not work here: blocks cannot be shared"),
        "{said}"
    );
    assert!(said.trim_end().ends_with("[unsupported]"), "{said}");
    assert_nothing_left(&sandbox, "a");
    let probes = sandbox.repo().join(".git/relo/probes");
    let answer = fs::read_dir(&probes).unwrap().map(Result::unwrap);
    let answer = answer
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().contains("reflink"));
    let answer = answer.unwrap();
    let said = fs::read_to_string(&answer).unwrap();
    let boot = said.lines().next().unwrap();
    for (round, told) in [true, false].into_iter().enumerate() {
        fs::write(&answer, format!("{boot}\nclones")).unwrap();
        let out = sandbox.vws(&["materialize", "a"]).success();
        let hint = String::from_utf8_lossy(out.stderr()).into_owned();
        assert_eq!(
            hint.contains("hint: laid out by 'checkout': 'reflink' failed: "),
            told,
            "{round}: {hint}"
        );
        assert!(!answer.exists(), "it is tried again the next time");
        let (at, backend, reason) = lay_out(&sandbox, "a", "auto");
        assert_eq!(backend, "checkout");
        assert!(reason.starts_with("auto: reflink failed: "), "{reason}");
        assert_clean_by_stat(&sandbox, &at);
        let _ = sandbox.vws(&["settle", "a"]).success();
        assert_nothing_left(&sandbox, "a");
    }
}

/// A template that lies ready is copied, with its times: a file that it has lost is written anew, and one
/// that has lost all is passed over.
#[test]
fn a_ready_template_is_copied() {
    let sandbox = seeded(&std::env::temp_dir());
    let _ = sandbox.vws(&["template", "warm"]).success();
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "d0/e/f0"], b"edited\n")
        .success();
    for lost in ["", "files/d1/e/f5", "files"] {
        let shelf = sandbox.repo().join(".git/relo/templates");
        let template = fs::read_dir(shelf).unwrap().next().unwrap().unwrap().path();
        if !lost.is_empty() {
            fs::remove_file(template.join("bytes")).unwrap();
            fs::rename(template.join(lost), template.join("files.lost")).unwrap();
            let _ = fs::remove_file(template.join("files.lost"));
        }
        let (at, backend, _) = lay_out(&sandbox, "a", "checkout");
        assert_eq!(backend, "checkout");
        assert_clean_by_stat(&sandbox, &at);
        assert_eq!(
            git_in(&sandbox, &at, &["diff", "--raw", "refs/relo/vws/a/overlay"]),
            ""
        );
        let [own, users] =
            [&at, &sandbox.repo()].map(|top| fs::metadata(top.join("run.sh")).unwrap());
        assert_eq!(own.mtime_nsec() == users.mtime_nsec(), lost != "files");
        assert!(!at.join("target").exists());
        let _ = sandbox.vws(&["settle", "a"]).success();
    }
}

/// Files are taken over in batches, across small folders and in parts of large ones.
#[test]
fn folders_of_any_shape_are_taken_over() {
    let check = |folder: &Path, backend: &str| {
        let sandbox = Sandbox::new_in(folder);
        for n in 0..300_usize {
            sandbox.write(format!("many/f{n}"), vec![b'a' + (n % 26) as u8; n * 31]);
        }
        for n in 0..50 {
            sandbox.write(format!("one{n}/f"), format!("{n}\n"));
            if n % 3 == 0 {
                sandbox.write(format!("one{n}/in/f"), format!("in {n}\n"));
            }
        }
        sandbox.write(format!("{}f", "deep/".repeat(12)), "deep\n");
        for size in [0, 65_535, 65_536, 65_537, 300_000] {
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            sandbox.write(format!("size/{size}"), bytes);
        }
        let mut touch = sandbox.command("sh");
        let script = "find . -name .git -prune -o -type f -exec touch -d '1 hour ago' {} +";
        touch.args(["-c", script]);
        let _ = sandbox.outcome(touch, b"").success();
        sandbox.commit("one");
        create(&sandbox, "a");
        let _ = sandbox.vws(&["template", "warm"]).success();
        let (at, by, _) = lay_out(&sandbox, "a", backend);
        assert_eq!(by, backend);
        assert_clean_by_stat(&sandbox, &at);
        let listed = git_in(&sandbox, &at, &["ls-files", "-z"]);
        let paths: Vec<&str> = listed.split_terminator('\0').collect();
        assert_eq!(paths.len(), 300 + 50 + 17 + 1 + 5);
        for path in paths {
            let [own, users] = [&at, &sandbox.repo()].map(|top| top.join(path));
            assert!(
                fs::read(&own).unwrap() == fs::read(&users).unwrap(),
                "{path}"
            );
            let [own, users] = [own, users].map(|file| fs::metadata(file).unwrap());
            assert_eq!(own.mtime(), users.mtime(), "{path}");
            assert_eq!(own.mtime_nsec(), users.mtime_nsec(), "{path}");
        }
    };
    check(&std::env::temp_dir(), "checkout");
    on_each(|_, volume| check(volume, "reflink"));
}
