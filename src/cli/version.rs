//! `git vws version`: what this program is made of, for a bug report.

use git_vws::git;
use git_vws::layout::Choice;
use git_vws::output::{Printer, Record};

use super::args::FormArgs;
use super::report::Failure;
use super::session::stdout;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let backends = Choice::ALL.into_iter().filter(|choice| choice.is_built());
    let record = Record::new()
        .with("git-vws", env!("CARGO_PKG_VERSION"))
        .with("libgit2", git::libgit2_version())
        .list("backend", "backends", backends.map(Choice::as_str));
    let mut out = Printer::new(stdout()?, args.form.form(), true);
    out.record(&record)?;
    Ok(out.finish()?)
}
