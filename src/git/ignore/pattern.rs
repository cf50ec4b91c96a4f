//! What a line of an ignore file may match, and more than that: never less.
//!
//! This is no matcher of git's patterns. It reads each so that whatever git matches is matched here,
//! too; what is not matched here, git need not be asked about. Case counts for nothing, a slash is a
//! character as any other to a wildcard, and what is hard to read stands for everything.

use bstr::ByteSlice;

/// A rule that ignores.
#[derive(Debug)]
pub(super) struct Pattern {
    pieces: Vec<Piece>,
    /// Whether it holds for paths, and not for names alone.
    of_paths: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Piece {
    /// This byte, a letter in lower case.
    Byte(u8),
    /// Any one byte.
    One,
    /// Any bytes, or none.
    Any,
}

/// Reads an ignore file. Rules that take back are left out where only the others count: alone they ignore
/// nothing. `None` where the text is none.
pub(super) fn read(text: &[u8], taking_back: bool) -> Option<Vec<Pattern>> {
    if text.contains(&0) {
        return None;
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|byte| *byte == b'\n');
    let rules = lines.filter_map(|line| match line {
        b"" | b"\r" | [b'#', ..] => None,
        [b'!', back @ ..] => taking_back.then_some(back),
        line => Some(line),
    });
    Some(rules.map(Pattern::new).collect())
}

impl Pattern {
    fn new(line: &[u8]) -> Self {
        // Which of the blanks at the end count, backslashes before them say; here all may be anything.
        let text = line.trim_end_with(|c| matches!(c, ' ' | '\t' | '\r' | '\\'));
        let open = text.len() < line.len();
        let of_paths = text.trim_end_with(|c| c == '/').contains(&b'/');
        let mut pieces = pieces(text.trim_with(|c| c == '/'));
        if open || pieces.is_empty() {
            pieces.push(Piece::Any);
        }
        Pattern { pieces, of_paths }
    }

    /// Whether git may match a path, in lower case, or a folder above it by this.
    pub(super) fn may_match(&self, path: &[u8]) -> bool {
        let mut starts = std::iter::once(0).chain(path.find_iter("/").map(|slash| slash + 1));
        starts.any(|start| {
            let rest = &path[start..];
            let mut ends = rest.find_iter("/").chain([rest.len()]);
            if !self.of_paths {
                return ends
                    .next()
                    .is_some_and(|end| fits(&self.pieces, &rest[..end]));
            }
            ends.any(|end| fits(&self.pieces, &rest[..end]))
        })
    }
}

fn pieces(text: &[u8]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        rest = tail;
        let piece = match first {
            b'*' => Piece::Any,
            b'?' => Piece::One,
            b'\\' => match rest {
                [escaped, tail @ ..] if escaped.is_ascii() => {
                    rest = tail;
                    Piece::Byte(escaped.to_ascii_lowercase())
                }
                _ => Piece::Any,
            },
            b'[' => match class(rest) {
                Some(tail) => {
                    rest = tail;
                    Piece::One
                }
                None => {
                    pieces.push(Piece::Any);
                    break;
                }
            },
            // In some form or case of it that only the system knows.
            byte if !byte.is_ascii() => Piece::Any,
            byte => Piece::Byte(byte.to_ascii_lowercase()),
        };
        if piece == Piece::Any {
            // Between slashes, two stars are no folder as well: then one slash or both are not there.
            while first == &b'*' && matches!(rest, [b'*' | b'/', ..]) {
                rest = &rest[1..];
            }
            while first == &b'*' && pieces.last() == Some(&Piece::Byte(b'/')) {
                pieces.pop();
            }
        }
        if piece != Piece::Any || pieces.last() != Some(&Piece::Any) {
            pieces.push(piece);
        }
    }
    pieces
}

/// What comes after a class of plain characters, whose opening bracket was read.
fn class(text: &[u8]) -> Option<&[u8]> {
    let inside = match text {
        [b'!' | b'^', inside @ ..] => inside,
        inside => inside,
    };
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let length = inside.iter().take_while(|byte| is_plain(byte)).count();
    match &inside[length..] {
        [b']', rest @ ..] if length > 0 => Some(rest),
        _ => None,
    }
}

/// Whether the pieces stand for exactly this text.
fn fits(pieces: &[Piece], text: &[u8]) -> bool {
    let (mut piece, mut at) = (0, 0);
    // Where to go on when it does not fit: after the last wildcard, one byte further on.
    let mut again = None;
    loop {
        match pieces.get(piece) {
            Some(Piece::Any) => {
                piece += 1;
                again = Some((piece, at));
                continue;
            }
            Some(Piece::One) if at < text.len() => {
                (piece, at) = (piece + 1, at + 1);
                continue;
            }
            Some(Piece::Byte(byte)) if text.get(at) == Some(byte) => {
                (piece, at) = (piece + 1, at + 1);
                continue;
            }
            None if at == text.len() => return true,
            _ => {}
        }
        match &mut again {
            Some((after, from)) if *from < text.len() => {
                *from += 1;
                (piece, at) = (*after, *from);
            }
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn may(text: &str, path: &str) -> bool {
        let path = path.to_ascii_lowercase();
        let patterns = read(text.as_bytes(), false).unwrap();
        patterns.iter().any(|one| one.may_match(path.as_bytes()))
    }

    #[test]
    fn common_rules_leave_common_files_alone() {
        let rules = "# made by hand\n*.o\n*.py[cod]\n/target/\nnode_modules\n.env*\n!keep.o\r\n\n\
                     docs/_build/\n**/.cache/\n*~\n";
        for path in [
            "src/new.py",
            "added.txt",
            "d/e/main.rs",
            "docs/build/x",
            "o",
            "targets",
        ] {
            assert!(!may(rules, path), "{path}");
        }
        for path in [
            "a/b.O",
            "x.pyc",
            "target/debug/x",
            "a/node_modules/p/i.js",
            ".env.local",
            "docs/_build/x",
            ".cache/x",
            "a/.cache/x",
            "x~",
        ] {
            assert!(may(rules, path), "{path}");
        }
    }

    #[test]
    fn what_is_hard_to_read_matches_everything() {
        for text in [
            "[[:alpha:]]",
            "[",
            "\u{e9}",
            "/",
            "*",
            "\\",
            " ",
            "[]a]",
            "[é]",
        ] {
            assert!(may(text, "x/y"), "{text}");
        }
        assert!(read(b"a\0b", true).is_none());
        for (taking_back, rules) in [(false, 1), (true, 2)] {
            assert_eq!(read(b"!.relo\na\n", taking_back).unwrap().len(), rules);
        }
    }
}
