//! A patch, applied to an overlay: by git's own rules, in an index that holds only what it is about.
//!
//! What git makes of the patch goes through the same checks as any other edit: nothing is written
//! through a link, no protected path is made, no link that would leave the workspace.

use std::collections::BTreeMap;

use bstr::{BString, ByteSlice};

use super::{Change, Edit, Editor, Error, Kind, Published, Result, Store, Terms};
use crate::git::tree::{self, Entry};
use crate::git::{ObjectId, Patched, Staging, paths_of_patch};
use crate::model::{AgentId, Refusal, RepoPath};

impl Store<'_> {
    /// Applies a patch to the overlay as one revision; all of it or nothing.
    ///
    /// # Errors
    /// The refusal `conflict` when it does not fit, [`Error::Invalid`] when it is no patch; the
    /// refusals of [`Store::edit`].
    pub fn apply(&self, agent: &AgentId, terms: Terms, patch: &[u8]) -> Result<Published> {
        let limit = super::max_file_size(self.repository())?;
        let named = paths_of_patch(patch);
        self.publish(agent, terms, |workspace, staging| {
            let mut seed = Vec::new();
            for path in &named {
                let found = lookup(staging, workspace.tree, path)?;
                seed.extend(found.map(|entry| (path.clone(), entry)));
            }
            let mut now = match self.repository().apply_patch(patch, &seed)? {
                Patched::Done(entries) => entries,
                Patched::Rejected(why) | Patched::Malformed(why) if !legal(&named) => {
                    // A name that no workspace can hold is the better answer, where there is one.
                    check(&named)?;
                    return Err(Error::Invalid(why));
                }
                Patched::Rejected(why) => {
                    let what = format!("the patch does not apply to '{agent}': {why}");
                    return Err(Error::refused(Refusal::Conflict, what));
                }
                Patched::Malformed(why) => {
                    return Err(Error::Invalid(format!("not a patch: {why}")));
                }
            };
            let mut editor = Editor::new(workspace.tree, limit);
            let before: BTreeMap<BString, Entry> = seed.into_iter().collect();
            for path in before.keys().filter(|path| !now.contains_key(*path)) {
                let path = RepoPath::new(path)?;
                let recursive = false;
                editor.apply(staging, &Edit::Delete { path, recursive })?;
            }
            now.retain(|path, entry| before.get(path) != Some(entry));
            for (path, entry) in now {
                let path = RepoPath::new(path)?;
                let old = before.get(path.as_bstr());
                put(staging, &mut editor, (path, old.copied(), entry))?;
            }
            let tree = editor.finish(staging)?;
            let change = Change::new(Kind::Apply, editor.touched(), tree);
            Ok((tree != workspace.tree).then_some(change))
        })
    }
}

fn put(
    staging: &mut Staging<'_>,
    editor: &mut Editor,
    (path, old, new): (RepoPath, Option<Entry>, Entry),
) -> Result<()> {
    if new.mode == tree::GITLINK {
        let what = format!("'{path}' is a submodule");
        return Err(Error::refused(Refusal::NestedRepository, what));
    }
    let bytes = staging.objects().blob(new.id)?;
    if new.mode == tree::LINK {
        let target = bytes.into();
        return editor.apply(staging, &Edit::Symlink { path, target });
    }
    if old.is_some_and(|old| old.mode == tree::LINK) {
        // A patch that makes a file of a link names both: it is not written through.
        let (path, recursive) = (path.clone(), false);
        editor.apply(staging, &Edit::Delete { path, recursive })?;
    }
    let executable = Some(new.mode == tree::EXECUTABLE);
    let edit = Edit::Write {
        path,
        bytes,
        executable,
    };
    editor.apply(staging, &edit)
}

fn lookup(staging: &Staging<'_>, root: ObjectId, path: &BString) -> Result<Option<Entry>> {
    if path.is_empty() {
        return Ok(None);
    }
    let found = tree::lookup(staging, root, path.as_bstr())?;
    Ok(found.filter(|entry| !entry.is_tree()))
}

fn legal(paths: &[BString]) -> bool {
    check(paths).is_ok()
}

fn check(paths: &[BString]) -> Result<()> {
    for path in paths {
        RepoPath::new(path)?;
    }
    Ok(())
}
