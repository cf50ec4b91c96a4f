//! `git vws check`: what this repository is, what is done how in it, and what cannot be done.
//!
//! Exit code 1 where no workspace can be made.

use std::process::ExitCode;

use git_vws::output::report::place;
use git_vws::output::{Record, Value};
use git_vws::workspace::{Check, Limit, Way};

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<ExitCode, Failure> {
    let mut out = session.printer(args.form.form())?;
    let check = session.store().check_repository()?;
    out.record(&record(&check))?;
    out.finish()?;
    Ok(ExitCode::from(u8::from(!check.holds_workspaces())))
}

fn record(check: &Check) -> Record {
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
