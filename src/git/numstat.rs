//! How many lines a change adds and takes away, as `git diff --numstat` counts them.

use git2::{DiffOptions, Patch};

use super::merge::is_binary;

/// The largest content that git compares by lines (`core.bigFileThreshold`).
const MAX_SIZE: usize = 512 * 1024 * 1024;

/// The lines that lead from `old` to `new`: added, then deleted. `None` where a side is binary, or
/// too large to be compared by lines.
pub fn count_lines(old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
    if [old, new]
        .iter()
        .any(|text| text.len() > MAX_SIZE || is_binary(text))
    {
        return None;
    }
    if old.is_empty() || new.is_empty() {
        return Some((lines(new), lines(old)));
    }
    let mut options = DiffOptions::new();
    options.context_lines(0).force_text(true);
    let patch = Patch::from_buffers(old, None, new, None, Some(&mut options)).ok()?;
    let (_, added, deleted) = patch.line_stats().ok()?;
    Some((added as u64, deleted as u64))
}

/// The lines of a text; a last one without a newline counts.
fn lines(text: &[u8]) -> u64 {
    let ends = text.iter().filter(|byte| **byte == b'\n').count();
    let open = text.last().is_some_and(|byte| *byte != b'\n');
    ends as u64 + u64::from(open)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::ObjectFormat;
    use crate::git::scratch::Scratch;

    /// What `git diff --numstat` says of the same two contents.
    fn of_git(scratch: &Scratch, old: &[u8], new: &[u8]) -> Option<(u64, u64)> {
        let id = |text: &[u8]| {
            let out = scratch.git_with(&["hash-object", "-w", "--stdin"], text);
            String::from_utf8(out).unwrap().trim().to_owned()
        };
        let (old, new) = (id(old), id(new));
        let out = scratch.git(&["diff", "--numstat", &old, &new]);
        let out = String::from_utf8(out).unwrap();
        let mut fields = out.split('\t');
        let mut number = || fields.next().unwrap().parse().ok();
        Some((number()?, number()?))
    }

    #[test]
    fn counts_as_git_does() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let long: String = (0..300).map(|n| format!("{}\n", n * 7 % 31)).collect();
        let other: String = (0..300).map(|n| format!("{}\n", n * 11 % 37)).collect();
        let table: &[(&[u8], &[u8])] = &[
            (b"", b"a\n"),
            (b"a\n", b""),
            (b"a", b"a\n"),
            (b"a\nb\n", b"a\nB\nb\n"),
            (b"a\nb\nc", b"c\nb\na"),
            (b"a\r\n", b"a\n"),
            (b"a\n\n\nb\n", b"a\n\nb\n\n"),
            (b"a\0b", b"a\n"),
            (b"a\n", b"\0"),
            (b"", b"no end"),
            (b"\xff\xfe\n", b"\xff\n"),
            (long.as_bytes(), other.as_bytes()),
        ];
        for (old, new) in table {
            assert_eq!(
                count_lines(old, new),
                of_git(&scratch, old, new),
                "{old:?} {new:?}"
            );
        }
    }

    #[test]
    fn random_texts_count_as_git_does() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let mut seed = 7_u32;
        let mut next = move |below: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % below
        };
        for _ in 0..40 {
            let mut text = || -> Vec<u8> {
                let count = next(40) + 1;
                (0..count)
                    .flat_map(|_| format!("{}\n", next(9)).into_bytes())
                    .collect()
            };
            let (old, new) = (text(), text());
            if old != new {
                assert_eq!(count_lines(&old, &new), of_git(&scratch, &old, &new));
            }
        }
    }
}
