//! Untracked paths of the user's working tree, as git tells them, without git's pass over all of it.
//!
//! The folders that the index knows are listed in process, and each name that it does not know is a
//! stranger. Whether a stranger is ignored, a repository of its own, a folder full of files or nothing
//! that git would track is git's to say: `git ls-files --others` is asked about the strangers
//! alone. Where there is none, it is not asked.

use std::mem::MaybeUninit;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, openat, statat};
use rustix::io::Errno;

use super::index::TrackedNames;
use super::{Repository, Result};

mod moment;

pub(super) use moment::Moment;

/// Git compares each name that it meets with each path that it was given.
const MOST_PATHS: usize = 32;
/// Room for what one call lists of a folder.
const LISTING: usize = 32 << 10;

/// What was found on disk that the index does not know.
#[derive(Default)]
pub(super) struct Untracked {
    /// The untracked paths, sorted, as git spells them: a repository of its own has a final slash.
    pub(super) paths: Vec<BString>,
    strangers: Vec<BString>,
    /// Whether there are folders among the strangers.
    folders: bool,
}

impl Repository {
    /// Whether two names are the same file exactly if they are the same bytes, as far as the settings
    /// say. Elsewhere only git can hold names on disk against those in an index.
    pub(super) fn names_are_bytes(&self) -> Result<bool> {
        let config = self.config()?;
        for key in ["core.ignorecase", "core.precomposeunicode"] {
            if config.bool(key)?.unwrap_or(false) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The untracked paths that no rule ignores. Strangers that are `not_of_interest` may be missing.
    ///
    /// # Errors
    /// [`super::Error::NoWorkTree`]; [`super::Error::Git`] when git fails.
    pub(super) fn untracked(
        &self,
        index: &Path,
        not_of_interest: &impl Fn(&BStr) -> bool,
    ) -> Result<Untracked> {
        self.untracked_since(index, not_of_interest, Untracked::default())
    }

    /// As [`Repository::untracked`], some time after `before`, which is still true where there are the
    /// same strangers and none is a folder that only git has looked into.
    ///
    /// # Errors
    /// As [`Repository::untracked`].
    pub(super) fn untracked_since(
        &self,
        index: &Path,
        not_of_interest: &impl Fn(&BStr) -> bool,
        before: Untracked,
    ) -> Result<Untracked> {
        let top = self.require_work_dir()?;
        let (mut strangers, folders) = match TrackedNames::read(index, self.format()) {
            Some(names) => {
                self.know_attribute_files(&names);
                strangers(top, &names)
            }
            None => everything(),
        };
        strangers.retain(|path| !not_of_interest(path.as_bstr()));
        if strangers == before.strangers && !folders && !before.folders {
            return Ok(before);
        }
        let paths = match strangers.is_empty() {
            true => Vec::new(),
            false => self.judged(cover(strangers.clone()))?,
        };
        Ok(Untracked {
            paths,
            strangers,
            folders,
        })
    }

    /// What git takes for untracked and not ignored at these paths and below them.
    fn judged(&self, paths: Vec<BString>) -> Result<Vec<BString>> {
        let mut command = self.git().users_index().arg("--literal-pathspecs").args([
            "ls-files",
            "-z",
            "--others",
            "--exclude-standard",
            "--",
        ]);
        for path in paths {
            // Without any path git looks at all of it.
            if !path.is_empty() {
                command = command.arg(super::os_str(path.as_bstr()));
            }
        }
        let out = command.output()?;
        let paths = out.split_str("\0").filter(|path| !path.is_empty());
        let mut paths: Vec<BString> = paths.map(BString::from).collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(paths)
    }
}

/// The strangers where nothing is known: all below the top, which is a folder.
fn everything() -> (Vec<BString>, bool) {
    (vec![BString::default()], true)
}

/// A few paths at or above all of these: the deepest ones give way to their folders until few are left.
/// The empty path is the top. To ask git about more than the strangers costs time and changes nothing:
/// whatever it finds there was a stranger, too.
fn cover(mut paths: Vec<BString>) -> Vec<BString> {
    while paths.len() > MOST_PATHS {
        let depth = |path: &BString| path.find_iter("/").count();
        let deepest = paths.iter().map(depth).max().unwrap_or(0);
        if deepest == 0 {
            return vec![BString::default()];
        }
        for path in &mut paths {
            if depth(path) == deepest {
                let folder = path.rfind_byte(b'/').unwrap_or(0);
                path.truncate(folder);
            }
        }
        paths.sort_unstable();
        paths.dedup();
    }
    paths
}

/// What the index has of one name in a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Known {
    File,
    Gitlink,
    /// A folder, and the names below it.
    Folder(usize, usize),
}

/// The names on disk, in folders that the index knows, that the index does not know, and whether one
/// of them is a folder.
fn strangers(top: &Path, names: &TrackedNames) -> (Vec<BString>, bool) {
    let (mut found, mut folders_too) = (Vec::new(), false);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(top) = openat(CWD, top, flags, Mode::empty()) else {
        return everything();
    };
    let mut buffer = Vec::with_capacity(LISTING);
    // Each folder by its path, with a final slash but for the top.
    let mut folders = vec![(BString::default(), 0, names.len())];
    while let Some((folder, from, to)) = folders.pop() {
        let known = known(names, folder.len(), from, to);
        let path = match folder.as_slice() {
            b"" => b".".as_bstr(),
            path => path[..path.len() - 1].as_bstr(),
        };
        let listed = each_name(
            top.as_fd(),
            path,
            buffer.spare_capacity_mut(),
            |name, is_folder| {
                if name == ".git" {
                    return;
                }
                let path = || BString::from([&folder, name.as_bytes()].concat());
                let first = known.partition_point(|(known, _)| *known < name);
                let same = known[first..]
                    .iter()
                    .take_while(|(known, _)| *known == name);
                let mut kinds = same.map(|(_, kind)| *kind);
                let is_known = match is_folder {
                    false => kinds.any(|kind| kind == Known::File || kind == Known::Gitlink),
                    true => kinds.any(|kind| match kind {
                        Known::Gitlink => true,
                        Known::Folder(from, to) => {
                            let mut path = path();
                            path.push(b'/');
                            folders.push((path, from, to));
                            true
                        }
                        Known::File => false,
                    }),
                };
                if !is_known {
                    found.push(path());
                    folders_too |= is_folder;
                }
            },
        );
        match listed {
            // Tracked, and not there: nothing in it is untracked.
            Ok(()) | Err(Errno::NOENT | Errno::NOTDIR) => {}
            // What cannot be listed is git's to complain of.
            Err(_) if folder.is_empty() => return everything(),
            Err(_) => {
                found.push(path.to_owned());
                folders_too = true;
            }
        }
    }
    (found, folders_too)
}

/// What the index has in a folder, sorted by name: of the names from `from` up to `to`, what follows the
/// folder's own `prefix`.
fn known(names: &TrackedNames, prefix: usize, from: usize, to: usize) -> Vec<(&BStr, Known)> {
    let mut found: Vec<(&BStr, Known)> = Vec::new();
    let mut at = from;
    while at < to {
        let rest = &names.path(at)[prefix..];
        let Some(slash) = rest.find_byte(b'/') else {
            let kind = match names.is_gitlink(at) {
                true => Known::Gitlink,
                false => Known::File,
            };
            found.push((rest.as_bstr(), kind));
            at += 1;
            continue;
        };
        let end = end_of(names, at, to, prefix, &rest[..=slash]);
        found.push((rest[..slash].as_bstr(), Known::Folder(at, end)));
        at = end;
    }
    // The index sorts a folder by its name and a slash. A gitlink comes before a folder of the same name.
    found.sort_by_key(|(name, _)| *name);
    found
}

/// Where the names that go on with `part` after their first `prefix` bytes end; the one at `from` does.
fn end_of(names: &TrackedNames, from: usize, to: usize, prefix: usize, part: &[u8]) -> usize {
    let (mut low, mut high) = (from + 1, to);
    while low < high {
        let middle = low + (high - low) / 2;
        match names.path(middle)[prefix..].starts_with(part) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// Calls `see` with each name in a folder, and whether it is a folder itself.
fn each_name(
    top: BorrowedFd<'_>,
    folder: &BStr,
    buffer: &mut [MaybeUninit<u8>],
    mut see: impl FnMut(&BStr, bool),
) -> std::result::Result<(), Errno> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = openat(top, folder.as_bytes(), flags, Mode::empty())?;
    let mut listing = RawDir::new(&folder, buffer);
    while let Some(entry) = listing.next() {
        let entry = entry?;
        let name = entry.file_name();
        if matches!(name.to_bytes(), b"." | b"..") {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                Err(Errno::NOENT) => continue,
                Err(error) => return Err(error),
            },
            kind => kind,
        };
        see(name.to_bytes().as_bstr(), kind == FileType::Directory);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
