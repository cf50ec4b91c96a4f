//! Where the files of a folder went, as far as their exact renames tell: git's guess in a merge for files
//! whose name alone says nothing.

use std::collections::{BTreeMap, HashMap};

use bstr::{BStr, BString, ByteSlice};

/// For each folder the one that most of its files moved to.
#[derive(Default)]
pub(super) struct Folders(HashMap<BString, BString>);

impl Folders {
    /// Counts renames. A move counts for the folders above as well, as long as they kept their names.
    pub(super) fn of<'p>(renames: impl Iterator<Item = (&'p BStr, &'p BStr)>) -> Self {
        let mut counts: HashMap<&BStr, BTreeMap<&BStr, usize>> = HashMap::new();
        for (from, to) in renames {
            let (mut old, mut new) = (split(from), split(to));
            loop {
                *counts.entry(old.0).or_default().entry(new.0).or_default() += 1;
                if old.0.is_empty() || new.0.is_empty() {
                    break;
                }
                (old, new) = (split(old.0), split(new.0));
                if old.1 != new.1 {
                    break;
                }
            }
        }
        let most = |(old, news): (&BStr, BTreeMap<&BStr, usize>)| {
            let (new, _) = news.into_iter().max_by_key(|(_, count)| *count)?;
            Some((old.to_owned(), new.to_owned()))
        };
        Folders(counts.into_iter().filter_map(most).collect())
    }

    /// Where a file is if it went with its folder.
    pub(super) fn guess(&self, path: &BStr) -> Option<BString> {
        let (folder, name) = split(path);
        let mut place = self.0.get(folder)?.clone();
        if !place.is_empty() {
            place.push(b'/');
        }
        place.extend_from_slice(name);
        Some(place)
    }
}

/// The folder of a path, and the name in it.
fn split(path: &BStr) -> (&BStr, &BStr) {
    match path.rsplit_once_str("/") {
        Some((folder, name)) => (folder.as_bstr(), name.as_bstr()),
        None => (BStr::new(""), path),
    }
}
