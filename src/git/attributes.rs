//! Attributes of many files of a directory at once, and their content as git would store it.
//!
//! [`super::filter`] serves single paths of the user's tree in process. A capture looks at a whole
//! directory, which has attribute files of its own, so here git is asked: once for what the attributes
//! say, once more for the content of the few files that they rewrite. Where nothing that could
//! rewrite content is written anywhere, [`Repository::rewrites_everywhere`] and
//! [`mentions_rewriting`] say so from the texts alone, and no process runs.

use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use super::filter::{Attribute, NAMES};
use super::tree::Entry;
use super::{Error, ObjectId, Repository, Result};

/// Where git may have its files for the whole system: that depends on how it was built.
pub(super) const SYSTEM_FOLDERS: [&str; 4] =
    ["/etc", "/usr/etc", "/usr/local/etc", "/opt/homebrew/etc"];

/// What git does to a file's bytes when it stores them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Conversion {
    /// Nothing.
    #[default]
    Never,
    /// It may turn CR LF into LF.
    LineEndings,
    /// A filter, an encoding or ident: only git can say.
    Always,
}

/// Whether the text of an attributes file could make git rewrite content. It may say yes for
/// nothing, never no for something.
pub fn mentions_rewriting(text: &[u8]) -> bool {
    const WORDS: [&str; 7] = [
        "text", "crlf", "eol", "filter", "ident", "encoding", "[attr]",
    ];
    WORDS.iter().any(|word| text.contains_str(word))
}

impl Repository {
    /// Whether settings, or attribute files outside of any working tree, could make git rewrite
    /// content.
    ///
    /// # Errors
    /// [`Error::Io`] when such a file is there and cannot be read.
    pub fn rewrites_everywhere(&self) -> Result<bool> {
        Ok(self.rewriting_from_outside()?.is_some())
    }

    /// The first setting or attribute file outside of any working tree that could make git rewrite
    /// content, in words.
    ///
    /// # Errors
    /// As [`Repository::rewrites_everywhere`].
    pub fn rewriting_from_outside(&self) -> Result<Option<String>> {
        for (rewrites, key) in [
            (self.normalises()?, "core.autocrlf"),
            (self.config()?.string("attr.tree").is_some(), "attr.tree"),
        ] {
            if rewrites {
                return Ok(Some(format!("'{key}' is set")));
            }
        }
        for file in self.attribute_files() {
            match std::fs::read(&file) {
                Ok(text) if mentions_rewriting(&text) => {
                    return Ok(Some(format!("'{}' speaks of it", file.display())));
                }
                Ok(_) => {}
                Err(e) if is_absent(&e) => {}
                Err(e) => return Err(Error::io("read", file, e)),
            }
        }
        Ok(None)
    }

    /// The attribute files that hold for every working tree, whether they exist or not.
    pub(super) fn attribute_files(&self) -> Vec<PathBuf> {
        let environment = self.environment();
        let mut files = vec![self.common_dir().join("info/attributes")];
        let set = self
            .config()
            .ok()
            .and_then(|c| c.string("core.attributesfile"));
        let home = environment.path("HOME");
        match (set, environment.path("XDG_CONFIG_HOME"), home) {
            (Some(set), _, home) => files.push(match (set.strip_prefix("~/"), home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => self.work_dir().unwrap_or(self.git_dir()).join(set),
            }),
            (None, Some(folder), _) => files.push(folder.join("git/attributes")),
            (None, None, Some(home)) => files.push(home.join(".config/git/attributes")),
            (None, None, None) => {}
        }
        if environment.get("GIT_ATTR_NOSYSTEM").is_none() {
            for folder in SYSTEM_FOLDERS {
                files.push(Path::new(folder).join("gitattributes"));
            }
        }
        files
    }

    /// What git does to each of these files of a directory when it stores them.
    ///
    /// # Errors
    /// [`Error::Git`] when git fails, [`Error::Answer`] when its answer makes no sense.
    pub fn conversions(
        &self,
        work_dir: &Path,
        git_dir: &Path,
        paths: &[BString],
    ) -> Result<Vec<Conversion>> {
        let out = self
            .git()
            .in_directory(work_dir, git_dir)
            .args(["check-attr", "--stdin", "-z"])
            .args(NAMES)
            .stdin(joined(paths))
            .output()?;
        let normalises = self.normalises()?;
        let mut fields = out.split_str("\0");
        let mut found = Vec::with_capacity(paths.len());
        for path in paths {
            let mut values: [Attribute; NAMES.len()] = Default::default();
            for (name, value) in NAMES.iter().zip(&mut values) {
                let answer = (fields.next(), fields.next(), fields.next());
                let (Some(about), Some(of), Some(text)) = answer else {
                    return Err(nonsense("check-attr", "it ended early"));
                };
                if about != path.as_slice() || of != name.as_bytes() {
                    let why = format!("asked of '{path}', it spoke of '{}'", about.as_bstr());
                    return Err(nonsense("check-attr", &why));
                }
                *value = Attribute::from_text(text);
            }
            found.push(super::filter::conversion(&values, normalises));
        }
        Ok(found)
    }

    /// Stores these files of a directory as `git add` would, and says what git made of each.
    ///
    /// `known` is what the index would hold of a path: what git does to line endings depends on
    /// it. `index` names a file that may be made, and that the caller removes. The blobs are in
    /// the object database afterwards, but nothing refers to them.
    ///
    /// # Errors
    /// [`Error::Git`] when a conversion fails, as with a required filter that is missing, or when a
    /// file is gone or no file any more.
    pub fn store_files(
        &self,
        work_dir: &Path,
        git_dir: &Path,
        index: &Path,
        files: &[(BString, Option<Entry>)],
    ) -> Result<Vec<Entry>> {
        let git = || {
            self.git()
                .in_directory(work_dir, git_dir)
                .index_file(index)
                .args(["-c", "core.safecrlf=false", "-c", "core.splitIndex=false"])
        };
        let mut known = Vec::new();
        for (path, entry) in files {
            if let Some(entry) = entry.filter(Entry::is_file) {
                known.extend_from_slice(format!("{:o} {}\t", entry.mode, entry.id).as_bytes());
                known.extend_from_slice(path);
                known.push(0);
            }
        }
        git()
            .args(["update-index", "-z", "--index-info"])
            .stdin(known)
            .output()?;
        let paths: Vec<BString> = files.iter().map(|(path, _)| path.clone()).collect();
        git()
            .args(["update-index", "--add", "-z", "--stdin"])
            .stdin(joined(&paths))
            .output()?;
        let out = git().args(["ls-files", "-s", "-z"]).output()?;
        let mut listed = out.split_str("\0").filter(|line| !line.is_empty());
        let mut stored = Vec::with_capacity(files.len());
        for path in &paths {
            let line = listed.next().and_then(|line| line.split_once_str("\t"));
            let entry = match line {
                Some((fields, name)) if name == path.as_slice() => self.staged(fields),
                _ => None,
            };
            let why = || nonsense("ls-files", &format!("nothing is said of '{path}'"));
            stored.push(entry.ok_or_else(why)?);
        }
        Ok(stored)
    }

    /// Reads `<mode> <id> <stage>`.
    pub(super) fn staged(&self, fields: &[u8]) -> Option<Entry> {
        let mut fields = fields.to_str().ok()?.split(' ');
        let mode = u32::from_str_radix(fields.next()?, 8).ok()?;
        let id = ObjectId::from_str_ext(fields.next()?, self.format()).ok()?;
        Some(Entry { mode, id })
    }
}

fn nonsense(command: &str, why: &str) -> Error {
    Error::Answer {
        command: command.to_owned(),
        why: why.to_owned(),
    }
}

fn joined(paths: &[BString]) -> Vec<u8> {
    let mut text = Vec::with_capacity(paths.iter().map(|path| path.len() + 1).sum());
    for path in paths {
        text.extend_from_slice(path);
        text.push(0);
    }
    text
}

pub(super) fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{IsADirectory, NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory | IsADirectory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_harmless_texts_are_harmless() {
        for (text, rewrites) in [
            ("", false),
            ("*.png -diff -merge\n*.md linguist-documentation\n", false),
            ("* text=auto", true),
            ("*.bin filter=lfs diff=lfs", true),
            ("*.c ident", true),
            ("a working-tree-encoding=UTF-16", true),
            ("*.bat eol=crlf", true),
            ("[attr]mine -diff", true),
        ] {
            assert_eq!(mentions_rewriting(text.as_bytes()), rewrites, "{text}");
        }
    }
}
