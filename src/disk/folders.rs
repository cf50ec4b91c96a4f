//! Folders of a working tree: made, flushed, and removed where they are empty.

use std::collections::HashSet;
use std::os::fd::OwnedFd;

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, Mode, OFlags, chmodat, fsync, mkdirat, openat, unlinkat};
use rustix::io::Errno;

use super::write::{Fault, Spot, WorkTree};
use super::{Obstacle, Volume, parent, put_before};

impl WorkTree<'_> {
    /// Makes the folders that `path` is to lie in, where they are missing; `permissions` knows the
    /// bits of some of them.
    ///
    /// # Errors
    /// [`Obstacle::Blocked`] where a link or a file is in the way.
    pub fn make_folders(
        &self,
        path: &BStr,
        permissions: &dyn Fn(&BStr) -> Option<u32>,
    ) -> Result<(), Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let failed = |error: Errno| match error {
            Errno::NOTDIR | Errno::LOOP => Fault::Obstacle(Obstacle::Blocked),
            other => Fault::failed("create a folder for", other),
        };
        let mut folder = rustix::fs::open(self.top, flags, Mode::empty()).map_err(failed)?;
        for slash in path.find_iter("/") {
            let way = path[..slash].as_bstr();
            let name = way[way.rfind_byte(b'/').map_or(0, |at| at + 1)..].as_bytes();
            let open = |folder| openat(folder, name, flags | OFlags::NOFOLLOW, Mode::empty());
            folder = match open(&folder) {
                Ok(below) => below,
                Err(Errno::NOENT) => {
                    match mkdirat(&folder, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(failed(error)),
                    }
                    if let Some(bits) = permissions(way) {
                        let mode = Mode::from_raw_mode(bits);
                        let _ = chmodat(&folder, name, mode, AtFlags::empty());
                    }
                    let _ = fsync(&folder);
                    open(&folder).map_err(failed)?
                }
                Err(error) => return Err(failed(error)),
            };
        }
        Ok(())
    }

    /// Flushes the folder that `path` lies in. A file system that cannot do so has no promise to
    /// keep here.
    pub fn flush_folder(&self, path: &BStr) {
        if let Ok((folder, _)) = parent(self.top, path) {
            let _ = fsync(&folder);
        }
    }

    /// The folders that these paths lie in, each once and open, to be flushed. One that is gone needs
    /// no flush.
    pub fn folders_of<'p>(&self, paths: impl Iterator<Item = &'p BStr>) -> Vec<OwnedFd> {
        let mut seen = HashSet::new();
        let mut folders = Vec::new();
        for path in paths {
            let folder = &path[..path.rfind_byte(b'/').unwrap_or(0)];
            if seen.insert(folder)
                && let Ok((folder, _)) = parent(self.top, path)
            {
                folders.push(folder);
            }
        }
        folders
    }

    /// Sees that the content prepared beside these paths, and what else is `owed`, is on disk before any name
    /// changes in the folders of `changing`, or on `volume` (see [`put_before`]).
    ///
    /// # Errors
    /// When one cannot be flushed, or is not there.
    pub fn flush_prepared<'p>(
        &self,
        spots: &[Spot<'_>],
        owed: Vec<OwnedFd>,
        (changing, volume): (impl Iterator<Item = &'p BStr>, Option<Volume>),
    ) -> Result<(), Fault> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut files = owed;
        if volume.is_some() {
            files.extend(self.folders_of(changing));
        }
        let opened = spots.iter().try_for_each(|spot| {
            let place = self.place(*spot)?;
            match openat(&place.folder, place.fresh.as_bytes(), flags, Mode::empty()) {
                Ok(file) => files.push(file),
                // A link is all in its folder.
                Err(Errno::LOOP) => {}
                Err(error) => return Err(Fault::failed("flush", error)),
            }
            Ok(())
        });
        // What is owed is owed also where a file is not there.
        let flushed = put_before(&files, volume).map_err(|error| Fault::failed("flush", error));
        opened.and(flushed)
    }

    /// Flushes all of the file system: cheaper than file by file where they are many.
    ///
    /// # Errors
    /// When the system cannot.
    pub fn flush_all(&self) -> Result<(), Fault> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(self.top, flags, Mode::empty());
        top.and_then(rustix::fs::syncfs)
            .map_err(|error| Fault::failed("flush", error))
    }

    /// Removes a folder if it is empty; tells whether it is gone.
    pub fn remove_folder(&self, path: &BStr) -> bool {
        match parent(self.top, path) {
            Ok((folder, name)) => {
                let name: &[u8] = name;
                let removed = unlinkat(&folder, name, AtFlags::REMOVEDIR);
                matches!(removed, Ok(()) | Err(Errno::NOENT))
            }
            Err(error) => error == Errno::NOENT,
        }
    }

    /// The permission bits of a folder; `None` where there is none (a link to one is none).
    pub fn folder(&self, path: &BStr) -> Option<u32> {
        let stat = super::stat(self.top, path).ok()?;
        let folder = rustix::fs::FileType::from_raw_mode(stat.st_mode);
        (folder == rustix::fs::FileType::Directory).then_some(stat.st_mode & 0o7777)
    }
}
