//! Directories as records: laid out, captured, settled.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use bstr::BString;

use super::super::{Record, Value};
use super::left_out;
use crate::layout::{Captured, Directory, Made, Settled};

/// A path of the file system.
pub fn place(path: &Path) -> Value {
    Value::Path(BString::from(path.as_os_str().as_bytes()))
}

/// An open directory.
pub fn laid_out(directory: &Directory) -> Record {
    Record::new()
        .with("agent", &directory.agent)
        .with("directory", place(&directory.path))
        .with("git-dir", place(&directory.admin))
        .with("revision", directory.cut.revision())
        .with("commit", directory.cut.commit)
        .with("backend", directory.backend.clone())
        .with("reason", directory.reason.clone())
        .list("only", "only", directory.only.iter().map(Value::from))
        .flag("fresh", directory.fresh)
        .with("files", directory.stats.files)
        .maybe("replaced", directory.replaced.as_deref().map(place))
}

/// What a capture made of a directory.
pub fn captured(captured: &Captured) -> Record {
    let workspace = &captured.workspace;
    let left = captured.left_out.iter().map(left_out);
    Record::new()
        .with("agent", &workspace.agent)
        .with("revision", workspace.revision())
        .with("commit", workspace.commit)
        .with("tree", workspace.tree)
        .flag("unchanged", !captured.changed)
        .list("left-out", "left-out", left)
        .list("made", "made", captured.branches.iter().map(made))
}

/// How a directory ended.
pub fn settled(settled: &Settled) -> Record {
    let behind = settled.left_behind.iter().map(|path| place(path));
    captured(&settled.captured)
        .maybe("kept", settled.kept.as_deref().map(place))
        .flag("stays", settled.stays)
        .maybe("vanished", settled.vanished.as_deref().map(place))
        .list("left-behind", "left-behind", behind)
}

/// A ref that holds what a tool committed: `<commit> <ref>`.
fn made(made: &Made) -> Value {
    Value::Group(vec![
        ("commit", made.commit.into()),
        ("ref", made.name.clone().into()),
    ])
}
