//! A folder that shows git what it wants to see of a directory that is not there as a whole: rule files
//! (`.gitignore`, `.gitattributes`), and the files whose content it converts.

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use crate::disk;
use crate::git::os_str;
use crate::layout::{Directory, Error, Result};

/// Git passes over rule files that are larger.
pub(super) const MAX_RULES: u64 = 100 << 20;
const ATTRIBUTES: &str = ".gitattributes";
const RULES: [&str; 2] = [".gitignore", ATTRIBUTES];

/// The folder.
pub(super) struct Scratch {
    folder: tempfile::TempDir,
    /// Folders whose rules are in it.
    shown: HashSet<BString>,
    attributes: Vec<BString>,
}

impl Scratch {
    /// An empty one, in the git dir of the directory: it goes with that if we die here.
    pub(super) fn new(directory: &Directory) -> Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(crate::layout::directory::RULES)
            .tempdir_in(&directory.admin)
            .map_err(|error| Error::io("create a folder in", &directory.admin, error))?;
        Ok(Scratch {
            folder,
            shown: HashSet::new(),
            attributes: Vec::new(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Lays the rule files of all folders above a path in it, as `read` gives them, and the path too if
    /// it is a folder: rules tell those from files.
    pub(super) fn show_rules(
        &mut self,
        path: &BString,
        is_folder: bool,
        read: impl Fn(&BStr) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        let slashes: Vec<usize> = path.find_iter("/").collect();
        let above = std::iter::once(0).chain(slashes);
        for end in above.chain(is_folder.then_some(path.len())) {
            let folder = &path[..end];
            if !self.shown.contains(folder) {
                self.show_folder(folder.as_bstr(), &read)?;
                self.shown.insert(folder.into());
            }
        }
        match is_folder {
            true => self.make(path.as_bstr()),
            false => Ok(()),
        }
    }

    /// Makes a folder in it. Most are not needed: to git, one without rules might as well be missing.
    fn make(&self, folder: &BStr) -> Result<()> {
        let place = self.place(folder);
        fs::create_dir_all(&place).map_err(|e| Error::io("create", &place, e))
    }

    fn show_folder(
        &mut self,
        folder: &BStr,
        read: impl Fn(&BStr) -> Result<Option<Vec<u8>>>,
    ) -> Result<()> {
        for name in RULES {
            let mut path = folder.to_owned();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            let Some(text) = read(path.as_bstr())? else {
                continue;
            };
            self.make(folder)?;
            let file = self.place(path.as_bstr());
            fs::write(&file, text).map_err(|e| Error::io("write", &file, e))?;
            if name == ATTRIBUTES {
                self.attributes.push(folder.to_owned());
            }
        }
        Ok(())
    }

    /// Folders with attributes that were met since the last call.
    pub(super) fn attributes(&mut self) -> Vec<BString> {
        std::mem::take(&mut self.attributes)
    }

    /// Lays a copy of a file below `files` in it; one that is gone by now is not there.
    pub(super) fn show_file(&self, files: &Path, path: &BString) -> Result<()> {
        let place = self.place(path.as_bstr());
        let (Ok(bytes), Some(mode)) = (
            disk::read(files, path.as_bstr(), u64::MAX),
            disk::mode(files, path.as_bstr(), true),
        ) else {
            return Ok(());
        };
        let failed = |e| Error::io("write", &place, e);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&place, bytes).map_err(failed)?;
        let mode = fs::Permissions::from_mode(mode & 0o777);
        fs::set_permissions(&place, mode).map_err(failed)
    }

    fn place(&self, path: &BStr) -> PathBuf {
        self.folder.path().join(os_str(path))
    }
}
