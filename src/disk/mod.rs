//! Files of a working tree, by directory handles: no link is followed at any component, so a path
//! of the repository cannot lead outside it, whatever somebody swaps in meanwhile.
//!
//! Reading is here; [`state()`] tells apart what may stand at a path, and [`WorkTree`] writes.

mod flush;
mod folders;
#[cfg(target_os = "linux")]
mod out;
mod state;
mod swap;
#[cfg(test)]
mod tests;
mod write;

pub use flush::{Volume, flush, flush_each, put_before};
pub use state::{Content, Obstacle, Seal, state, state_within};
pub use write::{Fault, New, Point, Probe, Spot, Swap, WorkTree, is_temporary, with_execute_bit};

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, openat, readlinkat, statat};
use rustix::io::Errno;

/// Git's mode for a regular file.
pub const REGULAR: u32 = 0o100644;
/// Git's mode for an executable file.
pub const EXECUTABLE: u32 = 0o100755;
/// Git's mode for a symbolic link.
pub const LINK: u32 = 0o120000;

/// Why a path gave no bytes.
#[derive(Debug)]
pub enum Unread {
    /// Nothing is there, or only a folder, or the way there leads through a link or a file.
    Gone,
    /// A FIFO, a socket or a device: never opened.
    Special,
    /// It is larger than the limit.
    TooLarge,
    /// The system refused, or failed.
    Denied(io::Error),
}

impl From<Errno> for Unread {
    fn from(error: Errno) -> Self {
        match error {
            Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Unread::Gone,
            other => Unread::Denied(other.into()),
        }
    }
}

/// Opens the folder that holds `path` and gives it with the last component.
///
/// # Errors
/// `NOENT` or `NOTDIR` when a component is missing, `NOTDIR` or `LOOP` when one is a link.
pub fn parent<'p>(top: &Path, path: &'p BStr) -> Result<(OwnedFd, &'p BStr), Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut folder = rustix::fs::open(top, flags, Mode::empty())?;
    let (way, name) = match path.rsplit_once_str("/") {
        Some((way, name)) => (way, name.as_bstr()),
        None => (&b""[..], path),
    };
    for part in way.split_str("/").filter(|part| !part.is_empty()) {
        folder = openat(&folder, part, flags | OFlags::NOFOLLOW, Mode::empty())?;
    }
    Ok((folder, name))
}

/// The `lstat` data of a path.
///
/// # Errors
/// [`Unread::Gone`] when nothing is there.
pub fn stat(top: &Path, path: &BStr) -> Result<Stat, Unread> {
    let (folder, name) = parent(top, path)?;
    Ok(statat(&folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?)
}

/// The mode that git would record for a path. `None` where nothing is there or a folder is.
///
/// `executable_bit` is `core.fileMode`: without it every regular file counts as 100644.
pub fn mode(top: &Path, path: &BStr, executable_bit: bool) -> Option<u32> {
    match stat(top, path) {
        Ok(stat) => mode_of(&stat, executable_bit),
        Err(Unread::Gone) => None,
        // There, but not to be looked at: reading it will say why.
        Err(_) => Some(REGULAR),
    }
}

/// The mode that git would record for this `lstat` result; `None` for a folder.
pub fn mode_of(stat: &Stat, executable_bit: bool) -> Option<u32> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => None,
        FileType::Symlink => Some(LINK),
        _ if executable_bit && stat.st_mode & 0o100 != 0 => Some(EXECUTABLE),
        _ => Some(REGULAR),
    }
}

/// The bytes of a file, or the target of a link, at most `limit` of them.
///
/// # Errors
/// [`Unread`] says what stands there instead.
pub fn read(top: &Path, path: &BStr, limit: u64) -> Result<Vec<u8>, Unread> {
    let (folder, name) = parent(top, path)?;
    read_at(&folder, name, limit)
}

/// As [`read`], for an entry of an open folder.
///
/// # Errors
/// As [`read`].
pub fn read_at(folder: &OwnedFd, name: &BStr, limit: u64) -> Result<Vec<u8>, Unread> {
    let stat = statat(folder, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)?;
    read_what(&stat, folder, name, limit)
}

/// As [`read_at`], of something that was looked at just now.
fn read_what(stat: &Stat, folder: &OwnedFd, name: &BStr, limit: u64) -> Result<Vec<u8>, Unread> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Symlink => {
            return Ok(readlinkat(folder, name.as_bytes(), Vec::new())?.into_bytes());
        }
        FileType::RegularFile => {}
        FileType::Directory => return Err(Unread::Gone),
        _ => return Err(Unread::Special),
    }
    if u64::try_from(stat.st_size).is_ok_and(|size| size > limit) {
        return Err(Unread::TooLarge);
    }
    // Without blocking, and looked at again once open: a FIFO may have been swapped in.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name.as_bytes(), flags, Mode::empty())?);
    let meta = file.metadata().map_err(Unread::Denied)?;
    if !meta.is_file() {
        return Err(Unread::Special);
    }
    // All of it in one go, and one more look that there is no more.
    let mut bytes = vec![0; usize::try_from(meta.len().min(limit)).unwrap_or(0) + 1];
    let mut filled = 0;
    while filled < bytes.len() {
        match file.read(&mut bytes[filled..]) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Unread::Denied(error)),
        }
    }
    let full = filled == bytes.len();
    bytes.truncate(filled);
    if full {
        // It has grown since.
        let rest = limit.saturating_add(1).saturating_sub(filled as u64);
        let read = file.take(rest).read_to_end(&mut bytes);
        read.map_err(Unread::Denied)?;
    }
    if bytes.len() as u64 > limit {
        return Err(Unread::TooLarge);
    }
    Ok(bytes)
}
