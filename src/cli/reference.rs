//! `git vws reference` and `import`: files of another agent, by a pointer in a message.

use std::ffi::OsString;

use git_vws::git;
use git_vws::layout;
use git_vws::model::{AgentId, RepoPath};
use git_vws::output::{Form, report};

use super::args::{self, ExpectArgs, FormArgs};
use super::report::Failure;
use super::session::{Session, read_input};

#[derive(clap::Args, Debug)]
pub(crate) struct ReferenceArgs {
    /// Whose changes they are
    #[arg(value_name = "sender")]
    agent: AgentId,
    /// Files that the sender changed, at most 32
    #[arg(value_name = "path", required = true)]
    paths: Vec<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ImportArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    expect: ExpectArgs,
    /// The reference, or '-' to read it from standard input
    #[arg(long, value_name = "file")]
    reference: OsString,
    /// The workspace that takes the files
    #[arg(value_name = "recipient")]
    agent: AgentId,
    /// Files that the reference names
    #[arg(value_name = "path", required = true)]
    paths: Vec<OsString>,
}

pub(crate) fn reference(args: &ReferenceArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(Form::Lines)?;
    let paths = paths(&args.paths)?;
    let store = session.store();
    layout::import(&store, &args.agent)?;
    let reference = store.reference(&args.agent, &paths)?;
    out.bytes(format!("{}\n", reference.to_json()).as_bytes())?;
    Ok(out.finish()?)
}

pub(crate) fn import(args: &ImportArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let paths = paths(&args.paths)?;
    let text = if args.reference == "-" {
        read_input()?
    } else {
        std::fs::read(&args.reference).map_err(|e| git::Error::io("read", &args.reference, e))?
    };
    let store = session.store();
    let reference = store.parse_reference(&text)?;
    let terms = args.expect.terms();
    let done = layout::import_reference(&store, &args.agent, &reference, &paths, terms)?;
    out.record(&report::published(&done))?;
    Ok(out.finish()?)
}

fn paths(args: &[OsString]) -> Result<Vec<RepoPath>, Failure> {
    let mut paths: Vec<RepoPath> = args.iter().map(args::path).collect::<Result<_, _>>()?;
    paths.sort();
    paths.dedup();
    Ok(paths)
}
