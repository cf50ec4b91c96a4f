//! `git vws overlay read`, `ls` and `stat`.

use std::ffi::OsString;

use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::{Form, PathStyle, report};

use super::args::{self, FormArgs, SideArgs};
use crate::cli::report::Failure;
use crate::cli::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    side: SideArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The file, from the top of the workspace
    #[arg(value_name = "path")]
    path: OsString,
}

#[derive(clap::Args, Debug)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    side: SideArgs,
    /// List what is in folders, not the folders
    #[arg(short = 'r')]
    recursive: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// A folder, from the top of the workspace
    #[arg(value_name = "path")]
    path: Option<OsString>,
}

#[derive(clap::Args, Debug)]
pub(crate) struct StatArgs {
    #[command(flatten)]
    form: FormArgs,
    #[command(flatten)]
    side: SideArgs,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
    /// The path, from the top of the workspace
    #[arg(value_name = "path")]
    path: OsString,
}

pub(crate) fn read(args: &ReadArgs, session: &Session) -> Result<(), Failure> {
    let path = args::path(&args.path)?;
    let bytes = layout::read(&session.store(), &args.agent, args.side.side(), &path)?;
    let mut out = session.printer(Form::Lines)?;
    out.bytes(&bytes)?;
    Ok(out.finish()?)
}

pub(crate) fn ls(args: &LsArgs, session: &Session) -> Result<(), Failure> {
    let under = args.path.as_ref().map(args::folder).transpose()?;
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let found = store.ls(&workspace, args.side.side(), under.as_ref(), args.recursive)?;
    let mut out = session.printer(args.form.form())?;
    for (path, entry) in &found {
        let fields = report::entry_fields(entry);
        out.path_line(PathStyle::Tree, &fields, &[path.as_ref()], || {
            report::entry(path, entry)
        })?;
    }
    Ok(out.finish()?)
}

pub(crate) fn stat(args: &StatArgs, session: &Session) -> Result<(), Failure> {
    let path = args::folder(&args.path)?;
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let found = store.stat(&workspace, args.side.side(), &path)?;
    let mut out = session.printer(args.form.form())?;
    out.record(&report::found(&found))?;
    Ok(out.finish()?)
}
