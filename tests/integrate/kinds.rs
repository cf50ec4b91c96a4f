//! Every kind of refusal has its case, and leaves the user's path as it was.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use git_vws::git::tree::{self, LINK};
use git_vws::git::{ObjectKind, tree::Entry};
use git_vws::integrate::{self, Accept, Verdict};
use git_vws::model::Refusal;
use git_vws::workspace::{Change, Kind, Terms};

use crate::place::*;

#[test]
fn each_kind_of_refusal() {
    let files = [
        "conflict", "binary", "deleted", "edited", "linked", "folder", "fifo", "large", "unmerged",
        "unsaved", "out/in", "fine",
    ];
    let all: Vec<(&str, &str)> = files.iter().map(|f| (*f, "base\n")).collect();
    let place = Place::new(&all);
    place
        .sandbox
        .git(&["config", "relo.workspace.maxFileSize", "1000"]);
    let repository = open(&place.sandbox);
    let place = Place {
        repository,
        ..place
    };
    place.create("a");
    let mut edits: Vec<_> = files.iter().map(|f| write(f, "agent\n")).collect();
    edits[1] = write("binary", "agent\0\n");
    edits[3] = delete("edited");
    place.edit("a", &edits);
    // A tree from elsewhere may hold what no edit of ours lets through.
    place
        .store()
        .publish(&id("a"), Terms::default(), |current, staging| {
            let target = staging.add(ObjectKind::Blob, b"../../outside")?;
            let link = Entry {
                mode: LINK,
                id: target,
            };
            let edits = [("escaping".into(), Some(link))].into();
            let tree = tree::edit(staging, current.tree, &edits)?;
            Ok(Some(Change::new(Kind::Write, Vec::new(), tree)))
        })
        .unwrap();
    place.propose("a");

    let repo = place.sandbox.repo();
    let at = |name: &str| repo.join(name);
    place.sandbox.write("conflict", b"user\n");
    place.sandbox.write("binary", b"user\0\n");
    fs::remove_file(at("deleted")).unwrap();
    place.sandbox.write("edited", b"user\n");
    fs::remove_file(at("linked")).unwrap();
    symlink("fine", at("linked")).unwrap();
    fs::remove_file(at("folder")).unwrap();
    place.sandbox.write("folder/x", b"user\n");
    fs::remove_file(at("fifo")).unwrap();
    let made = Command::new("mkfifo").arg(at("fifo")).status().unwrap();
    assert!(made.success());
    place.sandbox.write("large", vec![b'x'; 1001]);
    let blob = place.sandbox.git_text(&["rev-parse", "HEAD:unmerged"]);
    let stages: String = (1..4)
        .map(|n| format!("100644 {blob} {n}\tunmerged\n"))
        .collect();
    place
        .sandbox
        .git_with_input(&["update-index", "--index-info"], stages.as_bytes());
    let outside = place.sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("in"), "base\n").unwrap();
    fs::remove_dir_all(at("out")).unwrap();
    symlink(&outside, at("out")).unwrap();

    let mut request = request("a", &[]);
    request.unsaved = vec![path("unsaved")];
    let users = place.users();
    let expected = [
        "binary binary",
        "conflict conflict",
        "deleted delete_edit",
        "edited delete_edit",
        "escaping escapes",
        "fifo special_file",
        "fine clean",
        "folder type_change",
        "large too_large",
        "linked type_change",
        "out/in escapes",
        "unmerged unmerged",
        "unsaved unsaved_buffer",
    ];
    request.dry_run = true;
    let planned = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(verdicts(&planned), expected);
    assert_eq!(place.read("fine"), "base\n");
    request.dry_run = false;
    let accepted = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(verdicts(&accepted), expected);
    assert_eq!(place.read("conflict"), "user\n");
    assert_eq!(place.read("binary"), "user\0\n");
    assert!(!place.exists("deleted") && !place.exists("escaping"));
    assert_eq!(place.read("edited"), "user\n");
    assert_eq!(fs::read_link(at("linked")).unwrap(), *"fine");
    assert_eq!(place.read("folder/x"), "user\n");
    assert_eq!(fs::read(at("large")).unwrap().len(), 1001);
    assert_eq!(fs::read_to_string(outside.join("in")).unwrap(), "base\n");
    assert_eq!(place.read("unmerged"), "base\n");
    assert_eq!(place.read("unsaved"), "base\n");
    assert_eq!(place.read("fine"), "agent\n");
    assert_eq!(place.users(), users);
}

/// Accepts `f` with its conflict marked.
fn marked(place: &Place, dry_run: bool) -> integrate::Accepted {
    let request = Accept {
        conflicts: integrate::Conflicts::Mark,
        dry_run,
        ..request("a", &["f", "bin"])
    };
    integrate::accept(&place.store(), &request).unwrap()
}

#[test]
fn a_conflict_is_marked_where_that_is_asked_for() {
    let user = TEN.replace("5\n", "user\n").replace("1\n2\n", "first\n2\n");
    let agent = TEN.replace("5\n", "agent\n").replace("9\n", "nine\n");
    for (style, label) in [
        ("merge", None),
        ("diff3", Some("base")),
        ("zdiff3", Some("base")),
    ] {
        let place = Place::new(&[("f", TEN), ("bin", "0\0\n")]);
        place.create("a");
        place.edit("a", &[write("f", &agent), write("bin", "a\0\n")]);
        place.propose("a");
        place.sandbox.write("f", user.as_bytes());
        place.sandbox.write("bin", b"u\0\n");
        place.sandbox.git(&["config", "merge.conflictStyle", style]);
        let repository = open(&place.sandbox);
        let place = Place {
            repository,
            ..place
        };
        let expected = ["bin binary", "f marked"];
        assert_eq!(verdicts(&marked(&place, true)), expected);
        assert_eq!(place.read("f"), user);
        let accepted = marked(&place, false);
        assert_eq!(verdicts(&accepted), expected);
        // git itself is asked for the text.
        let root = place.sandbox.root();
        for (name, text) in [
            ("ours", user.as_str()),
            ("base", TEN),
            ("theirs", agent.as_str()),
        ] {
            fs::write(root.join(name), text).unwrap();
        }
        let mut git = place.sandbox.command("git");
        git.current_dir(root).args(["merge-file", "-p"]);
        if let Some(label) = label {
            git.arg(format!("--{style}"));
            assert_eq!(label, "base");
        }
        git.args(["-L", "working tree", "-L", "base", "-L", "a r2"]);
        let git = git.args(["ours", "base", "theirs"]).output().unwrap();
        assert_eq!(place.read("f").as_bytes(), git.stdout, "{style}");
        assert_eq!(git.status.code(), Some(1));
        // Journalled like any other: decided, and undone to the byte.
        assert_eq!(place.states("a"), ["r2 bin proposed", "r2 f accepted"]);
        place.undo();
        assert_eq!(place.read("f"), user);
        assert_eq!(place.states("a"), ["r2 bin proposed", "r2 f proposed"]);
    }
}

#[test]
fn markers_are_for_named_paths_only_and_a_wrong_style_is_said() {
    let place = Place::new(&[("f", TEN)]);
    place.create("a");
    place.write("a", "f", &ten(1, "agent"));
    place.propose("a");
    for which in [request("a", &[]), all()] {
        let request = Accept {
            conflicts: integrate::Conflicts::Mark,
            ..which
        };
        let error = integrate::accept(&place.store(), &request).unwrap_err();
        assert_eq!(error.refusal(), Some(Refusal::Unsupported));
    }
    // Where there is no conflict, nothing is marked.
    let accepted = marked_f(&place).unwrap();
    assert_eq!(accepted.outcomes[0].verdict, Verdict::Clean);
    place.undo();
    place
        .sandbox
        .git(&["config", "merge.conflictStyle", "nonsense"]);
    let repository = open(&place.sandbox);
    let place = Place {
        repository,
        ..place
    };
    let error = marked_f(&place).unwrap_err().to_string();
    assert!(error.contains("merge.conflictstyle"), "{error}");
    assert_eq!(place.read("f"), TEN);
}

fn marked_f(place: &Place) -> integrate::Result<integrate::Accepted> {
    let request = Accept {
        conflicts: integrate::Conflicts::Mark,
        ..request("a", &["f"])
    };
    integrate::accept(&place.store(), &request)
}
