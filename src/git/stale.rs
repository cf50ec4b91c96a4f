//! Lock files of git's that nobody holds any more, on refs that are ours.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use bstr::ByteSlice;

use super::marks::{self, Dead, PACKED};
use super::{LooseState, Refs, Repository, Result};

/// How long a lock is watched before it is taken for a dead one's.
const WATCH: Duration = Duration::from_millis(300);
/// The lock on the packed refs is anybody's, and `git pack-refs` may hold it for a while: only one that
/// nobody touched for so long, and that a dead process of ours was about to take, is removed.
const PACKED_AGE: Duration = Duration::from_secs(60);

/// From when on a lock counts as left behind.
#[derive(Clone, Copy, Debug)]
pub struct StaleRule {
    /// The time.
    pub now: SystemTime,
    /// A lock older than this is left behind, whoever made it.
    pub older_than: Duration,
    /// Any lock is left behind: the user knows that no git is running.
    pub force: bool,
}

/// A lock file on a ref.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockFile {
    /// The file.
    pub path: PathBuf,
    /// How old it is.
    pub age: Duration,
    /// Whether it was removed; otherwise it may be somebody's, and is left.
    pub removed: bool,
}

impl Repository {
    /// Removes the lock files on refs below the prefixes (which end in slashes) that nobody holds any more,
    /// and reports those that somebody may hold. Git's locks name no owner: one is left behind when
    /// a process of ours died with it (see the marks), or by its age.
    ///
    /// # Errors
    /// When the files of the refs cannot be listed.
    pub fn clear_stale_locks(&self, prefixes: &[&str], rule: StaleRule) -> Result<Vec<LockFile>> {
        let dead = marks::dead(&self.relo_dir());
        let mut candidates = Vec::new();
        for prefix in prefixes {
            for file in self.refs().files(prefix)? {
                if file.state == LooseState::Lock {
                    let name = file.name.strip_suffix(b".lock").unwrap_or(&file.name);
                    candidates.push((name.to_str_lossy().into_owned(), file.path));
                }
            }
        }
        candidates.push((
            PACKED.to_owned(),
            self.common_dir().join("packed-refs.lock"),
        ));
        let seen: Vec<_> = candidates
            .into_iter()
            .filter_map(|(name, path)| Some((marks::look(&path)?, name, path)))
            .collect();
        let mut found = Vec::new();
        if !seen.is_empty() {
            std::thread::sleep(WATCH);
        }
        for (before, name, path) in seen {
            let certain = dead.iter().any(|dead| dead.is(&path));
            if !certain && marks::look(&path) != Some(before) {
                // Gone, or another one: somebody is at work.
                continue;
            }
            let age = age(&path, rule.now);
            let removed = (certain || is_left_behind(&name, age, &dead, rule))
                && std::fs::remove_file(&path).is_ok();
            found.push(LockFile { path, age, removed });
        }
        for one in dead {
            let waits = one.names.iter().any(|name| {
                let lock = self.common_dir().join(format!("{name}.lock"));
                found.iter().any(|file| file.path == lock && !file.removed)
            });
            // A mark whose lock is not old enough yet is needed the next time.
            if !waits {
                one.clear();
            }
        }
        Ok(found)
    }
}

impl Refs<'_> {
    /// Removes the locks in the way of a ref that a process of ours died with in its hands. `unchanged`: the
    /// ref's own lock was watched for long enough; nobody alive holds a ref that long.
    pub(super) fn break_dead_locks(&self, name: &str, unchanged: bool) {
        let lock = self.path_of(&format!("{name}.lock"));
        let packed = self.repository().common_dir().join("packed-refs.lock");
        for dead in marks::dead(&self.repository().relo_dir()) {
            let names_it = dead.names.iter().any(|named| named == name);
            // The mark itself stays: its other refs, if it had any, are for `recover` to look at.
            for (path, ours) in [(&lock, names_it && unchanged), (&packed, false)] {
                if ours || dead.is(path) {
                    let _ = std::fs::remove_file(path);
                }
            }
        }
    }
}

fn is_left_behind(name: &str, age: Duration, dead: &[Dead], rule: StaleRule) -> bool {
    let died = dead.iter().any(|dead| dead.names.iter().any(|n| n == name));
    if name == PACKED {
        return died && (rule.force || age >= PACKED_AGE);
    }
    died || rule.force || age >= rule.older_than
}

fn age(path: &Path, now: SystemTime) -> Duration {
    std::fs::symlink_metadata(path)
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|modified| now.duration_since(modified).ok())
        .unwrap_or_default()
}
