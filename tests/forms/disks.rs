//! What the settings say a disk cannot tell: execute bits, links, case, the form of accents.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use bstr::ByteSlice;

use crate::job::{Site, field};

fn set_mode(site: &Site, path: &str, mode: u32) {
    let mode = fs::Permissions::from_mode(mode);
    fs::set_permissions(site.top.join(path), mode).unwrap();
}

fn mode_of(site: &Site, path: &str) -> u32 {
    fs::metadata(site.top.join(path))
        .unwrap()
        .permissions()
        .mode()
        & 0o777
}

#[test]
fn without_execute_bits() {
    let site = Site::committed();
    site.git(&["config", "core.fileMode", "false"]);
    // The disk says nothing that counts: edited and 0644, untouched and 0755, new and 0755.
    site.write("run.sh", "#!/bin/sh\nedited\n");
    set_mode(&site, "run.sh", 0o644);
    set_mode(&site, "f", 0o755);
    site.write("new.sh", "#!/bin/sh\n");
    set_mode(&site, "new.sh", 0o755);
    let record = site.ok(&["overlay", "create", "a"]);
    assert_eq!(field(&record, "tree"), site.recorded());
    // The same in a directory.
    let script = "echo more >>run.sh && chmod 644 run.sh && chmod 755 gone && echo x >tool.sh &&
        chmod 755 tool.sh";
    site.ok(&["exec", "a", "--", "sh", "-c", script]);
    let diff = site.ok(&["overlay", "diff", "a"]);
    let modes: Vec<_> = diff.lines().map(|line| line[..15].as_bstr()).collect();
    assert_eq!(modes, [":100755 100755 ", ":000000 100644 "], "{diff}");
    // A change of the mode that somebody asks for is one.
    site.ok(&["overlay", "chmod", "a", "+x", "in/g"]);
    site.ok(&["propose", "a"]);
    site.ok(&["accept", "a"]);
    assert!(site.read("run.sh").ends_with(b"edited\nmore\n"));
    assert_eq!(mode_of(&site, "run.sh"), 0o644, "as the disk has it");
    site.ok(&["undo"]);
    assert_eq!(site.read("run.sh"), "#!/bin/sh\nedited\n");
}

#[test]
fn without_links() {
    let site = Site::committed();
    site.git(&["config", "core.symlinks", "false"]);
    site.git(&["checkout-index", "-f", "l"]);
    fs::remove_file(site.top.join("l")).unwrap();
    site.write("l", "f");
    assert_eq!(site.git(&["status", "--porcelain"]), "");
    let record = site.ok(&["overlay", "create", "a"]);
    assert_eq!(
        field(&record, "tree"),
        site.git_line(&["rev-parse", "HEAD^{tree}"])
    );
    let seen = site.ok(&[
        "exec",
        "a",
        "--",
        "sh",
        "-c",
        "test ! -L l && cat l && printf in/g >l",
    ]);
    assert_eq!(seen, "f");
    let raw = site.ok(&["overlay", "diff", "a"]);
    assert!(raw.starts_with(b":120000 120000 "), "{raw}");
    site.ok(&["propose", "a"]);
    site.ok(&["accept", "a"]);
    assert!(!site.top.join("l").is_symlink());
    assert_eq!(site.read("l"), "in/g");
    assert!(site.git(&["diff", "--raw"]).starts_with(b":120000 120000 "));
    // An edit of the user's is a link's new target, too.
    site.write("l", "out/h");
    let record = site.ok(&["overlay", "create", "b"]);
    assert_eq!(field(&record, "tree"), site.recorded());
    site.write("l", "in/g");
    site.ok(&["undo"]);
    assert_eq!(site.read("l"), "f");
    assert_eq!(site.git(&["status", "--porcelain"]), "");
}

#[test]
fn names_that_a_folding_disk_takes_for_one() {
    let site = Site::committed();
    site.git(&["config", "core.ignoreCase", "true"]);
    site.soil();
    let record = site.ok(&["overlay", "create", "a"]);
    assert_eq!(field(&record, "tree"), site.recorded());
    site.ok_with(&["overlay", "write", "a", "F"], b"another\n");
    // Byte for byte in the overlay; two files where the disk can hold two.
    assert_eq!(site.ok(&["overlay", "read", "a", "F"]), "another\n");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), site.read("f"));
    let seen = site.ok(&["exec", "a", "--", "cat", "F"]);
    assert_eq!(seen, "another\n");
}

#[test]
fn accents_stay_as_they_are() {
    let site = Site::committed();
    site.git(&["config", "core.precomposeUnicode", "true"]);
    for name in ["cafe\u{301}", "caf\u{e9}"] {
        site.write(name, name);
    }
    let record = site.ok(&["overlay", "create", "a"]);
    assert_eq!(field(&record, "tree"), site.recorded());
    site.ok(&[
        "exec",
        "a",
        "--",
        "sh",
        "-c",
        "for f in caf*; do echo x >>\"$f\"; done",
    ]);
    let changed = site.ok(&["overlay", "diff", "--name-status", "-z", "a"]);
    assert_eq!(
        changed.iter().filter(|b| **b == b'M').count(),
        2,
        "{changed}"
    );
}
