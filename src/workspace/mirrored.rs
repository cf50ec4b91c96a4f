//! What the mirror shows of the workspaces, and how it is brought back in step with the refs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use serde_json::Value;

use super::{Error, Kind, Listed, Result, Store, Workspace, names};
use crate::events::{self, Event};
use crate::git;
use crate::mirror::{self, Shown, State, Updated};
use crate::model::{AgentId, json_path};

/// One thing in which the mirror and the refs differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The workspace.
    pub agent: String,
    /// What the mirror shows; `None` where it shows no such workspace.
    pub shown: Option<Shown>,
    /// What the refs say; `None` where there is no such workspace.
    pub actual: Option<Shown>,
}

impl Difference {
    /// Whether a workspace that the mirror knows with edits is gone from the refs, and no trash keeps
    /// it: somebody removed it behind our back.
    fn is_forgotten(&self, store: &Store<'_>) -> Result<bool> {
        let Some(shown) = &self.shown else {
            return Ok(false);
        };
        if self.actual.is_some() || !matches!(shown.state, State::Edited | State::Open) {
            return Ok(false);
        }
        let Ok(agent) = AgentId::new(&shown.agent) else {
            return Ok(false);
        };
        // Decided or dropped with our knowledge leaves change or trash refs.
        let refs = store.repository().refs();
        for kept in [names::TRASH, names::CHANGES] {
            if !refs.list(&format!("{kept}{agent}/"))?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// What [`Store::reconcile_mirror`] found and put right.
#[derive(Clone, Debug, Default)]
pub struct Reconciled {
    /// In what the mirror differed; it does not any more.
    pub differences: Vec<Difference>,
    /// Workspaces that the mirror showed with undecided edits and that are gone without a trace in the
    /// refs. Told once: the mirror does not show them any more.
    pub forgotten: Vec<Shown>,
}

impl Store<'_> {
    /// Logs the event of a new revision and shows it in the mirror. Both are conveniences and never
    /// fail us.
    pub(super) fn note(&self, workspace: &Workspace) {
        let meta = &workspace.meta;
        self.log_events(std::slice::from_ref(workspace), meta.kind.as_str());
        if self.shown_later {
            return;
        }
        let shown = self.shown(workspace);
        let afresh = meta.kind == Kind::Create;
        if let Ok(Updated::NoMirror) = mirror::show(self.repository(), &shown, afresh) {
            let _ = self.rebuild_mirror();
        }
    }

    /// Logs that a workspace is gone (`kind` is `dispose` or `release`) and shows it no more. To be called
    /// after [`Store::release`], under the same lock.
    pub fn note_end(&self, workspace: &Workspace, kind: &str) {
        self.note_ends(std::slice::from_ref(workspace), kind);
    }

    /// As [`Store::note_end`], of several: the mirror is written once.
    pub(super) fn note_ends(&self, workspaces: &[Workspace], kind: &str) {
        self.log_events(workspaces, kind);
        let gone: BTreeSet<&str> = workspaces.iter().map(|one| one.agent.as_str()).collect();
        if let Ok(Updated::NoMirror) = mirror::drop_agents(self.repository(), &gone) {
            let _ = self.rebuild_mirror();
        }
    }

    /// Shows a workspace as it stands now, for what changes without a revision: a directory that was
    /// opened or closed. The caller holds the agent's lock.
    pub fn refresh_mirror(&self, agent: &AgentId) {
        if let Ok(workspace) = self.load(agent) {
            let shown = self.shown(&workspace);
            if let Ok(Updated::NoMirror) = mirror::show(self.repository(), &shown, false) {
                let _ = self.rebuild_mirror();
            }
        }
    }

    fn log_events(&self, workspaces: &[Workspace], kind: &str) {
        let events = workspaces.iter().map(|workspace| {
            let meta = &workspace.meta;
            let ended = kind != meta.kind.as_str();
            Event {
                time: self.now(),
                kind,
                agent: meta.agent.as_str(),
                session: meta.session.as_deref(),
                revision: meta.revision,
                paths: if ended { &[] } else { &meta.paths },
                path_count: if ended { 0 } else { meta.path_count },
            }
        });
        events::append_all(self.repository(), &events.collect::<Vec<_>>());
    }

    /// Writes the mirror anew from the refs.
    ///
    /// # Errors
    /// When the refs cannot be listed or the file cannot be written.
    pub fn rebuild_mirror(&self) -> Result<Vec<Shown>> {
        mirror::write_all(self.repository(), || self.all_shown())
    }

    /// In what the mirror differs from the refs; nothing is changed. A mirror that is not there
    /// differs in every workspace.
    ///
    /// # Errors
    /// When the refs cannot be listed.
    pub fn verify_mirror(&self) -> Result<Vec<Difference>> {
        let shown = mirror::read(self.repository()).unwrap_or_default();
        let mut both: BTreeMap<String, (Option<Shown>, Option<Shown>)> = BTreeMap::new();
        for one in shown {
            let agent = one.agent.clone();
            both.entry(agent).or_default().0 = Some(one);
        }
        for one in self.all_shown()? {
            let agent = one.agent.clone();
            both.entry(agent).or_default().1 = Some(one);
        }
        Ok(both
            .into_iter()
            .filter(|(_, (shown, actual))| shown != actual)
            .map(|(agent, (shown, actual))| Difference {
                agent,
                shown,
                actual,
            })
            .collect())
    }

    /// Brings the mirror back in step with the refs and tells what had been out of step.
    ///
    /// # Errors
    /// As [`Store::verify_mirror`] and [`Store::rebuild_mirror`].
    pub fn reconcile_mirror(&self) -> Result<Reconciled> {
        let there = mirror::path(self.repository()).exists();
        let differences = self.verify_mirror()?;
        if differences.is_empty() && there {
            return Ok(Reconciled::default());
        }
        let mut forgotten = Vec::new();
        for difference in &differences {
            if difference.is_forgotten(self)? {
                forgotten.extend(difference.shown.clone());
            }
        }
        self.rebuild_mirror()?;
        Ok(Reconciled {
            differences,
            forgotten,
        })
    }

    fn all_shown(&self) -> Result<Vec<Shown>> {
        let listed = self.list()?;
        Ok(listed.iter().map(|one| self.shown_listed(one)).collect())
    }

    fn shown_listed(&self, listed: &Listed) -> Shown {
        match &listed.state {
            Ok(workspace) => self.shown_as(workspace, listed.edited, listed.directory.is_some()),
            Err(_) => Shown {
                root: self.root(),
                agent: listed.agent.to_string(),
                session: None,
                base: None,
                revision: None,
                effective_tree: None,
                state: State::Damaged,
                directory: None,
                proposal: None,
            },
        }
    }

    fn shown(&self, workspace: &Workspace) -> Shown {
        let base = self.base_tree(workspace);
        let edited = base.map_or(true, |base| base != workspace.tree);
        let open = self.open_directory(&workspace.agent);
        self.shown_as(workspace, edited, open.is_ok_and(|open| open.is_some()))
    }

    fn shown_as(&self, workspace: &Workspace, edited: bool, open: bool) -> Shown {
        let directory = open.then(|| self.directory_of(&workspace.agent)).flatten();
        Shown {
            root: self.root(),
            agent: workspace.agent.to_string(),
            session: workspace.meta.session.clone(),
            base: Some(workspace.base().to_string()),
            revision: Some(workspace.revision()),
            effective_tree: Some(workspace.tree.to_string()),
            state: match (open, edited) {
                (true, _) => State::Open,
                (_, true) => State::Edited,
                _ => State::Clean,
            },
            directory: directory.map(|path| json(&path)),
            proposal: workspace.meta.proposal,
        }
    }

    fn root(&self) -> Value {
        let repository = self.repository();
        json(repository.work_dir().unwrap_or(repository.common_dir()))
    }

    /// Where git's own record of linked worktrees says that the open directory is.
    fn directory_of(&self, agent: &AgentId) -> Option<PathBuf> {
        let record = self
            .repository()
            .common_dir()
            .join(format!("worktrees/relo-{agent}/gitdir"));
        let text = std::fs::read(record).ok()?;
        let dot_git = Path::new(git::os_str(text.trim_ascii_end().as_bstr()));
        Some(dot_git.parent()?.to_owned())
    }
}

fn json(path: &Path) -> Value {
    json_path(std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).as_bstr())
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::Git(git::Error::io("write", "mirror.json", error))
    }
}
