//! Records on their way out: porcelain, NUL-separated, JSON.
//!
//! What a command reports is a [`Record`] or a path with a few fields before it; a [`Printer`] puts
//! either into the [`Form`] that was asked for. The forms are git's: records as `worktree list
//! --porcelain` prints them, paths as `diff --raw` and `ls-tree` do. They are a contract, and
//! `tests/cli_*.rs` pins each.

pub mod json;
pub mod quote;

mod printer;
mod record;
pub mod report;
pub mod upkeep;

/// What an error says: its sentence, followed by the causes that it does not name itself.
pub fn sentence(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

pub use printer::{Error, Form, PathStyle, Printer, Result};
pub use record::{Record, Value};
