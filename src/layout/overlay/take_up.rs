//! What stands above already: a parked upper folder is taken up again, and what was put there is known
//! by its stat data.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use bstr::{BStr, ByteSlice};

use super::{Stand, What};
use crate::disk;
use crate::git::index::{IndexEntry, IndexFile, StatData, write_index};
use crate::git::tree::{Change, GITLINK, diff, lookup};
use crate::git::{ObjectFormat, ObjectId, Repository};
use crate::layout::template::{Written, lay_index};
use crate::layout::{Error, Result, filtered};

/// In the upper folder's root: an index of what was put above.
const FILLED: &str = "filled";
/// The clocks of file systems tick slower than this.
const TICK: Duration = Duration::from_millis(12);
/// How often we wait for a tick.
const TICKS: usize = 3;

impl Stand {
    /// Takes a parked one up again for a directory with the content of the tree `revision`, and writes
    /// that directory's index to `index`. What git ignores stays. Where the tree is another one than
    /// when it was parked, `move_on` brings files and index from that to this one.
    ///
    /// # Errors
    /// Where what is above is not the parked tree, or other rules hold for how files are written; those
    /// of `move_on`. It is worth nothing then.
    pub fn take_up(
        &mut self,
        repository: &Repository,
        revision: ObjectId,
        index: &Path,
        move_on: impl FnOnce(&Stand) -> Result<()>,
    ) -> Result<()> {
        // Killed from here on, it counts as spoilt.
        self.parked = false;
        self.write()?;
        let objects = repository.objects()?;
        let changes = diff(&objects, Some(self.template.tree()), Some(self.revision))?;
        let ahead = diff(&objects, Some(self.revision), Some(revision))?;
        if self.name != self.template.name()
            || filtered::rules_differ(&objects, &changes)?
            || filtered::rules_differ(&objects, &ahead)?
        {
            return Err(spoilt(self.upper.root()));
        }
        let mut written = self.above(repository)?;
        let have: HashSet<&BStr> = written.iter().map(|one| one.path.as_bstr()).collect();
        let lacks = |change: &Change| {
            let is_file = change.new.is_some_and(|new| new.mode != GITLINK);
            is_file && !have.contains(change.path.as_bstr())
        };
        if changes.iter().any(lacks) {
            return Err(spoilt(self.upper.root()));
        }
        for change in &changes {
            if let Some(entry) = change.new.filter(|new| new.mode == GITLINK) {
                written.push(Written {
                    path: change.path.clone(),
                    entry,
                    stat: StatData::default(),
                });
            }
        }
        let parts = (&changes[..], &written[..]);
        lay_index(repository, &self.template, parts, self.revision, index)?;
        if self.revision != revision {
            move_on(self)?;
            self.revision = revision;
            written = self.above(repository)?;
        }
        self.note_filled(repository, written)?;
        self.write()
    }

    /// The files above that the revision has.
    fn above(&self, repository: &Repository) -> Result<Vec<Written>> {
        let objects = repository.objects()?;
        let files = self.upper.files();
        let mut written = Vec::new();
        for touched in self.touched(repository)? {
            if !matches!(touched.what, What::File | What::Link) {
                continue;
            }
            let entry = lookup(&objects, self.revision, touched.path.as_bstr())?;
            let Some(entry) = entry.filter(|entry| !entry.is_tree()) else {
                continue;
            };
            let stat = disk::stat(&files, touched.path.as_bstr())
                .map_err(|_| spoilt(self.upper.root()))?;
            written.push(Written {
                path: touched.path,
                entry,
                stat: StatData::from(&stat),
            });
        }
        Ok(written)
    }

    /// Notes what was put above where git rewrites content. A file may be stored otherwise than git
    /// would store it now (line ends of before there were rules), and such a one is not to count as
    /// changed unless somebody touched it.
    pub(super) fn note_filled(&self, repository: &Repository, mut all: Vec<Written>) -> Result<()> {
        let file = self.filled();
        if !self.template.is_by_git() {
            return Ok(());
        }
        all.sort_unstable_by(|a, b| a.path.cmp(&b.path));
        let entry = |one: Written| IndexEntry {
            path: one.path,
            mode: one.entry.mode,
            id: one.entry.id,
            stat: one.stat,
        };
        let entries: Vec<IndexEntry> = all.into_iter().map(entry).collect();
        for _ in 0..TICKS {
            write_index(&file, repository.format(), &entries, None)?;
            let written = IndexFile::open(&file, repository.format())?.written();
            if entries.iter().all(|one| one.stat.ctime < written) {
                break;
            }
            // As new as the note, they would prove nothing.
            sleep(TICK);
        }
        Ok(())
    }

    fn filled(&self) -> PathBuf {
        self.upper.root().join(FILLED)
    }

    /// What was put above, by its stat data; `None` where nothing is known of it.
    pub fn what_was_filled(&self, format: ObjectFormat) -> Option<IndexFile> {
        let by_git = self.template.is_by_git();
        by_git.then(|| IndexFile::open(&self.filled(), format).ok())?
    }
}

fn spoilt(root: &Path) -> Error {
    Error::io("take up", root, std::io::ErrorKind::InvalidData)
}
