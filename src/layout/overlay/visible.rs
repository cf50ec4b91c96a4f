//! An overlay in the caller's own namespace, for all to see.
//!
//! Such a mount has a name, by which it is found again in the tables of mounts: no other process holds
//! a lock while it is there, and the kernel lets one upper folder be mounted a second time.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::io::Errno;
use rustix::mount::UnmountFlags;

use super::namespace::Layers;
use super::probe::exercise;
use super::{Spec, Upper, upper};
use crate::layout::directory::path_bytes;
use crate::layout::{Error, Result};

/// How the names of our mounts begin.
const NAME: &str = "git-vws-";

/// What keeps a mount from going.
#[derive(Debug)]
pub(in crate::layout) enum Stuck {
    /// Processes are in it: their numbers and names, as far as the caller may see them.
    Busy(Vec<String>),
    /// The system said no.
    Failed(Errno),
}

/// The name of the mount of an upper folder's root.
pub(in crate::layout) fn name(root: &Path) -> String {
    let hash = crate::layout::template::short_name(path_bytes(root));
    format!("{NAME}{hash}")
}

/// Tries on the file system of `folder` whether the caller may mount overlays for all to see.
///
/// # Errors
/// The reason why not, in words.
pub(in crate::layout) fn may_mount(folder: &Path) -> std::result::Result<(), String> {
    let place = tempfile::Builder::new().prefix("probe-").tempdir_in(folder);
    let place =
        place.map_err(|e| format!("cannot make a folder in '{}': {e}", folder.display()))?;
    let tried = attempt(place.path()).map_err(|error| error.to_string());
    // The kernel's folder in it has no permissions, so the guard alone could not.
    let _ = upper::remove(place.path());
    tried
}

fn attempt(place: &Path) -> Result<()> {
    let (lower, target) = (place.join("lower"), place.join("target"));
    let made = fs::create_dir_all(lower.join("d"))
        .and_then(|()| fs::create_dir(&target))
        .and_then(|()| fs::write(lower.join("f"), "f"))
        .and_then(|()| fs::write(lower.join("d/g"), "g"));
    made.map_err(|e| Error::io("write to", place, e))?;
    let upper = Upper::create(place)?;
    let spec = Spec {
        lowers: vec![lower],
        upper: upper.files(),
        work: upper.work(),
        target: target.clone(),
        ..Spec::default()
    };
    mount(&spec, &name(place))?;
    let tried = exercise(&target);
    let _ = unmount(&target);
    tried
}

/// Mounts what a spec says at its target; its namespace, its fence and its command are nobody's here.
/// The caller knows that the upper folder is mounted nowhere.
///
/// # Errors
/// [`Error::Io`].
pub(in crate::layout) fn mount(spec: &Spec, name: &str) -> Result<()> {
    // What an earlier mount left: the mark of a volatile one would keep the kernel from mounting.
    upper::remove(&spec.work.join("work"))?;
    Layers::open(spec)?.mount(spec, name)
}

/// Takes the mount at `place` away.
///
/// # Errors
/// [`Stuck`]; it is there as before then.
pub(in crate::layout) fn unmount(place: &Path) -> std::result::Result<(), Stuck> {
    match rustix::mount::unmount(place, UnmountFlags::NOFOLLOW) {
        Ok(()) => Ok(()),
        Err(Errno::BUSY) => Err(Stuck::Busy(processes_in(place))),
        Err(error) => Err(Stuck::Failed(error)),
    }
}

/// Whether the mount of this name stands at `place`, as this process sees it.
///
/// # Errors
/// [`Error::Io`] where the table of mounts cannot be read: nothing is known then.
pub(in crate::layout) fn is_at(place: &Path, name: &str) -> Result<bool> {
    let Ok(meta) = fs::symlink_metadata(place) else {
        return Ok(false);
    };
    let device = meta.dev();
    let device = (rustix::fs::major(device), rustix::fs::minor(device));
    Ok(table("self")?
        .iter()
        .any(|one| one.is(name) && one.device == device))
}

/// Where else than in its place the mount of this name is, in this namespace or in another one that
/// this process may look into.
///
/// # Errors
/// As [`is_at`].
pub(in crate::layout) fn elsewhere(name: &str) -> Result<Option<String>> {
    if let Some(one) = table("self")?.into_iter().find(|one| one.is(name)) {
        return Ok(Some(format!("'{}'", one.point)));
    }
    let namespace = |pid: &str| fs::read_link(format!("/proc/{pid}/ns/mnt")).ok();
    let mut seen: Vec<PathBuf> = namespace("self").into_iter().collect();
    for pid in pids() {
        let Some(other) = namespace(&pid).filter(|other| !seen.contains(other)) else {
            continue;
        };
        seen.push(other);
        if table(&pid).is_ok_and(|table| table.iter().any(|one| one.is(name))) {
            return Ok(Some(format!(
                "the namespace of process {}",
                described(&pid)
            )));
        }
    }
    Ok(None)
}

/// A line of a table of mounts.
struct Mounted {
    device: (u32, u32),
    /// As the table has it, with its escapes.
    point: String,
    source: Vec<u8>,
}

impl Mounted {
    fn is(&self, name: &str) -> bool {
        self.source == name.as_bytes()
    }
}

fn table(process: &str) -> Result<Vec<Mounted>> {
    let file = PathBuf::from(format!("/proc/{process}/mountinfo"));
    let text = fs::read(&file).map_err(|e| Error::io("read", &file, e))?;
    Ok(text.lines().filter_map(parse).collect())
}

/// Reads a line of `mountinfo`, if it is of a mount of ours.
fn parse(line: &[u8]) -> Option<Mounted> {
    let (place, kind) = line.split_once_str(" - ")?;
    let mut kind = kind.split_str(" ");
    let source = kind.nth(1).filter(|s| s.starts_with(NAME.as_bytes()))?;
    let mut place = place.split_str(" ");
    let (major, minor) = place.nth(2)?.to_str().ok()?.split_once(':')?;
    let point = place.nth(1)?.to_str_lossy().into_owned();
    Some(Mounted {
        device: (major.parse().ok()?, minor.parse().ok()?),
        point,
        source: source.to_vec(),
    })
}

fn pids() -> impl Iterator<Item = String> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name().into_string().ok()?;
        name.bytes().all(|b| b.is_ascii_digit()).then_some(name)
    })
}

/// A few of the processes that have their current folder or a file below `place`.
fn processes_in(place: &Path) -> Vec<String> {
    const ENOUGH: usize = 3;
    let inside = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(place));
    let uses = |pid: &String| {
        let own = PathBuf::from(format!("/proc/{pid}"));
        let files = || -> io::Result<bool> {
            let mut files = fs::read_dir(own.join("fd"))?.flatten();
            Ok(files.any(|entry| inside(&entry.path())))
        };
        ["cwd", "exe", "root"]
            .iter()
            .any(|link| inside(&own.join(link)))
            || files().unwrap_or(false)
    };
    let found = pids().filter(uses).take(ENOUGH);
    found.map(|pid| described(&pid)).collect()
}

fn described(pid: &str) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    format!("{pid} ({})", name.trim_end())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn our_lines_of_a_table_are_known() {
        let line =
            b"142 30 0:61 / /a\\040b rw,relatime shared:7 - overlay git-vws-12ab rw,lowerdir=/x";
        let one = parse(line).unwrap();
        assert_eq!(one.device, (0, 61));
        assert!(one.is("git-vws-12ab") && !one.is("git-vws-12"));
        assert!(parse(b"142 30 0:61 / /a rw - overlay overlay rw").is_none());
        assert!(parse(b"").is_none());
    }
}
