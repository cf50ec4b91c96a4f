//! Reading the log, once or for as long as somebody listens.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use super::{current, first_id, id_of, is_at, rotated};
use crate::git::Repository;

/// How much is read at a time.
const CHUNK: usize = 64 << 10;

/// One event as it was logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Logged {
    /// Its id.
    pub id: u64,
    /// The line, without its end: one JSON object.
    pub line: BString,
}

/// The events after the one with the id `since`, or all that are kept, oldest first.
///
/// Everything that is kept is given when `since` lies before it, or after it because the log was
/// deleted meanwhile.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn read(repository: &Repository, since: Option<u64>) -> io::Result<Vec<Logged>> {
    let mut follow = follow(repository, since, || false)?;
    let mut found = Vec::new();
    for event in &mut follow {
        found.push(event?);
    }
    Ok(found)
}

/// The events after the one with the id `since` (or all that are kept), and then those to come. When
/// there is no more, `wait` is called; it sleeps as long as the caller likes and says whether to go
/// on.
///
/// # Errors
/// When the log is there and cannot be read.
pub fn follow<W: FnMut() -> bool>(
    repository: &Repository,
    since: Option<u64>,
    wait: W,
) -> io::Result<Follow<W>> {
    Follow::new(repository.relo_dir(), since, wait)
}

/// See [`follow`].
#[derive(Debug)]
pub struct Follow<W> {
    folder: PathBuf,
    since: Option<u64>,
    wait: W,
    /// The logs that are open, the one to be read first; the last may still grow.
    files: Vec<File>,
    at: u64,
    text: Vec<u8>,
    /// How much of `text` has been given.
    given: usize,
}

impl<W: FnMut() -> bool> Follow<W> {
    pub(super) fn new(folder: PathBuf, since: Option<u64>, wait: W) -> io::Result<Self> {
        let mut follow = Follow {
            files: open_all(&folder)?,
            folder,
            since,
            wait,
            at: 0,
            text: Vec::new(),
            given: 0,
        };
        follow.seek()?;
        Ok(follow)
    }

    /// Skips what lies before `since`: whole files, and all but the line itself of the one it is in.
    fn seek(&mut self) -> io::Result<()> {
        let Some(since) = self.since else {
            return Ok(());
        };
        let mut end = 0;
        for (n, file) in self.files.iter().enumerate() {
            let Some(first) = first_id(file) else {
                continue;
            };
            end = first + file.metadata()?.len();
            if since >= first && since < end {
                self.files.drain(..n);
                self.at = since - first;
                return Ok(());
            }
        }
        if since >= end {
            // From a log that is no more: what there is now came after it.
            self.since = None;
        }
        Ok(())
    }

    fn take(&mut self) -> Option<Logged> {
        loop {
            let rest = &self.text[self.given..];
            let end = rest.find_byte(b'\n')?;
            let line = &rest[..end];
            let event = id_of(line).map(|id| Logged {
                id,
                line: line.into(),
            });
            self.given += end + 1;
            // What is no event is a line that a crash tore.
            if let Some(event) = event
                && self.since.is_none_or(|since| event.id > since)
            {
                self.since = Some(event.id);
                return Some(event);
            }
        }
    }

    /// Reads on; says whether there was anything.
    fn fill(&mut self) -> io::Result<bool> {
        self.text.drain(..self.given);
        self.given = 0;
        loop {
            if self.files.is_empty() {
                self.files = open_all(&self.folder)?;
                self.at = 0;
            }
            let Some(file) = self.files.first() else {
                return Ok(false);
            };
            // Looked at before the read: a file that was replaced by then does not grow any more.
            let done = self.files.len() > 1 || !is_at(file, &current(&self.folder));
            let mut chunk = vec![0; CHUNK];
            let read = file.read_at(&mut chunk, self.at)?;
            if read > 0 {
                self.at += read as u64;
                self.text.extend_from_slice(&chunk[..read]);
                return Ok(true);
            }
            if !done {
                return Ok(false);
            }
            self.files.remove(0);
            self.at = 0;
            self.text.clear();
            if self.files.is_empty() && !current(&self.folder).exists() {
                return Ok(false);
            }
        }
    }
}

impl<W: FnMut() -> bool> Iterator for Follow<W> {
    type Item = io::Result<Logged>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(event) = self.take() {
                return Some(Ok(event));
            }
            match self.fill() {
                Ok(true) => {}
                Ok(false) if (self.wait)() => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// Opens the rotated log, if there is one, and the current one, so that no rotation falls between.
fn open_all(folder: &Path) -> io::Result<Vec<File>> {
    let open = |path: &Path| match File::open(path) {
        Ok(file) => Ok(Some(file)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    for _ in 0..16 {
        let new = open(&current(folder))?;
        let old = open(&rotated(folder))?;
        match new {
            Some(file) if is_at(&file, &current(folder)) => {
                return Ok(old.into_iter().chain([file]).collect());
            }
            // Between the rename and the first line of the new log there is no current one.
            None if !current(folder).exists() => return Ok(old.into_iter().collect()),
            _ => {}
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}
