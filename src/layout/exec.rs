//! Running the user's command in a directory.
//!
//! The command gets the directory as its current one and the caller's environment, without the
//! variables that would point git at another repository. While it runs, a signal to us is the
//! command's business: it is passed on, and whatever the command makes of it, what it left on disk
//! is captured. What it leaves running is ended before the capture, so that nothing writes while we
//! read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use super::materialize::Where;
use super::removal::Clearance;
use super::settle::{self, Settled, keep, settle_after_run};
use super::{Directory, Error, Options, Result, ended, in_use, materialize, processes};
use crate::git::PATIENCE;
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// The caller's variables that the command does not get: they would take git elsewhere.
const LEFT_OUT: [&str; 14] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_QUARANTINE_PATH",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_GRAFT_FILE",
    "GIT_SHALLOW_FILE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "OLDPWD",
];

/// What the kernel says of a file that is no program: `ENOEXEC`.
const NO_FORMAT: i32 = rustix::io::Errno::NOEXEC.raw_os_error();

/// A command of the user's.
#[derive(Clone, Debug)]
pub struct Command {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// The caller's environment.
    pub environment: BTreeMap<OsString, OsString>,
}

/// How the command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitKind {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// It could not be found.
    NotFound,
    /// It was found and could not be started.
    NotExecutable,
}

impl ExitKind {
    /// The exit code that a shell, or `env`, would give.
    pub fn code(self) -> i32 {
        match self {
            ExitKind::Code(code) => code,
            ExitKind::Signal(signal) => 128 + signal,
            ExitKind::NotFound => 127,
            ExitKind::NotExecutable => 126,
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => ExitKind::Code(code),
            (None, signal) => ExitKind::Signal(signal.unwrap_or_default()),
        }
    }
}

/// What became of a command and its directory.
#[derive(Debug)]
pub struct Finished {
    /// How the command ended.
    pub status: ExitKind,
    /// Why it could not be started, where it could not.
    pub start_error: Option<io::Error>,
    /// Where it ran.
    pub directory: Directory,
    /// How many processes it left behind that were ended.
    pub ended: usize,
    /// How many of them could not be ended; the directory stays then.
    pub survivors: usize,
    /// What was captured, and whether the directory is gone. On a failure it stays.
    pub settled: Result<Settled>,
    /// The deletion of what is not needed any more, where it is still under way.
    pub removal: Option<Clearance>,
    /// Why there was no overlay, where that is to be told. Which other back end failed is in
    /// `directory`.
    pub fallback: Option<String>,
}

/// Lays a directory out unless one is open, runs a command in it with the caller's standard input and
/// outputs, captures, and settles the directory unless it was open before or is one that stays. Where the options allow it
/// and the machine can, the directory is an overlay.
///
/// The process must have no other children while this runs: on Linux, what the command leaves
/// behind is recognised by being ours.
///
/// # Errors
/// As [`materialize()`]; the refusals `locked` while another command has the overlay of the workspace, and
/// `unsupported` where it was to be seen at the path of the checkout and there is no overlay;
/// [`Error::Command`] when the command cannot be followed. What goes wrong after
/// it has run is in [`Finished`].
pub fn exec(
    store: &Store<'_>,
    agent: &AgentId,
    command: &Command,
    options: &Options,
) -> Result<Finished> {
    #[cfg(target_os = "linux")]
    let fallback = match super::overlaid::exec(store, agent, command, options)? {
        super::overlaid::Outcome::Ran(finished) => return Ok(*finished),
        super::overlaid::Outcome::Not(why) => why,
    };
    #[cfg(not(target_os = "linux"))]
    let fallback: Option<String> = None;
    if options.at == Where::Checkout {
        let why = fallback.map(|why| format!(": {why}")).unwrap_or_default();
        let what = format!(
            "only an overlay of the command's own is seen at the path of the checkout{why}"
        );
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    #[cfg(target_os = "linux")]
    super::overlaid::retire(store, agent)?;
    let used = in_use::shared(store.repository(), agent, PATIENCE)?;
    let directory = materialize(store, agent, options)?;
    let relay = Relay::new().map_err(|source| failed(command, source))?;
    let ran = run(
        command,
        &environment(command, agent, &directory.path),
        &directory.path,
        &relay,
    )?;
    ended::note(store.repository(), agent, ran.status);
    drop(used);
    let stays = settle::stays(&directory.cut);
    let settled = if directory.fresh && ran.survivors == 0 && !stays {
        settle_after_run(store, agent)
    } else {
        keep(store, agent)
    };
    relay.end();
    Ok(Finished {
        status: ran.status,
        start_error: ran.start_error,
        directory,
        ended: ran.ended,
        survivors: ran.survivors,
        settled,
        removal: None,
        fallback,
    })
}

pub(super) fn failed(command: &Command, source: io::Error) -> Error {
    Error::Command {
        program: command.argv.first().cloned().unwrap_or_default(),
        source,
    }
}

/// How a command went.
pub(super) struct Ran {
    pub(super) status: ExitKind,
    pub(super) start_error: Option<io::Error>,
    pub(super) ended: usize,
    pub(super) survivors: usize,
}

/// Runs a command in a folder, with these variables and no others.
pub(super) fn run(
    command: &Command,
    variables: &BTreeMap<OsString, OsString>,
    directory: &Path,
    relay: &Relay,
) -> Result<Ran> {
    let Some((program, arguments)) = command.argv.split_first() else {
        return Err(failed(command, io::ErrorKind::InvalidInput.into()));
    };
    let leftovers = processes::Watch::start();
    let spawn = |program: &OsStr, before: &[&OsStr]| {
        std::process::Command::new(program)
            .args(before)
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .envs(variables)
            .spawn()
    };
    let spawned = spawn(program, &[]).or_else(|error| match error.raw_os_error() {
        // A script that does not say what runs it is the shell's, as it is when a shell starts it.
        Some(NO_FORMAT) => spawn(OsStr::new("/bin/sh"), &[program]),
        _ => Err(error),
    });
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            return Ok(Ran {
                status: match error.kind() {
                    io::ErrorKind::NotFound => ExitKind::NotFound,
                    _ => ExitKind::NotExecutable,
                },
                start_error: Some(error),
                ended: 0,
                survivors: 0,
            });
        }
    };
    // Not reaped while signals are passed on, so that none goes to a stranger with its number.
    let ended = relay.follow(Pid::from_child(&child));
    let status = child.wait().and_then(|status| ended.map(|()| status));
    let status = status.map_err(|source| failed(command, source))?;
    let (ended, survivors) = leftovers.end();
    Ok(Ran {
        status: status.into(),
        start_error: None,
        ended,
        survivors,
    })
}

pub(super) fn environment(
    command: &Command,
    agent: &AgentId,
    directory: &Path,
) -> BTreeMap<OsString, OsString> {
    let mut variables = command.environment.clone();
    for name in LEFT_OUT {
        variables.remove(OsStr::new(name));
    }
    variables.insert("PWD".into(), directory.into());
    variables.insert("GIT_VWS_AGENT".into(), agent.as_str().into());
    variables
}

/// Signals to us on their way to the command.
///
/// From its making to [`Relay::end`] none of them ends this process, apart from those that the caller
/// had set to be ignored: those stay ignored, for the command too.
pub(super) struct Relay {
    signals: Vec<i32>,
    ended: Arc<AtomicBool>,
}

impl Relay {
    pub(super) fn new() -> io::Result<Self> {
        let ignored = processes::ignored_signals();
        let signals: Vec<i32> = [SIGINT, SIGTERM, SIGHUP, SIGQUIT]
            .into_iter()
            .filter(|signal| ignored >> (signal - 1) & 1 == 0)
            .collect();
        let ended = Arc::new(AtomicBool::new(false));
        for signal in &signals {
            signal_hook::flag::register_conditional_default(*signal, Arc::clone(&ended))?;
        }
        Ok(Relay { signals, ended })
    }

    /// Waits until the process has ended, passing signals on to it; does not reap it.
    fn follow(&self, child: Pid) -> io::Result<()> {
        let mut arriving = SignalsInfo::<WithOrigin>::new(&self.signals)?;
        let handle = arriving.handle();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                for origin in &mut arriving.forever() {
                    // What the terminal sends, it sends to the command as well.
                    if !matches!(origin.cause, Cause::Kernel)
                        && let Some(signal) = named(origin.signal)
                    {
                        let _ = kill_process(child, signal);
                    }
                }
            });
            let waited = loop {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
                match waitid(WaitId::Pid(child), options) {
                    Err(rustix::io::Errno::INTR) => {}
                    Err(error) => break Err(error.into()),
                    Ok(_) => break Ok(()),
                }
            };
            handle.close();
            waited
        })
    }

    /// Gives the signals their default effect back.
    pub(super) fn end(self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

fn named(signal: i32) -> Option<Signal> {
    match signal {
        SIGINT => Some(Signal::INT),
        SIGTERM => Some(Signal::TERM),
        SIGHUP => Some(Signal::HUP),
        SIGQUIT => Some(Signal::QUIT),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_environment_points_nowhere_else() {
        let pair = |name: &str| (OsString::from(name), OsString::from("x"));
        let command = Command {
            argv: Vec::new(),
            environment: ["HOME", "GIT_DIR", "GIT_CONFIG_GLOBAL", "GIT_PREFIX", "PWD"]
                .map(pair)
                .into(),
        };
        let agent = AgentId::new("a").unwrap();
        let given = environment(&command, &agent, Path::new("/d"));
        let names: Vec<_> = given.keys().filter_map(|name| name.to_str()).collect();
        assert_eq!(names, ["GIT_CONFIG_GLOBAL", "GIT_VWS_AGENT", "HOME", "PWD"]);
        assert_eq!(given[OsStr::new("PWD")], "/d");
        assert_eq!(given[OsStr::new("GIT_VWS_AGENT")], "a");
    }

    #[test]
    fn exit_codes_are_those_of_a_shell() {
        assert_eq!(ExitKind::Code(3).code(), 3);
        assert_eq!(ExitKind::Signal(15).code(), 143);
        assert_eq!(ExitKind::NotFound.code(), 127);
        assert_eq!(ExitKind::NotExecutable.code(), 126);
    }
}
