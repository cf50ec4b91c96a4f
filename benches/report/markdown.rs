//! The report as Markdown: the machine, the bars, and a table for each kind of work, ratios first.

use super::measure::{Bar, Group, Limit, Line, Spread};
use super::tables::grouped;
use super::{Report, Table, Try};

pub fn page(report: &Report) -> String {
    let mut page = "# What it costs\n\nMade by `cargo bench`, in one run: each row stands beside \
                    `git worktree` doing the same work, in turn with it. `×` is the time beside the first row \
                    of the work (medians, and the least and most of the pairs); times are medians with the \
                    least and the most. After each repetition the result was compared, as a tree of \
                    git's where there is one; a row with a wrong result would be void.\n\n"
        .to_owned();
    page.push_str("| | |\n|---|---|\n");
    for (name, value) in &report.about {
        page.push_str(&format!("| {name} | {} |\n", cell(value)));
    }
    page.push_str(&format!("\n## In short\n\n{}", short(report)));
    page.push_str(&bars(report));
    for one in &report.tables {
        page.push_str(&table(one));
    }
    page
}

/// What stands in a cell must not end it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

/// What the chart shows, in figures.
fn short(report: &Report) -> String {
    let mut text = "| work | × | ms | `git worktree`, ms |\n|---|--:|--:|--:|\n".to_owned();
    for group in report.tables.iter().flat_map(|table| &table.groups) {
        let Some((first, lines)) = group.lines.split_first() else {
            continue;
        };
        for line in lines {
            let (Some(label), None, None) = (&line.headline, &line.void, &first.void) else {
                continue;
            };
            let median = |spread: Option<Spread>| spread.map_or(0.0, |spread| spread.median);
            let (own, theirs) = (median(line.time(None)), median(first.time(None)));
            let ratio = figures(median(line.ratio(first)));
            let (own, theirs) = (figures(own * 1e3), figures(theirs * 1e3));
            text.push_str(&format!(
                "| {} | {ratio} | {own} | {theirs} |\n",
                cell(label)
            ));
        }
    }
    text
}

/// Where the short form stands in a page of prose.
const MARKS: [&str; 2] = ["<!-- report -->\n", "<!-- /report -->"];

/// A page with the short form of this report between its marks.
pub fn in_page(page: &str, report: &Report) -> Try<String> {
    let parts = page.split_once(MARKS[0]).and_then(|(before, rest)| {
        let (_, after) = rest.split_once(MARKS[1])?;
        Some((before, after))
    });
    let (before, after) = parts.ok_or("there are no marks of the report in it")?;
    let is_told = |(name, _): &&(&str, String)| {
        ["machine", "file system", "git", "load at the start"].contains(name)
    };
    let told = report.about.iter().filter(is_told);
    let told: Vec<_> = told
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    let [start, end] = MARKS;
    let short = short(report);
    let told = told.join("; ");
    Ok(format!(
        "{before}{start}Measured in one run on: {told}.\n\n{short}{end}{after}"
    ))
}

/// All bars, the missed ones first.
fn bars(report: &Report) -> String {
    let (mut met, mut missed) = (Vec::new(), Vec::new());
    for group in report.tables.iter().flat_map(|table| &table.groups) {
        let Some(first) = group.lines.first() else {
            continue;
        };
        for line in &group.lines {
            for bar in &line.bars {
                let (is_met, text) = verdict(line, first, *bar);
                let row = format!(
                    "| {} | {} | {} | {text} |\n",
                    group.title,
                    line.name,
                    limited(bar.limit)
                );
                if is_met {
                    met.push(row)
                } else {
                    missed.push(row)
                }
            }
        }
    }
    if met.is_empty() && missed.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n## Bars\n\n{} of {} met.\n\n",
        met.len(),
        met.len() + missed.len()
    );
    text.push_str("| work | with | of | at most |\n|---|---|---|---|\n");
    missed.iter().chain(&met).for_each(|row| text.push_str(row));
    text
}

fn limited(limit: Limit) -> String {
    match limit {
        Limit::Total => "time".to_owned(),
        Limit::Part(part) => format!("time: {part}"),
        Limit::Peak => "disk, at its peak".to_owned(),
        Limit::Calls => "system calls".to_owned(),
    }
}

fn verdict(line: &Line, first: &Line, bar: Bar) -> (bool, String) {
    let void = line.void.is_some() || first.void.is_some();
    let ratio = line.held_to(bar, first).filter(|_| !void);
    match ratio {
        Some(ratio) if ratio <= bar.at_most => {
            (true, format!("{}: met, {}", bar.at_most, figures(ratio)))
        }
        Some(ratio) => (
            false,
            format!("{}: **missed**, {}", bar.at_most, figures(ratio)),
        ),
        None => (false, format!("{}: **not measured**", bar.at_most)),
    }
}

fn table(table: &Table) -> String {
    let mut text = format!("\n## {}\n\n", table.title);
    for remark in &table.remarks {
        text.push_str(&format!("{remark}.\n\n"));
    }
    let micro = table.groups.iter().any(|group| group.per > 1);
    let unit = if micro { "µs" } else { "ms" };
    let heads = [
        "work",
        "with",
        "×",
        unit,
        "n",
        "of which",
        "peak MB",
        "waiting MB",
        "processes",
        "flushes",
        "calls",
    ];
    let rows: Vec<Vec<String>> = table
        .groups
        .iter()
        .flat_map(|group| rows(group, micro))
        .collect();
    // A column that says nothing in the whole table is left out.
    let kept: Vec<usize> = (0..heads.len())
        .filter(|&at| at < 5 || rows.iter().any(|row| row[at] != "-" && !row[at].is_empty()))
        .collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        text.push('|');
        cells.for_each(|one| text.push_str(&format!(" {one} |")));
        text.push('\n');
    };
    if rows.is_empty() {
        return text;
    }
    line(&mut kept.iter().map(|&at| heads[at]));
    line(&mut kept.iter().map(|&at| {
        if (2..5).contains(&at) || at > 5 {
            "--:"
        } else {
            "---"
        }
    }));
    for row in &rows {
        line(&mut kept.iter().map(|&at| row[at].as_str()));
    }
    text
}

fn rows(group: &Group, micro: bool) -> Vec<Vec<String>> {
    let Some(first) = group.lines.first() else {
        return Vec::new();
    };
    let scale = if micro { 1e6 } else { 1e3 };
    let time = |spread: Option<Spread>| match spread {
        Some(s) => {
            let f = |seconds: f64| figures(seconds * scale);
            format!("**{}** ({}–{})", f(s.median), f(s.least), f(s.most))
        }
        None => "-".to_owned(),
    };
    let megabytes = |bytes: Option<u64>| bytes.map_or("-".to_owned(), |b| figures(b as f64 / 1e6));
    let mut rows = Vec::new();
    for (at, line) in group.lines.iter().enumerate() {
        let ratio = match (&line.void, line.ratio(first)) {
            (Some(why), _) => format!("void: {}", cell(why)),
            (None, _) if first.void.is_some() => "-".to_owned(),
            (None, _) if at == 0 => "1".to_owned(),
            (None, Some(s)) => {
                format!(
                    "**{}** ({}–{})",
                    figures(s.median),
                    figures(s.least),
                    figures(s.most)
                )
            }
            (None, None) => "-".to_owned(),
        };
        let is_void = line.void.is_some();
        let parts = line.parts();
        let of_which = match parts.len() {
            0 | 1 => String::new(),
            _ => {
                let one = |part: &&str| {
                    let median = line.time(Some(part)).map_or(0.0, |s| s.median);
                    format!("{part} {}", figures(median * scale))
                };
                parts.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        };
        let counts = line.counts;
        let counted = |count: Option<u64>| count.map_or("-".to_owned(), |n| grouped(n as usize));
        rows.push(vec![
            if at == 0 {
                cell(&group.title)
            } else {
                String::new()
            },
            cell(&line.name),
            ratio,
            if is_void {
                "-".to_owned()
            } else {
                time(line.time(None))
            },
            line.runs.len().to_string(),
            if is_void { String::new() } else { of_which },
            megabytes(line.peak.filter(|_| !is_void)),
            megabytes(line.held.filter(|_| !is_void)),
            counted(counts.map(|counts| counts.processes)),
            counted(counts.map(|counts| counts.flushes)),
            counted(counts.and_then(|counts| counts.calls)),
        ]);
    }
    rows
}

/// Three figures, with commas: 0.0213, 4.52, 18,812.
pub fn figures(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let size = value.abs().log10().floor() as i32;
    if size >= 2 {
        return grouped(value.round() as usize);
    }
    let digits = (2 - size).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}
