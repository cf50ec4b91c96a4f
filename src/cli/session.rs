//! What a command gets from the process around it: environment, clock, streams, the repository.
//!
//! Read once, here; the library gets values.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{SystemTime, UNIX_EPOCH};

use git_vws::git::{self, Environment, Repository};
use git_vws::layout;
use git_vws::model::sanitize_terminal;
use git_vws::output::{self, Form, Printer};
use git_vws::workspace::Store;

use super::report::Failure;

/// The printer that commands use.
pub(crate) type Out = Printer<File>;

/// An open repository at a point in time.
pub(crate) struct Session {
    repository: Repository,
    now: i64,
}

impl Session {
    /// Opens the repository that git would use from here.
    pub(crate) fn open() -> Result<Self, Failure> {
        let current_dir = std::env::current_dir()
            .map_err(|e| git::Error::io("find the current directory from", ".", e))?;
        let environment = Environment {
            current_dir,
            variables: std::env::vars_os().collect(),
        };
        let repository = Repository::open(environment)?;
        Ok(Session {
            repository,
            now: clock(),
        })
    }

    pub(crate) fn store(&self) -> Store<'_> {
        layout::store(&self.repository, self.now)
    }

    pub(crate) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// A printer to standard output. A command makes it before it changes anything: a setting that
    /// makes no sense is to be said while nothing has happened yet.
    pub(crate) fn printer(&self, form: Form) -> Result<Out, Failure> {
        let quote_path = self.repository.config()?.bool("core.quotepath")?;
        Ok(Printer::new(stdout()?, form, quote_path.unwrap_or(true)))
    }
}

/// The seconds since 1970.
pub(crate) fn clock() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
    })
}

/// Standard input without the buffer that Rust puts behind it.
pub(crate) fn stdin() -> Result<File, Failure> {
    let input = io::stdin().as_fd().try_clone_to_owned();
    Ok(input.map_err(Failure::Input)?.into())
}

/// Standard output without the line buffer that Rust puts before it.
pub(crate) fn stdout() -> output::Result<File> {
    Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
}

/// Prints text for people to standard output.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut printer = Printer::new(stdout()?, Form::Lines, true);
    printer.bytes(text.as_bytes())?;
    Ok(printer.finish()?)
}

/// Reads standard input to its end.
pub(crate) fn read_input() -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(Failure::Input)?;
    Ok(bytes)
}

/// Says a line to the person: `<level>: <text>`. Whatever names it holds are made safe to print. A
/// closed standard error is nobody's failure.
pub(crate) fn say(level: &str, text: &str) {
    let line = format!("{level}: {}\n", sanitize_terminal(text.into()));
    let _ = io::stderr().write_all(line.as_bytes());
}

/// Tells what to do next, unless `advice.vws` is off (or `GIT_ADVICE` in the environment, as for git
/// itself). All hints come through here.
pub(crate) fn hint(text: &str) {
    if advice(Session::open().ok().as_ref()) {
        say("hint", text);
    }
}

/// Whether hints are wanted. Where no repository or setting can be read, they are.
pub(crate) fn advice(session: Option<&Session>) -> bool {
    let off = |value: &str| ["", "0", "false", "no", "off"].contains(&value);
    if std::env::var("GIT_ADVICE").is_ok_and(|value| off(&value.to_ascii_lowercase())) {
        return false;
    }
    let set = session.and_then(|session| session.repository().config().ok());
    let set = set.and_then(|config| config.bool("advice.vws").ok().flatten());
    set != Some(false)
}

/// Prints lines for people to standard error, as they are.
pub(crate) fn print_error(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// A count in words: `1 change`, `2 changes`.
pub(crate) fn count_of(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
