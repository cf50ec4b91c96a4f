//! Directories through library calls, with git itself as the judge of what was laid out.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use common::Sandbox;
use git_vws::git::Repository;
use git_vws::layout::{self, Choice, Directory, Error, Insist, Options};
use git_vws::model::{AgentId, Refusal};
use git_vws::workspace::{From, Mode, NewWorkspace, Store};
use library::{environment, open};

const NOW: i64 = 1_700_000_000;

fn agent(name: &str) -> AgentId {
    AgentId::new(name).unwrap()
}

fn create(store: &Store<'_>, name: &str, base: &str) -> AgentId {
    let agent = agent(name);
    let new = NewWorkspace {
        from: From::Commit(base.to_owned()),
        mode: Mode::Virtual,
        read_only: false,
        session: None,
    };
    store.create(&agent, &new).unwrap();
    agent
}

fn materialize(store: &Store<'_>, agent: &AgentId) -> Directory {
    layout::materialize(store, agent, &Options::default()).unwrap()
}

/// A repository with files of every kind.
fn sample() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("plain.txt", "text\n");
    sandbox.write("empty", "");
    sandbox.write("no-newline", "x");
    sandbox.write("bytes.bin", b"\0\xff\r\n\n".as_slice());
    sandbox.write("run.sh", "#!/bin/sh\n");
    sandbox.write("sub/deep/er/file", "deep\n");
    sandbox.write("sub/a b\n\"c\"", "odd\n");
    sandbox.write("sub.txt", "sorts between\n");
    sandbox.write("sub-x/f", "and here\n");
    let odd = std::ffi::OsStr::new(std::str::from_utf8(b"caf\xc3\xa9").unwrap());
    sandbox.write(Path::new(odd), "utf-8\n");
    let raw = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"\xff\xfe");
    sandbox.write(Path::new(raw), "no utf-8\n");
    let run = sandbox.repo().join("run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("plain.txt", sandbox.repo().join("link")).unwrap();
    symlink("../nowhere", sandbox.repo().join("sub/dangling")).unwrap();
    sandbox.commit("one");
    sandbox
}

/// Git in a directory, in the sandbox's environment.
fn git_in(sandbox: &Sandbox, directory: &Path, args: &[&str]) -> String {
    let mut command = sandbox.command("git");
    command.current_dir(directory).args(args);
    let outcome = sandbox.outcome(command, b"").success();
    String::from_utf8_lossy(outcome.stdout()).into_owned()
}

/// What must not change, whatever is done with directories.
fn untouched(sandbox: &Sandbox) -> Vec<String> {
    let file = |file: &str| {
        let path = sandbox.repo().join(".git").join(file);
        let meta = fs::metadata(&path).unwrap();
        let bytes = fs::read(&path).unwrap();
        let (time, inode) = (meta.mtime_nsec(), meta.ino());
        format!("{file} {time} {inode} {}", String::from_utf8_lossy(&bytes))
    };
    vec![
        file("index"),
        file("config"),
        file("HEAD"),
        sandbox.git_text(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
        sandbox.git_text(&["--no-optional-locks", "status", "--porcelain=v2"]),
    ]
}

/// Git finds the directory clean, and by stat data alone: none differ (`diff-files` would tell), and
/// none are so new that git would have to read the file to be sure.
fn assert_clean_by_stat(sandbox: &Sandbox, directory: &Directory) {
    let at = &directory.path;
    assert_eq!(git_in(sandbox, at, &["diff-files"]), "");
    let status = ["--no-optional-locks", "status", "--porcelain", "--ignored"];
    assert_eq!(git_in(sandbox, at, &status), "");
    let written = fs::metadata(directory.index_path()).unwrap().mtime();
    let listed = git_in(sandbox, at, &["ls-files", "--stage", "-z"]);
    for line in listed.split_terminator('\0') {
        let (mode, path) = line.split_once('\t').unwrap();
        if let Ok(meta) = fs::symlink_metadata(at.join(path))
            && !mode.starts_with("160000")
        {
            assert!(meta.mtime() < written, "{path} is racy");
        }
    }
}

#[test]
fn what_is_laid_out_is_what_git_has() {
    let sandbox = sample();
    let before = untouched(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    assert!(directory.fresh);
    assert_eq!(directory.path, sandbox.repo().join(".relo/worktrees/a"));
    assert_eq!(
        directory.admin,
        sandbox.repo().join(".git/worktrees/relo-a")
    );
    assert_eq!(directory.backend, "checkout");
    assert_eq!(directory.stats.files, 13);
    assert!(directory.stats.threads >= 2);
    let at = &directory.path;
    assert_eq!(
        git_in(&sandbox, at, &["status", "--porcelain", "--ignored"]),
        ""
    );
    assert_eq!(git_in(&sandbox, at, &["diff-files"]), "");
    assert_eq!(
        git_in(&sandbox, at, &["diff-index", "--cached", "HEAD"]),
        ""
    );
    assert_clean_by_stat(&sandbox, &directory);
    git_in(&sandbox, at, &["fsck", "--strict"]);
    // The cache of trees is whole and right: with it, no tree has to be written or compared.
    assert_eq!(
        git_in(&sandbox, at, &["write-tree"]).trim(),
        sandbox.git_text(&["rev-parse", "HEAD^{tree}"])
    );
    // Content, modes and links, without the stat data of the index.
    fs::remove_file(directory.index_path()).unwrap();
    git_in(&sandbox, at, &["add", "-A"]);
    assert_eq!(
        git_in(&sandbox, at, &["write-tree"]).trim(),
        sandbox.git_text(&["rev-parse", "HEAD^{tree}"])
    );
    assert_eq!(
        git_in(&sandbox, at, &["rev-parse", "HEAD"]).trim(),
        directory.cut.commit.to_string()
    );
    assert_eq!(before, untouched(&sandbox));
    let manifest = directory.manifest(repository.format()).unwrap();
    assert_eq!(manifest.len(), 13);
    assert!(
        !manifest
            .entries()
            .any(|entry| manifest.is_racy(&entry.stat))
    );
}

#[test]
fn it_is_hidden_from_the_user() {
    let sandbox = sample();
    fs::write(sandbox.repo().join(".git/info/exclude"), "# mine\n*.o").unwrap();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    materialize(&store, &agent);
    assert_eq!(sandbox.git_text(&["status", "--porcelain", "-uall"]), "");
    sandbox.git(&["add", "-A"]);
    assert_eq!(sandbox.git_text(&["diff", "--cached", "--name-only"]), "");
    let exclude = sandbox.read(".git/info/exclude");
    assert_eq!(exclude, b"# mine\n*.o\n/.relo/\n");
    layout::settle(&store, &agent, Insist::No).unwrap();
    materialize(&store, &agent);
    assert_eq!(sandbox.read(".git/info/exclude"), exclude);
}

#[test]
fn what_cannot_be_hidden_is_not_laid_out() {
    let sandbox = sample();
    fs::remove_dir_all(sandbox.repo().join(".git/info")).unwrap();
    fs::write(sandbox.repo().join(".git/info"), "no folder").unwrap();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::Exposed { .. }), "{refused}");
    assert!(!sandbox.repo().join(".relo").exists());
    assert_eq!(store.open_directory(&agent).unwrap(), None);
    // Ignored otherwise is just as good.
    sandbox.write(".gitignore", ".relo\n");
    materialize(&store, &agent);
    layout::settle(&store, &agent, Insist::No).unwrap();
    // And a rule that shows it again is noticed.
    fs::remove_file(sandbox.repo().join(".git/info")).unwrap();
    sandbox.write(".gitignore", "!.relo\n");
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::Exposed { .. }), "{refused}");
}

#[test]
fn one_that_is_open_is_given_back() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    assert!(layout::open(&store, &agent).unwrap().is_none());
    let first = materialize(&store, &agent);
    fs::write(first.path.join("mine"), "x").unwrap();
    let second = materialize(&store, &agent);
    assert!(!second.fresh);
    assert_eq!(second.path, first.path);
    assert_eq!(second.stats, first.stats);
    assert!(first.path.join("mine").exists());
}

#[test]
fn settling_captures_and_removes() {
    let sandbox = sample();
    let before = untouched(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let refused = layout::settle(&store, &agent, Insist::No).unwrap_err();
    assert!(matches!(refused, Error::NotOpen { .. }), "{refused}");
    let directory = materialize(&store, &agent);
    fs::write(directory.path.join("made/by"), "x").unwrap_err();
    fs::create_dir(directory.path.join("made")).unwrap();
    fs::write(directory.path.join("made/by"), "tool\n").unwrap();
    fs::remove_file(directory.path.join("plain.txt")).unwrap();
    let settled = layout::settle(&store, &agent, Insist::No).unwrap();
    assert!(settled.captured.changed);
    assert_eq!(settled.kept, None);
    assert!(settled.left_behind.is_empty());
    assert!(!directory.path.exists());
    assert!(!directory.admin.exists());
    assert!(!sandbox.repo().join(".git/worktrees").exists());
    let trash = sandbox.repo().join(".relo/worktrees/.trash");
    assert_eq!(fs::read_dir(trash).unwrap().count(), 0);
    let overlay = "refs/relo/vws/a/overlay";
    let diff = ["diff", "--name-status", "HEAD", overlay];
    assert_eq!(sandbox.git_text(&diff), "A\tmade/by\nD\tplain.txt");
    assert_eq!(store.open_directory(&agent).unwrap(), None);
    assert_eq!(before, untouched(&sandbox));
    // The next one starts from there.
    let again = materialize(&store, &agent);
    assert_eq!(fs::read(again.path.join("made/by")).unwrap(), b"tool\n");
    assert_clean_by_stat(&sandbox, &again);
}

#[test]
fn a_capture_that_fails_keeps_the_directory() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    fs::write(directory.path.join("work"), "x").unwrap();
    let manifest = directory.manifest_path();
    fs::write(&manifest, "damaged").unwrap();
    layout::settle(&store, &agent, Insist::Yes).unwrap_err();
    assert!(directory.path.join("work").exists());
    assert!(layout::open(&store, &agent).unwrap().is_some());
}

/// Lays out and takes back what comes after a step, as if the process had been killed there.
fn killed(store: &Store<'_>, agent: &AgentId, at: usize) -> Directory {
    let directory = materialize(store, agent);
    let new = directory.path.parent().unwrap().join(".new");
    fs::create_dir_all(&new).unwrap();
    fs::rename(&directory.path, new.join(agent.as_str())).unwrap();
    if at <= 2 {
        fs::remove_file(directory.admin.join("vws-directory")).unwrap();
        fs::remove_file(new.join(agent.as_str()).join("plain.txt")).unwrap();
    }
    if at <= 1 {
        fs::remove_dir_all(new).unwrap();
    }
    if at == 0 {
        fs::remove_dir_all(&directory.admin).unwrap();
    }
    directory
}

#[test]
fn a_killed_layout_is_never_taken_for_a_directory() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    for at in 0..=3 {
        let agent = create(&store, &format!("a{at}"), "HEAD");
        let directory = killed(&store, &agent, at);
        assert!(layout::open(&store, &agent).unwrap().is_none(), "{at}");
        let tree = layout::import(&store, &agent).unwrap().tree;
        assert_eq!(tree, directory.cut.tree);
        let again = materialize(&store, &agent);
        assert!(again.fresh, "{at}");
        assert_eq!(again.replaced, None, "{at}");
        assert_clean_by_stat(&sandbox, &again);
        layout::settle(&store, &agent, Insist::No).unwrap();

        killed(&store, &agent, at);
        let settled = layout::settle(&store, &agent, Insist::No).unwrap();
        assert!(!settled.captured.changed);
        assert_eq!(store.open_directory(&agent).unwrap(), None);
        assert!(!directory.admin.exists());
        assert!(!sandbox.repo().join(".relo/worktrees/.new").exists());
    }
}

#[test]
fn a_settle_killed_after_any_step_can_be_repeated() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    for at in 0..3 {
        let agent = create(&store, &format!("a{at}"), "HEAD");
        let directory = materialize(&store, &agent);
        fs::write(directory.path.join("work"), "x").unwrap();
        layout::capture(&store, &agent).unwrap();
        let trash = directory.path.parent().unwrap().join(".trash");
        fs::create_dir_all(&trash).unwrap();
        if at >= 1 {
            fs::rename(&directory.path, trash.join("a-1")).unwrap();
        }
        if at >= 2 {
            sandbox.git(&["update-ref", "-d", &format!("refs/relo/vws/a{at}/exec")]);
        }
        let again = materialize(&store, &agent);
        assert_eq!(again.fresh, at >= 1);
        assert_eq!(again.replaced.is_some(), at == 1);
        assert_eq!(fs::read(again.path.join("work")).unwrap(), b"x");
        layout::settle(&store, &agent, Insist::No).unwrap();
        assert_eq!(fs::read_dir(&trash).unwrap().count(), 0);
    }
}

#[test]
fn a_directory_that_was_cleaned_away_says_so() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    fs::write(directory.path.join("saved"), "x").unwrap();
    let saved = layout::capture(&store, &agent).unwrap().workspace;
    sandbox.git(&["clean", "-ffdxq"]);
    assert!(!directory.path.exists());
    let error = layout::open(&store, &agent).unwrap_err();
    assert!(matches!(error, Error::Vanished { .. }), "{error}");
    assert!(layout::capture(&store, &agent).is_err());
    assert_eq!(layout::import(&store, &agent).unwrap().tree, saved.tree);
    assert_eq!(
        layout::vanished(&store, &agent).unwrap(),
        Some(directory.path.clone())
    );
    let settled = layout::settle(&store, &agent, Insist::No).unwrap();
    assert_eq!(settled.vanished, Some(directory.path.clone()));
    assert_eq!(settled.captured.workspace.tree, saved.tree);
    assert!(!directory.admin.exists());
    let again = materialize(&store, &agent);
    assert!(again.path.join("saved").exists());
    // Or without a settle in between.
    fs::remove_dir_all(&again.path).unwrap();
    assert_eq!(materialize(&store, &agent).replaced, Some(again.path));
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let path = sandbox.repo().join(".relo/worktrees/a");
    fs::create_dir_all(&path).unwrap();
    fs::write(path.join("theirs"), "x").unwrap();
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
    assert_eq!(store.open_directory(&agent).unwrap(), None);
    fs::remove_dir_all(&path).unwrap();

    // A worktree of the user's with our name.
    let theirs = sandbox.root().join("relo-a");
    sandbox.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        theirs.to_str().unwrap(),
    ]);
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Unsupported), "{refused}");
    assert_eq!(store.open_directory(&agent).unwrap(), None);
    assert!(!path.exists());
    assert_eq!(git_in(&sandbox, &theirs, &["status", "--porcelain"]), "");
    sandbox.git(&["worktree", "remove", theirs.to_str().unwrap()]);

    // Something else in the place of an open one.
    let directory = materialize(&store, &agent);
    let aside = sandbox.root().join("aside");
    fs::rename(&directory.path, &aside).unwrap();
    symlink(&aside, &directory.path).unwrap();
    for insist in [Insist::No, Insist::Yes] {
        let refused = layout::settle(&store, &agent, insist).unwrap_err();
        assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
    }
    assert!(aside.join("plain.txt").exists());
    fs::remove_file(&directory.path).unwrap();
    sandbox.git(&["init", "-q", directory.path.to_str().unwrap()]);
    let refused = layout::settle(&store, &agent, Insist::Yes).unwrap_err();
    assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
    fs::remove_dir_all(&directory.path).unwrap();
    fs::rename(&aside, &directory.path).unwrap();

    // Its git dir gone: the work in it stays.
    fs::write(directory.path.join("work"), "x").unwrap();
    fs::remove_dir_all(&directory.admin).unwrap();
    for _ in 0..2 {
        let refused = layout::settle(&store, &agent, Insist::Yes).unwrap_err();
        assert!(matches!(refused, Error::NotOurs { .. }), "{refused}");
        layout::materialize(&store, &agent, &Options::default()).unwrap_err();
        assert!(directory.path.join("work").exists());
    }
}

#[test]
fn a_removed_git_file_comes_back() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    fs::write(directory.path.join("work"), "x").unwrap();
    fs::remove_file(directory.path.join(".git")).unwrap();
    assert!(
        layout::settle(&store, &agent, Insist::No)
            .unwrap()
            .captured
            .changed
    );
    assert!(!directory.path.exists());
}

#[test]
fn no_hook_runs_and_other_worktrees_stay() {
    let sandbox = sample();
    let repository = open(&sandbox);
    for hook in [
        "post-checkout",
        "post-index-change",
        "pre-commit",
        "post-commit",
    ] {
        let file = sandbox.repo().join(".git/hooks").join(hook);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "#!/bin/sh\necho ran >>\"$HOME/hooks\"\nexit 1\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let user = sandbox.root().join("user");
    let gone = sandbox.root().join("gone");
    for worktree in [&user, &gone] {
        let path = worktree.to_str().unwrap();
        sandbox.git(&[
            "-c",
            "core.hooksPath=/dev/null",
            "worktree",
            "add",
            "-q",
            "--detach",
            path,
        ]);
    }
    fs::rename(&gone, sandbox.root().join("unmounted")).unwrap();
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    let nested = directory.path.join("nested");
    let nested = nested.to_str().unwrap();
    sandbox.git(&[
        "-c",
        "core.hooksPath=/dev/null",
        "worktree",
        "add",
        "-q",
        "--detach",
        nested,
    ]);
    fs::remove_dir_all(nested).unwrap();
    layout::settle(&store, &agent, Insist::No).unwrap();
    assert!(!sandbox.home().join("hooks").exists());
    fs::rename(sandbox.root().join("unmounted"), &gone).unwrap();
    for worktree in [&user, &gone] {
        assert_eq!(git_in(&sandbox, worktree, &["status", "--porcelain"]), "");
    }
    assert!(sandbox.repo().join(".git/worktrees/nested").exists());
}

#[test]
fn git_works_inside_and_prune_leaves_it_alone() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let before = untouched(&sandbox);
    let directory = materialize(&store, &agent);
    let at = &directory.path;
    fs::write(at.join("plain.txt"), "edited\n").unwrap();
    git_in(&sandbox, at, &["commit", "-qam", "by the agent"]);
    let parent = git_in(&sandbox, at, &["rev-parse", "HEAD^"]);
    assert_eq!(parent.trim(), directory.cut.commit.to_string());
    git_in(&sandbox, at, &["stash", "list"]);
    let listed = sandbox.git_text(&["worktree", "list", "--porcelain"]);
    assert!(
        listed.contains("locked held by git-vws for agent 'a'"),
        "{listed}"
    );
    sandbox.git(&["worktree", "prune", "--expire=now"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(git_in(&sandbox, at, &["status", "--porcelain"]), "");
    assert_eq!(before, untouched(&sandbox));
    assert!(
        layout::settle(&store, &agent, Insist::No)
            .unwrap()
            .captured
            .changed
    );
}

#[test]
fn submodules_are_empty_folders() {
    let sandbox = sample();
    let head = sandbox.git_text(&["rev-parse", "HEAD"]);
    sandbox.git(&[
        "update-index",
        "--add",
        "--cacheinfo",
        &format!("160000,{head},mods/one"),
    ]);
    sandbox.git(&["commit", "-qm", "a submodule"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    let folder = directory.path.join("mods/one");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0);
    assert_clean_by_stat(&sandbox, &directory);
}

#[test]
fn bare_repositories_and_places_of_ones_own() {
    let sandbox = sample();
    let bare = sandbox.root().join("bare.git");
    sandbox.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let repository = Repository::open_at(&bare, environment(&sandbox)).unwrap();
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    assert_eq!(directory.path, bare.join("relo/worktrees/a"));
    assert_clean_by_stat(&sandbox, &directory);
    layout::settle(&store, &agent, Insist::No).unwrap();

    sandbox.git(&["config", "relo.workspace.root", "my [places]"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "b", "HEAD");
    let directory = materialize(&store, &agent);
    assert_eq!(directory.path, sandbox.repo().join("my [places]/b"));
    assert_eq!(sandbox.git_text(&["status", "--porcelain", "-uall"]), "");
    // Where it was made stays true when the setting changes.
    sandbox.git(&["config", "relo.workspace.root", "../outside"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    assert!(layout::open(&store, &agent).unwrap().is_some());
    layout::settle(&store, &agent, Insist::No).unwrap();
    let directory = materialize(&store, &agent);
    assert_eq!(
        directory.path.canonicalize().unwrap(),
        sandbox.root().join("outside/b")
    );
}

#[test]
fn from_a_linked_worktree_and_from_inside_a_directory() {
    let sandbox = sample();
    let user = sandbox.root().join("user");
    sandbox.git(&["worktree", "add", "-q", "--detach", user.to_str().unwrap()]);
    let repository = Repository::open_at(&user, environment(&sandbox)).unwrap();
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    assert_eq!(directory.path, user.join(".relo/worktrees/a"));
    assert_eq!(git_in(&sandbox, &user, &["status", "--porcelain"]), "");
    // Found from the main one.
    let main = open(&sandbox);
    let from_main = Store::new(&main, NOW);
    assert_eq!(
        layout::open(&from_main, &agent).unwrap().unwrap().path,
        directory.path
    );
    // A second one made inside the first lies beside it.
    let inside = Repository::open_at(&directory.path, environment(&sandbox)).unwrap();
    let inside = Store::new(&inside, NOW);
    let other = create(&inside, "b", "HEAD");
    assert_eq!(
        materialize(&inside, &other).path,
        user.join(".relo/worktrees/b")
    );
}

#[test]
fn a_link_in_the_way_is_refused() {
    let sandbox = sample();
    let outside = sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, sandbox.repo().join(".relo")).unwrap();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    // A link of that name is no folder: the pattern does not hide it.
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(refused.refusal().is_some(), "{refused}");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(store.open_directory(&agent).unwrap(), None);
}

#[test]
fn a_tree_that_git_would_not_check_out_leaves_nothing() {
    let sandbox = sample();
    let blob = sandbox.git_text(&["rev-parse", "HEAD:plain.txt"]);
    let make = |line: String| {
        let tree = sandbox.git_with_input(&["mktree"], line.as_bytes());
        String::from_utf8(tree).unwrap().trim().to_owned()
    };
    let inner = make(format!("100644 blob {blob}\tconfig\n"));
    let tree = make(format!(
        "100644 blob {blob}\ta\n040000 tree {inner}\t.GIT\n"
    ));
    let commit = sandbox.git_text(&["commit-tree", "-m", "evil", &tree]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", &commit);
    let refused = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::ProtectedPath), "{refused}");
    nothing_left(&sandbox, &store, &agent);
}

fn nothing_left(sandbox: &Sandbox, store: &Store<'_>, agent: &AgentId) {
    assert_eq!(store.open_directory(agent).unwrap(), None);
    assert!(!sandbox.repo().join(".git/worktrees").exists());
    let left: Vec<PathBuf> = fs::read_dir(sandbox.repo().join(".relo/worktrees"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| !path.ends_with(".trash"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_missing_blob_is_named_and_leaves_nothing() {
    let sandbox = sample();
    let blob = sandbox.git_text(&["rev-parse", "HEAD:sub/deep/er/file"]);
    let file = format!(".git/objects/{}/{}", &blob[..2], &blob[2..]);
    fs::remove_file(sandbox.repo().join(file)).unwrap();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let error = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("sub/deep/er/file"), "{error}");
    nothing_left(&sandbox, &store, &agent);
}

#[test]
fn a_mount_is_refused_to_who_cannot_start_itself_and_for_some_paths() {
    let sandbox = sample();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let options = Options {
        backend: Choice::Overlay,
        ..Options::default()
    };
    let refused = layout::materialize(&store, &agent, &options).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Unsupported));
    let options = Options {
        backend: Choice::Overlay,
        pathspecs: vec![git_vws::model::RepoPath::new("plain.txt").unwrap()],
        ..Options::default()
    };
    let refused = layout::materialize(&store, &agent, &options).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Unsupported));
    assert_eq!(store.open_directory(&agent).unwrap(), None);
}

#[test]
fn links_are_plain_files_where_the_repository_says_so() {
    let sandbox = sample();
    sandbox.git(&["config", "core.symlinks", "false"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let directory = materialize(&store, &agent);
    let link = directory.path.join("link");
    assert!(fs::symlink_metadata(&link).unwrap().is_file());
    assert_eq!(fs::read(link).unwrap(), b"plain.txt");
    assert_clean_by_stat(&sandbox, &directory);
}

/// Every file of a folder with its mode and bytes, `.git` aside.
fn content(folder: &Path, below: &str, found: &mut Vec<(String, u32, Vec<u8>)>) {
    let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(Result::unwrap).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = format!("{below}/{:?}", entry.file_name());
        let meta = entry.metadata().unwrap();
        if below.is_empty() && entry.file_name() == ".git" {
            continue;
        }
        if meta.is_dir() {
            content(&entry.path(), &name, found);
        } else if meta.is_symlink() {
            let target = fs::read_link(entry.path()).unwrap().into_os_string();
            found.push((name, 0, target.into_encoded_bytes()));
        } else {
            found.push((name, meta.mode(), fs::read(entry.path()).unwrap()));
        }
    }
}

#[test]
fn rewritten_content_is_as_git_checks_it_out() {
    type Setup = fn(&Sandbox);
    let cases: [(&str, Setup); 5] = [
        ("deep eol", |s| {
            s.write("sub/deep/.gitattributes", "* text eol=crlf\n")
        }),
        ("ident", |s| {
            s.write("sub/.gitattributes", "*.c ident\n");
            s.write("sub/x.c", "/* $Id$ */\n");
        }),
        ("filter", |s| {
            s.write(".gitattributes", "*.up filter=up\n");
            s.write("sub/f.up", "lower\n");
            s.git(&["config", "filter.up.smudge", "tr a-z A-Z"]);
            s.git(&["config", "filter.up.clean", "tr A-Z a-z"]);
        }),
        ("autocrlf", |s| {
            s.git(&["config", "core.autocrlf", "true"]);
        }),
        ("encoding in info/attributes", |s| {
            fs::write(
                s.repo().join(".git/info/attributes"),
                "*.u working-tree-encoding=UTF-16LE\n",
            )
            .unwrap();
            s.write("sub/f.u", b"a\0\n\0".as_slice());
        }),
    ];
    for (name, setup) in cases {
        let sandbox = sample();
        setup(&sandbox);
        sandbox.commit("two");
        let theirs = sandbox.root().join("theirs");
        sandbox.git(&[
            "worktree",
            "add",
            "-q",
            "--detach",
            theirs.to_str().unwrap(),
        ]);
        let repository = open(&sandbox);
        let store = Store::new(&repository, NOW);
        let agent = create(&store, "a", "HEAD");
        let directory = materialize(&store, &agent);
        let (mut ours, mut expected) = (Vec::new(), Vec::new());
        content(&directory.path, "", &mut ours);
        content(&theirs, "", &mut expected);
        assert_eq!(ours, expected, "{name}");
        assert_clean_by_stat(&sandbox, &directory);
        layout::settle(&store, &agent, Insist::No).unwrap();
    }
}

#[test]
fn a_required_filter_that_is_missing_is_named() {
    let sandbox = sample();
    sandbox.write(".gitattributes", "*.big filter=bigfiles\n");
    sandbox.write("f.big", "x\n");
    sandbox.commit("two");
    sandbox.git(&["config", "filter.bigfiles.required", "true"]);
    sandbox.git(&["config", "filter.bigfiles.smudge", "no-such-program"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let error = layout::materialize(&store, &agent, &Options::default()).unwrap_err();
    assert!(error.to_string().contains("bigfiles"), "{error}");
    nothing_left(&sandbox, &store, &agent);
}

#[test]
fn other_forms_of_repositories() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let sandbox = Sandbox::without_repo();
        sandbox.git(&["init", "-q", option]);
        sandbox.write("d/f", "x\n");
        sandbox.commit("one");
        let config = sandbox.read(".git/config");
        let repository = open(&sandbox);
        let store = Store::new(&repository, NOW);
        let agent = create(&store, "a", "HEAD");
        let directory = materialize(&store, &agent);
        assert_clean_by_stat(&sandbox, &directory);
        let head = git_in(&sandbox, &directory.path, &["rev-parse", "HEAD"]);
        assert_eq!(head.trim(), directory.cut.commit.to_string(), "{option}");
        fs::write(directory.path.join("n"), "x").unwrap();
        assert!(
            layout::settle(&store, &agent, Insist::No)
                .unwrap()
                .captured
                .changed
        );
        assert_eq!(sandbox.read(".git/config"), config);
        assert!(!directory.admin.exists());
        sandbox.git(&["fsck"]);
    }
}

#[test]
fn five_thousand_files() {
    let sandbox = Sandbox::new();
    for n in 0..5_000 {
        let text = format!("{n}\n").repeat(n % 700);
        sandbox.write(format!("d{}/e{}/f{n}.txt", n % 70, n % 9), text);
    }
    sandbox.commit("one");
    sandbox.git(&["gc", "-q"]);
    let theirs = sandbox.root().join("theirs");
    let start = std::time::Instant::now();
    sandbox.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        theirs.to_str().unwrap(),
    ]);
    let by_git = start.elapsed();
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agent = create(&store, "a", "HEAD");
    let start = std::time::Instant::now();
    let directory = materialize(&store, &agent);
    let by_us = start.elapsed();
    println!("5,000 files: git worktree add {by_git:?}, materialize {by_us:?}");
    assert_eq!(directory.stats.files, 5_000);
    assert_clean_by_stat(&sandbox, &directory);
    let (mut ours, mut expected) = (Vec::new(), Vec::new());
    content(&directory.path, "", &mut ours);
    content(&theirs, "", &mut expected);
    assert!(ours == expected);
}

#[test]
fn many_at_once() {
    let sandbox = sample();
    let before = untouched(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, NOW);
    let agents: Vec<AgentId> = (0..6)
        .map(|n| create(&store, &format!("a{n}"), "HEAD"))
        .collect();
    std::thread::scope(|scope| {
        for agent in &agents {
            scope.spawn(|| {
                let repository = open(&sandbox);
                let store = Store::new(&repository, NOW);
                for _ in 0..6 {
                    let directory = materialize(&store, agent);
                    fs::write(directory.path.join("n"), agent.as_str()).unwrap();
                    layout::settle(&store, agent, Insist::No).unwrap();
                }
            });
        }
    });
    for agent in &agents {
        let spec = format!("refs/relo/vws/{agent}/overlay:n");
        assert_eq!(sandbox.git_text(&["cat-file", "-p", &spec]), agent.as_str());
    }
    assert_eq!(before, untouched(&sandbox));
    assert!(!sandbox.repo().join(".git/worktrees").exists());
}
