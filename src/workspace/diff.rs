//! What an agent changed: its overlay against its own base, never against anything else.

use super::{Result, Store, Workspace};
use crate::git::tree;

impl Store<'_> {
    /// The changes from the base to the overlay, one per path, in git's order.
    ///
    /// # Errors
    /// When a tree cannot be read.
    pub fn diff(&self, workspace: &Workspace) -> Result<Vec<tree::Change>> {
        let objects = self.repository.objects()?;
        let base = self.base_tree(workspace)?;
        Ok(tree::diff(&objects, Some(base), Some(workspace.tree))?)
    }
}
