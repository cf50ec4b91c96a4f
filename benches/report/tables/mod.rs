//! The tables, in the order of the report. The first six are those that the design grew from.

mod agents;
mod build;
mod create;
mod exec;
mod generated;
mod integrate;
mod many;
mod reads;

use super::Try;
use super::fixture::World;
use super::measure::Group;

/// A table, and what measures it.
pub struct Entry {
    pub id: &'static str,
    pub title: &'static str,
    pub measure: fn(&World) -> Try<Vec<Group>>,
}

pub const ALL: &[Entry] = &[
    entry("creating", "Creating workspaces", create::table),
    entry(
        "agents",
        "Agents edit five files and add one, then all is decided",
        agents::large,
    ),
    entry(
        "small",
        "The same in a repository of 60 files",
        agents::small,
    ),
    entry("generated", "A tool writes many files", generated::table),
    entry(
        "integration",
        "Integration: agents edit one file of 2,000 lines",
        integrate::table,
    ),
    entry(
        "reads",
        "Reading again: 25 files of an agent, 100 times",
        reads::table,
    ),
    entry("exec", "A command in a directory of its own", exec::table),
    entry(
        "directories",
        "A directory that stays, by back end",
        exec::directories,
    ),
    entry("build", "A warm build", build::table),
    entry("radar", "What would collide", integrate::radar),
    entry("list", "Many workspaces, many records", many::table),
    entry("largest", "The largest repository", agents::largest),
];

const fn entry(
    id: &'static str,
    title: &'static str,
    measure: fn(&World) -> Try<Vec<Group>>,
) -> Entry {
    Entry { id, title, measure }
}

/// The name of agent number `n`: in this order everywhere.
fn agent(n: usize) -> String {
    format!("a{n:04}")
}

/// 20000 as '20,000'.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 agent`, `4 agents`.
fn count_of(number: usize, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        _ => format!("{} {what}s", grouped(number)),
    }
}

/// The value of a key in a record of `key value` lines.
fn value<'t>(record: &'t str, key: &str) -> Try<&'t str> {
    let found = record
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    found.ok_or_else(|| format!("no '{key}' in '{}'", record.replace('\n', "; ")))
}
