//! Three-way comparisons, completed by content merges, against `git merge-tree`.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::rc::Rc;

use bstr::BString;

use crate::git::merge::{MergeOptions, MergeResult, merge_file};
use crate::git::tree::testing::{Flat, Random, Store, git_command, remove, run, set};
use crate::git::tree::*;

/// What merging the content and the mode of one path comes to; `None` is a conflict.
fn merge_both(store: &Store, both: &Both) -> Option<Entry> {
    let (ours, theirs) = (both.ours?, both.theirs?);
    if ours.is_file() != theirs.is_file() {
        return None;
    }
    let mode = match both.base.map(|base| base.mode) {
        _ if ours.mode == theirs.mode => ours.mode,
        Some(mode) if mode == ours.mode => theirs.mode,
        Some(mode) if mode == theirs.mode => ours.mode,
        _ => return None,
    };
    let id = match both.base.map(|base| base.id) {
        _ if ours.id == theirs.id => ours.id,
        Some(id) if id == ours.id => theirs.id,
        Some(id) if id == theirs.id => ours.id,
        _ if !ours.is_file() => return None,
        _ => {
            let read = |id| store.read_blob(id).unwrap();
            // A link makes no base for a file's content.
            let base = both.base.filter(Entry::is_file);
            let base = base.map_or_else(|| Rc::from([]), |base| read(base.id));
            let options = MergeOptions::default();
            match merge_file(&base, &read(ours.id), &read(theirs.id), &options).unwrap() {
                MergeResult::Clean(content) => store.blob(&content),
                _ => return None,
            }
        }
    };
    Some(Entry { mode, id })
}

#[test]
fn three_way_verdicts_and_trees_are_those_of_git() {
    for (format, rounds) in [(ObjectFormat::Sha1, 250), (ObjectFormat::Sha256, 25)] {
        let mut store = Store::new(format);
        let mut random = Random::new(5);
        let (mut clean, mut directory_file, mut merged) = (0, 0, 0);
        for round in 0..rounds {
            let base = few_names(&store, &mut random);
            let sides = [0, 1].map(|_| {
                let mut side = base.clone();
                few_changes(&store, &mut random, &mut side);
                side
            });
            let [base, ours, theirs] = [&base, &sides[0], &sides[1]].map(|flat| store.build(flat));
            let result = three_way(&store, Some(base), Some(ours), Some(theirs)).unwrap();
            let mut edits: BTreeMap<_, _> = result.edits.into_iter().collect();
            let mut conflict = !result.directory_file.is_empty();
            directory_file += usize::from(conflict);
            for both in &result.both {
                let entry = merge_both(&store, both);
                conflict |= entry.is_none();
                merged += usize::from(entry.is_some());
                assert_eq!(edits.insert(both.path.clone(), entry), None);
            }
            let mut command = git_command(store.directory.path());
            // git before 2.50 looks for renames whatever it is told, so no two paths share content.
            command.args(["merge-tree", "--write-tree", "-z", "-X", "no-renames"]);
            command.args(["-X", "diff-algorithm=myers", "--no-messages"]);
            command.arg(format!("--merge-base={base}"));
            command.args([ours, theirs].map(|id| id.to_string()));
            let output = run(command, b"");
            let note = format!(
                "{format} round {round}: {base} {ours} {theirs}\n{sides:?}\n{edits:?}\n{:?}",
                result.both
            );
            assert_eq!(output.status.code(), Some(i32::from(conflict)), "{note}");
            if !conflict {
                clean += 1;
                let tree = store.id(&output.stdout[..output.stdout.len() - 1]);
                assert_eq!(edit(&mut store, ours, &edits).unwrap(), tree, "{note}");
            }
        }
        let enough = rounds / 20;
        assert!(
            clean > enough && directory_file > enough,
            "{clean} {directory_file}"
        );
        assert!(merged > 0, "no content was merged");
    }
}

/// Paths that two sides are bound to meet at.
const MEETING: [&str; 9] = ["a", "a/b", "a/c", "a/b/d", "a-b", "e", "e/f", "e/g", "h"];

/// Content that is the path's own.
fn text_entry(store: &Store, random: &mut Random, path: &BString) -> Entry {
    let mut text: String = (1..10).map(|line| format!("{path} {line}\n")).collect();
    if random.chance(70) {
        let digit = ["1\n", "5\n", "9\n"][random.below(3)];
        text = text.replace(digit, &format!("{}{digit}", random.below(2)));
    }
    let id = store.blob(text.as_bytes());
    let mode = *random.pick(&[&REGULAR, &REGULAR, &REGULAR, &REGULAR, &EXECUTABLE, &LINK]);
    Entry { mode, id }
}

fn few_names(store: &Store, random: &mut Random) -> Flat {
    let mut flat = Flat::new();
    for _ in 0..random.below(8) {
        let path = BString::from(MEETING[random.below(MEETING.len())]);
        let entry = text_entry(store, random, &path);
        set(&mut flat, path, entry);
    }
    flat
}

fn few_changes(store: &Store, random: &mut Random, flat: &mut Flat) {
    for _ in 0..=random.below(2) {
        let path = BString::from(MEETING[random.below(MEETING.len())]);
        let old: Vec<BString> = flat.keys().cloned().collect();
        let (path, gone) = match random.below(4) {
            0 => (path, true),
            1 => (path, false),
            _ => (
                old.get(random.below(old.len().max(1)))
                    .cloned()
                    .unwrap_or(path),
                false,
            ),
        };
        if gone {
            remove(flat, &path);
        } else {
            let entry = text_entry(store, random, &path);
            set(flat, path, entry);
        }
    }
}
