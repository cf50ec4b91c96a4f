//! The whole table of edges on every back end that this machine has, through the binary: each captures
//! the same tree, and leaves out the same.
//!
//! Root runs it as nobody in particular, since nothing is unreadable to root; only the file systems are
//! mounted by root.
#![allow(clippy::print_stdout)]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use sha1::{Digest, Sha1};

use crate::common::{BINARY, Outcome, Sandbox};
use crate::rows::{self, Place, Row, Wants};
use crate::volume::Volume;

/// `<mode> <id>` by path.
type Listing = BTreeMap<String, String>;

/// Rows that share a directory, each with the folder that it runs in (and a slash), or one alone.
struct Batch(Vec<(String, &'static Row)>);

impl Batch {
    fn all() -> Vec<Batch> {
        let (mut shared, mut batches) = (Vec::new(), Vec::new());
        for (at, row) in rows::ROWS.iter().enumerate() {
            match row.place {
                Place::Alone => batches.push(Batch(vec![(String::new(), row)])),
                Place::Folder => shared.push((format!("{}/", folder(at)), row)),
                Place::Top => shared.push((String::new(), row)),
            }
        }
        batches.insert(0, Batch(shared));
        batches
    }

    fn steps(&self) -> usize {
        self.0.iter().map(|(_, row)| row.steps.len()).max().unwrap()
    }

    /// One shell script for a step of all rows that are `wanted`.
    fn script(&self, step: usize, wanted: impl Fn(&Row) -> bool) -> String {
        let mut all = String::from(":\n");
        for (prefix, row) in self.0.iter().filter(|(_, row)| wanted(row)) {
            let Some(script) = row.steps.get(step) else {
                continue;
            };
            // What is left out stops nothing else.
            let edit = match row.wants {
                Wants::Git => "",
                Wants::But(_) => "; echo edited > g",
            };
            all += &format!("(set -eu; cd ./{prefix}; :; {script}{edit}\n)\n");
        }
        all
    }

    fn setting(&self) -> Option<&'static str> {
        self.0[0].1.setting
    }
}

fn folder(row: usize) -> String {
    format!("r{row:02}")
}

#[track_caller]
fn assert_listed(have: &Listing, want: &Listing, case: &str) {
    let paths: std::collections::BTreeSet<_> = have.keys().chain(want.keys()).collect();
    for path in paths {
        assert_eq!(have.get(path), want.get(path), "'{path}' in {case}");
    }
}

/// A back end, on a file system where it works.
struct Bench {
    name: &'static str,
    backend: &'static str,
    sandbox: Sandbox,
    /// Unmounted after the sandbox on it is gone.
    _volume: Option<Volume>,
}

/// Who runs it where root may not.
const NOBODY: u32 = 65534;

impl Bench {
    /// Makes the repository and the base of the rows; `None`, visibly, where the back end does not work.
    fn new(name: &'static str, backend: &'static str, kind: Option<&str>) -> Option<Bench> {
        let volume = match kind {
            Some(kind) => Some(Volume::new(kind)?),
            None => None,
        };
        let sandbox = match &volume {
            Some(volume) => Sandbox::new_in(volume.path()),
            None => Sandbox::new(),
        };
        let mut bench = Bench {
            name,
            backend,
            sandbox,
            _volume: volume,
        };
        let bin = bench.sandbox.root().join("bin");
        fs::create_dir(&bin).unwrap();
        fs::copy(BINARY, bin.join("git-vws")).unwrap();
        let path = std::env::var("PATH").unwrap();
        bench
            .sandbox
            .set_env("PATH", format!("{}:{path}", bin.display()));
        rows::base(&bench.sandbox);
        bench.give_away();
        bench.commit_all("base");
        // The rows that share a directory start from more.
        bench.git(&["checkout", "-q", "-b", "shared"]);
        for (at, row) in rows::ROWS.iter().enumerate() {
            if row.place == Place::Folder {
                rows::base_in(&bench.sandbox.repo().join(folder(at)));
            }
        }
        bench.give_away();
        bench.commit_all("shared");
        for branch in ["shared", "main"] {
            bench.git(&["checkout", "-q", branch]);
            if name == "copied template" {
                let _ = bench.run("git", &["vws", "template", "warm"]).success();
            }
        }
        let tried = bench.lay_out("probe", "HEAD", ":", None);
        if tried.code() != Some(0) {
            let why = String::from_utf8_lossy(tried.stderr()).into_owned();
            let expected = std::env::var("GIT_VWS_TEST_EXPECT");
            assert!(
                !expected.is_ok_and(|list| list.contains(backend)) && backend != "checkout",
                "{name} was expected to work: {why}"
            );
            println!("skipped: no {name}: {why}");
            return None;
        }
        Some(bench)
    }

    /// Gives what root has written to who runs the rows.
    fn give_away(&self) {
        if is_root() {
            let owner = format!("{NOBODY}:{NOBODY}");
            let mut command = Command::new("chown");
            command.args(["-Rh", &owner]).arg(self.sandbox.root());
            assert!(command.status().unwrap().success());
        }
    }

    fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    fn command(&self, program: &str) -> Command {
        let mut command = self.sandbox.command(program);
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, program: &str, args: &[&str]) -> Outcome {
        let mut command = self.command(program);
        command.args(args);
        self.sandbox.outcome(command, b"")
    }

    fn git(&self, args: &[&str]) -> String {
        let done = self.run("git", args).success();
        String::from_utf8_lossy(done.stdout()).trim_end().to_owned()
    }

    /// Runs git-vws with a setting.
    fn vws(&self, setting: Option<&str>, args: &[&str]) -> Outcome {
        let mut all = vec!["-c", rows::LIMIT];
        all.extend(setting.iter().flat_map(|setting| ["-c", setting]));
        all.push("vws");
        all.extend(args);
        self.run("git", &all)
    }

    fn directory(&self, agent: &str) -> PathBuf {
        self.sandbox.repo().join(".relo/worktrees").join(agent)
    }

    /// Makes the agent's directory, runs the script in it, captures.
    fn lay_out(&self, agent: &str, base: &str, script: &str, setting: Option<&str>) -> Outcome {
        let base = format!("--base={base}");
        let _ = self
            .vws(None, &["overlay", "create", &base, agent])
            .success();
        let option = format!("--backend={}", self.backend);
        if self.backend != "overlay" {
            let made = self.vws(setting, &["materialize", &option, agent]);
            if made.code() != Some(0) {
                return made;
            }
        }
        self.step(agent, script, setting)
    }

    /// Runs a script in the directory and captures; what was left out is on stderr.
    fn step(&self, agent: &str, script: &str, setting: Option<&str>) -> Outcome {
        if self.backend == "overlay" {
            let start = ["exec", "--backend=overlay", "--at=own", agent, "--"];
            let args: Vec<&str> = start.into_iter().chain(["sh", "-euc", script]).collect();
            return self.vws(setting, &args);
        }
        let mut command = self.command("sh");
        command.args(["-euc", script]);
        command.current_dir(self.directory(agent));
        let _ = self.sandbox.outcome(command, b"").success();
        self.vws(setting, &["capture", agent])
    }

    fn listed(&self, tree: &str) -> Listing {
        let text = self.git(&["ls-tree", "-r", "-z", "--full-tree", tree]);
        let lines = text.split_terminator('\0');
        lines
            .map(|line| {
                let (entry, path) = line.split_once('\t').unwrap();
                (path.to_owned(), entry.to_owned())
            })
            .collect()
    }

    /// The commit that rows start from.
    fn base(&self, batch: &Batch) -> String {
        let Some(script) = batch.0[0].1.before else {
            let shared = batch.0.len() > 1;
            return self.git(&["rev-parse", if shared { "shared" } else { "main" }]);
        };
        let script = format!(
            "export GIT_INDEX_FILE=$PWD/.git/row; git read-tree main; {script}; \
             git commit-tree -m base -p main $(git write-tree); rm $GIT_INDEX_FILE"
        );
        let done = self.run("sh", &["-euc", &script]).success();
        String::from_utf8_lossy(done.stdout()).trim_end().to_owned()
    }

    /// What must be captured: by git in a worktree of its own, or by the rows' own words.
    fn wanted(&self, batch: &Batch, base: &str) -> Listing {
        let place = self.sandbox.root().join("oracle");
        let text = place.to_str().unwrap();
        self.git(&["worktree", "add", "-q", "--detach", text, base]);
        let steps: String = (0..batch.steps())
            .map(|step| batch.script(step, |row| matches!(row.wants, Wants::Git)))
            .collect();
        let setting = batch.setting().unwrap_or(rows::LIMIT);
        let script = format!(
            "{steps} export GIT_INDEX_FILE=../oracle-index; git read-tree {base}; \
             git -c {setting} add --all; git write-tree; rm $GIT_INDEX_FILE"
        );
        let mut command = self.command("sh");
        command.args(["-euc", &script]).current_dir(&place);
        let done = self.sandbox.outcome(command, b"").success();
        let tree = String::from_utf8_lossy(done.stdout()).trim_end().to_owned();
        self.git(&["worktree", "remove", "--force", text]);
        // A branch that a row makes is to be free for the back end.
        let _ = self.run("git", &["branch", "-q", "-D", "switched"]);
        let mut files = self.listed(&tree);
        for (prefix, row) in &batch.0 {
            let Wants::But(changes) = row.wants else {
                continue;
            };
            for (path, content) in changes.iter().chain(&[("g", Some("edited\n"))]) {
                let path = format!("{prefix}{path}");
                let Some(content) = content else {
                    files.remove(&path);
                    continue;
                };
                let mode = files.get(&path).map_or("100644", |entry| &entry[..6]);
                let entry = format!("{mode} blob {}", blob(content.as_bytes()));
                files.insert(path, entry);
            }
        }
        files
    }

    fn check(&self, agent: &str, batch: &Batch) {
        let base = self.base(batch);
        let wanted = self.wanted(batch, &base);
        let case = format!("{}: {}", self.name, batch.0[0].1.name);
        let setting = batch.setting();
        let mut last = None;
        for step in 0..batch.steps() {
            let script = batch.script(step, |_| true);
            last = Some(match step {
                0 => self.lay_out(agent, &base, &script, setting),
                _ => self.step(agent, &script, setting),
            });
        }
        let last = last.unwrap();
        let revision = format!("refs/relo/vws/{agent}/overlay");
        assert_listed(&self.listed(&revision), &wanted, &format!("{case}\n{last}"));
        let left_out = Self::left_out(batch);
        match self.backend {
            // `exec` warns only of what would be lost.
            "overlay" => {
                let lost = left_out.iter().filter(|(_, kind)| kind != "special_file");
                assert_eq!(
                    warned(&last),
                    lost.cloned().collect::<Vec<_>>(),
                    "{case}\n{last}"
                );
            }
            _ => assert_eq!(recorded(&last), left_out, "{case}\n{last}"),
        }
        if self.backend == "overlay" && batch.0.len() > 1 {
            // It stays open then, and a capture of it tells of everything.
            let told = self.vws(setting, &["capture", agent]).success();
            assert_eq!(recorded(&told), left_out, "{case}\n{told}");
        }
        if batch.0.len() > 1 {
            // Another capture of the same finds nothing new.
            let before = self.git(&["rev-parse", &revision]);
            let _ = self.step(agent, ":", setting);
            assert_eq!(self.git(&["rev-parse", &revision]), before, "{case}");
        }
        let _ = self.vws(setting, &["settle", "--force", agent]);
        assert!(
            !self.directory(agent).exists(),
            "{case}: the directory stays"
        );
    }

    fn left_out(batch: &Batch) -> Vec<(String, String)> {
        let mut all: Vec<_> = batch
            .0
            .iter()
            .flat_map(|(prefix, row)| {
                let out = row.left_out.iter();
                out.map(move |(path, kind)| (format!("{prefix}{path}"), (*kind).to_owned()))
            })
            .collect();
        all.sort_unstable();
        all
    }

    /// A file that is being written all the time: as a whole or not at all, and nothing else suffers.
    fn check_busy(&self) {
        if self.backend == "overlay" {
            // Whatever a command leaves behind there is ended before the capture.
            return;
        }
        let base = self.git(&["rev-parse", "main"]);
        let _ = self
            .lay_out("busy", &base, "echo edited > g", None)
            .success();
        let path = self.directory("busy").join("w");
        let stop = std::sync::atomic::AtomicBool::new(false);
        let listed = std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut letters = (b'a'..=b'z').cycle();
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    // In place, in two halves.
                    let half = vec![letters.next().unwrap(); 2000];
                    let file = fs::File::create(&path).unwrap();
                    for _ in 0..2 {
                        std::io::Write::write_all(&mut &file, &half).unwrap();
                        std::thread::sleep(std::time::Duration::from_micros(300));
                    }
                }
            });
            let done = self.vws(None, &["capture", "busy"]);
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            assert!(matches!(done.code(), Some(0 | 1)), "{}: {done}", self.name);
            self.listed("refs/relo/vws/busy/overlay")
        });
        assert_eq!(listed["g"], format!("100644 blob {}", blob(b"edited\n")));
        if let Some(entry) = listed.get("w") {
            let bytes = self.git(&["cat-file", "blob", &entry[12..]]);
            assert!(
                bytes.bytes().all(|byte| byte == bytes.as_bytes()[0]),
                "{}: torn",
                self.name
            );
        }
        let _ = self.vws(None, &["settle", "--force", "busy"]);
    }
}

/// Path and kind of what `capture` says that it left out.
fn recorded(done: &Outcome) -> Vec<(String, String)> {
    let said = String::from_utf8_lossy(done.stdout()).into_owned();
    let records = said
        .lines()
        .filter_map(|line| line.strip_prefix("left-out "));
    records
        .map(|rest| rest.split_once(' ').unwrap())
        .map(|(kind, path)| (path.to_owned(), kind.to_owned()))
        .collect()
}

/// The same of what `exec` warns of.
fn warned(done: &Outcome) -> Vec<(String, String)> {
    let said = String::from_utf8_lossy(done.stderr()).into_owned();
    let paths = said.lines().filter_map(|line| {
        let rest = line.strip_prefix("warning: left out '")?;
        rest.strip_suffix(']')?.split_once("' [")
    });
    paths
        .map(|(path, kind)| (path.to_owned(), kind.to_owned()))
        .collect()
}

fn blob(content: &[u8]) -> String {
    let head = format!("blob {}\0", content.len());
    let hash = Sha1::new()
        .chain_update(head)
        .chain_update(content)
        .finalize();
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[test]
fn the_same_tree_is_captured_by_every_back_end() {
    let all = [
        ("checkout", "checkout", None),
        ("copied template", "checkout", None),
        ("clones on xfs", "reflink", Some("xfs")),
        ("snapshots on btrfs", "reflink", Some("btrfs")),
        ("overlay", "overlay", None),
        ("worktree", "worktree", None),
    ];
    std::thread::scope(|scope| {
        for (name, backend, kind) in all {
            scope.spawn(move || {
                let Some(bench) = Bench::new(name, backend, kind) else {
                    return;
                };
                for (number, batch) in Batch::all().iter().enumerate() {
                    bench.check(&format!("a{number}"), batch);
                }
                bench.check_busy();
                // What is over the limit became no object.
                let too_large = blob(&[0; 5000]);
                assert_ne!(
                    bench.run("git", &["cat-file", "-e", &too_large]).code(),
                    Some(0),
                    "{name}"
                );
            });
        }
    });
}
