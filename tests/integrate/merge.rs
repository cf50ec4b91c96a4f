//! What lands in the user's tree: units, links, modes, many agents, line ends, races.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use git_vws::integrate;
use git_vws::workspace::Edit;

use crate::common::Sandbox;
use crate::place::*;

#[test]
fn a_rename_is_one_unit_and_takes_the_users_edit_along() {
    let place = Place::new(&[("old", TEN), ("keep", "k\n")]);
    place.create("a");
    place.edit("a", &[delete("old"), write("new", &ten(9, "agent"))]);
    let proposal = place.propose("a");
    assert_eq!(
        proposal
            .change(b"new")
            .unwrap()
            .rename
            .as_ref()
            .unwrap()
            .path,
        "old"
    );
    place.sandbox.write("old", ten(1, "user").as_bytes());
    // Either half stands for both.
    let accepted = place.accept("a", &["new"]);
    assert_eq!(verdicts(&accepted), ["new merged", "old clean"]);
    assert!(!place.exists("old"));
    assert_eq!(place.read("new"), ten(1, "user").replace("9\n", "agent\n"));
    place.undo();
    assert!(!place.exists("new"));
    assert_eq!(place.read("old"), ten(1, "user"));
    // Edits of the same line: neither half lands.
    place.sandbox.write("old", ten(9, "user").as_bytes());
    let refused = place.accept("a", &["old"]);
    assert_eq!(verdicts(&refused), ["new conflict", "old conflict"]);
    assert!(place.exists("old") && !place.exists("new"));
    // The user deleted what the agent moved.
    fs::remove_file(place.sandbox.repo().join("old")).unwrap();
    let refused = place.accept("a", &[]);
    assert_eq!(verdicts(&refused), ["new delete_edit", "old delete_edit"]);
    assert_eq!(place.reject("a", &["new"]).changes.len(), 2);
}

#[test]
fn files_and_folders_swap() {
    let place = Place::new(&[("d/x", "x\n"), ("d/y", "y\n"), ("f", "f\n")]);
    place.create("a");
    place.edit(
        "a",
        &[
            delete("d"),
            write("d", "a file\n"),
            delete("f"),
            write("f/in", "deep\n"),
        ],
    );
    place.propose("a");
    let users = place.users();
    // Something of the user's is in the folder: the unit does not land, the other does.
    place.sandbox.write("d/own", b"mine\n");
    let accepted = place.accept("a", &[]);
    let expected = [
        "d type_change",
        "d/x type_change",
        "d/y type_change",
        "f clean",
        "f/in clean",
    ];
    assert_eq!(verdicts(&accepted), expected);
    assert_eq!(place.read("d/x"), "x\n");
    assert_eq!(place.read("f/in"), "deep\n");
    fs::remove_file(place.sandbox.repo().join("d/own")).unwrap();
    assert_eq!(
        verdicts(&place.accept("a", &["d"])),
        ["d clean", "d/x clean", "d/y clean"]
    );
    assert_eq!(place.read("d"), "a file\n");
    place.undo();
    assert_eq!(place.read("d/y"), "y\n");
    place.undo();
    assert_eq!(place.read("f"), "f\n");
    assert_eq!(place.users(), users);
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let place = Place::new(&[("real", "r\n"), ("f", "f\n"), ("d/x", "x\n"), ("l2", "")]);
    let repo = place.sandbox.repo();
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", "agent\n"),
            write("d/x", "agent\n"),
            Edit::Symlink {
                path: path("link"),
                target: "real".into(),
            },
        ],
    );
    place.propose("a");
    let outside = place.sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "x\n").unwrap();
    fs::remove_file(repo.join("f")).unwrap();
    symlink("real", repo.join("f")).unwrap();
    fs::remove_dir_all(repo.join("d")).unwrap();
    symlink("../outside", repo.join("d")).unwrap();
    let accepted = place.accept("a", &[]);
    assert_eq!(
        verdicts(&accepted),
        ["d/x escapes", "f type_change", "link clean"]
    );
    assert_eq!(
        fs::read_link(repo.join("link")).unwrap().to_str().unwrap(),
        "real"
    );
    assert_eq!(fs::read(outside.join("x")).unwrap(), b"x\n");
    assert_eq!(place.read("real"), "r\n");
}

#[test]
fn modes_are_kept_and_the_agents_bit_lands() {
    let place = Place::new(&[("run", "1\n"), ("secret", "s\n"), ("tool", "t\n")]);
    let repo = place.sandbox.repo();
    let mode = |name: &str| fs::metadata(repo.join(name)).unwrap().permissions().mode() & 0o777;
    let chmod = |name: &str, mode: u32| {
        fs::set_permissions(repo.join(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod("run", 0o755);
    chmod("secret", 0o600);
    place.create("a");
    place.edit(
        "a",
        &[
            write("run", "2\n"),
            write("secret", "t\n"),
            Edit::Chmod {
                path: path("tool"),
                executable: true,
            },
        ],
    );
    place.propose("a");
    let accepted = place.accept("a", &[]);
    assert!(!accepted.is_partial(), "{:?}", verdicts(&accepted));
    assert_eq!((mode("run"), mode("secret")), (0o755, 0o600));
    assert_eq!(mode("tool") & 0o111, 0o111);
    place.undo();
    assert_eq!((mode("run"), mode("secret")), (0o755, 0o600));
    assert_eq!(mode("tool") & 0o111, 0);
}

#[test]
fn union_twice_doubles_nothing() {
    let place = Place::new(&[("log.md", "t\n\n---\nA\n")]);
    place.create("a");
    place.write("a", "log.md", "t\n\n---\nA\n\n---\nC\n");
    place.propose("a");
    place.sandbox.write("log.md", b"t\n\n---\nA\n\n---\nB\n");
    assert_eq!(verdicts(&place.accept("a", &[])), ["log.md union"]);
    let both = "t\n\n---\nA\n\n---\nB\n\n---\nC\n";
    assert_eq!(place.read("log.md"), both);
    place.undo();
    place.sandbox.write("log.md", both.as_bytes());
    assert_eq!(verdicts(&place.accept("a", &[])), ["log.md identical"]);
    assert_eq!(place.read("log.md"), both);
}

#[test]
fn line_ends_and_filters_are_the_users() {
    let sandbox = Sandbox::new();
    sandbox.git_text(&["config", "core.autocrlf", "true"]);
    let place = Place::with(sandbox, &[("f", &TEN.replace('\n', "\r\n"))]);
    place.create("a");
    place.write("a", "f", &ten(9, "agent"));
    place.propose("a");
    place
        .sandbox
        .write("f", ten(1, "user").replace('\n', "\r\n").as_bytes());
    assert_eq!(verdicts(&place.accept("a", &[])), ["f merged"]);
    let merged = ten(1, "user")
        .replace("9\n", "agent\n")
        .replace('\n', "\r\n");
    assert_eq!(place.read("f"), merged);
}

#[test]
fn unmerged_sparse_and_unsaved_paths_have_their_own_answers() {
    let place = Place::new(&[("f", "base\n"), ("s", "base\n"), ("u", "base\n")]);
    place.create("a");
    place.edit(
        "a",
        &[write("f", "a\n"), write("s", "a\n"), write("u", "a\n")],
    );
    place.propose("a");
    let blob = place
        .sandbox
        .git_text(&["rev-parse", "HEAD:f"])
        .trim()
        .to_owned();
    let stages: String = (1..4).map(|n| format!("100644 {blob} {n}\tf\n")).collect();
    text_with(&place, &["update-index", "--index-info"], stages.as_bytes());
    place
        .sandbox
        .git_text(&["update-index", "--skip-worktree", "s"]);
    fs::remove_file(place.sandbox.repo().join("s")).unwrap();
    let mut request = request("a", &[]);
    request.unsaved = vec![path("u")];
    let users = place.users();
    let accepted = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(
        verdicts(&accepted),
        ["f unmerged", "s unsupported", "u unsaved_buffer"]
    );
    assert_eq!(place.users(), users);
}
