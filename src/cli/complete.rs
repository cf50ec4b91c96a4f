//! `git vws __complete`: the candidates for the last word of a command line, for the scripts in
//! `completions/`.
//!
//! Everything comes from the parser's own types: what a word stands for is told by the name of its
//! value (`agent`, `path`, `journal-id`, ...), so a new command completes without a line here. Ids
//! and paths are read live from the refs; nothing is captured, and what cannot be read completes to
//! nothing.
//!
//! Prints one candidate a line, with a tab and a few words after it; or `:files` or `:command`,
//! where the shell knows better. A candidate that ends with `/` or `=` wants to go on.

use clap::{Arg, ArgAction, Command};
use git_vws::git::tree;
use git_vws::integrate::{self, journal};
use git_vws::layout::Choice;
use git_vws::model::quote::quote_c;
use git_vws::model::{AgentId, RepoPath};
use git_vws::workspace::Side;

use super::report::Failure;
use super::session::{Session, print};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The words after 'git vws', the one to complete last
    #[arg(value_name = "word", last = true)]
    words: Vec<String>,
}

/// A candidate and what it is.
type Candidate = (String, String);

pub(crate) fn run(args: &Args, root: Command) -> Result<(), Failure> {
    let (last, before) = match args.words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let line = Line::read(root, before);
    let mut text = String::new();
    for (candidate, what) in line.candidates(last) {
        let is_plain = |c: char| !c.is_control();
        if candidate.starts_with(last) && candidate.chars().all(is_plain) {
            text.push_str(&candidate);
            if !what.is_empty() {
                text.push('\t');
                text.push_str(&what);
            }
            text.push('\n');
        } else if candidate.starts_with(':') {
            text.push_str(&candidate);
            text.push('\n');
        }
    }
    print(&text)
}

/// A command line up to the word that is completed.
struct Line {
    /// The command that the words name.
    command: Command,
    /// Its names, without `git vws`.
    names: Vec<String>,
    /// The arguments that are not options.
    positional: Vec<String>,
    /// The option whose value comes next.
    waiting: Option<Arg>,
    /// Whether there was a `--`.
    after_dashes: bool,
}

impl Line {
    fn read(mut root: Command, words: &[String]) -> Self {
        root.build();
        let mut line = Line {
            command: root,
            names: Vec::new(),
            positional: Vec::new(),
            waiting: None,
            after_dashes: false,
        };
        for word in words {
            line.push(word);
        }
        line
    }

    fn push(&mut self, word: &str) {
        if self.waiting.take().is_some() {
            return;
        }
        if self.after_dashes {
            self.positional.push(word.to_owned());
        } else if word == "--" {
            self.after_dashes = true;
        } else if word.len() > 1 && word.starts_with('-') {
            self.waiting = option(&self.command, word).filter(|_| !word.contains('='));
        } else if self.positional.is_empty() && self.command.find_subcommand(word).is_some() {
            let below = self.command.find_subcommand(word).cloned();
            self.command = below.expect("invariant: it was just found");
            self.names.push(word.to_owned());
        } else {
            self.positional.push(word.to_owned());
        }
    }

    fn candidates(&self, last: &str) -> Vec<Candidate> {
        if let Some(arg) = &self.waiting {
            return self.values(arg, last);
        }
        if !self.after_dashes && last.starts_with('-') {
            return match last.split_once('=') {
                None => self.options(),
                Some((name, value)) => {
                    let Some(arg) = option(&self.command, name) else {
                        return Vec::new();
                    };
                    let with_name = |(text, what): Candidate| match text.starts_with(':') {
                        true => (text, what),
                        false => (format!("{name}={text}"), what),
                    };
                    let values = self.values(&arg, value);
                    values.into_iter().map(with_name).collect()
                }
            };
        }
        if self.command.has_subcommands() {
            let shown = self.command.get_subcommands().filter(|c| !c.is_hide_set());
            return shown
                .map(|c| (c.get_name().to_owned(), text(c.get_about())))
                .collect();
        }
        let positionals: Vec<&Arg> = self.command.get_positionals().collect();
        let is_last = |arg: &&&Arg| arg.is_last_set();
        let arg = match self.after_dashes {
            true => positionals.iter().find(is_last).or(positionals.last()),
            false => {
                let plain: Vec<_> = positionals.iter().filter(|arg| !is_last(arg)).collect();
                let many = plain.last().filter(|arg| is_many(arg));
                plain.get(self.positional.len()).or(many).copied()
            }
        };
        arg.map_or_else(Vec::new, |arg| self.values(arg, last))
    }

    fn options(&self) -> Vec<Candidate> {
        let shown = self
            .command
            .get_arguments()
            .filter(|arg| !arg.is_hide_set() && !is_everywhere(arg));
        shown
            .filter_map(|arg| {
                let name = arg.get_long()?;
                let end = if takes_value(arg) { "=" } else { "" };
                Some((format!("--{name}{end}"), text(arg.get_help())))
            })
            .collect()
    }

    /// The values that an argument may have.
    fn values(&self, arg: &Arg, start: &str) -> Vec<Candidate> {
        let possible = arg.get_possible_values();
        if !possible.is_empty() {
            let one = |value: clap::builder::PossibleValue| {
                (value.get_name().to_owned(), text(value.get_help()))
            };
            return possible.into_iter().map(one).collect();
        }
        let name = arg.get_value_names().and_then(|names| names.first());
        let live = match name.map(|name| name.as_str()).unwrap_or_default() {
            "agent" | "agent[@n]" | "sender" | "recipient" | "parent" => self.agents(),
            "path" | "from" | "to" | "pathspec" => self.paths(start),
            "journal-id" => journal_ids(),
            "rev" | "base" | "commit" => branches(),
            "revision" | "n" => self.revisions(),
            "backend" => Some(words(&Choice::ALL.map(Choice::as_str))),
            "command" => Some(words(&[":command"])),
            "file|-" | "file" | "dir" => Some(words(&[":files"])),
            _ => None,
        };
        live.unwrap_or_default()
    }

    /// Whether it is about what is offered, not about a workspace.
    fn decides(&self) -> bool {
        let name = self.names.first().map(String::as_str);
        matches!(name, Some("changes" | "accept" | "reject"))
    }

    fn agents(&self) -> Option<Vec<Candidate>> {
        let session = Session::open().ok()?;
        let store = session.store();
        let mut agents: Vec<Candidate> = Vec::new();
        if self.decides() {
            for proposal in integrate::changes(&store, None).ok()? {
                let waiting = proposal.undecided();
                if waiting > 0 || self.names[0] == "changes" {
                    agents.push((proposal.agent.to_string(), format!("{waiting} waiting")));
                }
            }
        } else {
            for listed in store.list().ok()? {
                let what = match &listed.state {
                    Ok(workspace) => format!("revision {}", workspace.revision()),
                    Err(_) => "damaged".to_owned(),
                };
                agents.push((listed.agent.to_string(), what));
            }
        }
        agents.sort();
        agents.dedup_by(|one, other| one.0 == other.0);
        Some(agents)
    }

    /// The paths in the folder that the word has got to, of the agent that was named before.
    fn paths(&self, start: &str) -> Option<Vec<Candidate>> {
        let session = Session::open().ok()?;
        let store = session.store();
        let agent = self.positional.first();
        let agent = agent.map(|id| AgentId::new(id.split('@').next().unwrap_or_default()));
        if self.decides() {
            let agent = agent?.ok()?;
            let proposals = integrate::changes(&store, Some((&agent, None))).ok()?;
            let changes = proposals.iter().flat_map(|proposal| &proposal.changes);
            let path = |change: &integrate::ProposedChange| {
                let path = String::from_utf8(change.path.to_vec()).ok()?;
                Some((path, change.state.as_str().to_owned()))
            };
            return Some(changes.filter_map(path).collect());
        }
        let Some(Ok(agent)) = agent else {
            return Some(words(&[":files"]));
        };
        let workspace = store.load(&agent).ok()?;
        let folder = start.rsplit_once('/').map(|(folder, _)| folder);
        let under = folder.map(RepoPath::new).transpose().ok()?;
        let found = store
            .ls(&workspace, Side::Overlay, under.as_ref(), false)
            .ok()?;
        let path = |(path, entry): (bstr::BString, tree::Entry)| {
            // One that would have to be quoted cannot be typed as it is listed.
            let quoted = quote_c(path.as_ref(), false);
            let plain = quoted.as_ref() == path && !path.contains(&b'"');
            let path = String::from_utf8(path.into()).ok().filter(|_| plain)?;
            Some(match entry.mode {
                tree::TREE => (format!("{path}/"), String::new()),
                _ => (path, String::new()),
            })
        };
        Some(found.into_iter().filter_map(path).collect())
    }

    /// The pinned revisions of the agent that was named before, and the current one.
    fn revisions(&self) -> Option<Vec<Candidate>> {
        let session = Session::open().ok()?;
        let store = session.store();
        let agent = AgentId::new(self.positional.first()?).ok()?;
        let current = store.load(&agent).ok()?.revision();
        let snaps = store.snaps(&agent).ok()?;
        let pinned = snaps
            .into_iter()
            .map(|(n, _)| (n.to_string(), "pinned".to_owned()));
        let mut all: Vec<_> = pinned.filter(|(n, _)| *n != current.to_string()).collect();
        all.push((current.to_string(), "current".to_owned()));
        Some(all)
    }
}

fn journal_ids() -> Option<Vec<Candidate>> {
    let session = Session::open().ok()?;
    let entries = journal::list(session.store()).ok()?;
    let one = |summary: journal::Summary| {
        let what = match &summary.entry {
            Ok(entry) => {
                let kind = match entry.kind {
                    journal::Kind::Accept => "accept",
                    journal::Kind::Undo { .. } => "undo",
                };
                let undone = if entry.is_undone() { ", undone" } else { "" };
                format!("{kind} of {}{undone}", entry.steps.len())
            }
            Err(_) => "damaged".to_owned(),
        };
        (summary.id.to_string(), what)
    };
    Some(entries.into_iter().map(one).collect())
}

fn branches() -> Option<Vec<Candidate>> {
    let session = Session::open().ok()?;
    let refs = session.repository().refs();
    let mut all = words(&["HEAD"]);
    for prefix in ["refs/heads/", "refs/tags/"] {
        for name in refs.list(prefix).ok()?.keys() {
            all.push((name[prefix.len()..].to_owned(), String::new()));
        }
    }
    Some(all)
}

/// The option that a word names: `--name`, `--name=value` or `-n`.
fn option(command: &Command, word: &str) -> Option<Arg> {
    let name = word.split('=').next().unwrap_or(word);
    let is_it = |arg: &&Arg| match name.strip_prefix("--") {
        Some(long) => arg.get_long() == Some(long),
        None => arg.get_short().is_some_and(|short| name.ends_with(short)),
    };
    command
        .get_arguments()
        .find(is_it)
        .filter(|arg| takes_value(arg))
        .cloned()
}

/// Whether the parser has added it by itself.
fn is_everywhere(arg: &Arg) -> bool {
    ["help", "version"].contains(&arg.get_id().as_str())
}

fn is_many(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Append)
}

fn takes_value(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
}

fn words(words: &[&str]) -> Vec<Candidate> {
    let plain = |word: &&str| ((*word).to_owned(), String::new());
    words.iter().map(plain).collect()
}

fn text(styled: Option<&clap::builder::StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn complete(words: &[&str]) -> Vec<String> {
        let (last, before) = words.split_last().unwrap();
        let before: Vec<String> = before.iter().map(|word| (*word).to_owned()).collect();
        let line = Line::read(crate::cli::command(), &before);
        let all = line.candidates(last).into_iter().map(|(text, _)| text);
        all.filter(|text| text.starts_with(last) || text.starts_with(':'))
            .collect()
    }

    #[test]
    fn commands_options_and_values_come_from_the_parser() {
        let top = complete(&[""]);
        assert!(top.contains(&"overlay".to_owned()) && top.contains(&"run".to_owned()));
        assert!(!top.contains(&"__complete".to_owned()));
        assert_eq!(complete(&["overlay", "crea"]), ["create"]);
        assert_eq!(complete(&["overlay", "create", "--ba"]), ["--base="]);
        let modes = ["--mode=virtual"];
        assert_eq!(complete(&["overlay", "create", "--mode=v"]), modes);
        assert_eq!(
            complete(&["overlay", "create", "--mode", "w"]),
            ["worktree"]
        );
        assert_eq!(complete(&["overlay", "write", "--chmod", "+"]), ["+x"]);
        assert_eq!(
            complete(&["materialize", "--backend=over"]),
            ["--backend=overlay"]
        );
        assert_eq!(complete(&["exec", "a", "--", ""]), [":command"]);
        assert_eq!(complete(&["accept", "--dirty-from", ""]), [":files"]);
        assert_eq!(complete(&["accept", "--dirty-from=x"]), [":files"]);
        assert_eq!(complete(&["nonsense", "x"]), Vec::<String>::new());
    }
}
