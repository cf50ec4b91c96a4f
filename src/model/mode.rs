//! The mode of a tree entry.
//!
//! Git knows five and no more. What it reads is looser (old trees hold 100664, and a file's
//! permission bits come from the disk), what it writes is always one of these, so the numbers are
//! made canonical once, here, as git does it: of a file's permissions only the owner's execute bit
//! counts.

use std::fmt;

const TYPE_MASK: u32 = 0o170_000;
const OWNER_EXECUTE: u32 = 0o100;

/// What a tree entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FileMode {
    /// A file, 100644.
    Regular,
    /// A file that can be run, 100755.
    Executable,
    /// A symbolic link, 120000: the blob is its target.
    Link,
    /// A commit of another repository, 160000.
    Gitlink,
    /// A folder, 040000.
    Tree,
}

impl FileMode {
    /// Returns git's canonical number.
    #[must_use]
    pub const fn to_u32(self) -> u32 {
        match self {
            Self::Regular => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
            Self::Gitlink => 0o160_000,
            Self::Tree => 0o040_000,
        }
    }

    /// Reads a mode from a tree, an index or `stat`; `None` for what git can't hold.
    ///
    /// The permission bits of a file are reduced to its owner's execute bit, and those of
    /// everything else don't count (legacy 100664 is [`FileMode::Regular`]).
    #[must_use]
    pub const fn from_u32(raw: u32) -> Option<Self> {
        if raw > 0o177_777 {
            return None;
        }
        match raw & TYPE_MASK {
            0o100_000 if raw & OWNER_EXECUTE != 0 => Some(Self::Executable),
            0o100_000 => Some(Self::Regular),
            0o120_000 => Some(Self::Link),
            0o160_000 => Some(Self::Gitlink),
            0o040_000 => Some(Self::Tree),
            _ => None,
        }
    }

    /// Returns the digits as a tree object holds them: octal, a folder's without the zero.
    #[must_use]
    pub const fn tree_bytes(self) -> &'static [u8] {
        match self {
            Self::Regular => b"100644",
            Self::Executable => b"100755",
            Self::Link => b"120000",
            Self::Gitlink => b"160000",
            Self::Tree => b"40000",
        }
    }

    /// Reads octal digits, from a tree object or from git's output; `None` if they are no mode.
    #[must_use]
    pub fn from_octal(digits: &[u8]) -> Option<Self> {
        if digits.is_empty() || digits.len() > 6 {
            return None;
        }
        let value = digits.iter().try_fold(0_u32, |value, digit| match digit {
            b'0'..=b'7' => Some(value << 3 | u32::from(digit - b'0')),
            _ => None,
        })?;
        Self::from_u32(value)
    }

    /// Tells whether the entry is a file, with or without the execute bit.
    #[must_use]
    pub const fn is_file(self) -> bool {
        matches!(self, Self::Regular | Self::Executable)
    }

    /// Tells whether the entry's object is a blob (a file or a link).
    #[must_use]
    pub const fn is_blob(self) -> bool {
        matches!(self, Self::Regular | Self::Executable | Self::Link)
    }
}

impl fmt::Display for FileMode {
    /// Six octal digits, as `git diff --raw` and `git ls-tree` print them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:06o}", self.to_u32())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(FileMode, &str, &[u8]); 5] = [
        (FileMode::Regular, "100644", b"100644"),
        (FileMode::Executable, "100755", b"100755"),
        (FileMode::Link, "120000", b"120000"),
        (FileMode::Gitlink, "160000", b"160000"),
        (FileMode::Tree, "040000", b"40000"),
    ];

    #[test]
    fn forms_go_there_and_back() {
        for (mode, shown, in_tree) in ALL {
            assert_eq!(mode.to_string(), shown);
            assert_eq!(mode.tree_bytes(), in_tree);
            assert_eq!(FileMode::from_u32(mode.to_u32()), Some(mode));
            assert_eq!(FileMode::from_octal(in_tree), Some(mode));
            assert_eq!(FileMode::from_octal(shown.as_bytes()), Some(mode));
        }
    }

    #[test]
    fn other_numbers_are_made_canonical_as_git_does() {
        let table = [
            (0o100_664, Some(FileMode::Regular)),
            (0o100_600, Some(FileMode::Regular)),
            (0o100_611, Some(FileMode::Regular)),
            (0o100_700, Some(FileMode::Executable)),
            (0o104_755, Some(FileMode::Executable)),
            (0o120_777, Some(FileMode::Link)),
            (0o040_755, Some(FileMode::Tree)),
            (0, None),
            (0o644, None),
            (0o010_644, None),
            (0o020_644, None),
            (0o060_644, None),
            (0o140_755, None),
            (0o1_100_644, None),
        ];
        for (raw, mode) in table {
            assert_eq!(FileMode::from_u32(raw), mode, "{raw:o}");
        }
        for digits in [
            "", "100648", "100 44", "-10644", "0100644", "000000", "1006440",
        ] {
            assert_eq!(FileMode::from_octal(digits.as_bytes()), None, "{digits}");
        }
    }
}
