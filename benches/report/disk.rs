//! What files really take: allocated blocks, or the free space of a volume that is ours alone.

use std::collections::HashSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::Try;

/// How bytes are counted here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Meter {
    /// What the volume says is in use, after a flush: sees shared extents and the file system's own needs.
    Volume,
    /// The blocks of each file, those of a hard link once.
    Blocks,
}

impl Meter {
    /// The volume where the directory is the root of one (nobody else writes there), else blocks.
    pub fn of(dir: &Path) -> Try<Meter> {
        let device = |path: &Path| look(path).map(|facts| facts.dev());
        let parent = dir
            .canonicalize()
            .map_err(|e| format!("can't resolve {dir:?}: {e}"))?;
        let is_root = match parent.parent() {
            Some(above) => device(above)? != device(dir)?,
            None => false,
        };
        Ok(if is_root {
            Meter::Volume
        } else {
            Meter::Blocks
        })
    }

    /// The bytes that these take, all on the volume of the first.
    pub fn used(self, places: &[&Path]) -> Try<u64> {
        match self {
            Meter::Volume => {
                let Some(place) = places.first() else {
                    return Ok(0);
                };
                flush(place)?;
                let facts = rustix::fs::statvfs(*place).map_err(|e| format!("statvfs: {e}"))?;
                Ok((facts.f_blocks - facts.f_bfree) * facts.f_frsize)
            }
            Meter::Blocks => {
                let mut seen = HashSet::new();
                let places = places.iter().filter(|place| place.exists());
                places
                    .map(|place| blocks(place, look(place)?.dev(), &mut seen))
                    .sum()
            }
        }
    }

    /// For the report.
    pub fn words(self) -> &'static str {
        match self {
            Meter::Volume => "what the volume has less of, after a flush",
            Meter::Blocks => "allocated blocks of the files",
        }
    }
}

/// Writes out all that is dirty on the volume of a path, so that no command pays for the one before.
pub fn flush(place: &Path) -> Try<()> {
    let file = fs::File::open(place).map_err(|e| format!("can't open {place:?}: {e}"))?;
    #[cfg(target_os = "linux")]
    return rustix::fs::syncfs(file).map_err(|e| format!("syncfs: {e}"));
    #[cfg(not(target_os = "linux"))]
    file.sync_all().map_err(|e| format!("fsync: {e}"))
}

fn look(path: &Path) -> Try<Metadata> {
    fs::symlink_metadata(path).map_err(|e| format!("can't look at {path:?}: {e}"))
}

/// Does not go into other volumes: a mount that an agent's directory is costs nothing itself.
fn blocks(path: &Path, device: u64, seen: &mut HashSet<u64>) -> Try<u64> {
    let Ok(facts) = fs::symlink_metadata(path) else {
        // It went meanwhile, a lock file say.
        return Ok(0);
    };
    if facts.dev() != device || (facts.nlink() > 1 && facts.is_file() && !seen.insert(facts.ino()))
    {
        return Ok(0);
    }
    let mut sum = facts.blocks() * 512;
    if facts.is_dir() {
        for entry in fs::read_dir(path).map_err(|e| format!("can't list {path:?}: {e}"))? {
            let entry = entry.map_err(|e| format!("can't list {path:?}: {e}"))?;
            sum += blocks(&entry.path(), device, seen)?;
        }
    }
    Ok(sum)
}

/// How many files and folders lie below.
pub fn entries(path: &Path) -> usize {
    let Ok(below) = fs::read_dir(path) else {
        return 0;
    };
    let count = |entry: fs::DirEntry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => 1 + entries(&entry.path()),
        _ => 1,
    };
    below.flatten().map(count).sum()
}
