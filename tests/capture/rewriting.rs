//! Repositories that rewrite content: the overlay holds what git would store.

use crate::common::Sandbox;
use crate::lay::Laid;

/// Each alone: how the rewriting is set up, in the repository and by a tool in the directory.
#[test]
fn as_git_add_all() {
    type Row<'r> = (&'r str, fn(&Sandbox), &'r str);
    let rows: &[Row<'_>] = &[
        (
            "deep eol=crlf",
            |s| s.write("sub/deep/.gitattributes", "* text eol=crlf\n"),
            "",
        ),
        (
            "filter",
            |s| {
                s.write("sub/.gitattributes", "*.txt filter=up\n");
                s.git(&["config", "filter.up.clean", "tr a-z A-Z"]);
                s.git(&["config", "filter.up.smudge", "tr A-Z a-z"]);
            },
            "",
        ),
        (
            "autocrlf",
            |s| drop(s.git(&["config", "core.autocrlf", "true"])),
            "",
        ),
        (
            "autocrlf input",
            |s| drop(s.git(&["config", "core.autocrlf", "input"])),
            "",
        ),
        (
            "text=auto",
            |s| s.write(".gitattributes", "* text=auto\n"),
            "",
        ),
        ("ident", |s| s.write(".gitattributes", "*.txt ident\n"), ""),
        (
            "encoding",
            |s| {
                s.write(
                    ".gitattributes",
                    "*.utf text working-tree-encoding=UTF-16LE\n",
                )
            },
            "printf 'a\\000b\\000' > sub/x.utf",
        ),
        (
            "macro",
            |s| s.write(".gitattributes", "[attr]mine text eol=crlf\n*.txt mine\n"),
            "",
        ),
        (
            "info/attributes",
            |s| {
                std::fs::write(s.repo().join(".git/info/attributes"), "*.txt text\n").unwrap();
            },
            "",
        ),
        (
            "core.attributesFile",
            |s| {
                std::fs::write(s.home().join("attributes"), "*.txt text\n").unwrap();
                s.git(&["config", "core.attributesFile", "~/attributes"]);
            },
            "",
        ),
        (
            "global attributes",
            |s| {
                std::fs::create_dir_all(s.home().join(".config/git")).unwrap();
                std::fs::write(s.home().join(".config/git/attributes"), "*.txt text\n").unwrap();
            },
            "",
        ),
        (
            "added by a tool",
            |_| {},
            "echo '*.txt text' > .gitattributes",
        ),
        (
            "added deep by a tool",
            |_| {},
            "echo '* text=auto' > sub/deep/.gitattributes",
        ),
        (
            "harmless",
            |s| s.write(".gitattributes", "*.txt diff=x\n"),
            "",
        ),
        (
            "safecrlf",
            |s| {
                s.write(".gitattributes", "*.txt text\n");
                s.git(&["config", "core.safecrlf", "warn"]);
            },
            "",
        ),
    ];
    for (name, setup, script) in rows {
        let mut laid = Laid::new(|sandbox| {
            setup(sandbox);
            for folder in ["", "sub/", "sub/deep/"] {
                sandbox.write(format!("{folder}lf.txt"), "one\ntwo\n");
                sandbox.write(format!("{folder}id.txt"), "$Id$\n");
                sandbox.write(format!("{folder}same.txt"), "same\n");
            }
        });
        laid.sh(
            "for d in . sub sub/deep; do printf 'a\\r\\nb\\r\\n' > $d/lf.txt; \
                 printf 'new\\r\\nline\\r\\n' > $d/new.txt; printf 'raw\\r\\n\\000' > $d/bin; \
                 printf '$Id: 123 $\\n' > $d/id.txt; touch $d/same.txt; done",
        );
        laid.sh(script);
        laid.row = (*name).to_owned();
        laid.expect(&[]);
    }
}

/// Only the line endings on disk differ from what is stored: no change.
#[test]
fn line_endings_alone_are_no_change() {
    let laid = Laid::new(|sandbox| {
        sandbox.git(&["config", "core.autocrlf", "true"]);
        sandbox.write("f.txt", "one\r\ntwo\r\n");
    });
    assert_eq!(laid.git(&["cat-file", "blob", "HEAD:f.txt"]), "one\ntwo");
    assert_eq!(
        std::fs::read(laid.path("f.txt")).unwrap(),
        b"one\r\ntwo\r\n"
    );
    laid.sh("touch f.txt");
    assert!(!laid.capture().changed);
    laid.write("f.txt", "one\ntwo\n");
    assert!(!laid.capture().changed);
}

/// Git leaves the carriage returns of a file alone that had some when it was committed, where
/// `text=auto` decides.
#[test]
fn carriage_returns_that_were_committed_stay() {
    let laid = Laid::new(|sandbox| {
        sandbox.write("f.txt", "one\r\ntwo\r\n");
        sandbox.commit("raw");
        sandbox.write(".gitattributes", "* text=auto\n");
    });
    laid.write("f.txt", "one\r\ntwo\r\nthree\r\n");
    laid.write("n.txt", "one\r\n");
    // `git add --all` of the fixture renormalises nothing either.
    laid.expect(&[]);
}

#[test]
fn a_failing_required_filter_fails_the_capture() {
    let laid = Laid::new(|sandbox| sandbox.write("f", "f\n"));
    laid.write(".gitattributes", "*.x filter=no\n");
    laid.sandbox.git(&["config", "filter.no.clean", "false"]);
    laid.sandbox.git(&["config", "filter.no.required", "true"]);
    laid.write("a.x", "a\n");
    let before = laid.current().commit;
    assert!(laid.try_capture().is_err());
    assert_eq!(laid.current().commit, before);
    assert!(laid.path("a.x").exists());
}
