//! Build output of an agent, or of another working tree, as the next warm layer.

use std::path::PathBuf;

use bstr::BString;

use super::users_tree;
use super::warm::{self, Origin, Warm};
use crate::git::{ObjectId, Repository};
use crate::layout::queue::threads;
use crate::layout::settle::not_open;
use crate::layout::state::{State, state};
use crate::layout::{Error, Result, capture_directory, ended, parked};
use crate::model::{AgentId, Refusal};
use crate::workspace::Store;

/// Makes the next warm layer of what an agent has built: in its open directory, or in what its last
/// command has left to the next.
///
/// # Errors
/// The refusal `unsupported` where its last command failed, [`Error::NotOpen`] where there is neither;
/// failures of Git and of the disk.
pub fn warm_from_agent(store: &Store<'_>, agent: &AgentId) -> Result<Option<Warm>> {
    let repository = store.repository();
    store.load(agent)?;
    if let Some(how) = ended::last(repository, agent).filter(|how| how != "0") {
        let what = format!(
            "the last command of workspace '{agent}' failed ({how}): its build output is not shared"
        );
        return Err(Error::refused(Refusal::Unsupported, what));
    }
    let private = |directory: &crate::layout::Directory| {
        directory.backend == parked::OVERLAY && !directory.mounted
    };
    match state(store, agent)? {
        State::Open(directory, _) if !private(&directory) => {
            let tree = capture_directory(store, &directory)?.workspace.tree;
            let origin = Origin::Directory(directory.path.clone(), directory.admin.clone());
            refresh(store, tree, origin)
        }
        // One that a run has left open holds no more than what was captured of it, if that.
        State::Open(..) => {
            let what = format!(
                "a run of workspace '{agent}' was cut short: its build output is not shared"
            );
            Err(Error::refused(Refusal::Unsupported, what))
        }
        _ => {
            let _alone = crate::layout::in_use::alone(repository, agent)?;
            let (tree, layers, folders) =
                left_for_the_next(repository, agent)?.ok_or_else(|| not_open(agent))?;
            refresh(store, tree, Origin::Layers(layers, folders))
        }
    }
}

/// Makes the next warm layer of what was built in another working tree of the repository. The `store` is
/// that of the checkout for which the layer is, `other` that of the working tree.
///
/// # Errors
/// Failures of Git and of the disk.
pub fn warm_from_tree(store: &Store<'_>, other: &Store<'_>) -> Result<Option<Warm>> {
    let tree = users_tree(other)?;
    let top = other.repository().require_work_dir()?.to_owned();
    let git_dir = other.repository().git_dir().to_owned();
    refresh(store, tree, Origin::Directory(top, git_dir))
}

fn refresh(store: &Store<'_>, tree: ObjectId, from: Origin) -> Result<Option<Warm>> {
    let options = warm::Options {
        tree: Some(tree),
        now: u64::try_from(store.now()).unwrap_or(0),
        threads: threads(),
        force: true,
        from,
    };
    warm::refresh(store.repository(), &options)
}

type Left = (ObjectId, Vec<PathBuf>, Vec<BString>);

/// The tree, the layers and the untracked folders of what a command has left: all of them are ignored,
/// or they would have been captured.
#[cfg(target_os = "linux")]
fn left_for_the_next(repository: &Repository, agent: &AgentId) -> Result<Option<Left>> {
    use crate::layout::overlay::{Stand, What};
    let stand = Stand::open(repository, &parked::root(repository, agent))?;
    let Some(stand) = stand.filter(Stand::is_parked) else {
        return Ok(None);
    };
    let tree = stand.revision();
    let touched = stand.touched(repository)?.into_iter();
    let mut folders: Vec<BString> = touched
        .filter(|one| one.what == What::Folder)
        .map(|one| one.path)
        .collect();
    let mut layers = vec![stand.upper().files()];
    if let Some(warm) = stand.warm() {
        untracked(repository, tree, (&warm.files(), "".as_ref()), &mut folders)?;
        layers.push(warm.files());
    }
    folders.sort_unstable();
    folders.dedup();
    Ok(Some((tree, layers, folders)))
}

#[cfg(not(target_os = "linux"))]
fn left_for_the_next(_: &Repository, _: &AgentId) -> Result<Option<Left>> {
    Ok(None)
}

/// The topmost folders of a layer that the tree has not.
#[cfg(target_os = "linux")]
fn untracked(
    repository: &Repository,
    tree: ObjectId,
    (layer, inside): (&std::path::Path, &std::path::Path),
    folders: &mut Vec<BString>,
) -> Result<()> {
    use crate::git::tree::lookup;
    use crate::layout::directory::path_bytes;
    let here = layer.join(inside);
    let failed = |e| Error::io("read", &here, e);
    for entry in std::fs::read_dir(&here).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if !entry.file_type().map_err(failed)?.is_dir() {
            continue;
        }
        let path = inside.join(entry.file_name());
        let tracked = lookup(&repository.objects()?, tree, path_bytes(&path))?;
        if tracked.is_some_and(|entry| entry.is_tree()) {
            untracked(repository, tree, (layer, &path), folders)?;
        } else {
            folders.push(path_bytes(&path).to_owned());
        }
    }
    Ok(())
}
