//! What the user was told already: reasons for something else than was asked for, each told once in a
//! repository.

use std::fs;

use crate::git::Repository;

/// Whether a reason is new in this repository; from now on it is not. `topic` keeps those apart that
/// have nothing to do with each other.
pub fn told_once(repository: &Repository, topic: &str, why: &str) -> bool {
    let file = repository.relo_dir().join("told").join(topic);
    let mut told = fs::read_to_string(&file).unwrap_or_default();
    let why = why.replace('\n', " ");
    if told.lines().any(|line| line == why) {
        return false;
    }
    told.push_str(&why);
    told.push('\n');
    let folder = file.parent().unwrap_or(&file);
    // Where it cannot be noted, it is told again.
    let _ = fs::create_dir_all(folder);
    let _ = super::directory::replace(&file, told.as_bytes());
    true
}
