//! `git vws recover` and `sweep`: after a crash, and after a while.

use std::io::IsTerminal;
use std::time::SystemTime;

use git_vws::integrate::upkeep;
use git_vws::model::AgentId;
use git_vws::output::upkeep as records;
use git_vws::workspace::{Policy, RecoverOptions};

use super::args::FormArgs;
use super::report::Failure;
use super::session::{Session, count_of, hint, say};

#[derive(clap::Args, Debug)]
pub(crate) struct RecoverArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Take a damaged workspace out of git's way; what is whole goes to the trash
    #[arg(long, value_name = "agent", conflicts_with_all = ["force", "deep"])]
    clear: Option<AgentId>,
    /// Remove every lock file on our refs: no git is running
    #[arg(long)]
    force: bool,
    /// Look for every object of every workspace
    #[arg(long)]
    deep: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    form: FormArgs,
    /// Show what would go, change nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

pub(crate) fn recover(args: &RecoverArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    if let Some(agent) = &args.clear {
        let cleared = upkeep::clear(&session.store(), agent)?;
        out.record(&records::cleared(&cleared))?;
        return Ok(out.finish()?);
    }
    let options = RecoverOptions {
        force: args.force,
        deep: args.deep,
        ..RecoverOptions::new(SystemTime::now())
    };
    let report = upkeep::recover(&session.store(), options)?;
    for record in records::recovered(&report) {
        out.record(&record)?;
    }
    out.finish()?;
    for damage in &report.refs.damaged {
        if let Some(agent) = &damage.agent {
            let text = format!("'git vws recover --clear {agent}' takes it out of git's way");
            say("hint", &text);
        }
    }
    if report.refs.locks.iter().any(|lock| !lock.removed) {
        let text = "a lock may be somebody's; with --force it goes: when no git is running";
        say("hint", text);
    }
    for shown in &report.refs.mirror.forgotten {
        let text = format!(
            "workspace '{}' had undecided edits, and is gone",
            shown.agent
        );
        say("warning", &text);
    }
    if report.needs_attention() {
        return Err(Failure::Partial {
            what: "not all is in order; the records say what is not".to_owned(),
            hint: None,
        });
    }
    Ok(())
}

pub(crate) fn sweep(args: &SweepArgs, session: &Session) -> Result<(), Failure> {
    let mut out = session.printer(args.form.form())?;
    let first = !args.dry_run && is_first_use(session);
    let dry_run = args.dry_run || first;
    let now = SystemTime::now();
    let swept = upkeep::sweep(&session.store(), Policy::default(), now, dry_run)?;
    for record in records::swept(&swept) {
        out.record(&record)?;
    }
    out.finish()?;
    if first {
        let text = format!(
            "nothing was removed: this shows what would go ({}); 'git vws sweep' again removes it",
            count_of(swept.items.len(), "item")
        );
        say("hint", &text);
    }
    Ok(())
}

/// Says that an accept or undo was interrupted, and what to do: for commands that only look.
pub(crate) fn remark_interrupted(session: &Session) {
    if let Ok(Some(id)) = upkeep::interrupted(&session.store()) {
        say("warning", &format!("journal entry {id} was interrupted"));
        hint("'git vws recover' ends it, or takes it back");
    }
}

/// Whether a person sweeps this repository for the first time: they are shown what would go.
fn is_first_use(session: &Session) -> bool {
    if !std::io::stdout().is_terminal() {
        return false;
    }
    let folder = session.repository().relo_dir();
    let made = std::fs::create_dir_all(&folder)
        .and_then(|()| std::fs::File::create_new(folder.join("sweep-shown")));
    // Where it cannot be noted, it is shown every time.
    !made.is_err_and(|error| error.kind() == std::io::ErrorKind::AlreadyExists)
}
