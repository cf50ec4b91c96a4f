//! A directory in which only some paths were laid out, as git's rules see it: the rule files of the
//! other paths hold too.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::scratch::{MAX_RULES, Scratch};
use crate::disk::{self, Unread};
use crate::git::tree::lookup;
use crate::git::{Objects, Repository};
use crate::layout::selected::covers;
use crate::layout::{Directory, Result};

/// Such a directory being captured.
pub(super) struct Part<'a> {
    objects: Objects<'a>,
    directory: &'a Directory,
    scratch: Scratch,
}

impl<'a> Part<'a> {
    pub(super) fn open(repository: &'a Repository, directory: &'a Directory) -> Result<Self> {
        Ok(Part {
            objects: repository.objects()?,
            directory,
            scratch: Scratch::new(directory)?,
        })
    }

    pub(super) fn view(&self) -> &Path {
        self.scratch.path()
    }

    pub(super) fn show_rules(&mut self, path: &BString, is_folder: bool) -> Result<()> {
        let (objects, directory) = (&self.objects, self.directory);
        let read = |path: &BStr| rules(objects, directory, path);
        self.scratch.show_rules(path, is_folder, read)
    }

    pub(super) fn attributes(&mut self) -> Vec<BString> {
        self.scratch.attributes()
    }

    pub(super) fn show_file(&self, path: &BString) -> Result<()> {
        self.scratch.show_file(&self.directory.path, path)
    }
}

/// A rule file from disk, or from the tree where it was not laid out.
fn rules(objects: &Objects<'_>, directory: &Directory, path: &BStr) -> Result<Option<Vec<u8>>> {
    match disk::read(&directory.path, path, MAX_RULES) {
        Ok(text) => return Ok(Some(text)),
        Err(Unread::Gone) if !covers(&directory.only, path) => {}
        Err(_) => return Ok(None),
    }
    let entry = lookup(objects, directory.cut.tree, path.as_bstr())?;
    let entry = entry.filter(|entry| entry.is_file());
    Ok(entry.map(|entry| objects.blob(entry.id)).transpose()?)
}
