//! A throw-away repository for tests, in which `git` itself is asked what it makes of our files.

#![allow(clippy::unwrap_used)]

use super::{Environment, ObjectFormat, ObjectId, Repository};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository in a temporary directory, seen by nothing of the user's configuration.
pub(crate) struct Scratch {
    dir: tempfile::TempDir,
    pub(crate) format: ObjectFormat,
}

impl Scratch {
    pub(crate) fn new(format: ObjectFormat) -> Scratch {
        let dir = tempfile::tempdir().unwrap();
        let scratch = Scratch { dir, format };
        let option = format!("--object-format={format}");
        scratch.git(&["init", "-q", "-b", "main", &option]);
        scratch
    }

    pub(crate) fn top(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn objects(&self) -> PathBuf {
        self.top().join(".git/objects")
    }

    /// It, opened as the program does, by nobody's settings.
    pub(crate) fn open(&self) -> Repository {
        let variables = [
            ("PATH", std::env::var_os("PATH").unwrap_or_default()),
            ("HOME", self.top().into()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
        ];
        let environment = Environment {
            current_dir: self.top().to_owned(),
            variables: variables.map(|(k, v)| (k.into(), v)).into(),
        };
        Repository::open_at(self.top(), environment).unwrap()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("git");
        command
            .args(args)
            .current_dir(self.top())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.top())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C");
        for who in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{who}_NAME"), "A U Thor")
                .env(format!("GIT_{who}_EMAIL"), "author@example.com")
                .env(format!("GIT_{who}_DATE"), "1700000000 +0000");
        }
        command
    }

    /// Standard output of a git command that must succeed and say nothing on standard error.
    pub(crate) fn git(&self, args: &[&str]) -> Vec<u8> {
        self.git_with(args, b"")
    }

    /// The same, with `input` on standard input.
    pub(crate) fn git_with(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        let mut child = self
            .command(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let out = std::thread::scope(|scope| {
            scope.spawn(move || stdin.write_all(input));
            child.wait_with_output().unwrap()
        });
        let stderr = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "git {args:?}: {stderr}");
        assert_eq!(stderr, "", "git {args:?} complains");
        out.stdout
    }

    /// The same, as one line of text.
    pub(crate) fn line(&self, args: &[&str]) -> String {
        let out = String::from_utf8(self.git(args)).unwrap();
        out.trim_end().to_owned()
    }

    /// The id that a git command prints.
    pub(crate) fn id(&self, args: &[&str]) -> ObjectId {
        ObjectId::from_str_ext(&self.line(args), self.format).unwrap()
    }

    /// Whether a git command succeeds, whatever it says.
    pub(crate) fn succeeds(&self, args: &[&str]) -> bool {
        let out = self.command(args).output().unwrap();
        out.status.success()
    }

    /// Whether git has this object.
    pub(crate) fn has(&self, id: ObjectId) -> bool {
        self.succeeds(&["cat-file", "-e", &id.to_string()])
    }
}
