//! Which paths no rule can match, told without git.
//!
//! All sources of rules that git has are read, as they are at this moment: the ignore files of the
//! folders above a path, the common `info/exclude`, and every file that `core.excludesFile` may mean. What
//! cannot be made out (a link, a device, a setting under a condition, ...) leaves every path to git.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use rustix::fs::{CWD, Mode, OFlags, openat};

use super::pattern::{self, Pattern};
use crate::git::attributes::SYSTEM_FOLDERS;
use crate::git::{Repository, os_str};

/// More paths than this are asked of git at once: then its start is the smaller part.
const MOST: usize = 64;
/// A larger file of rules is left to git.
const MAX_RULES: u64 = 1 << 20;

/// The rules that were read so far.
pub(super) struct Quick {
    patterns: Vec<Pattern>,
    /// The folders whose ignore file is among them.
    read: BTreeSet<BString>,
    /// Whether something could not be made out.
    unsure: bool,
    /// Whether rules that take back count as well.
    taking_back: bool,
}

impl Quick {
    /// With the rules that hold in every folder.
    pub(super) fn new(repository: &Repository) -> Self {
        let mut quick = Quick {
            patterns: Vec::new(),
            read: BTreeSet::new(),
            unsure: false,
            taking_back: false,
        };
        let Some(mut files) = outside(repository) else {
            quick.unsure = true;
            return quick;
        };
        files.push(repository.common_dir().join("info/exclude"));
        for file in files {
            quick.add(&file, true);
        }
        quick
    }

    /// Only the rules that the folders of a working tree hold, but those that take back among them.
    pub(super) fn in_tree() -> Self {
        Quick {
            patterns: Vec::new(),
            read: BTreeSet::new(),
            unsure: false,
            taking_back: true,
        }
    }

    /// For each of these paths of a directory, whether a rule may match it or a folder above it.
    pub(super) fn may_match(&mut self, top: &Path, paths: &[BString]) -> Vec<bool> {
        if !self.unsure && paths.len() <= MOST {
            for path in paths {
                self.add_folders(top, path);
            }
        }
        if self.unsure || paths.len() > MOST {
            return vec![true; paths.len()];
        }
        let may = |path: &BString| {
            let path = path.to_ascii_lowercase();
            self.patterns.iter().any(|one| one.may_match(&path))
        };
        paths.iter().map(may).collect()
    }

    fn add_folders(&mut self, top: &Path, path: &BString) {
        let above = path.find_iter("/").map(|slash| &path[..slash]);
        for folder in std::iter::once(&b""[..]).chain(above) {
            if !self.read.contains(folder.as_bstr()) {
                self.read.insert(folder.into());
                self.add(
                    &top.join(os_str(folder.as_bstr())).join(".gitignore"),
                    false,
                );
            }
        }
    }

    fn add(&mut self, file: &Path, through_link: bool) {
        match rules(file, through_link, self.taking_back) {
            Some(patterns) => self.patterns.extend(patterns),
            None => self.unsure = true,
        }
    }
}

/// The rules in a file, none where it is not there.
fn rules(file: &Path, through_link: bool, taking_back: bool) -> Option<Vec<Pattern>> {
    let mut flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    flags.set(OFlags::NOFOLLOW, !through_link);
    let opened = openat(CWD, file, flags, Mode::empty());
    let mut opened = match opened.map(File::from).map_err(std::io::Error::from) {
        Ok(opened) => opened,
        Err(error) if error.kind() == ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let meta = opened.metadata().ok()?;
    if !meta.is_file() || meta.len() > MAX_RULES {
        return None;
    }
    let mut text = Vec::with_capacity(usize::try_from(meta.len()).ok()? + 1);
    (&mut opened)
        .take(MAX_RULES + 1)
        .read_to_end(&mut text)
        .ok()?;
    if text.len() as u64 > MAX_RULES {
        return None;
    }
    pattern::read(&text, taking_back)
}

/// Every file outside of the working tree and the repository that git may take rules from. `None` where
/// the settings do not tell.
fn outside(repository: &Repository) -> Option<Vec<PathBuf>> {
    let environment = repository.environment();
    let absolute = |name: &str| match environment.get(name).map(Path::new) {
        None => Some(None),
        Some(path) if path.is_absolute() => Some(Some(path)),
        Some(_) => None,
    };
    let home = absolute("HOME")?;
    let personal = match absolute("XDG_CONFIG_HOME")? {
        Some(folder) => Some(folder.join("git")),
        None => home.map(|home| home.join(".config/git")),
    };
    let system = SYSTEM_FOLDERS.iter().map(Path::new);
    let mut settings: Vec<PathBuf> = system.map(|folder| folder.join("gitconfig")).collect();
    settings.extend(environment.settings_beside_git()?);
    // These take the place of others, which are read all the same: more rules do no harm.
    for name in ["GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL"] {
        settings.extend(absolute(name)?.map(Path::to_owned));
    }
    settings.extend(personal.as_ref().map(|folder| folder.join("config")));
    settings.extend(home.map(|home| home.join(".gitconfig")));
    settings.push(repository.common_dir().join("config"));
    settings.sort();
    settings.dedup();
    let mut files: Vec<PathBuf> = personal
        .iter()
        .map(|folder| folder.join("ignore"))
        .collect();
    for value in repository.config().ok()?.excludes(&settings)? {
        files.push(match value.strip_prefix("~/") {
            Some(rest) => home?.join(rest),
            None if value.starts_with('/') => PathBuf::from(value),
            None => return None,
        });
    }
    Some(files)
}
