//! The upper folder of an overlay, as a capture wants it: see [`super::ground`].

use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};

use super::scan::{Fresh, Seen};
use crate::disk;
use crate::git::tree::{Entry, GITLINK, lookup};
use crate::git::{ObjectId, Objects, Repository, os_str};
use crate::layout::overlay::{Stand, Touched, What, merged_file, read_back};
use crate::layout::{Directory, Error, Result, parked};
use crate::model::{Refusal, RepoPath};

/// Git passes over rule files that are larger.
const MAX_RULES: u64 = 100 << 20;
const ATTRIBUTES: &str = ".gitattributes";
const RULES: [&str; 2] = [".gitignore", ATTRIBUTES];

/// An upper folder being captured.
pub(super) struct Above<'a> {
    objects: Objects<'a>,
    stand: Stand,
    cut: ObjectId,
    files: PathBuf,
    scratch: tempfile::TempDir,
    /// Folders whose rules are in the scratch folder.
    shown: HashSet<BString>,
    attributes: Vec<BString>,
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
        // In a folder that goes with the directory if we die here.
        let scratch = tempfile::Builder::new()
            .prefix("vws-rules-")
            .tempdir_in(&directory.admin)
            .map_err(|error| Error::io("create a folder in", &directory.admin, error))?;
        Ok(Above {
            objects: repository.objects()?,
            cut: directory.cut.tree,
            files: stand.upper().files(),
            stand,
            scratch,
            shown: HashSet::new(),
            attributes: Vec::new(),
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
            } else {
                sort(path, what, known, &mut seen);
            }
        }
        Ok(seen)
    }

    /// Lays the rule files of all folders above a path into the scratch folder, and the path too if it
    /// is a folder: rules tell those from files.
    pub(super) fn show_rules(&mut self, path: &BString, is_folder: bool) -> Result<()> {
        let slashes: Vec<usize> = path.find_iter("/").collect();
        let above = std::iter::once(0).chain(slashes);
        for end in above.chain(is_folder.then_some(path.len())) {
            let folder = &path[..end];
            if self.shown.contains(folder) {
                continue;
            }
            self.show_folder(folder.as_bstr())?;
            self.shown.insert(folder.into());
        }
        Ok(())
    }

    fn show_folder(&mut self, folder: &BStr) -> Result<()> {
        let template = self.stand.template().tree();
        let place = self.place(folder);
        fs::create_dir_all(&place).map_err(|e| Error::io("create", &place, e))?;
        for name in RULES {
            let mut path = folder.to_owned();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(name.as_bytes());
            let wanted = (path.as_bstr(), MAX_RULES);
            let Some(text) = merged_file(&self.files, &self.objects, template, wanted)? else {
                continue;
            };
            let file = self.place(path.as_bstr());
            fs::write(&file, text).map_err(|e| Error::io("write", &file, e))?;
            if name == ATTRIBUTES {
                self.attributes.push(folder.to_owned());
            }
        }
        Ok(())
    }

    pub(super) fn attributes(&mut self) -> Vec<BString> {
        std::mem::take(&mut self.attributes)
    }

    /// Lays a copy of a changed file into the scratch folder; one that is gone by now is not there.
    pub(super) fn show_file(&self, path: &BString) -> Result<()> {
        let place = self.place(path.as_bstr());
        let (Ok(bytes), Some(mode)) = (
            disk::read(&self.files, path.as_bstr(), u64::MAX),
            disk::mode(&self.files, path.as_bstr(), true),
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
        self.scratch.path().join(os_str(path))
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
