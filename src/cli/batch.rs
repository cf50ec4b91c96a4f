//! `git vws batch`: many commands in one process, on the standard streams.

use std::io;

use git_vws::batch::{self, Error, Options};
use git_vws::output;

use super::report::Failure;
use super::session::{Session, clock, say, stdin, stdout};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Fields and lines end with NUL, in both directions
    #[arg(short = 'z')]
    nul: bool,
    /// Answer with one JSON object a line
    #[arg(long)]
    json: bool,
    /// Hold answers back until 'flush'
    #[arg(long)]
    buffer: bool,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let options = Options {
        nul: args.nul,
        json: args.json,
        buffer: args.buffer,
    };
    let (input, output) = (stdin()?, stdout()?);
    let ended = batch::run(session.repository(), &clock, input, output, options)?;
    if let Some(agent) = ended.aborted {
        let what = format!("'begin {agent}' was not committed; none of its edits was published");
        say("warning", &what);
    }
    if ended.broken {
        let what = io::Error::new(io::ErrorKind::InvalidData, "it broke off in a command");
        return Err(Failure::Input(what));
    }
    Ok(())
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Read(error) => Failure::Input(error),
            Error::Write(error) => Failure::Output(output::Error::Write(error)),
            Error::Workspace(error) => Failure::Workspace(error),
        }
    }
}
