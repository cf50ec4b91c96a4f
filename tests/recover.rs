//! Damage named and cleared, leftovers removed, the mirror, the trash and the sweep.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::time::{Duration, SystemTime};

use common::Sandbox;
use git_vws::git::ObjectId;
use git_vws::mirror::{self, State};
use git_vws::model::{Refusal, Revision};
use git_vws::workspace::{
    Error, From, Inputs, Journalled, Offered, Policy, RecoverOptions, Side, Store, Terms, What,
};
use library::{agent, from, leftovers, open, path, recover, write};

/// A repository with the workspaces a, b and c, each edited once.
fn three() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"base");
    sandbox.write("d/g", b"base");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_000);
    for name in ["a", "b", "c"] {
        store.create(&agent(name), &from(From::WorkTree)).unwrap();
        let edit = write("f", &format!("{name}'s"));
        store.edit(&agent(name), Terms::default(), &[edit]).unwrap();
    }
    sandbox
}

fn refs(sandbox: &Sandbox) -> String {
    sandbox.git_text(&["for-each-ref", "--format=%(objectname) %(refname)"])
}

fn git_works(sandbox: &Sandbox) -> bool {
    let run = |args: &[&str]| sandbox.command("git").args(args).output().unwrap();
    run(&["gc", "-q", "--prune=now"]).status.success()
        && run(&["fetch", "-q", "."]).status.success()
        && run(&["fsck", "--connectivity-only", "--no-dangling"])
            .status
            .success()
}

/// A revision's commit for agent a, its message changed by `edit`, on the given tree.
fn forged(sandbox: &Sandbox, tree: &str, edit: impl Fn(String) -> String) -> String {
    let commit = sandbox.git_text(&["cat-file", "commit", "refs/relo/vws/a/overlay"]);
    let old = sandbox.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
    let text = edit(commit.replace(&old, tree)) + "\n";
    let id = sandbox.git_with_input(
        &[
            "hash-object",
            "-t",
            "commit",
            "-w",
            "--stdin",
            "--literally",
        ],
        text.as_bytes(),
    );
    String::from_utf8(id).unwrap().trim().to_owned()
}

const MISSING: &str = "1234567890123456789012345678901234567890";

#[test]
fn an_empty_ref_file_is_named_cleared_and_its_workspace_brought_back() {
    let sandbox = three();
    let file = ".git/refs/relo/vws/a/overlay";
    sandbox.write(file, b"");
    assert!(!git_works(&sandbox), "git does not mind: nothing to test");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let error = store.load(&agent("a")).unwrap_err();
    assert_eq!(error.refusal(), Some(Refusal::Damaged), "{error}");
    let listed = store.list().unwrap();
    assert_eq!(listed.len(), 3);
    assert!(
        listed[0]
            .damage()
            .unwrap()
            .contains("refs/relo/vws/a/overlay")
    );
    assert!(listed[1].state.is_ok() && listed[2].state.is_ok());
    assert!(store.create(&agent("a"), &from(From::WorkTree)).is_err());
    let report = recover(&store);
    assert_eq!(report.workspaces.len(), 2);
    assert_eq!(report.damaged.len(), 1, "{:?}", report.damaged);
    assert_eq!(report.damaged[0].why, "an empty file");
    assert_eq!(sandbox.read(file), b"", "recover touched it");
    store
        .edit(&agent("b"), Terms::default(), &[write("f", "on")])
        .unwrap();

    let cleared = store.clear(&agent("a")).unwrap();
    assert_eq!(cleared.kept, ["refs/relo/trash/a/2"]);
    assert_eq!(cleared.aside.len(), 1);
    assert!(git_works(&sandbox));
    assert!(!recover(&store).needs_attention());
    let trash = from(From::Trash(agent("a"), None));
    let back = store.create(&agent("a"), &trash).unwrap().workspace;
    assert_eq!(back.revision().get(), 3);
    assert_eq!(
        store.read(&back, Side::Overlay, &path("f")).unwrap(),
        b"a's"
    );
    assert_eq!(store.diff(&back).unwrap().len(), 1);
    assert!(!recover(&store).needs_attention());
    assert!(matches!(store.clear(&agent("a")), Err(Error::Invalid(_))));
    assert!(matches!(
        store.clear(&agent("x")),
        Err(Error::NoWorkspace { .. })
    ));
}

#[test]
fn an_empty_file_over_a_packed_ref_and_without_a_reflog_loses_only_what_was_not_packed() {
    let sandbox = three();
    sandbox.git(&["pack-refs", "--all"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    sandbox.write(".git/refs/relo/vws/a/overlay", b"not an id\n");
    std::fs::remove_file(sandbox.repo().join(".git/logs/refs/relo/vws/a/overlay")).unwrap();
    assert_eq!(recover(&store).damaged[0].why, "no object id");
    let cleared = store.clear(&agent("a")).unwrap();
    assert_eq!(cleared.kept, ["refs/relo/trash/a/2"]);
    assert!(!refs(&sandbox).contains("vws/a/"));
    assert!(git_works(&sandbox));
}

#[test]
fn every_kind_of_damage_is_named_and_leaves_the_rest_alone() {
    type Damage = (&'static str, fn(&Sandbox) -> String);
    let cases: [Damage; 6] = [
        ("missing object", |s| forged(s, MISSING, |text| text)),
        ("its format is 2", |s| {
            let tree = s.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
            forged(s, &tree, |text| {
                text.replace("\"format\":1", "\"format\":2")
            })
        }),
        ("missing field", |s| {
            let tree = s.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
            forged(s, &tree, |text| text.replace("\"revision\"", "\"no\""))
        }),
        ("missing object", |s| {
            let tree = s.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
            let base = s.git_text(&["rev-parse", "refs/relo/vws/a/base"]);
            forged(s, &tree, |text| text.replace(&base, MISSING))
        }),
        ("follows revision 1", |s| {
            let tree = s.git_text(&["rev-parse", "refs/relo/vws/a/overlay^{tree}"]);
            forged(s, &tree, |text| {
                text.replace("\"revision\":2", "\"revision\":7")
            })
        }),
        ("belongs to 'b'", |s| {
            s.git_text(&["rev-parse", "refs/relo/vws/b/overlay"])
        }),
    ];
    for (why, make) in cases {
        let sandbox = three();
        let id = make(&sandbox);
        sandbox.git(&["update-ref", "refs/relo/vws/a/overlay", &id]);
        let before = refs(&sandbox);
        let repository = open(&sandbox);
        let store = Store::new(&repository, 1_700_000_009);
        for deep in [false, true] {
            let options = RecoverOptions {
                deep,
                ..RecoverOptions::new(SystemTime::now())
            };
            let report = store.recover(options).unwrap();
            assert_eq!(report.workspaces.len(), 2, "{why}");
            let found = report.damaged.iter().any(|damage| damage.why.contains(why));
            assert!(found, "{why}: {:?}", report.damaged);
            assert!(report.damaged.iter().all(|d| d.agent == Some(agent("a"))));
            // It was git's update-ref that put it there.
            assert_eq!(report.moved.len(), 1, "{why}");
        }
        assert_eq!(refs(&sandbox), before, "{why}: a ref was touched");
        let cleared = store.clear(&agent("a")).unwrap();
        // Sound but for its number, a revision is kept as it stands.
        let number = if why == "follows revision 1" {
            "7"
        } else {
            "2"
        };
        let name = format!("refs/relo/trash/a/{number}");
        assert!(cleared.kept.contains(&name), "{why}: {cleared:?}");
        let kept = store.trashed(&agent("a"), number.parse().ok()).unwrap();
        assert_eq!(
            store.read(&kept, Side::Overlay, &path("f")).unwrap(),
            b"a's"
        );
        assert!(git_works(&sandbox), "{why}");
        assert!(!recover(&store).needs_attention(), "{why}");
    }
}

#[test]
fn a_missing_blob_is_found_by_a_deep_look_and_a_lost_base_costs_only_itself() {
    let sandbox = three();
    let tree = format!("100644 blob {MISSING}\tf\n");
    let tree = sandbox.git_with_input(&["mktree", "--missing"], tree.as_bytes());
    let tree = String::from_utf8(tree).unwrap();
    let id = forged(&sandbox, tree.trim(), |text| text);
    sandbox.git(&["update-ref", "refs/relo/vws/a/overlay", &id]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let shallow = store
        .recover(RecoverOptions::new(SystemTime::now()))
        .unwrap();
    assert_eq!(shallow.damaged, []);
    let deep = recover(&store);
    assert!(deep.damaged[0].why.contains(MISSING), "{:?}", deep.damaged);
    store.clear(&agent("a")).unwrap();

    // All revisions of b lose their base.
    let tree = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/overlay^{tree}"]);
    let base = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/base"]);
    let commit = sandbox.git_text(&["cat-file", "commit", "refs/relo/vws/b/overlay"]);
    let text = commit.replace(&base, MISSING) + "\n";
    let args = [
        "hash-object",
        "-t",
        "commit",
        "-w",
        "--stdin",
        "--literally",
    ];
    let id = sandbox.git_with_input(&args, text.as_bytes());
    let id = String::from_utf8(id).unwrap();
    std::fs::remove_file(sandbox.repo().join(".git/logs/refs/relo/vws/b/overlay")).unwrap();
    sandbox.git(&["update-ref", "refs/relo/vws/b/overlay", id.trim()]);
    let cleared = store.clear(&agent("b")).unwrap();
    assert_eq!(cleared.kept, ["refs/relo/trash/b/2"]);
    assert!(git_works(&sandbox));
    let trash = from(From::Trash(agent("b"), None));
    let back = store.create(&agent("b"), &trash).unwrap().workspace;
    assert_eq!(back.tree.to_string(), tree);
    assert_eq!(back.meta.extra["lostBase"], MISSING);
}

#[test]
fn a_ref_that_somebody_moved_is_reported_and_stays() {
    let sandbox = three();
    sandbox.git(&[
        "update-ref",
        "refs/relo/vws/a/overlay",
        "refs/relo/vws/a/overlay@{1}",
    ]);
    let commit = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/overlay^2"]);
    // Without a word in the reflog: only the mirror knows of the revision that was.
    sandbox.write(".git/refs/relo/vws/b/overlay", format!("{commit}\n"));
    let log = sandbox.repo().join(".git/logs/refs/relo/vws/b/overlay");
    std::fs::remove_file(log).unwrap();
    let before = refs(&sandbox);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let report = recover(&store);
    let moved: Vec<_> = report.moved.iter().map(|m| m.agent.as_str()).collect();
    assert_eq!(moved, ["a", "b"], "{:?}", report.moved);
    assert_eq!(report.moved[1].why, "it was at revision 2 and is at 1");
    assert_eq!(report.damaged, []);
    assert_eq!(refs(&sandbox), before);
    // A writer goes on from where the ref is.
    let on = store
        .edit(&agent("a"), Terms::default(), &[write("f", "on")])
        .unwrap();
    assert_eq!(on.workspace.revision().get(), 2);
    assert!(!recover(&store).needs_attention());
}

#[test]
fn pins_without_a_workspace_go_and_branches_that_hold_work_stay() {
    let sandbox = three();
    sandbox.git(&["update-ref", "refs/relo/vws/half/base", "HEAD"]);
    sandbox.git(&["branch", "relo/users"]);
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let kept = store.dispose(&agent("c"), true).unwrap().trash.unwrap();
    sandbox.git(&["branch", "relo/c", &format!("{kept}^")]);
    let report = recover(&store);
    let mut found: Vec<_> = report
        .leftovers
        .iter()
        .map(|left| (left.name.as_str(), left.removed))
        .collect();
    found.sort();
    assert_eq!(
        found,
        [
            ("refs/heads/relo/c", true),
            ("refs/heads/relo/users", false),
            ("refs/relo/vws/half/base", true),
        ]
    );
    assert!(refs(&sandbox).contains("refs/heads/relo/users"));
    assert!(!refs(&sandbox).contains("half"));
    // A create that is under way has its lock.
    sandbox.git(&["update-ref", "refs/relo/vws/half/base", "HEAD"]);
    let lock = store.lock(&agent("half")).unwrap();
    recover(&store);
    assert!(refs(&sandbox).contains("half"));
    drop(lock);
    // An overlay that somebody deleted is not a create that was interrupted.
    store.snap(&agent("b"), None).unwrap();
    sandbox.git(&["update-ref", "-d", "refs/relo/vws/b/overlay"]);
    let report = recover(&store);
    assert_eq!(report.damaged.len(), 1);
    assert!(refs(&sandbox).contains("refs/relo/vws/b/snap/2"));
    store.clear(&agent("b")).unwrap();
    assert!(refs(&sandbox).contains("refs/relo/trash/b/2"));
}

#[test]
fn locks_of_unknown_owner_go_by_age_or_by_force() {
    let sandbox = three();
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let locks = [
        ".git/refs/relo/vws/a/overlay.lock",
        ".git/refs/heads/relo/x.lock",
    ];
    let users = [".git/packed-refs.lock", ".git/refs/heads/main.lock"];
    let make = || {
        locks
            .iter()
            .chain(&users)
            .for_each(|lock| sandbox.write(lock, b""))
    };
    make();
    let report = recover(&store);
    assert_eq!(report.locks.len(), 3, "{:?}", report.locks);
    assert!(report.locks.iter().all(|lock| !lock.removed));
    assert!(report.needs_attention());
    let later = SystemTime::now() + Duration::from_secs(2 * 60 * 60);
    let report = store.recover(RecoverOptions::new(later)).unwrap();
    assert_eq!(report.locks.iter().filter(|lock| lock.removed).count(), 2);
    for lock in users {
        assert!(sandbox.repo().join(lock).exists(), "{lock} is not ours");
    }
    make();
    let options = RecoverOptions {
        force: true,
        ..RecoverOptions::new(SystemTime::now())
    };
    store.recover(options).unwrap();
    for lock in locks {
        assert!(!sandbox.repo().join(lock).exists(), "{lock}");
    }
    for lock in users {
        std::fs::remove_file(sandbox.repo().join(lock)).unwrap();
    }
    assert_eq!(leftovers(&sandbox), Vec::<std::path::PathBuf>::new());
}

#[test]
fn the_mirror_follows_and_never_goes_back() {
    let sandbox = three();
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let text = sandbox.read(".git/relo/mirror.json");
    let value: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(value["v"], 1);
    let shown = &value["workspaces"]["b"];
    assert_eq!(shown["revision"], 2);
    assert_eq!(shown["state"], "edited");
    assert_eq!(shown["root"], sandbox.repo().to_str().unwrap());
    let tree = sandbox.git_text(&["rev-parse", "refs/relo/vws/b/overlay^{tree}"]);
    assert_eq!(shown["effectiveTree"], tree);
    assert_eq!(store.verify_mirror().unwrap(), []);
    // First, middle and last come and go; each time it is one document.
    for name in ["b", "a0", "z", "a", "c"] {
        if store.find(&agent(name)).unwrap().is_some() {
            store.dispose(&agent(name), true).unwrap();
        } else {
            store.create(&agent(name), &from(From::WorkTree)).unwrap();
        }
        let text = sandbox.read(".git/relo/mirror.json");
        serde_json::from_slice::<serde_json::Value>(&text).unwrap();
        assert_eq!(store.verify_mirror().unwrap(), [], "{name}");
    }
    for name in ["a0", "z"] {
        store.dispose(&agent(name), true).unwrap();
    }
    assert_eq!(
        sandbox.read(".git/relo/mirror.json"),
        b"{\"v\":1,\"workspaces\":{\n}}\n"
    );
    // A late writer with an older revision changes nothing.
    store.create(&agent("n"), &from(From::WorkTree)).unwrap();
    let old = mirror::read(&repository).unwrap().remove(0);
    store
        .edit(&agent("n"), Terms::default(), &[write("f", "2")])
        .unwrap();
    assert_eq!(
        mirror::show(&repository, &old, false).unwrap(),
        mirror::Updated::Yes
    );
    assert_eq!(store.verify_mirror().unwrap(), []);
    // What a caller shows later, it shows once, as it stands then.
    for text in ["3", "4"] {
        let later = store.shown_later();
        let edit = write("f", text);
        later.edit(&agent("n"), Terms::default(), &[edit]).unwrap();
        assert_eq!(store.verify_mirror().unwrap().len(), 1);
    }
    store.refresh_mirror(&agent("n"));
    assert_eq!(store.verify_mirror().unwrap(), []);
    // Torn or gone, it is written again with the next revision.
    for damage in [&b"{\"v\":1,\"work"[..], b""] {
        sandbox.write(".git/relo/mirror.json", damage);
        assert_eq!(store.verify_mirror().unwrap().len(), 1);
        let text = format!("{damage:?}");
        store
            .edit(&agent("n"), Terms::default(), &[write("f", &text)])
            .unwrap();
        assert_eq!(store.verify_mirror().unwrap(), []);
    }
    // A folder in its place is no reason to fail a publish.
    std::fs::remove_file(sandbox.repo().join(".git/relo/mirror.json")).unwrap();
    std::fs::create_dir(sandbox.repo().join(".git/relo/mirror.json")).unwrap();
    store
        .edit(&agent("n"), Terms::default(), &[write("f", "still")])
        .unwrap();
}

#[test]
fn deleting_all_our_files_loses_nothing_and_a_forgotten_workspace_is_told_once() {
    let sandbox = three();
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    std::fs::remove_dir_all(sandbox.repo().join(".git/relo")).unwrap();
    let report = recover(&store);
    assert_eq!(report.workspaces.len(), 3);
    assert!(!report.needs_attention());
    assert_eq!(report.mirror.differences.len(), 3);
    assert_eq!(store.verify_mirror().unwrap(), []);

    store.dispose(&agent("c"), true).unwrap();
    for name in ["overlay", "base"] {
        sandbox.git(&["update-ref", "-d", &format!("refs/relo/vws/b/{name}")]);
    }
    let report = recover(&store);
    let forgotten = &report.mirror.forgotten;
    assert_eq!(forgotten.len(), 1, "{forgotten:?}");
    assert_eq!(forgotten[0].agent, "b");
    assert_eq!(forgotten[0].state, State::Edited);
    assert!(!recover(&store).needs_attention(), "told twice");
}

#[test]
fn a_trashed_workspace_comes_back_with_its_base_its_edits_and_its_history() {
    let sandbox = three();
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let a = agent("a");
    store
        .edit(&a, Terms::default(), &[write("d/g", "third")])
        .unwrap();
    let before = store.load(&a).unwrap();
    let diff = store.diff(&before).unwrap();
    assert_eq!(diff.len(), 2);
    store.dispose(&a, true).unwrap();
    sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
    sandbox.git(&["gc", "-q", "--prune=now"]);
    assert_eq!(store.trash().unwrap().len(), 1);
    let trash = from(From::Trash(a.clone(), None));
    let back = store.create(&a, &trash).unwrap().workspace;
    assert_eq!((back.base(), back.tree), (before.base(), before.tree));
    assert_eq!(store.diff(&back).unwrap(), diff);
    assert_eq!(back.revision().get(), 4);
    let second = store.load_at(&a, "2".parse().unwrap()).unwrap();
    assert_eq!(
        store.read(&second, Side::Overlay, &path("d/g")).unwrap(),
        b"base"
    );
    // Under another name it begins to count again, and its history is a parent away.
    let other = from(From::Trash(a.clone(), "3".parse().ok()));
    let copy = store.create(&agent("copy"), &other).unwrap().workspace;
    assert_eq!((copy.base(), copy.tree), (before.base(), before.tree));
    assert_eq!(copy.revision(), Revision::FIRST);
    assert_eq!(copy.meta.extra["restoredFrom"]["agent"], "a");
    store
        .edit(&agent("copy"), Terms::default(), &[write("f", "on")])
        .unwrap();
    assert!(!recover(&store).needs_attention());
    let missing = from(From::Trash(a.clone(), "9".parse().ok()));
    let error = store.create(&agent("x"), &missing).unwrap_err();
    assert!(matches!(error, Error::NoRevision { .. }), "{error}");
}

fn entry(sandbox: &Sandbox, n: u32, time: i64, open: bool) -> Journalled {
    let name = format!("refs/relo/journal/{n}");
    sandbox.git(&["update-ref", &name, "HEAD"]);
    let id = sandbox.git_text(&["rev-parse", &name]);
    Journalled {
        name,
        id: ObjectId::from_str(&id).unwrap(),
        time,
        open,
        proposals: vec![(agent("p"), Revision::new(u64::from(n)).unwrap())],
    }
}

fn offer(sandbox: &Sandbox, n: u64, time: i64, decided: bool) -> Offered {
    let name = format!("refs/relo/changes/p/{n}");
    sandbox.git(&["update-ref", &name, "HEAD"]);
    let id = sandbox.git_text(&["rev-parse", &name]);
    Offered {
        agent: agent("p"),
        revision: Revision::new(n).unwrap(),
        id: ObjectId::from_str(&id).unwrap(),
        time,
        decided,
        needed: false,
    }
}

#[test]
fn a_sweep_takes_what_outlived_its_time_and_nothing_else() {
    const DAY: i64 = 24 * 60 * 60;
    let sandbox = three();
    let repository = open(&sandbox);
    let now = 1_700_000_000 + 15 * DAY;
    Store::new(&repository, 1_700_000_000)
        .dispose(&agent("a"), true)
        .unwrap();
    let store = Store::new(&repository, now);
    store
        .edit(&agent("b"), Terms::default(), &[write("f", "new")])
        .unwrap();
    store.dispose(&agent("b"), true).unwrap();
    let inputs = Inputs {
        journal: vec![
            entry(&sandbox, 1, now - 20 * DAY, false),
            entry(&sandbox, 2, now - 20 * DAY, true),
            entry(&sandbox, 3, now - 3 * DAY, false),
            entry(&sandbox, 4, now - 2 * DAY, false),
            entry(&sandbox, 5, now - DAY, false),
        ],
        proposals: vec![
            offer(&sandbox, 1, now - 20 * DAY, true),
            offer(&sandbox, 2, now - 20 * DAY, true),
            offer(&sandbox, 7, now - 20 * DAY, false),
            offer(&sandbox, 8, now - DAY, true),
        ],
    };
    let policy = Policy {
        entries: 2,
        ..Policy::default()
    };
    let before = refs(&sandbox);
    let plan = store.plan_sweep(policy, &inputs).unwrap();
    assert_eq!(refs(&sandbox), before, "a plan changed something");
    let mut names: Vec<_> = plan.doomed.iter().map(|one| one.name.as_str()).collect();
    names.sort_unstable();
    // 2 is open, and so is what it is about; 3 is beyond the newest two.
    let expected = [
        "refs/relo/changes/p/1",
        "refs/relo/journal/1",
        "refs/relo/journal/3",
        "refs/relo/trash/a/2",
    ];
    assert_eq!(names, expected);
    let trash = plan
        .doomed
        .iter()
        .find(|one| one.what == What::Trash)
        .unwrap();
    assert_eq!((trash.age, trash.size), (15 * DAY, 3));
    assert_eq!(trash.why, "older than 14 days");
    // What moved since stays.
    sandbox.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
    sandbox.git(&["update-ref", "refs/relo/journal/3", "HEAD"]);
    let swept = store.apply_sweep(plan).unwrap();
    assert_eq!(swept.left.len(), 1);
    assert_eq!(swept.left[0].name, "refs/relo/journal/3");
    for gone in swept.removed {
        assert!(!refs(&sandbox).contains(&gone.name));
    }
    assert_eq!(store.list().unwrap().len(), 1);
}

#[test]
fn a_decided_workspace_is_released_and_nobody_elses_worktree_is_touched() {
    let sandbox = three();
    sandbox.git(&["worktree", "add", "-q", "../u"]);
    let (here, away) = (sandbox.root().join("u"), sandbox.root().join("away"));
    std::fs::rename(&here, &away).unwrap();
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_009);
    let proposed = |name: &str| {
        let name = agent(name);
        store
            .publish(&name, Terms::default(), |workspace, _| {
                let mut change = git_vws::workspace::Change::new(
                    git_vws::workspace::Kind::Note,
                    Vec::new(),
                    workspace.tree,
                );
                change.amend = Some(Box::new(|meta| meta.proposal = Revision::new(2)));
                Ok(Some(change))
            })
            .unwrap();
        Offered {
            agent: name,
            ..offer(&sandbox, 2, 1_700_000_000, true)
        }
    };
    let mut proposals = vec![proposed("a"), proposed("b"), proposed("c")];
    proposals[1].decided = false;
    store
        .edit(&agent("c"), Terms::default(), &[write("f", "since")])
        .unwrap();
    let inputs = Inputs {
        journal: Vec::new(),
        proposals,
    };
    let plan = store.plan_sweep(Policy::default(), &inputs).unwrap();
    let names: Vec<_> = plan.doomed.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["refs/relo/vws/a/overlay"]);
    store.apply_sweep(plan).unwrap();
    assert!(store.find(&agent("a")).unwrap().is_none());
    assert!(store.trash().unwrap().is_empty());
    assert!(!recover(&store).needs_attention());
    assert_eq!(store.verify_mirror().unwrap(), []);
    std::fs::rename(&away, &here).unwrap();
    sandbox.git(&["-C", "../u", "status"]);
}

#[test]
fn a_reftable_is_recovered_too() {
    let sandbox = Sandbox::without_repo();
    sandbox.git(&["init", "-q", "--ref-format=reftable"]);
    sandbox.write("f", b"base");
    sandbox.commit("one");
    let repository = open(&sandbox);
    let store = Store::new(&repository, 1_700_000_000);
    for name in ["a", "b"] {
        store.create(&agent(name), &from(From::WorkTree)).unwrap();
        store
            .edit(&agent(name), Terms::default(), &[write("f", name)])
            .unwrap();
    }
    sandbox.git(&["update-ref", "refs/relo/vws/half/base", "HEAD"]);
    sandbox.git(&[
        "update-ref",
        "refs/relo/vws/b/overlay",
        "refs/relo/vws/a/overlay",
    ]);
    let report = recover(&store);
    assert_eq!(report.workspaces.len(), 1);
    assert_eq!(report.damaged.len(), 1, "{:?}", report.damaged);
    assert_eq!(report.leftovers.len(), 1);
    let cleared = store.clear(&agent("b")).unwrap();
    assert_eq!(cleared.kept, ["refs/relo/trash/b/2"]);
    assert!(!recover(&store).needs_attention());
}
