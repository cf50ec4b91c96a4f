//! A path inside a repository, as git's trees and index hold it.
//!
//! Bytes, separated by `/`, relative to the top. A path is validated once, where it comes in, be it
//! from an argument, from a record on stdin or from somebody's tree; whatever takes a [`RepoPath`]
//! may join it to a directory without a second look.
//!
//! Invariant: a [`RepoPath`] is relative and not empty, has no NUL, no empty component, no `.` or
//! `..` (nor `..` between backslashes, which separate on NTFS), no trailing slash, and is no spelling
//! of git's directory at any depth or of `.relo` at the top. A backslash in an ordinary name, bytes
//! that are not UTF-8 and names of any length are fine: Linux and git hold them.
//!
//! Not promised: that no *link* on the way leads elsewhere. Who opens files has to see to that.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

use bstr::{BStr, BString, ByteSlice};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::json::{json_path, path_from_json};
use super::protected;
use super::refusal::Refusal;
use super::text::sanitize_terminal;

/// A validated path inside a repository; ordered by its bytes, as git's index is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoPath(BString);

/// Why bytes are not a path that a workspace can hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// Absolute, or with a `..` component.
    #[error("path '{}' leads out of the repository", sanitize_terminal(.path.as_ref()))]
    Escapes {
        /// The path as it was given.
        path: BString,
    },
    /// Some spelling of git's directory, or of the top-level `.relo`.
    #[error("path '{}' is protected", sanitize_terminal(.path.as_ref()))]
    Protected {
        /// The path as it was given.
        path: BString,
    },
    /// Nothing that git could hold.
    #[error("path '{}' {why}", sanitize_terminal(.path.as_ref()))]
    Invalid {
        /// The path as it was given.
        path: BString,
        /// What is wrong, to be read after the path.
        why: &'static str,
    },
}

impl PathError {
    /// Returns the stable kind.
    ///
    /// An invalid path names no place in any workspace, so it shares `escapes`.
    #[must_use]
    pub fn refusal(&self) -> Refusal {
        match self {
            Self::Protected { .. } => Refusal::ProtectedPath,
            Self::Escapes { .. } | Self::Invalid { .. } => Refusal::Escapes,
        }
    }

    /// Returns the path as it was given.
    #[must_use]
    pub fn path(&self) -> &BStr {
        match self {
            Self::Escapes { path } | Self::Protected { path } | Self::Invalid { path, .. } => {
                path.as_ref()
            }
        }
    }
}

impl RepoPath {
    /// Validates a path given by a caller.
    ///
    /// # Errors
    /// [`PathError`], with the path in it.
    pub fn new(path: impl AsRef<[u8]>) -> Result<Self, PathError> {
        Self::checked(BString::from(path.as_ref()))
    }

    fn checked(path: BString) -> Result<Self, PathError> {
        match check(&path) {
            Ok(()) => Ok(Self(path)),
            Err(Fault::Escapes) => Err(PathError::Escapes { path }),
            Err(Fault::Protected) => Err(PathError::Protected { path }),
            Err(Fault::Invalid(why)) => Err(PathError::Invalid { path, why }),
        }
    }

    /// Validates a path met in a git tree or index.
    ///
    /// The rules are the same: a tree written elsewhere, or by hand, may hold anything.
    ///
    /// # Errors
    /// [`PathError`], with the path in it.
    pub fn from_tree(path: &[u8]) -> Result<Self, PathError> {
        Self::new(path)
    }

    /// Returns the path as a byte string.
    #[must_use]
    pub fn as_bstr(&self) -> &BStr {
        self.0.as_ref()
    }

    /// Returns the path's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Gives up the guarantee and returns the bytes.
    #[must_use]
    pub fn into_bstring(self) -> BString {
        self.0
    }

    /// Yields the components from the top down; there is at least one, and none is empty.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &BStr> {
        // Only one side of a `split_str` can be walked, of a slice's `split` both.
        self.0.split(|byte| *byte == b'/').map(ByteSlice::as_bstr)
    }

    /// Returns the folder that the path is in; `None` at the top.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        // Every rule looks at whole components, so the start of a valid path is valid.
        self.0
            .rfind_byte(b'/')
            .map(|slash| Self(BString::from(&self.0[..slash])))
    }

    /// Returns the last component.
    #[must_use]
    pub fn file_name(&self) -> &BStr {
        let start = self.0.rfind_byte(b'/').map_or(0, |slash| slash + 1);
        self.0[start..].as_bstr()
    }

    /// Tells whether the path lies below a folder, at any depth.
    ///
    /// The folder is given without a trailing slash; everything lies below the empty one. A path
    /// does not lie below itself.
    #[must_use]
    pub fn starts_with_dir(&self, dir: &BStr) -> bool {
        let dir: &[u8] = dir;
        dir.is_empty()
            || self
                .0
                .strip_prefix(dir)
                .is_some_and(|rest| rest.first() == Some(&b'/'))
    }

    /// Returns the path of an entry in this folder.
    ///
    /// # Errors
    /// [`PathError`] if the whole, or `name` as one component, is not valid.
    pub fn join(&self, name: &[u8]) -> Result<Self, PathError> {
        let mut path = self.0.clone();
        path.push(b'/');
        path.extend_from_slice(name);
        if name.contains(&b'/') {
            return Err(PathError::Invalid {
                path,
                why: "was joined from a name with a slash",
            });
        }
        Self::checked(path)
    }

    /// Tells whether git forbids a symbolic link (not a file) at this path.
    ///
    /// True for `.gitmodules` in any spelling that NTFS or HFS+ would take for it.
    #[must_use]
    pub fn is_dotfile_link_forbidden(&self) -> bool {
        protected::is_dotfile_link(&self.0)
    }
}

/// Which rule a path breaks.
enum Fault {
    Escapes,
    Protected,
    Invalid(&'static str),
}

fn check(path: &[u8]) -> Result<(), Fault> {
    if path.is_empty() {
        return Err(Fault::Invalid("is empty"));
    }
    if path.contains(&0) {
        return Err(Fault::Invalid("holds a NUL byte"));
    }
    // What leads outside is said before what is merely malformed.
    if path[0] == b'/'
        || path
            .split(|byte| matches!(byte, b'/' | b'\\'))
            .any(|part| part == b"..")
    {
        return Err(Fault::Escapes);
    }
    if path.ends_with(b"/") {
        return Err(Fault::Invalid("ends with a slash"));
    }
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" => return Err(Fault::Invalid("has an empty component")),
            b"." => return Err(Fault::Invalid("has a '.' component")),
            _ => {}
        }
    }
    if protected::is_protected(path) {
        return Err(Fault::Protected);
    }
    Ok(())
}

impl fmt::Display for RepoPath {
    /// For messages: made safe to print, not exact. Data has its own forms.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&sanitize_terminal(self.as_bstr()))
    }
}

impl AsRef<BStr> for RepoPath {
    fn as_ref(&self) -> &BStr {
        self.as_bstr()
    }
}

impl AsRef<[u8]> for RepoPath {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Borrow<BStr> for RepoPath {
    fn borrow(&self) -> &BStr {
        self.as_bstr()
    }
}

impl FromStr for RepoPath {
    type Err = PathError;

    fn from_str(path: &str) -> Result<Self, PathError> {
        Self::new(path)
    }
}

impl TryFrom<BString> for RepoPath {
    type Error = PathError;

    fn try_from(path: BString) -> Result<Self, PathError> {
        Self::checked(path)
    }
}

impl From<RepoPath> for BString {
    fn from(path: RepoPath) -> Self {
        path.0
    }
}

impl Serialize for RepoPath {
    /// In the form of [`json_path`].
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json_path(self.as_bstr()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RepoPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        let path = path_from_json(&value).ok_or_else(|| de::Error::custom("not a path"))?;
        Self::checked(path).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::HashSet;

    use super::*;

    fn path(text: &str) -> RepoPath {
        RepoPath::new(text).unwrap()
    }

    #[test]
    fn parts() {
        let deep = path("a/b c/d");
        assert_eq!(deep.components().collect::<Vec<_>>(), ["a", "b c", "d"]);
        assert_eq!(deep.components().next_back().unwrap(), deep.file_name());
        assert_eq!(deep.parent(), Some(path("a/b c")));
        assert_eq!(path("a").parent(), None);
        assert_eq!(path("a").file_name(), "a");
        assert_eq!(path("a").join(b"b c").unwrap().join(b"d").unwrap(), deep);
        for bad in ["", ".", "..", "x/y", "x/", ".git", "x\0"] {
            assert!(path("a").join(bad.as_bytes()).is_err(), "{bad}");
        }
        // Ours is protected at the top only.
        assert_eq!(path("a").join(b".relo").unwrap(), path("a/.relo"));
    }

    #[test]
    fn below_a_folder() {
        let deep = path("a/b/c");
        for dir in ["", "a", "a/b"] {
            assert!(deep.starts_with_dir(dir.into()), "{dir}");
        }
        for dir in ["a/b/c", "a/", "b", "a/b/", "a/b/c/d", "A"] {
            assert!(!deep.starts_with_dir(dir.into()), "{dir}");
        }
        assert!(!path("ab/c").starts_with_dir("a".into()));
    }

    #[test]
    fn sorts_by_bytes_and_is_found_by_bytes() {
        let mut paths = [path("a/b"), path("a.b"), path("B"), path("a")];
        paths.sort();
        assert_eq!(
            paths.each_ref().map(|p| p.as_bstr()),
            ["B", "a", "a.b", "a/b"]
        );
        let set: HashSet<RepoPath> = paths.into_iter().collect();
        assert!(set.contains::<BStr>("a.b".into()) && !set.contains::<BStr>("a.c".into()));
    }

    #[test]
    fn errors_say_the_path_safely_and_their_kind() {
        let error = RepoPath::new("../\u{1b}[1m").unwrap_err();
        assert_eq!(
            error.to_string(),
            "path '../\\x1b[1m' leads out of the repository"
        );
        assert_eq!(error.refusal(), Refusal::Escapes);
        let error = RepoPath::new("d/.GIT/config").unwrap_err();
        assert_eq!(error.to_string(), "path 'd/.GIT/config' is protected");
        assert_eq!(
            (error.refusal(), error.path()),
            (Refusal::ProtectedPath, "d/.GIT/config".into())
        );
        let error = RepoPath::from_tree(b"a//b").unwrap_err();
        assert_eq!(error.to_string(), "path 'a//b' has an empty component");
        assert_eq!(error.refusal(), Refusal::Escapes);
    }

    #[test]
    fn json_is_checked() {
        let odd = RepoPath::new(*b"d/\xff").unwrap();
        let json = serde_json::to_string(&odd).unwrap();
        assert_eq!(json, r#"{"bytes":"ZC//"}"#);
        assert_eq!(serde_json::from_str::<RepoPath>(&json).unwrap(), odd);
        assert_eq!(serde_json::to_string(&path("a/b")).unwrap(), r#""a/b""#);
        for bad in [r#""../a""#, r#"{"bytes":"LmdpdA=="}"#, "7"] {
            assert!(serde_json::from_str::<RepoPath>(bad).is_err(), "{bad}");
        }
    }
}
