//! The words after a command's name, taken one by one, and the edge where text becomes a checked name.

use bstr::{BStr, BString, ByteSlice};

use super::request::{Fault, Result};
use crate::model::{AgentId, RepoPath, Revision};
use crate::workspace::{Side, Terms};

/// The words after a command's name: options first, then the rest, taken one by one.
pub(super) struct Args<'w> {
    options: Vec<&'w BStr>,
    rest: &'w [BString],
}

impl<'w> Args<'w> {
    pub(super) fn new(words: &'w [BString]) -> Self {
        let mut args = Args {
            options: Vec::new(),
            rest: words,
        };
        args.more_options();
        args
    }

    /// Takes the options that come next.
    pub(super) fn more_options(&mut self) {
        while let Some((word, rest)) = self.rest.split_first()
            && (word.starts_with(b"-") || word.starts_with(b"+"))
        {
            self.options.push(word.as_bstr());
            self.rest = rest;
        }
    }

    /// Whether an option was given; asking takes it.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        let before = self.options.len();
        self.options.retain(|option| *option != name);
        self.options.len() < before
    }

    /// The value of an option, whose name is given with its `=`.
    pub(super) fn value(&mut self, name: &str) -> Result<Option<&'w BStr>> {
        let mut values = Vec::new();
        self.options.retain(|option| {
            let value = option.strip_prefix(name.as_bytes());
            values.extend(value.map(ByteSlice::as_bstr));
            value.is_none()
        });
        match values[..] {
            [] => Ok(None),
            [value] => Ok(Some(value)),
            _ => Err(Fault::Usage(format!("'{name}' is given twice"))),
        }
    }

    pub(super) fn side(&mut self) -> Side {
        match self.flag("--base") {
            true => Side::Base,
            false => Side::Overlay,
        }
    }

    pub(super) fn terms(&mut self) -> Result<Terms> {
        Ok(Terms {
            expect: self.value("--expect=")?.map(revision).transpose()?,
            ..Terms::default()
        })
    }

    pub(super) fn word(&mut self, what: &str) -> Result<&'w BStr> {
        let missing = || Fault::Usage(format!("expected {what}"));
        let (word, rest) = self.rest.split_first().ok_or_else(missing)?;
        self.rest = rest;
        Ok(word.as_bstr())
    }

    pub(super) fn agent(&mut self) -> Result<AgentId> {
        agent(self.word("an agent")?)
    }

    pub(super) fn path(&mut self) -> Result<RepoPath> {
        Ok(RepoPath::new(self.word("a path")?)?)
    }

    /// A path that may be a folder, and may be written as one: `dir/`.
    pub(super) fn folder(&mut self) -> Result<RepoPath> {
        let word = self.word("a path")?;
        let name = word.strip_suffix(b"/").filter(|name| !name.is_empty());
        Ok(RepoPath::new(name.unwrap_or(word))?)
    }

    pub(super) fn paths(&mut self) -> Result<Vec<RepoPath>> {
        let mut paths = Vec::new();
        while !self.rest.is_empty() {
            paths.push(self.path()?);
        }
        Ok(paths)
    }

    pub(super) fn folders(&mut self) -> Result<Vec<RepoPath>> {
        let mut paths = Vec::new();
        while !self.rest.is_empty() {
            paths.push(self.folder()?);
        }
        Ok(paths)
    }

    /// The agents of an option that takes several, separated by commas.
    pub(super) fn agents(&mut self, name: &str) -> Result<Vec<AgentId>> {
        let value = self.value(name)?;
        let names = value.into_iter().flat_map(|value| value.split_str(","));
        names.map(|name| agent(name.as_bstr())).collect()
    }

    /// Whether nothing is left but options.
    pub(super) fn is_done(&self) -> bool {
        self.rest.is_empty()
    }

    /// Sees to it that nothing is left over.
    pub(super) fn end(&self) -> Result<()> {
        let what = match (self.options.first(), self.rest.first()) {
            (Some(option), _) => format!("unknown option '{option}'"),
            (None, Some(word)) => format!("unexpected '{word}'"),
            (None, None) => return Ok(()),
        };
        Err(Fault::Usage(what))
    }
}

pub(super) fn agent(word: &BStr) -> Result<AgentId> {
    AgentId::new(&word.to_str_lossy()).map_err(|error| Fault::Usage(error.to_string()))
}

pub(super) fn revision(word: &BStr) -> Result<Revision> {
    let parsed = word.to_str_lossy().parse();
    parsed.map_err(|error: crate::model::RevisionError| Fault::Usage(error.to_string()))
}

pub(super) fn text(word: &BStr) -> Result<String> {
    let text = word.to_str();
    let bad = |_| Fault::Usage(format!("'{word}' is not UTF-8"));
    text.map(str::to_owned).map_err(bad)
}
