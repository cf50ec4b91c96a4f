//! Stopped at every point, then recovered: each group is there as a whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;

use git_vws::disk::Point;
use git_vws::integrate::journal::{self, Hooks, OnDisk, Resolution, State, Step};
use git_vws::integrate::undo::undo_with;
use git_vws::model::Refusal;

use crate::rig::{Change, EXE, FILE, LINK, Rig, is_stopped, no_leftovers, nothing, on, outcomes};

const CHANGES: &[Change<'static>] = &[
    ("f", 0, Some((EXE, "f2\n"))),
    ("n/e/w", 0, Some((FILE, "new\n"))),
    ("d/gone", 0, None),
    ("l", 1, Some((LINK, "run"))),
    ("run", 1, Some((FILE, "run2\n"))),
    ("swap/in", 2, Some((FILE, "in\n"))),
    ("swap", 2, None),
];

fn rig() -> Rig {
    let rig = Rig::new();
    rig.write("f", "f\n", 0o600);
    rig.write("run", "run\n", 0o755);
    rig.write("d/gone", "gone\n", 0o640);
    rig.write("swap", "swap\n", 0o644);
    rig.link("l", "f");
    rig
}

/// Stops at the `n`th point.
fn stop_at(n: usize) -> impl FnMut(Point) -> ControlFlow<()> {
    let mut left = n;
    move |_| {
        if left == 0 {
            return ControlFlow::Break(());
        }
        left -= 1;
        ControlFlow::Continue(())
    }
}

/// The paths of a group, as a tree shows them.
fn part(tree: &BTreeMap<String, String>, group: u32) -> Vec<Option<&String>> {
    let paths = CHANGES.iter().filter(|(_, of, _)| *of == group);
    paths.map(|(name, _, _)| tree.get(*name)).collect()
}

#[test]
fn an_accept_stopped_anywhere_ends_group_by_group() {
    let (before, after) = {
        let rig = rig();
        let before = rig.tree();
        rig.accept(CHANGES);
        (before, rig.tree())
    };
    let mut landed = 0;
    for n in 0.. {
        let rig = rig();
        let stopped = rig.accept_with(CHANGES, &mut stop_at(n));
        if !is_stopped(&stopped) {
            stopped.unwrap();
            assert!(n > 20, "only {n} points");
            assert!(landed > 3, "recovery never finished anything");
            break;
        }
        rig.sandbox.git(&["gc", "--quiet", "--prune=now"]);
        let recovered = rig.recover();
        assert_eq!(recovered.len(), 1);
        let tree = rig.tree();
        no_leftovers(&tree);
        let mut any = false;
        for group in 0..3 {
            let (old, new) = (part(&before, group), part(&after, group));
            let now = part(&tree, group);
            assert!(now == old || now == new, "{n} {group}: {tree:#?}");
            any |= now == new;
            let steps = recovered[0].steps.iter().filter(|step| step.group == group);
            let word = if now == new { "Written" } else { "RolledBack" };
            steps.for_each(|step| assert_eq!(format!("{:?}", step.outcome), word));
        }
        let state = if any { State::Done } else { State::RolledBack };
        assert_eq!(recovered[0].state, state);
        landed += usize::from(any);
        rig.fsck();
        // What landed can be undone, what did not can be accepted again.
        if any {
            rig.undo(None, &[]).unwrap();
        }
        assert_eq!(rig.tree(), before, "{n}");
        rig.accept(CHANGES);
        assert_eq!(rig.tree(), after, "{n}");
    }
}

#[test]
fn an_undo_stopped_anywhere_ends_as_a_whole() {
    for n in 0.. {
        let rig = rig();
        let before = rig.tree();
        rig.accept(CHANGES);
        let after = rig.tree();
        let undone = {
            let journal = rig.journal();
            undo_with(&journal, None, &[], &mut nothing, &mut stop_at(n))
        };
        if !is_stopped(&undone) {
            undone.unwrap();
            assert!(n > 15, "only {n} points");
            break;
        }
        let recovered = rig.recover();
        let tree = rig.tree();
        let back = recovered[0].state == State::Done;
        assert_eq!(tree, if back { before.clone() } else { after }, "{n}");
        let accept = journal::load(rig.store(), crate::rig::id(1)).unwrap();
        assert_eq!(accept.is_undone(), back);
        if !back {
            rig.undo(None, &[]).unwrap();
        }
        assert_eq!(rig.tree(), before);
    }
}

#[test]
fn a_recovery_stopped_anywhere_is_recovered() {
    let rig_stopped = || {
        let rig = rig();
        // Late in the first pass: all groups are in place, none is settled.
        let mut swapped = 0;
        let stopped = rig.accept_with(CHANGES, &mut |point| {
            swapped += usize::from(point == Point::Swapped);
            match swapped {
                6 => ControlFlow::Break(()),
                _ => ControlFlow::Continue(()),
            }
        });
        assert!(is_stopped(&stopped));
        rig
    };
    for n in 0.. {
        let rig = rig_stopped();
        let stopped = {
            let journal = rig.journal();
            let open = journal::interrupted(rig.store()).unwrap();
            journal.end_interrupted(&open[0], false, &mut nothing, &mut stop_at(n))
        };
        if !is_stopped(&stopped) {
            assert_eq!(stopped.unwrap().entry.state, State::RolledBack);
            assert!(n > 8, "only {n} points");
            break;
        }
        let recovered = rig.recover();
        no_leftovers(&rig.tree());
        assert!(recovered[0].steps.iter().all(|step| {
            let word = format!("{:?}", step.outcome);
            word == "RolledBack" || word == "Written"
        }));
    }
}

#[test]
fn what_somebody_saved_since_is_never_touched() {
    // Stopped with the old file beside the path: then the path is saved by somebody.
    let rig = rig();
    let stopped = rig.accept_with(
        &[
            ("f", 0, Some((FILE, "f2\n"))),
            ("run", 0, Some((EXE, "run2\n"))),
        ],
        &mut |point| match point {
            Point::Settled => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        },
    );
    assert!(is_stopped(&stopped));
    rig.write("f", "f2\nand mine\n", 0o600);
    let recovered = rig.recover();
    assert_eq!(outcomes(&recovered[0]), "f:Overtaken run:RolledBack");
    assert_eq!(rig.tree()["f"], "file 600 \"f2\\nand mine\\n\"");
    assert_eq!(rig.tree()["run"], "file 755 \"run\\n\"");
    no_leftovers(&rig.tree());
}

#[test]
fn bytes_that_a_swap_took_out_come_back() {
    // Saved in the moment of the swap, and killed right after it: the only copy is beside the path.
    let rig = rig();
    let top = rig.top();
    let stopped = rig.accept_with(&[("f", 0, Some((FILE, "f2\n")))], &mut |point| {
        match point {
            Point::Staged => fs::write(top.join("f"), "saved\n").unwrap(),
            Point::Swapped => return ControlFlow::Break(()),
            _ => {}
        }
        ControlFlow::Continue(())
    });
    assert!(is_stopped(&stopped));
    assert_eq!(fs::read(rig.top().join("f")).unwrap(), b"f2\n");
    let recovered = rig.recover();
    assert_eq!(rig.tree()["f"], "file 600 \"saved\\n\"");
    assert_eq!(outcomes(&recovered[0]), "f:Overtaken");
    no_leftovers(&rig.tree());
}

#[test]
fn a_removed_path_that_was_saved_meanwhile_loses_neither() {
    let rig = rig();
    let top = rig.top();
    // Saved before the path goes, and again once it is gone.
    let journal = rig.journal();
    let mut entry = rig.begin(&journal, &[("f", 0, None)]);
    let mut at = |point| {
        match point {
            Point::Staged => fs::write(top.join("f"), "saved\n").unwrap(),
            Point::Swapped => fs::write(top.join("f"), "again\n").unwrap(),
            _ => {}
        }
        ControlFlow::Continue(())
    };
    let mut changed = |_: &Step, _: Option<&OnDisk>| Ok(Resolution::Refuse(Refusal::DeleteEdit));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut at,
    };
    let kept = journal.apply(&mut entry, &mut hooks).unwrap();
    assert_eq!(kept, ["f.vws-kept-1"]);
    assert_eq!(outcomes(&entry), "f:workspace_changed");
    assert_eq!(fs::read(rig.top().join("f")).unwrap(), b"again\n");
    assert_eq!(
        fs::read(rig.top().join("f.vws-kept-1")).unwrap(),
        b"saved\n"
    );
}

#[test]
fn pre_images_outlive_a_collection() {
    let rig = rig();
    let journal = rig.journal();
    let mut entry = rig.begin(&journal, CHANGES);
    let gc = ["gc", "--quiet", "--prune=now"];
    rig.sandbox
        .git(&["reflog", "expire", "--expire=now", "--all"]);
    rig.sandbox.git(&gc);
    let mut changed = |_: &Step, _: Option<&OnDisk>| Ok(Resolution::Refuse(Refusal::Conflict));
    let mut hooks = Hooks {
        changed: &mut changed,
        at: &mut on,
    };
    journal.apply(&mut entry, &mut hooks).unwrap();
    rig.sandbox.git(&gc);
    journal.finish(&mut entry, &mut nothing).unwrap();
    rig.sandbox.git(&gc);
    for step in &entry.steps {
        for state in [step.before, step.after].into_iter().flatten() {
            let blob = state.id.to_string();
            rig.sandbox.git(&["cat-file", "blob", &blob]);
        }
    }
    rig.fsck();
}

#[test]
fn an_interrupted_entry_is_found_below_many_that_have_ended() {
    let rig = rig();
    let noted = rig.sandbox.repo().join(".git/relo/journal.ended");
    let stop = |rig: &Rig, text: &str| {
        let stopped = rig.accept_with(&[("f", 0, Some((FILE, text)))], &mut stop_at(1));
        assert!(is_stopped(&stopped));
    };
    let found = |rig: &Rig| {
        let open = journal::interrupted(rig.store()).unwrap();
        open.iter().map(|entry| entry.id.get()).collect::<Vec<_>>()
    };
    stop(&rig, "interrupted\n");
    for n in 0..40 {
        let _ = rig.accept(&[("run", 0, Some((EXE, &format!("{n}\n"))))]);
    }
    // Whoever looks notes how far it has seen, and the one that is open stays in sight.
    assert_eq!(found(&rig), [1]);
    let first = fs::read_to_string(&noted).unwrap();
    assert!(
        first.contains(r#""up_to":41"#) && first.contains(r#""open":[1]"#),
        "{first}"
    );
    stop(&rig, "interrupted again\n");
    assert_eq!(found(&rig), [1, 42]);
    assert_eq!(fs::read_to_string(&noted).unwrap(), first);
    let _ = rig.recover();
    assert_eq!(found(&rig), [0; 0]);
    // Nor does it hide one in a journal that was begun anew, or where it makes no sense.
    rig.sandbox
        .git(&["update-ref", "-d", "refs/relo/journal/41"]);
    rig.sandbox
        .git(&["update-ref", "-d", "refs/relo/journal/42"]);
    stop(&rig, "in another's place\n");
    assert_eq!(found(&rig), [41]);
    let _ = rig.recover();
    for text in ["", "{", r#"{"up_to":99,"commit":"x","open":[]}"#] {
        fs::write(&noted, text).unwrap();
        stop(&rig, text);
        assert_eq!(found(&rig).len(), 1, "{text}");
        let _ = rig.recover();
    }
}
