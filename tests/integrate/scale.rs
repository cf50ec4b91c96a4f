//! Many agents, many files, a user who saves all the time, a kill at every moment.
//!
//! `GIT_VWS_TEST_LONG=1` makes the rounds as many as the design promises; else a few of each.

#![allow(
    clippy::print_stdout,
    reason = "what was measured is for whoever runs it"
)]

use std::fs;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use git_vws::disk::Point;
use git_vws::integrate::journal::{self, Outcome};
use git_vws::integrate::{self, Accept, State};
use git_vws::model::Refusal;
use git_vws::workspace::Edit;

use crate::place::*;

fn long() -> bool {
    std::env::var_os("GIT_VWS_TEST_LONG").is_some()
}

#[test]
fn sixteen_agents_on_one_file_of_two_thousand_lines() {
    let lines: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    let place = Place::new(&[("f", &lines)]);
    let mut expected = lines.clone();
    for n in 0..16 {
        let agent = format!("a{n:02}");
        place.create(&agent);
        let (old, new) = (format!("line {}\n", 7 + n * 120), format!("agent {n}\n"));
        place.write(&agent, "f", &lines.replace(&old, &new));
        expected = expected.replace(&old, &new);
        place.propose(&agent);
    }
    // The user's own line is kept.
    let edited = lines.replace("line 1999\n", "user\n");
    expected = expected.replace("line 1999\n", "user\n");
    place.sandbox.write("f", edited.as_bytes());
    let merges = long().then(|| sixteen_merges(&place));
    let start = Instant::now();
    let accepted = integrate::accept(&place.store(), &all()).unwrap();
    let took = start.elapsed();
    if let Some(merges) = merges {
        println!("accept --all {took:?}, 16 times git merge {merges:?}");
        if !cfg!(debug_assertions) {
            assert!(took < merges / 5, "{took:?} against {merges:?}");
        }
    }
    assert_eq!(verdicts(&accepted), ["f merged"; 16]);
    assert_eq!(accepted.released.len(), 16);
    assert_eq!(place.read("f"), expected);
    let entry = journal::load(place.store(), accepted.journal.unwrap()).unwrap();
    assert_eq!(entry.steps.len(), 1);
    // One entry, one undo.
    place.undo();
    assert_eq!(place.read("f"), edited);
    assert_eq!(place.states("a03"), ["r2 f proposed"]);
}

/// How long git takes to merge the same 16 branches, one after the other, in a clone.
fn sixteen_merges(place: &Place) -> Duration {
    let clone = place.sandbox.root().join("clone");
    let clone = clone.to_str().unwrap();
    place.sandbox.git(&["clone", "-q", ".", clone]);
    let start = Instant::now();
    for n in 0..16 {
        let branch = format!("origin/relo/a{n:02}");
        let message = format!("merge {n}");
        place
            .sandbox
            .git(&["-C", clone, "merge", "-q", "-m", &message, &branch]);
    }
    start.elapsed()
}

#[test]
fn sixteen_agents_on_one_line() {
    let lines: String = (0..2000).map(|n| format!("line {n}\n")).collect();
    let place = Place::new(&[("f", &lines)]);
    let version = |n: usize| lines.replace("line 900\n", &format!("agent {n}\n"));
    for n in 0..16 {
        let agent = format!("a{n:02}");
        place.create(&agent);
        place.write(&agent, "f", &version(n));
        place.propose(&agent);
    }
    let accepted = integrate::accept(&place.store(), &all()).unwrap();
    let verdicts = verdicts(&accepted);
    assert_eq!(verdicts[0], "f clean");
    assert_eq!(verdicts[1..], ["f conflict"; 15]);
    assert_eq!(place.read("f"), version(0));
    assert_eq!(accepted.released, [id("a00")]);
    // The others wait still.
    assert_eq!(place.states("a15"), ["r2 f proposed"]);
}

#[test]
fn three_thousand_files_are_one_entry_and_a_constant_number_of_ref_updates() {
    let count = 3000;
    let name = |n: usize| format!("d{}/f{n}", n % 30);
    let refs_moved = |count: usize| {
        let files: Vec<(String, String)> = (0..count)
            .map(|n| (name(n), format!("{n}\nuser\n")))
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&p[..], &t[..])).collect();
        let place = Place::new(&files);
        let status = || place.sandbox.git_text(&["status", "--porcelain"]);
        place.create("a");
        let edits: Vec<Edit> = (0..count)
            .map(|n| match n % 5 {
                0 => delete(&name(n)),
                1 => write(&format!("new/{n}"), "new\n"),
                _ => write(&name(n), &format!("agent\n{n}\nuser\n")),
            })
            .collect();
        place.edit("a", &edits);
        place.propose("a");
        let refs = || {
            let format = "--format=%(refname) %(objectname)";
            let text = place.sandbox.git_text(&["for-each-ref", format]);
            let lines = text.lines().map(str::to_owned);
            lines.collect::<std::collections::BTreeSet<_>>()
        };
        let before = refs();
        let accepted = place.accept("a", &[]);
        assert_eq!(accepted.outcomes.len(), count);
        assert!(!accepted.is_partial());
        assert_eq!(journal::list(place.store()).unwrap().len(), 1);
        let moved = before.symmetric_difference(&refs()).count();
        assert_ne!(status(), "");
        assert_eq!(place.undo().entry.written().count(), count);
        assert_eq!(status(), "");
        assert!(!place.exists("new"));
        moved
    };
    assert_eq!(refs_moved(10), refs_moved(count));
}

#[test]
fn a_user_who_saves_in_a_tight_loop_loses_nothing() {
    let rounds = if long() { 200 } else { 25 };
    let place = Place::new(&[("f", TEN)]);
    let file = place.sandbox.repo().join("f");
    let spare = place.sandbox.root().join("spare");
    place.create("a");
    place.write("a", "f", &ten(9, "agent"));
    place.propose("a");
    let (mut landed, mut refused) = (0, 0);
    for round in 0..rounds {
        fs::write(&file, TEN).unwrap();
        let over = AtomicBool::new(false);
        let (accepted, last) = std::thread::scope(|scope| {
            let user = scope.spawn(|| {
                let mut count = 0;
                while !over.load(Ordering::Relaxed) || count == 0 {
                    count += 1;
                    // Every other round the user takes breath, so that some accepts get through.
                    if round % 2 == 1 {
                        std::thread::sleep(Duration::from_millis(150));
                    }
                    let text = ten(1, &format!("user {round}.{count}"));
                    // Half of the editors write in place, half put a new file there.
                    if count % 2 == 0 {
                        fs::write(&file, text).unwrap();
                    } else {
                        fs::write(&spare, text).unwrap();
                        fs::rename(&spare, &file).unwrap();
                    }
                }
                count
            });
            let accepted = place.accept("a", &["f"]);
            over.store(true, Ordering::Relaxed);
            (accepted, user.join().unwrap())
        });
        let text = place.read("f");
        let mine = ten(1, &format!("user {round}.{last}"));
        let both = mine.replace("9\n", "agent\n");
        assert!(text == mine || text == both, "round {round}: {text:?}");
        assert!(accepted.kept.is_empty(), "{:?}", accepted.kept);
        match &accepted.outcomes[0].verdict {
            verdict if verdict.is_done() => {
                landed += 1;
                // Back to proposed for the next round: what the journal wrote, undone.
                if let Some(id) = accepted.journal {
                    let entry = journal::load(place.store(), id).unwrap();
                    let state = entry.steps[0].after.unwrap();
                    let objects = place.repository.objects().unwrap();
                    fs::write(&file, objects.blob(state.id).unwrap()).unwrap();
                    integrate::undo(&place.store(), Some(id), &[]).unwrap();
                }
            }
            integrate::Verdict::Refused(Refusal::WorkspaceChanged | Refusal::Conflict) => {
                refused += 1;
            }
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert_eq!(landed + refused, rounds);
    println!("{landed} landed, {refused} refused");
    assert!(landed > 0 && refused > 0, "{landed} {refused}");
    let names: Vec<_> = fs::read_dir(place.sandbox.repo())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".git")
        .collect();
    assert_eq!(names, ["f"], "something was left behind");
}

/// A group of 50 files: changed, deleted and new ones.
fn fifty() -> (Place, Accept) {
    let names: Vec<String> = (0..50).map(|n| format!("d{}/f{n:02}", n % 3)).collect();
    let old: Vec<(&str, &str)> = (names.iter().enumerate())
        .filter(|(n, _)| n % 5 != 1)
        .map(|(_, name)| (name.as_str(), "base\n"))
        .collect();
    let place = Place::new(&old);
    place.create("a");
    let edits: Vec<Edit> = (names.iter().enumerate())
        .map(|(n, name)| match n % 5 {
            0 => delete(name),
            _ => write(name, "agent\n"),
        })
        .collect();
    place.edit("a", &edits);
    assert_eq!(place.propose("a").changes.len(), 50);
    let request = Accept {
        atomic: true,
        ..request("a", &[])
    };
    (place, request)
}

#[test]
fn killed_after_any_write_of_a_group_recovery_makes_it_all_or_nothing() {
    let (place, request) = fifty();
    let status = || place.sandbox.git_text(&["status", "--porcelain", "-uall"]);
    let mut seen = (0, 0);
    let mut stops: Vec<(Point, usize)> = Vec::new();
    for point in [
        Point::Staged,
        Point::Swapped,
        Point::Checked,
        Point::Settled,
    ] {
        let all = 1..=50;
        stops.extend(
            all.filter(|n| long() || [1, 26, 50].contains(n))
                .map(|n| (point, n)),
        );
    }
    stops.push((Point::Ending, 1));
    for (point, at) in stops {
        let mut passed = 0;
        let stopped = integrate::accept_with(&place.store(), &request, &mut |now| {
            passed += usize::from(now == point);
            if passed == at {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        });
        if passed < at {
            // Not every write passes this point: the accept went through.
            place.undo();
            assert_eq!(status(), "");
            stopped.unwrap();
            continue;
        }
        stopped.unwrap_err();
        let recovered = integrate::recover(&place.store()).unwrap();
        assert_eq!(recovered.len(), 1);
        assert!(recovered[0].kept.is_empty());
        let entry = &recovered[0].entry;
        let lines = status().lines().count();
        let states = place.states("a");
        match entry.state {
            journal::State::Done => {
                assert_eq!(lines, 50, "{point:?} {at}");
                assert!(entry.steps.iter().all(|s| s.outcome == Outcome::Written));
                assert!(states.iter().all(|state| state.ends_with("accepted")));
                seen.0 += 1;
                place.undo();
            }
            journal::State::RolledBack => {
                assert_eq!(lines, 0, "{point:?} {at}: {}", status());
                assert!(entry.steps.iter().all(|s| s.outcome == Outcome::RolledBack));
                seen.1 += 1;
            }
            journal::State::Open => panic!("{point:?} {at}: still open"),
        }
        assert_eq!(status(), "");
        let proposals = integrate::changes(&place.store(), None).unwrap();
        let mut all = proposals.iter().flat_map(|proposal| &proposal.changes);
        assert!(all.all(|change| change.state == State::Proposed));
    }
    assert!(seen.0 > 0 && seen.1 > 0, "{seen:?}");
    // After all of that it still goes through.
    let accepted = integrate::accept(&place.store(), &request).unwrap();
    assert!(!accepted.is_partial());
    assert_eq!(status().lines().count(), 50);
    place.sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}
