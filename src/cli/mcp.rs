//! `git vws mcp`: a workspace as tools, on the standard streams.

use git_vws::mcp::{self, Error};
use git_vws::model::AgentId;
use git_vws::output;

use super::report::Failure;
use super::session::{Session, clock, stdin, stdout};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The workspace, made from the working tree where it is missing
    #[arg(value_name = "agent")]
    agent: AgentId,
}

pub(crate) fn run(args: &Args, session: &Session) -> Result<(), Failure> {
    let (input, output) = (stdin()?, stdout()?);
    let repository = session.repository();
    Ok(mcp::run(repository, &args.agent, &clock, input, output)?)
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
