//! What one unit of changes comes to, over what is planned already.

use std::collections::HashMap;

use bstr::{BStr, BString, ByteSlice};

use super::{Conflicts, Member, Plan, Role, Who};
use crate::git::Config;
use crate::git::merge::{Labels, MergeOptions, Style};
use crate::git::tree::{Entry, LINK};
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
                Some(partner) => self.rename(proposal, change, changes[partner])?,
                None => None,
            };
            let settled = match (moved, partner) {
                (Some([gone, come]), Some(partner)) => vec![(at, gone), (partner, come)],
                _ => vec![(at, self.plain(proposal, change)?)],
            };
            for (at, member) in settled {
                if member.settled.verdict.is_done() {
                    let path = member.into.as_ref().unwrap_or(&changes[at].path);
                    let content = member.settled.result.clone();
                    puts.push((path.clone(), self.view.put(path.as_bstr(), content)));
                }
                planned.insert(at, member);
            }
        }
        let mut planned: Vec<(usize, Member)> = planned.into_iter().collect();
        planned.sort_by_key(|(at, _)| *at);
        Ok(planned.into_iter().map(|(_, member)| member).collect())
    }

    /// The two halves of a rename, where they can move the user's own edits along: the user's file
    /// is still at the old path, and nothing is at the new one; or the user has moved it himself.
    /// `None` where the halves are planned like any other change. The deleted half comes first.
    fn rename(
        &mut self,
        proposal: &Proposal,
        gone: &ProposedChange,
        come: &ProposedChange,
    ) -> Result<Option<[Member; 2]>> {
        if gone.new.is_some() || come.old.is_some() {
            return Ok(None);
        }
        let (old, new) = (gone.path.as_bstr(), come.path.as_bstr());
        if self.guard(old, gone.new)?.is_some() || self.guard(new, come.new)?.is_some() {
            return Ok(None);
        }
        let base = self.content(old, gone.old)?;
        let theirs = self.content(new, come.new)?;
        let (mut ours, there) = match self.view.look(old, base.as_ref())? {
            There::Version(ours) => (ours, self.view.look(new, base.as_ref())?),
            _ => return Ok(None),
        };
        let by_user = ours.is_none();
        if by_user {
            // What the agent moved the user has moved too, or deleted.
            match (self.moved(proposal, old)?, there) {
                (Some(to), There::Version(Some(both))) if to == new => ours = Some(both),
                (Some(to), _) if to == new => return Ok(None),
                (Some(to), _) => {
                    let refused = || Member {
                        into: Some(to.clone()),
                        ..Member::refused(Refusal::Conflict)
                    };
                    return Ok(Some([refused(), refused()]));
                }
                (None, There::Version(None)) => {
                    let refused = || Member::refused(Refusal::DeleteEdit);
                    return Ok(Some([refused(), refused()]));
                }
                (None, _) => return Ok(None),
            }
        } else if there != There::Version(None) {
            return Ok(None);
        }
        let sides = Sides {
            base: base.as_ref(),
            ours: ours.as_ref(),
            theirs: theirs.as_ref(),
        };
        let who = (&proposal.agent, proposal.revision);
        let Settled {
            verdict,
            result,
            marked,
        } = self.settle(new, sides, who)?;
        let member = |verdict, result| Member {
            role: Role::Rename,
            into: None,
            settled: Settled {
                verdict,
                result,
                marked: None,
            },
        };
        let is_there = self.view.look(new, None)? == There::Version(result.clone());
        let verdict = match verdict {
            // The content is there already, but not at its new path.
            Verdict::Identical if is_there => Verdict::Identical,
            Verdict::Identical if result == theirs => Verdict::Clean,
            Verdict::Identical => Verdict::Merged,
            other => other,
        };
        let gone = match &verdict {
            Verdict::Refused(kind) => member(Verdict::Refused(*kind), None),
            _ if by_user => member(Verdict::Identical, None),
            _ => member(Verdict::Clean, None),
        };
        let mut come = member(verdict, result);
        come.settled.marked = marked;
        Ok(Some([gone, come]))
    }

    fn plain(&mut self, proposal: &Proposal, change: &ProposedChange) -> Result<Member> {
        let path = change.path.as_bstr();
        if let Some(kind) = self.guard(path, change.new)? {
            return Ok(Member::refused(kind));
        }
        let base = self.content(path, change.old)?;
        let theirs = self.content(path, change.new)?;
        let likely = base.as_ref().or(theirs.as_ref());
        let ours = match self.view.look(path, likely)? {
            There::Version(ours) => ours,
            There::Folder => return Ok(Member::refused(Refusal::TypeChange)),
            There::Blocked(kind) => return Ok(Member::refused(kind)),
        };
        if ours.is_none() && base.is_some() && self.view.is_sparse(path)? {
            return Ok(Member::refused(Refusal::Unsupported));
        }
        let sides = Sides {
            base: base.as_ref(),
            ours: ours.as_ref(),
            theirs: theirs.as_ref(),
        };
        let settled = self.settle(path, sides, (&proposal.agent, proposal.revision))?;
        if let (Some(base), None) = (&base, &ours)
            && let Some(member) =
                self.follow(proposal, change, (base, theirs.as_ref()), &settled)?
        {
            return Ok(member);
        }
        Ok(Member {
            role: Role::Plain,
            into: None,
            settled,
        })
    }

    /// What is refused whatever the contents are: of a path, and what is to stand there.
    pub(super) fn guard(&self, at: &BStr, new: Option<Entry>) -> Result<Option<Refusal>> {
        let path = match RepoPath::from_tree(at) {
            Ok(path) => path,
            Err(error) => return Ok(Some(error.refusal())),
        };
        if let Some(new) = new
            && new.mode == LINK
        {
            let target = self.objects.blob_at(at, new.id)?;
            if let Err(error) = workspace::check_link(&path, target.as_bstr()) {
                return Ok(Some(error.refusal().unwrap_or(Refusal::Escapes)));
            }
        }
        if self.view.is_unmerged(at) {
            return Ok(Some(Refusal::Unmerged));
        }
        if self.unsaved.contains(at) {
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
