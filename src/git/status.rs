//! The user's working tree against `HEAD` and the index, in git's own words.
//!
//! Git says everything that depends on flags in the user's index, on sparse checkouts, split and
//! sparse indexes, and on ignore rules. The index is read, never refreshed.

use std::path::PathBuf;

use bstr::{BStr, BString, ByteSlice};

use super::index::IndexStamp;
use super::oracle::Running;
use super::untracked::{Moment, Untracked};
use super::{Error, GitCommand, ObjectFormat, ObjectId, Repository, Result, tree::Entry};

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

    /// Whether the index has the path, and the disk has nothing there.
    pub(super) fn is_gone(&self) -> bool {
        match self {
            StatusEntry::Tracked { disk, edited, .. } => *edited && disk.is_none(),
            StatusEntry::Unmerged { disk, .. } => disk.is_none(),
            _ => false,
        }
    }
}

/// Git at work on the state of the user's working tree.
///
/// `git status` spends its time on two passes: the stat data of what is tracked, and the names of all
/// that is there. They run side by side here: git does the first alone, and meanwhile the names on
/// disk are held against those in the index, in process. Only what the index has not, mostly nothing
/// or a few ignored folders, is git's to judge again, by a second process.
#[must_use = "git is stopped when this is dropped"]
pub struct StatusRun<'r> {
    repository: &'r Repository,
    index: PathBuf,
    /// The index as it was before git read it; `None` where git looks for untracked paths itself.
    stamp: Option<IndexStamp>,
    tracked: Running,
}

impl Repository {
    /// Sets git to work on the state of the user's working tree, so that the caller can do something
    /// else meanwhile.
    ///
    /// # Errors
    /// [`Error::NoWorkTree`]; [`Error::Io`] when git cannot be started.
    pub fn begin_status(&self) -> Result<StatusRun<'_>> {
        self.require_work_dir()?;
        let named = self.environment().path("GIT_INDEX_FILE");
        let index = named.unwrap_or_else(|| self.git_dir().join("index"));
        let stamp = self.names_are_bytes()?.then(|| IndexStamp::of(&index));
        Ok(StatusRun {
            repository: self,
            index,
            tracked: self.status_command(stamp.is_none()).begin()?,
            stamp,
        })
    }

    /// The same by one process, which reads the index once.
    pub(super) fn status_in_one(&self) -> Result<Vec<StatusEntry>> {
        parse(&self.status_command(true).output()?, self.format())
    }

    /// Whether the tracked paths that are gone were so when the look at the names began.
    fn were_gone(&self, begun: Option<Moment>, entries: &[StatusEntry]) -> Result<bool> {
        let top = self.require_work_dir()?;
        let gone = entries.iter().filter(|entry| entry.is_gone());
        let mut gone = gone.map(StatusEntry::path).peekable();
        let none = gone.peek().is_none();
        Ok(none || begun.is_some_and(|begun| begun.found_missing(top, gone)))
    }

    fn status_command(&self, untracked: bool) -> GitCommand<'_> {
        let untracked = match untracked {
            true => "--untracked-files=all",
            false => "--untracked-files=no",
        };
        self.git()
            .users_index()
            .args(["status", "--porcelain=v2", "-z", "--no-renames"])
            .args([untracked, "--ignored=no", "--no-ahead-behind"])
            .arg("--ignore-submodules=dirty")
    }
}

impl StatusRun<'_> {
    /// The state of the user's working tree: every path that differs from `HEAD`, in git's order, but for
    /// those that are `not_of_interest` to the caller.
    ///
    /// # Errors
    /// [`Error::Git`] when git itself fails, [`Error::Answer`] when its answer makes no sense. A failure
    /// is never an empty answer.
    pub fn finish(self, not_of_interest: impl Fn(&BStr) -> bool) -> Result<Vec<StatusEntry>> {
        let (repository, format) = (self.repository, self.repository.format());
        let begun = self.stamp.and_then(|_| Moment::now(repository));
        let mut others = match &self.stamp {
            Some(_) => repository.untracked(&self.index, &not_of_interest)?,
            None => Untracked::default(),
        };
        let mut entries = parse(&self.tracked.finish()?.checked()?, format)?;
        if self.stamp.is_some() && !repository.were_gone(begun, &entries)? {
            // Moved perhaps, after the names in its new folder were listed and before git looked for
            // it in the old one: then it would be in neither answer.
            others = repository.untracked_since(&self.index, &not_of_interest, others)?;
        }
        entries.extend(others.paths.into_iter().map(other));
        if self
            .stamp
            .is_some_and(|stamp| stamp != IndexStamp::of(&self.index))
        {
            // The passes may have seen different indexes, and a path that was added in between is in
            // neither answer. One process reads one index.
            entries = repository.status_in_one()?;
        }
        entries.retain(|entry| !not_of_interest(entry.path()));
        Ok(entries)
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
        b"?" => Some(other(rest.into())),
        _ => None,
    }
}

/// An untracked path as git spells it: with a final slash it is a repository.
fn other(path: BString) -> StatusEntry {
    match path.strip_suffix(b"/") {
        Some(path) => StatusEntry::Nested { path: path.into() },
        None => StatusEntry::Untracked { path },
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
