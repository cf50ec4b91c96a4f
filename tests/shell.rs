//! Runs the shell suite in `t/`, so that `cargo test` is the whole truth.
//!
//! Each script is a process of its own with a time limit; its TAP report is held against its plan,
//! because a script that stops early or skips everything must not look like one that passed. What
//! was skipped is always printed, past libtest's capture.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

const TIME_LIMIT: Duration = Duration::from_secs(300);

/// What a TAP report says.
#[derive(Debug, Default, PartialEq)]
struct Report {
    passed: usize,
    failed: usize,
    known_broken: usize,
    /// `<number>: <reason>`, or the reason alone for a script skipped as a whole.
    skipped: Vec<String>,
    /// What is wrong with the report itself.
    faults: Vec<String>,
}

impl Report {
    fn is_good(&self) -> bool {
        self.failed == 0 && self.faults.is_empty()
    }
}

/// Reads a TAP report: results numbered from 1, and one plan after them that counts them all.
fn read_tap(text: &str) -> Report {
    let mut report = Report::default();
    let mut results = 0;
    let mut plan = None;
    for line in text.lines() {
        let (ok, rest) = if let Some(rest) = line.strip_prefix("ok ") {
            (true, rest)
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            (false, rest)
        } else {
            if let Some(rest) = line.strip_prefix("1..") {
                let (count, remark) = rest.split_once(" # SKIP ").unwrap_or((rest, ""));
                if plan.is_some() {
                    report.faults.push("a second plan".to_owned());
                }
                plan = count.trim().parse::<usize>().ok();
                if plan.is_none() {
                    report
                        .faults
                        .push(format!("the plan '{line}' has no number"));
                }
                if !remark.is_empty() {
                    report.skipped.push(remark.to_owned());
                }
            } else if line.starts_with("Bail out!") {
                report.faults.push(line.to_owned());
            }
            continue;
        };
        results += 1;
        if plan.is_some() {
            report
                .faults
                .push(format!("a result after the plan: '{line}'"));
        }
        let number = rest.split(' ').next().unwrap_or_default();
        if number.parse() != Ok(results) {
            report
                .faults
                .push(format!("result {results} is numbered '{number}'"));
        }
        match (ok, rest.rsplit_once(" # ").map(|(_, directive)| directive)) {
            (true, Some(directive)) if directive.starts_with("skip ") => {
                report
                    .skipped
                    .push(format!("{number}: {}", &directive[5..]));
            }
            (false, Some(directive)) if directive.starts_with("TODO ") => report.known_broken += 1,
            (true, _) => report.passed += 1,
            (false, _) => report.failed += 1,
        }
    }
    match plan {
        None => report.faults.push("no plan".to_owned()),
        Some(count) if count != results => {
            report
                .faults
                .push(format!("the plan says {count}, {results} results came"));
        }
        Some(0) if report.skipped.is_empty() => report.faults.push("no test ran".to_owned()),
        Some(_) => {}
    }
    report
}

/// How a script ended: its status, or `None` when the time limit ended it.
struct Run {
    status: Option<ExitStatus>,
    output: String,
    took: Duration,
}

/// Runs `command` in a process group of its own; at the limit the whole group is killed.
///
/// Output goes to a file, not a pipe: a process that a script leaves behind can't hold us up.
fn run_limited(mut command: Command, output: &Path, limit: Duration) -> Run {
    let file = File::create(output).expect("can't create an output file");
    let errors = file.try_clone().expect("can't clone a file handle");
    let began = Instant::now();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(file)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .unwrap_or_else(|error| panic!("can't start {:?}: {error}", command.get_program()));
    let group = Pid::from_child(&child);
    let status = loop {
        if let Some(status) = child.try_wait().expect("can't wait for a script") {
            break Some(status);
        }
        if began.elapsed() > limit {
            break None;
        }
        thread::sleep(Duration::from_millis(20));
    };
    // After the limit this ends the script; after a normal end, what it left running, if anything.
    let _nothing_left = kill_process_group(group, Signal::KILL);
    if status.is_none() {
        child.wait().expect("can't wait for a killed script");
    }
    let text = fs::read(output).expect("can't read a script's output");
    Run {
        status,
        output: String::from_utf8_lossy(&text).into_owned(),
        took: began.elapsed(),
    }
}

/// Prints to the real stderr: libtest would swallow it for a test that passes.
fn say(line: &str) {
    writeln!(std::io::stderr().lock(), "{line}").expect("can't write to stderr");
}

fn suite_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("t")
}

/// `sh`, checked once: without it every script would fail with a riddle.
fn shell() -> Command {
    let answer = Command::new("sh").args(["-c", "exit 7"]).status();
    match answer {
        Ok(status) if status.code() == Some(7) => Command::new("sh"),
        Ok(status) => {
            panic!("the shell suite needs a working 'sh'; `sh -c 'exit 7'` gave {status}")
        }
        Err(error) => panic!("the shell suite needs 'sh' in PATH: {error}"),
    }
}

fn scripts() -> Vec<PathBuf> {
    let narrowed = std::env::var("GIT_VWS_TEST_SCRIPTS").ok();
    let glob = narrowed.as_deref().map(|pattern| {
        globset::Glob::new(pattern)
            .expect("GIT_VWS_TEST_SCRIPTS is no glob")
            .compile_matcher()
    });
    let mut found: Vec<PathBuf> = fs::read_dir(suite_dir())
        .expect("can't read t/")
        .map(|entry| entry.expect("can't read t/").path())
        .filter(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or("");
            let script = name.ends_with(".sh")
                && name.starts_with('t')
                && name[1..].starts_with(|c: char| c.is_ascii_digit());
            let stem = name.trim_end_matches(".sh");
            let wanted = |glob: &globset::GlobMatcher| glob.is_match(name) || glob.is_match(stem);
            script && glob.as_ref().is_none_or(wanted)
        })
        .collect();
    found.sort();
    assert!(
        !found.is_empty(),
        "no script in t/ matches {narrowed:?} (GIT_VWS_TEST_SCRIPTS)"
    );
    found
}

/// Runs one script and returns its summary line and, when it failed, everything it printed.
fn run_script(script: &Path, output_dir: &Path, limit: Duration) -> (String, Option<String>) {
    let name = script.file_stem().unwrap_or_default().to_string_lossy();
    let mut command = shell();
    command
        .arg(script)
        .env("GIT_VWS_BINARY", env!("CARGO_BIN_EXE_git-vws"))
        .env("TEST_OUTPUT_DIRECTORY", output_dir);
    let run = run_limited(command, &output_dir.join(format!("{name}.out")), limit);
    let mut report = read_tap(&run.output);
    match run.status {
        None => report.faults.push(format!("killed after {limit:?}")),
        Some(status) if !status.success() && report.is_good() => {
            report
                .faults
                .push(format!("all tests passed, yet it ended with {status}"));
        }
        Some(status) if status.success() && report.failed > 0 => {
            report
                .faults
                .push("tests failed, yet it exits with 0".to_owned());
        }
        Some(_) => {}
    }
    let mut line = format!(
        "{name}: {} passed, {} failed, {} skipped, {} known broken ({:.1} s)",
        report.passed,
        report.failed,
        report.skipped.len(),
        report.known_broken,
        run.took.as_secs_f64()
    );
    for reason in &report.skipped {
        line += &format!("\n    skipped {reason}");
    }
    for fault in &report.faults {
        line += &format!("\n    FAULT {fault}");
    }
    let failure = (!report.is_good()).then(|| format!("==== {line}\n{}", run.output));
    (line, failure)
}

#[test]
fn shell_suite() {
    let output = tempfile::tempdir().expect("can't make a temporary directory");
    let queue = Mutex::new(VecDeque::from(scripts()));
    let failures = Mutex::new(Vec::new());
    let workers = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("a worker panicked").pop_front();
                    let Some(script) = next else { break };
                    let (line, failure) = run_script(&script, output.path(), TIME_LIMIT);
                    say(&line);
                    failures.lock().expect("a worker panicked").extend(failure);
                }
            });
        }
    });
    let failures = failures.into_inner().expect("a worker panicked");
    if !failures.is_empty() {
        let kept = output.keep();
        panic!(
            "{} scripts failed; trash directories kept in {}\n{}",
            failures.len(),
            kept.display(),
            failures.join("\n")
        );
    }
}

#[test]
fn shell_lint() {
    let answer = shell()
        .arg(suite_dir().join("lint.sh"))
        .output()
        .expect("can't run t/lint.sh");
    assert!(
        answer.status.success(),
        "t/lint.sh: {}\n{}{}",
        answer.status,
        String::from_utf8_lossy(&answer.stdout),
        String::from_utf8_lossy(&answer.stderr)
    );
}

#[test]
fn reads_good_reports() {
    let report = read_tap(
        "ok 1 - a\n# ok 9 - comment\nok 2 - b # skip missing LOOP\nnot ok 3 - c # TODO known\nok 4 - d # e\n1..4\n",
    );
    assert!(report.is_good(), "{report:?}");
    assert_eq!((report.passed, report.known_broken), (2, 1));
    assert_eq!(report.skipped, ["2: missing LOOP"]);

    let whole = read_tap("1..0 # SKIP no mount here\n");
    assert!(whole.is_good(), "{whole:?}");
    assert_eq!(whole.skipped, ["no mount here"]);
}

#[test]
fn refuses_bad_reports() {
    for (report, fault) in [
        ("", "no plan"),
        ("ok 1 - a\n", "no plan"),
        ("1..0\n", "no test ran"),
        ("ok 1 - a\n1..2\n", "the plan says 2, 1 results came"),
        ("ok 1 - a\nok 3 - b\n1..2\n", "result 2 is numbered '3'"),
        (
            "ok 1 - a\n1..1\nok 2 - b\n",
            "a result after the plan: 'ok 2 - b'",
        ),
        ("ok 1 - a\n1..1\n1..1\n", "a second plan"),
        ("ok 1 - a\n1..x\n", "the plan '1..x' has no number"),
        ("ok 1 - a\nBail out! why\n", "Bail out! why"),
    ] {
        let read = read_tap(report);
        assert!(
            read.faults.iter().any(|f| f == fault),
            "{report:?}: {read:?}"
        );
        assert!(!read.is_good(), "{report:?}");
    }
    assert_eq!(read_tap("not ok 1 - a\n1..1\n").failed, 1);
}

/// Runs a throw-away script through `run_script`.
fn run_sample(text: &str, limit: Duration) -> (String, Option<String>) {
    let dir = tempfile::tempdir().expect("can't make a temporary directory");
    let script = dir.path().join("t9999-sample.sh");
    fs::write(&script, text).expect("can't write a sample");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("can't chmod a sample");
    run_script(&script, dir.path(), limit)
}

#[test]
fn a_script_that_fails_hangs_or_lies_is_a_failure() {
    let long = Duration::from_secs(60);
    let (line, failure) = run_sample("echo 'ok 1 - a'\necho 1..1\n", long);
    assert_eq!(failure, None, "{line}");

    let (_, failure) = run_sample(
        "echo noise >&2\necho 'not ok 1 - a'\necho 1..1\nexit 1\n",
        long,
    );
    assert!(failure.is_some_and(|text| text.contains("noise")));

    let (line, failure) = run_sample("echo 'not ok 1 - a'\necho 1..1\n", long);
    assert!(
        failure.is_some() && line.contains("yet it exits with 0"),
        "{line}"
    );

    let (line, failure) = run_sample("echo 'ok 1 - a'\necho 1..1\nexit 3\n", long);
    assert!(
        failure.is_some() && line.contains("yet it ended with"),
        "{line}"
    );

    let began = Instant::now();
    let (line, failure) = run_sample(
        "echo 'ok 1 - a'\nsleep 50\necho 1..1\n",
        Duration::from_millis(200),
    );
    assert!(
        failure.is_some() && line.contains("killed after 200ms"),
        "{line}"
    );
    assert!(began.elapsed() < Duration::from_secs(30));
}
