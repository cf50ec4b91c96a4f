//! A sealed place to run git and the binary in, and their outcome as one text for inline snapshots.
//!
//! Every process gets an environment that is built from nothing: no config, identity, date or locale
//! of the machine reaches a test, and `GIT_CEILING_DIRECTORIES` keeps git from finding a repository
//! around the sandbox.
//!
//! ```ignore
//! let sandbox = Sandbox::new();
//! sandbox.write("a.txt", b"text\n");
//! insta::assert_snapshot!(sandbox.vws(&["base"]), @"");
//! ```
#![allow(dead_code, unreachable_pub)]

pub mod random;

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;

/// The program under test.
pub const BINARY: &str = env!("CARGO_BIN_EXE_git-vws");

const IDENTITY: [(&str, &str); 6] = [
    ("GIT_AUTHOR_NAME", "A U Thor"),
    ("GIT_AUTHOR_EMAIL", "author@example.com"),
    ("GIT_AUTHOR_DATE", "1112911993 +0000"),
    ("GIT_COMMITTER_NAME", "C O Mitter"),
    ("GIT_COMMITTER_EMAIL", "committer@example.com"),
    ("GIT_COMMITTER_DATE", "1112911993 +0000"),
];

/// The variable that makes every workspace of a run of the tests of another form, where nothing else is
/// asked for: to show that a test does not depend on how files are held.
const MODE: &str = "GIT_VWS_TEST_WORKSPACE_MODE";

/// Whether the run of the tests has directories that stay: what is said of one that is laid out anew
/// does not hold then.
pub fn directories_stay() -> bool {
    std::env::var_os(MODE).is_some_and(|mode| mode == "worktree")
}

fn mode_for_all() -> Vec<(&'static str, OsString)> {
    let setting = |mode| {
        vec![
            ("GIT_CONFIG_COUNT", "1".into()),
            ("GIT_CONFIG_KEY_0", "relo.workspace.mode".into()),
            ("GIT_CONFIG_VALUE_0", mode),
        ]
    };
    std::env::var_os(MODE).map(setting).unwrap_or_default()
}

/// A temporary directory with a home (`home/`) and a fresh repository (`repo/`, branch `main`).
///
/// It goes when the value is dropped.
pub struct Sandbox {
    _dir: tempfile::TempDir,
    root: PathBuf,
    extra_env: Vec<(OsString, OsString)>,
}

impl Sandbox {
    /// Makes a sandbox with an empty repository.
    pub fn new() -> Sandbox {
        let sandbox = Sandbox::without_repo();
        sandbox.git(&["init", "-q"]);
        sandbox
    }

    /// Makes a sandbox whose `repo/` is an empty directory.
    pub fn without_repo() -> Sandbox {
        Sandbox::without_repo_in(&std::env::temp_dir())
    }

    /// Makes a sandbox with an empty repository in a folder, perhaps of another file system.
    pub fn new_in(folder: &Path) -> Sandbox {
        let sandbox = Sandbox::without_repo_in(folder);
        sandbox.git(&["init", "-q"]);
        sandbox
    }

    fn without_repo_in(folder: &Path) -> Sandbox {
        let dir = tempfile::tempdir_in(folder).expect("can't make a temporary directory");
        let root = dir
            .path()
            .canonicalize()
            .expect("can't resolve the temporary directory");
        let sandbox = Sandbox {
            _dir: dir,
            root,
            extra_env: Vec::new(),
        };
        fs::create_dir_all(sandbox.repo()).expect("can't make repo/");
        fs::create_dir_all(sandbox.home().join(".config")).expect("can't make home/");
        let config = "[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n";
        fs::write(sandbox.home().join(".gitconfig"), config).expect("can't write .gitconfig");
        sandbox
    }

    /// The directory that holds everything; `$SANDBOX` in outcomes.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The working tree, where commands run.
    pub fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    /// The home of every process.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Sets a variable for all processes started from now on; the last value of a name counts.
    pub fn set_env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) {
        let pair = (name.as_ref().to_owned(), value.as_ref().to_owned());
        self.extra_env.push(pair);
    }

    /// A command in the sealed environment, in `repo/`, with the binary's folder first in `PATH`.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let bin_dir = Path::new(BINARY)
            .parent()
            .expect("the binary lies in a folder");
        let inherited = std::env::var_os("PATH").unwrap_or_default();
        let parts = std::iter::once(bin_dir.to_owned()).chain(std::env::split_paths(&inherited));
        let path = std::env::join_paths(parts).expect("PATH can't be built");
        let mut command = Command::new(program);
        command
            .current_dir(self.repo())
            .env_clear()
            .env("PATH", path)
            .env("HOME", self.home())
            .env("XDG_CONFIG_HOME", self.home().join(".config"))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", &self.root)
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_EDITOR", ":")
            .env("LC_ALL", "C")
            .env("TZ", "UTC")
            .env("TERM", "dumb")
            .envs(IDENTITY)
            .envs(mode_for_all())
            .envs(self.extra_env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs git and returns its stdout; panics with its stderr if it fails.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> Vec<u8> {
        self.git_with_input(args, b"")
    }

    /// As [`Sandbox::git`], with bytes on stdin.
    #[track_caller]
    pub fn git_with_input(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = self.command("git");
        command.args(args);
        let output = run(command, input);
        assert!(
            output.status.success(),
            "git {args:?}: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }

    /// Runs git and returns its stdout as text, without the final line end.
    #[track_caller]
    pub fn git_text(&self, args: &[&str]) -> String {
        let text = String::from_utf8(self.git(args)).expect("git printed no UTF-8; use `git`");
        text.trim_end_matches('\n').to_owned()
    }

    /// Adds everything and commits; returns the commit's id.
    #[track_caller]
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", message]);
        self.git_text(&["rev-parse", "HEAD"])
    }

    /// Writes a file below `repo/`, with the directories above it.
    #[track_caller]
    pub fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.repo().join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).unwrap_or_else(|e| panic!("{}: {e}", parent.display()));
        }
        fs::write(&path, bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }

    /// Reads a file below `repo/`.
    #[track_caller]
    pub fn read(&self, path: impl AsRef<Path>) -> Vec<u8> {
        let path = self.repo().join(path);
        fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    /// Runs `git vws <args>`, found by git through `PATH`.
    pub fn vws(&self, args: &[&str]) -> Outcome {
        self.vws_with_input(args, b"")
    }

    /// As [`Sandbox::vws`], with bytes on stdin.
    pub fn vws_with_input(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.command("git");
        command.arg("vws").args(args);
        self.outcome(command, input)
    }

    /// Runs the binary itself, without git in between.
    pub fn binary(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.command(BINARY);
        command.args(args);
        self.outcome(command, input)
    }

    /// Runs a command made by [`Sandbox::command`].
    pub fn outcome(&self, command: Command, input: &[u8]) -> Outcome {
        Outcome {
            output: run(command, input),
            root: self.root.clone(),
            keep_ids: false,
        }
    }
}

/// Runs to the end. stdin is fed by a thread of its own, so that neither side waits for the other;
/// a command that doesn't read its input is no error.
fn run(mut command: Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("can't start {:?}: {error}", command.get_program()));
    let mut stdin = child.stdin.take().expect("stdin is piped");
    thread::scope(|scope| {
        scope.spawn(move || {
            let _closed_early = stdin.write_all(input);
        });
        child.wait_with_output().expect("can't read from a command")
    })
}

/// What a command printed and how it ended.
///
/// As text: stdout, then stderr under a mark, then `exit: <n>`. The sandbox's path is `$SANDBOX`; full
/// object ids are `<oid:1>`, `<oid:2>`, ... in order of first appearance, the null id `<oid:null>`.
/// A NUL is `\0`, a byte that is not UTF-8 `\xNN`, and output that doesn't end its last line says so.
#[must_use]
pub struct Outcome {
    output: Output,
    root: PathBuf,
    keep_ids: bool,
}

impl Outcome {
    /// The raw bytes of stdout.
    pub fn stdout(&self) -> &[u8] {
        &self.output.stdout
    }

    /// The raw bytes of stderr.
    pub fn stderr(&self) -> &[u8] {
        &self.output.stderr
    }

    /// The exit code; `None` after death by a signal.
    pub fn code(&self) -> Option<i32> {
        self.output.status.code()
    }

    /// Leaves object ids as they are.
    pub fn keep_ids(mut self) -> Outcome {
        self.keep_ids = true;
        self
    }

    /// Returns the outcome itself after a check that it is exit code 0.
    #[track_caller]
    pub fn success(self) -> Outcome {
        assert_eq!(self.code(), Some(0), "{self}");
        self
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = readable(&self.output.stdout);
        if !self.output.stderr.is_empty() {
            text += "--- stderr\n";
            text += &readable(&self.output.stderr);
        }
        let root = self
            .root
            .to_str()
            .expect("the temporary directory is UTF-8");
        text = text.replace(root, "$SANDBOX");
        if !self.keep_ids {
            text = number_ids(&text);
        }
        f.write_str(&text)?;
        match (self.output.status.code(), self.output.status.signal()) {
            (Some(code), _) => write!(f, "exit: {code}"),
            (None, signal) => write!(f, "exit: signal {}", signal.unwrap_or_default()),
        }
    }
}

impl fmt::Debug for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Bytes as text that loses nothing and always ends in a line end.
fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        text += &chunk.valid().replace('\0', "\\0");
        for byte in chunk.invalid() {
            text += &format!("\\x{byte:02x}");
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text += "<no line end>\n";
    }
    text
}

/// Replaces each full object id, of 40 or 64 digits, by its number.
fn number_ids(text: &str) -> String {
    let mut seen: Vec<&str> = Vec::new();
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word_on) = rest.split_at(start);
        let end = word_on
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(word_on.len());
        let (word, after) = word_on.split_at(end);
        out += before;
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        if !matches!(word.len(), 40 | 64) || !word.bytes().all(is_hex) {
            out += word;
        } else if word.bytes().all(|b| b == b'0') {
            out += "<oid:null>";
        } else {
            let number = seen.iter().position(|id| *id == word).unwrap_or_else(|| {
                seen.push(word);
                seen.len() - 1
            });
            out += &format!("<oid:{}>", number + 1);
        }
        rest = after;
    }
    out + rest
}
