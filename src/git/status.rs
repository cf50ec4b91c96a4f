//! The user's working tree against `HEAD` and the index, in git's own words.
//!
//! One `git status` says everything that depends on the user's index (flags, sparse checkouts,
//! split and sparse index, fsmonitor) and on ignore rules. The index is read, never refreshed.

use bstr::{BStr, BString, ByteSlice};

use super::{Error, ObjectFormat, ObjectId, Repository, Result, tree::Entry};

/// What the status says of one path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StatusEntry {
    /// A tracked path that differs from `HEAD`, in the index or on disk.
    Tracked {
        /// The path.
        path: BString,
        /// What the index holds; `None` where the path was removed from it.
        index: Option<Entry>,
        /// The mode on disk as git sees it; `None` where nothing is there.
        disk: Option<u32>,
        /// Whether what is on disk differs from the index.
        edited: bool,
    },
    /// A path with unmerged stages.
    Unmerged {
        /// The path.
        path: BString,
        /// The mode on disk as git sees it; `None` where nothing is there.
        disk: Option<u32>,
    },
    /// An untracked file that no rule ignores.
    Untracked {
        /// The path.
        path: BString,
    },
    /// An untracked folder that is a repository of its own.
    Nested {
        /// The path, without a final slash.
        path: BString,
    },
}

impl StatusEntry {
    /// The path.
    pub fn path(&self) -> &BStr {
        match self {
            StatusEntry::Tracked { path, .. }
            | StatusEntry::Unmerged { path, .. }
            | StatusEntry::Untracked { path }
            | StatusEntry::Nested { path } => path.as_bstr(),
        }
    }
}

impl Repository {
    /// The state of the user's working tree: every path that differs from `HEAD`, in git's order.
    ///
    /// # Errors
    /// [`Error::NoWorkTree`]; [`Error::Git`] when git itself fails, [`Error::Answer`] when its
    /// answer makes no sense. A failure is never an empty answer.
    pub fn status(&self) -> Result<Vec<StatusEntry>> {
        self.require_work_dir()?;
        let out = self
            .git()
            .users_index()
            .args(["status", "--porcelain=v2", "-z", "--no-renames"])
            .args(["--untracked-files=all", "--ignored=no", "--no-ahead-behind"])
            .arg("--ignore-submodules=dirty")
            .output()?;
        parse(&out, self.format())
    }
}

fn parse(out: &[u8], format: ObjectFormat) -> Result<Vec<StatusEntry>> {
    let mut entries = Vec::new();
    for line in out.split_str("\0").filter(|line| !line.is_empty()) {
        entries.push(entry(line, format).ok_or_else(|| Error::Answer {
            command: "status".to_owned(),
            why: format!("unexpected line '{}'", line.as_bstr()),
        })?);
    }
    Ok(entries)
}

fn entry(line: &[u8], format: ObjectFormat) -> Option<StatusEntry> {
    let (kind, rest) = line.split_once_str(" ")?;
    match kind {
        b"1" => {
            let fields: Vec<&[u8]> = rest.splitn_str(8, " ").collect();
            let [
                xy,
                _sub,
                _head_mode,
                index_mode,
                disk_mode,
                _head,
                index,
                path,
            ] = fields[..]
            else {
                return None;
            };
            let index_mode = mode(index_mode)?;
            let id = ObjectId::from_str_ext(index.to_str().ok()?, format).ok()?;
            Some(StatusEntry::Tracked {
                path: path.into(),
                index: (index_mode != 0).then_some(Entry {
                    mode: index_mode,
                    id,
                }),
                disk: Some(mode(disk_mode)?).filter(|m| *m != 0),
                edited: *xy.get(1)? != b'.',
            })
        }
        b"u" => {
            let fields: Vec<&[u8]> = rest.splitn_str(10, " ").collect();
            let [_xy, _sub, _m1, _m2, _m3, disk_mode, _h1, _h2, _h3, path] = fields[..] else {
                return None;
            };
            Some(StatusEntry::Unmerged {
                path: path.into(),
                disk: Some(mode(disk_mode)?).filter(|m| *m != 0),
            })
        }
        b"?" => Some(match rest.strip_suffix(b"/") {
            Some(path) => StatusEntry::Nested { path: path.into() },
            None => StatusEntry::Untracked { path: rest.into() },
        }),
        _ => None,
    }
}

fn mode(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(text.to_str().ok()?, 8).ok()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const ZERO: &str = "0000000000000000000000000000000000000000";
    const ONE: &str = "1111111111111111111111111111111111111111";

    #[test]
    fn every_kind_of_line() {
        let out = format!(
            "1 .M N... 100644 100644 100755 {ONE} {ONE} a b\n\0\
             1 D. N... 100644 000000 000000 {ONE} {ZERO} gone\0\
             u UU N... 100644 100644 100644 100644 {ONE} {ONE} {ONE} both\0\
             ? new\0? repo/\0"
        );
        let one = ObjectId::from_str(ONE).unwrap();
        let entries = parse(out.as_bytes(), ObjectFormat::Sha1).unwrap();
        assert_eq!(
            entries,
            [
                StatusEntry::Tracked {
                    path: "a b\n".into(),
                    index: Some(Entry {
                        mode: 0o100644,
                        id: one
                    }),
                    disk: Some(0o100755),
                    edited: true,
                },
                StatusEntry::Tracked {
                    path: "gone".into(),
                    index: None,
                    disk: None,
                    edited: false,
                },
                StatusEntry::Unmerged {
                    path: "both".into(),
                    disk: Some(0o100644),
                },
                StatusEntry::Untracked { path: "new".into() },
                StatusEntry::Nested {
                    path: "repo".into()
                },
            ]
        );
    }

    #[test]
    fn nonsense_is_an_error_not_an_empty_answer() {
        for out in [
            "x\0",
            "1 .M\0",
            "2 R. N... 1 2 3\0",
            "1 .M N... 9 9 9 0 0 p\0",
        ] {
            assert!(parse(out.as_bytes(), ObjectFormat::Sha1).is_err(), "{out}");
        }
    }
}
