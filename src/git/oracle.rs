//! `git` processes, for what only git can say.
//!
//! They run in an environment of our making: the repository named outright, messages untranslated,
//! no optional locks (the user's index is never refreshed), no pager, no hooks, no fsmonitor, no
//! terminal prompts, and none of the caller's `GIT_*` apart from those that say which settings and
//! objects count. Nothing is decided by what git prints on stderr.

use std::ffi::{OsStr, OsString};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::{Environment, Error, ObjectId, Repository, Result};

/// The caller's `GIT_*` variables that a child keeps.
const KEPT: [&str; 17] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CONFIG_PARAMETERS",
    "GIT_CONFIG_COUNT",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_ATTR_NOSYSTEM",
    "GIT_EXEC_PATH",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_ASKPASS",
    "GIT_PROXY_COMMAND",
    "GIT_TEST_ASSUME_DIFFERENT_OWNER",
    "GIT_REPLACE_REF_BASE",
    "GIT_NO_LAZY_FETCH",
];

/// A `git` command being put together.
#[must_use]
pub struct GitCommand<'r> {
    repository: &'r Repository,
    args: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    work_dir: Option<PathBuf>,
    git_dir: PathBuf,
    stdin: Option<Vec<u8>>,
    hooks: bool,
    through: Vec<OsString>,
}

/// A `git` process at work. What it prints waits in its pipes until somebody [finishes](Running::finish) it.
#[must_use = "the process is ended when this is dropped"]
pub(super) struct Running {
    child: Child,
    input: Option<Vec<u8>>,
    command: String,
}

/// How a `git` process ended, and what it printed.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error, for people.
    pub stderr: Vec<u8>,
    command: String,
}

impl<'r> GitCommand<'r> {
    pub(super) fn new(repository: &'r Repository) -> Self {
        GitCommand {
            repository,
            args: Vec::new(),
            variables: Vec::new(),
            work_dir: repository.work_dir().map(Path::to_owned),
            git_dir: repository.git_dir().to_owned(),
            stdin: None,
            hooks: false,
            through: Vec::new(),
        }
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args
            .extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Uses this file as the index, instead of the one of the git dir.
    pub fn index_file(mut self, path: &Path) -> Self {
        self.variables.push(("GIT_INDEX_FILE", path.into()));
        self
    }

    /// Uses the caller's `GIT_INDEX_FILE`, if there is one: the user's own index.
    pub fn users_index(self) -> Self {
        match self.repository.environment().path("GIT_INDEX_FILE") {
            Some(path) => self.index_file(&path),
            None => self,
        }
    }

    /// Writes new objects to this folder, and finds the repository's through it.
    pub fn objects_into(mut self, folder: &Path) -> Self {
        let mut others = OsString::from(self.repository.objects_dir());
        if let Some(more) = self.repository.environment().alternates() {
            others.push(":");
            others.push(more);
        }
        self.variables.push(("GIT_OBJECT_DIRECTORY", folder.into()));
        self.variables
            .push(("GIT_ALTERNATE_OBJECT_DIRECTORIES", others));
        self
    }

    /// Works in another directory of the same repository, with that directory's own git dir.
    pub fn in_directory(mut self, work_dir: &Path, git_dir: &Path) -> Self {
        self.work_dir = Some(work_dir.to_owned());
        self.git_dir = git_dir.to_owned();
        self
    }

    /// Starts git by way of another program, which gets `git` and its arguments after its own.
    pub fn through(mut self, words: impl IntoIterator<Item = OsString>) -> Self {
        self.through = words.into_iter().collect();
        self
    }

    /// Gives the command this standard input; without it there is none.
    pub fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = Some(bytes);
        self
    }

    /// Makes reflog entries of the command say that they are ours.
    pub(super) fn in_our_name(mut self) -> Self {
        self.variables
            .push(("GIT_COMMITTER_NAME", super::IDENTITY_NAME.into()));
        self.variables
            .push(("GIT_COMMITTER_EMAIL", super::IDENTITY_EMAIL.into()));
        self
    }

    /// Lets the user's hooks run: only for ref transactions, in which they have a say.
    pub fn with_user_hooks(mut self) -> Self {
        self.hooks = true;
        self
    }

    /// Runs the command and gives back how it ended.
    ///
    /// # Errors
    /// [`Error::Io`] when `git` cannot be started or its pipes break.
    pub fn run(self) -> Result<Finished> {
        self.begin()?.finish()
    }

    /// Starts the command and leaves it to its work.
    ///
    /// # Errors
    /// [`Error::Io`] when `git` cannot be started.
    pub(super) fn begin(mut self) -> Result<Running> {
        let input = self.stdin.take();
        Ok(Running {
            command: self.name(),
            child: self.spawn(input.is_some(), Stdio::piped())?,
            input,
        })
    }

    /// Runs the command and gives back what it printed.
    ///
    /// # Errors
    /// [`Error::Git`] unless it exits with 0.
    pub fn output(self) -> Result<Vec<u8>> {
        self.run()?.checked()
    }

    /// Starts the command with its standard input and output as pipes, for a conversation.
    pub(super) fn converse(self) -> Result<Child> {
        self.spawn(true, Stdio::null())
    }

    /// `git rev-parse --verify`: the id of a revision, if it names something.
    pub(super) fn rev_parse(self, spec: &str) -> Result<Option<ObjectId>> {
        let format = self.repository.format();
        let done = self
            .args(["rev-parse", "--verify", "--quiet", "--end-of-options", spec])
            .run()?;
        if !done.success() {
            return Ok(None);
        }
        let text = String::from_utf8_lossy(&done.stdout);
        Ok(ObjectId::from_str_ext(text.trim_end(), format).ok())
    }

    /// `git symbolic-ref`: the ref that a symbolic ref points to, if it is symbolic.
    pub(super) fn symbolic_ref(self, name: &str) -> Result<Option<String>> {
        let done = self.args(["symbolic-ref", "--quiet", name]).run()?;
        Ok(done
            .success()
            .then(|| String::from_utf8_lossy(&done.stdout).trim_end().to_owned()))
    }

    fn name(&self) -> String {
        self.args
            .iter()
            .take(2)
            .map(|arg| arg.to_string_lossy())
            .collect::<Vec<_>>()
            .join(" ")
    }

    fn spawn(self, input: bool, stderr: Stdio) -> Result<Child> {
        let mut command = match self.through.split_first() {
            None => self.repository.environment().command("git"),
            Some((program, words)) => {
                let mut command = Command::new(program);
                command.args(words).arg("git");
                command
            }
        };
        command.env_clear();
        for (name, value) in &self.repository.environment().variables {
            let text = name.to_string_lossy();
            let settings = text.starts_with("GIT_CONFIG_KEY_")
                || text.starts_with("GIT_CONFIG_VALUE_")
                || text.starts_with("GIT_TRACE");
            if !text.starts_with("GIT_") || settings || KEPT.contains(&&*text) {
                command.env(name, value);
            }
        }
        command
            .env("LC_ALL", "C")
            .env_remove("LANGUAGE")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_PAGER", "cat")
            .env("GIT_EDITOR", ":")
            .env("GIT_DIR", &self.git_dir)
            .env("GIT_COMMON_DIR", self.repository.common_dir());
        if let Some(top) = &self.work_dir {
            command.env("GIT_WORK_TREE", top).current_dir(top);
        }
        // The caller's relative paths start where the caller is.
        let environment = self.repository.environment();
        if environment.path("GIT_OBJECT_DIRECTORY").is_some() {
            command.env("GIT_OBJECT_DIRECTORY", self.repository.objects_dir());
        }
        if let Some(others) = environment.alternates() {
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", others);
        }
        command.envs(self.variables);
        for pinned in [
            "core.fsmonitor=false",
            "core.untrackedCache=keep",
            "core.commitGraph=true",
            "color.ui=false",
            "core.pager=cat",
            "gc.auto=0",
            "maintenance.auto=false",
        ] {
            command.args(["-c", pinned]);
        }
        if !self.hooks {
            command.args(["-c", "core.hooksPath=/dev/null"]);
        }
        command
            .args(&self.args)
            .stdin(if input { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .map_err(|e| Error::io("start", "git", e))
    }
}

impl Running {
    /// Waits for the command to end and gives back how it did.
    ///
    /// # Errors
    /// [`Error::Io`] when its pipes break.
    pub(super) fn finish(mut self) -> Result<Finished> {
        let (stdin, bytes) = (self.child.stdin.take(), self.input.take());
        let pipes = (self.child.stdout.take(), self.child.stderr.take());
        let mut stdout = Vec::new();
        let mut stderr = Vec::new();
        let outcome = std::thread::scope(|scope| {
            if let (Some(mut pipe), Some(bytes)) = (stdin, bytes) {
                // A command that ends early closes its end; its status tells why.
                scope.spawn(move || drop(pipe.write_all(&bytes)));
            }
            if let Some(mut pipe) = pipes.1 {
                let stderr = &mut stderr;
                scope.spawn(move || drop(pipe.read_to_end(stderr)));
            }
            match pipes.0 {
                Some(mut pipe) => pipe.read_to_end(&mut stdout).map(drop),
                None => Ok(()),
            }
        });
        let status = self.child.wait().map_err(|e| Error::io("run", "git", e))?;
        outcome.map_err(|e| Error::io("read from", "git", e))?;
        Ok(Finished {
            status,
            stdout,
            stderr,
            command: std::mem::take(&mut self.command),
        })
    }
}

impl Drop for Running {
    /// What nobody waits for is ended: it must not outlive the command that wanted it.
    fn drop(&mut self) {
        // Of one that has ended, and was waited for, both know.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Finished {
    /// Whether the command exited with 0.
    pub fn success(&self) -> bool {
        self.status.success()
    }

    /// The exit code, if the command ended by itself.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The last line of its standard error, without git's own prefix.
    pub fn last_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().rev().find(|line| !line.trim().is_empty());
        without_prefix(line.unwrap_or("no message"))
    }

    /// The first line of its standard error, without git's own prefix: where several processes
    /// fail one after the other, the one that knows why.
    pub(super) fn first_line(&self) -> String {
        let text = String::from_utf8_lossy(&self.stderr);
        let line = text.lines().find(|line| !line.trim().is_empty());
        without_prefix(line.unwrap_or("no message"))
    }

    /// What the command printed, if it exited with 0.
    ///
    /// # Errors
    /// [`Error::Git`] otherwise.
    pub fn checked(self) -> Result<Vec<u8>> {
        if self.success() {
            Ok(self.stdout)
        } else {
            Err(self.into_error())
        }
    }

    /// The failure as an error.
    pub fn into_error(self) -> Error {
        Error::Git {
            status: match self.status.code() {
                Some(code) => format!("exit code {code}"),
                None => self.status.to_string(),
            },
            stderr: self.last_line(),
            command: self.command,
        }
    }
}

fn without_prefix(line: &str) -> String {
    let line = line.trim();
    let line = line.strip_prefix("fatal: ").unwrap_or(line);
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// Whether git itself takes the repository that it finds from here for a safe one, in the caller's
/// own environment.
pub(super) fn is_trusted(environment: &Environment) -> Result<bool> {
    let done = environment
        .command("git")
        .args(["rev-parse", "--git-dir"])
        .env_clear()
        .envs(&environment.variables)
        .current_dir(&environment.current_dir)
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Error::io("start", "git", e))?;
    Ok(done.status.success())
}
