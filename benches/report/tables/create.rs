//! Creating workspaces: one after the other, all at once, in one process; and from the working tree.

use std::rc::Rc;

use super::super::Try;
use super::super::batch::Batch;
use super::super::fixture::{Repo, Tool, World};
use super::super::measure::{Group, How, Limit, Sample, Way, measure};
use super::super::{disk, rig::Trace};
use super::{agent, count_of, grouped};

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    let files = world.options.files;
    let mut groups = Vec::new();
    for &agents in &world.options.agents {
        let title = format!(
            "{} at {} files",
            count_of(agents, "workspace"),
            grouped(files)
        );
        let mut ways = vec![added(world, Tool::Worktree, agents)?];
        let mut create = created(world, agents, false)?;
        if Some(&agents) == world.options.agents.iter().max() {
            create = create.headline(format!("create {title}"));
        }
        ways.push(create);
        ways.push(in_one_process(world, agents)?);
        if world.rig.has("git-cow") {
            ways.push(added(world, Tool::Cow, agents)?);
        }
        if world.rig.has("jj") {
            ways.push(added(world, Tool::Jj, agents)?);
        }
        groups.push(measure(world, title, how(agents), ways));
    }
    let most = world.options.agents.iter().copied().max().unwrap_or(1);
    if most > 1 {
        let title = format!("{} at the same time", count_of(most, "workspace"));
        let ways = vec![added_together(world, most)?, created(world, most, true)?];
        groups.push(measure(world, title, how(most), ways));
    }
    groups.push(from_the_working_tree(world)?);
    Ok(groups)
}

fn how(agents: usize) -> How {
    let trace = if agents > 1 {
        Trace::Nothing
    } else {
        Trace::ProcessesAndFlushes
    };
    How {
        trace,
        ..How::default()
    }
}

/// Words that make a checkout of an agent's own.
pub(super) fn add_words(tool: Tool, repo: &Repo, name: &str) -> Vec<String> {
    let path = repo.tree_of(name).display().to_string();
    let words: &[&str] = match tool {
        Tool::Cow => &["git-cow", "add", "-b", name, &path],
        Tool::Jj => &[
            "jj",
            "workspace",
            "add",
            "--quiet",
            "--name",
            name,
            "-r",
            "main",
            &path,
        ],
        _ => &["git", "worktree", "add", "-q", "-b", name, &path],
    };
    words.iter().map(|word| (*word).to_owned()).collect()
}

pub(super) fn name_of(tool: Tool) -> &'static str {
    match tool {
        Tool::Worktree => "git worktree",
        Tool::Vws => "git vws",
        Tool::Cow => "git-cow",
        Tool::Jj => "jj workspace",
    }
}

fn added<'a>(world: &'a World, tool: Tool, agents: usize) -> Try<Way<'a>> {
    world.repo(world.options.files, tool)?;
    Ok(Way::new(name_of(tool), move || {
        let (rig, repo) = (world.rig, world.repo(world.options.files, tool)?);
        let before = rig.meter.used(&repo.places())?;
        rig.timed("", || {
            (0..agents).try_for_each(|n| {
                rig.run(&repo.top, &add_words(tool, &repo, &agent(n)))
                    .map(drop)
            })
        })?;
        checkouts(world, &repo, agents, before)
    }))
}

fn added_together<'a>(world: &'a World, agents: usize) -> Try<Way<'a>> {
    world.repo(world.options.files, Tool::Worktree)?;
    Ok(Way::new(name_of(Tool::Worktree), move || {
        let repo = world.repo(world.options.files, Tool::Worktree)?;
        let before = world.rig.meter.used(&repo.places())?;
        let all: Vec<_> = (0..agents)
            .map(|n| add_words(Tool::Worktree, &repo, &agent(n)))
            .collect();
        world
            .rig
            .timed("", || world.rig.together(&repo.top, &all))?;
        checkouts(world, &repo, agents, before)
    }))
}

/// The witness: how many there are, and the tree of each.
fn checkouts(world: &World, repo: &Repo, agents: usize, before: u64) -> Try<Sample> {
    let used = world.rig.meter.used(&repo.places())? - before;
    for n in 0..agents {
        let at = repo.tree_of(&agent(n));
        let files = disk::entries(&at);
        if files <= repo.paths.len() {
            return Err(format!("{} entries in {at:?}", files));
        }
    }
    let mut sample = Sample::of(format!("{agents} of {}", repo.tree));
    sample.peak = Some(used);
    Ok(sample)
}

fn workspaces(world: &World, repo: &Repo, agents: usize, before: u64) -> Try<Sample> {
    let used = world.rig.meter.used(&repo.places())?.saturating_sub(before);
    let listed = world.rig.run(&repo.top, &["vws", "overlay", "list"])?;
    let trees: Vec<_> = listed
        .lines()
        .filter_map(|line| line.strip_prefix("tree "))
        .collect();
    if trees.iter().any(|tree| *tree != repo.tree) {
        return Err(format!("a workspace with another tree than {}", repo.tree));
    }
    if trees.len() != agents {
        return Err(format!("{} workspaces, not {agents}", trees.len()));
    }
    let mut sample = Sample::of(format!("{agents} of {}", repo.tree));
    sample.peak = Some(used);
    Ok(sample)
}

fn created<'a>(world: &'a World, agents: usize, together: bool) -> Try<Way<'a>> {
    world.repo(world.options.files, Tool::Vws)?;
    Ok(Way::new("git vws overlay create", move || {
        let (rig, repo) = (world.rig, world.repo(world.options.files, Tool::Vws)?);
        let before = rig.meter.used(&repo.places())?;
        let words = |n: usize| -> Vec<String> {
            let name = agent(n);
            let words = ["vws", "overlay", "create", "-q", "--base=HEAD", &name];
            words.iter().map(|word| (*word).to_owned()).collect()
        };
        let all: Vec<_> = (0..agents).map(words).collect();
        rig.timed("", || match together {
            true => rig.together(&repo.top, &all),
            false => all
                .iter()
                .try_for_each(|one| rig.run(&repo.top, one).map(drop)),
        })?;
        workspaces(world, &repo, agents, before)
    }))
}

fn in_one_process<'a>(world: &'a World, agents: usize) -> Try<Way<'a>> {
    Ok(Way::new("git vws batch", move || {
        let (rig, repo) = (world.rig, world.repo(world.options.files, Tool::Vws)?);
        let before = rig.meter.used(&repo.places())?;
        rig.timed("", || {
            let mut batch = Batch::start(rig, &repo.top)?;
            (0..agents).try_for_each(|n| {
                batch
                    .ask(&format!("create --base=HEAD {}", agent(n)), None)
                    .map(drop)
            })?;
            batch.end()
        })?;
        workspaces(world, &repo, agents, before)
    }))
}

/// Three files edited, one new: what a user's working tree looks like.
fn edited(world: &World, tool: Tool) -> Try<Rc<Repo>> {
    let repo = world.repo(world.options.files, tool)?;
    for path in repo.files_of(0).iter().take(3) {
        write(&repo, path, "edited by the user\n")?;
    }
    write(&repo, "new.txt", "new\n")?;
    Ok(repo)
}

fn write(repo: &Repo, path: &str, text: &str) -> Try<()> {
    std::fs::write(repo.top.join(path), text).map_err(|e| format!("can't write {path}: {e}"))
}

fn from_the_working_tree(world: &World) -> Try<Group> {
    let status = Way::new("git status", || {
        let repo = edited(world, Tool::Worktree)?;
        let words = ["git", "status", "--porcelain"];
        let seen = world.rig.timed("", || world.rig.run(&repo.top, &words))?;
        match seen.lines().count() {
            4 => Ok(Sample::of(repo.as_it_is(world.rig, &repo.top)?)),
            count => Err(format!("{count} changed paths, not 4")),
        }
    });
    let create = Way::new("git vws overlay create", || {
        let repo = edited(world, Tool::Vws)?;
        let words = ["vws", "overlay", "create", "-q", "a"];
        let made = world.rig.timed("", || world.rig.run(&repo.top, &words))?;
        Ok(Sample::of(super::value(&made, "tree")?))
    });
    let how = How {
        times: 3,
        ..How::default()
    };
    let ways = vec![
        status,
        create
            .bar(Limit::Total, 1.0)
            .headline("create from the working tree (git status = 1)"),
    ];
    Ok(measure(
        world,
        "From the working tree as it is, beside git status",
        how,
        ways,
    ))
}
