//! The conflict radar: what would collide, before anybody proposes anything.

use std::fs;

use git_vws::integrate::{self, Radar};
use git_vws::layout;

use crate::place::*;

impl Place {
    fn radar(&self, named: &[&str]) -> Radar {
        let named: Vec<_> = named.iter().map(|agent| id(agent)).collect();
        integrate::conflicts(&self.store(), &named).unwrap()
    }
}

/// `<agent> <other> <path> <kind>` of each collision.
fn seen(radar: &Radar) -> Vec<String> {
    let line = |one: &integrate::Collision| {
        let with = one.with.as_ref().map_or("-", |agent| agent.as_str());
        format!("{} {with} {} {}", one.agent, one.path, one.kind)
    };
    radar.collisions.iter().map(line).collect()
}

/// Four workspaces on one base.
fn four() -> Place {
    let place = Place::new(&[
        ("f", TEN),
        ("g", "g\n"),
        ("log.md", "log\n"),
        ("bin", "0\0"),
        ("old", TEN),
        ("quiet", "q\n"),
    ]);
    for agent in ["a", "b", "c", "d"] {
        place.create(agent);
    }
    place.edit(
        "a",
        &[
            write("f", &ten(1, "a")),
            write("g", "a\n"),
            write("log.md", "log\na\n"),
            write("bin", "a\0"),
            write("slot", "a file\n"),
        ],
    );
    place.edit(
        "b",
        &[
            write("f", &ten(9, "b")),
            delete("g"),
            write("log.md", "log\nb\n"),
            write("bin", "b\0"),
            write("slot/in", "a folder\n"),
        ],
    );
    place.edit("c", &[write("f", &ten(1, "c")), write("same", "s\n")]);
    place.edit("d", &[write("same", "s\n"), write("quiet", "d\n")]);
    place
}

#[test]
fn workspaces_that_collide_are_seen_without_a_proposal() {
    let place = four();
    let before = place.sandbox.git_text(&["for-each-ref"]);
    let radar = place.radar(&[]);
    assert_eq!(
        seen(&radar),
        [
            "a b bin binary",
            "a b g delete_edit",
            "a b slot type_change",
            // Different lines of one file, and lines that both keep, are no collision.
            "a c f conflict",
        ]
    );
    assert_eq!(radar.agents.len(), 4);
    assert_eq!(seen(&place.radar(&["c"])), ["a c f conflict"]);
    assert!(seen(&place.radar(&["d"])).is_empty());
    // Nothing was made and nothing laid out.
    assert_eq!(place.sandbox.git_text(&["for-each-ref"]), before);
    assert!(!place.exists(".relo"));
    assert!(integrate::conflicts(&place.store(), &[id("nobody")]).is_err());
}

#[test]
fn the_users_tree_counts_as_it_is_now() {
    let place = four();
    place.sandbox.write("f", ten(1, "user").as_bytes());
    fs::remove_file(place.sandbox.repo().join("quiet")).unwrap();
    place.sandbox.write("same", b"mine\n");
    let radar = place.radar(&["c", "d"]);
    assert_eq!(
        seen(&radar),
        [
            "a c f conflict",
            "c - f conflict",
            "c - same conflict",
            "d - quiet delete_edit",
            "d - same conflict"
        ]
    );
    // It says what an accept says.
    for agent in ["a", "b", "c", "d"] {
        place.propose(agent);
        let request = integrate::Accept {
            dry_run: true,
            ..request(agent, &[])
        };
        let planned = integrate::accept(&place.store(), &request).unwrap();
        let refused: Vec<_> = planned
            .outcomes
            .iter()
            .filter(|o| !o.verdict.is_done())
            .map(|o| format!("{agent} - {} {}", o.path, o.verdict.as_str()))
            .collect();
        let all = seen(&place.radar(&[agent]));
        let own: Vec<_> = all
            .into_iter()
            .filter(|line| line.starts_with(&format!("{agent} - ")))
            .collect();
        assert_eq!(own, refused);
    }
}

#[test]
fn what_is_accepted_or_rejected_does_not_collide_any_more() {
    let place = four();
    place.propose("a");
    place.accept("a", &["f"]);
    place.reject("a", &["g", "bin", "slot"]);
    // `c` now collides with the user's tree, which holds the line of `a`.
    assert_eq!(seen(&place.radar(&[])), ["c - f conflict"]);
}

#[test]
fn a_rename_takes_the_users_edit_along_and_a_stack_does_not_collide_with_itself() {
    let place = four();
    place.edit("d", &[delete("old"), write("new", &ten(9, "d"))]);
    place.sandbox.write("old", ten(1, "user").as_bytes());
    assert!(seen(&place.radar(&["d"])).is_empty());
    // Cut from the work of another, on the same line.
    let from = git_vws::workspace::NewWorkspace {
        from: git_vws::workspace::From::Commit("refs/relo/vws/a/overlay".to_owned()),
        mode: git_vws::workspace::Mode::Virtual,
        read_only: false,
        session: None,
    };
    place.store().create(&id("e"), &from).unwrap();
    place.write("e", "f", &ten(1, "a, then e"));
    let radar = place.radar(&["e"]);
    let with_a = seen(&radar)
        .into_iter()
        .filter(|line| line.starts_with("a e"));
    assert_eq!(with_a.count(), 0, "{:?}", seen(&radar));
}

#[test]
fn an_open_directory_is_imported_first() {
    let place = four();
    let options = layout::Options::default();
    let open = layout::materialize(&place.store(), &id("d"), &options).unwrap();
    fs::write(open.path.join("f"), ten(1, "d, in the directory")).unwrap();
    assert_eq!(
        seen(&place.radar(&["d"])),
        ["a d f conflict", "c d f conflict"]
    );
    layout::settle(&place.store(), &id("d"), layout::Insist::No).unwrap();
}

#[test]
fn a_workspace_that_cannot_be_read_is_told() {
    let place = four();
    let head = place.sandbox.git_text(&["rev-parse", "HEAD"]);
    let name = "refs/relo/vws/b/overlay";
    place.sandbox.git(&["update-ref", name, &head]);
    let radar = place.radar(&[]);
    assert_eq!(seen(&radar), ["a c f conflict"]);
    let (agent, why) = &radar.unreadable[0];
    assert_eq!(agent, &id("b"));
    assert!(why.contains("damaged"), "{why}");
    assert!(integrate::conflicts(&place.store(), &[id("b")]).is_err());
}
