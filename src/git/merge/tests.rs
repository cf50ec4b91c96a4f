//! Merges against `git merge-file -p`: bytes, verdict and number of conflicts.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use super::*;
use crate::git::tree::testing::{Random, git_command, run};

/// A line, its content drawn from so many (from few the sides meet), sometimes like a marker.
fn line(random: &mut Random, eol: &[u8], kinds: usize) -> Vec<u8> {
    let mut line = match random.below(40) {
        0 => b"<<<<<<< ours".to_vec(),
        1 => b"=======".to_vec(),
        2 => b"}".to_vec(),
        3 => Vec::new(),
        _ => format!("line {}", random.below(kinds)).into_bytes(),
    };
    line.extend_from_slice(eol);
    line
}

fn text(random: &mut Random, length: usize, eol: &[u8]) -> Vec<Vec<u8>> {
    // In a long one most lines are like no other.
    let kinds = if length > 100 { 1_000_000 } else { 30 };
    (0..length).map(|_| line(random, eol, kinds)).collect()
}

fn change(random: &mut Random, base: &[Vec<u8>], eol: &[u8]) -> Vec<u8> {
    let mut lines = base.to_vec();
    for _ in 0..random.below(4) {
        let at = random.below(lines.len() + 1);
        let end = (at + random.below(3)).min(lines.len());
        let count = random.below(3);
        lines.splice(at..end, text(random, count, eol));
    }
    let mut joined = lines.concat();
    if random.chance(15) {
        joined.truncate(joined.len().saturating_sub(eol.len()));
    }
    if random.chance(4) {
        joined.clear();
    }
    joined
}

/// What `git merge-file` makes of the same input.
fn oracle(directory: &Path, inputs: [&[u8]; 3], options: &MergeOptions) -> MergeResult {
    for (name, content) in ["base", "ours", "theirs"].into_iter().zip(inputs) {
        std::fs::write(directory.join(name), content).unwrap();
    }
    let mut command = git_command(directory);
    command.args(["merge-file", "-p", "-q"]);
    match options.style {
        Style::Merge => {}
        Style::Diff3 => drop(command.arg("--diff3")),
        Style::Zdiff3 => drop(command.arg("--zdiff3")),
    }
    if options.favor == Favor::Union {
        command.arg("--union");
    }
    command.arg(format!("--marker-size={}", options.marker_size));
    for label in ["ours", "base", "theirs"] {
        command.args(["-L", label]);
    }
    command.args(["ours", "base", "theirs"]);
    let output = run(command, b"");
    match output.status.code() {
        Some(0) => MergeResult::Clean(output.stdout),
        Some(conflicts @ 1..=127) => MergeResult::Conflict {
            marked: output.stdout,
            conflicts: conflicts as usize,
        },
        _ => MergeResult::Binary,
    }
}

fn options(random: &mut Random) -> MergeOptions {
    MergeOptions {
        style: [Style::Merge, Style::Diff3, Style::Zdiff3][random.below(3)],
        labels: Labels {
            ours: "ours".into(),
            base: "base".into(),
            theirs: "theirs".into(),
        },
        favor: if random.chance(12) {
            Favor::Union
        } else {
            Favor::None
        },
        marker_size: if random.chance(12) { 12 } else { 7 },
    }
}

#[test]
fn merges_are_those_of_git() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(11);
    let (mut clean, mut conflicts, mut binary) = (0, 0, 0);
    for round in 0..420 {
        let eol: &[u8] = if random.chance(20) { b"\r\n" } else { b"\n" };
        let length = match random.below(20) {
            0 => 0,
            1 | 2 => 2000,
            _ => random.below(25),
        };
        let base = text(&mut random, length, eol);
        let mut ours = change(&mut random, &base, eol);
        let other: &[u8] = if random.chance(5) { b"\r\n" } else { eol };
        let theirs = change(&mut random, &base, other);
        let mut base = base.concat();
        if random.chance(10) {
            base.pop();
        }
        if random.chance(3) {
            ours.push(0);
        }
        let options = options(&mut random);
        let result = merge_file(&base, &ours, &theirs, &options).unwrap();
        let expected = oracle(directory.path(), [&base, &ours, &theirs], &options);
        assert_eq!(
            result,
            expected,
            "round {round} {options:?}\n{:?}\n{:?}\n{:?}",
            base.as_bstr(),
            ours.as_bstr(),
            theirs.as_bstr()
        );
        match result {
            MergeResult::Clean(_) => clean += 1,
            MergeResult::Conflict { .. } => conflicts += 1,
            MergeResult::Binary => binary += 1,
        }
    }
    assert!(
        clean > 100 && conflicts > 100 && binary > 3,
        "{clean} {conflicts} {binary}"
    );
}

#[test]
fn labels_are_bytes_and_may_be_empty() {
    let mut options = MergeOptions::default();
    options.labels.ours = BString::from(b"o\xff\0".as_slice());
    let result = merge_file(b"a\n", b"", b"c\n", &options).unwrap();
    let marked = b"<<<<<<< o\xff\0\n=======\nc\n>>>>>>>\n".to_vec();
    assert_eq!(
        result,
        MergeResult::Conflict {
            marked,
            conflicts: 1
        }
    );
}

#[test]
fn lines_of_marker_characters_are_not_counted() {
    let options = MergeOptions::default();
    let ours = b"<<<<<<<<<<<<<<<<<<<<<<\nours\n=======\n>>>>>>>\n";
    match merge_file(b"x\n", ours, b"y\n", &options).unwrap() {
        MergeResult::Conflict { marked, conflicts } => {
            assert_eq!(conflicts, 1);
            assert_eq!(
                marked,
                [b"<<<<<<<\n", &ours[..], b"=======\ny\n>>>>>>>\n"].concat()
            );
        }
        other => panic!("{other:?}"),
    }
    let long = vec![b'='; 70_000];
    assert!(matches!(
        merge_file(b"", &long, b"x", &options),
        Err(Error::Markers)
    ));
}

#[test]
fn binary_is_told_by_a_nul_near_the_start() {
    let mut content = vec![b'x'; 8001];
    content[8000] = 0;
    assert!(!is_binary(&content));
    content[7999] = 0;
    assert!(is_binary(&content));
    assert!(!is_binary(b""));
}
