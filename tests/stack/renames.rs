//! Merges in which the sides rename, edit, delete and add: `git merge-tree` says what comes of them.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};
use git_vws::git::tree::{self, EXECUTABLE, Entry, LINK, REGULAR};
use git_vws::git::{NewCommit, ObjectId, ObjectKind, Publish, Staging};
use git_vws::workspace::{Keep, Trees, merge_trees};

use crate::common::random::Random;
use crate::place::Place;

/// A file: its mode and its lines.
#[derive(Clone, PartialEq, Debug)]
struct File {
    mode: u32,
    lines: Vec<String>,
}

/// The files of a side, by path.
type Files = BTreeMap<String, File>;

const BASE: [&str; 9] = [
    "a",
    "b.c",
    "d/x",
    "d/y",
    "d/sub/mod",
    "e/mod",
    "e/z",
    "f/mod",
    "run",
];
const NEW: [&str; 12] = [
    "a2",
    "b2.c",
    "d/a",
    "d/x/in",
    "e/x",
    "e/y",
    "g/mod",
    "g/x",
    "h/i/j",
    "moved/run",
    "d2/mod",
    "k",
];

fn base(random: &mut Random) -> Files {
    let mut files = Files::new();
    for path in BASE {
        if random.chance(75) {
            let count = if random.chance(8) {
                0
            } else {
                8 + random.below(8)
            };
            let lines = (0..count).map(|n| format!("{path} line {n}\n")).collect();
            let mode = match random.below(12) {
                0 => EXECUTABLE,
                1 => LINK,
                _ => REGULAR,
            };
            files.insert(path.to_owned(), File { mode, lines });
        }
    }
    files
}

/// Puts a file at a path, as an index does: what is in its way goes.
fn put(files: &mut Files, path: String, file: File) {
    let is_in_the_way = |other: &String| {
        let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
        below(other, &path) || below(&path, other)
    };
    files.retain(|other, _| !is_in_the_way(other));
    files.insert(path, file);
}

fn edit(random: &mut Random, file: &mut File, who: &str) {
    if file.lines.is_empty() {
        file.lines.push(format!("{who}\n"));
        return;
    }
    // Few edits, so that many merges are clean, and now and then so much that nothing is alike.
    let count = if random.chance(10) {
        file.lines.len()
    } else {
        1
    };
    for _ in 0..count {
        let at = random.below(file.lines.len());
        match random.below(3) {
            0 => file.lines.insert(at, format!("{who} new {at}\n")),
            1 => file.lines[at] = format!("{who} {at}\n"),
            _ => file.lines[at].insert_str(0, who),
        }
    }
}

fn change(random: &mut Random, files: &mut Files, who: &str) {
    for _ in 0..1 + random.below(4) {
        let paths: Vec<String> = files.keys().cloned().collect();
        let Some(path) = paths.get(random.below(paths.len().max(1))).cloned() else {
            return;
        };
        match random.below(9) {
            0 => drop(files.remove(&path)),
            1 => {
                let new = NEW[random.below(NEW.len())].to_owned();
                let lines = (0..9).map(|n| format!("{who} {new} {n}\n")).collect();
                put(
                    files,
                    new,
                    File {
                        mode: REGULAR,
                        lines,
                    },
                );
            }
            2..=4 => {
                let mut file = files.remove(&path).unwrap();
                if random.chance(40) {
                    edit(random, &mut file, who);
                }
                put(files, NEW[random.below(NEW.len())].to_owned(), file);
            }
            5 => {
                // A folder goes elsewhere, with all that is in it.
                let from = ["d", "e", "d/sub"][random.below(3)];
                let to = ["e", "g", "h/i"][random.below(3)];
                for path in paths {
                    let below = path.strip_prefix(from).filter(|rest| rest.starts_with('/'));
                    if let (Some(rest), Some(file)) = (below, files.get(&path).cloned()) {
                        files.remove(&path);
                        put(files, format!("{to}{rest}"), file);
                    }
                }
            }
            6 => {
                let file = files.get_mut(&path).unwrap();
                file.mode = [REGULAR, EXECUTABLE][random.below(2)];
            }
            _ => edit(random, files.get_mut(&path).unwrap(), who),
        }
    }
}

fn write(staging: &mut Staging<'_>, files: &Files) -> ObjectId {
    let mut edits: BTreeMap<BString, Option<Entry>> = BTreeMap::new();
    for (path, file) in files {
        let id = staging.add(ObjectKind::Blob, file.lines.concat().as_bytes());
        let entry = Entry {
            mode: file.mode,
            id: id.unwrap(),
        };
        edits.insert(path.as_str().into(), Some(entry));
    }
    let empty = tree::empty_tree(staging.objects().format());
    tree::edit(staging, empty, &edits).unwrap()
}

/// One merge: the trees, the commits that git is asked about, and how it reads when it goes wrong.
struct Case {
    trees: Trees,
    commits: [ObjectId; 3],
    told: String,
}

fn case(staging: &mut Staging<'_>, random: &mut Random) -> Case {
    let base = base(random);
    let sides = ["ours", "theirs"].map(|who| {
        let mut side = base.clone();
        change(random, &mut side, who);
        side
    });
    let trees = [&base, &sides[0], &sides[1]].map(|files| write(staging, files));
    let commit = |staging: &mut Staging<'_>, tree, parents: &[ObjectId]| {
        let new = NewCommit {
            tree,
            parents,
            time: 0,
            message: b"x\n",
        };
        staging.commit(&new).unwrap()
    };
    let root = commit(staging, trees[0], &[]);
    let tips = [trees[1], trees[2]].map(|tree| commit(staging, tree, &[root]));
    Case {
        trees: Trees {
            base: trees[0],
            ours: trees[1],
            theirs: trees[2],
        },
        commits: [root, tips[0], tips[1]],
        told: format!("{:?}", trees.map(|tree| tree.to_string())),
    }
}

/// What git makes of each case: its tree where it is clean.
fn git(place: &Place, cases: &[Case]) -> Vec<Option<String>> {
    let mut input = String::new();
    for Case { commits, .. } in cases {
        input.push_str(&format!(
            "{} -- {} {}\n",
            commits[0], commits[1], commits[2]
        ));
    }
    let args = [
        "-c",
        "merge.directoryRenames=false",
        "merge-tree",
        "--stdin",
        "--no-messages",
        "-X",
        "diff-algorithm=myers",
    ];
    let out = place.sandbox.git_with_input(&args, input.as_bytes());
    let mut fields = out.split_str("\0");
    let answer = |_: &Case| {
        let clean = fields.next().unwrap() == b"1";
        let tree = fields.next().unwrap().to_str().unwrap().to_owned();
        while !fields.next().unwrap().is_empty() {}
        clean.then_some(tree)
    };
    cases.iter().map(answer).collect()
}

#[test]
fn a_merge_follows_renames_as_git_does() {
    let place = Place::new(&[]);
    let mut staging = Staging::new(&place.repository).unwrap();
    let mut random = Random(20);
    let count = match std::env::var_os("GIT_VWS_TEST_LONG") {
        Some(_) => 16_000,
        None => 400,
    };
    let cases: Vec<Case> = (0..count)
        .map(|_| case(&mut staging, &mut random))
        .collect();
    let mut publish = Publish::begin(staging).unwrap();
    publish.apply(&[]).unwrap();
    let mut staging = Staging::new(&place.repository).unwrap();
    let (mut followed, mut refused, mut stricter) = (0, 0, Vec::new());
    for (case, expected) in cases.iter().zip(git(&place, &cases)) {
        let Trees { base, ours, theirs } = case.trees;
        let lost = tree::lost(&staging, base, ours, theirs).unwrap();
        let merged = merge_trees(&mut staging, case.trees, Keep::Ours).unwrap();
        let told = || format!("{}\n{:#?}", case.told, merged.conflicts);
        match (merged.conflicts.is_empty(), expected) {
            (true, Some(tree)) => {
                assert_eq!(merged.tree.to_string(), tree, "{}", told());
                followed += usize::from(!lost.is_empty());
            }
            (true, None) => panic!("git has a conflict: {}", told()),
            (false, None) => refused += 1,
            (false, Some(_)) => stricter.push(told()),
        }
        // What is kept is always a tree.
        let theirs = merge_trees(&mut staging, case.trees, Keep::Theirs).unwrap();
        assert_eq!(theirs.conflicts, merged.conflicts);
    }
    let enough = count / 20;
    assert!(
        followed > enough && refused > enough,
        "{followed} {refused}"
    );
    // Where a file meets a folder at the same time, the old path alone may be a conflict to us.
    assert!(stricter.len() < count / 200, "{}", stricter.join("\n"));
}

/// `<path> <text>` of each file in a tree.
fn files(place: &Place, staging: Staging<'_>, tree: ObjectId) -> Vec<String> {
    let mut publish = Publish::begin(staging).unwrap();
    publish.apply(&[]).unwrap();
    let tree = tree.to_string();
    let names = place
        .sandbox
        .git_text(&["ls-tree", "-r", "--name-only", &tree]);
    let text = |name: &str| place.sandbox.git_text(&["show", &format!("{tree}:{name}")]);
    let line = |name: &str| format!("{name} {}", text(name).replace('\n', " "));
    names.lines().map(line).collect()
}

#[test]
fn a_conflict_about_a_renamed_file_is_where_the_file_is() {
    let place = Place::new(&[]);
    let file = |text: &str| File {
        mode: REGULAR,
        lines: text
            .split_inclusive(' ')
            .map(|word| format!("{}\n", word.trim()))
            .collect(),
    };
    let tree = |staging: &mut Staging<'_>, files: &[(&str, &str)]| {
        let files = files
            .iter()
            .map(|(path, text)| ((*path).to_owned(), file(text)));
        write(staging, &files.collect())
    };
    let base = [("old", "1 2 3 4 5 6"), ("z", "z")];
    let renamed = [("new", "1 2 ren 4 5 6"), ("z", "z")];
    let edited = [("old", "1 2 3 4 EDIT 6"), ("z", "z")];
    let against = [("old", "1 2 EDIT 4 5 6"), ("z", "z")];
    let elsewhere = [("other", "1 2 3 4 5 6"), ("z", "z")];
    let gone = [("z", "z")];
    let merge = |ours: &[(&str, &str)], theirs: &[(&str, &str)], keep| {
        let mut staging = Staging::new(&place.repository).unwrap();
        let trees = Trees {
            base: tree(&mut staging, &base),
            ours: tree(&mut staging, ours),
            theirs: tree(&mut staging, theirs),
        };
        let merged = merge_trees(&mut staging, trees, keep).unwrap();
        let conflicts: Vec<_> = merged
            .conflicts
            .iter()
            .map(|c| format!("{} {}", c.path, c.kind.as_str()))
            .collect();
        (conflicts, files(&place, staging, merged.tree))
    };
    let both = "new 1 2 ren 4 EDIT 6";
    for (ours, theirs) in [(&renamed, &edited), (&edited, &renamed)] {
        let (conflicts, files) = merge(ours, theirs, Keep::Ours);
        assert!(conflicts.is_empty(), "{conflicts:?}");
        assert_eq!(files, [both, "z z"]);
    }
    // The agent's version stands at the place where the file now is.
    for (ours, theirs, kept) in [
        (&renamed, &against, "new 1 2 EDIT 4 5 6"),
        (&against, &renamed, "new 1 2 ren 4 5 6"),
    ] {
        let (conflicts, files) = merge(ours, theirs, Keep::Theirs);
        assert_eq!(conflicts, ["new conflict"]);
        assert_eq!(files, [kept, "z z"]);
    }
    let (conflicts, files) = merge(&gone, &renamed, Keep::Theirs);
    assert_eq!(conflicts, ["new delete_edit"]);
    assert_eq!(files, ["new 1 2 ren 4 5 6", "z z"]);
    let (conflicts, files) = merge(&elsewhere, &renamed, Keep::Theirs);
    assert_eq!(conflicts, ["new conflict"]);
    assert_eq!(files[0], "new 1 2 ren 4 5 6");
}
