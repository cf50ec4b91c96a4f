//! The manual: `man/` is what `install-docs` writes, git finds it, every example in it runs, and the
//! formats page says what the commands print.
//!
//! After a change of options or prose: `GIT_VWS_BLESS=1 cargo test --test manual`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    missing_docs,
    unused_must_use
)]

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use common::Sandbox;
use serde_json::Value;

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A repository as the examples expect it.
fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "hello\nhello world\n");
    sandbox.write("src/main.c", "int main(void) { return 0; }\n");
    sandbox.write("docs/a.md", "a\n");
    sandbox.commit("start");
    sandbox
}

fn installed(sandbox: &Sandbox) -> PathBuf {
    let prefix = sandbox.root().join("usr");
    let option = format!("--prefix={}", prefix.display());
    sandbox.binary(&["install-docs", &option], b"").success();
    prefix
}

/// File names and contents of a folder.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let entries = fs::read_dir(folder).map(|all| all.flatten().collect());
    let entries: Vec<_> = entries.unwrap_or_default();
    entries
        .into_iter()
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read_to_string(entry.path()).unwrap())
        })
        .collect()
}

#[test]
fn the_committed_pages_are_what_the_program_writes() {
    let sandbox = Sandbox::without_repo();
    let prefix = installed(&sandbox);
    let mut written = files(&prefix.join("share/man/man1"));
    written.extend(files(&prefix.join("share/man/man7")));
    assert!(written.len() > 20, "{:?}", written.keys());
    let committed = package().join("man");
    if std::env::var_os("GIT_VWS_BLESS").is_some_and(|value| value == "1") {
        fs::create_dir_all(&committed).unwrap();
        for name in files(&committed).keys() {
            fs::remove_file(committed.join(name)).unwrap();
        }
        for (name, text) in &written {
            fs::write(committed.join(name), text).unwrap();
        }
    }
    let found = files(&committed);
    let hint = "GIT_VWS_BLESS=1 cargo test --test manual writes it";
    let names: Vec<_> = found.keys().collect();
    assert_eq!(names, written.keys().collect::<Vec<_>>(), "{hint}");
    for (name, text) in &written {
        assert!(found[name] == *text, "man/{name} is out of date: {hint}");
    }
}

#[test]
fn git_finds_the_pages_where_they_are_installed() {
    let sandbox = started();
    let prefix = installed(&sandbox);
    if sandbox
        .command("man")
        .arg("-w")
        .arg("man")
        .output()
        .is_err()
    {
        return;
    }
    for args in [&["help", "vws"][..], &["vws", "--help"]] {
        let mut command = sandbox.command("git");
        command
            .args(args)
            .env("MANPATH", prefix.join("share/man"))
            .env("MANPAGER", "cat")
            .env("MANWIDTH", "80");
        let outcome = sandbox.outcome(command, b"").success();
        let text = String::from_utf8_lossy(outcome.stdout());
        assert!(text.contains("git vws <command>"), "{text}");
    }
}

/// One line of the examples.
#[derive(Debug)]
struct Step {
    command: String,
    code: i32,
}

/// The commands of a text: those that are shown (`    $ ...`, with `# exits with <n>` where it is
/// not 0), and those that prepare (`% ...`).
fn steps(text: &str) -> Vec<Step> {
    let mut examples = false;
    let mut steps = Vec::new();
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            examples = heading == "EXAMPLES";
        }
        let shown = line.strip_prefix("    $ ");
        let Some(command) = shown.or(line.strip_prefix("% ")).filter(|_| examples) else {
            continue;
        };
        let code = command.split_once("# exits with ").map_or(0, |(_, rest)| {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        });
        let command = command.to_owned();
        steps.push(Step { command, code });
    }
    steps
}

#[test]
fn every_example_runs() {
    let mut failed = Vec::new();
    let mut ran = 0;
    for (name, text) in files(&package().join("src/cli/manual/text")) {
        let sandbox = started();
        for Step { command, code } in steps(&text) {
            let mut shell = sandbox.command("sh");
            shell.args(["-c", &command]);
            let outcome = sandbox.outcome(shell, b"");
            ran += 1;
            if outcome.code() != Some(code) {
                failed.push(format!("{name}: {command}\nexpected {code}:\n{outcome}\n"));
            }
        }
    }
    assert!(ran > 50, "only {ran} examples were found");
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// What the formats page says of records, or of path lines in JSON: the commands, and the keys.
fn documented(lines: bool) -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(package().join("src/cli/manual/text/formats.txt")).unwrap();
    let text = text.split("# RECORDS\n").nth(1).unwrap();
    let text = text.split("\n# ").next().unwrap();
    let (records, path_lines) = text.split_once("Path lines have").unwrap();
    let text = if lines { path_lines } else { records };
    let mut found = BTreeMap::new();
    for block in text.split("\n= ").skip(1) {
        let (term, rest) = block.split_once('\n').unwrap();
        let body = rest.split("\n\n").next().unwrap();
        let keys = body.split('`').skip(1).step_by(2);
        let keys = keys.map(|key| match key.strip_suffix('*') {
            Some(
                many @ ("snap" | "step" | "backend" | "parent" | "conflict" | "path" | "form"
                | "way" | "limit"),
            ) => {
                format!("{many}s")
            }
            _ => key.trim_matches(['[', ']', '*']).to_owned(),
        });
        found.insert(term.to_owned(), keys.collect());
    }
    found
}

#[test]
fn the_formats_page_has_every_key_that_is_printed() {
    let records = documented(false);
    let lines = documented(true);
    let sandbox = started();
    let script = "exec 2>&1; set -e
        git vws overlay create a >/dev/null
        echo x | git vws overlay write a x >/dev/null
        git vws propose a >/dev/null
        git vws accept a >/dev/null
        for agent in y z; do
            git vws overlay create $agent >/dev/null
            echo $agent | git vws overlay write $agent README.md >/dev/null
        done";
    let mut shell = sandbox.command("sh");
    shell.args(["-c", script]);
    sandbox.outcome(shell, b"").success();
    // The documented block, the shape, and the command.
    let cases: &[(&str, bool, &str)] = &[
        ("overlay create", true, "overlay create --json b"),
        ("overlay list, overlay show", true, "overlay list --json"),
        ("overlay list, overlay show", true, "overlay show --json b"),
        (
            "overlay write, delete, rename, chmod, symlink, discard, restore",
            true,
            "overlay delete --json b docs/a.md",
        ),
        ("overlay ls", false, "overlay ls --json b"),
        ("overlay stat", true, "overlay stat --json b README.md"),
        ("overlay diff", false, "overlay diff --json --numstat b"),
        ("base", true, "base --json"),
        ("snap", true, "snap --json b"),
        ("context", true, "context --json b"),
        ("materialize", true, "materialize --json b"),
        ("capture", true, "capture --json b"),
        ("settle", true, "settle --json b"),
        ("propose, changes, run", false, "propose --json b"),
        ("propose, changes, run", false, "run --json c -- touch c"),
        ("conflicts", false, "conflicts --json"),
        ("accept", false, "accept --json b"),
        ("undo", false, "undo --json"),
        ("reject", false, "reject --json b"),
        ("journal", true, "journal --json"),
        ("version", true, "version --json"),
        ("check", true, "check --json"),
        ("template warm", true, "template warm --json"),
        ("template list", true, "template list --json"),
        (
            "template prune",
            true,
            "template prune --json --max-bytes=0",
        ),
        ("stack", true, "stack --json s --on=y"),
        ("stack --status", true, "stack --status --json s"),
        ("stack --graph", true, "stack --graph --json s"),
        ("recut, rebase-onto", true, "rebase-onto --json s HEAD"),
        ("overlay commit", true, "overlay commit --json y"),
        ("overlay apply", true, "overlay apply --json y < patch"),
        (
            "import",
            true,
            "import --json z --reference=- -- README.md < reference",
        ),
        ("log", true, "log --json y"),
        ("context --check", false, "context --check --json y < blob"),
        ("overlay dispose", true, "overlay dispose --json --force c"),
    ];
    let mut seen = BTreeSet::new();
    for (block, is_record, args) in cases {
        let (args, input) = args.split_once(" < ").unwrap_or((args, ""));
        let args: Vec<&str> = args.split(' ').collect();
        let input = match input {
            "" => Vec::new(),
            "patch" => b"diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n".to_vec(),
            "reference" => sandbox.vws(&["reference", "y", "README.md"]).stdout().to_vec(),
            _ => {
                let blob = sandbox.git_text(&["rev-parse", "HEAD:README.md"]);
                format!("{blob} README.md\n").into_bytes()
            }
        };
        let outcome = sandbox.vws_with_input(&args, &input);
        let wanted = if args[0] == "conflicts" { 1 } else { 0 };
        assert_eq!(outcome.code(), Some(wanted), "{outcome}");
        let first = outcome
            .stdout()
            .split(|byte| *byte == b'\n')
            .next()
            .unwrap();
        let object: Value = serde_json::from_slice(first).unwrap();
        let mut printed: BTreeSet<String> = object.as_object().unwrap().keys().cloned().collect();
        assert!(printed.remove("v"), "{outcome}");
        let mut wanted: BTreeSet<String> = match is_record {
            true => records[*block].iter().map(|key| json_key(key)).collect(),
            false => lines[*block].clone(),
        };
        // "what ... has" names another block.
        for (name, whole) in [
            ("capture", "capture"),
            (
                "overlay write",
                "overlay write, delete, rename, chmod, symlink, discard, restore",
            ),
        ] {
            if *is_record && wanted.remove(name) {
                wanted.extend(records[whole].iter().map(|key| json_key(key)));
            }
        }
        assert_eq!(printed, wanted, "{args:?}");
        seen.insert(*block);
    }
    let all: BTreeSet<&str> = records
        .keys()
        .chain(lines.keys())
        .map(String::as_str)
        .collect();
    assert_eq!(
        seen, all,
        "each block of the page is held against a command"
    );
}

/// The key of an attribute in JSON: camel case.
fn json_key(key: &str) -> String {
    let mut name = String::new();
    for (at, part) in key.split('-').enumerate() {
        match at {
            0 => name.push_str(part),
            _ => name.push_str(&format!("{}{}", part[..1].to_uppercase(), &part[1..])),
        }
    }
    name
}

#[test]
fn a_repositorys_completions_come_live_in_bash() {
    let sandbox = with_agents();
    // As above.
    if sandbox.command("bash").arg("--version").output().is_err() {
        return;
    }
    let script = package().join("completions/git-vws.bash");
    // As git's completion calls it, and as bash calls it for the program itself.
    let by_git = |words: &[&str]| {
        let mut all = vec!["git", "-C", ".", "vws"];
        all.extend(words);
        let body = "words=(\"${@:2}\"); cword=$((${#words[@]} - 1)); _git_vws";
        candidates(&sandbox, &script, body, &all)
    };
    let by_bash = |words: &[&str]| {
        let mut all = vec!["git-vws"];
        all.extend(words);
        let body = "COMP_WORDS=(\"${@:2}\"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); __git_vws_main";
        candidates(&sandbox, &script, body, &all)
    };
    assert_eq!(by_git(&["jour"]), ["journal "]);
    assert_eq!(by_git(&["overlay", "create", "--ba"]), ["--base="]);
    assert_eq!(by_git(&["overlay", "create", "--base=ma"]), ["main "]);
    assert_eq!(by_git(&["overlay", "show", ""]), ["alice ", "bob "]);
    assert_eq!(
        by_git(&["overlay", "read", "alice", ""]),
        ["README.md ", "docs/", "src/"]
    );
    assert_eq!(
        by_git(&["overlay", "read", "alice", "src/m"]),
        ["src/main.c "]
    );
    assert_eq!(by_git(&["accept", ""]), ["bob "]);
    assert_eq!(by_git(&["accept", "bob", ""]), ["a\\ b ", "made "]);
    assert_eq!(by_git(&["undo", ""]), ["1 "]);
    assert_eq!(by_bash(&["materialize", "al"]), ["alice "]);
    assert_eq!(
        by_bash(&["overlay", "create", "--base", "=", "ma"]),
        ["main "]
    );
    let files = by_bash(&["accept", "--all", "--dirty-from", "REA"]);
    assert_eq!(files, ["README.md"]);
}

fn candidates(sandbox: &Sandbox, script: &Path, body: &str, words: &[&str]) -> Vec<String> {
    let mut bash = sandbox.command("bash");
    let text = format!(". \"$1\"; {body}; printf '%s\\n' \"${{COMPREPLY[@]}}\"");
    bash.args(["--norc", "-c", &text, "bash"])
        .arg(script)
        .args(words);
    let outcome = sandbox.outcome(bash, b"").success();
    assert_eq!(outcome.stderr(), b"", "{outcome}");
    let text = String::from_utf8(outcome.stdout().to_vec()).unwrap();
    let mut all: Vec<_> = text
        .lines()
        .filter(|l| !l.is_empty())
        .map(str::to_owned)
        .collect();
    all.sort();
    all
}

/// A sandbox with two workspaces, one of which offers two paths and was half accepted.
fn with_agents() -> Sandbox {
    let sandbox = started();
    sandbox.vws(&["overlay", "create", "alice"]).success();
    sandbox
        .vws(&["run", "bob", "--", "touch", "a b", "made"])
        .success();
    sandbox.vws(&["accept", "bob", "--", "made"]).success();
    sandbox
}

/// What a shell answers, a candidate a line, sorted; `None` (and a visible skip) where there is none.
fn completed(sandbox: &Sandbox, shell: &str, script: &str, words: &[&str]) -> Option<Vec<String>> {
    if sandbox.command(shell).arg("--version").output().is_err() {
        eprintln!("skipped: there is no {shell} here");
        return None;
    }
    let mut command = sandbox.command(shell);
    command.args(["-c", script]);
    if shell == "zsh" {
        command.arg("zsh");
    }
    command.args(words);
    let outcome = sandbox.outcome(command, b"").success();
    let text = String::from_utf8(outcome.stdout().to_vec()).unwrap();
    let mut all: Vec<_> = text.lines().map(str::to_owned).collect();
    all.sort();
    Some(all)
}

#[test]
fn completions_come_live_in_fish() {
    let sandbox = with_agents();
    let file = package().join("completions/git-vws.fish");
    let script = format!("source '{}'; complete -C \"$argv\"", file.display());
    let ask = |line: &str| completed(&sandbox, "fish", &script, &[line]);
    let Some(shown) = ask("git-vws overlay show ") else {
        return;
    };
    let names: Vec<_> = shown
        .iter()
        .map(|line| line.split('\t').next().unwrap())
        .collect();
    assert_eq!(names, ["alice", "bob"]);
    let one = |line: &str| ask(line).map(|all| all.join("|"));
    assert_eq!(
        one("git-vws overlay read alice src/m").as_deref(),
        Some("src/main.c")
    );
    assert!(one("git-vws jour").is_some_and(|text| text.starts_with("journal\t")));
    assert_eq!(
        one("git-vws accept bob a").as_deref(),
        Some("a b\tproposed")
    );
    let undo = one("git -C . vws undo ");
    assert!(
        undo.is_some_and(|text| text.starts_with("1\t")),
        "{:?}",
        one("git vws undo ")
    );
}

#[test]
fn completions_come_live_in_zsh() {
    let sandbox = with_agents();
    // The function's own work, with what it tells zsh caught: `compadd` and its like need a line editor.
    let file = package().join("completions/_git-vws");
    let script = format!(
        "compadd () {{ local last=$@[-1]; print -rl -- ${{(P)last}} }}; _files () {{ print :files }}
         _call_program () {{ shift; eval \"$@\" }}; compset () {{ : }}; _command_names () {{ print :command }}
         words=(git-vws \"$@\"); CURRENT=$#words; source '{}'",
        file.display()
    );
    let ask = |words: &[&str]| completed(&sandbox, "zsh", &script, words);
    let Some(names) = ask(&["overlay", "show", ""]) else {
        return;
    };
    assert_eq!(names, ["alice", "bob"]);
    assert_eq!(
        ask(&["overlay", "read", "alice", "src/m"]).unwrap(),
        ["src/main.c"]
    );
    assert_eq!(
        ask(&["overlay", "read", "alice", ""]).unwrap(),
        ["README.md", "docs/", "src/"]
    );
    assert_eq!(ask(&["accept", "bob", ""]).unwrap(), ["a b", "made"]);
    assert_eq!(ask(&["undo", ""]).unwrap(), ["1"]);
    assert_eq!(ask(&["overlay", "create", "--ba"]).unwrap(), ["--base="]);
}
