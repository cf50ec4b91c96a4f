//! Which spellings of a path reach git's own directory, or ours.
//!
//! A path that an agent writes is later laid out on disks that see more than one spelling of a
//! name: most fold case, HFS+ drops invisible characters, NTFS drops trailing dots and spaces, has
//! short names (`GIT~1`), streams (`.git::$INDEX_ALLOCATION`) and takes a backslash for a separator.
//! All spellings are refused on every system, since the tree travels. The rules for `.git` and for
//! links named `.gitmodules` are those of git's `verify_path` with `core.protectNTFS` and
//! `core.protectHFS` both on, but that git on Linux does not look behind a backslash at the start of
//! a component and we do; `tests/model_paths.rs` holds them against git itself.
//!
//! The functions take, as git's do, the rest of the path from the start of a component: where a
//! name ends depends on the rule (a colon ends one on NTFS, and only there).

use bstr::ByteSlice;

/// A name that starts with a dot, with what the lookalike rules need of it.
struct DotName {
    /// The name in lower case, with its dot.
    name: &'static [u8],
    /// The short name that NTFS gives to the first file of that name, in lower case.
    short: &'static [u8],
}

const GIT: DotName = DotName {
    name: b".git",
    short: b"git~1",
};
const RELO: DotName = DotName {
    name: b".relo",
    short: b"relo~1",
};
const GITMODULES: &[u8] = b".gitmodules";
/// The letters of the hashed short name that NTFS falls back to when `GITMOD~1` to `~4` are taken.
const GITMODULES_HASHED: &[u8; 6] = b"gi7eba";

/// Tells whether a path reaches git's directory at any depth, or ours at the top.
pub(super) fn is_protected(path: &[u8]) -> bool {
    starts(path, b"/").any(|rest| hfs_is(rest, GIT.name))
        || starts(path, b"/\\").any(|rest| ntfs_is(rest, &GIT))
        || is_relo(path)
}

/// Tells whether git refuses a link at this path: `.gitmodules`, in every spelling.
///
/// A link there would let a repository point git at a file outside of the tree.
pub(super) fn is_dotfile_link(path: &[u8]) -> bool {
    starts(path, b"/").any(|rest| hfs_is(rest, GITMODULES))
        || starts(path, b"/\\").any(ntfs_is_gitmodules)
}

/// Yields the rest of the path from each start of a component.
fn starts<'a>(path: &'a [u8], separators: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let after = path
        .iter()
        .enumerate()
        .filter(|(_, byte)| separators.contains(byte))
        .map(|(at, _)| at + 1);
    std::iter::once(0).chain(after).map(|at| &path[at..])
}

fn is_relo(path: &[u8]) -> bool {
    let mut rest = path;
    // On NTFS `\.relo` and `.\.relo` are the same top-level name.
    while let Some(below) = rest
        .strip_prefix(b"\\")
        .or_else(|| rest.strip_prefix(b".\\"))
    {
        rest = below;
    }
    ntfs_is(rest, &RELO) || hfs_is(rest, RELO.name)
}

/// Tells whether NTFS would take the first component for the name (git's `is_ntfs_dotgit`).
fn ntfs_is(rest: &[u8], name: &DotName) -> bool {
    let tail = strip_ascii_case(rest, name.name).or_else(|| strip_ascii_case(rest, name.short));
    let end = tail.map(|tail| tail.trim_start_with(is_dropped_at_end));
    end.is_some_and(|end| matches!(end.first(), None | Some(b'/' | b'\\' | b':')))
}

/// Tells whether NTFS would take the whole rest for `.gitmodules` (git's `is_ntfs_dotgitmodules`).
fn ntfs_is_gitmodules(rest: &[u8]) -> bool {
    let tail = strip_ascii_case(rest, GITMODULES).or_else(|| strip_short_gitmodules(rest));
    let end = tail.map(|tail| tail.trim_start_with(is_dropped_at_end));
    end.is_some_and(|end| matches!(end.first(), None | Some(b':')))
}

/// Strips `gitmod~1` to `gitmod~4`, or the hashed form: up to six of its letters, `~`, and digits
/// not starting with zero, eight characters in all.
fn strip_short_gitmodules(rest: &[u8]) -> Option<&[u8]> {
    let (short, tail) = rest.split_at_checked(8)?;
    let tilde = short.find_byte(b'~')?;
    let (letters, digits) = (&short[..tilde], &short[tilde + 1..]);
    let plain = letters.eq_ignore_ascii_case(&GITMODULES[1..7]) && matches!(digits, [b'1'..=b'4']);
    let hashed = GITMODULES_HASHED
        .get(..tilde)
        .is_some_and(|start| start.eq_ignore_ascii_case(letters))
        && matches!(digits.first(), Some(b'1'..=b'9'))
        && digits.iter().all(u8::is_ascii_digit);
    (plain || hashed).then_some(tail)
}

fn is_dropped_at_end(c: char) -> bool {
    c == '.' || c == ' '
}

fn strip_ascii_case<'a>(rest: &'a [u8], prefix: &[u8]) -> Option<&'a [u8]> {
    let (start, tail) = rest.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(tail)
}

/// Tells whether HFS+ would take the first component for the name (git's `is_hfs_dotgit`).
///
/// Like git, takes a byte that is not UTF-8 (and U+FFFE, U+FFFF) right after the name for its end:
/// HFS+ would spell it in another way, and nothing is lost by refusing it.
fn hfs_is(rest: &[u8], name: &[u8]) -> bool {
    let mut rest = rest;
    let mut next = || loop {
        match bstr::decode_utf8(rest) {
            (Some(c), size) => {
                rest = &rest[size..];
                if !is_ignored_by_hfs(c) {
                    return (c != '\u{fffe}' && c != '\u{ffff}').then_some(c);
                }
            }
            (None, _) => return None,
        }
    };
    let matches = name
        .iter()
        .all(|byte| next().is_some_and(|c| c.eq_ignore_ascii_case(&char::from(*byte))));
    matches && matches!(next(), None | Some('/'))
}

/// The code points that HFS+ leaves out of a comparison, as git lists them.
fn is_ignored_by_hfs(c: char) -> bool {
    matches!(c,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}
