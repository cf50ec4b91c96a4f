//! The user has renamed a file that an agent edits: the edit goes where the file is now.
//!
//! One long file: every case turns on the same few files and their names.

use std::fs;
use std::ops::ControlFlow;
use std::os::unix::fs::PermissionsExt;

use git_vws::disk::Point;
use git_vws::integrate::{self, Accept, Accepted, Error, journal};
use git_vws::model::Refusal;
use git_vws::workspace::Edit;

use crate::common::Sandbox;
use crate::place::*;

/// Agents that have edited line 9 of `old` and a file beside it, and a user who has moved it to `d/new`.
fn moved(agents: &[&str], text: &str) -> Place {
    let place = Place::new(&[("old", TEN), ("other", "o\n")]);
    for (n, agent) in agents.iter().enumerate() {
        place.create(agent);
        place.write(agent, "old", &ten(9 - 3 * n, agent));
        place.propose(agent);
    }
    shift(&place, "old", "d/new");
    place.sandbox.write("d/new", text);
    place
}

fn shift(place: &Place, from: &str, to: &str) {
    let top = place.sandbox.repo();
    fs::create_dir_all(top.join(to).parent().unwrap()).unwrap();
    fs::rename(top.join(from), top.join(to)).unwrap();
}

/// `<path> <verdict> <into>` of each outcome.
fn told(accepted: &Accepted) -> Vec<String> {
    let line = |o: &integrate::Outcome| {
        let into = o.into.as_ref().map_or("-".into(), |into| into.to_string());
        format!("{} {} {into}", o.path, o.verdict.as_str())
    };
    accepted.outcomes.iter().map(line).collect()
}

fn dry(place: &Place, request: &Accept) -> Accepted {
    let request = Accept {
        dry_run: true,
        ..request.clone()
    };
    integrate::accept(&place.store(), &request).unwrap()
}

/// The paths that the newest journal entry says it wrote.
fn written(place: &Place) -> Vec<String> {
    let newest = journal::list(place.store()).unwrap();
    let entry = newest[0].entry.as_ref().unwrap();
    entry.written().map(|step| step.path.to_string()).collect()
}

#[test]
fn an_edit_follows_the_users_rename_and_comes_back() {
    for staged in [false, true] {
        let place = moved(&["a"], &ten(1, "user"));
        let file = place.sandbox.repo().join("d/new");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        if staged {
            place.sandbox.git(&["add", "-A"]);
        }
        let users = place.users();
        let planned = dry(&place, &request("a", &[]));
        let accepted = place.accept("a", &["old"]);
        assert_eq!(told(&accepted), ["old merged d/new"]);
        assert_eq!(planned.outcomes, accepted.outcomes);
        let both = ten(1, "user").replace("9\n", "a\n");
        assert_eq!(place.read("d/new"), both);
        assert!(!place.exists("old"));
        assert_eq!(written(&place), ["d/new"]);
        assert_eq!(place.states("a"), ["r2 old accepted"]);
        assert_eq!(place.users(), users);
        // Once more is once too often.
        assert_eq!(
            told(&place.accept("a", &["old"])),
            ["old already_decided -"]
        );
        assert_eq!(place.read("d/new"), both);
        // Undone and redone, by the place or by the change's own path.
        let undo = |id, of: &str| integrate::undo(&place.store(), id, &[path(of)]).unwrap();
        let undone = undo(None, "old");
        assert_eq!(place.read("d/new"), ten(1, "user"));
        assert_eq!(place.states("a"), ["r2 old proposed"]);
        let redone = undo(Some(undone.entry.id), "d/new");
        assert!(redone.redo);
        assert_eq!(place.read("d/new"), both);
        assert_eq!(place.states("a"), ["r2 old accepted"]);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        place.collect();
        // What was edited since is not touched.
        place.sandbox.write("d/new", "since\n");
        let error = integrate::undo(&place.store(), None, &[]).unwrap_err();
        assert_eq!(error.refusal(), Some(Refusal::WorkspaceChanged));
        assert_eq!(place.read("d/new"), "since\n");
    }
}

#[test]
fn a_pure_rename_takes_the_agents_version_and_the_same_edit_takes_nothing() {
    let place = moved(&["a"], TEN);
    let accepted = place.accept("a", &[]);
    assert_eq!(told(&accepted), ["old clean d/new"]);
    assert_eq!(place.read("d/new"), ten(9, "a"));
    let place = moved(&["a"], &ten(9, "a"));
    let accepted = place.accept("a", &[]);
    assert_eq!(told(&accepted), ["old identical d/new"]);
    assert_eq!(accepted.journal, None);
    assert_eq!(place.states("a"), ["r2 old accepted"]);
}

#[test]
fn modes_and_links_merge_as_what_they_are() {
    let place = Place::new(&[("run", TEN), ("away", "x\n")]);
    std::os::unix::fs::symlink("one", place.sandbox.repo().join("l")).unwrap();
    place.sandbox.git(&["add", "-A"]);
    place.sandbox.git(&["commit", "-qm", "links"]);
    place.create("a");
    let link = |target: &str| Edit::Symlink {
        path: path("l"),
        target: target.into(),
    };
    let mode = Edit::Chmod {
        path: path("run"),
        executable: true,
    };
    place.edit("a", &[mode, link("deep/two")]);
    place.propose("a");
    shift(&place, "run", "bin");
    place.sandbox.write("bin", ten(2, "user"));
    shift(&place, "l", "l2");
    let accepted = place.accept("a", &[]);
    assert_eq!(told(&accepted), ["l clean l2", "run merged bin"]);
    assert_eq!(place.read("bin"), ten(2, "user"));
    let top = place.sandbox.repo();
    let mode = |name: &str| fs::metadata(top.join(name)).unwrap().permissions().mode();
    assert_eq!(mode("bin") & 0o111, 0o111);
    assert_eq!(
        fs::read_link(top.join("l2")).unwrap().to_str(),
        Some("deep/two")
    );
    place.undo();
    assert_eq!(fs::read_link(top.join("l2")).unwrap().to_str(), Some("one"));
    assert_eq!(mode("bin") & 0o111, 0);
}

#[test]
fn what_contradicts_is_refused_where_the_file_is_now() {
    let place = moved(&["a"], &ten(9, "user"));
    assert_eq!(told(&place.accept("a", &[])), ["old conflict d/new"]);
    assert_eq!(place.read("d/new"), ten(9, "user"));
    let radar = integrate::conflicts(&place.store(), &[]).unwrap();
    let seen = |radar: &integrate::Radar| -> Vec<String> {
        let all = radar.collisions.iter();
        all.map(|one| format!("{} {}", one.path, one.kind))
            .collect()
    };
    assert_eq!(seen(&radar), ["old conflict"]);
    // The markers go into the file that is there.
    let marking = Accept {
        conflicts: integrate::Conflicts::Mark,
        ..request("a", &["old"])
    };
    let accepted = integrate::accept(&place.store(), &marking).unwrap();
    assert_eq!(told(&accepted), ["old marked d/new"]);
    assert!(place.read("d/new").contains("<<<<<<< working tree\nuser\n"));
    assert!(!place.exists("old"));
    place.undo();
    // Agreed again: nothing collides, and it lands.
    place.sandbox.write("d/new", TEN);
    let radar = integrate::conflicts(&place.store(), &[]).unwrap();
    assert_eq!(seen(&radar), [""; 0]);
    // Its editor holds it, or the index has it unmerged.
    let unsaved = Accept {
        unsaved: repo_paths(&["d/new"]),
        ..request("a", &[])
    };
    let refused = integrate::accept(&place.store(), &unsaved).unwrap();
    assert_eq!(told(&refused), ["old unsaved_buffer d/new"]);
    let blob = place.sandbox.git_text(&["hash-object", "-w", "d/new"]);
    let stages = [1, 2, 3].map(|n| format!("100644 {} {n}\td/new\n", blob.trim()));
    place.sandbox.git_with_input(
        &["update-index", "--index-info"],
        stages.concat().as_bytes(),
    );
    assert_eq!(told(&place.accept("a", &[])), ["old unmerged d/new"]);
    assert_eq!(place.read("d/new"), TEN);
}

#[test]
fn it_is_not_followed_where_git_would_not() {
    // Too little of it is left, it is ignored, or it is deleted.
    let place = moved(&["a"], "nothing of it\n");
    assert_eq!(told(&place.accept("a", &[])), ["old delete_edit -"]);
    let place = moved(&["a"], TEN);
    place.sandbox.write(".gitignore", "/d/\n");
    assert_eq!(told(&place.accept("a", &[])), ["old delete_edit -"]);
    fs::remove_dir_all(place.sandbox.repo().join("d")).unwrap();
    assert_eq!(told(&place.accept("a", &[])), ["old delete_edit -"]);
    // A copy is no rename.
    place.sandbox.write("old", ten(9, "user"));
    place.sandbox.write("copy", TEN);
    assert_eq!(told(&place.accept("a", &[])), ["old conflict -"]);
    // Turned off, by either setting; what is said of merges counts before what is said of diffs.
    for (settings, expected) in [
        (&["merge.renames=false"][..], "old delete_edit -"),
        (&["diff.renames=no"], "old delete_edit -"),
        (
            &["diff.renames=no", "merge.renames=copies"],
            "old clean d/new",
        ),
        (&["merge.renameLimit=-1"], "old clean d/new"),
    ] {
        let place = moved(&["a"], TEN);
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            place.sandbox.git(&["config", key, value]);
        }
        let place = Place {
            repository: open(&place.sandbox),
            ..place
        };
        assert_eq!(told(&place.accept("a", &[])), [expected], "{settings:?}");
    }
}

#[test]
fn the_agents_own_moves_and_deletions_contradict_the_users() {
    // What the agent makes of `old`, where the user has moved it, what comes of it.
    type Row = (
        &'static [(&'static str, Option<usize>)],
        &'static str,
        &'static [&'static str],
    );
    let table: [Row; 5] = [
        (&[("old", None)], "new", &["old delete_edit new"]),
        (
            &[("old", None), ("theirs", Some(9))],
            "new",
            &["old conflict new", "theirs conflict new"],
        ),
        (
            &[("old", None), ("new", Some(9))],
            "new",
            &["new merged -", "old identical -"],
        ),
        (
            &[("old", None), ("new", Some(1))],
            "new",
            &["new conflict -", "old conflict -"],
        ),
        // The agent has something else where the user has moved it.
        (
            &[("old", Some(9)), ("new/in", Some(9))],
            "new",
            &["new/in type_change -", "old delete_edit new"],
        ),
    ];
    for (agents, to, expected) in table {
        let place = Place::new(&[("old", TEN), ("other", "o\n")]);
        place.create("a");
        let edits = agents.iter().map(|(at, line)| match line {
            None => delete(at),
            Some(line) => write(at, &ten(*line, "agent")),
        });
        place.edit("a", &edits.collect::<Vec<_>>());
        place.propose("a");
        shift(&place, "old", to);
        place.sandbox.write(to, ten(1, "user"));
        let accepted = place.accept("a", &[]);
        assert_eq!(told(&accepted), expected);
        let done = accepted.journal.is_some();
        let both = ten(1, "user").replace("9\n", "agent\n");
        let shown = if done { both } else { ten(1, "user") };
        assert_eq!(place.read(to), shown);
        assert!(!place.exists("old"));
        if done {
            assert!(place.states("a").iter().all(|s| s.ends_with("accepted")));
            place.undo();
            assert_eq!(place.read(to), ten(1, "user"));
            assert!(!place.exists("old"));
        }
    }
}

#[test]
fn many_agents_edits_of_it_land_in_one_file() {
    let place = moved(&["a", "b", "c"], TEN);
    place.create("late");
    place.write("late", "d/new", &ten(1, "late"));
    place.propose("late");
    let planned = dry(&place, &all());
    let accepted = integrate::accept(&place.store(), &all()).unwrap();
    assert_eq!(planned.outcomes, accepted.outcomes);
    let expected = [
        "old clean d/new",
        "old merged d/new",
        "old merged d/new",
        "d/new merged -",
    ];
    assert_eq!(told(&accepted), expected);
    let text = "late\n2\nc\n4\n5\nb\n7\n8\na\n10\n";
    assert_eq!(place.read("d/new"), text);
    assert_eq!(written(&place), ["d/new"]);
    for (agent, of) in [("a", "old"), ("b", "old"), ("c", "old"), ("late", "d/new")] {
        assert_eq!(place.states(agent), [format!("r2 {of} accepted")]);
    }
    place.undo();
    assert_eq!(place.read("d/new"), TEN);
    for (agent, of) in [("a", "old"), ("b", "old"), ("c", "old"), ("late", "d/new")] {
        assert_eq!(place.states(agent), [format!("r2 {of} proposed")]);
    }
    // One after the other, and in another order, it comes to the same.
    for agent in ["late", "c", "a", "b"] {
        assert!(!place.accept(agent, &[]).is_partial());
    }
    assert_eq!(place.read("d/new"), text);
}

#[test]
fn an_agent_that_goes_on_is_followed_again() {
    let place = moved(&["a"], &ten(1, "user"));
    place.write("a", "other", "a's\n");
    place.propose("a");
    assert!(!place.accept("a", &["old"]).is_partial());
    place.write("a", "old", &ten(9, "a").replace("5\n", "again\n"));
    place.propose("a");
    assert_eq!(told(&place.accept("a", &["old"])), ["old merged d/new"]);
    let text = ten(1, "user")
        .replace("9\n", "a\n")
        .replace("5\n", "again\n");
    assert_eq!(place.read("d/new"), text);
    assert!(!place.exists("old"));
}

#[test]
fn the_new_name_says_which_change_goes_there() {
    let place = moved(&["a"], TEN);
    for name in ["d/new", "d"] {
        let error = integrate::accept(&place.store(), &request("a", &[name])).unwrap_err();
        let Error::NoChange { from, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(from.as_ref().unwrap(), "old");
        assert!(
            error.to_string().contains("'old', which was moved there"),
            "{error}"
        );
    }
    let error = integrate::accept(&place.store(), &request("a", &["other"])).unwrap_err();
    assert!(
        error.to_string().ends_with("no change of 'other'"),
        "{error}"
    );
}

#[test]
fn a_save_or_a_move_while_it_is_written_loses_nothing() {
    for point in [
        Point::Staged,
        Point::Swapped,
        Point::Checked,
        Point::Settled,
    ] {
        for gone in [false, true] {
            let place = moved(&["a"], TEN);
            let file = place.sandbox.repo().join("d/new");
            let mut passed = false;
            let request = request("a", &[]);
            let accepted = integrate::accept_with(&place.store(), &request, &mut |now| {
                if now == point && !passed {
                    passed = true;
                    match gone {
                        true => fs::rename(&file, file.with_file_name("newer")).unwrap(),
                        false => fs::write(&file, ten(1, "user")).unwrap(),
                    }
                }
                ControlFlow::Continue(())
            })
            .unwrap();
            let told = told(&accepted);
            let done = accepted.journal.is_some();
            assert!(accepted.kept.is_empty(), "{accepted:?}");
            match (gone, done) {
                (false, true) => {
                    let text = place.read("d/new");
                    let both = ten(1, "user").replace("9\n", "a\n");
                    // Before it is in place, a save is merged; after that it is the last one.
                    let after = point != Point::Staged && text == ten(1, "user");
                    let there = text == both || after || !passed && text == ten(9, "a");
                    assert!(there, "{point:?} {text}");
                }
                (false, false) => {
                    assert_eq!(told, ["old workspace_changed d/new"], "{point:?}");
                    assert_eq!(place.read("d/new"), ten(1, "user"));
                }
                (true, true) => {
                    // Moved away just before or after it was written.
                    let text = ten(9, "a");
                    let at = ["d/new", "d/newer"].iter().find(|at| place.exists(at));
                    let first = place.read(at.unwrap());
                    let there = first == text || place.read("d/newer") == text;
                    assert!(there, "{point:?} {first}");
                }
                (true, false) => {
                    assert_eq!(told, ["old workspace_changed d/new"], "{point:?}");
                    assert!(!place.exists("d/new"));
                    let again = place.accept("a", &[]);
                    assert_eq!(verdicts(&again), ["old clean"], "{point:?}");
                    assert_eq!(place.read("d/newer"), ten(9, "a"));
                }
            }
        }
    }
}

#[test]
fn stopped_anywhere_it_is_there_once_or_not_at_all() {
    let (mut landed, mut back) = (0, 0);
    for n in 0.. {
        let place = moved(&["a", "b"], &ten(1, "user"));
        let mut left = n;
        let stopped = integrate::accept_with(&place.store(), &all(), &mut |_| {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            ControlFlow::Continue(())
        });
        if stopped.is_ok() {
            assert!(n > 3, "only {n} points");
            break;
        }
        let recovered = integrate::recover(&place.store()).unwrap();
        let done = recovered[0].entry.state == journal::State::Done;
        let both = ten(1, "user").replace("9\n", "a\n").replace("6\n", "b\n");
        let (text, state) = match done {
            true => (both.clone(), "r2 old accepted"),
            false => (ten(1, "user"), "r2 old proposed"),
        };
        (landed, back) = (landed + usize::from(done), back + usize::from(!done));
        assert_eq!(place.read("d/new"), text, "{n}");
        assert_eq!([place.states("a"), place.states("b")], [[state], [state]]);
        let again = integrate::accept(&place.store(), &all()).unwrap();
        assert!(!again.is_partial());
        assert_eq!(again.outcomes.is_empty(), done);
        assert_eq!(place.read("d/new"), both, "{n}");
        place.undo();
        assert_eq!(place.read("d/new"), ten(1, "user"), "{n}");
        assert!(!place.exists("old"));
    }
    assert!(landed > 0 && back > 0, "{landed} {back}");
}

#[test]
fn line_ends_that_git_changes_are_no_difference() {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "* text eol=crlf\n");
    let place = Place::with(sandbox, &[("old", &TEN.replace('\n', "\r\n"))]);
    place.create("a");
    place.write("a", "old", &ten(9, "a"));
    place.propose("a");
    shift(&place, "old", "d/new");
    assert_eq!(told(&place.accept("a", &[])), ["old clean d/new"]);
    assert_eq!(place.read("d/new"), ten(9, "a").replace('\n', "\r\n"));
}
