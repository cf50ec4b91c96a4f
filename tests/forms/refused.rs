//! What is refused, as a list: each by its name, before anything is made, and each in the manual.

use std::fs;

use crate::common::Sandbox;
use crate::job::Site;
use crate::kinds::{skip, url};

/// The form as the manual names it, how to come to it, and what the refusal says. `None` where this
/// machine cannot make the form.
type Row = (&'static str, &'static str, fn() -> Option<(Site, Args)>);

/// What is refused.
type Args = &'static [&'static str];

const CREATE: Args = &["overlay", "create", "a"];

const REFUSED: [Row; 12] = [
    ("no repository", "git init", || {
        let site = Site::of(Sandbox::without_repo());
        Some((site, CREATE))
    }),
    ("bare", "work tree", || {
        let mut site = Site::committed();
        site.git(&["clone", "-q", "--bare", ".", "../b.git"]);
        site.top = site.sandbox.root().join("b.git");
        site.cwd = site.top.clone();
        Some((site, CREATE))
    }),
    ("unknown extension", "tomorrow", || {
        let site = Site::committed();
        site.git(&["config", "core.repositoryFormatVersion", "1"]);
        site.git(&["config", "extensions.tomorrow", "true"]);
        Some((site, CREATE))
    }),
    ("another owner", "safe.directory", || {
        let mut site = Site::committed();
        site.set("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        Some((site, CREATE))
    }),
    ("read-only", "ermission denied", || {
        if rustix::process::geteuid().is_root() {
            // Shown by a test of its own, that stops being root.
            skip("read-only", "root may write everywhere");
            return None;
        }
        let site = Site::committed();
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
        fs::set_permissions(site.top.join(".git"), mode).unwrap();
        Some((site, CREATE))
    }),
    ("quarantine", "quarantine", || {
        let mut site = Site::committed();
        let objects = site.top.join(".git/objects");
        site.set("GIT_QUARANTINE_PATH", objects);
        Some((site, &["overlay", "create", "a", "--base=HEAD"]))
    }),
    ("ref in the way", "refs/heads/relo", || {
        let site = Site::committed();
        site.git(&["branch", "relo"]);
        Some((site, &["run", "a", "--", "sh", "-c", "echo x >f"]))
    }),
    ("missing filter", "vault", || {
        let site = Site::committed();
        site.write(".gitattributes", "*.txt filter=vault\n");
        site.git(&["config", "filter.vault.required", "true"]);
        site.write("t.txt", "text\n");
        Some((site, CREATE))
    }),
    ("promised objects", "promisor remote", || {
        let mut site = Site::committed();
        site.git(&["config", "uploadpack.allowFilter", "true"]);
        let partial = ["clone", "-q", "--no-checkout", "--filter=blob:none"];
        let url = url(&site);
        site.git(&[&partial[..], &[&url, "../p"]].concat());
        site.top = site.sandbox.root().join("p");
        site.cwd = site.top.clone();
        fs::rename(site.sandbox.repo(), site.sandbox.root().join("away")).unwrap();
        let create = &["overlay", "create", "a", "--base=HEAD"];
        if site.stays() {
            // The directory comes with it.
            return Some((site, create));
        }
        site.ok(create);
        Some((site, &["materialize", "a"]))
    }),
    ("unmerged", "unmerged", || {
        let site = Site::committed();
        site.git(&["checkout", "-q", "-b", "side"]);
        site.write("f", "side\n");
        site.commit("side");
        site.git(&["checkout", "-q", "main"]);
        site.write("f", "main\n");
        site.commit("main");
        assert!(!site.git_can(&["merge", "side"]));
        Some(offered(site, "f"))
    }),
    ("sparse", "'out/h' of agent 'a' [unsupported]", || {
        let site = Site::committed();
        site.git(&["sparse-checkout", "set", "--no-cone", "/*", "!/out/"]);
        Some(offered(site, "out/h"))
    }),
    ("submodule", "nested_repository", || {
        let site = Site::committed();
        site.git(&["clone", "-q", ".", "../lib"]);
        site.git(&["submodule", "--quiet", "add", "../lib", "sub"]);
        site.commit("with a submodule");
        site.ok(CREATE);
        Some((site, &["overlay", "write", "a", "sub/f"]))
    }),
];

/// An edit of this file, to be accepted.
fn offered(site: Site, path: &str) -> (Site, Args) {
    site.ok(CREATE);
    site.ok_with(&["overlay", "write", "a", path], b"agent\n");
    site.ok(&["propose", "a"]);
    (site, &["accept", "a"])
}

/// What lies in the working tree, every ref, and whether there is a directory.
fn state(site: &Site) -> String {
    let mut text = String::new();
    for args in [
        &["status", "--porcelain", "-uall"][..],
        &["for-each-ref"],
        &["worktree", "list"],
    ] {
        let mut command = site.command("git");
        let output = command.args(args).output().unwrap();
        text += &String::from_utf8_lossy(&output.stdout);
    }
    text
}

#[test]
fn each_by_its_name_and_nothing_is_changed() {
    for (form, says, make) in REFUSED {
        eprintln!("form: {form}");
        let Some((site, args)) = make() else { continue };
        let before = state(&site);
        let outcome = site.vws(args);
        assert_ne!(outcome.code(), Some(0), "{form}: {outcome}");
        let text = outcome.to_string();
        assert!(text.contains(says), "{form} says '{says}': {text}");
        assert_eq!(state(&site), before, "{form}");
        if form == "read-only" {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            fs::set_permissions(site.top.join(".git"), mode).unwrap();
        }
    }
}

#[test]
fn the_manual_has_the_same_list() {
    let text = include_str!("../../src/cli/manual/text/check.txt");
    let (_, section) = text.split_once("# WHAT IS REFUSED\n").unwrap();
    let section = section.split("\n# ").next().unwrap();
    let listed: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix('`')?.split_once("`: "))
        .map(|(form, _)| form)
        .collect();
    let tested: Vec<&str> = REFUSED.iter().map(|(form, ..)| *form).collect();
    assert_eq!(listed, tested);
}
