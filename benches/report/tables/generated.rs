//! A tool writes many files that nobody ignores: what it takes to import and offer them.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::super::Try;
use super::super::fixture::{Numbers, Tool, World};
use super::super::measure::{Group, How, Limit, Sample, Way, measure};
use super::agents::ready;
use super::exec::backends;
use super::{count_of, grouped, value};

const BYTES: usize = 8192;

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    let sizes = [60, world.options.files];
    sizes.into_iter().map(|files| group(world, files)).collect()
}

/// What a generator of code writes: each file its own, all much alike.
fn generate(into: &Path, files: usize) -> Try<()> {
    let mut numbers = Numbers(7);
    for file in 0..files {
        let folder = into.join(format!("generated/g{:02}", file % 50));
        let write = || -> std::io::Result<()> {
            std::fs::create_dir_all(&folder)?;
            let mut text = String::new();
            while text.len() < BYTES {
                let number = numbers.next() >> 40;
                text.push_str(&format!(
                    "pub const VALUE_{file}_{}: u64 = {number};\n",
                    text.len()
                ));
            }
            std::fs::write(folder.join(format!("f{file}.rs")), &text[..BYTES])
        };
        let mut write = write;
        write().map_err(|e| format!("can't generate in {folder:?}: {e}"))?;
    }
    Ok(())
}

fn group(world: &World, files: usize) -> Try<Group> {
    let count = world.options.generated;
    let backends = backends(world, "materialize")?;
    let add = Way::new("git worktree: git add -A", move || {
        in_worktree(world, files, false)
    });
    let commit = Way::new("git worktree: git add -A, commit", move || {
        in_worktree(world, files, true)
    });
    let mut ways = vec![add, commit];
    for backend in &backends {
        let name = format!("git vws capture, propose ({backend})");
        let way = Way::new(name, move || in_directory(world, files, backend));
        let mut way = way.bar(Limit::Total, 1.0);
        if files == world.options.files {
            let headline = format!("{} new files (git add = 1; {backend})", grouped(count));
            way = way.headline(headline);
        }
        ways.push(way);
    }
    let exec = Way::new("git vws exec (after the command), propose", move || {
        after_exec(world, files)
    });
    ways.push(exec.bar(Limit::Total, 1.0));
    let title = format!(
        "{} of 8 KB, {} files before",
        count_of(count, "file"),
        grouped(files)
    );
    Ok(measure(world, title, How::default(), ways))
}

fn in_worktree(world: &World, files: usize, commit: bool) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Worktree)?);
    let at = repo.tree_of("a");
    let path = at.display().to_string();
    rig.run(
        &repo.top,
        &["git", "worktree", "add", "-q", "-b", "a", &path],
    )?;
    generate(&at, world.options.generated)?;
    forget_objects(world, &repo.top)?;
    let before = rig.meter.used(&repo.places())?;
    rig.timed("add", || rig.run(&at, &["git", "add", "-A"]).map(drop))?;
    if commit {
        rig.timed("commit", || {
            rig.run(&at, &["git", "commit", "-qm", "generated"])
                .map(drop)
        })?;
    }
    let used = rig.meter.used(&repo.places())?.saturating_sub(before);
    let witness = rig.run(&at, &["git", "write-tree"])?;
    let mut sample = Sample::of(witness.trim());
    sample.peak = Some(used);
    Ok(sample)
}

/// What an earlier repetition wrote would not be written again.
fn forget_objects(world: &World, top: &Path) -> Try<()> {
    for words in [
        &["git", "reflog", "expire", "--expire=now", "--all"][..],
        &["git", "prune", "--expire=now"],
        &["git", "repack", "-qad"],
    ] {
        world.rig.run(top, words)?;
    }
    Ok(())
}

fn in_directory(world: &World, files: usize, backend: &str) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
    forget_objects(world, &repo.top)?;
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
    )?;
    let option = format!("--backend={backend}");
    let made = rig.run(&repo.top, &["vws", "materialize", &option, "a"])?;
    generate(
        Path::new(value(&made, "directory")?),
        world.options.generated,
    )?;
    let before = rig.meter.used(&repo.places())?;
    rig.timed("capture", || {
        rig.run(&repo.top, &["vws", "capture", "-q", "a"]).map(drop)
    })?;
    rig.timed("propose", || {
        rig.run(&repo.top, &["vws", "propose", "a"]).map(drop)
    })?;
    let used = rig.meter.used(&repo.places())?.saturating_sub(before);
    let mut sample = Sample::of(
        rig.run(&repo.top, &["git", "rev-parse", "relo/a^{tree}"])?
            .trim(),
    );
    sample.peak = Some(used);
    Ok(sample)
}

/// The files come from beside the repository by `cp`; the clock starts when that is done.
fn after_exec(world: &World, files: usize) -> Try<Sample> {
    let (rig, repo) = (world.rig, ready(world, files)?);
    forget_objects(world, &repo.top)?;
    let source = rig.root.join("generator");
    if !source.exists() {
        generate(&source, world.options.generated)?;
    }
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
    )?;
    let mark = rig.root.join("mark");
    let script = format!(
        "cp -r '{}/generated' . && sync -f . && date +%s%N >'{}'",
        source.display(),
        mark.display()
    );
    // Only what comes after the command counts; the part that the clock gave for all is dropped.
    let started = rig.timed("", || {
        rig.run(
            &repo.top,
            &["vws", "exec", "-q", "a", "--", "sh", "-c", &script],
        )?;
        Ok(SystemTime::now())
    })?;
    rig.take_parts();
    let marked = std::fs::read_to_string(&mark).map_err(|e| format!("no mark: {e}"))?;
    let marked = Duration::from_nanos(marked.trim().parse().map_err(|_| "no time in the mark")?);
    let ended = started
        .duration_since(UNIX_EPOCH)
        .map_err(|e| e.to_string())?;
    rig.add("capture", ended.saturating_sub(marked));
    rig.timed("propose", || {
        rig.run(&repo.top, &["vws", "propose", "a"]).map(drop)
    })?;
    Ok(Sample::of(
        rig.run(&repo.top, &["git", "rev-parse", "relo/a^{tree}"])?
            .trim(),
    ))
}
