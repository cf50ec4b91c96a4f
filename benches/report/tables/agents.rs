//! Agents edit five files and add one; what they made is proposed, decided, and let go.

use std::path::Path;
use std::process::Child;
use std::rc::Rc;
use std::time::{Duration, Instant};

use super::super::Try;
use super::super::batch::Batch;
use super::super::fixture::{Repo, Tool, World};
use super::super::measure::{Bar, Group, How, Limit, Sample, Way, measure};
use super::super::rig::{Rig, Trace};
use super::create::{add_words, name_of};
use super::{agent, count_of, grouped};

/// What an agent's tool does: `$1` is its name, the others are files.
const EDIT: &str = "n=$1; shift; for f; do echo \"edited by $n\" >>\"$f\"; done; \
                    echo \"new of $n\" >\"added-$n.txt\"";

/// The words that do the edits of agent `n` in the current directory, and then what `after` says.
pub(super) fn edit(repo: &Repo, n: usize, after: &str) -> Vec<String> {
    let mut words = vec![
        "sh".to_owned(),
        "-c".to_owned(),
        format!("{EDIT}{after}"),
        "sh".to_owned(),
    ];
    words.push(agent(n));
    words.extend(repo.files_of(n));
    words
}

pub(super) fn large(world: &World) -> Try<Vec<Group>> {
    let most = world.options.agents.iter().max().copied();
    let all = world.options.agents.iter();
    all.map(|&agents| {
        let is_most = Some(agents) == most;
        let bars: &[Bar] = match is_most && agents > 1 {
            true => &[
                Bar {
                    limit: Limit::Total,
                    at_most: 0.1,
                },
                Bar {
                    limit: Limit::Peak,
                    at_most: 0.05,
                },
            ],
            false => &[],
        };
        group(world, world.options.files, agents, bars, is_most)
    })
    .collect()
}

pub(super) fn small(world: &World) -> Try<Vec<Group>> {
    let mut wanted: Vec<usize> = world.options.agents.iter().map(|&n| n.min(11)).collect();
    wanted.dedup();
    wanted
        .into_iter()
        .map(|agents| {
            let bar = [Bar {
                limit: Limit::Total,
                at_most: 1.0,
            }];
            let one = agents == 1;
            group(world, 60, agents, if one { &bar } else { &[] }, one)
        })
        .collect()
}

pub(super) fn largest(world: &World) -> Try<Vec<Group>> {
    Ok(vec![group(world, world.options.large, 1, &[], true)?])
}

/// `bars` are those of the ways with tools in a directory; `drawn` is whether the chart has it.
fn group(world: &World, files: usize, agents: usize, bars: &[Bar], drawn: bool) -> Try<Group> {
    let title = format!("{} at {} files", count_of(agents, "agent"), grouped(files));
    let mut ways = vec![in_checkouts(world, Tool::Worktree, files, agents)];
    let exec = Way::new("git vws exec", move || {
        in_exec(world, files, agents, Job::Exec)
    });
    let exec = exec.bars(bars);
    ways.push(exec.peak(move || peak_of_exec(world, files, agents)));
    let of_time = bars.iter().filter(|bar| bar.limit == Limit::Total);
    let of_time: Vec<Bar> = of_time.copied().collect();
    for (name, job) in [
        ("git vws run", Job::Run),
        ("git vws run --accept", Job::RunAndAccept),
    ] {
        let way = Way::new(name, move || in_exec(world, files, agents, job));
        ways.push(way.bars(&of_time));
    }
    let view = Way::new("git vws batch, no directory", move || {
        in_view(world, files, agents)
    });
    ways.push(view);
    if drawn {
        let drawn = ["exec", "run", "run --accept", "through the view"];
        for (way, how) in drawn.into_iter().enumerate() {
            ways[way + 1].headline = Some(format!("{title}, {how}"));
        }
    }
    if world.rig.has("git-cow") {
        ways.push(in_checkouts(world, Tool::Cow, files, agents));
    }
    if world.rig.has("jj") {
        ways.push(Way::new(name_of(Tool::Jj), move || {
            in_jj(world, files, agents)
        }));
    }
    let trace = if agents > 1 {
        Trace::Nothing
    } else {
        Trace::ProcessesAndFlushes
    };
    let times = if files <= 1000 { 5 } else { 1 };
    Ok(measure(
        world,
        title,
        How {
            trace,
            times,
            ..How::default()
        },
        ways,
    ))
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// `git worktree`, or what stands in for its `add` and `remove`.
fn in_checkouts<'a>(world: &'a World, tool: Tool, files: usize, agents: usize) -> Way<'a> {
    Way::new(name_of(tool), move || {
        let (rig, repo) = (world.rig, world.repo(files, tool)?);
        let before = rig.meter.used(&repo.places())?;
        let all = || (0..agents).map(|n| (n, agent(n), repo.tree_of(&agent(n))));
        rig.timed("work", || {
            all().try_for_each(|(n, name, at)| {
                rig.run(&repo.top, &add_words(tool, &repo, &name))?;
                rig.run(&at, &edit(&repo, n, "")).map(drop)
            })
        })?;
        rig.timed("propose", || {
            all().try_for_each(|(_, name, at)| {
                rig.run(&at, &["git", "add", "-A"])?;
                rig.run(&at, &["git", "commit", "-qm", &name]).map(drop)
            })
        })?;
        let peak = rig.meter.used(&repo.places())?.saturating_sub(before);
        rig.timed("decide", || {
            all().try_for_each(|(_, name, at)| {
                rig.run(&repo.top, &["git", "merge", "-q", "--no-edit", &name])?;
                let path = at.display().to_string();
                match tool {
                    Tool::Cow => rig.run(&repo.top, &["git-cow", "remove", "--force", &path])?,
                    _ => rig.run(&repo.top, &["git", "worktree", "remove", "--force", &path])?,
                };
                // `git cow remove` deletes a branch that is merged.
                match tool {
                    Tool::Cow => Ok(()),
                    _ => rig
                        .run(&repo.top, &["git", "branch", "-qD", &name])
                        .map(drop),
                }
            })
        })?;
        done(rig, &repo, Some(peak), Some(peak))
    })
}

fn done(rig: &Rig, repo: &Repo, peak: Option<u64>, held: Option<u64>) -> Try<Sample> {
    let witness = repo.as_it_is(rig, &repo.top)?;
    Ok(Sample {
        witness,
        peak,
        held,
    })
}

/// How an agent's tool gets its directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Job {
    /// `create`, `exec` and `propose`; then all are accepted.
    Exec,
    /// `run`, which starts from the working tree; then all are accepted.
    Run,
    /// `run --accept`, each agent by itself.
    RunAndAccept,
}

/// Each agent runs its tool in a directory of its own.
fn in_exec(world: &World, files: usize, agents: usize, job: Job) -> Try<Sample> {
    let (rig, repo) = (world.rig, ready(world, files)?);
    let before = rig.meter.used(&repo.places())?;
    rig.timed("work", || {
        (0..agents).try_for_each(|n| {
            let name = agent(n);
            let mut words = owned(match job {
                Job::Exec => &["vws", "exec", "-q"],
                Job::Run => &["vws", "run", "-q"],
                Job::RunAndAccept => &["vws", "run", "--accept", "-q"],
            });
            words.extend(owned(&[&name, "--"]));
            words.extend(edit(&repo, n, ""));
            if job == Job::Exec {
                rig.run(
                    &repo.top,
                    &["vws", "overlay", "create", "-q", "--base=HEAD", &name],
                )?;
            }
            rig.run(&repo.top, &words).map(drop)
        })
    })?;
    if job == Job::Exec {
        rig.timed("propose", || {
            (0..agents)
                .try_for_each(|n| rig.run(&repo.top, &["vws", "propose", &agent(n)]).map(drop))
        })?;
    }
    let held = rig.meter.used(&repo.places())?.saturating_sub(before);
    if job != Job::RunAndAccept {
        rig.timed("decide", || {
            rig.run(&repo.top, &["vws", "accept", "-q", "--all"])
                .map(drop)
        })?;
    }
    done(rig, &repo, None, Some(held))
}

/// The repository with its template made: what the first agent pays is a row of its own elsewhere.
pub(super) fn ready(world: &World, files: usize) -> Try<Rc<Repo>> {
    let repo = world.repo(files, Tool::Vws)?;
    world.rig.run(&repo.top, &["vws", "template", "warm"])?;
    Ok(repo)
}

/// All agents at the same time, each waiting when its edits are done: what they take together then.
fn peak_of_exec(world: &World, files: usize, agents: usize) -> Try<u64> {
    let (rig, repo) = (world.rig, ready(world, files)?);
    let gate = rig.root.join("gate");
    let _ = std::fs::remove_dir_all(&gate);
    std::fs::create_dir(&gate).map_err(|e| format!("can't make {gate:?}: {e}"))?;
    let before = rig.meter.used(&repo.places())?;
    let mut children = Vec::new();
    for n in 0..agents {
        let name = agent(n);
        let here = gate.join(&name).display().to_string();
        rig.run(
            &gate,
            &["mkfifo", &format!("{here}.go"), &format!("{here}.ready")],
        )?;
        rig.run(
            &repo.top,
            &["vws", "overlay", "create", "-q", "--base=HEAD", &name],
        )?;
        let wait = format!("; echo >'{here}.ready'; read _ <'{here}.go'");
        let mut words = owned(&["vws", "exec", "-q", &name, "--"]);
        words.extend(edit(&repo, n, &wait));
        children.push(rig.spawn(&repo.top, &words)?);
    }
    let used = all_ready(&gate, &mut children).and_then(|()| rig.meter.used(&repo.places()));
    for n in 0..agents {
        // Both ends are open where the agent is there; where it is not, this must not wait.
        let go = format!("timeout 5 sh -c 'echo >{}/{}.go'", gate.display(), agent(n));
        let _ = rig.ask(&gate, &["sh", "-c", &go]);
    }
    for child in children {
        let output = child.wait_with_output().map_err(|e| e.to_string())?;
        // `read` has got its line.
        if !output.status.success() {
            return Err(format!("exec ended with {}", output.status));
        }
    }
    Ok(used?.saturating_sub(before))
}

fn all_ready(gate: &Path, children: &mut [Child]) -> Try<()> {
    let end = Instant::now() + Duration::from_secs(60);
    for (n, child) in children.iter_mut().enumerate() {
        let ready = gate.join(format!("{}.ready", agent(n)));
        // Opened without waiting: the writer may have died before.
        use std::os::unix::fs::OpenOptionsExt;
        let mut options = std::fs::OpenOptions::new();
        options
            .read(true)
            .custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
        let mut fifo = options
            .open(&ready)
            .map_err(|e| format!("can't open {ready:?}: {e}"))?;
        loop {
            let mut byte = [0];
            match std::io::Read::read(&mut fifo, &mut byte) {
                Ok(1) => break,
                _ if Instant::now() > end => return Err("an agent did not get ready".to_owned()),
                _ if matches!(child.try_wait(), Ok(Some(_))) => {
                    return Err("an agent ended before it was ready".to_owned());
                }
                _ => std::thread::sleep(Duration::from_millis(2)),
            }
        }
    }
    Ok(())
}

/// Reads and writes through one `batch`, no directory at all.
fn in_view(world: &World, files: usize, agents: usize) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
    let before = rig.meter.used(&repo.places())?;
    rig.timed("work", || {
        let mut batch = Batch::start(rig, &repo.top)?;
        for n in 0..agents {
            let name = agent(n);
            batch.ask(&format!("create --base=HEAD {name}"), None)?;
            batch.ask(&format!("begin {name}"), None)?;
            for path in repo.files_of(n) {
                let mut text = batch.ask(&format!("read {name} {path}"), None)?;
                text.extend_from_slice(format!("edited by {name}\n").as_bytes());
                batch.ask(&format!("write {name} {path} {}", text.len()), Some(&text))?;
            }
            let text = format!("new of {name}\n");
            let line = format!("write {name} added-{name}.txt {}", text.len());
            batch.ask(&line, Some(text.as_bytes()))?;
            batch.ask("commit", None)?;
        }
        batch.end()
    })?;
    rig.timed("propose", || {
        (0..agents).try_for_each(|n| rig.run(&repo.top, &["vws", "propose", &agent(n)]).map(drop))
    })?;
    let held = rig.meter.used(&repo.places())?.saturating_sub(before);
    rig.timed("decide", || {
        rig.run(&repo.top, &["vws", "accept", "-q", "--all"])
            .map(drop)
    })?;
    done(rig, &repo, Some(held), Some(held))
}

/// jj's own way: a workspace for each agent, one merge of all in the end.
fn in_jj(world: &World, files: usize, agents: usize) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Jj)?);
    let before = rig.meter.used(&repo.places())?;
    let all = || (0..agents).map(|n| (n, agent(n), repo.tree_of(&agent(n))));
    rig.timed("work", || {
        all().try_for_each(|(n, name, at)| {
            rig.run(&repo.top, &add_words(Tool::Jj, &repo, &name))?;
            rig.run(&at, &edit(&repo, n, "")).map(drop)
        })
    })?;
    rig.timed("propose", || {
        all().try_for_each(|(_, name, at)| {
            rig.run(&at, &["jj", "commit", "--quiet", "-m", &name])
                .map(drop)
        })
    })?;
    let peak = rig.meter.used(&repo.places())?.saturating_sub(before);
    rig.timed("decide", || {
        let mut words = owned(&["jj", "new", "--quiet"]);
        words.extend(all().map(|(_, name, _)| format!("{name}@-")));
        rig.run(&repo.top, &words)?;
        all().try_for_each(|(_, name, at)| {
            rig.run(&repo.top, &["jj", "workspace", "forget", "--quiet", &name])?;
            rig.run(&repo.top, &["rm", "-rf", &at.display().to_string()])
                .map(drop)
        })
    })?;
    done(rig, &repo, Some(peak), Some(peak))
}
