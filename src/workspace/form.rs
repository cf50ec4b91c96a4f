//! How a new workspace is held: what was asked for, what the settings say, and what the repository allows.
//!
//! In a repository that rewrites content, a workspace is virtual all the same, and git's own filters
//! stand between it and the disk. With `relo.workspace.rewriting=fallback` it gets a directory that stays
//! instead. Nobody is told of that who asked for `auto`.

use std::str::FromStr;

use super::meta::Mode;
use super::{Error, Result, Store};
use crate::git;

/// The setting that says what is made where nothing is asked for.
const MODE: &str = "relo.workspace.mode";
/// The setting that says what becomes of a repository that rewrites content.
const REWRITING: &str = "relo.workspace.rewriting";

/// What can be asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wanted {
    /// A tree in the object database.
    #[default]
    Virtual,
    /// A directory that stays.
    Worktree,
    /// The better of the two here.
    Auto,
}

impl Wanted {
    /// Every one, in the order of the manual.
    pub const ALL: [Wanted; 3] = [Wanted::Virtual, Wanted::Worktree, Wanted::Auto];

    /// The word in settings and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Wanted::Virtual => "virtual",
            Wanted::Worktree => "worktree",
            Wanted::Auto => "auto",
        }
    }
}

impl FromStr for Wanted {
    type Err = Error;

    fn from_str(word: &str) -> Result<Self> {
        let known = Wanted::ALL.into_iter().find(|one| one.as_str() == word);
        known.ok_or_else(|| Error::Invalid("a mode is virtual, worktree or auto".to_owned()))
    }
}

/// How a new workspace is held, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Form {
    /// The form.
    pub mode: Mode,
    /// Why it is another one than was asked for, where the user should hear of that.
    pub fallback: Option<String>,
}

impl Store<'_> {
    /// How a workspace that is made now is held: as `asked`, or else as `relo.workspace.mode` says.
    ///
    /// # Errors
    /// Settings that make no sense; objects that cannot be read.
    pub fn form(&self, asked: Option<Wanted>) -> Result<Form> {
        let wanted = self.wanted(asked)?;
        let falls_back = self.falls_back()?;
        let form = |mode, fallback| Ok(Form { mode, fallback });
        if wanted == Wanted::Worktree {
            return form(Mode::Worktree, None);
        }
        if !falls_back {
            return form(Mode::Virtual, None);
        }
        match self.rewriting()?.why {
            None => form(Mode::Virtual, None),
            Some(why) => form(Mode::Worktree, (wanted == Wanted::Virtual).then_some(why)),
        }
    }

    /// What is asked for, by the caller or by the setting.
    fn wanted(&self, asked: Option<Wanted>) -> Result<Wanted> {
        match (asked, self.repository().config()?.string(MODE)) {
            (Some(wanted), _) => Ok(wanted),
            (None, None) => Ok(Wanted::default()),
            (None, Some(value)) => value.to_ascii_lowercase().parse().map_err(|_| {
                Error::Git(git::Error::Config {
                    key: MODE.to_owned(),
                    value,
                    why: "expected virtual, worktree or auto",
                })
            }),
        }
    }

    /// Whether a repository that rewrites content gets directories that stay.
    pub(super) fn falls_back(&self) -> Result<bool> {
        match self.repository().config()?.string(REWRITING) {
            None => Ok(false),
            Some(value) if value == "fallback" => Ok(true),
            Some(value) => Err(Error::Git(git::Error::Config {
                key: REWRITING.to_owned(),
                value,
                why: "expected 'fallback', or nothing",
            })),
        }
    }
}
