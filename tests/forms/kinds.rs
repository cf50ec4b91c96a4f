//! The forms.

use std::fs;
use std::io::Write;

use crate::job::{Site, main_job, main_job_in};
use crate::ways;

/// Says that a form cannot be made here.
pub fn skip(form: &str, why: &str) {
    // Past libtest's capture: a skipped test is to be seen.
    let text = format!("skipped: {form}: {why}\n");
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// A site made with options of `git init`, where this git knows them.
fn initialised(options: &[&str]) -> Option<Site> {
    let probe = Site::empty();
    let args: Vec<&str> = ["init", "-q"]
        .into_iter()
        .chain(options.iter().copied())
        .chain(["../probe"])
        .collect();
    if !probe.git_can(&args) {
        skip(&options.join(" "), "this git does not know it");
        return None;
    }
    let site = Site::with_init(options);
    site.fill();
    site.commit("first");
    site.soil();
    Some(site)
}

#[test]
fn plain_and_sub_folder() {
    let mut site = Site::committed();
    site.soil();
    for way in ways::ALL {
        if way.is_here() {
            main_job_in(&mut site, way);
            site.ok(&["overlay", "dispose", "--force", "keep"]);
        }
    }
    site.cwd = site.top.join("in");
    main_job(&mut site);
}

#[test]
fn reftable() {
    if let Some(mut site) = initialised(&["--ref-format=reftable"]) {
        main_job(&mut site);
    }
}

#[test]
fn reftable_through_a_linked_worktree() {
    if let Some(mut site) = initialised(&["--ref-format=reftable"]) {
        site.git(&["worktree", "add", "-q", "../w"]);
        site.top = site.sandbox.root().join("w");
        site.cwd = site.top.join("in");
        site.soil();
        main_job(&mut site);
    }
}

#[test]
fn sha256() {
    if let Some(mut site) = initialised(&["--object-format=sha256"]) {
        main_job(&mut site);
    }
}

#[test]
fn reftable_and_sha256() {
    if let Some(mut site) = initialised(&["--object-format=sha256", "--ref-format=reftable"]) {
        main_job(&mut site);
    }
}

#[test]
fn linked_worktree_from_its_sub_folder() {
    let mut site = Site::committed();
    site.git(&["worktree", "add", "-q", "../w"]);
    let main = site.top.clone();
    site.top = site.sandbox.root().join("w");
    site.cwd = site.top.join("in");
    site.soil();
    let exclude = main.join(".git/info/exclude");
    fs::write(&exclude, "junk\n").unwrap();
    site.write("junk", "ignored\n");
    main_job(&mut site);
    // Only the linked worktree was worked on.
    assert_eq!(site.git_in(&main, &["status", "--porcelain"]), "");
    assert!(!main.join(".relo").exists());
    // The refs are everybody's.
    site.top = main.clone();
    site.cwd = main;
    let list = site.ok(&["overlay", "list"]);
    assert!(list.starts_with(b"agent keep\n"), "{list}");
}

#[test]
fn shallow() {
    let mut site = Site::committed();
    site.write("f", crate::job::lines(&[(3, "second")]));
    site.commit("second");
    site.git(&["clone", "-q", "--depth=1", &url(&site), "../s"]);
    site.top = site.sandbox.root().join("s");
    site.cwd = site.top.clone();
    assert!(site.top.join(".git/shallow").exists());
    site.soil();
    main_job(&mut site);
}

pub fn url(site: &Site) -> String {
    format!("file://{}", site.top.display())
}

#[test]
fn alternates() {
    let mut site = Site::committed();
    site.git(&["clone", "-q", "--shared", ".", "../s"]);
    site.top = site.sandbox.root().join("s");
    site.cwd = site.top.clone();
    assert!(site.top.join(".git/objects/info/alternates").exists());
    site.soil();
    main_job(&mut site);
}

#[test]
fn sparse() {
    for (form, args) in [
        ("cone", &["set", "--cone", "in"][..]),
        ("no cone", &["set", "--no-cone", "/*", "!/out/"]),
        ("sparse index", &["set", "--cone", "--sparse-index", "in"]),
    ] {
        let mut site = Site::committed();
        let args: Vec<&str> = ["sparse-checkout"].iter().chain(args).copied().collect();
        if !site.git_can(&args) {
            skip(form, "this git does not know it");
            continue;
        }
        assert!(!site.top.join("out").exists(), "{form}");
        site.soil();
        main_job(&mut site);
        assert!(!site.top.join("out").exists(), "{form}");
        // What the checkout leaves out is in the overlay, and cannot be accepted into nowhere.
        site.ok(&["overlay", "create", "c"]);
        assert_eq!(
            site.ok(&["overlay", "read", "c", "out/h"]),
            crate::job::lines(&[])
        );
        site.ok_with(&["overlay", "write", "c", "out/h"], b"edited\n");
        site.ok(&["propose", "c"]);
        let outcome = site.vws(&["accept", "c"]);
        assert_eq!(outcome.code(), Some(1), "{form}: {outcome}");
        assert!(!site.top.join("out").exists(), "{form}");
    }
}

#[test]
fn index_forms() {
    for (form, setting, args) in [
        (
            "split index",
            "x.y=z",
            &["update-index", "--split-index"][..],
        ),
        ("version 4", "x.y=z", &["update-index", "--index-version=4"]),
        (
            "many files",
            "feature.manyFiles=true",
            &["update-index", "--refresh"],
        ),
        (
            "skipHash",
            "index.skipHash=true",
            &["update-index", "--force-write-index"],
        ),
        (
            "untracked cache",
            "core.untrackedCache=true",
            &["update-index", "--force-untracked-cache"],
        ),
    ] {
        let mut site = Site::committed();
        let (key, value) = setting.split_once('=').unwrap();
        site.git(&["config", key, value]);
        if !site.git_can(args) {
            skip(form, "this git does not know it");
            continue;
        }
        site.soil();
        eprintln!("form: {form}");
        main_job(&mut site);
    }
}

#[test]
fn extensions() {
    let mut site = Site::committed();
    site.git(&["config", "extensions.worktreeConfig", "true"]);
    site.git(&["config", "--worktree", "user.name", "Somebody"]);
    site.soil();
    main_job(&mut site);

    let mut site = Site::committed();
    if site.git_can(&["worktree", "add", "-q", "--relative-paths", "../w"]) {
        site.top = site.sandbox.root().join("w");
        site.cwd = site.top.clone();
        site.soil();
        main_job(&mut site);
    } else {
        skip("relativeWorktrees", "this git does not know it");
    }
}

#[test]
fn an_extension_that_nobody_knows_is_refused_by_name() {
    let site = Site::committed();
    site.git(&["config", "core.repositoryFormatVersion", "1"]);
    site.git(&["config", "extensions.tomorrow", "true"]);
    site.refused(&["overlay", "create", "a"], 128, "tomorrow");
    assert!(!site.top.join(".git/refs/relo").exists());
    assert!(!site.top.join(".git/relo").exists());
}

#[test]
fn precious_objects_stay() {
    let mut site = Site::committed();
    site.git(&["config", "core.repositoryFormatVersion", "1"]);
    site.git(&["config", "extensions.preciousObjects", "true"]);
    site.soil();
    main_job(&mut site);
    let packs = || {
        let folder = fs::read_dir(site.top.join(".git/objects/pack")).unwrap();
        let packs = folder.map(|e| e.unwrap().file_name().into_string().unwrap());
        packs
            .filter(|name| name.ends_with(".pack"))
            .collect::<Vec<_>>()
    };
    for n in 0..30 {
        let before = packs();
        site.ok_with(
            &["overlay", "write", "keep", "f"],
            format!("{n}\n").as_bytes(),
        );
        let after = packs();
        assert!(before.iter().all(|pack| after.contains(pack)), "write {n}");
    }
}

#[test]
fn no_commit_yet() {
    let mut site = Site::with_init(&["-b", "trunk"]);
    site.fill();
    main_job(&mut site);
    assert_eq!(site.git_line(&["symbolic-ref", "HEAD"]), "refs/heads/trunk");
    assert!(!site.git_can(&["rev-parse", "--verify", "HEAD"]));
}

#[test]
fn detached() {
    let mut site = Site::committed();
    site.git(&["checkout", "-q", "--detach"]);
    site.soil();
    main_job(&mut site);
}

#[test]
fn packed_refs() {
    let mut site = Site::committed();
    site.git(&["tag", "-m", "t", "t"]);
    site.git(&["pack-refs", "--all"]);
    site.soil();
    main_job(&mut site);
    site.git(&["pack-refs", "--all"]);
    let list = site.ok(&["overlay", "list"]);
    assert!(list.starts_with(b"agent keep\n"), "{list}");
    site.ok_with(&["overlay", "write", "keep", "f"], b"packed\n");
    site.ok(&["overlay", "dispose", "--force", "keep"]);
}

#[test]
fn index_lock_of_somebody() {
    let mut site = Site::committed();
    site.soil();
    let lock = site.top.join(".git/index.lock");
    fs::write(&lock, "somebody's").unwrap();
    main_job(&mut site);
    assert_eq!(fs::read(&lock).unwrap(), b"somebody's");
}

#[test]
fn something_under_way() {
    for (form, command) in [
        ("merge", &["merge", "side"][..]),
        ("rebase", &["rebase", "side"]),
        ("cherry-pick", &["cherry-pick", "side"]),
    ] {
        let mut site = Site::committed();
        site.write("c", "base\n");
        site.commit("base");
        site.git(&["checkout", "-q", "-b", "side"]);
        site.write("c", "side\n");
        site.commit("side");
        site.git(&["checkout", "-q", "main"]);
        site.write("c", "main\n");
        site.commit("main");
        assert!(!site.git_can(command), "{form}");
        site.write("f", crate::job::lines(&[(1, "user")]));
        eprintln!("form: {form}");
        main_job(&mut site);
        let markers = site.read("c");
        assert!(markers.starts_with(b"<<<<<<<"));
        site.ok(&["overlay", "create", "c"]);
        assert_eq!(site.ok(&["overlay", "read", "c", "c"]), markers);
        site.ok_with(&["overlay", "write", "c", "c"], b"resolved\n");
        site.ok(&["propose", "c"]);
        let outcome = site.vws(&["accept", "c"]);
        assert_eq!(outcome.code(), Some(1), "{form}: {outcome}");
        let text = outcome.to_string();
        assert!(text.contains("unmerged"), "{form}: {text}");
        assert_eq!(site.read("c"), markers);
        assert!(!site.git(&["ls-files", "-u"]).is_empty());
    }
}

#[test]
fn submodule() {
    let mut site = Site::committed();
    site.git(&["clone", "-q", ".", "../lib"]);
    site.git(&["submodule", "--quiet", "add", "../lib", "sub"]);
    site.commit("with a submodule");
    site.soil();
    main_job(&mut site);
    assert_eq!(
        site.git_in(&site.top.join("sub"), &["status", "--porcelain"]),
        ""
    );
}
