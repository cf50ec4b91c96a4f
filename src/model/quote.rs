//! Paths in lines: git's C-style quoting, in both directions.
//!
//! Without `-z` a path is printed as it is, unless it holds a byte that could break the line or be
//! mistaken: then the whole path stands in double quotes with C escapes, exactly as `git ls-files`
//! prints it. With `core.quotePath` (git's default) bytes from 0x80 up are escaped too. A test holds
//! every byte value against git.

use std::borrow::Cow;

use bstr::{BStr, BString, ByteSlice};

/// Why a text is not a C-quoted path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnquoteError {
    /// The text does not start with a double quote.
    #[error("quoted path does not start with a double quote")]
    NotQuoted,
    /// The text ends before the closing quote.
    #[error("quoted path has no closing quote")]
    Unclosed,
    /// A backslash is followed by none of git's escapes.
    #[error("quoted path has an unknown escape at byte {at}")]
    BadEscape {
        /// Where its backslash is, counted from the opening quote.
        at: usize,
    },
}

/// Quotes a path as git prints it in a line.
///
/// `core_quotepath` is the setting `core.quotePath`: true escapes the bytes from 0x80 up.
#[must_use]
pub fn quote_c(path: &BStr, core_quotepath: bool) -> Cow<'_, BStr> {
    let needs_escape = |byte: &u8| escape_of(*byte, core_quotepath).is_some();
    if !path.iter().any(needs_escape) {
        return Cow::Borrowed(path);
    }
    let mut out = Vec::with_capacity(path.len() + 8);
    out.push(b'"');
    for byte in path.iter().copied() {
        match escape_of(byte, core_quotepath) {
            None => out.push(byte),
            Some(Escape::Letter(letter)) => out.extend([b'\\', letter]),
            Some(Escape::Octal) => {
                out.extend([
                    b'\\',
                    b'0' + (byte >> 6),
                    b'0' + (byte >> 3 & 7),
                    b'0' + (byte & 7),
                ]);
            }
        }
    }
    out.push(b'"');
    Cow::Owned(BString::from(out))
}

enum Escape {
    Letter(u8),
    Octal,
}

fn escape_of(byte: u8, core_quotepath: bool) -> Option<Escape> {
    match byte {
        0x07 => Some(Escape::Letter(b'a')),
        0x08 => Some(Escape::Letter(b'b')),
        b'\t' => Some(Escape::Letter(b't')),
        b'\n' => Some(Escape::Letter(b'n')),
        0x0b => Some(Escape::Letter(b'v')),
        0x0c => Some(Escape::Letter(b'f')),
        b'\r' => Some(Escape::Letter(b'r')),
        b'"' | b'\\' => Some(Escape::Letter(byte)),
        0x00..=0x1f | 0x7f => Some(Escape::Octal),
        0x80..=0xff if core_quotepath => Some(Escape::Octal),
        _ => None,
    }
}

/// Reads a quoted path from the start of a text; returns its bytes and what follows the closing
/// quote.
///
/// Takes what git's `unquote_c_style` takes: any byte may stand unescaped but the quote and the
/// backslash, and any byte may be written as three octal digits.
///
/// # Errors
/// [`UnquoteError`] if the text does not start with a whole quoted path.
pub fn unquote_c(quoted: &[u8]) -> Result<(BString, &[u8]), UnquoteError> {
    let mut rest = quoted.strip_prefix(b"\"").ok_or(UnquoteError::NotQuoted)?;
    let mut path = Vec::with_capacity(rest.len());
    loop {
        let special = rest.find_byteset(b"\"\\").ok_or(UnquoteError::Unclosed)?;
        path.extend_from_slice(&rest[..special]);
        rest = &rest[special..];
        if rest[0] == b'"' {
            return Ok((BString::from(path), &rest[1..]));
        }
        let bad = UnquoteError::BadEscape {
            at: quoted.len() - rest.len(),
        };
        let (byte, size) = match rest[1..] {
            [] => return Err(UnquoteError::Unclosed),
            [b'a', ..] => (0x07, 1),
            [b'b', ..] => (0x08, 1),
            [b't', ..] => (b'\t', 1),
            [b'n', ..] => (b'\n', 1),
            [b'v', ..] => (0x0b, 1),
            [b'f', ..] => (0x0c, 1),
            [b'r', ..] => (b'\r', 1),
            [byte @ (b'"' | b'\\'), ..] => (byte, 1),
            [
                high @ b'0'..=b'3',
                middle @ b'0'..=b'7',
                low @ b'0'..=b'7',
                ..,
            ] => ((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'), 3),
            _ => return Err(bad),
        };
        path.push(byte);
        rest = &rest[1 + size..];
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quotes_only_when_needed() {
        let plain = BStr::new("a b'c$/d");
        assert!(matches!(quote_c(plain, true), Cow::Borrowed(same) if same == plain));
        let accented = BStr::new("\u{fc}");
        assert!(matches!(quote_c(accented, false), Cow::Borrowed(_)));
        assert_eq!(quote_c(accented, true), BStr::new(r#""\303\274""#));
        assert_eq!(
            quote_c("\u{fc}\t".into(), false),
            BStr::new("\"\u{fc}\\t\"")
        );
        assert_eq!(
            quote_c("a\\\"\x7f\x01".into(), false),
            BStr::new(r#""a\\\"\177\001""#)
        );
    }

    #[test]
    fn unquotes_up_to_the_closing_quote() {
        assert_eq!(
            unquote_c(b"\"a\" \"b\"").unwrap(),
            ("a".into(), &b" \"b\""[..])
        );
        assert_eq!(unquote_c(b"\"\"x").unwrap(), ("".into(), &b"x"[..]));
        let escapes = unquote_c(br#""\a\b\t\n\v\f\r\"\\\101\377\000""#).unwrap();
        assert_eq!(
            escapes,
            (
                BString::from(b"\x07\x08\t\n\x0b\x0c\r\"\\A\xff\0"),
                &b""[..]
            )
        );
    }

    #[test]
    fn refuses_what_git_would_not_write() {
        let unclosed: &[&[u8]] = &[b"\"", b"\"a", b"\"a\\\"", b"\"a\\", b"\"\\101"];
        for text in unclosed {
            assert_eq!(unquote_c(text), Err(UnquoteError::Unclosed), "{text:?}");
        }
        let bad: &[&[u8]] = &[
            b"\"ab\\x41\"",
            b"\"ab\\\n\"",
            b"\"ab\\18 \"",
            b"\"ab\\400\"",
            b"\"ab\\1\"",
            b"\"ab\\e\"",
        ];
        for text in bad {
            assert_eq!(
                unquote_c(text),
                Err(UnquoteError::BadEscape { at: 3 }),
                "{text:?}"
            );
        }
        for text in [&b""[..], b"a", b" \"a\""] {
            assert_eq!(unquote_c(text), Err(UnquoteError::NotQuoted));
        }
    }

    proptest! {
        #[test]
        fn goes_there_and_back(path in proptest::collection::vec(any::<u8>(), 0..30), full: bool) {
            let quoted = quote_c(path.as_bstr(), full);
            if quoted.starts_with(b"\"") {
                let line = [quoted.as_bytes(), b"\trest"].concat();
                prop_assert_eq!(unquote_c(&line).unwrap(), (path.as_bstr().to_owned(), &b"\trest"[..]));
            } else {
                prop_assert_eq!(quoted.as_bytes(), &path[..]);
            }
            prop_assert!(!quoted.iter().any(|byte| *byte < 0x20));
        }
    }
}
