//! `git vws overlay diff`: what the agent changed, in git's own lines.

use bstr::ByteSlice;
use git_vws::git::tree::{Change, Entry, GITLINK};
use git_vws::git::{self, ObjectId, Objects};
use git_vws::layout;
use git_vws::model::AgentId;
use git_vws::output::{PathStyle, Record};

use super::args::FormArgs;
use crate::cli::report::Failure;
use crate::cli::session::Session;

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    form: FormArgs,
    /// Print modes, object ids and status (the default)
    #[arg(long, conflicts_with_all = ["name_status", "numstat"])]
    raw: bool,
    /// Print only the status
    #[arg(long, conflicts_with = "numstat")]
    name_status: bool,
    /// Print how many lines were added and deleted, '-' for binary content
    #[arg(long)]
    numstat: bool,
    /// The workspace
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let store = session.store();
    let workspace = layout::import(&store, &args.agent)?;
    let null = null_like(workspace.commit);
    let mut out = session.printer(args.form.form())?;
    let objects = session.repository().objects()?;
    for change in store.diff(&workspace)? {
        let paths = [change.path.as_ref()];
        if args.numstat {
            let lines = count(&objects, &change)?;
            let show = |count: Option<u64>| count.map_or_else(|| "-".to_owned(), |n| n.to_string());
            let (added, deleted) = (lines.map(|(n, _)| n), lines.map(|(_, n)| n));
            let fields = format!("{}\t{}", show(added), show(deleted));
            out.path_line(PathStyle::Tree, &fields, &paths, || {
                record(&change)
                    .maybe("added", added)
                    .maybe("deleted", deleted)
            })?;
            continue;
        }
        let status = change.status().letter();
        let fields = if args.name_status {
            status.to_string()
        } else {
            let mode = |entry: Option<Entry>| entry.map_or(0, |entry| entry.mode);
            let (old, new) = (mode(change.old), mode(change.new));
            let id =
                |entry: Option<Entry>| entry.map_or_else(|| null.clone(), |e| e.id.to_string());
            let (from, to) = (id(change.old), id(change.new));
            format!(":{old:06o} {new:06o} {from} {to} {status}")
        };
        out.path_line(PathStyle::Diff, &fields, &paths, || record(&change))?;
    }
    Ok(out.finish()?)
}

/// The lines added and deleted; `None` for binary content.
fn count(objects: &Objects<'_>, change: &Change) -> Result<Option<(u64, u64)>, Failure> {
    let content = |entry: Option<Entry>| match entry {
        None => Ok(Vec::new()),
        // What git shows of a submodule.
        Some(entry) if entry.mode == GITLINK => {
            Ok(format!("Subproject commit {}\n", entry.id).into_bytes())
        }
        Some(entry) => objects.blob_at(change.path.as_bstr(), entry.id),
    };
    Ok(git::patch::count_lines(
        &content(change.old)?,
        &content(change.new)?,
    ))
}

/// The null id in the hash of another.
fn null_like(id: ObjectId) -> String {
    "0".repeat(id.to_string().len())
}

fn record(change: &Change) -> Record {
    let mode = |entry: Option<Entry>| entry.map(|entry| format!("{:06o}", entry.mode));
    Record::new()
        .with("path", &change.path)
        .with("status", change.status().letter().to_string())
        .maybe("old-mode", mode(change.old))
        .maybe("new-mode", mode(change.new))
        .maybe("old-oid", change.old.map(|entry| entry.id))
        .maybe("new-oid", change.new.map(|entry| entry.id))
}
