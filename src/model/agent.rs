//! The name of a workspace: the agent's id.
//!
//! An id becomes a component of ref names (`refs/relo/vws/<agent>/overlay`,
//! `refs/heads/relo/<agent>`), of file names (locks, directories) and of printed records, so its
//! grammar is the narrowest that all of them can hold without quoting: 1 to 64 of
//! `A-Z a-z 0-9 . _ -`, first a letter or digit, no `..`, no final `.` or `.lock`, not `HEAD`. The
//! last two count in any case, for loose refs live on file systems that may fold it. For the same
//! reason two ids that differ in case only can't live side by side: see [`AgentId::clashes_with`].
//!
//! Invariant: an [`AgentId`] always fits the grammar; there is no way to make one around it.

use std::fmt;
use std::str::FromStr;

use bstr::ByteSlice;
use serde::{Deserialize, Serialize};

use super::text::sanitize_terminal;

/// The name of an agent and of its workspace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentId(String);

/// Why a text is not an agent id.
///
/// `id` is the refused text, already made safe to print.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AgentIdError {
    /// There is no text at all.
    #[error("agent id '' is empty")]
    Empty,
    /// More bytes than [`AgentId::MAX_LEN`].
    #[error(
        "agent id '{id}...' is {length} bytes long; at most {} are allowed",
        AgentId::MAX_LEN
    )]
    TooLong {
        /// The start of the refused text.
        id: String,
        /// Its whole length in bytes.
        length: usize,
    },
    /// A character outside of the grammar.
    #[error("agent id '{id}' holds '{found}'; only letters, digits, '.', '_' and '-' are allowed")]
    BadCharacter {
        /// The refused text.
        id: String,
        /// The first character (or byte) that is not allowed.
        found: String,
    },
    /// The first character is neither a letter nor a digit.
    #[error("agent id '{id}' does not start with a letter or digit")]
    BadStart {
        /// The refused text.
        id: String,
    },
    /// Two dots in a row, which no ref name may hold.
    #[error("agent id '{id}' holds '..'")]
    DoubleDot {
        /// The refused text.
        id: String,
    },
    /// A dot at the end, which no ref name may have.
    #[error("agent id '{id}' ends with '.'")]
    FinalDot {
        /// The refused text.
        id: String,
    },
    /// `.lock` at the end: git keeps such names for its lock files.
    #[error("agent id '{id}' ends with '.lock'")]
    FinalLock {
        /// The refused text.
        id: String,
    },
    /// The name `HEAD`, which means something else everywhere in git.
    #[error("agent id '{id}' is reserved")]
    Head {
        /// The refused text.
        id: String,
    },
}

impl AgentId {
    /// The most bytes (all ASCII, so characters too) that an id may have.
    pub const MAX_LEN: usize = 64;

    /// Checks a text against the grammar.
    ///
    /// # Errors
    /// The first rule that the text breaks, as an [`AgentIdError`].
    pub fn new(id: &str) -> Result<Self, AgentIdError> {
        check(id.as_bytes())?;
        Ok(Self(id.to_owned()))
    }

    /// Returns the id as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Tells whether two different ids are equal but for case.
    ///
    /// Such a pair would share one file on a disk that folds case, so the second one is refused.
    /// An id does not clash with itself.
    #[must_use]
    pub fn clashes_with(&self, other: &Self) -> bool {
        self.0 != other.0 && self.0.eq_ignore_ascii_case(&other.0)
    }
}

fn check(id: &[u8]) -> Result<(), AgentIdError> {
    let shown = || sanitize_terminal(id.as_bstr());
    if id.is_empty() {
        return Err(AgentIdError::Empty);
    }
    if id.len() > AgentId::MAX_LEN {
        // Cut between characters, so that the cut itself is not shown as broken text.
        let start = id.char_indices().map(|(_, end, _)| end);
        let end = start
            .take_while(|end| *end <= AgentId::MAX_LEN)
            .last()
            .unwrap_or(0);
        let id_start = sanitize_terminal(id[..end].as_bstr());
        return Err(AgentIdError::TooLong {
            id: id_start,
            length: id.len(),
        });
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if let Some((from, to, _)) = id.char_indices().find(|(_, _, c)| !allowed(*c)) {
        let found = sanitize_terminal(id[from..to].as_bstr());
        return Err(AgentIdError::BadCharacter { id: shown(), found });
    }
    if !id[0].is_ascii_alphanumeric() {
        return Err(AgentIdError::BadStart { id: shown() });
    }
    if id.contains_str("..") {
        return Err(AgentIdError::DoubleDot { id: shown() });
    }
    if id.ends_with(b".") {
        return Err(AgentIdError::FinalDot { id: shown() });
    }
    if id.len() >= 5 && id[id.len() - 5..].eq_ignore_ascii_case(b".lock") {
        return Err(AgentIdError::FinalLock { id: shown() });
    }
    if id.eq_ignore_ascii_case(b"HEAD") {
        return Err(AgentIdError::Head { id: shown() });
    }
    Ok(())
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl AsRef<str> for AgentId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for AgentId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentId {
    type Err = AgentIdError;

    fn from_str(id: &str) -> Result<Self, AgentIdError> {
        Self::new(id)
    }
}

impl TryFrom<&[u8]> for AgentId {
    type Error = AgentIdError;

    fn try_from(id: &[u8]) -> Result<Self, AgentIdError> {
        check(id)?;
        // The grammar is ASCII, so this copies every byte as it is.
        Ok(Self(id.iter().map(|byte| char::from(*byte)).collect()))
    }
}

impl TryFrom<&str> for AgentId {
    type Error = AgentIdError;

    fn try_from(id: &str) -> Result<Self, AgentIdError> {
        Self::new(id)
    }
}

impl TryFrom<String> for AgentId {
    type Error = AgentIdError;

    fn try_from(id: String) -> Result<Self, AgentIdError> {
        check(id.as_bytes())?;
        Ok(Self(id))
    }
}

impl From<AgentId> for String {
    fn from(id: AgentId) -> Self {
        id.0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn accepts_the_grammar() {
        let longest = "a".repeat(64);
        for id in [
            "a", "7", "Z", "agent-1", "A.b_c-D", "a.locks", "a.lock2", "lock", "HEADs", "head.1",
            "a-", "a_", "0.0", "xlock", &longest,
        ] {
            assert_eq!(AgentId::new(id).unwrap().as_str(), id);
            assert_eq!(AgentId::try_from(id.as_bytes()).unwrap().to_string(), id);
            assert_eq!(id.parse::<AgentId>().unwrap().as_ref() as &str, id);
        }
    }

    #[test]
    fn refuses_and_says_which_rule() {
        let table: &[(&[u8], &str)] = &[
            (b"", "agent id '' is empty"),
            (b".a", "agent id '.a' does not start with a letter or digit"),
            (b"-a", "agent id '-a' does not start with a letter or digit"),
            (b"_a", "agent id '_a' does not start with a letter or digit"),
            (b"a..b", "agent id 'a..b' holds '..'"),
            (b"a..", "agent id 'a..' holds '..'"),
            (b"a.", "agent id 'a.' ends with '.'"),
            (b"a.lock", "agent id 'a.lock' ends with '.lock'"),
            (b"a.LoCk", "agent id 'a.LoCk' ends with '.lock'"),
            (b"HEAD", "agent id 'HEAD' is reserved"),
            (b"head", "agent id 'head' is reserved"),
        ];
        for (id, message) in table {
            assert_eq!(AgentId::try_from(*id).unwrap_err().to_string(), *message);
        }
        let bad: &[(&[u8], &str)] = &[
            (b"a/b", "/"),
            (b"a b", " "),
            (b"a@1", "@"),
            (b"a\0", "\\x00"),
            (b"a\n", "\\n"),
            (b"\x1b[2Ja", "\\x1b"),
            (b"a\xff", "\\xff"),
            (b"a\\", "\\"),
            (b"~a", "~"),
            ("\u{e9}t\u{e9}".as_bytes(), "\u{e9}"),
            ("a\u{202e}".as_bytes(), "\\u{202e}"),
            // A letter and a digit elsewhere, but not in the grammar.
            ("\u{ff21}".as_bytes(), "\u{ff21}"),
            ("a\u{661}".as_bytes(), "\u{661}"),
        ];
        for (id, character) in bad {
            let error = AgentId::try_from(*id).unwrap_err();
            assert!(
                !error.to_string().chars().any(char::is_control),
                "{error:?}"
            );
            match error {
                AgentIdError::BadCharacter { found, .. } => assert_eq!(found, *character),
                other => panic!("{id:?}: {other:?}"),
            }
        }
    }

    #[test]
    fn refuses_65_bytes_without_printing_them_all() {
        let error = AgentId::new(&"a".repeat(65)).unwrap_err();
        assert!(matches!(&error, AgentIdError::TooLong { length: 65, id } if id.len() == 64));
        let error = AgentId::new(&"\u{e9}".repeat(500)).unwrap_err();
        assert!(
            error.to_string().len() < 200 && !error.to_string().contains("\\x"),
            "{error}"
        );
    }

    #[test]
    fn clashes_by_case_only() {
        let id = |text: &str| AgentId::new(text).unwrap();
        assert!(id("Agent").clashes_with(&id("agent")));
        assert!(!id("agent").clashes_with(&id("agent")));
        assert!(!id("agent").clashes_with(&id("agent2")));
    }

    #[test]
    fn json_is_the_string_and_is_checked() {
        let id: AgentId = serde_json::from_str("\"a-1\"").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"a-1\"");
        assert!(serde_json::from_str::<AgentId>("\"a/1\"").is_err());
    }
}
