//! The files of a layout beside a template.
//!
//! They are gone through in small batches, one step for the whole batch before the next: what the file
//! system needs for a step is at hand then, which saves a tenth of the time over doing file by file.

use std::cell::OnceCell;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::OwnedFd;

use bstr::{BStr, ByteSlice};
use rustix::fs::{
    AtFlags, Mode, OFlags, Timespec, fstat, futimens, mkdirat, openat, readlinkat, statat,
    symlinkat, utimensat,
};
use rustix::io::Errno;

use super::{By, Pair, Work, last};
use crate::git::index::StatData;
use crate::git::tree::{EXECUTABLE, Entry, GITLINK, LINK};
use crate::git::{self, Door, Repository};
use crate::layout::put::{set_time, time_in, times_of};
use crate::layout::template::copy;
use crate::layout::{Error, Result};

/// So many files make a batch, all of them open. Elsewhere a process may have few files open.
pub(super) const BATCH: usize = if cfg!(target_os = "linux") { 16 } else { 4 };
/// A file of up to so many bytes goes through a buffer in one read and one write; the kernel's own
/// copying costs more for those.
const SMALL: usize = 64 << 10;

/// What one thread has of its own.
pub(super) struct Hand<'w> {
    door: &'w Door,
    repository: OnceCell<Repository>,
    buffer: Vec<u8>,
    pub(super) done: Vec<(usize, StatData)>,
}

impl<'w> Hand<'w> {
    pub(super) fn new(door: &'w Door) -> Self {
        Hand {
            door,
            repository: OnceCell::new(),
            buffer: Vec::new(),
            done: Vec::new(),
        }
    }
}

/// What is to be in a file.
enum Content {
    /// This part of the buffer.
    Read(Range<usize>),
    /// What the template's file holds.
    In(File),
}

/// A file of the template on its way.
struct Taken {
    at: usize,
    content: Content,
    time: Timespec,
}

impl Work<'_> {
    /// Lays out files, each with its folders and its number.
    pub(super) fn files(&self, files: &[(&Pair, usize)], hand: &mut Hand<'_>) -> Result<()> {
        for batch in files.chunks(BATCH) {
            let mut same = Vec::with_capacity(batch.len());
            for &(pair, at) in batch {
                let (path, entry) = &self.listing.files[at];
                let path = path.as_bstr();
                match &pair.old {
                    Some(old) if entry.mode != GITLINK && !self.anew.contains(path) => {
                        if entry.mode == LINK {
                            let stat = copy_link(old, &pair.new, last(path))
                                .map_err(|error| Error::not_placed(path, self.into, error))?;
                            hand.done.push((at, stat));
                        } else {
                            same.push((pair, old, at));
                        }
                    }
                    _ => {
                        let stat = self.write(&pair.new, path, *entry, hand)?;
                        hand.done.push((at, stat));
                    }
                }
            }
            self.take(&same, hand)?;
        }
        self.told.step(files.len() as u64);
        Ok(())
    }

    /// Takes files over from the template.
    fn take(&self, files: &[(&Pair, &OwnedFd, usize)], hand: &mut Hand<'_>) -> Result<()> {
        let failed = |at: usize, e: io::Error| {
            let path = git::os_str(self.listing.files[at].0.as_bstr());
            Error::io("copy", path, e)
        };
        let mut taken = Vec::with_capacity(files.len());
        let mut filled = 0;
        for &(_, old, at) in files {
            let one = self.look(old, at, (&mut hand.buffer, &mut filled));
            taken.push(one.map_err(|e| failed(at, e))?);
        }
        let mut made = Vec::with_capacity(files.len());
        for &(pair, _, at) in files {
            let (path, entry) = &self.listing.files[at];
            made.push(File::from(self.create(
                &pair.new,
                path.as_bstr(),
                entry.mode,
            )?));
        }
        for (one, to) in taken.iter().zip(&made) {
            let put = match &one.content {
                Content::Read(range) => {
                    io::Write::write_all(&mut &*to, &hand.buffer[range.clone()])
                }
                Content::In(from) => self.fill(from, to),
            };
            put.map_err(|e| failed(one.at, e))?;
        }
        for (one, to) in taken.into_iter().zip(made) {
            let stat = set_time(&to, one.time).and_then(|()| fstat(&to));
            let stat = stat.map_err(|e| failed(one.at, e.into()))?;
            hand.done.push((one.at, StatData::from(&stat)));
        }
        Ok(())
    }

    /// Opens a file of the template, and reads it if it is to be copied and small.
    fn look(
        &self,
        old: &OwnedFd,
        at: usize,
        (buffer, filled): (&mut Vec<u8>, &mut usize),
    ) -> io::Result<Taken> {
        let name = last(self.listing.files[at].0.as_bstr());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let from = openat(old, name, flags, Mode::empty())?;
        let was = fstat(&from)?;
        let time = time_in(&was);
        let size = usize::try_from(was.st_size).unwrap_or(usize::MAX);
        let small = size == 0 || self.by == By::Copying && size <= SMALL;
        let content = if small {
            let range = *filled..*filled + size;
            if buffer.len() < range.end {
                buffer.resize(range.end, 0);
            }
            // It was that long when it was published.
            io::Read::read_exact(&mut File::from(from), &mut buffer[range.clone()])?;
            *filled = range.end;
            Content::Read(range)
        } else {
            Content::In(File::from(from))
        };
        Ok(Taken { at, content, time })
    }

    /// Gives an empty file what one of the template holds.
    fn fill(&self, from: &File, to: &File) -> io::Result<()> {
        match self.by {
            #[cfg(target_os = "linux")]
            By::Sharing => Ok(rustix::fs::ioctl_ficlone(to, from)?),
            #[cfg(not(target_os = "linux"))]
            By::Sharing => Err(io::ErrorKind::Unsupported.into()),
            By::Copying => copy(from, to),
        }
    }

    /// Writes a file or link from the object database, or makes the folder of a submodule.
    fn write(
        &self,
        new: &OwnedFd,
        path: &BStr,
        entry: Entry,
        hand: &mut Hand<'_>,
    ) -> Result<StatData> {
        let placed = |error: Errno| Error::not_placed(path, self.into, error);
        if entry.mode == GITLINK {
            let mode = Mode::from_raw_mode(0o777);
            mkdirat(new, last(path), mode).map_err(placed)?;
            return Ok(StatData::default());
        }
        let repository = match hand.repository.get() {
            Some(repository) => repository,
            None => {
                let opened = hand.door.open()?;
                hand.repository.get_or_init(|| opened)
            }
        };
        let stored = repository.objects()?.blob_at(path, entry.id)?;
        if entry.mode == LINK {
            let name = last(path);
            symlinkat(&stored[..], new, name).map_err(placed)?;
            if let Some(times) = self.times {
                utimensat(new, name, times, AtFlags::SYMLINK_NOFOLLOW).map_err(placed)?;
            }
            let stat = statat(new, name, AtFlags::SYMLINK_NOFOLLOW).map_err(placed)?;
            return Ok(StatData::from(&stat));
        }
        let mut file = File::from(self.create(new, path, entry.mode)?);
        let failed = |e: io::Error| Error::io("write", self.into.join(git::os_str(path)), e);
        io::Write::write_all(&mut file, &stored).map_err(failed)?;
        let time = self.users.and_then(|users| users.time_of(path, &stored));
        match (time, self.times) {
            (Some(time), _) => set_time(&file, time),
            (None, Some(times)) => futimens(&file, times),
            (None, None) => Ok(()),
        }
        .and_then(|()| fstat(&file))
        .map(|stat| StatData::from(&stat))
        .map_err(|e| failed(e.into()))
    }

    fn create(&self, folder: &OwnedFd, path: &BStr, mode: u32) -> Result<OwnedFd> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let bits = if mode == EXECUTABLE { 0o777 } else { 0o666 };
        openat(folder, last(path), flags, Mode::from_raw_mode(bits))
            .map_err(|error| Error::not_placed(path, self.into, error))
    }
}

fn copy_link(old: &OwnedFd, new: &OwnedFd, name: &[u8]) -> Result<StatData, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let was = statat(old, name, flags)?;
    symlinkat(readlinkat(old, name, Vec::new())?, new, name)?;
    utimensat(new, name, &times_of(time_in(&was)), flags)?;
    Ok(StatData::from(&statat(new, name, flags)?))
}
