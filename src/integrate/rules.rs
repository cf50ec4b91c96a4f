//! The rules that settle a change before anybody is asked, and the paths they hold for.
//!
//! - `relo.changes.ignorePaths`: not reported as changes at all.
//! - `relo.changes.takeLatestPaths`: the agent's version replaces whatever is there.
//! - `relo.changes.unionPaths`: where both sides only added lines, both sides' lines are kept.
//! - A file that both sides added, alike but for trailing blanks, stays as it is.
//!
//! A pattern without a slash matches a name in any folder; one with a slash is taken from the top,
//! `*` stays inside a folder and `**` does not, as in `.gitattributes`. A key that is set replaces
//! its default; an empty value empties the list, as git has it for its own lists.

mod paths;

use bstr::{BStr, ByteSlice};

use self::paths::Paths;
use crate::git::{self, Config};

/// The keys and their defaults.
const IGNORE: (&str, &[&str]) = (
    "relo.changes.ignorepaths",
    &[
        ".relo/**",
        "**/obj/**",
        "**/bin/Debug/**",
        "**/bin/Release/**",
    ],
);
const TAKE_LATEST: (&str, &[&str]) = ("relo.changes.takelatestpaths", &[]);
const UNION: (&str, &[&str]) = ("relo.changes.unionpaths", &["*.md", "*.txt"]);

/// The paths that each rule holds for.
#[derive(Clone, Debug)]
pub struct Rules {
    ignore: Paths,
    take_latest: Paths,
    union: Paths,
}

impl Rules {
    /// Reads the settings.
    ///
    /// # Errors
    /// [`git::Error::Config`] for a pattern that makes no sense.
    pub fn new(config: &Config) -> git::Result<Self> {
        let set = |(key, default): (&'static str, &[&str])| -> git::Result<Paths> {
            let given = config.all(key);
            let mut patterns: Vec<String> = Vec::new();
            if given.is_empty() {
                patterns.extend(default.iter().map(|pattern| (*pattern).to_owned()));
                return Ok(Paths::new(patterns));
            }
            for value in given {
                if value.is_empty() {
                    patterns.clear();
                } else {
                    patterns.push(value);
                }
            }
            Paths::checked(key, patterns)
        };
        Ok(Rules {
            ignore: set(IGNORE)?,
            take_latest: set(TAKE_LATEST)?,
            union: set(UNION)?,
        })
    }

    /// Whether changes of this path are never reported.
    pub fn ignores(&self, path: &BStr) -> bool {
        self.ignore.has(path)
    }

    /// Whether the agent's version of this path replaces any other.
    pub fn takes_latest(&self, path: &BStr) -> bool {
        self.take_latest.has(path)
    }

    /// Whether lines that both sides added to this path are all kept.
    pub fn unites(&self, path: &BStr) -> bool {
        self.union.has(path)
    }
}

/// Whether two texts are the same but for blanks at the ends of lines and at the end of the file.
pub(super) fn alike_but_for_blanks(one: &[u8], other: &[u8]) -> bool {
    fn trimmed(text: &[u8]) -> impl Iterator<Item = &[u8]> {
        text.trim_ascii_end()
            .split(|byte| *byte == b'\n')
            .map(<[u8]>::trim_ascii_end)
    }
    !git::merge::is_binary(one) && !git::merge::is_binary(other) && trimmed(one).eq(trimmed(other))
}

/// A line, and what ends it: `\n`, `\r\n`, or nothing for a last line that is not ended.
#[derive(Clone, Copy, Debug)]
struct Line<'t> {
    text: &'t [u8],
    end: &'t [u8],
}

impl Line<'_> {
    /// Lines are the same when their text is, and their ends where both have one.
    fn same(&self, other: &Line<'_>) -> bool {
        self.text == other.text
            && (self.end == other.end || self.end.is_empty() || other.end.is_empty())
    }
}

fn lines(text: &[u8]) -> Vec<Line<'_>> {
    text.lines_with_terminator()
        .map(|line| {
            let text = line
                .strip_suffix(b"\n")
                .map_or(line, |text| text.strip_suffix(b"\r").unwrap_or(text));
            let end = &line[text.len()..];
            Line { text, end }
        })
        .collect()
}

/// Where both sides only added lines, the text with all of them: at one place ours first. `None`
/// where a side changed or removed a line of the base, or is binary.
///
/// Every added line is kept, also one that both sides added on its own account (a separator between
/// the entries of a ledger appears twice). Only an addition that is there as a whole already is not
/// added again, so that a second try of the same accept changes nothing.
pub(super) fn union(base: &[u8], ours: &[u8], theirs: &[u8]) -> Option<Vec<u8>> {
    if [base, ours, theirs]
        .iter()
        .any(|t| git::merge::is_binary(t))
    {
        return None;
    }
    let (base, ours, theirs) = (lines(base), lines(ours), lines(theirs));
    let our_gaps = gaps(&base, &ours)?;
    let their_gaps = gaps(&base, &theirs)?;
    let mut all: Vec<Line<'_>> = Vec::with_capacity(ours.len() + theirs.len());
    for (at, (our, their)) in our_gaps.iter().zip(&their_gaps).enumerate() {
        let (our_added, their_added) = (&ours[our.clone()], &theirs[their.clone()]);
        all.extend_from_slice(our_added);
        if !ends_with(our_added, their_added) {
            all.extend_from_slice(their_added);
        }
        if let Some(line) = base.get(at) {
            // The end of a line that all have is merged like anything else.
            let (our_end, their_end) = (ours[our.end].end, theirs[their.end].end);
            let end = if our_end == line.end {
                their_end
            } else {
                our_end
            };
            all.push(Line { end, ..*line });
        }
    }
    let usual = [&ours, &theirs, &base]
        .iter()
        .flat_map(|lines| lines.iter())
        .map(|line| line.end)
        .find(|end| !end.is_empty())
        .unwrap_or(b"\n");
    let mut text = Vec::new();
    for (at, line) in all.iter().enumerate() {
        text.extend_from_slice(line.text);
        // A last line that was not ended is, as soon as it is not the last one any more.
        let open = line.end.is_empty() && at + 1 < all.len();
        text.extend_from_slice(if open { usual } else { line.end });
    }
    Some(text)
}

fn ends_with(all: &[Line<'_>], tail: &[Line<'_>]) -> bool {
    all.len() >= tail.len()
        && all[all.len() - tail.len()..]
            .iter()
            .zip(tail)
            .all(|(one, other)| one.same(other))
}

/// What was added before each line of the base and, last, after all of them, as ranges of `side`;
/// `None` where a line of the base is missing. A base line is found as early as possible, which puts
/// an addition as far down as it can be: where git puts it too.
fn gaps(base: &[Line<'_>], side: &[Line<'_>]) -> Option<Vec<std::ops::Range<usize>>> {
    let mut found = Vec::with_capacity(base.len() + 1);
    let mut start = 0;
    for line in base {
        let at = start + side[start..].iter().position(|other| other.same(line))?;
        found.push(start..at);
        start = at + 1;
    }
    found.push(start..side.len());
    Some(found)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn united(base: &str, ours: &str, theirs: &str) -> Option<String> {
        let text = union(base.as_bytes(), ours.as_bytes(), theirs.as_bytes())?;
        Some(String::from_utf8(text).unwrap())
    }

    #[test]
    fn the_defaults_make_sense_and_match_what_they_say() {
        for (_, default) in [IGNORE, TAKE_LATEST, UNION] {
            let patterns: Vec<String> = default.iter().map(|p| (*p).to_owned()).collect();
            assert!(Paths::checked("key", patterns).is_ok());
        }
        let has = |(_, default): (&str, &[&str]), path: &str| {
            let patterns = default.iter().map(|p| (*p).to_owned());
            Paths::new(patterns.collect()).has(path.into())
        };
        for path in ["obj/a", "x/obj/a/b", "x/bin/Debug/a", ".relo/a"] {
            assert!(has(IGNORE, path), "{path}");
        }
        for path in ["obj", "x/objs/a", "bin/debug/a", "x/.relo/a", "a"] {
            assert!(!has(IGNORE, path), "{path}");
        }
        assert!(has(UNION, "a.md") && has(UNION, "d/e.txt") && !has(UNION, "a.mdx"));
    }

    #[test]
    fn both_sides_lines_are_kept() {
        let table = [
            // Two entries of a ledger, each with its own separator.
            (
                "t\n\n---\nA\n",
                "t\n\n---\nA\n\n---\nB\n",
                "t\n\n---\nA\n\n---\nC\n",
                Some("t\n\n---\nA\n\n---\nB\n\n---\nC\n"),
            ),
            // A second try: what was added is there.
            (
                "a\n",
                "a\nours\ntheirs\n",
                "a\ntheirs\n",
                Some("a\nours\ntheirs\n"),
            ),
            // Both added the same.
            ("a\n", "a\nx\n", "a\nx\n", Some("a\nx\n")),
            // No last line is joined to another.
            ("a", "a\nb", "a\nc", Some("a\nb\nc")),
            ("a\n", "a\nb", "a\nc\n", Some("a\nb\nc\n")),
            ("a", "a", "a\nc\n", Some("a\nc\n")),
            ("a\r\n", "a\r\nb", "a\r\nc\r\n", Some("a\r\nb\r\nc\r\n")),
            ("a", "a\r\nb\r\n", "a\r\nc", Some("a\r\nb\r\nc")),
            // At different places, and before the first line.
            ("a\nb\n", "x\na\nb\n", "a\nb\ny\n", Some("x\na\nb\ny\n")),
            ("a\nb\n", "a\n1\nb\n", "a\n2\nb\n", Some("a\n1\n2\nb\n")),
            // A line of the base changed, or went.
            ("a\nb\n", "a\nB\n", "a\nb\nc\n", None),
            ("a\nb\n", "a\nb\nc\n", "b\n", None),
            ("a\nb\n", "b\na\n", "a\nb\n", None),
            // Line ends are lines' content too.
            ("a\nb\n", "a\r\nb\r\n", "a\nb\nc\n", None),
            ("", "o\n", "t\n", Some("o\nt\n")),
            ("a\0\n", "a\0\nb\n", "a\0\nc\n", None),
        ];
        for (base, ours, theirs, expected) in table {
            let result = united(base, ours, theirs);
            assert_eq!(result.as_deref(), expected, "{base:?} {ours:?} {theirs:?}");
            if let Some(result) = result {
                // Once more changes nothing.
                assert_eq!(united(base, &result, theirs), Some(result));
            }
        }
    }

    #[test]
    fn trailing_blanks_make_no_difference() {
        for (one, other, alike) in [
            ("a\nb\n", "a  \nb", true),
            ("a\r\nb\r\n", "a\nb\n", true),
            ("a\n\n\n", "a", true),
            ("a\n\nb\n", "a\nb\n", false),
            (" a\n", "a\n", false),
            ("", "\n \n", true),
            ("\0", "\0 ", false),
        ] {
            let found = alike_but_for_blanks(one.as_bytes(), other.as_bytes());
            assert_eq!(found, alike, "{one:?} {other:?}");
        }
    }
}
