//! `cargo bench`: what `git vws` costs beside `git worktree`, measured in one run on this machine.
//!
//! `cargo bench -- --help` lists the knobs; `report/mod.rs` says how it is built.
#![allow(missing_docs, clippy::print_stdout, clippy::print_stderr)]

#[path = "report/mod.rs"]
mod report;

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use report::options::{Options, Wanted};
use report::{Try, chart, markdown};

fn main() -> ExitCode {
    let binary = Path::new(env!("CARGO_BIN_EXE_git-vws"));
    let args = std::env::args().skip(1);
    let options = match Options::read(binary, args, |name| std::env::var(name).ok()) {
        Ok(Wanted::Run(options)) => options,
        Ok(Wanted::Help(text)) => {
            print!("{text}");
            return ExitCode::SUCCESS;
        }
        Err(why) => {
            eprintln!("fatal: {why}");
            return ExitCode::from(129);
        }
    };
    match made(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("fatal: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Measures, and writes what the options name: the whole report after each of its tables.
fn made(options: &Options) -> Try<()> {
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("can't write '{}': {error}", path.display()))
    };
    let made = report::run(options, &mut |made| {
        if let Some(path) = &options.chart {
            write(path, chart::svg(made))?;
        }
        match &options.out {
            Some(path) => write(path, markdown::page(made)),
            None => Ok(()),
        }
    })?;
    if let Some(path) = &options.readme {
        let shown = path.display();
        let page = fs::read_to_string(path).map_err(|e| format!("can't read '{shown}': {e}"))?;
        let page = markdown::in_page(&page, &made).map_err(|why| format!("'{shown}': {why}"))?;
        write(path, page)?;
    }
    if options.out.is_none() {
        print!("{}", markdown::page(&made));
    }
    Ok(())
}
