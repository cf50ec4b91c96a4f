//! Where a capture reads a directory.
//!
//! One that lies on disk is read in its place, and so do git's rules. Of an overlay only what is above
//! is there when nothing is mounted: the bytes of all that may differ are read from the upper folder,
//! and the few other files that git wants to see for its rules (`.gitignore`, `.gitattributes`, what
//! attributes rewrite) are laid into a scratch folder, as they show in the mount. The same is done for a
//! directory in which only some paths were laid out.

use std::path::Path;

use bstr::BString;

use super::part::Part;
use super::scan::{self, Seen};
use crate::git::Repository;
use crate::git::index::IndexFile;
use crate::layout::{Directory, Result};

/// Where everything of a directory is found.
pub(super) struct Ground<'a> {
    directory: &'a Directory,
    /// The index as laid out; an overlay needs none.
    pub(super) manifest: Option<IndexFile>,
    #[cfg(target_os = "linux")]
    above: Option<super::above::Above<'a>>,
    part: Option<Part<'a>>,
}

impl<'a> Ground<'a> {
    pub(super) fn open(repository: &'a Repository, directory: &'a Directory) -> Result<Self> {
        #[cfg(target_os = "linux")]
        if directory.backend == crate::layout::parked::OVERLAY {
            return Ok(Ground {
                directory,
                manifest: None,
                above: Some(super::above::Above::open(repository, directory)?),
                part: None,
            });
        }
        Ok(Ground {
            directory,
            manifest: Some(directory.manifest(repository.format())?),
            #[cfg(target_os = "linux")]
            above: None,
            part: match directory.only.is_empty() {
                true => None,
                false => Some(Part::open(repository, directory)?),
            },
        })
    }

    /// Where files are read.
    pub(super) fn files(&self) -> &Path {
        #[cfg(target_os = "linux")]
        if let Some(above) = &self.above {
            return above.files();
        }
        &self.directory.path
    }

    /// The top of what git sees.
    pub(super) fn view(&self) -> &Path {
        #[cfg(target_os = "linux")]
        if let Some(above) = &self.above {
            return above.view();
        }
        match &self.part {
            Some(part) => part.view(),
            None => &self.directory.path,
        }
    }

    /// What differs from the cut, or may.
    pub(super) fn look(&self) -> Result<Seen> {
        #[cfg(target_os = "linux")]
        if let Some(above) = &self.above {
            return above.look();
        }
        match &self.manifest {
            Some(manifest) => scan::all(self.files(), manifest),
            None => Ok(Seen::default()),
        }
    }

    /// Lets git see the rules that hold for these paths, and the folders among them.
    pub(super) fn show_rules<'p>(
        &mut self,
        paths: impl Iterator<Item = (&'p BString, bool)>,
    ) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(above) = &mut self.above {
            for (path, is_folder) in paths {
                above.show_rules(path, is_folder)?;
            }
            return Ok(());
        }
        if let Some(part) = &mut self.part {
            for (path, is_folder) in paths {
                part.show_rules(path, is_folder)?;
            }
        }
        Ok(())
    }

    /// Folders with attributes that [`Ground::show_rules`] has met.
    pub(super) fn attributes(&mut self) -> Vec<BString> {
        #[cfg(target_os = "linux")]
        if let Some(above) = &mut self.above {
            return above.attributes();
        }
        self.part.as_mut().map_or_else(Vec::new, Part::attributes)
    }

    /// Lets git see the files at these paths, as they are now.
    pub(super) fn show_files<'p>(&self, paths: impl Iterator<Item = &'p BString>) -> Result<()> {
        #[cfg(target_os = "linux")]
        if let Some(above) = &self.above {
            for path in paths {
                above.show_file(path)?;
            }
            return Ok(());
        }
        if let Some(part) = &self.part {
            for path in paths {
                part.show_file(path)?;
            }
        }
        Ok(())
    }
}
