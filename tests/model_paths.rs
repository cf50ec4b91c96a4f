//! The path and name rules of `model`, held against git's own.
//!
//! `RepoPath` claims that whatever it accepts, git accepts with `core.protectNTFS` and
//! `core.protectHFS` both on, and that it refuses nothing else but what the table of differences
//! below says. Git answers here, over a table of every spelling and over generated paths.

#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::process::{Command, Output, Stdio};

use bstr::ByteSlice as _;
use git_vws::model::{AgentId, PathError, Refusal, RepoPath};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

const EMPTY_BLOB: &str = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391";

/// A repository in a temporary directory, with nothing of the user's around it.
struct Repo(tempfile::TempDir);

impl Repo {
    fn new() -> Self {
        let repo = Self(tempfile::tempdir().unwrap());
        assert!(
            repo.git(&["init", "-q", "--object-format=sha1"], b"")
                .status
                .success()
        );
        repo
    }

    fn git<A: AsRef<OsStr>>(&self, args: &[A], input: &[u8]) -> Output {
        let mut child = Command::new("git")
            .args(["-c", "core.protectHFS=true", "-c", "core.protectNTFS=true"])
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.0.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", self.0.path().parent().unwrap())
            .current_dir(self.0.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Git may stop reading at the first bad path.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    /// Asks git whether its index takes these paths, all of them.
    fn takes(&self, mode: &str, paths: &[&[u8]]) -> bool {
        // A new index each time, so that no answer depends on the one before.
        let _ = std::fs::remove_file(self.0.path().join(".git/index"));
        let mut lines = Vec::new();
        for path in paths {
            lines.extend_from_slice(format!("{mode} {EMPTY_BLOB}\t").as_bytes());
            lines.extend_from_slice(path);
            lines.push(0);
        }
        let output = self.git(&["update-index", "-z", "--index-info"], &lines);
        // A path that it refuses it leaves out with a remark, and still exits with 0.
        let refused = output.stderr.contains_str("Ignoring path");
        assert!(
            output.status.success() && refused != output.stderr.is_empty(),
            "{output:?}"
        );
        !refused
    }
}

/// Paths that both accept.
#[rustfmt::skip]
const ACCEPTED: &[&str] = &[
    "a", "a/b/c", "a b/ c", "-", "...", ".a", "a.", "a/..b", "..a", "a..", ".. ", ". ", ".gi",
    ".gitt", ".git1", ".git_", ".git-foo", ".gitignore", ".gitattributes", ".gitmodules", "git",
    "git/config", "x.git", "x.git/config", " .git", "..git", ".git~1", "git~", "git~2", "git~10",
    "git~1a", "git~1 a", "gıt~1", ".git .a", ".git. x/y", "relo", "relo/a", ".reloc", ".relo-x",
    ".relo. x", "a/.relo/b", "a/.RELO", "a/relo~1", "relo~2", "a\\b", "\\", "a\\", "\\a",
    "a\\.relo", "a\\..b", "a\\...", "a/b\\c/d", ".gitx\\y", "a:b", "C:", "a::$DATA", "con",
    "a\n\t\"b", "grüße/你好", "\u{200c}a", "a\u{feff}", ".g\u{200b}it", ".gi\u{301}t",
    ".\u{ff47}it", ".gıt", ".git\u{e9}", ".git\u{200b}", "a\\.g\u{200c}it",
];

/// Spellings of git's directory, which both refuse.
#[rustfmt::skip]
const PROTECTED: &[&str] = &[
    ".git", ".GIT", ".Git", ".gIt", ".git/config", "a/.git", "a/.git/b", "a/b/.GiT/c", ".git.",
    ".git ", ".git...", ".git . .", ".GIT . ./x", "a/.git. ", ".git:", ".git::$INDEX_ALLOCATION",
    ".git::$INDEX_ALLOCATION/config", ".git .:x", "a/.Git:foo", "git~1", "GIT~1", "Git~1/config",
    "a/gIT~1", "git~1.", "git~1 ", "GIT~1 . .", "git~1:", "git~1::$INDEX_ALLOCATION", ".git\\",
    ".git\\config", ".GIT \\config", "git~1\\config", "a\\.git", "a\\.git\\b", "a\\.GIT. ",
    "a\\git~1", "a\\git~1:x", "a\\.GIT .\\b", "a/b\\.git/c", "a\\\\.git", ".g\u{200c}it",
    "\u{200c}.git", "\u{200d}\u{200e}.git", ".\u{200f}git", ".gi\u{202a}t", ".gi\u{202b}t",
    ".gi\u{202c}t", ".gi\u{202d}t", ".git\u{202e}", ".git\u{206a}", ".g\u{206b}\u{206c}it",
    ".g\u{206d}\u{206e}it", ".GI\u{206f}T", ".git\u{feff}", "\u{feff}.GIT/config",
    "a/.g\u{200c}it/b", "a/.g\u{200c}it", ".git\u{ffff}",
];

/// Where we are stricter than git on Linux, and why: ours at the top in every spelling, and `..`
/// between backslashes, which git refuses on Windows only. And git on Linux does not look behind a
/// backslash that starts a component.
const STRICTER: &[(&str, Refusal)] = &[
    (".relo", Refusal::ProtectedPath),
    (".relo/worktrees/a", Refusal::ProtectedPath),
    (".RELO", Refusal::ProtectedPath),
    (".Relo/a", Refusal::ProtectedPath),
    (".relo.", Refusal::ProtectedPath),
    (".relo . ./a", Refusal::ProtectedPath),
    (".relo:", Refusal::ProtectedPath),
    (".relo::$INDEX_ALLOCATION/a", Refusal::ProtectedPath),
    (".relo\\a", Refusal::ProtectedPath),
    (".\\.relo", Refusal::ProtectedPath),
    ("\\.relo", Refusal::ProtectedPath),
    ("relo~1", Refusal::ProtectedPath),
    ("RELO~1/a", Refusal::ProtectedPath),
    (".r\u{200c}elo", Refusal::ProtectedPath),
    ("\u{feff}.RELO/a", Refusal::ProtectedPath),
    ("\\.git", Refusal::ProtectedPath),
    ("a/\\git~1\\b", Refusal::ProtectedPath),
    ("a\\..\\b", Refusal::Escapes),
    ("..\\a", Refusal::Escapes),
    ("a\\..", Refusal::Escapes),
    ("a/b\\../c", Refusal::Escapes),
    ("a\\..\\.relo", Refusal::Escapes),
];

/// What neither takes for other reasons.
#[rustfmt::skip]
const NEITHER: &[(&str, Refusal)] = &[
    ("..", Refusal::Escapes), ("../a", Refusal::Escapes), ("a/..", Refusal::Escapes),
    ("a/../b", Refusal::Escapes), ("/", Refusal::Escapes), ("/a", Refusal::Escapes),
    ("//a", Refusal::Escapes), ("a/", Refusal::Escapes), ("a//b", Refusal::Escapes),
    ("a//", Refusal::Escapes), (".", Refusal::Escapes), ("./a", Refusal::Escapes),
    ("a/.", Refusal::Escapes), ("a/./b", Refusal::Escapes),
];

#[test]
fn the_accepted_table() {
    let repo = Repo::new();
    let bytes: &[&[u8]] = &[
        b"\xff",
        b"a\xff/b",
        b".\xffgit",
        b".gi\xfft",
        b".git\x01",
        b"\x80.git",
    ];
    for path in ACCEPTED
        .iter()
        .map(|path| path.as_bytes())
        .chain(bytes.iter().copied())
    {
        assert_eq!(RepoPath::new(path).unwrap().as_bytes(), path);
        assert!(
            repo.takes("100644", &[path]),
            "git refuses {:?}",
            path.as_bstr()
        );
    }
}

#[test]
fn the_protected_table() {
    let repo = Repo::new();
    let bytes: &[&[u8]] = &[
        b".git\xff",
        b"a/.GIT\x80x/b",
        b".git\xe2\x80",
        b".git\xed\xa0\x80",
    ];
    for path in PROTECTED
        .iter()
        .map(|path| path.as_bytes())
        .chain(bytes.iter().copied())
    {
        let error = RepoPath::from_tree(path).expect_err(&format!("{:?}", path.as_bstr()));
        assert_eq!(error, PathError::Protected { path: path.into() });
        assert!(
            !repo.takes("100644", &[path]),
            "git takes {:?}",
            path.as_bstr()
        );
        // The same with the other command, which is the one the rule is told of.
        let path = OsStr::from_bytes(path);
        let info = [
            OsStr::new("100644,"),
            OsStr::new(EMPTY_BLOB),
            OsStr::new(","),
            path,
        ];
        let info = info.join(OsStr::new(""));
        let args = ["update-index", "--add", "--cacheinfo"].map(OsStr::new);
        let refused = repo.git(&[&args[..], &[&info]].concat(), b"");
        assert!(!refused.status.success(), "{path:?}");
    }
}

#[test]
fn the_table_of_differences() {
    let repo = Repo::new();
    for (path, kind) in STRICTER {
        assert_eq!(
            RepoPath::new(path).expect_err(path).refusal(),
            *kind,
            "{path:?}"
        );
        assert!(
            repo.takes("100644", &[path.as_bytes()]),
            "no difference: {path:?}"
        );
    }
    for (path, kind) in NEITHER {
        assert_eq!(
            RepoPath::new(path).expect_err(path).refusal(),
            *kind,
            "{path:?}"
        );
        assert!(
            !repo.takes("100644", &[path.as_bytes()]),
            "git takes {path:?}"
        );
    }
    for path in ["", "\0", "a\0b"] {
        assert!(
            matches!(RepoPath::new(path), Err(PathError::Invalid { .. })),
            "{path:?}"
        );
    }
}

#[test]
fn links_named_gitmodules() {
    let repo = Repo::new();
    #[rustfmt::skip]
    let forbidden = [
        ".gitmodules", ".GITMODULES", "a/.gitModules", ".gitmodules ", ".gitmodules. .",
        ".gitmodules:x", "gitmod~1", "GITMOD~4", "gitmod~2 .", "gi7eba~1", "GI7EBA~9", "gi7eb~10",
        "g~123456", "gi7e~123", "~1234567", "a\\gitmod~1", "a\\.gitmodules",
        ".git\u{200c}modules", "\u{feff}.GITMODULES", ".gitmodules/a",
    ];
    #[rustfmt::skip]
    let allowed = [
        ".gitmodule", ".gitmodulesx", "gitmodules", "gitmod~5", "gitmod~0", "gitmod~",
        "gitmod~12", "gi7eba~0", "gi7eba~1x", "gi7ebaa~1", "gi7ec~10", "g~0123456", "~12345678",
        ".gitignore", ".gitattributes", "a", "a\\gitmodules", ".gitmodules x", "gitmod~1/a",
    ];
    for (paths, is_forbidden) in [(&forbidden[..], true), (&allowed[..], false)] {
        for path in paths {
            let answer = RepoPath::new(path).unwrap().is_dotfile_link_forbidden();
            assert_eq!(answer, is_forbidden, "{path:?}");
            assert_eq!(
                repo.takes("120000", &[path.as_bytes()]),
                !is_forbidden,
                "git on {path:?}"
            );
            assert!(
                repo.takes("100644", &[path.as_bytes()]),
                "git on the file {path:?}"
            );
        }
    }
}

/// Paths made of the pieces that the rules are about, so that near misses are common.
fn tricky_path() -> impl Strategy<Value = Vec<u8>> {
    #[rustfmt::skip]
    let pieces: Vec<&[u8]> = vec![
        b".git", b".GIT", b"git~1", b".gitmodules", b"gitmod~1", b"gi7eba", b"~1", b".relo",
        b"relo~1", b".", b"..", b" ", b":", b"\\", b"/", b"/", b"a", b"g", b"it", b"\xe2\x80\x8c",
        b"\xef\xbb\xbf", b"\xff", b"\xef\xbf\xbf", b"\xc4\xb1", b"\xc4\xb0", b"1", b"\n",
    ];
    let made = proptest::collection::vec(proptest::sample::select(pieces), 1..7);
    prop_oneof![
        4 => made.prop_map(|pieces| pieces.concat()),
        1 => proptest::collection::vec(1_u8.., 1..12),
    ]
}

/// A runner for tests that start a process per case: few cases, and nothing kept on disk.
fn runner(cases: u32) -> TestRunner {
    TestRunner::new(ProptestConfig {
        cases,
        failure_persistence: None,
        ..ProptestConfig::default()
    })
}

/// Tells whether a component starts with a backslash, behind which git on Linux does not look.
fn hides_from_git(path: &[u8]) -> bool {
    path.split(|byte| *byte == b'/')
        .any(|component| component.starts_with(b"\\"))
}

/// Tells whether a refusal is one of the documented differences.
fn is_difference(path: &[u8], error: &PathError) -> bool {
    match error {
        PathError::Protected { .. } => {
            // The generator never splits the word itself.
            hides_from_git(path) || path.to_lowercase().contains_str("relo")
        }
        PathError::Escapes { .. } => path
            .split(|b| matches!(b, b'/' | b'\\'))
            .any(|part| part == b".."),
        PathError::Invalid { .. } => false,
    }
}

#[test]
fn generated_paths_agree_with_git() {
    let repo = Repo::new();
    let mut runner = runner(400);
    let run = runner.run(&tricky_path(), |path| {
        let git = repo.takes("100644", &[&path]);
        match RepoPath::new(&path) {
            Ok(accepted) => {
                prop_assert!(git, "we accept, git refuses");
                let link = repo.takes("120000", &[&path]);
                let forbidden = accepted.is_dotfile_link_forbidden();
                prop_assert!(
                    link != forbidden || (link && hides_from_git(&path)),
                    "{link} as a link"
                );
            }
            Err(error) => prop_assert!(
                !git || is_difference(&path, &error),
                "{error:?}, git accepts"
            ),
        }
        Ok(())
    });
    run.unwrap();
}

proptest! {
    #[test]
    fn components_round_trip(path in tricky_path()) {
        if let Ok(accepted) = RepoPath::new(&path) {
            let parts: Vec<&[u8]> = accepted.components().map(|part| part.as_bytes()).collect();
            prop_assert_eq!(parts.join(&b'/'), path.clone());
            prop_assert!(parts.iter().all(|part| !part.is_empty()));
            prop_assert_eq!(accepted.file_name(), parts[parts.len() - 1].as_bstr());
            // What `parent` does without a check must pass it, and `join` leads back.
            if let Some(parent) = accepted.parent() {
                prop_assert_eq!(&RepoPath::new(parent.as_bytes()).unwrap(), &parent);
                prop_assert!(accepted.starts_with_dir(parent.as_bstr()));
                prop_assert_eq!(&parent.join(accepted.file_name()).unwrap(), &accepted);
            } else {
                prop_assert_eq!(parts.len(), 1);
            }
        }
    }

    #[test]
    fn folding_case_never_reaches_a_protected_path(path in tricky_path()) {
        if let Ok(accepted) = RepoPath::new(&path) {
            let spellings = [path.to_ascii_lowercase(), path.to_ascii_uppercase(), path.to_lowercase()];
            for folded in spellings {
                let folded = RepoPath::new(folded).unwrap();
                prop_assert_eq!(folded.is_dotfile_link_forbidden(), accepted.is_dotfile_link_forbidden());
            }
        }
    }

    #[test]
    fn any_bytes_are_judged_without_a_panic(path in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Err(error) = RepoPath::new(&path) {
            prop_assert!(!error.to_string().chars().any(char::is_control));
        }
    }
}

#[test]
fn every_agent_id_makes_valid_refs() {
    let repo = Repo::new();
    let mut runner = runner(200);
    runner
        .run(&"[A-Za-z0-9._-]{1,9}(\\.lock|\\.LOCK|\\.)?", |text| {
            let valid = |name: String| repo.git(&["check-ref-format", &name], b"").status.success();
            let git = valid(format!("refs/relo/vws/{text}/overlay"))
                && valid(format!("refs/heads/relo/{text}"));
            let ours = AgentId::new(&text).is_ok();
            prop_assert!(git || !ours, "git refuses '{text}'");
            Ok(())
        })
        .unwrap();
}
