//! Small file systems of a given kind on loop devices, for root on a machine that has them.
#![allow(dead_code, unreachable_pub, clippy::print_stdout)]

use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted file system of its own; unmounted when dropped.
pub struct Volume {
    folder: tempfile::TempDir,
    place: PathBuf,
}

impl Volume {
    /// Makes one of this kind: `xfs`, `btrfs` or `ext4`. Says so where that cannot be done; panics then
    /// if `GIT_VWS_TEST_EXPECT` names `reflink`.
    pub fn new(kind: &str) -> Option<Volume> {
        match Volume::try_new(kind) {
            Ok(volume) => Some(volume),
            Err(why) => {
                assert!(
                    !std::env::var("GIT_VWS_TEST_EXPECT")
                        .is_ok_and(|list| list.contains("reflink")),
                    "{kind} on a loop device was expected to work: {why}"
                );
                println!("skipped: no {kind} on a loop device: {why}");
                None
            }
        }
    }

    /// An ext4 whose top folder takes names for one that differ in case alone; or why there is none.
    pub fn folding() -> Result<Volume, String> {
        let options = ["-q", "-F", "-O", "casefold", "-E", "encoding=utf8"];
        let volume = Self::with("ext4", &options)?;
        let top = volume.path().join("folds");
        std::fs::create_dir(&top).map_err(|e| e.to_string())?;
        run(Command::new("chattr").arg("+F").arg(&top))?;
        Ok(volume)
    }

    /// An ext4 without a journal; or why there is none.
    pub fn unjournaled() -> Result<Volume, String> {
        Self::with("ext4", &["-q", "-F", "-O", "^has_journal"])
    }

    fn try_new(kind: &str) -> Result<Volume, String> {
        let options: &[&str] = match kind {
            "ext4" => &["-q", "-F"],
            "btrfs" => &["-q", "-K"],
            _ => &["-q", "-K", "-m", "reflink=1"],
        };
        Self::with(kind, options)
    }

    fn with(kind: &str, options: &[&str]) -> Result<Volume, String> {
        if !rustix::process::geteuid().is_root() {
            return Err("only root can mount".to_owned());
        }
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let image = folder.path().join("image");
        let place = folder.path().join("mount");
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(folder.path(), open).map_err(|e| e.to_string())?;
        std::fs::create_dir(&place).map_err(|e| e.to_string())?;
        let file = std::fs::File::create(&image).map_err(|e| e.to_string())?;
        // Sparse; the smallest that all of them take.
        file.set_len(400 << 20).map_err(|e| e.to_string())?;
        let mkfs = format!("mkfs.{kind}");
        run(Command::new(mkfs).args(options).arg(&image))?;
        run(Command::new("mount")
            .args(["-o", "loop"])
            .arg(&image)
            .arg(&place))?;
        Ok(Volume { folder, place })
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.place
    }
}

fn run(command: &mut Command) -> Result<(), String> {
    let done = command.output().map_err(|e| e.to_string())?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).into_owned()),
    }
}

impl Drop for Volume {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.place).output();
    }
}
