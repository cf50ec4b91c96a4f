//! What the user has been told already, so that a fallback is told once for each reason.

use std::fs;

use super::directory::replace;
use crate::git::Repository;

/// Gives the reason back if it is new in this repository for this back end.
pub(super) fn once(repository: &Repository, backend: &str, why: String) -> Option<String> {
    let file = repository.relo_dir().join("told").join(backend);
    if fs::read_to_string(&file).is_ok_and(|told| told == why) {
        return None;
    }
    let folder = file.parent().unwrap_or(&file);
    // Where it cannot be noted, it is told again.
    let _ = fs::create_dir_all(folder);
    let _ = replace(&file, why.as_bytes());
    Some(why)
}
