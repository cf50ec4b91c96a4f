//! Whether anything was moved out of some folders since a moment, without listing them again.
//!
//! To rename or remove a file changes the times of the folder that it was in, and to move a folder
//! changes those of the one above. So where all folders above a missing path have times from before the
//! moment, the path was missing before it.

use std::collections::BTreeSet;
use std::path::Path;

use bstr::{BStr, ByteSlice};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat};
use rustix::io::Errno;

use crate::git::Repository;

/// A moment by the clock of one file system, which need not be the clock of this machine and may tick
/// slowly. What happens after the moment never gets a time before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct Moment {
    dev: u64,
    time: (i64, i64),
}

impl Moment {
    /// The present, by a file without a name beside our locks; `None` where none can be made.
    pub(in crate::git) fn now(repository: &Repository) -> Option<Moment> {
        let relo = repository.relo_dir();
        let file = tempfile::tempfile_in(&relo).or_else(|_| {
            std::fs::create_dir_all(&relo)?;
            tempfile::tempfile_in(&relo)
        });
        let made = fstat(file.ok()?).ok()?;
        // A file may tell another device than the folders around it, under overlayfs.
        let dev = device(&statat(CWD, &relo, AtFlags::empty()).ok()?);
        let (modified, changed) = times(&made);
        // Some file systems keep one of the two in larger steps than the other.
        Some(Moment {
            dev,
            time: modified.min(changed),
        })
    }

    /// Whether these paths below `top`, at which nothing is, were as missing at this moment. "No"
    /// also where it cannot be told.
    pub(in crate::git) fn found_missing<'p>(
        &self,
        top: &Path,
        paths: impl Iterator<Item = &'p BStr>,
    ) -> bool {
        let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
        let Ok(top) = openat(CWD, top, flags, Mode::empty()) else {
            return false;
        };
        let mut folders = BTreeSet::from([BStr::new(".")]);
        for mut path in paths {
            while let Some(slash) = path.rfind_byte(b'/') {
                path = path[..slash].as_bstr();
                if !folders.insert(path) {
                    break;
                }
            }
        }
        folders.into_iter().all(|folder| {
            match statat(&top, folder.as_bytes(), AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => {
                    self.is_after(&stat)
                }
                // Gone or made something else, which is a change of the folder above.
                Ok(_) | Err(Errno::NOENT | Errno::NOTDIR) => true,
                Err(_) => false,
            }
        })
    }

    fn is_after(&self, stat: &Stat) -> bool {
        let (modified, changed) = times(stat);
        device(stat) == self.dev && modified.max(changed) < self.time
    }
}

/// The fields have other widths on other systems.
#[allow(clippy::unnecessary_cast)]
fn device(stat: &Stat) -> u64 {
    stat.st_dev as u64
}

#[allow(clippy::unnecessary_cast)]
fn times(stat: &Stat) -> ((i64, i64), (i64, i64)) {
    (
        (stat.st_mtime as i64, stat.st_mtime_nsec as i64),
        (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// A working tree with `a/b/`, and the last instant at which one of its folders was changed.
    fn tree() -> (tempfile::TempDir, Moment) {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join("a/b")).unwrap();
        let moment = last_change(top.path());
        (top, moment)
    }

    fn last_change(top: &Path) -> Moment {
        let stat = |path| statat(CWD, top.join(path), AtFlags::empty()).unwrap();
        let stats = [stat(""), stat("a"), stat("a/b")];
        Moment {
            dev: device(&stats[0]),
            time: stats.iter().map(|stat| times(stat).1).max().unwrap(),
        }
    }

    fn next(moment: Moment) -> Moment {
        let (seconds, nanos) = moment.time;
        Moment {
            time: (seconds, nanos + 1),
            ..moment
        }
    }

    #[test]
    fn a_change_in_the_tick_of_the_moment_may_be_a_later_one() {
        let (top, last) = tree();
        let missing = |moment: Moment, path: &str| {
            moment.found_missing(top.path(), [BStr::new(path)].into_iter())
        };
        // They may have been made in different ticks.
        let tick_of = |path: &str| {
            let stat = statat(CWD, top.path().join(path), AtFlags::empty()).unwrap();
            times(&stat).1
        };
        let first = Moment {
            time: ["", "a", "a/b"].map(tick_of).into_iter().min().unwrap(),
            ..last
        };
        for path in ["a/b/gone", "a/gone/too", "gone", "a/b/gone/x/y"] {
            assert!(!missing(first, path), "{path}");
            assert!(missing(next(last), path), "{path}");
        }
        let elsewhere = Moment {
            dev: last.dev + 1,
            ..next(last)
        };
        assert!(
            !missing(elsewhere, "a/b/gone"),
            "the clock of another file system"
        );
    }

    #[test]
    fn whatever_makes_a_path_missing_later_is_noticed() {
        type Change = fn(&Path) -> std::io::Result<()>;
        let changes: [Change; 4] = [
            |top| std::fs::rename(top.join("a/b/x"), top.join("other/x")),
            |top| std::fs::rename(top.join("a/b"), top.join("other/b")),
            |top| std::fs::rename(top.join("a"), top.join("other/a")),
            |top| {
                std::fs::rename(top.join("a/b"), top.join("other/b"))?;
                std::fs::rename(top.join("old"), top.join("a/b"))
            },
        ];
        for (n, change) in changes.into_iter().enumerate() {
            let (top, _) = tree();
            for folder in ["other", "old"] {
                std::fs::create_dir(top.path().join(folder)).unwrap();
            }
            std::fs::write(top.path().join("a/b/x"), "").unwrap();
            let moment = next(last_change(top.path()));
            let missing = || moment.found_missing(top.path(), [BStr::new("a/b/x")].into_iter());
            assert!(missing(), "{n}");
            // The next tick of the clock.
            std::thread::sleep(std::time::Duration::from_millis(12));
            change(top.path()).unwrap();
            assert!(!missing(), "{n}");
        }
    }
}
