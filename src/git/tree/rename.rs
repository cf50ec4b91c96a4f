//! Which deleted file became which new one, by git's rules (`git diff -M`).
//!
//! Three rounds, each on what the one before left over: the same object; the same file name, where one
//! deleted and one new file alone have it, and the content three quarters alike; then every pair, best
//! scores first. The last round is quadratic, so above a limit it is left out, and the result says so.

use std::collections::HashMap;
use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};

use super::spans::Spans;
use super::{Change, Entry, Error, StoreError};
use crate::git::ObjectId;
use crate::git::merge::is_binary;

/// git's default for `diff.renameLimit`.
pub const RENAME_LIMIT: usize = 1000;

/// The score of equal content.
const MAX_SCORE: u64 = 60_000;
/// How many identical sources are looked at for one file before one is picked.
const IDENTICAL_LIMIT: usize = 100;
/// How many candidates the last round keeps for each new file.
const CANDIDATES: usize = 4;

/// Where the content of files is read from.
pub trait BlobSource {
    /// Reads a blob.
    ///
    /// # Errors
    ///
    /// Whatever the store runs into, a missing blob included.
    fn read_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, StoreError>;

    /// The size of a blob in bytes. A store that knows it without reading the blob overrides this.
    ///
    /// # Errors
    ///
    /// As for [`read_blob`](Self::read_blob).
    fn blob_size(&self, id: ObjectId) -> Result<u64, StoreError> {
        Ok(self.read_blob(id)?.len() as u64)
    }
}

/// How renames are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RenameOptions {
    /// The least likeness, in percent (git's `-M<n>`). From 100 on, only identical files are matched.
    pub threshold: u8,
    /// Inexact renames are looked for among at most `limit * limit` pairs; 0 is without limit.
    pub limit: usize,
}

impl Default for RenameOptions {
    fn default() -> Self {
        Self {
            threshold: 50,
            limit: RENAME_LIMIT,
        }
    }
}

/// A file that moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// Where it was.
    pub from: BString,
    /// Where it is.
    pub to: BString,
    /// What it was.
    pub old: Entry,
    /// What it is.
    pub new: Entry,
    /// The likeness, out of 60,000.
    pub score: u32,
}

impl Rename {
    /// The likeness in percent, rounded down, as git prints it after the `R`.
    pub fn similarity(&self) -> u32 {
        self.score * 100 / MAX_SCORE as u32
    }
}

/// A record of a diff with renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delta {
    /// A change in place.
    Change(Change),
    /// A rename; it stands where its new path stands.
    Rename(Rename),
}

/// A diff with renames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renames {
    /// The records, in git's order.
    pub deltas: Vec<Delta>,
    /// Set when there were too many pairs and inexact renames between files of different names were not
    /// looked for: the limit that would have been enough.
    pub needed_limit: Option<usize>,
}

/// Finds renames among `changes`, which are in git's order (as [`diff`](super::diff()) lists them).
///
/// # Errors
///
/// [`Error::Blob`] for a file that cannot be read.
pub fn find_renames<B: BlobSource + ?Sized>(
    changes: Vec<Change>,
    blobs: &B,
    options: RenameOptions,
) -> Result<Renames, Error> {
    let mut search = Search::new(&changes, blobs);
    search.exact();
    let minimum = u64::from(options.threshold.min(100)) * MAX_SCORE / 100;
    let mut needed_limit = None;
    if minimum < MAX_SCORE {
        search.same_name(minimum + (MAX_SCORE - minimum) / 2)?;
        let (sources, targets) = search.left();
        let allowed = options.limit.saturating_mul(options.limit);
        if options.limit == 0 || sources.len().saturating_mul(targets.len()) <= allowed {
            search.inexact(&sources, &targets, minimum)?;
        } else {
            needed_limit = Some(sources.len().max(targets.len()));
        }
    }
    let Search { found, used, .. } = search;
    Ok(Renames {
        deltas: deltas(changes, &found, &used),
        needed_limit,
    })
}

/// Puts the renames in the place of the additions and deletions that they are made of.
fn deltas(changes: Vec<Change>, found: &HashMap<usize, (usize, u64)>, used: &[bool]) -> Vec<Delta> {
    let rename = |to: &Change, source: usize, score: u64| {
        let from: &Change = &changes[source];
        Some(Delta::Rename(Rename {
            from: from.path.clone(),
            to: to.path.clone(),
            old: from.old?,
            new: to.new?,
            score: score as u32,
        }))
    };
    changes
        .iter()
        .enumerate()
        .filter(|(at, _)| !used[*at])
        .map(|(at, change)| {
            found
                .get(&at)
                .and_then(|&(source, score)| rename(change, source, score))
                .unwrap_or_else(|| Delta::Change(change.clone()))
        })
        .collect()
}

/// A file on one side: where it is among the changes, its path, what it is.
#[derive(Clone, Copy)]
struct Side<'c> {
    at: usize,
    path: &'c BStr,
    entry: Entry,
}

impl Side<'_> {
    fn name(&self) -> &BStr {
        let start = self.path.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        self.path[start..].as_bstr()
    }
}

/// A pair that the last round may take.
#[derive(Clone, Copy)]
struct Candidate {
    source: usize,
    target: usize,
    score: u64,
    same_name: bool,
}

impl Candidate {
    /// What makes one pair better than another.
    fn rank(&self) -> (u64, bool) {
        (self.score, self.same_name)
    }
}

struct Search<'c, B: ?Sized> {
    blobs: &'c B,
    sources: Vec<Side<'c>>,
    targets: Vec<Side<'c>>,
    /// By the index of the new file's change: that of its source, and the score.
    found: HashMap<usize, (usize, u64)>,
    /// By the index of a change: a rename has taken its file.
    used: Vec<bool>,
    spans: HashMap<ObjectId, Rc<(Spans, u64)>>,
    sizes: HashMap<ObjectId, u64>,
}

impl<'c, B: BlobSource + ?Sized> Search<'c, B> {
    fn new(changes: &'c [Change], blobs: &'c B) -> Self {
        let side = |(at, path, entry): (usize, &'c BString, Entry)| Side {
            at,
            path: path.as_bstr(),
            entry,
        };
        let pick = |wanted: fn(&Change) -> Option<Entry>| {
            let of = |(at, change): (usize, &'c Change)| {
                wanted(change).map(|entry| side((at, &change.path, entry)))
            };
            changes.iter().enumerate().filter_map(of).collect()
        };
        Self {
            blobs,
            sources: pick(|change| change.old.filter(|_| change.new.is_none())),
            targets: pick(|change| change.new.filter(|_| change.old.is_none())),
            found: HashMap::new(),
            used: vec![false; changes.len()],
            spans: HashMap::new(),
            sizes: HashMap::new(),
        }
    }

    fn record(&mut self, source: usize, target: usize, score: u64) {
        self.found.insert(target, (source, score));
        self.used[source] = true;
    }

    /// The files that no rename has taken yet.
    fn left(&self) -> (Vec<Side<'c>>, Vec<Side<'c>>) {
        let sources = self.sources.iter().filter(|side| !self.used[side.at]);
        let targets = self.targets.iter();
        let targets = targets.filter(|side| !self.found.contains_key(&side.at));
        (sources.copied().collect(), targets.copied().collect())
    }

    /// Matches files of the same content; among several, one of the same name first.
    fn exact(&mut self) {
        let mut by_id: HashMap<ObjectId, Vec<Side<'c>>> = HashMap::new();
        for source in &self.sources {
            by_id.entry(source.entry.id).or_default().push(*source);
        }
        for target in self.targets.clone() {
            let Some(sources) = by_id.get(&target.entry.id) else {
                continue;
            };
            let both_files = |source: &Side<'_>| source.entry.is_file() && target.entry.is_file();
            let fits = |source: &&Side<'c>| {
                !self.used[source.at]
                    && (both_files(source) || source.entry.mode == target.entry.mode)
            };
            let mut candidates = sources.iter().filter(fits).take(IDENTICAL_LIMIT);
            let Some(first) = candidates.next() else {
                continue;
            };
            let best = if first.name() == target.name() {
                first
            } else {
                candidates
                    .find(|source| source.name() == target.name())
                    .unwrap_or(first)
            };
            self.record(best.at, target.at, MAX_SCORE);
        }
    }

    /// Matches files whose name only one deleted and one new file has.
    fn same_name(&mut self, minimum: u64) -> Result<(), Error> {
        let (sources, targets) = self.left();
        let unique = |sides: &[Side<'c>]| {
            let mut names: HashMap<BString, Option<Side<'c>>> = HashMap::new();
            for side in sides {
                names
                    .entry(side.name().to_owned())
                    .and_modify(|slot| *slot = None)
                    .or_insert(Some(*side));
            }
            names
        };
        let (from, to) = (unique(&sources), unique(&targets));
        for source in &sources {
            let name = source.name();
            let (Some(Some(_)), Some(Some(target))) = (from.get(name), to.get(name)) else {
                continue;
            };
            let score = self.score(source, target, minimum)?;
            if score >= minimum {
                self.record(source.at, target.at, score);
            }
        }
        Ok(())
    }

    /// Compares every pair that is left and takes the best ones.
    fn inexact(
        &mut self,
        sources: &[Side<'c>],
        targets: &[Side<'c>],
        minimum: u64,
    ) -> Result<(), Error> {
        let mut matrix = Vec::new();
        for target in targets {
            let mut best: Vec<Candidate> = Vec::with_capacity(CANDIDATES);
            for source in sources {
                let candidate = Candidate {
                    source: source.at,
                    target: target.at,
                    score: self.score(source, target, minimum)?,
                    same_name: source.name() == target.name(),
                };
                keep(&mut best, candidate);
            }
            matrix.extend(best);
        }
        matrix.sort_by_key(|candidate| std::cmp::Reverse(candidate.rank()));
        for pair in matrix {
            if pair.score < minimum {
                break;
            }
            if !self.found.contains_key(&pair.target) && !self.used[pair.source] {
                self.record(pair.source, pair.target, pair.score);
            }
        }
        Ok(())
    }

    /// How alike two files are; 0 as soon as their sizes rule out `minimum`.
    fn score(&mut self, source: &Side<'_>, target: &Side<'_>, minimum: u64) -> Result<u64, Error> {
        if !source.entry.is_file() || !target.entry.is_file() {
            return Ok(0);
        }
        let (from, to) = (self.size(source)?, self.size(target)?);
        let larger = u128::from(from.max(to));
        let excess = u128::from(from.abs_diff(to));
        let may_differ = larger * u128::from(MAX_SCORE - minimum);
        if to == 0 || may_differ < excess * u128::from(MAX_SCORE) {
            return Ok(0);
        }
        let (from, to) = (self.cut(source)?, self.cut(target)?);
        Ok(from.0.shared(&to.0) * MAX_SCORE / from.1.max(to.1))
    }

    fn size(&mut self, side: &Side<'_>) -> Result<u64, Error> {
        if let Some(size) = self.sizes.get(&side.entry.id) {
            return Ok(*size);
        }
        let size = self.blobs.blob_size(side.entry.id);
        let size = size.map_err(|source| unreadable(side, source))?;
        self.sizes.insert(side.entry.id, size);
        Ok(size)
    }

    fn cut(&mut self, side: &Side<'_>) -> Result<Rc<(Spans, u64)>, Error> {
        if let Some(spans) = self.spans.get(&side.entry.id) {
            return Ok(Rc::clone(spans));
        }
        let content = self.blobs.read_blob(side.entry.id);
        let content = content.map_err(|source| unreadable(side, source))?;
        let spans = Spans::new(&content, !is_binary(&content));
        let spans = Rc::new((spans, content.len() as u64));
        self.spans.insert(side.entry.id, Rc::clone(&spans));
        Ok(spans)
    }
}

fn unreadable(side: &Side<'_>, source: StoreError) -> Error {
    Error::Blob {
        id: side.entry.id,
        path: side.path.to_owned(),
        source,
    }
}

/// Keeps the best few candidates. Which place a better one takes decides ties later, so it is git's: the
/// first free one, else that of the first of the worst.
fn keep(best: &mut Vec<Candidate>, candidate: Candidate) {
    if best.len() < CANDIDATES {
        best.push(candidate);
        return;
    }
    let mut worst = 0;
    for at in 1..best.len() {
        if best[at].rank() < best[worst].rank() {
            worst = at;
        }
    }
    if candidate.rank() > best[worst].rank() {
        best[worst] = candidate;
    }
}
