//! Setting refs, beside what git does.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::git::scratch::Scratch;
use crate::git::{Error, Expect, ObjectFormat};

fn two_commits(scratch: &Scratch) -> (ObjectId, ObjectId) {
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let one = scratch.id(&["rev-parse", "HEAD"]);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    (one, scratch.id(&["rev-parse", "HEAD"]))
}

fn refs(scratch: &Scratch) -> String {
    scratch.line(&["for-each-ref", "--format=%(refname) %(objectname)"])
}

#[test]
fn many_move_together_or_not_at_all() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let (one, two) = two_commits(&scratch);
    scratch.git(&["update-ref", "refs/relo/vws/b/base", &one.to_string()]);
    scratch.git(&["pack-refs", "--all"]);
    let repository = scratch.open();
    let list = |expect| {
        [
            RefUpdate::create("refs/relo/vws/a/base", one),
            RefUpdate::set("refs/relo/vws/b/base", expect, two),
            RefUpdate::set("refs/relo/vws/a/overlay", Expect::Anything, two).logged("first"),
        ]
    };
    let before = refs(&scratch);
    match repository.refs().apply(&list(Expect::Is(two))) {
        Err(Error::Moved { name, found, .. }) => {
            assert_eq!((&*name, found), ("refs/relo/vws/b/base", Some(one)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(refs(&scratch), before);
    assert!(
        !scratch
            .top()
            .join(".git/refs/relo/vws/a/base.lock")
            .exists()
    );
    repository.refs().apply(&list(Expect::Is(one))).unwrap();
    for (name, id) in [("a/base", one), ("b/base", two), ("a/overlay", two)] {
        let name = format!("refs/relo/vws/{name}");
        assert_eq!(scratch.id(&["rev-parse", &name]), id, "{name}");
    }
    assert!(scratch.succeeds(&["fsck", "--strict"]));
}

#[test]
fn reflogs_are_kept_where_git_keeps_them() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let (one, two) = two_commits(&scratch);
    for all in ["true", "always", "false"] {
        scratch.git(&["config", "core.logAllRefUpdates", all]);
        for kind in ["refs/heads/relo", "refs/relo/changes"] {
            let ours = format!("{kind}/{all}-ours");
            let theirs = format!("{kind}/{all}-git");
            let repository = scratch.open();
            let steps = [(Expect::Missing, one), (Expect::Is(one), two)];
            for (expect, new) in steps {
                let update = RefUpdate::set(&ours, expect, new);
                repository.refs().apply(&[update]).unwrap();
                scratch.git(&["update-ref", &theirs, &new.to_string()]);
            }
            let log = |name: &str| {
                let text = fs::read_to_string(scratch.top().join(".git/logs").join(name));
                text.ok().map(|text| {
                    let ids = text.lines().map(|line| line[..81].to_owned());
                    ids.collect::<Vec<_>>()
                })
            };
            assert_eq!(log(&ours), log(&theirs), "{ours}");
        }
    }
    // The message reads as git's own does, and a checked-out branch is noted for `HEAD` too.
    let branch = scratch.line(&["symbolic-ref", "HEAD"]);
    let branch = branch.trim().to_owned();
    scratch.git(&["config", "core.logAllRefUpdates", "true"]);
    let step = RefUpdate::set(&branch, Expect::Is(two), one).logged("two\nlines");
    scratch.open().refs().apply(&[step]).unwrap();
    for name in [branch.as_str(), "HEAD"] {
        let last = scratch.line(&["reflog", "-1", "--format=%H %gs", name]);
        assert_eq!(last.trim(), format!("{one} two lines"), "{name}");
    }
}

#[test]
fn a_name_that_is_a_folder_to_another_has_no_room() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let (one, _) = two_commits(&scratch);
    let id = one.to_string();
    for packed in [false, true] {
        let tag = if packed { "packed" } else { "loose" };
        scratch.git(&["update-ref", &format!("refs/relo/{tag}/a"), &id]);
        scratch.git(&["update-ref", &format!("refs/relo/{tag}/d/e/f"), &id]);
        if packed {
            scratch.git(&["pack-refs", "--all"]);
        }
        let before = refs(&scratch);
        for name in ["a/b", "a/b/c", "d", "d/e"] {
            let name = format!("refs/relo/{tag}/{name}");
            let made = scratch
                .open()
                .refs()
                .apply(&[RefUpdate::create(&name, one)]);
            assert!(matches!(made, Err(Error::Ref { .. })), "{name}: {made:?}");
            assert!(!scratch.top().join(format!(".git/{name}.lock")).exists());
        }
        assert_eq!(refs(&scratch), before);
    }
    // Folders of refs that are gone are no names.
    fs::create_dir_all(scratch.top().join(".git/refs/relo/old/ref/x")).unwrap();
    fs::create_dir_all(scratch.top().join(".git/logs/refs/relo/old/ref/x")).unwrap();
    let update = RefUpdate::create("refs/relo/old/ref", one).logged("new");
    scratch.open().refs().apply(&[update]).unwrap();
    assert_eq!(scratch.id(&["rev-parse", "refs/relo/old/ref"]), one);
}

#[test]
fn a_ref_that_holds_what_another_does_shares_its_file_until_one_moves() {
    use std::os::unix::fs::MetadataExt;
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let (one, two) = two_commits(&scratch);
    let overlay = "refs/relo/vws/a/overlay";
    let twin = |name: &str, id| RefUpdate::create(name, id).as_in(overlay.to_owned());
    let inode = |name: &str| {
        let file = scratch.top().join(".git").join(name);
        fs::metadata(file).unwrap().ino()
    };
    let apply = |update| scratch.open().refs().apply(&[update]).unwrap();
    apply(RefUpdate::create(overlay, one));
    apply(twin("refs/relo/vws/a/exec", one));
    assert_eq!(inode("refs/relo/vws/a/exec"), inode(overlay));
    // Something else than what stands there, and what has no file of its own.
    apply(twin("refs/relo/vws/a/other", two));
    scratch.git(&["update-ref", overlay, &two.to_string()]);
    scratch.git(&["pack-refs", "--all"]);
    apply(twin("refs/relo/vws/a/late", two));
    let expected = [
        ("exec", one),
        ("other", two),
        ("late", two),
        ("overlay", two),
    ];
    for (name, id) in expected {
        let name = format!("refs/relo/vws/a/{name}");
        assert_eq!(scratch.id(&["rev-parse", &name]), id, "{name}");
    }
    // Its own lock keeps everybody out as any other does.
    apply(RefUpdate::set(overlay, Expect::Is(two), one));
    let lock = scratch.top().join(".git/refs/relo/vws/a/held.lock");
    fs::write(&lock, "").unwrap();
    let refused = scratch
        .open()
        .refs()
        .apply(&[twin("refs/relo/vws/a/held", one)]);
    assert!(matches!(refused, Err(Error::Locked { .. })), "{refused:?}");
    assert!(lock.exists());
}

#[test]
fn a_name_that_is_a_folder_to_another_is_refused_as_git_refuses_it() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let (one, _) = two_commits(&scratch);
    let name = |rest: &str| format!("refs/relo/changes/{rest}");
    scratch.git(&["update-ref", &name("file"), &one.to_string()]);
    scratch.git(&["update-ref", &name("folder/below"), &one.to_string()]);
    for packed in [false, true] {
        if packed {
            scratch.git(&["pack-refs", "--all"]);
        }
        let before = refs(&scratch);
        for rest in ["file/below", "file/further/below", "folder"] {
            let step = RefUpdate::create(name(rest), one);
            assert!(scratch.open().refs().apply(&[step]).is_err(), "{rest}");
            let git = ["update-ref", &name(rest), &one.to_string()];
            assert!(!scratch.succeeds(&git), "{rest}");
            assert_eq!(refs(&scratch), before, "{rest}");
        }
        for rest in ["filed", "folder/beside"] {
            let step = RefUpdate::create(name(rest), one);
            scratch.open().refs().apply(&[step]).unwrap();
            scratch.git(&["update-ref", "-d", &name(rest)]);
        }
    }
}
