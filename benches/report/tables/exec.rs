//! Directories: a command in one, on each back end and in repositories of each size; one that stays.

use std::path::Path;

use super::super::Try;
use super::super::fixture::{Tool, World};
use super::super::measure::{Bar, Group, How, Limit, Line, Sample, Way, measure};
use super::super::rig::Trace;
use super::agents::{edit, ready};
use super::{grouped, value};

/// A cost is flat where the largest repository costs no more than this, beside the smallest.
const FLAT: f64 = 1.25;

/// The back ends that a command takes here; of the others a remark says why not.
pub(super) fn backends(world: &World, command: &str) -> Try<Vec<String>> {
    let repo = world.repo(60, Tool::Vws)?;
    let rig = world.rig;
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "probe"],
    )?;
    let mut found = Vec::new();
    for backend in ["overlay", "reflink", "checkout", "worktree"] {
        let option = format!("--backend={backend}");
        let mut words = vec!["vws", command, &option, "probe"];
        if command == "exec" {
            words.extend(["--", "true"]);
        }
        let output = rig.ask(&repo.top, &words)?;
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            let why = errors
                .lines()
                .next()
                .unwrap_or_default()
                .trim_start_matches("fatal: ");
            world.remark(format!(
                "`{command} --backend={backend}` is not measured: {why}"
            ));
            continue;
        }
        if command == "materialize" {
            let made = String::from_utf8_lossy(&output.stdout).into_owned();
            let used = value(&made, "backend")?.to_owned();
            rig.run(&repo.top, &["vws", "settle", "-q", "probe"])?;
            if used != backend {
                world.remark(format!(
                    "`{command} --backend={backend}` used {used} instead"
                ));
                continue;
            }
        }
        found.push(backend.to_owned());
    }
    Ok(found)
}

fn sizes(world: &World) -> Vec<usize> {
    let mut sizes = vec![
        world.options.files.min(1000),
        world.options.files,
        world.options.large,
    ];
    sizes.dedup();
    sizes
}

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    let options = world.options;
    let backends = backends(world, "exec")?;
    let mut groups = vec![first(world)];
    let sizes = sizes(world);
    for &files in &sizes {
        let mut ways = vec![added_and_removed(world, files)];
        for backend in &backends {
            let name = format!("git vws exec ({backend})");
            let mut way = Way::new(name, move || in_exec(world, files, backend, false));
            if backend == "overlay" && files == options.files {
                way = way.bar(Limit::Total, 0.02);
            }
            if backend == "overlay" {
                way = way.headline(format!("exec -- true at {} files", grouped(files)));
            }
            ways.push(way);
        }
        let title = format!("exec -- true, {} files, template ready", grouped(files));
        groups.push(measure(
            world,
            title,
            How {
                times: 2,
                ..How::default()
            },
            ways,
        ));
    }
    groups.extend(flat(
        &groups,
        "overlay",
        &sizes,
        "exec -- true",
        Limit::Total,
    ));
    let mut edits = Vec::new();
    for &files in &sizes {
        let mut ways = vec![edited_in_worktree(world, files)];
        for backend in backends.iter().filter(|one| *one == "overlay") {
            let name = format!("git vws exec ({backend})");
            ways.push(Way::new(name, move || in_exec(world, files, backend, true)));
        }
        let title = format!("edit 5 files, capture, {} files", grouped(files));
        // Tracing each of the calls of a large checkout takes long and tells nothing new.
        let trace = if files > 1000 {
            Trace::Nothing
        } else {
            Trace::AllCalls
        };
        let mut group = measure(
            world,
            title,
            How {
                trace,
                ..How::default()
            },
            ways,
        );
        if trace == Trace::Nothing
            && let Some(line) = group
                .lines
                .iter_mut()
                .skip(1)
                .find(|line| line.void.is_none())
            && world.rig.can_trace()
        {
            let work = || in_exec(world, files, "overlay", true);
            line.counts = Some(world.rig.counted(Trace::AllCalls, work)?);
        }
        edits.push(group);
    }
    let calls = flat(
        &edits,
        "overlay",
        &sizes,
        "edit 5 files, capture",
        Limit::Calls,
    );
    groups.extend(edits);
    groups.extend(calls);
    Ok(groups)
}

/// One way's lines of all sizes, held against its own at the smallest.
fn flat(
    groups: &[Group],
    backend: &str,
    sizes: &[usize],
    what: &str,
    limit: Limit,
) -> Option<Group> {
    let name = format!("git vws exec ({backend})");
    let found = groups.iter().filter(|group| group.title.starts_with(what));
    let lines = found.filter_map(|group| group.lines.iter().find(|line| line.name == name));
    let mut lines: Vec<Line> = lines.cloned().collect();
    for (line, size) in lines.iter_mut().zip(sizes) {
        line.name = format!("{backend}, {} files", grouped(*size));
        line.bars.clear();
        line.headline = None;
    }
    if lines.len() < 2 || lines.len() != sizes.len() {
        return None;
    }
    lines.last_mut()?.bars.push(Bar {
        limit,
        at_most: FLAT,
    });
    Some(Group {
        title: format!("{what}: flat in the size of the repository"),
        per: 1,
        lines,
    })
}

fn first(world: &World) -> Group {
    let files = world.options.files;
    let ours = Way::new("git vws exec, no template yet", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
        rig.run(&repo.top, &["vws", "template", "prune", "--max-bytes=0"])?;
        executed(world, files, &["vws", "exec", "-q", "a", "--", "true"])
    });
    let title = format!("The first exec -- true, {} files", grouped(files));
    measure(
        world,
        title,
        How::default(),
        vec![added_and_removed(world, files), ours],
    )
}

fn added_and_removed<'a>(world: &'a World, files: usize) -> Way<'a> {
    Way::new("git worktree add, remove", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Worktree)?);
        let path = repo.tree_of("a").display().to_string();
        rig.timed("", || {
            rig.run(
                &repo.top,
                &["git", "worktree", "add", "-q", "--detach", &path],
            )?;
            rig.run(&repo.tree_of("a"), &["true"])?;
            rig.run(&repo.top, &["git", "worktree", "remove", "--force", &path])
                .map(drop)
        })?;
        Ok(Sample::of(repo.tree.clone()))
    })
}

fn executed(world: &World, files: usize, words: &[&str]) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
    )?;
    rig.timed("", || rig.run(&repo.top, words).map(drop))?;
    let shown = rig.run(&repo.top, &["vws", "overlay", "show", "a"])?;
    Ok(Sample::of(value(&shown, "tree")?))
}

fn in_exec(world: &World, files: usize, backend: &str, edits: bool) -> Try<Sample> {
    let repo = ready(world, files)?;
    let option = format!("--backend={backend}");
    let mut words = vec!["vws", "exec", "-q", &option, "a", "--"];
    let edit = edit(&repo, 0, "");
    match edits {
        true => words.extend(edit.iter().map(String::as_str)),
        false => words.push("true"),
    }
    executed(world, files, &words)
}

/// The same edits, read back as a tree.
fn edited_in_worktree<'a>(world: &'a World, files: usize) -> Way<'a> {
    Way::new("git worktree add, edit, git add, remove", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Worktree)?);
        let at = repo.tree_of("a");
        let path = at.display().to_string();
        let tree = rig.timed("", || {
            rig.run(
                &repo.top,
                &["git", "worktree", "add", "-q", "--detach", &path],
            )?;
            rig.run(&at, &edit(&repo, 0, ""))?;
            rig.run(&at, &["git", "add", "-A"])?;
            let tree = rig.run(&at, &["git", "write-tree"])?;
            rig.run(&repo.top, &["git", "worktree", "remove", "--force", &path])?;
            Ok(tree)
        })?;
        Ok(Sample::of(tree.trim()))
    })
}

pub(super) fn directories(world: &World) -> Try<Vec<Group>> {
    let files = world.options.files;
    let kind = world
        .rig
        .run(&world.rig.root, &["stat", "-f", "-c", "%T", "."])?;
    let found = backends(world, "materialize")?;
    let mut groups = Vec::new();
    for template in [false, true] {
        let mut ways = vec![laid_out_by_git(world, files)];
        if world.rig.has("git-cow") && template {
            ways.push(laid_out_by_cow(world, files));
        }
        for backend in &found {
            let at_most = match (backend.as_str(), template, kind.trim()) {
                ("checkout", false, _) => Some(0.6),
                ("checkout", true, _) => Some(0.3),
                ("reflink", true, "btrfs") => Some(0.05),
                ("reflink", true, _) => Some(0.5),
                _ => None,
            };
            let name = format!("git vws materialize, settle ({backend})");
            let way = Way::new(name, move || laid_out(world, files, backend, template));
            let bars = at_most.map(|at_most| Bar {
                limit: Limit::Part("lay out"),
                at_most,
            });
            let headline = match template {
                true => format!("a directory that stays ({backend}, template)"),
                false => format!("a directory that stays ({backend})"),
            };
            ways.push(way.bars(bars.as_slice()).headline(headline));
        }
        let state = if template {
            "template ready"
        } else {
            "no template"
        };
        let title = format!("Lay out and remove, {} files, {state}", grouped(files));
        groups.push(measure(world, title, How::default(), ways));
    }
    Ok(groups)
}

/// The witness: git's own tree of what lies there.
fn laid(world: &World, files: usize, tool: Tool, at: &Path, before: u64) -> Try<Sample> {
    let repo = world.repo_as_it_is(files, tool)?;
    let used = world.rig.meter.used(&repo.places())?.saturating_sub(before);
    let changed = world.rig.run(at, &["git", "status", "--porcelain"])?;
    if !changed.is_empty() {
        return Err(format!(
            "{} paths differ from what was laid out",
            changed.lines().count()
        ));
    }
    let mut sample = Sample::of(repo.as_it_is(world.rig, at)?);
    sample.peak = Some(used);
    Ok(sample)
}

fn laid_out_by_git<'a>(world: &'a World, files: usize) -> Way<'a> {
    Way::new("git worktree add, remove", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Worktree)?);
        let path = repo.tree_of("a").display().to_string();
        let before = rig.meter.used(&repo.places())?;
        let add = ["git", "worktree", "add", "-q", "--detach", &path];
        rig.timed("lay out", || rig.run(&repo.top, &add).map(drop))?;
        let sample = laid(world, files, Tool::Worktree, &repo.tree_of("a"), before)?;
        let remove = ["git", "worktree", "remove", "--force", &path];
        rig.timed("remove", || rig.run(&repo.top, &remove).map(drop))?;
        Ok(sample)
    })
}

fn laid_out_by_cow<'a>(world: &'a World, files: usize) -> Way<'a> {
    Way::new("git-cow add, remove", move || {
        let (rig, repo) = (world.rig, world.repo(files, Tool::Cow)?);
        // The first makes git-cow's own template.
        let first = repo.tree_of("first").display().to_string();
        rig.run(&repo.top, &["git-cow", "add", "-b", "first", &first])?;
        let path = repo.tree_of("a").display().to_string();
        let before = rig.meter.used(&repo.places())?;
        let add = ["git-cow", "add", "-b", "a", &path];
        rig.timed("lay out", || rig.run(&repo.top, &add).map(drop))?;
        let sample = laid(world, files, Tool::Cow, &repo.tree_of("a"), before)?;
        let remove = ["git-cow", "remove", "--force", &path];
        rig.timed("remove", || rig.run(&repo.top, &remove).map(drop))?;
        Ok(sample)
    })
}

fn laid_out(world: &World, files: usize, backend: &str, template: bool) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
    match template {
        true => rig.run(&repo.top, &["vws", "template", "warm"])?,
        false => rig.run(&repo.top, &["vws", "template", "prune", "--max-bytes=0"])?,
    };
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
    )?;
    let before = rig.meter.used(&repo.places())?;
    let option = format!("--backend={backend}");
    let words = ["vws", "materialize", &option, "a"];
    let made = rig.timed("lay out", || rig.run(&repo.top, &words))?;
    let sample = laid(
        world,
        files,
        Tool::Vws,
        Path::new(value(&made, "directory")?),
        before,
    )?;
    rig.timed("remove", || {
        rig.run(&repo.top, &["vws", "settle", "-q", "a"]).map(drop)
    })?;
    Ok(sample)
}
