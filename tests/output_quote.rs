//! The quoting of paths in lines, held against `git ls-files` over every byte value.

#![allow(clippy::unwrap_used)]

use std::io::Write as _;
use std::process::{Command, Stdio};

use bstr::{BString, ByteSlice as _};
use git_vws::output::quote::{quote_c, unquote_c};

/// Lists the index of a new repository that holds these paths, one line each, as git prints them.
fn git_lists(paths: &[BString], quotepath: bool) -> Vec<BString> {
    let dir = tempfile::tempdir().unwrap();
    let git = |args: &[&str], input: &[u8]| {
        let mut child = Command::new("git")
            .args([
                "-c",
                &format!("core.quotePath={quotepath}"),
                "-c",
                "core.protectNTFS=false",
            ])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", dir.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .current_dir(dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {args:?}");
        output.stdout
    };
    git(&["init", "-q", "--object-format=sha1"], b"");
    let mut entries = Vec::new();
    for path in paths {
        entries.extend_from_slice(b"100644 e69de29bb2d1d6434b8b29ae775ad8c2e48c5391\t");
        entries.extend_from_slice(path);
        entries.push(0);
    }
    git(&["update-index", "-z", "--index-info"], &entries);
    git(&["ls-files"], b"").lines().map(BString::from).collect()
}

#[test]
fn every_byte_as_git_prints_it() {
    let bytes = (1..=255_u8).filter(|byte| *byte != b'/');
    let mut paths: Vec<BString> = Vec::new();
    for byte in bytes.clone() {
        paths.push(BString::from([b"m", &[byte][..], b"z"].concat()));
        // In front of a digit an octal escape must not swallow it.
        paths.push(BString::from([b"n", &[byte][..], b"7"].concat()));
    }
    paths.push(BString::from(
        [b"whole ", &bytes.collect::<Vec<_>>()[..]].concat(),
    ));
    paths.extend(["plain", "with space", "sub/dir/\u{fc}", "'single'"].map(BString::from));
    // `ls-files` prints in the order of the bytes.
    paths.sort();
    for quotepath in [true, false] {
        let lines = git_lists(&paths, quotepath);
        assert_eq!(lines.len(), paths.len());
        for (path, line) in paths.iter().zip(&lines) {
            assert_eq!(&*quote_c(path.as_bstr(), quotepath), line.as_bstr());
            if line.starts_with(b"\"") {
                assert_eq!(unquote_c(line).unwrap(), (path.clone(), &b""[..]));
            } else {
                assert_eq!(path, line);
            }
        }
    }
}
