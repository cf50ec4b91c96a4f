//! Which of the paths that the manifest does not know are to be imported.
//!
//! Folders are asked about before they are walked, one level after the other, so that an ignored
//! `node_modules` is one question. A path that is tracked is imported although a rule ignores it, and
//! an ignored folder is walked for the sake of what is tracked in it: both as git does.

use bstr::{BString, ByteSlice};

use super::ground::Ground;
use super::known::Known;
use super::scan::{self, Fresh, Seen};
use crate::git::{IgnoreRules, Repository, tree};
use crate::layout::{Directory, Result};

/// Takes what is fresh out of `seen`, walks the folders that count, and gives back the files to be
/// imported. What is met on the way goes into `seen`.
///
/// # Errors
/// Any failure of git: then nothing is known about any path.
pub(super) fn sift(
    repository: &Repository,
    directory: &Directory,
    (ground, known): (&mut Ground<'_>, &Known<'_>),
    seen: &mut Seen,
) -> Result<Vec<BString>> {
    let mut rules = repository.ignore_rules(ground.view(), &directory.admin);
    let mut files = Vec::new();
    let mut fresh = std::mem::take(&mut seen.fresh);
    while !fresh.is_empty() {
        let mut folders = Vec::new();
        ground.show_rules(fresh.iter().map(|one| (&one.path, one.is_folder)))?;
        for Fresh { path, is_folder } in counting(&mut rules, known, fresh)? {
            if !is_folder {
                files.push(path);
                continue;
            }
            let here = known.in_overlay(path.as_bstr())?;
            if here.is_none_or(|entry| entry.mode != tree::GITLINK) {
                folders.push(path);
            }
        }
        let mut more = scan::folders(ground.files(), folders)?;
        fresh = std::mem::take(&mut more.fresh);
        seen.append(more);
    }
    rules.finish()?;
    Ok(files)
}

/// Those that no rule ignores, or that are tracked all the same.
fn counting(
    rules: &mut IgnoreRules<'_>,
    known: &Known<'_>,
    fresh: Vec<Fresh>,
) -> Result<Vec<Fresh>> {
    let (mut counting, open): (Vec<Fresh>, Vec<Fresh>) = fresh
        .into_iter()
        .partition(|one| known.was_captured(one.path.as_bstr(), one.is_folder));
    let questions: Vec<BString> = open.iter().map(|one| one.path.clone()).collect();
    for (one, ignored) in open.into_iter().zip(rules.ask(&questions)?) {
        if !ignored || known.is_tracked(one.path.as_bstr(), one.is_folder)? {
            counting.push(one);
        }
    }
    Ok(counting)
}
