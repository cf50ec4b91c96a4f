//! Setting refs in the files back end, as git does it, with no more flushes than it takes.
//!
//! libgit2 flushes each ref, its folder, its reflog and that one's folder, one after the other. Here steps
//! that follow each other are carried out together: all locks are taken and all expectations looked at
//! before the first ref moves; the new contents are flushed together, with what else the publish has to
//! flush (see [`super::publish`]); then the refs move in the given order. The last of a list is the caller's
//! commit point, so the folders of the others are flushed before it moves, unless the caller says that
//! they need not be. The reflog is appended to and not flushed: it repeats what the chain of revisions says.

use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use git2::{ErrorClass, ErrorCode};

use super::held::{Failed, Held, failed, raised};
use super::publish::{Publish, flush_folders};
use super::{Error, ObjectId, RefUpdate, Refs, fault};

/// The outer result of [`Refs::set`].
type Result<T, E = Error> = std::result::Result<T, E>;

/// A ref that is about to move.
struct Ready {
    lock: Held,
    /// Its new content, to be flushed; `None` where it is on disk already.
    file: Option<OwnedFd>,
    old: Option<ObjectId>,
    new: ObjectId,
    /// The folders whose flush makes the move last.
    folders: Vec<PathBuf>,
}

impl Refs<'_> {
    /// Sets refs that hold what is expected of them, in the given order; none moves where one of them does
    /// not hold it. The first `done` of the list have moved already, and it grows with each that moves, for
    /// the next try. The inner error's code is one of those that libgit2 gives: `Locked`, `Modified`,
    /// `Exists`, `NotFound`.
    ///
    /// # Errors
    /// What cannot be flushed is not tried again.
    pub(super) fn set(
        &self,
        list: &[RefUpdate],
        done: &mut usize,
        publish: &mut Publish<'_>,
    ) -> Result<Result<(), Failed>> {
        let mut ready = Vec::with_capacity(list.len() - *done);
        for (at, update) in list.iter().enumerate().skip(*done) {
            match self.make_ready(update) {
                Ok(one) => ready.push(one),
                Err(error) => return Ok(Err((at, error))),
            }
        }
        let files = ready.iter_mut().filter_map(|one| one.file.take());
        publish.make_durable(files.collect())?;
        Ok(self.put_all(list, ready, done, publish))
    }

    /// Moves the refs.
    fn put_all(
        &self,
        list: &[RefUpdate],
        ready: Vec<Ready>,
        done: &mut usize,
        publish: &mut Publish<'_>,
    ) -> Result<(), Failed> {
        for (at, (update, one)) in list[*done..].iter().zip(&ready).enumerate() {
            let logged = self.note(update, one.old, one.new);
            logged.map_err(|error| (*done + at, error))?;
        }
        let last = list.len() - 1;
        let mut ahead = BTreeSet::new();
        for one in ready {
            let update = &list[*done];
            let place = self.path_of(&update.name);
            if *done == last {
                flush_folders(&ahead);
            }
            put(one.lock, &place).map_err(|e| (*done, failed(&place, &e)))?;
            match *done == last || update.unordered || publish.keeps_order() {
                true => publish.changed(one.folders),
                false => ahead.extend(one.folders),
            }
            *done += 1;
            if *done <= last {
                fault::point("ref-moved");
            }
        }
        Ok(())
    }

    /// Takes the lock of a ref, looks whether it may move, and writes where to.
    fn make_ready(&self, update: &RefUpdate) -> Result<Ready, git2::Error> {
        let name = update.name.as_str();
        let new = update
            .new
            .ok_or_else(|| raised(ErrorCode::Invalid, "is to go"))?;
        let standing = self.lowest_folder(name);
        let place = self.path_of(&format!("{name}.lock"));
        let content = format!("{new}\n");
        let twin = update.twin.as_ref().map(|twin| self.path_of(twin));
        let linked = twin.and_then(|twin| Held::link(&place, &twin, content.as_bytes()));
        let (lock, file) = match linked {
            Some(lock) => (lock, None),
            None => {
                let (lock, mut file) = Held::begin(place)?;
                let written = file.write_all(content.as_bytes());
                written.map_err(|e| failed(&self.path_of(name), &e))?;
                (lock, Some(file.into()))
            }
        };
        let old = self.check(update)?;
        if old.is_none() {
            self.check_room(name)?;
        }
        let mut folders = Vec::new();
        let mut at = self.path_of(name);
        while at.pop() {
            folders.push(at.clone());
            if at == standing {
                break;
            }
        }
        Ok(Ready {
            lock,
            file,
            old,
            new,
            folders,
        })
    }

    /// Whether a new ref has room beside the others: a name that is a folder to another is none.
    fn check_room(&self, name: &str) -> Result<(), git2::Error> {
        let collides = || {
            let message = format!("path to reference '{name}' collides with existing one");
            Err(git2::Error::new(
                ErrorCode::GenericError,
                ErrorClass::Reference,
                message,
            ))
        };
        // A folder as far as files go: the lock is in it.
        for (end, _) in name.match_indices('/').skip(1) {
            if self.is_packed(&name[..end]).map_err(unread)? {
                return collides();
            }
        }
        let below = self.list(&format!("{name}/")).map_err(unread)?;
        match below.is_empty() {
            true => Ok(()),
            false => collides(),
        }
    }

    /// Notes a move in the reflog, where the ref has one or shall have one by git's own rule.
    fn note(
        &self,
        update: &RefUpdate,
        old: Option<ObjectId>,
        new: ObjectId,
    ) -> Result<(), git2::Error> {
        let name = update.name.as_str();
        let file = self.repository().common_dir().join("logs").join(name);
        let wanted = update.log.is_some() || file.is_file() || self.is_logged(name);
        let head = self.repository().git_dir().join("logs/HEAD");
        let is_head = name.starts_with("refs/heads/") && head.is_file() && self.is_head(name);
        if !wanted && !is_head {
            return Ok(());
        }
        let raw = self.repository().raw();
        let who = match raw.signature() {
            Ok(who) => who,
            Err(_) => git2::Signature::now("unknown", "unknown")?,
        };
        let zero = "0".repeat(super::hex_len(self.repository().format()));
        let mut line = match old {
            Some(old) => old.to_string(),
            None => zero,
        }
        .into_bytes();
        line.extend_from_slice(format!(" {new} ").as_bytes());
        line.extend_from_slice(who.name_bytes());
        line.extend_from_slice(b" <");
        line.extend_from_slice(who.email_bytes());
        let when = who.when();
        let minutes = when.offset_minutes().unsigned_abs();
        let time = format!(
            "> {} {}{:02}{:02}",
            when.seconds(),
            when.sign(),
            minutes / 60,
            minutes % 60
        );
        line.extend_from_slice(time.as_bytes());
        let message = update.log.as_deref().unwrap_or_default();
        if !message.is_empty() {
            line.push(b'\t');
            line.extend(message.bytes().map(|b| if b == b'\n' { b' ' } else { b }));
        }
        line.push(b'\n');
        if wanted {
            append(&file, &line).map_err(|e| failed(&file, &e))?;
        }
        if is_head {
            append(&head, &line).map_err(|e| failed(&head, &e))?;
        }
        Ok(())
    }

    /// Whether git starts a reflog for such a ref by itself (`core.logAllRefUpdates`).
    fn is_logged(&self, name: &str) -> bool {
        let by_kind = || {
            let kinds = ["refs/heads/", "refs/remotes/", "refs/notes/"];
            kinds.iter().any(|kind| name.starts_with(kind))
        };
        let config = self.repository().config();
        match config.ok().and_then(|c| c.string("core.logAllRefUpdates")) {
            Some(word) if word.eq_ignore_ascii_case("always") => true,
            None => by_kind() && self.repository().work_dir().is_some(),
            Some(word) => by_kind() && !is_off(&word),
        }
    }

    /// Whether `HEAD` is this branch.
    fn is_head(&self, name: &str) -> bool {
        let head = fs::read(self.repository().git_dir().join("HEAD")).unwrap_or_default();
        let target = head.strip_prefix(b"ref:").map(<[u8]>::trim_ascii);
        target == Some(name.as_bytes())
    }
}

fn unread(error: Error) -> git2::Error {
    raised(ErrorCode::GenericError, &error.to_string())
}

fn is_off(word: &str) -> bool {
    let off = ["false", "no", "off", "0", ""];
    off.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// Puts a ref in its place, where empty folders of refs that are gone may stand.
fn put(lock: Held, place: &Path) -> io::Result<()> {
    if place.is_dir() {
        remove_empty(place);
    }
    lock.put(place)
}

fn append(file: &Path, line: &[u8]) -> io::Result<()> {
    let open = || OpenOptions::new().append(true).create(true).open(file);
    let opened = match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = file.parent() {
                fs::create_dir_all(folder)?;
            }
            open()
        }
        Err(_) if file.is_dir() => {
            remove_empty(file);
            open()
        }
        opened => opened,
    };
    opened?.write_all(line)
}

/// Removes a folder that holds nothing but such folders.
fn remove_empty(folder: &Path) {
    if let Ok(listing) = fs::read_dir(folder) {
        for entry in listing.flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                remove_empty(&entry.path());
            }
        }
    }
    let _ = fs::remove_dir(folder);
}

#[cfg(test)]
mod tests;
