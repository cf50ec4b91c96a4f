//! Stacks, rebasing and references through the library; `git merge-tree` is the oracle for every base.
#![allow(clippy::unwrap_used, unreachable_pub, dead_code, missing_docs)]

mod common;
#[path = "integrate/place.rs"]
mod place;
#[path = "stack/renames.rs"]
mod renames;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use bstr::ByteSlice;
use common::Sandbox;
use git_vws::git::{Staging, tree};
use git_vws::integrate::{self, RebaseRequest, StackRequest, Standing};
use git_vws::layout;
use git_vws::model::{Refusal, RepoPath, Revision};
use git_vws::workspace::{
    Change, Edit, Error, Freshness, From, Keep, Kind, Mode, Rebased, Reference, Side, Stacked,
    Terms, Trees, Workspace, merge_trees,
};
use place::{Place, TEN, delete, id, path, repo_paths, ten, write};

impl Place {
    fn stack(&self, child: &str, on: &[&str], onto: Option<From>) -> Stacked {
        let request = StackRequest {
            on: on.iter().map(|agent| id(agent)).collect(),
            onto,
            strict: false,
            mode: Mode::Virtual,
            read_only: false,
            session: None,
        };
        integrate::stack(&self.store(), &id(child), &request).unwrap()
    }

    fn rebase(&self, agent: &str, onto: From, without: &[&str], keep: bool) -> Rebased {
        let request = RebaseRequest {
            onto,
            with_parents: true,
            without: without.iter().map(|agent| id(agent)).collect(),
            keep_conflicts: keep,
        };
        integrate::rebase(&self.store(), &id(agent), &request, Terms::default()).unwrap()
    }

    fn load(&self, agent: &str) -> Workspace {
        self.store().load(&id(agent)).unwrap()
    }

    fn tree(&self, agent: &str) -> String {
        self.load(agent).tree.to_string()
    }

    fn base_tree(&self, agent: &str) -> String {
        let base = self.store().base_tree(&self.load(agent)).unwrap();
        base.to_string()
    }

    /// `<status> <path>` of each change of an agent.
    fn diff(&self, agent: &str) -> Vec<String> {
        let changes = self.store().diff(&self.load(agent)).unwrap();
        let line = |c: &git_vws::git::tree::Change| format!("{} {}", c.status().letter(), c.path);
        changes.iter().map(line).collect()
    }

    /// What git makes of three trees.
    fn merge_tree(&self, base: &str, ours: &str, theirs: &str) -> String {
        self.sandbox.git_text(&[
            "merge-tree",
            "--write-tree",
            "-X",
            "diff-algorithm=myers",
            &format!("--merge-base={base}"),
            ours,
            theirs,
        ])
    }

    /// The tree of the working tree, by a private index.
    fn users_tree(&self) -> String {
        let index = self.sandbox.root().join("oracle-index");
        let run = |args: &[&str]| {
            let mut command = self.sandbox.command("git");
            command.args(args).env("GIT_INDEX_FILE", &index);
            let out = command.output().unwrap();
            assert!(out.status.success(), "{}", out.stderr.as_bstr());
            out.stdout.trim_ascii().to_str().unwrap().to_owned()
        };
        run(&["read-tree", "HEAD"]);
        run(&["add", "-A"]);
        run(&["write-tree"])
    }
}

fn rename(from: &str, to: &str) -> Edit {
    Edit::Rename {
        from: path(from),
        to: path(to),
        force: false,
    }
}

fn link(at: &str, target: &str) -> Edit {
    Edit::Symlink {
        path: path(at),
        target: target.into(),
    }
}

fn chmod(at: &str) -> Edit {
    Edit::Chmod {
        path: path(at),
        executable: true,
    }
}

fn binary(at: &str, byte: u8) -> Edit {
    Edit::Write {
        path: path(at),
        bytes: vec![0, byte, 255, 10, 0],
        executable: None,
    }
}

const AGENTS: [&str; 5] = ["a", "b", "c", "d", "e"];

fn five() -> Place {
    let mut files: Vec<(String, String)> = vec![("shared".into(), format!("{TEN}11\n12\n13\n"))];
    for agent in AGENTS {
        for name in ["edit", "gone", "old", "run", "type"] {
            files.push((format!("{agent}/{name}"), format!("{agent} {name}\n{TEN}")));
        }
    }
    let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (&**p, &**t)).collect();
    Place::new(&files)
}

/// One of each kind of edit, and a line of the file that all of them edit.
fn work(place: &Place, agent: &str) {
    let at = |name: &str| format!("{agent}/{name}");
    let number = AGENTS.iter().position(|a| *a == agent).unwrap();
    let shared = place.overlay(agent, "shared");
    let line = format!("{}\n", number * 2 + 1);
    place.edit(
        agent,
        &[
            write(&at("new file"), "new\n"),
            write(&at("edit"), &ten(4, agent)),
            delete(&at("gone")),
            rename(&at("old"), &at("moved/new")),
            binary(&at("bin"), number as u8),
            chmod(&at("run")),
            delete(&at("type")),
            link(&at("type"), "edit"),
            write("shared", &shared.replacen(&line, &format!("{agent}\n"), 1)),
        ],
    );
}

fn own(agent: &str) -> Vec<String> {
    let mut all: Vec<String> = [
        "A bin",
        "M edit",
        "D gone",
        "A moved/new",
        "A new file",
        "D old",
        "M run",
        "T type",
    ]
    .iter()
    .map(|line| format!("{} {agent}/{}", &line[..1], &line[2..]))
    .collect();
    all.push("M shared".to_owned());
    all
}

fn tower(place: &Place) {
    place.create("a");
    work(place, "a");
    for pair in AGENTS.windows(2) {
        let stacked = place.stack(pair[1], &[pair[0]], None);
        assert_eq!(stacked.left_out, []);
        work(place, pair[1]);
    }
}

#[test]
fn five_deep_every_base_is_gits_merge_and_every_diff_is_the_agents_own() {
    let place = five();
    let before = place.users();
    tower(&place);
    let mut merged = place.base_tree("a");
    for (at, agent) in AGENTS.iter().enumerate() {
        assert_eq!(place.base_tree(agent), merged, "the base of {agent}");
        assert_eq!(place.diff(agent), own(agent));
        merged = place.merge_tree(&place.base_tree(agent), &merged, &place.tree(agent));
        let meta = place.load(agent).meta;
        let below = at.checked_sub(1).map(|at| AGENTS[at]);
        let parents: Vec<_> = meta.parents().iter().map(|p| p.agent.to_string()).collect();
        assert_eq!(parents, below.into_iter().collect::<Vec<_>>());
        // Each change of each agent below, once.
        let lineage = meta.lineage();
        assert_eq!(lineage.len(), own("a").len() * at);
        for origin in &lineage {
            let proposal = place.propose(origin.agent.as_str());
            assert_eq!(origin.proposal, proposal.revision);
            let change = proposal.change(&origin.path).unwrap();
            let change = git_vws::git::tree::Change {
                path: change.path.clone(),
                old: change.old,
                new: change.new,
            };
            let hash = git_vws::workspace::patch_hash(&place.repository, &change).unwrap();
            assert_eq!(origin.patch_hash, hash.to_string());
        }
    }
    assert_eq!(place.tree("e"), merged);
    assert_eq!(place.users(), before, "the user's side was touched");
    // The base names what went in, so it outlives the workspaces that it came from.
    for agent in ["a", "b", "c", "d"] {
        place.store().dispose(&id(agent), true).unwrap();
    }
    place.sandbox.git(&[
        "for-each-ref",
        "--format=delete %(refname)",
        "refs/relo/trash",
    ]);
    place.collect();
    assert_eq!(place.diff("e"), own("e"));
}

#[test]
fn a_stack_on_another_base_carries_all_that_is_below() {
    let place = five();
    tower(&place);
    let shared = place.read("shared").replace("13\n", "the user\n");
    place.sandbox.write("shared", shared);
    place.sandbox.write("unrelated", "z\n");
    let stacked = place.stack("f", &["e"], Some(From::WorkTree));
    assert_eq!(stacked.left_out, []);
    let mut merged = place.users_tree();
    for agent in AGENTS {
        merged = place.merge_tree(&place.base_tree(agent), &merged, &place.tree(agent));
    }
    assert_eq!(place.base_tree("f"), merged);
    assert_eq!(place.diff("f"), Vec::<String>::new());
    // Two that share everything below put it in once.
    place.stack("g", &["c"], None);
    place.write("g", "g-only", "g\n");
    let both = place.stack("h", &["e", "g"], None);
    assert_eq!(both.left_out, []);
    let expected = place.merge_tree(&place.tree("c"), &place.tree("e"), &place.tree("g"));
    assert_eq!(place.base_tree("h"), expected);
    assert_eq!(place.load("h").meta.lineage().len(), 5 * own("a").len() + 1);
}

#[test]
fn a_parent_that_does_not_apply_is_left_out_whole_and_named() {
    let place = Place::new(&[("f", TEN), ("d/x", "x\n"), ("y", "y\n")]);
    for agent in ["a", "b", "c"] {
        place.create(agent);
    }
    place.write("a", "f", &ten(5, "a"));
    place.edit("a", &[delete("y")]);
    place.edit(
        "b",
        &[
            write("f", &ten(5, "b")),
            write("y", "edited\n"),
            write("n", ""),
        ],
    );
    place.edit(
        "c",
        &[write("f", &ten(9, "c")), delete("d"), write("d", "a file")],
    );
    let request = StackRequest {
        on: vec![id("a"), id("b"), id("c")],
        onto: None,
        strict: true,
        mode: Mode::Virtual,
        read_only: false,
        session: None,
    };
    let strict = integrate::stack(&place.store(), &id("k"), &request).unwrap();
    assert!(strict.workspace.is_none() && !place.has_workspace("k"));
    let stacked = place.stack("k", &["a", "b", "c"], None);
    let left: Vec<_> = stacked.left_out.iter().collect();
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].agent.as_str(), "b");
    let conflicts: Vec<_> = left[0]
        .conflicts
        .iter()
        .map(|c| (c.path.to_string(), c.kind))
        .collect();
    assert_eq!(
        conflicts,
        [
            ("f".into(), Refusal::Conflict),
            ("y".into(), Refusal::DeleteEdit)
        ]
    );
    let expected = place.merge_tree(&place.base_tree("a"), &place.tree("a"), &place.tree("c"));
    assert_eq!(place.base_tree("k"), expected);
    assert!(
        place
            .load("k")
            .meta
            .lineage()
            .iter()
            .all(|o| o.agent.as_str() != "b")
    );
}

/// Accepts the agents from the bottom, each dependent rebased on the user's tree before its turn.
fn accept_from_the_bottom(place: &Place, mut between: impl FnMut(&str)) {
    for agent in AGENTS {
        if agent != "a" {
            let rebased = place.rebase(agent, From::WorkTree, &[], false);
            assert!(
                rebased.conflicts.is_empty() && rebased.left_out.is_empty(),
                "{rebased:?}"
            );
            assert_eq!(place.base_tree(agent), place.users_tree());
            assert_eq!(place.diff(agent), own(agent));
            assert_eq!(place.load(agent).meta.lineage(), []);
        }
        place.propose(agent);
        let accepted = place.accept(agent, &[]);
        assert!(
            accepted
                .outcomes
                .iter()
                .all(|o| o.result.is_some() != gone(&o.path))
        );
        assert!(!place.has_workspace(agent));
        between(agent);
    }
}

fn gone(path: &[u8]) -> bool {
    path.ends_with(b"/gone") || path.ends_with(b"/old")
}

#[test]
fn accepted_from_the_bottom_the_user_has_what_the_top_has() {
    let place = five();
    tower(&place);
    let top = place.tree("e");
    accept_from_the_bottom(&place, |_| ());
    assert_eq!(place.users_tree(), top);
}

#[test]
fn parents_that_landed_merged_with_user_edits_change_nothing_for_a_dependent() {
    let place = five();
    tower(&place);
    let user = |line: usize| {
        let now = place.read("shared");
        let now = now.replacen(&format!("{line}\n"), &format!("user {line}\n"), 1);
        place.sandbox.write("shared", now);
    };
    user(13);
    accept_from_the_bottom(&place, |agent| {
        place.sandbox.write(format!("by-user-{agent}"), agent);
        if agent == "c" {
            place.sandbox.commit("the user commits what there is");
        }
    });
    let shared = "a\n2\nb\n4\nc\n6\nd\n8\ne\n10\n11\n12\nuser 13\n";
    assert_eq!(place.read("shared"), shared);
    for agent in AGENTS {
        assert!(!place.exists(&format!("{agent}/gone")) && !place.exists(&format!("{agent}/old")));
        assert!(place.exists(&format!("by-user-{agent}")));
    }
}

#[test]
fn a_dependent_moves_only_when_told_to() {
    let place = Place::new(&[("f", TEN), ("g", TEN)]);
    place.create("a");
    place.write("a", "f", &ten(2, "a"));
    place.stack("b", &["a"], None);
    place.write("b", "g", &ten(2, "b"));
    let standing = || {
        let graph = integrate::graph(&place.store(), Some(&id("b"))).unwrap();
        graph[0].below[0].standing
    };
    assert_eq!(standing(), Standing::Current);
    place.propose("a");
    assert_eq!(standing(), Standing::Current, "a proposal is no edit");
    let before = place.load("b").commit;
    place.write("a", "f", &ten(2, "A"));
    assert_eq!(standing(), Standing::Behind);
    assert_eq!(place.load("b").commit, before);
    // A third one on top gets what b rests on, not what a has made of it since.
    place.stack("c", &["b"], None);
    assert_eq!(place.base_tree("c"), place.tree("b"));
    let base = From::Commit("HEAD".into());
    place.rebase("b", base.clone(), &[], false);
    assert_eq!(standing(), Standing::Current);
    assert_eq!(place.base_tree("b"), place.tree("a"));
    assert_eq!(place.diff("b"), ["M g"]);
    let again = place.rebase("b", base, &[], false);
    assert!(
        !again.published.changed,
        "the same base again is nothing to do"
    );
    place.propose("a");
    place.accept("a", &[]);
    assert_eq!(standing(), Standing::Decided);
}

#[test]
fn without_a_parent_only_what_is_disjoint_moves() {
    let place = Place::new(&[("f", TEN), ("g", TEN)]);
    place.create("a");
    place.edit("a", &[write("f", &ten(2, "a")), write("a-only", "")]);
    place.stack("b", &["a"], None);
    place.write("b", "g", &ten(2, "b"));
    place.stack("c", &["b"], None);
    place.write("c", "f", &ten(2, "c"));
    let base = || From::Commit("HEAD".into());
    // Rejected in the middle: what rests on it moves off it.
    place.propose("a");
    place.reject("a", &[]);
    let rebased = place.rebase("b", base(), &["a"], false);
    assert!(rebased.conflicts.is_empty() && rebased.parents.is_empty());
    assert_eq!(
        place.base_tree("b"),
        place.sandbox.git_text(&["rev-parse", "HEAD^{tree}"])
    );
    assert_eq!(place.diff("b"), ["M g"]);
    // c's edit is of a line that only a has: nothing moves.
    let before = place.load("c").commit;
    let stopped = place.rebase("c", base(), &["a"], false);
    assert_eq!(stopped.conflicts.len(), 1);
    assert_eq!(stopped.conflicts[0].path, "f");
    assert!(!stopped.published.changed);
    assert_eq!(place.load("c").commit, before);
    // Kept, it stays as the agent has it, is not offered, and is over once it is written.
    let kept = place.rebase("c", base(), &["a"], true);
    assert!(kept.published.changed);
    assert_eq!(place.overlay("c", "f"), ten(2, "c"));
    assert_eq!(place.load("c").meta.conflicts(), ["f"]);
    let refused = integrate::propose(&place.store(), &id("c"), None).unwrap_err();
    assert_eq!(refused.refusal(), Some(Refusal::Conflict));
    place.write("c", "other", "x");
    assert_eq!(place.load("c").meta.conflicts(), ["f"]);
    place.write("c", "f", &ten(2, "c"));
    assert_eq!(
        place.load("c").meta.conflicts(),
        Vec::<bstr::BString>::new()
    );
    assert_eq!(place.propose("c").changes.len(), 2);
    let unknown = RebaseRequest {
        onto: base(),
        with_parents: true,
        without: vec![id("zz")],
        keep_conflicts: false,
    };
    let error = integrate::rebase(&place.store(), &id("c"), &unknown, Terms::default());
    assert!(matches!(error, Err(integrate::Error::NotOn { .. })));
}

#[test]
fn a_workspace_moves_off_a_base_that_is_no_ancestor() {
    let place = Place::new(&[("f", TEN), ("g", TEN)]);
    place.sandbox.write("f", ten(9, "dirty"));
    place.create("a");
    place.edit(
        "a",
        &[write("f", &ten(2, "a").replace("9", "dirty")), delete("g")],
    );
    // A history of its own, whose only common tree is by chance.
    place.sandbox.git(&["checkout", "-q", "--orphan", "other"]);
    place
        .sandbox
        .write("f", ten(5, "other").replace("9", "dirty"));
    place.sandbox.write("z", "z\n");
    place.sandbox.commit("other");
    let request = RebaseRequest {
        onto: From::Commit("other".into()),
        with_parents: false,
        without: Vec::new(),
        keep_conflicts: false,
    };
    let expected = place.merge_tree(&place.base_tree("a"), "other", &place.tree("a"));
    let done = integrate::rebase(&place.store(), &id("a"), &request, Terms::default()).unwrap();
    assert!(done.conflicts.is_empty());
    assert_eq!(place.tree("a"), expected);
    assert_eq!(place.diff("a"), ["M f", "D g"]);
    assert_eq!(place.load("a").meta.kind, Kind::Rebase);
    // Its directory is imported, and stays in the way.
    let options = layout::Options::default();
    let directory = layout::materialize(&place.store(), &id("a"), &options).unwrap();
    fs::write(directory.path.join("z"), "by a tool\n").unwrap();
    let refused = integrate::rebase(&place.store(), &id("a"), &request, Terms::default());
    assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::Materialized));
    assert_eq!(place.overlay("a", "z"), "by a tool\n");
}

#[test]
fn a_shallow_clone_replays_from_the_stored_base() {
    let sandbox = Sandbox::new();
    sandbox.write("f", TEN);
    sandbox.write("g", TEN);
    sandbox.commit("one");
    let url = format!("file://{}", sandbox.repo().display());
    let clone = Sandbox::without_repo();
    clone.git(&["clone", "-q", "--depth=1", &url, "."]);
    let place = Place {
        repository: place::open(&clone),
        sandbox: clone,
    };
    place.create("a");
    place.write("a", "f", &ten(5, "a"));
    sandbox.write("g", ten(5, "upstream"));
    sandbox.commit("two");
    place.sandbox.git(&["fetch", "-q", "--depth=1"]);
    let rebased = place.rebase("a", From::Commit("origin/main".into()), &[], false);
    assert!(rebased.conflicts.is_empty());
    assert_eq!(place.diff("a"), ["M f"]);
    assert_eq!(place.overlay("a", "g"), ten(5, "upstream"));
}

#[test]
fn a_stack_is_trees_not_patches() {
    // BR-49 and BR-50.
    let place = Place::new(&[("f", TEN), ("g", "g\n"), ("d", "d\n")]);
    place.sandbox.write("f", ten(1, "dirty"));
    place.create("a");
    place.edit(
        "a",
        &[
            write("f", &ten(1, "dirty").replace("5\n", "a\n")),
            binary("bin", 7),
            chmod("g"),
            link("l", "g"),
            delete("d"),
            write("name with a space", ""),
        ],
    );
    let stacked = place.stack("b", &["a"], None).workspace.unwrap();
    assert_eq!(stacked.tree.to_string(), place.tree("a"));
    assert_eq!(place.base_tree("b"), place.tree("a"));
    assert_eq!(place.diff("b"), Vec::<String>::new());
    place.write("b", "own", "b\n");
    place.sandbox.write("z", "z\n");
    place.sandbox.git(&["add", "z"]);
    place.sandbox.git(&["commit", "-qm", "unrelated"]);
    let of_a = place.diff("a");
    assert_eq!(place.diff("b"), ["A own"]);
    place.propose("a");
    place.accept("a", &[]);
    assert_eq!(place.diff("b"), ["A own"]);
    assert!(!of_a.iter().any(|line| line.ends_with(" z")));
    // A parent that is gone but for its open proposal counts as that.
    place.propose("b");
    let tree = place.tree("b");
    place.store().dispose(&id("b"), true).unwrap();
    place.stack("c", &["b"], None);
    assert_eq!(place.base_tree("c"), tree);
    let none = integrate::stack(
        &place.store(),
        &id("x"),
        &StackRequest {
            on: vec![id("nobody")],
            onto: None,
            strict: false,
            mode: Mode::Virtual,
            read_only: false,
            session: None,
        },
    );
    assert!(
        none.unwrap_err()
            .to_string()
            .contains("no workspace 'nobody'")
    );
}

#[test]
fn a_half_accepted_parent_brings_only_the_other_half() {
    let place = Place::new(&[("f", TEN), ("g", TEN)]);
    place.create("a");
    place.edit("a", &[write("f", &ten(2, "a")), write("g", &ten(2, "a"))]);
    place.propose("a");
    place.accept("a", &["f"]);
    // The user goes on with the accepted half.
    place.sandbox.write("f", ten(2, "the user's own"));
    let stacked = place.stack("b", &["a"], Some(From::WorkTree));
    assert_eq!(stacked.left_out, []);
    assert_eq!(place.overlay("b", "f"), ten(2, "the user's own"));
    assert_eq!(place.overlay("b", "g"), ten(2, "a"));
    let paths: Vec<_> = place
        .load("b")
        .meta
        .lineage()
        .into_iter()
        .map(|o| o.path)
        .collect();
    assert_eq!(paths, ["g"]);
}

// ---- references ----

fn sent(place: &Place) -> Reference {
    place.create("s");
    place.edit(
        "s",
        &[
            write("f", &ten(2, "s")),
            delete("gone"),
            write("new/run", "#!\n"),
            chmod("new/run"),
            link("l", "f"),
        ],
    );
    let paths = repo_paths(&["f", "gone", "new/run", "l"]);
    place.store().reference(&id("s"), &paths).unwrap()
}

fn import(
    place: &Place,
    reference: &Reference,
    paths: &[&str],
    terms: Terms,
) -> layout::Result<bool> {
    let paths = repo_paths(paths);
    layout::import_reference(&place.store(), &id("r"), reference, &paths, terms)
        .map(|done| done.changed)
}

#[test]
fn a_reference_is_a_pointer_and_an_import_takes_what_it_names() {
    let place = Place::new(&[("f", TEN), ("gone", ""), ("other", "")]);
    let reference = sent(&place);
    let text = reference.to_json().to_string();
    assert_eq!(
        place.store().parse_reference(text.as_bytes()).unwrap(),
        reference
    );
    // Pinned: it stands whatever the sender does next.
    place.write("s", "f", "later\n");
    place.create("r");
    assert!(
        import(
            &place,
            &reference,
            &["f", "gone", "new/run"],
            Terms::default()
        )
        .unwrap()
    );
    assert_eq!(place.diff("r"), ["M f", "D gone", "A new/run"]);
    assert_eq!(place.overlay("r", "f"), ten(2, "s"));
    let meta = place.load("r").meta;
    assert_eq!(meta.kind, Kind::Import);
    let lineage: Vec<_> = meta
        .lineage()
        .into_iter()
        .map(|o| (o.path, o.imported))
        .collect();
    assert_eq!(
        lineage,
        [
            ("f".into(), true),
            ("gone".into(), true),
            ("new/run".into(), true)
        ]
    );
    assert!(!import(&place, &reference, &["f"], Terms::default()).unwrap());
    // Nothing of it is anywhere else, and a snap keeps it when the sender is gone.
    place.store().dispose(&id("s"), true).unwrap();
    let stale = import(&place, &reference, &["l"], Terms::default()).unwrap_err();
    assert_eq!(stale.refusal(), Some(Refusal::Stale));
}

#[test]
fn an_import_into_an_open_directory_is_captured_like_tool_output() {
    let place = Place::new(&[
        ("f", TEN),
        ("gone", ""),
        ("other", ""),
        (".gitignore", "new/\n"),
    ]);
    let reference = sent(&place);
    place.create("r");
    let store = place.store();
    let directory = layout::materialize(&store, &id("r"), &layout::Options::default()).unwrap();
    fs::write(directory.path.join("other"), "by a tool\n").unwrap();
    let all = ["f", "gone", "new/run", "l"];
    assert!(import(&place, &reference, &all, Terms::default()).unwrap());
    assert_eq!(
        fs::read_to_string(directory.path.join("f")).unwrap(),
        ten(2, "s")
    );
    assert!(!directory.path.join("gone").exists());
    let mode = fs::metadata(directory.path.join("new/run"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(
        fs::read_link(directory.path.join("l")).unwrap().to_str(),
        Some("f")
    );
    let expected = ["M f", "D gone", "A l", "A new/run", "M other"];
    assert_eq!(place.diff("r"), expected);
    layout::settle(&store, &id("r"), layout::Insist::No).unwrap();
    assert_eq!(
        place.diff("r"),
        expected,
        "settling keeps what was imported"
    );
    // A link that a tool planted is never written through.
    store.discard(&id("r"), Terms::default(), &[]).unwrap();
    let directory = layout::materialize(&store, &id("r"), &layout::Options::default()).unwrap();
    let outside = place.sandbox.root().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("run"), "precious\n").unwrap();
    symlink(&outside, directory.path.join("new")).unwrap();
    fs::remove_file(directory.path.join("f")).unwrap();
    symlink(outside.join("run"), directory.path.join("f")).unwrap();
    for planted in [&["other", "new/run"][1..], &["f"]] {
        let refused = import(&place, &reference, planted, Terms::default()).unwrap_err();
        assert!(
            matches!(
                refused.refusal(),
                Some(Refusal::TypeChange | Refusal::Escapes)
            ),
            "{refused}"
        );
    }
    assert_eq!(
        fs::read_to_string(outside.join("run")).unwrap(),
        "precious\n"
    );
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn refused_imports_change_nothing() {
    let place = Place::new(&[("f", TEN), ("gone", ""), ("other", "")]);
    let reference = sent(&place);
    place.create("r");
    place.write("r", "other", "mine\n");
    place.edit("r", &[write("new", "a file where a folder would go")]);
    let before = place.load("r").commit;
    let refuse = |reference: &Reference, paths: &[&str], terms: Terms| {
        let error = import(&place, reference, paths, terms).unwrap_err();
        assert_eq!(place.load("r").commit, before, "{error}");
        (error.refusal(), error.to_string())
    };
    let kind = |reference: &Reference, paths: &[&str]| refuse(reference, paths, Terms::default()).0;
    let stale = Terms {
        expect: Some(Revision::FIRST),
        ..Terms::default()
    };
    assert_eq!(refuse(&reference, &["f"], stale).0, Some(Refusal::Stale));
    // A reference that does not say what the repository says.
    let forged = [
        Reference {
            commit: place.load("r").commit,
            ..reference.clone()
        },
        Reference {
            revision: Revision::FIRST,
            ..reference.clone()
        },
        Reference {
            base: reference.commit,
            ..reference.clone()
        },
        Reference {
            sender: id("r"),
            ..reference.clone()
        },
        Reference {
            sender: id("nobody"),
            ..reference.clone()
        },
        Reference {
            branch: "refs/heads/main".into(),
            ..reference.clone()
        },
    ];
    for forged in forged {
        assert_eq!(kind(&forged, &["f"]), Some(Refusal::Stale), "{forged:?}");
    }
    // A path that is no change of the sender's, said by the reference or not.
    let more = Reference {
        paths: repo_paths(&["f", "other"]),
        ..reference.clone()
    };
    let (none, text) = refuse(&more, &["f", "other"], Terms::default());
    assert_eq!(none, None);
    assert!(
        text.contains("path 'other' does not exist in the changes of 's'"),
        "{text}"
    );
    let (_, text) = refuse(&reference, &["other"], Terms::default());
    assert!(text.contains("does not exist in the reference"), "{text}");
    // One of several that cannot go in stops all.
    assert_eq!(
        kind(&reference, &["f", "new/run"]),
        Some(Refusal::TypeChange)
    );
    let read_only = StackRequest {
        on: vec![id("s")],
        onto: None,
        strict: false,
        mode: Mode::Virtual,
        read_only: true,
        session: None,
    };
    integrate::stack(&place.store(), &id("q"), &read_only).unwrap();
    let store = place.store();
    let refused = layout::import_reference(
        &store,
        &id("q"),
        &reference,
        &repo_paths(&["f"]),
        Terms::default(),
    );
    assert_eq!(refused.unwrap_err().refusal(), Some(Refusal::ReadOnly));
    // A submodule is nobody's file; no edit makes one, so it is put there by hand.
    let link = tree::Entry {
        mode: tree::GITLINK,
        id: reference.commit,
    };
    let publish = |edits: &std::collections::BTreeMap<bstr::BString, Option<tree::Entry>>| {
        store.publish(&id("s"), Terms::default(), |current, staging| {
            let tree = tree::edit(staging, current.tree, edits)?;
            Ok(Some(Change::new(Kind::Write, vec!["sub".into()], tree)))
        })
    };
    publish(&[("sub".into(), Some(link))].into()).unwrap();
    let submodule = store.reference(&id("s"), &repo_paths(&["sub"])).unwrap();
    assert_eq!(kind(&submodule, &["sub"]), Some(Refusal::NestedRepository));
    let text = reference.to_json().to_string();
    for (bad, why) in [
        (text.replace("\"f\"", "\"../f\""), Some(Refusal::Escapes)),
        (
            text.replace("\"f\"", "\".git/config\""),
            Some(Refusal::ProtectedPath),
        ),
        (text.replace("senderAgent", "sender"), None),
        ("[]".to_owned(), None),
        ("not json".to_owned(), None),
    ] {
        let error = store.parse_reference(bad.as_bytes()).unwrap_err();
        assert_eq!(error.refusal(), why, "{bad}");
    }
}

#[test]
fn a_reference_is_bounded_and_only_of_changes() {
    let place = Place::new(&[("f", TEN)]);
    place.create("s");
    let names: Vec<String> = (0..33).map(|n| format!("n{n}")).collect();
    let long = "x".repeat(513);
    let mut edits: Vec<Edit> = names.iter().map(|name| write(name, "")).collect();
    edits.push(write(&long, ""));
    edits.push(write(&long[1..], ""));
    place.edit("s", &edits);
    let refer = |paths: &[RepoPath]| place.store().reference(&id("s"), paths);
    let paths: Vec<RepoPath> = names.iter().map(|name| path(name)).collect();
    assert_eq!(refer(&paths[..32]).unwrap().paths.len(), 32);
    let bounded = |paths: &[RepoPath]| refer(paths).unwrap_err().refusal();
    assert_eq!(bounded(&paths), Some(Refusal::TooLarge));
    assert_eq!(bounded(&[path(&long)]), Some(Refusal::TooLarge));
    assert!(refer(&[path(&long[1..])]).is_ok());
    for not_changed in ["f", "nowhere"] {
        assert!(matches!(
            refer(&[path(not_changed)]),
            Err(Error::NoPath { .. })
        ));
    }
}

// ---- context, history, merging ----

#[test]
fn what_an_agent_read_is_fresh_stale_deleted_or_unreadable() {
    let place = Place::new(&[("d/f", "one\n"), ("d/g", "two\n"), ("h", "three\n")]);
    place.create("a");
    let blob = |text: &str| place.repository.hash_blob(text.as_bytes()).unwrap();
    place.edit(
        "a",
        &[
            write("d/f", "other\n"),
            delete("h"),
            link("to-g", "d/g"),
            link("dir", "d"),
            write("s/sub", ""),
        ],
    );
    let workspace = place.load("a");
    let mut check = place.store().context_check(&workspace).unwrap();
    use Freshness::{Deleted, Fresh, Stale, Unreadable};
    for (text, at, expected) in [
        ("one\n", "d/f", Stale),
        ("other\n", "d/f", Fresh),
        ("two\n", "d/g", Fresh),
        ("two\n", "to-g", Fresh),
        ("two\n", "dir/g", Fresh),
        ("one\n", "dir/g", Stale),
        ("three\n", "h", Deleted),
        ("three\n", "h/below", Deleted),
        ("three\n", "no/where", Deleted),
        ("", "s", Deleted),
        ("", "s/sub", Fresh),
        ("one\n", "../f", Unreadable),
        ("one\n", "d/../f", Unreadable),
        ("one\n", ".git/config", Unreadable),
        ("one\n", "", Unreadable),
    ] {
        assert_eq!(
            check.check(blob(text), at.into()),
            expected,
            "{at} {text:?}"
        );
    }
    let read = place
        .store()
        .read(&workspace, Side::Overlay, &path("to-g"))
        .unwrap();
    assert_eq!(read, b"two\n");
}

#[test]
fn the_history_is_that_of_the_second_parents() {
    let place = Place::new(&[("f", TEN)]);
    place.create("a");
    place.write("a", "f", "1\n");
    place.edit("a", &[delete("f")]);
    place
        .store()
        .restore(&id("a"), Terms::default(), Revision::new(2).unwrap())
        .unwrap();
    let log = place.store().history(place.load("a"), usize::MAX).unwrap();
    let lines: Vec<_> = log
        .iter()
        .map(|l| {
            format!(
                "{} {}",
                l.workspace.revision(),
                l.workspace.meta.kind.as_str()
            )
        })
        .collect();
    assert_eq!(lines, ["4 restore", "3 delete", "2 write", "1 create"]);
    assert_eq!(place.store().history(place.load("a"), 2).unwrap().len(), 2);
}

#[test]
fn conflicts_are_told_apart_by_kind_and_one_side_stands() {
    let place = Place::new(&[
        ("text", TEN),
        ("bin", "x"),
        ("swap", "s\n"),
        ("l", "l\n"),
        ("m", "m\n"),
    ]);
    place.edit_base();
    for agent in ["a", "b"] {
        place.create(agent);
        place.edit(
            agent,
            &[
                write("text", &ten(5, agent)),
                binary("bin", agent.as_bytes()[0]),
                write("added", agent),
            ],
        );
    }
    place.edit(
        "a",
        &[
            delete("swap"),
            write("swap/in", "a\n"),
            delete("l"),
            link("l", "m"),
        ],
    );
    place.edit(
        "b",
        &[
            write("swap", "edited\n"),
            write("l", "edited\n"),
            write("m", "edited\n"),
        ],
    );
    place.edit("a", &[delete("m")]);
    let trees = Trees {
        base: place.store().base_tree(&place.load("a")).unwrap(),
        ours: place.load("a").tree,
        theirs: place.load("b").tree,
    };
    let mut staging = Staging::new(&place.repository).unwrap();
    let merged = merge_trees(&mut staging, trees, Keep::Ours).unwrap();
    let kinds: Vec<_> = merged
        .conflicts
        .iter()
        .map(|c| (c.path.to_string(), c.kind.as_str()))
        .collect();
    let expected = [
        ("added", "conflict"),
        ("bin", "binary"),
        ("l", "type_change"),
        ("m", "delete_edit"),
        ("swap", "type_change"),
        ("text", "conflict"),
    ];
    assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind)));
    assert_eq!(merged.tree, trees.ours);
    let theirs = merge_trees(&mut staging, trees, Keep::Theirs).unwrap();
    assert_eq!(theirs.tree, trees.theirs);
}

impl Place {
    /// Makes one of the committed files binary: text cannot be written with a NUL above.
    fn edit_base(&self) {
        self.sandbox.write("bin", b"\0base\0");
        self.sandbox.commit("binary");
    }
}
