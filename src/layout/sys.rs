//! The system calls of a layout that Rust counts as unsafe: a mount namespace of one's own, and the
//! subvolumes of btrfs.
#![allow(unsafe_code)]

use std::os::fd::{AsFd, AsRawFd};

use rustix::fs::{fstat, fstatfs};
use rustix::io::Errno;
use rustix::ioctl::{Setter, Updater, ioctl, opcode};
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

/// The group of btrfs's calls.
const BTRFS: u8 = 0x94;
/// What `statfs` says of btrfs.
const BTRFS_MAGIC: i64 = 0x9123_683e;
/// The inode number of the top of every subvolume.
pub(super) const TOP: u64 = 256;

/// The kernel's `btrfs_ioctl_vol_args`.
#[repr(C)]
struct VolumeArgs {
    fd: i64,
    name: [u8; 4088],
}

/// The kernel's `btrfs_ioctl_vol_args_v2`.
#[repr(C)]
struct VolumeArgsV2 {
    fd: i64,
    transaction: u64,
    flags: u64,
    unused: [u64; 4],
    name: [u8; 4040],
}

/// The kernel's `btrfs_ioctl_ino_lookup_args`.
#[repr(C)]
struct LookupArgs {
    tree: u64,
    object: u64,
    name: [u8; 4080],
}

const _: () = assert!(size_of::<VolumeArgs>() == 4096);
const _: () = assert!(size_of::<VolumeArgsV2>() == 4096);
const _: () = assert!(size_of::<LookupArgs>() == 4096);

/// A name with the NUL after it that the kernel wants.
fn padded<const N: usize>(name: &[u8]) -> rustix::io::Result<[u8; N]> {
    let mut bytes = [0; N];
    match bytes.get_mut(..name.len()) {
        Some(start) if name.len() < N && !name.contains(&0) => start.copy_from_slice(name),
        _ => return Err(Errno::NAMETOOLONG),
    }
    Ok(bytes)
}

/// Makes an empty subvolume in a folder.
pub(super) fn create_subvolume(parent: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    let args = VolumeArgs {
        fd: 0,
        name: padded(name)?,
    };
    // SAFETY: `BTRFS_IOC_SUBVOL_CREATE` reads one `btrfs_ioctl_vol_args`, whose size the code holds.
    unsafe {
        let call = Setter::<{ opcode::write::<VolumeArgs>(BTRFS, 14) }, _>::new(args);
        ioctl(parent, call)
    }
}

/// Makes a writable snapshot of the subvolume `of` in a folder.
pub(super) fn snapshot(of: impl AsFd, parent: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    let args = VolumeArgsV2 {
        fd: i64::from(of.as_fd().as_raw_fd()),
        transaction: 0,
        flags: 0,
        unused: [0; 4],
        name: padded(name)?,
    };
    // SAFETY: `BTRFS_IOC_SNAP_CREATE_V2` reads one `btrfs_ioctl_vol_args_v2`, whose size the code
    // holds; the descriptor in it is open as long as `of` is borrowed.
    unsafe {
        let call = Setter::<{ opcode::write::<VolumeArgsV2>(BTRFS, 23) }, _>::new(args);
        ioctl(parent, call)
    }
}

/// Removes a subvolume from a folder, with all that is in it.
pub(super) fn destroy_subvolume(parent: impl AsFd, name: &[u8]) -> rustix::io::Result<()> {
    let args = VolumeArgs {
        fd: 0,
        name: padded(name)?,
    };
    // SAFETY: `BTRFS_IOC_SNAP_DESTROY` reads one `btrfs_ioctl_vol_args`, whose size the code holds.
    unsafe {
        let call = Setter::<{ opcode::write::<VolumeArgs>(BTRFS, 15) }, _>::new(args);
        ioctl(parent, call)
    }
}

/// The number of the subvolume of which this folder is the top; `None` for any other folder.
pub(super) fn subvolume_of(folder: impl AsFd) -> Option<u64> {
    let folder = folder.as_fd();
    if fstat(folder).ok()?.st_ino != TOP || !is_btrfs(folder) {
        return None;
    }
    let mut args = LookupArgs {
        tree: 0,
        object: TOP,
        name: [0; 4080],
    };
    // SAFETY: `BTRFS_IOC_INO_LOOKUP` reads and writes one `btrfs_ioctl_ino_lookup_args`, whose size
    // the code holds.
    unsafe {
        let call = Updater::<{ opcode::read_write::<LookupArgs>(BTRFS, 18) }, _>::new(&mut args);
        ioctl(folder, call).ok()?;
    }
    Some(args.tree)
}

/// Whether an open file or folder lies on btrfs.
#[allow(clippy::unnecessary_cast)]
pub(super) fn is_btrfs(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|stat| stat.f_type as i64 == BTRFS_MAGIC)
}
