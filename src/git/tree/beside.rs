//! The listing of a tree beside that of one that is near: only what differs is read.

use std::collections::HashMap;
use std::ops::Range;

use bstr::{BStr, BString, ByteSlice};

use super::walk::{Directory, Listing, Step, walk};
use super::{Error, TreeSource};
use crate::git::ObjectId;

/// As [`listing`](super::listing), with the listing of another tree at hand: a folder that is the same
/// tree at the same path there is taken over, and not opened.
///
/// # Errors
///
/// As for [`listing`](super::listing).
pub fn listing_beside<S: TreeSource + ?Sized>(
    source: &S,
    root: ObjectId,
    near: Listing,
) -> Result<Listing, Error> {
    if near.directories.first().is_some_and(|top| top.id == root) {
        return Ok(near);
    }
    let known = extents(&near);
    let mut made = Listing {
        files: Vec::with_capacity(near.files.len()),
        directories: vec![empty(BStr::new(""), root)],
    };
    // The folders from the root to the one at hand.
    let mut way = vec![0];
    walk(source, root, BStr::new(""), |path, entry| {
        let is_above = |folder: &usize| is_in(path, made.directories[*folder].path.as_bstr());
        while way.len() > 1 && !way.last().is_some_and(is_above) {
            way.pop();
        }
        let here = way[way.len() - 1];
        if !entry.is_tree() {
            made.files.push((path.to_owned(), entry));
            for above in &way {
                made.directories[*above].entries += 1;
            }
            return Step::Continue;
        }
        made.directories[here].folders += 1;
        let same = known
            .get(path)
            .filter(|(folders, _)| near.directories[folders.start].id == entry.id);
        if let Some((folders, files)) = same {
            made.files.extend_from_slice(&near.files[files.clone()]);
            let folders = &near.directories[folders.clone()];
            made.directories.extend_from_slice(folders);
            for above in &way {
                made.directories[*above].entries += files.len();
            }
            return Step::Prune;
        }
        way.push(made.directories.len());
        made.directories.push(empty(path, entry.id));
        Step::Continue
    })?;
    Ok(made)
}

fn empty(path: &BStr, id: ObjectId) -> Directory {
    Directory {
        path: path.to_owned(),
        id,
        entries: 0,
        folders: 0,
    }
}

fn is_in(path: &BStr, folder: &BStr) -> bool {
    let rest = path.strip_prefix(folder.as_bytes());
    rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// For each folder, which of the folders and which of the files are it and what is below it.
fn extents(listing: &Listing) -> HashMap<&BStr, (Range<usize>, Range<usize>)> {
    let mut known = HashMap::with_capacity(listing.directories.len());
    for (at, directory) in listing.directories.iter().enumerate().rev() {
        let path = directory.path.as_bstr();
        // The folders below follow at once, and their ends are known already.
        let mut end = at + 1;
        for _ in 0..directory.folders {
            let next = listing.directories[end].path.as_bstr();
            let (folders, _): &(Range<usize>, Range<usize>) = &known[next];
            end = folders.end;
        }
        // The slash counts, as the last byte of the folder's name; the root has none.
        let slash: &[u8] = if path.is_empty() { b"" } else { b"/" };
        let before = |file: &BString| file.iter().lt(path.iter().chain(slash));
        let first = listing.files.partition_point(|(file, _)| before(file));
        known.insert(path, (at..end, first..first + directory.entries));
    }
    known
}
