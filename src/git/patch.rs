//! The text of one change, as `git diff-tree -p --full-index --no-renames` prints it, and how many
//! lines it adds and takes away, as `--numstat` counts them.
//!
//! The lines of a hunk come from libgit2, which carries git's own comparison (with the indent
//! heuristic, git's default); the lines above the hunks are made here, since libgit2 quotes,
//! abbreviates and splits differently. No process is started, and nothing but the two contents is
//! looked at: the cost is that of the change.
//!
//! What git would take from elsewhere is the caller's to bring: attributes (`-diff`, `diff=rust`)
//! and settings (`diff.algorithm`, `diff.context`) are not asked. Without them a file is binary where a
//! NUL stands among its first 8,000 bytes, or where it is larger than `core.bigFileThreshold`'s
//! default.

use bstr::{BStr, BString, ByteSlice, ByteVec};
use git2::{DiffLineType, DiffOptions, Patch};

use super::merge::is_binary;
use super::tree::{self, Entry};
use super::{ObjectFormat, ObjectId, Result};
use crate::model::quote::quote_c;

/// The largest content that git compares by lines (`core.bigFileThreshold`).
const MAX_SIZE: usize = 512 << 20;

/// One side of a change: what the tree says, and the bytes of the blob. The bytes of a submodule
/// are not looked at.
pub type Side<'a> = Option<(Entry, &'a [u8])>;

/// How a patch is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatchOptions {
    /// How many unchanged lines stand around a hunk.
    pub context: u32,
    /// `core.quotePath`: names escape the bytes from 0x80 up.
    pub quote_path: bool,
}

impl Default for PatchOptions {
    fn default() -> Self {
        PatchOptions {
            context: 3,
            quote_path: true,
        }
    }
}

/// The text of the change at `path` from `old` to `new`; empty where nothing differs.
///
/// What became of another type (a file a link, say) is a deletion and a creation, as it is for git.
///
/// # Errors
/// [`super::Error::Library`] when libgit2 cannot compare: out of memory.
pub fn patch(old: Side<'_>, new: Side<'_>, path: &BStr, options: &PatchOptions) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    match (old, new) {
        (Some((from, _)), Some((to, _))) if from.mode & TYPE != to.mode & TYPE => {
            one(&mut out, old, None, path, options)?;
            one(&mut out, None, new, path, options)?;
        }
        (Some((from, _)), Some((to, _))) if from == to => {}
        (None, None) => {}
        _ => one(&mut out, old, new, path, options)?,
    }
    Ok(out)
}

/// The bits of a mode that tell files, links and submodules apart.
const TYPE: u32 = 0o170_000;

/// How many lines lead from `old` to `new`: added, then deleted. `None` where a side is binary, or
/// too large to be compared by lines.
pub fn count_lines(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
    if binary(old) || binary(new) {
        return None;
    }
    if old.is_empty() || new.is_empty() {
        return Some((lines(new), lines(old)));
    }
    let mut options = diff_options(0);
    let (old, new) = without_common_end(old, new);
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut options)).ok()?;
    let (_, added, deleted) = patch.line_stats().ok()?;
    Some((added as u64, deleted as u64))
}

/// The text that stands for a side in a comparison: of a submodule, a line with its commit.
pub fn content<'a>(side: Side<'a>) -> std::borrow::Cow<'a, [u8]> {
    match side {
        None => [].as_slice().into(),
        Some((entry, _)) if entry.mode == tree::GITLINK => {
            format!("Subproject commit {}\n", entry.id)
                .into_bytes()
                .into()
        }
        Some((_, bytes)) => bytes.into(),
    }
}

fn binary(bytes: &[u8]) -> bool {
    bytes.len() > MAX_SIZE || is_binary(bytes)
}

/// The lines of a text; a last one without a newline counts.
fn lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    let open = text.last().is_some_and(|byte| *byte != b'\n');
    ends as u64 + u64::from(open)
}

fn diff_options(context: u32) -> DiffOptions {
    let mut options = DiffOptions::new();
    options
        .context_lines(context)
        .interhunk_lines(0)
        .indent_heuristic(true)
        // What is binary is decided here, by git's rule.
        .force_text(true);
    options
}

/// A change that stays within one type.
fn one(
    out: &mut Vec<u8>,
    old: Side<'_>,
    new: Side<'_>,
    path: &BStr,
    options: &PatchOptions,
) -> Result<()> {
    let name = |prefix: &str| {
        let mut full = BString::from(prefix);
        full.push_str(path);
        quote_c(full.as_bstr(), options.quote_path).into_owned()
    };
    let (a, b) = (name("a/"), name("b/"));
    header(out, old, new, a.as_bstr(), b.as_bstr());
    let (from, to) = (content(old), content(new));
    if old.map(|(entry, _)| entry.id) == new.map(|(entry, _)| entry.id) || from == to {
        return Ok(());
    }
    let nothing = BString::from("/dev/null");
    let from_name = if old.is_some() { &a } else { &nothing };
    let to_name = if new.is_some() { &b } else { &nothing };
    if binary(&from) || binary(&to) {
        let pieces: [&[u8]; 5] = [b"Binary files ", from_name, b" and ", to_name, b" differ\n"];
        out.extend(pieces.concat());
        return Ok(());
    }
    for (mark, name) in [(b"--- ", from_name), (b"+++ ", to_name)] {
        out.extend_from_slice(mark);
        out.extend_from_slice(name);
        // A name with a blank gets a tab, so that `patch` finds its end.
        if name.contains(&b' ') {
            out.push(b'\t');
        }
        out.push(b'\n');
    }
    hunks(out, &from, &to, options.context)
}

/// The lines above the hunks, down to `index`.
fn header(out: &mut Vec<u8>, old: Side<'_>, new: Side<'_>, a: &BStr, b: &BStr) {
    for piece in [&b"diff --git "[..], a, b" ", b, b"\n"] {
        out.extend_from_slice(piece);
    }
    let mode = |side: Side<'_>| side.map(|(entry, _)| entry.mode);
    let mut push = |text: String| out.push_str(text);
    match (mode(old), mode(new)) {
        (None, Some(new)) => push(format!("new file mode {new:06o}\n")),
        (Some(old), None) => push(format!("deleted file mode {old:06o}\n")),
        (Some(old), Some(new)) if old != new => {
            push(format!("old mode {old:06o}\nnew mode {new:06o}\n"));
        }
        _ => {}
    }
    let id = |side: Side<'_>| side.map(|(entry, _)| entry.id);
    if id(old) == id(new) {
        return;
    }
    let null = match id(old).or(id(new)).map(|id| id.object_format()) {
        Some(ObjectFormat::Sha256) => "0".repeat(64),
        _ => "0".repeat(40),
    };
    let text = |id: Option<ObjectId>| id.map_or_else(|| null.clone(), |id| id.to_string());
    push(format!("index {}..{}", text(id(old)), text(id(new))));
    if let (Some(old), Some(new)) = (mode(old), mode(new))
        && old == new
    {
        push(format!(" {old:06o}"));
    }
    push("\n".to_owned());
}

/// Where nothing around a change is shown, git leaves out what both texts end with before it compares them:
/// whole blocks from the end, but for what is left of the first of their lines. It decides how far a
/// run of added lines like those around it may slide down.
fn without_common_end<'t>(from: &'t [u8], to: &'t [u8]) -> (&'t [u8], &'t [u8]) {
    const BLOCK: usize = 1024;
    let blocks = from.rchunks_exact(BLOCK).zip(to.rchunks_exact(BLOCK));
    let same = blocks.take_while(|(from, to)| from == to).count() * BLOCK;
    let tail = &from[from.len() - same..];
    let rest = tail.find_byte(b'\n').map_or(same, |end| end + 1);
    let cut = same - rest;
    (&from[..from.len() - cut], &to[..to.len() - cut])
}

fn hunks(out: &mut Vec<u8>, from: &[u8], to: &[u8], context: u32) -> Result<()> {
    let mut options = diff_options(context);
    let (from, to) = match context {
        0 => without_common_end(from, to),
        _ => (from, to),
    };
    let mut patch = Patch::from_buffers(from, None, to, None, Some(&mut options))?;
    let mut functions = Functions::new(from);
    patch.print(&mut |_, hunk, line| {
        match (line.origin_value(), hunk) {
            (DiffLineType::FileHeader | DiffLineType::Binary, _) => return true,
            (DiffLineType::HunkHeader, Some(hunk)) => {
                hunk_header(out, &hunk, &mut functions);
                return true;
            }
            (DiffLineType::Context, _) => out.push(b' '),
            (DiffLineType::Addition, _) => out.push(b'+'),
            (DiffLineType::Deletion, _) => out.push(b'-'),
            _ => {}
        }
        out.extend_from_slice(line.content());
        true
    })?;
    Ok(())
}

/// The `@@` line. libgit2 makes one too, but cuts the name of the function in another way.
fn hunk_header(out: &mut Vec<u8>, hunk: &git2::DiffHunk<'_>, functions: &mut Functions<'_>) {
    let range = |start: u32, lines: u32| match lines {
        1 => start.to_string(),
        _ => format!("{start},{lines}"),
    };
    let old = range(hunk.old_start(), hunk.old_lines());
    let new = range(hunk.new_start(), hunk.new_lines());
    let mut line = format!("@@ -{old} +{new} @@").into_bytes();
    // The start of an empty range is the line before it.
    let before = match hunk.old_lines() {
        0 => hunk.old_start(),
        _ => hunk.old_start() - 1,
    };
    let name = functions.above(before as usize);
    if !name.is_empty() {
        line.push(b' ');
        line.extend_from_slice(name);
    }
    out.extend_from_slice(sane(&line));
    out.push(b'\n');
}

/// What git takes for the heads of functions where no attribute says otherwise: lines that start
/// with a letter, `_` or `$`.
struct Functions<'t> {
    lines: Vec<&'t [u8]>,
    /// The lines before this one have been searched.
    searched: usize,
    name: &'t [u8],
}

impl<'t> Functions<'t> {
    fn new(text: &'t [u8]) -> Self {
        Functions {
            lines: text.lines_with_terminator().collect(),
            searched: 0,
            name: b"",
        }
    }

    /// The last head among the first `count` lines, as far as git shows it.
    fn above(&mut self, count: usize) -> &'t [u8] {
        const SHOWN: usize = 80;
        let is_head = |line: &&&[u8]| {
            let first = line.first().copied().unwrap_or_default();
            first.is_ascii_alphabetic() || matches!(first, b'_' | b'$')
        };
        let fresh = self.lines.get(self.searched..count).unwrap_or_default();
        if let Some(line) = fresh.iter().rev().find(is_head) {
            let shown = &line[..line.len().min(SHOWN)];
            let blank = |byte: char| matches!(byte, ' ' | '\t' | '\n' | '\r');
            self.name = shown.trim_end_with(blank);
        }
        self.searched = self.searched.max(count);
        self.name
    }
}

/// The start of a line up to what git does not take for UTF-8.
fn sane(line: &[u8]) -> &[u8] {
    let valid = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => line[..error.valid_up_to()].to_str().unwrap_or_default(),
    };
    let end = valid.find(['\u{fffe}', '\u{ffff}']).unwrap_or(valid.len());
    &line[..end]
}

#[cfg(test)]
mod tests;
