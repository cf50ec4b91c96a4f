//! The trailing checksum of Git's binary files: packs, pack indexes and the index all end with a
//! hash of what stands before it, in the repository's own hash.
//!
//! Object ids are not made here: libgit2 hashes those, with its collision detection. A trailer only
//! finds accidents, so the plain and faster implementation does.

use super::ObjectFormat;
use sha1::{Digest, Sha1};
use sha2::Sha256;

/// The length in bytes of an object id, and so of a trailer, in `format`.
pub(crate) fn hash_len(format: ObjectFormat) -> usize {
    match format {
        ObjectFormat::Sha1 => 20,
        ObjectFormat::Sha256 => 32,
    }
}

/// The trailer that belongs to `bytes`.
pub(crate) fn checksum(format: ObjectFormat, bytes: &[u8]) -> Vec<u8> {
    match format {
        ObjectFormat::Sha1 => Sha1::digest(bytes).to_vec(),
        ObjectFormat::Sha256 => Sha256::digest(bytes).to_vec(),
    }
}

/// The number of four bytes in network order that begins at `at`.
pub(super) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(word.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let hex = |bytes: Vec<u8>| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        assert_eq!(
            hex(checksum(ObjectFormat::Sha1, b"abc")),
            "a9993e364706816aba3e25717850c26c9cd0d89d"
        );
        assert_eq!(
            hex(checksum(ObjectFormat::Sha256, b"abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            assert_eq!(checksum(format, b"").len(), hash_len(format));
        }
    }
}
