//! Agents who meet in one file: their merges, what is refused, and what would collide.

use super::super::Try;
use super::super::fixture::{Repo, SHARED, SHARED_LINES, Tool, World};
use super::super::measure::{Group, How, Limit, Sample, Way, measure};
use super::super::rig::Trace;
use super::agents::ready;
use super::{agent, count_of, grouped};

/// Where the agents meet.
#[derive(Clone, Copy, PartialEq)]
enum Meet {
    InTheFile,
    OnOneLine,
}

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    let mut groups = Vec::new();
    for &agents in world.options.agents.iter().filter(|&&agents| agents > 1) {
        for meet in [Meet::InTheFile, Meet::OnOneLine] {
            groups.push(group(world, agents, meet));
        }
    }
    Ok(groups)
}

fn group(world: &World, agents: usize, meet: Meet) -> Group {
    let places = match meet {
        Meet::InTheFile => "in different places",
        Meet::OnOneLine => "on one line",
    };
    let title = format!(
        "{} {places}, at {} files",
        count_of(agents, "agent"),
        grouped(world.options.files)
    );
    let theirs = Way::new("git worktree", move || merged(world, agents, meet));
    let mut ours = Way::new("git vws", move || accepted(world, agents, meet));
    if meet == Meet::InTheFile && Some(&agents) == world.options.agents.iter().max() {
        ours = ours.bar(Limit::Part("accept all"), 0.2);
        ours = ours.headline(format!(
            "{} in one file, proposed and merged",
            count_of(agents, "agent")
        ));
    }
    let how = How {
        trace: Trace::Nothing,
        ..How::default()
    };
    measure(world, title, how, vec![theirs, ours])
}

/// The words that edit agent `n`'s line.
fn edit(n: usize, agents: usize, meet: Meet) -> Vec<String> {
    let line = match meet {
        Meet::InTheFile => (n + 1) * SHARED_LINES / (agents + 1),
        Meet::OnOneLine => SHARED_LINES / 2,
    };
    let script = format!("{line}s/$/ by {}/", agent(n));
    ["sed", "-i", &script, SHARED].map(str::to_owned).to_vec()
}

/// `accepted` of `agents`, and the tree that it left.
fn outcome(world: &World, repo: &Repo, accepted: usize, agents: usize) -> Try<Sample> {
    let tree = repo.as_it_is(world.rig, &repo.top)?;
    Ok(Sample::of(format!(
        "{accepted} accepted, {} refused, {tree}",
        agents - accepted
    )))
}

fn merged(world: &World, agents: usize, meet: Meet) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(world.options.files, Tool::Worktree)?);
    for n in 0..agents {
        let (name, at) = (agent(n), repo.tree_of(&agent(n)));
        let path = at.display().to_string();
        rig.run(
            &repo.top,
            &["git", "worktree", "add", "-q", "-b", &name, &path],
        )?;
        rig.run(&at, &edit(n, agents, meet))?;
    }
    rig.timed("propose", || {
        (0..agents).try_for_each(|n| {
            let at = repo.tree_of(&agent(n));
            rig.run(&at, &["git", "add", "-A"])?;
            rig.run(&at, &["git", "commit", "-qm", "edit"]).map(drop)
        })
    })?;
    let mut accepted = 0;
    rig.timed("accept all", || {
        for n in 0..agents {
            let merge = ["git", "merge", "-q", "--no-edit", &agent(n)];
            if rig.ask(&repo.top, &merge)?.status.success() {
                accepted += 1;
            } else {
                rig.run(&repo.top, &["git", "merge", "--abort"])?;
            }
        }
        Ok(())
    })?;
    outcome(world, &repo, accepted, agents)
}

fn proposals(world: &World, agents: usize, meet: Meet) -> Try<std::rc::Rc<Repo>> {
    let (rig, repo) = (world.rig, ready(world, world.options.files)?);
    for n in 0..agents {
        let name = agent(n);
        rig.run(
            &repo.top,
            &["vws", "overlay", "create", "-q", "--base=HEAD", &name],
        )?;
        let mut words = ["vws", "exec", "-q", &name, "--"]
            .map(str::to_owned)
            .to_vec();
        words.extend(edit(n, agents, meet));
        rig.run(&repo.top, &words)?;
    }
    rig.timed("propose", || {
        (0..agents).try_for_each(|n| rig.run(&repo.top, &["vws", "propose", &agent(n)]).map(drop))
    })?;
    Ok(repo)
}

fn accepted(world: &World, agents: usize, meet: Meet) -> Try<Sample> {
    let repo = proposals(world, agents, meet)?;
    let words = ["vws", "accept", "-q", "--all"];
    let output = world
        .rig
        .timed("accept all", || world.rig.ask(&repo.top, &words))?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let is_in = |line: &&str| line.starts_with("clean ") || line.starts_with("merged ");
    let accepted = lines.lines().filter(is_in).count();
    if output.status.code() != Some(i32::from(accepted < agents)) {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(format!("accept --all ended with {}: {said}", output.status));
    }
    outcome(world, &repo, accepted, agents)
}

/// Which of the workspaces collide with which, and with the working tree: 16 on one file, half of them
/// on one line, all looked at at once.
pub(super) fn radar(world: &World) -> Try<Vec<Group>> {
    let agents = world
        .options
        .agents
        .iter()
        .max()
        .copied()
        .unwrap_or(1)
        .max(2);
    let pairs = agents * (agents - 1) / 2;
    let theirs = Way::new("git merge-tree, each pair", move || {
        let (rig, repo) = (world.rig, world.repo(world.options.files, Tool::Worktree)?);
        for n in 0..agents {
            let (name, at) = (agent(n), repo.tree_of(&agent(n)));
            let path = at.display().to_string();
            let add = [
                "git",
                "worktree",
                "add",
                "-q",
                "--no-checkout",
                "-b",
                &name,
                &path,
            ];
            rig.run(&repo.top, &add)?;
            rig.run(&at, &["git", "read-tree", "HEAD"])?;
            rig.run(&at, &["git", "checkout", "-q", "--", SHARED])?;
            rig.run(&at, &edit(n, agents, Meet::OnOneLine))?;
            rig.run(&at, &["git", "commit", "-qm", "edit", "--", SHARED])?;
        }
        let mut collisions = 0;
        rig.timed("", || {
            for one in 0..agents {
                for other in one + 1..agents {
                    let (one, other) = (agent(one), agent(other));
                    let words = [
                        "git",
                        "merge-tree",
                        "--write-tree",
                        "--name-only",
                        &one,
                        &other,
                    ];
                    collisions += usize::from(rig.ask(&repo.top, &words)?.status.code() == Some(1));
                }
                let words = [
                    "git",
                    "merge-tree",
                    "--write-tree",
                    "--name-only",
                    "HEAD",
                    &agent(one),
                ];
                collisions += usize::from(rig.ask(&repo.top, &words)?.status.code() == Some(1));
            }
            Ok(())
        })?;
        Ok(Sample::of(format!("{collisions} collisions")))
    });
    let ours = Way::new("git vws conflicts", move || {
        let repo = proposals(world, agents, Meet::OnOneLine)?;
        world.rig.forget();
        let words = ["vws", "conflicts"];
        let seen = world.rig.timed("", || world.rig.ask(&repo.top, &words))?;
        let lines = String::from_utf8_lossy(&seen.stdout).lines().count();
        Ok(Sample::of(format!("{lines} collisions")))
    });
    let title = format!("{agents} workspaces: {pairs} pairs, and each with the working tree");
    let how = How {
        times: 1,
        ..How::default()
    };
    Ok(vec![measure(
        world,
        title,
        how,
        vec![
            theirs,
            ours.headline("what would collide (git merge-tree = 1)"),
        ],
    )])
}
