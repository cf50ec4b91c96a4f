//! The pack while it grows: a buffer of entries, each object once, that can be read back.

use super::entry::{crc32, inflate};
use super::publish::{HeldPack, WrittenPack, write};
use super::{PackEntry, PackOptions, Result, idx};
use crate::git::checksum::checksum;
use crate::git::{ObjectFormat, ObjectId, ObjectKind};
use std::collections::HashMap;
use std::path::Path;

/// A pack in memory, for the objects of one publish.
///
/// Nothing is on disk before [`PackWriter::publish`]; to drop a writer forgets its objects.
#[derive(Debug)]
pub struct PackWriter {
    format: ObjectFormat,
    pack: Vec<u8>,
    entries: Vec<idx::Entry>,
    by_id: HashMap<ObjectId, usize>,
}

/// `PACK`, version 2, and room for the number of objects.
const HEADER_LEN: usize = 12;

impl PackWriter {
    /// An empty pack for a repository of this hash.
    pub fn new(format: ObjectFormat) -> PackWriter {
        let mut pack = Vec::with_capacity(4096);
        pack.extend_from_slice(b"PACK\0\0\0\x02\0\0\0\0");
        debug_assert_eq!(pack.len(), HEADER_LEN);
        PackWriter {
            format,
            pack,
            entries: Vec::new(),
            by_id: HashMap::new(),
        }
    }

    /// The hash of the repository this pack is for.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Appends an entry unless its object is in the pack already; returns the object's name.
    ///
    /// # Panics
    ///
    /// If the entry was made for another hash than this pack.
    pub fn push(&mut self, entry: PackEntry) -> ObjectId {
        self.push_raw(entry.id, &entry.body, entry.crc);
        entry.id
    }

    /// Hashes, deflates and appends an object.
    ///
    /// # Errors
    ///
    /// As [`PackEntry::new`].
    pub fn add(&mut self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId> {
        let entry = PackEntry::new(self.format, kind, data)?;
        Ok(self.push(entry))
    }

    /// Appends the bytes of an entry as they stand.
    pub(super) fn push_raw(&mut self, id: ObjectId, body: &[u8], crc: u32) {
        assert_eq!(
            id.object_format(),
            self.format,
            "invariant: one pack, one hash"
        );
        debug_assert_eq!(crc, crc32(body));
        if self.by_id.contains_key(&id) {
            return;
        }
        self.by_id.insert(id, self.entries.len());
        self.entries.push(idx::Entry {
            id,
            offset: self.pack.len() as u64,
            crc,
        });
        self.pack.extend_from_slice(body);
    }

    /// Whether this pack holds the object.
    pub fn contains(&self, id: ObjectId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// Kind and data of an object of this pack; none if it is not here.
    pub fn read(&self, id: ObjectId) -> Option<(ObjectKind, Vec<u8>)> {
        let at = *self.by_id.get(&id)?;
        let start = self.entries[at].offset as usize;
        let end = self
            .entries
            .get(at + 1)
            .map_or(self.pack.len(), |next| next.offset as usize);
        Some(inflate(&self.pack[start..end]).expect("invariant: the pack holds sound entries"))
    }

    /// The number of objects.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The size of the pack so far, in bytes.
    pub fn bytes(&self) -> usize {
        self.pack.len()
    }

    /// Writes the pack and its index below `objects_dir` and makes them durable.
    ///
    /// The answer holds the pack against collection until the ref that needs it has moved. An empty
    /// writer writes nothing and answers none.
    ///
    /// # Errors
    ///
    /// Fails with the file that could not be written; nothing of this pack is left then, or, if only
    /// the last flush of the directory failed, a complete pack that nothing refers to.
    pub fn publish(self, objects_dir: &Path, options: PackOptions) -> Result<Option<HeldPack>> {
        let written = self.write(objects_dir, options)?;
        written.map(WrittenPack::make_durable).transpose()
    }

    /// As [`PackWriter::publish`], but leaves it to the caller when to flush.
    ///
    /// # Errors
    ///
    /// Fails with the file that could not be written; nothing of this pack is left then.
    pub fn write(
        mut self,
        objects_dir: &Path,
        options: PackOptions,
    ) -> Result<Option<WrittenPack>> {
        if self.is_empty() {
            return Ok(None);
        }
        let count = u32::try_from(self.entries.len())
            .expect("invariant: fewer objects than the format can count");
        self.pack[8..HEADER_LEN].copy_from_slice(&count.to_be_bytes());
        let trailer = checksum(self.format, &self.pack);
        self.pack.extend_from_slice(&trailer);
        let index = idx::write(self.format, &mut self.entries, &trailer);
        write(objects_dir, &self.pack, &index, &trailer, options).map(Some)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn an_object_is_held_once_and_reads_back() {
        let mut writer = PackWriter::new(ObjectFormat::Sha256);
        assert!(writer.is_empty());
        let one = writer.add(ObjectKind::Blob, b"one\n").unwrap();
        let size = writer.bytes();
        let two = writer.add(ObjectKind::Blob, b"").unwrap();
        assert_eq!(writer.add(ObjectKind::Blob, b"one\n").unwrap(), one);
        assert_eq!(writer.len(), 2);
        assert!(writer.bytes() > size);
        assert!(writer.contains(one) && writer.contains(two));
        assert_eq!(
            writer.read(one),
            Some((ObjectKind::Blob, b"one\n".to_vec()))
        );
        assert_eq!(writer.read(two), Some((ObjectKind::Blob, Vec::new())));
        assert_eq!(writer.read(ObjectId::ZERO_SHA256), None);
    }

    #[test]
    fn an_empty_pack_is_not_written() {
        let dir = tempfile::tempdir().unwrap();
        let held = PackWriter::new(ObjectFormat::Sha1)
            .publish(dir.path(), PackOptions::default())
            .unwrap();
        assert!(held.is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
