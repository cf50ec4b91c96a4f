//! The knobs: defaults, then `GIT_VWS_BENCH_<NAME>`, then `--<name>=<value>`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{Try, tables};

/// What to measure, where, how often.
pub struct Options {
    /// The program under test.
    pub binary: PathBuf,
    /// Where to work; a temporary directory if it is not set.
    pub dir: Option<PathBuf>,
    /// Where the Markdown goes; standard output if it is not set.
    pub out: Option<PathBuf>,
    /// Where the chart goes; nowhere if it is not set.
    pub chart: Option<PathBuf>,
    /// A page of prose that gets the short form.
    pub readme: Option<PathBuf>,
    pub files: usize,
    pub large: usize,
    pub agents: Vec<usize>,
    pub reps: usize,
    pub budget: Duration,
    pub workspaces: usize,
    pub records: usize,
    pub generated: usize,
    pub crates: usize,
    /// Count processes and flushes, where strace is there.
    pub count: bool,
    pub only: Vec<String>,
    /// Start the program itself instead of `git vws`.
    pub direct: bool,
    pub quiet: bool,
}

/// What the arguments ask for.
pub enum Wanted {
    Run(Box<Options>),
    Help(String),
}

/// Name, default, what it is.
const KNOBS: &[(&str, &str, &str)] = &[
    (
        "dir",
        "",
        "where to work (a directory that exists; default: a temporary one)",
    ),
    (
        "out",
        "",
        "where the Markdown goes (default: standard output)",
    ),
    ("chart", "", "where the chart goes, an SVG (default: none)"),
    (
        "readme",
        "",
        "a file in which to replace what stands between the report's marks",
    ),
    (
        "files",
        "20000",
        "files of the repository that most tables are about",
    ),
    ("large", "100000", "files of the largest repository"),
    ("agents", "1,4,16", "how many agents work at a time"),
    (
        "reps",
        "3",
        "repetitions; fewer where the time is used up, and the row says so",
    ),
    (
        "budget",
        "250",
        "seconds for all; a repetition that has begun is ended",
    ),
    ("workspaces", "1000", "workspaces that are listed"),
    ("records", "10000", "records of a context that are checked"),
    ("generated", "3000", "files that a tool generates"),
    ("crates", "21", "crates of the workspace that is built"),
    ("only", "", "tables to measure, by name (default: all)"),
    (
        "count",
        "yes",
        "no: don't repeat all under strace, to count",
    ),
    (
        "binary",
        "",
        "the git-vws to measure (default: the one that is built here)",
    ),
    ("direct", "no", "yes: start git-vws itself, not through git"),
    ("quiet", "no", "yes: don't tell what is being measured"),
];

impl Options {
    /// Reads the arguments, over what the environment says.
    pub fn read(
        binary: &Path,
        args: impl Iterator<Item = String>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Try<Wanted> {
        let all = KNOBS.iter();
        let mut values: BTreeMap<String, String> = all
            .map(|(name, default, _)| {
                let value = variable(&format!("GIT_VWS_BENCH_{}", name.to_uppercase()));
                ((*name).to_owned(), value.unwrap_or((*default).to_owned()))
            })
            .collect();
        for arg in args {
            match arg.strip_prefix("--") {
                // Cargo's own.
                Some("bench") => {}
                Some("help") => return Ok(Wanted::Help(help())),
                Some(knob) => {
                    let (name, value) = knob.split_once('=').unwrap_or((knob, "yes"));
                    if !values.contains_key(name) {
                        return Err(format!("unknown option '--{name}'; --help lists all"));
                    }
                    values.insert(name.to_owned(), value.to_owned());
                }
                None => return Err(format!("unexpected argument '{arg}'")),
            }
        }
        Self::from(binary, &values).map(|options| Wanted::Run(Box::new(options)))
    }

    fn from(binary: &Path, values: &BTreeMap<String, String>) -> Try<Options> {
        let text = |name: &str| values.get(name).cloned().unwrap_or_default();
        let number = |name: &str| positive(name, &text(name));
        let path = |name: &str| {
            Some(text(name))
                .filter(|s| !s.is_empty())
                .map(PathBuf::from)
        };
        let list = |name: &str| -> Vec<String> {
            let text = text(name);
            let parts = text.split(',').map(str::trim).filter(|s| !s.is_empty());
            parts.map(str::to_owned).collect()
        };
        let agents: Try<Vec<usize>> = list("agents")
            .iter()
            .map(|n| positive("agents", n))
            .collect();
        let only = list("only");
        if let Some(id) = only
            .iter()
            .find(|id| tables::ALL.iter().all(|t| t.id != **id))
        {
            return Err(format!("'{id}' is no table; --help lists all"));
        }
        Ok(Options {
            binary: path("binary").unwrap_or(binary.to_owned()),
            dir: path("dir"),
            out: path("out"),
            chart: path("chart"),
            readme: path("readme"),
            files: number("files")?,
            large: number("large")?,
            agents: agents?,
            reps: number("reps")?,
            budget: Duration::from_secs(number("budget")? as u64),
            workspaces: number("workspaces")?,
            records: number("records")?,
            generated: number("generated")?,
            crates: number("crates")?,
            only,
            count: text("count") == "yes",
            direct: text("direct") == "yes",
            quiet: text("quiet") == "yes",
        })
    }
}

fn positive(name: &str, text: &str) -> Try<usize> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(format!(
            "'{text}' is no value for '--{name}'; a number is expected"
        )),
    }
}

fn help() -> String {
    let mut text = "usage: cargo bench -- [--<option>=<value>]...\n\n".to_owned();
    for (name, value, what) in KNOBS {
        let name = format!("--{name}={value}");
        text.push_str(&format!("  {name:<22} {what}\n"));
    }
    text.push_str("\nEach can be set as GIT_VWS_BENCH_<NAME>, too. Tables:\n\n");
    for table in tables::ALL {
        text.push_str(&format!("  {:<22} {}\n", table.id, table.title));
    }
    text
}
