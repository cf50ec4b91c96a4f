//! The git dir of a directory: an entry of ours in `<common-dir>/worktrees/`.
//!
//! To git the directory is a linked worktree: `.git` in it points here, `gitdir` here points back,
//! and `HEAD` is detached at the revision it was cut from. `locked` keeps `git worktree prune`
//! (and the one inside `git gc`) away, and tells us that the entry is ours. An entry of the same
//! name that is not ours is never touched.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};

use super::directory::{CLEANING, Places, RULES, TEMPORARY, path_bytes, replace};
use super::removal;
use super::{Error, Result};
use crate::disk;
use crate::git::{ObjectId, Repository, fault, os_str};
use crate::model::{AgentId, Refusal};

/// What `locked` says in an entry of ours.
fn lock_line(agent: &AgentId) -> String {
    format!("held by git-vws for agent '{agent}'; 'git vws settle {agent}' removes it\n")
}

/// Makes the git dir of a new directory, in one rename.
///
/// # Errors
/// The refusal `unsupported` when somebody else's worktree has the name; [`Error::Io`].
pub(super) fn create(
    repository: &Repository,
    agent: &AgentId,
    places: &Places,
    head: ObjectId,
) -> Result<()> {
    clear(repository, agent, places)?;
    if is_reftable(repository)? {
        return create_by_git(repository, agent, places, head);
    }
    let new = staged(repository, agent);
    let _ = fs::remove_dir_all(&new);
    fs::create_dir_all(&new).map_err(|e| Error::io("create", &new, e))?;
    let files: [(&str, Vec<u8>); 4] = [
        ("commondir", b"../..\n".to_vec()),
        ("gitdir", pointer_to(&places.path)),
        ("locked", lock_line(agent).into_bytes()),
        ("HEAD", format!("{head}\n").into_bytes()),
    ];
    let written = files.map(|(name, bytes)| {
        let path = new.join(name);
        let made = fs::File::create(&path).and_then(|mut file| {
            file.write_all(&bytes)?;
            Ok(file)
        });
        made.map_err(|e| Error::io("write", &path, e))
    });
    let written: Vec<_> = written.into_iter().collect::<Result<_>>()?;
    // An empty `HEAD` here would be in git's way, in the user's repository too.
    disk::put_before(&written, repository.volume())
        .map_err(|e| Error::io("flush files of", &new, e))?;
    fault::point("admin-staged");
    let parent = repository.common_dir().join("worktrees");
    removal::despite_removals(|| {
        fs::create_dir_all(&parent)?;
        fs::rename(&new, &places.admin)
    })
    .map_err(|e| Error::io("create", &places.admin, e))
}

/// In a reftable repository `HEAD` of a worktree is in a table of its own, which only git writes.
fn create_by_git(
    repository: &Repository,
    agent: &AgentId,
    places: &Places,
    head: ObjectId,
) -> Result<()> {
    let name = places.admin.file_name().unwrap_or_default();
    let parent = staged(repository, agent);
    let _ = fs::remove_dir_all(&parent);
    fs::create_dir_all(&parent).map_err(|e| Error::io("create", &parent, e))?;
    let place = parent.join(name);
    let lock = lock_line(agent);
    repository
        .git()
        .args(["worktree", "add", "--quiet", "--detach", "--no-checkout"])
        .args(["--lock", "--reason", lock.trim_end()])
        .arg(&place)
        .arg(head.to_string())
        .output()?;
    fs::remove_dir_all(&parent).map_err(|e| Error::io("remove", &parent, e))?;
    let file = places.admin.join("gitdir");
    replace(&file, &pointer_to(&places.path))?;
    replace(&places.admin.join("locked"), lock.as_bytes())
}

fn is_reftable(repository: &Repository) -> Result<bool> {
    let form = repository.config()?.string("extensions.refstorage");
    Ok(form.is_some_and(|form| form.starts_with("reftable")))
}

/// Removes what an earlier directory of the agent left here.
///
/// # Errors
/// The refusal `unsupported` when the entry is somebody else's.
pub(super) fn clear(repository: &Repository, agent: &AgentId, places: &Places) -> Result<()> {
    match is_ours(agent, &places.admin)? {
        None => Ok(()),
        Some(true) => remove(repository, places),
        Some(false) => {
            let what = format!(
                "'{}' is a worktree that git-vws did not make; it has the name that workspace \
                 '{agent}' needs",
                places.admin.display()
            );
            Err(Error::refused(Refusal::Unsupported, what))
        }
    }
}

/// As [`clear`], for an end of which somebody else's entry is no part: it is passed over.
pub(super) fn clear_ours(repository: &Repository, agent: &AgentId, places: &Places) -> Result<()> {
    match is_ours(agent, &places.admin)? {
        Some(true) => remove(repository, places),
        _ => Ok(()),
    }
}

/// Where an entry is made before it comes into its place.
fn staged(repository: &Repository, agent: &AgentId) -> PathBuf {
    repository.relo_dir().join("new").join(agent.as_str())
}

/// Removes an entry that never came into its place; says whether there was one.
pub(super) fn clear_staged(repository: &Repository, agent: &AgentId) -> Result<bool> {
    let staged = staged(repository, agent);
    let there = removal::is_there(&staged)?;
    if there {
        removal::discard(&repository.relo_dir(), &staged)?;
        let _ = fs::remove_dir(staged.parent().unwrap_or(&staged));
    }
    Ok(there)
}

/// Removes the temporary files of ours in an entry: whoever made them has died.
///
/// The caller holds the agent's lock.
pub(super) fn clear_temporary(places: &Places) {
    for entry in fs::read_dir(&places.admin).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = path_bytes(Path::new(&name));
        let ours = [CLEANING, RULES, TEMPORARY];
        if ours.iter().any(|one| name.starts_with(one.as_bytes())) {
            let _ = removal::delete(&places.admin, entry.file_name());
        }
    }
}

/// Whether the entry is ours; `None` where there is none.
fn is_ours(agent: &AgentId, admin: &Path) -> Result<Option<bool>> {
    match fs::symlink_metadata(admin) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("look at", admin, error)),
        Ok(meta) if !meta.is_dir() => return Ok(Some(false)),
        Ok(_) => {}
    }
    let file = admin.join("locked");
    match fs::read(&file) {
        Ok(bytes) => Ok(Some(bytes == lock_line(agent).as_bytes())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(false)),
        Err(error) => Err(Error::io("read", file, error)),
    }
}

/// Removes the entry: it is gone for git at once, whatever happens meanwhile.
pub(super) fn remove(repository: &Repository, places: &Places) -> Result<()> {
    removal::discard(&repository.relo_dir(), &places.admin)?;
    // Git itself removes the folder with the last worktree; one that is not empty stays.
    let _ = fs::remove_dir(repository.common_dir().join("worktrees"));
    Ok(())
}

/// The directory that the entry points to, if it is there and ours.
pub(super) fn pointed_to(agent: &AgentId, admin: &Path) -> Result<Option<PathBuf>> {
    if is_ours(agent, admin)? != Some(true) {
        return Ok(None);
    }
    let file = admin.join("gitdir");
    let bytes = match fs::read(&file) {
        Ok(bytes) => BString::from(bytes),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("read", file, error)),
    };
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let path = line.strip_suffix(b"/.git").unwrap_or(line);
    Ok(Some(PathBuf::from(os_str(path.as_bstr()))))
}

/// What `gitdir` holds for a directory at `path`.
fn pointer_to(path: &Path) -> Vec<u8> {
    let mut line = path_bytes(&path.join(".git")).to_vec();
    line.push(b'\n');
    line
}

/// What the `.git` file of the directory holds.
pub(super) fn git_file(admin: &Path) -> Vec<u8> {
    let mut line = b"gitdir: ".to_vec();
    line.extend_from_slice(path_bytes(admin));
    line.push(b'\n');
    line
}
