//! The read of one file of an open directory, without a scan.

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, statat};

use super::import::{self, Wanted};
use super::{rewrite, rules};
use crate::disk;
use crate::git::index::{IndexFile, StatData};
use crate::git::tree::{self, Entry};
use crate::git::{Conversion, ObjectId, ObjectKind};
use crate::layout::{Directory, Result, parked};
use crate::model::{AgentId, RepoPath};
use crate::workspace::{Side, Store};

/// An open directory with what was laid out in it, for reads of single files.
pub struct Live {
    directory: Directory,
    /// `None` of an overlay: an import of that is no scan, either.
    manifest: Option<IndexFile>,
}

impl Live {
    /// Looks at a directory; its manifest is read once.
    ///
    /// # Errors
    /// A manifest that cannot be read.
    pub fn new(store: &Store<'_>, directory: Directory) -> Result<Self> {
        let manifest = match directory.backend == parked::OVERLAY {
            true => None,
            false => Some(directory.manifest(store.repository().format())?),
        };
        Ok(Live {
            directory,
            manifest,
        })
    }

    /// The revision that the directory was cut from.
    pub fn cut(&self) -> ObjectId {
        self.directory.cut.commit
    }

    /// The content of one tracked file as an import at this moment would store it; `None` for all
    /// that only an import can tell: a new file, a link, a file that is gone, special, too large
    /// or rewritten.
    ///
    /// # Errors
    /// An object that cannot be read.
    pub fn read(&self, store: &Store<'_>, path: &RepoPath) -> Result<Option<LiveFile>> {
        match &self.manifest {
            Some(manifest) => read_live(store, &self.directory, manifest, path),
            None => Ok(None),
        }
    }
}

/// A file as it lies in an open directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveFile {
    /// The mode that an import would record.
    pub mode: u32,
    /// The bytes that it would store.
    pub bytes: Vec<u8>,
}

/// The content of a file of a workspace as of now: links are followed inside the tree. While a
/// directory is open, a tracked file is read from it without a scan, anything else after an import.
///
/// # Errors
/// As [`Store::read`] and [`import`](crate::layout::import).
pub fn read(store: &Store<'_>, agent: &AgentId, side: Side, path: &RepoPath) -> Result<Vec<u8>> {
    if side == Side::Overlay
        && store.open_directory(agent)?.is_some()
        && let Ok(Some(directory)) = crate::layout::open(store, agent)
        && let Some(file) = Live::new(store, directory)?.read(store, path)?
    {
        return Ok(file.bytes);
    }
    let workspace = crate::layout::import(store, agent)?;
    Ok(store.read(&workspace, side, path)?)
}

fn read_live(
    store: &Store<'_>,
    directory: &Directory,
    manifest: &IndexFile,
    path: &RepoPath,
) -> Result<Option<LiveFile>> {
    let repository = store.repository();
    let Some(laid_out) = manifest.find(path.as_bstr()) else {
        return Ok(None);
    };
    let mode = tree::canonical_mode(laid_out.mode);
    let known = Entry {
        mode,
        id: laid_out.id,
    };
    if !known.is_file() || directory.cut.meta.read_only || in_nested(directory, path.as_bstr()) {
        return Ok(None);
    }
    let Ok((handle, name)) = disk::parent(&directory.path, path.as_bstr()) else {
        return Ok(None);
    };
    let Ok(stat) = statat(&handle, name.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) else {
        return Ok(None);
    };
    let executable_bit = repository.config()?.bool("core.filemode")?.unwrap_or(true);
    let mode = match disk::mode_of(&stat, true) {
        Some(mode) if executable_bit => mode,
        _ => known.mode,
    };
    let stat = StatData::from(&stat);
    let racy = stat.mtime >= manifest.written() || stat.ctime >= manifest.written();
    let blob = |id| repository.objects()?.read(id, ObjectKind::Blob);
    if laid_out.stat.matches(&stat) && !racy {
        let bytes = blob(known.id)?;
        return Ok(Some(LiveFile { mode, bytes }));
    }
    let wanted = Wanted {
        path: path.as_bstr().to_owned(),
        known: Some(known),
        conversion: Conversion::Never,
    };
    if !rewrite::is_plain(repository, directory, &wanted)? {
        return Ok(None);
    }
    let bytes = import::bytes(&handle, rules(repository)?, &wanted)?;
    Ok(bytes.map(|bytes| LiveFile { mode, bytes }))
}

/// Whether a folder on the way has become a repository of its own, which no import looks into.
fn in_nested(directory: &Directory, path: &BStr) -> bool {
    path.find_iter("/").any(|slash| {
        let mut git = path[..slash].to_owned();
        git.extend_from_slice(b"/.git");
        !matches!(
            disk::stat(&directory.path, git.as_bstr()),
            Err(disk::Unread::Gone)
        )
    })
}
