//! Running the user's command in an overlay.
//!
//! The directory is open from its laying out to its capture, as any other: exec ref, git dir, record.
//! Only its files are elsewhere: what the command changes goes to the upper folder, and the place of
//! the directory stays empty for everybody but the command. Killed in the middle, the next run, import
//! or `settle` finds an open directory and captures what was written.
//!
//! Nobody shares an overlay: a run has its directory alone, and whoever comes meanwhile is refused
//! `locked`. After the capture the upper folder is [parked](super::parked).

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use super::backend::{Choice, Ladder};
use super::capture::{self, Captured};
use super::exec::{self, Command, ExitKind, Finished, Ran, Relay};
use super::materialize::{self, Where};
use super::overlay::{At, Overlay, Place, Spec, Stand, cached_probe, forget_probe, inside};
use super::removal::{Aside, Clearance};
use super::settle::{self, Settled, would_be_lost};
use super::state::{State, state};
use super::told::told_once;
use super::{Directory, Error, Options, Result, ended, in_use, parked, probes};
use crate::git::{self, Lock, Repository};
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// How long a run waits for the directory: others take it for a moment, to remove what is parked.
const PATIENCE: Duration = Duration::from_secs(2);

/// What became of the attempt.
pub(super) enum Outcome {
    /// The command ran.
    Ran(Box<Finished>),
    /// It is for another back end to run it; the reason is given where the user should hear of it.
    Not(Option<String>),
}

/// Runs the command in an overlay, where that is wanted and works.
pub(super) fn exec(
    store: &Store<'_>,
    agent: &AgentId,
    command: &Command,
    options: &Options,
) -> Result<Outcome> {
    let asked = options.backend == Choice::Overlay;
    if !asked && options.backend != Choice::Auto {
        return Ok(Outcome::Not(None));
    }
    let repository = store.repository();
    let refuse = |why: String| match asked {
        true => Err(Error::refused(
            Refusal::Unsupported,
            format!("no overlay here: {why}"),
        )),
        false => Ok(Outcome::Not(
            told_once(repository, "overlay", &why).then_some(why),
        )),
    };
    let Some(program) = options.program.as_deref() else {
        return match asked {
            true => refuse("the caller cannot start itself".to_owned()),
            false => Ok(Outcome::Not(None)),
        };
    };
    if settle::stays(&store.load(agent)?) {
        return match asked {
            true => refuse(format!("workspace '{agent}' has a directory that stays")),
            false => Ok(Outcome::Not(None)),
        };
    }
    if let State::Open(directory, _) = state(store, agent)?
        && (directory.backend != parked::OVERLAY || directory.mounted)
    {
        return match asked && !directory.mounted {
            true => refuse(format!("a directory by '{}' is open", directory.backend)),
            false => Ok(Outcome::Not(None)),
        };
    }
    if let Err(why) = works(repository, program) {
        return refuse(why);
    }
    let alone = in_use::alone_within(repository, agent, PATIENCE)?;
    let directory = match lay_out(store, agent, options, program)? {
        Laid::Out(directory) => directory,
        Laid::Other => return Ok(Outcome::Not(None)),
    };
    let run = Run {
        store,
        command,
        options,
        program,
        directory: &directory,
    };
    let relay = Relay::new().map_err(|source| exec::failed(command, source))?;
    let ran = match run.run(&relay)? {
        Ok(ran) => ran,
        Err(why) => {
            // Nothing ran: what an earlier run may have left is captured, and all of it goes.
            finish(store, agent, alone, End::Remove)?;
            relay.end();
            forget_probe(&probes::cache(repository), &repository.relo_dir());
            return refuse(why);
        }
    };
    ended::note(repository, agent, ran.status);
    let end = match (ran.survivors, options.settle) {
        (0, true) => End::Remove,
        (0, false) => End::Park,
        _ => End::Keep,
    };
    let (settled, removal) = match finish(store, agent, alone, end) {
        Ok((settled, removal)) => (Ok(settled), removal),
        Err(error) => (Err(error), None),
    };
    relay.end();
    Ok(Outcome::Ran(Box::new(Finished {
        status: ran.status,
        start_error: ran.start_error,
        directory: *directory,
        ended: ran.ended,
        survivors: ran.survivors,
        settled,
        removal,
        fallback: None,
    })))
}

/// Finds out whether overlays work in this repository, so that no command has to wait for it.
pub fn try_overlays(repository: &Repository, program: &Path) {
    let _ = works(repository, program);
}

/// Whether overlays work in this repository; the answer is kept.
fn works(repository: &Repository, program: &Path) -> std::result::Result<(), String> {
    let relo = repository.relo_dir();
    fs::create_dir_all(&relo).map_err(|e| format!("cannot create '{}': {e}", relo.display()))?;
    cached_probe(&probes::cache(repository), &relo, program)
}

enum Laid {
    Out(Box<Directory>),
    /// A directory that is no private overlay is open.
    Other,
}

fn lay_out(store: &Store<'_>, agent: &AgentId, options: &Options, program: &Path) -> Result<Laid> {
    let lock = store.lock(agent)?;
    match state(store, agent)? {
        State::Open(directory, _) if is_private(&directory) => return Ok(Laid::Out(directory)),
        State::Open(..) => return Ok(Laid::Other),
        _ => {}
    }
    let backend = Overlay {
        store,
        agent,
        program,
        mounted: false,
    };
    let ladder = Ladder {
        steps: vec![Box::new(backend)],
        asked: options.backend == Choice::Overlay,
    };
    match materialize::lay_out(store, &lock, agent, &ladder) {
        Ok(directory) => Ok(Laid::Out(Box::new(directory))),
        Err(error) => {
            // Half of one is worth nothing, and a full disk wants the space.
            let aside = parked::set_aside(store.repository(), agent);
            let _ = aside.map(|aside| aside.map(Aside::delete));
            Err(error)
        }
    }
}

struct Run<'a, 'r> {
    store: &'a Store<'r>,
    command: &'a Command,
    options: &'a Options,
    program: &'a Path,
    directory: &'a Directory,
}

impl Run<'_, '_> {
    /// Runs the command; the inner error is the reason why the mount did not come about.
    fn run(&self, relay: &Relay) -> Result<std::result::Result<Ran, String>> {
        let repository = self.store.repository();
        let agent = &self.directory.agent;
        let root = parked::root(repository, agent);
        let gone = || Error::io("open", &root, io::ErrorKind::NotFound);
        let mut stand = Stand::open(repository, &root)?.ok_or_else(gone)?;
        stand.hold()?;
        match Lock::exclusive(&stand.upper().lock(), PATIENCE) {
            Ok(free) => drop(free),
            Err(git::Error::Locked { .. }) => {
                let what = format!(
                    "a process of an earlier run is left in the directory of workspace '{agent}'"
                );
                return Err(Error::refused(Refusal::Locked, what));
            }
            Err(error) => return Err(error.into()),
        }
        let place = Place {
            own: self.directory.path.clone(),
            admin: self.directory.admin.clone(),
            fence: repository
                .config()?
                .bool("relo.exec.fence")?
                .unwrap_or(true),
        };
        let at = match self.options.at {
            Where::Own => At::Own,
            Where::Checkout => At::Checkout,
            Where::Best if repository.work_dir().is_some() => At::Checkout,
            Where::Best => At::Own,
        };
        if self.command.argv.is_empty() {
            return Err(exec::failed(
                self.command,
                io::ErrorKind::InvalidInput.into(),
            ));
        }
        let spec = Spec {
            command: self.command.argv.clone(),
            ..stand.spec(repository, &place, at)?
        };
        let variables = exec::environment(self.command, agent, &spec.cwd);
        let run = || exec::run(self.command, &variables, &spec.cwd, relay);
        match inside(&spec, run) {
            Some(Ok(ran)) => return ran.map(Ok),
            Some(Err(error)) => return Ok(Err(error.to_string())),
            None => {}
        }
        let report = root.join("report");
        let _ = fs::remove_file(&report);
        let start = spec.invocation(self.program);
        let command = Command {
            argv: [start.program.into_os_string()]
                .into_iter()
                .chain(start.args)
                .collect(),
            environment: self.command.environment.clone(),
        };
        let mut ran = exec::run(&command, &variables, &self.directory.path, relay)?;
        if let Some(error) = ran.start_error.take() {
            return Ok(Err(error.to_string()));
        }
        let report = fs::read_to_string(&report).unwrap_or_default();
        if report.is_empty() {
            return Ok(Ok(ran));
        }
        ran.status = match ran.status {
            ExitKind::Code(127) => ExitKind::NotFound,
            ExitKind::Code(126) => ExitKind::NotExecutable,
            _ => return Ok(Err(report)),
        };
        ran.start_error = Some(io::Error::other(report));
        Ok(Ok(ran))
    }
}

/// What becomes of the directory after a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// It stays open.
    Keep,
    /// It is closed, and what git ignores stays for the next run.
    Park,
    /// Nothing stays.
    Remove,
}

/// Captures, and ends the directory unless something in it could not be captured.
fn finish(
    store: &Store<'_>,
    agent: &AgentId,
    alone: Lock,
    end: End,
) -> Result<(Settled, Option<Clearance>)> {
    let lock = store.lock(agent)?;
    let (directory, places) = match state(store, agent)? {
        State::Open(directory, places) => (directory, places),
        State::Vanished(places) => {
            let workspace = store.load(agent)?;
            let settled = settle::without_capture(workspace, Some(places.path));
            return Ok((settled, None));
        }
        State::Closed | State::Unfinished(_) => return Err(settle::not_open(agent)),
    };
    // The mirror is written once, when the directory is closed or stays.
    let captured = capture::capture_locked(&store.shown_later(), &lock, &directory)?;
    let mut settled = Settled {
        kept: None,
        stays: false,
        vanished: None,
        left_behind: Vec::new(),
        captured,
    };
    if end == End::Keep || settled.captured.left_out.iter().any(would_be_lost) {
        settled.kept = Some(directory.files(store.repository()));
        store.refresh_mirror(agent);
        return Ok((settled, None));
    }
    let whole = end == End::Remove || !park(store, agent, &settled.captured)?;
    let parts = (&*directory, &places);
    let aside = settle::take_away(store, parts, whole)?;
    drop((alone, lock));
    let removal = settle::delete_meanwhile(store, &places, aside);
    Ok((settled, removal))
}

/// Parks the upper folder, if it holds what the workspace holds and nothing else that counts.
fn park(store: &Store<'_>, agent: &AgentId, captured: &Captured) -> Result<bool> {
    let ignored = |kind: Refusal| kind == Refusal::Ignored;
    if captured.workspace.meta.read_only || !captured.left_out.iter().all(|one| ignored(one.kind)) {
        return Ok(false);
    }
    let root = parked::root(store.repository(), agent);
    let Some(stand) = Stand::open(store.repository(), &root)? else {
        return Ok(false);
    };
    stand.park(captured.workspace.tree)?;
    Ok(true)
}

/// Whether it is an overlay that only its command sees.
fn is_private(directory: &Directory) -> bool {
    directory.backend == parked::OVERLAY && !directory.mounted
}

/// Ends an overlay that a run has left open, because it was killed or could not capture everything:
/// for who needs another kind of directory.
///
/// # Errors
/// The refusal `locked` while a command runs in it; `materialized` where something in it could not be
/// captured.
pub(super) fn retire(store: &Store<'_>, agent: &AgentId) -> Result<()> {
    match state(store, agent)? {
        State::Open(directory, _) if is_private(&directory) => {}
        _ => return Ok(()),
    }
    let alone = in_use::alone(store.repository(), agent)?;
    let (settled, _removal) = finish(store, agent, alone, End::Park)?;
    match settled.kept {
        None => Ok(()),
        Some(kept) => {
            let what = format!(
                "an overlay of workspace '{agent}' is open, and not all of what is in '{}' could be \
                 captured",
                kept.display()
            );
            Err(Error::refused(Refusal::Materialized, what))
        }
    }
}
