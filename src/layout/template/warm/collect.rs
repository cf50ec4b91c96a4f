//! Copying the selected output into a new layer.
//!
//! The user may be building meanwhile: what vanishes is left out, what changes is copied as it is
//! found, with the time that it had before, so that a build tool sees a mismatch rather than a match.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, linkat, openat, readlinkat, statat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::select::Selection;
use crate::git::os_str;
use crate::git::tree::REGULAR;
use crate::layout::put::{Root, set_time, time_in, times_of};
use crate::layout::template::copy::{copy, in_parallel};
use crate::layout::{Error, Result};
use crate::model::{Progress, Work};

/// What was copied or linked.
pub(super) struct Made {
    pub(super) files: usize,
    pub(super) bytes: u64,
}

/// A file or link to be copied.
struct Item {
    path: BString,
    stat: Stat,
    /// Of which source it is.
    layer: usize,
}

#[derive(Default)]
struct Found {
    items: Vec<Item>,
    /// Folders, each before those in it.
    folders: Vec<Item>,
}

/// Copies the selection to the folder `into`, which has nothing of it yet, from one folder or from those of
/// an overlay, the upper one first. Files that are as they were in `before`, the last layer, are linked.
pub(super) fn collect(
    tops: &[PathBuf],
    selection: &Selection,
    into: &Path,
    before: Option<PathBuf>,
    (threads, progress): (usize, &dyn Progress),
) -> Result<Made> {
    let open_top = |top: &PathBuf| {
        let opened = open(CWD, top.as_os_str().as_encoded_bytes().as_bstr());
        opened.map_err(|e| Error::io("open", top, e))
    };
    let sources = tops.iter().map(open_top).collect::<Result<Vec<_>>>()?;
    let found = find(&sources, selection)?;
    let target = Root::open(into)?;
    for path in selection.folders.iter().chain(&selection.files) {
        for end in path.find_iter("/") {
            target.folder(path[..end].as_bstr())?;
        }
    }
    for folder in &found.folders {
        target.folder(folder.path.as_bstr())?;
    }
    let before = before.as_deref().map(Root::open).transpose()?;
    // Files of several names: the first is copied, the others are linked to it, as build tools
    // expect to find them.
    let mut first = HashMap::new();
    let (mut own, mut again) = (Vec::new(), Vec::new());
    for item in &found.items {
        let key = (item.stat.st_dev, item.stat.st_ino);
        match first.get(&key) {
            Some(path) if item.stat.st_nlink > 1 => again.push((item, *path)),
            _ => {
                first.insert(key, item.path.as_bstr());
                own.push(item);
            }
        }
    }
    let work = Work::start(progress, "Sharing build output", Some(own.len() as u64));
    let copied = in_parallel(vec![(); threads], own.len(), Ok, |(), at| {
        work.step(1);
        place(&sources[own[at].layer], &target, before.as_ref(), own[at])
    })?;
    drop(work);
    for (item, path) in again {
        match linkat(
            target.fd(),
            path.as_bytes(),
            target.fd(),
            item.path.as_bytes(),
            AtFlags::empty(),
        ) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(Error::io("link", os_str(item.path.as_bstr()), error)),
        }
    }
    // From the inside out: what is made in a folder changes its time.
    for folder in found.folders.iter().rev() {
        finish_folder(&target, folder)?;
    }
    Ok(Made {
        files: found.items.len(),
        bytes: copied.iter().sum(),
    })
}

fn find(sources: &[OwnedFd], selection: &Selection) -> Result<Found> {
    let mut found = Found::default();
    for path in selection.folders.iter().chain(&selection.files) {
        let failed = |e: Errno| Error::io("read", os_str(path.as_bstr()), e);
        let again = sources.iter().map(|top| open(top, ".".into()));
        let tops = again
            .collect::<rustix::io::Result<Vec<_>>>()
            .map_err(failed)?;
        let mut here: Vec<Layer> = tops.into_iter().enumerate().collect();
        let (above, name) = match path.rsplit_once_str("/") {
            Some((above, name)) => (above, name),
            None => (&b""[..], &path[..]),
        };
        for part in above.split_str("/").filter(|part| !part.is_empty()) {
            here = look(&here, part.as_bstr()).map_err(failed)?.folders;
        }
        let mut at = path.clone();
        visit(&here, name.as_bstr(), &mut at, &mut found).map_err(failed)?;
    }
    Ok(found)
}

/// An open folder, and of which source it is.
type Layer = (usize, OwnedFd);

/// What one name is.
#[derive(Default)]
struct Seen {
    /// The file or link, or the topmost folder.
    top: Option<(usize, Stat)>,
    /// The folders that make one folder.
    folders: Vec<Layer>,
}

/// Looks for a name in the folders that make one; what may not be read is left out.
fn look(parents: &[Layer], name: &BStr) -> rustix::io::Result<Seen> {
    let mut seen = Seen::default();
    for (layer, parent) in parents {
        let stat = match statat(parent, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => continue,
            stat => stat?,
        };
        let is_folder = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if is_folder {
            let folder = match open(parent, name) {
                Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS | Errno::LOOP) => break,
                folder => folder?,
            };
            seen.top.get_or_insert((*layer, stat));
            let hides = parents.len() > 1 && is_opaque(&folder)?;
            seen.folders.push((*layer, folder));
            if hides {
                break;
            }
            continue;
        }
        let gone = parents.len() > 1 && hides(parent, name, &stat)?;
        if seen.folders.is_empty() && !gone {
            seen.top = Some((*layer, stat));
        }
        break;
    }
    Ok(seen)
}

#[cfg(target_os = "linux")]
fn is_opaque(folder: &OwnedFd) -> rustix::io::Result<bool> {
    use crate::layout::overlay::marks::{Opacity, opacity};
    Ok(opacity(folder)? == Opacity::Opaque)
}

#[cfg(target_os = "linux")]
fn hides(parent: &OwnedFd, name: &BStr, stat: &Stat) -> rustix::io::Result<bool> {
    use crate::layout::overlay::marks::{is_whiteout, opacity};
    is_whiteout(parent, name, stat, opacity(parent)?)
}

#[cfg(not(target_os = "linux"))]
fn is_opaque(_: &OwnedFd) -> rustix::io::Result<bool> {
    Ok(false)
}

#[cfg(not(target_os = "linux"))]
fn hides(_: &OwnedFd, _: &BStr, _: &Stat) -> rustix::io::Result<bool> {
    Ok(false)
}

/// Lists a name and what is below it.
fn visit(
    parents: &[Layer],
    name: &BStr,
    path: &mut BString,
    found: &mut Found,
) -> rustix::io::Result<()> {
    let seen = look(parents, name)?;
    let Some((layer, stat)) = seen.top else {
        return Ok(());
    };
    let item = Item {
        path: path.clone(),
        stat,
        layer,
    };
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile | FileType::Symlink => found.items.push(item),
        FileType::Directory => found.folders.push(item),
        _ => {}
    }
    let mut names = BTreeSet::new();
    for (_, folder) in &seen.folders {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            // A repository inside would be one in every directory, with the user's own state.
            if !matches!(name, b"." | b".." | b".git") {
                names.insert(BString::from(name));
            }
        }
    }
    let length = path.len();
    for name in names {
        path.push(b'/');
        path.extend_from_slice(&name);
        visit(&seen.folders, name.as_bstr(), path, found)?;
        path.truncate(length);
    }
    Ok(())
}

/// Copies or links one file; gives the bytes that were copied.
fn place(source: &OwnedFd, target: &Root, before: Option<&Root>, item: &Item) -> Result<u64> {
    let path = item.path.as_bstr();
    let failed = |e: Errno| Error::io("copy", os_str(path), e);
    let is_link = FileType::from_raw_mode(item.stat.st_mode) == FileType::Symlink;
    if let Some(before) = before
        && !is_link
        && let Ok(old) = statat(before.fd(), path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW)
        && same(&old, &item.stat)
        && linkat(
            before.fd(),
            path.as_bytes(),
            target.fd(),
            path.as_bytes(),
            AtFlags::empty(),
        )
        .is_ok()
    {
        return Ok(0);
    }
    if is_link {
        let to = match readlinkat(source, path.as_bytes(), Vec::new()) {
            Err(Errno::NOENT | Errno::INVAL) => return Ok(0),
            to => to.map_err(failed)?,
        };
        symlinkat(to, target.fd(), path.as_bytes()).map_err(failed)?;
        let times = times_of(time_in(&item.stat));
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        utimensat(target.fd(), path.as_bytes(), &times, flags).map_err(failed)?;
        return Ok(0);
    }
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let from = match openat(source, path.as_bytes(), flags, Mode::empty()) {
        Err(Errno::NOENT | Errno::ACCESS | Errno::LOOP | Errno::NOTDIR) => return Ok(0),
        from => File::from(from.map_err(failed)?),
    };
    let to = target.create(path, REGULAR)?;
    copy(&from, &to).map_err(|e| Error::io("copy", os_str(path), e))?;
    fchmod(&to, Mode::from_raw_mode(item.stat.st_mode & 0o777)).map_err(failed)?;
    set_time(&to, time_in(&item.stat)).map_err(failed)?;
    Ok(u64::try_from(item.stat.st_size).unwrap_or(0))
}

/// Whether a file of the last layer is still the user's: permissions, size and time.
fn same(old: &Stat, new: &Stat) -> bool {
    old.st_mode & !0o7000 == new.st_mode & !0o7000
        && old.st_size == new.st_size
        && time_in(old) == time_in(new)
}

/// Gives a folder its permissions and time. Its owner may always write: else nobody could remove it.
fn finish_folder(target: &Root, folder: &Item) -> Result<()> {
    let path = folder.path.as_bstr();
    let failed = |e: Errno| Error::io("set the times of", os_str(path), e);
    let opened = open(target.fd(), path).map_err(failed)?;
    fchmod(
        &opened,
        Mode::from_raw_mode(folder.stat.st_mode & 0o777 | 0o700),
    )
    .map_err(failed)?;
    let times = times_of(time_in(&folder.stat));
    rustix::fs::futimens(&opened, &times).map_err(failed)
}

fn open(parent: impl std::os::fd::AsFd, path: &BStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(parent, path.as_bytes(), flags, Mode::empty())
}
