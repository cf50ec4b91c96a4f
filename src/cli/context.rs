//! `git vws context`: what every answer about a workspace is based on, and whether what an agent
//! read is still so.

use std::borrow::Cow;

use bstr::{BStr, ByteSlice};
use git_vws::git::ObjectId;
use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::quote::unquote_c;
use git_vws::output::{Form, PathStyle, report};
use git_vws::workspace;

use super::args::FormArgs;
use super::report::Failure;
use super::session::{Session, read_input};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Read '<blob> <path>' lines and say what became of each file
    #[arg(long)]
    check: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    if !args.check {
        out.record(&report::context(&workspace))?;
        return Ok(out.finish()?);
    }
    let mut check = store.context_check(&workspace)?;
    let format = session.repository().format();
    let end = match args.form.form() {
        Form::Nul => b'\0',
        _ => b'\n',
    };
    let input = read_input()?;
    let mut records: Vec<&[u8]> = input.split(|byte| *byte == end).collect();
    // What follows the last end is no record, where it is nothing.
    if records.last().is_some_and(|last| last.is_empty()) {
        records.pop();
    }
    let mut fields = String::new();
    for (at, record) in records.into_iter().enumerate() {
        let (id, path) =
            split(record, end == b'\n').ok_or_else(|| bad(at, "no '<blob> <path>'"))?;
        let blob = id
            .to_str()
            .ok()
            .and_then(|id| ObjectId::from_str_ext(id, format).ok())
            .filter(|_| id.len() == git_vws::git::hex_len(format))
            .ok_or_else(|| bad(at, "no object id"))?;
        let state = check.check(blob, &path);
        fields.clear();
        fields.push_str(state.as_str());
        fields.push(' ');
        fields.extend(id.bytes().map(|byte| char::from(byte.to_ascii_lowercase())));
        let json = || report::freshness(state, blob, &path);
        out.path_line(PathStyle::Tree, &fields, &[&*path], json)?;
    }
    Ok(out.finish()?)
}

/// The id and the path of a record; a path in a line may be C-quoted.
fn split(record: &[u8], line: bool) -> Option<(&BStr, Cow<'_, BStr>)> {
    let (id, path) = record.split_once_str(" ")?;
    let quoted = line && path.starts_with(b"\"");
    let path = match quoted.then(|| unquote_c(path)) {
        Some(Ok((path, []))) => Cow::Owned(path),
        _ => Cow::Borrowed(path.as_bstr()),
    };
    Some((id.as_bstr(), path))
}

fn bad(at: usize, why: &str) -> Failure {
    workspace::Error::Invalid(format!("record {} of the input is {why}", at + 1)).into()
}
