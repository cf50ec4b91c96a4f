//! How a new workspace is held: the option, and what is said when it is another form than was asked for.

use clap::ValueEnum;
use git_vws::layout;
use git_vws::workspace::{self, Wanted};

use super::report::Failure;
use super::session::{Session, hint};

/// What can be asked for; `auto` is the better of the two here.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Mode {
    Virtual,
    Worktree,
    Auto,
}

impl From<Mode> for Wanted {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Virtual => Wanted::Virtual,
            Mode::Worktree => Wanted::Worktree,
            Mode::Auto => Wanted::Auto,
        }
    }
}

/// The form of a workspace that is about to be made, by the option or else by the settings. That it is
/// another one than the user wanted is told once for each reason.
pub(crate) fn form(asked: Option<Mode>, session: &Session) -> Result<workspace::Mode, Failure> {
    let form = session.store().form(asked.map(Wanted::from))?;
    if let Some(why) = form.fallback
        && layout::told_once(session.repository(), "workspace", &why)
    {
        hint(&format!(
            "the workspace has a directory that stays, as 'relo.workspace.rewriting' says: {why}"
        ));
    }
    Ok(form.mode)
}
