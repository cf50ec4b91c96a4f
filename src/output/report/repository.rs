//! What a repository is, and the templates that it keeps, as records.

use super::super::{Record, Value};
use super::place;
use crate::layout::template::warm::Warm;
use crate::layout::template::{Info, Template};
use crate::workspace::{Check, Limit, Way};

/// What a repository is, and what is done how in it.
pub fn check(check: &Check) -> Record {
    Record::new()
        .flag("usable", check.holds_workspaces())
        .with("git-dir", place(&check.git_dir))
        .with("common-dir", place(&check.common_dir))
        .maybe("worktree", check.work_dir.as_deref().map(place))
        .with("object-format", check.object_format)
        .with("ref-format", check.ref_format.clone())
        .list("form", "forms", check.forms.iter().map(String::as_str))
        .list("way", "ways", check.ways.iter().map(way))
        .list("limit", "limits", check.limits.iter().map(limit))
}

fn way(way: &Way) -> Value {
    Value::Group(vec![
        ("what", way.what.into()),
        ("how", way.how.into()),
        ("why", way.why.clone().into()),
    ])
}

fn limit(limit: &Limit) -> Value {
    Value::Group(vec![
        ("what", limit.what.into()),
        ("kind", limit.kind.as_str().into()),
        ("why", limit.why.clone().into()),
    ])
}

/// A template.
pub fn template(info: &Info) -> Record {
    Record::new()
        .with("template", info.name.clone())
        .with("files", info.files as u64)
        .with("bytes", info.bytes)
        .with("last-used", info.last_used)
}

/// What was made so that the first command of an agent does not wait for it; without a template, what
/// was shared of somebody else's build output.
pub fn warmed(template: Option<&Template>, warm: Option<&Warm>) -> Record {
    let tree = match template {
        Some(template) => Some(template.tree()),
        None => warm.and_then(Warm::tree),
    };
    Record::new()
        .maybe("tree", tree)
        .maybe(
            "files",
            template.map(|template| template.file_count() as u64),
        )
        .maybe("warm", warm.map(|warm| warm.name().to_owned()))
}

/// A template that was to go, and whether it went: else something stands on it.
pub fn pruned(info: &Info, removed: bool) -> Record {
    template(info)
        .flag("removed", removed)
        .flag("in-use", !removed)
}
