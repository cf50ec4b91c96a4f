//! One row for each thing that a tool can do to a path.

use crate::common::Sandbox;
use crate::lay::Laid;

/// What the rows start from.
fn base(sandbox: &Sandbox) {
    for path in ["f", "g", "d/a", "d/b", "d/deep/c", "run.sh"] {
        sandbox.write(path, format!("{path}\n"));
    }
    std::os::unix::fs::symlink("d/a", sandbox.repo().join("l")).unwrap();
    std::os::unix::fs::symlink("/outside", sandbox.repo().join("old-leaver")).unwrap();
    let run = sandbox.repo().join("run.sh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(run, mode).unwrap();
}

/// Rows where git itself says what is right; each with what is left out.
#[test]
fn as_git_add_all() {
    type Row<'r> = (&'r str, &'r str, &'r [(&'r str, &'r str)]);
    let rows: &[Row<'_>] = &[
        ("nothing", "", &[]),
        ("edited", "echo new > f", &[]),
        ("touched only", "touch f d/a", &[]),
        ("same content, new file", "cp f t; rm f; mv t f", &[]),
        ("deleted", "rm f d/a", &[]),
        ("folder deleted", "rm -r d", &[]),
        ("everything deleted", "rm -r d f g l run.sh old-leaver", &[]),
        ("new", "mkdir -p n/m; echo 1 > n/m/x; echo 2 > y", &[]),
        ("empty file", ": > empty; : > f", &[]),
        ("empty folder", "mkdir -p e/f", &[]),
        ("renamed", "mv f h; mv d e", &[]),
        ("bit set", "chmod +x f", &[]),
        ("bit cleared", "chmod -x run.sh", &[]),
        ("bit and content", "chmod +x f; echo new > f", &[]),
        ("group's bit", "chmod 654 f", &[]),
        ("file to link", "rm f; ln -s g f", &[]),
        ("link to file", "rm l; echo text > l", &[]),
        ("link elsewhere", "rm l; ln -s g l", &[]),
        ("link to nowhere", "ln -s no/where n", &[]),
        ("link to a folder", "ln -s d n", &[]),
        ("link up, inside", "ln -s ../f d/up", &[]),
        (
            "link loops",
            "ln -s u u; ln -s y x; ln -s x y; ln -s .. d/up",
            &[],
        ),
        ("file to folder", "rm f; mkdir f; echo 1 > f/x", &[]),
        ("file to empty folder", "rm f; mkdir f", &[]),
        ("folder to file", "rm -r d; echo 1 > d", &[]),
        ("folder to link", "rm -r d; ln -s f d", &[]),
        ("swapped", "mv f t; mv d f; mv t d", &[]),
        (
            "sorts around a slash",
            "echo > d.x; echo > d-x; echo > d0",
            &[],
        ),
        (
            "hostile names",
            "echo > ':(top)x'; echo > '*'; echo > '-n'; mkdir '?[a]'; \
           echo > '?[a]/ '; echo > \"$(printf 'n\\nl')\"; echo > \"$(printf '\\377')\"; \
           echo > '\"'; echo > ':!x'; echo > '!bang'; echo > '#hash'",
            &[],
        ),
        ("long name", "echo > $(printf 'x%.0s' $(seq 255))", &[]),
        ("time set back", "echo F > f; touch -r g f", &[]),
        ("same size", "printf 'F\\n' > f", &[]),
        (
            "our own folder",
            "mkdir -p .relo/x sub/.relo; echo > .relo/x/y; echo > sub/.relo/y; \
           rm -r .relo",
            &[],
        ),
    ];
    for (name, script, left_out) in rows {
        let mut laid = Laid::new(base);
        laid.sh(script);
        laid.row = (*name).to_owned();
        laid.expect(left_out);
    }
}

const BASE: [(&str, &str); 8] = [
    ("d/a", "d/a\n"),
    ("d/b", "d/b\n"),
    ("d/deep/c", "d/deep/c\n"),
    ("f", "f\n"),
    ("g", "g\n"),
    ("l", "d/a"),
    ("old-leaver", "/outside"),
    ("run.sh", "run.sh\n"),
];

/// Rows where git fails as a whole, or takes what we must not: `g` is edited in each and must come
/// through; `changes` are made to the files of the base.
#[test]
fn left_out_without_stopping_the_rest() {
    type Row<'r> = (
        &'r str,
        &'r str,
        &'r [(&'r str, Option<&'r str>)],
        &'r [(&'r str, &'r str)],
    );
    let rows: &[Row<'_>] = &[
        ("fifo", "mkfifo p", &[], &[("p", "special_file")]),
        (
            "file to fifo",
            "rm f; mkfifo f",
            &[],
            &[("f", "special_file")],
        ),
        (
            "folder to fifo",
            "rm -r d; mkfifo d",
            &[],
            &[("d", "special_file")],
        ),
        (
            "fifo in a new folder",
            "mkdir n; mkfifo n/p; echo 1 > n/x",
            &[("n/x", Some("1\n"))],
            &[("n/p", "special_file")],
        ),
        (
            "leaving link",
            "ln -s ../out x; ln -s /etc d/y",
            &[],
            &[("d/y", "escapes"), ("x", "escapes")],
        ),
        (
            "file to leaving link",
            "rm f; ln -s /etc/passwd f",
            &[],
            &[("f", "escapes")],
        ),
        (
            "folder to leaving link",
            "rm -r d; ln -s /etc d",
            &[],
            &[("d", "escapes")],
        ),
        (
            "old leaving link moved on",
            "rm old-leaver; ln -s /other old-leaver",
            &[],
            &[("old-leaver", "escapes")],
        ),
        (
            "old leaving link made anew",
            "rm old-leaver; ln -s /outside old-leaver",
            &[],
            &[],
        ),
        (
            "gitmodules as a link",
            "ln -s f .gitmodules",
            &[],
            &[(".gitmodules", "protected_path")],
        ),
        (
            "protected",
            "mkdir n; echo > n/.GIT; echo > 'git~1'; echo > .Relo; mkdir -p .relo/x",
            &[],
            &[
                (".Relo", "protected_path"),
                ("git~1", "protected_path"),
                ("n/.GIT", "protected_path"),
            ],
        ),
        (
            "too large",
            "head -c 5000 /dev/zero > big; mkdir n; cp big n/big",
            &[],
            &[("big", "too_large"), ("n/big", "too_large")],
        ),
        (
            "grown too large",
            "head -c 5000 /dev/zero > f",
            &[],
            &[("f", "too_large")],
        ),
        (
            "nested repository",
            "git init -q app; echo 1 > app/x; git init -q n/app; echo 2 > n/y",
            &[("n/y", Some("2\n"))],
            &[("app", "nested_repository"), ("n/app", "nested_repository")],
        ),
        (
            "nested, named by a file",
            "mkdir app; echo gitdir: /x > app/.git; echo > app/y",
            &[],
            &[("app", "nested_repository")],
        ),
        (
            "nested over a file",
            "rm f; git init -q f; echo 1 > f/x",
            &[],
            &[("f", "nested_repository")],
        ),
        (
            "nested over a folder",
            "rm -r d; git init -q d; echo 1 > d/a",
            &[],
            &[("d", "nested_repository")],
        ),
        (
            "deletions beside",
            "rm f; mkfifo p",
            &[("f", None)],
            &[("p", "special_file")],
        ),
        (
            "nothing under a gitignored fifo",
            "echo p > .gitignore; mkfifo p",
            &[(".gitignore", Some("p\n"))],
            &[],
        ),
    ];
    for (name, script, changes, left_out) in rows {
        let mut laid = Laid::new(base);
        laid.sandbox
            .git(&["config", "relo.workspace.maxFileSize", "4k"]);
        laid.sh(script);
        laid.write("g", "edited\n");
        let mut files: std::collections::BTreeMap<_, _> = BASE.into_iter().collect();
        files.insert("g", "edited\n");
        for (path, content) in *changes {
            match content {
                Some(content) => files.insert(path, content),
                None => files.remove(path),
            };
        }
        laid.row = (*name).to_owned();
        laid.expect_files(&files.into_iter().collect::<Vec<_>>(), left_out);
    }
}

#[test]
fn no_object_is_written_for_what_is_too_large() {
    let laid = Laid::new(base);
    laid.sandbox
        .git(&["config", "relo.workspace.maxFileSize", "4k"]);
    for round in 0..3 {
        laid.write("big", vec![b'0' + round; 5000]);
        laid.write("f", format!("{round}\n"));
        let captured = laid.capture();
        assert!(captured.changed && captured.left_out.len() == 1);
        let big = laid.git(&["hash-object", "big"]);
        let repository = laid.repository();
        assert!(
            !repository
                .objects()
                .unwrap()
                .exists(crate::lay::id(&laid, &big))
        );
    }
    // The raised limit takes effect at once.
    laid.sandbox
        .git(&["config", "relo.workspace.maxFileSize", "6k"]);
    laid.expect(&[]);
    assert!(laid.overlay().contains_key(bstr::BStr::new("big")));
}

#[test]
fn without_the_executable_bit_modes_stay() {
    let laid = Laid::new(base);
    laid.sandbox.git(&["config", "core.fileMode", "false"]);
    laid.write("run.sh", "edited\n");
    laid.mode("run.sh", 0o644);
    laid.mode("f", 0o755);
    laid.write("new", "1\n");
    laid.mode("new", 0o755);
    laid.expect(&[]);
    let overlay = laid.overlay();
    let mode = |path: &str| overlay[bstr::BStr::new(path)][..6].to_owned();
    assert_eq!(mode("run.sh"), "100755");
    assert_eq!(mode("f"), "100644");
    assert_eq!(mode("new"), "100644");
}

#[test]
fn without_links_a_file_at_a_links_path_stays_one() {
    let laid = Laid::new(base);
    laid.sandbox.git(&["config", "core.symlinks", "false"]);
    laid.sh("rm l old-leaver; printf d/a > l; printf /outside > old-leaver");
    assert!(!laid.capture().changed);
    laid.sh("printf d/b > l");
    laid.expect(&[]);
    assert!(laid.overlay()[bstr::BStr::new("l")].starts_with("120000"));
    laid.sh("printf ../out > l");
    let captured = laid.capture();
    assert_eq!(captured.left_out.len(), 1);
    assert_eq!(captured.left_out[0].kind.as_str(), "escapes");
}

#[test]
fn what_was_edited_and_taken_back_is_no_change() {
    let laid = Laid::new(base);
    laid.write("f", "x\n");
    laid.write("n/x", "x\n");
    assert!(laid.capture().changed);
    laid.sh("echo f > f; rm -r n");
    assert!(laid.capture().changed);
    assert_eq!(laid.current().tree, laid.directory.cut.tree);
    assert!(!laid.capture().changed);
}

#[test]
fn submodules_are_carried_through() {
    let sandbox = Sandbox::new();
    base(&sandbox);
    let commit = sandbox.commit("first");
    for path in ["sub", "d/sub", "gone"] {
        let info = format!("160000,{commit},{path}");
        sandbox.git(&["update-index", "--add", "--cacheinfo", &info]);
    }
    sandbox.git(&["commit", "-q", "-m", "submodules"]);
    let laid = Laid::out(sandbox, false);
    laid.sh("git init -q sub; echo 1 > sub/x; echo 2 > d/sub/y; rmdir gone; rm f");
    let captured = laid.capture();
    let mut files: Vec<_> = BASE.into_iter().filter(|(path, _)| *path != "f").collect();
    files.extend([("d/sub", "commit"), ("gone", "commit"), ("sub", "commit")]);
    files.sort_unstable();
    let left_out = [("gone", "nested_repository")];
    assert_eq!(captured.left_out.len(), 1);
    laid.expect_files(&files, &left_out);
}

/// Same-size edits, one after the other without a pause.
#[test]
fn edits_of_the_same_size_are_found() {
    let laid = Laid::new(base);
    for round in 0..100 {
        let before = std::fs::read(laid.path("f")).unwrap();
        laid.write("f", format!("{}\n", round % 2));
        let after = std::fs::read(laid.path("f")).unwrap();
        let captured = laid.capture();
        assert_eq!(captured.changed, before != after, "round {round}");
    }
}

/// An edit in the very tick of the clock in which the manifest was written: the stat data are
/// equal, and only the racy rule finds it. `f` has another content, `g` another mode and an old time.
#[test]
fn edits_in_the_tick_of_the_manifest_are_found() {
    for (path, script) in [
        ("f", "echo F > f"),
        ("g", "chmod +x g; touch -d 2001-01-01 g"),
    ] {
        let laid = Laid::new(base);
        laid.sh(script);
        crate::lay::write_manifest(&laid.repository(), &laid.directory);
        let manifest = laid.directory.manifest_path();
        let file = std::fs::File::options().write(true).open(manifest).unwrap();
        let stat = rustix::fs::lstat(laid.path(path)).unwrap();
        // A second later it would be taken at its word, as it must be to be of any use.
        let tick = std::time::Duration::new(stat.st_ctime as u64, stat.st_ctime_nsec as u32);
        let tick = std::time::UNIX_EPOCH + tick;
        file.set_modified(tick + std::time::Duration::from_secs(1))
            .unwrap();
        assert!(!laid.capture().changed, "{path}");
        file.set_modified(tick).unwrap();
        laid.expect(&[]);
        assert_ne!(laid.current().tree, laid.directory.cut.tree, "{path}");
    }
}
