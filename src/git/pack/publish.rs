//! A finished pack on its way to disk, and the hold that protects it until its ref has moved.

use super::listing::MAGIC;
use super::{Error, PackOptions, Result};
use crate::disk;
use crate::git::fault;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions, Permissions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// A durable pack that Git must not collect yet.
///
/// Held by its `.keep` file. To release or drop it removes that file and never the pack: the ref may
/// have moved, and a pack that nothing refers to is harmless and the next collection's to remove.
#[derive(Debug)]
#[must_use = "the objects may be collected as soon as the hold is dropped"]
pub struct HeldPack {
    pack: PathBuf,
    keep: Option<Keep>,
}

impl HeldPack {
    /// The path of the `.pack` file.
    pub fn path(&self) -> &Path {
        &self.pack
    }

    /// Lets Git collect the pack again. To be called when the ref has moved.
    ///
    /// # Errors
    ///
    /// Fails if the `.keep` file cannot be removed. The pack is whole then, and only not repacked
    /// before [`super::clean_leftovers`] has seen it.
    pub fn release(mut self) -> Result<()> {
        match self.keep.take() {
            Some(keep) => keep.remove(),
            None => Ok(()),
        }
    }
}

impl Drop for HeldPack {
    fn drop(&mut self) {
        if let Some(keep) = self.keep.take() {
            // What stays is found by `clean_leftovers`: the lock goes with the process.
            keep.remove().ok();
        }
    }
}

/// A `.keep` file of ours: created by us, and locked for as long as this lives.
#[derive(Debug)]
struct Keep {
    path: PathBuf,
    lock: File,
}

impl Keep {
    /// The keep of a new name; none if the name is taken, or a cleaner got hold of the file first.
    fn create(path: PathBuf, options: PackOptions) -> Result<Option<Keep>> {
        let lock = match create_new(&path, options) {
            Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                return Ok(None);
            }
            other => other?,
        };
        let keep = Keep { path, lock };
        // Between its creation and its lock the file looks like a dead writer's.
        let locked = flock(&keep.lock, FlockOperation::NonBlockingLockExclusive).is_ok();
        let linked = keep.lock.metadata().is_ok_and(|meta| meta.nlink() > 0);
        if !locked || !linked {
            keep.remove()?;
            return Ok(None);
        }
        let text = format!("{KEEP_PREFIX}{}\n", std::process::id());
        if let Err(error) = (&keep.lock).write_all(text.as_bytes()) {
            let error = Error::io("write", &keep.path)(error);
            keep.remove()?;
            return Err(error);
        }
        Ok(Some(keep))
    }

    fn remove(self) -> Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(Error::io("remove", &self.path)),
        }
    }
}

/// The start of what our `.keep` files say.
pub(super) const KEEP_PREFIX: &str = "git-vws pid ";

/// Files of a publish that is not complete; removed if it never is.
#[derive(Debug)]
struct Unfinished {
    stem: PathBuf,
    keep: Option<Keep>,
}

impl Unfinished {
    fn path(&self, suffix: &str) -> PathBuf {
        with_suffix(&self.stem, suffix)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Some(keep) = self.keep.take() else { return };
        // The keep goes last: its lock is what says that the rest has an owner.
        for suffix in [".idx.tmp", ".pack"] {
            fs::remove_file(self.path(suffix)).ok();
        }
        keep.remove().ok();
    }
}

/// `stem` with `suffix` appended to its last part.
pub(super) fn with_suffix(stem: &Path, suffix: &str) -> PathBuf {
    let mut name = stem.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

/// A pack that is written and not yet flushed, nor to be seen by anybody. To drop it removes it.
#[derive(Debug)]
#[must_use = "nobody sees the objects before the pack is completed"]
pub struct WrittenPack {
    files: Unfinished,
    dir: PathBuf,
    contents: Option<[OwnedFd; 2]>,
    fsync: bool,
}

impl WrittenPack {
    /// Hands out the files whose content has to be flushed before [`WrittenPack::complete`]: together
    /// with whatever else the caller has to flush. None where the pack need not be durable.
    pub fn take_contents(&mut self) -> impl Iterator<Item = OwnedFd> + use<> {
        let contents = self.contents.take().filter(|_| self.fsync);
        contents.into_iter().flatten()
    }

    /// Makes the objects visible. The caller has flushed their content, and flushes the folder of this path
    /// to make the files' names last.
    ///
    /// # Errors
    /// When the index cannot be renamed; nothing of the pack is left then.
    pub fn complete(mut self) -> Result<(HeldPack, Option<PathBuf>)> {
        fault::point("pack-indexed");
        let (tmp, idx) = (self.files.path(".idx.tmp"), self.files.path(".idx"));
        fs::rename(&tmp, &idx).map_err(Error::io("create", &idx))?;
        fault::point("pack-visible");
        // From here on the pack is visible, and stays.
        let held = HeldPack {
            pack: self.files.path(".pack"),
            keep: self.files.keep.take(),
        };
        Ok((held, Some(self.dir).filter(|_| self.fsync)))
    }

    /// Flushes the content, completes the pack and flushes its folder.
    pub(super) fn make_durable(mut self) -> Result<HeldPack> {
        let contents: Vec<OwnedFd> = self.take_contents().collect();
        disk::flush(&contents)
            .map_err(|error| Error::io("flush", &self.files.path(".pack"))(error.into()))?;
        let (held, folder) = self.complete()?;
        if let Some(folder) = folder {
            File::open(&folder)
                .and_then(|dir| dir.sync_all())
                .map_err(Error::io("flush", &folder))?;
        }
        Ok(held)
    }
}

/// Writes pack and index, in the order that the module's documentation gives reasons for.
pub(super) fn write(
    objects_dir: &Path,
    pack: &[u8],
    index: &[u8],
    trailer: &[u8],
    options: PackOptions,
) -> Result<WrittenPack> {
    let dir = objects_dir.join("pack");
    let files = reserve(&dir, trailer, options)?;
    fault::point("pack-kept");
    let pack_path = files.path(".pack");
    fault::leaving("pack-torn", || {
        let _ = fs::write(&pack_path, &pack[..pack.len() / 2]);
    });
    let pack_file = write_file(&pack_path, pack, options)?;
    fault::point("pack-written");
    let index_file = write_file(&files.path(".idx.tmp"), index, options)?;
    Ok(WrittenPack {
        files,
        dir,
        contents: Some([pack_file.into(), index_file.into()]),
        fsync: options.fsync,
    })
}

/// Takes a name that nothing else has by creating its `.keep`.
fn reserve(dir: &Path, trailer: &[u8], options: PackOptions) -> Result<Unfinished> {
    for _ in 0..16 {
        let stem = dir.join(name(trailer));
        let keep = match Keep::create(with_suffix(&stem, ".keep"), options) {
            Err(Error::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && !dir.exists() =>
            {
                fs::create_dir_all(dir).map_err(Error::io("create", dir))?;
                continue;
            }
            other => other?,
        };
        if keep.is_some() {
            return Ok(Unfinished { stem, keep });
        }
    }
    Err(Error::NoName(dir.to_owned()))
}

/// A new name for the pack with this checksum: magic, randomness, the checksum's end.
fn name(trailer: &[u8]) -> String {
    use std::fmt::Write;
    // The standard library's per-map keys are the randomness that needs no clock and no dependency.
    let random = RandomState::new().build_hasher().finish();
    let mut name = format!("pack-{MAGIC}{random:016x}");
    for byte in &trailer[12..] {
        write!(name, "{byte:02x}").expect("invariant: a string takes what is written");
    }
    name
}

fn create_new(path: &Path, options: PackOptions) -> Result<File> {
    let file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o444)
        .open(path)
        .map_err(Error::io("create", path))?;
    if let Some(mode) = options.mode {
        // The umask took its part of the mode above; a shared repository wants the exact bits.
        if let Err(error) = file.set_permissions(Permissions::from_mode(mode)) {
            fs::remove_file(path).ok();
            return Err(Error::io("set permissions of", path)(error));
        }
    }
    Ok(file)
}

fn write_file(path: &Path, bytes: &[u8], options: PackOptions) -> Result<File> {
    let mut file = create_new(path, options)?;
    file.write_all(bytes).map_err(Error::io("write", path))?;
    Ok(file)
}
