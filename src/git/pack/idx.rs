//! The index of a pack, version 2 (gitformat-pack(5)): written for every pack, and read back when
//! packs are rolled up.

use crate::git::checksum::be32;
use crate::git::checksum::{checksum, hash_len};
use crate::git::{ObjectFormat, ObjectId};

/// Where one object stands in its pack.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: ObjectId,
    pub(super) offset: u64,
    pub(super) crc: u32,
}

const MAGIC: &[u8; 8] = b"\xfftOc\0\0\0\x02";
const FANOUT_END: usize = 8 + 256 * 4;
/// Offsets with this bit set are indexes into the table of 64-bit offsets.
const LARGE: u32 = 1 << 31;

/// The index of a pack that ends with `pack_trailer`. Leaves `entries` sorted by name.
pub(super) fn write(format: ObjectFormat, entries: &mut [Entry], pack_trailer: &[u8]) -> Vec<u8> {
    entries.sort_unstable_by(|a, b| a.id.as_bytes().cmp(b.id.as_bytes()));
    let hash = hash_len(format);
    let mut out = Vec::with_capacity(FANOUT_END + entries.len() * (hash + 8) + 2 * hash);
    out.extend_from_slice(MAGIC);
    let mut counts = [0u32; 256];
    for entry in entries.iter() {
        counts[usize::from(entry.id.as_bytes()[0])] += 1;
    }
    let mut sum = 0;
    for count in counts {
        sum += count;
        out.extend_from_slice(&sum.to_be_bytes());
    }
    for entry in entries.iter() {
        out.extend_from_slice(entry.id.as_bytes());
    }
    for entry in entries.iter() {
        out.extend_from_slice(&entry.crc.to_be_bytes());
    }
    let mut large: Vec<u64> = Vec::new();
    for entry in entries.iter() {
        let small = u32::try_from(entry.offset).ok().filter(|o| o & LARGE == 0);
        let word = small.unwrap_or_else(|| {
            large.push(entry.offset);
            LARGE | (large.len() - 1) as u32
        });
        out.extend_from_slice(&word.to_be_bytes());
    }
    for offset in large {
        out.extend_from_slice(&offset.to_be_bytes());
    }
    out.extend_from_slice(pack_trailer);
    let trailer = checksum(format, &out);
    out.extend_from_slice(&trailer);
    out
}

/// The entries of an index, sorted by name, and the trailer of its pack; none if it is damaged.
pub(super) fn read(format: ObjectFormat, bytes: &[u8]) -> Option<(Vec<Entry>, &[u8])> {
    let hash = hash_len(format);
    let body_len = bytes.len().checked_sub(hash)?;
    let (body, trailer) = bytes.split_at(body_len);
    if !body.starts_with(MAGIC) || checksum(format, body) != trailer {
        return None;
    }
    let count = be32(body, FANOUT_END - 4)? as usize;
    let ids = FANOUT_END;
    let crcs = ids.checked_add(count.checked_mul(hash)?)?;
    let offsets = crcs.checked_add(count.checked_mul(4)?)?;
    let large = offsets.checked_add(count.checked_mul(4)?)?;
    let large_end = body_len.checked_sub(hash).filter(|end| *end >= large)?;
    let mut entries = Vec::with_capacity(count);
    for n in 0..count {
        let id = ids + n * hash;
        let word = be32(body, offsets + n * 4)?;
        let offset = if word & LARGE == 0 {
            u64::from(word)
        } else {
            let at = large + 8 * (word & !LARGE) as usize;
            u64::from_be_bytes(body[..large_end].get(at..at + 8)?.try_into().ok()?)
        };
        entries.push(Entry {
            id: ObjectId::from_bytes(body.get(id..id + hash)?).ok()?,
            offset,
            crc: be32(body, crcs + n * 4)?,
        });
    }
    Some((entries, &body[large_end..]))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::ObjectKind;

    fn entries(format: ObjectFormat, offsets: &[u64]) -> Vec<Entry> {
        let entry = |offset: &u64| Entry {
            id: ObjectId::hash_object_ext(ObjectKind::Blob, &offset.to_be_bytes(), format).unwrap(),
            offset: *offset,
            crc: *offset as u32 ^ 7,
        };
        offsets.iter().map(entry).collect()
    }

    #[test]
    fn offsets_beyond_two_gigabytes_read_back() {
        let offsets = [12, (1 << 31) - 1, 1 << 31, (1 << 32) + 5, 1 << 45, 99];
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let trailer = vec![7; hash_len(format)];
            let bytes = write(format, &mut entries(format, &offsets), &trailer);
            let (read, pack_trailer) = read(format, &bytes).unwrap();
            assert_eq!(pack_trailer, trailer);
            let mut seen: Vec<u64> = read.iter().map(|e| e.offset).collect();
            assert!(read.iter().all(|e| e.crc == e.offset as u32 ^ 7));
            let mut wanted = offsets.to_vec();
            wanted.sort_unstable();
            seen.sort_unstable();
            assert_eq!(seen, wanted);
        }
    }

    #[test]
    fn damage_is_seen() {
        let format = ObjectFormat::Sha1;
        let bytes = write(format, &mut entries(format, &[12, 40]), &[1; 20]);
        for at in 0..bytes.len() {
            let mut other = bytes.clone();
            other[at] ^= 1;
            assert!(read(format, &other).is_none(), "byte {at}");
            assert!(read(format, &bytes[..at]).is_none(), "cut at {at}");
        }
        // A count that the file cannot hold, under a checksum that fits.
        let mut other = bytes[..bytes.len() - 20].to_vec();
        other[FANOUT_END - 4..FANOUT_END].copy_from_slice(&u32::MAX.to_be_bytes());
        let trailer = checksum(format, &other);
        other.extend_from_slice(&trailer);
        assert!(read(format, &other).is_none());
    }
}
