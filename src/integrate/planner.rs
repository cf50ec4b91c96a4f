//! The plan of an accept: every change's outcome and every file's result, before anything is written.
//!
//! `accept --dry-run` stops here; `accept` carries out the same plan. Units are planned one after
//! the other over a [`View`]: each either changes it as a whole or not at all, and a later change of
//! the same path builds on what an earlier one left there.

use std::collections::{BTreeMap, HashSet};

use bstr::{BStr, BString, ByteSlice};

use super::lineage::Obstacle;
use super::plan::{Content, OnConflict, Settled, Sides, Verdict, settle};
use super::proposal::{Proposal, ProposedChange};

use super::view::View;
use super::{Error, Result, Rules};
use crate::git::Objects;
use crate::git::merge::Style;
use crate::git::tree::{Entry, GITLINK};
use crate::model::{AgentId, Refusal, RepoPath, Revision};
use crate::workspace::{self, Store};

mod follow;
mod steps;
mod unit;

use follow::Moves;

/// What becomes of one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Whose change it is.
    pub agent: AgentId,
    /// The revision that it was proposed with.
    pub revision: Revision,
    /// The path.
    pub path: BString,
    /// Where the user has moved the file since; there the change goes, or is refused.
    pub into: Option<BString>,
    /// How it was settled, or would be.
    pub verdict: Verdict,
    /// What stands at the path (or at `into`) after it, as git would store it; `None` where nothing
    /// does, where the change was not done, or where nobody asked ([`Accept::results`]).
    ///
    /// [`Accept::results`]: super::Accept::results
    pub result: Option<Entry>,
    /// The path that is to blame, where the change was refused only because another one that it
    /// hangs together with was.
    pub because: Option<BString>,
    /// The id of the change of another agent that stands in the way: one that it was built on.
    pub needs: Option<BString>,
    /// Of a refused conflict in a dry run that asks for it: the text with markers around the lines that
    /// contradict each other, as `merge.conflictStyle` has it.
    pub marked: Option<BString>,
}

/// What an accept does about lines that contradict each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conflicts {
    /// The change is refused.
    #[default]
    Refuse,
    /// The change is refused, and its outcome holds the text with markers around those lines. For a
    /// dry run.
    Show,
    /// The text with the markers is written into the file. An explicit choice: the paths must be named.
    Mark,
}

impl Outcome {
    /// The path in the user's tree.
    pub fn place(&self) -> &BStr {
        self.into.as_ref().unwrap_or(&self.path).as_bstr()
    }
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
    moves: Moves<'r>,
    unsaved: HashSet<BString>,
    /// What becomes of conflicts, and how they are marked.
    conflicts: (Conflicts, Style),
    /// Whether the outcomes name what their paths hold.
    pub(super) names_results: bool,
    pub(super) items: Vec<Item>,
    /// By path in the user's tree: the items that were done there, in order.
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
    /// Where it goes instead of its path.
    into: Option<BString>,
    settled: Settled,
}

impl Member {
    /// A change that is not done, and why.
    fn refused(kind: Refusal) -> Self {
        Member {
            role: Role::Plain,
            into: None,
            settled: Settled {
                verdict: Verdict::Refused(kind),
                result: None,
                marked: None,
            },
        }
    }
}

impl<'r> Plan<'r> {
    /// An empty plan; `unsaved` are the paths that the user's editor holds unsaved changes of.
    pub(super) fn new(store: &Store<'r>, unsaved: &[RepoPath]) -> Result<Self> {
        let config = store.repository().config()?;
        Ok(Plan {
            objects: store.repository().objects()?,
            store: *store,
            rules: Rules::new(config)?,
            view: View::new(store)?,
            moves: Moves::new(config)?,
            unsaved: unsaved.iter().map(|p| p.as_bstr().to_owned()).collect(),
            conflicts: (Conflicts::Refuse, Style::Merge),
            names_results: true,
            items: Vec::new(),
            done: BTreeMap::new(),
            units: 0,
            ranks: 0,
        })
    }

    /// What becomes of conflicts from now on; marked they are as `merge.conflictStyle` has it.
    ///
    /// # Errors
    /// [`git::Error::Config`](crate::git::Error::Config) for a style that git does not know.
    pub(super) fn on_conflict(&mut self, conflicts: Conflicts) -> Result<()> {
        if conflicts != Conflicts::Refuse {
            let style = unit::conflict_style(self.store.repository().config()?)?;
            self.conflicts = (conflicts, style);
        }
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

    /// What units on their own would come to, each over what those before it would leave; nothing is
    /// noted.
    pub(super) fn try_out(
        &mut self,
        proposal: &Proposal,
        units: &[Vec<usize>],
    ) -> Result<Vec<(BString, Verdict)>> {
        let mut verdicts = Vec::new();
        for members in units {
            let mut puts = Vec::new();
            let settled = self.unit(proposal, members, &mut puts)?;
            let refused = settled
                .iter()
                .any(|member| !member.settled.verdict.is_done());
            if refused {
                for (path, there) in puts.into_iter().rev() {
                    self.view.put_back(path.as_bstr(), there);
                }
            }
            let paths = members.iter().map(|at| proposal.changes[*at].path.clone());
            verdicts.extend(paths.zip(settled.into_iter().map(|m| m.settled.verdict)));
        }
        self.view.forget();
        Ok(verdicts)
    }

    /// What a change of a path comes to over another version of it: base, ours, theirs.
    pub(super) fn merged(&self, path: &BStr, versions: [Option<Entry>; 3]) -> Result<Verdict> {
        let [base, ours, theirs] = versions;
        let (base, ours, theirs) = (
            self.content(path, base)?,
            self.content(path, ours)?,
            self.content(path, theirs)?,
        );
        let sides = Sides {
            base: base.as_ref(),
            ours: ours.as_ref(),
            theirs: theirs.as_ref(),
        };
        Ok(settle(path, sides, &self.rules, &OnConflict::Refuse)?.verdict)
    }

    fn item(&self, proposal: &Proposal, change: &ProposedChange, role: Role) -> Item {
        Item {
            outcome: Outcome {
                agent: proposal.agent.clone(),
                revision: proposal.revision,
                path: change.path.clone(),
                into: None,
                verdict: Verdict::Identical,
                result: None,
                because: None,
                needs: None,
                marked: None,
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
        let Settled {
            verdict,
            result,
            marked,
        } = member.settled;
        let outcome = &mut item.outcome;
        outcome.into = member.into;
        outcome.verdict = verdict;
        outcome.marked = marked.map(BString::from);
        if let Some(culprit) = refused.filter(|_| outcome.verdict.is_done()) {
            outcome.verdict = culprit.verdict.clone();
            outcome.because = Some(culprit.path.clone());
        }
        if outcome.verdict.is_done() {
            if let Some(content) = result.filter(|_| self.names_results) {
                outcome.result = Some(self.entry(&content)?);
            }
            let done = self.done.entry(outcome.place().to_owned()).or_default();
            done.push(self.items.len());
        }
        self.items.push(item);
        Ok(())
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

    fn content(&self, path: &BStr, entry: Option<Entry>) -> Result<Option<Content>> {
        let Some(entry) = entry else {
            return Ok(None);
        };
        let bytes = match entry.mode {
            GITLINK => entry.id.to_string().into_bytes(),
            _ => self.objects.blob_at(path, entry.id)?,
        };
        Ok(Some(Content {
            mode: entry.mode,
            bytes,
        }))
    }
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
