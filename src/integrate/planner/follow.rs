//! Changes of files that the user has moved since: they go where the file is now.
//!
//! What git's merge would do with the same trees: the user's working tree, as a base would record it,
//! is held against what the agent started from, by the rules for renames that merges of trees have
//! here. Nobody looks before a change would otherwise find its path gone, so that it costs nothing
//! where the user has moved nothing.

use std::collections::{BTreeMap, HashMap};

use bstr::{BStr, BString, ByteSlice};

use super::{Member, Plan, Role};
use crate::git::tree::{self, Entry, GITLINK, RenameOptions};
use crate::git::{Config, ObjectId, Staging};
use crate::integrate::plan::{Content, Settled, Sides, Verdict};
use crate::integrate::proposal::{Proposal, ProposedChange};
use crate::integrate::select::{Selection, covers, select};
use crate::integrate::view::There;
use crate::integrate::{Error, Result};
use crate::model::{AgentId, Refusal, Revision};
use crate::workspace::{self, Store, Trees};

/// What the user has moved, as far as somebody asked.
pub(super) struct Moves<'r> {
    /// How it is looked for; `None` where the settings say not to.
    options: Option<RenameOptions>,
    users: Option<Users<'r>>,
    /// By proposal: the new paths by the old ones.
    found: HashMap<(AgentId, Revision), HashMap<BString, BString>>,
}

/// The user's working tree, recorded; nothing of it is published.
struct Users<'r> {
    staging: Staging<'r>,
    /// `None` where it would not hold still.
    tree: Option<ObjectId>,
}

impl<'r> Users<'r> {
    fn record(store: &Store<'r>) -> Result<Self> {
        let mut staging = Staging::new(store.repository())?;
        let tree = match store.record_base(&mut staging) {
            Ok(base) => Some(base.tree),
            // Nothing can be told of it now, and the change stays proposed.
            Err(workspace::Error::Unsteady { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        Ok(Users { staging, tree })
    }
}

impl<'r> Moves<'r> {
    pub(super) fn new(config: &Config) -> Result<Self> {
        Ok(Moves {
            options: workspace::merge_renames(config)?,
            users: None,
            found: HashMap::new(),
        })
    }

    /// Where the user has moved a file that is gone from its path and that the proposal changes.
    fn to(
        &mut self,
        store: &Store<'r>,
        proposal: &Proposal,
        path: &BStr,
    ) -> Result<Option<BString>> {
        let Some(options) = self.options else {
            return Ok(None);
        };
        let key = (proposal.agent.clone(), proposal.revision);
        if !self.found.contains_key(&key) {
            let users = match &mut self.users {
                Some(users) => users,
                none => none.insert(Users::record(store)?),
            };
            let found = users.moved(proposal, options)?;
            self.found.insert(key.clone(), found);
        }
        Ok(self.found[&key].get(path).cloned())
    }
}

impl Users<'_> {
    /// Where the user has moved the files that a proposal changes. All are looked for at once, as in a
    /// merge: only one of them can have become a new file.
    fn moved(
        &mut self,
        proposal: &Proposal,
        options: RenameOptions,
    ) -> Result<HashMap<BString, BString>> {
        let Some(ours) = self.tree else {
            return Ok(HashMap::new());
        };
        // A change may start from something older than its proposal does.
        let old = |change: &ProposedChange| (change.path.clone(), change.old);
        let old: BTreeMap<BString, Option<Entry>> = proposal.changes.iter().map(old).collect();
        let trees = Trees {
            base: tree::edit(&mut self.staging, proposal.base_tree, &old)?,
            ours,
            theirs: proposal.tree,
        };
        Ok(workspace::moved(&self.staging, trees, options)?)
    }
}

impl Plan<'_> {
    /// Where the user has moved a file that is gone from its path and that a proposal changes.
    pub(super) fn moved(&mut self, proposal: &Proposal, path: &BStr) -> Result<Option<BString>> {
        let store = self.store;
        self.moves.to(&store, proposal, path)
    }

    /// The change of a file that is gone from the user's path, where the user has moved it: what it
    /// comes to there. `None` where `settled`, which it came to at its path, has the last word. Where
    /// something else meets the file there, the agent's or of another kind, that stays the last word.
    pub(super) fn follow(
        &mut self,
        proposal: &Proposal,
        change: &ProposedChange,
        (base, theirs): (&Content, Option<&Content>),
        settled: &Settled,
    ) -> Result<Option<Member>> {
        let lost = match theirs {
            Some(_) => settled.verdict == Verdict::Refused(Refusal::DeleteEdit),
            None => true,
        };
        if !lost || base.mode == GITLINK {
            return Ok(None);
        }
        let Some(to) = self.moved(proposal, change.path.as_bstr())? else {
            return Ok(None);
        };
        let refused = |kind| Member {
            into: Some(to.clone()),
            ..Member::refused(kind)
        };
        let Some(theirs) = theirs else {
            // Moved by the one and deleted by the other, unless both moved it to the same place.
            let along = change.rename.as_ref().is_some_and(|pair| pair.path == to);
            return Ok((!along).then(|| refused(Refusal::DeleteEdit)));
        };
        if self.is_taken(proposal.tree, to.as_bstr())? {
            return Ok(Some(refused(Refusal::DeleteEdit)));
        }
        if let Some(kind) = self.guard(to.as_bstr(), change.new)? {
            return Ok(Some(refused(kind)));
        }
        let ours = match self.view.look(to.as_bstr(), Some(base))? {
            There::Version(Some(ours)) if ours.is_file() == theirs.is_file() => ours,
            There::Version(_) | There::Folder => return Ok(Some(refused(Refusal::DeleteEdit))),
            There::Blocked(kind) => return Ok(Some(refused(kind))),
        };
        let sides = Sides {
            base: Some(base),
            ours: Some(&ours),
            theirs: Some(theirs),
        };
        let who = (&proposal.agent, proposal.revision);
        let settled = self.settle(to.as_bstr(), sides, who)?;
        Ok(Some(Member {
            role: Role::Plain,
            into: Some(to),
            settled,
        }))
    }

    /// Nobody proposes a change of a path: perhaps there is one that would go there.
    ///
    /// # Errors
    /// When proposals or the user's tree cannot be read.
    pub(in crate::integrate) fn no_change(
        &mut self,
        agent: AgentId,
        path: BString,
    ) -> Result<Error> {
        let Selection {
            proposals, units, ..
        } = select(&self.store, &agent, &[])?;
        let mut from = None;
        for (at, member) in units
            .iter()
            .flat_map(|(at, all)| all.iter().map(move |m| (at, m)))
        {
            let change = &proposals[*at].changes[*member];
            let edited = change.old.is_some() && change.new.is_some();
            let old = change.path.as_bstr();
            if edited && self.view.look(old, None)? == There::Version(None) {
                let to = self.moved(&proposals[*at], old)?;
                from = to.filter(|to| covers(path.as_bstr(), to.as_bstr()));
            }
            if from.is_some() {
                from = Some(change.path.clone());
                break;
            }
        }
        Ok(Error::NoChange { agent, path, from })
    }

    /// Whether an agent's tree holds something at a path, or a file above it.
    fn is_taken(&self, tree: ObjectId, path: &BStr) -> Result<bool> {
        if tree::lookup(&self.objects, tree, path)?.is_some() {
            return Ok(true);
        }
        for slash in path.find_iter("/") {
            match tree::lookup(&self.objects, tree, path[..slash].as_bstr())? {
                None => return Ok(false),
                Some(above) if !above.is_tree() => return Ok(true),
                Some(_) => {}
            }
        }
        Ok(false)
    }
}
