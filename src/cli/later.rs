//! Commands whose arguments are put together only when somebody asks for that command: the parser of
//! all of them costs more than many a command's work.

use std::ops::Deref;

use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

use super::usage;

/// What is parsed as `T` is, when it comes to that. Until then, the parser knows no more of it than its
/// name and what it is for; [`Command::build`] asks for everything.
#[derive(Debug)]
pub(super) struct Later<T>(T);

impl<T> Deref for Later<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for Later<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Later)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches_mut(matches).map(Later)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for Later<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| for_the_same(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| for_the_same(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for Later<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| {
            let command = for_the_same(command, T::augment_subcommands);
            command.mut_subcommands(usage::styled)
        })
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| for_the_same(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

/// Adds arguments, which say what they are for themselves where they are shared.
fn for_the_same(command: Command, add: impl FnOnce(Command) -> Command) -> Command {
    let about = command.get_about().cloned();
    let command = add(command);
    match about {
        Some(about) => command.about(about),
        None => command,
    }
}
