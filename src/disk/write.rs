//! Writing to a working tree under a compare-and-swap.
//!
//! New content is written beside the path first, under a name of ours (`.vws-<tag>.new`), so a name
//! with `.new` holds nothing but bytes of ours and may always go. Complete, it becomes
//! `.vws-<tag>.tmp`, and the two names are *exchanged* in one step (`renameat2`): now the path holds the
//! new content and `.tmp` whatever stood there at that very moment. Only then is it compared with what
//! was expected; if it is something else, the names are exchanged back. So no look before the write
//! has to be trusted, and what somebody saved a microsecond ago is never lost. The old content stays
//! under `.tmp` until [`WorkTree::settle`] has looked at it once more: a program that had the file open
//! may still have written into it.
//!
//! Where the system has no exchange, `.tmp` is a second link to the old file, made after a last
//! look and before the rename; a save by rename between the two is the one gap that is left.
//!
//! Every component is opened without following links. What is left: a program that opened the old file
//! for writing before the exchange and writes to it for the first time after `settle` writes to a file
//! without a name, as it would under any save by rename. A file that was written just before is
//! therefore left alone for a moment first ([`WorkTree::rest`]), an empty one for longer: to save in place
//! is to empty the file, perhaps to wait for the disk, and to write.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice, ByteVec};
use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, fchmod, fchown, linkat, openat, renameat_with,
    statat, symlinkat, unlinkat,
};
use rustix::io::Errno;

use super::state::state_at;
use super::{Content, EXECUTABLE, LINK, Obstacle, Seal, mode_of, parent};

/// A point on the way at which a kill could strike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// The new content lies beside the path, complete.
    Staged,
    /// The new content is in place, the old one beside it, unchecked.
    Swapped,
    /// The old content beside it has been found to be the expected one.
    Checked,
    /// The old content is gone; the path is done.
    Settled,
    /// All paths are done, and the entry is about to be ended.
    Ending,
}

/// Passed at every [`Point`]; `Break` stops the work there, as a kill would.
pub type Probe<'p> = &'p mut dyn FnMut(Point) -> ControlFlow<()>;

/// Why something was not written.
#[derive(Debug)]
pub enum Fault {
    /// Something is in the way.
    Obstacle(Obstacle),
    /// The system failed.
    Failed {
        /// What was tried.
        action: &'static str,
        /// Its answer.
        source: io::Error,
    },
    /// A [`Probe`] said so.
    Stopped,
}

impl Fault {
    pub(super) fn failed(action: &'static str, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        Fault::Failed { action, source }
    }
}

/// What became of a compare-and-swap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Swap {
    /// The path holds the new content.
    Done,
    /// Something else than expected stands there; it was left, or put back.
    Changed,
    /// As [`Swap::Changed`], and bytes of the user's that stand nowhere else lie in this file.
    Kept(BString),
}

/// A path to be written, and the tag that names its temporary files.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'s> {
    /// The path.
    pub path: &'s BStr,
    /// Unique among the paths of its folder that are under way.
    pub tag: &'s str,
}

/// New content for a path.
#[derive(Clone, Copy, Debug)]
pub struct New<'n> {
    /// Git's mode: 100644, 100755 or 120000.
    pub mode: u32,
    /// The exact permission bits; `None`: as the umask says.
    pub permissions: Option<u32>,
    /// The bytes, or a link's target.
    pub bytes: &'n [u8],
}

/// A working tree that is written to.
#[derive(Debug)]
pub struct WorkTree<'t> {
    pub(super) top: &'t Path,
    executable_bit: bool,
    pub(super) exchange: Cell<bool>,
}

/// The open folder of a path, and the names in it.
pub(super) struct Place {
    pub(super) folder: OwnedFd,
    pub(super) name: BString,
    pub(super) fresh: BString,
    pub(super) held: BString,
}

/// Whether a file name is one of our temporary ones.
pub fn is_temporary(name: &BStr) -> bool {
    name.starts_with(b".vws-") && (name.ends_with(b".new") || name.ends_with(b".tmp"))
}

/// The permission bits of a file with or without the execute bit: with it wherever it can be read, as
/// git does it, and without it nowhere.
pub fn with_execute_bit(permissions: u32, mode: u32) -> u32 {
    match (mode == EXECUTABLE, permissions & 0o100 != 0) {
        (true, false) => permissions | (permissions & 0o444) >> 2,
        (false, true) => permissions & !0o111,
        _ => permissions,
    }
}

impl<'t> WorkTree<'t> {
    /// The working tree at `top`; `executable_bit` is `core.fileMode`.
    pub fn new(top: &'t Path, executable_bit: bool) -> Self {
        WorkTree {
            top,
            executable_bit,
            exchange: Cell::new(true),
        }
    }

    /// The same, as if the system could not exchange names.
    pub fn without_exchange(self) -> Self {
        self.exchange.set(false);
        self
    }

    /// What stands at a path.
    ///
    /// # Errors
    /// As [`super::state`].
    pub fn state(&self, path: &BStr) -> Result<Option<Content>, Obstacle> {
        super::state(self.top, path, self.executable_bit)
    }

    pub(super) fn place(&self, spot: Spot<'_>) -> Result<Place, Fault> {
        let (folder, name) = parent(self.top, spot.path).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => Fault::Obstacle(Obstacle::Blocked),
            other => Fault::failed("open the folder of", other),
        })?;
        Ok(Place {
            folder,
            name: name.to_owned(),
            fresh: format!(".vws-{}.new", spot.tag).into(),
            held: format!(".vws-{}.tmp", spot.tag).into(),
        })
    }

    pub(super) fn at(&self, place: &Place, name: &BString) -> Result<Option<Content>, Obstacle> {
        state_at(&place.folder, name.as_bstr(), self.executable_bit, u64::MAX)
    }

    /// Whether exactly `seal` stands at a name of a place.
    pub(super) fn holds(&self, place: &Place, name: &BString, seal: &Seal) -> Result<bool, Fault> {
        match self.at(place, name) {
            Ok(found) => Ok(found.is_some_and(|found| found.seal() == *seal)),
            Err(Obstacle::Denied(error)) => Err(Fault::failed("read", error)),
            Err(_) => Ok(false),
        }
    }

    /// Writes new content beside the path, and flushes it if asked to. It takes the owner of the file
    /// that stands at the path now, where we may give it.
    ///
    /// # Errors
    /// When it cannot be written; then nothing is left behind.
    pub fn prepare(&self, spot: Spot<'_>, new: New<'_>, flush: bool) -> Result<Seal, Fault> {
        let place = self.place(spot)?;
        let written = self.write_fresh(&place, new, flush);
        if written.is_err() {
            let _ = unlink(&place, &place.fresh);
        }
        written
    }

    fn write_fresh(&self, place: &Place, new: New<'_>, flush: bool) -> Result<Seal, Fault> {
        let name = place.fresh.as_bytes();
        if new.mode == LINK {
            afresh(place, || symlinkat(new.bytes, &place.folder, name))?;
        } else {
            let executable = new.mode == EXECUTABLE;
            let bits = match new.permissions {
                // Not readable by anybody else before it has its own bits.
                Some(_) => 0o600,
                None if executable => 0o777,
                None => 0o666,
            };
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mode = Mode::from_raw_mode(bits);
            let mut file = File::from(afresh(place, || openat(&place.folder, name, flags, mode))?);
            file.write_all(new.bytes)
                .map_err(|error| Fault::failed("write", error))?;
            if let Some(bits) = new.permissions {
                let bits = take_owner(place, &file, bits);
                fchmod(&file, Mode::from_raw_mode(bits))
                    .map_err(|error| Fault::failed("set the mode of", error))?;
            }
            if flush {
                file.sync_all()
                    .map_err(|error| Fault::failed("flush", error))?;
            }
        }
        let stat = statat(&place.folder, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(|error| Fault::failed("look at", error))?;
        let permissions = match new.mode {
            LINK => 0,
            _ => stat.st_mode & 0o7777,
        };
        let mode = mode_of(&stat, self.executable_bit).unwrap_or(new.mode);
        Ok(Seal::of(mode, permissions, new.bytes))
    }

    /// Leaves what a death in the middle of [`WorkTree::prepare`] leaves: for tests.
    pub fn tear(&self, spot: Spot<'_>) {
        let new = New {
            mode: super::REGULAR,
            permissions: None,
            bytes: b"half of it",
        };
        if let Ok(place) = self.place(spot) {
            let _ = self.write_fresh(&place, new, false);
        }
    }

    /// Removes content that was prepared and not put in place.
    pub fn discard(&self, spot: Spot<'_>) {
        if let Ok(place) = self.place(spot) {
            let _ = unlink(&place, &place.fresh);
        }
    }
}

/// Makes the new content's file; one of an earlier try goes first.
fn afresh<T>(place: &Place, make: impl Fn() -> Result<T, Errno>) -> Result<T, Fault> {
    let made = match make() {
        Err(Errno::EXIST) => {
            unlink(place, &place.fresh)?;
            make()
        }
        made => made,
    };
    made.map_err(|error| Fault::failed("create", error))
}

pub(super) fn pass(probe: Probe<'_>, point: Point) -> Result<(), Fault> {
    match probe(point) {
        ControlFlow::Continue(()) => Ok(()),
        ControlFlow::Break(()) => Err(Fault::Stopped),
    }
}

pub(super) fn exchange(place: &Place, one: &BString, other: &BString) -> Result<(), Errno> {
    let (folder, flags) = (&place.folder, RenameFlags::EXCHANGE);
    renameat_with(folder, one.as_bytes(), folder, other.as_bytes(), flags)
}

pub(super) fn link(place: &Place, from: &BString, to: &BString) -> Result<(), Errno> {
    let (folder, flags) = (&place.folder, AtFlags::empty());
    linkat(folder, from.as_bytes(), folder, to.as_bytes(), flags)
}

/// A rename that never replaces anything.
pub(super) fn rename_new(place: &Place, from: &BString, to: &BString) -> Result<(), Errno> {
    let (folder, flags) = (&place.folder, RenameFlags::NOREPLACE);
    match renameat_with(folder, from.as_bytes(), folder, to.as_bytes(), flags) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            link(place, from, to)?;
            unlinkat(folder, from.as_bytes(), AtFlags::empty())
        }
        other => other,
    }
}

pub(super) fn unlink(place: &Place, name: &BString) -> Result<(), Fault> {
    match unlinkat(&place.folder, name.as_bytes(), AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(Fault::failed("remove", error)),
    }
}

/// Takes bytes of the user's out of our hands: a free name beside the path, not a temporary one.
pub(super) fn keep(place: &Place) -> Result<BString, Fault> {
    for n in 1..1000 {
        let mut kept = place.name.clone();
        kept.push_str(format!(".vws-kept-{n}"));
        match rename_new(place, &place.held, &kept) {
            Ok(()) => return Ok(kept),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(Fault::failed("keep", error)),
        }
    }
    Err(Fault::failed("keep", Errno::EXIST))
}

/// Gives a new file the owner of the one at the path, where we may, and returns the bits that it may
/// have then: what runs with an owner's rights must not do so with another's.
fn take_owner(place: &Place, file: &File, bits: u32) -> u32 {
    let old = statat(
        &place.folder,
        place.name.as_bytes(),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    let (Ok(old), Ok(new)) = (old, rustix::fs::fstat(file)) else {
        return bits;
    };
    if (old.st_uid, old.st_gid) == (new.st_uid, new.st_gid) {
        return bits;
    }
    let (uid, gid) = (Uid::from_raw(old.st_uid), Gid::from_raw(old.st_gid));
    if fchown(file, Some(uid), Some(gid)).is_ok() {
        return bits;
    }
    match fchown(file, None, Some(gid)) {
        Ok(()) => bits & !0o4000,
        Err(_) => bits & !0o6000,
    }
}
