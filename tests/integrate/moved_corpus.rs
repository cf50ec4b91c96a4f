//! The user renames, the agent edits: generated trees, of which `git merge-tree` is asked the same.
//!
//! One long file: what is drawn and what is expected of it are read together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use bstr::{BString, ByteSlice};
use git_vws::integrate::{self, Outcome};
use git_vws::model::Refusal;
use git_vws::workspace::Edit;

use crate::common::Sandbox;
use crate::common::random::Random;
use crate::place::*;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Plain,
    Executable,
    Link,
}

#[derive(Clone, Debug, PartialEq)]
struct File {
    kind: Kind,
    lines: Vec<String>,
}

impl File {
    fn bytes(&self) -> Vec<u8> {
        self.lines.concat().into_bytes()
    }
}

type Files = BTreeMap<String, File>;

const BASE: [&str; 12] = [
    "a", "b.c", "run", "d/x", "d/y", "d/mod", "e/mod", "e/z", "e/sub/w", "f/mod", "f/v", "l",
];
const NEW: [&str; 12] = [
    "a2", "b2.c", "bin/run", "e/x", "g/y", "g/mod", "h/mod", "d/z", "w", "h/i/j", "f/v2", "l2",
];

fn base(random: &mut Random) -> Files {
    let mut files = Files::new();
    for path in BASE {
        // Now and then two files are much alike, so that there are several candidates.
        let text = match random.chance(25) {
            true => "twin",
            false => path,
        };
        let end = ["\n", "\n", "\n", "\r\n"][random.below(4)];
        let mut lines: Vec<String> = (0..8 + random.below(10))
            .map(|n| format!("{text} has this in line {n}{end}"))
            .collect();
        let mut kind = Kind::Plain;
        match random.below(14) {
            0 => kind = Kind::Executable,
            1 => (kind, lines) = (Kind::Link, vec![format!("to-{path}").replace('/', "-")]),
            2 => lines.insert(1, "\0 and no text\n".to_owned()),
            3 => lines.clear(),
            4 => {
                let last = lines.last_mut().unwrap();
                last.truncate(last.trim_end().len());
            }
            _ => {}
        }
        files.insert(path.to_owned(), File { kind, lines });
    }
    files
}

/// Changes a few lines, or about so many that git may or may not see the file in it again.
fn edit(random: &mut Random, file: &mut File, who: &str) {
    if file.kind == Kind::Link {
        file.lines = vec![format!("to-{who}{}", random.below(2))];
        return;
    }
    if random.chance(12) {
        file.kind = match file.kind {
            Kind::Plain => Kind::Executable,
            _ => Kind::Plain,
        };
        if random.chance(50) {
            return;
        }
    }
    let all = file.lines.len();
    let count = match random.below(4) {
        0 if who == "user" => all * (35 + random.below(30)) / 100,
        _ => 1 + random.below(2),
    };
    for _ in 0..count {
        if file.lines.is_empty() || random.chance(15) {
            let at = random.below(file.lines.len() + 1);
            file.lines.insert(at, format!("{who} adds {at}\n"));
            continue;
        }
        let at = random.below(file.lines.len());
        match random.below(3) {
            0 => drop(file.lines.remove(at)),
            _ => file.lines[at] = format!("{who} has something of another length here, {at}\n"),
        }
    }
}

/// Puts a file at a path where nothing is in its way.
fn put(files: &mut Files, path: &str, file: File) {
    let below = |a: &str, b: &str| a.strip_prefix(b).is_some_and(|rest| rest.starts_with('/'));
    if !files.keys().any(|at| below(at, path) || below(path, at)) {
        files.insert(path.to_owned(), file);
    }
}

/// The user's files, and those of the base that he moved to two places at once.
fn by_user(random: &mut Random, base: &Files) -> (Files, BTreeSet<BString>) {
    let mut files = base.clone();
    let mut copied = BTreeSet::new();
    for path in BASE {
        let mut file = files[path].clone();
        match random.below(10) {
            0 => drop(files.remove(path)),
            1 | 2 => edit(random, files.get_mut(path).unwrap(), "user"),
            3..=7 => {
                files.remove(path);
                let twice = random.chance(15);
                if twice {
                    copied.insert(path.into());
                }
                for _ in 0..1 + usize::from(twice) {
                    if random.chance(50) {
                        edit(random, &mut file, "user");
                    }
                    put(&mut files, NEW[random.below(NEW.len())], file.clone());
                }
            }
            _ => {}
        }
    }
    (files, copied)
}

fn by_agent(random: &mut Random, base: &Files) -> Files {
    let mut files = base.clone();
    for path in BASE {
        match random.below(12) {
            0 => drop(files.remove(path)),
            1 => {
                let mut file = files.remove(path).unwrap();
                if random.chance(50) {
                    edit(random, &mut file, "agent");
                }
                put(&mut files, NEW[random.below(NEW.len())], file);
            }
            2..=8 => edit(random, files.get_mut(path).unwrap(), "agent"),
            _ => {}
        }
    }
    files
}

/// Lays files out in place of what is there.
fn lay_out(sandbox: &Sandbox, files: &Files) {
    let top = sandbox.repo();
    for name in BASE.iter().chain(&NEW) {
        let _ = fs::remove_file(top.join(name));
    }
    for (path, file) in files {
        let at = top.join(path);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        match file.kind {
            Kind::Link => symlink(file.lines.concat(), &at).unwrap(),
            kind => {
                fs::write(&at, file.bytes()).unwrap();
                let mode = if kind == Kind::Executable {
                    0o755
                } else {
                    0o644
                };
                fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    }
}

/// The edits that lead from the base to an agent's files.
fn edits(base: &Files, files: &Files) -> Vec<Edit> {
    let mut edits: Vec<Edit> = Vec::new();
    for path in base.keys().filter(|path| !files.contains_key(*path)) {
        edits.push(delete(path));
    }
    for (name, file) in files
        .iter()
        .filter(|(path, file)| base.get(*path) != Some(file))
    {
        let path = path(name);
        edits.push(match file.kind {
            Kind::Link => Edit::Symlink {
                path,
                target: file.lines.concat().into(),
            },
            kind => Edit::Write {
                path,
                bytes: file.bytes(),
                executable: Some(kind == Kind::Executable),
            },
        });
    }
    edits
}

/// The user's working tree as git would record it.
fn users_tree(place: &Place) -> String {
    let index = place.sandbox.root().join("index-of-the-test");
    let _ = fs::remove_file(&index);
    let git = |args: &[&str]| {
        let mut command = place.sandbox.command("git");
        command.args(args).env("GIT_INDEX_FILE", &index);
        let out = command.output().unwrap();
        assert!(out.status.success(), "{out:?}");
        String::from_utf8(out.stdout).unwrap().trim().to_owned()
    };
    git(&["add", "-A"]);
    git(&["write-tree"])
}

/// What git makes of three trees: the paths with mode and id, and those that are in conflict.
struct ByGit {
    files: BTreeMap<BString, String>,
    conflicts: BTreeSet<BString>,
}

fn by_git(place: &Place, settings: &[&str], trees: [&str; 3]) -> ByGit {
    let git = &place.sandbox;
    let root = git.git_text(&["commit-tree", "-m", "x", trees[0]]);
    let tips = [trees[1], trees[2]]
        .map(|tree| git.git_text(&["commit-tree", "-m", "x", "-p", root.trim(), tree]));
    let mut args = vec!["-c", "merge.directoryRenames=false"];
    for setting in settings {
        args.extend(["-c", setting]);
    }
    args.extend(["merge-tree", "--stdin", "--no-messages"]);
    args.extend(["-X", "diff-algorithm=myers"]);
    let input = format!("{} -- {} {}\n", root.trim(), tips[0].trim(), tips[1].trim());
    let out = git.git_with_input(&args, input.as_bytes());
    let mut fields = out.split_str("\0").skip(1);
    let tree = fields.next().unwrap().to_str().unwrap().to_owned();
    let conflicts = fields.take_while(|field| !field.is_empty());
    let path = |field: &[u8]| BString::from(field.split_once_str("\t").unwrap().1);
    let conflicts = conflicts.map(path).collect();
    let format = "--format=%(objectmode) %(objectname)%x09%(path)";
    let listed = git.git(&["ls-tree", "-r", "-z", format, &tree]);
    let files = listed.split_str("\0").filter(|line| !line.is_empty());
    let file = |line: &[u8]| {
        let (what, path) = line.split_once_str("\t").unwrap();
        (path.into(), what.to_str().unwrap().to_owned())
    };
    ByGit {
        files: files.map(file).collect(),
        conflicts,
    }
}

fn entry(outcome: &Outcome) -> Option<String> {
    let entry = outcome.result?;
    Some(format!("{:06o} {}", entry.mode, entry.id))
}

/// What was compared.
#[derive(Debug, Default)]
struct Count {
    changes: usize,
    followed: usize,
    followed_and_refused: usize,
    ties: usize,
    stricter: Vec<String>,
}

fn round(seed: u64, settings: &[&str], count: &mut Count) {
    let mut random = Random(seed);
    let place = Place::new(&[]);
    for setting in settings {
        let (key, value) = setting.split_once('=').unwrap();
        place.sandbox.git(&["config", key, value]);
    }
    let repository = open(&place.sandbox);
    let place = Place {
        repository,
        ..place
    };
    let base = base(&mut random);
    lay_out(&place.sandbox, &base);
    place.sandbox.git(&["add", "-A"]);
    place.sandbox.git(&["commit", "-qm", "files"]);
    place.create("a");
    let agents = by_agent(&mut random, &base);
    let edits = edits(&base, &agents);
    if edits.is_empty() {
        return;
    }
    place.edit("a", &edits);
    let proposal = place.propose("a");
    let (users, copied) = by_user(&mut random, &base);
    lay_out(&place.sandbox, &users);
    if random.chance(30) {
        place.sandbox.git(&["add", "-A"]);
    }
    let ours = users_tree(&place);
    let trees = [
        &proposal.base_tree.to_string(),
        &ours,
        &proposal.tree.to_string(),
    ];
    let git = by_git(&place, settings, trees.map(String::as_str));
    let told = format!("seed {seed} {:?}", trees);
    let planned = {
        let request = integrate::Accept {
            dry_run: true,
            ..request("a", &[])
        };
        integrate::accept(&place.store(), &request).unwrap()
    };
    let radar = integrate::conflicts(&place.store(), &[]).unwrap();
    let accepted = place.accept("a", &[]);
    assert_eq!(planned.outcomes, accepted.outcomes, "{told}");
    let seen: Vec<(&BString, Refusal)> =
        radar.collisions.iter().map(|c| (&c.path, c.kind)).collect();
    for outcome in &accepted.outcomes {
        count.changes += 1;
        let told = format!("{told} {outcome:#?} {:?}", git.conflicts);
        let at = outcome.into.as_ref().unwrap_or(&outcome.path);
        let contested = git.conflicts.contains(at) || git.conflicts.contains(&outcome.path);
        let pair = proposal.change(&outcome.path).unwrap().rename.as_ref();
        let pair_is_contested = pair.is_some_and(|pair| git.conflicts.contains(&pair.path));
        let refused = match outcome.verdict {
            integrate::Verdict::Refused(kind) => Some(kind),
            _ => None,
        };
        if outcome.into.is_some() {
            count.followed += 1;
            count.followed_and_refused += usize::from(refused.is_some());
        }
        let taken = |o: &Outcome| {
            let into = o.into.as_ref().filter(|_| !o.verdict.is_done());
            into.is_some_and(|into| agents.contains_key(&into.to_string()))
        };
        if taken(outcome) {
            // Where an empty file of the agent's meets it, git counts that as nothing.
            continue;
        }
        if accepted
            .outcomes
            .iter()
            .any(|o| taken(o) && o.into.as_ref() == Some(at))
        {
            continue;
        }
        let file = base.get(&outcome.path.to_string());
        let twins = base
            .values()
            .filter(|other| file.is_some_and(|f| f.lines == other.lines));
        // The agent's own renames are told when it proposes, without a look at the user's files.
        let unsure = copied.contains(&outcome.path) || twins.count() > 1 || pair.is_some();
        if unsure && outcome.verdict.is_done() {
            // Of two that are as good git takes one or the other, depending on the folders.
            let same = !contested && entry(outcome).as_ref() == git.files.get(at);
            count.ties += usize::from(!same);
        } else if outcome.verdict.is_done() {
            assert!(!contested, "git does not merge it: {told}");
            assert_eq!(entry(outcome).as_ref(), git.files.get(at), "{told}");
            if *at != outcome.path {
                assert!(!place.exists(&outcome.path.to_string()), "{told}");
            }
        } else if outcome.because.is_none() && !contested && !pair_is_contested {
            match unsure {
                true => count.ties += 1,
                false => count.stricter.push(told.clone()),
            }
        }
        if refused.is_some() && outcome.because.is_none() {
            let found = seen.iter().find(|(path, _)| **path == outcome.path);
            assert_eq!(found.map(|(_, kind)| *kind), refused, "{told}");
        }
    }
    if git.conflicts.is_empty() && !accepted.is_partial() {
        let tree = users_tree(&place);
        let listed = place.sandbox.git_text(&["ls-tree", "-r", &tree]);
        assert_eq!(listed.lines().count(), git.files.len(), "{told}");
    }
    // All of it comes back, and goes in once more.
    if accepted.journal.is_some() {
        let after = users_tree(&place);
        place.undo();
        assert_eq!(users_tree(&place), ours, "{told}");
        place.undo_of_undo();
        assert_eq!(users_tree(&place), after, "{told}");
    }
}

impl Place {
    /// Takes the newest undo back.
    fn undo_of_undo(&self) {
        let all = integrate::journal::list(self.store()).unwrap();
        let newest = all.iter().map(|one| one.id).max();
        integrate::undo(&self.store(), newest, &[]).unwrap();
    }
}

#[test]
fn a_change_of_what_the_user_moved_lands_where_git_puts_it() {
    let rounds = match std::env::var_os("GIT_VWS_TEST_LONG") {
        Some(_) => 1_000,
        None => 24,
    };
    let mut count = Count::default();
    for seed in 0..rounds {
        let settings: &[&str] = match seed % 10 {
            8 => &["diff.renames=false", "merge.renames=copies"],
            9 => &["merge.renameLimit=2"],
            _ => &[],
        };
        round(seed, settings, &mut count);
    }
    println!(
        "{} changes, {} followed, {} of them refused; ties: {}, stricter: {}",
        count.changes,
        count.followed,
        count.followed_and_refused,
        count.ties,
        count.stricter.len()
    );
    for told in &count.stricter {
        println!("{told}");
    }
    assert!(count.stricter.is_empty() && count.ties * 20 < count.changes);
    assert!(count.changes > 6 * rounds as usize && count.followed > rounds as usize);
}
