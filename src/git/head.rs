//! What a tool did to the `HEAD` of a directory that we laid out, and to its index.

use std::path::Path;

use bstr::{BString, ByteSlice};

use super::index::{self, IndexFile};
use super::{Error, ObjectId, RefBackend, Repository, Result};

/// The `HEAD` of one directory of the repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The commit; `None` on an unborn branch.
    pub commit: Option<ObjectId>,
    /// The full name of the branch; `None` when detached.
    pub branch: Option<String>,
}

impl Repository {
    /// The `HEAD` of a directory with its own git dir. On files it is read without a process.
    ///
    /// # Errors
    /// [`Error::Ref`] when it makes no sense; failures of git.
    pub fn head_of(&self, work_dir: &Path, git_dir: &Path) -> Result<Head> {
        if self.ref_backend() == RefBackend::Git {
            let git = || self.git().in_directory(work_dir, git_dir);
            return Ok(Head {
                commit: git().rev_parse("HEAD^{commit}")?,
                branch: git().symbolic_ref("HEAD")?,
            });
        }
        let file = git_dir.join("HEAD");
        let text = std::fs::read(&file).map_err(|e| Error::io("read", &file, e))?;
        let text = text.trim_ascii();
        let damaged = || Error::Ref {
            action: "read",
            name: "HEAD".to_owned(),
            why: format!("'{}' makes no sense", file.display()),
        };
        if let Some(branch) = text.strip_prefix(b"ref:") {
            let branch = branch.trim_ascii().to_str().map_err(|_| damaged())?;
            return Ok(Head {
                commit: self.refs().find(branch)?,
                branch: Some(branch.to_owned()),
            });
        }
        let hex = text.to_str().map_err(|_| damaged())?;
        let commit = ObjectId::from_str_ext(hex, self.format()).map_err(|_| damaged())?;
        Ok(Head {
            commit: Some(commit),
            branch: None,
        })
    }

    /// The commits that `HEAD` of a directory has been on, as its reflog tells, oldest first, each
    /// once. Without a reflog there are none.
    pub fn heads_in_reflog(&self, git_dir: &Path) -> Vec<ObjectId> {
        let mut seen = Vec::new();
        let text = std::fs::read(git_dir.join("logs/HEAD")).unwrap_or_default();
        for line in text.lines() {
            let new = line.split_str(" ").nth(1).and_then(|hex| hex.to_str().ok());
            let new = new.and_then(|hex| ObjectId::from_str_ext(hex, self.format()).ok());
            if let Some(id) = new.filter(|id| !id.is_zero() && !seen.contains(id)) {
                seen.push(id);
            }
        }
        seen
    }

    /// Whether `ancestor` is `commit` itself or in its history.
    ///
    /// # Errors
    /// When the history cannot be read.
    pub fn is_in_history(&self, ancestor: ObjectId, commit: ObjectId) -> Result<bool> {
        Ok(ancestor == commit || self.raw().graph_descendant_of(commit, ancestor)?)
    }

    /// The paths in the index of a directory with its own git dir, in order, whatever form a tool
    /// has given it. No index holds none.
    ///
    /// # Errors
    /// [`Error::Git`] when git cannot read it either.
    pub fn paths_in_index(&self, work_dir: &Path, git_dir: &Path) -> Result<Vec<BString>> {
        match IndexFile::open(&git_dir.join("index"), self.format()) {
            Ok(index) => Ok(index.entries().map(|e| e.path.to_owned()).collect()),
            Err(index::Error::Io { source, .. })
                if source.kind() == std::io::ErrorKind::NotFound =>
            {
                Ok(Vec::new())
            }
            Err(_) => {
                let out = self
                    .git()
                    .in_directory(work_dir, git_dir)
                    .args(["ls-files", "-z"])
                    .output()?;
                let mut paths: Vec<BString> = out
                    .split_str("\0")
                    .filter(|path| !path.is_empty())
                    .map(BString::from)
                    .collect();
                paths.dedup();
                Ok(paths)
            }
        }
    }
}
