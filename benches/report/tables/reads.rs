//! Reading the same files again and again, as a refresh of a model's context does.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;

use super::super::Try;
use super::super::batch::Batch;
use super::super::fixture::{Numbers, Repo, Tool, World};
use super::super::measure::{Group, How, Sample, Way, measure};
use super::super::rig::Trace;
use super::{grouped, value};

const FILES: usize = 25;
const ROUNDS: usize = 100;

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    let sizes = [60, world.options.files];
    sizes.into_iter().map(|files| group(world, files)).collect()
}

fn paths(repo: &Repo) -> Vec<String> {
    let step = (repo.paths.len() / FILES).max(1);
    repo.paths
        .iter()
        .step_by(step)
        .take(FILES)
        .cloned()
        .collect()
}

/// Sums up what was read: the witness.
#[derive(Default)]
struct Sum(u64);

impl Sum {
    fn add(&mut self, bytes: &[u8]) {
        let mut numbers = Numbers(self.0 ^ bytes.len() as u64);
        let ends = bytes
            .first()
            .into_iter()
            .chain(bytes.last())
            .chain(bytes.get(bytes.len() / 2));
        ends.for_each(|byte| numbers.0 = numbers.0.rotate_left(8) ^ u64::from(*byte));
        self.0 = numbers.next();
    }
}

/// All rounds over all files, through whatever gives a file's bytes.
fn rounds(world: &World, repo: &Repo, mut read: impl FnMut(&str) -> Try<Vec<u8>>) -> Try<Sample> {
    let (paths, mut sum) = (paths(repo), Sum::default());
    world.rig.timed("", || {
        for _ in 0..ROUNDS {
            for path in &paths {
                sum.add(&read(path)?);
            }
        }
        Ok(())
    })?;
    Ok(Sample::of(format!("{:x}", sum.0)))
}

fn from_files(world: &World, repo: &Repo, at: &Path) -> Try<Sample> {
    let read =
        |path: &str| std::fs::read(at.join(path)).map_err(|e| format!("can't read {path}: {e}"));
    rounds(world, repo, read)
}

fn group(world: &World, files: usize) -> Try<Group> {
    let worktree = Way::new("git worktree: the files", move || {
        let repo = world.repo(files, Tool::Worktree)?;
        let at = repo.tree_of("a");
        let path = at.display().to_string();
        world.rig.run(
            &repo.top,
            &["git", "worktree", "add", "-q", "-b", "a", &path],
        )?;
        from_files(world, &repo, &at)
    });
    let cat_file = Way::new("git cat-file --batch", move || {
        let repo = world.repo(files, Tool::Worktree)?;
        let mut child = world
            .rig
            .spawn(&repo.top, &["git", "cat-file", "--batch"])?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("cat-file without pipes".to_owned());
        };
        let mut output = BufReader::new(output);
        let broken = |e: std::io::Error| format!("cat-file broke off: {e}");
        let sample = rounds(world, &repo, |path| {
            input
                .write_all(format!("HEAD:{path}\n").as_bytes())
                .map_err(broken)?;
            let mut head = String::new();
            output.read_line(&mut head).map_err(broken)?;
            let size = head
                .trim_end()
                .rsplit(' ')
                .next()
                .and_then(|size| size.parse().ok());
            let size: usize = size.ok_or_else(|| format!("cat-file answered '{head}'"))?;
            let mut body = vec![0; size + 1];
            output.read_exact(&mut body).map_err(broken)?;
            body.pop();
            Ok(body)
        })?;
        drop(input);
        child.wait().map_err(broken)?;
        Ok(sample)
    });
    let view = Way::new("git vws batch, no directory", move || {
        in_batch(world, files, false)
    });
    let open = Way::new("git vws batch, a directory open", move || {
        in_batch(world, files, true)
    });
    let how = How {
        trace: Trace::Nothing,
        per: FILES * ROUNDS,
        ..How::default()
    };
    let title = format!("At {} files, a read", grouped(files));
    Ok(measure(
        world,
        title,
        how,
        vec![worktree, cat_file, view, open],
    ))
}

fn in_batch(world: &World, files: usize, open: bool) -> Try<Sample> {
    let (rig, repo) = (world.rig, world.repo(files, Tool::Vws)?);
    rig.run(
        &repo.top,
        &["vws", "overlay", "create", "-q", "--base=HEAD", "a"],
    )?;
    if open {
        let made = rig.run(&repo.top, &["vws", "materialize", "a"])?;
        value(&made, "directory")?;
    }
    let mut batch = Batch::start(rig, &repo.top)?;
    let sample = rounds(world, &repo, |path| {
        batch.ask(&format!("read a {path}"), None)
    })?;
    batch.end()?;
    Ok(sample)
}
