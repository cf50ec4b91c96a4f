//! `git vws base`: the user's working tree as a commit.

use git_vws::git::Staging;
use git_vws::output::{Record, Value};
use git_vws::workspace::{Base, LeftOut};

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    let mut staging = Staging::new(session.repository())?;
    let base = store.record_base(&mut staging)?;
    store.put(staging, &[])?;
    out.record(&record(&base))?;
    Ok(out.finish()?)
}

fn record(base: &Base) -> Record {
    Record::new()
        .with("commit", base.commit)
        .with("tree", base.tree)
        .maybe("head", base.head)
        .maybe("branch", base.branch.clone())
        .flag("detached", base.branch.is_none())
        .list("dirty", "dirty", &base.dirty)
        .list("untracked", "untracked", &base.untracked)
        .list("left-out", "left-out", base.left_out.iter().map(left_out))
        .with("untracked-left-out", base.untracked_left_out)
}

/// A path that was left out, and why: `<kind> <path>`.
pub(crate) fn left_out(left_out: &LeftOut) -> Value {
    Value::Group(vec![
        ("kind", left_out.kind.as_str().into()),
        ("path", (&left_out.path).into()),
    ])
}
