//! Tables of three-way cases.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::git::scratch::Scratch;
use crate::git::tree::{EXECUTABLE, REGULAR};
use crate::git::{Environment, ObjectFormat, Repository};

pub(super) fn rules(scratch: &Scratch) -> Rules {
    let environment = Environment {
        current_dir: scratch.top().to_owned(),
        variables: Default::default(),
    };
    let repository = Repository::open_at(scratch.top(), environment).unwrap();
    Rules::new(repository.config().unwrap()).unwrap()
}

pub(super) fn file(text: &str) -> Option<Content> {
    content(REGULAR, text)
}

pub(super) fn content(mode: u32, text: &str) -> Option<Content> {
    Some(Content {
        mode,
        bytes: text.into(),
    })
}

pub(super) type Version = Option<Content>;

pub(super) fn settled(rules: &Rules, path: &str, [base, ours, theirs]: &[Version; 3]) -> Settled {
    let sides = Sides {
        base: base.as_ref(),
        ours: ours.as_ref(),
        theirs: theirs.as_ref(),
    };
    settle(path.into(), sides, rules, &OnConflict::Refuse).unwrap()
}

#[track_caller]
fn check(rules: &Rules, path: &str, sides: [Version; 3], verdict: Verdict, result: Version) {
    let found = settled(rules, path, &sides);
    assert_eq!(
        (found.verdict, found.result),
        (verdict, result),
        "{sides:?}"
    );
}

#[test]
fn contents() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let rules = rules(&scratch);
    let ok = |base: &str, ours: &str, theirs: &str, verdict: Verdict, result: &str| {
        let sides = [file(base), file(ours), file(theirs)];
        check(&rules, "f", sides, verdict, file(result));
    };
    ok("a\n", "a\n", "b\n", Verdict::Clean, "b\n");
    ok("a\n", "b\n", "b\n", Verdict::Identical, "b\n");
    ok("a\n", "b\n", "a\n", Verdict::Identical, "b\n");
    ok(
        "1\n2\n3\n4\n",
        "x\n2\n3\n4\n",
        "1\n2\n3\ny\n",
        Verdict::Merged,
        "x\n2\n3\ny\n",
    );
    ok(
        "1\n2\n3\n4",
        "x\n2\n3\n4",
        "1\n2\n3\ny",
        Verdict::Merged,
        "x\n2\n3\ny",
    );
    ok(
        "1\r\n2\r\n3\r\n4\r\n",
        "x\r\n2\r\n3\r\n4\r\n",
        "1\r\n2\r\n3\r\ny\r\n",
        Verdict::Merged,
        "x\r\n2\r\n3\r\ny\r\n",
    );
    // The user's edit holds the agent's already: a retry of the same accept.
    ok(
        "1\n2\n3\n4\n",
        "x\n2\n3\ny\n",
        "1\n2\n3\ny\n",
        Verdict::Identical,
        "x\n2\n3\ny\n",
    );
    let no = |path: &str, sides: [Version; 3], kind: Refusal| {
        let ours = sides[1].clone();
        check(&rules, path, sides, Verdict::Refused(kind), ours);
    };
    no(
        "f",
        [file("a\n"), file("b\n"), file("c\n")],
        Refusal::Conflict,
    );
    // The user's whole file has other line ends: nothing is converted.
    no(
        "f",
        [file("a\nb\n"), file("a\r\nb\r\n"), file("a\nc\n")],
        Refusal::Conflict,
    );
    no(
        "f",
        [file("a\0"), file("b\0"), file("c\0")],
        Refusal::Binary,
    );
    no(
        "f",
        [file("a\n"), file("b\n"), file("c\0")],
        Refusal::Binary,
    );
    no("f", [None, file("a\n"), file("b\n")], Refusal::Conflict);
    no("f", [None, file("a\0"), file("b\0")], Refusal::Binary);
    no("f", [file("a\n"), None, file("b\n")], Refusal::DeleteEdit);
    no("f", [file("a\n"), file("b\n"), None], Refusal::DeleteEdit);
    no(
        "n.md",
        [file("a\n"), file("b\n"), file("c\n")],
        Refusal::Conflict,
    );
    check(
        &rules,
        "f",
        [file("a\n"), file("a\n"), None],
        Verdict::Clean,
        None,
    );
    check(
        &rules,
        "f",
        [file("a\n"), None, None],
        Verdict::Identical,
        None,
    );
    check(
        &rules,
        "f",
        [None, None, file("a\n")],
        Verdict::Clean,
        file("a\n"),
    );
    check(
        &rules,
        "f",
        [None, None, file("")],
        Verdict::Clean,
        file(""),
    );
    let blanks = [None, file("a  \nb"), file("a\nb\n")];
    check(&rules, "f", blanks, Verdict::Identical, file("a  \nb"));
    let ledger = [file("a\n"), file("a\n-\no\n"), file("a\n-\nt\n")];
    check(
        &rules,
        "d/n.md",
        ledger.clone(),
        Verdict::Union,
        file("a\n-\no\n-\nt\n"),
    );
    no("f", ledger, Refusal::Conflict);
}

#[test]
fn modes_merge_beside_content() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let rules = rules(&scratch);
    let exec = |text: &str| content(EXECUTABLE, text);
    // The agent's bit, the user's text; and the other way round.
    let sides = [file("a\n"), file("b\n"), exec("a\n")];
    check(&rules, "f", sides, Verdict::Merged, exec("b\n"));
    let sides = [file("a\n"), exec("a\n"), file("b\n")];
    check(&rules, "f", sides, Verdict::Merged, exec("b\n"));
    let sides = [file("a\n"), file("a\n"), exec("a\n")];
    check(&rules, "f", sides, Verdict::Clean, exec("a\n"));
    let sides = [exec("a\n"), file("a\n"), exec("b\n")];
    check(&rules, "f", sides, Verdict::Merged, file("b\n"));
    // A binary that only one side wrote, and a bit of the other's.
    let sides = [file("\0"), exec("\0"), file("\0b")];
    check(&rules, "f", sides, Verdict::Merged, exec("\0b"));
    let sides = [None, file("a\n"), exec("a\n")];
    check(
        &rules,
        "f",
        sides,
        Verdict::Refused(Refusal::Conflict),
        file("a\n"),
    );
    let sides = [file("a\n"), None, exec("a\n")];
    check(
        &rules,
        "f",
        sides,
        Verdict::Refused(Refusal::DeleteEdit),
        None,
    );
}

#[test]
fn links_and_submodules_are_what_they_are() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    let rules = rules(&scratch);
    let link = |text: &str| content(LINK, text);
    let module = |text: &str| content(GITLINK, text);
    check(
        &rules,
        "f",
        [link("a"), link("a"), link("b")],
        Verdict::Clean,
        link("b"),
    );
    check(
        &rules,
        "f",
        [file("a"), file("a"), link("b")],
        Verdict::Clean,
        link("b"),
    );
    let no = |sides: [Version; 3], kind: Refusal| {
        let ours = sides[1].clone();
        check(&rules, "n.md", sides, Verdict::Refused(kind), ours);
    };
    no([link("a"), link("b"), link("c")], Refusal::Conflict);
    // The user has a link where the agent edited a file: not written through, not replaced.
    no([file("a"), link("x"), file("b")], Refusal::TypeChange);
    no([file("a"), file("b"), link("x")], Refusal::TypeChange);
    no([link("a"), None, link("b")], Refusal::DeleteEdit);
    no(
        [module("1"), module("1"), module("2")],
        Refusal::NestedRepository,
    );
    no(
        [module("1"), module("2"), module("3")],
        Refusal::NestedRepository,
    );
    no([module("1"), module("1"), None], Refusal::NestedRepository);
    check(
        &rules,
        "f",
        [module("1"), module("2"), module("2")],
        Verdict::Identical,
        module("2"),
    );
    // Both made a file of a link: there is no base to merge by.
    no([link("a"), file("x"), file("y")], Refusal::Conflict);
}

#[test]
fn take_latest_replaces_files_only() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    scratch.git(&["config", "relo.changes.takeLatestPaths", "**/out/*.dll"]);
    let rules = rules(&scratch);
    let path = "m/out/a.dll";
    let sides = [file("a\0"), file("b\0"), file("c\0")];
    check(
        &rules,
        path,
        sides.clone(),
        Verdict::TakeLatest,
        file("c\0"),
    );
    check(
        &rules,
        "m/a.dll",
        sides,
        Verdict::Refused(Refusal::Binary),
        file("b\0"),
    );
    check(
        &rules,
        path,
        [file("a"), None, file("b")],
        Verdict::TakeLatest,
        file("b"),
    );
    check(
        &rules,
        path,
        [file("a"), file("b"), None],
        Verdict::TakeLatest,
        None,
    );
    let link = content(LINK, "x");
    let sides = [file("a"), link.clone(), file("b")];
    check(
        &rules,
        path,
        sides,
        Verdict::Refused(Refusal::TypeChange),
        link,
    );
}
