//! The whole job in a storm: views written, directories captured and settled, proposals accepted and undone,
//! by processes that are killed at random, beside git's own housekeeping, and on a disk that is full.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;
#[path = "common/disk.rs"]
mod disk;
#[path = "common/library.rs"]
mod library;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use common::Sandbox;
use disk::{Disk, fill};
use git_vws::git::Repository;
use git_vws::integrate::{self, Accept, Which, journal};
use git_vws::layout::{self, Insist, Options};
use git_vws::workspace::{From, Side, Store, Terms};
use library::{agent, from, leftovers, litter, long, open, open_path, path, recover_all, write};

/// Not a test: one of many processes.
#[test]
#[ignore = "run by the other tests, as a process of its own"]
fn child() {
    let Ok(name) = std::env::var("STORM_AGENT") else {
        return;
    };
    let seconds: u64 = std::env::var("STORM_SECONDS").unwrap().parse().unwrap();
    let repository = open_path(&std::env::current_dir().unwrap());
    let until = Instant::now() + Duration::from_secs(seconds);
    let start = std::process::id().into();
    for n in start.. {
        if Instant::now() >= until {
            break;
        }
        round(&repository, &name, n);
    }
    // Something of each is there at the end, with all its revisions.
    let repository = repository.reopen().unwrap();
    let store = Store::new(&repository, 1_700_000_000);
    let name = agent(&name);
    if store.find(&name).unwrap().is_none() {
        store
            .create(&name, &from(From::Commit("HEAD".into())))
            .unwrap();
    }
    for n in 0..3 {
        let edit = write("last", &n.to_string());
        store.edit(&name, Terms::default(), &[edit]).unwrap();
    }
}

/// Says what is done; each line is true from now on.
fn said(line: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

/// Writes, a directory, a proposal, a decision, every second one taken back again.
fn round(repository: &Repository, name: &str, n: u64) {
    let repository = repository.reopen().unwrap();
    let store = Store::new(&repository, 1_700_000_000);
    let a = agent(name);
    if store.find(&a).unwrap().is_none() {
        store
            .create(&a, &from(From::Commit("HEAD".into())))
            .unwrap();
    }
    if store.open_directory(&a).unwrap().is_none() {
        let view = format!("{name}/view{n}");
        let done = store
            .edit(&a, Terms::default(), &[write(&view, &view)])
            .unwrap();
        said(&format!("WROTE {} {view}", done.workspace.revision()));
    }
    let directory = layout::materialize(&store, &a, &Options::default()).unwrap();
    let file = format!("{name}/file{n}");
    let on_disk = directory.path.join(&file);
    std::fs::create_dir_all(on_disk.parent().unwrap()).unwrap();
    std::fs::write(&on_disk, &file).unwrap();
    // One that git has to store: nothing refers to its object until it is published.
    let rewritten = format!("{name}/{n}.crlf");
    std::fs::write(directory.path.join(&rewritten), &rewritten).unwrap();
    said(&format!("SAVED - {file}"));
    let captured = layout::capture(&store, &a).unwrap();
    said(&format!("WROTE {} {file}", captured.workspace.revision()));
    std::fs::write(directory.path.join("f"), format!("{name} {n}\n")).unwrap();
    let settled = layout::settle(&store, &a, Insist::No).unwrap();
    assert!(settled.kept.is_none());
    let now = store.load(&a).unwrap();
    for (_, entry) in store.ls(&now, Side::Overlay, None, true).unwrap() {
        repository.objects().unwrap().blob(entry.id).unwrap();
    }
    // What all agents change would be a conflict, and is no part of this.
    store.discard(&a, Terms::default(), &[path("f")]).unwrap();
    // Some rounds are never offered: their workspace is there at the end, with all its revisions.
    if n % 3 == 2 {
        return;
    }
    integrate::propose(&store, &a, None).unwrap();
    said("PROPOSED - -");
    let which = Which::Of {
        agent: a,
        paths: Vec::new(),
    };
    let request = Accept::new(which);
    let accepted = integrate::accept(&store, &request).unwrap();
    assert!(!accepted.is_partial(), "{accepted:?}");
    said("ACCEPTED - -");
    if n.is_multiple_of(2) {
        let undone = integrate::undo(&store, accepted.journal, &[]).unwrap();
        assert!(!undone.redo);
        said("UNDONE - -");
    }
}

fn start(sandbox: &Sandbox, name: &str, seconds: u64) -> Child {
    sandbox
        .command(std::env::current_exe().unwrap())
        .args([
            "child",
            "--exact",
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("STORM_AGENT", name)
        .env("STORM_SECONDS", seconds.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write(".gitattributes", b"*.crlf text eol=crlf\n");
    sandbox.write("f", b"base\n");
    sandbox.commit("one");
    sandbox
}

/// Whether the user's tree holds exactly what the journal says that was written to it.
fn tree_is_as_the_journal_says(store: &Store<'_>, sandbox: &Sandbox, what: &str) {
    let mut expected: BTreeMap<String, bool> = BTreeMap::new();
    let mut all = journal::list(*store).unwrap();
    all.reverse();
    for summary in all {
        let entry = summary.entry.unwrap();
        assert_ne!(entry.state, journal::State::Open, "{what}");
        for step in entry.written() {
            expected.insert(step.path.to_string(), step.after.is_some());
        }
    }
    assert_eq!(sandbox.read("f"), b"base\n", "{what}");
    for (name, there) in expected {
        let file = sandbox.repo().join(&name);
        assert_eq!(file.exists(), there, "{what}: {name}");
        if there {
            assert_eq!(std::fs::read(file).unwrap(), name.as_bytes(), "{what}");
        }
    }
    let status = sandbox.git_text(&["status", "--porcelain", "-uall"]);
    assert!(!status.contains(".vws"), "{what}: {status}");
}

/// Every revision of every workspace, and every object of it.
fn all_is_readable(store: &Store<'_>) -> u64 {
    let mut revisions = 0;
    for listed in store.list().unwrap() {
        let mut at = listed.state.unwrap();
        loop {
            for (_, entry) in store.ls(&at, Side::Overlay, None, true).unwrap() {
                store
                    .repository()
                    .objects()
                    .unwrap()
                    .blob(entry.id)
                    .unwrap();
            }
            revisions += 1;
            // Along the chain: the numbers of a name that was released before may leave a gap.
            let commit = store.repository().objects().unwrap().commit(at.commit);
            let Some(before) = commit.unwrap().parents.get(1).copied() else {
                break;
            };
            at = store.read_revision(&listed.agent, before).unwrap();
        }
    }
    revisions
}

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
fn the_job_killed_at_random_moments() {
    let sandbox = sandbox();
    let mut dice = Dice(0x7677_7302);
    let rounds = if long() { 200 } else { 30 };
    let mut heard: BTreeMap<String, u32> = BTreeMap::new();
    for round in 0..rounds {
        let mut child = start(&sandbox, "loop", 600);
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, receiver) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut last = None;
            for line in lines.map_while(Result::ok) {
                let line = line.rsplit("... ").next().unwrap_or_default().to_owned();
                if line.split(' ').count() == 3 && line.starts_with(|c: char| c.is_uppercase()) {
                    last = Some(line);
                    let _ = sender.send(());
                }
            }
            last
        });
        // After some step of the round, so that each is as likely to be under way.
        for _ in 0..=dice.below(8) {
            let _ = receiver.recv_timeout(Duration::from_secs(20));
        }
        std::thread::sleep(Duration::from_micros(dice.below(60_000)));
        child.kill().unwrap();
        let out = child.wait_with_output().unwrap();
        let cried = String::from_utf8_lossy(&out.stderr).into_owned();
        let last = reader
            .join()
            .unwrap()
            .unwrap_or_else(|| panic!("nothing done: {cried}"));
        let what = format!("round {round}: {last}");
        assert!(!cried.contains("panicked"), "{what}: {cried}");
        sandbox.git(&["fsck", "--connectivity-only", "--no-dangling"]);
        let repository = open(&sandbox);
        let store = Store::new(&repository, 1_700_000_000);
        recover_all(&store, &what);
        assert_eq!(litter(&sandbox), [""; 0].map(PathBuf::from), "{what}");
        assert_eq!(store.verify_mirror().unwrap(), [], "{what}");
        tree_is_as_the_journal_says(&store, &sandbox, &what);
        let words: Vec<&str> = last.split(' ').collect();
        *heard.entry(words[0].to_owned()).or_default() += 1;
        if let ["WROTE" | "SAVED", revision, file] = words[..] {
            // Saved in the directory counts too: the recovery has imported it.
            let at = match revision.parse() {
                Ok(revision) => store.load_at(&agent("loop"), revision).unwrap(),
                Err(_) => store.load(&agent("loop")).unwrap(),
            };
            let bytes = store.read(&at, Side::Overlay, &path(file)).unwrap();
            assert_eq!(bytes, file.as_bytes(), "{what}");
        }
    }
    println!("{rounds} kills, after: {heard:?}");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_000);
    all_is_readable(&store);
}

#[test]
fn eight_agents_do_the_job_beside_gits_housekeeping() {
    let sandbox = sandbox();
    let seconds = if long() { 120 } else { 20 };
    let children: Vec<_> = (0..8)
        .map(|n| start(&sandbox, &format!("a{n}"), seconds))
        .collect();
    let over = AtomicBool::new(false);
    let (rounds, outs) = std::thread::scope(|scope| {
        let housekeeping = scope.spawn(|| {
            let mut rounds = 0;
            while !over.load(Ordering::SeqCst) {
                for args in [
                    &["reflog", "expire", "--expire=now", "--all"][..],
                    &["gc", "-q", "--prune=now"],
                    &["repack", "-q", "-a", "-d", "-f"],
                    &["pack-refs", "--all"],
                    &["prune", "--expire=now"],
                ] {
                    let _ = sandbox.command("git").args(args).output().unwrap();
                }
                rounds += 1;
            }
            rounds
        });
        let outs: Vec<_> = children
            .into_iter()
            .map(|child| child.wait_with_output().unwrap())
            .collect();
        // Before anything may panic: the housekeeping would go on for ever.
        over.store(true, Ordering::SeqCst);
        (housekeeping.join().unwrap(), outs)
    });
    let mut done: BTreeMap<String, u32> = BTreeMap::new();
    for out in &outs {
        let (said, cried) = (
            String::from_utf8_lossy(&out.stdout),
            String::from_utf8_lossy(&out.stderr),
        );
        assert!(out.status.success(), "{said}\n{cried}");
        for line in said.lines().filter(|line| line.split(' ').count() == 3) {
            *done
                .entry(line[..line.find(' ').unwrap()].to_owned())
                .or_default() += 1;
        }
    }
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1);
    recover_all(&store, "after the storm");
    let revisions = all_is_readable(&store);
    tree_is_as_the_journal_says(&store, &sandbox, "after the storm");
    for proposal in integrate::changes(&store, None).unwrap() {
        for change in proposal.changes {
            for entry in [change.old, change.new].into_iter().flatten() {
                repository.objects().unwrap().blob(entry.id).unwrap();
            }
        }
    }
    assert_eq!(litter(&sandbox), [""; 0].map(PathBuf::from));
    assert!(revisions > 8, "{revisions}");
    println!("{seconds} s, {rounds} rounds of housekeeping: {done:?}; {revisions} revisions read");
    assert!(rounds > 2, "only {rounds} rounds");
    assert!(done.get("ACCEPTED").is_some_and(|n| *n >= 8), "{done:?}");
}

/// A repository on a small disk of its own.
fn on_a_small_disk(kib: u32) -> Option<(Sandbox, Disk, PathBuf)> {
    let Some(disk) = Disk::mount(kib) else {
        println!("skipped: a tmpfs cannot be mounted here");
        return None;
    };
    let sandbox = sandbox();
    sandbox.write("g", vec![b'g'; 9000]);
    sandbox.commit("two");
    let repo = disk.path().join("repo");
    let into = repo.to_str().unwrap();
    sandbox.git(&["clone", "-q", "--no-hardlinks", ".", into]);
    Some((sandbox, disk, repo))
}

fn no_litter(repo: &Path, what: &str) {
    let mut left = vec![repo.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let at = entry.unwrap().path();
            let name = at.file_name().unwrap().to_string_lossy().into_owned();
            let bad = name.starts_with(".vws-")
                || name.starts_with("vws-clean")
                || name.starts_with("vws-rules")
                || [".lock", ".keep", ".tmp", ".new"]
                    .iter()
                    .any(|s| name.ends_with(s))
                    && name != ".new";
            assert!(!bad, "{what}: {} stays", at.display());
            if at.is_dir() {
                left.push(at);
            }
        }
    }
}

#[test]
fn a_full_disk_leaves_a_capture_as_it_was() {
    let Some((sandbox, _disk, repo)) = on_a_small_disk(1024) else {
        return;
    };
    let repository = Repository::open_at(&repo, library::environment(&sandbox)).unwrap();
    let store = Store::new(&repository, 1);
    let a = agent("a");
    store.create(&a, &from(From::WorkTree)).unwrap();
    let directory = layout::materialize(&store, &a, &Options::default()).unwrap();
    let filler = repo.join(".git/filler");
    let mut failures = 0;
    for spare in 0..16u64 {
        let before = store.load(&a).unwrap();
        let text = format!("at {spare}\n{}", "x".repeat(3000));
        std::fs::write(directory.path.join("new"), &text).unwrap();
        let what = format!("with {spare} blocks to spare");
        fill(&filler, spare * 4096);
        let captured = layout::capture(&store, &a);
        let now = store.load(&a).unwrap();
        match &captured {
            Ok(captured) => assert_eq!(captured.workspace.commit, now.commit),
            Err(error) => {
                failures += 1;
                assert!(error.to_string().contains("cannot "), "unclear: {error}");
                assert_eq!(now.commit, before.commit, "{what}: {error}");
            }
        }
        store.ls(&now, Side::Overlay, None, true).unwrap();
        std::fs::remove_file(&filler).unwrap();
        assert_eq!(
            std::fs::read(directory.path.join("new")).unwrap(),
            text.as_bytes()
        );
        recover_all(&store, &what);
        no_litter(&repo, &what);
        let now = store.load(&a).unwrap();
        let bytes = store.read(&now, Side::Overlay, &path("new")).unwrap();
        assert_eq!(bytes, text.as_bytes(), "{what}");
        sandbox.git(&[
            "-C",
            repo.to_str().unwrap(),
            "fsck",
            "--connectivity-only",
            "--no-dangling",
        ]);
    }
    println!("{failures} failures");
    assert!(failures >= 2, "the disk was never full");
}

#[test]
fn a_full_disk_leaves_nothing_half_accepted() {
    let Some((sandbox, _disk, repo)) = on_a_small_disk(2048) else {
        return;
    };
    let repository = Repository::open_at(&repo, library::environment(&sandbox)).unwrap();
    let store = Store::new(&repository, 1);
    let filler = repo.join(".git/filler");
    let in_repo = |args: &[&str]| {
        let mut all = vec!["-C", repo.to_str().unwrap()];
        all.extend(args);
        sandbox.git(&all)
    };
    let mut failures = 0;
    for spare in 0..24u64 {
        let what = format!("with {spare} blocks to spare");
        let a = agent(&format!("a{spare}"));
        store
            .create(&a, &from(From::Commit("HEAD".into())))
            .unwrap();
        let texts = [
            ("f", "y".repeat(6000)),
            ("g", "z".repeat(20_000)),
            ("n/new", "n".repeat(5000)),
        ];
        let edits: Vec<_> = texts.iter().map(|(name, text)| write(name, text)).collect();
        store.edit(&a, Terms::default(), &edits).unwrap();
        integrate::propose(&store, &a, None).unwrap();
        fill(&filler, spare * 4096);
        let which = Which::Of {
            agent: a.clone(),
            paths: Vec::new(),
        };
        let request = Accept {
            atomic: true,
            ..Accept::new(which)
        };
        let accepted = integrate::accept(&store, &request);
        std::fs::remove_file(&filler).unwrap();
        let failed = match &accepted {
            Ok(accepted) => accepted.is_partial(),
            Err(error) => {
                assert!(error.to_string().contains("cannot "), "unclear: {error}");
                true
            }
        };
        failures += u32::from(failed);
        // As it was or as it was to be, before any recovery and after it.
        let is_new = || {
            let new = texts.iter().all(|(name, text)| {
                std::fs::read(repo.join(name)).is_ok_and(|found| found == text.as_bytes())
            });
            let old = std::fs::read(repo.join("f")).unwrap() == b"base\n"
                && std::fs::read(repo.join("g")).unwrap() == vec![b'g'; 9000]
                && !repo.join("n").exists();
            assert!(old || new, "{what}: half of it: {accepted:?}");
            new
        };
        let report = recover_all(&store, &what);
        no_litter(&repo, &what);
        let new = is_new();
        assert!(new || failed, "{what}: {accepted:?}");
        let proposals = integrate::changes(&store, Some((&a, None))).unwrap();
        let undecided: usize = proposals.iter().map(|one| one.undecided()).sum();
        assert_eq!(undecided, if new { 0 } else { 3 }, "{what}: {report:?}");
        in_repo(&["fsck", "--connectivity-only", "--no-dangling"]);
        if new {
            integrate::undo(&store, None, &[]).unwrap();
        }
        assert!(!is_new());
        integrate::reject(&store, &a, &[]).unwrap();
    }
    println!("{failures} failures");
    assert!(failures >= 2, "the disk was never full");
    assert_eq!(leftovers(&sandbox), [""; 0].map(PathBuf::from));
}
