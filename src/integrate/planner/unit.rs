//! What one unit of changes comes to, over what is planned already.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Conflicts, Member, Plan, Role, Who};
use crate::git::Config;
use crate::git::merge::{Labels, MergeOptions, Style};
use crate::git::tree::LINK;
use crate::integrate::plan::{OnConflict, Settled, Sides, Verdict, settle};
use crate::integrate::proposal::{Proposal, ProposedChange};
use crate::integrate::view::There;
use crate::integrate::{Error, Result};
use crate::model::{Refusal, RepoPath};
use crate::workspace;

impl Plan<'_> {
    /// What the members of a unit come to, in their order. What they put into the view is noted, to be
    /// taken back.
    pub(super) fn unit(
        &mut self,
        proposal: &Proposal,
        members: &[usize],
        puts: &mut Vec<(BString, There)>,
    ) -> Result<Vec<Member>> {
        let who = (&proposal.agent, proposal.revision);
        let changes: Vec<&ProposedChange> =
            members.iter().map(|at| &proposal.changes[*at]).collect();
        // What goes makes room for what comes.
        let mut order: Vec<usize> = (0..changes.len()).collect();
        order.sort_by_key(|at| changes[*at].new.is_some());
        let mut planned: HashMap<usize, Member> = HashMap::new();
        for at in order {
            if planned.contains_key(&at) {
                continue;
            }
            let change = changes[at];
            let partner = change.rename.as_ref().and_then(|pair| {
                let found = changes.iter().position(|other| other.path == pair.path);
                found.filter(|other| !planned.contains_key(other))
            });
            let moved = match partner {
                Some(partner) => self.rename(who, change, changes[partner])?,
                None => None,
            };
            let settled = match (moved, partner) {
                (Some([gone, come]), Some(partner)) => vec![(at, gone), (partner, come)],
                _ => vec![(at, self.plain(who, change)?)],
            };
            for (at, member) in settled {
                if member.settled.verdict.is_done() {
                    let path = changes[at].path.as_bstr();
                    let content = member.settled.result.clone();
                    puts.push((path.to_owned(), self.view.put(path, content)));
                }
                planned.insert(at, member);
            }
        }
        let mut planned: Vec<(usize, Member)> = planned.into_iter().collect();
        planned.sort_by_key(|(at, _)| *at);
        Ok(planned.into_iter().map(|(_, member)| member).collect())
    }

    /// The two halves of a rename, where they can move the user's own edits along: the user's file
    /// is still at the old path, and nothing is at the new one. `None` where the halves are planned
    /// like any other change. The deleted half comes first.
    fn rename(
        &mut self,
        who: Who<'_>,
        gone: &ProposedChange,
        come: &ProposedChange,
    ) -> Result<Option<[Member; 2]>> {
        if gone.new.is_some() || come.old.is_some() {
            return Ok(None);
        }
        for change in [gone, come] {
            if self.guard(change)?.is_some() {
                return Ok(None);
            }
        }
        let base = self.content(gone.path.as_bstr(), gone.old)?;
        let theirs = self.content(come.path.as_bstr(), come.new)?;
        let (old, new) = (gone.path.as_bstr(), come.path.as_bstr());
        let ours = self.view.look(old, base.as_ref())?;
        if self.view.look(new, None)? != There::Version(None) {
            return Ok(None);
        }
        let There::Version(ours) = ours else {
            return Ok(None);
        };
        let member = |verdict, result| Member {
            role: Role::Rename,
            settled: Settled {
                verdict,
                result,
                marked: None,
            },
        };
        if ours.is_none() {
            // The user deleted what the agent moved.
            let refused = Verdict::Refused(Refusal::DeleteEdit);
            return Ok(Some([member(refused.clone(), None), member(refused, None)]));
        }
        let sides = Sides {
            base: base.as_ref(),
            ours: ours.as_ref(),
            theirs: theirs.as_ref(),
        };
        let Settled {
            verdict,
            result,
            marked,
        } = self.settle(new, sides, who)?;
        let verdict = match verdict {
            // The content is there already, but not at its new path.
            Verdict::Identical if result == theirs => Verdict::Clean,
            Verdict::Identical => Verdict::Merged,
            other => other,
        };
        let gone = match &verdict {
            Verdict::Refused(kind) => member(Verdict::Refused(*kind), None),
            _ => member(Verdict::Clean, None),
        };
        let mut come = member(verdict, result);
        come.settled.marked = marked;
        Ok(Some([gone, come]))
    }

    fn plain(&mut self, who: Who<'_>, change: &ProposedChange) -> Result<Member> {
        let refused = |kind| Member {
            role: Role::Plain,
            settled: Settled {
                verdict: Verdict::Refused(kind),
                result: None,
                marked: None,
            },
        };
        if let Some(kind) = self.guard(change)? {
            return Ok(refused(kind));
        }
        let base = self.content(change.path.as_bstr(), change.old)?;
        let theirs = self.content(change.path.as_bstr(), change.new)?;
        let path = change.path.as_bstr();
        let likely = base.as_ref().or(theirs.as_ref());
        let ours = match self.view.look(path, likely)? {
            There::Version(ours) => ours,
            There::Folder => return Ok(refused(Refusal::TypeChange)),
            There::Blocked(kind) => return Ok(refused(kind)),
        };
        if ours.is_none() && base.is_some() && self.view.is_sparse(path)? {
            return Ok(refused(Refusal::Unsupported));
        }
        let sides = Sides {
            base: base.as_ref(),
            ours: ours.as_ref(),
            theirs: theirs.as_ref(),
        };
        Ok(Member {
            role: Role::Plain,
            settled: self.settle(path, sides, who)?,
        })
    }

    /// What is refused whatever the contents are.
    fn guard(&self, change: &ProposedChange) -> Result<Option<Refusal>> {
        let path = match RepoPath::from_tree(&change.path) {
            Ok(path) => path,
            Err(error) => return Ok(Some(error.refusal())),
        };
        if let Some(new) = change.new
            && new.mode == LINK
        {
            let target = self.objects.blob_at(path.as_bstr(), new.id)?;
            if let Err(error) = workspace::check_link(&path, target.as_bstr()) {
                return Ok(Some(error.refusal().unwrap_or(Refusal::Escapes)));
            }
        }
        if self.view.is_unmerged(path.as_bstr()) {
            return Ok(Some(Refusal::Unmerged));
        }
        if self.unsaved.contains(path.as_bstr()) {
            return Ok(Some(Refusal::UnsavedBuffer));
        }
        Ok(None)
    }

    /// Settles the change of a path, with the markers that are asked for.
    pub(super) fn settle(&self, path: &BStr, sides: Sides<'_>, who: Who<'_>) -> Result<Settled> {
        let options = || MergeOptions {
            style: self.conflicts.1,
            labels: Labels {
                ours: "working tree".into(),
                base: "base".into(),
                theirs: format!("{} r{}", who.0, who.1).into(),
            },
            ..MergeOptions::default()
        };
        let on_conflict = match self.conflicts.0 {
            Conflicts::Refuse => OnConflict::Refuse,
            Conflicts::Show => OnConflict::Show(options()),
            Conflicts::Mark => OnConflict::Mark(options()),
        };
        settle(path, sides, &self.rules, &on_conflict)
    }
}

/// What a conflict shows, as `merge.conflictStyle` says.
pub(super) fn conflict_style(config: &Config) -> Result<Style> {
    const KEY: &str = "merge.conflictstyle";
    Ok(match config.string(KEY).as_deref() {
        None | Some("merge") => Style::Merge,
        Some("diff3") => Style::Diff3,
        Some("zdiff3") => Style::Zdiff3,
        Some(other) => {
            return Err(Error::from(crate::git::Error::Config {
                key: KEY.to_owned(),
                value: other.to_owned(),
                why: "expected merge, diff3 or zdiff3",
            }));
        }
    })
}
