//! Bytes of the user's working tree to the object database, as `git add` would store them.
//!
//! `git hash-object` does what the attribute files on disk say, and it reads no index. What git stores
//! depends on the index twice: attribute files that are not on disk count as they stand there,
//! and line endings that are only presumed to be text (`text=auto`, `core.autocrlf`) stay as they are
//! where the stored file has CR LF already. Where that matters, `git update-index` stores the file
//! from a folder of ours.

use bstr::{BStr, BString, ByteSlice};

use super::{Attribute, Repository, Result};
use crate::disk;
use crate::git::tree::{self, Entry};
use crate::git::{Error, ObjectId};

const ATTRIBUTES: &str = ".gitattributes";

/// What the user's index holds that has a say in how one file is stored.
#[derive(Default)]
struct Known {
    /// The file itself; while it is unmerged, our side of it.
    file: Option<Entry>,
    /// The attribute files in the folders above it.
    attributes: Vec<(BString, ObjectId)>,
}

/// The attribute files that count for a path.
#[derive(Default)]
struct Rules {
    texts: Vec<(BString, Vec<u8>)>,
    /// Whether one of them is not on disk.
    only_in_index: bool,
}

impl Repository {
    /// Stores these bytes as git would store them at this path of the user's working tree.
    ///
    /// # Errors
    /// [`Error::Git`] when a conversion fails; [`Error::Io`] when git's folder cannot be set up.
    pub(super) fn store_cleaned(&self, path: &BStr, bytes: &[u8]) -> Result<ObjectId> {
        let known = self.known_in_index(path)?;
        let rules = self.rules(path, &known)?;
        let stored = match known.file {
            Some(entry) if entry.is_file() => self.objects()?.blob(entry.id)?,
            _ => Vec::new(),
        };
        // A filter of the user's may be a program of the working tree, to be started there. So it is,
        // unless git would not know of it.
        if !rules.only_in_index && (!stored.contains(&b'\r') || self.has_filter(path)?) {
            return self.hash_object(self.git().args(["hash-object", "-w"]), path, bytes);
        }
        let tree = self.tree_of(&rules.texts)?;
        let top = tree.path();
        super::put(&top, path, bytes)?;
        let index = tree.folder().join("index");
        let files = [(path.to_owned(), known.file)];
        let stored = self.store_files(&top, self.git_dir(), &index, &files)?;
        stored
            .first()
            .map(|entry| entry.id)
            .ok_or_else(|| Error::Answer {
                command: "ls-files".to_owned(),
                why: format!("nothing is said of '{path}'"),
            })
    }

    fn known_in_index(&self, path: &BStr) -> Result<Known> {
        let mut git = self
            .git()
            .users_index()
            .args(["--literal-pathspecs", "ls-files", "-s", "-z", "--"])
            .arg(crate::git::os_str(path));
        for file in places(path) {
            git = git.arg(crate::git::os_str(file.as_bstr()));
        }
        let mut known = Known::default();
        let out = git.output()?;
        for line in out.split_str("\0").filter(|line| !line.is_empty()) {
            let (Some((fields, name)), stage) = (line.split_once_str("\t"), stage(line)) else {
                continue;
            };
            // As git reads a file that is unmerged.
            let Some(entry) = self.staged(fields).filter(|_| matches!(stage, b'0' | b'2')) else {
                continue;
            };
            if name == path.as_bytes() {
                known.file = Some(entry);
            } else if name.ends_with_str(ATTRIBUTES) && entry.is_file() {
                known.attributes.push((name.into(), entry.id));
            }
        }
        Ok(known)
    }

    fn rules(&self, path: &BStr, known: &Known) -> Result<Rules> {
        let top = self.require_work_dir()?;
        let mut rules = Rules::default();
        for place in places(path) {
            // Git follows no link to its rules, and what it cannot read is as good as absent.
            let is_link = disk::mode(top, place.as_bstr(), false) == Some(tree::LINK);
            let on_disk = disk::read(top, place.as_bstr(), u64::MAX).ok();
            let on_disk = on_disk.filter(|_| !is_link);
            let in_index = known.attributes.iter().find(|(file, _)| *file == place);
            match (on_disk, in_index) {
                (Some(text), _) => rules.texts.push((place, text)),
                (None, Some((_, id))) => {
                    rules.texts.push((place, self.objects()?.blob(*id)?));
                    rules.only_in_index = true;
                }
                (None, None) => {}
            }
        }
        Ok(rules)
    }

    fn has_filter(&self, path: &BStr) -> Result<bool> {
        let out = self
            .git()
            .users_index()
            .args(["check-attr", "-z", "filter", "--"])
            .arg(crate::git::os_str(path))
            .output()?;
        let value = out.split_str("\0").nth(2).unwrap_or_default();
        Ok(Attribute::from_text(value).is_set())
    }
}

/// Where attribute files for a path may be.
fn places(path: &BStr) -> impl Iterator<Item = BString> {
    let above = path.find_iter("/").map(|slash| &path.as_bytes()[..=slash]);
    std::iter::once(&b""[..])
        .chain(above)
        .map(|folder| [folder, ATTRIBUTES.as_bytes()].concat().into())
}

/// The stage in `<mode> <id> <stage> TAB <path>`.
fn stage(line: &[u8]) -> u8 {
    let tab = line.find_byte(b'\t').unwrap_or(0);
    line.get(tab.wrapping_sub(1)).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::scratch::Scratch;
    use crate::git::{Environment, ObjectFormat};

    fn write(scratch: &Scratch, path: &str, text: &str) {
        let path = scratch.top().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Holds what is stored for each path against what `git add` puts into a copy of the index.
    #[track_caller]
    fn same_as_add(scratch: &Scratch, paths: &[&str]) -> Vec<bool> {
        let environment = Environment {
            current_dir: scratch.top().to_owned(),
            variables: [("PATH", std::env::var_os("PATH").unwrap_or_default())]
                .map(|(key, value)| (key.into(), value))
                .into(),
        };
        let index = scratch.top().join(".git/index");
        let before = std::fs::read(&index).unwrap();
        let mut changed = Vec::new();
        for path in paths {
            let repository = Repository::open_at(scratch.top(), environment.clone()).unwrap();
            let bytes = std::fs::read(scratch.top().join(path)).unwrap();
            let ours = repository.clean(BStr::new(path), &bytes).unwrap();
            assert_eq!(std::fs::read(&index).unwrap(), before);
            scratch.git(&["-c", "core.safecrlf=false", "add", "--sparse", path]);
            let git = scratch.git(&["cat-file", "blob", &format!(":{path}")]);
            std::fs::write(&index, &before).unwrap();
            assert_eq!(ours.as_bstr(), git.as_bstr(), "{path}");
            changed.push(git != bytes);
        }
        let left = std::fs::read_dir(scratch.top().join(".git/relo"));
        assert_eq!(left.map_or(0, |left| left.count()), 0, "folders of ours");
        changed
    }

    #[test]
    fn rules_that_are_only_in_the_index_count() {
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let scratch = Scratch::new(format);
            write(&scratch, ".gitattributes", "*.id ident\n");
            write(&scratch, "d/.gitattributes", "*.txt text\n*.up filter=up\n");
            write(&scratch, "d/e/.gitattributes", "raw.txt -text\n");
            for path in [
                "d/a.txt",
                "d/e/a.txt",
                "d/e/raw.txt",
                "d/a.up",
                "d/a.id",
                "a.txt",
            ] {
                write(&scratch, path, "one\n");
            }
            scratch.git(&["add", "-A"]);
            scratch.git(&["commit", "-qm", "one"]);
            scratch.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
            let paths = [
                "d/a.txt",
                "d/e/a.txt",
                "d/e/raw.txt",
                "d/a.up",
                "d/a.id",
                "a.txt",
                "d/new.txt",
            ];
            for path in paths {
                write(&scratch, path, "one\r\ntwo $Id: x$\r\n");
            }
            let as_rules_say = [true, true, false, true, true, false, true];
            assert_eq!(same_as_add(&scratch, &paths), as_rules_say);
            for file in [".gitattributes", "d/.gitattributes"] {
                scratch.git(&["update-index", "--skip-worktree", file]);
                std::fs::remove_file(scratch.top().join(file)).unwrap();
            }
            assert_eq!(same_as_add(&scratch, &paths), as_rules_say);
            scratch.git(&["update-index", "--split-index"]);
            assert_eq!(same_as_add(&scratch, &paths), as_rules_say);
            // What is on disk comes before what is in the index.
            write(&scratch, "d/.gitattributes", "*.txt -text\n");
            assert!(!same_as_add(&scratch, &["d/a.txt"])[0]);
        }
    }

    #[test]
    fn presumed_text_keeps_the_line_ends_that_it_is_stored_with() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        for path in ["crlf.c", "crlf.up", "crlf.txt", "both.c"] {
            write(&scratch, path, "one\r\ntwo\r\n");
        }
        write(&scratch, "lf.c", "one\ntwo\n");
        scratch.git(&["add", "-A"]);
        scratch.git(&["commit", "-qm", "one"]);
        let id = scratch.line(&["rev-parse", ":lf.c"]);
        let other = scratch.line(&["rev-parse", ":crlf.c"]);
        let stages = format!(
            "0 {} 0\tboth.c\n100644 {id} 1\tboth.c\n100644 {other} 2\tboth.c\n100644 {id} 3\tboth.c\n",
            "0".repeat(40)
        );
        scratch.git_with(&["update-index", "--index-info"], stages.as_bytes());
        write(
            &scratch,
            ".gitattributes",
            "* text=auto\n*.txt text\n*.up filter=up\n",
        );
        // A program of the working tree, which is found only from there.
        write(&scratch, "up.sh", "tr a-z A-Z\n");
        scratch.git(&["config", "filter.up.clean", "sh ./up.sh"]);
        scratch.git(&["config", "filter.up.required", "true"]);
        let paths = ["crlf.c", "lf.c", "crlf.txt", "new.c", "both.c"];
        for path in paths.iter().chain(&["lf.up"]) {
            write(&scratch, path, "one\r\ntwo\r\nthree\r\n");
        }
        let changed = same_as_add(&scratch, &paths);
        assert_eq!(changed, [false, true, true, true, false]);
        assert_eq!(same_as_add(&scratch, &["lf.up"]), [true]);
    }
}
