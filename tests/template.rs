//! Templates: what is frozen in them, how they are found, and when they go; git is the oracle.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use common::Sandbox;
use git_vws::git::ObjectId;
use git_vws::layout::template::{self, Options, Policy, warm};
use library::open;

fn tree_of(sandbox: &Sandbox, revision: &str) -> ObjectId {
    let spec = format!("{revision}^{{tree}}");
    let text = sandbox.git_text(&["rev-parse", &spec]);
    ObjectId::from_str_ext(&text, open(sandbox).format()).unwrap()
}

fn options(sandbox: &Sandbox) -> Options {
    Options {
        users: Some(sandbox.repo()),
        threads: 2,
    }
}

fn seeded() -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..40 {
        sandbox.write(format!("d{}/f{number}", number % 3), format!("{number}\n"));
    }
    sandbox.write("run.sh", "#!/bin/sh\n");
    let run = sandbox.repo().join("run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", sandbox.repo().join("link")).unwrap();
    sandbox.write(".gitignore", "target/\n");
    sandbox.commit("one");
    sandbox
}

/// Git finds each file of the template as the index says, without reading one.
#[track_caller]
fn is_whole(sandbox: &Sandbox, made: &template::Template) {
    let files = made.files();
    let git = |args: &[&str]| {
        let mut command = sandbox.command("git");
        command
            .env("GIT_WORK_TREE", &files)
            .env("GIT_INDEX_FILE", made.index_path())
            .env("GIT_DIR", sandbox.repo().join(".git"))
            .env("GIT_OPTIONAL_LOCKS", "0")
            .args(args);
        let out = sandbox.outcome(command, b"").success();
        String::from_utf8(out.stdout().to_owned()).unwrap()
    };
    // Compares stat data alone.
    assert_eq!(git(&["diff-files", "--name-only"]), "");
    let tree = made.tree().to_string();
    assert_eq!(git(&["diff-index", "--cached", "--name-only", &tree]), "");
    assert_eq!(git(&["ls-files", "--others"]), "");
}

#[test]
fn a_template_is_made_once_and_whole() {
    let sandbox = seeded();
    let repository = open(&sandbox);
    let tree = tree_of(&sandbox, "HEAD");
    assert!(template::find(&repository, tree).unwrap().is_none());
    let made = template::obtain(&repository, tree, &options(&sandbox)).unwrap();
    is_whole(&sandbox, &made);
    let inode = fs::metadata(made.files()).unwrap().ino();
    drop(made);
    let doors: Vec<_> = (0..4).map(|_| repository.door()).collect();
    std::thread::scope(|scope| {
        for door in doors {
            let sandbox = &sandbox;
            scope.spawn(move || {
                let repository = door.open().unwrap();
                let again = template::obtain(&repository, tree, &options(sandbox)).unwrap();
                assert_eq!(fs::metadata(again.files()).unwrap().ino(), inode);
            });
        }
    });
}

#[test]
fn many_at_once_make_one() {
    let sandbox = seeded();
    let tree = tree_of(&sandbox, "HEAD");
    let doors: Vec<_> = (0..6).map(|_| open(&sandbox).door()).collect();
    let inodes = std::thread::scope(|scope| {
        let started: Vec<_> = doors
            .into_iter()
            .map(|door| {
                scope.spawn(|| {
                    let repository = { door }.open().unwrap();
                    let made = template::obtain(&repository, tree, &options(&sandbox)).unwrap();
                    fs::metadata(made.files()).unwrap().ino()
                })
            })
            .collect();
        let inodes = started.into_iter().map(|one| one.join().unwrap());
        inodes.collect::<std::collections::BTreeSet<_>>()
    });
    assert_eq!(inodes.len(), 1);
}

#[test]
fn equal_files_take_the_users_time_and_others_do_not() {
    let sandbox = seeded();
    let old = |path: &str| {
        let file = fs::File::options()
            .write(true)
            .open(sandbox.repo().join(path))
            .unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(1_000_000_000, 123_456_789);
        file.set_modified(time).unwrap();
    };
    for path in ["d0/f0", "d1/f1", "d2/f2"] {
        old(path);
    }
    // As long as before, with another content.
    sandbox.write("d1/f1", "x\n");
    old("d1/f1");
    let repository = open(&sandbox);
    let tree = tree_of(&sandbox, "HEAD");
    let made = template::obtain(&repository, tree, &options(&sandbox)).unwrap();
    let time = |path: &str| {
        let meta = fs::metadata(made.files().join(path)).unwrap();
        (meta.mtime(), meta.mtime_nsec())
    };
    assert_eq!(time("d0/f0"), (1_000_000_000, 123_456_789));
    assert_eq!(time("d2/f2"), (1_000_000_000, 123_456_789));
    assert!(time("d1/f1").0 > 1_000_000_000);
    is_whole(&sandbox, &made);
}

#[test]
fn the_next_one_is_made_from_the_nearest() {
    let sandbox = seeded();
    let repository = open(&sandbox);
    let first = tree_of(&sandbox, "HEAD");
    drop(template::obtain(&repository, first, &options(&sandbox)).unwrap());
    sandbox.write("d0/f0", "changed\n");
    sandbox.write("d9/new", "new\n");
    fs::remove_file(sandbox.repo().join("link")).unwrap();
    sandbox.write("link", "a file now\n");
    fs::remove_dir_all(sandbox.repo().join("d1")).unwrap();
    sandbox.write("d1", "a file now\n");
    sandbox.commit("two");
    let second = tree_of(&sandbox, "HEAD");
    // What no object holds any more can only come from the template.
    let gone = sandbox.git_text(&["rev-parse", "HEAD:d2/f2"]);
    let object = sandbox
        .repo()
        .join(".git/objects")
        .join(&gone[..2])
        .join(&gone[2..]);
    let aside = sandbox.root().join("aside");
    fs::rename(&object, &aside).unwrap();
    let made = template::obtain(&repository, second, &options(&sandbox)).unwrap();
    fs::rename(&aside, &object).unwrap();
    is_whole(&sandbox, &made);
    let (near, changes) = template::find_near(&repository, first).unwrap().unwrap();
    assert_eq!((near.tree(), changes.len()), (first, 0));
}

#[test]
fn a_tree_that_no_directory_may_hold_is_refused() {
    let sandbox = seeded();
    let blob = sandbox.git_text(&["rev-parse", "HEAD:run.sh"]);
    let listing = format!("100644 blob {blob}\t.relo\n");
    let tree = sandbox.git_with_input(&["mktree"], listing.as_bytes());
    let repository = open(&sandbox);
    let hex = String::from_utf8(tree).unwrap();
    let tree = ObjectId::from_str_ext(hex.trim(), repository.format()).unwrap();
    let refused = template::obtain(&repository, tree, &options(&sandbox)).unwrap_err();
    assert!(refused.refusal().is_some(), "{refused}");
    let left = fs::read_dir(repository.relo_dir().join("templates")).unwrap();
    assert_eq!(left.count(), 0);
}

#[test]
fn pruning_spares_what_is_used_or_stood_on() {
    let sandbox = seeded();
    let repository = open(&sandbox);
    let mut trees = vec![tree_of(&sandbox, "HEAD")];
    for name in ["two", "three"] {
        sandbox.write("run.sh", name);
        sandbox.commit(name);
        trees.push(tree_of(&sandbox, "HEAD"));
    }
    let upper = sandbox.root().join("upper");
    fs::create_dir(&upper).unwrap();
    let [first, second, third] =
        [0, 1, 2].map(|at| template::obtain(&repository, trees[at], &options(&sandbox)).unwrap());
    first.stand(&upper).unwrap();
    drop((first, third));
    let policy = |dry_run| Policy {
        max_bytes: 0,
        dry_run,
    };
    let names = |infos: &[template::Info]| {
        let mut names: Vec<_> = infos.iter().map(|info| info.name.clone()).collect();
        names.sort();
        names
    };
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let pruned = template::prune(&repository, &policy(false)).unwrap();
    assert_eq!(names(&pruned.removed), [trees[2].to_string()]);
    let used = sorted(vec![trees[0].to_string(), trees[1].to_string()]);
    assert_eq!(names(&pruned.in_use), used);
    is_whole(&sandbox, &second);
    drop(second);
    fs::remove_dir(&upper).unwrap();
    let would = template::prune(&repository, &policy(true)).unwrap();
    assert_eq!(names(&would.removed), used);
    assert_eq!(template::list(&repository).unwrap().len(), 2);
    let generous = Policy {
        max_bytes: u64::MAX,
        dry_run: false,
    };
    assert_eq!(template::prune(&repository, &generous).unwrap().removed, []);
    template::prune(&repository, &policy(false)).unwrap();
    assert_eq!(template::list(&repository).unwrap(), []);
}

#[test]
fn one_that_a_power_cut_spoilt_is_made_again() {
    let sandbox = seeded();
    let repository = open(&sandbox);
    let tree = tree_of(&sandbox, "HEAD");
    let made = template::obtain(&repository, tree, &options(&sandbox)).unwrap();
    let files = made.files();
    drop(made);
    let meta = files.with_file_name("meta.json");
    let earlier = |path: &Path| {
        let text = fs::read_to_string(path).unwrap();
        let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["boot"] = "an earlier start".into();
        fs::write(path, json.to_string()).unwrap();
    };
    earlier(&meta);
    let inode = fs::metadata(&files).unwrap().ino();
    drop(template::find(&repository, tree).unwrap().unwrap());
    assert_eq!(fs::metadata(&files).unwrap().ino(), inode);
    let mark = repository
        .relo_dir()
        .join(format!("locks/templates/{tree}.boot"));
    fs::remove_file(mark).unwrap();
    fs::write(files.join("d0/f0"), "").unwrap();
    assert!(template::find(&repository, tree).unwrap().is_none());
    let again = template::obtain(&repository, tree, &options(&sandbox)).unwrap();
    assert_eq!(fs::read(again.files().join("d0/f0")).unwrap(), b"0\n");
}

#[test]
fn a_warm_layer_is_renewed_when_it_is_old_and_only_where_it_changed() {
    let sandbox = seeded();
    sandbox.write("target/same", "same\n");
    sandbox.write("target/other", "one\n");
    sandbox.write("target/gone", "gone\n");
    let repository = open(&sandbox);
    let at = |now| {
        let options = warm::Options {
            now,
            ..warm::Options::default()
        };
        warm::refresh(&repository, &options).unwrap().unwrap()
    };
    let first = at(1000);
    let inode = |warm: &warm::Warm, path: &str| {
        let file = warm.files().join("target").join(path);
        fs::metadata(file).unwrap().ino()
    };
    let inodes = ["same", "other"].map(|path| inode(&first, path));
    drop(first);
    sandbox.write("target/other", "two two\n");
    sandbox.write("target/new", "new\n");
    fs::remove_file(sandbox.repo().join("target/gone")).unwrap();
    let young = at(1000 + 3599);
    assert_eq!(young.made(), 1000);
    drop(young);
    let second = at(1000 + 3600);
    assert_eq!(second.made(), 4600);
    assert_eq!(inode(&second, "same"), inodes[0]);
    assert_ne!(inode(&second, "other"), inodes[1]);
    let target = second.files().join("target");
    assert_eq!(fs::read(target.join("other")).unwrap(), b"two two\n");
    assert!(target.join("new").exists() && !target.join("gone").exists());
    // The old one is gone with its last user.
    let layers = fs::read_dir(repository.relo_dir().join("warm")).unwrap();
    assert_eq!(layers.count(), 1);
    sandbox.git(&["config", "relo.template.warm", "false"]);
    let options = warm::Options::default();
    assert!(warm::refresh(&open(&sandbox), &options).unwrap().is_none());
}

/// The folder of the one template, and a lay out of `a` by copies of it, whose files are the user's.
fn copied(sandbox: &Sandbox) -> std::path::PathBuf {
    let shelf = sandbox.repo().join(".git/relo/templates");
    let template = fs::read_dir(shelf).unwrap().next().unwrap().unwrap().path();
    let _ = sandbox.vws(&["overlay", "create", "a"]).success();
    let words = ["materialize", "--backend=checkout", "a"];
    let _ = sandbox.vws(&words).success();
    let at = sandbox.repo().join(".relo/worktrees/a");
    for path in sandbox.git_text(&["ls-files", "-z"]).split_terminator('\0') {
        let [own, users] = [&at, &sandbox.repo()].map(|top| top.join(path));
        assert_eq!(fs::read(&own).unwrap(), fs::read(&users).unwrap(), "{path}");
        let [own, users] = [own, users].map(|file| fs::symlink_metadata(file).unwrap());
        assert_eq!(own.mode(), users.mode(), "{path}");
        if users.is_file() {
            let times = [&own, &users].map(|meta| (meta.mtime(), meta.mtime_nsec()));
            assert_eq!(times[0], times[1], "{path}");
        }
    }
    let mut status = sandbox.command("git");
    status.args(["-C", ".relo/worktrees/a", "status", "--porcelain"]);
    assert_eq!(sandbox.outcome(status, b"").success().stdout(), b"");
    let _ = sandbox.vws(&["settle", "a"]).success();
    let _ = sandbox.vws(&["overlay", "dispose", "a"]).success();
    assert!(
        !template.join("bytes.new").is_file(),
        "nothing half is left"
    );
    template
}

fn listed_bytes(sandbox: &Sandbox) -> u64 {
    let listed = sandbox.vws(&["template", "list"]).success();
    let text = String::from_utf8(listed.stdout().to_vec()).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("bytes "));
    line.unwrap().parse().unwrap()
}

#[test]
fn the_first_copy_keeps_the_bytes_for_the_next() {
    let sandbox = seeded();
    let _ = sandbox.vws(&["template", "warm"]).success();
    let small = listed_bytes(&sandbox);
    let bytes = copied(&sandbox).join("bytes");
    let made = fs::metadata(&bytes).unwrap();
    assert_eq!(listed_bytes(&sandbox), small + made.len(), "they count");
    // They serve, and nothing else does: what somebody writes to a template is in no directory.
    let file = bytes.with_file_name("files/d0/f0");
    fs::write(&file, "x\n").unwrap();
    copied(&sandbox);
    assert_eq!(fs::metadata(&bytes).unwrap().ino(), made.ino(), "made once");
    fs::remove_file(&bytes).unwrap();
    copied(&sandbox);
    let [whole, other] = [made, fs::metadata(&bytes).unwrap()].map(|meta| meta.len());
    assert_eq!(
        whole, other,
        "made again, without the file that was written to"
    );
    copied(&sandbox);
    let _ = sandbox
        .vws(&["template", "prune", "--max-bytes=0"])
        .success();
    assert!(!bytes.exists());
}

#[test]
fn spoilt_bytes_are_noticed_and_made_again() {
    let sandbox = seeded();
    let _ = sandbox.vws(&["template", "warm"]).success();
    let bytes = copied(&sandbox).join("bytes");
    let sound = fs::read(&bytes).unwrap();
    let first = sound.iter().rposition(|byte| *byte == b'\n').unwrap() - 4;
    for at in [0, 8, first, sound.len() - 1] {
        let mut other = sound.clone();
        other[at] ^= 1;
        fs::write(&bytes, other).unwrap();
        // This one finds out; a wrong head is replaced at once, wrong bytes by the next.
        copied(&sandbox);
        copied(&sandbox);
        assert!(fs::read(&bytes).unwrap() == sound, "flipped at {at}");
    }
    let half = sound.len() / 2;
    let zeros = vec![0; sound.len()];
    for other in [
        &sound[..half],
        &sound[..0],
        &zeros,
        &[&sound[..half], &zeros[half..]].concat(),
    ] {
        fs::write(&bytes, other).unwrap();
        copied(&sandbox);
        copied(&sandbox);
        assert!(fs::read(&bytes).unwrap() == sound);
    }
    // What somebody who was killed has left.
    fs::remove_file(&bytes).unwrap();
    let _ = sandbox.vws(&["overlay", "create", "b"]).success();
    let mut killed = sandbox.command(common::BINARY);
    killed
        .args(["materialize", "--backend=checkout", "b"])
        .env("GIT_VWS_FAULT", "bytes-kept");
    assert_eq!(sandbox.outcome(killed, b"").code(), None);
    let left = bytes.with_extension("new");
    assert!(left.is_file() && !bytes.exists());
    fs::write(left, [&zeros[..], &zeros].concat()).unwrap();
    copied(&sandbox);
    assert!(fs::read(&bytes).unwrap() == sound);
    // Where they can't be kept, a copy is a copy.
    fs::remove_file(&bytes).unwrap();
    fs::create_dir(bytes.with_extension("new")).unwrap();
    copied(&sandbox);
    assert!(!bytes.exists());
}
