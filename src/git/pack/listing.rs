//! Which packs are ours, and what stands beside them.

use super::{Error, Result};
use crate::git::ObjectFormat;
use crate::git::checksum::hash_len;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// The first eight hex digits of our packs' names: `vws` and the version of what we write.
pub(super) const MAGIC: &str = "76777301";

/// The files of our packs in `dir`: stem (`pack-<hex>`) to suffixes (`.pack`, `.idx`, ...).
///
/// Empty if the directory does not exist.
pub(super) fn ours(dir: &Path) -> Result<BTreeMap<String, BTreeSet<String>>> {
    let mut packs: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let listing = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(packs),
        other => other.map_err(Error::io("list", dir))?,
    };
    for file in listing {
        let name = file.map_err(Error::io("list", dir))?.file_name();
        let Some((stem, suffix)) = name.to_str().and_then(split_name) else {
            continue;
        };
        packs
            .entry(stem.to_owned())
            .or_default()
            .insert(suffix.to_owned());
    }
    Ok(packs)
}

/// Stem and suffix of a file of ours.
fn split_name(name: &str) -> Option<(&str, &str)> {
    let (stem, suffix) = name.split_at(name.find('.')?);
    let digits = stem.strip_prefix("pack-")?;
    let lengths = [ObjectFormat::Sha1, ObjectFormat::Sha256].map(|f| 2 * hash_len(f));
    let ours = digits.starts_with(MAGIC)
        && lengths.contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_hexdigit());
    ours.then_some((stem, suffix))
}

/// The packs that a multi-pack index names, by stem; none if one cannot be read, and so may name any.
pub(super) fn multi_pack_named(dir: &Path) -> Option<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let mut files = vec![dir.join("multi-pack-index")];
    // An incremental multi-pack index is a chain of files in a directory of its own.
    match fs::read_dir(dir.join("multi-pack-index.d")) {
        Ok(listing) => {
            for file in listing {
                let path = file.ok()?.path();
                if path.extension().is_some_and(|ext| ext == "midx") {
                    files.push(path);
                }
            }
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(_) => return None,
    }
    for path in files {
        match File::open(&path) {
            Ok(file) => names.extend(pack_names(&file)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(_) => return None,
        }
    }
    Some(names)
}

/// The stems in the `PNAM` chunk of a multi-pack index.
fn pack_names(file: &File) -> Option<Vec<String>> {
    let mut header = [0; 12];
    file.read_exact_at(&mut header, 0).ok()?;
    if !header.starts_with(b"MIDX\x01") {
        return None;
    }
    // One row for each chunk and one that ends the last: its name, and the offset of its start.
    let mut table = vec![0; 12 * (usize::from(header[6]) + 1)];
    file.read_exact_at(&mut table, 12).ok()?;
    let rows: Vec<&[u8]> = table.chunks_exact(12).collect();
    let start_of = |row: &[u8]| Some(u64::from_be_bytes(row[4..12].try_into().ok()?));
    let at = rows.iter().position(|row| row.starts_with(b"PNAM"))?;
    let (start, end) = (start_of(rows[at])?, start_of(rows.get(at + 1)?)?);
    if end > file.metadata().ok()?.len() {
        return None;
    }
    let mut chunk = vec![0; usize::try_from(end.checked_sub(start)?).ok()?];
    file.read_exact_at(&mut chunk, start).ok()?;
    let stem = |name: &[u8]| {
        let name = std::str::from_utf8(name).ok()?;
        Some(
            name.split_once('.')
                .map_or(name, |(stem, _)| stem)
                .to_owned(),
        )
    };
    chunk
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
        .map(stem)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_names_are_ours() {
        let hex = format!("{MAGIC}{}", "a".repeat(32));
        let name = format!("pack-{hex}.pack");
        assert_eq!(split_name(&name), Some((&name[..name.len() - 5], ".pack")));
        assert_eq!(
            split_name(&format!("pack-{hex}.idx.tmp")).map(|n| n.1.to_owned()),
            Some(".idx.tmp".to_owned())
        );
        for other in [
            format!("pack-{}.pack", "a".repeat(40)),
            format!("pack-{hex}0.pack"),
            format!("pack-{}g.pack", &hex[..39]),
            format!("tmp_pack-{hex}.pack"),
            format!("pack-{hex}"),
        ] {
            assert_eq!(split_name(&other), None, "{other}");
        }
    }
}
