//! The upper folder of an overlay, as a capture wants it: see [`super::ground`].

use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::scan::{Fresh, Seen};
use super::scratch::{MAX_RULES, Scratch};
use crate::disk;
use crate::git::index::StatData;
use crate::git::tree::{Entry, GITLINK, lookup};
use crate::git::{ObjectFormat, ObjectId, Objects, Repository};
use crate::layout::overlay::{Stand, Touched, What, merged_file, read_back};
use crate::layout::{Directory, Error, Result, parked};
use crate::model::{Refusal, RepoPath};

/// An upper folder being captured.
pub(super) struct Above<'a> {
    objects: Objects<'a>,
    stand: Stand,
    cut: ObjectId,
    format: ObjectFormat,
    files: PathBuf,
    scratch: Scratch,
}

impl<'a> Above<'a> {
    pub(super) fn open(repository: &'a Repository, directory: &Directory) -> Result<Self> {
        let root = parked::root(repository, &directory.agent);
        let lost = || Error::NotOurs {
            agent: directory.agent.clone(),
            path: root.clone(),
            why: "the folder with what was changed is gone".to_owned(),
        };
        let stand = Stand::open(repository, &root)?.ok_or_else(lost)?;
        Ok(Above {
            objects: repository.objects()?,
            cut: directory.cut.tree,
            format: repository.format(),
            files: stand.upper().files(),
            stand,
            scratch: Scratch::new(directory)?,
        })
    }

    pub(super) fn files(&self) -> &Path {
        &self.files
    }

    pub(super) fn view(&self) -> &Path {
        self.scratch.path()
    }

    /// What the upper folder says, in the words of a scan.
    pub(super) fn look(&self) -> Result<Seen> {
        let template = self.stand.template().tree();
        let filled = self.stand.what_was_filled(self.format);
        let is_as_filled = |path: &BString, known: Option<Entry>| {
            let (Some(filled), Some(known)) = (&filled, known) else {
                return false;
            };
            filled.find(path.as_bstr()).is_some_and(|one| {
                let now = disk::stat(&self.files, path.as_bstr()).map(|stat| StatData::from(&stat));
                let racy = one.stat.mtime.max(one.stat.ctime) >= filled.written();
                one.id == known.id && !racy && now.is_ok_and(|now| one.stat.matches(&now))
            })
        };
        let mut seen = Seen::default();
        for Touched { path, what } in read_back(&self.files, &self.objects, template, self.cut)? {
            let known = lookup(&self.objects, self.cut, path.as_bstr())?;
            if known.is_none()
                && let Err(error) = RepoPath::new(&path)
            {
                seen.leave_out(path, error.refusal());
            } else if what == What::Template {
                if let Some(entry) = lookup(&self.objects, template, path.as_bstr())? {
                    seen.restored.push((path, entry));
                }
            } else if what != What::File || !is_as_filled(&path, known) {
                sort(path, what, known, &mut seen);
            }
        }
        Ok(seen)
    }

    /// Shows git the rules that hold for a path, as they show in the mount.
    pub(super) fn show_rules(&mut self, path: &BString, is_folder: bool) -> Result<()> {
        let template = self.stand.template();
        let (tree, layout) = (template.tree(), template.files());
        let (files, objects) = (&self.files, &self.objects);
        let read = |path: &BStr| merged_file(files, objects, (tree, &layout), (path, MAX_RULES));
        self.scratch.show_rules(path, is_folder, read)
    }

    pub(super) fn attributes(&mut self) -> Vec<BString> {
        self.scratch.attributes()
    }

    /// Shows git a copy of a changed file.
    pub(super) fn show_file(&self, path: &BString) -> Result<()> {
        self.scratch.show_file(&self.files, path)
    }
}

/// What a scan of the directory would make of one path.
fn sort(path: BString, what: What, known: Option<Entry>, seen: &mut Seen) {
    let is_gitlink = known.is_some_and(|known| known.mode == GITLINK);
    let is_folder = known.is_some_and(|known| known.is_tree());
    let is_file = known.is_some() && !is_gitlink && !is_folder;
    match what {
        // Whatever is in a submodule's folder is not ours to look at.
        What::Folder | What::Repository if is_gitlink => {}
        // One that is not checked out is no deletion.
        _ if is_gitlink => seen.leave_out(path, Refusal::NestedRepository),
        What::Removed => seen.gone.push(path),
        What::File | What::Link if is_file => seen.suspects.push(path),
        What::Special if is_file => seen.leave_out(path, Refusal::SpecialFile),
        What::Repository if is_folder => seen.leave_out(path, Refusal::NestedRepository),
        What::Unreadable => seen.leave_out(path, Refusal::Unreadable),
        What::Folder | What::Repository => seen.fresh.push(Fresh {
            path,
            is_folder: true,
        }),
        What::File | What::Link | What::Special | What::Template => {
            seen.fresh.push(Fresh {
                path,
                is_folder: false,
            });
        }
    }
}
