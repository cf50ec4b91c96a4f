//! `git vws status`: one screen for a person. Its text is not stable; records are in `overlay
//! list`, `changes` and `journal`.

use std::io::{self, IsTerminal};

use git_vws::git;
use git_vws::integrate::{self, Held, Overview, Place, Seen, Standing};
use git_vws::model::{AgentId, sanitize_terminal};

use super::report::Failure;
use super::session::{self, Session, count_of, print};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {}

/// What a piece of text is about.
#[derive(Clone, Copy)]
enum Ink {
    Heading,
    Name,
    Waits,
    Wrong,
}

/// Colours, or none of them.
struct Paint {
    on: bool,
}

impl Paint {
    /// As `color.vws` says, or else `color.ui`; git's words for it.
    fn new(session: &Session) -> Result<Self, Failure> {
        let config = session.repository().config()?;
        for key in ["color.vws", "color.ui"] {
            let Some(value) = config.string(key) else {
                continue;
            };
            return match value.to_ascii_lowercase().as_str() {
                "always" => Ok(Paint { on: true }),
                "never" => Ok(Paint { on: false }),
                "auto" => Ok(Self::auto()),
                _ => match config.bool(key) {
                    Ok(wanted) => Ok(match wanted {
                        Some(false) => Paint { on: false },
                        _ => Self::auto(),
                    }),
                    Err(_) => Err(git::Error::Config {
                        key: key.to_owned(),
                        value,
                        why: "expected always, never, auto, true or false",
                    }
                    .into()),
                },
            };
        }
        Ok(Self::auto())
    }

    fn auto() -> Self {
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Paint {
            on: io::stdout().is_terminal() && !dumb,
        }
    }

    /// Makes a text safe to print, and paints it.
    fn text(&self, ink: Ink, text: &str) -> String {
        let text = sanitize_terminal(text.into());
        let code = match ink {
            Ink::Heading => "1",
            Ink::Name => "36",
            Ink::Waits => "33",
            Ink::Wrong => "31",
        };
        match self.on {
            true => format!("\x1b[{code}m{text}\x1b[m"),
            false => text,
        }
    }
}

pub(crate) fn run(_: &Args, session: &Session) -> Result<(), Failure> {
    let paint = Paint::new(session)?;
    let overview = integrate::overview(&session.store())?;
    let top = session.repository().work_dir().map(|top| top.to_owned());
    let mut screen = String::new();
    if overview.agents.is_empty() {
        screen.push_str("no workspaces, and nothing waits for a decision\n");
    } else {
        let heading = match overview.agents.len() {
            1 => "1 agent".to_owned(),
            count => format!("{count} agents"),
        };
        screen.push_str(&paint.text(Ink::Heading, &heading));
        screen.push('\n');
    }
    let names = overview.agents.iter().map(|seen| seen.agent.as_str().len());
    let width = names.max().unwrap_or(0);
    for seen in &overview.agents {
        let name = format!("{:width$}", seen.agent.as_str());
        let revision = match &seen.workspace {
            Some(held) => held.revision.map_or("-".to_owned(), |n| format!("r{n}")),
            None => "-".to_owned(),
        };
        screen.push_str("  ");
        screen.push_str(&paint.text(Ink::Name, &name));
        screen.push_str(&format!("  {revision:<4}  "));
        screen.push_str(&facts(seen, top.as_deref(), &paint).join(", "));
        screen.push('\n');
    }
    for id in &overview.interrupted {
        let text = format!("journal entry {id} was interrupted, or is under way");
        screen.push_str(&paint.text(Ink::Wrong, &text));
        screen.push('\n');
    }
    if session::advice(Some(session)) {
        let next = next(&overview);
        if !next.is_empty() {
            screen.push('\n');
            screen.push_str(&paint.text(Ink::Heading, "next"));
            screen.push('\n');
        }
        let width = next.iter().map(|(command, _)| command.len()).max();
        for (command, what) in &next {
            let width = width.unwrap_or(0);
            screen.push_str(&format!("  git vws {command:width$}  {what}\n"));
        }
    }
    print(&screen)
}

/// What there is to say of an agent, the most urgent first.
fn facts(seen: &Seen, top: Option<&std::path::Path>, paint: &Paint) -> Vec<String> {
    let mut facts = Vec::new();
    let mut say = |ink: Option<Ink>, text: &str| {
        facts.push(match ink {
            Some(ink) => paint.text(ink, text),
            None => sanitize_terminal(text.into()),
        });
    };
    let held = seen.workspace.as_ref();
    if let Some(damage) = held.and_then(|held| held.damage.as_ref()) {
        say(Some(Ink::Wrong), &format!("damaged: {damage}"));
    }
    if seen.waiting > 0 {
        let waits = if seen.waiting == 1 { "waits" } else { "wait" };
        let text = format!("{} {waits}", count_of(seen.waiting, "change"));
        say(Some(Ink::Waits), &text);
    }
    if seen.blocked > 0 {
        let text = format!("{} blocked", count_of(seen.blocked, "change"));
        say(Some(Ink::Wrong), &text);
    }
    match held.and_then(|held| held.directory.as_ref()) {
        Some(Place::Open(path)) => {
            let short = top.and_then(|top| path.strip_prefix(top).ok());
            let path = short.unwrap_or(path).display();
            say(None, &format!("directory open at {path}"));
        }
        Some(Place::Lost(why)) => say(Some(Ink::Wrong), why),
        None => {}
    }
    for below in held.into_iter().flat_map(|held| &held.below) {
        let parent = &below.parent.agent;
        match below.standing {
            Standing::Current => say(None, &format!("on {parent}")),
            other => {
                let text = format!("on {parent} ({})", other.as_str());
                say(Some(Ink::Waits), &text);
            }
        }
    }
    for (with, &paths) in &seen.collides {
        let with = with.as_ref().map_or("your working tree", AgentId::as_str);
        let text = format!("collides with {with} at {}", count_of(paths, "path"));
        say(Some(Ink::Wrong), &text);
    }
    if held.is_some_and(|held| held.unproposed) {
        say(Some(Ink::Waits), "edits that are not proposed");
    }
    if seen.accepted > 0 {
        say(None, &format!("{} accepted", seen.accepted));
    }
    if seen.rejected > 0 {
        say(None, &format!("{} rejected", seen.rejected));
    }
    if held.is_some_and(|held| held.read_only) {
        say(None, "read-only");
    }
    if held.is_none() {
        say(None, "released");
    }
    if facts.is_empty() {
        facts.push("nothing edited".to_owned());
    }
    facts
}

/// Whether there is a directory that somebody should end: one that stays and is there is none.
fn is_to_settle(held: &Held) -> bool {
    let passes = held.stays && matches!(held.directory, Some(Place::Open(_)));
    held.directory.is_some() && !passes
}

/// What to do next: a command and what it does, one of a kind.
fn next(overview: &Overview) -> Vec<(String, &'static str)> {
    let first = |is: &dyn Fn(&Seen) -> bool| {
        let found = overview.agents.iter().find(|seen| is(seen));
        found.map(|seen| seen.agent.as_str())
    };
    let held =
        |is: fn(&Held) -> bool| first(&move |seen: &Seen| seen.workspace.as_ref().is_some_and(is));
    let mut next = Vec::new();
    if overview.agents.is_empty() {
        next.push((
            "run <agent> -- <command>".to_owned(),
            "make a workspace, run a command in it, propose what it made",
        ));
    }
    if let Some(agent) = first(&|seen| seen.waiting > 0) {
        next.push((format!("changes -p {agent}"), "look at what is offered"));
        next.push((
            format!("accept {agent}"),
            "merge it into your working tree ('reject' turns it down)",
        ));
    }
    if first(&|seen| !seen.collides.is_empty()).is_some() {
        let what = "see which paths collide, before anybody decides";
        next.push(("conflicts".to_owned(), what));
    }
    let is_behind = |held: &Held| held.below.iter().any(|b| b.standing == Standing::Behind);
    if held(is_behind).is_some() {
        let what = "see what is behind the work that it rests on";
        next.push(("stack --status".to_owned(), what));
    }
    if let Some(agent) = held(is_to_settle) {
        let what = "capture the directory and remove it";
        next.push((format!("settle {agent}"), what));
    }
    if let Some(agent) = held(|held| held.unproposed && (held.stays || held.directory.is_none())) {
        next.push((format!("propose {agent}"), "offer the edits"));
    }
    if let Some(id) = overview.last_accept {
        next.push((format!("undo {id}"), "take the last accept back"));
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paint_makes_safe_what_it_paints() {
        let text = "a\x1b[31mb";
        let plain = Paint { on: false }.text(Ink::Name, text);
        assert_eq!(plain, r"a\x1b[31mb");
        let painted = Paint { on: true }.text(Ink::Name, text);
        assert_eq!(painted, "\x1b[36ma\\x1b[31mb\x1b[m");
    }
}
