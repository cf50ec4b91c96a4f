//! Captures that meet failures, and directories that are being written.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use git_vws::layout::Live;
use git_vws::model::RepoPath;
use git_vws::workspace::Store;

use crate::common::Sandbox;
use crate::lay::{Laid, NOW};

/// Puts a `git` first in `PATH` that does `script` for `command` and is git for all else.
fn wrap(laid: &mut Laid, command: &str, script: &str) {
    let bin = laid.sandbox.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let path = path.to_str().unwrap().to_owned();
    let text = format!(
        "#!/bin/sh\nPATH='{path}'\nfor arg; do if test \"$arg\" = {command}; then {script}; fi; done\n\
         exec git \"$@\"\n"
    );
    fs::write(bin.join("git"), text).unwrap();
    fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
    let first = format!("{}:{path}", bin.display());
    laid.sandbox.set_env("PATH", first);
}

#[test]
fn a_failing_git_fails_the_capture() {
    let rows = [
        ("check-ignore", "exit 128"),
        ("check-ignore", "exit 0"),
        ("check-ignore", "exit 1"),
        ("check-ignore", "git \"$@\"; exit 128"),
        ("check-ignore", "kill -9 $$"),
        (
            "check-ignore",
            "printf 'a\\0b\\0c\\0d\\0'; cat >/dev/null; exit 0",
        ),
        ("check-attr", "exit 128"),
        ("check-attr", "exit 0"),
        ("update-index", "exit 128"),
        ("ls-files", "exit 0"),
    ];
    for (command, script) in rows {
        let mut laid = Laid::new(|sandbox| {
            sandbox.write("f", "f\n");
            sandbox.write(".gitignore", "secret\n");
            sandbox.write(".gitattributes", "* text\n");
        });
        laid.sh("echo 1 > secret; printf 'a\\r\\n' > new");
        let before = laid.current();
        wrap(&mut laid, command, script);
        let error = laid.try_capture();
        assert!(error.is_err(), "{command}: {script}");
        assert_eq!(laid.current().commit, before.commit, "{command}: {script}");
        assert!(laid.path("secret").exists() && laid.path("new").exists());
        wrap(&mut laid, command, ":");
        let captured = laid.capture();
        assert!(captured.changed);
        assert!(!laid.overlay().contains_key(bstr::BStr::new("secret")));
    }
}

#[test]
fn nothing_new_needs_no_git() {
    let mut laid = Laid::new(|sandbox| sandbox.write("f", "f\n"));
    laid.sh("mkdir n; echo 1 > n/x");
    assert!(laid.capture().changed);
    wrap(&mut laid, "-c", "exit 128");
    assert!(!laid.capture().changed);
    laid.write("f", "edited\n");
    laid.write("n/x", "edited\n");
    assert!(laid.capture().changed);
}

#[test]
fn a_read_only_workspace_imports_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("f", "f\n");
    sandbox.commit("base");
    let laid = Laid::out(sandbox, true);
    laid.write("f", "edited\n");
    laid.sh("git commit -q -a -m x");
    let captured = laid.capture();
    assert!(!captured.changed && captured.branches.is_empty());
    assert_eq!(captured.workspace.tree, laid.directory.cut.tree);
}

#[test]
fn a_file_that_is_being_written_never_tears() {
    let laid = Laid::new(|sandbox| sandbox.write("f", "f\n"));
    let path = laid.path("f");
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (stop, path) = (&stop, &path);
        scope.spawn(move || {
            let mut letter = b'a';
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                // Replaced as a whole: whoever reads must see one letter only.
                let new = path.with_extension("new");
                fs::write(&new, vec![letter; 200_000]).unwrap();
                fs::rename(&new, path).unwrap();
                letter = if letter == b'z' { b'a' } else { letter + 1 };
            }
        });
        for _ in 0..10 {
            let captured = laid.capture();
            let only_it = |one: &git_vws::workspace::LeftOut| one.path.starts_with(b"f");
            assert!(captured.left_out.iter().all(only_it));
            let files = laid.files();
            let (_, text) = files.iter().find(|(path, _)| path == "f").unwrap();
            let first = &text[..1];
            assert!(text == "f\n" || text.split(first).all(str::is_empty));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn live_reads_are_those_of_an_import() {
    let laid = Laid::new(|sandbox| {
        sandbox.write("f", "f\n");
        sandbox.write("d/g", "g\n");
        sandbox.write("d/h", "h\n");
        std::os::unix::fs::symlink("f", sandbox.repo().join("l")).unwrap();
        sandbox.write("p", "p\n");
        sandbox.write("gone", "gone\n");
        sandbox.write("c.txt", "c\n");
    });
    laid.sh("echo edited > d/g; rm p gone; mkfifo p; echo 1 > new; \
             echo '*.txt text' > .gitattributes; printf 'c\\r\\n' > c.txt");
    let repository = laid.repository();
    let store = Store::new(&repository, NOW);
    let read = |path: &str| {
        let path = RepoPath::new(path).unwrap();
        let live = Live::new(&store, laid.directory.clone()).unwrap();
        let file = live.read(&store, &path).unwrap();
        file.map(|file| String::from_utf8(file.bytes).unwrap())
    };
    assert_eq!(read("f").as_deref(), Some("f\n"));
    // Attributes that may rewrite: what lies on disk is not what would be stored.
    assert_eq!(read("c.txt"), None);
    for path in ["l", "p", "gone", "new", "no", "d"] {
        assert_eq!(read(path), None, "{path}");
    }
    laid.sh("rm .gitattributes");
    assert_eq!(read("d/g").as_deref(), Some("edited\n"));
    laid.sh("git init -q d");
    assert_eq!(read("d/g"), None);
    laid.sh("rm -r d; mkdir e; echo x > e/g; ln -s e d");
    assert_eq!(read("d/g"), None);
}

/// Run again by itself as another user, since nothing is unreadable to root.
#[test]
fn unreadable_paths_keep_what_was() {
    const NAME: &str = "trouble::unreadable_paths_keep_what_was";
    if rustix::process::geteuid().is_root() {
        let folder = tempfile::tempdir().unwrap();
        // The test itself may lie where nobody else can go.
        let test = folder.path().join("test");
        fs::copy(std::env::current_exe().unwrap(), &test).unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let mut command = std::process::Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(test)
            .args(["--exact", NAME])
            .env("TMPDIR", folder.path())
            .env("HOME", folder.path())
            .current_dir(folder.path());
        let done = command.output().unwrap();
        let said = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && said.contains("1 passed"), "{said}");
        return;
    }
    let laid = Laid::new(|sandbox| {
        for path in ["f", "t", "d/a", "d/b/c", "x/y"] {
            sandbox.write(path, format!("{path}\n"));
        }
    });
    laid.sh("mkdir n; echo 1 > n/x");
    laid.capture();
    laid.sh(
        "echo new > t; chmod 000 t; echo 1 > locked; chmod 000 locked; chmod 000 d; \
             chmod 400 x; echo 2 > n/x; chmod 000 n; mkdir m; chmod 000 m; echo edited > f",
    );
    let files = [
        ("d/a", "d/a\n"),
        ("d/b/c", "d/b/c\n"),
        ("f", "edited\n"),
        ("n/x", "1\n"),
        ("t", "t\n"),
        ("x/y", "x/y\n"),
    ];
    let left_out = ["d", "locked", "m", "n", "t", "x"].map(|path| (path, "unreadable"));
    laid.expect_files(&files, &left_out);
    laid.sh("chmod 755 d x n m; chmod 644 t locked");
    laid.expect(&[]);
}
