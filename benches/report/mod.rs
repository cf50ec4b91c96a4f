//! The report: tables of what an agent's life costs with `git vws`, each row beside `git worktree`
//! (and `git-cow` and `jj`, where they are installed) doing the same work in the same run.
//!
//! - `options` the knobs, from the environment and flags
//! - `rig` a sealed environment for commands, its clock, and the counting of processes and flushes
//! - `disk` what files really take
//! - `fixture` the repositories, one copy for each tool, and how they start over
//! - `batch` a client of `git vws batch`
//! - `measure` interleaved repetitions, medians, bars, and the voiding of wrong results
//! - `tables` one module for a table or a few
//! - `markdown`, `chart` what is written
//!
//! A way of doing the work returns a witness of its result, a tree id as a rule. Where the witnesses of
//! a row differ, or a command fails, the row is void and says why: no number without a right result.
#![allow(clippy::print_stderr, unreachable_pub)]

mod batch;
pub mod chart;
mod disk;
mod fixture;
pub mod markdown;
pub mod measure;
pub mod options;
mod rig;
pub mod tables;

use std::time::Instant;

use fixture::World;
use measure::Group;
use options::Options;
use rig::Rig;

/// What went wrong, as a sentence.
pub type Try<T> = Result<T, String>;

/// Everything that was measured.
pub struct Report {
    /// The machine and the run, as `name`, `value`.
    pub about: Vec<(&'static str, String)>,
    pub tables: Vec<Table>,
}

/// One table: rows that belong together.
pub struct Table {
    pub title: &'static str,
    pub groups: Vec<Group>,
    /// What was not measured, and why.
    pub remarks: Vec<String>,
}

/// Measures all tables that are wanted; `each` is shown the report after each of them, so that a run
/// which is broken off is not for nothing.
pub fn run(options: &Options, each: &mut dyn FnMut(&Report) -> Try<()>) -> Try<Report> {
    let start = Instant::now();
    let rig = Rig::new(options)?;
    let world = World::new(&rig, options)?;
    let wanted: Vec<_> = tables::ALL
        .iter()
        .filter(|table| options.only.is_empty() || options.only.iter().any(|id| id == table.id))
        .collect();
    let others = load();
    let mut report = Report {
        about: Vec::new(),
        tables: Vec::new(),
    };
    for (done, table) in wanted.iter().enumerate() {
        let rest = options.budget.saturating_sub(start.elapsed());
        let left = (wanted.len() - done) as u32;
        world.deadline.set(Some(Instant::now() + rest / left));
        if !options.quiet {
            eprintln!("{:>5.1}s  {}", start.elapsed().as_secs_f64(), table.title);
        }
        let (groups, remarks) = match (table.measure)(&world) {
            Ok(groups) => (groups, world.remarks.take()),
            Err(why) => (Vec::new(), vec![format!("Not measured: {why}")]),
        };
        report.tables.push(Table {
            title: table.title,
            groups,
            remarks,
        });
        report.about = rig.about(options, start.elapsed());
        report.about.push(("load at the start", others.clone()));
        each(&report)?;
    }
    Ok(report)
}

/// What others do on this machine: a figure far from 0 says that times are too long, and not equally.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split(' ').next().unwrap_or_default();
    if first.is_empty() { "unknown" } else { first }.to_owned()
}
