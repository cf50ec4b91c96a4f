//! The report itself, small and once: every table has its rows, and every result is right.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

#[path = "../benches/report/mod.rs"]
mod report;

use std::path::Path;

use report::options::{Options, Wanted};
use report::{chart, markdown};

const SMALL: &[&str] = &[
    "--files=80",
    "--large=90",
    "--agents=2",
    "--reps=1",
    "--workspaces=3",
    "--records=20",
    "--generated=5",
    "--crates=2",
    "--count=no",
    "--quiet",
];

fn options(args: &[&str], variable: impl Fn(&str) -> Option<String>) -> Result<Wanted, String> {
    let binary = Path::new(env!("CARGO_BIN_EXE_git-vws"));
    Options::read(binary, args.iter().map(|arg| (*arg).to_owned()), variable)
}

#[test]
fn flags_win_over_the_environment_and_what_is_unknown_is_told() {
    let variable = |name: &str| (name == "GIT_VWS_BENCH_FILES").then(|| "7".to_owned());
    let read = |args: &[&str]| match options(args, variable).unwrap() {
        Wanted::Run(options) => options.files,
        Wanted::Help(text) => text.lines().count(),
    };
    assert_eq!(read(&["--bench"]), 7);
    assert_eq!(read(&["--files=9"]), 9);
    let files = ["--out=o", "--chart=c", "--readme=r"];
    let Wanted::Run(named) = options(&files, variable).unwrap() else {
        panic!("it is no help text")
    };
    for (path, wanted) in [(named.out, "o"), (named.chart, "c"), (named.readme, "r")] {
        assert_eq!(path.as_deref(), Some(Path::new(wanted)));
    }
    assert!(read(&["--help"]) > 20);
    for wrong in ["--fils=9", "--files=0", "--only=none", "9"] {
        assert!(options(&[wrong], |_| None).is_err(), "{wrong}");
    }
}

#[test]
fn every_row_is_there_and_right() {
    // In memory where that is offered: here nobody asks how long a flush takes.
    let place = ["/dev/shm"].into_iter().find(|dir| Path::new(dir).is_dir());
    let place = place.map(str::to_owned);
    let variable = |name: &str| place.clone().filter(|_| name == "GIT_VWS_BENCH_DIR");
    let Ok(Wanted::Run(options)) = options(SMALL, variable) else {
        panic!("the options are wrong")
    };
    let mut seen = 0;
    let each = &mut |made: &report::Report| {
        seen += 1;
        assert_eq!(made.tables.len(), seen);
        Ok(())
    };
    let made = report::run(&options, each).unwrap();
    assert_eq!(seen, made.tables.len());
    assert_eq!(made.tables.len(), report::tables::ALL.len());
    let mut rows = 0;
    for table in &made.tables {
        table
            .remarks
            .iter()
            .for_each(|remark| eprintln!("{}: {remark}", table.title));
        assert!(
            !table.groups.is_empty(),
            "{}: {:?}",
            table.title,
            table.remarks
        );
        for group in &table.groups {
            assert!(
                group.lines.len() > 1,
                "{}: nothing to compare with",
                group.title
            );
            for line in &group.lines {
                let row = format!("{}: {}: {}", table.title, group.title, line.name);
                assert_eq!(line.void, None, "{row}");
                assert!(
                    line.time(None).is_some_and(|time| time.least > 0.0),
                    "{row}"
                );
                rows += 1;
            }
        }
    }
    let page = markdown::page(&made);
    let printed = page
        .lines()
        .filter(|line| line.starts_with('|') && line.contains("**"))
        .count();
    assert!(printed >= rows, "{printed} of {rows} rows\n{page}");
    assert!(!page.contains("void:"), "{page}");
    let readme = "before\n<!-- report -->\nold\n<!-- /report -->\nafter\n";
    let renewed = markdown::in_page(readme, &made).unwrap();
    assert!(
        !renewed.contains("old") && renewed.ends_with("after\n"),
        "{renewed}"
    );
    assert!(markdown::in_page("no marks", &made).is_err());
    assert!(renewed.contains("exec -- true at 80 files"), "{renewed}");
    assert_eq!(markdown::in_page(&renewed, &made).unwrap(), renewed);
    let drawn = chart::svg(&made);
    assert_eq!(
        drawn.matches("<rect ").count(),
        drawn.matches("class=\"value\"").count()
    );
    assert!(drawn.matches("<rect ").count() >= 10, "{drawn}");
}
