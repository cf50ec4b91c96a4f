//! The stable kinds of refusal.
//!
//! A refusal is a documented "no": the state is unchanged, and the caller (often a program) has to
//! know which of its options is left. The words here are part of the contract: they stand in
//! porcelain records, in JSON and at the end of a stderr line in brackets. A kind may be added;
//! none is renamed or removed, and a test pins the list.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Writes the enum, its words and its list from one table, so that they can't differ.
macro_rules! refusals {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)+) => {
        /// Why something was not done, as a stable word.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Refusal { $($(#[$doc])* $variant,)+ }

        impl Refusal {
            /// Every kind, in the order of the manual.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the stable word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    };
}

refusals! {
    /// A directory is open and is the authority: writes through the view are refused.
    Materialized = "materialized",
    /// The workspace was made read-only.
    ReadOnly = "read_only",
    /// The expected revision or content is no longer the current one.
    Stale = "stale",
    /// The path is git's or ours, in some spelling.
    ProtectedPath = "protected_path",
    /// The path or link leads out of the workspace.
    Escapes = "escapes",
    /// The path is ignored by git's rules and not in the overlay yet.
    Ignored = "ignored",
    /// The file is over `relo.workspace.maxFileSize`.
    TooLarge = "too_large",
    /// The directory is a repository of its own.
    NestedRepository = "nested_repository",
    /// A socket, device or pipe, which git can't hold.
    SpecialFile = "special_file",
    /// The file could not be read; what was recorded before stays.
    Unreadable = "unreadable",
    /// Both sides changed the same lines.
    Conflict = "conflict",
    /// Both sides changed a file that can't be merged by lines.
    Binary = "binary",
    /// One side deleted what the other changed.
    DeleteEdit = "delete_edit",
    /// The sides hold different types (file, link, folder) at one path.
    TypeChange = "type_change",
    /// The user's editor holds unsaved changes of the file.
    UnsavedBuffer = "unsaved_buffer",
    /// The path is unmerged in the user's index.
    Unmerged = "unmerged",
    /// The user's file kept changing while it was to be written.
    WorkspaceChanged = "workspace_changed",
    /// The change builds on a parent that is not decided yet.
    NeedsParent = "needs_parent",
    /// The change builds on a parent that was rejected.
    ParentRejected = "parent_rejected",
    /// The change builds on a parent that a later proposal replaced.
    ParentSuperseded = "parent_superseded",
    /// A later proposal replaced this one.
    Superseded = "superseded",
    /// The change was accepted or rejected before.
    AlreadyDecided = "already_decided",
    /// The recorded state can't be read.
    Damaged = "damaged",
    /// The ref or directory is no longer what was recorded.
    Moved = "moved",
    /// This repository, system or format can't do it.
    Unsupported = "unsupported",
    /// Another process holds the lock.
    Locked = "locked",
}

/// A word that is no kind of refusal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{}' is not a kind of refusal", super::text::sanitize_terminal(.word.as_str().into()))]
pub struct UnknownRefusal {
    /// The word as it was given.
    pub word: String,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Refusal {
    type Err = UnknownRefusal;

    fn from_str(word: &str) -> Result<Self, UnknownRefusal> {
        let known = Self::ALL.iter().copied().find(|kind| kind.as_str() == word);
        known.ok_or_else(|| UnknownRefusal {
            word: word.to_owned(),
        })
    }
}

impl Serialize for Refusal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Refusal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// The words of the manual. Adding one is fine, touching one breaks every caller.
    const PINNED: &str = "materialized read_only stale protected_path escapes ignored too_large \
        nested_repository special_file unreadable conflict binary delete_edit type_change \
        unsaved_buffer unmerged workspace_changed needs_parent parent_rejected parent_superseded \
        superseded already_decided damaged moved unsupported locked";

    #[test]
    fn the_list_is_pinned() {
        let words: Vec<_> = Refusal::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(words, PINNED.split_whitespace().collect::<Vec<_>>());
    }

    #[test]
    fn every_word_goes_there_and_back() {
        for kind in Refusal::ALL {
            assert_eq!(kind.to_string().parse::<Refusal>().unwrap(), *kind);
            let json = serde_json::to_string(kind).unwrap();
            assert_eq!(json, format!("\"{kind}\""));
            assert_eq!(serde_json::from_str::<Refusal>(&json).unwrap(), *kind);
        }
        for word in ["", "Locked", "locked ", "read-only", "\u{1b}"] {
            let error = word.parse::<Refusal>().unwrap_err().to_string();
            assert!(!error.contains('\u{1b}'));
        }
    }
}
