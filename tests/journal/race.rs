//! Somebody saves while an accept writes: no byte of theirs is lost.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use bstr::BString;
use git_vws::disk::Point;
use git_vws::integrate::journal::{Hooks, OnDisk, Outcome, Resolution, Step};
use git_vws::model::Refusal;

use crate::rig::{FILE, Rig, no_leftovers, nothing, on};

/// The merge of these tests: the agent's line goes below what the user has.
fn merged(found: &[u8]) -> Vec<u8> {
    let mut bytes = found.to_vec();
    bytes.extend_from_slice(b"agent\n");
    bytes
}

fn without_agent(bytes: &[u8]) -> String {
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    assert!(
        text.matches("agent\n").count() <= 1,
        "applied twice: {text:?}"
    );
    text.replace("agent\n", "")
}

/// One accept of the agent's line, which leaves nothing beside the file.
fn accept(rig: &Rig, at: &mut dyn FnMut(Point) -> ControlFlow<()>) -> Outcome {
    let (outcome, kept) = try_accept(rig, at);
    assert!(kept.is_empty(), "{kept:?}");
    outcome
}

/// One accept of the agent's line: its outcome, and what was left beside the file.
fn try_accept(rig: &Rig, at: &mut dyn FnMut(Point) -> ControlFlow<()>) -> (Outcome, Vec<BString>) {
    let journal = rig.journal();
    let found = fs::read(rig.top().join("f")).unwrap();
    let result = String::from_utf8(merged(&found)).unwrap();
    let mut entry = rig.begin(&journal, &[("f", 0, Some((FILE, &result)))]);
    let mut calls = 0;
    let mut changed = |_: &Step, found: Option<&OnDisk>| {
        calls += 1;
        let Some(found) = found else {
            return Ok(Resolution::Refuse(Refusal::DeleteEdit));
        };
        Ok(Resolution::Again(Some(OnDisk {
            mode: FILE,
            bytes: merged(&found.bytes),
        })))
    };
    let mut hooks = Hooks {
        changed: &mut changed,
        at,
    };
    let kept = journal.apply(&mut entry, &mut hooks).unwrap();
    journal.finish(&mut entry, &mut nothing).unwrap();
    assert!(calls <= 3, "{calls} merges");
    (entry.steps[0].outcome.clone(), kept)
}

/// Ends the saver also when an assertion fails, else the test would wait for it for ever.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn save_by_rename(file: &Path, text: &str) {
    let beside = file.with_extension("saving");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, file).unwrap();
}

fn save_in_place(file: &Path, text: &str) {
    fs::write(file, text).unwrap();
}

/// Saves in a tight loop while accepts go on; after each, the last save is on disk, perhaps with the
/// agent's line.
fn storm(rounds: usize, save: fn(&Path, &str)) {
    let rig = Rig::new();
    let file = rig.top().join("f");
    let (mut landed, mut refused) = (0, 0);
    for round in 0..rounds {
        fs::write(&file, format!("start {round}\n")).unwrap();
        let stop = AtomicBool::new(false);
        let last = thread::scope(|scope| {
            let saver = scope.spawn(|| {
                let mut n = 0;
                loop {
                    let text = format!("save {round} {n}\n");
                    save(&file, &text);
                    n += 1;
                    if stop.load(Ordering::Relaxed) {
                        return text;
                    }
                }
            });
            let (outcome, kept) = {
                let _stop = Stop(&stop);
                try_accept(&rig, &mut on)
            };
            // Against a saver that never rests, a save of the past may be left beside the file.
            for name in &kept {
                let at = rig.top().join(std::str::from_utf8(name).unwrap());
                without_agent(&fs::read(&at).unwrap());
                fs::remove_file(at).unwrap();
            }
            match outcome {
                Outcome::Written => landed += 1,
                Outcome::Refused(Refusal::WorkspaceChanged) => refused += 1,
                other => panic!("{other:?}"),
            }
            saver.join().unwrap()
        });
        let found = fs::read(&file).unwrap();
        assert_eq!(without_agent(&found), last, "round {round}");
        let _ = fs::remove_file(file.with_extension("saving"));
        no_leftovers(&rig.tree());
    }
    assert_eq!(landed + refused, rounds);
}

#[test]
fn no_save_by_rename_is_lost() {
    storm(40, save_by_rename);
}

#[test]
fn no_save_in_place_is_lost() {
    storm(15, save_in_place);
}

/// One save at one point, in every combination.
#[test]
fn one_save_at_each_point_is_merged() {
    for save in [save_by_rename as fn(&Path, &str), save_in_place] {
        for when in [Point::Staged, Point::Swapped, Point::Checked] {
            let rig = Rig::new();
            let file = rig.top().join("f");
            fs::write(&file, "start\n").unwrap();
            let mut left = 1;
            let outcome = accept(&rig, &mut |point| {
                if point == when && left > 0 {
                    left -= 1;
                    save(&file, "saved\n");
                }
                ControlFlow::Continue(())
            });
            assert_eq!(left, 0);
            let found = fs::read(&file).unwrap();
            assert_eq!(without_agent(&found), "saved\n", "{when:?}");
            if when == Point::Staged {
                assert_eq!(
                    (outcome, found.as_slice()),
                    (Outcome::Written, &b"saved\nagent\n"[..])
                );
            }
            no_leftovers(&rig.tree());
        }
    }
}

/// A program that had the file open before the swap and writes after the check.
#[test]
fn a_late_write_into_the_old_file_is_merged() {
    use std::io::Write;
    let rig = Rig::new();
    let file = rig.top().join("f");
    fs::write(&file, "start\n").unwrap();
    let mut open = fs::OpenOptions::new().append(true).open(&file).unwrap();
    let mut left = 1;
    let outcome = accept(&rig, &mut |point| {
        if point == Point::Checked && left > 0 {
            left -= 1;
            open.write_all(b"late\n").unwrap();
        }
        ControlFlow::Continue(())
    });
    assert_eq!(outcome, Outcome::Written);
    assert_eq!(fs::read(&file).unwrap(), b"start\nlate\nagent\n");
    no_leftovers(&rig.tree());
}

#[test]
fn a_file_that_never_holds_still_is_refused() {
    let rig = Rig::new();
    let file = rig.top().join("f");
    fs::write(&file, "start\n").unwrap();
    let mut n = 0;
    let outcome = accept(&rig, &mut |point| {
        if point == Point::Staged {
            n += 1;
            save_by_rename(&file, &format!("save {n}\n"));
        }
        ControlFlow::Continue(())
    });
    assert_eq!(outcome, Outcome::Refused(Refusal::WorkspaceChanged));
    assert_eq!(fs::read(&file).unwrap(), b"save 4\n");
    no_leftovers(&rig.tree());
}

#[test]
fn a_new_file_never_replaces_one() {
    let rig = Rig::new();
    let file = rig.top().join("n");
    let entry = rig.accept_with(&[("n", 0, Some((FILE, "agent\n")))], &mut |point| {
        if point == Point::Staged {
            fs::write(&file, "mine\n").unwrap();
        }
        ControlFlow::Continue(())
    });
    let outcome = entry.unwrap().steps[0].outcome.clone();
    assert_eq!(outcome, Outcome::Refused(Refusal::WorkspaceChanged));
    assert_eq!(fs::read(&file).unwrap(), b"mine\n");
    no_leftovers(&rig.tree());
}
