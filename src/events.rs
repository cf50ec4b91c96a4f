//! The log of what happened: `<common-dir>/relo/events.jsonl`, one JSON object a line.
//!
//! It is written after the fact and never read as truth; deleting it loses nothing but the log.
//!
//! # Ids
//!
//! An event's `id` is where its line starts, counted from the beginning of all logging: the id of the
//! file's first line plus the line's offset in the file. So ids grow, `read` finds the place of
//! one by a seek, and an appender learns its own from the file's size and its first few bytes, with no
//! counter file beside it. The numbering goes on across a rotation; a log that was deleted begins again
//! at the time, in microseconds since 1970, which is beyond whatever was logged before.
//!
//! # Appending
//!
//! Under `flock(2)` on the file itself: see that the file is still the one of that name (else open it
//! again), rotate if it has grown past the bound, end a line that a crash tore, append what is new in
//! one `write(2)`. What does not go in whole (a full disk) is taken back. Rotation renames
//! the file to `events.1.jsonl`, in the place of the one before; who waits for the lock of the old
//! file notices and opens the new one, so no line goes astray.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use bstr::{BString, ByteSlice};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde_json::json;

use crate::git::{Repository, fault};
use crate::model::{Revision, json_path};

mod read;

pub use read::{Follow, Logged, follow, read};

/// A log past this size is rotated: 8 MiB. Two files of it are kept at most.
pub const ROTATE_AT: u64 = 8 << 20;
/// How long an appender waits for the others. An event is worth no more than that.
const PATIENCE: Duration = Duration::from_secs(2);

/// One thing that happened to a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Seconds since 1970.
    pub time: i64,
    /// What happened; logged as `workspace.<kind>`: `create`, `write`, `delete`, `rename`, `chmod`,
    /// `symlink`, `apply`, `batch`, `commit`, `rebase`, `capture`, `discard`, `restore`, `dispose`,
    /// `release`, `accept`, `reject`, `undo`, `note`.
    pub kind: &'a str,
    /// The workspace.
    pub agent: &'a str,
    /// The orchestrator's session, if it named one.
    pub session: Option<&'a str>,
    /// The revision after it.
    pub revision: Revision,
    /// The paths it was about, perhaps not all of them.
    pub paths: &'a [BString],
    /// How many paths it was about.
    pub path_count: u64,
}

/// Appends an event and gives its id; `None` where it could not be logged. A log that cannot be written
/// is not worth failing for: the revision it would tell of is published.
pub fn append(repository: &Repository, event: &Event<'_>) -> Option<u64> {
    append_all(repository, std::slice::from_ref(event))
}

/// As [`append`], of several at once: all are logged, or none is. Gives the id of the first.
pub fn append_all(repository: &Repository, events: &[Event<'_>]) -> Option<u64> {
    if events.is_empty() {
        return None;
    }
    append_to(&repository.relo_dir(), events, ROTATE_AT).ok()
}

fn append_to(folder: &Path, events: &[Event<'_>], rotate_at: u64) -> io::Result<u64> {
    fault::point("event");
    let path = current(folder);
    let mut file = open_locked(folder, &path)?;
    let mut size = file.metadata()?.len();
    let mut base = match size {
        // Rotated and not written yet, or deleted, or the first event of all.
        0 => end_of(&rotated(folder)).unwrap_or_else(|| {
            let time = events.first().map_or(1, |event| event.time.max(1));
            time as u64 * 1_000_000
        }),
        _ => first_id(&file).unwrap_or(0),
    };
    if size >= rotate_at {
        fs::rename(&path, rotated(folder))?;
        fault::point("event-rotated");
        // The old file's lock is given up with it; nobody can have locked the new one before us for
        // longer than an append.
        file = open_locked(folder, &path)?;
        (base, size) = match file.metadata()?.len() {
            0 => (base + size, 0),
            grown => (first_id(&file).unwrap_or(base + size), grown),
        };
    }
    let torn = size > 0 && !ends_a_line(&file, size);
    let start = base + size;
    let id = start + u64::from(torn);
    let mut bytes = if torn { vec![b'\n'] } else { Vec::new() };
    for event in events {
        let id = start + bytes.len() as u64;
        bytes.extend_from_slice(&line(event, id));
    }
    let written = io::Write::write(&mut &file, &bytes);
    if written.as_ref().is_ok_and(|n| *n == bytes.len()) {
        fault::point("event-logged");
        return Ok(id);
    }
    // Half a line is worse than none.
    let _ = file.set_len(size);
    written.and(Err(io::ErrorKind::StorageFull.into()))
}

/// Opens the log and locks it; a file that was renamed away while we waited is let go.
fn open_locked(folder: &Path, path: &Path) -> io::Result<File> {
    let open = || {
        OpenOptions::new()
            .create(true)
            .read(true)
            .append(true)
            .open(path)
    };
    let mut waited = Duration::ZERO;
    loop {
        let file = open().or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                fs::create_dir_all(folder)?;
                open()
            }
            _ => Err(error),
        })?;
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => break,
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if waited < PATIENCE => {
                    let nap = Duration::from_micros(200);
                    sleep(nap);
                    waited += nap;
                }
                Err(error) => return Err(error.into()),
            }
        }
        if is_at(&file, path) {
            return Ok(file);
        }
    }
}

/// Whether a path still names an open file.
fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), fs::metadata(path)) {
        (Ok(one), Ok(two)) => (one.dev(), one.ino()) == (two.dev(), two.ino()),
        _ => false,
    }
}

fn ends_a_line(file: &File, size: u64) -> bool {
    let mut last = [0];
    file.read_exact_at(&mut last, size - 1).is_ok() && last == *b"\n"
}

/// The id of a log's first line: `{"v":1,"id":<n>,`.
fn first_id(file: &File) -> Option<u64> {
    let mut start = [0; 40];
    let read = file.read_at(&mut start, 0).ok()?;
    id_of(&start[..read])
}

/// The id that a line begins with.
fn id_of(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(br#"{"v":1,"id":"#)?;
    let end = digits.find_byte(b',')?;
    digits[..end].to_str().ok()?.parse().ok()
}

/// The id that the line after the last of a log would have.
fn end_of(path: &Path) -> Option<u64> {
    let file = File::open(path).ok()?;
    Some(first_id(&file)? + file.metadata().ok()?.len())
}

fn current(folder: &Path) -> PathBuf {
    folder.join("events.jsonl")
}

fn rotated(folder: &Path) -> PathBuf {
    folder.join("events.1.jsonl")
}

fn line(event: &Event<'_>, id: u64) -> Vec<u8> {
    let paths: Vec<_> = event.paths.iter().map(|p| json_path(p.as_bstr())).collect();
    let mut object = json!({
        "v": 1,
        "id": id,
        "time": event.time,
        "event": format!("workspace.{}", event.kind),
        "agent": event.agent,
        "revision": event.revision,
        "paths": paths,
        "pathCount": event.path_count,
    });
    if let Some(session) = event.session {
        object["session"] = session.into();
    }
    let mut line = object.to_string().into_bytes();
    line.push(b'\n');
    line
}

#[cfg(test)]
mod tests;
