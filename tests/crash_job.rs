//! `git vws` killed at every step of the job: laying out, capturing, settling, proposing, accepting,
//! rejecting, undoing, disposing. Which steps there are is asked of the program itself, so a new fault
//! point is tested as soon as it exists.
#![cfg(any(debug_assertions, feature = "fault-points"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use common::Sandbox;
use git_vws::integrate::{self, Accept, State, Which, upkeep};
use git_vws::layout::{self, Insist, Options};
use git_vws::workspace::{Edit, From, Side, Store, Terms};
use library::{agent, from, litter, long, open, path, recover_all, write};

/// What every try starts from.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", "*.crlf text eol=crlf\n");
    for (name, bytes) in BEFORE {
        sandbox.write(name, bytes);
    }
    sandbox.commit("one");
    sandbox
}

const BEFORE: [(&str, &str); 3] = [("f", "f\n"), ("d/gone", "gone\n"), ("x.crlf", "x\r\n")];

/// What the agent makes of it: in a directory, by a tool.
const AFTER: [(&str, &str); 4] = [
    ("f", "f2\n"),
    ("x.crlf", "x\r\ny\r\n"),
    ("n/e/w", "new\n"),
    ("big", "one\ntwo\n"),
];

fn work_in(directory: &std::path::Path) {
    for (name, bytes) in AFTER {
        let file = directory.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
    fs::remove_file(directory.join("d/gone")).unwrap();
}

/// The user's files, without those of ours.
fn tree(sandbox: &Sandbox) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut left = vec![sandbox.repo()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let at = entry.unwrap().path();
            let name = at.strip_prefix(sandbox.repo()).unwrap().to_str().unwrap();
            if at.is_dir() && name != ".git" && name != ".relo" {
                left.push(at);
            } else if at.is_file() {
                found.insert(name.to_owned(), fs::read_to_string(&at).unwrap());
            }
        }
    }
    found
}

fn is_new(store: &Store<'_>, name: &str) -> bool {
    let workspace = store.load(&agent(name)).unwrap();
    let read = |file: &str| store.read(&workspace, Side::Overlay, &path(file)).ok();
    let new = AFTER.iter().all(|(name, bytes)| {
        read(name).is_some_and(|found| found == bytes.replace('\r', "").as_bytes())
    });
    let old = read("f").is_some_and(|f| f == b"f\n") && read("n/e/w").is_none();
    assert!(
        new && read("d/gone").is_none() || old,
        "half of it is there"
    );
    new
}

type Step<'t> = &'t dyn Fn(&Store<'_>, &Sandbox, &str);

/// Kills `git vws <args>` at every point that it passes. `setup` makes what it needs, under a name of its
/// own for each try; `check` looks at what is left after a recovery.
fn at_every_point(args: &[&str], setup: Step<'_>, check: Step<'_>) {
    at_points(args, &|_| true, setup, check);
}

/// As [`at_every_point`], at those points only that `matters` says yes to, unless in the long form.
fn at_points(args: &[&str], matters: &dyn Fn(&str) -> bool, setup: Step<'_>, check: Step<'_>) {
    let sandbox = sandbox();
    let run = |name: &str, fault: &str| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_git-vws"));
        let args = args.iter().map(|arg| if *arg == "A" { name } else { arg });
        command.args(args).env("GIT_VWS_FAULT", fault);
        sandbox.outcome(command, b"")
    };
    let prepare = |name: &str| {
        let _ = sandbox.git(&["checkout", "-q", "-f", "HEAD", "--", "."]);
        let _ = sandbox.git(&["clean", "-q", "-f", "-d", "-e", ".relo"]);
        let repository = open(&sandbox);
        setup(&Store::new(&repository, 1_700_000_000), &sandbox, name);
    };
    let trace: PathBuf = sandbox.root().join("trace");
    prepare("trace");
    let out = run("trace", &format!("trace:{}", trace.display()));
    assert!(out.code().is_some_and(|code| code == 0), "{args:?}: {out}");
    let mut passes: BTreeMap<String, u32> = BTreeMap::new();
    for point in fs::read_to_string(&trace).unwrap().lines() {
        *passes.entry(point.to_owned()).or_default() += 1;
    }
    let mut deaths = 0;
    passes.retain(|point, _| long() || matters(point));
    for (point, last) in &passes {
        for pass in 1..=*last {
            // Most of the later passes are for the long form.
            if !long() && pass != 1 && (pass != *last || point != "ref-moved") {
                continue;
            }
            let name = format!("{point}.{pass}");
            let what = format!("{args:?} killed at {point}:{pass}");
            prepare(&name);
            let out = run(&name, &format!("{point}:{pass}"));
            assert_eq!(out.code(), None, "{what}: it was not killed: {out}");
            deaths += 1;
            let repository = open(&sandbox);
            let store = Store::new(&repository, 1_700_000_001);
            sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
            recover_all(&store, &what);
            assert_eq!(litter(&sandbox), [""; 0].map(PathBuf::from), "{what}");
            assert_eq!(store.verify_mirror().unwrap(), [], "{what}");
            println!("{what}");
            check(&store, &sandbox, &name);
            assert_eq!(litter(&sandbox), [""; 0].map(PathBuf::from), "{what}");
            if store.find(&agent(&name)).unwrap().is_some() {
                upkeep::dispose(&store, &agent(&name), true).unwrap();
            }
            recover_all(&store, &what);
            sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
        }
    }
    println!("{args:?}: {deaths} deaths at {} points", passes.len());
    assert!(deaths >= 7, "{args:?}: only {deaths} deaths");
}

fn make(store: &Store<'_>, _: &Sandbox, name: &str) {
    store
        .create(&agent(name), &from(From::Commit("HEAD".into())))
        .unwrap();
}

fn make_open(store: &Store<'_>, sandbox: &Sandbox, name: &str) {
    make(store, sandbox, name);
    let directory = layout::materialize(store, &agent(name), &Options::default()).unwrap();
    work_in(&directory.path);
}

fn make_settled(store: &Store<'_>, sandbox: &Sandbox, name: &str) {
    make_open(store, sandbox, name);
    layout::settle(store, &agent(name), Insist::No).unwrap();
}

fn make_proposed(store: &Store<'_>, sandbox: &Sandbox, name: &str) {
    make_settled(store, sandbox, name);
    integrate::propose(store, &agent(name), None).unwrap();
}

fn accept(store: &Store<'_>, name: &str) -> integrate::Accepted {
    let which = Which::Of {
        agent: agent(name),
        paths: Vec::new(),
    };
    integrate::accept(store, &Accept::new(which)).unwrap()
}

fn make_accepted(store: &Store<'_>, sandbox: &Sandbox, name: &str) {
    make_proposed(store, sandbox, name);
    assert!(!accept(store, name).is_partial());
}

#[test]
fn laying_out() {
    at_every_point(&["materialize", "A"], &make, &|store, _, name| {
        assert!(!is_new(store, name));
        let directory = layout::materialize(store, &agent(name), &Options::default()).unwrap();
        assert_eq!(fs::read(directory.path.join("x.crlf")).unwrap(), b"x\r\n");
        work_in(&directory.path);
        layout::settle(store, &agent(name), Insist::No).unwrap();
        assert!(is_new(store, name));
    });
}

#[test]
fn capture() {
    at_every_point(&["capture", "A"], &make_open, &|store, _, name| {
        // The directory stood, so the recovery has imported it.
        assert!(is_new(store, name));
        assert_eq!(store.load(&agent(name)).unwrap().revision().get(), 2);
        layout::settle(store, &agent(name), Insist::No).unwrap();
    });
}

#[test]
fn settle() {
    at_every_point(&["settle", "A"], &make_open, &|store, sandbox, name| {
        assert!(is_new(store, name));
        assert_eq!(store.load(&agent(name)).unwrap().revision().get(), 2);
        let place = sandbox.repo().join(".relo/worktrees").join(name);
        let open = layout::open(store, &agent(name)).unwrap();
        assert_eq!(open.is_some(), place.exists());
        let directory = layout::materialize(store, &agent(name), &Options::default()).unwrap();
        assert_eq!(fs::read(directory.path.join("f")).unwrap(), b"f2\n");
        layout::settle(store, &agent(name), Insist::No).unwrap();
    });
}

#[test]
fn propose() {
    at_every_point(&["propose", "A"], &make_open, &|store, _, name| {
        let proposal = integrate::propose(store, &agent(name), None).unwrap();
        assert_eq!(proposal.changes.len(), 5);
        assert_eq!(proposal.undecided(), 5);
    });
}

/// Each path is as it was or as it was to be, and its change says so.
fn is_consistent(store: &Store<'_>, sandbox: &Sandbox, name: &str) -> usize {
    let now = tree(sandbox);
    let all = integrate::changes(store, Some((&agent(name), None))).unwrap();
    let mut accepted = 0;
    for change in all.iter().flat_map(|proposal| &proposal.changes) {
        let name = change.path.to_string();
        let of = |all: &[(&str, &str)]| {
            let found = all.iter().find(|(path, _)| *path == name);
            found.map(|(_, bytes)| (*bytes).to_owned())
        };
        let found = now.get(&name).cloned();
        if matches!(change.state, State::Accepted { .. }) {
            assert_eq!(found, of(&AFTER), "{name} is said to be accepted");
            accepted += 1;
        } else {
            assert_eq!(change.state, State::Proposed, "{name}");
            assert_eq!(found, of(&BEFORE), "{name} is said to be proposed");
        }
    }
    accepted
}

#[test]
fn accepting() {
    at_every_point(&["accept", "A"], &make_proposed, &|store, sandbox, name| {
        let before = is_consistent(store, sandbox, name);
        if before < 5 {
            assert!(!accept(store, name).is_partial());
        }
        assert_eq!(is_consistent(store, sandbox, name), 5);
        assert!(
            store.find(&agent(name)).unwrap().is_none(),
            "it is not released"
        );
        // Nothing twice: what was written is known, and goes back.
        while integrate::undo(store, None, &[]).is_ok() {}
        assert_eq!(is_consistent(store, sandbox, name), 0);
        integrate::reject(store, &agent(name), &[]).unwrap();
    });
}

/// An agent has edited `f`, and the user has moved it.
fn make_moved(store: &Store<'_>, sandbox: &Sandbox, name: &str) {
    make(store, sandbox, name);
    let edits = [write("f", "f\nagent\n")];
    store.edit(&agent(name), Terms::default(), &edits).unwrap();
    integrate::propose(store, &agent(name), None).unwrap();
    let top = sandbox.repo();
    fs::create_dir(top.join("moved")).unwrap();
    fs::rename(top.join("f"), top.join("moved/to")).unwrap();
}

/// The file is as it was or as it was to be, and the change of its old path says so.
fn is_where_it_was_moved(store: &Store<'_>, sandbox: &Sandbox, name: &str) -> bool {
    let all = integrate::changes(store, Some((&agent(name), None))).unwrap();
    let done = matches!(all[0].changes[0].state, State::Accepted { .. });
    let expected = if done { "f\nagent\n" } else { "f\n" };
    assert_eq!(sandbox.read("moved/to"), expected.as_bytes());
    assert!(!sandbox.repo().join("f").exists());
    done
}

#[test]
fn accepting_what_the_user_moved() {
    at_every_point(&["accept", "A"], &make_moved, &|store, sandbox, name| {
        if !is_where_it_was_moved(store, sandbox, name) {
            assert!(!accept(store, name).is_partial());
        }
        assert!(is_where_it_was_moved(store, sandbox, name));
        while integrate::undo(store, None, &[]).is_ok() {}
        assert!(!is_where_it_was_moved(store, sandbox, name));
        integrate::reject(store, &agent(name), &[]).unwrap();
    });
}

#[test]
fn undoing() {
    at_every_point(&["undo"], &make_accepted, &|store, sandbox, name| {
        let accepted = is_consistent(store, sandbox, name);
        assert!(accepted == 0 || accepted == 5, "{accepted} of 5");
        if accepted == 5 {
            integrate::undo(store, None, &[]).unwrap();
        }
        assert_eq!(is_consistent(store, sandbox, name), 0);
        assert!(integrate::undo(store, None, &[]).is_err(), "undone twice");
        integrate::reject(store, &agent(name), &[]).unwrap();
    });
}

#[test]
fn rejecting() {
    at_every_point(&["reject", "A"], &make_proposed, &|store, _, name| {
        let left = integrate::changes(store, Some((&agent(name), None))).unwrap();
        let undecided: usize = left.iter().map(|proposal| proposal.undecided()).sum();
        assert!(undecided == 0 || undecided == 5, "{undecided} of 5");
        if undecided == 5 {
            integrate::reject(store, &agent(name), &[]).unwrap();
        }
        assert!(
            store.find(&agent(name)).unwrap().is_none(),
            "it is not released"
        );
    });
}

#[test]
fn disposing_of_an_open_directory() {
    let args = ["overlay", "dispose", "--force", "A"];
    at_every_point(&args, &make_open, &|store, _, name| {
        if store.find(&agent(name)).unwrap().is_some() {
            upkeep::dispose(store, &agent(name), true).unwrap();
        }
        let trash = from(From::Trash(agent(name), None));
        store.create(&agent(name), &trash).unwrap();
        assert!(is_new(store, name));
        store
            .edit(&agent(name), Terms::default(), &[write("f", "on")])
            .unwrap();
    });
}

/// `a` offers 50 files: changed, deleted and new ones.
fn fifty(store: &Store<'_>, sandbox: &Sandbox) {
    for n in (0..50).filter(|n| n % 5 != 1) {
        sandbox.write(format!("d{}/f{n:02}", n % 3), "base\n");
    }
    sandbox.commit("fifty");
    make(store, sandbox, "a");
    let edits: Vec<_> = (0..50)
        .map(|n| (n, format!("d{}/f{n:02}", n % 3)))
        .map(|(n, name)| match n % 5 {
            0 => Edit::Delete {
                path: path(&name),
                recursive: false,
            },
            _ => write(&name, "agent\n"),
        })
        .collect();
    store.edit(&agent("a"), Terms::default(), &edits).unwrap();
    integrate::propose(store, &agent("a"), None).unwrap();
}

#[test]
fn a_group_of_fifty_files_killed_after_any_write_is_there_as_a_whole_or_not_at_all() {
    let sandbox = Sandbox::new();
    let repository = open(&sandbox);
    fifty(&Store::new(&repository, 1_700_000_000), &sandbox);
    let status = || sandbox.git_text(&["status", "--porcelain", "-uall"]);
    let vws = |args: &[&str], fault: Option<&str>| {
        let mut command = sandbox.command(env!("CARGO_BIN_EXE_git-vws"));
        command
            .args(args)
            .envs(fault.map(|fault| ("GIT_VWS_FAULT", fault)));
        sandbox.outcome(command, b"")
    };
    let json = |out: &common::Outcome| -> Vec<serde_json::Value> {
        let lines = std::str::from_utf8(out.stdout()).unwrap().lines();
        lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let (mut finished, mut rolled_back) = (0, 0);
    for point in [
        "step-staged",
        "step-swapped",
        "step-checked",
        "step-settled",
    ] {
        for pass in (1..=50).filter(|n| long() || [1, 27, 50].contains(n)) {
            let what = format!("{point}:{pass}");
            let out = vws(&["accept", "--atomic", "-q", "a"], Some(&what));
            if out.code() == Some(0) {
                // Fewer writes pass this point.
                assert!(pass > 25, "{what}");
                let _ = vws(&["undo"], None).success();
                continue;
            }
            assert_eq!(out.code(), None, "{what}: it was not killed: {out}");
            let recovered = vws(&["recover", "--json"], None);
            assert_eq!(recovered.code(), Some(0), "{what}: {recovered}");
            let said = json(&recovered);
            let ended: Vec<_> = said
                .iter()
                .filter(|one| one.get("ended").is_some())
                .collect();
            assert_eq!(ended.len(), 1, "{what}: {recovered}");
            let changed = status().lines().count();
            let states: Vec<_> = json(&vws(&["changes", "--json", "a"], None))
                .into_iter()
                .map(|change| change["state"].as_str().unwrap().to_owned())
                .collect();
            assert_eq!(states.len(), 50);
            let (word, files, state) = match ended[0]["ended"].as_str().unwrap() {
                "finished" => {
                    finished += 1;
                    ("finished", 50, "accepted")
                }
                _ => {
                    rolled_back += 1;
                    ("rolled-back", 0, "proposed")
                }
            };
            assert_eq!(ended[0]["ended"], word, "{what}");
            assert_eq!(
                ended[0]["written"].as_array().unwrap().len(),
                files,
                "{what}"
            );
            assert_eq!(changed, files, "{what}: {}", status());
            assert!(states.iter().all(|one| one == state), "{what}: {states:?}");
            assert_eq!(litter(&sandbox), [""; 0].map(PathBuf::from), "{what}");
            if files > 0 {
                let _ = vws(&["undo"], None).success();
            }
            assert_eq!(status(), "", "{what}");
        }
    }
    println!("{finished} finished, {rolled_back} taken back");
    assert!(finished > 0 && rolled_back > 0, "{finished} {rolled_back}");
    let _ = vws(&["accept", "--atomic", "a"], None).success();
    assert_eq!(status().lines().count(), 50);
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

/// The three agents that one accept releases together, in a try of this name.
fn three(name: &str) -> [String; 3] {
    ["", "-2", "-3"].map(|end| format!("{name}{end}"))
}

#[test]
fn releasing_many_at_once() {
    let setup: Step<'_> = &|store, sandbox, name| {
        for (n, each) in three(name).iter().enumerate() {
            make(store, sandbox, each);
            let edit = write(&format!("new{n}"), "new\n");
            store.edit(&agent(each), Terms::default(), &[edit]).unwrap();
            integrate::propose(store, &agent(each), None).unwrap();
        }
        // Some refs are in the packed list only, some in files.
        sandbox.git(&["pack-refs", "--all"]);
        let note = write("new0", "newer\n");
        store.edit(&agent(name), Terms::default(), &[note]).unwrap();
        integrate::propose(store, &agent(name), None).unwrap();
    };
    // The others are those of an accept of one.
    let matters = |point: &str| point.starts_with("delete-") || point.starts_with("ref");
    at_points(
        &["accept", "--all"],
        &matters,
        setup,
        &|store, sandbox, name| {
            if integrate::changes(store, None)
                .unwrap()
                .iter()
                .any(|one| one.undecided() > 0)
            {
                assert!(
                    !integrate::accept(store, &Accept::new(Which::All))
                        .unwrap()
                        .is_partial()
                );
            }
            let now = tree(sandbox);
            let read = |n: usize| now.get(&format!("new{n}")).map(String::as_str);
            assert_eq!(
                [read(0), read(1), read(2)],
                [Some("newer\n"), Some("new\n"), Some("new\n")]
            );
            for each in three(name) {
                assert!(
                    store.find(&agent(&each)).unwrap().is_none(),
                    "{each} is not released"
                );
            }
            let left = sandbox.git_text(&["for-each-ref", "refs/relo/vws", "refs/heads/relo"]);
            assert_eq!(left, "", "pins stayed");
        },
    );
}
