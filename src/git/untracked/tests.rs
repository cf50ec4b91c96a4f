//! Untracked paths are those that git tells, in trees with all that git treats in its own way.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::git::scratch::Scratch;
use crate::git::{ObjectFormat, StatusEntry};
use std::os::unix::fs::symlink;

fn put(scratch: &Scratch, path: &str) {
    let path = scratch.top().join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, "text\n").unwrap();
}

/// What we find, which is what one `git status` prints, and the strangers that git was asked about.
#[track_caller]
fn same_as_status(scratch: &Scratch) -> (Vec<String>, Option<Vec<String>>) {
    let repository = scratch.open();
    let index = scratch.top().join(".git/index");
    let ours = repository.untracked(&index, &|_| false).unwrap().paths;
    let status = scratch.git(&["status", "--porcelain=v2", "-z", "--untracked-files=all"]);
    let git: Vec<BString> = status
        .split_str("\0")
        .filter_map(|line| line.strip_prefix(b"? "))
        .map(BString::from)
        .collect();
    assert_eq!(ours, git);
    // And the same by the whole way, the tracked ones too.
    let found = repository
        .begin_status()
        .unwrap()
        .finish(|_| false)
        .unwrap();
    let whole = repository.status_in_one().unwrap();
    assert_eq!(found, whole);
    let untracked = |entry: &&StatusEntry| {
        matches!(
            entry,
            StatusEntry::Untracked { .. } | StatusEntry::Nested { .. }
        )
    };
    assert_eq!(found.iter().filter(untracked).count(), ours.len());
    let text = |paths: Vec<BString>| paths.iter().map(ToString::to_string).collect();
    let strangers = TrackedNames::read(&index, scratch.format).map(|names| {
        let mut all = strangers(scratch.top(), &names).0;
        all.sort();
        text(all)
    });
    (text(ours), strangers)
}

#[test]
fn a_tree_without_strangers_asks_nobody() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    for path in ["a", "dir/b", "dir.c", "dir0", "deep/er/still/c"] {
        put(&scratch, path);
    }
    scratch.git(&["add", "-A"]);
    let (ours, strangers) = same_as_status(&scratch);
    assert!(ours.is_empty());
    assert_eq!(strangers, Some(Vec::new()));
}

#[test]
fn strangers_of_every_kind_are_judged_as_git_does() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let top = scratch.top();
    for path in [
        "a",
        "dir/b",
        "dir/sub/c",
        "kept/out/tracked.o",
        "to-dir",
        "to-link/x",
        "to-file/x",
        "gone/x",
        "both/in",
        "both.c",
        "repo-within/tracked",
        "staged",
        "sub-file",
    ] {
        put(&scratch, path);
    }
    std::fs::write(top.join(".gitignore"), "*.o\nout/\nignored\n!keep.o\n").unwrap();
    scratch.git(&["add", "-f", "-A"]);
    scratch.git(&["commit", "-qm", "one"]);
    let head = scratch.line(&["rev-parse", "HEAD"]);
    let gitlinks = format!("160000 {head} 0\tsub\n160000 {head} 0\tsub-file\n");
    scratch.git_with(&["update-index", "--index-info"], gitlinks.as_bytes());
    // A tracked path whose stages say file and folder at once.
    let id = scratch.line(&["rev-parse", ":a"]);
    let stages = format!("100644 {id} 2\tswap\n100644 {id} 3\tswap/in\n");
    scratch.git_with(&["update-index", "--index-info"], stages.as_bytes());
    for folder in ["to-link", "to-file", "gone"] {
        std::fs::remove_dir_all(top.join(folder)).unwrap();
    }
    std::fs::remove_file(top.join("to-dir")).unwrap();
    symlink("dir", top.join("to-link")).unwrap();
    symlink("nowhere", top.join("dir/dangling")).unwrap();
    for path in [
        "new",
        "x.o",
        "keep.o",
        "dir/new",
        "dir/sub/out/ignored",
        "kept/out/new",
        "kept/out/tracked.x",
        "to-dir/in",
        "to-file",
        "both/new",
        "fresh/one",
        "fresh/x.o",
        "fresh/deep/er/two",
        "ignored/one",
        "sub/file-in-it",
        "swap/in",
        "swap/new",
        "new\nline",
        "[a]*",
        ":(top)x",
        "-z",
        "empty/.keep",
        "dir.git/x",
        "caf\u{e9}",
    ] {
        put(&scratch, path);
    }
    std::fs::remove_file(top.join("empty/.keep")).unwrap();
    for repository in ["nested", "fresh/nested", "repo-within", "ignored/nested"] {
        std::fs::create_dir_all(top.join(repository)).unwrap();
        scratch.git(&["init", "-q", repository]);
    }
    put(&scratch, "nested/inside");
    put(&scratch, "repo-within/new");
    scratch.git(&["add", "-N", "new"]);
    scratch.git(&["rm", "-q", "--cached", "staged"]);
    let made = rustix::fs::mknodat(
        CWD,
        top.join("dir/pipe"),
        FileType::Fifo,
        Mode::from_raw_mode(0o600),
        0,
    );
    made.unwrap();
    let (ours, strangers) = same_as_status(&scratch);
    assert!(ours.contains(&"nested/".to_owned()), "{ours:?}");
    assert!(ours.contains(&"fresh/deep/er/two".to_owned()), "{ours:?}");
    let strangers = strangers.unwrap();
    assert!(strangers.contains(&"ignored".to_owned()), "{strangers:?}");
    assert!(strangers.contains(&"dir/pipe".to_owned()), "{strangers:?}");
    assert!(strangers.iter().all(|path| !path.starts_with("sub/")));
    for more in ["3", "4"] {
        scratch.git(&["update-index", "--index-version", more]);
        assert_eq!(same_as_status(&scratch).0, ours);
    }
    scratch.git(&["update-index", "--split-index"]);
    let (split, strangers) = same_as_status(&scratch);
    assert_eq!((split, strangers), (ours, None));
}

#[test]
fn a_sparse_index_is_left_to_git() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    for path in ["top", "in/a", "in/sub/b", "out/c", "out/sub/d"] {
        put(&scratch, path);
    }
    scratch.git(&["add", "-A"]);
    scratch.git(&["commit", "-qm", "one"]);
    let sparse = ["sparse-checkout", "set", "--cone", "--sparse-index", "in"];
    assert!(scratch.succeeds(&sparse));
    scratch.git(&["config", "advice.sparseIndexExpanded", "false"]);
    for path in ["new", "in/new", "in/sub/new", "fresh/new"] {
        put(&scratch, path);
    }
    let (ours, strangers) = same_as_status(&scratch);
    assert_eq!(ours.len(), 4);
    assert_eq!(strangers, None);
    // Somebody made a folder outside of the cone by hand.
    put(&scratch, "out/sub/new");
    assert_eq!(same_as_status(&scratch).0.len(), 5);
}

#[test]
fn many_strangers_are_covered_by_their_folders() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    std::fs::write(scratch.top().join(".gitignore"), "*.o\n").unwrap();
    for n in 0..80 {
        put(&scratch, &format!("dir/{}/{n}.c", n % 8));
        put(&scratch, &format!("dir/{}/more/{n}.c", n % 8));
    }
    scratch.git(&["add", "-A"]);
    for n in 0..80 {
        put(&scratch, &format!("dir/{}/{n}.o", n % 8));
        put(&scratch, &format!("dir/{}/more/{n}.h", n % 8));
    }
    let (ours, strangers) = same_as_status(&scratch);
    assert_eq!(ours.len(), 80);
    assert_eq!(strangers.unwrap().len(), 160);
    let paths = |count: usize, prefix: &str| {
        let one = |n| BString::from(format!("{prefix}{n}"));
        (0..count).map(one).collect::<Vec<_>>()
    };
    assert_eq!(cover(paths(MOST_PATHS, "d/")).len(), MOST_PATHS);
    assert_eq!(cover(paths(MOST_PATHS + 1, "d/")), ["d"]);
    assert_eq!(cover(paths(MOST_PATHS + 1, "")), [""]);
}

#[test]
fn an_index_that_moves_under_the_look_is_read_in_one() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    put(&scratch, "a");
    scratch.git(&["add", "a"]);
    put(&scratch, "late");
    let repository = scratch.open();
    let begun = repository.begin_status().unwrap();
    // Long enough for git to have read the index without it.
    std::thread::sleep(std::time::Duration::from_millis(60));
    scratch.git(&["add", "late"]);
    let found = begun.finish(|_| false).unwrap();
    assert_eq!(found, repository.status_in_one().unwrap());
    assert!(found.iter().any(|entry| entry.path() == "late"));
}

/// The repository with a `git` that notes its commands in `.git/asked`, and begins a `status` only when there
/// is a file `.git/go`.
fn slowed(scratch: &Scratch) -> Repository {
    let bin = scratch.top().join(".git/bin");
    std::fs::create_dir(&bin).unwrap();
    let path = std::env::var("PATH").unwrap();
    let text = format!(
        "#!/bin/sh\nPATH='{path}'\nhere='{}'\necho \" $* \" >>\"$here/asked\"\n\
         case \" $* \" in *' status '*) while test ! -e \"$here/go\"; do sleep 0.01; done ;; esac\n\
         exec git \"$@\"\n",
        scratch.top().join(".git").display()
    );
    std::fs::write(bin.join("text"), text).unwrap();
    // A process of its own makes the program: a child of another test could hold it open for writing, and then
    // the system would not start it.
    let made = std::process::Command::new("sh")
        .args(["-c", "cp text git && chmod 755 git"])
        .current_dir(&bin)
        .status();
    assert!(made.unwrap().success());
    let mut environment = scratch.open().environment().clone();
    let slow = format!("{}:{path}", bin.display());
    environment.variables.insert("PATH".into(), slow.into());
    Repository::open_at(scratch.top(), environment).unwrap()
}

/// What is found where `meanwhile` happens after the names were listed and before git looks at what is
/// tracked, and how often git was asked about strangers.
fn with_meanwhile(scratch: &Scratch, meanwhile: impl Fn()) -> (Vec<StatusEntry>, usize) {
    let repository = slowed(scratch);
    let go = scratch.top().join(".git/go");
    let begun = repository.begin_status().unwrap();
    let found = begun.finish(|_| {
        // The first stranger is held against this when all are known.
        if !go.exists() {
            meanwhile();
            std::fs::write(&go, "").unwrap();
        }
        false
    });
    let asked = std::fs::read_to_string(scratch.top().join(".git/asked")).unwrap();
    let asked = asked.lines().filter(|line| line.contains(" ls-files "));
    (found.unwrap(), asked.count())
}

/// A tree with a stranger in it, which was last touched some ticks of the clock ago.
fn settled(gone: &[&str]) -> Scratch {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    for path in ["a", "from/sub/x", "from/y", "to/z"] {
        put(&scratch, path);
    }
    scratch.git(&["add", "-A"]);
    put(&scratch, "new/file");
    for path in gone {
        std::fs::remove_file(scratch.top().join(path)).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(30));
    scratch
}

#[test]
fn what_moves_under_the_look_is_found_where_it_went() {
    let moves = [
        ("from/sub/x", "to/x", "to/x"),
        ("a", "to/b", "to/b"),
        ("from/sub", "to/sub", "to/sub/x"),
        ("from", "to/there", "to/there/sub/x"),
        ("from/y", "new/y", "new/y"),
    ];
    for (from, to, found) in moves {
        // One was deleted before, whose folder holds still.
        let scratch = settled(&["to/z"]);
        let top = scratch.top();
        let (entries, asked) = with_meanwhile(&scratch, || {
            std::fs::rename(top.join(from), top.join(to)).unwrap();
        });
        assert_eq!(asked, 2, "{to}");
        assert!(entries.iter().any(|entry| entry.path() == found), "{to}");
        assert_eq!(entries, scratch.open().status_in_one().unwrap(), "{to}");
    }
}

#[test]
fn what_was_deleted_before_costs_no_second_look() {
    let scratch = settled(&["a", "from/sub/x"]);
    let (entries, asked) = with_meanwhile(&scratch, || {});
    assert_eq!(asked, 1);
    assert_eq!(entries, scratch.open().status_in_one().unwrap());
    assert!(entries.iter().filter(|entry| entry.is_gone()).count() == 2);
}
