//! The plan of an accept: every change's outcome and every file's result, before anything is written.
//!
//! `accept --dry-run` stops here; `accept` carries out the same plan. Units are planned one after
//! the other over a [`View`]: each either changes it as a whole or not at all, and a later change of
//! the same path builds on what an earlier one left there.

use std::collections::{BTreeMap, HashMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::lineage::Obstacle;
use super::plan::{Content, Settled, Sides, Verdict, settle};
use super::proposal::{Proposal, ProposedChange};

use super::view::{There, View};
use super::{Error, Result, Rules};
use crate::git::merge::{Labels, MergeOptions, Style};
use crate::git::tree::{Entry, GITLINK, LINK};
use crate::git::{Config, Objects};
use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::workspace::{self, Store};

mod steps;

/// What becomes of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whose change it is.
    pub agent: AgentId,
    /// The revision that it was proposed with.
    pub revision: Revision,
    /// The path.
    pub path: BString,
    /// How it was settled, or would be.
    pub verdict: Verdict,
    /// What stands at the path after it, as git would store it; `None` where nothing does, or where
    /// the change was not done.
    pub result: Option<Entry>,
    /// The path that is to blame, where the change was refused only because another one that it
    /// hangs together with was.
    pub because: Option<BString>,
    /// The id of the change of another agent that stands in the way: one that it was built on.
    pub needs: Option<BString>,
}

/// What a change does to its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// It stands alone.
    Plain,
    /// It is half of a rename that takes the user's own edits along.
    Rename,
}

/// A change in a plan.
pub(super) struct Item {
    pub(super) outcome: Outcome,
    change: ProposedChange,
    role: Role,
    unit: usize,
    /// The place of its unit in the order of writing.
    rank: usize,
}

/// A plan.
pub(super) struct Plan<'r> {
    objects: Objects<'r>,
    store: Store<'r>,
    rules: Rules,
    view: View<'r>,
    unsaved: HashSet<BString>,
    /// How a conflict is marked, where that is asked for.
    markers: Option<Style>,
    pub(super) items: Vec<Item>,
    /// By path: the items that were done there, in order.
    done: BTreeMap<BString, Vec<usize>>,
    /// How many groups there are; each lands as a whole or not at all.
    units: usize,
    ranks: usize,
}

/// Why units that hang together are refused.
struct Culprit {
    path: BString,
    verdict: Verdict,
}

/// Whose change it is, and the revision that it was proposed with.
type Who<'w> = (&'w AgentId, Revision);

/// What one member of a unit comes to.
struct Member {
    role: Role,
    settled: Settled,
}

impl<'r> Plan<'r> {
    /// An empty plan; `unsaved` are the paths that the user's editor holds unsaved changes of.
    pub(super) fn new(store: &Store<'r>, unsaved: &[RepoPath]) -> Result<Self> {
        Ok(Plan {
            objects: store.repository().objects()?,
            store: *store,
            rules: Rules::new(store.repository().config()?)?,
            view: View::new(store)?,
            unsaved: unsaved.iter().map(|p| p.as_bstr().to_owned()).collect(),
            markers: None,
            items: Vec::new(),
            done: BTreeMap::new(),
            units: 0,
            ranks: 0,
        })
    }

    /// From now on a conflict is marked in the file, as `merge.conflictStyle` has it.
    ///
    /// # Errors
    /// [`git::Error::Config`](crate::git::Error::Config) for a style that git does not know.
    pub(super) fn mark_conflicts(&mut self) -> Result<()> {
        self.markers = Some(conflict_style(self.store.repository().config()?)?);
        Ok(())
    }

    /// Plans units that land together or not at all, in the order in which they build on each other.
    pub(super) fn add(&mut self, units: &[(&Proposal, &[usize])]) -> Result<()> {
        let mut puts = Vec::new();
        let mut planned = Vec::with_capacity(units.len());
        for (proposal, members) in units {
            planned.push(self.unit(proposal, members, &mut puts)?);
        }
        let refused = planned
            .iter()
            .zip(units)
            .find_map(|(members, (proposal, at))| {
                let (at, member) = members
                    .iter()
                    .zip(*at)
                    .find(|(member, _)| !member.settled.verdict.is_done())
                    .map(|(member, at)| (*at, member))?;
                Some(Culprit {
                    path: proposal.changes[at].path.clone(),
                    verdict: member.settled.verdict.clone(),
                })
            });
        if refused.is_some() {
            for (path, there) in puts.into_iter().rev() {
                self.view.put_back(path.as_bstr(), there);
            }
        }
        for (settled, (proposal, members)) in planned.into_iter().zip(units) {
            for (member, at) in settled.into_iter().zip(*members) {
                self.note(proposal, &proposal.changes[*at], member, refused.as_ref())?;
            }
            self.ranks += 1;
        }
        self.units += 1;
        Ok(())
    }

    /// Notes a unit that is refused before it is looked at: something that it was built on is not
    /// there.
    pub(super) fn refuse(&mut self, proposal: &Proposal, members: &[usize], why: Obstacle) {
        let (kind, needs) = why;
        for at in members {
            let mut item = self.item(proposal, &proposal.changes[*at], Role::Plain);
            item.outcome.verdict = Verdict::Refused(kind);
            item.outcome.needs = Some(needs.clone());
            self.items.push(item);
        }
        self.units += 1;
    }

    /// What the members of a unit come to, in their order. What they put into the view is noted, to be
    /// taken back.
    fn unit(
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

    fn item(&self, proposal: &Proposal, change: &ProposedChange, role: Role) -> Item {
        Item {
            outcome: Outcome {
                agent: proposal.agent.clone(),
                revision: proposal.revision,
                path: change.path.clone(),
                verdict: Verdict::Identical,
                result: None,
                because: None,
                needs: None,
            },
            change: change.clone(),
            role,
            unit: self.units,
            rank: self.ranks,
        }
    }

    fn note(
        &mut self,
        proposal: &Proposal,
        change: &ProposedChange,
        member: Member,
        refused: Option<&Culprit>,
    ) -> Result<()> {
        let mut item = self.item(proposal, change, member.role);
        let Settled { verdict, result } = member.settled;
        let outcome = &mut item.outcome;
        outcome.verdict = verdict;
        if let Some(culprit) = refused.filter(|_| outcome.verdict.is_done()) {
            outcome.verdict = culprit.verdict.clone();
            outcome.because = Some(culprit.path.clone());
        }
        if outcome.verdict.is_done() {
            if let Some(content) = result {
                outcome.result = Some(self.entry(&content)?);
            }
            let done = self.done.entry(change.path.clone()).or_default();
            done.push(self.items.len());
        }
        self.items.push(item);
        Ok(())
    }

    /// Settles the change of a path, with the markers that are asked for.
    fn settle(&self, path: &BStr, sides: Sides<'_>, who: Who<'_>) -> Result<Settled> {
        let markers = self.markers.map(|style| MergeOptions {
            style,
            labels: Labels {
                ours: "working tree".into(),
                base: "base".into(),
                theirs: format!("{} r{}", who.0, who.1).into(),
            },
            ..MergeOptions::default()
        });
        settle(path, sides, &self.rules, markers.as_ref())
    }

    fn entry(&self, content: &Content) -> Result<Entry> {
        let id = match content.mode {
            GITLINK => crate::git::ObjectId::from_str_ext(
                &content.bytes.to_str_lossy(),
                self.store.repository().format(),
            )
            .map_err(crate::git::Error::from)?,
            _ => self.store.repository().hash_blob(&content.bytes)?,
        };
        Ok(Entry {
            mode: content.mode,
            id,
        })
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
        let base = self.content(gone.old)?;
        let theirs = self.content(come.new)?;
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
            settled: Settled { verdict, result },
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
        let Settled { verdict, result } = self.settle(new, sides, who)?;
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
        Ok(Some([gone, member(verdict, result)]))
    }

    fn plain(&mut self, who: Who<'_>, change: &ProposedChange) -> Result<Member> {
        let refused = |kind| Member {
            role: Role::Plain,
            settled: Settled {
                verdict: Verdict::Refused(kind),
                result: None,
            },
        };
        if let Some(kind) = self.guard(change)? {
            return Ok(refused(kind));
        }
        let base = self.content(change.old)?;
        let theirs = self.content(change.new)?;
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
            let target = self.objects.blob(new.id)?;
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

    fn content(&self, entry: Option<Entry>) -> Result<Option<Content>> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        let bytes = match entry.mode {
            GITLINK => entry.id.to_string().into_bytes(),
            _ => self.objects.blob(entry.id)?,
        };
        Ok(Some(Content {
            mode: entry.mode,
            bytes,
        }))
    }
}

/// What a conflict shows, as `merge.conflictStyle` says.
fn conflict_style(config: &Config) -> Result<Style> {
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

/// What went wrong in a plan, as the journal's hooks report it.
pub(super) fn into_journal(error: Error) -> super::journal::Error {
    match error {
        Error::Journal(error) => error,
        Error::Workspace(error) => error.into(),
        other => workspace::Error::Damaged {
            what: "the plan".to_owned(),
            why: other.to_string(),
        }
        .into(),
    }
}
