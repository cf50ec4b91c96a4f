//! Refs of the files back end, read as git reads them: a ref's own file, or else its line in the packed list.
//!
//! libgit2 looks at each file twice, at the packed list for each ref that has no file, and lists by reading
//! everything twice over. Here a ref costs the reading of its file, and one that is absent two looks. In this
//! order no ref is missed that `pack-refs` moves to the packed list meanwhile: its line is there before its
//! file goes. What is not plainly an id (a symbolic ref, damage) is left to libgit2.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use bstr::{BStr, ByteSlice};
use git2::ErrorCode;

use super::{Refs, failed};
use crate::git::loose::walk;
use crate::git::{Error, ObjectFormat, ObjectId, RefBackend, Result, hex_len};

/// One state of the list of packed refs, by the stat data of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedStamp(Option<(u64, u64, i64, i64)>);

impl PackedStamp {
    /// `None` is a list that is not there.
    fn of(meta: Option<&fs::Metadata>) -> Self {
        PackedStamp(meta.map(|m| (m.ino(), m.size(), m.mtime(), m.mtime_nsec())))
    }
}

/// What is found of a ref.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) enum Seen {
    /// It holds this id.
    Id(ObjectId),
    /// There is no such ref.
    Absent,
    /// There is something that only libgit2 can tell.
    Odd,
}

/// The packed refs as they were read, and the state of their file then.
#[derive(Debug, Default)]
pub(in crate::git) struct PackedList(Option<(PackedStamp, Rc<[u8]>)>);

impl Refs<'_> {
    /// The id that a ref holds, if there is such a ref.
    ///
    /// # Errors
    /// [`Error::Ref`] when the ref is there but damaged.
    pub fn find(&self, name: &str) -> Result<Option<ObjectId>> {
        if self.repository.ref_backend() == RefBackend::Git {
            return Ok(self.listed_by_git(name)?.remove(name));
        }
        match self.look(name) {
            Seen::Id(id) => return Ok(Some(id)),
            Seen::Absent => return Ok(None),
            Seen::Odd => {}
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

    /// Whether a ref that was found absent is absent still: it is no loose ref, and the packed ones
    /// are those of `then`. A look at two files' stat data; false where it cannot tell.
    pub fn still_absent(&self, name: &str, then: &PackedStamp) -> bool {
        self.packed_stamp().as_ref() == Some(then)
            && fs::symlink_metadata(self.path_of(name)).is_err()
    }

    /// Which list of packed refs there is now; `None` where refs are not files.
    pub fn packed_stamp(&self) -> Option<PackedStamp> {
        if self.repository.ref_backend() != RefBackend::InProcess {
            return None;
        }
        let meta = fs::metadata(self.path_of("packed-refs")).ok();
        Some(PackedStamp::of(meta.as_ref()))
    }

    /// All refs below `prefix` (which ends in a slash), by name.
    ///
    /// # Errors
    /// [`Error::Io`] or [`Error::Git`] when the store cannot be read. A single damaged ref is
    /// left out, as git itself leaves it out of a listing.
    pub fn list(&self, prefix: &str) -> Result<BTreeMap<String, ObjectId>> {
        match self.repository.ref_backend() {
            RefBackend::Git => self.listed_by_git(prefix),
            RefBackend::InProcess => self.listed(prefix),
        }
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
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(Error::io("list", &folder, error)),
        }
        // After the files: who packs a ref writes the list before the file goes.
        for (_, name) in lines_below(&self.packed()?, prefix, self.digits()) {
            found.extend(next(&name[prefix.len()..]));
        }
        Ok(found)
    }
}

impl Refs<'_> {
    /// What a ref holds, as far as it is plain.
    pub(in crate::git) fn look(&self, name: &str) -> Seen {
        if !is_shared(name) {
            return Seen::Odd;
        }
        match self.own_file(name) {
            Seen::Absent => match self.packed() {
                Ok(packed) => in_packed(&packed, name, self.digits()),
                Err(_) => Seen::Odd,
            },
            seen => seen,
        }
    }

    /// Whether a ref has a line in the packed list.
    pub(in crate::git) fn is_packed(&self, name: &str) -> Result<bool> {
        Ok(in_packed(&self.packed()?, name, self.digits()) != Seen::Absent)
    }

    /// All refs below a prefix.
    pub(super) fn listed(&self, prefix: &str) -> Result<BTreeMap<String, ObjectId>> {
        let mut found = BTreeMap::new();
        let below = prefix.trim_end_matches('/');
        walk(self.repository.common_dir(), below, &mut |name, _| {
            let last = &name[name.rfind_byte(b'/').map_or(0, |slash| slash + 1)..];
            if last.starts_with(b".") || last.ends_with(b".lock") {
                return;
            }
            if let Ok(name) = name.to_str() {
                let id = match self.own_file(name) {
                    Seen::Id(id) => Some(id),
                    // Gone since it was listed: perhaps to the packed list.
                    Seen::Absent => return,
                    Seen::Odd => None,
                };
                found.insert(name.to_owned(), id);
            }
        })?;
        let digits = self.digits();
        for (id, name) in lines_below(&self.packed()?, prefix, digits) {
            if let Ok(name) = name.to_str()
                && !found.contains_key(name)
            {
                found.insert(name.to_owned(), parsed(id));
            }
        }
        let plain = |(name, id): (String, Option<ObjectId>)| match id {
            Some(id) => Some((name, id)),
            None => {
                let odd = self.repository.raw().find_reference(&name).ok()?;
                Some((name, odd.target()?))
            }
        };
        Ok(found.into_iter().filter_map(plain).collect())
    }

    /// What the file of a ref holds.
    fn own_file(&self, name: &str) -> Seen {
        // One byte more than the longest form, so that what is longer is not taken for it.
        let mut text = [0; 66];
        let read = File::open(self.path_of(name)).and_then(|mut file| file.read(&mut text));
        let length = match read {
            Ok(length) => length,
            Err(error) => {
                return match error.kind() {
                    // The folder of other refs is none.
                    ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::IsADirectory => {
                        Seen::Absent
                    }
                    _ => Seen::Odd,
                };
            }
        };
        let id = text[..length]
            .strip_suffix(b"\n")
            .filter(|line| line.len() == self.digits())
            .and_then(parsed);
        id.map_or(Seen::Odd, Seen::Id)
    }

    /// The packed list, read again where its file is another one now.
    fn packed(&self) -> Result<Rc<[u8]>> {
        let path = self.path_of("packed-refs");
        let failed = |error| Error::io("read", &path, error);
        let absent = || (PackedStamp::of(None), Rc::from([]));
        let mut known = self.repository.packed_refs.borrow_mut();
        let now = match fs::metadata(&path) {
            Ok(meta) => PackedStamp::of(Some(&meta)),
            Err(error) if error.kind() == ErrorKind::NotFound => PackedStamp::of(None),
            Err(error) => return Err(failed(error)),
        };
        if let Some((then, text)) = &known.0
            && *then == now
        {
            return Ok(text.clone());
        }
        let read = match File::open(&path) {
            Ok(mut file) => {
                let meta = file.metadata().map_err(failed)?;
                let mut text = Vec::new();
                file.read_to_end(&mut text).map_err(failed)?;
                (PackedStamp::of(Some(&meta)), Rc::from(text))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => absent(),
            Err(error) => return Err(failed(error)),
        };
        Ok(known.0.insert(read).1.clone())
    }

    fn digits(&self) -> usize {
        hex_len(self.repository.format())
    }
}

/// Whether a ref is one and the same in all worktrees, and so a file in the folder they share.
fn is_shared(name: &str) -> bool {
    let own = ["refs/bisect/", "refs/worktree/", "refs/rewritten/"];
    name.starts_with("refs/") && !own.iter().any(|prefix| name.starts_with(prefix))
}

/// An id in hex, in either hash.
fn parsed(hex: &[u8]) -> Option<ObjectId> {
    let format = match hex.len() {
        64 => ObjectFormat::Sha256,
        _ => ObjectFormat::Sha1,
    };
    ObjectId::from_str_ext(hex.to_str().ok()?, format).ok()
}

/// What the packed list says of a ref.
fn in_packed(packed: &[u8], name: &str, digits: usize) -> Seen {
    let mut lines = lines_below(packed, name, digits);
    match lines.find(|(_, found)| *found == name) {
        None => Seen::Absent,
        Some((id, _)) => parsed(id).map_or(Seen::Odd, Seen::Id),
    }
}

/// The lines of the packed list that say `<id> <name>` of a name with this beginning.
fn lines_below<'p>(
    packed: &'p [u8],
    prefix: &str,
    digits: usize,
) -> impl Iterator<Item = (&'p [u8], &'p BStr)> {
    let wanted = format!(" {prefix}").into_bytes();
    let header = packed.lines().next().unwrap_or_default();
    let sorted = header.starts_with(b"#") && header.contains_str(" sorted");
    let mut from = match sorted {
        true => first_from(packed, prefix.as_bytes(), digits),
        false => 0,
    };
    std::iter::from_fn(move || {
        loop {
            let space = match sorted {
                // All of them follow each other.
                true => {
                    let line = from + skipped(&packed[from..]);
                    let at = line + digits;
                    packed.get(at..)?.starts_with(&wanted).then_some(at)?
                }
                false => from + packed[from..].find(&wanted)?,
            };
            let end = space + packed[space..].find_byte(b'\n')?;
            from = end + 1;
            let start = packed[..space].rfind_byte(b'\n').map_or(0, |at| at + 1);
            // Elsewhere in a line it is no name.
            if space - start == digits {
                return Some((&packed[start..space], packed[space + 1..end].as_bstr()));
            }
        }
    })
}

/// The length of the lines that a text begins with and that name no ref: what a tag peels to, the header.
fn skipped(text: &[u8]) -> usize {
    let mut length = 0;
    while matches!(text.get(length), Some(b'^' | b'#')) {
        let rest = &text[length..];
        length += rest.find_byte(b'\n').map_or(rest.len(), |at| at + 1);
    }
    length
}

/// Where the first line of a sorted list begins whose name is not before this one.
fn first_from(packed: &[u8], name: &[u8], digits: usize) -> usize {
    let (mut low, mut high) = (0, packed.len());
    while low < high {
        let middle = low + (high - low) / 2;
        let start = packed[..middle].rfind_byte(b'\n').map_or(0, |at| at + 1);
        // One that names a ref, from there on.
        let line = start + skipped(&packed[start..]);
        let end = line
            + packed[line..]
                .find_byte(b'\n')
                .unwrap_or(packed.len() - line);
        let found = packed.get(line + digits + 1..end);
        match found {
            Some(found) if line < high && found < name => low = (end + 1).min(high),
            _ => high = start,
        }
    }
    low
}

#[cfg(test)]
mod tests;
