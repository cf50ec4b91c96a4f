//! What the user's index says of paths beside their content: unmerged, or kept out of the checkout.
//!
//! Asked of `git ls-files`, which reads every form of index (split, sparse), and never refreshes it; but
//! for an index of the plainest form, which holds no unmerged path and is read here.

use bstr::{BString, ByteSlice};

use super::index::IndexFile;
use super::{Error, Repository, Result};

impl Repository {
    /// The paths with unmerged stages in the user's index, in order, each once.
    ///
    /// # Errors
    /// [`Error::NoWorkTree`]; [`Error::Git`] when git cannot read the index.
    pub fn unmerged_paths(&self) -> Result<Vec<BString>> {
        self.require_work_dir()?;
        let elsewhere = self.environment().path("GIT_INDEX_FILE").is_some();
        if !elsewhere && IndexFile::open(&self.git_dir().join("index"), self.format()).is_ok() {
            return Ok(Vec::new());
        }
        let mut paths = self.listed("--unmerged")?;
        paths.dedup();
        Ok(paths)
    }

    /// The paths that a sparse checkout leaves out of the working tree, in order.
    ///
    /// # Errors
    /// As [`Repository::unmerged_paths`].
    pub fn sparse_paths(&self) -> Result<Vec<BString>> {
        self.listed("-t")
    }

    /// The paths of `ls-files` lines: `<tag> <path>` after `-t`, of which only skip-worktree ones
    /// count, else `<mode> <id> <stage>\t<path>`.
    fn listed(&self, option: &'static str) -> Result<Vec<BString>> {
        self.require_work_dir()?;
        let tagged = option == "-t";
        let out = self
            .git()
            .users_index()
            .args(["ls-files", "-z", option])
            .output()?;
        let mut paths = Vec::new();
        for line in out.split_str("\0").filter(|line| !line.is_empty()) {
            let (tag, path) = line
                .split_once_str(if tagged { " " } else { "\t" })
                .ok_or_else(|| Error::Answer {
                    command: "ls-files".to_owned(),
                    why: format!("unexpected line '{}'", line.as_bstr()),
                })?;
            if !tagged || tag == b"S" {
                paths.push(path.into());
            }
        }
        Ok(paths)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::git::ObjectFormat;
    use crate::git::scratch::Scratch;

    #[test]
    fn unmerged_and_sparse_paths_are_told() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let put = |name: &str, text: &str| std::fs::write(scratch.top().join(name), text).unwrap();
        put("a b", "base\n");
        put("s", "base\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "base"]);
        let repository = scratch.open();
        assert!(repository.unmerged_paths().unwrap().is_empty());
        assert!(repository.sparse_paths().unwrap().is_empty());
        scratch.git(&["update-index", "--skip-worktree", "s"]);
        let id = scratch.line(&["rev-parse", "HEAD:s"]);
        let stages: String = (1..4)
            .map(|stage| format!("100644 {id} {stage}\ta b\n"))
            .collect();
        scratch.git_with(&["update-index", "--index-info"], stages.as_bytes());
        assert_eq!(repository.unmerged_paths().unwrap(), ["a b"]);
        assert_eq!(repository.sparse_paths().unwrap(), ["s"]);
    }
}
