//! Killed at every step, and at random moments: what was there before or what was to be, nothing in
//! between, and nothing that blocks whoever comes next.
//!
//! The process that dies is this test itself, run again as [`child`]. Fault points are in debug builds
//! and behind the feature `fault-points`.
#![cfg(any(debug_assertions, feature = "fault-points"))]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::Sandbox;
use git_vws::git::{Repository, fault};
use git_vws::workspace::{From, Side, Store, Terms};
use library::{agent, from, leftovers, long, open, open_path, path, recover, write};

/// Every fault point of a publish, in order.
const POINTS: [&str; 18] = [
    "pack-kept",
    "pack-torn",
    "pack-written",
    "pack-indexed",
    "pack-visible",
    "objects-durable",
    "refs-marked",
    "ref-locked",
    "ref-moved",
    "refs-done",
    "published",
    "pack-released",
    "roll-written",
    "roll-removed",
    "event",
    "event-logged",
    "mirror-written",
    "mirror-shown",
];

/// Not a test: the process that is killed.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child() {
    let Ok(job) = std::env::var("CRASH_JOB") else {
        return;
    };
    if let Ok(point) = std::env::var("GIT_VWS_FAULT") {
        fault::arm(&point);
    }
    let repository = open_path(&std::env::current_dir().unwrap());
    let store = Store::new(&repository, 1_700_000_000);
    let name = agent(&std::env::var("CRASH_AGENT").unwrap());
    let terms = Terms::default();
    match job.as_str() {
        "create" => drop(store.create(&name, &from(From::WorkTree)).unwrap()),
        "write" => drop(store.edit(&name, terms, &[write("f", "new")]).unwrap()),
        "discard" => drop(store.discard(&name, terms, &[path("f")]).unwrap()),
        "snap" => drop(store.snap(&name, None).unwrap()),
        "dispose" => drop(store.dispose(&name, true).unwrap()),
        "bring-back" => {
            let trash = from(From::Trash(name.clone(), None));
            drop(store.create(&name, &trash).unwrap());
        }
        "loop" => work(&store, &repository),
        other => panic!("no such job: {other}"),
    }
}

/// Writes, snaps, drops and makes workspaces until it is killed, and says what is done.
fn work(store: &Store<'_>, _repository: &Repository) {
    let name = agent("loop");
    let mut out = std::io::stdout();
    for n in 0u64.. {
        if store.find(&name).unwrap().is_none() {
            store
                .create(&name, &from(From::Commit("HEAD".into())))
                .unwrap();
        }
        let edit = write(&format!("d{}/f", n % 7), &n.to_string());
        let done = store.edit(&name, Terms::default(), &[edit]).unwrap();
        writeln!(out, "DONE {} d{}/f {n}", done.workspace.revision(), n % 7).unwrap();
        out.flush().unwrap();
        if n % 5 == 0 {
            store.snap(&name, None).unwrap();
        }
        if n % 17 == 16 {
            writeln!(out, "DROP").unwrap();
            out.flush().unwrap();
            store.dispose(&name, true).unwrap();
        }
    }
}

fn start(sandbox: &Sandbox, job: &str, name: &str, fault: Option<&str>) -> Child {
    let mut command: Command = sandbox.command(std::env::current_exe().unwrap());
    command
        .args([
            "child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("CRASH_JOB", job)
        .env("CRASH_AGENT", name)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(fault) = fault {
        command.env("GIT_VWS_FAULT", fault);
    }
    command.spawn().unwrap()
}

/// Runs a job to its end or its death; says whether it was killed.
fn run(sandbox: &Sandbox, job: &str, name: &str, fault: &str) -> bool {
    let out = start(sandbox, job, name, Some(fault))
        .wait_with_output()
        .unwrap();
    let killed = out.status.signal() == Some(9);
    let said = String::from_utf8_lossy(&out.stdout);
    assert!(killed || out.status.success(), "{job} at {fault}: {said}");
    killed
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"base");
    sandbox.write("g", b"base");
    sandbox.commit("one");
    sandbox
}

fn content(store: &Store<'_>, name: &str) -> Option<(u64, String)> {
    let workspace = store.find(&agent(name)).unwrap()?;
    let bytes = store.read(&workspace, Side::Overlay, &path("f")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    Some((workspace.revision().get(), text))
}

/// All that must hold after a death. `write_first`: the next writer does not wait for a recovery.
fn all_is_well(sandbox: &Sandbox, name: &str, write_first: bool, what: &str) {
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
    let repository = open(sandbox);
    let store = Store::new(&repository, 1_700_000_001);
    let go_on = || {
        let name = agent(name);
        let begun = Instant::now();
        if store.find(&name).unwrap().is_none() {
            store.create(&name, &from(From::WorkTree)).unwrap();
        }
        store
            .edit(&name, Terms::default(), &[write("g", "and on")])
            .unwrap_or_else(|error| panic!("{what}: the next write: {error}"));
        assert!(
            begun.elapsed() < Duration::from_secs(5),
            "{what}: it blocked"
        );
    };
    if write_first {
        go_on();
    }
    let report = recover(&store);
    assert!(!report.needs_attention(), "{what}: {report:?}");
    assert_eq!(
        leftovers(sandbox),
        [""; 0].map(std::path::PathBuf::from),
        "{what}"
    );
    assert_eq!(store.verify_mirror().unwrap(), [], "{what}");
    if !write_first {
        go_on();
    }
    assert_eq!(
        leftovers(sandbox),
        [""; 0].map(std::path::PathBuf::from),
        "{what}"
    );
    sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
}

/// Kills a job at every point that it passes, at every pass; `states` are the states it may leave.
fn at_every_point(job: &str, states: &[Option<(u64, &str)>]) {
    let sandbox = sandbox();
    let mut deaths = 0;
    for point in POINTS {
        for pass in 1..=12 {
            let name = format!("{point}-{pass}");
            let repository = open(&sandbox);
            let store = Store::new(&repository, 1_700_000_000);
            let one = agent(&name);
            if job != "create" {
                store.create(&one, &from(From::WorkTree)).unwrap();
                store
                    .edit(&one, Terms::default(), &[write("f", "old")])
                    .unwrap();
            }
            if job == "bring-back" {
                store.dispose(&one, true).unwrap();
            }
            let what = format!("{job} killed at {point}:{pass}");
            let killed = run(&sandbox, job, &name, &format!("{point}:{pass}"));
            let repository = open(&sandbox);
            let store = Store::new(&repository, 1_700_000_000);
            let found = content(&store, &name);
            let found = found.as_ref().map(|(n, text)| (*n, text.as_str()));
            assert!(states.contains(&found), "{what}: {found:?}");
            if found.is_none() && matches!(job, "dispose" | "bring-back") {
                let kept = store.trashed(&one, None).unwrap();
                let bytes = store.read(&kept, Side::Overlay, &path("f")).unwrap();
                assert_eq!(bytes, b"old", "{what}");
            }
            if !killed {
                assert_eq!(found, states[states.len() - 1], "{what}");
                break;
            }
            deaths += 1;
            all_is_well(
                &sandbox,
                &name,
                pass % 2 == 0 || point == "ref-locked",
                &what,
            );
        }
    }
    // All but the roll-up's points, which not every job passes.
    assert!(deaths >= 12, "{job}: only {deaths} deaths");
}

#[test]
fn create_killed_at_every_point() {
    at_every_point("create", &[None, Some((1, "base"))]);
}

#[test]
fn write_killed_at_every_point() {
    at_every_point("write", &[Some((2, "old")), Some((3, "new"))]);
}

#[test]
fn discard_killed_at_every_point() {
    at_every_point("discard", &[Some((2, "old")), Some((3, "base"))]);
}

#[test]
fn bring_back_killed_at_every_point() {
    at_every_point("bring-back", &[None, Some((3, "old"))]);
}

/// These pass fewer points: they write no objects.
#[test]
fn snap_and_dispose_killed_at_every_point() {
    let sandbox = sandbox();
    for job in ["snap", "dispose"] {
        for point in [
            "refs-marked",
            "ref-moved",
            "delete-locked",
            "delete-repacked",
            "delete-unpacked",
            "delete-gone",
            "refs-done",
            "event",
            "mirror-shown",
        ] {
            for pass in 1..=8 {
                let repository = open(&sandbox);
                let store = Store::new(&repository, 1_700_000_000);
                let name = format!("{job}-{point}-{pass}");
                let one = agent(&name);
                store.create(&one, &from(From::WorkTree)).unwrap();
                store
                    .edit(&one, Terms::default(), &[write("f", "old")])
                    .unwrap();
                if pass % 2 == 0 {
                    sandbox.git(&["pack-refs", "--all"]);
                }
                let what = format!("{job} killed at {point}:{pass}");
                if !run(&sandbox, job, &name, &format!("{point}:{pass}")) {
                    break;
                }
                let found = content(&store, &name);
                if found.is_none() {
                    assert_eq!(job, "dispose", "{what}");
                    store.trashed(&one, None).unwrap();
                } else {
                    assert_eq!(found, Some((2, "old".to_owned())), "{what}");
                }
                all_is_well(&sandbox, &name, pass % 4 < 2, &what);
            }
        }
    }
}

/// A small generator of numbers, seeded so that a failure can be had again.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn killed_at_random_moments() {
    let sandbox = sandbox();
    let mut dice = Dice(0x7677_7301);
    let rounds = if long() { 200 } else { 30 };
    let mut done_in_all = 0;
    for round in 0..rounds {
        let mut child = start(&sandbox, "loop", "loop", None);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The time counts from the first thing done: what comes before is the test's own start.
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut last = None;
            for line in lines.map_while(Result::ok) {
                let line = line
                    .rsplit_once("child ... ")
                    .map_or(line.clone(), |(_, l)| l.into());
                if line.starts_with("DONE") || line.starts_with("DROP") {
                    last = Some(line);
                    let _ = sender.send(());
                }
            }
            last
        });
        let _ = receiver.recv_timeout(Duration::from_secs(20));
        std::thread::sleep(Duration::from_micros(dice.below(120_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let last = reader.join().unwrap().expect("nothing was done");
        done_in_all += 1;
        let repository = open(&sandbox);
        let store = Store::new(&repository, 1_700_000_000);
        let words: Vec<&str> = last.split(' ').collect();
        if let ["DONE", revision, file, text] = words[..] {
            // What was reported as done is there; at most one more revision, not yet reported.
            let workspace = store.load(&agent("loop")).unwrap();
            let done: u64 = revision.parse().unwrap();
            let now = workspace.revision().get();
            assert!(
                now == done || now == done + 1,
                "round {round}: {last}: at {now}"
            );
            let at = store
                .load_at(&agent("loop"), revision.parse().unwrap())
                .unwrap();
            let bytes = store.read(&at, Side::Overlay, &path(file)).unwrap();
            assert_eq!(bytes, text.as_bytes(), "round {round}");
        }
        all_is_well(
            &sandbox,
            "after",
            round % 2 == 0,
            &format!("round {round}: {last}"),
        );
    }
    assert_eq!(done_in_all, rounds);
}
