//! Files whose content git stores otherwise than it lies on disk.
//!
//! Attributes are looked at anew by every capture, since a tool may add some. Texts decide first: where
//! no setting and no attributes file above a file to be read speaks of text, eol, filters, ident or
//! encodings, nothing is asked.

use std::collections::HashSet;
use std::path::Path;

use bstr::{BString, ByteSlice};

use super::ground::Ground;
use super::import::{self, Rules, TRIES, Taken, Wanted};
use crate::disk;
use crate::git::index::StatData;
use crate::git::tree::{self, Entry};
use crate::git::{Conversion, Repository, fault, mentions_rewriting};
use crate::layout::directory::CLEANING;
use crate::layout::{Directory, Error, Result};
use crate::model::Refusal;

/// Git passes over an attributes file that is larger.
const MAX_ATTRIBUTES: u64 = 100 << 20;

/// Finds out what git does to the content of each file; `folders` are those with an attributes file.
///
/// # Errors
/// Failures of git, and an attributes file that cannot be read.
pub(super) fn find_conversions(
    (repository, directory): (&Repository, &Directory),
    ground: &Ground<'_>,
    folders: &[BString],
    wanted: &mut [Wanted],
) -> Result<()> {
    if wanted.is_empty() {
        return Ok(());
    }
    if !repository.rewrites_everywhere()? && !speaks_of_rewriting(ground.view(), folders, wanted) {
        return Ok(());
    }
    let paths: Vec<BString> = wanted.iter().map(|one| one.path.clone()).collect();
    let found = repository.conversions(ground.view(), &directory.admin, &paths)?;
    for (one, conversion) in wanted.iter_mut().zip(found) {
        one.conversion = conversion;
    }
    Ok(())
}

fn speaks_of_rewriting(top: &Path, folders: &[BString], wanted: &[Wanted]) -> bool {
    let holding: HashSet<&[u8]> = folders.iter().map(|path| path.as_slice()).collect();
    let mut asked: HashSet<&[u8]> = HashSet::new();
    for one in wanted {
        let slashes = one.path.find_iter("/").map(|slash| &one.path[..slash]);
        for folder in std::iter::once(&b""[..]).chain(slashes) {
            if !holding.contains(folder) || !asked.insert(folder) {
                continue;
            }
            let mut file = BString::from(folder);
            if !folder.is_empty() {
                file.push(b'/');
            }
            file.extend_from_slice(b".gitattributes");
            match disk::read(top, file.as_bstr(), MAX_ATTRIBUTES) {
                Ok(text) if !mentions_rewriting(&text) => {}
                Err(disk::Unread::Gone) => {}
                // What cannot be read here is for git to make out.
                _ => return true,
            }
        }
    }
    false
}

/// Reads all the files, those that git has to convert through git.
///
/// Blobs that git has stored are in the object database, but nothing refers to them; they come as
/// [`Taken::ForGit`] no more, but with their entry in `stored`.
///
/// # Errors
/// As [`import::all`]; failures of a conversion.
pub(super) fn read(
    (repository, directory): (&Repository, &Directory),
    ground: &Ground<'_>,
    rules: Rules,
    mut wanted: Vec<Wanted>,
) -> Result<Read> {
    let mut read = Read::default();
    for attempt in 0..TRIES {
        let mut for_git = Vec::new();
        for (one, taken) in import::all(ground.files(), rules, wanted)? {
            match taken {
                Taken::ForGit(mode, stat) => for_git.push((one, mode, stat)),
                taken => read.taken.push((one.path, taken)),
            }
        }
        if for_git.is_empty() {
            return Ok(read);
        }
        for_git.sort_by(|a, b| a.0.path.cmp(&b.0.path));
        wanted = match store(repository, directory, ground, &for_git) {
            Ok(entries) => read.sort_out(ground.files(), for_git, entries),
            // A file that git did not find any more has changed; anything else is its own failure.
            Err(error) if attempt + 1 == TRIES || holds_still(ground.files(), &for_git) => {
                return Err(error);
            }
            Err(_) => for_git.into_iter().map(|(one, ..)| one).collect(),
        };
        if wanted.is_empty() {
            return Ok(read);
        }
    }
    for one in wanted {
        let taken = Taken::LeftOut(Refusal::WorkspaceChanged);
        read.taken.push((one.path, taken));
    }
    Ok(read)
}

/// What was read.
#[derive(Default)]
pub(super) struct Read {
    pub(super) taken: Vec<(BString, Taken)>,
    /// What git has stored itself.
    pub(super) stored: Vec<(BString, Entry)>,
}

type ForGit = (Wanted, u32, StatData);

impl Read {
    /// Takes what held still meanwhile, and gives back the rest.
    fn sort_out(&mut self, top: &Path, for_git: Vec<ForGit>, entries: Vec<Entry>) -> Vec<Wanted> {
        let mut again = Vec::new();
        for ((one, mode, stat), entry) in for_git.into_iter().zip(entries) {
            let now = import::look(top, one.path.as_bstr());
            if entry.mode == tree::LINK || !stat.matches(&now) {
                again.push(one);
                continue;
            }
            let id = entry.id;
            match one.known {
                Some(known) if known.id == id => {
                    self.taken.push((one.path, Taken::Held(Entry { mode, id })));
                }
                _ => self.stored.push((one.path, Entry { mode, id })),
            }
        }
        again
    }
}

fn holds_still(top: &Path, for_git: &[ForGit]) -> bool {
    for_git
        .iter()
        .all(|(one, _, stat)| stat.matches(&import::look(top, one.path.as_bstr())))
}

fn store(
    repository: &Repository,
    directory: &Directory,
    ground: &Ground<'_>,
    for_git: &[ForGit],
) -> Result<Vec<Entry>> {
    ground.show_files(for_git.iter().map(|(one, ..)| &one.path))?;
    // A private index, in a folder that goes with the directory if we die here.
    let folder = tempfile::Builder::new()
        .prefix(CLEANING)
        .tempdir_in(&directory.admin)
        .map_err(|error| Error::io("create a folder in", &directory.admin, error))?;
    let files: Vec<(BString, Option<Entry>)> = for_git
        .iter()
        .map(|(one, ..)| (one.path.clone(), one.known))
        .collect();
    let index = folder.path().join("index");
    let (work_dir, git_dir) = (ground.view(), &directory.admin);
    fault::point("capture-cleaning");
    Ok(repository.store_files(work_dir, git_dir, &index, &files)?)
}

/// Whether nothing could rewrite a file at this path: known without asking git.
///
/// # Errors
/// As [`find_conversions`].
pub(super) fn is_plain(
    repository: &Repository,
    directory: &Directory,
    wanted: &Wanted,
) -> Result<bool> {
    let slashes = wanted.path.find_iter("/").map(|at| &wanted.path[..at]);
    let above: Vec<BString> = std::iter::once(&b""[..])
        .chain(slashes)
        .map(BString::from)
        .collect();
    let one = std::slice::from_ref(wanted);
    Ok(wanted.conversion == Conversion::Never
        && directory.only.is_empty()
        && !repository.rewrites_everywhere()?
        && !speaks_of_rewriting(&directory.path, &above, one))
}
