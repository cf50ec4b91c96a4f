//! The rounds of the search for renames.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};

use super::folders::Folders;
use super::{BlobSource, MAX_SCORE, RenameOptions};
use crate::git::ObjectId;
use crate::git::merge::is_binary;
use crate::git::tree::spans::Spans;
use crate::git::tree::{Change, Entry, Error, StoreError};

/// How many identical sources are looked at for one file before one is picked.
const IDENTICAL_LIMIT: usize = 100;
/// How many candidates the last round keeps for each new file.
const CANDIDATES: usize = 4;

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

pub(super) struct Search<'c, B: ?Sized> {
    blobs: &'c B,
    sources: Vec<Side<'c>>,
    targets: Vec<Side<'c>>,
    /// By the index of the new file's change: that of its source, and the score.
    pub(super) found: HashMap<usize, (usize, u64)>,
    /// By the index of a change: a rename has taken its file.
    pub(super) used: Vec<bool>,
    spans: HashMap<ObjectId, Rc<(Spans, u64)>>,
    sizes: HashMap<ObjectId, u64>,
    folders: Folders,
}

impl<'c, B: BlobSource + ?Sized> Search<'c, B> {
    pub(super) fn new(changes: &'c [Change], blobs: &'c B) -> Self {
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
            folders: Folders::default(),
        }
    }

    /// Goes through the rounds; with `wanted`, as a merge does, which needs to know of these files
    /// only. Where there were too many pairs for the last round, gives the limit that would have
    /// been enough.
    pub(super) fn run(
        &mut self,
        options: RenameOptions,
        wanted: Option<&HashSet<BString>>,
    ) -> Result<Option<usize>, Error> {
        self.exact();
        let minimum = u64::from(options.threshold.min(100)) * MAX_SCORE / 100;
        if minimum == MAX_SCORE {
            return Ok(None);
        }
        if wanted.is_some() {
            self.folders = self.moved_folders();
        }
        // Whether a name is the only one of its kind is told among all of the files.
        self.same_name(minimum + (MAX_SCORE - minimum) / 2, wanted)?;
        if let Some(wanted) = wanted {
            self.sources.retain(|source| wanted.contains(source.path));
        }
        let (sources, targets) = self.left();
        let allowed = options.limit.saturating_mul(options.limit);
        if options.limit != 0 && sources.len().saturating_mul(targets.len()) > allowed {
            return Ok(Some(sources.len().max(targets.len())));
        }
        self.inexact(&sources, &targets, minimum)?;
        Ok(None)
    }

    /// Where the exact renames say that the files of a folder went.
    fn moved_folders(&self) -> Folders {
        let paths: HashMap<usize, &BStr> = self.sources.iter().map(|s| (s.at, s.path)).collect();
        let renames = self.targets.iter().filter_map(|target| {
            let (source, _) = self.found.get(&target.at)?;
            Some((*paths.get(source)?, target.path))
        });
        Folders::of(renames)
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

    /// Matches files whose name only one deleted and one new file has, or that went where their folder did.
    fn same_name(&mut self, minimum: u64, wanted: Option<&HashSet<BString>>) -> Result<(), Error> {
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
        let is_wanted =
            |source: &&Side<'_>| wanted.is_none_or(|wanted| wanted.contains(source.path));
        for source in sources.iter().filter(is_wanted) {
            let name = source.name();
            let target = match (from.get(name), to.get(name)) {
                (_, None) => continue,
                (Some(Some(_)), Some(Some(target))) => target,
                _ => {
                    let Some(place) = self.folders.guess(source.path) else {
                        continue;
                    };
                    match targets.iter().find(|target| target.path == place) {
                        Some(target) if !self.found.contains_key(&target.at) => target,
                        _ => continue,
                    }
                }
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
