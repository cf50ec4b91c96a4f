//! What tests need that call the library itself: an open repository, words, and edits.
#![allow(dead_code, unreachable_pub)]

use std::path::PathBuf;
use std::time::SystemTime;

use git_vws::git::{Environment, Repository};
use git_vws::model::{AgentId, RepoPath};
use git_vws::workspace::{Edit, From, Mode, NewWorkspace, RecoverOptions, Recovered, Store};

use crate::common::Sandbox;

pub fn open(sandbox: &Sandbox) -> Repository {
    Repository::open_at(&sandbox.repo(), environment(sandbox)).expect("can't open the repository")
}

pub fn environment(sandbox: &Sandbox) -> Environment {
    let command = sandbox.command("true");
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    Environment {
        current_dir: sandbox.repo(),
        variables,
    }
}

/// The repository at a path, in this process's own (sealed) environment.
pub fn open_path(path: &std::path::Path) -> Repository {
    let environment = Environment {
        current_dir: path.to_owned(),
        variables: std::env::vars_os().collect(),
    };
    Repository::open_at(path, environment).expect("can't open the repository")
}

pub fn agent(name: &str) -> AgentId {
    AgentId::new(name).expect("an agent's name")
}

pub fn path(name: &str) -> RepoPath {
    RepoPath::new(name).expect("a path")
}

pub fn from(from: From) -> NewWorkspace {
    NewWorkspace {
        from,
        mode: Mode::Virtual,
        read_only: false,
        session: None,
    }
}

pub fn write(name: &str, bytes: &str) -> Edit {
    Edit::Write {
        path: path(name),
        bytes: bytes.into(),
        executable: None,
    }
}

pub fn recover(store: &Store<'_>) -> Recovered {
    let options = RecoverOptions {
        deep: true,
        ..RecoverOptions::new(SystemTime::now())
    };
    store.recover(options).expect("recover failed")
}

/// Everything that a process of ours may leave when it dies; empty when all is cleared up.
pub fn leftovers(sandbox: &Sandbox) -> Vec<PathBuf> {
    let git = sandbox.repo().join(".git");
    let mut found = Vec::new();
    let mut left = vec![git.clone()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a directory entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let temporary = [".lock", ".keep", ".tmp", ".new"]
                .iter()
                .any(|suffix| name.ends_with(suffix));
            if temporary || name.starts_with("tmp_") || folder.ends_with("locks/steps") {
                found.push(path);
            } else if path.is_dir() && !path.is_symlink() {
                left.push(path);
            }
        }
    }
    found
}

/// As [`leftovers`], in the whole repository: the user's tree, and where directories are.
pub fn litter(sandbox: &Sandbox) -> Vec<PathBuf> {
    let mut found = leftovers(sandbox);
    let mut left = vec![sandbox.repo()];
    while let Some(folder) = left.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("a directory entry").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // The folder itself is there as soon as a directory was; what counts is what is in it.
            let relo = folder.parent().is_some_and(|above| {
                above.ends_with(".relo/worktrees") || above.ends_with(".git/relo")
            });
            let staging = relo
                && matches!(
                    folder.file_name().and_then(|n| n.to_str()),
                    Some(".new" | "new" | ".trash")
                );
            let ours = name.starts_with(".vws-")
                || name.starts_with(".tmp")
                || name.contains(".vws-kept")
                || name.starts_with("vws-clean-")
                || name.starts_with("vws-rules-");
            if ours || staging {
                found.push(path);
            } else if path.is_dir() && !path.is_symlink() && !path.ends_with(".git/objects") {
                left.push(path);
            }
        }
    }
    found
}

/// A recovery of everything; it must find nothing that needs the user.
pub fn recover_all(store: &Store<'_>, what: &str) -> git_vws::integrate::upkeep::Report {
    let options = RecoverOptions::new(SystemTime::now());
    let report = git_vws::integrate::upkeep::recover(store, options)
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(!report.needs_attention(), "{what}: {report:#?}");
    report
}

/// Whether the long forms of the tests were asked for.
pub fn long() -> bool {
    std::env::var_os("GIT_VWS_TEST_LONG").is_some_and(|value| value == "1")
}
