//! Ignore rules: `git check-ignore` says what they mean, nobody else.
//!
//! Where no rule there is could match a path, as most new files, there is nothing to ask: [`quick`]
//! tells. For the others one conversation answers for a whole capture. The process starts with the
//! first question, so a directory without new files costs none. A path is asked as it lies on disk (`--no-index`): whether
//! it counts as tracked all the same is for the caller to know.
//!
//! A failure is never an answer: a process that ends early, says something else than what was asked,
//! or ends with any code but git's two good ones fails the caller.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};

use bstr::{BStr, BString, ByteSlice};

use self::quick::Quick;
use super::{Error, Repository, Result};

mod pattern;
mod quick;
#[cfg(test)]
mod tests;

/// The name of the command in errors.
const COMMAND: &str = "check-ignore";

/// The ignore rules of one directory of the repository, as git has them at this moment.
pub struct IgnoreRules<'r> {
    repository: &'r Repository,
    work_dir: PathBuf,
    git_dir: PathBuf,
    quick: Option<Quick>,
    open: Option<Conversation>,
}

struct Conversation {
    child: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Repository {
    /// The ignore rules that hold in a directory with its own git dir: its `.gitignore` files, the
    /// common `info/exclude`, and `core.excludesFile`.
    pub fn ignore_rules(&self, work_dir: &Path, git_dir: &Path) -> IgnoreRules<'_> {
        IgnoreRules {
            repository: self,
            work_dir: work_dir.to_owned(),
            git_dir: git_dir.to_owned(),
            quick: None,
            open: None,
        }
    }

    /// Whether a rule in the folders of a working tree may have a say about a path there.
    pub fn may_have_rule(work_dir: &Path, path: &BStr) -> bool {
        Quick::in_tree().may_match(work_dir, &[path.to_owned()]) != [false]
    }
}

impl IgnoreRules<'_> {
    /// Whether each of the paths, relative to the top of the directory, is ignored. A path below an
    /// ignored folder is.
    ///
    /// # Errors
    /// [`Error::Io`] when git cannot be started, [`Error::Git`] when it fails, [`Error::Answer`] when
    /// it answers something else than was asked.
    pub fn ask(&mut self, paths: &[BString]) -> Result<Vec<bool>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        let repository = self.repository;
        let quick = self.quick.get_or_insert_with(|| Quick::new(repository));
        let mut ignored = quick.may_match(&self.work_dir, paths);
        let open = paths.iter().zip(&ignored).filter(|(_, may)| **may);
        let open: Vec<BString> = open.map(|(path, _)| path.clone()).collect();
        let mut answers = self.ask_git(&open)?.into_iter();
        for one in ignored.iter_mut().filter(|may| **may) {
            *one = answers.next().unwrap_or(true);
        }
        Ok(ignored)
    }

    fn ask_git(&mut self, paths: &[BString]) -> Result<Vec<bool>> {
        if paths.is_empty() {
            return Ok(Vec::new());
        }
        if self.open.is_none() {
            self.open = Some(self.start()?);
        }
        let talk = self.open.as_mut().expect("invariant: it was just started");
        let Conversation {
            child,
            questions,
            answers,
        } = talk;
        let answered = std::thread::scope(|scope| {
            // Both sides at once: git answers each question before it reads the next, and a full pipe
            // would stop it.
            scope.spawn(move || put(questions, paths));
            let answered = take(answers, paths);
            if !matches!(answered, Ok(Some(_))) {
                // The writer may be waiting for a process that no longer reads.
                let _ = child.kill();
            }
            answered
        });
        match answered {
            Ok(Some(ignored)) => Ok(ignored),
            Ok(None) => Err(self.end_of_talk("it ended before it had answered")),
            Err(error) => Err(error),
        }
    }

    /// Ends the conversation. Answers count only when this succeeds.
    ///
    /// # Errors
    /// [`Error::Git`] when git ends with another code than its two good ones.
    pub fn finish(mut self) -> Result<()> {
        let Some(talk) = self.open.take() else {
            return Ok(());
        };
        let Conversation {
            mut child,
            questions,
            mut answers,
        } = talk;
        drop(questions);
        let more = answers
            .fill_buf()
            .map(|rest| !rest.is_empty())
            .unwrap_or(true);
        if more {
            let _ = child.kill();
        }
        let status = child.wait().map_err(|e| Error::io("run", "git", e))?;
        match status.code() {
            // 0: something was ignored, 1: nothing was.
            Some(0 | 1) if !more => Ok(()),
            _ => Err(failed(&status.to_string(), "it did not end well")),
        }
    }

    fn start(&self) -> Result<Conversation> {
        let mut child = self
            .repository
            .git()
            .in_directory(&self.work_dir, &self.git_dir)
            .args([COMMAND, "-z", "--stdin", "--no-index"])
            .args(["--verbose", "--non-matching"])
            .converse()?;
        let questions = child.stdin.take().expect("invariant: input is piped");
        let answers = child.stdout.take().expect("invariant: output is piped");
        Ok(Conversation {
            child,
            questions,
            answers: BufReader::new(answers),
        })
    }

    fn end_of_talk(&mut self, why: &str) -> Error {
        let status = self.open.take().map(|mut talk| talk.child.wait());
        match status {
            Some(Ok(status)) => failed(&status.to_string(), why),
            _ => failed("an unknown status", why),
        }
    }
}

impl Drop for IgnoreRules<'_> {
    fn drop(&mut self) {
        if let Some(talk) = &mut self.open {
            let _ = talk.child.kill();
            let _ = talk.child.wait();
        }
    }
}

fn failed(status: &str, why: &str) -> Error {
    Error::Git {
        command: COMMAND.to_owned(),
        status: status.to_owned(),
        stderr: why.to_owned(),
    }
}

/// Writes the questions. A process that is gone shows in what it did not answer.
fn put(questions: &mut ChildStdin, paths: &[BString]) {
    let mut text = Vec::with_capacity(paths.iter().map(|path| path.len() + 3).sum());
    for path in paths {
        // Git reads a pathspec here: after `./` a colon is no magic.
        text.extend_from_slice(b"./");
        text.extend_from_slice(path);
        text.push(0);
    }
    let _ = questions.write_all(&text).and_then(|()| questions.flush());
}

/// Reads one answer for each path: source, line, pattern, path. `None` when they end too early.
fn take(answers: &mut BufReader<ChildStdout>, paths: &[BString]) -> Result<Option<Vec<bool>>> {
    let mut ignored = Vec::with_capacity(paths.len());
    let mut fields: [Vec<u8>; 4] = Default::default();
    for path in paths {
        for field in &mut fields {
            field.clear();
            answers
                .read_until(0, field)
                .map_err(|e| Error::io("read from", "git", e))?;
            if field.pop() != Some(0) {
                return Ok(None);
            }
        }
        let [_, _, pattern, asked] = &fields;
        if asked.strip_prefix(b"./") != Some(path.as_slice()) {
            return Err(Error::Answer {
                command: COMMAND.to_owned(),
                why: format!("asked of '{path}', it spoke of '{}'", asked.as_bstr()),
            });
        }
        // No pattern: no rule; a pattern with `!` in front: a rule that takes it back in.
        ignored.push(!pattern.is_empty() && pattern[0] != b'!');
    }
    Ok(Some(ignored))
}
