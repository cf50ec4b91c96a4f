//! Writing a file's content out without waiting for the journal: the one system call of it, which Rust
//! counts as unsafe because it is only to be had through C.
#![allow(unsafe_code)]

use std::os::fd::{AsRawFd, BorrowedFd};

use rustix::io::Errno;

/// Begins to write out what the file holds.
pub(super) fn begin(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    sync_file_range(file, libc::SYNC_FILE_RANGE_WRITE)
}

/// Waits until what the file holds is written out.
pub(super) fn end(file: BorrowedFd<'_>) -> rustix::io::Result<()> {
    let before = libc::SYNC_FILE_RANGE_WAIT_BEFORE | libc::SYNC_FILE_RANGE_WRITE;
    sync_file_range(file, before | libc::SYNC_FILE_RANGE_WAIT_AFTER)
}

fn sync_file_range(file: BorrowedFd<'_>, flags: libc::c_uint) -> rustix::io::Result<()> {
    // SAFETY: it takes a descriptor, which is open as long as it is borrowed, and numbers.
    match unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, flags) } {
        0 => Ok(()),
        _ => Err(Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)),
    }
}
