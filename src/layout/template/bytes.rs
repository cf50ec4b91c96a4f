//! The bytes of a template's small files once more, one after the other in one file.
//!
//! To copy a small file is, for the most part, to open and to close things. With the bytes of many at
//! hand in one read, only the new file is opened. The first layout that copies a template has all of its
//! bytes in hand anyway and makes the file, `bytes`, beside `files/`: whoever only stands on a template
//! (an overlay) or shares its blocks pays nothing for it, neither time nor space.
//!
//! The file is a cache of a cache and never trusted. It begins with a sum of each file's bytes; a sum that is
//! zero says that they are not there. What doesn't fit its sum is taken from the template's own file, and
//! the whole is removed, to be made anew by the next. A template's own file is good only with the stat
//! data that the template's index has for it: where somebody has written to it, the object database
//! serves. Which bytes are where follows from the index, which like the template never changes.
//!
//! It is written aside by one process at a time, and published by a rename. Where it can't be made, or the
//! disk is not wide enough for it, there is none.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rustix::fs::{Stat, Timespec, fstatvfs};

use super::Template;
use crate::git::index::{IndexFile, StatData};
use crate::git::tree::{EXECUTABLE, Listing, REGULAR};
use crate::git::{Lock, fault};

/// A file of up to so many bytes is a small one: it goes through a buffer in one read and one write.
pub(in crate::layout) const SMALL: usize = 64 << 10;
/// Its name.
pub(super) const BYTES: &str = "bytes";
/// How the file begins: what it is, and its format.
const MAGIC: &[u8; 8] = b"vwsbyte1";
/// So many times the size of the file, and of all that is laid out, must be free on the disk.
const ROOM: u64 = 2;

/// What a template has frozen of the files of a listing.
#[derive(Debug)]
pub(in crate::layout) struct Frozen {
    known: Vec<Option<Known>>,
    sums: Vec<AtomicU64>,
    bytes: Option<File>,
    making: Option<Making>,
    failed: AtomicBool,
    at: PathBuf,
}

/// What is known of a template's file.
#[derive(Clone, Copy, Debug)]
struct Known {
    stat: StatData,
    /// The number of its sum, and where its bytes begin.
    place: Option<(usize, u64)>,
}

/// A file on its way. No other process makes one as long as the lock is held.
#[derive(Debug)]
struct Making {
    aside: PathBuf,
    _alone: Lock,
}

impl Drop for Making {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.aside);
    }
}

impl Template {
    /// What it has frozen of the files of a listing. Where it is to be `copied`, their bytes are read from
    /// one file, or kept for the next.
    pub(in crate::layout) fn frozen(
        &self,
        index: &IndexFile,
        listing: &Listing,
        copied: bool,
    ) -> Frozen {
        let at = self.shelf.folder(&self.name).join(BYTES);
        let start = (MAGIC.len() + 8 * index.len()) as u64;
        let mut end = start;
        let mut all = 0;
        let mut known = Vec::with_capacity(listing.files.len());
        let mut files = listing.files.iter().peekable();
        for (number, entry) in index.entries().enumerate() {
            all += u64::from(entry.stat.size);
            let is_file = matches!(entry.mode, REGULAR | EXECUTABLE);
            let small = is_file && entry.stat.size as usize <= SMALL;
            let place = small.then_some((number, end));
            if small {
                end += u64::from(entry.stat.size);
            }
            while files.next_if(|(path, _)| *path < *entry.path).is_some() {
                known.push(None);
            }
            if files.next_if(|(path, _)| *path == *entry.path).is_some() {
                let stat = entry.stat;
                known.push(is_file.then_some(Known { stat, place }));
            }
        }
        known.resize(listing.files.len(), None);
        let mut frozen = Frozen {
            known,
            sums: Vec::new(),
            bytes: None,
            making: None,
            failed: AtomicBool::new(false),
            at,
        };
        if copied && !frozen.open(index.len(), end) {
            frozen.begin(self, index.len(), (end, all));
        }
        frozen
    }
}

impl Frozen {
    /// Opens the file, where it is there and has the size it must have.
    fn open(&mut self, count: usize, size: u64) -> bool {
        let read = || {
            let file = File::open(&self.at).ok()?;
            let mut head = vec![0; MAGIC.len() + 8 * count];
            file.read_exact_at(&mut head, 0).ok()?;
            let (sums, _) = head.strip_prefix(MAGIC)?.as_chunks();
            let sums = sums
                .iter()
                .map(|word| AtomicU64::new(u64::from_le_bytes(*word)));
            let sums = sums.collect();
            (file.metadata().ok()?.len() == size).then_some((file, sums))
        };
        let Some((file, sums)) = read() else {
            return false;
        };
        (self.bytes, self.sums) = (Some(file), sums);
        true
    }

    /// Begins to make the file, where nobody else does and the disk has room.
    fn begin(&mut self, template: &Template, count: usize, (size, all): (u64, u64)) {
        let lock = template.shelf.bytes_lock(&template.name);
        let Ok(alone) = Lock::exclusive(&lock, Duration::ZERO) else {
            return;
        };
        // Somebody was faster.
        if self.open(count, size) {
            return;
        }
        let making = Making {
            aside: self.at.with_extension("new"),
            _alone: alone,
        };
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(true);
        let Ok(file) = options.open(&making.aside) else {
            return;
        };
        let room = fstatvfs(&file).map(|disk| disk.f_bavail.saturating_mul(disk.f_frsize));
        // A short one is no sound one, whatever happens.
        if room.is_ok_and(|room| room / ROOM >= size + all) && file.set_len(size).is_ok() {
            self.sums.resize_with(count, AtomicU64::default);
            (self.bytes, self.making) = (Some(file), Some(making));
        }
    }

    /// Whether the bytes are to be read from the one file.
    pub(in crate::layout) fn is_ready(&self) -> bool {
        self.bytes.is_some() && self.making.is_none()
    }

    /// Where the bytes of a file are in the one file, if they are there: their start and end.
    pub(in crate::layout) fn place(&self, at: usize) -> Option<(u64, u64)> {
        let known = self.known[at].as_ref()?;
        let (number, start) = known.place?;
        let there = self.sums.get(number)?.load(Ordering::Relaxed) != 0;
        there.then(|| (start, start + u64::from(known.stat.size)))
    }

    /// Reads bytes of the one file. What is read is to be [checked](Self::time).
    pub(in crate::layout) fn read(&self, buffer: &mut [u8], start: u64) {
        if let Some(file) = &self.bytes
            && file.read_exact_at(buffer, start).is_err()
        {
            buffer.fill(0);
        }
    }

    /// The file's time of change, if these are its bytes.
    pub(in crate::layout) fn time(&self, at: usize, bytes: &[u8]) -> Option<Timespec> {
        let known = self.known[at].as_ref()?;
        let sum = self.sums.get(known.place?.0)?.load(Ordering::Relaxed);
        if sum != sum_of(bytes) {
            self.failed.store(true, Ordering::Relaxed);
            return None;
        }
        let (seconds, nanoseconds) = known.stat.mtime;
        Some(Timespec {
            tv_sec: i64::from(seconds),
            tv_nsec: nanoseconds.into(),
        })
    }

    /// Whether a file of the template is as it was frozen.
    pub(in crate::layout) fn is(&self, at: usize, stat: &Stat) -> bool {
        let known = self.known[at].as_ref();
        known.is_some_and(|known| known.stat.matches(&StatData::from(stat)))
    }

    /// Keeps what was read of a file of the template, if the one file is being made.
    pub(in crate::layout) fn keep(&self, at: usize, stat: &Stat, bytes: &[u8]) {
        let (Some(file), Some(_), Some(known)) = (&self.bytes, &self.making, &self.known[at])
        else {
            return;
        };
        // The index cuts times to 32 bits.
        let told = i64::from(known.stat.mtime.0) == stat.st_mtime;
        let Some((number, start)) = known.place.filter(|_| told) else {
            return;
        };
        match file.write_all_at(bytes, start) {
            Ok(()) => self.sums[number].store(sum_of(bytes), Ordering::Relaxed),
            Err(_) => self.failed.store(true, Ordering::Relaxed),
        }
    }

    /// Publishes the one file if it was made, and removes it if it was found to be spoilt.
    pub(in crate::layout) fn finish(self) {
        let failed = self.failed.load(Ordering::Relaxed);
        match (&self.making, &self.bytes) {
            (Some(making), Some(file)) if !failed => {
                let mut head = MAGIC.to_vec();
                for sum in &self.sums {
                    head.extend_from_slice(&sum.load(Ordering::Relaxed).to_le_bytes());
                }
                fault::point("bytes-kept");
                if file.write_all_at(&head, 0).is_ok() {
                    let _ = fs::rename(&making.aside, &self.at);
                }
            }
            (None, _) if failed => drop(fs::remove_file(&self.at)),
            _ => {}
        }
    }
}

/// A sum that finds accidents, several bytes at once; never zero.
fn sum_of(bytes: &[u8]) -> u64 {
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    let lanes = blocks.iter().fold([1, 2, 3, 4], add);
    let lanes = add(lanes, &last).into_iter();
    lanes.fold(bytes.len() as u64, mix).max(1)
}

/// Adds a block to four lanes, none of which waits for another.
#[inline]
fn add([a, b, c, d]: [u64; 4], block: &[u8; 32]) -> [u64; 4] {
    [
        mix(a, word(block, 0)),
        mix(b, word(block, 8)),
        mix(c, word(block, 16)),
        mix(d, word(block, 24)),
    ]
}

#[inline]
fn word(block: &[u8; 32], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&block[at..at + 8]);
    u64::from_le_bytes(word)
}

#[inline]
fn mix(lane: u64, word: u64) -> u64 {
    (lane ^ word)
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .rotate_left(29)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_sum_tells_each_flipped_bit_each_cut_and_each_swap() {
        let bytes: Vec<u8> = (0..100_u8).collect();
        let whole = sum_of(&bytes);
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                assert_ne!(sum_of(&other), whole, "bit {bit} of {at}");
            }
            assert_ne!(sum_of(&bytes[..at]), whole, "cut at {at}");
            let mut other = bytes.clone();
            other.swap(at, 99 - at);
            assert_ne!(sum_of(&other), whole, "swap of {at}");
        }
        assert_ne!(sum_of(&[]), 0);
        assert_ne!(sum_of(&[0; 64]), sum_of(&[0; 96]));
    }
}
