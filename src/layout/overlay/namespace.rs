//! Entering the namespace: mounts, then the command.
//!
//! Where the caller may mount (root with `CAP_SYS_ADMIN`), a mount namespace is enough, and a thread may
//! have one ([`inside`]); the command is started from there. Else a user namespace comes with it, in
//! which the caller's uid and gid stand for themselves, and whose rights end with the `exec`: only a
//! process with one thread may enter that, so it is one of its own, which becomes the command ([`enter`]).
//!
//! The fence is a guard against accidents, not a jail: a command of root's can undo every mount, and
//! anybody's can still write wherever the user can outside the checkout.

use std::convert::Infallible;
use std::ffi::{CString, OsString};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, StatVfsMountFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::{Errno, FdFlags};
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind_recursive,
    mount_change, move_mount, open_tree,
};
use rustix::process::{getegid, geteuid};

use super::probe::exercise;
use super::{Spec, upper};
use crate::git::Lock;
use crate::layout::sys::unshare_mounts;
use crate::layout::{Error, Result};

/// Why the command does not run, and the exit code that says so.
#[derive(Debug)]
pub struct Failure {
    /// 126 or 127 when the command cannot be run or is not there, else 125, as `env` has it. 0 after
    /// a probe that went well.
    pub code: u8,
    /// The reason; `None` after a probe that went well.
    pub error: Option<Error>,
    /// Whether the parent was told by way of the report.
    pub reported: bool,
}

/// The whole of the hidden command: reads the arguments after [`super::ENTER`], enters, and becomes
/// the command. Comes back only with a reason why not, written to the spec's report, too.
pub fn enter_main(args: impl IntoIterator<Item = OsString>) -> Failure {
    let Some(spec) = Spec::from_args(args) else {
        let source = io::Error::from(ErrorKind::InvalidInput);
        return failure(125, Error::io("understand", super::ENTER, source));
    };
    // Opened before anything is mounted above it.
    let file = spec
        .report
        .as_ref()
        .and_then(|file| File::create(file).ok());
    let done = if spec.command.is_empty() {
        set_up(&spec).and_then(|_held| exercise(&spec.target))
    } else {
        match enter(&spec) {
            Err(failed) => return report(file, failed),
            Ok(never) => match never {},
        }
    };
    match done {
        Ok(()) => Failure {
            code: 0,
            error: None,
            reported: false,
        },
        Err(error) => report(file, failure(125, error)),
    }
}

fn failure(code: u8, error: Error) -> Failure {
    Failure {
        code,
        error: Some(error),
        reported: false,
    }
}

fn report(file: Option<File>, mut failed: Failure) -> Failure {
    if let (Some(mut file), Some(error)) = (file, &failed.error) {
        let text = match error {
            // What was to be run, the parent knows.
            Error::Command { source, .. } => source.to_string(),
            error => error.to_string(),
        };
        // The parent reads it to tell a command's own 125 from ours; the exit code is left anyway.
        failed.reported = file.write_all(text.as_bytes()).is_ok();
    }
    failed
}

/// Mounts and becomes the command; comes back only when that fails.
///
/// # Errors
/// [`Failure`] with the exit code to end with.
pub fn enter(spec: &Spec) -> std::result::Result<Infallible, Failure> {
    let held = set_up(spec).map_err(|error| failure(125, error))?;
    let Some((program, args)) = spec.command.split_first() else {
        let source = io::Error::from(ErrorKind::InvalidInput);
        return Err(failure(125, Error::io("run", "", source)));
    };
    // The lock lives on in the command and in whatever it leaves behind.
    let inherited = rustix::io::fcntl_setfd(held.file(), FdFlags::empty());
    inherited.map_err(|e| failure(125, Error::io("hold", &spec.lock, e)))?;
    let source = Command::new(program)
        .args(args)
        // The caller's leads to where it was started.
        .env("PWD", &spec.cwd)
        .exec();
    let code = if source.kind() == ErrorKind::NotFound {
        127
    } else {
        126
    };
    let program = program.clone();
    Err(failure(code, Error::Command { program, source }))
}

/// Does something in the namespace, in a thread of its own, and gives back what that gave. `None` where the
/// caller may not mount and only [`enter`] helps. Processes that are started inside hold the lock as long as
/// they live, and so the namespace. It is left behind when this returns; the kernel takes it down by and by.
///
/// # Errors
/// What could not be mounted. Nothing was done then.
pub fn inside<T: Send>(spec: &Spec, act: impl FnOnce() -> T + Send) -> Option<Result<T>> {
    if !geteuid().is_root() {
        return None;
    }
    let work = || {
        unshare_mounts(false).ok()?;
        let enter = || {
            let held = prepare(spec)?;
            mounts(spec)?;
            // The lock lives on in the command and in whatever it leaves behind.
            let inherited = rustix::io::fcntl_setfd(held.file(), FdFlags::empty());
            inherited.map_err(|e| Error::io("hold", &spec.lock, e))?;
            Ok(held)
        };
        Some(enter().map(|_held| act()))
    };
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, work);
        // Where there is none to be had, a process is tried.
        match thread.ok()?.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}

/// Everything but the command.
fn set_up(spec: &Spec) -> Result<Lock> {
    let held = prepare(spec)?;
    own_namespace()?;
    mounts(spec)?;
    Ok(held)
}

/// What is done before there is a namespace.
fn prepare(spec: &Spec) -> Result<Lock> {
    let held = Lock::exclusive(&spec.lock, Duration::ZERO)?;
    // What an earlier mount left: the mark of a volatile one would keep the kernel from mounting.
    upper::remove(&spec.work.join("work"))?;
    if let Some(file) = &spec.fresh {
        touch(file)?;
    }
    Ok(held)
}

/// Mounts all that the namespace shall show, and goes to where the command starts.
fn mounts(spec: &Spec) -> Result<()> {
    // Without this what is mounted here would appear outside.
    mount_change(
        "/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
    .map_err(|e| Error::io("make the mounts private below", "/", e))?;
    let kept = spec.binds.iter().map(|(from, _)| take(from));
    let kept = kept.collect::<Result<Vec<_>>>()?;
    let layers = Layers::open(spec)?;
    if let Some(top) = &spec.fence {
        mount_bind_recursive(top, top).map_err(|e| Error::io("fence", top, e))?;
    }
    layers.mount(spec, "overlay")?;
    for (tree, (_, to)) in kept.iter().zip(&spec.binds) {
        put(tree, to)?;
    }
    for folder in &spec.read_only {
        mount_bind_recursive(folder, folder).map_err(|e| Error::io("protect", folder, e))?;
        make_read_only(folder)?;
    }
    // With the overlay above it, its path leads elsewhere, and nobody reaches it.
    if let Some(top) = spec.fence.as_ref().filter(|top| **top != spec.target) {
        make_read_only(top)?;
    }
    rustix::process::chdir(&spec.cwd).map_err(|e| Error::io("enter", &spec.cwd, e))
}

fn touch(file: &Path) -> Result<()> {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let done = rustix::fs::utimensat(CWD, file, &times, rustix::fs::AtFlags::empty());
    done.map_err(|e| Error::io("touch", file, e))
}

fn own_namespace() -> Result<()> {
    let (uid, gid) = (geteuid(), getegid());
    if uid.is_root() && unshare_mounts(false).is_ok() {
        return Ok(());
    }
    unshare_mounts(true).map_err(|e| Error::io("make a namespace by", "unshare", e))?;
    for (file, line) in [
        // The kernel wants it before a group may be mapped without privilege.
        ("/proc/self/setgroups", "deny".to_owned()),
        (
            "/proc/self/uid_map",
            format!("{uid} {uid} 1", uid = uid.as_raw()),
        ),
        (
            "/proc/self/gid_map",
            format!("{gid} {gid} 1", gid = gid.as_raw()),
        ),
    ] {
        fs::write(file, line).map_err(|e| Error::io("write", file, e))?;
    }
    Ok(())
}

/// The folders of the overlay, held open: named to the kernel by descriptor, so that no character in
/// a path and no length of it matters, and nothing that is mounted meanwhile is in the way.
pub(super) struct Layers {
    lowers: Vec<OwnedFd>,
    upper: OwnedFd,
    work: OwnedFd,
}

impl Layers {
    pub(super) fn open(spec: &Spec) -> Result<Self> {
        let lowers = spec.lowers.iter().map(|lower| open_folder(lower));
        Ok(Layers {
            lowers: lowers.collect::<Result<_>>()?,
            upper: open_folder(&spec.upper)?,
            work: open_folder(&spec.work)?,
        })
    }

    /// Mounts them at the target; the table of mounts shows `name`.
    pub(super) fn mount(&self, spec: &Spec, name: &str) -> Result<()> {
        let place = |fd: &OwnedFd| format!("/proc/self/fd/{}", fd.as_raw_fd());
        let lowers: Vec<_> = self.lowers.iter().map(place).collect();
        // `userxattr` turns `redirect_dir` and `metacopy` off by itself, and refuses to hear of them.
        let options = format!(
            "lowerdir={},upperdir={},workdir={},userxattr,index=off",
            lowers.join(":"),
            place(&self.upper),
            place(&self.work),
        );
        let with = |more: &str| {
            let data = CString::new(format!("{options}{more}"));
            let data = data.expect("invariant: no NUL in numbers");
            mount(name, &spec.target, "overlay", MountFlags::empty(), &*data)
        };
        let done = match spec.volatile.then(|| with(",volatile")) {
            // A kernel before 5.10 does not know it.
            Some(Err(Errno::INVAL)) | None => with(""),
            Some(done) => done,
        };
        done.map_err(|e| Error::io("mount an overlay at", &spec.target, e))
    }
}

fn open_folder(path: &Path) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).map_err(|e| Error::io("open", path, e))
}

/// Takes a folder with all that is mounted in it, before anything hides it.
fn take(folder: &Path) -> Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, folder, flags).map_err(|e| Error::io("bind", folder, e))
}

fn put(tree: &OwnedFd, folder: &Path) -> Result<()> {
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    move_mount(tree.as_fd(), "", CWD, folder, flags).map_err(|e| Error::io("bind to", folder, e))
}

/// Makes the mount at this path read-only, and leaves its other flags: those that came from outside
/// are locked in a user namespace.
fn make_read_only(folder: &Path) -> Result<()> {
    let failed = |e: Errno| Error::io("make read-only", folder, e);
    let now = rustix::fs::statvfs(folder).map_err(failed)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (has, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        flags.set(flag, now.contains(has));
    }
    rustix::mount::mount_remount(folder, flags, c"").map_err(failed)
}
