//! Every command of the README runs, in its order, in a sandbox; those of its terminal picture print
//! what it shows.
#![allow(clippy::unwrap_used, missing_docs, unused_must_use)]

mod common;

use common::{BINARY, Sandbox};

const README: &str = include_str!("../README.md");
const LINES: usize = 150;

/// The indented lines of a section.
fn literal(heading: &str) -> Vec<&'static str> {
    let section = README.split("\n## ").find(|one| one.starts_with(heading));
    let lines = section.unwrap().lines();
    lines.filter_map(|line| line.strip_prefix("    ")).collect()
}

fn shell(sandbox: &Sandbox, command: &str) -> common::Outcome {
    let mut shell = sandbox.command("sh");
    shell.args(["-c", command]);
    sandbox.outcome(shell, b"")
}

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "a clone\n");
    sandbox.commit("start");
    sandbox
}

#[test]
fn it_is_short() {
    assert!(README.lines().count() <= LINES);
}

#[test]
fn the_two_commands_run() {
    let sandbox = started();
    let commands = literal("Two commands");
    assert_eq!(commands.len(), 2, "{commands:?}");
    // What cargo would build and run is the program under test; what it would test is this.
    let run = commands[0].strip_prefix("cargo run --release --").unwrap();
    shell(&sandbox, &format!("{BINARY}{run}")).success();
    assert_eq!(commands[1], "cargo test");
    shell(&sandbox, "git vws accept demo").success();
    assert!(!sandbox.read("made-by-demo.txt").is_empty());
    shell(&sandbox, "git vws undo").success();
    assert!(!sandbox.repo().join("made-by-demo.txt").exists());
}

#[test]
fn the_picture_is_what_is_printed() {
    let sandbox = started();
    let picture = literal("What it looks like").join("\n");
    let mut commands = 0;
    for part in picture.split("$ ").skip(1) {
        let (command, shown) = part.split_once('\n').unwrap();
        let outcome = shell(&sandbox, &format!("{command} 2>&1")).success();
        let printed = String::from_utf8(outcome.stdout().to_vec()).unwrap();
        // An empty line of the picture loses its indent, and so does one of the output.
        let text = |text: &str| -> Vec<String> {
            let lines = text.lines().filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        };
        assert_eq!(text(&printed), text(shown), "{command}");
        commands += 1;
    }
    assert_eq!(commands, 4);
}

#[test]
fn what_is_installed_is_found() {
    let sandbox = started();
    let commands = literal("Install");
    assert_eq!(commands.len(), 2, "{commands:?}");
    assert_eq!(commands[0], "cargo install --path .");
    shell(&sandbox, commands[1]).success();
    for place in ["man/man1/git-vws.1", "bash-completion/completions/git-vws"] {
        let path = sandbox.home().join(".local/share").join(place);
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn its_figures_are_those_of_the_report() {
    let report = include_str!("../docs/report.md");
    let (_, rest) = README.split_once("<!-- report -->").unwrap();
    let (figures, _) = rest.split_once("<!-- /report -->").unwrap();
    let rows: Vec<_> = figures
        .lines()
        .filter(|line| line.starts_with("| "))
        .collect();
    assert!(rows.len() > 10, "{figures}");
    for row in rows {
        assert!(report.lines().any(|line| line == row), "{row}");
    }
}
