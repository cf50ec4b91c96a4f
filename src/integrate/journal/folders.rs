//! What an entry notes about the disk before it begins: permission bits, and the folders that it
//! makes or may remove.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::Journal;
use super::entry::{Entry, Folder, Step};
use crate::disk::{self, Unread};

impl Journal<'_> {
    /// The folders on the way to the steps' paths. An accept may remove each that it empties, as git
    /// does; an undo of `original` only those that `original` made.
    pub(super) fn folders(&self, steps: &[Step], original: Option<&Entry>) -> Vec<Folder> {
        let earlier = |path: &BStr| {
            let folders = &original?.folders;
            folders.iter().find(|folder| folder.path == path)
        };
        let mut found: BTreeMap<BString, Folder> = BTreeMap::new();
        for step in steps {
            for way in ways(step.path.as_bstr()) {
                let folder = found.entry(way.to_owned()).or_insert_with(|| {
                    let here = self.disk().folder(way);
                    Folder {
                        path: way.to_owned(),
                        existed: here.is_some(),
                        permissions: here.or_else(|| earlier(way)?.permissions),
                        prune: false,
                    }
                });
                let may = original.is_none() || earlier(way).is_some_and(|made| !made.existed);
                folder.prune |= step.after.is_none() && may;
            }
        }
        found.into_values().collect()
    }

    /// Notes all permission bits of the files that the steps replace or remove.
    pub(super) fn note_permissions(&self, steps: &mut [Step]) {
        for step in steps {
            let path = step.path.as_bstr();
            if let Some(before) = &mut step.before
                && before.mode != disk::LINK
                && before.permissions.is_none()
            {
                let stat: Result<_, Unread> = disk::stat(&self.top, path);
                before.permissions = stat.ok().map(|stat| stat.st_mode & 0o7777);
            }
        }
    }

    /// Makes the folders that a step's path is to lie in.
    pub(super) fn make_folders(&self, entry: &Entry, path: &BStr) -> Result<(), disk::Fault> {
        let bits = |way: &BStr| {
            let known = entry.folders.iter().find(|folder| folder.path == way);
            known?.permissions
        };
        self.disk().make_folders(path, &bits)
    }

    /// Removes the folders that the entry has made or emptied and that hold nothing.
    pub(super) fn prune(&self, entry: &Entry) {
        self.prune_below(entry, BStr::new(""));
    }

    /// As [`Journal::prune`], for a folder and those below it.
    pub(super) fn prune_below(&self, entry: &Entry, top: &BStr) {
        // From the lowest up: a folder's path is the start of those below it, so it sorts first.
        for folder in entry.folders.iter().rev() {
            let path = folder.path.as_bstr();
            let inside = top.is_empty()
                || path == top
                || path
                    .strip_prefix(top.as_bytes())
                    .is_some_and(|rest| rest.starts_with(b"/"));
            if inside && (folder.prune || !folder.existed) {
                self.disk().remove_folder(path);
            }
        }
    }
}

/// The folders on the way to a path, from the top down.
fn ways(path: &BStr) -> impl Iterator<Item = &BStr> {
    path.find_iter("/").map(|slash| path[..slash].as_bstr())
}
