//! Finding and opening a repository: the one that git would use from here.
//!
//! libgit2 does the search; what it sees otherwise than git is put right here. Whose repository it may
//! be, git decides: it knows protected settings from the command line and a named git dir.

use std::cell::{Cell, OnceCell, RefCell};
use std::path::{Path, PathBuf};

use super::{RefBackend, Repository};
use crate::git::publish::PutOff;
use crate::git::{Environment, Error, Result, library, oracle};

impl Repository {
    /// Opens the repository that git would use from here: `GIT_DIR` and its relatives first, else
    /// the nearest one above the current directory.
    ///
    /// # Errors
    /// [`Error::NotARepository`], [`Error::NotOwned`] (git's own ownership rule), or
    /// [`Error::Unsupported`] for an extension that neither libgit2 nor we know.
    pub fn open(environment: Environment) -> Result<Self> {
        library::tune();
        if let Some(objects) = environment.path("GIT_OBJECT_DIRECTORY") {
            make_pack_folder(&objects);
        }
        // What git's own tests say to make every repository somebody else's.
        let assumed = environment.get("GIT_TEST_ASSUME_DIFFERENT_OWNER").is_some();
        let raw = match find(&environment) {
            Err(e) if e.code() == git2::ErrorCode::Owner => None,
            Ok(_) if assumed => None,
            found => Some(found),
        };
        let raw = match raw {
            Some(found) => found,
            // libgit2 knows neither `git -c safe.directory` nor that a named GIT_DIR is trusted.
            None if oracle::is_trusted(&environment)? => {
                library::trust();
                find(&environment)
            }
            None => {
                return Err(Error::NotOwned {
                    path: nearest(&environment),
                });
            }
        };
        let raw = raw.map_err(|e| classify(e, &environment))?;
        Self::from_raw(raw, environment, true)
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
        Self::from_raw(raw, environment, false)
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

    /// `from_here` says that the repository was found through the environment, which then also
    /// says where the working tree is.
    fn from_raw(raw: git2::Repository, environment: Environment, from_here: bool) -> Result<Self> {
        // Git's own ref commands do not look below a namespace; libgit2's would.
        if environment.get("GIT_NAMESPACE").is_some() {
            raw.remove_namespace()?;
        }
        let git_dir = absolute(raw.path());
        let named = environment.path("GIT_COMMON_DIR").filter(|_| from_here);
        let common_named = named.is_some();
        let common_dir = named.unwrap_or_else(|| absolute(raw.commondir()));
        let objects_dir = environment
            .path("GIT_OBJECT_DIRECTORY")
            .unwrap_or_else(|| common_dir.join("objects"));
        make_pack_folder(&objects_dir);
        let files = raw.config()?.snapshot()?;
        // GIT_DIR alone means "the working tree is here", unless the repository says otherwise.
        let here = from_here
            && environment.path("GIT_DIR").is_some()
            && environment.path("GIT_WORK_TREE").is_none()
            && !raw.is_bare()
            && files.get_string("core.worktree").is_err();
        let named = environment.path("GIT_WORK_TREE").filter(|_| from_here);
        let named = named.or_else(|| here.then(|| environment.current_dir.clone()));
        let work_dir = match named {
            // libgit2 would start a relative one at the git dir, and git starts at the caller.
            Some(top) => {
                let top = top.canonicalize().unwrap_or(top);
                raw.set_workdir(&top, false)?;
                Some(top)
            }
            None => raw.workdir().map(absolute),
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
            partial: OnceCell::new(),
            index_without_attributes: Cell::new(None),
            packed_refs: RefCell::default(),
            progress: OnceCell::new(),
            put_off: PutOff::default(),
            volume: OnceCell::new(),
        };
        // libgit2 finds no loose ref in a listing where the common dir is named for it.
        if reftable || common_named || repository.has_transaction_hook()? {
            repository.ref_backend = RefBackend::Git;
        }
        Ok(repository)
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
        if self.objects_dir != absolute(raw.commondir()).join("objects") {
            let path = self.objects_dir.to_string_lossy();
            raw.odb()?.add_disk_alternate(&path)?;
        }
        let mut again = Repository::from_raw(raw, self.environment.clone(), false)?;
        again.objects_dir.clone_from(&self.objects_dir);
        if let Some(top) = &self.work_dir {
            again.raw.set_workdir(top, false)?;
        }
        again.work_dir.clone_from(&self.work_dir);
        Ok(again)
    }
}

/// The repository that the process's own environment and current directory mean.
fn find(env: &Environment) -> Result<git2::Repository, git2::Error> {
    let found = git2::Repository::open_from_env();
    let tree = env.get("GIT_WORK_TREE").map(Path::new);
    match (found, env.path("GIT_DIR")) {
        // It looked for a relative working tree beside the git dir, where there need be none.
        (Err(e), Some(git_dir)) if tree.is_some_and(Path::is_relative) => {
            let flags = git2::RepositoryOpenFlags::NO_SEARCH;
            git2::Repository::open_ext(git_dir, flags, std::iter::empty::<&Path>()).map_err(|_| e)
        }
        (found, _) => found,
    }
}

/// Makes the folder for packs, where an object folder has none yet: libgit2 would not see a pack
/// that is put there later. A folder that cannot be written to holds no new pack either.
fn make_pack_folder(objects: &Path) {
    let packs = objects.join("pack");
    if objects.is_dir() && !packs.exists() {
        let _ = std::fs::create_dir(packs);
    }
}

/// The repository at or above the current directory, as git names it in its own refusal.
fn nearest(env: &Environment) -> PathBuf {
    if let Some(git_dir) = env.path("GIT_DIR") {
        return git_dir;
    }
    let above = env.current_dir.ancestors().find(|at| {
        let bare = at.join("HEAD").is_file() && at.join("objects").is_dir();
        bare || at.join(".git").exists()
    });
    above.unwrap_or(&env.current_dir).to_owned()
}

fn absolute(path: &Path) -> PathBuf {
    // libgit2 gives absolute paths with a trailing slash; components drop it.
    path.components().collect()
}

/// Tells libgit2's refusals apart by their codes, never by their words.
fn classify(error: git2::Error, env: &Environment) -> Error {
    match (error.code(), error.class()) {
        (git2::ErrorCode::NotFound, _) => Error::NotARepository {
            from: env
                .path("GIT_DIR")
                .unwrap_or_else(|| env.current_dir.clone()),
        },
        (git2::ErrorCode::Owner, _) => Error::NotOwned { path: nearest(env) },
        (_, git2::ErrorClass::Repository) => Error::Unsupported {
            what: format!("cannot serve this repository: {}", error.message()),
        },
        _ => Error::Open { source: error },
    }
}
