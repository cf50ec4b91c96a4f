//! The twin of a template: the same files in a btrfs subvolume, of which snapshots are taken.
//!
//! It lies on a shelf of its own, under the template's name, and goes when the template has gone.

use std::fs;

use super::{Meta, Template, read_meta, take_from};
use crate::git::Repository;
use crate::layout::directory::replace;
use crate::layout::probes::boot_id;
use crate::layout::spread::{By, Plan};
use crate::layout::template::shelf::Shelf;
use crate::layout::{Error, Result, sys};

pub(super) fn shelf(repository: &Repository) -> Shelf {
    Shelf::new(&repository.relo_dir(), "snapshots")
}

/// The twin, made where there is none.
///
/// # Errors
/// [`Error::Io`], also where there can be no subvolume.
pub(in crate::layout) fn twin(
    repository: &Repository,
    template: &Template,
    by: By,
) -> Result<Template> {
    let shelf = shelf(repository);
    loop {
        if let Some(twin) = take_from(&shelf, repository, template.tree, template.name.clone())? {
            return Ok(twin);
        }
        shelf.make(&template.name, true, |folder| {
            let parent = fs::File::open(folder).map_err(|e| Error::io("open", folder, e))?;
            sys::create_subvolume(&parent, b"files")
                .map_err(|e| Error::io("create a subvolume in", folder, e))?;
            let plan = Plan {
                repository,
                tree: template.tree,
                template,
                changes: &[],
                by,
                users: None,
                times: None,
            };
            plan.fill(&folder.join("files"), &folder.join("index"))?;
            let meta = Meta {
                boot: boot_id(),
                ..template.meta.clone()
            };
            let json = serde_json::to_vec(&meta).expect("invariant: plain data");
            replace(&folder.join("meta.json"), &json)
        })?;
    }
}

/// Removes twins whose template has gone.
pub(super) fn prune(repository: &Repository) -> Result<()> {
    let (twins, templates) = (shelf(repository), super::shelf(repository));
    twins.sweep()?;
    for name in twins.names()? {
        if read_meta(&templates.folder(&name)).is_none() {
            twins.remove(&name)?;
        }
    }
    Ok(())
}
