//! Field reports about lost work, step by step through `git vws`: BR-13, 14, 31 to 34, 36, 38, 39 and 45.
//! The others of their kind have their tests elsewhere: BR-35 in `storm`, BR-37 in `layout`, BR-43 in
//! `journal`.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;
#[path = "common/volume.rs"]
mod volume;

use std::fs;
use std::time::SystemTime;

use common::{Outcome, Sandbox};
use git_vws::disk::Volume;
use library::{litter, long};
use volume::Volume as Disk;

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", "base\n");
    sandbox.write("g", "g\n");
    sandbox.commit("one");
    sandbox
}

#[track_caller]
fn done(sandbox: &Sandbox, args: &[&str]) -> Outcome {
    sandbox.vws(args).success()
}

#[track_caller]
fn write(sandbox: &Sandbox, agent: &str, path: &str, bytes: &str) {
    let args = ["overlay", "write", agent, path];
    let _ = sandbox.vws_with_input(&args, bytes.as_bytes()).success();
}

#[track_caller]
fn read(sandbox: &Sandbox, agent: &str, path: &str) -> String {
    let out = done(sandbox, &["overlay", "read", agent, path]);
    String::from_utf8(out.stdout().to_vec()).unwrap()
}

fn refs(sandbox: &Sandbox) -> String {
    sandbox.git_text(&["for-each-ref", "--format=%(refname)"])
}

fn collect(sandbox: &Sandbox) {
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    sandbox.git(&["repack", "-q", "-a", "-d", "-f"]);
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
}

#[test]
fn br_13_a_stale_index_lock_is_nobodys_business_and_the_users_is_not_taken() {
    let sandbox = started();
    sandbox.write(".git/index.lock", "");
    sandbox.write("f", "dirty\n");
    let index = fs::metadata(sandbox.repo().join(".git/index"))
        .unwrap()
        .modified()
        .unwrap();
    let out = done(&sandbox, &["overlay", "create", "a"]);
    assert!(out.to_string().contains("uncommitted 1\n"), "{out}");
    assert_eq!(read(&sandbox, "a", "f"), "dirty\n");
    write(&sandbox, "a", "g", "agent\n");
    let _ = done(&sandbox, &["propose", "a"]);
    let _ = done(&sandbox, &["accept", "a"]);
    assert_eq!(sandbox.read("g"), b"agent\n");
    let now = fs::metadata(sandbox.repo().join(".git/index"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(now, index);
    fs::remove_file(sandbox.repo().join(".git/index.lock")).unwrap();
    // Beside the user's own use of the index nobody fails.
    let rounds = if long() { 200 } else { 25 };
    std::thread::scope(|scope| {
        let user = scope.spawn(|| {
            for _ in 0..rounds {
                sandbox.git(&["add", "f"]);
                sandbox.git(&["reset", "-q"]);
            }
        });
        while !user.is_finished() {
            let _ = done(&sandbox, &["base"]);
            let _ = done(&sandbox, &["overlay", "list"]);
        }
        user.join().unwrap();
    });
}

#[test]
fn br_14_a_failing_step_never_publishes_an_old_tree() {
    let sandbox = started();
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    let _ = done(&sandbox, &["materialize", "a"]);
    let place = ".relo/worktrees/a";
    sandbox.write(format!("{place}/f"), "v1\n");
    let _ = done(&sandbox, &["capture", "a"]);
    sandbox.write(format!("{place}/f"), "v2\n");
    sandbox.git(&["init", "-q", &format!("{place}/sub")]);
    let out = done(&sandbox, &["capture", "a"]);
    let told = out.to_string();
    assert_eq!(
        told.matches("left-out nested_repository sub").count(),
        1,
        "{told}"
    );
    assert!(told.contains("revision 3\n"), "{told}");
    assert_eq!(read(&sandbox, "a", "f"), "v2\n");
    // A failure: no new revision, the directory stays. (A folder in the place of git's objects would
    // do; a filter that is required and fails is what users have.)
    sandbox.write(".git/info/attributes", "*.z filter=gone\n");
    sandbox.git(&["config", "filter.gone.clean", "false"]);
    sandbox.git(&["config", "filter.gone.required", "true"]);
    sandbox.write(format!("{place}/f"), "v3\n");
    sandbox.write(format!("{place}/n.z"), "z\n");
    for command in ["capture", "settle"] {
        let out = sandbox.vws(&[command, "a"]);
        assert_eq!(out.code(), Some(128), "{out}");
    }
    let out = sandbox.vws(&["overlay", "dispose", "--force", "a"]);
    assert_eq!(out.code(), Some(128), "{out}");
    let _ = sandbox.vws(&["sweep"]);
    assert_eq!(sandbox.read(format!("{place}/f")), b"v3\n");
    let at = sandbox.git_text(&["log", "-1", "--format=%s", "refs/relo/vws/a/overlay"]);
    assert!(at.starts_with("vws a r3"), "{at}");
    sandbox.git(&["config", "filter.gone.required", "false"]);
    let out = sandbox.vws(&["settle", "a", "--force"]);
    assert_eq!(out.code(), Some(0), "{out}");
    assert_eq!(read(&sandbox, "a", "f"), "v3\n");
}

#[test]
fn br_31_a_ref_in_the_way_is_found_before_anything_is_made() {
    for blocking in ["relo", "relo/a/x"] {
        let sandbox = started();
        sandbox.git(&["branch", blocking]);
        let before = refs(&sandbox);
        let out = sandbox.vws(&["overlay", "create", "a"]);
        assert_eq!(out.code(), Some(128), "{out}");
        assert!(
            out.to_string().contains(&format!("refs/heads/{blocking}'")),
            "{out}"
        );
        assert_eq!(refs(&sandbox), before);
        assert_eq!(litter(&sandbox), [""; 0].map(std::path::PathBuf::from));
    }
    let sandbox = started();
    for agent in ["a", "a.b"] {
        let _ = done(&sandbox, &["overlay", "create", agent]);
    }
    assert_eq!(sandbox.vws(&["overlay", "create", "a/b"]).code(), Some(129));
}

#[test]
fn br_32_what_a_power_cut_leaves_is_named_and_cleared() {
    let sandbox = started();
    for agent in ["a", "b", "c"] {
        let _ = done(&sandbox, &["overlay", "create", agent]);
        write(&sandbox, agent, "f", agent);
    }
    // An object of b's alone, loose and empty, and a ref of a's.
    let tree = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/overlay^{tree}"]);
    for pack in fs::read_dir(sandbox.repo().join(".git/objects/pack")).unwrap() {
        let pack = pack.unwrap().path();
        let aside = sandbox.root().join(pack.file_name().unwrap());
        fs::rename(&pack, &aside).unwrap();
        if pack.extension() == Some("pack".as_ref()) {
            sandbox.git_with_input(&["unpack-objects", "-q"], &fs::read(&aside).unwrap());
        }
    }
    let object = format!(".git/objects/{}/{}", &tree[..2], &tree[2..]);
    fs::remove_file(sandbox.repo().join(&object)).unwrap();
    sandbox.write(&object, "");
    sandbox.write(".git/refs/relo/vws/a/overlay", "");
    let fails = |args: &[&str]| {
        !sandbox
            .command("git")
            .args(args)
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(fails(&["gc", "-q"]), "nothing to repair");
    let out = sandbox.vws(&["recover"]);
    let told = out.to_string();
    assert_eq!(out.code(), Some(1), "{told}");
    assert!(told.contains("damaged refs/relo/vws/a/overlay\n"), "{told}");
    assert!(told.contains("damaged refs/relo/vws/b/overlay\n"), "{told}");
    assert!(!told.contains("refs/relo/vws/c"), "{told}");
    write(&sandbox, "c", "f", "and on");
    for agent in ["a", "b"] {
        let _ = done(&sandbox, &["recover", "--clear", agent]);
    }
    let _ = done(&sandbox, &["recover"]);
    fs::remove_file(sandbox.repo().join(&object)).unwrap();
    sandbox.git(&["gc", "-q", "--prune=now"]);
    sandbox.git(&["fetch", "-q", "."]);
    let _ = done(&sandbox, &["overlay", "create", "--from=trash/a", "a"]);
    assert_eq!(read(&sandbox, "a", "f"), "a");
}

/// Whether the sandbox is on a file system that keeps the order of names by itself, and the call that puts
/// content on disk there.
fn order(sandbox: &Sandbox) -> (bool, &'static str) {
    let volume = Volume::of(&sandbox.repo(), &sandbox.repo().join(".git"));
    match volume.is_some_and(Volume::keeps_content) {
        true => (true, "sync_file_range("),
        false => (volume.is_some(), "sync("),
    }
}

#[test]
fn br_32_only_a_file_system_with_a_journal_keeps_the_order() {
    let keeps = |top: &std::path::Path| Volume::of(top, top).map(Volume::keeps_content);
    let (Some(ext4), Some(xfs)) = (Disk::new("ext4"), Disk::new("xfs")) else {
        return;
    };
    let unjournaled = Disk::unjournaled().unwrap();
    assert_eq!(keeps(ext4.path()), Some(true));
    assert_eq!(keeps(xfs.path()), Some(false));
    assert_eq!(keeps(unjournaled.path()), None);
}

/// The flushes and renames of one call, in order; `None` where nothing can be traced.
fn disk_steps(sandbox: &Sandbox, args: &[&str]) -> Option<String> {
    let log = sandbox.root().join("trace");
    let traced = sandbox
        .command("strace")
        .args(["-f", "-y", "-o"])
        .arg(&log)
        .args([
            "-e",
            "trace=fsync,fdatasync,sync_file_range,rename,renameat,renameat2,unlinkat,write",
        ])
        .arg(env!("CARGO_BIN_EXE_git-vws"))
        .args(args)
        .output();
    if !traced.is_ok_and(|out| out.status.success()) {
        println!("skipped: strace is missing or may not trace");
        return None;
    }
    Some(fs::read_to_string(&log).unwrap())
}

/// The places in a trace at which this is done, the first and the last.
fn places(log: &str, call: &str, what: &str) -> (usize, usize) {
    let lines = log.lines().enumerate();
    let mut hits = lines.filter(|(_, line)| line.contains(call) && line.contains(what));
    let first = hits.next();
    let (first, _) = first.unwrap_or_else(|| panic!("no {call} of {what}: {log}"));
    (first, hits.last().map_or(first, |(at, _)| at))
}

#[test]
fn br_32_objects_are_flushed_before_the_ref_and_the_folder_after_it() {
    let sandbox = started();
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    let Some(log) = disk_steps(&sandbox, &["overlay", "write", "a", "f"]) else {
        return;
    };
    // Where the file system keeps the order of names, content is only written out before them.
    let (in_order, content) = order(&sandbox);
    let at = |call, what| places(&log, call, what).0;
    let last = |call, what| places(&log, call, what).1;
    let contents = [".pack>", ".idx.tmp>", "overlay.lock>"].map(|file| last(content, file));
    let pack_last = at("sync(", "objects/pack>");
    let moved = at("rename", "overlay.lock\", ");
    let steps = [
        *contents.iter().max().unwrap(),
        at("rename", ".idx.tmp\", "),
        pack_last.min(moved),
        pack_last.max(moved),
        at("sync(", ".git/refs/relo/vws/a>"),
    ];
    assert!(steps.is_sorted(), "{steps:?} {log}");
    assert!(pack_last < moved || in_order, "{log}");
}

#[test]
fn br_32_an_accept_touches_no_file_before_its_journal_is_on_disk() {
    let sandbox = started();
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    write(&sandbox, "a", "f", "new\n");
    let _ = done(&sandbox, &["propose", "a"]);
    let Some(log) = disk_steps(&sandbox, &["accept", "a"]) else {
        return;
    };
    let first = |call, what| places(&log, call, what).0;
    let last = |call, what| places(&log, call, what).1;
    let journal = ".git/refs/relo/journal>";
    let swap = first("renameat2", "RENAME_EXCHANGE");
    let (in_order, content) = order(&sandbox);
    let before = [
        first(content, ".pack>"),
        first("rename", "journal/1.lock\", "),
        last(content, ".vws-1-0.new>"),
        swap,
    ];
    assert!(before.is_sorted(), "{before:?} {log}");
    let decided = first("rename", "changes/a/2.lock\", ");
    if !in_order {
        for also in ["objects/pack>", journal] {
            assert!(first("sync(", also) < swap, "{log}");
        }
        // The decisions, when the working tree is on disk.
        let top = first("sync(", &format!("{}>", sandbox.repo().display()));
        assert!(swap < top && top < decided, "{log}");
    }
    // The end of the journal's entry, and then all of it.
    let after = [
        swap,
        decided,
        last("rename", "journal/1.lock\", "),
        last("sync(", journal),
    ];
    assert!(after.is_sorted(), "{after:?} {log}");
    assert!(last("sync(", "refs/relo/changes/a>") > decided, "{log}");
}

#[test]
fn br_32_a_run_tells_of_nothing_before_all_of_it_is_on_disk() {
    let sandbox = started();
    let args = ["run", "a", "--", "sh", "-c", "echo new >f; echo more >n"];
    let Some(log) = disk_steps(&sandbox, &args) else {
        return;
    };
    let first = |call, what| places(&log, call, what).0;
    let last = |call, what| places(&log, call, what).1;
    let told = first("write(", "\"proposed M");
    let (in_order, content) = order(&sandbox);
    for name in ["vws/a/overlay", "heads/relo/a", "changes/a/2"] {
        let (held, moves) = (format!("{name}.lock>"), format!("{name}.lock\", "));
        let moved = places(&log, "rename", &moves).0;
        assert!(places(&log, content, &held).0 < moved, "{log}");
    }
    // What says which directory stands there has its content before its name.
    let record = first(content, "worktrees/relo-a/.vws-new-");
    assert!(
        record < first("renameat", "worktrees/relo-a/vws-directory\""),
        "{log}"
    );
    // The three publishes of one run wait for their names together, where the file system keeps their order.
    for (folder, name) in [
        ("refs/relo/vws/a>", "vws/a/overlay"),
        ("refs/heads/relo>", "heads/relo/a"),
        ("refs/relo/changes/a>", "changes/a/2"),
    ] {
        let moved = places(&log, "rename", &format!("{name}.lock\", ")).1;
        let flushed = last("sync(", folder);
        assert!(moved < flushed && flushed < told, "{log}");
    }
    let of_the_folder = |line: &&str| line.contains("sync(") && line.contains("relo/vws/a>");
    let flushes = log.lines().filter(of_the_folder).count();
    match in_order {
        true => assert_eq!(flushes, 1, "{log}"),
        // Created, marked, captured, proposed; and the capture is on disk before the files go.
        false => assert!(flushes >= 4, "{log}"),
    }
}

#[test]
fn br_33_a_collection_between_any_two_steps_takes_nothing() {
    let sandbox = started();
    let step = |args: &[&str]| {
        let _ = done(&sandbox, args);
        collect(&sandbox);
    };
    step(&["overlay", "create", "a"]);
    write(&sandbox, "a", "view", "view\n");
    collect(&sandbox);
    step(&["snap", "a"]);
    write(&sandbox, "a", "view", "view 2\n");
    step(&["materialize", "a"]);
    sandbox.write(".relo/worktrees/a/f", "agent\n");
    sandbox.write(".relo/worktrees/a/no", "rejected\n");
    step(&["capture", "a"]);
    step(&["propose", "a"]);
    step(&["settle", "a"]);
    let rejected = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay:no"]);
    for revision in ["1", "2", "3", "4"] {
        step(&["overlay", "restore", "a", revision]);
    }
    step(&["reject", "a", "--", "no"]);
    step(&["accept", "a"]);
    assert_eq!(sandbox.read("f"), b"agent\n");
    assert_eq!(sandbox.git(&["cat-file", "blob", &rejected]), b"rejected\n");
    step(&["undo"]);
    assert_eq!(sandbox.read("f"), b"base\n");
    step(&["accept", "a"]);
    step(&["undo"]);
    step(&["accept", "a"]);
    assert_eq!(sandbox.read("view"), b"view 2\n");
    assert_eq!(sandbox.git(&["cat-file", "blob", &rejected]), b"rejected\n");
    step(&["recover"]);
}

#[test]
fn br_34_refs_go_with_the_last_decision() {
    let sandbox = started();
    let (agents, captures) = if long() { (10, 200) } else { (3, 15) };
    for n in 0..agents {
        let agent = format!("a{n}");
        let _ = done(&sandbox, &["overlay", "create", &agent]);
        let _ = done(&sandbox, &["materialize", &agent]);
        for m in 0..captures {
            sandbox.write(format!(".relo/worktrees/{agent}/{agent}"), format!("{m}\n"));
            let _ = done(&sandbox, &["capture", &agent]);
        }
        let _ = done(&sandbox, &["settle", &agent]);
        let _ = done(&sandbox, &["propose", &agent]);
    }
    let held = refs(&sandbox)
        .lines()
        .filter(|name| name.contains("relo"))
        .count();
    assert!(held <= agents * 6, "{held} refs: {}", refs(&sandbox));
    let _ = done(&sandbox, &["accept", "--all"]);
    let left = refs(&sandbox);
    assert!(
        !left.contains("refs/relo/vws/") && !left.contains("refs/heads/relo/"),
        "{left}"
    );
    let left = left.lines().filter(|name| name.contains("relo")).count();
    assert!(left <= agents + 1, "{left} refs");
    sandbox.git(&["init", "-q", "--bare", "../mirror.git"]);
    sandbox.git(&["push", "-q", "--mirror", "../mirror.git"]);
    let hidden = sandbox.git_text(&["log", "--exclude=refs/relo/*", "--all", "--format=%s"]);
    assert_eq!(hidden, "one");
}

#[test]
fn br_36_who_moves_a_workspace_imports_its_directory_or_refuses() {
    for command in [
        &["overlay", "discard", "a"][..],
        &["overlay", "restore", "a", "1"],
        &["overlay", "dispose", "a"],
        &["settle", "a"],
        &["propose", "a"],
        &["overlay", "create", "b", "--from=a"],
        &["recover"],
        &["sweep"],
    ] {
        let sandbox = started();
        let _ = done(&sandbox, &["overlay", "create", "a"]);
        let _ = done(&sandbox, &["materialize", "a"]);
        sandbox.write(".relo/worktrees/a/f", "unsaved\n");
        sandbox.write(".relo/worktrees/a/new", "untracked\n");
        let out = sandbox.vws(command);
        assert!(matches!(out.code(), Some(0 | 1)), "{command:?}: {out}");
        assert_eq!(read(&sandbox, "a", "f"), "unsaved\n", "{command:?}: {out}");
        assert_eq!(
            read(&sandbox, "a", "new"),
            "untracked\n",
            "{command:?}: {out}"
        );
    }
}

#[test]
fn br_38_nothing_that_nobody_saved_goes_with_a_clean_up() {
    let sandbox = started();
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    let _ = done(&sandbox, &["materialize", "a"]);
    let file = sandbox.repo().join(".relo/worktrees/a/only-here");
    fs::write(&file, "untracked\n").unwrap();
    let old = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::open(&file).unwrap().set_modified(old).unwrap();
    let out = done(&sandbox, &["sweep"]);
    assert!(out.to_string().contains("fate imported\n"), "{out}");
    assert!(file.exists());
    // What cannot be captured, and is nowhere else, keeps the directory.
    sandbox.git(&["init", "-q", ".relo/worktrees/a/nested"]);
    sandbox.write(".relo/worktrees/a/nested/work", "mine\n");
    for command in [
        &["settle", "a"][..],
        &["overlay", "dispose", "a"],
        &["sweep"],
    ] {
        let _ = sandbox.vws(command);
        assert_eq!(
            sandbox.read(".relo/worktrees/a/nested/work"),
            b"mine\n",
            "{command:?}"
        );
    }
    fs::remove_dir_all(sandbox.repo().join(".relo/worktrees/a/nested")).unwrap();
    let out = sandbox.vws(&["overlay", "dispose", "a"]);
    assert_eq!(out.code(), Some(1), "{out}");
    assert!(
        file.exists() && out.to_string().contains("[conflict]"),
        "{out}"
    );
    let out = done(&sandbox, &["overlay", "dispose", "a", "--force"]);
    assert!(
        out.to_string().contains("trash refs/relo/trash/a/2\n"),
        "{out}"
    );
    assert!(!file.exists());
    collect(&sandbox);
    let _ = done(&sandbox, &["sweep"]);
    let _ = done(&sandbox, &["overlay", "create", "b", "--from=trash/a"]);
    assert_eq!(read(&sandbox, "b", "only-here"), "untracked\n");
}

#[test]
fn br_39_nobody_elses_worktree_is_unregistered() {
    let sandbox = started();
    sandbox.git(&["worktree", "add", "-q", "../u"]);
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    let _ = done(&sandbox, &["materialize", "a"]);
    let (here, away) = (sandbox.root().join("u"), sandbox.root().join("away"));
    fs::rename(&here, &away).unwrap();
    // One of the user's own with a name like ours.
    sandbox.git(&["worktree", "add", "-q", "../relo-b"]);
    fs::rename(sandbox.root().join("relo-b"), sandbox.root().join("away-b")).unwrap();
    let _ = done(&sandbox, &["recover"]);
    let _ = done(&sandbox, &["settle", "a"]);
    let _ = done(&sandbox, &["sweep"]);
    let _ = done(&sandbox, &["overlay", "dispose", "a"]);
    let _ = done(&sandbox, &["recover", "--force"]);
    fs::rename(&away, &here).unwrap();
    fs::rename(sandbox.root().join("away-b"), sandbox.root().join("relo-b")).unwrap();
    for user in ["../u", "../relo-b"] {
        sandbox.git(&["-C", user, "status"]);
    }
    let listed = sandbox.git_text(&["worktree", "list", "--porcelain"]);
    assert_eq!(listed.matches("worktree ").count(), 3, "{listed}");
}

/// With the kill after the first write; the full disk at the second is in `storm_job`.
#[cfg(any(debug_assertions, feature = "fault-points"))]
#[test]
fn br_45_a_group_is_written_as_a_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    for (name, bytes) in [("f", "f\n"), ("h", "1\n2\n3\n"), ("log.md", "top\n")] {
        sandbox.write(name, bytes);
    }
    sandbox.commit("one");
    let script = "echo n >n; echo agent >>f; echo mine >>log.md; printf '1\\nagent\\n3\\n' >h";
    let _ = done(&sandbox, &["run", "a", "--", "sh", "-c", script]);
    sandbox.write("h", "1\nuser\n3\n");
    sandbox.write("log.md", "top\nuser\n");
    let as_it_was = |what: &str| {
        assert!(!sandbox.repo().join("n").exists(), "{what}");
        assert_eq!(sandbox.read("f"), b"f\n", "{what}");
        assert_eq!(sandbox.read("h"), b"1\nuser\n3\n", "{what}");
        assert_eq!(sandbox.read("log.md"), b"top\nuser\n", "{what}");
        assert_eq!(
            litter(&sandbox),
            [""; 0].map(std::path::PathBuf::from),
            "{what}"
        );
    };
    let out = sandbox.vws(&["accept", "a", "--atomic"]);
    assert_eq!(out.code(), Some(1), "{out}");
    as_it_was("refused");
    let group = ["accept", "a", "--atomic", "--", "n", "f", "log.md"];
    for pass in ["1", "2", "3"] {
        let mut command = sandbox.command("git");
        command
            .arg("vws")
            .args(group)
            .env("GIT_VWS_FAULT", format!("step-swapped:{pass}"));
        let _ = sandbox.outcome(command, b"");
        let out = done(&sandbox, &["recover"]);
        if !out.to_string().contains("ended rolled-back\n") {
            assert_eq!(pass, "3", "{out}");
            assert!(out.to_string().contains("ended finished\n"), "{out}");
            break;
        }
        as_it_was(&format!("killed after write {pass}"));
    }
    // The retry doubles nothing, also where both sides are kept.
    let _ = sandbox.vws(&group);
    assert_eq!(sandbox.read("f"), b"f\nagent\n");
    let log = String::from_utf8(sandbox.read("log.md")).unwrap();
    assert_eq!(log.matches("mine\n").count(), 1, "{log}");
    assert_eq!(log.matches("user\n").count(), 1, "{log}");
}

#[test]
fn the_reflog_is_the_history_and_nothing_hangs_on_it() {
    let sandbox = started();
    let _ = done(&sandbox, &["overlay", "create", "a"]);
    for text in ["two\n", "three\n"] {
        write(&sandbox, "a", "f", text);
    }
    let log = sandbox.git_text(&["reflog", "--format=%gs", "refs/relo/vws/a/overlay"]);
    let logged: Vec<&str> = log.lines().collect();
    assert_eq!(logged.len(), 3, "{log}");
    assert!(logged[0].starts_with("vws a r3: write"), "{log}");
    collect(&sandbox);
    assert_eq!(sandbox.git_text(&["reflog", "refs/relo/vws/a/overlay"]), "");
    for file in ["mirror.json", "events.jsonl"] {
        fs::remove_file(sandbox.repo().join(".git/relo").join(file)).unwrap();
    }
    let _ = done(&sandbox, &["overlay", "restore", "a", "2"]);
    assert_eq!(read(&sandbox, "a", "f"), "two\n");
    let _ = done(&sandbox, &["mirror", "--verify"]);
    assert_eq!(
        done(&sandbox, &["events", "--json"])
            .to_string()
            .matches("workspace.")
            .count(),
        1
    );
    let _ = done(&sandbox, &["recover"]);
}
