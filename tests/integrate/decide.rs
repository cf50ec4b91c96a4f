//! The life of a proposal: offered, accepted, undone, rejected, superseded, released.

use std::fs;

use git_vws::integrate::{self, State, Verdict};

use crate::place::*;

#[test]
fn proposed_accepted_undone_and_accepted_again() {
    let place = Place::new(&[("f", TEN), ("g", "g\n"), ("keep", "k\n")]);
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", &ten(9, "agent")),
            delete("g"),
            write("d/n", "new\n"),
        ],
    );
    let users = place.users();
    let proposal = place.propose("a");
    let listed: Vec<_> = proposal
        .changes
        .iter()
        .map(|c| (c.status().letter(), c.path.to_string(), c.lines))
        .collect();
    let expected = [
        ('A', "d/n".to_owned(), Some((1, 0))),
        ('M', "f".to_owned(), Some((1, 1))),
        ('D', "g".to_owned(), Some((0, 1))),
    ];
    assert_eq!(listed, expected);
    place.collect();
    // The same proposal, and no new revision.
    let before = place.sandbox.git_text(&["for-each-ref"]);
    assert_eq!(place.propose("a"), proposal);
    assert_eq!(place.sandbox.git_text(&["for-each-ref"]), before);
    // The agent's branch holds the overlay, on top of the base.
    assert_eq!(place.sandbox.git_text(&["show", "relo/a:d/n"]), "new");
    assert_eq!(
        place
            .sandbox
            .git_text(&["log", "-1", "--format=%s %an", "relo/a"])
            .trim(),
        "vws: work of a git-vws"
    );

    // The user edits the same file elsewhere.
    place.sandbox.write("f", ten(1, "user").as_bytes());
    let accepted = place.accept("a", &[]);
    assert_eq!(verdicts(&accepted), ["d/n clean", "f merged", "g clean"]);
    let merged = ten(1, "user").replace("9\n", "agent\n");
    assert_eq!(place.read("f"), merged);
    assert_eq!(place.read("d/n"), "new\n");
    assert!(!place.exists("g"));
    // The last decision lets the workspace go; nothing of the user's own refs or index changed.
    assert_eq!(accepted.released, [id("a")]);
    assert!(!place.has_workspace("a"));
    assert!(
        place
            .sandbox
            .git_text(&["for-each-ref", "refs/heads/relo"])
            .is_empty()
    );
    assert_eq!(place.users(), users);
    place.collect();

    // Undo needs no workspace: the changes stand as proposed again.
    place.undo();
    assert_eq!(place.read("f"), ten(1, "user"));
    assert_eq!(place.read("g"), "g\n");
    assert!(!place.exists("d"));
    assert_eq!(
        place.states("a"),
        ["r2 d/n proposed", "r2 f proposed", "r2 g proposed"]
    );
    place.collect();
    let again = place.accept("a", &["f"]);
    assert_eq!(verdicts(&again), ["f merged"]);
    assert_eq!(place.read("f"), merged);
    assert_eq!(
        place.states("a"),
        ["r2 d/n proposed", "r2 f accepted", "r2 g proposed"]
    );
    // Decided already: told, and nothing changes.
    let twice = place.accept("a", &["f"]);
    assert_eq!(verdicts(&twice), ["f already_decided"]);
    assert!(twice.is_partial());
    assert_eq!(place.users(), users);
}

#[test]
fn an_undo_undone_is_a_redo() {
    let place = Place::new(&[("f", "base\n")]);
    place.create("a");
    place.write("a", "f", "agent\n");
    place.propose("a");
    place.accept("a", &[]);
    let undone = place.undo();
    assert_eq!(place.states("a"), ["r2 f proposed"]);
    let redo = integrate::undo(&place.store(), Some(undone.entry.id), &[]).unwrap();
    assert!(redo.redo);
    assert_eq!(place.read("f"), "agent\n");
    assert_eq!(place.states("a"), ["r2 f accepted"]);
    // And back once more, by the redo's own entry.
    integrate::undo(&place.store(), Some(redo.entry.id), &[]).unwrap();
    assert_eq!(place.states("a"), ["r2 f proposed"]);
    assert_eq!(place.read("f"), "base\n");
}

#[test]
fn refused_paths_leave_the_others_free_unless_atomic() {
    let place = Place::new(&[("f", TEN), ("g", "g\n"), ("h", "h\n")]);
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", &ten(1, "agent")),
            write("g", "agent\n"),
            write("h", "agent\n"),
        ],
    );
    place.propose("a");
    place.sandbox.write("f", ten(1, "user").as_bytes());
    fs::remove_file(place.sandbox.repo().join("h")).unwrap();
    // A dry run says the same and does nothing.
    let mut request = request("a", &[]);
    request.dry_run = true;
    let planned = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(
        verdicts(&planned),
        ["f conflict", "g clean", "h delete_edit"]
    );
    assert_eq!(place.read("g"), "g\n");
    request.dry_run = false;
    request.atomic = true;
    let atomic = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(
        verdicts(&atomic),
        ["f conflict", "g conflict", "h delete_edit"]
    );
    assert_eq!(atomic.outcomes[1].because.as_ref().unwrap(), "f");
    assert_eq!((place.read("g"), atomic.journal), ("g\n".to_owned(), None));
    request.atomic = false;
    let accepted = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(
        verdicts(&accepted),
        ["f conflict", "g clean", "h delete_edit"]
    );
    assert!(accepted.is_partial() && accepted.released.is_empty());
    assert_eq!(place.read("f"), ten(1, "user"));
    assert!(!place.exists("h"));
    assert_eq!(
        place.states("a"),
        ["r2 f proposed", "r2 g accepted", "r2 h proposed"]
    );
}

#[test]
fn a_second_proposal_takes_the_place_of_what_is_undecided() {
    let place = Place::new(&[("f", TEN), ("g", "g\n"), ("h", "h\n")]);
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", &ten(1, "agent")),
            write("g", "one\n"),
            write("h", "x\n"),
        ],
    );
    place.propose("a");
    place.accept("a", &["f"]);
    place.reject("a", &["h"]);
    // Nothing was edited since: still the same proposal.
    assert_eq!(place.propose("a").revision.get(), 2);
    place.write("a", "g", "two\n");
    let second = place.propose("a");
    // What was accepted or rejected is not offered again.
    let offered: Vec<_> = second.changes.iter().map(|c| c.path.to_string()).collect();
    assert_eq!(offered, ["g"]);
    let n = second.revision.get();
    let expected = [
        "r2 f accepted".to_owned(),
        "r2 g superseded".to_owned(),
        "r2 h rejected".to_owned(),
        format!("r{n} g proposed"),
    ];
    assert_eq!(place.states("a"), expected);
    // More work on the accepted file starts from what was accepted.
    place.write("a", "f", &ten(1, "agent again"));
    let third = place.propose("a");
    let f = third.change(b"f").unwrap();
    assert_eq!(f.lines, Some((1, 1)));
    let old = place
        .repository
        .objects()
        .unwrap()
        .blob(f.old.unwrap().id)
        .unwrap();
    assert_eq!(old, ten(1, "agent").as_bytes());
    let accepted = place.accept("a", &[]);
    assert_eq!(verdicts(&accepted), ["f clean", "g clean"]);
    assert_eq!(place.read("f"), ten(1, "agent again"));
    assert_eq!(accepted.released, [id("a")]);
    place.collect();
}

#[test]
fn an_accepted_file_taken_back_by_the_agent_is_offered() {
    let place = Place::new(&[("f", "base\n"), ("g", "g\n")]);
    place.create("a");
    place.edit("a", &[write("f", "agent\n"), write("g", "x\n")]);
    place.propose("a");
    place.accept("a", &["f"]);
    place.write("a", "f", "base\n");
    place.propose("a");
    assert_eq!(verdicts(&place.accept("a", &["f"])), ["f clean"]);
    assert_eq!(place.read("f"), "base\n");
}

#[test]
fn nothing_to_propose_records_nothing() {
    let place = Place::new(&[("f", "base\n")]);
    place.create("a");
    place.write("a", "obj/x.o", "ignored by rule\n");
    let proposal = place.propose("a");
    assert!(proposal.changes.is_empty() && proposal.commit.is_none());
    assert!(
        place
            .sandbox
            .git_text(&["for-each-ref", "refs/relo/changes"])
            .is_empty()
    );
    // What was proposed and is taken back is not offered any more.
    place.write("a", "f", "agent\n");
    place.propose("a");
    place.write("a", "f", "base\n");
    assert!(place.propose("a").changes.is_empty());
    assert_eq!(place.states("a"), ["r3 f superseded"]);
    let refused = place.accept("a", &["f"]);
    assert_eq!(verdicts(&refused), ["f superseded"]);
}

#[test]
fn an_interrupted_accept_is_ended_by_the_next() {
    use git_vws::integrate::journal::{Draft, FileState, Journal, Kind, Step};
    let place = Place::new(&[("f", "base\n"), ("g", "base\n")]);
    place.create("a");
    place.edit("a", &[write("f", "agent\n"), write("g", "agent\n")]);
    let proposal = place.propose("a");
    // As an accept that was killed after it wrote `f` and before it wrote `g`.
    let store = place.store();
    {
        let journal = Journal::lock(store).unwrap();
        let staging = git_vws::git::Staging::new(&place.repository).unwrap();
        let mut steps = Vec::new();
        for (group, change) in proposal.changes.iter().enumerate() {
            let state = |entry: Option<git_vws::git::tree::Entry>| {
                entry.map(|entry| FileState::new(entry.mode, entry.id))
            };
            let mut step = Step::new(
                path(&change.path.to_string()),
                state(change.old),
                state(change.new),
            );
            step.group = group as u32;
            step.agent = Some(id("a"));
            step.proposal = Some(proposal.revision);
            steps.push(step);
        }
        let draft = Draft {
            kind: Kind::Accept,
            steps,
            extra: Default::default(),
        };
        journal.begin(draft, staging).unwrap();
    }
    place.sandbox.write("f", b"agent\n");
    let recovered = integrate::recover(&store).unwrap();
    assert_eq!(recovered.len(), 1);
    assert_eq!(place.states("a"), ["r2 f accepted", "r2 g proposed"]);
    assert!(integrate::recover(&store).unwrap().is_empty());
    let accepted = place.accept("a", &[]);
    assert_eq!(verdicts(&accepted), ["g clean"]);
    assert_eq!(
        (place.read("f"), place.read("g")),
        ("agent\n".into(), "agent\n".into())
    );
    assert_eq!(accepted.released, [id("a")]);
    assert_eq!(accepted.outcomes[0].verdict, Verdict::Clean);
}

#[test]
fn an_undone_change_yields_to_a_later_one_of_the_same_path() {
    let place = Place::new(&[("f", TEN), ("g", "g\n")]);
    place.create("a");
    place.edit("a", &[write("f", &ten(1, "one")), write("g", "x\n")]);
    place.propose("a");
    place.accept("a", &["f"]);
    place.write("a", "f", &ten(1, "two"));
    let second = place.propose("a");
    place.undo();
    let n = second.revision;
    let expected = [
        "r2 f superseded".to_owned(),
        "r2 g superseded".to_owned(),
        format!("r{n} f proposed"),
        format!("r{n} g proposed"),
    ];
    assert_eq!(place.states("a"), expected);
    assert_eq!(verdicts(&place.accept("a", &["f"])), ["f clean"]);
    assert_eq!(place.read("f"), ten(1, "two"));
}

#[test]
fn what_is_not_there_is_said() {
    let place = Place::new(&[("f", "f\n")]);
    let store = place.store();
    assert!(integrate::propose(&store, &id("nobody"), None).is_err());
    let error = integrate::accept(&store, &request("nobody", &[])).unwrap_err();
    assert_eq!(error.to_string(), "agent 'nobody' has no proposal");
    place.create("a");
    place.write("a", "f", "x\n");
    place.propose("a");
    let error = integrate::accept(&store, &request("a", &["nope"])).unwrap_err();
    assert_eq!(error.to_string(), "agent 'a' proposes no change of 'nope'");
    assert!(integrate::accept(&store, &all()).unwrap().journal.is_some());
    let nothing = integrate::accept(&store, &all()).unwrap();
    assert!(nothing.outcomes.is_empty() && nothing.journal.is_none());
    let all = integrate::changes(&store, None).unwrap();
    assert!(matches!(
        all[0].changes[0].state,
        State::Accepted { journal: Some(_) }
    ));
}

#[test]
fn a_propose_that_was_interrupted_is_taken_up_again() {
    let place = Place::new(&[("f", "f\n"), ("g", "g\n")]);
    place.create("a");
    place.edit("a", &[write("f", "x\n"), write("g", "x\n")]);
    let first = place.propose("a");
    // As if killed after the pins and before the overlay ref moved; one change is decided meanwhile.
    place.sandbox.git(&[
        "update-ref",
        "refs/relo/vws/a/overlay",
        "refs/relo/vws/a/overlay^2",
    ]);
    place.accept("a", &["f"]);
    let again = place.propose("a");
    assert_eq!(again.revision, first.revision);
    assert_eq!(place.states("a"), ["r2 f accepted", "r2 g proposed"]);
    assert_eq!(place.accept("a", &[]).released, [id("a")]);
}

#[test]
fn where_the_latest_counts_a_newer_proposal_takes_the_place_of_another_agents() {
    let place = Place::new(&[("bin/a.dll", "0\0"), ("f", "f\n")]);
    place
        .sandbox
        .git(&["config", "relo.changes.takeLatestPaths", "bin/*.dll"]);
    let repository = open(&place.sandbox);
    let place = Place {
        repository,
        ..place
    };
    for agent in ["a", "b"] {
        place.create(agent);
        let text = format!("{agent}\0");
        place.edit(agent, &[write("bin/a.dll", &text), write("f", "same\n")]);
        place.propose(agent);
    }
    assert_eq!(
        place.states("a"),
        ["r2 bin/a.dll superseded", "r2 f proposed"]
    );
    place.sandbox.write("bin/a.dll", b"user\0");
    let accepted = integrate::accept(&place.store(), &all()).unwrap();
    assert_eq!(
        verdicts(&accepted),
        ["f clean", "bin/a.dll take-latest", "f identical"]
    );
    assert_eq!(place.read("bin/a.dll"), "b\0");
    place.undo();
    assert_eq!(place.read("bin/a.dll"), "user\0");
}

#[test]
fn names_equal_but_for_case_share_a_lock_and_do_not_wait_for_each_other() {
    let place = Place::new(&[("f", "f\n")]);
    for agent in ["A", "a"] {
        place.create(agent);
        place.write(agent, "f", &format!("{agent}\n"));
        place.propose(agent);
        place.accept(agent, &[]);
        place.undo();
    }
    let accepted = integrate::accept(&place.store(), &all()).unwrap();
    assert_eq!(verdicts(&accepted), ["f clean", "f conflict"]);
}

#[test]
fn a_change_has_a_name_and_a_hash_of_what_it_does() {
    let place = Place::new(&[("f", "f\n"), ("g", "g\n")]);
    place.create("a");
    place.edit("a", &[write("f", "x\n"), delete("g"), write("n", "x\n")]);
    let proposal = place.propose("a");
    let names: Vec<_> = proposal
        .changes
        .iter()
        .map(|change| change.id(&proposal.agent, proposal.revision).to_string())
        .collect();
    assert_eq!(names, ["a/2:f", "a/2:g", "a/2:n"]);
    let blob = |text: &str| text_with(&place, &["hash-object", "--stdin"], text.as_bytes());
    let null = "0".repeat(40);
    let (f, g, x) = (blob("f\n"), blob("g\n"), blob("x\n"));
    let (f, g, x) = (f.trim(), g.trim(), x.trim());
    for (at, text) in [
        format!("100644 {f} 100644 {x}\0f"),
        format!("100644 {g} 000000 {null}\0g"),
        format!("000000 {null} 100644 {x}\0n"),
    ]
    .iter()
    .enumerate()
    {
        let hash = proposal.changes[at].patch_hash(&place.repository).unwrap();
        assert_eq!(hash.to_string(), blob(text).trim());
    }
}

#[test]
fn without_a_journal_nothing_is_written() {
    let place = Place::new(&[("f", "f\n"), ("g", "g\n")]);
    place.create("a");
    let edits = [write("f", "agent\n"), delete("g"), write("n", "new\n")];
    place.edit("a", &edits);
    place.propose("a");
    // A ref of somebody's leaves no room for any entry.
    place
        .sandbox
        .git(&["update-ref", "refs/relo/journal", "HEAD"]);
    let users = place.users();
    let error = integrate::accept(&place.store(), &request("a", &[])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("refs/relo/journal"), "{text}");
    let status = || place.sandbox.git_text(&["status", "--porcelain", "-uall"]);
    assert_eq!(status(), "");
    assert_eq!(
        place.states("a"),
        ["r2 f proposed", "r2 g proposed", "r2 n proposed"]
    );
    assert!(place.has_workspace("a"));
    assert_eq!(place.users(), users);
    place
        .sandbox
        .git(&["update-ref", "-d", "refs/relo/journal"]);
    assert!(!place.accept("a", &[]).is_partial());
    assert_eq!(status().lines().count(), 3);
}
