//! The manual: man pages made of the parser's own types and of the prose beside this file, and the
//! completion scripts; `install-docs` writes them all below a prefix.
//!
//! `man/` in the repository holds what this writes, for whoever packages without running it;
//! `tests/manual.rs` holds it in step, and runs every example. The scripts in `completions/` need
//! no such care: they ask `__complete`.
//!
//! The prose of a page is `text/<command>.txt`: `# HEADING` starts a section, `= term` a tagged
//! paragraph, four blanks a literal line, back quotes stand around what is typed. `% command` is
//! not printed: it prepares what the examples after it need.

mod correctness;
mod formats;
mod page;
mod roff;

use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;
use git_vws::git;

use super::report::Failure;
use super::session::say;

#[derive(clap::Args, Debug)]
pub(crate) struct InstallArgs {
    /// Say nothing
    #[arg(short, long)]
    quiet: bool,
    /// Where; 'share/man' and the folders of the shells are below it
    #[arg(long, value_name = "dir")]
    prefix: PathBuf,
}

/// The completion scripts, each with where its shell looks for it.
const COMPLETIONS: [(&str, &str); 3] = [
    (
        "share/bash-completion/completions/git-vws",
        include_str!("../../../completions/git-vws.bash"),
    ),
    (
        "share/zsh/site-functions/_git-vws",
        include_str!("../../../completions/_git-vws"),
    ),
    (
        "share/fish/vendor_conf.d/git-vws.fish",
        include_str!("../../../completions/git-vws.fish"),
    ),
];

pub(crate) fn install(args: &InstallArgs, command: Command) -> Result<(), Failure> {
    let mut files: Vec<(PathBuf, String)> = page::all(command)
        .into_iter()
        .map(|page| {
            let folder = format!("share/man/man{}", page.section);
            let name = format!("{}.{}", page.name, page.section);
            (Path::new(&folder).join(name), page.text)
        })
        .collect();
    for (place, text) in COMPLETIONS {
        files.push((place.into(), text.to_owned()));
    }
    for (place, text) in &files {
        write(&args.prefix.join(place), text)?;
    }
    if !args.quiet {
        let (count, prefix) = (files.len(), args.prefix.display());
        say("git-vws", &format!("wrote {count} files below '{prefix}'"));
    }
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder).map_err(|e| git::Error::io("create", folder, e))?;
    Ok(fs::write(path, text).map_err(|e| git::Error::io("write", path, e))?)
}
