//! Paths by pattern, as the rules' settings name them.

use std::path::Path;
use std::sync::OnceLock;

use bstr::{BStr, ByteSlice};
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use crate::git;

/// The paths that some patterns match. The patterns are made ready when a path comes that may be one.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    /// Each with a part of it that is in every path it matches.
    patterns: Vec<(String, String)>,
    ready: OnceLock<GlobSet>,
}

impl Paths {
    /// Patterns of ours, which make sense.
    pub(super) fn new(patterns: Vec<String>) -> Self {
        let with_part = |pattern: String| {
            let part = needed_part(&pattern).to_owned();
            (pattern, part)
        };
        Paths {
            patterns: patterns.into_iter().map(with_part).collect(),
            ready: OnceLock::new(),
        }
    }

    /// Patterns of somebody's, looked at first.
    ///
    /// # Errors
    /// [`git::Error::Config`] for one that makes no sense; `key` is where it was found.
    pub(super) fn checked(key: &str, patterns: Vec<String>) -> git::Result<Self> {
        let ready = compile(key, &patterns)?;
        let paths = Paths::new(patterns);
        let _ = paths.ready.set(ready);
        Ok(paths)
    }

    /// Whether one of them matches.
    pub(super) fn has(&self, path: &BStr) -> bool {
        if !self
            .patterns
            .iter()
            .any(|(_, part)| path.contains_str(part))
        {
            return false;
        }
        let ready = || {
            let all = self.patterns.iter().map(|(pattern, _)| pattern.clone());
            let all: Vec<String> = all.collect();
            compile("", &all).unwrap_or_default()
        };
        let set = self.ready.get_or_init(ready);
        set.is_match(Path::new(git::os_str(path)))
    }
}

/// The longest part of a pattern that every path has that it matches; empty where that is not plain.
fn needed_part(pattern: &str) -> &str {
    if pattern.contains(['[', ']', '{', '}', '\\']) {
        return "";
    }
    let parts = pattern.split(['/', '*', '?']);
    parts.max_by_key(|part| part.len()).unwrap_or_default()
}

fn compile(key: &str, patterns: &[String]) -> git::Result<GlobSet> {
    let bad = |value: &str| git::Error::Config {
        key: key.to_owned(),
        value: value.to_owned(),
        why: "expected a path pattern",
    };
    let mut set = GlobSetBuilder::new();
    for pattern in patterns {
        let mut glob = match pattern.strip_prefix('/') {
            Some(anchored) => anchored.to_owned(),
            None if pattern.trim_end_matches('/').contains('/') => pattern.clone(),
            None => format!("**/{pattern}"),
        };
        if glob.ends_with('/') {
            glob.push_str("**");
        }
        let built = GlobBuilder::new(&glob)
            .literal_separator(true)
            .backslash_escape(true)
            .build();
        set.add(built.map_err(|_| bad(pattern))?);
    }
    set.build().map_err(|_| bad(&patterns.join(" ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_part_that_a_path_needs_is_in_each_path_that_matches() {
        let table = [
            ("*.md", ".md"),
            (".relo/**", ".relo"),
            ("**/bin/Debug/**", "Debug"),
            ("a?bc*d", "bc"),
            ("**", ""),
            ("*.{md,txt}", ""),
            ("[ab]cd", ""),
        ];
        for (pattern, part) in table {
            assert_eq!(needed_part(pattern), part, "{pattern}");
        }
    }

    #[test]
    fn patterns_match_as_in_gitattributes() {
        let has = |pattern: &str, path: &BStr| Paths::new(vec![pattern.to_owned()]).has(path);
        for (pattern, path, expected) in [
            ("*.md", "a.md", true),
            ("*.md", "d/e/a.md", true),
            ("*.md", "a.md/x", false),
            ("/*.md", "d/a.md", false),
            ("docs/*.md", "docs/a.md", true),
            ("docs/*.md", "docs/x/a.md", false),
            ("**/obj/**", "obj/x", true),
            ("**/obj/**", "a/b/obj/c/d", true),
            ("**/obj/**", "a/objx/c", false),
            ("**/obj/**", "a/obj", false),
            (".relo/**", ".relo/x", true),
            (".relo/**", "a/.relo/x", false),
            ("out/", "out/x", true),
            ("**/Assemblies/*.dll", "m/Assemblies/a.dll", true),
        ] {
            assert_eq!(has(pattern, path.into()), expected, "{pattern} {path}");
        }
        assert!(has("*.md", b"\xff\n.md".as_bstr()));
        assert!(Paths::checked("k", vec!["a[".to_owned()]).is_err());
    }
}
