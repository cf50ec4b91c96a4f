//! Help and usage errors, in git's manner: help goes to standard output; a usage error is one
//! `fatal:` line and the command's synopsis on standard error, with exit code 129.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::session::{self, print, print_error, say};

/// The exit code of usage errors, and of a command that was left out, as for git's own commands.
const USAGE: u8 = 129;

/// The first screen. It fits 80 columns and 24 lines; a test holds it to that, and to naming every
/// command.
pub(crate) const HELP: &str = "\
usage: git vws <command> [<options>] [<arguments>]

the whole job
   run <agent> -- <command>     workspace from the working tree, run, propose
   changes | conflicts          what agents offer, and what would collide
   accept | reject <agent>      merge it into the working tree, or not
   undo | journal | status      take an accept back, see all there is

a workspace: an agent's own view of this repository, no files on disk
   overlay create | list | show | discard | restore | dispose | apply | commit
   overlay ls | stat | read | diff | write | delete | rename | chmod | symlink
   propose | snap | log         offer, pin, list its revisions
   stack | recut | rebase-onto | reference | import   build on others' work

a directory, while a tool needs one
   exec <agent> -- <command>    lay out, run, capture, remove
   materialize | capture | settle | template

for orchestrators, and upkeep
   batch | mcp | hook           on standard input: commands, tools, a harness
   base | context | check | mirror | events | version   what is, what happened
   recover | sweep              after a crash, and after a while

'git vws <command> -h' shows a command. Most print records: -z, --json.
";

/// How the other help texts are laid out.
const TEMPLATE: &str = "usage: {usage}\n\n{about}\n\n{all-args}\n";

/// Gives a command and all below it our layout.
pub(crate) fn styled(command: clap::Command) -> clap::Command {
    command
        .help_template(TEMPLATE)
        .disable_help_subcommand(true)
        .mut_subcommands(styled)
}

/// Prints what the parser wants said: help, the version, or what is wrong with the arguments.
pub(crate) fn answer(error: &clap::Error, command: clap::Command, args: &[OsString]) -> ExitCode {
    let (code, text) = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => (0, error.to_string()),
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => (USAGE, error.to_string()),
        _ => {
            let (what, hint) = describe(error);
            say("fatal", &what);
            if let Some(hint) = hint {
                session::hint(&hint);
            }
            print_error(&synopsis(command, args));
            return ExitCode::from(USAGE);
        }
    };
    match print(&in_gits_words(&text)) {
        Ok(()) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}

/// The synopsis of the command that the arguments name.
fn synopsis(mut command: clap::Command, args: &[OsString]) -> String {
    command.build();
    let mut at = &mut command;
    for arg in args.iter().skip(1).filter_map(|arg| arg.to_str()) {
        if at.find_subcommand(arg).is_none() {
            break;
        }
        at = at
            .find_subcommand_mut(arg)
            .expect("invariant: it was just found");
    }
    in_gits_words(&format!("{}\n", at.render_usage()))
}

/// The synopsis of a built command, as its help shows it.
pub(super) fn usage_of(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    in_gits_words(&usage.replace("Usage: ", ""))
}

fn in_gits_words(text: &str) -> String {
    text.replace("Usage: ", "usage: ")
        .replace("[OPTIONS]", "[<options>]")
        .replace("<COMMAND>", "<command>")
        .replace("\nArguments:\n", "\narguments\n")
        .replace("\nOptions:\n", "\noptions\n")
        .replace("\nCommands:\n", "\ncommands\n")
}

/// What is wrong, in our words, and what may have been meant. Built from the parser's facts, not
/// from its text: an argument may hold anything, line ends included.
fn describe(error: &clap::Error) -> (String, Option<String>) {
    // '--base <rev>' is named by its first word.
    let get = |kind| {
        let text = error.get(kind).map(words).unwrap_or_default();
        match text.split_once(' ') {
            Some((option, _)) if is_option(kind, &text) => option.to_owned(),
            _ => text,
        }
    };
    let arg = get(ContextKind::InvalidArg);
    let value = get(ContextKind::InvalidValue);
    let what = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            format!("'{}' is not a command", get(ContextKind::InvalidSubcommand))
        }
        ErrorKind::UnknownArgument if arg.starts_with('-') => format!("unknown option '{arg}'"),
        ErrorKind::UnknownArgument => format!("unexpected argument '{arg}'"),
        ErrorKind::ValueValidation => match std::error::Error::source(error) {
            Some(source) => source.to_string(),
            None => format!("'{value}' is no value for '{arg}'"),
        },
        ErrorKind::InvalidValue if value.is_empty() => format!("'{arg}' needs a value"),
        ErrorKind::InvalidValue => {
            let valid = get(ContextKind::ValidValue);
            format!("'{value}' is no value for '{arg}'; expected one of {valid}")
        }
        ErrorKind::MissingRequiredArgument => format!("missing {arg}"),
        ErrorKind::MissingSubcommand => "missing <command>".to_owned(),
        ErrorKind::ArgumentConflict => {
            let other = get(ContextKind::PriorArg);
            if other == arg {
                format!("'{arg}' is given twice")
            } else {
                format!("'{arg}' cannot be used together with '{other}'")
            }
        }
        ErrorKind::InvalidUtf8 => "an argument that must be text is not UTF-8".to_owned(),
        _ => format!("cannot use '{arg}' like this"),
    };
    let meant = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ]
    .into_iter()
    .find_map(|kind| error.get(kind));
    (
        what,
        meant.map(|meant| format!("did you mean '{}'?", best(meant))),
    )
}

fn is_option(kind: ContextKind, text: &str) -> bool {
    matches!(kind, ContextKind::InvalidArg | ContextKind::PriorArg) && text.starts_with("--")
}

fn words(value: &ContextValue) -> String {
    match value {
        ContextValue::String(text) => text.clone(),
        ContextValue::Strings(texts) => texts.join(", "),
        other => other.to_string(),
    }
}

/// The best suggestion: the parser puts it last.
fn best(value: &ContextValue) -> String {
    match value {
        ContextValue::Strings(texts) => texts.last().cloned().unwrap_or_default(),
        other => words(other),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::cli::command;

    #[test]
    fn the_first_screen_is_one_screen_and_names_every_command() {
        assert!(HELP.lines().count() <= 24);
        for line in HELP.lines() {
            assert!(line.len() <= 80, "{line}");
        }
        let mut all = command();
        all.build();
        for one in all.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            let words = |name: &str| {
                HELP.split(|c: char| !c.is_ascii_lowercase() && c != '-')
                    .any(|word| word == name)
            };
            assert!(words(name), "{name}");
            // The others' commands are in their own help.
            for below in one.get_subcommands().filter(|_| name == "overlay") {
                assert!(words(below.get_name()), "{}", below.get_name());
            }
        }
    }

    #[test]
    fn the_parser_is_sound() {
        command().debug_assert();
    }

    #[test]
    fn every_command_says_what_it_does_in_one_line() {
        fn look(command: &clap::Command) {
            for below in command.get_subcommands() {
                let about = below.get_about().map(ToString::to_string);
                let about = about.unwrap_or_default();
                assert!(
                    !about.is_empty() && !about.ends_with('.'),
                    "{below}: {about}"
                );
                look(below);
            }
        }
        let mut all = command();
        all.build();
        look(&all);
    }
}
