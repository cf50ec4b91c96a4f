//! A patch applied by `git apply`, in an index of our own that holds no more than the patch is about.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::tree::{Entry, canonical_mode};
use super::{Error, ObjectId, Repository, Result};
use crate::model::quote::unquote_c;

/// What a patch came to.
#[derive(Debug)]
pub enum Patched {
    /// What the paths are now: the seeded ones that are still there, and new ones. Their blobs are in
    /// the database, but nothing refers to them.
    Done(BTreeMap<BString, Entry>),
    /// It does not fit; git's own words.
    Rejected(String),
    /// It is no patch that git understands; git's own words.
    Malformed(String),
}

/// The paths that the headers of a patch name, with its first component taken off as git does it. A
/// line of a hunk may look like a header, so there may be too many, never too few.
pub fn paths_of_patch(patch: &[u8]) -> Vec<BString> {
    let mut paths = Vec::new();
    for line in patch.lines() {
        if let Some(rest) = line.strip_prefix(b"diff --git ") {
            paths.extend(of_both_halves(rest));
        }
        for (mark, strip) in [
            (&b"--- "[..], true),
            (b"+++ ", true),
            (b"rename from ", false),
            (b"rename to ", false),
            (b"copy from ", false),
            (b"copy to ", false),
        ] {
            let Some(rest) = line.strip_prefix(mark) else {
                continue;
            };
            let name = match unquote_c(rest) {
                Ok((name, _)) => name,
                // A time may follow a tab.
                Err(_) => rest
                    .split(|byte| *byte == b'\t')
                    .next()
                    .unwrap_or(rest)
                    .into(),
            };
            paths.extend(if strip {
                stripped(name.as_bstr())
            } else {
                Some(name)
            });
        }
    }
    paths.sort();
    paths.dedup();
    paths
}

fn stripped(name: &BStr) -> Option<BString> {
    let (_, rest) = name.split_once_str("/")?;
    (name != "/dev/null").then(|| rest.into())
}

/// The name in a `diff --git` line, which counts where nothing else names the file: then both are one.
fn of_both_halves(rest: &[u8]) -> Option<BString> {
    if let Ok((name, _)) = unquote_c(rest) {
        return stripped(name.as_bstr());
    }
    let middle = rest.len().checked_sub(1)? / 2;
    let (one, other) = (rest.get(..middle)?, rest.get(middle + 1..)?);
    let (one, other) = (stripped(one.as_bstr())?, stripped(other.as_bstr())?);
    (one == other).then_some(one)
}

impl Repository {
    /// Applies a patch to the given entries. Nobody's index and no working tree is touched.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Git`] when git cannot be asked.
    pub fn apply_patch(&self, patch: &[u8], seed: &[(BString, Entry)]) -> Result<Patched> {
        let relo = self.relo_dir();
        std::fs::create_dir_all(&relo).map_err(|e| Error::io("create", &relo, e))?;
        let folder = tempfile::Builder::new()
            .prefix("apply-")
            .tempdir_in(&relo)
            .map_err(|e| Error::io("create a folder in", &relo, e))?;
        let index = folder.path().join("index");
        let mut input = Vec::new();
        for (path, entry) in seed {
            input.extend_from_slice(format!("{:06o} {}\t", entry.mode, entry.id).as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        }
        let git = || self.git().index_file(&index);
        git()
            .args(["update-index", "-z", "--index-info"])
            .stdin(input)
            .output()?;
        let done = git()
            .args(["apply", "--cached", "-p1", "-"])
            .stdin(patch.to_vec())
            .run()?;
        match done.code() {
            Some(0) => {}
            Some(1) => return Ok(Patched::Rejected(first_line(&done.stderr))),
            Some(128) => return Ok(Patched::Malformed(done.last_line())),
            _ => return Err(done.into_error()),
        }
        let listed = git().args(["ls-files", "--stage", "-z"]).output()?;
        let mut entries = BTreeMap::new();
        for line in listed
            .split(|byte| *byte == 0)
            .filter(|line| !line.is_empty())
        {
            let (path, entry) = self.index_line(line).ok_or_else(|| Error::Answer {
                command: "ls-files --stage".to_owned(),
                why: line.as_bstr().to_string(),
            })?;
            entries.insert(path, entry);
        }
        Ok(Patched::Done(entries))
    }

    /// `<mode> <id> <stage>`, tab, path.
    fn index_line(&self, line: &[u8]) -> Option<(BString, Entry)> {
        let (fields, path) = line.split_once_str("\t")?;
        let mut fields = fields.to_str().ok()?.split(' ');
        let mode = canonical_mode(u32::from_str_radix(fields.next()?, 8).ok()?);
        let id = ObjectId::from_str_ext(fields.next()?, self.format()).ok()?;
        Some((path.into(), Entry { mode, id }))
    }
}

/// The first thing that git has to say, which is the reason; what follows only repeats it.
fn first_line(stderr: &[u8]) -> String {
    let line = stderr.lines().next().unwrap_or_default().to_str_lossy();
    line.strip_prefix("error: ").unwrap_or(&line).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_header_names_its_paths() {
        let patch = b"diff --git a/m o b/m o\nold mode 100644\nnew mode 100755\n\
            diff --git \"a/q\\tx\" \"b/q\\tx\"\n--- \"a/q\\tx\"\n+++ \"b/q\\tx\"\n@@ -1 +1 @@\n-a\n+b\n\
            diff --git a/old b/new\nsimilarity index 100%\nrename from old\nrename to new\n\
            --- /dev/null\n+++ b/d/e\t2020-01-01\n";
        let paths = paths_of_patch(patch);
        assert_eq!(paths, ["d/e", "m o", "new", "old", "q\tx"]);
    }
}
