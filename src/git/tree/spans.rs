//! How much of one file's content is found in another: git's measure for renames.
//!
//! Content is cut into spans that end after a line feed or 64 bytes. A span is known by a small hash; a
//! file is the number of bytes per hash. What two files share is, for each hash, the smaller number. The
//! hash and its modulus are git's, so that scores are equal to git's to the last digit.

/// The bytes under each span hash, ascending by hash.
pub(super) struct Spans(Vec<(u32, u64)>);

/// The longest span, in bytes.
const SPAN: u64 = 64;
/// The number of different hashes.
const HASHES: u32 = 107_927;

impl Spans {
    /// Cuts up `content`. In text, the CR of a CRLF does not count.
    pub(super) fn new(content: &[u8], is_text: bool) -> Self {
        let mut spans = Vec::new();
        let (mut low, mut high, mut length) = (0u32, 0u32, 0u64);
        let hash = |low: u32, high: u32| low.wrapping_add(high.wrapping_mul(0x61)) % HASHES;
        for (at, &byte) in content.iter().enumerate() {
            if is_text && byte == b'\r' && content.get(at + 1) == Some(&b'\n') {
                continue;
            }
            // The two words are one 64-bit register, rotated by seven bits.
            let before = low;
            low = ((low << 7) ^ (high >> 25)).wrapping_add(u32::from(byte));
            high = (high << 7) ^ (before >> 25);
            length += 1;
            if length == SPAN || byte == b'\n' {
                spans.push((hash(low, high), length));
                (low, high, length) = (0, 0, 0);
            }
        }
        if length > 0 {
            spans.push((hash(low, high), length));
        }
        spans.sort_unstable();
        spans.dedup_by(|next, kept| {
            let equal = next.0 == kept.0;
            if equal {
                kept.1 += next.1;
            }
            equal
        });
        Self(spans)
    }

    /// How many bytes of `other` can be copied from here.
    pub(super) fn shared(&self, other: &Self) -> u64 {
        let mut theirs = other.0.iter().peekable();
        let mut sum = 0;
        for (hash, count) in &self.0 {
            while theirs.next_if(|(next, _)| next < hash).is_some() {}
            if let Some((_, other)) = theirs.next_if(|(next, _)| next == hash) {
                sum += count.min(other);
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_long_runs_are_shared() {
        let text = Spans::new(b"one\ntwo\nthree\n", true);
        assert_eq!(text.shared(&Spans::new(b"three\none\n", true)), 10);
        assert_eq!(text.shared(&Spans::new(b"three\r\none\r\n", true)), 10);
        assert_eq!(text.shared(&Spans::new(b"three\r\none\r\n", false)), 0);
        assert_eq!(text.shared(&Spans::new(b"", true)), 0);
        let run = Spans::new(&[7; 130], false);
        assert_eq!(run.shared(&Spans::new(&[7; 64], false)), 64);
        assert_eq!(run.shared(&Spans::new(&[7; 66], false)), 66);
    }
}
