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
use crate::layout::template::{SMALL, copy};
use crate::layout::{Error, Result};

/// So many files make a batch, all of them open. Elsewhere a process may have few files open.
pub(super) const BATCH: usize = if cfg!(target_os = "linux") { 16 } else { 4 };

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
            let mut same_ones = Vec::with_capacity(batch.len());
            for &(pair, at) in batch {
                let (path, entry) = &self.listing.files[at];
                let path = path.as_bstr();
                let same = entry.mode != GITLINK && !self.anew.contains(path);
                match self.theirs(pair, path).filter(|_| same) {
                    Some(old) if entry.mode == LINK => {
                        let stat = copy_link(old, (&pair.new, last(path)))
                            .map_err(|error| Error::not_placed(path, self.into, error))?;
                        hand.done.push((at, stat));
                    }
                    Some(_) => same_ones.push((pair, at)),
                    None => {
                        let stat = self.write(&pair.new, path, *entry, hand)?;
                        hand.done.push((at, stat));
                    }
                }
            }
            self.take(&same_ones, hand)?;
        }
        self.told.step(files.len() as u64);
        Ok(())
    }

    /// Where the template's file of this path is to be looked for: in a folder, by a name. What is the same
    /// in the template has no link above it there.
    fn theirs<'p>(&'p self, pair: &'p Pair, path: &'p BStr) -> Option<(&'p OwnedFd, &'p [u8])> {
        match &pair.old {
            Some(old) => Some((old, last(path))),
            None if self.frozen.is_ready() => Some((&self.theirs, path)),
            None => None,
        }
    }

    /// Takes files over from the template.
    fn take(&self, files: &[(&Pair, usize)], hand: &mut Hand<'_>) -> Result<()> {
        let failed = |at: usize, e: io::Error| {
            let path = git::os_str(self.listing.files[at].0.as_bstr());
            Error::io("copy", path, e)
        };
        let mut filled = 0;
        let read = self.read_together(files, (&mut hand.buffer, &mut filled));
        let mut taken = Vec::with_capacity(files.len());
        let mut pairs = Vec::with_capacity(files.len());
        for (&(pair, at), read) in files.iter().zip(read) {
            let buffer = (&mut hand.buffer, &mut filled);
            let one = match read {
                Some(one) => Some(one),
                None => self.look(pair, at, buffer).map_err(|e| failed(at, e))?,
            };
            match one {
                Some(one) => {
                    taken.push(one);
                    pairs.push(pair);
                }
                // Somebody has written to it.
                None => {
                    let (path, entry) = &self.listing.files[at];
                    let stat = self.write(&pair.new, path.as_bstr(), *entry, hand)?;
                    hand.done.push((at, stat));
                }
            }
        }
        let mut made = Vec::with_capacity(taken.len());
        for (pair, one) in pairs.into_iter().zip(&taken) {
            let (path, entry) = &self.listing.files[one.at];
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

    /// Reads the files whose bytes are in the template's one file: those that follow each other at once.
    fn read_together(
        &self,
        files: &[(&Pair, usize)],
        (buffer, filled): (&mut Vec<u8>, &mut usize),
    ) -> Vec<Option<Taken>> {
        if !self.frozen.is_ready() {
            return files.iter().map(|_| None).collect();
        }
        let places: Vec<_> = files.iter().map(|(_, at)| self.frozen.place(*at)).collect();
        let mut read = Vec::with_capacity(files.len());
        for run in places.chunk_by(|a, b| matches!((a, b), (Some(a), Some(b)) if a.1 == b.0)) {
            let (Some(Some((start, _))), Some(Some((_, end)))) = (run.first(), run.last()) else {
                read.extend(run.iter().map(|_| None));
                continue;
            };
            let length = (end - start) as usize;
            let here = room(buffer, filled, length);
            self.frozen.read(&mut buffer[here.clone()], *start);
            for (from, to) in run.iter().flatten() {
                let at = files[read.len()].1;
                let range =
                    here.start + (from - start) as usize..here.start + (to - start) as usize;
                let time = self.frozen.time(at, &buffer[range.clone()]);
                read.push(time.map(|time| Taken {
                    at,
                    content: Content::Read(range),
                    time,
                }));
            }
        }
        read
    }

    /// Opens a file of the template, and reads it if it is to be copied and small; `None` if it is not as it
    /// was published.
    fn look(
        &self,
        pair: &Pair,
        at: usize,
        (buffer, filled): (&mut Vec<u8>, &mut usize),
    ) -> io::Result<Option<Taken>> {
        let path = self.listing.files[at].0.as_bstr();
        let Some((old, name)) = self.theirs(pair, path) else {
            return Ok(None);
        };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let from = match openat(old, name, flags, Mode::empty()) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(None),
            from => File::from(from?),
        };
        let was = fstat(&from)?;
        if !self.frozen.is(at, &was) {
            return Ok(None);
        }
        let time = time_in(&was);
        let size = usize::try_from(was.st_size).unwrap_or(usize::MAX);
        let small = size == 0 || self.by == By::Copying && size <= SMALL;
        let content = if small {
            let range = room(buffer, filled, size);
            io::Read::read_exact(&mut &from, &mut buffer[range.clone()])?;
            self.frozen.keep(at, &was, &buffer[range.clone()]);
            Content::Read(range)
        } else {
            Content::In(from)
        };
        Ok(Some(Taken { at, content, time }))
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

/// Room for so many bytes more in a buffer.
fn room(buffer: &mut Vec<u8>, filled: &mut usize, size: usize) -> Range<usize> {
    let range = *filled..*filled + size;
    if buffer.len() < range.end {
        buffer.resize(range.end, 0);
    }
    *filled = range.end;
    range
}

fn copy_link(
    (old, path): (&OwnedFd, &[u8]),
    (new, name): (&OwnedFd, &[u8]),
) -> Result<StatData, Errno> {
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    let was = statat(old, path, flags)?;
    symlinkat(readlinkat(old, path, Vec::new())?, new, name)?;
    utimensat(new, name, &times_of(time_in(&was)), flags)?;
    Ok(StatData::from(&statat(new, name, flags)?))
}
