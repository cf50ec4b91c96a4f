//! Undo and redo: all or nothing, and never over later work.

use std::fs;

use git_vws::integrate::journal::{self, Kind, State};

use crate::rig::{Change, EXE, FILE, LINK, Rig, id, no_leftovers, refusal};

fn rig() -> Rig {
    let rig = Rig::new();
    rig.write("f", "f\n", 0o600);
    rig.write("run", "run\n", 0o754);
    rig.write("d/gone", "gone\n", 0o640);
    fs::set_permissions(
        rig.top().join("d"),
        std::os::unix::fs::PermissionsExt::from_mode(0o700),
    )
    .unwrap();
    rig.link("l", "f");
    rig
}

const CHANGES: &[Change<'static>] = &[
    ("f", 0, Some((EXE, "f2\n"))),
    ("run", 1, Some((FILE, "run2\n"))),
    ("d/gone", 2, None),
    ("l", 3, Some((LINK, "run"))),
    ("n/e/w", 4, Some((FILE, "new\n"))),
];

#[test]
fn undo_redo_undo_is_exact() {
    let rig = rig();
    let before = rig.tree();
    rig.accept(CHANGES);
    let after = rig.tree();
    assert_eq!(rig.bits("f"), 0o700);
    assert!(!after.contains_key("d"));
    let undone = rig.undo(None, &[]).unwrap();
    assert_eq!((undone.of, undone.redo), (id(1), false));
    let step = &undone.entry.steps[0];
    assert_eq!(step.agent.as_ref().unwrap().as_str(), "a");
    assert_eq!(step.proposal.unwrap().get(), 3);
    assert_eq!(rig.tree(), before);
    // An undo twice is no redo.
    assert_eq!(refusal(rig.undo(None, &[])), "already_decided");
    assert_eq!(refusal(rig.undo(Some(1), &[])), "already_decided");
    assert_eq!(rig.tree(), before);
    let redone = rig.undo(Some(2), &[]).unwrap();
    assert!(redone.redo);
    assert_eq!(rig.tree(), after);
    let undone = rig.undo(None, &[]).unwrap();
    assert_eq!((undone.of, undone.redo), (id(3), false));
    assert_eq!(rig.tree(), before);
    no_leftovers(&before);
    rig.fsck();
    let list = journal::list(rig.store()).unwrap();
    let kinds: Vec<_> = list
        .iter()
        .map(|summary| summary.entry.as_ref().unwrap())
        .map(|entry| (entry.id.get(), entry.kind, entry.state, entry.is_undone()))
        .collect();
    let undo = |of| Kind::Undo { of: id(of) };
    let expected = [
        (4, undo(3), State::Done, false),
        (3, undo(2), State::Done, true),
        (2, undo(1), State::Done, true),
        (1, Kind::Accept, State::Done, true),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn never_over_later_work() {
    for (name, spoil) in [
        ("f", "edit"),
        ("f", "chmod"),
        ("l", "edit"),
        ("n/e/w", "edit"),
        ("d/gone", "edit"),
        ("run", "gone"),
    ] {
        let rig = rig();
        rig.accept(CHANGES);
        let after = rig.tree();
        let at = rig.top().join(name);
        let restore = fs::read(&at).ok();
        match spoil {
            "edit" => {
                let _ = fs::remove_file(&at);
                rig.write(name, "mine\n", 0o644);
            }
            "gone" => fs::remove_file(&at).unwrap(),
            _ => fs::set_permissions(&at, std::os::unix::fs::PermissionsExt::from_mode(0o600))
                .unwrap(),
        }
        let spoilt = rig.tree();
        assert_eq!(
            refusal(rig.undo(None, &[])),
            "workspace_changed",
            "{name} {spoil}"
        );
        assert_eq!(rig.tree(), spoilt, "{name} {spoil}");
        assert_eq!(journal::list(rig.store()).unwrap().len(), 1);
        if name == "f" {
            rig.write("f", std::str::from_utf8(&restore.unwrap()).unwrap(), 0o700);
            assert_eq!(rig.tree(), after);
            rig.undo(None, &[]).unwrap();
        }
    }
}

#[test]
fn an_undo_does_not_widen_what_was_narrowed() {
    let rig = Rig::new();
    rig.write("f", "secret\n", 0o644);
    rig.accept(&[("f", 0, Some((FILE, "new\n")))]);
    fs::set_permissions(
        rig.top().join("f"),
        std::os::unix::fs::PermissionsExt::from_mode(0o600),
    )
    .unwrap();
    rig.undo(None, &[]).unwrap();
    assert_eq!(rig.tree()["f"], "file 600 \"secret\\n\"");
}

#[test]
fn a_part_at_a_time() {
    let rig = rig();
    let before = rig.tree();
    rig.accept(CHANGES);
    rig.undo(None, &["f", "n"]).unwrap();
    assert_eq!(rig.tree()["f"], before["f"]);
    assert!(!rig.tree().contains_key("n"));
    assert!(!journal::load(rig.store(), id(1)).unwrap().is_undone());
    assert_eq!(refusal(rig.undo(Some(1), &["f"])), "already_decided");
    assert!(rig.undo(Some(1), &["absent"]).is_err());
    rig.undo(None, &[]).unwrap();
    assert_eq!(rig.tree(), before);
    assert!(journal::load(rig.store(), id(1)).unwrap().is_undone());
}

#[test]
fn a_later_accept_on_the_path_comes_first() {
    let rig = rig();
    let before = rig.tree();
    rig.accept(&[("f", 0, Some((FILE, "one\n")))]);
    rig.accept(&[("f", 0, Some((FILE, "two\n")))]);
    assert_eq!(refusal(rig.undo(Some(1), &[])), "workspace_changed");
    // The same bytes again do not hide what came between.
    rig.accept(&[("f", 0, Some((FILE, "one\n")))]);
    assert_eq!(refusal(rig.undo(Some(1), &[])), "workspace_changed");
    for of in [3, 2, 1] {
        assert_eq!(rig.undo(None, &[]).unwrap().of, id(of));
    }
    assert_eq!(rig.tree(), before);
    assert_eq!(refusal(rig.undo(None, &[])), "already_decided");
}

#[test]
fn each_working_tree_has_its_own() {
    let rig = rig();
    let other = rig.sandbox.root().join("other");
    rig.sandbox
        .git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    rig.accept(&[("f", 0, Some((FILE, "one\n")))]);
    let linked = Rig::open(&rig.sandbox, &other);
    let store = git_vws::workspace::Store::new(&linked, 1);
    let journal = journal::Journal::lock(store).unwrap();
    let undo =
        |number| git_vws::integrate::undo::undo(&journal, number, &[], &mut crate::rig::nothing);
    assert!(matches!(undo(None), Err(journal::Error::NothingToUndo)));
    assert_eq!(refusal(undo(Some(id(1)))), "moved");
    assert!(matches!(
        undo(Some(id(9))),
        Err(journal::Error::NoEntry { .. })
    ));
    // Locked there, not here.
    rig.undo(None, &[]).unwrap();
}

#[test]
fn a_damaged_entry_is_shown_and_in_nobodys_way() {
    let rig = rig();
    rig.accept(&[("f", 0, Some((FILE, "one\n")))]);
    rig.accept(&[("run", 0, Some((EXE, "one\n")))]);
    rig.sandbox
        .git(&["update-ref", "refs/relo/journal/1", "HEAD"]);
    let list = journal::list(rig.store()).unwrap();
    assert_eq!(list.len(), 2);
    assert!(list[0].entry.is_ok() && list[0].here);
    assert_eq!(refusal(list.into_iter().nth(1).unwrap().entry), "damaged");
    assert_eq!(refusal(rig.undo(Some(1), &[])), "damaged");
    rig.undo(None, &[]).unwrap();
    assert_eq!(refusal(rig.undo(None, &[])), "already_decided");
    assert_eq!(rig.accept(&[("f", 0, Some((FILE, "two\n")))]).id, id(4));
}
