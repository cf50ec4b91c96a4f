//! A page for each command: what the parser knows, and the prose.

use clap::{Arg, Command};

use super::super::usage;
use super::correctness;
use super::formats;
use super::roff::Roff;

/// A page.
pub(super) struct Page {
    pub(super) name: String,
    pub(super) section: u8,
    pub(super) text: String,
}

macro_rules! texts {
    ($($name:literal)*) => {
        /// The prose of each page.
        const TEXTS: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("text/", $name, ".txt"))),)*];
    };
}

texts! {
    "git-vws" "accept" "base" "batch" "capture" "changes" "check" "conflicts" "context" "exec" "hook" "import"
    "journal" "log" "materialize" "mcp" "overlay" "propose" "rebase-onto" "recut" "reference"
    "reject" "run" "settle" "snap" "stack" "status" "template" "undo"
    "recover" "sweep" "mirror" "events"
    "version"
}

/// All pages.
pub(super) fn all(mut root: Command) -> Vec<Page> {
    root.build();
    let mut pages = vec![top(&root)];
    for command in root.get_subcommands().filter(|one| !one.is_hide_set()) {
        pages.push(of(command));
    }
    for (name, text) in [
        ("git-vws-formats", formats::page()),
        ("git-vws-correctness", correctness::page()),
    ] {
        pages.push(Page {
            name: name.to_owned(),
            section: 7,
            text,
        });
    }
    pages
}

/// Lines of prose that belong together.
#[derive(Debug, PartialEq)]
pub(super) enum Block<'t> {
    Paragraph(String),
    Tagged(&'t str, String),
    Literal(Vec<&'t str>),
}

/// The sections of a text: heading and blocks.
pub(super) fn sections(text: &str) -> Vec<(&str, Vec<Block<'_>>)> {
    let mut sections: Vec<(&str, Vec<Block<'_>>)> = Vec::new();
    // Whether the next line goes on with the last block.
    let mut open = false;
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("# ") {
            sections.push((heading, Vec::new()));
            open = false;
            continue;
        }
        let Some((_, blocks)) = sections.last_mut() else {
            continue;
        };
        if line.starts_with("% ") {
            continue;
        }
        if line.is_empty() {
            open = false;
        } else if let Some(literal) = line.strip_prefix("    ") {
            match blocks.last_mut() {
                Some(Block::Literal(lines)) if open => lines.push(literal),
                _ => blocks.push(Block::Literal(vec![literal])),
            }
            open = true;
        } else if let Some(term) = line.strip_prefix("= ") {
            blocks.push(Block::Tagged(term, String::new()));
            open = true;
        } else {
            match blocks.last_mut() {
                Some(Block::Paragraph(text) | Block::Tagged(_, text)) if open => {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(line.trim_start());
                }
                _ => blocks.push(Block::Paragraph(line.to_owned())),
            }
            open = true;
        }
    }
    sections
}

pub(super) fn print(roff: &mut Roff, blocks: &[Block<'_>]) {
    for block in blocks {
        match block {
            Block::Paragraph(text) => roff.paragraph(text),
            Block::Tagged(term, text) => roff.tagged(&format!("`{term}`"), text),
            Block::Literal(lines) => roff.literal(lines),
        }
    }
}

fn text_of(name: &str) -> &'static str {
    let found = TEXTS.iter().find(|(known, _)| *known == name);
    found.map_or("", |(_, text)| text)
}

fn top(root: &Command) -> Page {
    let mut roff = Roff::new("git-vws", 1);
    roff.section("NAME");
    roff.line("git-vws - virtual workspaces for coding agents, on plain Git");
    roff.section("SYNOPSIS");
    roff.literal(&["git vws <command> [<options>] [<arguments>]"]);
    for (heading, blocks) in sections(text_of("git-vws")) {
        roff.section(heading);
        print(&mut roff, &blocks);
        if heading == "DESCRIPTION" {
            roff.section("COMMANDS");
            for command in root.get_subcommands().filter(|one| !one.is_hide_set()) {
                let term = format!("`git-vws-{}`(1)", command.get_name());
                roff.tagged(&term, &about(command));
            }
        }
    }
    roff.section("SEE ALSO");
    roff.line("`git`(1), `git-worktree`(1), `git-vws-formats`(7), `git-vws-correctness`(7)");
    Page {
        name: "git-vws".to_owned(),
        section: 1,
        text: roff.finish(),
    }
}

fn of(command: &Command) -> Page {
    let name = command.get_name();
    let full = format!("git-vws-{name}");
    let mut roff = Roff::new(&full, 1);
    let text = sections(text_of(name));
    let below: Vec<&Command> = command.get_subcommands().collect();
    roff.section("NAME");
    let about = about(command);
    let first = about.chars().next().map(|c| c.to_lowercase().to_string());
    let rest = about.get(1..).unwrap_or_default();
    roff.line(&format!("{full} - {}{rest}", first.unwrap_or_default()));
    roff.section("SYNOPSIS");
    let usages: Vec<String> = match below.is_empty() {
        true => vec![usage::usage_of(command)],
        false => below.iter().map(|one| usage::usage_of(one)).collect(),
    };
    roff.literal(&usages.iter().map(String::as_str).collect::<Vec<_>>());
    let is_below = |heading: &str| below.iter().any(|one| one.get_name() == heading);
    let mut had_status = false;
    for (at, (heading, blocks)) in text.iter().enumerate() {
        if !is_below(heading) {
            roff.section(heading);
            print(&mut roff, blocks);
            had_status |= *heading == "EXIT STATUS";
        }
        if at == 0 {
            arguments(&mut roff, command, &below, &text);
        }
    }
    if text.is_empty() {
        arguments(&mut roff, command, &below, &text);
    }
    if !had_status {
        roff.section("EXIT STATUS");
        roff.line(
            "0 when it was done, 1 when it was refused (the kind stands in brackets at the end of \
             the message), 128 when it failed, 129 for wrong usage. See `git-vws`(1).",
        );
    }
    roff.section("SEE ALSO");
    roff.line("`git-vws`(1), `git-vws-formats`(7)");
    Page {
        name: full,
        section: 1,
        text: roff.finish(),
    }
}

/// The options of a command; of one that has others below it, those with their options.
fn arguments(
    roff: &mut Roff,
    command: &Command,
    below: &[&Command],
    text: &[(&str, Vec<Block<'_>>)],
) {
    if below.is_empty() {
        roff.section("OPTIONS");
        options(roff, command);
        return;
    }
    roff.section("COMMANDS");
    for one in below {
        roff.subsection(one.get_name());
        roff.paragraph(&format!("{}.", about(one)));
        let own = text.iter().find(|(heading, _)| *heading == one.get_name());
        if let Some((_, blocks)) = own {
            print(roff, blocks);
        }
        options(roff, one);
    }
}

fn options(roff: &mut Roff, command: &Command) {
    let shown = |arg: &&Arg| !arg.is_hide_set() && arg.get_id() != "help";
    for arg in command.get_positionals().filter(shown) {
        let name = value_name(arg);
        roff.tagged(&format!("<{name}>"), &help(arg));
    }
    for arg in command.get_opts().filter(shown) {
        roff.tagged(&spelled(arg), &help(arg));
    }
    let flags = command
        .get_arguments()
        .filter(shown)
        .filter(|arg| !arg.is_positional() && !arg.get_action().takes_values());
    for arg in flags {
        roff.tagged(&spelled(arg), &help(arg));
    }
}

fn value_name(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(|names| names.first());
    name.map_or_else(|| arg.get_id().to_string(), ToString::to_string)
}

/// `-f`, `--force`, or `--base=<rev>`.
fn spelled(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("`-{short}`"));
    let long = arg.get_long().map(|long| format!("`--{long}`"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let names = names.join(", ");
    match arg.get_action().takes_values() {
        true => format!("{names}=<{}>", value_name(arg)),
        false => names,
    }
}

fn help(arg: &Arg) -> String {
    let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let values: Vec<String> = arg
        .get_possible_values()
        .iter()
        .filter(|_| arg.get_action().takes_values())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    match values.is_empty() {
        true => format!("{text}."),
        false => format!("{text}: {}.", values.join(", ")),
    }
}

fn about(command: &Command) -> String {
    command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_command_has_its_prose_and_examples() {
        let mut missing = Vec::new();
        for command in crate::cli::command().get_subcommands() {
            let name = command.get_name();
            let text = sections(text_of(name));
            let has = |heading| text.iter().any(|(one, _)| *one == heading);
            let complete = has("DESCRIPTION") && has("EXAMPLES");
            if !complete && !command.is_hide_set() {
                missing.push(name.to_owned());
            }
        }
        assert!(
            missing.is_empty(),
            "write src/cli/manual/text/<command>.txt and name it in page.rs: {missing:?}"
        );
    }

    #[test]
    fn prose_is_read_in_blocks() {
        let text = "# A\none\ntwo\n\n    lit\n\n    more\n% hidden\n= term\nwhat\n  it is\n# B\n";
        let read = sections(text);
        assert_eq!(read.len(), 2);
        assert_eq!(
            read[0].1,
            [
                Block::Paragraph("one two".to_owned()),
                Block::Literal(vec!["lit"]),
                Block::Literal(vec!["more"]),
                Block::Tagged("term", "what it is".to_owned()),
            ]
        );
    }
}
