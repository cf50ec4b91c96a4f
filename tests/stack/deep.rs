//! A tower of five agents, each on the work of the one below, decided on in every order.

use std::fs;
use std::path::Path;

use crate::common::Sandbox;

const AGENTS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// What each agent does, but for the file that all of them edit.
const OWN: [&str; 9] = [
    "A\tbin",
    "M\tedit",
    "D\tgone",
    "A\tmoved/new",
    "A\t\"new file\"",
    "D\told",
    "M\trun",
    "T\ttype",
    "M\tshared",
];

struct Tower {
    sandbox: Sandbox,
}

impl Tower {
    /// The files, and nobody yet.
    fn ground() -> Tower {
        let sandbox = Sandbox::new();
        let lines: String = (1..14).map(|n| format!("{n}\n")).collect();
        for agent in AGENTS {
            for name in ["edit", "gone", "old", "run", "type"] {
                sandbox.write(
                    format!("{agent}/{name}"),
                    format!("{agent} {name}\n{lines}"),
                );
            }
        }
        sandbox.write("shared", &lines);
        sandbox.write("renamed by the user", format!("the user's\n{lines}"));
        sandbox.commit("ground");
        Tower { sandbox }
    }

    fn built() -> Tower {
        let tower = Tower::ground();
        tower.done(&["overlay", "create", "a"]);
        tower.work("a");
        for pair in AGENTS.windows(2) {
            tower.done(&["stack", pair[1], &format!("--on={}", pair[0])]);
            tower.work(pair[1]);
        }
        tower
    }

    /// Another one, the same in all that it holds.
    fn copy(&self) -> Tower {
        let sandbox = Sandbox::without_repo();
        fs::remove_dir(sandbox.repo()).unwrap();
        let mut command = self.sandbox.command("cp");
        command
            .arg("-a")
            .args([self.sandbox.repo(), sandbox.repo()]);
        assert!(command.status().unwrap().success());
        Tower { sandbox }
    }

    /// One of each kind of edit, in one revision, and a line of the file that all of them edit.
    fn work(&self, agent: &str) {
        let shared = self.text(agent, "shared");
        let number = AGENTS.iter().position(|one| *one == agent).unwrap();
        let line = format!("{}\n", number * 2 + 1);
        let shared = shared.replacen(&line, &format!("{agent}\n"), 1);
        let edited = self.text(agent, &format!("{agent}/edit"));
        let edited = edited.replace("5\n", &format!("by {agent}\n"));
        let mut input = format!("begin {agent}\n").into_bytes();
        let mut write = |path: &str, bytes: &[u8]| {
            input.extend(format!("write {agent} {path} {}\n", bytes.len()).bytes());
            input.extend([bytes, b"\n"].concat());
        };
        write("shared", shared.as_bytes());
        write(&format!("{agent}/edit"), edited.as_bytes());
        write(&format!("{agent}/bin"), &[0, number as u8, 255, 10, 0]);
        write(&format!("\"{agent}/new file\""), b"new\n");
        input.extend(
            format!(
                "delete {agent} {agent}/gone\nrename {agent} {agent}/old {agent}/moved/new\n\
                 chmod {agent} +x {agent}/run\ndelete {agent} {agent}/type\n\
                 symlink {agent} {agent}/type edit\ncommit\n"
            )
            .bytes(),
        );
        let out = self.sandbox.vws_with_input(&["batch"], &input).success();
        let heads = String::from_utf8_lossy(out.stdout()).into_owned();
        assert!(
            heads.contains("0 commit 2 ") || heads.contains("0 commit 3 "),
            "{heads}"
        );
    }

    #[track_caller]
    fn done(&self, args: &[&str]) -> String {
        let out = self.sandbox.vws(args).success();
        String::from_utf8(out.stdout().to_vec()).unwrap()
    }

    /// The records of a command that said no.
    #[track_caller]
    fn refused(&self, args: &[&str]) -> String {
        let out = self.sandbox.vws(args);
        assert_eq!(out.code(), Some(1), "{args:?}: {out}");
        String::from_utf8(out.stdout().to_vec()).unwrap()
    }

    /// Every record of a refused accept has this verdict, and nothing at all has changed.
    #[track_caller]
    fn all_refused(&self, args: &[&str], kind: &str) {
        let before = (self.users_tree(), self.refs());
        let told = self.refused(args);
        let kinds: Vec<&str> = told.lines().map(|l| l.split(' ').next().unwrap()).collect();
        assert_eq!(kinds, vec![kind; OWN.len()], "{told}");
        assert_eq!((self.users_tree(), self.refs()), before);
    }

    fn text(&self, agent: &str, path: &str) -> String {
        self.done(&["overlay", "read", agent, path])
    }

    fn rev(&self, spec: &str) -> String {
        self.sandbox.git_text(&["rev-parse", spec])
    }

    fn base(&self, agent: &str) -> String {
        self.rev(&format!("refs/relo/vws/{agent}/base^{{tree}}"))
    }

    fn tree(&self, agent: &str) -> String {
        self.rev(&format!("refs/relo/vws/{agent}/overlay^{{tree}}"))
    }

    fn refs(&self) -> String {
        self.sandbox.git_text(&["for-each-ref"])
    }

    fn diff(&self, agent: &str) -> Vec<String> {
        let told = self.done(&["overlay", "diff", "--name-status", agent]);
        let mut lines: Vec<String> = told.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    }

    /// The state of all that an agent offers, which is one.
    #[track_caller]
    fn state(&self, agent: &str) -> String {
        let newest = self.done(&["changes", agent]);
        let revision =
            |line: &str| -> u64 { line.split([' ', '\t']).nth(5).unwrap().parse().unwrap() };
        let last = newest.lines().map(revision).max().unwrap();
        let of_last = newest.lines().filter(|line| revision(line) == last);
        let mut states: Vec<&str> = of_last.map(|l| l.split(' ').next().unwrap()).collect();
        assert_eq!(states.len(), OWN.len(), "{newest}");
        states.dedup();
        assert_eq!(states.len(), 1, "{newest}");
        states[0].to_owned()
    }

    fn has(&self, agent: &str) -> bool {
        let args = [
            "rev-parse",
            "-q",
            "--verify",
            &format!("refs/relo/vws/{agent}/overlay"),
        ];
        let mut command = self.sandbox.command("git");
        command.args(args);
        self.sandbox.outcome(command, b"").code() == Some(0)
    }

    /// What git makes of three trees.
    fn merge(&self, base: &str, ours: &str, theirs: &str) -> String {
        let base = format!("--merge-base={base}");
        let args = ["merge-tree", "--write-tree", "-X", "diff-algorithm=myers"];
        self.sandbox
            .git_text(&[&args[..], &[&base, ours, theirs]].concat())
    }

    /// The tree of the user's files as they are.
    fn users_tree(&self) -> String {
        let index = self.sandbox.root().join("oracle-index");
        let run = |args: &[&str]| {
            let mut command = self.sandbox.command("git");
            command.args(args).env("GIT_INDEX_FILE", &index);
            let out = self.sandbox.outcome(command, b"").success();
            String::from_utf8(out.stdout().to_vec())
                .unwrap()
                .trim()
                .to_owned()
        };
        run(&["read-tree", "HEAD"]);
        run(&["add", "-A"]);
        run(&["write-tree"])
    }

    fn propose(&self, agents: &[&str]) {
        for agent in agents {
            self.done(&["propose", agent]);
        }
    }

    /// The user works on: a line of the shared file, a new file, and now and then a commit.
    fn user(&self, round: usize) {
        let shared = String::from_utf8(self.sandbox.read("shared")).unwrap();
        let shared = shared.replacen("13\n", "user\n", 1);
        self.sandbox.write("shared", shared);
        self.sandbox.write(format!("by the user {round}"), "u\n");
        if round == 2 {
            let repo = self.sandbox.repo();
            fs::rename(repo.join("renamed by the user"), repo.join("renamed")).unwrap();
            self.sandbox.commit("the user's");
        }
    }
}

fn own(agent: &str) -> Vec<String> {
    let mut lines: Vec<String> = OWN
        .iter()
        .map(|line| match line.split_once('\t').unwrap() {
            (letter, "shared") => format!("{letter}\tshared"),
            (letter, name) => match name.strip_prefix('"') {
                Some(name) => format!("{letter}\t\"{agent}/{name}").replace('"', ""),
                None => format!("{letter}\t{agent}/{name}"),
            },
        })
        .collect();
    lines.sort();
    lines
}

#[test]
fn every_base_is_gits_merge_and_every_diff_the_agents_own() {
    let tower = Tower::built();
    let mut below = tower.base("a");
    for agent in AGENTS {
        assert_eq!(tower.base(agent), below, "{agent}");
        assert_eq!(tower.diff(agent), own(agent));
        below = tower.merge(&tower.base(agent), &below, &tower.tree(agent));
    }
    assert_eq!(tower.tree("e"), below);
    // The user goes on, and renames a file that an agent edits and one that an agent makes executable.
    tower.user(0);
    tower.user(2);
    let repo = tower.sandbox.repo();
    fs::rename(repo.join("b/edit"), repo.join("b/edit-moved")).unwrap();
    fs::create_dir(repo.join("bin")).unwrap();
    fs::rename(repo.join("d/run"), repo.join("bin/run")).unwrap();
    tower.done(&["stack", "f", "--on=e", "--base=worktree"]);
    let mut merged = tower.users_tree();
    for agent in AGENTS {
        merged = tower.merge(&tower.base(agent), &merged, &tower.tree(agent));
    }
    assert_eq!(tower.base("f"), merged);
    assert_eq!(tower.diff("f"), Vec::<String>::new());
    assert!(tower.text("f", "b/edit-moved").contains("by b\n"));
    let listed = tower.done(&["overlay", "ls", "-r", "f", "bin"]);
    assert!(listed.starts_with("100755 blob "), "{listed}");
    // One at a time comes to the same, and nobody's own edits become another's.
    let mut below = tower.users_tree();
    for agent in AGENTS {
        tower.done(&["rebase-onto", agent, "worktree"]);
        assert_eq!(tower.base(agent), below, "{agent}");
        below = tower.tree(agent);
        assert_eq!(tower.diff(agent).len(), own(agent).len());
    }
    assert_eq!(below, merged);
}

/// In which order things are decided.
#[derive(Clone, Copy, Debug)]
enum Order {
    /// One after the other, as they were proposed.
    FromTheBottom,
    /// Each on the user's tree as it is by then.
    Rebased,
    /// The top with all that it needs.
    WithParents,
    /// The middle with all that it needs, then the rest.
    MiddleFirst,
    /// Everything.
    All,
}

fn accept_in(tower: &Tower, order: Order, user: bool) {
    let mut round = 0;
    let mut meanwhile = || {
        if user {
            tower.user(round);
        }
        round += 1;
    };
    meanwhile();
    match order {
        Order::FromTheBottom => {
            // Nothing lands before what it was built on.
            for agent in &AGENTS[1..] {
                tower.all_refused(&["accept", agent], "needs_parent");
                assert_eq!(tower.state(agent), "proposed");
            }
            for agent in AGENTS {
                tower.done(&["accept", agent]);
                meanwhile();
            }
        }
        Order::Rebased => {
            for agent in AGENTS {
                tower.done(&["rebase-onto", agent, "worktree"]);
                assert_eq!(tower.base(agent), tower.users_tree(), "{agent}");
                assert_eq!(tower.diff(agent), own(agent));
                tower.done(&["propose", agent]);
                tower.done(&["accept", agent]);
                meanwhile();
            }
        }
        Order::WithParents => {
            tower.done(&["accept", "e", "--with-parents"]);
        }
        Order::MiddleFirst => {
            tower.done(&["accept", "c", "--with-parents"]);
            meanwhile();
            meanwhile();
            tower.all_refused(&["accept", "e"], "needs_parent");
            tower.done(&["accept", "d"]);
            tower.done(&["accept", "e"]);
        }
        Order::All => {
            tower.done(&["accept", "--all"]);
        }
    }
}

fn in_every_order(user: bool) {
    let built = Tower::built();
    let top = built.tree("e");
    built.propose(&AGENTS);
    let every = [
        Order::FromTheBottom,
        Order::All,
        Order::WithParents,
        Order::Rebased,
        Order::MiddleFirst,
    ];
    // Some with the user's edits and the others without, unless there is time for all.
    let some = match (std::env::var_os("GIT_VWS_TEST_LONG"), user) {
        (Some(_), _) => &every[..],
        (None, false) => &every[..3],
        (None, true) => &every[3..],
    };
    for order in some.iter().copied() {
        let tower = built.copy();
        accept_in(&tower, order, user);
        for agent in AGENTS {
            assert_eq!(tower.state(agent), "accepted", "{order:?}");
            assert!(!tower.has(agent), "{agent} was not released: {order:?}");
        }
        if user {
            let shared = "a\n2\nb\n4\nc\n6\nd\n8\ne\n10\n11\n12\nuser\n";
            assert_eq!(tower.sandbox.read("shared"), shared.as_bytes(), "{order:?}");
            assert!(tower.sandbox.repo().join("by the user 0").exists());
            // All else is what the top had.
            let changed =
                tower
                    .sandbox
                    .git_text(&["diff", "--name-only", &top, &tower.users_tree()]);
            let others = |path: &&str| *path != "shared" && !path.contains("user");
            let strange: Vec<&str> = changed.lines().filter(others).collect();
            assert!(
                strange.iter().all(|path| *path == "renamed"),
                "{order:?}: {strange:?}"
            );
        } else {
            assert_eq!(tower.users_tree(), top, "{order:?}");
        }
    }
}

#[test]
fn accepted_in_every_order_it_comes_to_what_the_top_has() {
    in_every_order(false);
}

#[test]
fn and_merged_with_what_the_user_does_meanwhile() {
    in_every_order(true);
}

/// The middle one is rejected: who rests on it is blocked, decided on by nobody, and free once it is moved off.
fn rejected_in_the_middle(top_first: bool, user: bool) {
    let tower = Tower::built();
    tower.propose(&AGENTS);
    // What the top would be without the middle, by git.
    let mut without = tower.tree("b");
    for agent in ["d", "e"] {
        without = tower.merge(&tower.base(agent), &without, &tower.tree(agent));
    }
    tower.done(&["reject", "c"]);
    for (agent, state) in [
        ("a", "proposed"),
        ("c", "rejected"),
        ("d", "blocked"),
        ("e", "blocked"),
    ] {
        assert_eq!(tower.state(agent), state, "{agent}");
    }
    for agent in ["d", "e"] {
        assert!(tower.has(agent));
        tower.all_refused(&["accept", agent], "parent_rejected");
        tower.all_refused(&["accept", agent, "--with-parents"], "parent_rejected");
    }
    let graph = tower.done(&["stack", "--graph"]);
    assert!(graph.contains("9 blocked, c is decided"), "{graph}");
    if user {
        // What is below lands first, merged with the user's edits.
        tower.user(0);
        tower.done(&["accept", "b", "--with-parents"]);
        tower.user(2);
    }
    let base = if user { "worktree" } else { "HEAD" };
    let below = match user {
        true => tower.users_tree(),
        false => tower.tree("b"),
    };
    let expected = tower.merge(&tower.base("d"), &below, &tower.tree("d"));
    let order = if top_first { ["e", "d"] } else { ["d", "e"] };
    for agent in order {
        tower.done(&["rebase-onto", agent, base, "--without=c"]);
        assert_eq!(tower.diff(agent), own(agent), "{agent}");
    }
    assert_eq!(tower.base("d"), below);
    assert_eq!(tower.base("e"), expected);
    assert_eq!(tower.tree("d"), expected);
    tower.propose(&["d", "e"]);
    assert_eq!(
        (tower.state("d"), tower.state("e")),
        ("proposed".into(), "proposed".into())
    );
    if !user {
        tower.all_refused(&["accept", "d"], "needs_parent");
        tower.done(&["accept", "a"]);
        tower.done(&["accept", "b"]);
        tower.all_refused(&["accept", "e"], "needs_parent");
    }
    tower.done(&["accept", "--all"]);
    for agent in AGENTS {
        let state = if agent == "c" { "rejected" } else { "accepted" };
        assert_eq!(tower.state(agent), state, "{agent}");
        assert!(!tower.has(agent));
    }
    if user {
        let shared = "a\n2\nb\n4\n5\n6\nd\n8\ne\n10\n11\n12\nuser\n";
        assert_eq!(tower.sandbox.read("shared"), shared.as_bytes());
        assert!(tower.sandbox.repo().join("renamed").exists());
    } else {
        assert_eq!(tower.users_tree(), without);
    }
    assert!(Path::new(&tower.sandbox.repo().join("c/gone")).exists());
}

#[test]
fn rejected_in_the_middle_the_rest_moves_off_and_lands() {
    rejected_in_the_middle(false, false);
}

#[test]
fn rejected_in_the_middle_the_top_may_move_first() {
    rejected_in_the_middle(true, false);
}

#[test]
fn rejected_in_the_middle_after_the_bottom_landed_merged() {
    rejected_in_the_middle(false, true);
}

#[test]
fn without_a_parent_is_clean_exactly_where_the_edits_are_disjoint() {
    let tower = Tower::built();
    let line = tower.text("e", "shared").replace("c\n", "e on c's line\n");
    let args = ["overlay", "write", "e", "shared"];
    let _ = tower
        .sandbox
        .vws_with_input(&args, line.as_bytes())
        .success();
    tower.propose(&AGENTS[..4]);
    tower.done(&["reject", "c"]);
    // Who proposes after the rejection is in the same state from the start.
    tower.propose(&["e"]);
    assert_eq!(tower.state("e"), "blocked");
    tower.all_refused(&["accept", "e"], "parent_rejected");
    let before = tower.refs();
    let told = tower.refused(&["rebase-onto", "e", "HEAD", "--without=c"]);
    assert!(told.contains("\nconflict e conflict shared\n"), "{told}");
    assert_eq!(tower.refs(), before);
    tower.done(&["rebase-onto", "d", "HEAD", "--without=c"]);
    assert_eq!(tower.diff("d"), own("d"));
    // Kept, the path stays as the agent has it, and is not offered before it is written.
    tower.done(&[
        "rebase-onto",
        "e",
        "HEAD",
        "--without=c",
        "--keep-conflicts",
    ]);
    assert!(tower.text("e", "shared").contains("e on c's line\n"));
    assert_eq!(tower.sandbox.vws(&["propose", "e"]).code(), Some(1));
    let _ = tower
        .sandbox
        .vws_with_input(&args, line.as_bytes())
        .success();
    tower.propose(&["d", "e"]);
    assert_eq!(
        (tower.state("d"), tower.state("e")),
        ("proposed".into(), "proposed".into())
    );
}

#[test]
fn a_parent_that_offers_something_else_supersedes_or_is_followed() {
    let tower = Tower::built();
    tower.propose(&AGENTS);
    // The same paths in a new version: who rests on them follows.
    let edited = tower.text("c", "c/edit").replace("by c\n", "c again\n");
    let args = ["overlay", "write", "c", "c/edit"];
    let _ = tower
        .sandbox
        .vws_with_input(&args, edited.as_bytes())
        .success();
    tower.propose(&["c"]);
    for agent in ["d", "e"] {
        assert_eq!(tower.state(agent), "proposed");
        tower.all_refused(&["accept", agent], "needs_parent");
    }
    let status = tower.done(&["stack", "--status", "d"]);
    assert!(status.contains("\nstate behind\n"), "{status}");
    // A path less: nobody knows what rests on it.
    tower.done(&["overlay", "discard", "c", "c/bin"]);
    let _ = tower.sandbox.vws(&["propose", "c"]).success();
    for agent in ["d", "e"] {
        assert_eq!(tower.state(agent), "blocked");
        tower.all_refused(&["accept", agent], "parent_superseded");
        tower.all_refused(&["accept", agent, "--with-parents"], "parent_superseded");
    }
    // Moved onto what the parent offers now, they are free.
    for agent in ["d", "e"] {
        tower.done(&["rebase-onto", agent, "HEAD"]);
        assert_eq!(tower.diff(agent), own(agent));
        tower.propose(&[agent]);
        assert_eq!(tower.state(agent), "proposed");
    }
    let top = tower.tree("e");
    tower.done(&["accept", "e", "--with-parents"]);
    assert_eq!(tower.users_tree(), top);
    assert!(!tower.sandbox.repo().join("c/bin").exists());
}
