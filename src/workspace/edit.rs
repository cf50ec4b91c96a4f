//! Edits through the view: write, delete, rename, chmod, symlink.
//!
//! An [`Editor`] applies any number of edits to a tree in memory; the trees on the changed paths
//! are written once, at the end. Nothing is ever written *through* a link, and a link that would
//! leave the workspace is not made.

use std::collections::BTreeMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Change, Error, Kind, Published, Result, Store, Terms};
use crate::git::tree::{self, Entry};
use crate::git::{ObjectId, ObjectKind, Staging};
use crate::model::{AgentId, Refusal, RepoPath};

/// One edit of an overlay.
#[derive(Clone, Debug)]
pub enum Edit {
    /// Puts bytes at a path; the executable bit stays unless it is given.
    Write {
        /// The path.
        path: RepoPath,
        /// The whole new content.
        bytes: Vec<u8>,
        /// The executable bit, if it is to be set or cleared.
        executable: Option<bool>,
    },
    /// Removes a file, a link, or, when `recursive`, a folder with all that is in it.
    Delete {
        /// The path.
        path: RepoPath,
        /// Whether a folder may go.
        recursive: bool,
    },
    /// Gives a file, a link or a folder another name.
    Rename {
        /// The old name.
        from: RepoPath,
        /// The new name, which must be free unless `force`.
        to: RepoPath,
        /// Whether a file at the new name is replaced.
        force: bool,
    },
    /// Sets or clears the executable bit of a file.
    Chmod {
        /// The path.
        path: RepoPath,
        /// The bit.
        executable: bool,
    },
    /// Makes a link.
    Symlink {
        /// The path of the link.
        path: RepoPath,
        /// What it says; relative to the link's folder.
        target: BString,
    },
}

impl Edit {
    /// What a revision with just this edit is called.
    pub fn kind(&self) -> Kind {
        match self {
            Edit::Write { .. } => Kind::Write,
            Edit::Delete { .. } => Kind::Delete,
            Edit::Rename { .. } => Kind::Rename,
            Edit::Chmod { .. } => Kind::Chmod,
            Edit::Symlink { .. } => Kind::Symlink,
        }
    }
}

impl Store<'_> {
    /// Publishes some edits as one revision; all of them or none.
    ///
    /// # Errors
    /// [`Error::NoPath`], and the refusals `type_change`, `escapes`, `protected_path`, `too_large`
    /// and those of [`Store::publish`].
    pub fn edit(&self, agent: &AgentId, terms: Terms, edits: &[Edit]) -> Result<Published> {
        let limit = super::max_file_size(self.repository)?;
        self.publish(agent, terms, |workspace, staging| {
            let mut editor = Editor::new(workspace.tree, limit);
            for edit in edits {
                editor.apply(staging, edit)?;
            }
            let tree = editor.finish(staging)?;
            // To write what is there already says that a conflict is settled like this.
            let conflicts = workspace.meta.conflicts();
            let settles = || editor.touched.iter().any(|path| conflicts.contains(path));
            if tree == workspace.tree && !settles() {
                return Ok(None);
            }
            let kind = match edits {
                [one] => one.kind(),
                _ => Kind::Batch,
            };
            Ok(Some(Change::new(kind, editor.touched(), tree)))
        })
    }
}

/// A tree that is being edited.
pub struct Editor {
    tree: ObjectId,
    pending: BTreeMap<BString, Option<Entry>>,
    touched: Vec<BString>,
    limit: u64,
}

impl Editor {
    /// Starts from `tree`; no file may be larger than `limit` bytes.
    pub fn new(tree: ObjectId, limit: u64) -> Self {
        Editor {
            tree,
            pending: BTreeMap::new(),
            touched: Vec::new(),
            limit,
        }
    }

    /// Applies one edit.
    ///
    /// # Errors
    /// As [`Store::edit`]; the editor is then to be thrown away.
    pub fn apply(&mut self, staging: &mut Staging<'_>, edit: &Edit) -> Result<()> {
        match edit {
            Edit::Write {
                path,
                bytes,
                executable,
            } => {
                if bytes.len() as u64 > self.limit {
                    let what = format!("'{path}' is larger than {} bytes", self.limit);
                    return Err(Error::refused(Refusal::TooLarge, what));
                }
                let old = self.target(staging, path, false)?;
                let executable = executable
                    .unwrap_or_else(|| old.is_some_and(|old| old.mode == tree::EXECUTABLE));
                let mode = if executable {
                    tree::EXECUTABLE
                } else {
                    tree::REGULAR
                };
                let id = staging.add(ObjectKind::Blob, bytes)?;
                self.set(path, Some(Entry { mode, id }));
            }
            Edit::Symlink { path, target } => {
                check_link(path, target.as_bstr())?;
                self.target(staging, path, true)?;
                let id = staging.add(ObjectKind::Blob, target)?;
                let mode = tree::LINK;
                self.set(path, Some(Entry { mode, id }));
            }
            Edit::Delete { path, recursive } => {
                let old = self.existing(staging, path)?;
                if old.mode == tree::TREE && !recursive {
                    let what = format!("'{path}' is a folder");
                    return Err(Error::refused(Refusal::TypeChange, what));
                }
                self.set(path, None);
            }
            Edit::Chmod { path, executable } => {
                let old = self.existing(staging, path)?;
                if !matches!(old.mode, tree::REGULAR | tree::EXECUTABLE | 0o100664) {
                    let what = format!("'{path}' is not a regular file");
                    return Err(Error::refused(Refusal::TypeChange, what));
                }
                let mode = if *executable {
                    tree::EXECUTABLE
                } else {
                    tree::REGULAR
                };
                self.set(path, Some(Entry { mode, id: old.id }));
            }
            Edit::Rename { from, to, force } => self.rename(staging, from, to, *force)?,
        }
        Ok(())
    }

    fn rename(
        &mut self,
        staging: &mut Staging<'_>,
        from: &RepoPath,
        to: &RepoPath,
        force: bool,
    ) -> Result<()> {
        let old = self.existing(staging, from)?;
        if from == to {
            return Ok(());
        }
        if to.starts_with_dir(from.as_bstr()) || from.starts_with_dir(to.as_bstr()) {
            let what = format!("cannot rename '{from}' to '{to}': one is inside the other");
            return Err(Error::Invalid(what));
        }
        if self.target(staging, to, true)?.is_some() && !force {
            let what = format!("'{to}' exists already");
            return Err(Error::refused(Refusal::Conflict, what));
        }
        if old.mode == tree::LINK {
            let text = staging.read(old.id, ObjectKind::Blob)?;
            check_link(to, text.as_bstr())?;
        }
        self.set(from, None);
        self.set(to, Some(old));
        Ok(())
    }

    /// The entry at a path that shall be written: its way must not lead through a file or a link,
    /// and a folder does not give way to a file. A link does only where `over_link`.
    fn target(
        &mut self,
        staging: &mut Staging<'_>,
        path: &RepoPath,
        over_link: bool,
    ) -> Result<Option<Entry>> {
        let mut at = path.parent();
        while let Some(folder) = at {
            // What was written below a folder makes it one, without a look at any tree.
            if self.holds_below(folder.as_bstr()) {
                break;
            }
            match self.find(staging, folder.as_bstr())? {
                Some(Entry { mode, .. }) if mode != tree::TREE => {
                    let (kind, is) = match mode {
                        tree::LINK => (Refusal::Escapes, "a link, which is never written through"),
                        tree::GITLINK => (Refusal::NestedRepository, "a submodule"),
                        _ => (Refusal::TypeChange, "a file"),
                    };
                    let what = format!("'{}' is {is}", folder.as_bstr());
                    return Err(Error::refused(kind, what));
                }
                Some(_) => break,
                None => at = folder.parent(),
            }
        }
        let found = self.find(staging, path.as_bstr())?;
        let is = match found.map(|entry| entry.mode) {
            Some(tree::TREE) => "a folder",
            Some(tree::GITLINK) => "a submodule",
            Some(tree::LINK) if !over_link => "a link, which is never written through",
            _ => return Ok(found),
        };
        let what = format!("'{path}' is {is}");
        Err(Error::refused(Refusal::TypeChange, what))
    }

    fn existing(&mut self, staging: &mut Staging<'_>, path: &RepoPath) -> Result<Entry> {
        self.find(staging, path.as_bstr())?
            .ok_or_else(|| Error::NoPath {
                path: path.as_bstr().to_owned(),
                place: "the overlay".to_owned(),
            })
    }

    fn find(&mut self, staging: &mut Staging<'_>, path: &BStr) -> Result<Option<Entry>> {
        if let Some(pending) = self.pending.get(path) {
            return Ok(*pending);
        }
        // An edit above or below this path changes what is here: fold the edits in first.
        if self.related(path) {
            self.fold(staging)?;
        }
        Ok(tree::lookup(staging, self.tree, path)?)
    }

    /// The pending edits below a path.
    fn below(&self, path: &BStr) -> impl Iterator<Item = &Option<Entry>> {
        let mut folder = path.to_owned();
        folder.push(b'/');
        self.pending
            .range(folder.clone()..)
            .take_while(move |(other, _)| other.starts_with(&folder))
            .map(|(_, entry)| entry)
    }

    /// Whether a pending edit puts something below a path.
    fn holds_below(&self, path: &BStr) -> bool {
        self.below(path).any(Option::is_some)
    }

    /// Whether a pending edit is above or below a path.
    fn related(&self, path: &BStr) -> bool {
        let above = |slash| self.pending.contains_key(path[..slash].as_bstr());
        path.find_iter("/").any(above) || self.below(path).next().is_some()
    }

    fn set(&mut self, path: &RepoPath, entry: Option<Entry>) {
        self.pending.insert(path.as_bstr().to_owned(), entry);
        self.touched.push(path.as_bstr().to_owned());
    }

    fn fold(&mut self, staging: &mut Staging<'_>) -> Result<()> {
        if !self.pending.is_empty() {
            self.tree = tree::edit(staging, self.tree, &self.pending)?;
            self.pending.clear();
        }
        Ok(())
    }

    /// The tree with all edits in it.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn finish(&mut self, staging: &mut Staging<'_>) -> Result<ObjectId> {
        self.fold(staging)?;
        Ok(self.tree)
    }

    /// The paths that were edited, in order, each once.
    pub fn touched(&self) -> Vec<BString> {
        let mut paths = self.touched.clone();
        paths.sort();
        paths.dedup();
        paths
    }
}

/// Refuses a link that would leave the workspace.
///
/// # Errors
/// The refusal `escapes`, or `protected_path` for a name that git keeps to regular files.
pub(crate) fn check_link(path: &RepoPath, target: &BStr) -> Result<()> {
    if path.is_dotfile_link_forbidden() {
        let what = format!("'{path}' may not be a link");
        return Err(Error::refused(Refusal::ProtectedPath, what));
    }
    if link_escapes(path.as_bstr(), target) {
        let what = format!("link '{path}' would leave the workspace");
        return Err(Error::refused(Refusal::Escapes, what));
    }
    Ok(())
}

/// Whether a link at `path` that says `target` leaves the tree, taken by its words alone.
pub(crate) fn link_escapes(path: &BStr, target: &BStr) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return true;
    }
    let mut depth = path.split_str("/").count() as i64 - 1;
    for part in target.split_str("/") {
        match part {
            b"" | b"." => {}
            b".." => depth -= 1,
            _ => depth += 1,
        }
        if depth < 0 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_that_leave() {
        for (path, target, leaves) in [
            ("l", "f", false),
            ("l", "../f", true),
            ("d/l", "../f", false),
            ("d/l", "../../f", true),
            ("d/l", "a/../../f", false),
            ("d/l", "/etc/passwd", true),
            ("l", "", true),
            ("l", ".", false),
            ("l", "a/../..", true),
        ] {
            assert_eq!(
                link_escapes(path.into(), target.into()),
                leaves,
                "{path} -> {target}"
            );
        }
    }
}
