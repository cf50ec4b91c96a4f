//! The index's `TREE` extension: which tree object each directory is, so that `git status` and
//! `git diff --cached` compare whole directories with `HEAD` by id.

use super::{Error, IndexEntry, Result};
use crate::git::ObjectId;
use bstr::{BStr, BString, ByteSlice};
use std::cmp::Ordering;

/// The tree ids of the directories in an index.
///
/// Filled while walking the tree that is laid out: one [`TreeCache::record`] for each directory, in
/// any order, the root included. How many entries each holds is counted from the index.
#[derive(Debug, Clone, Default)]
pub struct TreeCache {
    directories: Vec<(BString, ObjectId)>,
}

impl TreeCache {
    /// A cache without directories.
    pub fn new() -> TreeCache {
        TreeCache::default()
    }

    /// Records that the directory at `path` is the tree `id`.
    ///
    /// The root's path is empty; others have no slash at either end.
    pub fn record(&mut self, path: impl Into<BString>, id: ObjectId) {
        self.directories.push((path.into(), id));
    }

    /// Takes over what another cache has recorded.
    pub fn append(&mut self, mut other: TreeCache) {
        self.directories.append(&mut other.directories);
    }

    /// The extension's data for an index of these sorted entries.
    pub(super) fn serialize(&self, entries: &[IndexEntry]) -> Result<Vec<u8>> {
        let mut nodes: Vec<Node<'_>> = self
            .directories
            .iter()
            .map(|(path, id)| Node {
                path: path.as_bstr(),
                id,
                subtrees: 0,
            })
            .collect();
        nodes.sort_by(|a, b| compare(a.path, b.path));
        count_subtrees(&mut nodes)?;
        let mut out = Vec::new();
        for node in &nodes {
            let name = node.path.rsplit(|b| *b == b'/').next().unwrap_or_default();
            out.extend_from_slice(name);
            out.push(0);
            let count = entries_below(entries, node.path);
            out.extend_from_slice(format!("{count} {}\n", node.subtrees).as_bytes());
            out.extend_from_slice(node.id.as_bytes());
        }
        Ok(out)
    }
}

/// A directory as the tree cache of an index has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedTree {
    /// The path from the root; empty for the root itself.
    pub path: BString,
    /// The tree.
    pub id: ObjectId,
    /// How many entries it holds, those in directories below included.
    pub entries: usize,
    /// How many directories it holds directly.
    pub subtrees: usize,
}

/// Reads the extension's data back, for an index of so many entries. `None` where a directory's tree is
/// not told (git forgets it with an edit below), and for nonsense.
pub(super) fn parse(mut data: &[u8], hash: usize, entries: usize) -> Option<Vec<CachedTree>> {
    let mut trees: Vec<CachedTree> = Vec::new();
    // The directories on the way from the root, and how many each of them still has to come.
    let mut way: Vec<(usize, usize)> = Vec::new();
    while !data.is_empty() {
        let (name, rest) = data.split_once_str(&[0])?;
        let (numbers, rest) = rest.split_once_str("\n")?;
        let (count, subtrees) = numbers.to_str().ok()?.split_once(' ')?;
        let (count, subtrees) = (count.parse().ok()?, subtrees.parse().ok()?);
        let (id, rest) = rest.split_at_checked(hash)?;
        while way.last().is_some_and(|(_, left)| *left == 0) {
            way.pop();
        }
        let mut path = BString::default();
        let most = match way.last_mut() {
            Some((above, left)) => {
                *left -= 1;
                let above = &trees[*above];
                if name.is_empty() || name.contains(&b'/') {
                    return None;
                }
                path = join(&above.path, name);
                above.entries
            }
            None if trees.is_empty() && name.is_empty() => entries,
            None => return None,
        };
        if count > most {
            return None;
        }
        way.push((trees.len(), subtrees));
        trees.push(CachedTree {
            path,
            id: ObjectId::from_bytes(id).ok()?,
            entries: count,
            subtrees,
        });
        data = rest;
    }
    let whole = way.iter().all(|(_, left)| *left == 0);
    (whole && trees.first().is_some_and(|root| root.entries == entries)).then_some(trees)
}

fn join(folder: &BString, name: &[u8]) -> BString {
    match folder.is_empty() {
        true => name.into(),
        false => [folder.as_slice(), b"/", name].concat().into(),
    }
}

struct Node<'a> {
    path: &'a BStr,
    id: &'a ObjectId,
    subtrees: usize,
}

/// The order of the extension: parents first, and siblings the shorter name first.
fn compare(a: &BStr, b: &BStr) -> Ordering {
    if a.is_empty() || b.is_empty() {
        return a.len().cmp(&b.len());
    }
    let (mut a, mut b) = (a.split_str("/"), b.split_str("/"));
    loop {
        return match (a.next(), b.next()) {
            (None, None) => Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) if a == b => continue,
            (Some(a), Some(b)) => a.len().cmp(&b.len()).then_with(|| a.cmp(b)),
        };
    }
}

/// Counts each node's children; refuses a node whose parent is missing, and one that comes twice.
fn count_subtrees(nodes: &mut [Node<'_>]) -> Result<()> {
    // The nodes on the way from the root to the one at hand.
    let mut way: Vec<usize> = Vec::new();
    for at in 0..nodes.len() {
        let path = nodes[at].path;
        let misfit = || Error::Directory(path.to_owned());
        if path.is_empty() {
            if at != 0 {
                return Err(misfit());
            }
        } else {
            let parent = path
                .rfind_byte(b'/')
                .map_or(&path[..0], |slash| &path[..slash]);
            while way.last().is_some_and(|last| nodes[*last].path != parent) {
                way.pop();
            }
            let last = *way.last().ok_or_else(misfit)?;
            if nodes[at - 1].path == path {
                return Err(misfit());
            }
            nodes[last].subtrees += 1;
        }
        way.push(at);
    }
    Ok(())
}

/// How many entries stand below the directory.
fn entries_below(entries: &[IndexEntry], dir: &BStr) -> usize {
    if dir.is_empty() {
        return entries.len();
    }
    // Below `dir` is what lies between `dir/` and `dir0`, the byte after the slash.
    let cut = |end: u8| entries.partition_point(|e| is_before(&e.path, dir, end));
    cut(b'/' + 1) - cut(b'/')
}

/// Whether `path` sorts before `dir` with `end` appended.
fn is_before(path: &[u8], dir: &[u8], end: u8) -> bool {
    let shared = path.len().min(dir.len());
    match path[..shared].cmp(&dir[..shared]) {
        Ordering::Equal => path.get(dir.len()).is_none_or(|next| *next < end),
        other => other == Ordering::Less,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn cache(paths: &[&str]) -> TreeCache {
        let mut cache = TreeCache::new();
        for path in paths {
            cache.record(*path, ObjectId::ZERO_SHA1);
        }
        cache
    }

    #[test]
    fn misfits_are_refused() {
        assert!(cache(&["", "a", "a/b"]).serialize(&[]).is_ok());
        for (paths, misfit) in [
            (&["a"][..], "a"),
            (&["", "a/b"], "a/b"),
            (&["", "a", "a"], "a"),
            (&["", ""], ""),
            (&["", "a", "ab/c"], "ab/c"),
        ] {
            let error = cache(paths).serialize(&[]).unwrap_err();
            assert!(matches!(error, Error::Directory(path) if path == misfit));
        }
    }

    #[test]
    fn what_is_written_is_read_back() {
        let entry = |path: &str| IndexEntry {
            path: path.into(),
            mode: 0o100_644,
            id: ObjectId::ZERO_SHA1,
            stat: Default::default(),
        };
        let entries = ["a/b/c", "a/d", "aa/e", "f"].map(entry);
        let data = cache(&["", "aa", "a", "a/b"]).serialize(&entries).unwrap();
        let read = parse(&data, 20, entries.len()).unwrap();
        let told = read.iter();
        let told: Vec<_> = told
            .map(|one| (one.path.to_string(), one.entries, one.subtrees))
            .collect();
        let expected = [("", 4, 2), ("a", 2, 1), ("a/b", 1, 0), ("aa", 1, 0)];
        let expected = expected.map(|(path, entries, trees)| (path.to_owned(), entries, trees));
        assert_eq!(told, expected);
        assert_eq!(parse(&data, 20, 3), None, "of another index");
        for end in 0..data.len() {
            assert_eq!(parse(&data[..end], 20, 4), None, "cut at {end}");
        }
        assert_eq!(parse(b"\0-1 0\n", 20, 4), None, "as git forgets a tree");
    }

    #[test]
    fn order_is_by_component_length_first() {
        let mut paths = ["b", "aa/b", "aa", "a/x", "a", "", "a-b", "aa/aa"];
        paths.sort_by(|a, b| compare(a.as_bytes().as_bstr(), b.as_bytes().as_bstr()));
        assert_eq!(paths, ["", "a", "a/x", "b", "aa", "aa/b", "aa/aa", "a-b"]);
    }
}
