//! What stands at a path, told apart finely enough to write there.

use std::io;
use std::path::Path;

use bstr::BStr;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};

use super::{Unread, mode_of, parent, read_what};
use crate::model::Refusal;

/// A file or a link as it stands on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    /// Git's mode: 100644, 100755 or 120000.
    pub mode: u32,
    /// All permission bits of a file; 0 for a link, whose bits mean nothing.
    pub permissions: u32,
    /// Its bytes; of a link, its target.
    pub bytes: Vec<u8>,
}

/// A [`Content`] to compare with, without its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seal {
    mode: u32,
    permissions: u32,
    digest: [u8; 32],
}

impl Content {
    /// What two contents are compared by.
    pub fn seal(&self) -> Seal {
        Seal::of(self.mode, self.permissions, &self.bytes)
    }
}

impl Seal {
    pub(super) fn of(mode: u32, permissions: u32, bytes: &[u8]) -> Self {
        Seal {
            mode,
            permissions,
            digest: Sha256::digest(bytes).into(),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.digest == <[u8; 32]>::from(Sha256::digest(b""))
    }

    /// All permission bits of the file; 0 for a link.
    pub fn permissions(&self) -> u32 {
        self.permissions
    }
}

/// Something that is in the way.
#[derive(Debug)]
pub enum Obstacle {
    /// A folder stands at the path.
    Folder,
    /// A link or a file stands where a folder on the way should be.
    Blocked,
    /// A FIFO, a socket or a device: never opened.
    Special,
    /// It is larger than the limit.
    TooLarge,
    /// It was another thing at each look.
    Unsteady,
    /// The system refused, or failed.
    Denied(io::Error),
}

impl Obstacle {
    /// Whether there can be no file at the path: a folder is there, or none on the way.
    pub fn is_no_file(&self) -> bool {
        matches!(self, Obstacle::Folder | Obstacle::Blocked)
    }

    /// The stable kind.
    pub fn refusal(&self) -> Refusal {
        match self {
            Obstacle::Folder | Obstacle::Blocked => Refusal::TypeChange,
            Obstacle::Special => Refusal::SpecialFile,
            Obstacle::TooLarge => Refusal::TooLarge,
            Obstacle::Unsteady => Refusal::WorkspaceChanged,
            Obstacle::Denied(_) => Refusal::Unreadable,
        }
    }
}

/// What stands at a path; `None` where nothing does.
///
/// `executable_bit` is `core.fileMode`: without it every file counts as 100644.
///
/// # Errors
/// [`Obstacle`] says what is in the way.
pub fn state(top: &Path, path: &BStr, executable_bit: bool) -> Result<Option<Content>, Obstacle> {
    state_within(top, path, executable_bit, u64::MAX)
}

/// As [`state()`], where what is larger than `limit` is in the way: [`Obstacle::TooLarge`].
///
/// # Errors
/// As [`state()`].
pub fn state_within(
    top: &Path,
    path: &BStr,
    executable_bit: bool,
    limit: u64,
) -> Result<Option<Content>, Obstacle> {
    match parent(top, path) {
        Ok((folder, name)) => state_at(&folder, name, executable_bit, limit),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::NOTDIR | Errno::LOOP) => Err(Obstacle::Blocked),
        Err(error) => Err(Obstacle::Denied(error.into())),
    }
}

/// As [`state`], for an entry of an open folder.
pub(super) fn state_at(
    folder: &std::os::fd::OwnedFd,
    name: &BStr,
    executable_bit: bool,
    limit: u64,
) -> Result<Option<Content>, Obstacle> {
    let name_bytes: &[u8] = name;
    // The type may change between the two looks; then they are taken again.
    for _ in 0..8 {
        let stat = match statat(folder, name_bytes, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(Obstacle::Denied(error.into())),
        };
        let Some(mode) = mode_of(&stat, executable_bit) else {
            return Err(Obstacle::Folder);
        };
        let file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        match read_what(&stat, folder, name, limit) {
            Ok(bytes) => {
                return Ok(Some(Content {
                    mode,
                    permissions: if file { stat.st_mode & 0o7777 } else { 0 },
                    bytes,
                }));
            }
            Err(Unread::Gone) => {}
            Err(Unread::Special) => return Err(Obstacle::Special),
            Err(Unread::Denied(error)) => match Errno::from_io_error(&error) {
                Some(Errno::LOOP | Errno::INVAL) => {}
                _ => return Err(Obstacle::Denied(error)),
            },
            Err(Unread::TooLarge) => return Err(Obstacle::TooLarge),
        }
    }
    Err(Obstacle::Unsteady)
}
