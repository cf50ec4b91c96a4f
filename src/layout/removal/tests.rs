//! Removal: what goes, and what must not.
#![allow(clippy::unwrap_used)]
use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

#[test]
fn links_are_removed_and_not_followed() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    fs::create_dir_all(top.join("outside/deep")).unwrap();
    fs::write(top.join("outside/deep/kept"), "x").unwrap();
    fs::create_dir_all(top.join("root/a/b/c")).unwrap();
    fs::write(top.join("root/a/b/f"), "x").unwrap();
    symlink(top.join("outside"), top.join("root/a/out")).unwrap();
    symlink("..", top.join("root/a/b/up")).unwrap();
    symlink("nowhere", top.join("root/a/b/c/dangling")).unwrap();
    let root = top.join("root");
    let aside = set_aside(&root, &root.join("a")).unwrap();
    assert!(!root.join("a").exists());
    assert_eq!(aside.delete(), None);
    assert_eq!(fs::read_dir(root.join(TRASH)).unwrap().count(), 0);
    assert_eq!(fs::read(top.join("outside/deep/kept")).unwrap(), b"x");
}

#[test]
fn a_link_in_the_place_of_the_directory_goes_alone() {
    let top = tempfile::tempdir().unwrap();
    let top = top.path();
    fs::create_dir_all(top.join("root")).unwrap();
    fs::create_dir_all(top.join("outside")).unwrap();
    fs::write(top.join("outside/kept"), "x").unwrap();
    symlink("../outside", top.join("root/a")).unwrap();
    discard(&top.join("root"), &top.join("root/a")).unwrap();
    assert!(!is_there(&top.join("root/a")).unwrap());
    assert_eq!(fs::read(top.join("outside/kept")).unwrap(), b"x");
}

#[test]
fn very_deep_and_very_wide_folders_go() {
    let root = tempfile::tempdir().unwrap();
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at = rustix::fs::open(root.path(), flags, Mode::empty()).unwrap();
    // Deeper than any path can name, and than a process may hold open by default.
    for _ in 0..3_000 {
        rustix::fs::mkdirat(&at, "d", Mode::RWXU).unwrap();
        rustix::fs::mkdirat(&at, "e", Mode::RWXU).unwrap();
        at = openat(&at, "d", flags, Mode::empty()).unwrap();
    }
    for n in 0..500 {
        rustix::fs::mkdirat(&at, format!("w{n}"), Mode::RWXU).unwrap();
    }
    drop(at);
    delete(root.path(), "d").unwrap();
    delete(root.path(), "e").unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}

#[test]
fn closed_folders_are_opened_up() {
    let root = tempfile::tempdir().unwrap();
    let shut = root.path().join("a/shut");
    fs::create_dir_all(shut.join("in")).unwrap();
    fs::write(shut.join("in/f"), "x").unwrap();
    for mode in [0o555, 0o000] {
        fs::create_dir_all(shut.join("in")).unwrap();
        fs::set_permissions(shut.join("in"), fs::Permissions::from_mode(mode)).unwrap();
        fs::set_permissions(&shut, fs::Permissions::from_mode(mode)).unwrap();
        delete(root.path(), "a").unwrap();
        assert!(!root.path().join("a").exists());
    }
}

#[test]
fn a_sweep_deletes_what_was_left() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join(".trash/a-1/b")).unwrap();
    fs::write(root.path().join(".trash/f"), "x").unwrap();
    assert!(sweep(root.path()).is_empty());
    assert_eq!(fs::read_dir(root.path().join(TRASH)).unwrap().count(), 0);
    assert!(sweep(&root.path().join("none")).is_empty());
}
