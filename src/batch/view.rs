//! Where a read looks: into the published objects, or into a revision that is still being made.

use std::rc::Rc;

use bstr::{BStr, ByteSlice};

use super::request::DiffForm;
use crate::git::tree::{self, Change, Entry, StoreError, TreeSource};
use crate::git::{ObjectFormat, ObjectId, ObjectKind, Objects, Staging};
use crate::output::{PathStyle, Printer, report};
use crate::workspace::{self, Result};

/// Objects to read from.
pub(super) enum View<'v, 'r> {
    Published(&'v Objects<'r>),
    Pending(&'v Staging<'r>),
}

impl TreeSource for View<'_, '_> {
    fn read_tree(&self, id: ObjectId) -> std::result::Result<Option<Rc<[u8]>>, StoreError> {
        match self {
            View::Published(objects) => objects.read_tree(id),
            View::Pending(staging) => staging.read_tree(id),
        }
    }

    fn format(&self) -> ObjectFormat {
        match self {
            View::Published(objects) => objects.format(),
            View::Pending(staging) => staging.objects().format(),
        }
    }
}

impl View<'_, '_> {
    /// The bytes of a blob.
    pub(super) fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        Ok(match self {
            View::Published(objects) => objects.blob(id)?,
            View::Pending(staging) => staging.read(id, ObjectKind::Blob)?,
        })
    }

    /// As [`View::blob`], for the blob at a path, which an error then names.
    pub(super) fn blob_at(&self, path: &BStr, id: ObjectId) -> Result<Vec<u8>> {
        Ok(match self {
            View::Published(objects) => objects.blob_at(path, id)?,
            View::Pending(_) => self.blob(id)?,
        })
    }

    /// The size of what an entry names; `None` for folders and submodules.
    pub(super) fn size(&self, entry: Entry) -> Result<Option<u64>> {
        Ok(match (entry.mode, self) {
            (tree::TREE | tree::GITLINK, _) => None,
            (_, View::Published(objects)) => Some(objects.blob_size(entry.id)?),
            (_, View::Pending(_)) => Some(self.blob(entry.id)?.len() as u64),
        })
    }

    /// The text of changes.
    pub(super) fn patch(&self, changes: &[Change], quote_path: bool) -> Result<Vec<u8>> {
        workspace::patch(&|id| self.blob(id), changes, quote_path)
    }

    /// Prints changes, one a line.
    pub(super) fn print(
        &self,
        changes: &[Change],
        form: DiffForm,
        out: &mut Printer<&mut Vec<u8>>,
    ) -> std::result::Result<(), super::session::Trouble> {
        for change in changes {
            let paths = [change.path.as_bstr()];
            let mut json = report::change(change);
            let (style, fields) = match form {
                DiffForm::NameStatus => (PathStyle::Diff, change.status().letter().to_string()),
                DiffForm::Numstat => {
                    let lines = workspace::count_lines(&|id| self.blob(id), change)?;
                    json = report::counted(change, lines);
                    (PathStyle::Tree, report::counted_fields(lines))
                }
                DiffForm::Raw | DiffForm::Patch => {
                    (PathStyle::Diff, report::raw_fields(change, self.format()))
                }
            };
            out.path_line(style, &fields, &paths, || json)?;
        }
        Ok(())
    }
}
