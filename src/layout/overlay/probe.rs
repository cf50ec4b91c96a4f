//! Finding out by doing whether overlays work here.
//!
//! Kernels, containers and security modules refuse at different steps (the namespace, its maps, the
//! mount, the attributes), and only a mount on the very file system tells. What it says holds until
//! the next start of the machine.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use bstr::BStr;
use rustix::fs::{AtFlags, Mode, OFlags, openat, statat};
use rustix::process::geteuid;

use super::Spec;
use super::marks::{Opacity, is_whiteout, opacity};
use super::upper::{self, Upper};
use crate::layout::{Error, Result, probes};

/// Tries an overlay on the file system of `folder`, by a child process of this program.
///
/// # Errors
/// The reason why it does not work, in words.
pub fn probe(folder: &Path, own_program: &Path) -> std::result::Result<(), String> {
    let place = tempfile::Builder::new().prefix("probe-").tempdir_in(folder);
    let place =
        place.map_err(|e| format!("cannot make a folder in '{}': {e}", folder.display()))?;
    let outcome = attempt(place.path(), own_program);
    // The kernel's folder in it has no permissions, so the guard alone could not.
    let _ = upper::remove(place.path());
    outcome
}

fn attempt(place: &Path, own_program: &Path) -> std::result::Result<(), String> {
    let said = |error: Error| error.to_string();
    let made = |error: std::io::Error| error.to_string();
    let lower = place.join("lower");
    let target = place.join("target");
    fs::create_dir_all(lower.join("d")).map_err(made)?;
    fs::create_dir(&target).map_err(made)?;
    fs::write(lower.join("f"), "f").map_err(made)?;
    fs::write(lower.join("d/g"), "g").map_err(made)?;
    let upper = Upper::create(place).map_err(said)?;
    let report = place.join("report");
    let spec = Spec {
        lowers: vec![lower.clone()],
        upper: upper.files(),
        work: upper.work(),
        lock: upper.lock(),
        target: target.clone(),
        cwd: target,
        report: Some(report.clone()),
        volatile: true,
        ..Spec::default()
    };
    let run = spec.invocation(own_program);
    let ended = Command::new(&run.program)
        .args(&run.args)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| format!("cannot start '{}': {e}", run.program.display()))?;
    if !ended.success() {
        let reason = fs::read_to_string(&report).unwrap_or_default();
        let reason = if reason.is_empty() {
            ended.to_string()
        } else {
            reason
        };
        return Err(reason);
    }
    let understood = (|| {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let files = rustix::fs::open(upper.files(), flags, Mode::empty())?;
        let stat = statat(&files, "f", AtFlags::SYMLINK_NOFOLLOW)?;
        let hidden = is_whiteout(&files, BStr::new("f"), &stat, opacity(&files)?)?;
        let inner = openat(&files, "d", flags, Mode::empty())?;
        Ok::<_, rustix::io::Errno>(hidden && opacity(&inner)? == Opacity::Opaque)
    })();
    let lower_stays = fs::read(lower.join("f")).is_ok_and(|bytes| bytes == b"f");
    match understood {
        Ok(true) if lower_stays => Ok(()),
        Ok(_) => Err("the overlay keeps its changes in an unknown form".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// What the child does inside the mount: each kind of change once.
pub(super) fn exercise(target: &Path) -> Result<()> {
    let tried = (|| {
        fs::write(target.join("new"), "n")?;
        fs::rename(target.join("new"), target.join("renamed"))?;
        fs::remove_file(target.join("f"))?;
        fs::remove_dir_all(target.join("d"))?;
        fs::create_dir(target.join("d"))?;
        fs::write(target.join("d/h"), "h")?;
        std::os::unix::fs::symlink("d", target.join("link"))
    })();
    tried.map_err(|e| Error::io("change files in", target, e))
}

/// As [`probe`], but asks only once in the life of the machine; the answer is kept in `cache`.
///
/// # Errors
/// As [`probe`].
pub fn cached_probe(
    cache: &Path,
    folder: &Path,
    own_program: &Path,
) -> std::result::Result<(), String> {
    let answer = probes::kept(cache, key(folder).as_deref(), || {
        probe(folder, own_program).err().unwrap_or_default()
    });
    match answer.is_empty() {
        true => Ok(()),
        false => Err(answer),
    }
}

/// Forgets the answer for the file system of `folder`: a mount failed after all.
pub fn forget_probe(cache: &Path, folder: &Path) {
    probes::forget(cache, key(folder).as_deref());
}

fn key(folder: &Path) -> Option<String> {
    let device = probes::device(folder)?;
    Some(format!("overlay-{device}-{}", geteuid().as_raw()))
}
