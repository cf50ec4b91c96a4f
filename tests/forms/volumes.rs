//! Forms that are the disk's: file systems that share blocks, one that folds case, paths as long as
//! they come.

use std::fs;
use std::path::PathBuf;

use bstr::ByteSlice;

use crate::common::{Sandbox, directories_stay};
use crate::job::{Site, field, main_job_in};
use crate::kinds::skip;
use crate::volume::Volume;
use crate::ways::{Way, long};

#[test]
fn blocks_are_shared() {
    if directories_stay() {
        return;
    }
    let newest = ["--object-format=sha256", "--ref-format=reftable"];
    for (kind, forms) in [("xfs", [&[][..], &newest]), ("btrfs", [&newest[..], &[]])] {
        let Some(volume) = Volume::new(kind) else {
            skip(kind, "it cannot be mounted here");
            continue;
        };
        for options in forms.iter().take(if long() { 2 } else { 1 }) {
            let sandbox = Sandbox::new_in(volume.path());
            fs::remove_dir_all(sandbox.repo().join(".git")).unwrap();
            let mut site = Site::of(sandbox);
            let init = [&["init", "-q"], *options].concat();
            if !site.git_can(&init) {
                skip(&options.join(" "), "this git does not know it");
                site.git(&["init", "-q"]);
            }
            site.fill();
            site.commit("first");
            site.soil();
            eprintln!("form: {kind} {options:?}");
            main_job_in(&mut site, Way::Reflink);
            site.ok(&["overlay", "dispose", "--force", "keep"]);
            if !long() {
                continue;
            }
            // From a linked worktree.
            site.git(&["worktree", "add", "-q", "../w"]);
            site.top = site.sandbox.root().join("w");
            site.cwd = site.top.clone();
            site.soil();
            main_job_in(&mut site, Way::Reflink);
        }
    }
}

#[test]
fn a_disk_that_folds_case() {
    let volume = match Volume::folding() {
        Ok(volume) => volume,
        Err(why) => return skip("case-folding disk", &why),
    };
    let site = Site::of(Sandbox::new_in(&volume.path().join("folds")));
    assert_eq!(site.git_line(&["config", "core.ignoreCase"]), "true");
    site.fill();
    site.commit("first");
    // Two that are one there: byte for byte in the overlay, refused before one is laid over the other.
    site.ok(&["overlay", "create", "a"]);
    site.ok_with(&["overlay", "write", "a", "F"], b"another\n");
    assert_eq!(site.ok(&["overlay", "read", "a", "F"]), "another\n");
    let f = site.read("f");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), f);
    let outcome = site.vws(&["materialize", "--backend=checkout", "a"]);
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    assert!(!site.top.join(".relo/worktrees/a").exists(), "{outcome}");
    // And what lands lands on nobody's file.
    site.ok(&["propose", "a"]);
    let outcome = site.vws(&["accept", "a"]);
    assert_ne!(outcome.code(), Some(0), "{outcome}");
    assert_eq!(site.read("f"), f);
    assert_eq!(site.git(&["status", "--porcelain"]), "");
}

/// A name as long as a disk takes it, and a path that is too long from the root, not from the top.
fn long_paths() -> [String; 2] {
    let mut deep = vec!["d".repeat(200); 19];
    deep.push("file".to_owned());
    ["n".repeat(255), deep.join("/")]
}

#[test]
fn paths_that_are_too_long_from_the_root() {
    let [name, deep] = long_paths();
    let folder = deep.rsplit_once('/').unwrap().0;
    assert!(deep.len() < 4096 && deep.len() > 3800);
    for way in [Way::Auto, Way::Worktree, Way::Stays] {
        let mut site = Site::committed();
        site.hold(way);
        let walk = format!(
            "(for p in $(echo {folder} | tr / ' '); do mkdir -p $p && cd -P $p || exit; done"
        );
        let script = format!("echo one >{name}; {walk}; echo one >file)");
        let mut command = site.command("sh");
        assert!(command.args(["-c", &script]).status().unwrap().success());
        if !site.git_can(&["add", "--all"]) {
            return skip("long paths", "git does not take them here");
        }
        site.git(&["commit", "-q", "-m", "long"]);
        eprintln!("way: {way:?}");
        let record = site.ok(&["overlay", "create", "a"]);
        assert_eq!(field(&record, "tree"), site.recorded());
        let mut args = vec!["materialize", "a"];
        args.extend(way.option_of_a_directory());
        let outcome = site.vws(&args);
        if outcome.code() != Some(0) {
            // Refused, naming the path, and not by half.
            assert!(outcome.stderr().contains_str(&deep[..200]), "{outcome}");
            assert!(!site.top.join(".relo/worktrees/a").exists());
            assert_eq!(site.ok(&["overlay", "diff", "a"]), "");
            continue;
        }
        let directory = PathBuf::from(field(&outcome.success().stdout().into(), "directory"));
        assert_eq!(site.git_in(&directory, &["status", "--porcelain"]), "");
        let script = format!("echo two >>{name}; {walk}; echo two >>file; echo new >new)");
        let mut command = site.command("sh");
        command.current_dir(&directory).args(["-c", &script]);
        assert!(command.status().unwrap().success());
        site.ok(&["settle", "a"]);
        let diff = site.ok(&["overlay", "diff", "--name-status", "a"]);
        let expected = format!("M\t{deep}\nA\t{folder}/new\nM\t{name}\n");
        assert_eq!(diff, expected);
        site.ok(&["propose", "a"]);
        site.ok(&["accept", "a"]);
        let changed = site.git(&["status", "--porcelain"]);
        assert_eq!(changed, format!(" M {deep}\n M {name}\n?? {folder}/new\n"));
        assert_eq!(site.read(&name), "one\ntwo\n");
        site.ok(&["undo"]);
        assert_eq!(site.git(&["status", "--porcelain"]), "");
    }
}
