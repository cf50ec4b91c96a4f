//! Refs as we read them, beside what git says.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::git::ObjectFormat;
use crate::git::scratch::Scratch;

const NAMES: [&str; 9] = [
    "refs/heads/main",
    "refs/heads/main/below",
    "refs/heads",
    "refs/relo",
    "refs/relo/vws/a",
    "refs/relo/vws/a/overlay",
    "refs/relo/vws/b/overlay",
    "refs/relo/vws/c/overlay",
    "refs/relo/vws/gone/overlay",
];

/// Compares a look at every name, and listings, with git's.
fn as_git_says(scratch: &Scratch, state: &str) {
    let repository = scratch.open();
    let refs = repository.refs();
    let listed = scratch.line(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let all: BTreeMap<&str, &str> = listed.lines().filter_map(|l| l.split_once(' ')).collect();
    for name in NAMES {
        let found = refs.find(name).unwrap().map(|id| id.to_string());
        assert_eq!(found.as_deref(), all.get(name).copied(), "{name}, {state}");
    }
    for prefix in ["refs/relo/vws/", "refs/heads/", "refs/relo/none/"] {
        // A symbolic ref is none of ours, and no listing has it.
        let below = |name: &&str| name.starts_with(prefix) && !name.contains("/c/");
        let expected: Vec<&str> = all.keys().copied().filter(below).collect();
        let list = refs.list(prefix).unwrap();
        assert_eq!(
            list.keys().collect::<Vec<_>>(),
            expected,
            "{prefix}, {state}"
        );
        let names = refs.names_in(prefix).unwrap();
        for name in &expected {
            let next = name[prefix.len()..].split('/').next().unwrap();
            assert!(names.contains(next), "{name}, {state}");
        }
    }
}

#[test]
fn refs_are_found_wherever_git_keeps_them() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scratch = Scratch::new(format);
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let one = scratch.id(&["rev-parse", "HEAD"]).to_string();
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "two"]);
        let two = scratch.id(&["rev-parse", "HEAD"]).to_string();
        as_git_says(&scratch, "none of ours");
        for (name, id) in [("a", &one), ("b", &two), ("gone", &two)] {
            let name = format!("refs/relo/vws/{name}/overlay");
            scratch.git(&["update-ref", &name, id]);
        }
        scratch.git(&["update-ref", "-d", "refs/relo/vws/gone/overlay"]);
        as_git_says(&scratch, "loose");
        scratch.git(&["pack-refs", "--all"]);
        as_git_says(&scratch, "packed");
        scratch.git(&["update-ref", "refs/relo/vws/a/overlay", &two]);
        scratch.git(&["symbolic-ref", "refs/relo/vws/c/overlay", "refs/heads/main"]);
        as_git_says(&scratch, "both, and a symbolic one");
        scratch.git(&["update-ref", "-d", "refs/relo/vws/b/overlay"]);
        scratch.git(&["update-ref", "refs/relo/vws/b/overlay/deeper", &one]);
        as_git_says(&scratch, "a folder in the place of one");
    }
}

#[test]
fn what_makes_no_sense_is_not_taken_for_absent() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let folder = scratch.top().join(".git/refs/relo/vws/a");
    fs::create_dir_all(&folder).unwrap();
    let id = scratch.line(&["rev-parse", "HEAD"]);
    for text in ["", "zzz\n", &id[..20]] {
        fs::write(folder.join("overlay"), text).unwrap();
        let found = scratch.open().refs().find("refs/relo/vws/a/overlay");
        assert!(found.is_err(), "{text:?}: {found:?}");
    }
}
