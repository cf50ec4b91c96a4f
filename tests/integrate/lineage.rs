//! What was built on other agents' undecided work: refused without it, accepted with it, blocked when
//! it is gone.

use std::ops::ControlFlow;

use git_vws::disk::Point;
use git_vws::integrate::upkeep;
use git_vws::integrate::{self, Accept, Need, RebaseRequest, StackRequest, State};
use git_vws::workspace::{Change, Kind, Policy, Store, Terms};

use crate::place::*;

impl Place {
    /// Makes a workspace on top of what the parents hold now.
    fn stack(&self, child: &str, parents: &[&str]) {
        let request = StackRequest {
            on: parents.iter().map(|parent| id(parent)).collect(),
            onto: None,
            mode: git_vws::workspace::Mode::default(),
            strict: true,
            read_only: false,
            session: None,
        };
        let stacked = integrate::stack(&self.store(), &id(child), &request).unwrap();
        assert!(stacked.left_out.is_empty());
    }

    fn newest(&self, agent: &str) -> integrate::Proposal {
        let agent = id(agent);
        let mut all = integrate::changes(&self.store(), Some((&agent, None))).unwrap();
        all.pop().unwrap()
    }

    /// `a` offers two files, `b` builds on both and offers two more, `c` builds on `b`; `z` has
    /// nothing to do with them.
    fn family() -> Place {
        let place = Place::new(&[("f", TEN), ("g", "g\n"), ("h", "h\n"), ("z", "z\n")]);
        place.create("a");
        place.edit("a", &[write("f", &ten(1, "a")), write("g", "a\n")]);
        place.propose("a");
        place.stack("b", &["a"]);
        let both = ten(1, "a").replace("5\n", "b\n");
        place.edit("b", &[write("f", &both), write("nb", "b\n")]);
        place.propose("b");
        place.stack("c", &["b"]);
        place.write("c", "nc", "c\n");
        place.propose("c");
        place.create("z");
        place.write("z", "z", "zz\n");
        place.propose("z");
        place
    }

    fn with_parents(&self, agent: &str, paths: &[&str]) -> integrate::Accepted {
        let request = Accept {
            with_parents: true,
            ..request(agent, paths)
        };
        integrate::accept(&self.store(), &request).unwrap()
    }

    fn accept_all(&self) -> integrate::Accepted {
        integrate::accept(&self.store(), &all()).unwrap()
    }

    /// The needs of an agent's newest proposal.
    fn needs(&self, agent: &str) -> Vec<String> {
        let proposal = self.newest(agent);
        proposal
            .lineage
            .iter()
            .map(|n| n.id().to_string())
            .collect()
    }

    /// The last word about an agent's newest proposal: the message of its commit.
    fn message(&self, agent: &str) -> String {
        let revision = self.newest(agent).revision;
        let name = format!("refs/relo/changes/{agent}/{revision}");
        self.sandbox.git_text(&["log", "-1", "--format=%B", &name])
    }
}

/// `<agent>:<path> <verdict> <what it needs>` of each outcome.
fn told(accepted: &integrate::Accepted) -> Vec<String> {
    let line = |o: &integrate::Outcome| {
        let needs = o.needs.as_ref().map(|id| format!(" {id}"));
        let because = o.because.as_ref().map(|path| format!(" because {path}"));
        format!(
            "{}:{} {}{}{}",
            o.agent,
            o.path,
            o.verdict.as_str(),
            needs.unwrap_or_default(),
            because.unwrap_or_default()
        )
    };
    accepted.outcomes.iter().map(line).collect()
}

#[test]
fn without_its_parents_nothing_is_accepted() {
    let place = Place::family();
    let nothing = place.accept("b", &[]);
    assert_eq!(
        told(&nothing),
        ["b:f needs_parent a/2:f", "b:nb needs_parent a/2:f"]
    );
    assert_eq!((nothing.journal, place.exists("nb")), (None, false));
    // One of the two is not enough.
    place.accept("a", &["f"]);
    assert_eq!(
        told(&place.accept("b", &["nb"])),
        ["b:nb needs_parent a/2:g"]
    );
    place.accept("a", &[]);
    assert_eq!(told(&place.accept("b", &["nb"])), ["b:nb clean"]);
    // Taken back, the parent is missing again; what landed stays.
    let entry = integrate::journal::list(place.store()).unwrap();
    let ids: Vec<_> = entry.iter().map(|summary| summary.id).collect();
    let oldest = ids.iter().min().copied();
    integrate::undo(&place.store(), oldest, &[]).unwrap();
    assert_eq!(told(&place.accept("b", &[])), ["b:f needs_parent a/2:f"]);
}

#[test]
fn with_its_parents_a_change_lands_in_one_entry_and_in_order() {
    let place = Place::family();
    let users = place.users();
    let mut order = Vec::new();
    let request = Accept {
        with_parents: true,
        ..request("c", &[])
    };
    let accepted = integrate::accept(&place.store(), &request).unwrap();
    assert_eq!(
        told(&accepted),
        [
            "a:f clean",
            "a:g clean",
            "b:f clean",
            "b:nb clean",
            "c:nc clean"
        ]
    );
    let id = accepted.journal.unwrap();
    let entry = integrate::journal::load(place.store(), id).unwrap();
    for step in &entry.steps {
        order.push(step.path.as_bstr().to_string());
    }
    // Both changes of `f` are one step; the child's files come last.
    assert_eq!(order, ["f", "g", "nb", "nc"]);
    assert!(
        entry
            .steps
            .iter()
            .all(|step| step.group == entry.steps[0].group)
    );
    assert_eq!(place.read("f"), ten(1, "a").replace("5\n", "b\n"));
    assert_eq!(place.users(), users);
    let released: Vec<_> = accepted.released.iter().map(|a| a.as_str()).collect();
    assert_eq!(released, ["a", "b", "c"]);
    place.collect();
    // One undo takes the whole group back.
    place.undo();
    assert_eq!(place.read("f"), TEN);
    assert!(!place.exists("nb") && !place.exists("nc"));
    for agent in ["a", "b", "c"] {
        let proposal = place.newest(agent);
        assert!(proposal.changes.iter().all(|c| c.state == State::Proposed));
    }
    // And it lands again, by a path of the child, with all that it needs and nothing besides.
    let again = place.with_parents("b", &["nb"]);
    assert_eq!(told(&again), ["a:f clean", "a:g clean", "b:nb clean"]);
}

#[test]
fn a_member_that_fails_takes_the_group_along() {
    let place = Place::family();
    // The parent's other file cannot land.
    place.sandbox.write("g", b"user\n");
    let accepted = place.with_parents("b", &[]);
    assert_eq!(
        told(&accepted),
        [
            "a:f conflict because g",
            "a:g conflict",
            "b:f conflict because g",
            "b:nb conflict because g"
        ]
    );
    assert_eq!((accepted.journal, place.read("f").as_str()), (None, TEN));
    assert!(!place.exists("nb"));
    place.sandbox.write("g", b"g\n");
    // It changes after the plan, when other members are in place: they are taken back.
    let mut swapped = 0;
    let top = place.sandbox.repo();
    let request = Accept {
        with_parents: true,
        ..request("b", &[])
    };
    let accepted = integrate::accept_with(&place.store(), &request, &mut |point| {
        if point == Point::Swapped {
            swapped += 1;
            if swapped == 1 {
                std::fs::write(top.join("nb"), "user\n").unwrap();
            }
        }
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(accepted.journal, None, "{:?}", told(&accepted));
    assert!(accepted.outcomes.iter().all(|o| !o.verdict.is_done()));
    assert_eq!(
        (place.read("f").as_str(), place.read("g").as_str()),
        (TEN, "g\n")
    );
    assert_eq!(place.read("nb"), "user\n");
    assert_eq!(place.states("a"), ["r2 f proposed", "r2 g proposed"]);
    assert!(place.states("b").iter().all(|s| s.ends_with("proposed")));
}

#[test]
fn all_means_each_component_as_a_whole() {
    let place = Place::family();
    place.create("y");
    place.edit("y", &[write("y", "y\n"), write("h", "y\n")]);
    place.propose("y");
    place.sandbox.write("g", b"user\n");
    place.sandbox.write("h", b"user\n");
    let accepted = place.accept_all();
    assert_eq!(
        told(&accepted),
        [
            "a:f conflict because g",
            "a:g conflict",
            "b:f conflict because g",
            "b:nb conflict because g",
            "c:nc conflict because g",
            // What has no ties stands alone, also beside a refusal of its own agent.
            "y:h conflict",
            "y:y clean",
            "z:z clean"
        ]
    );
    assert_eq!(
        (place.read("f").as_str(), place.read("z").as_str()),
        (TEN, "zz\n")
    );
    place.sandbox.write("g", b"g\n");
    let accepted = place.accept_all();
    assert_eq!(
        told(&accepted)[..5],
        [
            "a:f clean",
            "a:g clean",
            "b:f clean",
            "b:nb clean",
            "c:nc clean"
        ]
    );
}

#[test]
fn a_rejected_parent_blocks_all_that_rests_on_it_and_decides_nothing() {
    let place = Place::family();
    let rejected = place.reject("a", &["g"]);
    let blocked: Vec<_> = rejected
        .blocked
        .iter()
        .map(|(agent, count)| (agent.as_str(), *count))
        .collect();
    assert_eq!(blocked, [("b", 2), ("c", 1)]);
    assert_eq!(place.states("a"), ["r2 f proposed", "r2 g rejected"]);
    let b = place.newest("b");
    assert!(b.changes.iter().all(|c| {
        c.state == State::Blocked(git_vws::model::Refusal::ParentRejected) && c.is_undecided()
    }));
    assert!(place.states("c").iter().all(|s| s.ends_with("nc blocked")));
    assert!(place.has_workspace("b") && place.has_workspace("c"));
    for accepted in [place.accept("c", &[]), place.with_parents("c", &[])] {
        assert_eq!(told(&accepted), ["c:nc parent_rejected a/2:g"]);
    }
    // It does not hold up the rest: the parent's other change and the stranger's land.
    let accepted = place.accept_all();
    assert_eq!(
        told(&accepted),
        [
            "a:f clean",
            "b:f parent_rejected a/2:g",
            "b:nb parent_rejected a/2:g",
            "c:nc parent_rejected a/2:g",
            "z:z clean"
        ]
    );
    // Who proposes after that is blocked from the start.
    place.write("b", "nb", "b again\n");
    place.propose("b");
    let b = place.newest("b");
    assert!(b.changes.iter().all(|c| c.state.as_str() == "blocked"));
    // A blocked change can still be turned down.
    let rejected = place.reject("b", &["nb"]);
    assert!(rejected.changes.iter().all(|one| one.refused.is_none()));
    place.collect();
}

#[test]
fn a_retried_parent_takes_its_dependents_along_where_it_touches_the_same_path() {
    let place = Place::family();
    let old = place.newest("a");
    let old_hash = old
        .change(b"g")
        .unwrap()
        .patch_hash(&place.repository)
        .unwrap();
    place.write("a", "g", "a again\n");
    let retry = place.propose("a");
    let n = retry.revision;
    let (f, g) = (format!("a/{n}:f"), format!("a/{n}:g"));
    assert_eq!(place.needs("b"), [f.as_str(), g.as_str()]);
    let hash = retry
        .change(b"g")
        .unwrap()
        .patch_hash(&place.repository)
        .unwrap();
    assert_eq!(place.newest("b").lineage[1].patch_hash, hash.to_string());
    assert!(
        place
            .newest("b")
            .changes
            .iter()
            .all(|c| c.state == State::Proposed)
    );
    let message = place.message("b");
    assert!(message.contains(&format!("follows a r{n}")), "{message}");
    let audit = format!(
        "{{\"id\":\"a/2:g\",\"patchHash\":\"{old_hash}\",\"by\":{{\"id\":\"{g}\",\"patchHash\":\"{hash}\"}}}}"
    );
    assert!(message.contains(&audit), "{message}");
    // The grandchild follows as well.
    assert!(place.needs("c").contains(&g));
    // A child that proposes later, with the metadata of its cut, follows by itself.
    place.write("b", "nb", "b again\n");
    place.propose("b");
    assert_eq!(place.needs("b"), [f, g]);
    let accepted = place.with_parents("b", &["nb"]);
    assert_eq!(told(&accepted), ["a:f clean", "a:g clean", "b:nb clean"]);
    assert_eq!(place.read("g"), "a again\n");
}

#[test]
fn a_retried_parent_that_leaves_the_path_alone_blocks_its_dependents() {
    let place = Place::family();
    let hash = place
        .newest("a")
        .change(b"g")
        .unwrap()
        .patch_hash(&place.repository);
    let hash = hash.unwrap().to_string();
    place.write("a", "g", "g\n");
    place.propose("a");
    for agent in ["b", "c"] {
        let newest = place.newest(agent);
        let blocked = State::Blocked(git_vws::model::Refusal::ParentSuperseded);
        assert!(newest.changes.iter().all(|c| c.state == blocked), "{agent}");
    }
    let message = place.message("b");
    let audit = format!("{{\"id\":\"a/2:g\",\"patchHash\":\"{hash}\",\"by\":null}}");
    assert!(message.contains(&audit), "{message}");
    let told_of = |accepted| told(&accepted);
    assert_eq!(
        told_of(place.with_parents("b", &["nb"])),
        ["b:nb parent_superseded a/2:g"]
    );
    assert_eq!(
        told_of(place.accept("c", &[])),
        ["c:nc parent_superseded a/2:g"]
    );
    // The parent takes everything back: the same.
    let place = Place::family();
    place.edit("a", &[write("g", "g\n"), write("f", TEN)]);
    assert!(place.propose("a").changes.is_empty());
    assert!(place.states("b").iter().all(|s| s.ends_with("blocked")));
}

#[test]
fn the_setting_takes_the_consequences_away() {
    let place = Place::family();
    place
        .sandbox
        .git(&["config", "relo.changes.dependentSemantics", "false"]);
    let repository = open(&place.sandbox);
    let place = Place {
        repository,
        ..place
    };
    place.reject("a", &["g"]);
    assert!(place.states("b").iter().all(|s| s.ends_with("proposed")));
    assert_eq!(told(&place.accept("b", &[])), ["b:f merged", "b:nb clean"]);
    // The file of the child was written with the parent's line in it.
    assert_eq!(place.read("f"), TEN.replace("5\n", "b\n"));
}

#[test]
fn two_that_need_each_other_land_together_or_not_at_all() {
    let place = Place::family();
    // `a` is cut anew from what `c` offers, and changes a file that `b` was built on.
    place.stack("d", &["c"]);
    place.write("d", "nd", "d\n");
    place.propose("d");
    let names = "refs/relo/changes";
    assert!(!place.sandbox.git_text(&["for-each-ref", names]).is_empty());
    // By hand, since no command makes a circle.
    let needs = serde_json::json!([Need {
        agent: id("d"),
        proposal: place.newest("d").revision,
        path: "nd".into(),
        patch_hash: "0".repeat(40),
    }
    .to_json()]);
    place
        .store()
        .publish(&id("a"), Terms::default(), |current, _| {
            let mut change = Change::new(Kind::Note, Vec::new(), current.tree);
            let needs = needs.clone();
            change.amend = Some(Box::new(move |meta| {
                meta.extra.insert("lineage".to_owned(), needs);
            }));
            Ok(Some(change))
        })
        .unwrap();
    place.write("a", "g", "a again\n");
    place.propose("a");
    let verdicts = told(&place.accept("a", &[]));
    assert!(
        verdicts.iter().all(|v| v.contains("needs_parent d/")),
        "{verdicts:?}"
    );
    let accepted = place.with_parents("a", &[]);
    assert_eq!(accepted.outcomes.len(), 6, "{:?}", told(&accepted));
    assert!(!accepted.is_partial());
    assert_eq!(place.read("nd"), "d\n");
}

/// Writes down by hand what a workspace was built on.
fn rest_on(place: &Place, child: &str, lineage: serde_json::Value) {
    place
        .store()
        .publish(&id(child), Terms::default(), |current, _| {
            let mut change = Change::new(Kind::Note, Vec::new(), current.tree);
            let lineage = lineage.clone();
            change.amend = Some(Box::new(move |meta| {
                meta.extra.insert("lineage".to_owned(), lineage);
            }));
            Ok(Some(change))
        })
        .unwrap();
}

fn need(agent: &str, proposal: u64, path: &str) -> serde_json::Value {
    let hash = "0".repeat(40);
    serde_json::json!({"agent": agent, "proposal": proposal, "path": path, "patchHash": hash})
}

#[test]
fn a_parent_that_proposes_later_and_after_more_edits_is_found() {
    let place = Place::new(&[("f", "f\n")]);
    place.create("a");
    place.edit(
        "a",
        &[write("pa", "a\n"), write("obj/x.o", "never offered\n")],
    );
    place.create("b");
    let lineage = serde_json::json!([need("a", 2, "pa"), need("a", 2, "obj/x.o")]);
    rest_on(&place, "b", lineage);
    place.write("b", "pb", "b\n");
    place.propose("b");
    assert_eq!(
        told(&place.with_parents("b", &[])),
        ["b:pb needs_parent a/2:pa"]
    );
    // Revision 2 is never proposed: there was one more edit.
    place.write("a", "pa", "a again\n");
    assert_eq!(place.propose("a").revision.get(), 3);
    assert_eq!(told(&place.accept("b", &[])), ["b:pb needs_parent a/3:pa"]);
    let both = place.with_parents("b", &[]);
    assert_eq!(told(&both), ["a:pa clean", "b:pb clean"]);
    place.undo();
    place.reject("a", &["pa"]);
    assert!(place.states("b").iter().all(|s| s.ends_with("blocked")));
    assert_eq!(
        told(&place.accept("b", &[])),
        ["b:pb parent_rejected a/3:pa"]
    );
}

#[test]
fn what_was_imported_needs_nobody_and_nonsense_is_no_lineage() {
    let place = Place::new(&[("f", "f\n")]);
    place.create("b");
    let mut entry = need("a", 2, "pa");
    entry["import"] = true.into();
    rest_on(&place, "b", serde_json::json!([entry]));
    place.write("b", "pb", "b\n");
    assert!(place.propose("b").lineage.is_empty());
    assert_eq!(told(&place.accept("b", &[])), ["b:pb clean"]);
    place.create("c");
    rest_on(&place, "c", serde_json::json!([{"agent": "a"}]));
    place.write("c", "pc", "c\n");
    let error = integrate::propose(&place.store(), &id("c"), None).unwrap_err();
    assert!(error.to_string().contains("lineage"), "{error}");
}

#[test]
fn without_the_rejected_parent_a_dependent_is_free_where_its_edits_are_disjoint() {
    let place = Place::family();
    place.reject("a", &[]);
    let request = RebaseRequest {
        onto: git_vws::workspace::From::Commit("HEAD".into()),
        with_parents: true,
        without: vec![id("a")],
        keep_conflicts: false,
    };
    let rebase =
        |agent: &str| integrate::rebase(&place.store(), &id(agent), &request, Terms::default());
    // Line 5 of `b` has nothing to do with line 1 of `a`.
    rebase("b").unwrap();
    place.propose("b");
    assert_eq!(place.needs("b"), [""; 0]);
    let all = place.accept("b", &[]);
    assert_eq!(told(&all), ["b:f clean", "b:nb clean"]);
    assert_eq!(place.read("f"), TEN.replace("5\n", "b\n"));
    // On the very line of a rejected parent it is a conflict, and nothing moves.
    place.create("p");
    place.write("p", "h", "p\n");
    place.propose("p");
    place.stack("q", &["p"]);
    place.write("q", "h", "q\n");
    place.propose("q");
    place.reject("p", &[]);
    let request = RebaseRequest {
        without: vec![id("p")],
        ..request.clone()
    };
    let before = place.overlay("q", "h");
    let moved = integrate::rebase(&place.store(), &id("q"), &request, Terms::default());
    assert!(moved.is_err() || !moved.unwrap().conflicts.is_empty());
    assert_eq!(place.overlay("q", "h"), before);
    assert!(place.states("q").iter().all(|s| s.ends_with("blocked")));
}

#[test]
fn a_sweep_keeps_what_something_undecided_was_built_on() {
    const DAY: i64 = 24 * 60 * 60;
    let place = Place::family();
    // Parents of a dependent that is proposed, and of one that is not.
    place.create("p");
    place.write("p", "h", "p\n");
    place.propose("p");
    place.stack("q", &["p"]);
    place.write("q", "nq", "q\n");
    for agent in ["a", "p", "z"] {
        assert!(!place.accept(agent, &[]).is_partial());
    }
    let later = Store::new(&place.repository, 1_700_000_000 + 40 * DAY);
    let sweep = || {
        let now = std::time::SystemTime::now();
        upkeep::sweep(&later, Policy::default(), now, false).unwrap()
    };
    let swept = sweep();
    let gone: Vec<_> = swept
        .items
        .iter()
        .map(|item| item.name.to_string())
        .collect();
    assert!(
        gone.contains(&"refs/relo/changes/z/2".to_owned()),
        "{gone:?}"
    );
    for parent in ["a", "p"] {
        let name = format!("refs/relo/changes/{parent}/2");
        assert!(!gone.contains(&name), "{gone:?}");
    }
    // Nobody waits for what is there.
    place.propose("q");
    assert_eq!(told(&place.accept("q", &[])), ["q:nq clean"]);
    assert_eq!(told(&place.accept("b", &["nb"])), ["b:nb clean"]);
    place.reject("b", &[]);
    place.reject("c", &[]);
    let swept = upkeep::sweep(
        &Store::new(&place.repository, 1_700_000_000 + 80 * DAY),
        Policy::default(),
        std::time::SystemTime::now(),
        false,
    );
    let gone = swept.unwrap().items.len();
    assert!(gone >= 5, "{gone}");
    assert_eq!(
        place
            .sandbox
            .git_text(&["for-each-ref", "refs/relo/changes"]),
        ""
    );
}

#[test]
fn a_parent_made_anew_is_not_taken_for_the_one_that_was_rejected() {
    let place = Place::new(&[("f", TEN), ("g", "g\n")]);
    for life in 1..=3 {
        place.create("a");
        place.write("a", "f", &ten(1, "a"));
        // Built on before it is offered, by a number that it gets then, and no earlier one had.
        place.stack("b", &["a"]);
        place.write("b", "g", "b\n");
        let child = place.propose("b");
        assert_eq!(child.changes[0].state, State::Proposed, "life {life}");
        let alone = place.accept("b", &[]);
        assert_eq!(verdicts(&alone), ["g needs_parent"], "life {life}");
        place.propose("a");
        let both = place.with_parents("b", &[]);
        assert_eq!(verdicts(&both), ["f clean", "g clean"], "life {life}");
        place.undo();
        place.reject("b", &[]);
        place.reject("a", &[]);
        assert!(!place.has_workspace("a") && !place.has_workspace("b"));
    }
}
