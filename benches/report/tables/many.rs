//! Many workspaces at a time, and many records of what an agent knows.

use std::rc::Rc;

use super::super::Try;
use super::super::batch::Batch;
use super::super::fixture::{Repo, Tool, World};
use super::super::measure::{Group, How, Limit, Sample, Way, measure};
use super::{agent, grouped};

const STARTS: usize = 10;

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    Ok(vec![list(world), context(world)])
}

/// The size of repositories of this table's own: they are filled once, and never start over.
const FILES: usize = 61;

/// The repository, and whether it is new.
fn filled(world: &World, tool: Tool) -> Try<(Rc<Repo>, bool)> {
    match world.repo_as_it_is(FILES, tool) {
        Ok(repo) => Ok((repo, false)),
        Err(_) => Ok((world.repo(FILES, tool)?, true)),
    }
}

fn list(world: &World) -> Group {
    let count = world.options.workspaces;
    let theirs = Way::new("git worktree list", move || {
        let rig = world.rig;
        let (repo, is_new) = filled(world, Tool::Worktree)?;
        // What it reads of a worktree lies below `.git/worktrees`, whether files are checked out or not.
        for n in (0..count).filter(|_| is_new) {
            let path = repo.tree_of(&agent(n)).display().to_string();
            let add = [
                "git",
                "worktree",
                "add",
                "-q",
                "--no-checkout",
                "--detach",
                &path,
            ];
            rig.run(&repo.top, &add)?;
        }
        let words = ["git", "worktree", "list", "--porcelain"];
        let listed = rig.timed("", || rig.run(&repo.top, &words))?;
        // The repository's own working tree is one more.
        let found = listed
            .lines()
            .filter(|line| line.starts_with("worktree "))
            .count()
            - 1;
        Ok(Sample::of(format!("{found} listed")))
    });
    let ours = Way::new("git vws overlay list", move || {
        let rig = world.rig;
        let (repo, is_new) = filled(world, Tool::Vws)?;
        if is_new {
            let mut batch = Batch::start(rig, &repo.top)?;
            (0..count).try_for_each(|n| {
                batch
                    .ask(&format!("create --base=HEAD {}", agent(n)), None)
                    .map(drop)
            })?;
            batch.end()?;
        }
        let listed = rig.timed("", || rig.run(&repo.top, &["vws", "overlay", "list"]))?;
        let found = listed
            .lines()
            .filter(|line| line.starts_with("agent "))
            .count();
        Ok(Sample::of(format!("{found} listed")))
    });
    let title = format!("List {} workspaces", grouped(count));
    let how = How {
        times: 3,
        ..How::default()
    };
    let ours = ours.headline(title.to_lowercase());
    measure(world, title, how, vec![theirs, ours])
}

fn context(world: &World) -> Group {
    let (files, count) = (world.options.files, world.options.records);
    let theirs = Way::new(
        format!("{STARTS} starts of git cat-file --batch-check"),
        move || {
            let (rig, repo) = (world.rig, world.repo(files, Tool::Worktree)?);
            let line = format!("HEAD:{}\n", repo.paths[0]);
            let words = ["git", "cat-file", "--batch-check"];
            rig.timed("", || {
                (0..STARTS).try_for_each(|_| rig.feed(&repo.top, &words, line.as_bytes()).map(drop))
            })?;
            Ok(Sample::of("all fresh"))
        },
    );
    let ours = Way::new("git vws context --check", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
        rig.run(
            &repo.top,
            &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
        )?;
        let tree = rig.run(&repo.top, &["git", "ls-tree", "-r", "HEAD"])?;
        let mut records = String::new();
        let known: Vec<_> = tree
            .lines()
            .filter_map(|line| line.split_once('\t'))
            .collect();
        for (facts, path) in known.iter().cycle().take(count) {
            let blob = facts.rsplit(' ').next().unwrap_or_default();
            records.push_str(&format!("{blob} {path}\n"));
        }
        let words = ["vws", "context", "--check", "a"];
        let told = rig.timed("", || rig.feed(&repo.top, &words, records.as_bytes()))?;
        let fresh = told
            .lines()
            .filter(|line| line.starts_with("fresh "))
            .count();
        match fresh == count {
            true => Ok(Sample::of("all fresh")),
            false => Err(format!("{fresh} of {count} records are fresh")),
        }
    });
    let title = format!("{} records of a context checked", grouped(count));
    let how = How {
        times: 3,
        ..How::default()
    };
    measure(world, title, how, vec![theirs, ours.bar(Limit::Total, 1.0)])
}
