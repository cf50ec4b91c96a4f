//! The workspace core through the library: bases, edits, publishing; git is the oracle.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use bstr::ByteSlice;
use common::Sandbox;
use git_vws::model::Refusal;
use git_vws::workspace::{Edit, Error, From, Side, Store, Terms};
use library::{agent, from, open, path, write};

/// The tree that git itself makes of the working tree, through a private copy of the index.
fn gits_tree(sandbox: &Sandbox) -> String {
    let index = sandbox.root().join("oracle-index");
    let real = sandbox.repo().join(".git/index");
    if real.exists() {
        std::fs::copy(real, &index).unwrap();
    }
    let run = |args: &[&str]| {
        let mut command = sandbox.command("git");
        command.args(args).env("GIT_INDEX_FILE", &index);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{args:?}: {}", out.stderr.as_bstr());
        out.stdout.trim_ascii().to_str().unwrap().to_owned()
    };
    run(&["add", "-A"]);
    let tree = run(&["write-tree"]);
    let _ = std::fs::remove_file(&index);
    tree
}

fn dirty(sandbox: &Sandbox) {
    let repo = sandbox.repo();
    sandbox.write(".gitignore", b"*.o\nout/\n");
    for name in [
        "a",
        "dir/b",
        "dir/sub/c",
        "run.sh",
        "gone",
        "staged",
        "both",
        "swap/x",
        "to-dir",
    ] {
        sandbox.write(name, format!("{name}\n1\n2\n").as_bytes());
    }
    symlink("a", repo.join("link")).unwrap();
    sandbox.commit("one");
    sandbox.write("a", b"edited\n");
    std::fs::remove_file(repo.join("gone")).unwrap();
    std::fs::set_permissions(repo.join("run.sh"), PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.write("staged", b"staged\n");
    sandbox.git(&["add", "staged"]);
    sandbox.write("both", b"staged\n");
    sandbox.git(&["add", "both"]);
    sandbox.write("both", b"and edited\n");
    sandbox.git(&["rm", "-q", "--cached", "dir/b"]);
    std::fs::remove_file(repo.join("link")).unwrap();
    symlink("dir", repo.join("link")).unwrap();
    std::fs::remove_dir_all(repo.join("swap")).unwrap();
    sandbox.write("swap", b"now a file\n");
    std::fs::remove_file(repo.join("to-dir")).unwrap();
    sandbox.write("to-dir/in", b"now a folder\n");
    sandbox.write("new file\n\"quoted\"", b"x");
    sandbox.write("deep/er/new", b"");
    sandbox.write("x.o", b"ignored");
    sandbox.write("out/y", b"ignored");
    sandbox.write("intent", b"to add\n");
    sandbox.git(&["add", "-N", "intent"]);
}

#[test]
fn the_base_is_the_working_tree_as_git_would_add_it() {
    let sandbox = Sandbox::new();
    dirty(&sandbox);
    let before = state(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_000);
    let created = store.create(&agent("a"), &from(From::WorkTree)).unwrap();
    assert_eq!(created.workspace.tree.to_string(), gits_tree(&sandbox));
    let base = created.base.unwrap();
    assert!(base.left_out.is_empty());
    assert_eq!(base.untracked.len(), 5, "{:?}", base.untracked);
    // The same tree on the same HEAD is the same commit, whoever asks and whenever.
    let later = Store::new(&repository, 1_800_000_000);
    let again = later.create(&agent("b"), &from(From::WorkTree)).unwrap();
    assert_eq!(again.workspace.base(), created.workspace.base());
    assert_eq!(state(&sandbox), before, "the user's side was touched");
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

/// All of the user's own state: index, HEAD, config, refs that are not ours.
fn state(sandbox: &Sandbox) -> Vec<Vec<u8>> {
    let git = sandbox.repo().join(".git");
    vec![
        std::fs::read(git.join("index")).unwrap_or_default(),
        std::fs::read(git.join("HEAD")).unwrap(),
        std::fs::read(git.join("config")).unwrap(),
        sandbox.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/stash"]),
    ]
}

#[test]
fn a_clean_tree_is_head_itself_and_an_unborn_branch_works() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"x");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let unborn = store.create(&agent("u"), &from(From::WorkTree)).unwrap();
    assert_eq!(unborn.workspace.tree.to_string(), gits_tree(&sandbox));
    assert!(sandbox.git(&["for-each-ref", "refs/heads"]).is_empty());
    let head = sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let clean = store.create(&agent("c"), &from(From::WorkTree)).unwrap();
    assert_eq!(clean.workspace.base().to_string(), head);
}

#[test]
fn flags_sparse_checkouts_and_conflicts_count_as_they_do_for_git() {
    let sandbox = Sandbox::new();
    for name in ["conf", "assumed", "f", "in/a", "out/b"] {
        sandbox.write(name, b"base\n");
    }
    sandbox.commit("one");
    sandbox.git(&["update-index", "--skip-worktree", "conf"]);
    sandbox.git(&["update-index", "--assume-unchanged", "assumed"]);
    sandbox.write("conf", b"local\n");
    sandbox.write("assumed", b"local\n");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let flagged = store
        .create(&agent("flags"), &from(From::WorkTree))
        .unwrap();
    assert_eq!(flagged.workspace.tree.to_string(), gits_tree(&sandbox));

    sandbox.git(&["update-index", "--no-skip-worktree", "conf"]);
    sandbox.git(&["update-index", "--no-assume-unchanged", "assumed"]);
    sandbox.git(&["checkout", "-q", "."]);
    sandbox.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "in"]);
    sandbox.write("in/a", b"edited\n");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let sparse = store
        .create(&agent("sparse"), &from(From::WorkTree))
        .unwrap();
    let objects = store
        .ls(&sparse.workspace, Side::Overlay, None, true)
        .unwrap();
    let names: Vec<_> = objects.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(names, ["assumed", "conf", "f", "in/a", "out/b"]);
    let read = store
        .read(&sparse.workspace, Side::Overlay, &path("in/a"))
        .unwrap();
    assert_eq!(read, b"edited\n");
}

#[test]
fn a_conflicted_merge_is_recorded_as_it_lies_on_disk() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"base\n");
    sandbox.commit("base");
    sandbox.git(&["checkout", "-q", "-b", "side"]);
    sandbox.write("f", b"side\n");
    sandbox.commit("side");
    sandbox.git(&["checkout", "-q", "main"]);
    sandbox.write("f", b"main\n");
    sandbox.commit("main");
    let merge = sandbox
        .command("git")
        .args(["merge", "-q", "side"])
        .output()
        .unwrap();
    assert!(!merge.status.success());
    let before = state(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let created = store.create(&agent("a"), &from(From::WorkTree)).unwrap();
    let read = store
        .read(&created.workspace, Side::Overlay, &path("f"))
        .unwrap();
    assert_eq!(read, sandbox.read("f"));
    assert!(read.contains_str("<<<<<<<"));
    assert_eq!(state(&sandbox), before);
    assert!(!sandbox.git(&["ls-files", "-u"]).is_empty());
}

#[test]
fn what_cannot_be_a_base_is_left_out_and_named() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"x");
    sandbox.write("t", b"tracked");
    sandbox.commit("one");
    let nested = sandbox.repo().join("nested");
    std::fs::create_dir(&nested).unwrap();
    sandbox.git(&["-C", "nested", "init", "-q"]);
    sandbox.write("nested/file", b"x");
    std::fs::remove_file(sandbox.repo().join("t")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        sandbox.repo().join("t"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    sandbox.write("big", [b'x'; 3000]);
    sandbox.write(".relo/own", b"never");
    sandbox.write("d/.vws-7-1.tmp", b"left by an accept that was stopped");
    sandbox.git(&["config", "relo.workspace.maxFileSize", "2k"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let created = store.create(&agent("a"), &from(From::WorkTree)).unwrap();
    let base = created.base.unwrap();
    let mut out: Vec<_> = base
        .left_out
        .iter()
        .map(|left| (left.path.to_string(), left.kind))
        .collect();
    out.sort();
    assert_eq!(
        out,
        [
            ("big".to_owned(), Refusal::TooLarge),
            ("nested".to_owned(), Refusal::NestedRepository),
            ("t".to_owned(), Refusal::SpecialFile),
        ]
    );
    let all = store
        .ls(&created.workspace, Side::Overlay, None, true)
        .unwrap();
    let names: Vec<_> = all.iter().map(|(path, _)| path.to_string()).collect();
    assert_eq!(names, ["f", "t"]);
}

#[test]
fn a_tracked_relo_folder_and_too_many_untracked_files_stay_out() {
    let sandbox = Sandbox::new();
    sandbox.write(".relo/state", b"tracked by mistake");
    sandbox.write("f", b"x");
    sandbox.commit("one");
    for n in 0..5 {
        sandbox.write(format!("new{n}"), b"x");
    }
    sandbox.write("f", b"edited");
    sandbox.git(&["config", "relo.workspace.maxUntracked", "4"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let created = store.create(&agent("a"), &from(From::WorkTree)).unwrap();
    assert_eq!(created.base.unwrap().untracked_left_out, 5);
    let all = store
        .ls(&created.workspace, Side::Overlay, None, true)
        .unwrap();
    assert_eq!(all.len(), 1);
    let read = store
        .read(&created.workspace, Side::Overlay, &path("f"))
        .unwrap();
    assert_eq!(read, b"edited");
}

#[test]
fn edits_give_the_tree_that_git_gives() {
    let sandbox = Sandbox::new();
    for name in ["a", "a.b", "dir/one", "dir/two", "dir/sub/three", "x y"] {
        sandbox.write(name, name.as_bytes());
    }
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let one = agent("one");
    store
        .create(&one, &from(From::Commit("HEAD".into())))
        .unwrap();
    let hostile = "n\new/\"q\"\t\u{e9}";
    let edits = [
        write("a", "new a"),
        write(hostile, "hostile"),
        Edit::Chmod {
            path: path("a.b"),
            executable: true,
        },
        Edit::Symlink {
            path: path("dir/link"),
            target: "../a".into(),
        },
        Edit::Rename {
            from: path("dir/sub"),
            to: path("moved/here"),
            force: false,
        },
        Edit::Delete {
            path: path("dir/one"),
            recursive: false,
        },
        write("moved/here/three", "edited after the rename"),
        Edit::Delete {
            path: path("x y"),
            recursive: false,
        },
        write("x y/now/deep", "a folder where a file was"),
    ];
    let published = store.edit(&one, Terms::default(), &edits).unwrap();
    // The same by hand, in the working tree.
    let repo = sandbox.repo();
    sandbox.write("a", b"new a");
    sandbox.write(hostile, b"hostile");
    std::fs::set_permissions(repo.join("a.b"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("../a", repo.join("dir/link")).unwrap();
    std::fs::create_dir(repo.join("moved")).unwrap();
    std::fs::rename(repo.join("dir/sub"), repo.join("moved/here")).unwrap();
    std::fs::remove_file(repo.join("dir/one")).unwrap();
    sandbox.write("moved/here/three", b"edited after the rename");
    std::fs::remove_file(repo.join("x y")).unwrap();
    sandbox.write("x y/now/deep", b"a folder where a file was");
    assert_eq!(published.workspace.tree.to_string(), gits_tree(&sandbox));
    assert_eq!(published.workspace.revision().to_string(), "2");
    // One edit at a time comes to the same.
    let two = agent("two");
    store
        .create(&two, &from(From::Commit("HEAD".into())))
        .unwrap();
    for edit in &edits {
        store
            .edit(&two, Terms::default(), std::slice::from_ref(edit))
            .unwrap();
    }
    let second = store.load(&two).unwrap();
    assert_eq!(second.tree, published.workspace.tree);
    assert_eq!(second.revision().get(), 1 + edits.len() as u64);
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn refusals_change_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"x");
    sandbox.write("d/g", b"x");
    symlink("d", sandbox.repo().join("l")).unwrap();
    symlink("../../etc", sandbox.repo().join("out")).unwrap();
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let a = agent("a");
    store.create(&a, &from(From::WorkTree)).unwrap();
    let kind = |edit: Edit| {
        let error = store.edit(&a, Terms::default(), &[edit]).unwrap_err();
        error.refusal().unwrap_or_else(|| panic!("{error}"))
    };
    assert_eq!(kind(write("f/x", "")), Refusal::TypeChange);
    assert_eq!(kind(write("d", "")), Refusal::TypeChange);
    assert_eq!(kind(write("l/g", "")), Refusal::Escapes);
    assert_eq!(kind(write("l", "")), Refusal::TypeChange);
    let link = |name: &str, target: &str| Edit::Symlink {
        path: path(name),
        target: target.into(),
    };
    assert_eq!(kind(link("n", "/etc/passwd")), Refusal::Escapes);
    assert_eq!(kind(link("d/n", "../../x")), Refusal::Escapes);
    assert_eq!(kind(link(".gitmodules", "f")), Refusal::ProtectedPath);
    let stale = Terms {
        expect: Some("7".parse().unwrap()),
        ..Terms::default()
    };
    let error = store.edit(&a, stale, &[write("f", "")]).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Stale));
    let workspace = store.load(&a).unwrap();
    assert_eq!(workspace.revision().get(), 1);
    let read = |name: &str| store.read(&workspace, Side::Overlay, &path(name));
    assert_eq!(read("l/g").unwrap(), b"x", "links are read inside the tree");
    assert_eq!(
        read("out/passwd").unwrap_err().refusal(),
        Some(Refusal::Escapes)
    );
    assert!(matches!(read("none"), Err(Error::NoPath { .. })));
    assert_eq!(read("d").unwrap_err().refusal(), Some(Refusal::TypeChange));
    // A read-only workspace refuses every write.
    let mut new = from(From::WorkTree);
    new.read_only = true;
    store.create(&agent("ro"), &new).unwrap();
    let error = store
        .edit(&agent("ro"), Terms::default(), &[write("f", "")])
        .unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::ReadOnly));
}

#[test]
fn names_that_are_taken_or_blocked() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"x");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let new = from(From::Commit("HEAD".into()));
    store.create(&agent("Foo"), &new).unwrap();
    for taken in ["Foo", "foo"] {
        let error = store.create(&agent(taken), &new).unwrap_err();
        assert!(matches!(error, Error::Exists { .. }), "{error}");
    }
    store.create(&agent("Foo.b"), &new).unwrap();
    sandbox.git(&["branch", "relo/x/y"]);
    let refs = sandbox.git(&["for-each-ref"]);
    let error = store.create(&agent("x"), &new).unwrap_err();
    assert!(error.to_string().contains("refs/heads/relo/x/y"), "{error}");
    assert_eq!(sandbox.git(&["for-each-ref"]), refs);
    let bad = from(From::Commit("no-such".into()));
    assert!(store.create(&agent("z"), &bad).is_err());
    assert_eq!(sandbox.git(&["for-each-ref"]), refs);
}

#[test]
fn every_revision_outlives_reflog_expiry_and_collection() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"0");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let a = agent("a");
    store.create(&a, &from(From::WorkTree)).unwrap();
    for n in 1..=60 {
        store
            .edit(&a, Terms::default(), &[write("f", &n.to_string())])
            .unwrap();
        if n % 20 == 0 {
            sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
            sandbox.git(&["gc", "-q", "--prune=now"]);
        }
    }
    let packs = std::fs::read_dir(sandbox.repo().join(".git/objects/pack")).unwrap();
    let packs = packs
        .filter(|entry| entry.as_ref().unwrap().path().extension() == Some("pack".as_ref()))
        .count();
    assert!(packs < 30, "{packs} packs");
    for n in [1u64, 2, 30, 61] {
        let at = store.load_at(&a, n.to_string().parse().unwrap()).unwrap();
        let read = store.read(&at, Side::Overlay, &path("f")).unwrap();
        assert_eq!(read, (n - 1).to_string().as_bytes());
    }
    let back = store
        .restore(&a, Terms::default(), "11".parse().unwrap())
        .unwrap();
    let read = store
        .read(&back.workspace, Side::Overlay, &path("f"))
        .unwrap();
    assert_eq!(read, b"10");
    let reflog = sandbox.git_text(&["reflog", "show", "refs/relo/vws/a/overlay"]);
    assert!(reflog.contains("vws a r62: restore f"), "{reflog}");
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn sixteen_writers_lose_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"0");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let a = agent("a");
    store.create(&a, &from(From::WorkTree)).unwrap();
    std::thread::scope(|scope| {
        for writer in 0..16 {
            let (sandbox, a) = (&sandbox, &a);
            scope.spawn(move || {
                let repository = open(sandbox);
                let store = Store::new(&repository, 1);
                for n in 0..5 {
                    let edit = write(&format!("w{writer}/{n}"), "x");
                    store.edit(a, Terms::default(), &[edit]).unwrap();
                }
            });
        }
    });
    let workspace = store.load(&a).unwrap();
    assert_eq!(workspace.revision().get(), 81);
    let all = store.ls(&workspace, Side::Overlay, None, true).unwrap();
    assert_eq!(all.len(), 81);
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn snaps_discard_and_dispose() {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"0");
    sandbox.write("d/g", b"0");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    let a = agent("a");
    store.create(&a, &from(From::WorkTree)).unwrap();
    let edits = [write("f", "1"), write("d/g", "1"), write("d/new", "1")];
    store.edit(&a, Terms::default(), &edits).unwrap();
    let snap = store.snap(&a, None).unwrap();
    let pinned = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/snap/2"]);
    assert_eq!(snap.commit.to_string(), pinned);
    store.discard(&a, Terms::default(), &[path("d")]).unwrap();
    let changed = store.diff(&store.load(&a).unwrap()).unwrap();
    assert_eq!(changed.len(), 1);
    let error = store.dispose(&a, false).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Conflict));
    let disposed = store.dispose(&a, true).unwrap();
    let trash = disposed.trash.unwrap();
    assert_eq!(trash, "refs/relo/trash/a/3");
    assert!(sandbox.git(&["for-each-ref", "refs/relo/vws"]).is_empty());
    let back = store
        .create(&agent("b"), &from(From::Commit(trash)))
        .unwrap();
    let read = store
        .read(&back.workspace, Side::Overlay, &path("f"))
        .unwrap();
    assert_eq!(read, b"1");
    assert!(!Path::new(&sandbox.repo().join(".git/refs/relo/vws/a/overlay")).exists());
}
