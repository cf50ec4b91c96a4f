//! Rejected: back to the base in the overlay, and not offered again.

use git_vws::git::ObjectKind;
use git_vws::model::Refusal;

use crate::place::*;

#[test]
fn a_rejected_path_goes_back_and_its_content_stays_readable() {
    let place = Place::new(&[("f", "base\n"), ("g", "g\n"), ("h", "h\n")]);
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", "rejected\n"),
            delete("g"),
            write("h", "fine\n"),
            write("n", "new\n"),
        ],
    );
    let proposal = place.propose("a");
    let rejected = place.reject("a", &["f", "g", "n"]);
    assert_eq!(rejected.changes.len(), 3);
    assert_eq!(place.overlay("a", "f"), "base\n");
    assert_eq!(place.overlay("a", "g"), "g\n");
    assert_eq!(place.overlay("a", "h"), "fine\n");
    assert_eq!(place.read("f"), "base\n");
    place.collect();
    let blob = proposal.change(b"f").unwrap().new.unwrap().id;
    let objects = place.repository.objects().unwrap();
    assert_eq!(objects.read(blob, ObjectKind::Blob).unwrap(), b"rejected\n");
    let twice = place.reject("a", &["f"]);
    assert_eq!(twice.changes[0].refused, Some(Refusal::AlreadyDecided));
    // The same content again is not offered again; other content is.
    place.write("a", "f", "rejected\n");
    place.write("a", "n", "other\n");
    let second = place.propose("a");
    let offered: Vec<_> = second.changes.iter().map(|c| c.path.to_string()).collect();
    assert_eq!(offered, ["h", "n"]);
    // Something waits: not to be released.
    assert!(!git_vws::integrate::release(&place.store(), &id("a")).unwrap());
    // What was rejected twice is no work that is left.
    assert!(place.reject("a", &[]).released);
}

#[test]
fn with_the_last_reject_the_workspace_is_released() {
    let place = Place::new(&[("f", "base\n")]);
    place.create("a");
    place.write("a", "f", "x\n");
    place.propose("a");
    // An edit since the proposal that nobody has seen is not thrown away.
    place.write("a", "f", "later\n");
    let rejected = place.reject("a", &["f"]);
    assert!(rejected.changes[0].edited_since && !rejected.released);
    assert_eq!(place.overlay("a", "f"), "later\n");
    place.propose("a");
    assert!(place.reject("a", &[]).released);
    assert!(!place.has_workspace("a"));
    // A new workspace of that name does not touch the old proposals.
    place.create("a");
    place.write("a", "f", "second life\n");
    let proposal = place.propose("a");
    assert!(proposal.revision.get() > 3);
    assert_eq!(place.states("a").len(), 3);
    assert_eq!(verdicts(&place.accept("a", &[])), ["f clean"]);
}

#[test]
fn a_second_life_within_the_same_second_is_offered() {
    let place = Place::new(&[("f", "base\n")]);
    // The clock of a place stands still, so each life has the very commits of the one before.
    for life in 1..=3 {
        place.create("a");
        place.write("a", "f", "x\n");
        let proposal = place.propose("a");
        assert_eq!(proposal.undecided(), 1, "life {life}");
        // Nobody works on it: it is the same proposal.
        assert_eq!(place.propose("a").revision, proposal.revision);
        assert!(place.reject("a", &[]).released, "life {life}");
    }
    assert_eq!(place.states("a").len(), 3);
}
