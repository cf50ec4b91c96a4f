//! Commits and branches that a tool makes inside the directory.

use crate::lay::{Laid, id};

fn laid() -> Laid {
    Laid::new(|sandbox| {
        sandbox.write("f", "f\n");
        sandbox.write("g", "g\n");
    })
}

fn made(captured: &git_vws::layout::Captured) -> Vec<(String, String)> {
    let pair = |one: &git_vws::layout::Made| (one.name.clone(), one.commit.to_string());
    captured.branches.iter().map(pair).collect()
}

#[test]
fn a_commit_becomes_the_agents_branch() {
    let laid = laid();
    let users_head = laid.sandbox.git_text(&["rev-parse", "HEAD"]);
    laid.sh("echo 1 > f; git commit -q -a -m x");
    let first = laid.git(&["rev-parse", "HEAD"]);
    let captured = laid.expect(&[]);
    assert_eq!(
        made(&captured),
        [("refs/heads/relo/a".to_owned(), first.clone())]
    );
    assert!(captured.changed);
    // On a branch of its own, with an edit on top.
    laid.sh("git checkout -q -b y; echo 2 > g; git commit -q -a -m y; echo 3 > n");
    let second = laid.git(&["rev-parse", "HEAD"]);
    let captured = laid.expect(&[]);
    let wanted = [
        ("refs/heads/relo/a".to_owned(), second.clone()),
        ("refs/heads/y".to_owned(), second.clone()),
    ];
    assert_eq!(made(&captured), wanted);
    // Back to the cut: the directory's content is what counts, the commits stay.
    laid.sh("git reset -q --hard HEAD~2; rm n");
    let captured = laid.capture();
    assert_eq!(captured.workspace.tree, laid.directory.cut.tree);
    assert_eq!(laid.git(&["rev-parse", "relo/a"]), second);
    assert_eq!(laid.sandbox.git_text(&["rev-parse", "HEAD"]), users_head);
    assert_eq!(
        laid.sandbox.git_text(&["symbolic-ref", "HEAD"]),
        "refs/heads/main"
    );
    // The agent's branch is in the history of what it captures.
    laid.sandbox.git(&[
        "merge-base",
        "--is-ancestor",
        &first,
        &captured.workspace.commit.to_string(),
    ]);
}

#[test]
fn commits_that_nothing_else_keeps_are_pinned() {
    let laid = laid();
    laid.sh(
        "echo 1 > f; git commit -q -a -m lost; git reset -q --hard HEAD~1; \
             echo 2 > f; git commit -q -a -m kept; git checkout -q --orphan o; \
             git commit -q --allow-empty -m orphan; git checkout -q --detach; git branch -q -D o",
    );
    let lost = laid.git(&["rev-parse", "HEAD@{4}"]);
    let orphan = laid.git(&["rev-parse", "HEAD"]);
    let captured = laid.capture();
    let names: Vec<String> = made(&captured).into_iter().map(|(_, id)| id).collect();
    assert!(names.contains(&orphan), "{names:?}");
    // The directory goes, and its reflog with it.
    laid.sandbox.git(&[
        "worktree",
        "remove",
        "--force",
        laid.directory.path.to_str().unwrap(),
    ]);
    laid.sandbox.git(&["gc", "-q", "--prune=now"]);
    let repository = laid.repository();
    for commit in names.iter().chain([&lost, &orphan]) {
        assert!(
            repository.objects().unwrap().exists(id(&laid, commit)),
            "{commit}"
        );
    }
}

#[test]
fn a_branch_that_moved_meanwhile_is_not_overwritten_blindly() {
    let laid = laid();
    // The agent's branch is somewhere else: what it held stays reachable.
    let old = laid
        .sandbox
        .git_text(&["commit-tree", "-m", "old", "HEAD^{tree}"]);
    laid.sandbox.git(&["update-ref", "refs/heads/relo/a", &old]);
    laid.sh("echo 1 > f; git commit -q -a -m x");
    let captured = laid.capture();
    let pinned = format!("refs/relo/vws/a/stray/{old}");
    assert!(made(&captured).contains(&(pinned.clone(), old.clone())));
    assert_eq!(laid.sandbox.git_text(&["rev-parse", &pinned]), old);
}
