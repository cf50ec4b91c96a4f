//! Writing one file of a layout, and the times it gets.
//!
//! A file whose bytes equal the user's own takes that file's time of change: a build tool that finds
//! the user's build output beside it must not take the source for newer. Any other file is as new as
//! it is.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_OMIT, fstat, futimens,
    openat, statat, symlinkat, utimensat,
};
use rustix::io::Errno;

use super::{Error, Result};
use crate::git::tree::{EXECUTABLE, GITLINK, LINK};
use crate::git::{index::StatData, os_str};

/// The top of a layout, held open.
pub(super) struct Root {
    fd: OwnedFd,
}

/// What a file was written as.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put {
    /// Its stat data, as the index wants them.
    pub(super) stat: StatData,
    /// Whether it has the user's own time.
    pub(super) adopted: bool,
}

impl Root {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty());
        Ok(Root {
            fd: fd.map_err(|e| Error::io("open", path, e))?,
        })
    }

    /// The open folder.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// Makes a folder; one that is there already is fine.
    pub(super) fn folder(&self, path: &BStr) -> Result<()> {
        match rustix::fs::mkdirat(&self.fd, path.as_bytes(), Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => Ok(()),
            Err(error) => Err(Error::io("create", os_str(path), error)),
        }
    }

    /// Writes a file or link that is not there yet, or the folder of a submodule.
    pub(super) fn put(
        &self,
        path: &BStr,
        mode: u32,
        bytes: &[u8],
        users: Option<&Users>,
    ) -> Result<Put> {
        let failed = |e: Errno| Error::io("write", os_str(path), e);
        let mut adopted = false;
        let stat = match mode {
            GITLINK => {
                self.folder(path)?;
                // Git compares a submodule by its HEAD, never by stat data.
                return Ok(Put {
                    stat: StatData::default(),
                    adopted: true,
                });
            }
            LINK => self.link(path, bytes).map_err(failed)?,
            _ => {
                let mut file = self.create(path, mode)?;
                file.write_all(bytes)
                    .map_err(|e| Error::io("write", os_str(path), e))?;
                if let Some(time) = users.and_then(|users| users.time_of(path, bytes)) {
                    set_time(&file, time).map_err(failed)?;
                    adopted = true;
                }
                fstat(&file).map_err(failed)?
            }
        };
        Ok(Put {
            stat: StatData::from(&stat),
            adopted,
        })
    }

    /// Makes a link. Its own time matters to nobody, so it gets one that makes no index entry racy:
    /// git counts in seconds.
    fn link(&self, path: &BStr, target: &[u8]) -> rustix::io::Result<Stat> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        symlinkat(target, &self.fd, path.as_bytes())?;
        let made = time_in(&statat(&self.fd, path.as_bytes(), flags)?);
        let before = times_of(Timespec {
            tv_sec: made.tv_sec - 2,
            tv_nsec: 0,
        });
        utimensat(&self.fd, path.as_bytes(), &before, flags)?;
        statat(&self.fd, path.as_bytes(), flags)
    }

    /// What git has written here; its time is the user's if the user's file is the same.
    pub(super) fn found(&self, path: &BStr, users: Option<&Users>) -> Result<Put> {
        let failed = |e: Errno| Error::io("look at", os_str(path), e);
        let look = || statat(&self.fd, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW);
        let mut stat = look().map_err(failed)?;
        let mut adopted = false;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        if let Some(users) = users.filter(|users| is_file && users.candidate(path, size).is_some())
            && let Ok(bytes) = crate::disk::read_at(&self.fd, path, u64::MAX)
            && let Some(time) = users.time_of(path, &bytes)
        {
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            rustix::fs::utimensat(&self.fd, path.as_bytes(), &times_of(time), flags)
                .and_then(|()| look())
                .map(|again| stat = again)
                .map_err(failed)?;
            adopted = true;
        }
        Ok(Put {
            stat: StatData::from(&stat),
            adopted,
        })
    }

    /// Makes a file that is not there yet, with git's permissions less the caller's umask.
    pub(super) fn create(&self, path: &BStr, mode: u32) -> Result<File> {
        let flags =
            OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = if mode == EXECUTABLE { 0o777 } else { 0o666 };
        let file = openat(&self.fd, path.as_bytes(), flags, Mode::from_raw_mode(bits));
        Ok(File::from(
            file.map_err(|e| Error::io("create", os_str(path), e))?,
        ))
    }
}

/// Sets the time of change alone.
pub(super) fn set_time(file: &File, time: Timespec) -> rustix::io::Result<()> {
    futimens(file, &times_of(time))
}

/// What sets the time of change alone.
pub(super) fn times_of(time: Timespec) -> Timestamps {
    Timestamps {
        last_access: Timespec {
            tv_sec: 0,
            tv_nsec: UTIME_OMIT,
        },
        last_modification: time,
    }
}

/// The time of change in stat data.
#[allow(clippy::unnecessary_cast)]
pub(super) fn time_in(stat: &Stat) -> Timespec {
    Timespec {
        tv_sec: stat.st_mtime as i64,
        tv_nsec: stat.st_mtime_nsec as _,
    }
}

/// The user's own checkout, to be compared with.
pub(super) struct Users {
    top: OwnedFd,
}

impl Users {
    /// Opens the checkout; `None` where it cannot be read: no file is as the user's then.
    pub(super) fn open(top: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::open(top, flags, Mode::empty()).ok()?;
        Some(Users { top })
    }

    /// The user's file's stat data, if one of this size is there.
    pub(super) fn candidate(&self, path: &BStr, size: u64) -> Option<Stat> {
        let stat = statat(&self.top, path.as_bytes(), AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        (is_file && u64::try_from(stat.st_size) == Ok(size)).then_some(stat)
    }

    /// When the user's own file was changed, if it holds these very bytes.
    pub(super) fn time_of(&self, path: &BStr, bytes: &[u8]) -> Option<Timespec> {
        let stat = self.candidate(path, bytes.len() as u64)?;
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(&self.top, path.as_bytes(), flags, Mode::empty()).ok()?;
        let mut file = File::from(file);
        let mut left = bytes;
        let mut buffer = [0_u8; 16 << 10];
        loop {
            match file.read(&mut buffer).ok()? {
                0 => break,
                n => left = left.strip_prefix(&buffer[..n])?,
            }
        }
        // Changed while it was read: its time belongs to other bytes, perhaps.
        let again = fstat(&file).ok()?;
        let still = time_in(&again) == time_in(&stat) && left.is_empty();
        still.then(|| time_in(&stat))
    }
}
