//! The note that a delivery is under way: between which trees, and which paths it is about.

use std::fs;
use std::io::ErrorKind;

use bstr::BString;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::git::{ObjectFormat, ObjectId};
use crate::layout::directory::replace;
use crate::layout::state::not_ours;
use crate::layout::{Directory, Error, Result};
use crate::model::{json_path, path_from_json};

/// Its name in the directory's git dir.
const NOTE: &str = "vws-delivery";

/// The tree that a directory holds, and the one that it is to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trees {
    pub(super) from: ObjectId,
    pub(super) to: ObjectId,
}

/// A delivery.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) trees: Trees,
    /// In the order by which their files are tagged.
    pub(super) paths: Vec<BString>,
}

#[derive(Serialize, Deserialize)]
struct Stored {
    from: String,
    to: String,
    paths: Vec<Value>,
}

impl Note {
    /// Writes the note, whole and flushed.
    pub(super) fn write(&self, directory: &Directory) -> Result<()> {
        let stored = Stored {
            from: self.trees.from.to_string(),
            to: self.trees.to.to_string(),
            paths: self.paths.iter().map(|p| json_path(p.as_ref())).collect(),
        };
        let bytes = serde_json::to_vec(&stored).expect("invariant: plain data");
        let file = directory.admin.join(NOTE);
        replace(&file, &bytes)?;
        let flushed = fs::File::open(&file).and_then(|file| file.sync_all());
        flushed.map_err(|error| Error::io("flush", &file, error))
    }

    /// Reads the note; `None` where no delivery is under way.
    pub(super) fn read(directory: &Directory, format: ObjectFormat) -> Result<Option<Self>> {
        let file = directory.admin.join(NOTE);
        let bytes = match fs::read(&file) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &file, error)),
        };
        let wrong = || not_ours(&directory.agent, &file, "it makes no sense");
        let stored: Stored = serde_json::from_slice(&bytes).map_err(|_| wrong())?;
        let id = |text: &str| ObjectId::from_str_ext(text, format).map_err(|_| wrong());
        let paths: Option<Vec<BString>> = stored.paths.iter().map(path_from_json).collect();
        Ok(Some(Note {
            trees: Trees {
                from: id(&stored.from)?,
                to: id(&stored.to)?,
            },
            paths: paths.ok_or_else(wrong)?,
        }))
    }

    /// Says that no delivery is under way any more.
    pub(super) fn remove(directory: &Directory) {
        // One that stays says nothing but the truth: both its trees are behind the workspace.
        let _ = fs::remove_file(directory.admin.join(NOTE));
    }
}
