//! The one system call of a layout that Rust counts as unsafe.
#![allow(unsafe_code)]

use rustix::thread::UnshareFlags;

/// Moves this process into a mount namespace of its own, and with `user` into a user namespace
/// first. The process must have one thread for that, or the kernel refuses.
pub(super) fn unshare_mounts(user: bool) -> rustix::io::Result<()> {
    let mut flags = UnshareFlags::NEWNS;
    flags.set(UnshareFlags::NEWUSER, user);
    // SAFETY: only `FILES` has a condition (a thread must not see descriptors of a table that it no
    // longer shares), and it is not among the flags.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}
