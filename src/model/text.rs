//! Text shown to people: names that were written by others, made safe to print.
//!
//! Agent ids, paths and messages come from agents and from repositories. Printed raw they could move
//! the cursor, recolour the screen or, with bidirectional controls, show one name while meaning
//! another. Everything that goes into a message passes through [`sanitize_terminal`]. Data on stdout
//! does not: it has its own exact forms (`output::quote`, `model::json`).

use std::fmt::Write as _;

use bstr::BStr;

/// Renders bytes for a message to a person.
///
/// Control characters, bidirectional controls, invisible characters and bytes that are not UTF-8
/// are escaped (`\n`, `\x1b`, `\u{202e}`, `\xff`); everything else is kept. The result is for
/// reading, not for parsing back: a backslash that was in the name stays single.
#[must_use]
pub fn sanitize_terminal(text: &BStr) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\r' => out.push_str("\\r"),
                '\t' => out.push_str("\\t"),
                c if c.is_ascii_control() => push_byte(&mut out, c as u8),
                c if is_deceptive(c) => {
                    let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            push_byte(&mut out, *byte);
        }
    }
    out
}

fn push_byte(out: &mut String, byte: u8) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\x{byte:02x}");
}

/// Tells whether a character acts on the text around it, or can't be seen at all.
fn is_deceptive(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'      // soft hyphen, Arabic letter mark, vowel separator
            | '\u{200b}'..='\u{200f}'              // zero width, left-to-right and right-to-left marks
            | '\u{2028}'..='\u{202e}'              // line separators, embeddings, overrides
            | '\u{2060}'..='\u{206f}'              // joiners, isolates, deprecated format controls
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' // byte order mark, annotations
            | '\u{e0000}'..='\u{e007f}') // tags
}

#[cfg(test)]
mod tests {
    use bstr::ByteSlice;

    use super::*;

    #[test]
    fn escapes_what_could_deceive_and_keeps_the_rest() {
        let table: &[(&[u8], &str)] = &[
            (b"plain name.txt", "plain name.txt"),
            (
                "gr\u{fc}\u{df} \u{4f60} \u{1f600}".as_bytes(),
                "gr\u{fc}\u{df} \u{4f60} \u{1f600}",
            ),
            (b"a\nb\rc\td", "a\\nb\\rc\\td"),
            (b"\x1b[31mred\x7f", "\\x1b[31mred\\x7f"),
            ("\u{9b}31m".as_bytes(), "\\u{9b}31m"),
            ("txt\u{202e}exe".as_bytes(), "txt\\u{202e}exe"),
            (
                "\u{2066}x\u{2069}\u{200d}\u{feff}".as_bytes(),
                "\\u{2066}x\\u{2069}\\u{200d}\\u{feff}",
            ),
            (b"caf\xe9 \xff\xfe", "caf\\xe9 \\xff\\xfe"),
            (b"\xe2\x80", "\\xe2\\x80"),
            (b"a\\b", "a\\b"),
            (b"", ""),
        ];
        for (raw, shown) in table {
            assert_eq!(sanitize_terminal(raw.as_bstr()), *shown, "{raw:?}");
        }
    }
}
