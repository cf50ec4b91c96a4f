//! All workspaces: one pass over the refs, one object each, no process.

use std::collections::{BTreeMap, BTreeSet};

use super::{Error, Result, Store, Workspace, names};
use crate::git::ObjectId;
use crate::model::{AgentId, Revision};

/// One workspace in a listing.
#[derive(Debug)]
pub struct Listed {
    /// Its agent.
    pub agent: AgentId,
    /// Its state, or why it cannot be read.
    pub state: Result<Workspace, Error>,
    /// The revision that an open directory was cut from.
    pub directory: Option<ObjectId>,
    /// The pinned revisions.
    pub snaps: Vec<Revision>,
    /// Whether the overlay differs from the base.
    pub edited: bool,
}

impl Store<'_> {
    /// Every workspace, by name. A damaged one is listed with what is wrong with it.
    ///
    /// # Errors
    /// When the refs cannot be listed.
    pub fn list(&self) -> Result<Vec<Listed>> {
        let refs = self.repository.refs().list(names::WORKSPACES)?;
        let agents: BTreeSet<AgentId> = refs
            .keys()
            .filter_map(|name| name[names::WORKSPACES.len()..].split('/').next())
            .filter_map(|agent| AgentId::new(agent).ok())
            .collect();
        let mut listed = Vec::with_capacity(agents.len());
        for agent in agents {
            if let Some(one) = self.listed(agent, &refs)? {
                listed.push(one);
            }
        }
        Ok(listed)
    }

    fn listed(&self, agent: AgentId, refs: &BTreeMap<String, ObjectId>) -> Result<Option<Listed>> {
        let found = match refs.get(&names::overlay(&agent)) {
            Some(commit) => Ok(Some(*commit)),
            // A damaged ref is in no listing, but it can be asked for.
            None => self.overlay_ref(&agent),
        };
        let state = match found {
            Ok(Some(commit)) => self.read_revision(&agent, commit),
            // A base pin alone is a create that was interrupted: no workspace.
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        };
        let edited = match &state {
            Ok(workspace) => match self.base_tree(workspace) {
                Ok(base) => base != workspace.tree,
                Err(_) => true,
            },
            Err(_) => false,
        };
        let prefix = format!("{}snap/", names::workspace(&agent));
        let mut snaps: Vec<Revision> = refs
            .range(prefix.clone()..)
            .take_while(|(name, _)| name.starts_with(&prefix))
            .filter_map(|(name, _)| name[prefix.len()..].parse().ok())
            .collect();
        snaps.sort();
        Ok(Some(Listed {
            state,
            directory: refs.get(&names::exec(&agent)).copied(),
            snaps,
            edited,
            agent,
        }))
    }
}

impl Listed {
    /// What is wrong with a damaged workspace, in one line.
    pub fn damage(&self) -> Option<String> {
        let error = self.state.as_ref().err()?;
        Some(
            error
                .to_string()
                .lines()
                .next()
                .unwrap_or_default()
                .trim()
                .to_owned(),
        )
    }
}
