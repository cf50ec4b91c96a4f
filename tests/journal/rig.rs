//! A repository, and accepts that are planned from what its working tree holds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use git_vws::disk::{self, Point};
use git_vws::git::{Environment, ObjectKind, RefUpdate, Repository, Staging};
use git_vws::integrate::journal::{
    self, Draft, Entry, Error, FileState, Hooks, Journal, JournalId, Kind, OnDisk, Outcome,
    Resolution, Result, Step,
};
use git_vws::integrate::undo::{Undone, undo_with};
use git_vws::model::{AgentId, RepoPath, Revision};
use git_vws::workspace::Store;

use crate::common::Sandbox;

pub const FILE: u32 = 0o100644;
pub const EXE: u32 = 0o100755;
pub const LINK: u32 = 0o120000;

/// What a change makes of a path: mode and bytes, or nothing.
pub type New<'n> = Option<(u32, &'n str)>;
/// A path, the group that it belongs to, and what it becomes.
pub type Change<'n> = (&'n str, u32, New<'n>);

pub struct Rig {
    pub sandbox: Sandbox,
    pub repository: Repository,
}

/// A journal hook that never stops.
pub fn on(_: Point) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// A `Decide` that decides nothing.
pub fn nothing(_: &Entry, _: &mut Staging<'_>) -> Result<Vec<RefUpdate>> {
    Ok(Vec::new())
}

pub fn path(text: &str) -> RepoPath {
    RepoPath::new(text).unwrap()
}

pub fn id(number: u64) -> JournalId {
    JournalId::new(number).unwrap()
}

impl Rig {
    pub fn new() -> Self {
        let sandbox = Sandbox::new();
        sandbox.write("base", "base\n");
        sandbox.commit("base");
        let repository = Self::open(&sandbox, &sandbox.repo());
        Rig {
            sandbox,
            repository,
        }
    }

    pub fn open(sandbox: &Sandbox, at: &Path) -> Repository {
        let command = sandbox.command("git");
        let set = command.get_envs().filter_map(|(name, value)| {
            let pair: (OsString, OsString) = (name.to_owned(), value?.to_owned());
            Some(pair)
        });
        let environment = Environment {
            current_dir: at.to_owned(),
            variables: set.collect(),
        };
        Repository::open_at(at, environment).unwrap()
    }

    pub fn top(&self) -> PathBuf {
        self.sandbox.repo()
    }

    pub fn store(&self) -> Store<'_> {
        Store::new(&self.repository, 1_700_000_000)
    }

    pub fn journal(&self) -> Journal<'_> {
        Journal::lock(self.store()).unwrap()
    }

    pub fn write(&self, name: &str, bytes: &str, mode: u32) {
        let at = self.top().join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::write(&at, bytes).unwrap();
        fs::set_permissions(&at, fs::Permissions::from_mode(mode)).unwrap();
    }

    pub fn link(&self, name: &str, target: &str) {
        symlink(target, self.top().join(name)).unwrap();
    }

    pub fn bits(&self, name: &str) -> u32 {
        let meta = fs::symlink_metadata(self.top().join(name)).unwrap();
        meta.permissions().mode() & 0o7777
    }

    /// All of the working tree: paths with type, permission bits and bytes; folders too.
    pub fn tree(&self) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.top()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).unwrap() {
                let at = entry.unwrap().path();
                let name = at.strip_prefix(self.top()).unwrap().to_string_lossy();
                if name == ".git" {
                    continue;
                }
                let meta = fs::symlink_metadata(&at).unwrap();
                let bits = meta.permissions().mode() & 0o7777;
                let what = if meta.is_dir() {
                    folders.push(at.clone());
                    format!("folder {bits:o}")
                } else if meta.is_symlink() {
                    format!("link {:?}", fs::read_link(&at).unwrap())
                } else if meta.is_file() {
                    let bytes = fs::read(&at).unwrap();
                    format!("file {bits:o} {:?}", String::from_utf8_lossy(&bytes))
                } else {
                    "special".to_owned()
                };
                found.insert(name.into_owned(), what);
            }
        }
        found
    }

    /// A step from what the path holds now to `new`.
    pub fn step(&self, staging: &mut Staging<'_>, name: &str, group: u32, new: New<'_>) -> Step {
        let mut file = |mode: u32, bytes: &[u8]| {
            let id = staging.add(ObjectKind::Blob, bytes).unwrap();
            FileState::new(mode, id)
        };
        let before = disk::state(&self.top(), name.into(), true).unwrap_or(None);
        let before = before.map(|found| file(found.mode, &found.bytes));
        let after = new.map(|(mode, bytes)| file(mode, bytes.as_bytes()));
        let mut step = Step::new(path(name), before, after);
        step.group = group;
        step.agent = Some(AgentId::new("a").unwrap());
        step.proposal = Revision::new(3);
        step
    }

    /// Begins an entry of these changes: path, group, result.
    pub fn begin(&self, journal: &Journal<'_>, changes: &[Change<'_>]) -> Entry {
        let mut staging = Staging::new(&self.repository).unwrap();
        let steps = changes
            .iter()
            .map(|(name, group, new)| self.step(&mut staging, name, *group, *new))
            .collect();
        let draft = Draft {
            kind: Kind::Accept,
            steps,
            extra: serde_json::Map::new(),
        };
        journal.begin(draft, staging).unwrap()
    }

    /// Accepts these changes; `at` may stop it, and nothing is merged again.
    pub fn accept_with(
        &self,
        changes: &[Change<'_>],
        at: &mut dyn FnMut(Point) -> ControlFlow<()>,
    ) -> Result<Entry> {
        let journal = self.journal();
        let mut entry = self.begin(&journal, changes);
        let mut changed = |_: &Step, _: Option<&OnDisk>| {
            Ok(Resolution::Refuse(
                git_vws::model::Refusal::WorkspaceChanged,
            ))
        };
        let mut hooks = Hooks {
            changed: &mut changed,
            at,
        };
        let kept = journal.apply(&mut entry, &mut hooks)?;
        assert!(kept.is_empty(), "{kept:?}");
        journal.finish(&mut entry, &mut nothing)?;
        Ok(entry)
    }

    pub fn accept(&self, changes: &[Change<'_>]) -> Entry {
        self.accept_with(changes, &mut on).unwrap()
    }

    pub fn undo(&self, number: Option<u64>, paths: &[&str]) -> Result<Undone> {
        let paths: Vec<RepoPath> = paths.iter().map(|p| path(p)).collect();
        undo_with(
            &self.journal(),
            number.map(id),
            &paths,
            &mut nothing,
            &mut on,
        )
    }

    /// Recovers all that was interrupted.
    pub fn recover(&self) -> Vec<Entry> {
        let journal = self.journal();
        let open = journal::interrupted(self.store()).unwrap();
        let recovered = open.iter().map(|entry| {
            let recovered = journal.recover(entry, &mut nothing).unwrap();
            assert!(recovered.kept.is_empty(), "{:?}", recovered.kept);
            recovered.entry
        });
        let recovered = recovered.collect();
        assert!(journal::interrupted(self.store()).unwrap().is_empty());
        recovered
    }

    pub fn fsck(&self) {
        let out = self.sandbox.git(&["fsck", "--strict", "--no-dangling"]);
        assert_eq!(out, b"", "{}", String::from_utf8_lossy(&out));
    }
}

/// The outcomes, as a list of words.
pub fn outcomes(entry: &Entry) -> String {
    let word = |step: &Step| match &step.outcome {
        Outcome::Refused(kind) => format!("{}:{kind}", step.path.as_bstr()),
        other => format!("{}:{other:?}", step.path.as_bstr()),
    };
    entry.steps.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// The refusal that a call ended with.
#[track_caller]
pub fn refusal<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => match error.refusal() {
            Some(kind) => kind.to_string(),
            None => panic!("{error}"),
        },
    }
}

pub fn is_stopped<T>(result: &Result<T>) -> bool {
    matches!(result, Err(Error::Stopped))
}

pub fn no_leftovers(tree: &BTreeMap<String, String>) {
    assert!(!tree.keys().any(|name| name.contains(".vws-")), "{tree:#?}");
}

pub fn bytes(name: &std::ffi::OsStr) -> &[u8] {
    name.as_bytes()
}
