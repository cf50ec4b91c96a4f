//! The repository a command works on: where its parts are, and how its refs and objects are served.

use std::cell::{Cell, OnceCell, RefCell};
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::index::IndexStamp;
use super::publish::PutOff;
use super::refs::PackedList;
use super::{Config, Environment, Error, GitCommand, ObjectFormat, ObjectId, Refs, Result};
use crate::disk::Volume;
use crate::model::{Progress, Silent};

mod open;

pub use open::Door;

/// Who writes the refs of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefBackend {
    /// libgit2, in this process: the files back end without a `reference-transaction` hook.
    InProcess,
    /// `git update-ref` and `git for-each-ref`: reftable, which libgit2 does not know; a hook that
    /// has a say in every transaction and that libgit2 would not ask; a `GIT_COMMON_DIR`, in which
    /// libgit2 lists no ref.
    Git,
}

/// An open repository.
pub struct Repository {
    raw: git2::Repository,
    environment: Environment,
    config: OnceCell<Config>,
    git_dir: PathBuf,
    common_dir: PathBuf,
    objects_dir: PathBuf,
    work_dir: Option<PathBuf>,
    format: ObjectFormat,
    ref_backend: RefBackend,
    reftable: bool,
    partial: OnceCell<bool>,
    /// The state of the user's index that was last asked for attribute files, and whether it is known
    /// to hold none.
    pub(super) index_without_attributes: Cell<Option<(IndexStamp, bool)>>,
    /// The packed refs, as they were last read.
    pub(super) packed_refs: RefCell<PackedList>,
    progress: OnceCell<Arc<dyn Progress>>,
    /// What publishes leave to be flushed by a later one.
    pub(super) put_off: PutOff,
    /// Where names of objects and refs are kept in order.
    pub(super) volume: OnceCell<Option<Volume>>,
}

impl Repository {
    /// The git dir: of a linked worktree, its own one.
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The git dir that all worktrees share.
    pub fn common_dir(&self) -> &Path {
        &self.common_dir
    }

    /// Where new objects go.
    pub fn objects_dir(&self) -> &Path {
        &self.objects_dir
    }

    /// The folder for our caches, locks and the log: `<common-dir>/relo`.
    pub fn relo_dir(&self) -> PathBuf {
        self.common_dir.join("relo")
    }

    /// The top of the working tree; `None` in a bare repository.
    pub fn work_dir(&self) -> Option<&Path> {
        self.work_dir.as_deref()
    }

    /// The top of the working tree.
    ///
    /// # Errors
    /// [`Error::NoWorkTree`] in a bare repository.
    pub fn require_work_dir(&self) -> Result<&Path> {
        self.work_dir().ok_or(Error::NoWorkTree)
    }

    /// The hash of the repository's objects.
    pub fn format(&self) -> ObjectFormat {
        self.format
    }

    /// Who hears how far long work is; nobody unless [`Repository::set_progress`] was called.
    pub fn progress(&self) -> &dyn Progress {
        self.progress.get().map_or(&Silent, |progress| &**progress)
    }

    /// Whether anybody hears how far long work is.
    pub fn is_heard(&self) -> bool {
        self.progress.get().is_some()
    }

    /// Lets somebody hear of it; the first one stays.
    pub fn set_progress(&self, progress: Arc<dyn Progress>) {
        let _ = self.progress.set(progress);
    }

    /// Whether a missing object may be one that a promisor remote still has.
    pub fn is_partial(&self) -> bool {
        // Settings that make no sense are said by whoever needs them.
        let look = || self.config().is_ok_and(Config::has_promisor);
        *self.partial.get_or_init(look)
    }

    /// Whether history is cut off by `git clone --depth`.
    pub fn is_shallow(&self) -> bool {
        self.raw.is_shallow()
    }

    /// Who writes the refs.
    pub fn ref_backend(&self) -> RefBackend {
        self.ref_backend
    }

    /// Whether refs live in a reftable instead of files.
    pub fn is_reftable(&self) -> bool {
        self.reftable
    }

    /// The caller's environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The refs.
    pub fn refs(&self) -> Refs<'_> {
        Refs::new(self)
    }

    /// A `git` process in this repository, in an environment of our making.
    pub fn git(&self) -> GitCommand<'_> {
        GitCommand::new(self)
    }

    /// The settings, `git -c` included.
    ///
    /// # Errors
    /// [`Error::Config`] when `GIT_CONFIG_PARAMETERS` or `GIT_CONFIG_COUNT` make no sense.
    pub fn config(&self) -> Result<&Config> {
        if self.config.get().is_none() {
            // As it is now: libgit2 would look at every file again for every setting.
            let files = self.raw.config()?.snapshot()?;
            let config = Config::new(files, &self.environment)?;
            let _ = self.config.set(config);
        }
        Ok(self.config.get().expect("invariant: it was just set"))
    }

    /// The commit that `HEAD` names, if it names one; `None` on an unborn branch.
    ///
    /// # Errors
    /// [`Error::Ref`] when `HEAD` is damaged.
    pub fn head(&self) -> Result<Option<ObjectId>> {
        if self.ref_backend == RefBackend::Git {
            return self.git().rev_parse("HEAD^{commit}");
        }
        match self.raw.head() {
            Ok(head) => Ok(head.peel_to_commit().map(|c| Some(c.id()))?),
            Err(e)
                if matches!(
                    e.code(),
                    git2::ErrorCode::UnbornBranch | git2::ErrorCode::NotFound
                ) =>
            {
                Ok(None)
            }
            Err(e) => Err(Error::Ref {
                action: "read",
                name: "HEAD".to_owned(),
                why: e.message().to_owned(),
            }),
        }
    }

    /// The full name of the branch that `HEAD` is on (born or not); `None` when detached.
    ///
    /// # Errors
    /// [`Error::Ref`] when `HEAD` cannot be read.
    pub fn head_branch(&self) -> Result<Option<String>> {
        if self.ref_backend == RefBackend::Git {
            return self.git().symbolic_ref("HEAD");
        }
        let head = self.raw.find_reference("HEAD").map_err(|e| Error::Ref {
            action: "read",
            name: "HEAD".to_owned(),
            why: e.message().to_owned(),
        })?;
        Ok(head
            .symbolic_target_bytes()
            .map(|name| String::from_utf8_lossy(name).into_owned()))
    }

    /// The commit that a revision names, in git's own syntax.
    ///
    /// # Errors
    /// [`Error::BadRevision`] when it names none.
    pub fn resolve_commit(&self, spec: &str) -> Result<ObjectId> {
        let bad = || Error::BadRevision {
            spec: spec.to_owned(),
        };
        if self.ref_backend == RefBackend::InProcess {
            let object = self.raw.revparse_single(spec);
            match object.and_then(|object| object.peel_to_commit()) {
                Ok(commit) => return Ok(commit.id()),
                // What it takes to tell may have to be fetched.
                Err(_) if self.is_partial() => {}
                Err(_) => return Err(bad()),
            }
        }
        let found = self.git().rev_parse(&format!("{spec}^{{commit}}"))?;
        found.ok_or_else(bad)
    }

    /// Whether a commit is another one or among its ancestors.
    ///
    /// # Errors
    /// When the history between them cannot be read.
    pub fn is_ancestor(&self, old: ObjectId, new: ObjectId) -> Result<bool> {
        Ok(old == new || self.raw.graph_descendant_of(new, old)?)
    }

    /// The object names for the empty tree and the null id of this repository's hash.
    pub fn empty_tree(&self) -> Result<ObjectId> {
        Ok(ObjectId::hash_object_ext(
            git2::ObjectType::Tree,
            b"",
            self.format,
        )?)
    }

    /// Whether the user has an executable `reference-transaction` hook.
    pub(super) fn has_transaction_hook(&self) -> Result<bool> {
        let folder = match self.config()?.string("core.hookspath") {
            Some(path) if !path.is_empty() => {
                let top = self.work_dir.as_deref().unwrap_or(&self.git_dir);
                top.join(expand_home(&path, &self.environment))
            }
            _ => self.common_dir.join("hooks"),
        };
        Ok(std::fs::metadata(folder.join("reference-transaction"))
            .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0))
    }

    /// Flushes a directory, so that the names in it survive a power cut.
    pub fn flush_dir(path: &Path) -> Result<()> {
        File::open(path)
            .and_then(|dir| dir.sync_all())
            .map_err(|e| Error::io("flush", path, e))
    }

    pub(super) fn raw(&self) -> &git2::Repository {
        &self.raw
    }
}

fn expand_home(path: &str, env: &Environment) -> PathBuf {
    match (path.strip_prefix("~/"), env.path("HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}
