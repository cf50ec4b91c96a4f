//! The stream of commands, cut into commands and payloads.
//!
//! The reader does its own buffering for one reason: before it asks the input for more, which may
//! block for as long as the peer likes, it calls `idle`, and the answers so far go out. A peer that
//! sends many commands at once gets its answers in few writes, one that waits for each gets each.

use std::io::{self, Read};

use bstr::{BString, ByteSlice};

use super::{Error, Result};
use crate::output::quote::unquote_c;

/// The most bytes that a command may have, its payload apart.
const LONGEST: usize = 1 << 20;
/// How much is asked of the input at once, in bytes.
const BUFFER: usize = 64 << 10;

/// Called before the input may block.
pub(super) type Idle<'i> = &'i mut dyn FnMut() -> Result<()>;

/// What comes next in the stream.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// A command's words, or what is wrong with them; for a `write`, the size of its payload.
    Command {
        words: Result<Vec<BString>, String>,
        payload: Option<u64>,
    },
    /// The input ended, after a whole command.
    End,
    /// The input ended in the middle of a command, which is not carried out.
    Cut,
}

/// What became of a payload.
#[derive(Debug, PartialEq)]
pub(super) enum Payload {
    /// It is here.
    Whole(Vec<u8>),
    /// It was larger than allowed, and was skipped.
    TooLarge,
    /// The input ended within it.
    Cut,
    /// It is not followed by its terminator: the size was wrong.
    OutOfStep,
}

/// A piece of the stream up to a delimiter.
enum Piece {
    Whole(Vec<u8>),
    TooLong,
    Cut,
    End,
}

/// The input, buffered.
pub(super) struct Input<R> {
    inner: R,
    buffer: Box<[u8]>,
    at: usize,
    end: usize,
    nul: bool,
}

impl<R: Read> Input<R> {
    pub(super) fn new(inner: R, nul: bool) -> Self {
        Input {
            inner,
            buffer: vec![0; BUFFER].into(),
            at: 0,
            end: 0,
            nul,
        }
    }

    /// The next command.
    pub(super) fn next(&mut self, idle: Idle<'_>) -> Result<Next> {
        if self.nul {
            return self.next_fields(idle);
        }
        let line = match self.piece(b'\n', idle)? {
            Piece::Whole(line) => line,
            Piece::TooLong => return Ok(too_long()),
            Piece::Cut => return Ok(Next::Cut),
            Piece::End => return Ok(Next::End),
        };
        let words = words(&line);
        let payload = match &words {
            Ok(words) => payload_size(words),
            // The words are lost, but the size may still stand at the end.
            Err(_) if line.starts_with(b"write ") => {
                let mut from_end = line.rsplit(|b| *b == b' ');
                from_end.find(|word| !is_option(word)).and_then(size)
            }
            Err(_) => None,
        };
        Ok(Next::Command { words, payload })
    }

    fn next_fields(&mut self, idle: Idle<'_>) -> Result<Next> {
        let mut words = Vec::new();
        let mut length = 0;
        let mut whole = true;
        loop {
            match self.piece(0, idle)? {
                Piece::Whole(field) if field.is_empty() => break,
                Piece::Whole(field) => {
                    length += field.len();
                    whole &= length <= LONGEST;
                    if whole {
                        words.push(BString::from(field));
                    }
                }
                Piece::TooLong => whole = false,
                Piece::End if words.is_empty() && whole => return Ok(Next::End),
                Piece::End | Piece::Cut => return Ok(Next::Cut),
            }
        }
        if !whole {
            return Ok(too_long());
        }
        let payload = payload_size(&words);
        let words = match words.is_empty() {
            true => Err("the command is empty".to_owned()),
            false => Ok(words),
        };
        Ok(Next::Command { words, payload })
    }

    /// The payload of a `write` and the terminator after it; more than `limit` bytes are skipped.
    pub(super) fn payload(&mut self, size: u64, limit: u64, idle: Idle<'_>) -> Result<Payload> {
        let keep = size <= limit;
        let mut bytes = Vec::new();
        let mut left = size;
        while left > 0 {
            let found = self.fill(idle)?;
            if found == 0 {
                return Ok(Payload::Cut);
            }
            let take = found.min(usize::try_from(left).unwrap_or(usize::MAX));
            if keep {
                bytes.extend_from_slice(&self.buffer[self.at..self.at + take]);
            }
            self.at += take;
            left -= take as u64;
        }
        if self.fill(idle)? == 0 {
            return Ok(Payload::Cut);
        }
        let end = if self.nul { 0 } else { b'\n' };
        if self.buffer[self.at] != end {
            return Ok(Payload::OutOfStep);
        }
        self.at += 1;
        Ok(if keep {
            Payload::Whole(bytes)
        } else {
            Payload::TooLarge
        })
    }

    fn piece(&mut self, end: u8, idle: Idle<'_>) -> Result<Piece> {
        let mut piece = Vec::new();
        let mut long = false;
        loop {
            if self.fill(idle)? == 0 {
                let nothing = piece.is_empty() && !long;
                return Ok(if nothing { Piece::End } else { Piece::Cut });
            }
            let here = &self.buffer[self.at..self.end];
            let found = here.find_byte(end);
            let part = &here[..found.unwrap_or(here.len())];
            long |= piece.len() + part.len() > LONGEST;
            if long {
                piece.clear();
            } else {
                piece.extend_from_slice(part);
            }
            self.at += part.len();
            if found.is_some() {
                self.at += 1;
                return Ok(if long {
                    Piece::TooLong
                } else {
                    Piece::Whole(piece)
                });
            }
        }
    }

    /// Sees to it that there is something to take; returns how much, 0 at the end.
    fn fill(&mut self, idle: Idle<'_>) -> Result<usize> {
        if self.at == self.end {
            idle()?;
            self.at = 0;
            self.end = loop {
                match self.inner.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read.map_err(Error::Read)?,
                }
            };
        }
        Ok(self.end - self.at)
    }
}

fn too_long() -> Next {
    Next::Command {
        words: Err(format!("the command is longer than {LONGEST} bytes")),
        payload: None,
    }
}

/// Whether a word looks like an option of `write`.
fn is_option(word: &[u8]) -> bool {
    word.starts_with(b"-") || word.starts_with(b"+")
}

/// The size of the payload that follows a `write`, however wrong the rest of it may be: the third
/// word after the options.
fn payload_size(words: &[BString]) -> Option<u64> {
    let (command, rest) = words.split_first()?;
    if command != "write" {
        return None;
    }
    let options = rest.iter().take_while(|word| is_option(word)).count();
    rest.get(options + 2).and_then(|word| size(word))
}

/// A size: decimal digits, and not so many that nobody means it.
pub(super) fn size(word: &[u8]) -> Option<u64> {
    let digits = !word.is_empty() && word.len() < 19 && word.iter().all(u8::is_ascii_digit);
    digits.then(|| word.to_str().ok()?.parse().ok()).flatten()
}

/// Cuts a line into words: separated by one blank each, C-quoted where they start with a quote.
fn words(line: &[u8]) -> Result<Vec<BString>, String> {
    if line.is_empty() {
        return Err("the command is empty".to_owned());
    }
    let mut words = Vec::new();
    let mut rest = line;
    loop {
        if rest.starts_with(b"\"") {
            let (word, after) = unquote_c(rest).map_err(|error| error.to_string())?;
            words.push(word);
            rest = after;
        } else {
            let end = rest.find_byte(b' ').unwrap_or(rest.len());
            if end == 0 {
                return Err("words are separated by one blank each".to_owned());
            }
            words.push(rest[..end].into());
            rest = &rest[end..];
        }
        match rest {
            [] => return Ok(words),
            [b' ', after @ ..] => rest = after,
            _ => return Err("a quoted word goes on after its closing quote".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn all(input: &[u8], nul: bool) -> Vec<Next> {
        let mut input = Input::new(input, nul);
        let mut found = Vec::new();
        loop {
            let next = input.next(&mut || Ok(())).unwrap();
            let last = matches!(next, Next::End | Next::Cut);
            if let Next::Command {
                payload: Some(size),
                ..
            } = next
            {
                let payload = input.payload(size, 100, &mut || Ok(())).unwrap();
                assert!(matches!(payload, Payload::Whole(bytes) if bytes.len() as u64 == size));
            }
            found.push(next);
            if last {
                return found;
            }
        }
    }

    fn command(words: &[&str], payload: Option<u64>) -> Next {
        Next::Command {
            words: Ok(words.iter().map(|word| BString::from(*word)).collect()),
            payload,
        }
    }

    #[test]
    fn both_framings_say_the_same() {
        let lines = b"read a \"x\\n y\"\nwrite a f 3 +x\na\nb\nlist\n";
        let fields = b"read\0a\0x\n y\0\0write\0a\0f\x003\0+x\0\0a\nb\0list\0\0";
        let wanted = [
            command(&["read", "a", "x\n y"], None),
            command(&["write", "a", "f", "3", "+x"], Some(3)),
            command(&["list"], None),
            Next::End,
        ];
        assert_eq!(all(lines, false), wanted);
        assert_eq!(all(fields, true), wanted);
    }

    #[test]
    fn a_command_without_its_end_is_none() {
        for (input, nul) in [
            (&b"delete a foo"[..], false),
            (b"delete\0a\0foo", true),
            (b"delete\0a\0foo\0", true),
        ] {
            assert_eq!(all(input, nul), [Next::Cut], "{input:?}");
        }
    }

    #[test]
    fn malformed_lines_are_told_apart_and_keep_their_payload() {
        for line in [
            "",
            " list",
            "list ",
            "read  a",
            "read a \"x",
            "read a \"x\"y",
            "read a \"\\q\"",
        ] {
            let found = all(format!("{line}\nlist\n").as_bytes(), false);
            assert!(
                matches!(&found[0], Next::Command { words: Err(_), .. }),
                "{line}"
            );
            assert_eq!(found[1], command(&["list"], None));
        }
        for line in ["write a \"\\q\" 4", "write  a b 4", "write a \"\\q\" 4 +x"] {
            let found = all(format!("{line}\nlist\nlist\n").as_bytes(), false);
            assert!(matches!(
                &found[0],
                Next::Command {
                    words: Err(_),
                    payload: Some(4)
                }
            ));
            assert_eq!(found[1], command(&["list"], None));
        }
    }

    #[test]
    fn sizes_are_plain_numbers() {
        assert_eq!(size(b"0"), Some(0));
        assert_eq!(size(b"00012"), Some(12));
        for bad in [&b""[..], b"-1", b"+1", b"1k", b" 1", b"9999999999999999999"] {
            assert_eq!(size(bad), None);
        }
    }

    #[test]
    fn a_long_line_is_skipped() {
        let long = [&vec![b'x'; LONGEST + 1][..], b"\nlist\n"].concat();
        let found = all(&long, false);
        assert!(matches!(&found[0], Next::Command { words: Err(_), .. }));
        assert_eq!(found[1], command(&["list"], None));
    }
}
