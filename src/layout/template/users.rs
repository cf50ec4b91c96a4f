//! The user's checkout as what templates and warm layers are made of.

use std::path::Path;

use super::warm::{self, Warm};
use super::{Options, Template, obtain};
use crate::git::tree::Change;
use crate::git::{ObjectId, Repository, Staging};
use crate::layout::queue::threads;
use crate::layout::{Result, filtered};
use crate::workspace::Store;

/// The tree that the user's files make at this moment. Its objects are there afterwards, although
/// nothing may refer to them.
///
/// # Errors
/// As [`Store::record_base`].
pub fn users_tree(store: &Store<'_>) -> Result<ObjectId> {
    let mut staging = Staging::new(store.repository())?;
    let base = store.record_base(&mut staging)?;
    store.put(staging, &[])?;
    Ok(base.tree)
}

/// Why the files of a tree cannot be taken from a template one by one, if they cannot: what git rewrites
/// may look different beside other attributes, and a missing object is fetched by git alone.
///
/// # Errors
/// An object that cannot be read.
pub fn unfit(repository: &Repository, tree: ObjectId) -> Result<Option<&'static str>> {
    if let Some(why) = unfit_repository(repository)? {
        return Ok(Some(why));
    }
    // Near ones have the same attributes.
    let rewritten = match super::find_near(repository, tree)? {
        Some((template, _)) => template.is_by_git(),
        None => filtered::is_needed(repository, tree)?,
    };
    Ok(rewritten.then_some(REWRITTEN))
}

const REWRITTEN: &str = "git rewrites the content of some files";

fn unfit_repository(repository: &Repository) -> Result<Option<&'static str>> {
    if repository.is_partial() {
        return Ok(Some("not all objects of a partial clone are here"));
    }
    if repository.config()?.bool("core.symlinks")? == Some(false) {
        return Ok(Some("core.symlinks is off"));
    }
    Ok(filtered::set_everywhere(repository)?.then_some(REWRITTEN))
}

/// The template that is nearest to a tree, and what differs, where there is one and the tree is not
/// [`unfit`].
///
/// # Errors
/// As [`super::find_near`].
pub(in crate::layout) fn ready(
    repository: &Repository,
    tree: ObjectId,
) -> Result<Option<(Template, Vec<Change>)>> {
    match unfit_repository(repository)? {
        Some(_) => Ok(None),
        None => Ok(super::find_near(repository, tree)?.filter(|(near, _)| !near.is_by_git())),
    }
}

/// The layer of shared build output, made anew when it is due.
///
/// # Errors
/// As [`warm::refresh`] and [`users_tree`].
pub fn warm_layer(store: &Store<'_>) -> Result<Option<Warm>> {
    let mut options = warm::Options {
        now: u64::try_from(store.now()).unwrap_or(0),
        threads: threads(),
        ..warm::Options::default()
    };
    if warm::is_due(store.repository(), &options)? {
        options.tree = Some(users_tree(store)?);
    }
    warm::refresh(store.repository(), &options)
}

/// Makes the template and the warm layer of the user's checkout as it is now, so that the first
/// command of an agent does not wait for them.
///
/// # Errors
/// Failures of Git and of the disk.
pub fn warm_up(store: &Store<'_>) -> Result<(Template, Option<Warm>)> {
    let repository = store.repository();
    let top = repository.require_work_dir()?;
    let tree = users_tree(store)?;
    let options = Options {
        users: Some(Path::to_owned(top)),
        threads: threads(),
    };
    let template = obtain(repository, tree, &options)?;
    let options = warm::Options {
        tree: Some(tree),
        now: u64::try_from(store.now()).unwrap_or(0),
        threads: threads(),
        force: true,
        ..warm::Options::default()
    };
    let warm = warm::refresh(repository, &options)?;
    Ok((template, warm))
}
