//! How an overlay says, in its upper folder, that something below is gone.
//!
//! - A *whiteout* hides one name: a character device 0:0, or, in a folder whose `opaque` attribute is
//!   `x`, an empty file with the attribute `whiteout`.
//! - An *opaque* folder (`opaque` is `y`) hides all that the folder of its name below holds.
//!
//! The attributes are `trusted.overlay.*`, or `user.overlay.*` in a mount with `userxattr`.

use std::os::fd::OwnedFd;

use bstr::{BStr, ByteSlice};
use rustix::fs::{FileType, Mode, OFlags, Stat, XattrFlags, fgetxattr, fsetxattr, mknodat, openat};
use rustix::io::Errno;

/// What the attribute of a folder says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::layout) enum Opacity {
    /// It is merged with the folder below.
    Merged,
    /// As [`Opacity::Merged`], and empty files in it may be whiteouts.
    HoldsWhiteouts,
    /// It hides the folder below.
    Opaque,
}

const PREFIXES: [&str; 2] = ["user.overlay", "trusted.overlay"];

/// What an open folder of the upper layer says about the one below.
pub(in crate::layout) fn opacity(folder: &OwnedFd) -> Result<Opacity, Errno> {
    for prefix in PREFIXES {
        match attribute(folder, &format!("{prefix}.opaque"))? {
            Some(b'y') => return Ok(Opacity::Opaque),
            Some(b'x') => return Ok(Opacity::HoldsWhiteouts),
            _ => {}
        }
    }
    Ok(Opacity::Merged)
}

/// The first byte of an attribute; the overlay's own are one byte long.
fn attribute(file: &OwnedFd, name: &str) -> Result<Option<u8>, Errno> {
    let mut value = [0_u8; 8];
    match fgetxattr(file, name, &mut value[..]) {
        Ok(0) => Ok(Some(0)),
        Ok(_) => Ok(Some(value[0])),
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        // Too long to be one of ours.
        Err(Errno::RANGE) => Ok(Some(0)),
        Err(error) => Err(error),
    }
}

/// Whether an entry of a folder of the upper layer hides the name below.
pub(in crate::layout) fn is_whiteout(
    folder: &OwnedFd,
    name: &BStr,
    stat: &Stat,
    opacity: Opacity,
) -> Result<bool, Errno> {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::CharacterDevice => Ok(stat.st_rdev == 0),
        FileType::RegularFile if stat.st_size == 0 && opacity == Opacity::HoldsWhiteouts => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = match openat(folder, name.as_bytes(), flags, Mode::empty()) {
                Ok(file) => file,
                // No whiteout of ours: a file that its owner may not even read.
                Err(Errno::ACCESS) => return Ok(false),
                Err(error) => return Err(error),
            };
            for prefix in PREFIXES {
                if attribute(&file, &format!("{prefix}.whiteout"))?.is_some() {
                    return Ok(true);
                }
            }
            Ok(false)
        }
        _ => Ok(false),
    }
}

/// Hides a name of the folder below.
pub(super) fn set_whiteout(folder: &OwnedFd, name: &BStr) -> Result<(), Errno> {
    // Anybody may make this one device (Linux 5.8), but a sandbox may not know.
    match mknodat(
        folder,
        name.as_bytes(),
        FileType::CharacterDevice,
        Mode::empty(),
        0,
    ) {
        Err(Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL) => {}
        done => return done,
    }
    set_whiteout_file(folder, name)
}

fn set_whiteout_file(folder: &OwnedFd, name: &BStr) -> Result<(), Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let file = openat(folder, name.as_bytes(), flags, Mode::RUSR | Mode::WUSR)?;
    fsetxattr(&file, "user.overlay.whiteout", b"y", XattrFlags::empty())?;
    fsetxattr(folder, "user.overlay.opaque", b"x", XattrFlags::empty())
}

/// Hides all that the folder below holds.
pub(super) fn set_opaque(folder: &OwnedFd) -> Result<(), Errno> {
    fsetxattr(folder, "user.overlay.opaque", b"y", XattrFlags::empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::print_stdout)]
    use super::*;
    use rustix::fs::{AtFlags, statat};

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn both_forms_of_a_whiteout_are_known() {
        let top = tempfile::tempdir().unwrap();
        let folder = open(top.path());
        if set_whiteout_file(&folder, "file".into()) == Err(Errno::OPNOTSUPP) {
            println!("skipped: no user attributes on this file system");
            return;
        }
        let found = opacity(&folder).unwrap();
        assert_eq!(found, Opacity::HoldsWhiteouts);
        std::fs::write(top.path().join("empty"), "").unwrap();
        let whiteout = |name: &str, opacity| {
            let stat = statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            is_whiteout(&folder, name.into(), &stat, opacity).unwrap()
        };
        assert!(whiteout("file", found));
        assert!(!whiteout("file", Opacity::Merged));
        assert!(!whiteout("empty", found));
        set_whiteout(&folder, "device".into()).unwrap();
        assert!(whiteout("device", found));
        std::fs::create_dir(top.path().join("d")).unwrap();
        let inner = open(&top.path().join("d"));
        assert_eq!(opacity(&inner).unwrap(), Opacity::Merged);
        set_opaque(&inner).unwrap();
        assert_eq!(opacity(&inner).unwrap(), Opacity::Opaque);
    }
}
