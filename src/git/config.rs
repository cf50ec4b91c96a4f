//! Settings: git's files in every scope, and the command line's `-c` above them.
//!
//! libgit2 reads the files but neither `GIT_CONFIG_PARAMETERS` (how `git -c key=value vws ...`
//! arrives) nor `GIT_CONFIG_COUNT`, so both are parsed here. Git's precedence: files, then
//! `GIT_CONFIG_COUNT`, then `GIT_CONFIG_PARAMETERS`; the last value of a key wins.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::{Environment, Error, Result};

/// The settings of one repository as git would see them for this call.
pub struct Config {
    files: git2::Config,
    overrides: Vec<(String, String)>,
}

impl Config {
    pub(super) fn new(files: git2::Config, env: &Environment) -> Result<Self> {
        Ok(Config {
            files,
            overrides: overrides(env)?,
        })
    }

    /// The last value of `key` (`section.name`, lower case apart from a subsection), if set.
    pub fn string(&self, key: &str) -> Option<String> {
        if let Some((_, value)) = self.overrides.iter().rev().find(|(k, _)| k == &fold(key)) {
            return Some(value.clone());
        }
        self.files.get_string(key).ok()
    }

    /// A truth value as git reads it: yes/on/true/1, no/off/false/0, an empty value is false.
    ///
    /// # Errors
    /// [`Error::Config`] for anything else.
    pub fn bool(&self, key: &str) -> Result<Option<bool>> {
        let Some(value) = self.string(key) else {
            return Ok(None);
        };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Ok(Some(true)),
            "false" | "no" | "off" | "" => Ok(Some(false)),
            other => match parse_int(other) {
                Some(n) => Ok(Some(n != 0)),
                None => Err(Error::Config {
                    key: key.to_owned(),
                    value,
                    why: "expected true or false",
                }),
            },
        }
    }

    /// A whole number with git's `k`, `m`, `g` suffixes.
    ///
    /// # Errors
    /// [`Error::Config`] for anything else, negative numbers included.
    pub fn size(&self, key: &str) -> Result<Option<u64>> {
        let Some(value) = self.string(key) else {
            return Ok(None);
        };
        parse_int(&value.to_ascii_lowercase())
            .and_then(|n| u64::try_from(n).ok())
            .map(Some)
            .ok_or(Error::Config {
                key: key.to_owned(),
                value,
                why: "expected a number, with k, m or g",
            })
    }

    /// Every value of a key that may be given more than once, in git's order.
    pub fn all(&self, key: &str) -> Vec<String> {
        let mut values = Vec::new();
        if let Ok(mut entries) = self.files.multivar(key, None) {
            while let Some(Ok(entry)) = entries.next() {
                if let Ok(value) = entry.value() {
                    values.push(value.to_owned());
                }
            }
        }
        let key = fold(key);
        values.extend(
            self.overrides
                .iter()
                .filter(|(k, _)| *k == key)
                .map(|(_, v)| v.clone()),
        );
        values
    }

    /// Every value of `core.excludesFile` that git may go by, in these files of settings as they are now or
    /// above them. `None` where one cannot be read as git does, or holds only under a condition.
    pub(super) fn excludes(&self, files: &[PathBuf]) -> Option<Vec<String>> {
        let mut all = self.overrides.clone();
        for file in files {
            let open = git2::Config::open(file).ok()?;
            let mut entries = open.entries(None).ok()?;
            while let Some(entry) = entries.next() {
                let entry = entry.ok()?;
                let key = entry.name().ok()?;
                let counts = [
                    "core.excludesfile",
                    "extensions.worktreeconfig",
                    "include.path",
                ];
                if counts.contains(&key) || key.starts_with("includeif.") {
                    all.push((key.to_owned(), entry.value().ok()?.to_owned()));
                }
            }
        }
        // The included files were read above; not so those that the command line names.
        let is_plain = |path: &str| path.starts_with("~/") || !path.starts_with(['~', '%', ':']);
        let above = self.overrides.len();
        let mut values = Vec::new();
        for (at, (key, value)) in all.into_iter().enumerate() {
            match key.as_str() {
                "core.excludesfile" => values.push(value),
                "include.path" if at >= above && is_plain(&value) => {}
                "include.path" | "extensions.worktreeconfig" => return None,
                key if key.starts_with("includeif.") => return None,
                _ => {}
            }
        }
        Some(values)
    }

    /// Every setting of filter drivers that has a say in what is written to disk, with its value.
    pub fn smudging(&self) -> Vec<(String, String)> {
        let counts = |key: &str| {
            let last = key.rsplit('.').next();
            key.starts_with("filter.") && matches!(last, Some("smudge" | "process" | "required"))
        };
        let mut found = Vec::new();
        if let Ok(mut entries) = self.files.entries(Some(r"^filter\.")) {
            while let Some(Ok(entry)) = entries.next() {
                if let (Ok(key), Ok(value)) = (entry.name(), entry.value()) {
                    found.push((key.to_owned(), value.to_owned()));
                }
            }
        }
        found.extend(self.overrides.iter().cloned());
        found.retain(|(key, _)| counts(key));
        found
    }

    /// Whether a remote promises objects that are missing here: a partial clone. Clones of git
    /// before 2.24 say so in `extensions.partialClone`, later ones with each remote.
    pub(super) fn has_promisor(&self) -> bool {
        let is_promise = |key: &str| key.starts_with("remote.") && key.ends_with(".promisor");
        let is_true = |key: &str| self.bool(key).is_ok_and(|set| set == Some(true));
        if self.string("extensions.partialclone").is_some()
            || self
                .overrides
                .iter()
                .any(|(key, _)| is_promise(key) && is_true(key))
        {
            return true;
        }
        let Ok(mut entries) = self.files.entries(Some(r"^remote\..*\.promisor$")) else {
            return false;
        };
        while let Some(Ok(entry)) = entries.next() {
            if entry.name().is_ok_and(is_true) {
                return true;
            }
        }
        false
    }
}

/// Lower-cases the parts of a key that git folds: the section and the name, not the subsection.
fn fold(key: &str) -> String {
    match (key.find('.'), key.rfind('.')) {
        (Some(first), Some(last)) if first < last => format!(
            "{}{}{}",
            key[..first].to_ascii_lowercase(),
            &key[first..last],
            key[last..].to_ascii_lowercase()
        ),
        _ => key.to_ascii_lowercase(),
    }
}

fn parse_int(text: &str) -> Option<i64> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' => (&text[..text.len() - 1], 1 << 10),
        b'm' => (&text[..text.len() - 1], 1 << 20),
        b'g' => (&text[..text.len() - 1], 1 << 30),
        _ => (text, 1),
    };
    digits.parse::<i64>().ok()?.checked_mul(unit)
}

fn overrides(env: &Environment) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    if let Some(count) = env.get("GIT_CONFIG_COUNT") {
        let bad = || Error::Config {
            key: "GIT_CONFIG_COUNT".to_owned(),
            value: count.to_string_lossy().into_owned(),
            why: "expected a number, and a key and a value for each",
        };
        let text = count.to_str().ok_or_else(bad)?;
        let n: usize = if text.is_empty() {
            0
        } else {
            text.parse().map_err(|_| bad())?
        };
        for i in 0..n {
            let key = env.get(&format!("GIT_CONFIG_KEY_{i}")).ok_or_else(bad)?;
            let value = env.get(&format!("GIT_CONFIG_VALUE_{i}")).ok_or_else(bad)?;
            found.push((
                fold(&key.to_string_lossy()),
                value.to_string_lossy().into_owned(),
            ));
        }
    }
    if let Some(parameters) = env.get("GIT_CONFIG_PARAMETERS") {
        found.extend(parse_parameters(parameters)?);
    }
    Ok(found)
}

/// Parses git's own quoting of `-c`: `'key'='value'`, the older `'key=value'`, or a bare `'key'`
/// (true), separated by spaces; `'\''` stands for a quote.
fn parse_parameters(text: &OsStr) -> Result<Vec<(String, String)>> {
    let bad = || Error::Config {
        key: "GIT_CONFIG_PARAMETERS".to_owned(),
        value: text.to_string_lossy().into_owned(),
        why: "expected the form that 'git -c' writes",
    };
    let mut rest = text.as_bytes();
    let mut found = Vec::new();
    loop {
        while let [b' ', tail @ ..] = rest {
            rest = tail;
        }
        if rest.is_empty() {
            return Ok(found);
        }
        let (first, tail) = dequote(rest).ok_or_else(bad)?;
        rest = tail;
        let (key, value) = match rest {
            [b'=', b'\'', ..] => {
                let (value, tail) = dequote(&rest[1..]).ok_or_else(bad)?;
                rest = tail;
                (first, value)
            }
            [b'=', tail @ ..] => {
                rest = tail;
                (first, "true".to_owned())
            }
            _ => match first.split_once('=') {
                Some((key, value)) => (key.to_owned(), value.to_owned()),
                None => (first, "true".to_owned()),
            },
        };
        found.push((fold(&key), value));
    }
}

fn dequote(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut rest = bytes.strip_prefix(b"'")?;
    let mut word = Vec::new();
    loop {
        let end = rest.iter().position(|b| *b == b'\'')?;
        word.extend_from_slice(&rest[..end]);
        rest = &rest[end + 1..];
        match rest {
            [b'\\', c @ (b'\'' | b'!'), b'\'', tail @ ..] => {
                word.push(*c);
                rest = tail;
            }
            _ => return Some((String::from_utf8_lossy(&word).into_owned(), rest)),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parsed(text: &str) -> Vec<(String, String)> {
        parse_parameters(OsStr::new(text)).unwrap()
    }

    #[test]
    fn both_forms_of_git_c() {
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(
            parsed("'relo.Workspace.Mode'='auto' 'a.b=c d' 'x.y' 'p.q'="),
            [
                pair("relo.Workspace.mode", "auto"),
                pair("a.b", "c d"),
                pair("x.y", "true"),
                pair("p.q", "true"),
            ]
        );
        assert_eq!(parsed(r"'a.b'='it'\''s'"), [pair("a.b", "it's")]);
        assert!(parse_parameters(OsStr::new("'unfinished")).is_err());
        assert!(parse_parameters(OsStr::new("bare")).is_err());
    }

    #[test]
    fn numbers_with_units() {
        assert_eq!(parse_int("3"), Some(3));
        assert_eq!(parse_int("2k"), Some(2048));
        assert_eq!(parse_int("1g"), Some(1 << 30));
        assert_eq!(parse_int("x"), None);
        assert_eq!(parse_int("k"), None);
    }

    #[test]
    fn keys_fold_as_git_folds_them() {
        assert_eq!(fold("Core.QuotePath"), "core.quotepath");
        assert_eq!(fold("Filter.LFS.Clean"), "filter.LFS.clean");
    }
}
