//! Whether it is plain that git rewrites nothing in a folder: there is no attribute file that could say so.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

use bstr::BStr;

use crate::git::attributes::is_absent;
use crate::git::{Repository, Result, os_str};

/// The folders of the user's working tree without an attribute file, each looked at once: for many
/// paths in a row. For each attribute of each path libgit2 looks at all these places, and at the whole
/// path besides.
pub struct PlainFolders<'r> {
    repository: &'r Repository,
    /// Whether there is an attribute file outside of the working tree, or in the user's index.
    outside: OnceCell<bool>,
    /// Whether a folder is without one; not what is above it.
    folders: RefCell<HashMap<PathBuf, bool>>,
}

impl<'r> PlainFolders<'r> {
    /// With nothing looked at yet.
    pub fn new(repository: &'r Repository) -> Self {
        PlainFolders {
            repository,
            outside: OnceCell::new(),
            folders: RefCell::default(),
        }
    }

    /// Whether git stores the bytes of a path as they are on disk, and the other way round. Where it is
    /// not plain the answer is no.
    ///
    /// # Errors
    /// When the settings make no sense.
    pub fn is_plain(&self, path: &BStr) -> Result<bool> {
        // Without attributes only this one counts: `core.eol` is about what is text by attribute.
        let normalises = self.repository.normalises()?;
        Ok(!normalises && self.has_no_attribute_file(Path::new(os_str(path))))
    }

    /// Whether it is plain that no attribute file says anything of a path: there is none.
    pub(super) fn has_no_attribute_file(&self, path: &Path) -> bool {
        let Some(top) = self.repository.work_dir() else {
            return false;
        };
        let absent = |file: &Path| {
            let found = std::fs::symlink_metadata(file);
            found.is_err_and(|error| is_absent(&error))
        };
        let any_outside = || {
            let mut files = self.repository.attribute_files().into_iter();
            !files.all(|file| absent(&file)) || !self.repository.index_has_no_attribute_file()
        };
        if *self.outside.get_or_init(any_outside) {
            return false;
        }
        let mut folders = self.folders.borrow_mut();
        let is_without = |folder: &Path| {
            if let Some(known) = folders.get(folder) {
                return *known;
            }
            let without = absent(&top.join(folder).join(".gitattributes"));
            folders.insert(folder.to_owned(), without);
            without
        };
        path.ancestors().skip(1).all(is_without)
    }
}
