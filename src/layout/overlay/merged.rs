//! One file as a command in the mount sees it, without the mount.

use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::marks::{Opacity, is_whiteout, opacity};
use crate::disk;
use crate::git::tree::lookup;
use crate::git::{ObjectId, Objects, os_str};
use crate::layout::{Error, Result};

/// The bytes of a regular file, from the upper folder `files` or else from the layout of the tree
/// `template`; `None` where no regular file shows. Files of more than `limit` bytes are passed over.
///
/// # Errors
/// [`Error::Io`], [`Error::Tree`].
pub fn merged_file(
    files: &Path,
    objects: &Objects<'_>,
    (template, layout): (ObjectId, &Path),
    (path, limit): (&BStr, u64),
) -> Result<Option<Vec<u8>>> {
    let failed = |e: Errno| Error::io("read", files.join(os_str(path)), e);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder: OwnedFd = rustix::fs::open(files, flags, Mode::empty()).map_err(failed)?;
    let mut shows_below = true;
    let (folders, name) = match path.rsplit_once_str("/") {
        Some((folders, name)) => (folders, name.as_bstr()),
        None => (&b""[..], path),
    };
    let below = || -> Result<Option<Vec<u8>>> {
        let entry = lookup(objects, template, path)?.filter(|entry| entry.is_file());
        // From disk, for git may have written it otherwise than it is stored.
        Ok(entry.and_then(|_| disk::read(layout, path, limit).ok()))
    };
    for component in folders.split_str("/").filter(|part| !part.is_empty()) {
        shows_below &= opacity(&folder).map_err(failed)? != Opacity::Opaque;
        match openat(&folder, component, flags | OFlags::NOFOLLOW, Mode::empty()) {
            Ok(next) => folder = next,
            Err(Errno::NOENT) if shows_below => return below(),
            // A whiteout, a file in its place, or closed to us.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::ACCESS) => return Ok(None),
            Err(error) => return Err(failed(error)),
        }
    }
    let here = opacity(&folder).map_err(failed)?;
    let stat = match statat(&folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => stat,
        Err(Errno::NOENT) if shows_below && here != Opacity::Opaque => return below(),
        Err(Errno::NOENT) => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || is_whiteout(&folder, name, &stat, here).map_err(failed)?
    {
        return Ok(None);
    }
    Ok(disk::read_at(&folder, name, limit).ok())
}
