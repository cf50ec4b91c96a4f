//! Reading files of a directory: bytes, mode and name, hashed and deflated on several threads.
//!
//! A file counts only when it held still: its stat data are the same before and after it was read. It
//! is looked at a few times, then left out. What is a FIFO, a socket or a device is never opened, and no
//! link is followed.

use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, FileType, Stat, statat};
use rustix::io::Errno;

use super::crew;
use super::scan::special;
use crate::disk::{self, Unread};
use crate::git::index::StatData;
use crate::git::pack::PackEntry;
use crate::git::tree::{self, Entry};
use crate::git::{self, Conversion, ObjectFormat, ObjectId, ObjectKind, os_str};
use crate::layout::queue::threads;
use crate::layout::{Error, Result};
use crate::model::{Refusal, RepoPath};
use crate::workspace::check_link;

/// How often a file that does not hold still is looked at.
pub(super) const TRIES: usize = 3;
/// So many files are one piece of work.
const PIECE: usize = 32;

/// What holds for all files of a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) format: ObjectFormat,
    /// The size of the largest file in bytes.
    pub(super) limit: u64,
    /// `core.fileMode`.
    pub(super) executable_bit: bool,
    /// `core.symlinks`.
    pub(super) links: bool,
}

/// A file to be read.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) path: BString,
    /// What the overlay holds there.
    pub(super) known: Option<Entry>,
    pub(super) conversion: Conversion,
}

/// What became of a file.
#[derive(Debug)]
pub(super) enum Taken {
    /// Its content is what the overlay holds.
    Held(Entry),
    /// Its content is new.
    New(Entry, PackEntry),
    /// Git has to say what its content is: its mode, and what it looked like.
    ForGit(u32, StatData),
    /// Nothing is there.
    Gone,
    /// It is left out.
    LeftOut(Refusal),
}

/// Reads all the files.
///
/// # Errors
/// [`Error::Io`] for a failure that says nothing about one file.
pub(super) fn all(
    top: &Path,
    rules: Rules,
    mut wanted: Vec<Wanted>,
) -> Result<Vec<(Wanted, Taken)>> {
    wanted.sort_by(|a, b| folder(&a.path).cmp(folder(&b.path)));
    let mut pieces: Vec<Vec<Wanted>> = Vec::new();
    for one in wanted {
        match pieces.last_mut() {
            Some(piece) if piece.len() < PIECE && folder(&piece[0].path) == folder(&one.path) => {
                piece.push(one);
            }
            _ => pieces.push(vec![one]),
        }
    }
    let crew = match is_little(top, &pieces) {
        true => 1,
        false => pieces.len().min(threads()),
    };
    let parts = crew::work_off(pieces, crew, |piece, taken: &mut Vec<_>, _| {
        take_piece(top, rules, piece, taken)
    })?;
    Ok(parts.into_iter().flatten().collect())
}

/// Whether it is read sooner than other threads, each with a deflater of its own, are started.
fn is_little(top: &Path, pieces: &[Vec<Wanted>]) -> bool {
    const FILES: usize = 16;
    const BYTES: u64 = 256 << 10;
    let size = |one: &Wanted| {
        let stat = disk::stat(top, one.path.as_bstr()).ok();
        stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
    };
    let files = || pieces.iter().flatten();
    files().count() <= FILES && files().map(size).sum::<u64>() <= BYTES
}

fn folder(path: &BString) -> &[u8] {
    path.rfind_byte(b'/').map_or(&[], |slash| &path[..slash])
}

fn take_piece(
    top: &Path,
    rules: Rules,
    piece: Vec<Wanted>,
    taken: &mut Vec<(Wanted, Taken)>,
) -> Result<()> {
    let handle = match piece.first() {
        Some(first) => disk::parent(top, first.path.as_bstr()).map(|(handle, _)| handle),
        None => return Ok(()),
    };
    for one in piece {
        let outcome = match &handle {
            Ok(handle) => take(handle, rules, &one)?,
            Err(error) => away(*error, top, &one.path)?,
        };
        taken.push((one, outcome));
    }
    Ok(())
}

/// Reads one file of an open folder.
pub(super) fn take(handle: &OwnedFd, rules: Rules, wanted: &Wanted) -> Result<Taken> {
    let path = match RepoPath::new(&wanted.path) {
        Ok(path) => path,
        Err(error) => return Ok(Taken::LeftOut(error.refusal())),
    };
    let name = path.file_name();
    for _ in 0..TRIES {
        let before = match statat(handle, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(error) => return away(error, Path::new(""), &wanted.path),
        };
        let kind = FileType::from_raw_mode(before.st_mode);
        if kind == FileType::CharacterDevice && before.st_rdev == 0 {
            // No device has this number: an overlay's mark that nothing is there.
            return Ok(Taken::Gone);
        }
        if special(kind) {
            return Ok(Taken::LeftOut(Refusal::SpecialFile));
        }
        let mode = mode(&before, rules, wanted.known);
        let size = u64::try_from(before.st_size).unwrap_or(u64::MAX);
        if kind == FileType::RegularFile && size > rules.limit {
            return Ok(Taken::LeftOut(Refusal::TooLarge));
        }
        if mode != tree::LINK && wanted.conversion == Conversion::Always {
            return Ok(Taken::ForGit(mode, StatData::from(&before)));
        }
        let bytes = match disk::read_at(handle, name, rules.limit) {
            Ok(bytes) => bytes,
            // Something was swapped in since the look at it, or it grew: look again.
            Err(Unread::Gone | Unread::Special | Unread::TooLarge) => continue,
            Err(Unread::Denied(error)) => {
                return match error.raw_os_error().map(Errno::from_raw_os_error) {
                    Some(errno) => away(errno, Path::new(""), &wanted.path),
                    None => Err(Error::io("read", os_str(wanted.path.as_bstr()), error)),
                };
            }
        };
        let after = statat(handle, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        if !after.is_ok_and(|after| is_same(&before, &after)) {
            continue;
        }
        if mode == tree::LINK {
            return take_link(&path, rules, wanted.known, &bytes);
        }
        if wanted.conversion == Conversion::LineEndings && bytes.contains_str("\r\n") {
            return Ok(Taken::ForGit(mode, StatData::from(&before)));
        }
        return store(rules.format, mode, wanted.known, &bytes);
    }
    Ok(Taken::LeftOut(Refusal::WorkspaceChanged))
}

/// The bytes of one plain file as [`take`] would store them; `None` for all that is no plain file, was
/// not to be had, or has to be converted.
///
/// # Errors
/// As [`all`].
pub(super) fn bytes(handle: &OwnedFd, rules: Rules, wanted: &Wanted) -> Result<Option<Vec<u8>>> {
    let name = wanted.path.rsplit(|b| *b == b'/').next();
    let name = name.unwrap_or_default().as_bstr();
    for _ in 0..TRIES {
        let look = || statat(handle, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok();
        let Some(before) = look().filter(|stat| !is_link(stat)) else {
            return Ok(None);
        };
        match disk::read_at(handle, name, rules.limit) {
            Ok(bytes) if look().is_some_and(|after| is_same(&before, &after)) => {
                return Ok(Some(bytes));
            }
            Ok(_) => {}
            Err(_) => return Ok(None),
        }
    }
    Ok(None)
}

fn is_link(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::Symlink
}

/// Whether both looks saw the same file in the same state.
fn is_same(before: &Stat, after: &Stat) -> bool {
    StatData::from(before).matches(&StatData::from(after))
        && before.st_size == after.st_size
        && before.st_mode == after.st_mode
        && before.st_dev == after.st_dev
}

/// The mode that git would record.
fn mode(stat: &Stat, rules: Rules, known: Option<Entry>) -> u32 {
    match (FileType::from_raw_mode(stat.st_mode), known) {
        (FileType::Symlink, _) => tree::LINK,
        // A link lies on such a disk as a file that holds its target.
        (_, Some(known)) if !rules.links && known.mode == tree::LINK => tree::LINK,
        (_, Some(known)) if !rules.executable_bit && known.is_file() => known.mode,
        _ => disk::mode_of(stat, rules.executable_bit).unwrap_or(tree::REGULAR),
    }
}

fn take_link(path: &RepoPath, rules: Rules, known: Option<Entry>, target: &[u8]) -> Result<Taken> {
    let taken = store(rules.format, tree::LINK, known, target)?;
    // A link that was there before stays, wherever it leads.
    if matches!(taken, Taken::Held(_)) && known.is_some_and(|known| known.mode == tree::LINK) {
        return Ok(taken);
    }
    match check_link(path, target.as_bstr()) {
        Ok(()) => Ok(taken),
        Err(error) => match error.refusal() {
            Some(kind) => Ok(Taken::LeftOut(kind)),
            None => Err(error.into()),
        },
    }
}

fn store(format: ObjectFormat, mode: u32, known: Option<Entry>, bytes: &[u8]) -> Result<Taken> {
    let kind = ObjectKind::Blob;
    if let Some(known) = known.filter(|known| !known.is_tree()) {
        let id = ObjectId::hash_object_ext(kind, bytes, format).map_err(git::Error::from)?;
        // The overlay's own commit keeps it: no copy is needed.
        if id == known.id {
            return Ok(Taken::Held(Entry { mode, id }));
        }
    }
    let packed = PackEntry::new(format, kind, bytes).map_err(git::Error::from)?;
    let id = packed.id();
    Ok(Taken::New(Entry { mode, id }, packed))
}

/// What a failure to look at a file means for it.
fn away(error: Errno, top: &Path, path: &BString) -> Result<Taken> {
    match error {
        Errno::NOENT | Errno::NOTDIR | Errno::LOOP => Ok(Taken::Gone),
        Errno::ACCESS | Errno::PERM | Errno::IO => Ok(Taken::LeftOut(Refusal::Unreadable)),
        error => Err(Error::io("read", top.join(os_str(path.as_bstr())), error)),
    }
}

/// The stat data of a path as they are now; all zero where it cannot be looked at.
pub(super) fn look(top: &Path, path: &BStr) -> StatData {
    disk::stat(top, path)
        .map(|stat| StatData::from(&stat))
        .unwrap_or_default()
}
