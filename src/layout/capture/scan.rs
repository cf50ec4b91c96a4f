//! The walk of a directory: what differs from the manifest, told from names and stat data alone.
//!
//! Folders are opened by handles, one component after the other, and no link is followed, so the walk
//! cannot be led outside. Nothing but folders is opened here.

use std::collections::HashMap;
use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use super::crew;
use crate::disk;
use crate::git::index::{Entry, IndexFile, StatData};
use crate::git::{os_str, tree};
use crate::layout::queue::threads;
use crate::layout::{Error, Result};
use crate::model::{Refusal, RepoPath};
use crate::workspace::LeftOut;

/// Below so many known files, threads cost more than they bring.
const WORTH_THREADS: usize = 500;
/// The name of an attributes file.
const ATTRIBUTES: &[u8] = b".gitattributes";

/// What a walk has seen.
#[derive(Default, Debug)]
pub(super) struct Seen {
    /// Known files whose stat data differ, or prove nothing: to be read.
    pub(super) suspects: Vec<BString>,
    /// Known files that are not there any more.
    pub(super) gone: Vec<BString>,
    /// What is not known.
    pub(super) fresh: Vec<Fresh>,
    /// What is left out, with all that is below it.
    pub(super) left_out: Vec<LeftOut>,
    /// Folders that hold an attributes file.
    pub(super) attributes: Vec<BString>,
    /// Files that are what this says, without a look at them.
    pub(super) restored: Vec<(BString, tree::Entry)>,
}

/// A path that the manifest does not hold.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) path: BString,
    pub(super) is_folder: bool,
}

impl Seen {
    pub(super) fn append(&mut self, other: Seen) {
        self.suspects.extend(other.suspects);
        self.gone.extend(other.gone);
        self.fresh.extend(other.fresh);
        self.left_out.extend(other.left_out);
        self.attributes.extend(other.attributes);
        self.restored.extend(other.restored);
    }

    pub(super) fn leave_out(&mut self, path: BString, kind: Refusal) {
        self.left_out.push(LeftOut { path, kind });
    }
}

/// A folder to be looked at.
struct Folder<'m> {
    path: BString,
    /// The folder above it; `None`: it is reached from the top, by its path.
    above: Option<Arc<OwnedFd>>,
    /// The part of the manifest that is below it.
    known: &'m [Entry<'m>],
}

/// What the manifest has by one name of a folder.
enum Child<'m> {
    File(&'m Entry<'m>),
    Folder(&'m [Entry<'m>]),
}

/// Walks the whole directory, apart from folders that the manifest does not know.
///
/// # Errors
/// [`Error::Io`] for a failure that says nothing about one path: the walk is worth nothing then.
pub(super) fn all(top: &Path, manifest: &IndexFile) -> Result<Seen> {
    let known: Vec<Entry<'_>> = manifest.entries().collect();
    let crew = match known.len() {
        0..WORTH_THREADS => 1,
        _ => threads(),
    };
    let start = Folder {
        path: BString::default(),
        above: None,
        known: &known,
    };
    let written = manifest.written();
    walk(top, vec![start], written, crew)
}

/// Looks at folders that the manifest does not know, one level deep.
///
/// # Errors
/// As [`all`].
pub(super) fn folders(top: &Path, paths: Vec<BString>) -> Result<Seen> {
    let crew = if paths.len() <= 16 { 1 } else { threads() };
    let start = paths
        .into_iter()
        .map(|path| Folder {
            path,
            above: None,
            known: &[],
        })
        .collect();
    walk(top, start, (0, 0), crew)
}

fn walk(top: &Path, start: Vec<Folder<'_>>, written: (u32, u32), crew: usize) -> Result<Seen> {
    let walker = Walker { top, written };
    let parts = crew::work_off(start, crew, |folder, seen: &mut Seen, more| {
        walker.look(folder, seen, more)
    })?;
    let mut all = Seen::default();
    parts.into_iter().for_each(|part| all.append(part));
    Ok(all)
}

struct Walker<'t> {
    top: &'t Path,
    written: (u32, u32),
}

impl Walker<'_> {
    fn look<'m>(
        &self,
        folder: Folder<'m>,
        seen: &mut Seen,
        more: &mut Vec<Folder<'m>>,
    ) -> Result<()> {
        let listed = self.open(&folder).and_then(|handle| {
            let names = Names::read(&handle)?;
            Ok((handle, names))
        });
        let (handle, names) = match listed {
            Ok(listed) => listed,
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) if !folder.path.is_empty() => {
                // It went since its name was read; what took its place is for the next capture.
                report_gone(folder.known, seen);
                return Ok(());
            }
            Err(Errno::ACCESS | Errno::PERM) if !folder.path.is_empty() => {
                seen.leave_out(folder.path, Refusal::Unreadable);
                return Ok(());
            }
            Err(error) => return Err(self.failed(&folder.path, error)),
        };
        let is_top = folder.path.is_empty();
        if !is_top && names.has(b".git") {
            seen.leave_out(folder.path, Refusal::NestedRepository);
            return Ok(());
        }
        let handle = Arc::new(handle);
        let mut children = children(folder.known, folder.path.as_bstr());
        for (name, kind) in names.iter() {
            let bytes = name.to_bytes();
            if is_top && matches!(bytes, b".git" | b".relo") {
                continue;
            }
            if bytes == ATTRIBUTES {
                seen.attributes.push(folder.path.clone());
            }
            let child = children.remove(bytes);
            let here = Here {
                folder: &folder.path,
                handle: &handle,
                name,
            };
            self.entry(&here, kind, child, seen, more)?;
        }
        for child in children.into_values() {
            match child {
                Child::File(entry) => report_gone(std::slice::from_ref(entry), seen),
                Child::Folder(known) => report_gone(known, seen),
            }
        }
        Ok(())
    }

    fn entry<'m>(
        &self,
        here: &Here<'_>,
        kind: FileType,
        child: Option<Child<'m>>,
        seen: &mut Seen,
        more: &mut Vec<Folder<'m>>,
    ) -> Result<()> {
        let (kind, stat) = match (&child, kind) {
            (Some(Child::File(_)), _) | (_, FileType::Unknown) => {
                match statat(here.handle, here.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => (FileType::from_raw_mode(stat.st_mode), Some(stat)),
                    Err(Errno::NOENT) => {
                        vanished(child, seen);
                        return Ok(());
                    }
                    Err(Errno::ACCESS | Errno::PERM) => {
                        seen.leave_out(here.path(), Refusal::Unreadable);
                        return Ok(());
                    }
                    Err(error) => return Err(self.failed(&here.path(), error)),
                }
            }
            _ => (kind, None),
        };
        let is_folder = kind == FileType::Directory;
        match child {
            // Whatever is in a submodule's folder is not ours to look at.
            Some(Child::File(entry)) if entry.mode == tree::GITLINK => {
                if !is_folder {
                    seen.leave_out(here.path(), Refusal::NestedRepository);
                }
                return Ok(());
            }
            Some(Child::File(entry)) if !is_folder => {
                let stat = stat.map(|stat| StatData::from(&stat)).unwrap_or_default();
                if !entry.stat.matches(&stat) || self.is_racy(&stat) {
                    match special(kind) {
                        false => seen.suspects.push(here.path()),
                        true => seen.leave_out(here.path(), Refusal::SpecialFile),
                    }
                }
                return Ok(());
            }
            Some(Child::Folder(known)) if is_folder => {
                more.push(Folder {
                    path: here.path(),
                    above: Some(here.handle.clone()),
                    known,
                });
                return Ok(());
            }
            // A file where a folder was, or the other way round: what was known is gone, what is
            // there is new.
            Some(Child::File(entry)) => report_gone(std::slice::from_ref(entry), seen),
            Some(Child::Folder(known)) => report_gone(known, seen),
            None => {}
        }
        let path = here.path();
        if let Err(error) = RepoPath::new(&path) {
            seen.leave_out(path, error.refusal());
        } else {
            seen.fresh.push(Fresh { path, is_folder });
        }
        Ok(())
    }

    /// Whether equal stat data prove nothing: the file may have been changed in the same tick of the
    /// clock in which the manifest was written, its mode too.
    fn is_racy(&self, stat: &StatData) -> bool {
        stat.mtime >= self.written || stat.ctime >= self.written
    }

    fn open(&self, folder: &Folder<'_>) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if folder.path.is_empty() {
            return rustix::fs::open(self.top, flags, Mode::empty());
        }
        let flags = flags | OFlags::NOFOLLOW;
        match &folder.above {
            Some(above) => {
                let name = folder.path.rsplit(|b| *b == b'/').next();
                openat(above, name.unwrap_or_default(), flags, Mode::empty())
            }
            None => {
                let (above, name) = disk::parent(self.top, folder.path.as_bstr())?;
                openat(above, name.as_bytes(), flags, Mode::empty())
            }
        }
    }

    fn failed(&self, path: &BString, error: Errno) -> Error {
        Error::io("look at", self.top.join(os_str(path.as_bstr())), error)
    }
}

/// One entry of a folder.
struct Here<'f> {
    folder: &'f BString,
    handle: &'f Arc<OwnedFd>,
    name: &'f CStr,
}

impl Here<'_> {
    fn path(&self) -> BString {
        let name = self.name.to_bytes();
        let mut path = BString::from(Vec::with_capacity(self.folder.len() + 1 + name.len()));
        if !self.folder.is_empty() {
            path.extend_from_slice(self.folder);
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }
}

/// Whether it is neither a file, nor a link, nor a folder.
pub(super) fn special(kind: FileType) -> bool {
    use FileType::{Directory, RegularFile, Symlink};
    !matches!(kind, RegularFile | Symlink | Directory)
}

/// A name that was read a moment ago and is not there any more.
fn vanished(child: Option<Child<'_>>, seen: &mut Seen) {
    match child {
        Some(Child::File(entry)) => report_gone(std::slice::from_ref(entry), seen),
        Some(Child::Folder(known)) => report_gone(known, seen),
        None => {}
    }
}

fn report_gone(known: &[Entry<'_>], seen: &mut Seen) {
    for entry in known {
        let path = entry.path.to_owned();
        if entry.mode == tree::GITLINK {
            // A submodule that is not checked out is no deletion.
            seen.leave_out(path, Refusal::NestedRepository);
        } else {
            seen.gone.push(path);
        }
    }
}

/// Splits what the manifest has below a folder by the names in it.
fn children<'m>(known: &'m [Entry<'m>], folder: &BStr) -> HashMap<&'m [u8], Child<'m>> {
    let skip = match folder.len() {
        0 => 0,
        length => length + 1,
    };
    let mut children = HashMap::with_capacity(known.len().min(64));
    let mut at = 0;
    while let Some(entry) = known.get(at) {
        let path: &'m [u8] = entry.path;
        let rest = &path[skip..];
        match rest.find_byte(b'/') {
            None => {
                children.insert(rest, Child::File(entry));
                at += 1;
            }
            Some(length) => {
                let folder = &path[..=skip + length];
                let count = known[at..].partition_point(|e| e.path.starts_with(folder));
                children.insert(&rest[..length], Child::Folder(&known[at..at + count]));
                at += count;
            }
        }
    }
    children
}

/// The names in a folder, with what the folder says that they are.
struct Names {
    /// Each with its NUL.
    text: Vec<u8>,
    ends: Vec<(usize, FileType)>,
}

impl Names {
    fn read(folder: &OwnedFd) -> Result<Names, Errno> {
        let mut names = Names {
            text: Vec::new(),
            ends: Vec::new(),
        };
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            if name != b".\0" && name != b"..\0" {
                names.text.extend_from_slice(name);
                names.ends.push((names.text.len(), entry.file_type()));
            }
        }
        Ok(names)
    }

    fn iter(&self) -> impl Iterator<Item = (&CStr, FileType)> {
        let mut start = 0;
        self.ends.iter().map(move |(end, kind)| {
            let name = &self.text[start..*end];
            start = *end;
            let name = CStr::from_bytes_with_nul(name);
            (name.expect("invariant: one NUL, at the end"), *kind)
        })
    }

    fn has(&self, wanted: &[u8]) -> bool {
        self.iter().any(|(name, _)| name.to_bytes() == wanted)
    }
}
