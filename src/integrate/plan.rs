//! What one change comes to: base, ours and theirs in, an outcome out. Nothing is read or written.
//!
//! *Base* is what the agent started from, *ours* the user's file as git would store it, *theirs*
//! what the agent made. The order of the rules is that of the design: identical, one side changed,
//! take-latest, both added alike but for trailing blanks, union, three-way merge, refusal. Content
//! and mode merge independently, as in git's own merge; links and submodules are merged as what they
//! are and never by lines.

use bstr::{BStr, BString};

use super::rules::{alike_but_for_blanks, union};
use super::{Error, Result, Rules};
use crate::git::merge::{MergeOptions, MergeResult, merge_file};
use crate::git::tree::{GITLINK, LINK};
use crate::model::Refusal;

/// A version of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// Git's mode.
    pub(super) mode: u32,
    /// The bytes as git stores them; of a link its target, of a submodule the commit's id.
    pub(super) bytes: Vec<u8>,
}

impl Content {
    /// What kind of thing it is: the mode without its permissions.
    fn kind(&self) -> u32 {
        self.mode & 0o170_000
    }

    pub(super) fn is_file(&self) -> bool {
        self.kind() == 0o100_000
    }
}

/// How a change was settled, or would be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent's version goes in as it is; nothing else has changed.
    Clean,
    /// Both sides' edits are merged.
    Merged,
    /// Both sides' added lines are kept.
    Union,
    /// The agent's version replaces the user's, by rule.
    TakeLatest,
    /// Both sides' edits, with markers around what they contradict each other in: as asked for.
    Marked,
    /// The user's tree holds it already.
    Identical,
    /// It is not done, and the path is as it was.
    Refused(Refusal),
    /// The system failed to write it, and the path is as it was.
    Failed(String),
}

impl Verdict {
    /// The word in records.
    pub fn as_str(&self) -> &'static str {
        match self {
            Verdict::Clean => "clean",
            Verdict::Merged => "merged",
            Verdict::Union => "union",
            Verdict::TakeLatest => "take-latest",
            Verdict::Marked => "marked",
            Verdict::Identical => "identical",
            Verdict::Refused(kind) => kind.as_str(),
            Verdict::Failed(_) => "failed",
        }
    }

    /// Whether the change is (or would be) in the user's tree.
    pub fn is_done(&self) -> bool {
        !matches!(self, Verdict::Refused(_) | Verdict::Failed(_))
    }
}

/// The three versions of a path; `None` where there is nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sides<'c> {
    pub(super) base: Option<&'c Content>,
    pub(super) ours: Option<&'c Content>,
    pub(super) theirs: Option<&'c Content>,
}

/// What a change comes to: the verdict, and what shall stand at the path then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Settled {
    pub(super) verdict: Verdict,
    pub(super) result: Option<Content>,
    /// Of lines that contradict each other: the text with markers around them, where it was asked for.
    pub(super) marked: Option<Vec<u8>>,
}

/// What becomes of lines that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OnConflict {
    /// The change is refused.
    Refuse,
    /// The change is refused, and the marked text is there to look at.
    Show(MergeOptions),
    /// The marked text is the result.
    Mark(MergeOptions),
}

/// Settles the change of one path.
///
/// # Errors
/// [`Error::Merge`] when the merge itself fails: out of memory.
pub(super) fn settle(
    path: &BStr,
    sides: Sides<'_>,
    rules: &Rules,
    on_conflict: &OnConflict,
) -> Result<Settled> {
    let Sides { base, ours, theirs } = sides;
    let keep = |verdict| Settled {
        verdict,
        result: ours.cloned(),
        marked: None,
    };
    let take = |verdict| Settled {
        verdict,
        result: theirs.cloned(),
        marked: None,
    };
    if ours == theirs || theirs == base {
        return Ok(keep(Verdict::Identical));
    }
    if ours == base {
        // Where a submodule stands is for its own repository and the user's index to say.
        let submodule = [ours, theirs].iter().flatten().any(|c| c.mode == GITLINK);
        return Ok(if submodule {
            keep(Verdict::Refused(Refusal::NestedRepository))
        } else {
            take(Verdict::Clean)
        });
    }
    let only_files = [ours, theirs].iter().flatten().all(|side| side.is_file());
    if only_files && rules.takes_latest(path) {
        return Ok(take(Verdict::TakeLatest));
    }
    let (Some(ours), Some(theirs)) = (ours, theirs) else {
        return Ok(keep(Verdict::Refused(Refusal::DeleteEdit)));
    };
    if ours.kind() != theirs.kind() {
        return Ok(keep(Verdict::Refused(Refusal::TypeChange)));
    }
    if !ours.is_file() {
        return Ok(keep(Verdict::Refused(match ours.mode {
            LINK => Refusal::Conflict,
            _ => Refusal::NestedRepository,
        })));
    }
    let Some(mode) = merge_modes(base, ours, theirs) else {
        return Ok(keep(Verdict::Refused(Refusal::Conflict)));
    };
    let merged = match merge_bytes(path, base, (ours, theirs), rules)? {
        Merged::Is(verdict, bytes) => Ok((verdict, bytes)),
        Merged::Not(kind) => Err(kind),
        Merged::Conflict => match on_conflict {
            OnConflict::Refuse => Err(Refusal::Conflict),
            OnConflict::Mark(options) => mark(path, base, (ours, theirs), options)?,
            OnConflict::Show(options) => {
                let marked = mark(path, base, (ours, theirs), options)?;
                return Ok(Settled {
                    marked: marked.ok().map(|(_, bytes)| bytes),
                    ..keep(Verdict::Refused(Refusal::Conflict))
                });
            }
        },
    };
    let (verdict, bytes) = match merged {
        Ok(merged) => merged,
        Err(kind) => return Ok(keep(Verdict::Refused(kind))),
    };
    let result = Content { mode, bytes };
    if result == *ours {
        return Ok(keep(Verdict::Identical));
    }
    Ok(Settled {
        verdict,
        result: Some(result),
        marked: None,
    })
}

/// The mode that both sides' changes lead to; `None` where they contradict each other.
fn merge_modes(base: Option<&Content>, ours: &Content, theirs: &Content) -> Option<u32> {
    let base = base.filter(|base| base.is_file()).map(|base| base.mode);
    if ours.mode == theirs.mode || base == Some(theirs.mode) {
        Some(ours.mode)
    } else if base == Some(ours.mode) {
        Some(theirs.mode)
    } else {
        None
    }
}

/// What the bytes of a file come to.
enum Merged {
    Is(Verdict, Vec<u8>),
    Not(Refusal),
    Conflict,
}

/// The bytes that both sides' changes of a file lead to.
fn merge_bytes(
    path: &BStr,
    base: Option<&Content>,
    (ours, theirs): (&Content, &Content),
    rules: &Rules,
) -> Result<Merged> {
    let other_kind = base.is_some_and(|base| !base.is_file());
    // A base of another kind has no lines to go by.
    let base_bytes = base
        .filter(|base| base.is_file())
        .map(|base| base.bytes.as_slice());
    let (our, their) = (ours.bytes.as_slice(), theirs.bytes.as_slice());
    if our == their || base_bytes == Some(their) {
        return Ok(Merged::Is(Verdict::Merged, our.to_vec()));
    }
    if base_bytes == Some(our) {
        return Ok(Merged::Is(Verdict::Merged, their.to_vec()));
    }
    if base.is_none() && alike_but_for_blanks(our, their) {
        return Ok(Merged::Is(Verdict::Identical, our.to_vec()));
    }
    let base_bytes = base_bytes.unwrap_or_default();
    if rules.unites(path)
        && !other_kind
        && let Some(all) = union(base_bytes, our, their)
    {
        return Ok(Merged::Is(Verdict::Union, all));
    }
    let merged = merge_file(base_bytes, our, their, &MergeOptions::default());
    let merged = merged.map_err(|source| Error::Merge {
        path: BString::from(path),
        source,
    })?;
    Ok(match merged {
        MergeResult::Clean(bytes) => Merged::Is(Verdict::Merged, bytes),
        MergeResult::Conflict { .. } => Merged::Conflict,
        MergeResult::Binary => Merged::Not(Refusal::Binary),
    })
}

/// The bytes of both sides with markers around what they contradict each other in.
fn mark(
    path: &BStr,
    base: Option<&Content>,
    (ours, theirs): (&Content, &Content),
    options: &MergeOptions,
) -> Result<Result<(Verdict, Vec<u8>), Refusal>> {
    let base = base.filter(|base| base.is_file());
    let base = base.map(|base| base.bytes.as_slice()).unwrap_or_default();
    let merged = merge_file(base, &ours.bytes, &theirs.bytes, options);
    let merged = merged.map_err(|source| Error::Merge {
        path: BString::from(path),
        source,
    })?;
    Ok(match merged {
        MergeResult::Conflict { marked, .. } => Ok((Verdict::Marked, marked)),
        // A style changes what a conflict shows, never whether there is one.
        MergeResult::Clean(bytes) => Ok((Verdict::Merged, bytes)),
        MergeResult::Binary => Err(Refusal::Binary),
    })
}

#[cfg(test)]
mod corpus;
#[cfg(test)]
mod tests;
