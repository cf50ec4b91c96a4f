//! What a capture knows already: the manifest, the overlay, and what a tool tracks by itself.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use crate::git::index::IndexFile;
use crate::git::tree::{self, Entry};
use crate::git::{ObjectId, Objects, Repository};
use crate::layout::{Directory, Result};
use crate::workspace::Workspace;

/// The state that a directory is compared with.
pub(super) struct Known<'a> {
    repository: &'a Repository,
    objects: Objects<'a>,
    directory: &'a Directory,
    /// `None`: the cut's tree is asked.
    manifest: Option<IndexFile>,
    overlay: ObjectId,
    /// What earlier captures changed: paths where the overlay differs from the cut.
    captured: BTreeMap<BString, Option<Entry>>,
    /// Submodules that came, went or moved since the cut: no file of the directory says so.
    submodules: BTreeMap<BString, Option<Entry>>,
    /// The tree of the directory's `HEAD`, where a tool has moved that.
    head: Option<ObjectId>,
    index: OnceCell<Vec<BString>>,
}

impl<'a> Known<'a> {
    pub(super) fn new(
        repository: &'a Repository,
        directory: &'a Directory,
        manifest: Option<IndexFile>,
        current: &Workspace,
        head: Option<ObjectId>,
    ) -> Result<Self> {
        let objects = repository.objects()?;
        let (cut, overlay) = (directory.cut.tree, current.tree);
        let changes = tree::diff(&objects, Some(cut), Some(overlay))?;
        let is_submodule = |entry: Option<Entry>| entry.is_some_and(|e| e.mode == tree::GITLINK);
        let submodules = changes
            .iter()
            .filter(|change| is_submodule(change.old) || is_submodule(change.new))
            .map(|change| (change.path.clone(), change.new))
            .collect();
        let captured = changes
            .into_iter()
            .map(|change| (change.path, change.new))
            .collect();
        Ok(Known {
            repository,
            objects,
            directory,
            manifest,
            overlay,
            captured,
            submodules,
            head,
            index: OnceCell::new(),
        })
    }

    /// What the overlay holds of a file that the manifest or an earlier capture has.
    ///
    /// # Errors
    /// A tree that cannot be read.
    pub(super) fn file(&self, path: &BStr) -> Result<Option<Entry>> {
        if let Some(captured) = self.captured.get(path) {
            return Ok(*captured);
        }
        let (mode, id) = match &self.manifest {
            Some(manifest) if self.directory.only.is_empty() => match manifest.find(path) {
                Some(entry) => (entry.mode, entry.id),
                None => return Ok(None),
            },
            // The manifest has not all that the cut has, or there is none.
            _ => match tree::lookup(&self.objects, self.directory.cut.tree, path)? {
                Some(entry) if !entry.is_tree() => (entry.mode, entry.id),
                _ => return Ok(None),
            },
        };
        let mode = tree::canonical_mode(mode);
        Ok(Some(Entry { mode, id }))
    }

    /// The submodules of which the overlay holds something else than the cut.
    pub(super) fn submodules(&self) -> impl Iterator<Item = (&BString, Option<Entry>)> {
        self.submodules.iter().map(|(path, entry)| (path, *entry))
    }

    /// What the overlay holds at any path, folders included.
    pub(super) fn in_overlay(&self, path: &BStr) -> Result<Option<Entry>> {
        Ok(tree::lookup(&self.objects, self.overlay, path)?)
    }

    /// Whether an earlier capture took this path, or one below it: no rule is asked about it again.
    pub(super) fn was_captured(&self, path: &BStr, is_folder: bool) -> bool {
        if !is_folder {
            return self.captured.get(path).is_some_and(Option::is_some);
        }
        let mut below = path.to_owned();
        below.push(b'/');
        self.captured
            .range(below.clone()..)
            .take_while(|(path, _)| path.starts_with(&below))
            .any(|(_, entry)| entry.is_some())
    }

    /// Whether an ignored path is tracked all the same, or, of a folder, something in it: by the
    /// overlay, by a commit that a tool made, or by the index that it works on.
    pub(super) fn is_tracked(&self, path: &BStr, is_folder: bool) -> Result<bool> {
        let counts = |entry: Option<Entry>| entry.is_some_and(|e| e.is_tree() == is_folder);
        if counts(self.in_overlay(path)?) {
            return Ok(true);
        }
        if let Some(head) = self.head
            && counts(tree::lookup(&self.objects, head, path)?)
        {
            return Ok(true);
        }
        let index = self.index()?;
        if !is_folder {
            return Ok(index.binary_search_by(|p| p.as_bstr().cmp(path)).is_ok());
        }
        let mut below = path.to_owned();
        below.push(b'/');
        let at = index.partition_point(|p| *p < below);
        Ok(index.get(at).is_some_and(|p| p.starts_with(&below)))
    }

    fn index(&self) -> Result<&[BString]> {
        if self.index.get().is_none() {
            let place = (&self.directory.path, &self.directory.admin);
            let paths = self.repository.paths_in_index(place.0, place.1)?;
            let _ = self.index.set(paths);
        }
        Ok(self.index.get().expect("invariant: it was just set"))
    }
}
