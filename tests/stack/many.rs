//! Thousands of records about what an agent knows, checked in one call.

#![allow(
    clippy::print_stdout,
    reason = "what was measured is for whoever runs it"
)]

use std::time::{Duration, Instant};

use bstr::ByteSlice;

use super::create;
use crate::common::Sandbox;

fn path(number: usize) -> String {
    format!("d{}/e{}/f{number}", number % 100, number % 7)
}

fn fastest(mut once: impl FnMut()) -> Duration {
    let time = |_| {
        let start = Instant::now();
        once();
        start.elapsed()
    };
    (0..5).map(time).min().unwrap()
}

#[test]
fn ten_thousand_records_cost_less_than_ten_processes() {
    let long = std::env::var_os("GIT_VWS_TEST_LONG").is_some();
    let count = if long { 10_000 } else { 1_000 };
    let sandbox = Sandbox::new();
    let mut stream = b"commit refs/heads/main\ncommitter n <m> 0 +0000\ndata 1\nx\n".to_vec();
    for number in 0..count {
        let text = format!("content {number}\n");
        let head = format!("M 100644 inline {}\ndata {}\n", path(number), text.len());
        stream.extend_from_slice(&[head.as_bytes(), text.as_bytes()].concat());
    }
    sandbox.git_with_input(&["fast-import", "--quiet"], &stream);
    sandbox.git(&["reset", "-q", "--hard"]);
    create(&sandbox, "a");
    let listed = sandbox.git(&["ls-tree", "-r", "HEAD"]);
    let mut records = String::new();
    let mut edits = "begin a\n".to_owned();
    let mut expected = [0usize; 3];
    for (number, line) in listed.lines().enumerate() {
        let (head, path) = line.to_str().unwrap().split_once('\t').unwrap();
        let blob = head.rsplit_once(' ').unwrap().1;
        records.push_str(&format!("{blob} {path}\n"));
        match number % 10 {
            0 => edits.push_str(&format!("write a {path} 2\nx\n\n")),
            1 => edits.push_str(&format!("delete a {path}\n")),
            _ => {}
        }
        expected[(number % 10).min(2)] += 1;
    }
    edits.push_str("commit\n");
    let _ = sandbox
        .vws_with_input(&["batch"], edits.as_bytes())
        .success();
    let check = || sandbox.binary(&["context", "--check", "a"], records.as_bytes());
    let out = check().success();
    let states = |state: &str| {
        out.stdout()
            .lines()
            .filter(|l| l.starts_with_str(state))
            .count()
    };
    assert_eq!(["stale ", "deleted ", "fresh "].map(states), expected);
    if !long {
        return;
    }
    let ours = fastest(|| drop(check()));
    let one = "HEAD:d0/e0/f0\n";
    let git = fastest(|| {
        for _ in 0..10 {
            sandbox.git_with_input(&["cat-file", "--batch-check"], one.as_bytes());
        }
    });
    println!("{count} records in {ours:?}, 10 starts of git cat-file --batch-check {git:?}");
    if !cfg!(debug_assertions) {
        assert!(ours < git, "{ours:?} against {git:?}");
    }
}
