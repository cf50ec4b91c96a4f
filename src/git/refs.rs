//! Refs: read, listed, and moved by compare-and-swap.
//!
//! Two ways behind one face (see [`RefBackend`]). In process, each update is git's own lock file,
//! flushed before the rename, with the directory flushed after it ([`super::set`], [`super::delete`]). No file-based ref store is
//! all-or-nothing across refs, so [`Refs::apply`] keeps the order it is given: callers put their
//! one commit point last. Through `git update-ref` the same list is one transaction.

mod by_git;
mod read;

use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use git2::{ErrorClass, ErrorCode};

use super::marks::{self, Mark};
use super::publish::Publish;
use super::{Error, ObjectId, RefBackend, Repository, Result, fault};

pub use read::PackedStamp;
pub(super) use read::{PackedList, Seen};

/// What must stand at a ref for an update to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Anything, or nothing.
    Anything,
    /// No such ref.
    Missing,
    /// Exactly this id.
    Is(ObjectId),
}

/// One step of a ref transaction.
#[derive(Clone, Debug)]
pub struct RefUpdate {
    /// The full ref name.
    pub name: String,
    /// What must stand there now.
    pub expect: Expect,
    /// What shall stand there; `None` deletes.
    pub new: Option<ObjectId>,
    /// The reflog message. `None`: no reflog is started.
    pub log: Option<String>,
    /// Whether it may reach the disk after the last one of its list. A crash in the middle may then leave
    /// that one alone.
    pub unordered: bool,
    /// A ref that holds the same, and whose file may be shared.
    pub twin: Option<String>,
}

impl RefUpdate {
    /// A ref that must not exist yet.
    pub fn create(name: impl Into<String>, new: ObjectId) -> Self {
        Self::set(name, Expect::Missing, new)
    }

    /// A ref that moves from what `expect` says to `new`.
    pub fn set(name: impl Into<String>, expect: Expect, new: ObjectId) -> Self {
        RefUpdate {
            name: name.into(),
            expect,
            new: Some(new),
            log: None,
            unordered: false,
            twin: None,
        }
    }

    /// A ref that goes away.
    pub fn delete(name: impl Into<String>, expect: Expect) -> Self {
        RefUpdate {
            name: name.into(),
            expect,
            new: None,
            log: None,
            unordered: false,
            twin: None,
        }
    }

    /// Lets the step reach the disk after the last one of its list: whoever finds that one alone can do
    /// without it.
    pub fn unordered(mut self) -> Self {
        self.unordered = true;
        self
    }

    /// Says that another ref holds the same id, durably: its file may serve for both.
    pub fn as_in(mut self, twin: String) -> Self {
        self.twin = Some(twin);
        self
    }

    /// Keeps the step in a reflog, which is started where there is none.
    pub fn logged(mut self, message: impl Into<String>) -> Self {
        self.log = Some(message.into());
        self
    }
}

/// How often a step is tried again while somebody else holds git's lock on the ref.
const TRIES: u32 = 40;
/// After so many tries, half a second, a lock that has not changed meanwhile may be a dead one's.
const SUSPICIOUS: u32 = 16;

/// The refs of a repository.
pub struct Refs<'r> {
    repository: &'r Repository,
}

impl<'r> Refs<'r> {
    pub(super) fn new(repository: &'r Repository) -> Self {
        Refs { repository }
    }

    /// Carries out the steps in the given order, each under its compare-and-swap.
    ///
    /// In process, a step that fails may leave earlier ones done: the last step is the commit
    /// point and the earlier ones must be harmless alone. Settings that follow each other are cheaper
    /// together, as are deletions, and none of them is done where one does not find what it expects.
    ///
    /// # Errors
    /// [`Error::Moved`] when an expectation is not met, [`Error::Locked`] when git's lock on the
    /// ref stays held, [`Error::Hook`] when a `reference-transaction` hook refuses.
    pub fn apply(&self, updates: &[RefUpdate]) -> Result<()> {
        let mut publish = Publish::of_refs(self.repository);
        publish.apply(updates)?;
        publish.finish();
        Ok(())
    }

    /// As [`Refs::apply`], for moves that must be on disk before whatever changes below these folders from
    /// now on, and need not be sooner.
    ///
    /// # Errors
    /// As [`Refs::apply`].
    pub fn apply_before(&self, updates: &[RefUpdate], changes: &[&Path]) -> Result<()> {
        let mut publish = Publish::of_refs(self.repository);
        publish.apply(updates)?;
        publish.finish_before(changes);
        Ok(())
    }

    /// Carries the steps out as part of a publish.
    pub(super) fn apply_in(&self, updates: &[RefUpdate], publish: &mut Publish<'_>) -> Result<()> {
        if updates.is_empty() {
            return Ok(());
        }
        // Git's own rule: what is in a quarantine may be thrown away when its hook has ended.
        if self.repository.is_quarantined() {
            return Err(Error::Unsupported {
                what: "no ref may be moved from inside a quarantine (a 'pre-receive' hook)"
                    .to_owned(),
            });
        }
        match self.repository.ref_backend() {
            RefBackend::Git => {
                publish.make_durable(Vec::new())?;
                self.apply_by_git(updates)
            }
            RefBackend::InProcess => {
                let deletes = updates.iter().any(|update| update.new.is_none());
                let names = updates.iter().map(|update| update.name.as_str());
                let names: Vec<&str> = names.chain(deletes.then_some(marks::PACKED)).collect();
                let mark = Mark::new(&self.repository.relo_dir(), &names);
                fault::point("refs-marked");
                updates
                    .chunk_by(|one, next| one.new.is_some() == next.new.is_some())
                    .try_for_each(|steps| self.step(steps, mark.as_ref(), publish))?;
                fault::point("refs-done");
                Ok(())
            }
        }
    }

    /// Carries out updates, or deletions, that follow each other.
    fn step(
        &self,
        steps: &[RefUpdate],
        mark: Option<&Mark>,
        publish: &mut Publish<'_>,
    ) -> Result<()> {
        let mut attempt = 0;
        let mut done = 0;
        let lock_of = |update: &RefUpdate| self.path_of(&format!("{}.lock", update.name));
        let mut seen = None;
        // Made, and not yet written.
        fault::leaving("ref-locked", || fault::empty_file(&lock_of(&steps[0])));
        loop {
            let tried = match steps[0].new {
                Some(_) => self.set(steps, &mut done, publish)?,
                None => {
                    publish.make_durable(Vec::new())?;
                    self.delete(steps, &mut done, mark)
                }
            };
            let (at, error) = match tried {
                Ok(()) => {
                    fault::point("ref-moved");
                    return Ok(());
                }
                Err(failed) => failed,
            };
            let update = &steps[at];
            let lock = lock_of(update);
            attempt += 1;
            if error.code() == ErrorCode::Locked {
                let now = marks::look(&lock);
                if attempt == 1 {
                    seen = now;
                } else if attempt == SUSPICIOUS {
                    self.break_dead_locks(&update.name, now.is_some() && now == seen);
                }
            }
            let again = match error.code() {
                ErrorCode::Modified | ErrorCode::Exists | ErrorCode::NotFound => {
                    let found = self.find(&update.name)?;
                    let met = match update.expect {
                        Expect::Anything => true,
                        Expect::Missing => found.is_none(),
                        Expect::Is(id) => found == Some(id),
                    };
                    if !met {
                        return Err(Error::Moved {
                            name: update.name.clone(),
                            expected: match update.expect {
                                Expect::Is(id) => Some(id),
                                _ => None,
                            },
                            found,
                        });
                    }
                    // The value is as expected: a passing view of `pack-refs` at work.
                    attempt < TRIES && error.class() != ErrorClass::Reference || attempt < 4
                }
                ErrorCode::Locked => attempt < TRIES,
                _ => error.class() == ErrorClass::Os && attempt < 4,
            };
            if !again {
                return Err(match error.code() {
                    ErrorCode::Locked => Error::Locked {
                        path: self.lock_in_the_way(&update.name),
                    },
                    _ => failed("update", &update.name, &error),
                });
            }
            sleep(nap(attempt));
        }
    }

    /// The deepest folder on the way to a loose ref that is there already.
    pub(super) fn lowest_folder(&self, name: &str) -> PathBuf {
        let mut at = self.path_of(name);
        while at.pop() && !at.is_dir() {}
        at
    }

    pub(super) fn path_of(&self, name: &str) -> PathBuf {
        self.repository.common_dir().join(name)
    }

    pub(super) fn repository(&self) -> &'r Repository {
        self.repository
    }

    fn lock_in_the_way(&self, name: &str) -> PathBuf {
        let packed = self.repository.common_dir().join("packed-refs.lock");
        if packed.exists() {
            packed
        } else {
            self.path_of(&format!("{name}.lock"))
        }
    }
}

fn failed(action: &'static str, name: &str, error: &git2::Error) -> Error {
    Error::Ref {
        action,
        name: name.to_owned(),
        why: error.message().to_owned(),
    }
}

/// A pause that grows and differs between processes: some milliseconds at first, in all two seconds.
fn nap(attempt: u32) -> Duration {
    let jitter = u64::from(std::process::id().wrapping_mul(2_654_435_761) >> 20) % 2_000;
    let base = u64::from(attempt.min(25)) * 3_000;
    Duration::from_micros(base + jitter)
}
