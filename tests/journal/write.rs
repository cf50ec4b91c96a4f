//! What lands, in which form, and what is refused.

use std::fs;
use std::os::unix::fs::MetadataExt;

use git_vws::integrate::journal::{self, Hooks, OnDisk, Resolution, State, Step};
use git_vws::model::Refusal;

use crate::rig::{EXE, FILE, LINK, Rig, no_leftovers, nothing, on, outcomes};

#[test]
fn modes_and_owner_are_kept_and_the_execute_bit_follows() {
    let rig = Rig::new();
    for (name, bits) in [
        ("x", 0o755),
        ("s", 0o600),
        ("g", 0o2750),
        ("p", 0o640),
        ("q", 0o755),
    ] {
        rig.write(name, "old\n", bits);
    }
    let entry = rig.accept(&[
        ("x", 0, Some((EXE, "new\n"))),
        ("s", 1, Some((FILE, "new\n"))),
        ("g", 2, Some((EXE, "new\n"))),
        ("p", 3, Some((EXE, "new\n"))),
        ("q", 4, Some((FILE, "old\n"))),
        ("n", 5, Some((FILE, "new\n"))),
        ("d/e/m", 6, Some((EXE, "new\n"))),
        ("base", 7, None),
    ]);
    assert_eq!(entry.state, State::Done);
    let bits = |name| format!("{:o}", rig.bits(name));
    let found = ["x", "s", "g", "p", "q", "n", "d/e/m"].map(bits);
    assert_eq!(found, ["755", "600", "2750", "750", "644", "644", "755"]);
    assert_eq!(fs::read(rig.top().join("g")).unwrap(), b"new\n");
    assert!(!rig.top().join("base").exists());
    no_leftovers(&rig.tree());
    rig.fsck();
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let rig = Rig::new();
    let outside = rig.sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "x\n").unwrap();
    rig.write("real", "real\n", 0o644);
    rig.write("d/f", "f\n", 0o644);
    for name in ["l", "o", "was"] {
        rig.write(name, "text\n", 0o644);
    }
    // Planned on files, then links are put there.
    let journal = rig.journal();
    let mut entry = rig.begin(
        &journal,
        &[
            ("l", 0, Some((FILE, "new\n"))),
            ("o", 1, Some((FILE, "new\n"))),
            ("d/f", 2, Some((FILE, "new\n"))),
            ("d/g", 3, Some((FILE, "new\n"))),
            ("d/h/i", 4, Some((FILE, "new\n"))),
            ("was", 5, Some((LINK, "real"))),
        ],
    );
    for (name, target) in [("l", "real"), ("o", "../outside/x")] {
        fs::remove_file(rig.top().join(name)).unwrap();
        rig.link(name, target);
    }
    fs::rename(rig.top().join("d"), outside.join("d")).unwrap();
    rig.link("d", "../outside/d");
    let mut seen = Vec::new();
    let mut changed = |step: &Step, found: Option<&OnDisk>| {
        seen.push((step.path.as_bstr().to_string(), found.cloned()));
        Ok(Resolution::Refuse(Refusal::TypeChange))
    };
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut on,
    };
    journal.apply(&mut entry, &mut hooks).unwrap();
    journal.finish(&mut entry, &mut nothing).unwrap();
    assert_eq!(
        outcomes(&entry),
        "l:type_change o:type_change d/f:type_change d/g:type_change d/h/i:type_change was:Written"
    );
    // The callback is told of the link, not of what it leads to.
    let link = |target: &str| OnDisk {
        mode: LINK,
        bytes: target.into(),
    };
    let told = [
        ("l".to_owned(), Some(link("real"))),
        ("o".to_owned(), Some(link("../outside/x"))),
    ];
    assert_eq!(seen, told);
    assert_eq!(
        fs::read_link(rig.top().join("was")).unwrap().as_os_str(),
        "real"
    );
    assert_eq!(fs::read(outside.join("x")).unwrap(), b"x\n");
    assert_eq!(fs::read(outside.join("d/f")).unwrap(), b"f\n");
    assert_eq!(fs::read_dir(outside.join("d")).unwrap().count(), 1);
    no_leftovers(&rig.tree());
}

#[test]
fn special_files_and_folders_in_the_way_are_refused() {
    let rig = Rig::new();
    rig.write("f", "f\n", 0o644);
    let journal = rig.journal();
    let new = Some((FILE, "new\n"));
    let mut entry = rig.begin(
        &journal,
        &[("f", 0, new), ("n", 1, new), ("base/n", 2, new)],
    );
    fs::remove_file(rig.top().join("f")).unwrap();
    let made = rig.sandbox.command("mkfifo").arg("f").status().unwrap();
    assert!(made.success());
    rig.write("n/mine", "mine\n", 0o644);
    let before = rig.tree();
    let mut changed =
        |_: &Step, _: Option<&OnDisk>| Ok(Resolution::Refuse(Refusal::WorkspaceChanged));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut on,
    };
    journal.apply(&mut entry, &mut hooks).unwrap();
    let expected = "f:special_file n:type_change base/n:type_change";
    assert_eq!(outcomes(&entry), expected);
    assert_eq!(rig.tree(), before);
}

#[test]
fn a_group_lands_as_a_whole_and_others_go_on() {
    let rig = Rig::new();
    rig.write("f", "f\n", 0o600);
    rig.write("h", "h\n", 0o644);
    rig.write("d/gone", "gone\n", 0o644);
    let journal = rig.journal();
    let mut entry = rig.begin(
        &journal,
        &[
            ("n/n", 7, Some((FILE, "new\n"))),
            ("f", 7, Some((FILE, "new\n"))),
            ("d/gone", 7, None),
            ("h", 7, Some((FILE, "new\n"))),
            ("other", 8, Some((FILE, "new\n"))),
        ],
    );
    rig.write("h", "saved meanwhile\n", 0o644);
    let before = rig.tree();
    let mut changed = |_: &Step, _: Option<&OnDisk>| Ok(Resolution::Refuse(Refusal::Conflict));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut on,
    };
    journal.apply(&mut entry, &mut hooks).unwrap();
    journal.finish(&mut entry, &mut nothing).unwrap();
    assert_eq!(
        outcomes(&entry),
        "n/n:RolledBack f:RolledBack d/gone:RolledBack h:conflict other:Written"
    );
    let mut after = rig.tree();
    assert_eq!(after.remove("other").unwrap(), "file 644 \"new\\n\"");
    assert_eq!(after, before);
    let read = journal::load(rig.store(), entry.id).unwrap();
    assert_eq!(read, entry);
}

#[test]
fn files_and_folders_change_places() {
    let rig = Rig::new();
    rig.write("a", "file\n", 0o640);
    rig.write("b/in/x", "x\n", 0o644);
    rig.write("b/y", "y\n", 0o644);
    let before = rig.tree();
    let entry = rig.accept(&[
        ("a/below", 0, Some((FILE, "new\n"))),
        ("a", 0, None),
        ("b", 1, Some((FILE, "now a file\n"))),
        ("b/in/x", 1, None),
        ("b/y", 1, None),
    ]);
    assert!(entry.written().count() == 5, "{}", outcomes(&entry));
    assert_eq!(fs::read(rig.top().join("a/below")).unwrap(), b"new\n");
    assert_eq!(fs::read(rig.top().join("b")).unwrap(), b"now a file\n");
    rig.undo(None, &[]).unwrap();
    assert_eq!(rig.tree(), before);
    // With somebody's own file in the folder, the folder stays and so does all of the group.
    rig.write("b/mine", "mine\n", 0o644);
    let before = rig.tree();
    let entry = rig.accept(&[
        ("b", 1, Some((FILE, "now a file\n"))),
        ("b/in/x", 1, None),
        ("b/y", 1, None),
    ]);
    let expected = "b:type_change b/in/x:RolledBack b/y:RolledBack";
    assert_eq!(outcomes(&entry), expected);
    assert_eq!(rig.tree(), before);
    no_leftovers(&before);
}

#[test]
fn a_hard_link_is_broken_and_its_other_name_stays() {
    let rig = Rig::new();
    rig.write("h", "old\n", 0o644);
    fs::hard_link(rig.top().join("h"), rig.top().join("other")).unwrap();
    rig.accept(&[("h", 0, Some((FILE, "new\n")))]);
    assert_eq!(fs::read(rig.top().join("h")).unwrap(), b"new\n");
    assert_eq!(fs::read(rig.top().join("other")).unwrap(), b"old\n");
    assert_eq!(fs::metadata(rig.top().join("h")).unwrap().nlink(), 1);
}

#[test]
fn many_files_make_one_entry_and_come_back() {
    let rig = Rig::new();
    let names: Vec<String> = (0..300).map(|n| format!("d{}/f{n}", n % 7)).collect();
    for name in &names {
        rig.write(name, name, 0o644);
    }
    let before = rig.tree();
    let changes: Vec<_> = names
        .iter()
        .map(|name| (name.as_str(), 0, Some((FILE, "new\n"))))
        .collect();
    rig.accept(&changes);
    let refs = rig
        .sandbox
        .git_text(&["for-each-ref", "--format=%(refname)"]);
    assert_eq!(refs, "refs/heads/main\nrefs/relo/journal/1");
    assert_ne!(rig.tree(), before);
    rig.undo(None, &[]).unwrap();
    assert_eq!(rig.tree(), before);
}

#[test]
fn without_file_mode_the_execute_bit_is_left_alone() {
    let rig = Rig::new();
    rig.sandbox.git(&["config", "core.fileMode", "false"]);
    let rig = Rig {
        repository: Rig::open(&rig.sandbox, &rig.top()),
        ..rig
    };
    rig.write("x", "old\n", 0o755);
    rig.write("f", "old\n", 0o644);
    let entry = rig.accept(&[
        ("x", 0, Some((FILE, "new\n"))),
        ("f", 1, Some((EXE, "new\n"))),
    ]);
    assert_eq!(outcomes(&entry), "x:Written f:Written");
    assert_eq!((rig.bits("x"), rig.bits("f")), (0o755, 0o644));
    rig.undo(None, &[]).unwrap();
    assert_eq!(fs::read(rig.top().join("x")).unwrap(), b"old\n");
    assert_eq!((rig.bits("x"), rig.bits("f")), (0o755, 0o644));
}

#[test]
fn a_full_disk_leaves_all_as_it_was() {
    let rig = Rig::new();
    let disk = rig.sandbox.root().join("small");
    fs::create_dir(&disk).unwrap();
    let mut mount = rig.sandbox.command("mount");
    mount
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&disk);
    if !mount.status().is_ok_and(|status| status.success()) {
        eprintln!("skipped: no right to mount a small tmpfs");
        return;
    }
    struct Unmount<'s>(&'s crate::common::Sandbox, std::path::PathBuf);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _ = self.0.command("umount").arg(&self.1).status();
        }
    }
    let _unmount = Unmount(&rig.sandbox, disk.clone());
    let top = disk.join("tree");
    let at = top.to_str().unwrap();
    rig.sandbox.git(&["worktree", "add", "-q", "--detach", at]);
    let small = Rig::open(&rig.sandbox, &top);
    let store = git_vws::workspace::Store::new(&small, 1);
    let journal = journal::Journal::lock(store).unwrap();
    fs::write(top.join("first"), "first\n").unwrap();
    fs::write(top.join("big"), "big\n").unwrap();
    let big = "x".repeat(2 << 20);
    let mut staging = git_vws::git::Staging::new(&small).unwrap();
    let mut step = |name: &str, group, new: &str| {
        let kind = git_vws::git::ObjectKind::Blob;
        let found = fs::read(top.join(name)).unwrap();
        let state = |id| Some(journal::FileState::new(FILE, id));
        let before = state(staging.add(kind, &found).unwrap());
        let after = state(staging.add(kind, new.as_bytes()).unwrap());
        let mut step = Step::new(crate::rig::path(name), before, after);
        step.group = group;
        step
    };
    let steps = vec![
        step("first", 0, "1\n"),
        step("big", 0, &big),
        step("base", 1, "2\n"),
    ];
    let draft = journal::Draft {
        kind: journal::Kind::Accept,
        steps,
        extra: serde_json::Map::new(),
    };
    let mut entry = journal.begin(draft, staging).unwrap();
    let mut changed = |_: &Step, _: Option<&OnDisk>| Ok(Resolution::Refuse(Refusal::Conflict));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut on,
    };
    journal.apply(&mut entry, &mut hooks).unwrap();
    journal.finish(&mut entry, &mut nothing).unwrap();
    assert!(
        matches!(entry.steps[1].outcome, journal::Outcome::Failed(_)),
        "{entry:?}"
    );
    assert_eq!(entry.steps[0].outcome, journal::Outcome::RolledBack);
    assert_eq!(entry.steps[2].outcome, journal::Outcome::Written);
    assert_eq!(fs::read(top.join("first")).unwrap(), b"first\n");
    assert_eq!(fs::read(top.join("big")).unwrap(), b"big\n");
    assert_eq!(fs::read(top.join("base")).unwrap(), b"2\n");
    let names = fs::read_dir(&top)
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    assert!(
        !names
            .into_iter()
            .any(|name| crate::rig::bytes(&name).starts_with(b".vws"))
    );
}
