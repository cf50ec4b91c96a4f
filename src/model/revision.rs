//! The number of a published state of a workspace.
//!
//! Revisions count from 1, so there is no revision 0 and "no revision" is `Option`'s business. The
//! text form is the plain decimal number and nothing else, because it is a component of ref names
//! (`snap/<n>`, `refs/relo/changes/<agent>/<n>`): with `07` or `+7` allowed, one revision would
//! have several names.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::text::sanitize_terminal;

/// The number of one published state of a workspace, from 1 to [`Revision::MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Revision(NonZeroU64);

/// A text or number that is no revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a revision number", sanitize_terminal(.text.as_str().into()))]
pub struct RevisionError {
    /// The text as it was given.
    pub text: String,
}

impl Revision {
    /// Revision 1, which a workspace is created with.
    pub const FIRST: Self = Self(NonZeroU64::MIN);

    /// The highest number that is read: half of what the type holds, so that [`Revision::next`] of
    /// whatever a damaged repository claims still exists.
    pub const MAX: u64 = u64::MAX / 2;

    /// Makes a revision of a number; `None` for 0 and for more than [`Revision::MAX`].
    #[must_use]
    pub const fn new(number: u64) -> Option<Self> {
        match NonZeroU64::new(number) {
            Some(nonzero) if number <= Self::MAX => Some(Self(nonzero)),
            _ => None,
        }
    }

    /// Returns the number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// Returns the revision after this one.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl TryFrom<u64> for Revision {
    type Error = RevisionError;

    fn try_from(number: u64) -> Result<Self, RevisionError> {
        Self::new(number).ok_or_else(|| RevisionError {
            text: number.to_string(),
        })
    }
}

impl From<Revision> for u64 {
    fn from(revision: Revision) -> Self {
        revision.get()
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Revision {
    type Err = RevisionError;

    fn from_str(text: &str) -> Result<Self, RevisionError> {
        // `u64::from_str` alone would also take '+7' and '07'.
        let number = if text.starts_with(['0', '+']) {
            None
        } else {
            text.parse().ok()
        };
        number.and_then(Self::new).ok_or_else(|| RevisionError {
            text: text.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn one_spelling_per_number() {
        for text in ["1", "7", "10", "9223372036854775807"] {
            assert_eq!(text.parse::<Revision>().unwrap().to_string(), text);
        }
        for text in [
            "",
            "0",
            "00",
            "07",
            "+7",
            "-7",
            "-0",
            " 7",
            "7 ",
            "7\n",
            "0x7",
            "7.0",
            "1_0",
            "r7",
            "\u{667}",
            "9223372036854775808",
            "18446744073709551616",
        ] {
            assert!(text.parse::<Revision>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn counts_from_one() {
        assert_eq!(Revision::FIRST.get(), 1);
        assert_eq!(Revision::FIRST.next(), Revision::new(2).unwrap());
        assert_eq!(Revision::new(0), None);
        let last = Revision::new(Revision::MAX).unwrap();
        assert!(Revision::FIRST < Revision::FIRST.next() && last < last.next());
    }

    #[test]
    fn json_is_the_number() {
        let seven: Revision = serde_json::from_str("7").unwrap();
        assert_eq!(serde_json::to_string(&seven).unwrap(), "7");
        for bad in ["0", "-1", "\"7\"", "7.5", "null", "9223372036854775808"] {
            assert!(serde_json::from_str::<Revision>(bad).is_err(), "{bad}");
        }
    }
}
