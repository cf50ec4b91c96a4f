//! Laying a directory out.
//!
//! Under the agent's lock, in this order: the exec ref (from now on the workspace is known to have
//! a directory), the git dir, the files under a name of their own, the index and its copy, the
//! `.git` file, the record, and last the rename into place, which makes it complete. Killed anywhere
//! before that, the directory counts as unfinished: nobody was given it, so the next call clears it
//! away and starts afresh. A failure clears it away at once. What stands in the directory's own
//! place is never cleared away: it may be somebody's work.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::backend::{Backend, Choice, Ground, Job, Ladder, choose, is_final};
use super::directory::{Places, Record, identity};
use super::selected::{self, Selected};
use super::state::{State, not_ours, state, unmark};
use super::told::told_once;
use super::{Directory, Error, Result, Stats, admin, exclude, removal};
use crate::git::{self, Expect, Lock, RefUpdate, Repository, fault};
use crate::model::{AgentId, Refusal, RepoPath};
use crate::workspace::{Store, Workspace, names};

/// How a directory shall be laid out.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The back end.
    pub backend: Choice,
    /// Only these paths; all where there is none.
    pub pathspecs: Vec<RepoPath>,
    /// This very program, for a command in an overlay: only a new process can enter a namespace.
    /// Without it there are no overlays.
    pub program: Option<PathBuf>,
    /// Where a command sees its directory.
    pub at: Where,
    /// Whether nothing stays on disk after a command, not even what git ignores.
    pub settle: bool,
}

/// Where a command sees its directory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Where {
    /// At the user's own path, where an overlay can hide that; else at its own.
    #[default]
    Best,
    /// At the path of the user's checkout, so that absolute paths in build output stay true.
    Checkout,
    /// At its own path, below `relo.workspace.root`.
    Own,
}

/// Lays out the current revision of a workspace, or gives back the directory that is open.
///
/// # Errors
/// The refusals `unsupported` (a back end that this version does not have or that lays out whole trees
/// only, a repository or a disk that cannot hold the directory), `moved` (something else stands in its
/// place) and `materialized` (one is open that has not all of the paths); [`Error::Absent`]; failures of
/// Git and of the disk. Nothing is left behind then.
pub fn materialize(store: &Store<'_>, agent: &AgentId, options: &Options) -> Result<Directory> {
    if !options.pathspecs.is_empty() {
        return lay_out_some(store, agent, options);
    }
    #[cfg(target_os = "linux")]
    if let Some(directory) = super::mounted::lay_out(store, agent, options)? {
        return Ok(directory);
    }
    let ladder = choose(options.backend)?;
    #[cfg(target_os = "linux")]
    super::overlaid::retire(store, agent)?;
    let lock = store.lock(agent)?;
    lay_out(store, &lock, agent, &ladder)
}

/// The back end that `relo.workspace.materialization` names.
///
/// # Errors
/// [`git::Error::Config`] where it names none.
pub fn setting(repository: &Repository) -> Result<Choice> {
    const KEY: &str = "relo.workspace.materialization";
    let Some(value) = repository.config()?.string(KEY) else {
        return Ok(Choice::Auto);
    };
    value.parse().map_err(|_| {
        let key = KEY.to_owned();
        let why = "expected automatic or the name of a back end";
        git::Error::Config { key, value, why }.into()
    })
}

/// As [`lay_out`], for a directory that stays with its workspace, by the back end that the setting names.
pub(super) fn lay_out_standing(
    store: &Store<'_>,
    lock: &Lock,
    agent: &AgentId,
) -> Result<Directory> {
    let choice = match setting(store.repository())? {
        // An overlay is for commands only.
        Choice::Overlay => Choice::Auto,
        other => other,
    };
    let ladder = choose(choice)?;
    lay_out(store, lock, agent, &ladder)
}

/// Lays out some paths of the current revision.
fn lay_out_some(store: &Store<'_>, agent: &AgentId, options: &Options) -> Result<Directory> {
    let paths = &options.pathspecs;
    if !matches!(options.backend, Choice::Auto | Choice::Checkout) {
        let what = format!(
            "back end '{}' lays out whole trees; some paths only are for 'checkout'",
            options.backend
        );
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    #[cfg(target_os = "linux")]
    super::overlaid::retire(store, agent)?;
    let lock = store.lock(agent)?;
    let tree = store.load(agent)?.tree;
    let backend = Selected::new(store.repository(), (agent, tree), paths)?;
    let ladder = Ladder {
        steps: vec![Box::new(backend)],
        asked: false,
    };
    let directory = lay_out(store, &lock, agent, &ladder)?;
    selected::lacking(agent, &directory.only, paths)?;
    Ok(directory)
}

/// Lays out, unless a directory is open, for a caller that holds the agent's lock.
pub(super) fn lay_out(
    store: &Store<'_>,
    _lock: &Lock,
    agent: &AgentId,
    ladder: &Ladder<'_>,
) -> Result<Directory> {
    let mut replaced = None;
    match state(store, agent)? {
        State::Open(directory, _) => return Ok(*directory),
        State::Closed => {}
        State::Unfinished(places) => clear(store, agent, &places)?,
        State::Vanished(places) => {
            clear(store, agent, &places)?;
            replaced = Some(places.path);
        }
    }
    let cut = store.load(agent)?;
    let places = Places::new(store.repository(), agent)?;
    check_root(store, agent, &places)?;
    let pin = RefUpdate::set(names::exec(agent), Expect::Missing, cut.commit)
        .as_in(names::overlay(agent));
    // Whoever finds what was written in the directory finds the pin.
    let repository = store.repository();
    let below: [&Path; 2] = [&places.root, &repository.relo_dir()];
    repository.refs().apply_before(&[pin], &below)?;
    fault::point("exec-pinned");
    let plan = Plan {
        store,
        cut: &cut,
        places: &places,
    };
    let made = plan.lay_out(ladder);
    store.refresh_mirror(agent);
    match made {
        Ok(done) => Ok(Directory {
            agent: agent.clone(),
            path: places.path,
            admin: places.admin,
            cut,
            backend: done.backend.name().to_owned(),
            mounted: done.backend.mounts(),
            reason: done.reason,
            fallback: done.fallback,
            only: done.backend.only().to_vec(),
            fresh: true,
            replaced,
            stats: done.stats,
        }),
        Err(error) => {
            // What fails here too is cleared by the next call.
            let _ = clear(store, agent, &places);
            Err(error)
        }
    }
}

/// Makes the folder for directories and sees that it is a safe place.
fn check_root(store: &Store<'_>, agent: &AgentId, places: &Places) -> Result<()> {
    let repository = store.repository();
    if removal::is_there(&places.path)? {
        // Perhaps somebody's work: it is not ours to move.
        let why = "no directory of this workspace is open, yet something is there";
        return Err(not_ours(agent, &places.path, why));
    }
    admin::clear(repository, agent, places)?;
    let top = repository.work_dir();
    let Some(top) = top.filter(|top| places.root.starts_with(top)) else {
        let made = fs::create_dir_all(&places.root);
        return made.map_err(|e| Error::io("create", &places.root, e));
    };
    check_folders(top, &places.root)?;
    exclude::hide(repository, &places.root)?;
    fs::create_dir_all(&places.root).map_err(|e| Error::io("create", &places.root, e))?;
    check_folders(top, &places.root)
}

/// Sees that what there is on the way from `top` to `root` are folders, and no link leads out.
pub(super) fn check_folders(top: &Path, root: &Path) -> Result<()> {
    let above = root.ancestors().take_while(|at| *at != top);
    for at in above {
        match fs::symlink_metadata(at) {
            Ok(meta) if meta.is_dir() => {}
            Ok(_) => {
                let what = format!("'{}' is no folder, or leads elsewhere", at.display());
                return Err(Error::refused(Refusal::Escapes, what));
            }
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Error::io("look at", at, error)),
        }
    }
    Ok(())
}

/// One layout on its way.
struct Plan<'a, 'r> {
    store: &'a Store<'r>,
    cut: &'a Workspace,
    places: &'a Places,
}

/// A layout in its place.
struct Done<'l> {
    backend: &'l dyn Backend,
    reason: String,
    fallback: Option<String>,
    stats: Stats,
}

impl Plan<'_, '_> {
    fn lay_out<'l>(&self, ladder: &'l Ladder<'_>) -> Result<Done<'l>> {
        let (agent, places) = (&self.cut.agent, self.places);
        admin::create(self.store.repository(), agent, places, self.cut.commit)?;
        fault::point("admin-made");
        let mut no = Vec::new();
        let mut fallback: Option<(&str, String, String)> = None;
        let mut failure = None;
        for backend in &ladder.steps {
            let name = backend.name();
            let ground = Ground {
                store: self.store,
                tree: self.cut.tree,
                root: &places.root,
            };
            let why = match backend.fits(&ground)? {
                Ok(why) => why,
                Err(why) if ladder.asked => {
                    let what = format!("back end '{name}' does not work here: {why}");
                    return Err(Error::refused(Refusal::Unsupported, what));
                }
                Err(why) => {
                    no.push(format!("no {name}: {why}"));
                    continue;
                }
            };
            let reason = match (ladder.asked, &no[..]) {
                (true, _) => "asked for".to_owned(),
                (false, []) => format!("auto: {why}"),
                (false, no) => format!("auto: {}", no.join("; ")),
            };
            match self.fill(&**backend, &reason) {
                Ok(stats) => {
                    return Ok(Done {
                        backend: &**backend,
                        reason,
                        fallback: fallback.and_then(|(name, cause, why)| {
                            told_once(self.store.repository(), name, &cause).then_some(why)
                        }),
                        stats,
                    });
                }
                Err(error) if ladder.asked || is_final(&error) => return Err(error),
                Err(error) => {
                    let why = format!("'{name}' failed: {error}");
                    no.push(format!("{name} failed: {error}"));
                    fallback = Some((name, cause(&error), why));
                    failure = Some(error);
                }
            }
        }
        Err(failure.unwrap_or_else(|| {
            let what = format!("no back end works here: {}", no.join("; "));
            Error::refused(Refusal::Unsupported, what)
        }))
    }

    /// Lays out by one back end, into place.
    fn fill(&self, backend: &dyn Backend, reason: &str) -> Result<Stats> {
        let (agent, places) = (&self.cut.agent, self.places);
        // What a step before this one has left goes first: an index may be another name of a
        // template's, and would be written through.
        let new = fresh_folder(places, agent)?;
        for left in [places.admin.join("index"), places.manifest()] {
            match fs::remove_file(&left) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    return Err(Error::io("remove", &left, error));
                }
                _ => {}
            }
        }
        fault::point("layout-begun");
        let stats = backend.lay_out(&Job {
            store: self.store,
            repository: self.store.repository(),
            tree: self.cut.tree,
            into: &new,
            admin: &places.admin,
        })?;
        fault::point("layout-filled");
        if backend.keeps_manifest() {
            let copy = places.manifest();
            fs::copy(places.admin.join("index"), &copy)
                .map_err(|e| Error::io("write", &copy, e))?;
        }
        let file = new.join(".git");
        fs::write(&file, admin::git_file(&places.admin))
            .map_err(|e| Error::io("write", &file, e))?;
        let inode = identity(&new).map_err(|e| Error::io("look at", &new, e))?;
        let record = Record {
            path: places.path.clone(),
            inode,
            commit: self.cut.commit.to_string(),
            backend: backend.name().to_owned(),
            mounted: backend.mounts(),
            reason: reason.to_owned(),
            only: backend.only().to_vec(),
            stats,
        };
        let volume = self.store.repository().volume();
        record.write(&places.record(), agent, volume)?;
        fault::point("layout-recorded");
        fs::rename(&new, &places.path).map_err(|e| Error::io("create", &places.path, e))?;
        fault::point("layout-placed");
        let _ = fs::remove_dir(new.parent().unwrap_or(&new));
        Ok(stats)
    }
}

/// What of a failure is the same the next time: which of many files met it first is chance.
fn cause(error: &Error) -> String {
    match error {
        Error::Io { action, source, .. } => format!("cannot {action}: {source}"),
        error => error.to_string(),
    }
}

fn fresh_folder(places: &Places, agent: &AgentId) -> Result<PathBuf> {
    let new = places.unfinished(agent);
    if removal::is_there(&new)? {
        removal::discard(&places.root, &new)?;
    }
    removal::despite_removals(|| fs::create_dir_all(&new))
        .map_err(|e| Error::io("create", &new, e))?;
    Ok(new)
}

/// Clears away what an unfinished or vanished directory has left: the mark last, so that a kill in
/// between leaves what can be cleared again.
///
/// The caller holds the agent's lock.
pub(super) fn clear(store: &Store<'_>, agent: &AgentId, places: &Places) -> Result<()> {
    let new = places.unfinished(agent);
    if removal::is_there(&new)? {
        removal::discard(&places.root, &new)?;
    }
    // It goes with the last one.
    let _ = fs::remove_dir(new.parent().unwrap_or(&new));
    admin::clear_staged(store.repository(), agent)?;
    fault::point("clear-begun");
    admin::clear_ours(store.repository(), agent, places)?;
    fault::point("clear-unmark");
    if let Some(cut) = store.open_directory(agent)? {
        unmark(store, agent, cut)?;
    }
    Ok(())
}
