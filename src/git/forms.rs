//! What kind of repository this is: the forms that git knows and that change how things are done.
//!
//! Told from settings and from the files that git itself goes by; nothing is read in full and no
//! process runs.

use std::path::Path;

use super::{RefBackend, Repository, Result};

impl Repository {
    /// The forms that this repository has beside the plain one, in a fixed order, each a word of
    /// git's own where there is one.
    ///
    /// # Errors
    /// [`super::Error::Config`] for a setting that makes no sense.
    pub fn forms(&self) -> Result<Vec<String>> {
        let config = self.config()?;
        let is = |key: &str| Ok::<bool, super::Error>(config.bool(key)? == Some(true));
        let is_not = |key: &str| Ok::<bool, super::Error>(config.bool(key)? == Some(false));
        let sparse = is("core.sparsecheckout")?;
        let all = [
            ("bare", self.work_dir().is_none()),
            ("linked-worktree", self.git_dir() != self.common_dir()),
            ("shallow", self.is_shallow()),
            ("partial-clone", self.is_partial()),
            ("alternates", self.has_alternates()),
            ("quarantine", self.is_quarantined()),
            ("unborn", self.head()?.is_none()),
            ("detached", self.head_branch()?.is_none()),
            ("sparse-cone", sparse && is("core.sparsecheckoutcone")?),
            ("sparse-patterns", sparse && !is("core.sparsecheckoutcone")?),
            ("sparse-index", sparse && is("index.sparse")?),
            ("split-index", self.has_split_index()),
            ("precious-objects", self.keeps_every_object()),
            ("no-file-mode", is_not("core.filemode")?),
            ("no-symlinks", is_not("core.symlinks")?),
            ("ignore-case", is("core.ignorecase")?),
            ("precompose-unicode", is("core.precomposeunicode")?),
        ];
        let words = all.into_iter().filter(|(_, has)| *has);
        let words = words.map(|(word, _)| word.to_owned());
        Ok(words.chain(self.under_way()).collect())
    }

    /// What the user has begun and not finished: `merge`, `rebase`, `cherry-pick`, `revert`,
    /// `bisect`, `am`.
    fn under_way(&self) -> impl Iterator<Item = String> {
        let files = [
            ("merge", "MERGE_HEAD"),
            ("rebase", "rebase-merge"),
            ("am", "rebase-apply"),
            ("cherry-pick", "CHERRY_PICK_HEAD"),
            ("revert", "REVERT_HEAD"),
            ("bisect", "BISECT_LOG"),
        ];
        let begun = files.map(|(word, file)| (word, self.git_dir().join(file).exists()));
        let begun = begun.into_iter().filter(|(_, begun)| *begun);
        begun.map(|(word, _)| format!("{word}-under-way"))
    }

    /// The storage of refs: `files`, or what `extensions.refStorage` names.
    ///
    /// # Errors
    /// As [`Repository::forms`].
    pub fn ref_format(&self) -> Result<String> {
        let set = self.config()?.string("extensions.refstorage");
        Ok(set.unwrap_or_else(|| "files".to_owned()))
    }

    /// Why refs go the way they go.
    ///
    /// # Errors
    /// As [`Repository::forms`].
    pub fn ref_backend_reason(&self) -> Result<&'static str> {
        Ok(match self.ref_backend() {
            RefBackend::InProcess => "files, and no hook has a say in a transaction",
            RefBackend::Git if self.ref_format()? != "files" => "libgit2 knows no reftable",
            RefBackend::Git if self.has_transaction_hook()? => {
                "the 'reference-transaction' hook has a say"
            }
            RefBackend::Git => "GIT_COMMON_DIR is set",
        })
    }

    /// Whether objects go to a quarantine, from inside of which no ref may be moved.
    pub fn is_quarantined(&self) -> bool {
        self.environment().get("GIT_QUARANTINE_PATH").is_some()
    }

    fn has_alternates(&self) -> bool {
        let file = self.objects_dir().join("info/alternates");
        let listed = std::fs::metadata(file).is_ok_and(|meta| meta.len() > 0);
        listed || self.environment().alternates().is_some()
    }

    /// A split index names a shared part, which lies beside it.
    fn has_split_index(&self) -> bool {
        let beside = |folder: &Path| {
            let mut names = std::fs::read_dir(folder).into_iter().flatten().flatten();
            names.any(|entry| {
                entry
                    .file_name()
                    .as_encoded_bytes()
                    .starts_with(b"sharedindex.")
            })
        };
        beside(self.git_dir())
    }
}
