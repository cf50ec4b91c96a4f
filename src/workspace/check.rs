//! What this repository is, what is done how in it, and what cannot be done, each with its reason.
//!
//! It asks the same questions as the commands do and changes nothing. A [`Limit`] on `create` means
//! that the repository can hold no workspace.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use rustix::fs::{Access, access};

use super::{Mode, Result, Store};
use crate::git::tree::{self, GITLINK};
use crate::git::{ObjectFormat, RefBackend, Repository, mentions_rewriting};
use crate::model::Refusal;

/// How something is done here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// What: `workspaces`, `refs`, `objects`, `content`, `packs`.
    pub what: &'static str,
    /// How: `in-process`, the git command, or of workspaces the mode.
    pub how: &'static str,
    /// Why.
    pub why: String,
}

/// Something that cannot be done here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// What: the command, or `<command>-<object>`.
    pub what: &'static str,
    /// The refusal's stable kind.
    pub kind: Refusal,
    /// Why not.
    pub why: String,
}

/// What this repository is and how it is served.
#[derive(Clone, Debug)]
pub struct Check {
    /// The git dir.
    pub git_dir: PathBuf,
    /// The git dir that all worktrees share.
    pub common_dir: PathBuf,
    /// The top of the working tree.
    pub work_dir: Option<PathBuf>,
    /// The hash: `sha1` or `sha256`.
    pub object_format: &'static str,
    /// The storage of refs: `files` or `reftable`.
    pub ref_format: String,
    /// The forms beside the plain one, as [`Repository::forms`] names them.
    pub forms: Vec<String>,
    /// What is done how.
    pub ways: Vec<Way>,
    /// What cannot be done.
    pub limits: Vec<Limit>,
}

impl Check {
    /// Whether workspaces can be made here.
    pub fn holds_workspaces(&self) -> bool {
        self.limits.iter().all(|limit| limit.what != "create")
    }
}

/// What the attribute files of `HEAD` and the places outside of it say of content.
#[derive(Default)]
pub(super) struct Rewriting {
    /// Why content may be rewritten; `None` where nothing says so.
    pub(super) why: Option<String>,
    filters: BTreeSet<String>,
    submodules: usize,
}

impl Store<'_> {
    /// Looks at the repository.
    ///
    /// # Errors
    /// Settings that make no sense, objects that cannot be read.
    pub fn check_repository(&self) -> Result<Check> {
        let repository = self.repository;
        let rewriting = self.rewriting()?;
        Ok(Check {
            git_dir: repository.git_dir().to_owned(),
            common_dir: repository.common_dir().to_owned(),
            work_dir: repository.work_dir().map(Path::to_owned),
            object_format: match repository.format() {
                ObjectFormat::Sha256 => "sha256",
                _ => "sha1",
            },
            ref_format: repository.ref_format()?,
            forms: repository.forms()?,
            ways: self.ways(&rewriting)?,
            limits: self.limits(&rewriting)?,
        })
    }

    /// What is rewritten in this repository, as far as its `HEAD` and the settings say.
    pub(super) fn rewriting(&self) -> Result<Rewriting> {
        let mut found = Rewriting {
            why: self.repository.rewriting_from_outside()?,
            ..Rewriting::default()
        };
        let Some(head) = self.repository.head()? else {
            return Ok(found);
        };
        let objects = self.repository.objects()?;
        let listing = tree::listing(&objects, objects.commit(head)?.tree)?;
        for (path, entry) in &listing.files {
            found.submodules += usize::from(entry.mode == GITLINK);
            let name = path.rsplit_str("/").next().unwrap_or_default();
            if name != b".gitattributes" || !entry.is_file() {
                continue;
            }
            let text = objects.blob_at(path.as_bstr(), entry.id)?;
            if mentions_rewriting(&text) && found.why.is_none() {
                found.why = Some(format!("'{path}' speaks of it"));
            }
            found.filters.extend(filters(&text));
        }
        Ok(found)
    }

    fn limits(&self, rewriting: &Rewriting) -> Result<Vec<Limit>> {
        let repository = self.repository;
        let mut limits = Vec::new();
        let mut limit = |what, kind, why: String| limits.push(Limit { what, kind, why });
        if repository.is_quarantined() {
            let why = "no ref may be moved from inside a quarantine".to_owned();
            limit("create", Refusal::Unsupported, why);
        }
        for folder in [repository.common_dir(), repository.objects_dir()] {
            if access(folder, Access::WRITE_OK).is_err() {
                let why = format!("'{}' cannot be written to", folder.display());
                limit("create", Refusal::Unreadable, why);
            }
        }
        for name in ["refs/relo", "refs/relo/vws", "refs/heads/relo"] {
            if repository.refs().find(name)?.is_some() {
                let why = format!("the ref '{name}' leaves no room for ours");
                limit("create", Refusal::Unsupported, why);
            }
        }
        // Where the directory comes with the workspace, there is neither.
        let what = match self.form(None)?.mode {
            Mode::Virtual => "materialize",
            Mode::Worktree => "create",
        };
        for filter in &rewriting.filters {
            if let Some(why) = missing_filter(repository, filter)? {
                limit(what, Refusal::Unsupported, why);
            }
        }
        if repository.work_dir().is_none() {
            for what in ["create-without-base", "base", "accept", "undo"] {
                let why = "there is no working tree".to_owned();
                limit(what, Refusal::Unsupported, why);
            }
            return Ok(limits);
        }
        let unmerged = repository.unmerged_paths()?.len();
        if unmerged > 0 {
            let why = format!("{unmerged} paths are unmerged in the index");
            limit("accept-unmerged", Refusal::Unmerged, why);
        }
        let sparse = repository.config()?.bool("core.sparsecheckout")?;
        if sparse == Some(true) {
            let why = "what a sparse checkout leaves out has no file to merge into".to_owned();
            limit("accept-sparse", Refusal::Unsupported, why);
        }
        if rewriting.submodules > 0 {
            let why = format!(
                "where {} submodules stand is for their own repositories to say",
                rewriting.submodules
            );
            limit("accept-submodule", Refusal::NestedRepository, why);
        }
        Ok(limits)
    }

    fn ways(&self, rewriting: &Rewriting) -> Result<Vec<Way>> {
        let repository = self.repository;
        let mut ways = Vec::new();
        let form = self.form(None)?;
        let why = match (form.mode, rewriting.why.as_deref()) {
            (Mode::Virtual, _) => "a directory is there only while a tool needs one",
            (Mode::Worktree, Some(why)) if self.falls_back()? => why,
            (Mode::Worktree, _) => "'relo.workspace.mode' says so",
        };
        let mut way = |what, how, why: &str| {
            let why = why.to_owned();
            ways.push(Way { what, how, why });
        };
        way("workspaces", form.mode.as_str(), why);
        let how = match repository.ref_backend() {
            RefBackend::InProcess => "in-process",
            RefBackend::Git => "update-ref",
        };
        way("refs", how, repository.ref_backend_reason()?);
        match repository.is_partial() {
            true => way("objects", "cat-file", "git fetches what is missing"),
            false => way("objects", "in-process", "all of them are here"),
        }
        match &rewriting.why {
            Some(why) => way("content", "filters", why),
            None => way(
                "content",
                "in-process",
                "git stores files as they lie on disk",
            ),
        }
        match repository.keeps_every_object() {
            true => way("packs", "kept", "'extensions.preciousObjects' is set"),
            false => way("packs", "rolled-up", "at two dozen they become one"),
        }
        way("ignore-rules", "check-ignore", "git is asked");
        if repository.work_dir().is_some() {
            way(
                "working-tree",
                "status",
                "the user's index is git's to read",
            );
        }
        Ok(ways)
    }
}

/// The filter drivers that the text of an attribute file names.
fn filters(text: &[u8]) -> Vec<String> {
    let lines = text
        .lines()
        .filter(|line| !line.trim_ascii_start().starts_with(b"#"));
    let words = lines.flat_map(|line| line.fields_with(|c| c.is_ascii_whitespace()).skip(1));
    let names = words.filter_map(|word| word.strip_prefix(b"filter="));
    names.map(|name| name.to_str_lossy().into_owned()).collect()
}

/// Why a required filter cannot do its work; `None` where it can, or where nobody requires it.
fn missing_filter(repository: &Repository, filter: &str) -> Result<Option<String>> {
    let config = repository.config()?;
    let key = |name: &str| format!("filter.{filter}.{name}");
    if config.bool(&key("required"))? != Some(true) {
        return Ok(None);
    }
    let has = |name: &str| config.string(&key(name)).is_some_and(|set| !set.is_empty());
    if has("process") {
        return Ok(None);
    }
    let missing = ["clean", "smudge"].into_iter().find(|name| !has(name));
    Ok(missing.map(|name| format!("the required filter '{filter}' has no '{name}' command")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_are_found_where_they_are_set() {
        let text = b"# *.a filter=no\n*.bin filter=lfs diff=lfs\n*.txt -filter\n*.c filter=in dent";
        assert_eq!(filters(text), ["lfs", "in"]);
    }
}
