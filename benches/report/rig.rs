//! Commands in a sealed environment, a clock for the parts that count, and `strace` for what they do.

use std::cell::{Cell, RefCell};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use super::Try;
use super::disk::{self, Meter};
use super::options::Options;

/// What the timed commands did.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Processes, forks that start no program included.
    pub processes: u64,
    /// fsync, fdatasync, syncfs, sync.
    pub flushes: u64,
    /// All system calls, where they were counted.
    pub calls: Option<u64>,
}

/// What is traced.
#[derive(Clone, Copy, PartialEq)]
pub enum Trace {
    Nothing,
    ProcessesAndFlushes,
    AllCalls,
}

const CONFIG: &str = "[user]\n\tname = A U Thor\n\temail = author@example.com\n[init]\n\tdefaultBranch = main\n\
                      [gc]\n\tauto = 0\n[safe]\n\tdirectory = *\n[advice]\n\tdetachedHead = false\n";
const TRACED: &str = "trace=fork,vfork,clone,clone3,fsync,fdatasync,syncfs,sync";

pub struct Rig {
    _temporary: tempfile::TempDir,
    /// Everything lies below.
    pub root: PathBuf,
    pub meter: Meter,
    home: PathBuf,
    path: OsString,
    binary: Option<PathBuf>,
    can_trace: bool,
    /// Not where one repetition only shows that all works: others may write to the same disk.
    flushes_first: bool,
    trace: Cell<Trace>,
    is_timed: Cell<bool>,
    traces: Cell<usize>,
    forgotten: Cell<usize>,
    parts: RefCell<Vec<(&'static str, Duration)>>,
}

impl Rig {
    pub fn new(options: &Options) -> Try<Rig> {
        let meter = options
            .dir
            .as_deref()
            .map_or(Ok(Meter::Blocks), Meter::of)?;
        let place = options.dir.clone().unwrap_or_else(std::env::temp_dir);
        let temporary = tempfile::Builder::new()
            .prefix("vws-report-")
            .tempdir_in(&place);
        let temporary = temporary.map_err(|e| format!("can't work in {place:?}: {e}"))?;
        let root = temporary.path().canonicalize().map_err(|e| e.to_string())?;
        let home = root.join("home");
        let tools = root.join("bin");
        for dir in [&home, &tools, &root.join("traces")] {
            fs::create_dir_all(dir).map_err(|e| format!("can't make {dir:?}: {e}"))?;
        }
        let write = |name: &str, text: &str| {
            fs::write(home.join(name), text).map_err(|e| format!("can't write {name}: {e}"))
        };
        write(".gitconfig", CONFIG)?;
        write(
            "jj.toml",
            "user.name = \"A U Thor\"\nuser.email = \"author@example.com\"\n",
        )?;
        std::os::unix::fs::symlink(&options.binary, tools.join("git-vws"))
            .map_err(|e| format!("can't link the program: {e}"))?;
        let mut path = OsString::from(&tools);
        if let Some(rest) = std::env::var_os("PATH") {
            path.push(":");
            path.push(rest);
        }
        let mut rig = Rig {
            _temporary: temporary,
            root,
            meter,
            home,
            path,
            binary: options.direct.then(|| options.binary.clone()),
            can_trace: false,
            flushes_first: options.reps > 1,
            trace: Cell::new(Trace::Nothing),
            is_timed: Cell::new(false),
            traces: Cell::new(0),
            forgotten: Cell::new(0),
            parts: RefCell::default(),
        };
        let probe = rig.root.join("traces/probe");
        let probe = [
            OsStr::new("strace"),
            OsStr::new("-fqqo"),
            probe.as_os_str(),
            OsStr::new("true"),
        ];
        rig.can_trace = options.count
            && rig
                .ask(&rig.root, &probe)
                .is_ok_and(|out| out.status.success());
        Ok(rig)
    }

    /// Whether a program is in PATH.
    pub fn has(&self, program: &str) -> bool {
        std::env::split_paths(&self.path).any(|dir| dir.join(program).is_file())
    }

    pub fn can_trace(&self) -> bool {
        self.can_trace
    }

    /// The command of a list of words; `vws` as the first stands for the program under test.
    fn command<S: AsRef<OsStr>>(&self, dir: &Path, words: &[S]) -> Command {
        let mut all: Vec<OsString> = Vec::new();
        let trace = if self.is_timed.get() {
            self.trace.get()
        } else {
            Trace::Nothing
        };
        if trace != Trace::Nothing {
            self.traces.set(self.traces.get() + 1);
            let file = self.root.join(format!("traces/{}", self.traces.get()));
            all.extend(["strace", "-fqq", "-s0", "-o"].map(OsString::from));
            all.push(file.into());
            if trace == Trace::ProcessesAndFlushes {
                all.extend(["--seccomp-bpf", "-e", TRACED].map(OsString::from));
            }
            all.push("--".into());
        }
        let first = words.first().map(AsRef::as_ref).unwrap_or_default();
        match (&self.binary, first == "vws") {
            (Some(binary), true) => all.push(binary.into()),
            (None, true) => all.extend(["git", "vws"].map(OsString::from)),
            _ => all.push(first.into()),
        }
        all.extend(words.iter().skip(1).map(|word| word.as_ref().to_owned()));
        let mut command = Command::new(&all[0]);
        command.args(&all[1..]).current_dir(dir).env_clear();
        let home = &self.home;
        command
            .env("PATH", &self.path)
            .env("HOME", home)
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        command
            .env("XDG_CONFIG_HOME", home)
            .env("GIT_CONFIG_NOSYSTEM", "1");
        command
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .env("JJ_CONFIG", home.join("jj.toml"));
        for name in ["CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        if std::env::var_os("RUSTUP_HOME").is_none()
            && let Some(user) = std::env::var_os("HOME")
        {
            command.env("RUSTUP_HOME", Path::new(&user).join(".rustup"));
        }
        command
    }

    /// Starts a command, input and output as pipes.
    pub fn spawn<S: AsRef<OsStr>>(&self, dir: &Path, words: &[S]) -> Try<Child> {
        let mut command = self.command(dir, words);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
            .spawn()
            .map_err(|e| format!("can't start {}: {e}", shown(words)))
    }

    /// Runs a command to its end, whatever its exit code.
    pub fn ask<S: AsRef<OsStr>>(&self, dir: &Path, words: &[S]) -> Try<Output> {
        let mut command = self.command(dir, words);
        let output = command.stdin(Stdio::null()).output();
        output.map_err(|e| format!("can't start {}: {e}", shown(words)))
    }

    /// Runs a command that must succeed, and returns what it printed.
    pub fn run<S: AsRef<OsStr>>(&self, dir: &Path, words: &[S]) -> Try<String> {
        let output = self.ask(dir, words)?;
        checked(words, &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// The same, with an input.
    pub fn feed<S: AsRef<OsStr>>(&self, dir: &Path, words: &[S], input: &[u8]) -> Try<String> {
        let mut child = self.spawn(dir, words)?;
        let stdin = child.stdin.take();
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A command that ends early is told by its exit code.
                let _ = stdin.map(|mut pipe| std::io::Write::write_all(&mut pipe, input));
            });
            child.wait_with_output()
        });
        let output = output.map_err(|e| format!("{}: {e}", shown(words)))?;
        checked(words, &output)?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Runs commands that must succeed, all at the same time.
    pub fn together(&self, dir: &Path, all: &[Vec<String>]) -> Try<()> {
        let mut children = Vec::new();
        for words in all {
            let mut command = self.command(dir, words);
            command
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped());
            children.push(
                command
                    .spawn()
                    .map_err(|e| format!("can't start {}: {e}", shown(words)))?,
            );
        }
        let outputs: Vec<_> = children.into_iter().map(Child::wait_with_output).collect();
        for (words, output) in all.iter().zip(outputs) {
            checked(words, &output.map_err(|e| e.to_string())?)?;
        }
        Ok(())
    }

    /// Does a part of the work with the clock running. What was written before is flushed first.
    pub fn timed<T>(&self, part: &'static str, work: impl FnOnce() -> Try<T>) -> Try<T> {
        if self.flushes_first {
            disk::flush(&self.root)?;
        }
        self.is_timed.set(true);
        let start = Instant::now();
        let result = work();
        let spent = start.elapsed();
        self.is_timed.set(false);
        self.add(part, spent);
        result
    }

    /// Adds to a part what was measured in another way.
    pub fn add(&self, part: &'static str, spent: Duration) {
        let mut parts = self.parts.borrow_mut();
        match parts.iter_mut().find(|(name, _)| *name == part) {
            Some((_, sum)) => *sum += spent,
            None => parts.push((part, spent)),
        }
    }

    /// The parts that were timed since the last call.
    pub fn take_parts(&self) -> Vec<(&'static str, Duration)> {
        self.parts.take()
    }

    /// What was timed and traced so far was only the way to what shall be.
    pub fn forget(&self) {
        self.take_parts();
        self.forgotten.set(self.traces.get());
    }

    /// Does all of it under `strace`, and counts what the timed commands did.
    pub fn counted<T>(&self, trace: Trace, work: impl FnOnce() -> Try<T>) -> Try<Counts> {
        self.traces.set(0);
        self.forgotten.set(0);
        self.trace.set(trace);
        let result = work();
        self.trace.set(Trace::Nothing);
        self.take_parts();
        result?;
        let mut counts = Counts::default();
        let mut calls = 0;
        for number in self.forgotten.get() + 1..=self.traces.get() {
            let file = self.root.join(format!("traces/{number}"));
            let text = fs::read(&file).map_err(|e| format!("can't read {file:?}: {e}"))?;
            counts.processes += 1;
            for line in String::from_utf8_lossy(&text).lines() {
                count_line(line, &mut counts, &mut calls);
            }
            fs::remove_file(&file).map_err(|e| format!("can't remove {file:?}: {e}"))?;
        }
        counts.calls = (trace == Trace::AllCalls).then_some(calls);
        Ok(counts)
    }

    /// The machine and the run.
    pub fn about(&self, options: &Options, took: Duration) -> Vec<(&'static str, String)> {
        let first_line = |words: &[&str]| {
            let text = self.run(&self.root, words).unwrap_or_default();
            text.lines().next().unwrap_or_default().trim().to_owned()
        };
        let cores = std::thread::available_parallelism().map_or(0, |n| n.get());
        let mount = ["df", "--output=fstype,source,size", "-h", "."];
        let mount = self.run(&self.root, &mount).unwrap_or_default();
        let mount: Vec<_> = mount
            .lines()
            .last()
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let kind = mount.first().copied().unwrap_or("unknown").to_owned();
        let rest = mount.get(1..).unwrap_or_default().join(", ");
        let mut about = vec![
            (
                "machine",
                format!("{cores} cores, {}", first_line(&["uname", "-srm"])),
            ),
            ("file system", format!("{kind} ({rest})")),
            ("disk", self.meter.words().to_owned()),
            (
                "git",
                first_line(&["git", "version"]).replace("git version ", ""),
            ),
            ("git-vws", first_line(&["vws", "--version"])),
            (
                "started as",
                if options.direct { "git-vws" } else { "git vws" }.to_owned(),
            ),
        ];
        for (tool, version) in [
            ("git-cow", vec!["git-cow", "--version"]),
            ("jj", vec!["jj", "--version"]),
        ] {
            let text = match (self.has(tool), first_line(&version)) {
                (false, _) => "not in PATH".to_owned(),
                (true, text) if text.is_empty() => {
                    "in PATH; it does not tell its version".to_owned()
                }
                (true, text) => text,
            };
            about.push((tool, text));
        }
        about.push((
            "counting",
            if self.can_trace {
                "strace"
            } else {
                "off, or strace cannot be used"
            }
            .to_owned(),
        ));
        let reps = format!(
            "{} at most, within {} s",
            options.reps,
            options.budget.as_secs()
        );
        about.push(("repetitions", reps));
        about.push(("took", format!("{:.0} s", took.as_secs_f64())));
        about
    }
}

fn shown<S: AsRef<OsStr>>(words: &[S]) -> String {
    let words: Vec<_> = words
        .iter()
        .map(|word| word.as_ref().to_string_lossy())
        .collect();
    let text = words.join(" ").replace('\n', " ");
    format!("'{}'", text.chars().take(120).collect::<String>())
}

fn checked<S: AsRef<OsStr>>(words: &[S], output: &Output) -> Try<()> {
    if output.status.success() {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&output.stderr);
    let last = text
        .lines()
        .rfind(|line| !line.starts_with("hint:"))
        .unwrap_or_default();
    Err(format!(
        "{} failed ({}): {last}",
        shown(words),
        output.status
    ))
}

/// `<pid> <call>(...`; a line that resumes a call, or tells of a signal or an exit, starts otherwise.
fn count_line(line: &str, counts: &mut Counts, calls: &mut u64) {
    let Some((_, call)) = line.split_once(' ') else {
        return;
    };
    let call = call.trim_start();
    let Some((name, rest)) = call.split_once('(') else {
        return;
    };
    if !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return;
    }
    *calls += 1;
    match name {
        "fork" | "vfork" => counts.processes += 1,
        "clone" | "clone3" if !rest.contains("CLONE_THREAD") => counts.processes += 1,
        "fsync" | "fdatasync" | "syncfs" | "sync" => counts.flushes += 1,
        _ => {}
    }
}
