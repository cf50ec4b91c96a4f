//! Content that git stores otherwise than it lies on disk: line endings, ident, filters, encodings.
//!
//! For nearly every file both forms are the same bytes, and telling so costs a few attribute
//! look-ups in process. Where they may differ, `git` itself converts: libgit2 silently skips
//! filter drivers and encodings.

use std::borrow::Cow;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};

use super::attributes::Conversion;
use super::index::{IndexStamp, TrackedNames};
use super::{Error, GitCommand, ObjectId, Repository, Result};

mod plain;
mod store;
mod top;

pub use plain::PlainFolders;

/// The attributes that make git rewrite content.
pub(super) const NAMES: [&str; 6] = [
    "text",
    "crlf",
    "eol",
    "filter",
    "working-tree-encoding",
    "ident",
];

/// What the attributes of a path say about its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Rewriting {
    /// A filter driver, ident, or an encoding: only git can say.
    special: bool,
    /// Line endings are normalised when git stores the file.
    text: bool,
    /// Line endings become CR LF when git writes the file.
    crlf: bool,
}

impl Repository {
    /// What git would store for these bytes at this path of the user's working tree.
    ///
    /// # Errors
    /// [`Error::Git`] when a conversion fails, as with a required filter that is missing.
    pub fn clean<'b>(&self, path: &BStr, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        let rules = self.rewriting(path)?;
        let may_change = rules.special || rules.text && bytes.contains_str("\r\n");
        if !may_change {
            return Ok(Cow::Borrowed(bytes));
        }
        let id = self.store_cleaned(path, bytes)?;
        Ok(Cow::Owned(self.objects()?.blob(id)?))
    }

    /// What git would write to disk for this stored content at this path of the working tree.
    ///
    /// # Errors
    /// As [`Repository::clean`].
    pub fn smudge<'b>(&self, path: &BStr, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        let rules = self.rewriting(path)?;
        let may_change = rules.special || rules.crlf && bytes.contains(&b'\n');
        if !may_change {
            return Ok(Cow::Borrowed(bytes));
        }
        Ok(Cow::Owned(self.smudge_by(self.git(), path, bytes)?))
    }

    /// As [`Repository::smudge`], where these attribute files hold in the folders above the path,
    /// whatever lies on disk.
    ///
    /// # Errors
    /// As [`Repository::clean`]; [`Error::Io`] when the files cannot be set up for git.
    pub fn smudge_with(
        &self,
        path: &BStr,
        bytes: &[u8],
        attributes: &[(BString, Vec<u8>)],
    ) -> Result<Vec<u8>> {
        // Git reads attributes from a working tree: this one holds nothing else.
        let top = self.tree_of(attributes)?;
        let git = self.git().in_directory(&top.path(), self.git_dir());
        self.smudge_by(git, path, bytes)
    }

    fn smudge_by(&self, git: GitCommand<'_>, path: &BStr, bytes: &[u8]) -> Result<Vec<u8>> {
        // `cat-file --filters` wants a stored blob; a loose one that nothing refers to goes with
        // the next collection.
        let id = self
            .git()
            .args(["hash-object", "-w", "--stdin", "--no-filters"])
            .stdin(bytes.to_vec())
            .output()?;
        let mut name = b"--path=".to_vec();
        name.extend_from_slice(path);
        git.users_index()
            .args(["cat-file", "--filters"])
            .arg(super::os_str(name.as_bstr()))
            .arg(id.trim_ascii().to_str_lossy().as_ref())
            .output()
    }

    fn hash_object(&self, git: GitCommand<'_>, path: &BStr, bytes: &[u8]) -> Result<ObjectId> {
        let out = git
            .args(["--stdin", "--path"])
            .arg(super::os_str(path))
            .stdin(bytes.to_vec())
            .output()?;
        let text = out.trim_ascii().to_str_lossy().into_owned();
        ObjectId::from_str_ext(&text, self.format()).map_err(|_| Error::Answer {
            command: "hash-object".to_owned(),
            why: format!("'{text}' is no object id"),
        })
    }

    fn rewriting(&self, path: &BStr) -> Result<Rewriting> {
        let normalises = self.normalises()?;
        let config = self.config()?;
        let autocrlf = config.string("core.autocrlf").unwrap_or_default();
        let writes_crlf = normalises && !autocrlf.eq_ignore_ascii_case("input")
            || config
                .string("core.eol")
                .is_some_and(|eol| eol.eq_ignore_ascii_case("crlf"));
        // An index that libgit2 cannot read (sparse, split) leaves the attributes unknown.
        let Ok(get) = self.attributes(path) else {
            return Ok(Rewriting {
                special: true,
                text: true,
                crlf: true,
            });
        };
        let eol_crlf = get[2] == Attribute::Value(b"crlf".to_vec());
        let eol_lf = get[2] == Attribute::Value(b"lf".to_vec());
        let texty = is_text(&get, normalises);
        Ok(Rewriting {
            special: is_special(&get),
            text: texty,
            crlf: texty && (eol_crlf || writes_crlf && !eol_lf),
        })
    }

    /// Whether `core.autocrlf` makes git normalise line endings that no attribute speaks of.
    pub(super) fn normalises(&self) -> Result<bool> {
        let autocrlf = self.config()?.string("core.autocrlf").unwrap_or_default();
        let off = ["", "false", "no", "off", "0"];
        Ok(!off.iter().any(|off| autocrlf.eq_ignore_ascii_case(off)))
    }

    /// Tells libgit2 which attribute files are in the user's index. It looks there for those that are not on
    /// disk, and would read and check the whole index for them, which costs as much as git's own look at
    /// the working tree. Gives back whether it is known now that there are none.
    pub(super) fn know_attribute_files(&self, names: &TrackedNames) -> bool {
        let told = git2::Index::new_ext(self.format()).and_then(|mut index| {
            for file in names.attribute_files() {
                index.add(&git2::IndexEntry {
                    ctime: git2::IndexTime::new(0, 0),
                    mtime: git2::IndexTime::new(0, 0),
                    dev: 0,
                    ino: 0,
                    mode: file.mode,
                    uid: 0,
                    gid: 0,
                    file_size: 0,
                    id: file.id,
                    flags: 0,
                    flags_extended: 0,
                    path: file.path.to_vec(),
                })?;
            }
            self.raw().set_index(&mut index)
        });
        // Where that fails it reads the index itself.
        told.is_ok() && names.attribute_files().is_empty()
    }

    /// Whether the user's index is known to hold no attribute file; it is read once for each of its
    /// states.
    fn index_has_no_attribute_file(&self) -> bool {
        let index = self.git_dir().join("index");
        let elsewhere = self.environment().path("GIT_INDEX_FILE").is_some();
        let now = IndexStamp::of(&index);
        match self.index_without_attributes.get() {
            _ if elsewhere => false,
            Some((then, none)) if then == now => none,
            _ => {
                let names = TrackedNames::read(&index, self.format());
                let none = names.is_some_and(|names| self.know_attribute_files(&names));
                self.index_without_attributes.set(Some((now, none)));
                none
            }
        }
    }

    fn attributes(&self, path: &BStr) -> Result<[Attribute; 6], git2::Error> {
        let path = Path::new(super::os_str(path));
        let mut found: [Attribute; 6] = Default::default();
        if PlainFolders::new(self).has_no_attribute_file(path) {
            return Ok(found);
        }
        for (name, slot) in NAMES.iter().zip(&mut found) {
            let value =
                self.raw()
                    .get_attr_bytes(path, name, git2::AttrCheckFlags::FILE_THEN_INDEX)?;
            *slot = match git2::AttrValue::always_bytes(value) {
                git2::AttrValue::True => Attribute::Set,
                git2::AttrValue::False => Attribute::Unset,
                git2::AttrValue::Unspecified => Attribute::Unspecified,
                git2::AttrValue::Bytes(bytes) => Attribute::Value(bytes.to_vec()),
                git2::AttrValue::String(text) => Attribute::Value(text.into()),
            };
        }
        Ok(found)
    }
}

/// Puts a file into a folder of ours.
fn put(top: &Path, path: &BStr, bytes: &[u8]) -> Result<()> {
    let file = top.join(super::os_str(path));
    let folder = file.parent().unwrap_or(top);
    std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(&file, bytes))
        .map_err(|e| Error::io("write", &file, e))
}

/// The state of one attribute of one path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Attribute {
    #[default]
    Unspecified,
    Set,
    Unset,
    Value(Vec<u8>),
}

impl Attribute {
    /// Reads the value as `git check-attr` prints it.
    pub(super) fn from_text(text: &[u8]) -> Self {
        match text {
            b"unspecified" => Attribute::Unspecified,
            b"set" => Attribute::Set,
            b"unset" => Attribute::Unset,
            value => Attribute::Value(value.to_vec()),
        }
    }

    fn is_set(&self) -> bool {
        matches!(self, Attribute::Set | Attribute::Value(_))
    }
}

/// What git does to a file's bytes when it stores them; the values are in the order of [`NAMES`].
pub(super) fn conversion(values: &[Attribute; 6], normalises: bool) -> Conversion {
    if is_special(values) {
        Conversion::Always
    } else if is_text(values, normalises) {
        Conversion::LineEndings
    } else {
        Conversion::Never
    }
}

fn is_special([_, _, _, filter, encoding, ident]: &[Attribute; 6]) -> bool {
    filter.is_set() || encoding.is_set() || *ident == Attribute::Set
}

fn is_text([text, crlf, eol, ..]: &[Attribute; 6], normalises: bool) -> bool {
    let text = match text {
        Attribute::Unspecified => crlf,
        text => text,
    };
    *text != Attribute::Unset && (text.is_set() || eol.is_set() || normalises)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::scratch::Scratch;
    use crate::git::{Environment, ObjectFormat};

    #[test]
    fn attribute_files_count_where_they_lie_on_disk_or_else_in_the_index() {
        for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
            let scratch = Scratch::new(format);
            let top = scratch.top();
            for folder in ["disk", "index", "none"] {
                std::fs::create_dir(top.join(folder)).unwrap();
                std::fs::write(top.join(folder).join(".gitattributes"), "*.txt text\n").unwrap();
            }
            scratch.git(&["add", "disk", "index"]);
            std::fs::remove_file(top.join("index/.gitattributes")).unwrap();
            std::fs::remove_file(top.join("none/.gitattributes")).unwrap();
            let environment = Environment::default();
            let told = Repository::open_at(top, environment.clone()).unwrap();
            let names = TrackedNames::read(&top.join(".git/index"), format).unwrap();
            told.know_attribute_files(&names);
            let reads = Repository::open_at(top, environment).unwrap();
            for (path, text) in [
                ("disk/a.txt", true),
                ("index/a.txt", true),
                ("none/a.txt", false),
            ] {
                for repository in [&told, &reads] {
                    let rules = repository.rewriting(path.into()).unwrap();
                    assert_eq!((rules.text, rules.special), (text, false), "{path}");
                }
            }
            // An index that holds none at all, and one on disk, or in no folder of the path.
            scratch.git(&["rm", "-q", "-r", "--cached", "disk", "index"]);
            for (path, plain) in [
                ("disk/a.txt", false),
                ("index/a.txt", true),
                ("a.txt", true),
            ] {
                let looked = PlainFolders::new(&told).has_no_attribute_file(Path::new(path));
                assert_eq!(looked, plain, "{path}");
                assert_eq!(told.rewriting(path.into()).unwrap().text, !plain, "{path}");
            }
            std::fs::write(top.join(".git/info/attributes"), "*.txt text\n").unwrap();
            assert!(told.rewriting("index/a.txt".into()).unwrap().text);
        }
    }
}
