//! What the refs say, in one file for user interfaces: `<common-dir>/relo/mirror.json`.
//!
//! Never read as truth: it can be deleted, and is written again from the refs. One line of the file is one
//! workspace, so that it is one JSON document and can still be changed without parsing it: a publish
//! reads the file, puts its own line in the place of the old one, and renames the result into place. With
//! 1,000 workspaces (300 KB) that is about a fifth of a publish (tests/storm.rs prints it), for which
//! a watcher gets a file that is whole and current at any moment; a file for each workspace would be
//! cheaper to write and leave the watcher to put 1,000 of them together.
//!
//! Writers take turns under `flock(2)`. A line never goes back to an older revision of the same
//! workspace, whichever order writers come in.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bstr::{BStr, ByteSlice};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::git::{Lock, Repository, fault};
use crate::model::Revision;

const HEAD: &[u8] = b"{\"v\":1,\"workspaces\":{\n";
const TAIL: &[u8] = b"}}\n";
/// How long a writer waits for the others; a mirror is worth no more.
const PATIENCE: Duration = Duration::from_secs(2);

/// How a workspace stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It equals its base.
    Clean,
    /// It differs from its base.
    Edited,
    /// A directory is open, which is the authority.
    Open,
    /// It cannot be read.
    Damaged,
}

/// One workspace as the mirror shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The top of the working tree; the git dir of a bare repository.
    pub root: Value,
    /// Its agent.
    pub agent: String,
    /// The orchestrator's session, if it named one.
    pub session: Option<String>,
    /// The base commit; `None` in a damaged workspace.
    pub base: Option<String>,
    /// The current revision; `None` in a damaged workspace.
    pub revision: Option<Revision>,
    /// The overlay; `None` in a damaged workspace.
    pub effective_tree: Option<String>,
    /// How it stands.
    pub state: State,
    /// The open directory, if there is one.
    pub directory: Option<Value>,
    /// The revision of the newest proposal, if there is one.
    pub proposal: Option<Revision>,
}

/// Whether the mirror took an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Updated {
    /// It shows it, or something newer.
    Yes,
    /// There is no mirror, or one that makes no sense: it has to be rebuilt.
    NoMirror,
}

/// Where the mirror is.
pub fn path(repository: &Repository) -> PathBuf {
    repository.relo_dir().join("mirror.json")
}

/// Shows a workspace. `afresh`: it was just created, so whatever the mirror has under its name is of
/// an earlier one; otherwise an older revision never takes the place of a newer one.
///
/// # Errors
/// When the file cannot be written or its lock is not to be had.
pub fn show(repository: &Repository, shown: &Shown, afresh: bool) -> io::Result<Updated> {
    change(repository, &shown.agent, |old| {
        let newer = old
            .and_then(parse_line)
            .is_some_and(|old| old.revision > shown.revision);
        (!newer || afresh).then(|| line(shown))
    })
}

/// Shows the workspaces of these agents no more.
///
/// # Errors
/// As [`show`].
pub fn drop_agents(repository: &Repository, agents: &BTreeSet<&str>) -> io::Result<Updated> {
    let _lock = lock(repository)?;
    let text = current(repository)?;
    let Some(lines) = text.as_deref().and_then(lines_of) else {
        return Ok(Updated::NoMirror);
    };
    let all = lines
        .lines()
        .map(|line| line.strip_suffix(b",").unwrap_or(line));
    let (gone, kept): (Vec<&[u8]>, Vec<&[u8]>) =
        all.partition(|line| agent_of(line).is_some_and(|agent| agents.contains(agent)));
    if !gone.is_empty() {
        store(repository, &document(&kept))?;
    }
    Ok(Updated::Yes)
}

/// All that the mirror shows, by agent; `None` where there is no mirror or it makes no sense.
pub fn read(repository: &Repository) -> Option<Vec<Shown>> {
    let text = fs::read(path(repository)).ok()?;
    let lines = lines_of(&text)?.lines();
    lines
        .map(|line| parse_line(line.as_bstr()))
        .collect::<Option<Vec<_>>>()
}

/// Writes the whole mirror. `look` is called under the lock, so that what it sees is not older than what
/// a publish has shown meanwhile.
///
/// # Errors
/// As [`show`]; whatever `look` returns.
pub fn write_all<E: From<io::Error>>(
    repository: &Repository,
    look: impl FnOnce() -> Result<Vec<Shown>, E>,
) -> Result<Vec<Shown>, E> {
    let _lock = lock(repository)?;
    let mut all = look()?;
    all.sort_by(|a, b| a.agent.cmp(&b.agent));
    let lines: Vec<_> = all.iter().map(line).collect();
    store(repository, &document(&lines))?;
    Ok(all)
}

/// The whole file of these lines, which have no commas yet.
fn document(lines: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut text = HEAD.to_vec();
    text.extend_from_slice(&bstr::join(",\n", lines));
    if !lines.is_empty() {
        text.push(b'\n');
    }
    text.extend_from_slice(TAIL);
    text
}

/// Removes what a writer that died has left; says whether there was anything.
pub fn clean(repository: &Repository) -> bool {
    lock(repository).is_ok_and(|_lock| fs::remove_file(temporary(repository)).is_ok())
}

/// The file as it is, if it is there.
fn current(repository: &Repository) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path(repository)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts a line in the place of the agent's, or leaves it where `decide` gives none.
fn change(
    repository: &Repository,
    agent: &str,
    decide: impl FnOnce(Option<&BStr>) -> Option<Vec<u8>>,
) -> io::Result<Updated> {
    let _lock = lock(repository)?;
    let text = current(repository)?;
    let Some(lines) = text.as_deref().and_then(lines_of) else {
        return Ok(Updated::NoMirror);
    };
    // Agents need no escape in JSON, and a line break stands for itself nowhere in it.
    let key = format!("\"{agent}\":");
    let (mut start, mut end) = (lines.len(), lines.len());
    let mut at = 0;
    let mut found = false;
    for line in lines.lines_with_terminator() {
        if line.starts_with(key.as_bytes()) {
            (start, end, found) = (at, at + line.len(), true);
            break;
        }
        if line > key.as_bytes() {
            (start, end) = (at, at);
            break;
        }
        at += line.len();
    }
    let old = found.then(|| lines[start..end].trim_ascii_end().as_bstr());
    let Some(new) = decide(old) else {
        return Ok(Updated::Yes);
    };
    let before = &lines[..start];
    let after = &lines[end..];
    let mut text = Vec::with_capacity(HEAD.len() + lines.len() + 512);
    text.extend_from_slice(HEAD);
    text.extend_from_slice(before);
    if after.is_empty() && !before.is_empty() && !before.ends_with(b",\n") {
        text.truncate(text.len() - 1);
        text.extend_from_slice(b",\n");
    }
    text.extend_from_slice(&new);
    text.extend_from_slice(if after.is_empty() { b"\n" } else { b",\n" });
    text.extend_from_slice(after);
    text.extend_from_slice(TAIL);
    store(repository, &text)?;
    Ok(Updated::Yes)
}

/// The lines between head and tail, if the file has the form that we write.
fn lines_of(text: &[u8]) -> Option<&[u8]> {
    let lines = text.strip_prefix(HEAD)?.strip_suffix(TAIL)?;
    (lines.is_empty() || lines.ends_with(b"\n") && !lines.ends_with(b",\n")).then_some(lines)
}

/// Whose line it is.
fn agent_of(line: &[u8]) -> Option<&str> {
    let (agent, _) = line.strip_prefix(b"\"")?.split_once_str("\"")?;
    agent.to_str().ok()
}

fn parse_line(line: &BStr) -> Option<Shown> {
    let (_, object) = line.split_once_str(":")?;
    serde_json::from_slice(object.strip_suffix(b",").unwrap_or(object)).ok()
}

fn line(shown: &Shown) -> Vec<u8> {
    let object = serde_json::to_string(shown).expect("invariant: plain data");
    format!("\"{}\":{object}", shown.agent).into_bytes()
}

fn lock(repository: &Repository) -> io::Result<Lock> {
    let path = repository.relo_dir().join("locks/mirror");
    Lock::exclusive(&path, PATIENCE).map_err(io::Error::other)
}

fn temporary(repository: &Repository) -> PathBuf {
    repository.relo_dir().join("mirror.json.new")
}

/// Puts a new mirror in the place of the old one. Not flushed: after a power cut it is rebuilt.
fn store(repository: &Repository, text: &[u8]) -> io::Result<()> {
    let new = temporary(repository);
    let written = write_new(&new, text).and_then(|()| {
        fault::point("mirror-written");
        fs::rename(&new, path(repository))
    });
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    fault::point("mirror-shown");
    written
}

fn write_new(path: &Path, text: &[u8]) -> io::Result<()> {
    match fs::write(path, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(path.parent().unwrap_or(path))?;
            fs::write(path, text)
        }
        other => other,
    }
}
