//! `git vws batch`: many commands in one process, from a stream of bytes to another.
//!
//! Nothing here decides anything that the library does not: a command is read, one library call
//! made, its report framed. What a long life adds are caches (`hot`), so that a read by path costs
//! one look at a ref, and `begin`/`commit`, which make one revision of many edits.
//!
//! # Input
//!
//! ```text
//! stream    = { command } ;
//! command   = line [ payload ] ;
//! line      = word { SP word } LF ;               a word is bare, or C-quoted where it starts
//!                                                 with a double quote, as git quotes paths
//! payload   = <size> bytes, LF ;                  after `write`, and only there
//!
//! with -z:
//! line      = word NUL { word NUL } NUL ;         words raw, none of them empty
//! payload   = <size> bytes, NUL ;
//!
//! create [--base=<rev> | --from=<agent>[@<n>]] [--mode=<mode>] [--read-only] [--session=<s>] <agent>
//! list
//! show <agent>
//! read [--base] <agent> <path>
//! write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]
//! delete [-r] [--expect=<n>] <agent> <path>...
//! rename [-f] [--expect=<n>] <agent> <from> <to>
//! chmod [--expect=<n>] <agent> (+x | -x) <path>
//! symlink [--expect=<n>] <agent> <path> <target>
//! ls [--base] [-r] <agent> [<path>]
//! stat [--base] <agent> <path>
//! diff [--raw | --name-status | --numstat | -p] <agent>
//! discard [--expect=<n>] <agent> [<path>...]
//! dispose [--force] <agent>
//! restore [--expect=<n>] <agent> <n>
//! snap [--list | --drop=<n>] <agent>
//! context <agent> | context --check <agent> (<blob> <path>)...
//! log [-n<number>] <agent>
//! stack --on=<agent>[,<agent>...] [--strict] [--mode=<mode>] [--base=<base>] [--read-only] [--session=<s>] <agent> | stack --status [<agent>]
//! recut [--keep-conflicts] [--expect=<n>] <agent> <base>
//! rebase-onto [--without=<agent>[,<agent>...]] [--keep-conflicts] [--expect=<n>] <agent> <base>
//! reference <agent> <path>...
//! import [--expect=<n>] <agent> <reference> <path>...
//! base
//! begin [--expect=<n>] <agent>
//! commit
//! abort
//! flush
//! ```
//!
//! Options stand between the command's name and its agent, so a path may start with a dash. A
//! `<reference>` is the JSON object that `reference` answers, in one word; a `<base>` is a commit or
//! `worktree`, for the working tree as it is.
//!
//! # Output
//!
//! One answer for each command, in their order:
//!
//! ```text
//! answer    = head body LF ;                      NUL in place of each LF with -z
//! head      = status SP command { SP field } SP size LF ;
//! body      = <size> bytes ;
//! status    = "0" | "1" | "128" | "129" ;         as the exit codes: done, refused, failed, usage
//! command   = the command's name | "?" ;          "?" for one that is unknown
//!
//! 0 read <mode> <oid> <size>                      the file's bytes
//! 0 (write | delete | rename | chmod | symlink | discard | restore | commit | import) <revision> <size>
//!                                                 what the command prints
//! 0 (write | delete | rename | chmod | symlink) pending 0         inside begin
//! 0 begin <revision> 0                            the revision that was begun from
//! 0 (abort | flush) 0
//! 0 <other command> <size>                        what the command prints
//! 1 (stack | recut | rebase-onto) conflict <size> what the command prints: nothing was done, and why
//! (1 | 128 | 129) <command> <kind> <size>         a sentence; <kind> is the kind of the refusal,
//!                                                 `missing` for a path that is not there, or `-`
//! ```
//!
//! A reader needs no table: the last word of a head is the size of the body. "What the command
//! prints" is what `git vws overlay <command>` (or `git vws <command>`) prints, in the same form.
//!
//! With `--json` an answer is one object a line: `v`, `status`, `command`, the fields by their
//! names, and `content` (text, or `{"bytes":"<base64>"}`), `records` (the objects that the command
//! prints with `--json`) or `message`.
//!
//! Answers go out before the input is asked for more; with `--buffer`, on `flush`, at the end, and
//! when there is much of them.
//!
//! # Errors in the stream
//!
//! A malformed command is answered with 129 and the stream goes on. The payload of a malformed
//! `write` is skipped with it if its size can be read; a payload larger than
//! `relo.workspace.maxFileSize` is skipped and refused. A `write` whose payload is not followed by its
//! terminator had a wrong size: it is answered with 129, and the stream ends there, for what
//! follows could be content as well as commands. So it does where the input ends in the middle of a
//! command, which is not carried out.
//!
//! # One revision of many edits
//!
//! Between `begin` and `commit` stand edits of the agent that `begin` names, and reads; everything
//! else is answered with 129. Each edit is checked as it comes, and `read`, `stat`, `ls` and `diff`
//! see the state so far. No lock is held meanwhile: other writers go on, and `commit` applies the
//! edits to the revision that is then current, under the agent's lock; `begin --expect` refuses
//! (`stale`) if another revision came between. All edits or none: after anything but a read was answered with
//! another status than 0, `commit` is answered in the same way and nothing is published. The end of
//! the input aborts.

use std::io::{self, Read, Write};

use crate::git::{self, Repository};
use crate::model::AgentId;
use crate::workspace;

mod answer;
mod args;
mod hot;
mod input;
mod pending;
mod reads;
mod request;
mod session;
mod shared;
mod view;

use answer::{Answer, Failure, Output};
use input::{Input, Next, Payload};
use request::Fault;
use session::Session;

/// How a stream is read and answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Fields end in NUL, in both directions.
    pub nul: bool,
    /// Answers are JSON objects.
    pub json: bool,
    /// Answers wait for `flush`.
    pub buffer: bool,
}

/// How a stream ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ended {
    /// The agent whose edits were begun and not committed: none of them was published.
    pub aborted: Option<AgentId>,
    /// Whether the stream broke off: it ended in the middle of a command, or a size was wrong.
    pub broken: bool,
}

/// Why a stream could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input cannot be read.
    #[error("cannot read standard input: {0}")]
    Read(#[source] io::Error),
    /// The output takes no more answers.
    #[error("cannot write to standard output: {0}")]
    Write(#[source] io::Error),
    /// The repository's settings or objects cannot be opened.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
}

impl From<git::Error> for Error {
    fn from(error: git::Error) -> Self {
        Error::Workspace(error.into())
    }
}

/// The result of a stream.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What became of a command, in the numbers of the exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// 0.
    Done,
    /// 1: a documented "no".
    Refused,
    /// 128: a failure.
    Failed,
    /// 129: no such command, or not in this way.
    Usage,
}

impl Status {
    fn code(self) -> u8 {
        match self {
            Status::Done => 0,
            Status::Refused => 1,
            Status::Failed => 128,
            Status::Usage => 129,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Status::Done => "0",
            Status::Refused => "1",
            Status::Failed => "128",
            Status::Usage => "129",
        }
    }
}

/// Processes a stream of commands to its end. `clock` gives the seconds since 1970.
///
/// `input` needs no buffer of its own: answers are flushed each time before it is read.
///
/// # Errors
/// [`Error::Read`] and [`Error::Write`] when the streams fail; what the commands run into is
/// answered in the stream.
pub fn run(
    repository: &Repository,
    clock: &dyn Fn() -> i64,
    input: impl Read,
    output: impl Write,
    options: Options,
) -> Result<Ended> {
    let mut input = Input::new(input, options.nul);
    let mut output = Output::new(output, &options);
    let mut session = Session::new(repository, clock, &options)?;
    let mut broken = false;
    while !broken {
        let mut idle = || match options.buffer || output.is_idle() {
            true => Ok(()),
            false => output.flush(),
        };
        let next = input.next(&mut idle)?;
        let (words, payload) = match next {
            Next::Command { words, payload } => (words, payload),
            Next::End => break,
            Next::Cut => {
                broken = true;
                output.push(unusable("?", "the input ends in the middle of a command"))?;
                continue;
            }
        };
        let payload = match payload {
            None => Payload::Whole(Vec::new()),
            Some(size) => input.payload(size, session.limit(), &mut idle)?,
        };
        broken = matches!(payload, Payload::Cut | Payload::OutOfStep);
        let answer = carry_out(&mut session, words, payload);
        let flush = answer.command == "flush";
        output.push(answer)?;
        if flush {
            output.flush()?;
        }
    }
    output.flush()?;
    Ok(Ended {
        aborted: session.end(),
        broken,
    })
}

fn unusable(command: &'static str, what: &str) -> Answer {
    Answer::failed(command, &Failure::usage(what))
}

/// Answers one command.
fn carry_out(
    session: &mut Session<'_, '_>,
    words: Result<Vec<bstr::BString>, String>,
    payload: Payload,
) -> Answer {
    let words = words.map_err(|what| ("?", Failure::usage(what)));
    let request = words.and_then(|words| {
        let name = request::name(&words);
        let fail = |failure| (name, failure);
        let bytes = match payload {
            Payload::Whole(bytes) => Some(bytes),
            Payload::TooLarge => None,
            Payload::Cut => {
                let what = "the input ends within the content";
                return Err(fail(Failure::usage(what)));
            }
            Payload::OutOfStep => {
                let what = "the content is not as long as its size says; the stream ends here";
                return Err(fail(Failure::usage(what)));
            }
        };
        let is_here = bytes.is_some();
        let request = request::parse(&words, bytes.unwrap_or_default());
        let request = request.map_err(|fault| match fault {
            Fault::Usage(what) => fail(Failure::usage(what)),
            Fault::Refused(error) => fail(Failure::from(&error)),
        })?;
        if is_here {
            return Ok((name, request));
        }
        let what = format!("the content is larger than {} bytes", session.limit());
        let error = workspace::Error::refused(crate::model::Refusal::TooLarge, what);
        Err(fail(Failure::from(&error)))
    });
    match request {
        Ok((name, request)) => session.answer(name, request),
        Err((name, failure)) => session.fail(name, &failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_has_every_command_as_it_is_read() {
        let manual = include_str!("mod.rs");
        for (name, usage) in request::COMMANDS {
            assert!(usage.starts_with(name));
            let line = format!("//! {usage}\n");
            assert!(manual.contains(&line), "{usage}");
        }
    }
}
