//! `git vws mirror` and `events`: what user interfaces look at.

use std::time::Duration;

use git_vws::events::{self, Logged};
use git_vws::git;
use git_vws::mirror;
use git_vws::model::path_from_json;
use git_vws::output::{Form, Record, Value, upkeep as records};

use super::args::FormArgs;
use super::report::Failure;
use super::session::Session;

/// How often a follower looks for new events.
const LOOK: Duration = Duration::from_millis(100);

#[derive(clap::Args, Debug)]
pub(crate) struct MirrorArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Write it anew from the refs
    #[arg(long, conflicts_with = "verify")]
    rebuild: bool,
    /// Print in what it differs from the refs, change nothing
    #[arg(long)]
    verify: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct EventsArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Wait for more
    #[arg(short, long)]
    follow: bool,
    /// Only what came after the event with this id
    #[arg(long, value_name = "id")]
    since: Option<u64>,
}

pub(crate) fn mirror(args: &MirrorArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let store = session.store();
    if args.verify {
        let differences = store.verify_mirror()?;
        for difference in &differences {
            out.record(&records::difference(difference))?;
        }
        out.finish()?;
        return match differences.is_empty() {
            true => Ok(()),
            false => Err(Failure::Partial {
                what: "the mirror differs from the refs".to_owned(),
                hint: Some("'git vws mirror --rebuild' writes it anew"),
            }),
        };
    }
    let held = match args.rebuild {
        true => None,
        false => mirror::read(session.repository()),
    };
    let all = match held {
        Some(all) => all,
        None => store.rebuild_mirror()?,
    };
    for shown in &all {
        out.record(&records::shown(shown))?;
    }
    Ok(out.finish()?)
}

pub(crate) fn events(args: &EventsArgs, session: &Session) -> Result<(), Failure> {
    let form = args.form.form();
    let failed = |error| git::Error::io("read", "events.jsonl", error);
    if !args.follow {
        let mut out = session.printer(form)?;
        for event in events::read(session.repository(), args.since).map_err(failed)? {
            print(&mut out, form, &event)?;
        }
        return Ok(out.finish()?);
    }
    let wait = || {
        std::thread::sleep(LOOK);
        true
    };
    for event in events::follow(session.repository(), args.since, wait).map_err(failed)? {
        // Out at once: somebody waits for it.
        let mut out = session.printer(form)?;
        print(&mut out, form, &event.map_err(failed)?)?;
        out.finish()?;
    }
    Ok(())
}

fn print(out: &mut super::session::Out, form: Form, event: &Logged) -> Result<(), Failure> {
    if form == Form::Json {
        out.bytes(&event.line)?;
        return Ok(out.bytes(b"\n")?);
    }
    let object: serde_json::Value = serde_json::from_slice(&event.line).unwrap_or_default();
    let text = |key: &str| object[key].as_str().map(str::to_owned);
    let paths = object["paths"].as_array().map(Vec::as_slice);
    let paths = paths.unwrap_or_default().iter().filter_map(path_from_json);
    let record = Record::new()
        .with("id", event.id)
        .maybe("time", object["time"].as_u64())
        .maybe("event", text("event"))
        .maybe("agent", text("agent"))
        .maybe("session", text("session"))
        .maybe("revision", object["revision"].as_u64())
        .list("path", "paths", paths.map(Value::Path))
        .maybe("path-count", object["pathCount"].as_u64());
    Ok(out.record(&record)?)
}
