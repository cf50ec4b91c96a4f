//! Reading refs, beside what git reads.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::git::scratch::Scratch;

#[test]
fn what_git_lists_is_listed_and_found() {
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        let scratch = Scratch::new(format);
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let one = scratch.id(&["rev-parse", "HEAD"]).to_string();
        let two = scratch
            .id(&["commit-tree", "-m", "two", "HEAD^{tree}"])
            .to_string();
        let name = |rest: &str| format!("refs/relo/x/{rest}");
        let repository = scratch.open();
        let git = scratch.top().join(".git");
        let check = || {
            let out = scratch.line(&[
                "for-each-ref",
                "--format=%(refname) %(objectname)",
                "refs/relo/x",
            ]);
            let refs = repository.refs();
            // A symbolic ref is none of ours.
            let expected: BTreeMap<String, ObjectId> = out
                .lines()
                .filter(|line| !line.contains("symbolic"))
                .map(|line| line.split_once(' ').unwrap())
                .map(|(name, id)| (name.to_owned(), parsed(id.as_bytes()).unwrap()))
                .collect();
            assert_eq!(refs.list("refs/relo/x/").unwrap(), expected);
            let names = refs.names_in("refs/relo/x/").unwrap();
            for name in expected.keys() {
                let next = name["refs/relo/x/".len()..].split('/').next();
                assert!(names.contains(next.unwrap()), "{name}");
            }
            for (name, id) in &expected {
                assert_eq!(refs.find(name).unwrap(), Some(*id), "{name}");
                assert_eq!(refs.look(name), Seen::Id(*id), "{name}");
            }
            expected.len()
        };
        assert_eq!(check(), 0);
        for rest in ["a", "b/1", "b/10", "c"] {
            scratch.git(&["update-ref", &name(rest), &one]);
        }
        // Its name begins as another one's, and it is beside the folder that is asked for.
        scratch.git(&["update-ref", "refs/relo/xx/a", &one]);
        scratch.git(&["tag", "-a", "-m", "t", "tagged"]);
        assert_eq!(check(), 4);
        scratch.git(&["pack-refs", "--all"]);
        assert_eq!(check(), 4);
        // In both, only in a file, gone; and what is no ref at all.
        scratch.git(&["update-ref", &name("b/1"), &two]);
        scratch.git(&["update-ref", &name("d/e"), &two]);
        scratch.git(&["update-ref", "-d", &name("c")]);
        for rest in ["a.lock", ".hidden"] {
            fs::write(git.join(name(rest)), format!("{one}\n")).unwrap();
        }
        fs::create_dir_all(git.join(name("empty/folder"))).unwrap();
        assert_eq!(check(), 4);
        scratch.git(&["symbolic-ref", &name("symbolic"), &name("a")]);
        assert_eq!(check(), 4);
        let refs = repository.refs();
        let held = refs.find(&name("symbolic")).unwrap().unwrap();
        assert_eq!(held.to_string(), one);
        for absent in ["c", "b", "d", "empty", "empty/folder", "a/b", "b/", "b/100"] {
            assert_eq!(refs.look(&name(absent)), Seen::Absent, "{absent}");
            assert_eq!(refs.find(&name(absent)).unwrap(), None, "{absent}");
        }
        // One that is damaged hides its packed line, and is an error to whoever asks for it.
        fs::write(git.join(name("b/10")), "no id\n").unwrap();
        assert!(refs.find(&name("b/10")).is_err());
        assert!(
            !refs
                .list("refs/relo/x/")
                .unwrap()
                .contains_key(&name("b/10"))
        );
        assert!(refs.list("refs/none/").unwrap().is_empty());
    }
}

#[test]
fn a_long_list_is_searched_where_it_is_sorted() {
    let id = "1234567890123456789012345678901234567890";
    let mut names: Vec<String> = (0..300)
        .map(|n| format!("refs/relo/{}/{n}", n % 7))
        .collect();
    names.extend((0..40).map(|n| format!("refs/tags/v{n}")));
    names.sort();
    for (header, turned) in [
        ("# pack-refs with: peeled fully-peeled sorted \n", false),
        ("", true),
    ] {
        for count in [0, 1, 2, 3, names.len()] {
            let mut listed = names[..count].to_vec();
            if turned {
                listed.reverse();
            }
            let line = |name: &String| match name.starts_with("refs/tags") {
                true => format!("{id} {name}\n^{id}\n"),
                false => format!("{id} {name}\n"),
            };
            let text = header.to_owned() + &listed.iter().map(line).collect::<String>();
            let below = |prefix: &str| {
                let found = lines_below(text.as_bytes(), prefix, 40);
                let mut found: Vec<String> = found.map(|(_, name)| name.to_string()).collect();
                found.sort();
                found
            };
            for prefix in [
                "refs/",
                "refs/relo/3/",
                "refs/relo/31",
                "refs/tags/v1",
                "refs/x",
                "refs/a",
            ] {
                let expected = names[..count]
                    .iter()
                    .filter(|name| name.starts_with(prefix));
                assert_eq!(
                    below(prefix),
                    expected.cloned().collect::<Vec<_>>(),
                    "{prefix} {count}"
                );
            }
            for (at, name) in names.iter().enumerate() {
                let seen = in_packed(text.as_bytes(), name, 40);
                assert_eq!(seen == Seen::Absent, at >= count, "{name} {count}");
            }
        }
    }
}

#[test]
fn no_ref_is_missed_while_it_is_packed() {
    let scratch = Scratch::new(ObjectFormat::Sha1);
    scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
    let one = scratch.line(&["rev-parse", "HEAD"]);
    let two = scratch.line(&["commit-tree", "-m", "two", "HEAD^{tree}"]);
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..50 {
                // Another id each time, so that there is a file again.
                let id = if round % 2 == 0 { &one } else { &two };
                scratch.git(&["update-ref", "refs/relo/x/y", id]);
                scratch.git(&["pack-refs", "--all"]);
            }
            done.store(true, std::sync::atomic::Ordering::SeqCst);
        });
        let repository = scratch.open();
        let refs = repository.refs();
        let mut begun = false;
        while !done.load(std::sync::atomic::Ordering::SeqCst) {
            let found = refs.look("refs/relo/x/y") != Seen::Absent;
            let listed = !refs.list("refs/relo/x/").unwrap().is_empty();
            assert!(!begun || found && listed);
            begun |= found;
        }
        assert!(begun);
    });
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
