//! The read of one file of an open directory, without a scan.

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, statat};

use super::import::{self, Wanted};
use super::{rewrite, rules};
use crate::disk;
use crate::git::index::StatData;
use crate::git::tree::{self, Entry};
use crate::git::{Conversion, ObjectKind};
use crate::layout::{Directory, Result};
use crate::model::RepoPath;
use crate::workspace::Store;

/// The content of one tracked file as an import at this moment would store it; `None` for all that
/// only an import can tell: a new file, a link, a file that is gone, special, too large or rewritten.
///
/// # Errors
/// A manifest or an object that cannot be read.
pub fn read_live(
    store: &Store<'_>,
    directory: &Directory,
    path: &RepoPath,
) -> Result<Option<Vec<u8>>> {
    let repository = store.repository();
    let manifest = directory.manifest(repository.format())?;
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
    let stat = StatData::from(&stat);
    let racy = stat.mtime >= manifest.written() || stat.ctime >= manifest.written();
    let blob = |id| repository.objects()?.read(id, ObjectKind::Blob);
    if laid_out.stat.matches(&stat) && !racy {
        return Ok(Some(blob(known.id)?));
    }
    let wanted = Wanted {
        path: path.as_bstr().to_owned(),
        known: Some(known),
        conversion: Conversion::Never,
    };
    if !rewrite::is_plain(repository, directory, &wanted)? {
        return Ok(None);
    }
    import::bytes(&handle, rules(repository)?, &wanted)
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
