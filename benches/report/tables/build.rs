//! A warm build: a cargo workspace that is built in the user's checkout, and then by an agent.

use std::path::Path;

use super::super::Try;
use super::super::fixture::World;
use super::super::measure::{Group, How, Sample, Way, measure};
use super::super::rig::Trace;

pub(super) fn table(world: &World) -> Try<Vec<Group>> {
    if !world.rig.has("cargo") {
        world.remark("A warm build is not measured: there is no cargo in PATH");
        return Ok(Vec::new());
    }
    let crates = world.options.crates;
    let theirs = make(world, "build-worktree", crates)?;
    let ours = make(world, "build-vws", crates)?;
    world.rig.run(&ours, &["vws", "template", "warm"])?;
    let mut groups = Vec::new();
    for (what, edits) in [("no edit", false), ("one crate edited", true)] {
        let (theirs, ours) = (&theirs, &ours);
        let cold = Way::new("git worktree", move || {
            in_worktree(world, theirs, edits, crates)
        });
        let warm = Way::new("git vws exec", move || in_exec(world, ours, edits));
        let title = format!("cargo build of {crates} crates, {what}");
        let how = How {
            trace: Trace::Nothing,
            ..How::default()
        };
        groups.push(measure(
            world,
            &title,
            how,
            vec![cold, warm.headline(&title)],
        ));
    }
    Ok(groups)
}

/// Crates that the last one depends on, all of them; built once.
fn make(world: &World, name: &str, crates: usize) -> Try<std::path::PathBuf> {
    let top = world.rig.root.join(name);
    let write = |path: &str, text: &str| -> Try<()> {
        let path = top.join(path);
        let parent = path.parent().unwrap_or(Path::new("/"));
        let written = std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&path, text));
        written.map_err(|e| format!("can't write {path:?}: {e}"))
    };
    let (mut needs, mut uses) = (String::new(), String::new());
    let package = |name: &str| {
        format!(
            "[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n[dependencies]\n"
        )
    };
    for n in 1..crates {
        let name = format!("part{n:02}");
        write(&format!("{name}/Cargo.toml"), &package(&name))?;
        let body = format!(
            "/// A part.\npub fn value() -> Vec<String> {{ vec![format!(\"{{:?}}\", {n})] }}\n"
        );
        write(&format!("{name}/src/lib.rs"), &body)?;
        needs.push_str(&format!("{name} = {{ path = \"../{name}\" }}\n"));
        uses.push_str(&format!("    println!(\"{{:?}}\", {name}::value());\n"));
    }
    write("whole/Cargo.toml", &format!("{}{needs}", package("whole")))?;
    write("whole/src/main.rs", &format!("fn main() {{\n{uses}}}\n"))?;
    write(
        "Cargo.toml",
        "[workspace]\nresolver = \"2\"\nmembers = [\"part*\", \"whole\"]\n",
    )?;
    write(".gitignore", "/target\n")?;
    let rig = world.rig;
    rig.run(&top, &["git", "init", "-q"])?;
    rig.run(&top, &["cargo", "build", "--offline", "-q"])?;
    rig.run(&top, &["git", "add", "-A"])?;
    rig.run(&top, &["git", "commit", "-qm", "start"])?;
    Ok(top)
}

const BUILD: &str = "cargo build --offline 2>&1 && ./target/debug/whole";
/// A line more in the first crate; what is built must say so.
const EDIT: &str = "sed -i 's/vec!\\[/vec![\"edited\".to_owned(), /' part01/src/lib.rs && ";

fn script(edits: bool) -> String {
    match edits {
        true => format!("{EDIT}{BUILD}"),
        false => BUILD.to_owned(),
    }
}

/// The witness: what the program that was built prints. How many crates were built is checked.
fn sample(printed: &str, built: std::ops::RangeInclusive<usize>) -> Try<Sample> {
    let is_built = |line: &&str| line.trim_start().starts_with("Compiling ");
    let count = printed.lines().filter(is_built).count();
    if !built.contains(&count) {
        return Err(format!("{count} crates were built, not {built:?}"));
    }
    let lines = printed.lines().filter(|line| line.starts_with('['));
    Ok(Sample::of(lines.collect::<Vec<_>>().join(" ")))
}

fn in_worktree(world: &World, top: &Path, edits: bool, crates: usize) -> Try<Sample> {
    let rig = world.rig;
    let at = world.rig.root.join("build-tree");
    let path = at.display().to_string();
    let _ = rig.ask(top, &["git", "worktree", "remove", "--force", &path])?;
    let printed = rig.timed("", || {
        rig.run(top, &["git", "worktree", "add", "-q", "--detach", &path])?;
        rig.run(&at, &["sh", "-c", &script(edits)])
    })?;
    sample(&printed, crates..=crates)
}

fn in_exec(world: &World, top: &Path, edits: bool) -> Try<Sample> {
    let rig = world.rig;
    if rig
        .ask(top, &["vws", "overlay", "show", "a"])?
        .status
        .success()
    {
        rig.run(top, &["vws", "overlay", "dispose", "--force", "a"])?;
    }
    rig.run(top, &["vws", "overlay", "create", "-q", "a"])?;
    let words = ["vws", "exec", "-q", "a", "--", "sh", "-c", &script(edits)];
    let printed = rig.timed("", || rig.run(top, &words))?;
    sample(&printed, if edits { 2..=2 } else { 0..=0 })
}
