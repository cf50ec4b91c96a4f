//! The main job on a real repository: thousands of real source files, a user in the middle of work,
//! three agents, decisions, and the way back; through the binary, byte for byte.
#![allow(clippy::unwrap_used, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::ByteSlice;
use common::Sandbox;

/// How many files the repository must have to count as real.
const FILES: usize = 5_000;
/// Larger files only make the test slow.
const LARGEST: u64 = 48 << 10;

/// Copies real files of this machine into the repository: sources of the crates that this package
/// is built from, then headers and the documentation of the toolchain, until there are enough.
fn fill(sandbox: &Sandbox) -> usize {
    let home = std::env::var_os("HOME")
        .map(PathBuf::from)
        .unwrap_or_default();
    let cargo = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let rustup =
        std::env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from);
    let sources = [
        cargo.join("registry/src"),
        PathBuf::from("/usr/include"),
        PathBuf::from("/usr/share"),
        rustup.join("toolchains"),
    ];
    let mut copied = 0;
    for source in sources {
        copy_tree(&source, &sandbox.repo().join("src"), &source, &mut copied);
        if copied >= FILES + 200 {
            break;
        }
    }
    copied
}

fn copy_tree(folder: &Path, into: &Path, top: &Path, copied: &mut usize) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    let mut entries: Vec<_> = entries.flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if *copied >= FILES + 200 {
            return;
        }
        let Ok(meta) = fs::symlink_metadata(entry.path()) else {
            continue;
        };
        let name = entry.file_name();
        if meta.is_dir() {
            copy_tree(&entry.path(), into, top, copied);
        } else if meta.is_file()
            && meta.len() <= LARGEST
            && !name.as_encoded_bytes().starts_with(b".git")
        {
            let to = into.join(entry.path().strip_prefix(top).unwrap());
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            if fs::copy(entry.path(), &to).is_ok() {
                *copied += 1;
            }
        }
    }
}

fn lines(replace: &[(usize, &str)]) -> String {
    (1..=200)
        .map(|n| {
            let own = replace.iter().find(|(line, _)| *line == n);
            own.map_or_else(|| format!("line {n}\n"), |(_, text)| format!("{text}\n"))
        })
        .collect()
}

/// Everything of the user's: what git says of the tree, the index and config bytes, HEAD, branches,
/// stash, and the bytes and modes of the files at play.
fn users_side(sandbox: &Sandbox, files: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let git = sandbox.repo().join(".git");
    let mut state = BTreeMap::new();
    for name in ["index", "config", "HEAD"] {
        state.insert(name.to_owned(), fs::read(git.join(name)).unwrap());
    }
    // With a private index, so that looking refreshes nothing.
    let status = sandbox
        .command("git")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .args([
            "status",
            "--porcelain=v2",
            "-z",
            "--branch",
            "--untracked-files=all",
        ])
        .output()
        .unwrap();
    state.insert("status".into(), status.stdout);
    let refs = ["refs/heads", "refs/tags", "refs/stash", "refs/remotes"];
    let mut args = vec!["for-each-ref"];
    args.extend(refs);
    let theirs: Vec<u8> = sandbox
        .git(&args)
        .lines()
        .filter(|line| !line.contains_str("refs/heads/relo/"))
        .flat_map(|line| [line, b"\n"].concat())
        .collect();
    state.insert("refs".into(), theirs);
    state.insert("stash".into(), sandbox.git(&["stash", "list"]));
    for file in files {
        use std::os::unix::fs::PermissionsExt;
        let path = sandbox.repo().join(file);
        let mode = fs::symlink_metadata(&path).map_or(0, |meta| meta.permissions().mode());
        let mut bytes = fs::read(&path).unwrap_or_else(|_| b"<none>".to_vec());
        bytes.extend_from_slice(format!("\n{mode:o}").as_bytes());
        state.insert(format!("file {file}"), bytes);
    }
    state
}

fn differing<'a>(
    one: &'a BTreeMap<String, Vec<u8>>,
    other: &BTreeMap<String, Vec<u8>>,
) -> Vec<&'a str> {
    one.iter()
        .filter(|(key, value)| other.get(*key) != Some(value))
        .map(|(key, _)| key.as_str())
        .collect()
}

const AT_PLAY: [&str; 9] = [
    "shared.c",
    "conflict.c",
    "staged.c",
    "unstaged.c",
    "untracked.c",
    "doomed.c",
    "by-alice.c",
    "by-bob.c",
    "carol.c",
];

#[test]
fn three_agents_and_a_user_in_the_middle_of_work() {
    let sandbox = Sandbox::new();
    let copied = fill(&sandbox);
    assert!(copied >= FILES, "only {copied} real files on this machine");
    for name in [
        "shared.c",
        "conflict.c",
        "staged.c",
        "unstaged.c",
        "doomed.c",
        "carol.c",
    ] {
        sandbox.write(name, lines(&[]));
    }
    sandbox.commit("a real repository");
    sandbox.git(&["branch", "other"]);
    sandbox.write("shared.c", lines(&[(100, "stashed")]));
    sandbox.git(&["stash", "-q"]);
    // The user: staged, unstaged, untracked, and edits where agents will edit too.
    sandbox.write("staged.c", lines(&[(1, "staged by the user")]));
    sandbox.git(&["add", "staged.c"]);
    sandbox.write("unstaged.c", lines(&[(1, "edited by the user")]));
    sandbox.write("untracked.c", "the user's new file\n");
    sandbox.write("shared.c", lines(&[(10, "the user was here")]));

    // Alice works through the view, Bob and Carol by commands in a directory.
    let vws = |args: &[&str]| drop(sandbox.vws(args).success());
    vws(&["overlay", "create", "alice"]);
    let alices = lines(&[(10, "the user was here"), (50, "alice was here")]);
    let write = |path, text: &str| {
        let args = ["overlay", "write", "alice", path];
        drop(sandbox.vws_with_input(&args, text.as_bytes()).success());
    };
    write("shared.c", &alices);
    write("by-alice.c", "made by alice\n");
    vws(&["propose", "alice"]);
    let bob = "sed -i 's/^line 150$/bob was here/' shared.c && echo made >by-bob.c && \
               chmod +x by-bob.c && rm doomed.c && test -z \"$(git status --porcelain x)\"";
    vws(&["run", "bob", "--", "sh", "-c", bob]);
    let carol = "sed -i 's/^line 30$/carol was here/' conflict.c && \
                 sed -i 's/^line 1$/carol was here/' carol.c";
    vws(&["run", "carol", "--", "sh", "-c", carol]);
    assert!(!sandbox.repo().join(".relo/worktrees/bob").exists());

    // Meanwhile the user goes on, on the very line that Carol took.
    sandbox.write("conflict.c", lines(&[(30, "the user took this line")]));
    sandbox.write(
        "shared.c",
        lines(&[(10, "the user was here"), (190, "and here")]),
    );
    let before = users_side(&sandbox, &AT_PLAY);

    vws(&["accept", "alice"]);
    vws(&["accept", "bob"]);
    let refused = sandbox.vws(&["accept", "carol"]);
    assert_eq!(refused.code(), Some(1), "{refused}");
    assert!(refused.stderr().contains_str("[conflict]"), "{refused}");

    let merged = lines(&[
        (10, "the user was here"),
        (50, "alice was here"),
        (150, "bob was here"),
        (190, "and here"),
    ]);
    assert_eq!(
        sandbox.read("shared.c").as_bstr(),
        merged.as_bytes().as_bstr()
    );
    assert_eq!(sandbox.read("by-alice.c"), b"made by alice\n");
    assert_eq!(
        sandbox.read("carol.c"),
        lines(&[(1, "carol was here")]).into_bytes()
    );
    let after = users_side(&sandbox, &AT_PLAY);
    let mut changed = differing(&after, &before);
    changed.retain(|key| *key != "status");
    let wanted = ["shared.c", "doomed.c", "by-alice.c", "by-bob.c", "carol.c"];
    let mut wanted: Vec<String> = wanted.iter().map(|name| format!("file {name}")).collect();
    wanted.sort();
    assert_eq!(changed, wanted, "only what accept wrote differs");

    for _ in 0..3 {
        vws(&["undo"]);
    }
    let undone = users_side(&sandbox, &AT_PLAY);
    assert_eq!(differing(&undone, &before), Vec::<&str>::new());
    // Nothing of ours is in the user's way.
    assert!(!undone["status"].contains_str(".relo"));
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}
