//! What was found out by doing about a file system, so that it is tried once and not every time.
//!
//! An answer holds until the next start of the machine, or until what it promised fails: then whoever
//! met that [forgets](forget) it, and the next one tries again.

use std::fs;
use std::path::{Path, PathBuf};

use super::directory::replace;
use crate::git::Repository;

/// Where a repository keeps the answers.
pub(super) fn cache(repository: &Repository) -> PathBuf {
    repository.relo_dir().join("probes")
}

/// The answer kept under `key`, or that of `ask`, which is kept then.
pub(super) fn kept(cache: &Path, key: Option<&str>, ask: impl FnOnce() -> String) -> String {
    let file = key.map(|key| cache.join(key));
    let boot = boot_id();
    if let Some(file) = &file
        && let Ok(text) = fs::read_to_string(file)
        && let Some((when, answer)) = text.split_once('\n')
        && when == boot
    {
        return answer.to_owned();
    }
    let answer = ask();
    if let Some(file) = file.filter(|_| !boot.is_empty()) {
        // Without it the next one asks again.
        let _ = fs::create_dir_all(cache);
        let _ = replace(&file, format!("{boot}\n{answer}").as_bytes());
    }
    answer
}

/// Forgets an answer.
pub(super) fn forget(cache: &Path, key: Option<&str>) {
    if let Some(key) = key {
        let _ = fs::remove_file(cache.join(key));
    }
}

/// The device of a folder, as part of a key.
pub(super) fn device(folder: &Path) -> Option<String> {
    let stat = rustix::fs::stat(folder).ok()?;
    Some(format!("{:x}", stat.st_dev))
}

/// The start of the machine that this is; empty where nobody says.
pub(super) fn boot_id() -> String {
    let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().to_owned()
}
