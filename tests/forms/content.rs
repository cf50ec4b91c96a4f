//! Content that git rewrites on its way to the disk and back: line endings, ident, encodings, filters,
//! by attributes from everywhere. The witness is a `git worktree` of the same commit, in which the
//! same tool did the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use bstr::{BString, ByteSlice};

use crate::common::directories_stay;
use crate::job::{Site, field, files};
use crate::kinds::skip;
use crate::ways::{self, Way};

/// One way to have content rewritten.
struct Case {
    name: &'static str,
    /// Settings, `key=value`.
    config: &'static [&'static str],
    /// Files of the first commit beside the usual ones, as on disk.
    files: &'static [(&'static str, &'static [u8])],
    /// Attribute files outside of the tree, below the sandbox.
    outside: &'static [(&'static str, &'static str)],
}

const ROT13: &str = "tr 'A-Za-z' 'N-ZA-Mn-za-m'";

const CASES: &[Case] = &[
    Case {
        name: "autocrlf=true",
        config: &["core.autocrlf=true"],
        files: &[],
        outside: &[],
    },
    Case {
        name: "autocrlf=input",
        config: &["core.autocrlf=input"],
        files: &[],
        outside: &[],
    },
    Case {
        name: "eol=crlf for all that is text",
        config: &["core.eol=crlf"],
        files: &[(".gitattributes", b"* text=auto\n")],
        outside: &[],
    },
    Case {
        name: "text=auto",
        config: &[],
        files: &[(".gitattributes", b"* text=auto\n")],
        outside: &[],
    },
    Case {
        name: "eol=crlf by attribute",
        config: &[],
        files: &[(".gitattributes", b"*.txt text eol=crlf\n*.sh eol=lf\n")],
        outside: &[],
    },
    Case {
        name: "the old name of text",
        config: &["core.eol=crlf"],
        files: &[(".gitattributes", b"*.txt crlf\n*.sh -crlf\n")],
        outside: &[],
    },
    Case {
        name: "ident",
        config: &[],
        files: &[
            (".gitattributes", b"*.txt ident\n"),
            ("id.txt", b"$Id$\nline\n"),
        ],
        outside: &[],
    },
    Case {
        name: "encoding",
        config: &[],
        files: &[
            (
                ".gitattributes",
                b"u.txt text working-tree-encoding=UTF-16LE-BOM eol=crlf\n",
            ),
            ("u.txt", b"\xff\xfeh\0i\0\r\0\n\0"),
        ],
        outside: &[],
    },
    Case {
        name: "clean and smudge",
        config: &[
            "filter.rot.clean=ROT13",
            "filter.rot.smudge=ROT13",
            "filter.rot.required=true",
        ],
        files: &[(".gitattributes", b"*.txt filter=rot\n")],
        outside: &[],
    },
    Case {
        name: "process",
        config: &["filter.rot.process=PROCESS", "filter.rot.required=true"],
        files: &[(".gitattributes", b"*.txt filter=rot\n")],
        outside: &[],
    },
    Case {
        name: "a filter that nobody set up",
        config: &[],
        files: &[(".gitattributes", b"*.txt filter=nobody\n")],
        outside: &[],
    },
    Case {
        name: "attributes deep down",
        config: &["filter.rot.clean=ROT13", "filter.rot.smudge=ROT13"],
        files: &[
            ("in/.gitattributes", b"*.txt text eol=crlf\n"),
            ("in/deep/.gitattributes", b"*.txt filter=rot -text\n"),
            ("in/deep/d.txt", b"deep\n"),
        ],
        outside: &[],
    },
    Case {
        name: "info/attributes",
        config: &[],
        files: &[],
        outside: &[("repo/.git/info/attributes", "*.txt eol=crlf\n")],
    },
    Case {
        name: "core.attributesFile",
        config: &["core.attributesFile=~/mine"],
        files: &[],
        outside: &[("home/mine", "*.txt eol=crlf\n")],
    },
    Case {
        name: "the attributes file of the home",
        config: &[],
        files: &[],
        outside: &[("home/.config/git/attributes", "*.txt eol=crlf\n")],
    },
    Case {
        name: "macro",
        config: &["filter.rot.clean=ROT13", "filter.rot.smudge=ROT13"],
        files: &[(
            ".gitattributes",
            b"[attr]secret filter=rot -text\n*.txt secret\n",
        )],
        outside: &[],
    },
    Case {
        name: "rules that switch it off",
        config: &["core.autocrlf=true"],
        files: &[(".gitattributes", b"* -text\n")],
        outside: &[],
    },
];

/// A filter process that turns letters by 13, in both directions.
const PROCESS: &str = r#"#!/usr/bin/perl
use strict; use warnings;
binmode STDIN; binmode STDOUT; $| = 1;
sub get { my $n; read(STDIN, $n, 4) == 4 or exit 0; $n = hex $n; return undef unless $n;
    my $t = ''; $n -= 4; while (length $t < $n) { read(STDIN, $t, $n - length $t, length $t) or exit 1 } $t }
sub put { my $t = shift; print sprintf('%04x', length($t) + 4), $t }
sub flush { print '0000' }
sub list { my @l; while (defined(my $t = get())) { push @l, $t } @l }
list(); put("git-filter-server\n"); put("version=2\n"); flush();
list(); put("capability=clean\n"); put("capability=smudge\n"); flush();
while (1) {
    list(); my $t = join '', list(); $t =~ tr/A-Za-z/N-ZA-Mn-za-m/;
    put("status=success\n"); flush();
    put(substr $t, 0, 60000, '') while length $t; flush(); flush();
}
"#;

/// The tool: new text with both line ends, an edit, one that changes nothing but line ends.
const TOOL: &str = "
    printf 'one\\ntwo\\n' >new.txt && printf 'one\\r\\ntwo\\r\\n' >new-crlf.txt &&
    printf 'mixed\\r\\nends\\n' >mixed.txt && mkdir -p in/deep && printf 'x\\n' >in/deep/new.txt &&
    sed -i 's/12/agent/' t.txt && sed -i 's/$/ sh/' s.sh &&
    printf '\\0\\r\\n' >new.bin &&
    { tr -d '\\r' <ends.txt >ends.lf && cat ends.lf >ends.txt && rm ends.lf; }
";

fn prepared(case: &Case) -> Option<Site> {
    let site = Site::empty();
    let process = site.sandbox.root().join("process");
    fs::write(&process, PROCESS).unwrap();
    fs::set_permissions(&process, fs::Permissions::from_mode(0o755)).unwrap();
    if case.name == "process" && site.command("perl").arg("-v").output().is_err() {
        skip(case.name, "no perl for the filter");
        return None;
    }
    let process = process.to_str().unwrap();
    for setting in case.config {
        let (key, value) = setting.split_once('=').unwrap();
        let value = value.replace("ROT13", ROT13).replace("PROCESS", process);
        site.git(&["config", key, &value]);
    }
    for (path, text) in case.outside {
        let path = site.sandbox.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    site.fill();
    let text: String = (1..=12).map(|n| format!("text {n}\n")).collect();
    site.write("t.txt", &text);
    site.write("ends.txt", "a\nb\n");
    site.write("in/i.txt", "in\n");
    site.write("s.sh", "sh\n");
    // Stored with CR LF by a commit from before there were rules, which `text=auto` leaves alone. (By a
    // rule that names it outright it would count as changed as soon as git reads it again.)
    site.write("stored-crlf.dat", "x\r\ny\r\n");
    site.git(&["-c", "core.autocrlf=false", "add", "stored-crlf.dat"]);
    for (path, bytes) in case.files {
        site.write(path, bytes);
    }
    site.git(&["-c", "core.safecrlf=false", "add", "--all"]);
    site.git(&["commit", "-q", "-m", "first"]);
    // As a checkout leaves it.
    site.git(&["rm", "-q", "-r", "--cached", "."]);
    site.git(&["reset", "-q", "--hard"]);
    Some(site)
}

fn stored(site: &Site, tree: &str) -> BString {
    site.git(&["ls-tree", "-r", tree])
}

/// A `git worktree` of a commit, and its place.
fn witness(site: &Site, name: &str, commit: &str) -> std::path::PathBuf {
    let place = site.sandbox.root().join(name);
    site.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        place.to_str().unwrap(),
        commit,
    ]);
    place
}

fn run(site: &Site, folder: &Path, script: &str) {
    let mut command = site.command("sh");
    let done = command
        .current_dir(folder)
        .args(["-c", script])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", done.stderr.as_bstr());
}

#[test]
fn the_bytes_are_those_that_git_gives() {
    for (at, case) in CASES.iter().enumerate() {
        // A checkout is ours to fill, so it has each of them; the others take turns with some.
        let others = match ways::long() || at % 3 == 0 {
            true => ways::turn(line!()),
            false => Vec::new(),
        };
        for way in ways::with_the_usual(others) {
            bytes_in(case, way);
        }
    }
}

fn bytes_in(case: &Case, way: Way) {
    eprintln!("case: {}, {way:?}", case.name);
    let Some(mut site) = prepared(case) else {
        return;
    };
    site.hold(way);
    let site = &site;
    let lay_out = || {
        let mut args = vec!["materialize", "a"];
        args.extend(way.option_of_a_directory());
        field(&site.ok(&args), "directory")
    };
    assert_eq!(site.git(&["status", "--porcelain"]), "", "{}", case.name);

    // A clean tree is HEAD itself; a dirty one is what git would record.
    let record = site.ok(&["base"]);
    assert_eq!(
        field(&record, "commit"),
        site.git_line(&["rev-parse", "HEAD"])
    );
    run(site, &site.top, TOOL);
    let record = site.ok(&["base"]);
    let recorded = site.recorded();
    assert_eq!(
        stored(site, &field(&record, "tree")),
        stored(site, &recorded),
        "{}",
        case.name
    );
    site.git(&["reset", "-q", "--hard"]);
    site.git(&["clean", "-fdq"]);

    // A directory is what git checks out.
    site.ok(&["overlay", "create", "a"]);
    let directory = lay_out();
    let directory = Path::new(&directory);
    let place = witness(site, "witness", "refs/relo/vws/a/overlay");
    assert_eq!(files(directory), files(&place), "{}", case.name);
    assert_eq!(site.git_in(directory, &["status", "--porcelain"]), "");
    let untouched = site.ok(&["capture", "a"]);
    assert!(
        untouched.contains_str("unchanged"),
        "{}: {untouched}",
        case.name
    );
    assert_eq!(site.ok(&["overlay", "diff", "a"]), "", "{}", case.name);

    // A capture is what git would add.
    run(site, directory, TOOL);
    run(site, &place, TOOL);
    let tree = field(&site.ok(&["settle", "a"]), "tree");
    site.git_in(&place, &["-c", "core.safecrlf=false", "add", "--all"]);
    let expected = site.git_in(&place, &["write-tree"]);
    assert_eq!(
        stored(site, &tree),
        stored(site, expected.trim().to_str().unwrap()),
        "{}",
        case.name
    );

    // And laid out again, it is what git checks out of that.
    let directory = lay_out();
    let place = witness(site, "again", "refs/relo/vws/a/overlay");
    if !site.stays() {
        assert_eq!(files(Path::new(&directory)), files(&place), "{}", case.name);
    }
    site.ok(&["settle", "a"]);

    // An accept beside an edit of the user's.
    run(
        site,
        &site.top,
        "sed -i 's/text 1\\b/user 1/; s/grkg 1\\b/hfre 1/' t.txt",
    );
    site.ok(&["propose", "a"]);
    let before = files(&site.top);
    site.ok(&["accept", "a"]);
    let mut expected = files(&place);
    let mut theirs = expected["t.txt"].clone();
    theirs.1 = theirs
        .1
        .replace("text 1\n", "user 1\n")
        .replace("text 1\r\n", "user 1\r\n")
        .into();
    expected.insert("t.txt".into(), theirs);
    for (path, found) in files(&site.top) {
        // What git takes for the same content is not written again.
        if before.get(&path) == Some(&found) && path == "ends.txt" {
            continue;
        }
        assert_eq!(found, expected[&path], "{}: {path}", case.name);
    }
    let status = site.git(&["status", "--porcelain"]);
    assert!(!status.contains_str("ends.txt"), "{}: {status}", case.name);
    site.ok(&["undo"]);
    assert_eq!(files(&site.top), before, "{}", case.name);
}

/// What a command sees: each file's bytes, and what git makes of them.
const LIST: &str = "
    find . -path ./.git -prune -o -path ./.relo -prune -o -type f -print | LC_ALL=C sort |
    xargs cksum; git status --porcelain
";

#[test]
fn a_command_in_an_overlay_sees_and_makes_what_it_does_in_a_checkout() {
    const ALWAYS: [&str; 2] = ["attributes deep down", "info/attributes"];
    let all = std::env::var_os("GIT_VWS_TEST_LONG").is_some();
    for case in CASES {
        if !all && !ALWAYS.contains(&case.name) {
            continue;
        }
        eprintln!("case: {}", case.name);
        let Some(site) = prepared(case) else { continue };
        let program = Path::new(crate::common::BINARY);
        if let Err(why) = git_vws::layout::overlay::probe(site.sandbox.root(), program) {
            let expected = std::env::var("GIT_VWS_TEST_EXPECT").unwrap_or_default();
            assert!(!expected.contains("overlay"), "no overlay: {why}");
            skip("overlay", &why);
            return;
        }
        let exec = |backend: &str, script: &str| {
            let option = format!("--backend={backend}");
            site.ok(&["exec", &option, backend, "--", "sh", "-c", script])
        };
        let both = |script: &str| {
            let (one, other) = (exec("checkout", script), exec("overlay", script));
            assert_eq!(one, other, "{}: {script}", case.name);
        };
        let same_tree = || {
            let tree = |agent: &str| field(&site.ok(&["overlay", "show", agent]), "tree");
            let (one, other) = (tree("checkout"), tree("overlay"));
            assert_eq!(stored(&site, &one), stored(&site, &other), "{}", case.name);
        };
        // The template is of another tree, so that some files come from above.
        site.ok(&["template", "warm"]);
        site.write("t.txt", "text 1\r\nother\n");
        site.write("in/i.txt", "in $Id$\n");
        for agent in ["checkout", "overlay"] {
            site.ok(&["overlay", "create", agent]);
        }
        both(LIST);
        same_tree();
        assert_eq!(
            site.ok(&["overlay", "diff", "overlay"]),
            "",
            "{}",
            case.name
        );
        both(TOOL);
        same_tree();
        both("git status --porcelain");
        same_tree();
    }
}

#[test]
fn attributes_that_an_agent_adds_count_from_then_on() {
    let case = Case {
        name: "none",
        config: &[],
        files: &[],
        outside: &[],
    };
    let site = prepared(&case).unwrap();
    site.ok(&["overlay", "create", "a"]);
    let script = format!("printf '*.txt text eol=crlf\\n' >.gitattributes && {TOOL}");
    let place = witness(&site, "witness", "refs/relo/vws/a/overlay");
    site.ok(&["exec", "a", "--", "sh", "-c", &script]);
    run(&site, &place, &script);
    site.git_in(&place, &["-c", "core.safecrlf=false", "add", "--all"]);
    let expected = site.git_in(&place, &["write-tree"]);
    let tree = field(&site.ok(&["overlay", "show", "a"]), "tree");
    let expected = expected.trim().to_str().unwrap();
    assert_eq!(stored(&site, &tree), stored(&site, expected));
    let raw = site.ok(&["overlay", "diff", "--name-status", "a"]);
    assert!(
        !raw.contains_str("stored-crlf.dat") && !raw.contains_str("ends.txt"),
        "{raw}"
    );
    let directory = field(&site.ok(&["materialize", "a"]), "directory");
    let place = witness(&site, "again", "refs/relo/vws/a/overlay");
    if !directories_stay() {
        assert_eq!(files(Path::new(&directory)), files(&place));
    }
    site.ok(&["settle", "a"]);
    site.ok(&["propose", "a"]);
    site.ok(&["accept", "a"]);
    // What the accept wrote is as git would check it out under the new rules.
    let (found, expected) = (files(&site.top), files(&place));
    for path in [
        ".gitattributes",
        "t.txt",
        "new.txt",
        "new-crlf.txt",
        "in/deep/new.txt",
        "s.sh",
    ] {
        assert_eq!(found[path], expected[path], "{path}");
    }
    let diff = site.git(&[
        "-c",
        "core.safecrlf=false",
        "diff",
        "--stat",
        "HEAD",
        "--",
        "t.txt",
    ]);
    assert!(diff.contains_str("1 insertion(+), 1 deletion(-)"), "{diff}");
}

#[test]
fn a_required_filter_that_is_missing_is_refused_by_name() {
    let site = Site::committed();
    site.write("t.txt", "text\n");
    site.write(".gitattributes", "*.txt filter=vault\n");
    site.commit("second");
    site.git(&["config", "filter.vault.required", "true"]);
    site.git(&["config", "filter.vault.clean", "no-such-program"]);
    site.git(&["config", "filter.vault.smudge", "no-such-program"]);
    let refs = site.git(&["for-each-ref"]);
    site.write("t.txt", "edited\n");
    for args in [&["base"][..], &["overlay", "create", "a"]] {
        let outcome = site.vws(args);
        let said = outcome.to_string();
        assert_eq!(outcome.code(), Some(128), "{said}");
        assert!(said.contains("t.txt") && said.contains("vault"), "{said}");
    }
    assert_eq!(site.git(&["for-each-ref"]), refs);
    let lays_out: &[&str] = if directories_stay() {
        &["overlay", "create", "a", "--base=HEAD"]
    } else {
        site.ok(&["overlay", "create", "a", "--base=HEAD"]);
        &["materialize", "a"]
    };
    let refs = site.git(&["for-each-ref"]);
    let outcome = site.vws(lays_out);
    let said = outcome.to_string();
    assert_eq!(outcome.code(), Some(128), "{said}");
    assert!(said.contains("t.txt") && said.contains("vault"), "{said}");
    assert_eq!(site.git(&["for-each-ref"]), refs);
    if directories_stay() {
        return;
    }
    assert!(!site.top.join(".relo/worktrees/a").exists());
    assert_eq!(site.ok(&["overlay", "read", "a", "t.txt"]), "text\n");
}

#[test]
fn rewriting_falls_back_to_a_directory_that_stays() {
    if directories_stay() {
        return;
    }
    let site = Site::committed();
    site.write("plain.txt", "one\n");
    site.commit("plain");
    let create = |agent: &str, settings: &[&str]| {
        let mut command = site.command("git");
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.args(["vws", "overlay", "create", agent]);
        site.sandbox.outcome(command, b"")
    };
    let fallback = "relo.workspace.rewriting=fallback";
    let told = "hint: the workspace has a directory that stays";
    let made = |agent: &str, settings: &[&str], mode: &str, is_told: bool| {
        let outcome = create(agent, settings);
        assert_eq!(outcome.code(), Some(0), "{outcome}");
        let mode = format!("\nmode {mode}\n");
        assert!(outcome.stdout().contains_str(mode), "{outcome}");
        assert_eq!(outcome.stderr().contains_str(told), is_told, "{outcome}");
    };
    // Nothing is rewritten yet.
    made("plain", &[fallback], "virtual", false);
    site.write(".gitattributes", "*.txt eol=crlf\n");
    site.commit("second");
    made("own", &[], "virtual", false);
    made("a", &[fallback], "worktree", true);
    made("b", &[fallback], "worktree", false);
    made(
        "c",
        &[fallback, "relo.workspace.mode=auto"],
        "worktree",
        false,
    );
    made("d", &[fallback, "core.autocrlf=true"], "worktree", true);
    let file = site.top.join(".relo/worktrees/a/plain.txt");
    assert_eq!(std::fs::read(&file).unwrap(), b"one\r\n");
    // What is written through the view is on disk as git would check it out.
    let written = site.vws_with(&["overlay", "write", "a", "plain.txt"], b"one\ntwo\n");
    assert_eq!(written.code(), Some(0), "{written}");
    assert_eq!(std::fs::read(&file).unwrap(), b"one\r\ntwo\r\n");
    assert_eq!(
        site.ok(&["overlay", "read", "a", "plain.txt"]),
        "one\ntwo\n"
    );
    std::fs::write(&file, "one\r\ntwo\r\nthree\r\n").unwrap();
    assert_eq!(
        site.ok(&["overlay", "diff", "--numstat", "a"]),
        "2\t0\tplain.txt\n"
    );
    let outcome = create("e", &["relo.workspace.rewriting=sometimes"]);
    assert_eq!(outcome.code(), Some(128), "{outcome}");
    let named = outcome.stderr().contains_str("relo.workspace.rewriting");
    assert!(named, "{outcome}");
}
