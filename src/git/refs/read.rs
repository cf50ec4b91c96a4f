//! Refs read and listed.
//!
//! A ref that all worktrees share is looked up where git looks first, in its own file. That file, or the
//! absence of both it and a list of packed refs, answers by itself; everything else is libgit2's to read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read};

use bstr::ByteSlice;
use git2::ErrorCode;

use super::{Refs, failed};
use crate::git::{Error, ObjectId, RefBackend, Result, hex_len};

/// One state of the list of packed refs, by the stat data of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedStamp(Option<(u64, u64, i64, i64)>);

/// What the files of a ref say at a glance.
pub(in crate::git) enum Glance {
    /// It holds this.
    Id(ObjectId),
    /// There is no such ref.
    Absent,
    /// More than a glance is needed.
    Unclear,
}

impl Refs<'_> {
    /// The id that a ref holds, if there is such a ref.
    ///
    /// # Errors
    /// [`Error::Ref`] when the ref is there but damaged.
    pub fn find(&self, name: &str) -> Result<Option<ObjectId>> {
        if self.repository.ref_backend() == RefBackend::Git {
            return Ok(self.listed_by_git(name)?.remove(name));
        }
        match self.glance(name) {
            Glance::Id(id) => return Ok(Some(id)),
            Glance::Absent => return Ok(None),
            Glance::Unclear => {}
        }
        // While `pack-refs` moves a ref from its file to the packed list, libgit2 may see it in
        // neither: absence is believed only when it is seen twice.
        for _ in 0..2 {
            match self.repository.raw().refname_to_id(name) {
                Ok(id) => return Ok(Some(id)),
                Err(e) if e.code() == ErrorCode::NotFound => std::thread::yield_now(),
                Err(e) => return Err(failed("read", name, &e)),
            }
        }
        Ok(None)
    }

    /// Looks at the files of a ref and no further.
    ///
    /// Who packs a ref writes the list before the file goes, so that the list, looked at after the file was
    /// found missing, has the ref; where there is no list, there is no ref.
    pub(in crate::git) fn glance(&self, name: &str) -> Glance {
        let shared = ["refs/heads/", "refs/relo"];
        if !shared.iter().any(|prefix| name.starts_with(prefix)) {
            return Glance::Unclear;
        }
        // One byte more than the longest form, so that what is longer is not taken for it.
        let mut text = [0; 66];
        let read = fs::File::open(self.path_of(name)).and_then(|mut file| file.read(&mut text));
        match read {
            Ok(length) => match self.plain_id(&text[..length]) {
                Some(id) => Glance::Id(id),
                None => Glance::Unclear,
            },
            Err(error) if means_none(&error) && !self.has_packed() => Glance::Absent,
            Err(_) => Glance::Unclear,
        }
    }

    /// The id that a ref file's content plainly is.
    fn plain_id(&self, text: &[u8]) -> Option<ObjectId> {
        let line = text.strip_suffix(b"\n")?;
        let format = self.repository.format();
        if line.len() != hex_len(format) {
            return None;
        }
        ObjectId::from_str_ext(std::str::from_utf8(line).ok()?, format).ok()
    }

    /// Whether there is a list of packed refs.
    pub(in crate::git) fn has_packed(&self) -> bool {
        !matches!(fs::metadata(self.path_of("packed-refs")),
            Err(error) if error.kind() == io::ErrorKind::NotFound)
    }

    /// Whether a ref that was found absent is absent still: it is no loose ref, and the packed ones
    /// are those of `then`. A look at two files' stat data; false where it cannot tell.
    pub fn still_absent(&self, name: &str, then: &PackedStamp) -> bool {
        self.packed_stamp().as_ref() == Some(then)
            && fs::symlink_metadata(self.path_of(name)).is_err()
    }

    /// Which list of packed refs there is now; `None` where refs are not files.
    pub fn packed_stamp(&self) -> Option<PackedStamp> {
        use std::os::unix::fs::MetadataExt;
        if self.repository.ref_backend() != RefBackend::InProcess {
            return None;
        }
        let meta = fs::metadata(self.path_of("packed-refs")).ok();
        Some(PackedStamp(
            meta.map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec())),
        ))
    }

    /// All refs below `prefix` (which ends in a slash), by name.
    ///
    /// # Errors
    /// [`Error::Library`] or [`Error::Git`] when the store cannot be read. A single damaged ref is
    /// left out, as git itself leaves it out of a listing.
    pub fn list(&self, prefix: &str) -> Result<BTreeMap<String, ObjectId>> {
        if self.repository.ref_backend() == RefBackend::Git {
            return self.listed_by_git(prefix);
        }
        let mut found = BTreeMap::new();
        if self.is_bare_of(prefix) {
            return Ok(found);
        }
        for reference in self
            .repository
            .raw()
            .references_glob(&format!("{prefix}*"))?
        {
            let reference = reference?;
            if let (Ok(name), Some(id)) = (reference.name(), reference.target()) {
                found.insert(name.to_owned(), id);
            }
        }
        Ok(found)
    }

    /// Whether there is plainly no ref below `prefix`: no folder, and no list of packed refs.
    pub(in crate::git) fn is_bare_of(&self, prefix: &str) -> bool {
        let folder = fs::metadata(self.path_of(prefix.trim_end_matches('/')));
        folder.is_err_and(|error| means_none(&error)) && !self.has_packed()
    }

    /// The names next below `prefix` (which ends in a slash), of refs and of folders of refs. A folder whose
    /// refs are all gone may be among them. No ref is read, so that it costs little where there are many.
    ///
    /// # Errors
    /// As [`Refs::list`].
    pub fn names_in(&self, prefix: &str) -> Result<BTreeSet<String>> {
        let next = |name: &[u8]| {
            let first = name.split(|byte| *byte == b'/').next()?;
            String::from_utf8(first.to_owned()).ok()
        };
        if self.repository.ref_backend() == RefBackend::Git {
            let listed = self.listed_by_git(prefix)?;
            let names = listed.keys().filter_map(|name| name.strip_prefix(prefix));
            return Ok(names.filter_map(|name| next(name.as_bytes())).collect());
        }
        let mut found = BTreeSet::new();
        let folder = self.path_of(prefix.trim_end_matches('/'));
        match fs::read_dir(&folder) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(|e| Error::io("list", &folder, e))?;
                    found.extend(entry.file_name().into_string().ok());
                }
            }
            Err(error) if means_none(&error) => {}
            Err(error) => return Err(Error::io("list", &folder, error)),
        }
        // After the files: who packs a ref writes the list before the file goes.
        let list = self.path_of("packed-refs");
        match fs::read(&list) {
            Ok(text) => {
                let start = format!(" {prefix}");
                for at in text.find_iter(&start) {
                    let rest = &text[at + start.len()..];
                    found.extend(rest.lines().next().and_then(next));
                }
            }
            Err(error) if means_none(&error) => {}
            Err(error) => return Err(Error::io("read", &list, error)),
        }
        Ok(found)
    }
}

/// Whether a path that failed like this stands for no ref: it is not there, or it is a folder.
fn means_none(error: &io::Error) -> bool {
    use io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

#[cfg(test)]
mod tests;
