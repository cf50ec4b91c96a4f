//! Names, sizes and forms of repositories that are out of the ordinary.

use std::collections::BTreeMap;
use std::fs;

use bstr::{BString, ByteSlice};
use git_vws::integrate;
use git_vws::model::{Refusal, RepoPath};
use git_vws::workspace::{Edit, From, Mode, NewWorkspace, Store, Terms};

use crate::common::Sandbox;
use crate::place::*;

#[test]
fn hostile_names_survive() {
    let place = Place::new(&[("plain", "p\n")]);
    place.create("a");
    let names: [&[u8]; 6] = [
        b"\xff\xfe",
        b"a\nb\tc",
        b"-rf",
        "\u{202e}txt".as_bytes(),
        b" lead/trail ",
        b"q\"uote\\",
    ];
    let edits: Vec<Edit> = names
        .iter()
        .map(|name| Edit::Write {
            path: RepoPath::new(name).unwrap(),
            bytes: name.to_vec(),
            executable: None,
        })
        .collect();
    place.edit("a", &edits);
    let proposal = place.propose("a");
    assert_eq!(proposal.changes.len(), 6);
    let accepted = place.accept("a", &[]);
    assert!(!accepted.is_partial());
    for name in names {
        let file = place
            .sandbox
            .repo()
            .join(git_vws::git::os_str(name.as_bstr()));
        assert_eq!(fs::read(file).unwrap(), name);
    }
    let mut listed: Vec<BString> = accepted.outcomes.into_iter().map(|o| o.path).collect();
    listed.sort();
    let mut expected: Vec<BString> = names.iter().map(|n| BString::from(*n)).collect();
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn a_protected_path_in_a_foreign_tree_is_refused() {
    let place = Place::new(&[("f", "f\n")]);
    // A tree with `.relo/x` deleted: something that no edit of ours makes.
    let blob = place
        .sandbox
        .git_text(&["rev-parse", "HEAD:f"])
        .trim()
        .to_owned();
    let inner = text_with(
        &place,
        &["mktree"],
        format!("100644 blob {blob}\tx\n").as_bytes(),
    );
    let tree = format!(
        "100644 blob {blob}\tf\n040000 tree {}\t.relo\n",
        inner.trim()
    );
    let tree = text_with(&place, &["mktree"], tree.as_bytes());
    let commit = place
        .sandbox
        .git_text(&["commit-tree", "-m", "x", tree.trim()]);
    let new = NewWorkspace {
        from: From::Commit(commit.trim().to_owned()),
        mode: Mode::Virtual,
        read_only: false,
        session: None,
    };
    place.store().create(&id("a"), &new).unwrap();
    place.write("a", "g", "g\n");
    // `.relo/**` is not reported at all; with no rule against it, it is refused.
    place
        .sandbox
        .git_text(&["config", "relo.changes.ignorePaths", ""]);
    let repository = open(&place.sandbox);
    let store = Store::new(&repository, 1_700_000_000);
    store
        .publish(&id("a"), Terms::default(), |workspace, staging| {
            let edits: BTreeMap<_, _> = [(".relo/x".into(), None)].into();
            let tree = git_vws::git::tree::edit(staging, workspace.tree, &edits)?;
            let kind = git_vws::workspace::Kind::Delete;
            Ok(Some(git_vws::workspace::Change::new(
                kind,
                Vec::new(),
                tree,
            )))
        })
        .unwrap();
    integrate::propose(&store, &id("a"), None).unwrap();
    let accepted = integrate::accept(&store, &request("a", &[])).unwrap();
    assert_eq!(verdicts(&accepted), [".relo/x protected_path", "g clean"]);
}

/// The whole way, in a repository of another form.
fn round_trip(place: &Place) {
    place.create("a");
    place.edit("a", &[write("f", &ten(9, "agent")), write("n", "n\n")]);
    place.propose("a");
    place.write("a", "n", "m\n");
    place.propose("a");
    place.sandbox.write("f", ten(1, "user").as_bytes());
    let accepted = place.accept("a", &[]);
    assert_eq!(verdicts(&accepted), ["f merged", "n clean"]);
    assert_eq!(accepted.released, [id("a")]);
    place.undo();
    assert_eq!(place.read("f"), ten(1, "user"));
    place.sandbox.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(verdicts(&place.accept("a", &["n"])), ["n clean"]);
    assert_eq!(place.reject("a", &[]).changes.len(), 1);
}

#[test]
fn in_a_reftable_repository() {
    let sandbox = Sandbox::without_repo();
    sandbox.git(&["init", "-q", "--ref-format=reftable"]);
    round_trip(&Place::with(sandbox, &[("f", TEN)]));
}

#[test]
fn in_a_sha256_repository() {
    let sandbox = Sandbox::without_repo();
    sandbox.git(&["init", "-q", "--object-format=sha256"]);
    round_trip(&Place::with(sandbox, &[("f", TEN)]));
}

#[test]
fn before_the_first_commit() {
    let sandbox = Sandbox::new();
    let repository = open(&sandbox);
    let place = Place {
        sandbox,
        repository,
    };
    place.create("a");
    place.write("a", "f", "f\n");
    let proposal = place.propose("a");
    assert_eq!(proposal.changes.len(), 1);
    // Read back: the base is a tree without entries, which no tree can hold.
    assert_eq!(
        integrate::changes(&place.store(), None).unwrap(),
        [proposal]
    );
    assert_eq!(verdicts(&place.accept("a", &[])), ["f clean"]);
    place.undo();
    assert!(!place.exists("f"));
}

#[test]
fn without_an_execute_bit_on_disk_the_recorded_one_counts() {
    let sandbox = Sandbox::new();
    sandbox.write("run", b"1\n");
    sandbox.git(&["add", "run"]);
    sandbox.git(&["update-index", "--chmod=+x", "run"]);
    sandbox.git(&["commit", "-qm", "x"]);
    sandbox.git(&["config", "core.fileMode", "false"]);
    let repository = open(&sandbox);
    let place = Place {
        sandbox,
        repository,
    };
    place.create("a");
    place.write("a", "run", "2\n");
    place.propose("a");
    assert_eq!(verdicts(&place.accept("a", &[])), ["run clean"]);
    assert_eq!(place.sandbox.git_text(&["diff", "--summary"]), "");
    assert_eq!(place.read("run"), "2\n");
}

#[test]
fn refs_of_others_are_left_alone_and_damage_is_named() {
    let place = Place::new(&[("f", "f\n")]);
    place.create("a");
    place.write("a", "f", "x\n");
    place.propose("a");
    let sandbox = &place.sandbox;
    sandbox.git(&["update-ref", "refs/relo/changes/0a1b2c3d", "HEAD"]);
    sandbox.git(&["update-ref", "refs/relo/changes/some/thing/else", "HEAD"]);
    assert_eq!(place.states("a"), ["r2 f proposed"]);
    sandbox.git(&["update-ref", "refs/relo/changes/b/7", "HEAD"]);
    let error = integrate::accept(&place.store(), &all()).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Damaged));
    assert!(
        error.to_string().contains("refs/relo/changes/b/7"),
        "{error}"
    );
    // The others can still be decided one by one.
    assert_eq!(verdicts(&place.accept("a", &[])), ["f clean"]);
}
