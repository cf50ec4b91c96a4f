//! Ignore rules, held against `git ls-files -o --exclude-standard` in the directory itself.

use bstr::{BString, ByteSlice};

use crate::lay::Laid;

/// The new paths of the overlay.
fn captured(laid: &Laid) -> Vec<BString> {
    let base = laid.listed(&laid.directory.cut.tree.to_string());
    let overlay = laid.overlay();
    overlay
        .into_keys()
        .filter(|path| !base.contains_key(path))
        .collect()
}

/// The untracked paths that git lists.
fn listed(laid: &Laid) -> Vec<BString> {
    let mut command = laid.sandbox.command("git");
    command
        .current_dir(&laid.directory.path)
        .args(["ls-files", "-o", "-z", "--exclude-standard"]);
    let out = command.output().unwrap();
    assert!(out.status.success());
    let paths = out.stdout.split_str("\0").filter(|path| !path.is_empty());
    let mut paths: Vec<BString> = paths.map(BString::from).collect();
    paths.sort();
    paths
}

#[test]
fn nested_negated_and_hostile_patterns() {
    let laid = Laid::new(|sandbox| {
        sandbox.write("f", "f\n");
        sandbox.write("build/tracked", "t\n");
        sandbox.write(
            ".gitignore",
            "foo.txt\nnode_modules/\nbuild/\n*.log\n!keep.log\n/only-top\nv/*\n!v/keep\n\
             deep/**/x\n\\!bang\n\\#hash\ntrail\\ \n[ab].c\n.gitignore.x\nre/\n!re/in\nfiles-only\n",
        );
        sandbox.write("bar/.gitignore", "!foo.txt\n*.o\n");
        sandbox.write("a/b/.gitignore", "/*.bin\n");
        sandbox.write("a/.gitignore", "*\n!b\n!*.md\n");
        sandbox.git(&["add", "-f", "."]);
    });
    let home = laid.sandbox.home();
    std::fs::create_dir_all(home.join(".config/git")).unwrap();
    std::fs::write(home.join(".config/git/ignore"), "*.swp\n!yes.swp\n").unwrap();
    let exclude = laid.sandbox.repo().join(".git/info/exclude");
    std::fs::write(exclude, "secret*\n").unwrap();
    laid.sh(
        "for d in . bar a a/b v deep/1/2 build re q/re n/node_modules; do mkdir -p $d; \
           for n in foo.txt x.log keep.log only-top keep x '!bang' '#hash' 'trail ' trail a.c c.c x.o \
               x.bin x.md in y.swp yes.swp secret.key files-only ':x' 'a b'; \
           do echo 1 > \"$d/$n\"; done; done; \
         mkdir -p node_modules/p v/keep2/z; echo 1 > node_modules/p/i.js; echo 1 > v/keep2/z/y; \
         mkdir -p new/sub; echo '*.tmp' > new/.gitignore; echo '!a.tmp' > new/sub/.gitignore; \
         for n in a.tmp b.tmp c; do echo 1 > new/$n; echo 1 > new/sub/$n; done; \
         printf '1' > \"$(printf 'new/\\377\\n.tmp')\"; printf '1' > \"$(printf 'new/\\377\\n')\"; \
         echo edited > build/tracked",
    );
    let wanted = listed(&laid);
    assert!(wanted.len() > 40, "the oracle lists {}", wanted.len());
    laid.expect(&[]);
    assert_eq!(captured(&laid), wanted);
}

#[test]
fn a_link_is_no_folder_to_a_rule() {
    let laid = Laid::new(|sandbox| sandbox.write(".gitignore", "node_modules/\n"));
    laid.link("../outside", "node_modules");
    let files = [(".gitignore", "node_modules/\n")];
    laid.expect_files(&files, &[("node_modules", "escapes")]);
}

#[test]
fn excludes_file_counts() {
    let laid = Laid::new(|sandbox| sandbox.write("f", "f\n"));
    std::fs::write(laid.sandbox.home().join("mine"), "no*\n").unwrap();
    laid.sandbox.git(&["config", "core.excludesFile", "~/mine"]);
    laid.sh("echo 1 > no.txt; echo 1 > yes.txt");
    let wanted = listed(&laid);
    laid.expect(&[]);
    assert_eq!(captured(&laid), wanted);
    assert_eq!(wanted, ["yes.txt"]);
}

#[test]
fn once_in_the_overlay_a_path_stays() {
    let laid = Laid::new(|sandbox| sandbox.write("f", "f\n"));
    laid.sh("mkdir n; echo 1 > n/x; echo 1 > y.log");
    assert!(laid.capture().changed);
    laid.sh("printf 'n/\\n*.log\\n' > .gitignore; echo 2 > n/x; echo 2 > n/z; echo 2 > y.log; echo 2 > z.log");
    let files = [
        (".gitignore", "n/\n*.log\n"),
        ("f", "f\n"),
        ("n/x", "2\n"),
        ("y.log", "2\n"),
    ];
    laid.expect_files(&files, &[]);
    laid.sh("rm y.log");
    laid.capture();
    laid.sh("echo 3 > y.log");
    laid.capture();
    assert_eq!(
        laid.files(),
        files[..3]
            .iter()
            .map(|(a, b)| (a.to_string(), b.to_string()))
            .collect::<Vec<_>>()
    );
}

#[test]
fn what_a_tool_added_by_force_or_committed_is_tracked() {
    let laid = Laid::new(|sandbox| sandbox.write(".gitignore", "*.log\nout/\n"));
    laid.sh(
        "mkdir -p out/deep; echo 1 > out/deep/x; echo 1 > out/y; echo 1 > a.log; echo 1 > b.log; \
             git add -f out/deep/x a.log",
    );
    let files = [
        (".gitignore", "*.log\nout/\n"),
        ("a.log", "1\n"),
        ("out/deep/x", "1\n"),
    ];
    laid.expect_files(&files, &[]);
    // Committed, and gone from the index again.
    let laid = Laid::new(|sandbox| sandbox.write(".gitignore", "*.log\nout/\n"));
    laid.sh(
        "mkdir -p out/deep; echo 1 > out/deep/x; echo 1 > out/y; echo 1 > a.log; echo 1 > b.log; \
             git add -f out/deep/x a.log; git commit -q -m mine; \
             git rm -q --cached out/deep/x a.log; git update-index --index-version 4",
    );
    laid.expect_files(&files, &[]);
}
