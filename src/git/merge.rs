//! The three-way merge of a file's content, byte for byte what `git merge-file` makes.
//!
//! libgit2 carries git's own merge code, but leaves labels out where a side is empty and does not say how
//! many conflicts there are. So where there is one it is asked for markers longer than any run of marker
//! characters in the input; those lines are then ours for certain, are counted, and get their proper size
//! and label.

mod apart;

use bstr::{BString, ByteSlice};
use git2::{FileFavor, MergeFileInput, MergeFileOptions, MergeFileResult};

/// How many bytes git looks at to tell text from binary.
const BINARY_PROBE: usize = 8000;
/// The largest input that git's merge takes, in bytes.
const MAX_SIZE: usize = 1024 * 1024 * 1023;
/// git's default for the length of a marker.
const MARKER_SIZE: u16 = 7;

/// What a conflict shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Style {
    /// The two sides.
    #[default]
    Merge,
    /// The base between the two sides.
    Diff3,
    /// The same, with lines on which the sides agree moved out of the conflict.
    Zdiff3,
}

/// What becomes of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Favor {
    /// It is marked.
    #[default]
    None,
    /// The lines of both sides are taken, ours first.
    Union,
}

/// The names that markers carry; an empty one leaves the marker bare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Labels {
    /// After `<<<<<<<`.
    pub ours: BString,
    /// After `|||||||`.
    pub base: BString,
    /// After `>>>>>>>`.
    pub theirs: BString,
}

/// How files are merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeOptions {
    /// What a conflict shows.
    pub style: Style,
    /// The names that markers carry.
    pub labels: Labels,
    /// What becomes of a conflict.
    pub favor: Favor,
    /// The length of a marker; 0 stands for git's 7.
    pub marker_size: u16,
}

impl Default for MergeOptions {
    fn default() -> Self {
        Self {
            style: Style::default(),
            labels: Labels::default(),
            favor: Favor::default(),
            marker_size: MARKER_SIZE,
        }
    }
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeResult {
    /// The merged content.
    Clean(Vec<u8>),
    /// The sides contradict each other.
    Conflict {
        /// The content, with markers around each conflict.
        marked: Vec<u8>,
        /// How many conflicts there are.
        conflicts: usize,
    },
    /// A side is binary (or larger than git merges), so that lines mean nothing.
    Binary,
}

/// Why a merge could not be tried.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// libgit2 failed.
    #[error("the contents could not be merged")]
    Library(#[source] git2::Error),
    /// A line starts with more marker characters than a marker can have.
    #[error("a line of marker characters is too long to merge")]
    Markers,
}

/// Whether git takes content for binary: a NUL among its first 8,000 bytes.
pub fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(BINARY_PROBE)].contains(&0)
}

/// Merges what `ours` and `theirs` made of `base`, as `git merge-file -p` does. Binary content is
/// refused even where only one side changed it: that is for the caller to settle before, by ids.
///
/// # Errors
///
/// [`Error::Library`] when libgit2 fails (memory), [`Error::Markers`] for a conflict in input in which a
/// line starts with some 65,000 marker characters.
pub fn merge_file(
    base: &[u8],
    ours: &[u8],
    theirs: &[u8],
    options: &MergeOptions,
) -> Result<MergeResult, Error> {
    let inputs = [base, ours, theirs];
    if inputs
        .iter()
        .any(|text| text.len() > MAX_SIZE || is_binary(text))
    {
        return Ok(MergeResult::Binary);
    }
    // What libgit2 would say too, but for one thing: only here can a clean result be empty, and git2 makes
    // a slice of a null pointer then.
    if ours == theirs || base == theirs {
        return Ok(MergeResult::Clean(ours.to_vec()));
    }
    if base == ours {
        return Ok(MergeResult::Clean(theirs.to_vec()));
    }
    if let Some(merged) = apart::merge(base, ours, theirs) {
        return Ok(MergeResult::Clean(merged));
    }
    // `git2::merge_file` alone does not initialise the library, and fails where nothing else has.
    let _ = git2::Oid::from_bytes(&[0; 20]);
    let mut marker = MARKER_SIZE;
    let mut merged = merge_by_library(inputs, options, marker)?;
    if merged.is_automergeable() {
        return Ok(MergeResult::Clean(merged.content().to_vec()));
    }
    // Only now do markers matter.
    let longest = inputs.iter().map(|text| longest_run(text)).max();
    let longer = u16::try_from(longest.unwrap_or(0) + 1).map_err(|_| Error::Markers)?;
    if longer > marker {
        marker = longer;
        merged = merge_by_library(inputs, options, marker)?;
    }
    let (marked, conflicts) = relabel(merged.content(), marker, options);
    Ok(MergeResult::Conflict { marked, conflicts })
}

/// What libgit2 makes of base, ours and theirs with markers of this length.
fn merge_by_library(
    inputs: [&[u8]; 3],
    options: &MergeOptions,
    marker: u16,
) -> Result<MergeFileResult, Error> {
    let mut settings = MergeFileOptions::new();
    settings
        .marker_size(marker)
        // The level at which `git merge-file` joins conflicts with little between them.
        .simplify_alnum(true);
    match options.style {
        Style::Merge => settings.style_standard(true),
        Style::Diff3 => settings.style_diff3(true),
        Style::Zdiff3 => settings.style_zdiff3(true),
    };
    if options.favor == Favor::Union {
        settings.favor(FileFavor::Union);
    }
    let [base, ours, theirs] = inputs.map(|text| {
        let mut input = MergeFileInput::new();
        input.content(text);
        input
    });
    git2::merge_file(&base, &ours, &theirs, Some(&mut settings)).map_err(Error::Library)
}

/// The longest run of one marker character at the start of a line.
fn longest_run(text: &[u8]) -> usize {
    let run = |line: &[u8]| match line.first() {
        Some(&first) if b"<|=>".contains(&first) => {
            line.iter().take_while(|byte| **byte == first).count()
        }
        _ => 0,
    };
    text.lines_with_terminator().map(run).max().unwrap_or(0)
}

/// Gives the markers, known by their length, the size and the labels asked for, and counts conflicts.
fn relabel(content: &[u8], marker: u16, options: &MergeOptions) -> (Vec<u8>, usize) {
    let size = match options.marker_size {
        0 => usize::from(MARKER_SIZE),
        size => usize::from(size),
    };
    let mut marked = Vec::with_capacity(content.len());
    let mut conflicts = 0;
    for line in content.lines_with_terminator() {
        let label: &[u8] = match line.first() {
            _ if longest_run(line) < usize::from(marker) => {
                marked.extend_from_slice(line);
                continue;
            }
            Some(b'<') => &options.labels.ours,
            Some(b'|') => &options.labels.base,
            Some(b'>') => &options.labels.theirs,
            _ => b"",
        };
        conflicts += usize::from(line[0] == b'<');
        marked.extend(std::iter::repeat_n(line[0], size));
        if !label.is_empty() {
            marked.push(b' ');
            marked.extend_from_slice(label);
        }
        // libgit2 puts a label of its own where it is given none.
        marked.extend_from_slice(if line.ends_with(b"\r\n") {
            b"\r\n"
        } else {
            b"\n"
        });
    }
    (marked, conflicts)
}

#[cfg(test)]
mod tests;
