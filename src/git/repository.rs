//! The repository a command works on: where its parts are, and how its refs and objects are served.

use std::cell::OnceCell;
use std::fs::File;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{
    Config, Environment, Error, GitCommand, ObjectFormat, ObjectId, Refs, Result, library,
};

/// Who writes the refs of a repository.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefBackend {
    /// libgit2, in this process: the files back end without a `reference-transaction` hook.
    InProcess,
    /// `git update-ref` and `git for-each-ref`: reftable, which libgit2 does not know, or a hook
    /// that has a say in every transaction and that libgit2 would not ask.
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
    partial: bool,
}

impl Repository {
    /// Opens the repository that git would use from here: `GIT_DIR` and its relatives first, else
    /// the nearest one above the current directory.
    ///
    /// # Errors
    /// [`Error::NotARepository`], [`Error::NotOwned`] (git's own ownership rule), or
    /// [`Error::Unsupported`] for an extension that neither libgit2 nor we know.
    pub fn open(environment: Environment) -> Result<Self> {
        library::tune();
        let raw = git2::Repository::open_from_env().map_err(|e| classify(e, &environment))?;
        Self::from_raw(raw, environment)
    }

    /// Opens the repository at or above a path, whatever this process's own `GIT_*` variables and
    /// current directory are. For embedders and tests; `environment` is what its `git` children see.
    ///
    /// # Errors
    /// As [`Repository::open`].
    pub fn open_at(path: &Path, mut environment: Environment) -> Result<Self> {
        library::tune();
        environment.current_dir = path.to_owned();
        let raw = git2::Repository::open_ext(
            path,
            git2::RepositoryOpenFlags::empty(),
            std::iter::empty::<&Path>(),
        )
        .map_err(|e| classify(e, &environment))?;
        Self::from_raw(raw, environment)
    }

    /// Opens the same repository once more.
    ///
    /// # Errors
    /// As [`Repository::open`].
    pub fn reopen(&self) -> Result<Self> {
        self.door().open()
    }

    /// What another thread needs to open the same repository: an open one belongs to its thread.
    pub fn door(&self) -> Door {
        Door {
            git_dir: self.git_dir.clone(),
            objects_dir: self.objects_dir.clone(),
            work_dir: self.work_dir.clone(),
            environment: self.environment.clone(),
        }
    }

    fn from_raw(raw: git2::Repository, environment: Environment) -> Result<Self> {
        // Git's own ref commands do not look below a namespace; libgit2's would.
        if environment.get("GIT_NAMESPACE").is_some() {
            raw.remove_namespace()?;
        }
        let git_dir = absolute(raw.path());
        let common_dir = absolute(raw.commondir());
        let objects_dir = environment
            .path("GIT_OBJECT_DIRECTORY")
            .unwrap_or_else(|| common_dir.join("objects"));
        let files = raw.config()?;
        // GIT_DIR alone means "the working tree is here", unless the repository says otherwise.
        let here = environment.path("GIT_DIR").is_some()
            && environment.path("GIT_WORK_TREE").is_none()
            && !raw.is_bare()
            && !raw.is_worktree()
            && files.get_string("core.worktree").is_err();
        let work_dir = if here {
            Some(environment.current_dir.clone())
        } else {
            raw.workdir().map(absolute)
        };
        let format = raw.object_format();
        let reftable = match files.get_string("extensions.refstorage").as_deref() {
            Ok(form) if form.starts_with("reftable") => true,
            Ok("files") | Err(_) => false,
            Ok(other) => {
                return Err(Error::Unsupported {
                    what: format!("unknown ref storage '{other}'"),
                });
            }
        };
        let partial = files.get_string("extensions.partialclone").is_ok();
        let mut repository = Repository {
            raw,
            environment,
            config: OnceCell::new(),
            git_dir,
            common_dir,
            objects_dir,
            work_dir,
            format,
            ref_backend: RefBackend::InProcess,
            reftable,
            partial,
        };
        if reftable || repository.has_transaction_hook()? {
            repository.ref_backend = RefBackend::Git;
        }
        Ok(repository)
    }

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

    /// Whether a missing object may be one that a promisor remote still has.
    pub fn is_partial(&self) -> bool {
        self.partial
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
            let config = Config::new(self.raw.config()?, &self.environment)?;
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
        if self.ref_backend == RefBackend::Git || self.partial {
            let found = self.git().rev_parse(&format!("{spec}^{{commit}}"))?;
            return found.ok_or_else(bad);
        }
        let object = self.raw.revparse_single(spec).map_err(|_| bad())?;
        Ok(object.peel_to_commit().map_err(|_| bad())?.id())
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

/// A repository that can be opened once more, in any thread.
#[derive(Clone, Debug)]
pub struct Door {
    git_dir: PathBuf,
    objects_dir: PathBuf,
    work_dir: Option<PathBuf>,
    environment: Environment,
}

impl Door {
    /// Opens the repository.
    ///
    /// # Errors
    /// As [`Repository::open`].
    pub fn open(&self) -> Result<Repository> {
        let raw = git2::Repository::open_ext(
            &self.git_dir,
            git2::RepositoryOpenFlags::NO_SEARCH,
            std::iter::empty::<&Path>(),
        )
        .map_err(|e| classify(e, &self.environment))?;
        if self.environment.path("GIT_OBJECT_DIRECTORY").is_some() {
            let path = self.objects_dir.to_string_lossy();
            raw.odb()?.add_disk_alternate(&path)?;
        }
        let mut again = Repository::from_raw(raw, self.environment.clone())?;
        again.objects_dir.clone_from(&self.objects_dir);
        again.work_dir.clone_from(&self.work_dir);
        Ok(again)
    }
}

fn absolute(path: &Path) -> PathBuf {
    // libgit2 gives absolute paths with a trailing slash; components drop it.
    path.components().collect()
}

fn expand_home(path: &str, env: &Environment) -> PathBuf {
    match (path.strip_prefix("~/"), env.path("HOME")) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Tells libgit2's refusals apart by their codes, never by their words.
fn classify(error: git2::Error, env: &Environment) -> Error {
    match (error.code(), error.class()) {
        (git2::ErrorCode::NotFound, _) => Error::NotARepository {
            from: env
                .path("GIT_DIR")
                .unwrap_or_else(|| env.current_dir.clone()),
        },
        (git2::ErrorCode::Owner, _) => Error::NotOwned {
            path: env.current_dir.clone(),
        },
        (_, git2::ErrorClass::Repository) => Error::Unsupported {
            what: format!("cannot serve this repository: {}", error.message()),
        },
        _ => Error::Open { source: error },
    }
}
