//! The agent renames, the user edits: generated cases, of each of which `git merge-tree` is asked the same.

use std::collections::BTreeMap;

use bstr::ByteSlice;
use git_vws::integrate::{self, Outcome};
use git_vws::workspace::Edit;

use crate::place::*;

/// Mode and text of a file.
type File = (u32, String);

const PLAIN: u32 = 0o100_644;
const EXEC: u32 = 0o100_755;

/// One case: the file before, what the user has at the old and the new path, what the agent made of it.
struct Case {
    base: File,
    old: Option<File>,
    new: Option<File>,
    theirs: File,
}

/// Ten lines that no other case has.
fn lines(case: usize, edits: &[(usize, &str)]) -> String {
    let line = |n: usize| match edits.iter().find(|(at, _)| *at == n) {
        Some((_, text)) => format!("{text} {case}\n"),
        None => format!("{case:03} {:x} of {n}\n", case.wrapping_mul(2_654_435_761)),
    };
    (0..10).map(line).collect()
}

fn cases() -> Vec<Case> {
    type Version = (u32, &'static [(usize, &'static str)]);
    let theirs: [Version; 5] = [
        (PLAIN, &[]),
        (PLAIN, &[(8, "agent")]),
        (PLAIN, &[(0, "agent"), (9, "agent")]),
        (EXEC, &[]),
        (EXEC, &[(4, "agent")]),
    ];
    let ours: [Option<Version>; 7] = [
        None,
        Some((PLAIN, &[])),
        Some((PLAIN, &[(1, "user")])),
        Some((PLAIN, &[(8, "user")])),
        Some((PLAIN, &[(8, "agent")])),
        Some((EXEC, &[(2, "user")])),
        Some((PLAIN, &[(0, "user"), (4, "user"), (9, "user")])),
    ];
    let mut cases: Vec<Case> = Vec::new();
    for (mode, edits) in theirs {
        for old in ours {
            for occupied in [None, Some("another file\n")] {
                let n = cases.len();
                cases.push(Case {
                    base: (PLAIN, lines(n, &[])),
                    old: old.map(|(mode, edits)| (mode, lines(n, edits))),
                    new: occupied.map(|text| (PLAIN, format!("{n} {text}"))),
                    theirs: (mode, lines(n, edits)),
                });
            }
        }
    }
    cases
}

/// A commit of these files, for `git fast-import`.
fn commit(name: &str, from: Option<&str>, files: &[(String, &File)]) -> String {
    let mut text = format!("commit refs/cases/{name}\ncommitter a <a@b> 1 +0000\ndata 0\n");
    if let Some(from) = from {
        text.push_str(&format!("from refs/cases/{from}\ndeleteall\n"));
    }
    for (path, (mode, bytes)) in files {
        text.push_str(&format!(
            "M {mode:o} inline {path}\ndata {}\n{bytes}\n",
            bytes.len()
        ));
    }
    text
}

/// What git makes of each case: the paths of a clean merge with mode and id, or nothing.
fn by_git(place: &Place, cases: &[Case]) -> Vec<Option<String>> {
    let mut commits = String::new();
    let mut merges = String::new();
    for (n, case) in cases.iter().enumerate() {
        let [old, new] = ["old", "new"].map(|name| format!("c{n}/{name}"));
        let [base, ours, theirs] = ["b", "o", "t"].map(|side| format!("{side}{n}"));
        commits += &commit(&base, None, &[(old.clone(), &case.base)]);
        let here = [(old, &case.old), (new.clone(), &case.new)];
        let here: Vec<_> = here
            .into_iter()
            .filter_map(|(path, file)| Some((path, file.as_ref()?)))
            .collect();
        commits += &commit(&ours, Some(&base), &here);
        commits += &commit(&theirs, Some(&base), &[(new, &case.theirs)]);
        merges += &format!("refs/cases/{base} -- refs/cases/{ours} refs/cases/{theirs}\n");
    }
    let git = &place.sandbox;
    git.git_with_input(&["fast-import", "--quiet"], commits.as_bytes());
    let out = git.git_with_input(
        &["merge-tree", "--stdin", "--no-messages"],
        merges.as_bytes(),
    );
    let mut fields = out.split_str("\0");
    let mut found = Vec::new();
    for _ in cases {
        let clean = fields.next().unwrap() == b"1";
        let tree = fields.next().unwrap().to_str().unwrap().to_owned();
        while !fields.next().unwrap().is_empty() {}
        found.push(clean.then(|| {
            let format = "--format=%(objectmode) %(objectname) %(path)";
            git.git_text(&["ls-tree", "-r", format, &tree])
        }));
    }
    found
}

#[test]
fn a_rename_comes_to_what_git_makes_of_it() {
    let cases = cases();
    let at = |n: usize, name: &str| format!("c{n}/{name}");
    let base: Vec<(String, &str)> = (cases.iter().enumerate())
        .map(|(n, case)| (at(n, "old"), case.base.1.as_str()))
        .collect();
    let base: Vec<(&str, &str)> = base.iter().map(|(path, text)| (&path[..], *text)).collect();
    let place = Place::new(&base);
    let git = by_git(&place, &cases);
    place.create("a");
    let mut edits = Vec::new();
    for (n, case) in cases.iter().enumerate() {
        edits.push(delete(&at(n, "old")));
        edits.push(Edit::Write {
            path: path(&at(n, "new")),
            bytes: case.theirs.1.clone().into(),
            executable: Some(case.theirs.0 == EXEC),
        });
    }
    place.edit("a", &edits);
    let proposal = place.propose("a");
    let paired = proposal
        .changes
        .iter()
        .filter(|change| change.rename.is_some());
    assert_eq!(paired.count(), 2 * cases.len());
    for (n, case) in cases.iter().enumerate() {
        for (name, file) in [("old", &case.old), ("new", &case.new)] {
            let file_at = place.sandbox.repo().join(at(n, name));
            match file {
                None => {
                    let _ = std::fs::remove_file(file_at);
                }
                Some((mode, text)) => {
                    use std::os::unix::fs::PermissionsExt;
                    std::fs::write(&file_at, text).unwrap();
                    let bits = std::fs::Permissions::from_mode(mode & 0o777);
                    std::fs::set_permissions(file_at, bits).unwrap();
                }
            }
        }
    }
    let accepted = place.accept("a", &[]);
    let by_path: BTreeMap<String, &Outcome> = accepted
        .outcomes
        .iter()
        .map(|outcome| (outcome.path.to_string(), outcome))
        .collect();
    let mut clean = 0;
    for (n, expected) in git.iter().enumerate() {
        let halves = ["new", "old"].map(|name| by_path[&at(n, name)]);
        let done = halves.map(|half| half.verdict.is_done());
        assert_eq!(done[0], done[1], "{n}: half of a rename: {halves:?}");
        assert_eq!(done[0], expected.is_some(), "{n}: {halves:?}");
        let Some(expected) = expected else { continue };
        let listed: Vec<_> = halves
            .iter()
            .filter_map(|half| Some((half.result?, half.path.to_string())))
            .map(|(entry, path)| format!("{:06o} {} {path}", entry.mode, entry.id))
            .collect();
        assert_eq!(listed.join("\n"), *expected, "{n}");
        clean += 1;
    }
    println!("{clean} of {} clean", cases.len());
    assert!(clean > 10 && clean < cases.len() - 10);
    // All of it comes back.
    let before = integrate::changes(&place.store(), None).unwrap();
    assert!(before.iter().any(|proposal| proposal.undecided() > 0));
    place.undo();
    for (n, case) in cases.iter().enumerate() {
        for (name, file) in [("old", &case.old), ("new", &case.new)] {
            assert_eq!(place.exists(&at(n, name)), file.is_some(), "{n} {name}");
            if let Some((_, text)) = file {
                assert_eq!(place.read(&at(n, name)), *text);
            }
        }
    }
}
