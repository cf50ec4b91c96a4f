//! Which templates there are, and which of them go.

use std::fs;

use super::bytes::BYTES;
use super::{read_meta, shelf};
use crate::git::Repository;
use crate::layout::Result;

/// A template, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Its name: the tree, and a suffix where settings change what git writes.
    pub name: String,
    /// How many files it has.
    pub files: usize,
    /// Their bytes, and those that are there [once more](super::bytes).
    pub bytes: u64,
    /// When it was last used: seconds since 1970.
    pub last_used: u64,
}

/// Which templates may stay.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// So many bytes of files may stay; beyond, the least recently used go first.
    pub max_bytes: u64,
    /// Whether only to say what would go.
    pub dry_run: bool,
}

/// What pruning did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// What went, or would go.
    pub removed: Vec<Info>,
    /// What stays although the bound is exceeded: something stands on it.
    pub in_use: Vec<Info>,
}

/// All templates, the most recently used first.
///
/// # Errors
/// [`Error::Io`](crate::layout::Error::Io).
pub fn list(repository: &Repository) -> Result<Vec<Info>> {
    let shelf = shelf(repository);
    let mut found = Vec::new();
    for name in shelf.names()? {
        // A note beside a template, or one of another version.
        let Some(meta) = read_meta(&shelf.folder(&name)) else {
            continue;
        };
        let again = fs::metadata(shelf.folder(&name).join(BYTES)).map_or(0, |file| file.len());
        found.push(Info {
            last_used: shelf.last_used(&name),
            files: meta.files,
            bytes: meta.bytes + again,
            name,
        });
    }
    found.sort_by(|a, b| {
        b.last_used
            .cmp(&a.last_used)
            .then_with(|| a.name.cmp(&b.name))
    });
    Ok(found)
}

/// Removes templates that nothing stands on until the rest fit the policy.
///
/// # Errors
/// [`Error::Io`](crate::layout::Error::Io).
pub fn prune(repository: &Repository, policy: &Policy) -> Result<Pruned> {
    let shelf = shelf(repository);
    if !policy.dry_run {
        shelf.sweep()?;
    }
    let templates = list(repository)?;
    let mut total: u64 = templates.iter().map(|info| info.bytes).sum();
    let mut pruned = Pruned::default();
    for info in templates.into_iter().rev() {
        if total <= policy.max_bytes {
            break;
        }
        let gone = if policy.dry_run {
            !shelf.is_stood_on(&info.name)?
        } else {
            shelf.remove(&info.name)?
        };
        if gone {
            total -= info.bytes;
            pruned.removed.push(info);
        } else {
            pruned.in_use.push(info);
        }
    }
    #[cfg(target_os = "linux")]
    if !policy.dry_run {
        super::twin::prune(repository)?;
    }
    Ok(pruned)
}
