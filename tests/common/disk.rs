//! A small disk that can be filled up.
#![allow(dead_code, unreachable_pub)]

use std::io::Write;
use std::path::{Path, PathBuf};

/// A small file system of its own; unmounted when dropped.
pub struct Disk(tempfile::TempDir);

impl Disk {
    pub fn mount(kib: u32) -> Option<Disk> {
        let folder = tempfile::tempdir().unwrap();
        let size = format!("size={kib}k");
        let mounted = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output()
            .is_ok_and(|out| out.status.success());
        mounted.then_some(Disk(folder))
    }

    /// Where it is mounted.
    pub fn path(&self) -> PathBuf {
        self.0.path().canonicalize().unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = std::process::Command::new("umount")
            .arg("-l")
            .arg(self.0.path())
            .output();
    }
}

/// Fills a file system until only `spare` bytes are left.
pub fn fill(filler: &Path, spare: u64) {
    let mut file = std::fs::File::create(filler).unwrap();
    while file.write_all(&[b'x'; 4096]).is_ok() {}
    let size = file.metadata().unwrap().len();
    file.set_len((size / 4096 * 4096).saturating_sub(spare))
        .unwrap();
}
