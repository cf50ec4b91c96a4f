//! `batch` through the library, over pipes in memory: transcripts, what is malformed, `begin` and
//! `commit` against other writers, and how fast reads are beside `git cat-file --batch`.
#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs)]

mod common;
#[path = "common/library.rs"]
mod library;
#[path = "batch/shared.rs"]
mod shared;

use std::io::{Read, Write};
use std::time::Instant;

use bstr::{BString, ByteSlice};
use common::Sandbox;
use git_vws::batch::{self, Ended, Options};
use git_vws::git::{Environment, Repository};
use git_vws::layout;
use git_vws::model::{AgentId, RepoPath};
use git_vws::workspace::{Edit, Side, Store, Terms};
use library::open;
use proptest::prelude::*;

const LINES: Options = Options {
    nul: false,
    json: false,
    buffer: false,
};
const NUL: Options = Options { nul: true, ..LINES };
const JSON: Options = Options {
    json: true,
    ..LINES
};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("f", b"one\ntwo\n");
    sandbox.write("dir/g", b"g\n");
    sandbox.write("dir/sub/h", b"h\n");
    std::os::unix::fs::symlink("dir/g", sandbox.repo().join("link")).unwrap();
    sandbox.commit("one");
    sandbox
}

fn run(repository: &Repository, input: &[u8], options: Options) -> (BString, Ended) {
    let mut output = Vec::new();
    let ended = batch::run(repository, &|| 1_700_000_000, input, &mut output, options).unwrap();
    (output.into(), ended)
}

/// A head of an answer and its body, cut by nothing but the documented framing.
type Answer = (String, Vec<u8>);

fn answers(output: &[u8], nul: bool) -> Vec<Answer> {
    let end = if nul { 0 } else { b'\n' };
    let mut rest = output;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (head, after) = rest.split_at(rest.find_byte(end).expect("a head has an end"));
        let head = head.to_str().unwrap().to_owned();
        let size: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
        found.push((head, after[1..=size].to_vec()));
        assert_eq!(after[size + 1], end, "a body has an end");
        rest = &after[size + 2..];
    }
    found
}

/// Object ids as `<oid>`, so that a transcript can be read.
fn masked(output: &[u8]) -> String {
    let mut text = String::new();
    let mut word = String::new();
    for c in output.to_str().unwrap().chars().chain(['\n']) {
        if c.is_ascii_alphanumeric() {
            word.push(c);
            continue;
        }
        let is_id = word.len() == 40 && word.chars().all(|c| c.is_ascii_hexdigit());
        text.push_str(if is_id { "<oid>" } else { &word });
        word.clear();
        text.push(if c == '\0' { '~' } else { c });
    }
    text.pop();
    text
}

fn transcript(input: &str, options: Options) -> String {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    masked(&run(&repository, input.as_bytes(), options).0)
}

#[test]
fn edits_and_reads_in_lines() {
    let input = "create --base=HEAD a\n\
                 write a f 4\nnew\n\n\
                 read a f\n\
                 read --base a f\n\
                 read a link\n\
                 chmod a +x f\n\
                 symlink a dir/l ../f\n\
                 rename a dir/g dir/\"i\n\
                 delete -r a dir/sub/\n\
                 stat a f\n\
                 ls a\n\
                 diff --name-status a\n\
                 diff --numstat a\n\
                 restore a 2\n\
                 discard a\n\
                 context a\n\
                 dispose a\n";
    insta::assert_snapshot!(transcript(input, LINES), @r#"
    0 create 173
    agent a
    revision 1
    commit <oid>
    base <oid>
    tree <oid>
    mode virtual


    0 write 2 114
    agent a
    revision 2
    commit <oid>
    tree <oid>


    0 read 100644 <oid> 4
    new

    0 read 100644 <oid> 8
    one
    two

    0 read 100644 <oid> 2
    g

    0 chmod 3 114
    agent a
    revision 3
    commit <oid>
    tree <oid>


    0 symlink 4 114
    agent a
    revision 4
    commit <oid>
    tree <oid>


    0 rename 5 114
    agent a
    revision 5
    commit <oid>
    tree <oid>


    0 delete 6 114
    agent a
    revision 6
    commit <oid>
    tree <oid>


    0 stat 82
    path f
    mode 100755
    type blob
    oid <oid>
    size 4


    0 ls 170
    040000 tree <oid>	dir
    100755 blob <oid>	f
    120000 blob <oid>	link

    0 diff 44
    A	"dir/\"i"
    D	dir/g
    A	dir/l
    D	dir/sub/h
    M	f

    0 diff 54
    1	0	"dir/\"i"
    0	1	dir/g
    1	0	dir/l
    0	1	dir/sub/h
    1	2	f

    0 restore 7 114
    agent a
    revision 7
    commit <oid>
    tree <oid>


    0 discard 8 114
    agent a
    revision 8
    commit <oid>
    tree <oid>


    0 context 144
    agent-id a
    base-commit <oid>
    overlay-revision 8
    effective-tree-oid <oid>


    0 dispose 68
    agent a
    revision 8
    commit <oid>
    "#);
}

#[test]
fn what_is_refused_and_what_is_malformed() {
    let input = "frobnicate\n\
                 \n\
                 show nobody\n\
                 create --base=HEAD a\n\
                 create --base=HEAD a\n\
                 read a none\n\
                 read a dir\n\
                 read a ../x\n\
                 read a .git/config\n\
                 read a\n\
                 read a \"f\n\
                 read -x a f\n\
                 read a f g\n\
                 write a f\n\
                 write a f many\n\
                 write a/b f 5\nlist\n\n\
                 write --expect=7 a f 5\nlist\n\n\
                 write a link 5\nlist\n\n\
                 symlink a l /etc/passwd\n\
                 commit\n\
                 abort\n\
                 flush\n\
                 read a f\n";
    insta::assert_snapshot!(transcript(input, LINES), @r"
    129 ? - 15
    unknown command
    129 ? - 20
    the command is empty
    128 show - 21
    no workspace 'nobody'
    0 create 173
    agent a
    revision 1
    commit <oid>
    base <oid>
    tree <oid>
    mode virtual


    128 create - 28
    workspace 'a' exists already
    1 read missing 41
    path 'none' does not exist in the overlay
    1 read type_change 17
    'dir' is a folder
    1 read escapes 39
    path '../x' leads out of the repository
    1 read protected_path 31
    path '.git/config' is protected
    129 read - 52
    expected a path; usage: read [--base] <agent> <path>
    129 ? - 32
    quoted path has no closing quote
    129 read - 56
    unknown option '-x'; usage: read [--base] <agent> <path>
    129 read - 51
    unexpected 'g'; usage: read [--base] <agent> <path>
    129 write - 101
    expected a size; usage: write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]
    129 write - 112
    a size is a decimal number; usage: write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]
    129 write - 162
    agent id 'a/b' holds '/'; only letters, digits, '.', '_' and '-' are allowed; usage: write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]
    1 write stale 37
    workspace 'a' is at revision 1, not 7
    1 write type_change 48
    'link' is a link, which is never written through
    1 symlink escapes 34
    link 'l' would leave the workspace
    129 commit - 17
    nothing was begun
    129 abort - 17
    nothing was begun
    0 flush 0

    0 read 100644 <oid> 8
    one
    two
    ");
}

#[test]
fn the_same_with_nul_and_in_json() {
    let input = "create\0--base=HEAD\0a\0\0write\0a\0new\nline\x003\0\0x\ny\0read\0a\0new\nline\0\0\
                 diff\0a\0\0read\0a\0none\0\0";
    insta::assert_snapshot!(transcript(input, NUL), @r"
    0 create 173~agent a~revision 1~commit <oid>~base <oid>~tree <oid>~mode virtual~~~0 write 2 114~agent a~revision 2~commit <oid>~tree <oid>~~~0 read 100644 <oid> 3~x
    y~0 diff 108~:000000 100644 <oid> <oid> A~new
    line~~1 read missing 41~path 'none' does not exist in the overlay~
    ");
    let input = "create --base=HEAD a\nwrite a \"\\377\" 1\n\u{1}\nread a f\nread a none\n\
                 diff a\ndiff -p a\nbegin a\ncommit\nflush\n";
    insta::assert_snapshot!(transcript(input, JSON), @r#"
    {"v":1,"status":0,"command":"create","records":[{"v":1,"agent":"a","revision":1,"commit":"<oid>","base":"<oid>","tree":"<oid>","mode":"virtual","readOnly":false,"session":null,"uncommitted":null,"untracked":null,"untrackedLeftOut":null,"leftOut":[],"directory":null}]}
    {"v":1,"status":0,"command":"write","revision":2,"records":[{"v":1,"agent":"a","revision":2,"commit":"<oid>","tree":"<oid>","unchanged":false}]}
    {"v":1,"status":0,"command":"read","mode":"100644","oid":"<oid>","size":8,"content":"one\ntwo\n"}
    {"v":1,"status":1,"command":"read","kind":"missing","message":"path 'none' does not exist in the overlay"}
    {"v":1,"status":0,"command":"diff","records":[{"v":1,"path":{"bytes":"/w=="},"status":"A","oldMode":null,"newMode":"100644","oldOid":null,"newOid":"<oid>"}]}
    {"v":1,"status":0,"command":"diff","size":211,"content":"diff --git \"a/\\377\" \"b/\\377\"\nnew file mode 100644\nindex <oid>..<oid>\n--- /dev/null\n+++ \"b/\\377\"\n@@ -0,0 +1 @@\n+\u0001\n\\ No newline at end of file\n"}
    {"v":1,"status":0,"command":"begin","revision":2}
    {"v":1,"status":0,"command":"commit","revision":2,"records":[{"v":1,"agent":"a","revision":2,"commit":"<oid>","tree":"<oid>","unchanged":true}]}
    {"v":1,"status":0,"command":"flush"}
    "#);
}

#[test]
fn begin_makes_one_revision_that_is_seen_before_it_is_there() {
    let input = "create --base=HEAD a\n\
                 begin a\n\
                 write a dir/new +x 1\n\
                 write a dir/new 2 +x\nn\n\n\
                 abort\n\
                 begin a\n\
                 write a dir/new 2 +x\nn\n\n\
                 delete a f\n\
                 rename a dir/g g\n\
                 read a dir/new\n\
                 read a f\n\
                 read --base a f\n\
                 stat a dir/new\n\
                 ls a dir\n\
                 diff --name-status a\n\
                 read a none\n\
                 commit\n\
                 context a\n\
                 begin a\n\
                 write a x 1\nx\n\
                 delete a nothing\n\
                 write b x 1\nx\n\
                 snap a\n\
                 read a x\n\
                 commit\n\
                 begin --expect=1 a\n\
                 read a x\n";
    insta::assert_snapshot!(transcript(input, LINES), @r"
    0 create 173
    agent a
    revision 1
    commit <oid>
    base <oid>
    tree <oid>
    mode virtual


    0 begin 1 0

    129 write - 112
    a size is a decimal number; usage: write [+x | -x] [--expect=<n>] <agent> <path> <size> [+x | -x] [--expect=<n>]
    0 write pending 0

    0 abort 0

    0 begin 1 0

    0 write pending 0

    0 delete pending 0

    0 rename pending 0

    0 read 100755 <oid> 2
    n

    1 read missing 38
    path 'f' does not exist in the overlay
    0 read 100644 <oid> 8
    one
    two

    0 stat 88
    path dir/new
    mode 100755
    type blob
    oid <oid>
    size 2


    0 ls 122
    100755 blob <oid>	dir/new
    040000 tree <oid>	dir/sub

    0 diff 26
    D	dir/g
    A	dir/new
    D	f
    A	g

    1 read missing 41
    path 'none' does not exist in the overlay
    0 commit 2 114
    agent a
    revision 2
    commit <oid>
    tree <oid>


    0 context 144
    agent-id a
    base-commit <oid>
    overlay-revision 2
    effective-tree-oid <oid>


    0 begin 2 0

    0 write pending 0

    1 delete missing 44
    path 'nothing' does not exist in the overlay
    129 write - 25
    what was begun is for 'a'
    129 snap - 45
    not inside 'begin': 'commit' or 'abort' first
    0 read 100644 <oid> 1
    x
    1 commit missing 67
    nothing was published: path 'nothing' does not exist in the overlay
    1 begin stale 37
    workspace 'a' is at revision 2, not 1
    1 read missing 38
    path 'x' does not exist in the overlay
    ");
}

#[test]
fn one_pack_and_one_revision_however_many_edits() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    let packs = || {
        let pack = std::fs::read_dir(sandbox.repo().join(".git/objects/pack")).unwrap();
        pack.filter(|e| e.as_ref().unwrap().path().extension() == Some("pack".as_ref()))
            .count()
    };
    run(&repository, b"create --base=HEAD a\n", LINES);
    let before = packs();
    let mut input = b"begin a\n".to_vec();
    for n in 0..100 {
        let text = format!("write a dir/deep/file{} 3\n{n:03}\n", n % 60);
        input.extend(text.into_bytes());
    }
    input.extend(b"commit\n");
    let (output, _) = run(&repository, &input, LINES);
    let last = answers(&output, false).pop().unwrap();
    assert!(last.0.starts_with("0 commit 2 "), "{last:?}");
    assert_eq!(packs(), before + 1);
    // The pack holds what the revision needs, not a tree for every edit: 60 blobs of the 100 edits'
    // 100, three trees, one commit.
    let listing = sandbox.git(&[
        "rev-list",
        "--objects",
        "refs/relo/vws/a/overlay^2..refs/relo/vws/a/overlay",
    ]);
    assert_eq!(listing.lines().count(), 64);
    let newest = sandbox.git(&["count-objects", "-v"]);
    let in_pack = newest
        .lines()
        .find_map(|l| l.strip_prefix(b"in-pack: "))
        .unwrap();
    let in_pack: usize = in_pack.to_str().unwrap().parse().unwrap();
    assert!(in_pack < 120, "{in_pack} objects in packs");
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn a_hundred_edits_are_flushed_as_often_as_one() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    let log = sandbox.root().join("flushes");
    let flushes = |edits: std::ops::Range<u32>| -> Option<usize> {
        let mut input = String::from("begin a\n");
        for n in edits {
            input.push_str(&format!("write a deep/er/{n} 1\nx\n"));
        }
        input.push_str("commit\n");
        let traced = sandbox
            .command("strace")
            .args(["-f", "-e", "trace=fsync,fdatasync,sync_file_range", "-o"])
            .arg(&log)
            .args([common::BINARY, "batch"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::null())
            .spawn();
        let mut child = traced.ok()?;
        child.stdin.take()?.write_all(input.as_bytes()).ok()?;
        let done = child.wait().ok()?.success();
        let calls = std::fs::read(&log).ok()?;
        done.then(|| calls.find_iter("sync").count())
    };
    let Some(one) = flushes(0..1) else {
        eprintln!("skipped: no strace here");
        return;
    };
    assert!(one > 0);
    assert_eq!(flushes(1..101), Some(one));
}

#[test]
fn the_binary_speaks_it_and_its_exit_code_is_about_the_stream() {
    let sandbox = sandbox();
    let input = b"create --base=HEAD a\nnonsense\nread a f\n";
    let good = sandbox.vws_with_input(&["batch"], input);
    assert_eq!(good.code(), Some(0));
    for (input, code) in [(&b"begin a\n"[..], 0), (b"begin a\nwri", 128)] {
        let outcome = sandbox.vws_with_input(&["batch", "--buffer"], input);
        assert_eq!(outcome.code(), Some(code));
        let stderr = outcome.stderr();
        assert!(
            stderr.starts_with(b"warning: 'begin a' was not committed"),
            "{stderr:?}"
        );
    }
}

#[test]
fn the_end_of_the_input_aborts() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    for (end, broken) in [
        ("", false),
        ("wri", true),
        ("write a g 10\nhalf", true),
        ("write a g 4\nhalf", true),
        ("write a g 3\nhalf\ncommit\n", true),
    ] {
        let input = format!("begin a\nwrite a f 1\nx\n{end}");
        let (output, ended) = run(&repository, input.as_bytes(), LINES);
        assert_eq!(ended.aborted, Some(AgentId::new("a").unwrap()), "{end:?}");
        assert_eq!(ended.broken, broken, "{end:?}");
        let heads = answers(&output, false);
        assert_eq!(heads.len(), if broken { 3 } else { 2 }, "{end:?}: {output}");
        if broken {
            assert!(heads[2].0.starts_with("129 "), "{output}");
        }
        let store = Store::new(&repository, 1);
        let workspace = store.load(&AgentId::new("a").unwrap()).unwrap();
        assert_eq!(workspace.revision().get(), 1);
    }
}

#[test]
fn content_is_never_taken_for_commands() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(
        &repository,
        b"create --base=HEAD a\nwrite a f 1\nx\n",
        LINES,
    );
    // Wrong in every way, with sizes that can be read: the bytes go with the command.
    let evil = "dispose --force a\n";
    let mut input = Vec::new();
    for head in [
        format!("write A/ f {}", evil.len()),
        format!("write a .git/config {}", evil.len()),
        format!("write -q a f {}", evil.len()),
        format!("write a \"\\q\" {}", evil.len()),
        format!("write  a f {}", evil.len()),
        format!("write a f {} more", evil.len()),
        format!("write a f {} --expect=99", evil.len()),
    ] {
        input.extend(format!("{head}\n{evil}\n").into_bytes());
    }
    // Too short a size: the stream ends rather than guess.
    input.extend(format!("write a f 3\nabc{evil}\n").into_bytes());
    let (output, ended) = run(&repository, &input, LINES);
    assert!(ended.broken);
    let heads: Vec<_> = answers(&output, false);
    assert_eq!(heads.len(), 8, "{output}");
    assert!(
        heads.iter().all(|(head, _)| !head.starts_with("0 ")),
        "{output}"
    );
    assert!(
        Store::new(&repository, 1)
            .load(&AgentId::new("a").unwrap())
            .is_ok()
    );
}

#[test]
fn a_payload_over_the_limit_is_skipped() {
    let sandbox = sandbox();
    sandbox.git(&["config", "relo.workspace.maxFileSize", "10"]);
    let repository = open(&sandbox);
    let input = b"create --base=HEAD a\nwrite a f 11\ndispose a\nx\nread a f\n";
    let (output, _) = run(&repository, input, LINES);
    let found = answers(&output, false);
    assert!(found[1].0.starts_with("1 write too_large "), "{output}");
    assert_eq!(found[2].1, b"one\ntwo\n");
}

#[test]
fn hostile_paths_come_back_as_they_went_in() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    let names: [&[u8]; 9] = [
        b"-r",
        b"--base",
        b"+x",
        b"a\nb",
        b"a b",
        b"\"quoted\"",
        b"tab\t\\",
        b"\xff\xfe",
        "\u{fc}/\u{202e}".as_bytes(),
    ];
    for (options, quoted) in [(LINES, true), (NUL, false)] {
        for name in names {
            let mut input = Vec::new();
            let word = match quoted {
                true => {
                    let octal = name.iter().map(|byte| format!("\\{byte:03o}"));
                    format!("\"{}\"", octal.collect::<String>()).into_bytes()
                }
                false => name.to_vec(),
            };
            let (space, end): (&[u8], &[u8]) = if quoted {
                (b" ", b"\n")
            } else {
                (b"\0", b"\0\0")
            };
            let after: &[u8] = if quoted { b"\n" } else { b"\0" };
            for (command, size) in [
                ("write", true),
                ("read", false),
                ("ls", false),
                ("delete", false),
            ] {
                input.extend_from_slice(command.as_bytes());
                input.extend([space, b"a", space, &word].concat());
                if size {
                    input.extend([space, b"3"].concat());
                }
                input.extend_from_slice(end);
                if size {
                    input.extend([b"abc", after].concat());
                }
            }
            let (output, _) = run(&repository, &input, options);
            let found = answers(&output, options.nul);
            assert_eq!(found.len(), 4);
            assert!(
                found.iter().all(|(head, _)| head.starts_with("0 ")),
                "{output}"
            );
            assert_eq!(found[1].1, b"abc");
            if !quoted {
                assert!(
                    found[2].1.ends_with(&[b"\t", name, b"\0"].concat()),
                    "{output}"
                );
            }
        }
    }
}

/// A peer that waits for each answer before it goes on: the input blocks until it has come.
#[test]
fn answers_come_while_the_input_blocks() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    for (buffer, flush) in [(false, &b""[..]), (true, b"flush\n")] {
        let (input, mut feed) = std::io::pipe().unwrap();
        let (mut tap, output) = std::io::pipe().unwrap();
        let path = sandbox.repo();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let repository = Repository::open_at(&path, Environment::default()).unwrap();
                let options = Options { buffer, ..LINES };
                batch::run(&repository, &|| 1, input, output, options).unwrap();
            });
            for n in 0..3 {
                feed.write_all(b"read a f\n").unwrap();
                feed.write_all(flush).unwrap();
                let mut answer = vec![0; "0 read 100644 ".len() + 40 + " 8\none\ntwo\n\n".len()];
                tap.read_exact(&mut answer).unwrap();
                assert!(answer.ends_with(b" 8\none\ntwo\n\n"), "answer {n}");
                if buffer {
                    let mut flushed = [0; 11];
                    tap.read_exact(&mut flushed).unwrap();
                    assert_eq!(&flushed, b"0 flush 0\n\n");
                }
            }
            drop(feed);
        });
    }
}

#[test]
fn other_writers_go_on_and_their_revisions_are_seen() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    let agent = AgentId::new("a").unwrap();
    let path = sandbox.repo();
    let rounds = 15;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let repository = Repository::open_at(&path, Environment::default()).unwrap();
            let store = Store::new(&repository, 2);
            for n in 0..rounds {
                let edit = Edit::Write {
                    path: RepoPath::new(format!("other/{n}")).unwrap(),
                    bytes: b"o".to_vec(),
                    executable: None,
                };
                store.edit(&agent, Terms::default(), &[edit]).unwrap();
            }
        });
        let repository = Repository::open_at(&path, Environment::default()).unwrap();
        for n in 0..rounds {
            let input = format!(
                "begin a\nwrite a ours/{n}/x 1\nx\nwrite a ours/{n}/y 1\ny\nread a ours/{n}/x\ncommit\n"
            );
            let (output, _) = run(&repository, input.as_bytes(), LINES);
            let found = answers(&output, false);
            assert!(
                found.iter().all(|(head, _)| head.starts_with("0 ")),
                "{output}"
            );
        }
    });
    let store = Store::new(&repository, 3);
    let workspace = store.load(&agent).unwrap();
    assert_eq!(workspace.revision().get(), 1 + 2 * rounds);
    let all = store.ls(&workspace, Side::Overlay, None, true).unwrap();
    assert_eq!(all.len() as u64, 4 + 3 * rounds);
    // Every revision holds both halves of each pair, or neither.
    let mut at = workspace;
    while at.revision().get() > 1 {
        let names = store.ls(&at, Side::Overlay, None, true).unwrap();
        let ours = names.iter().filter(|(path, _)| path.starts_with(b"ours/"));
        assert_eq!(ours.count() % 2, 0);
        at = store
            .load_at(
                &agent,
                (at.revision().get() - 1).to_string().parse().unwrap(),
            )
            .unwrap();
    }
    // What comes between is a reason to refuse, where the writer asked for that.
    let input = format!("begin --expect={} a\n", 1 + rounds);
    let (output, _) = run(&repository, input.as_bytes(), LINES);
    assert!(output.starts_with(b"1 begin stale "), "{output}");
}

#[test]
fn what_tools_do_in_an_open_directory_is_seen_by_every_reader() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    sandbox.git(&["pack-refs", "--all"]);
    /// Opens the directory, works in it and closes it again between the commands.
    struct Tool<'s>(&'s Sandbox, Repository, usize);
    impl Read for Tool<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let agent = AgentId::new("a").unwrap();
            let store = Store::new(&self.1, 2);
            let directory = self.0.repo().join(".relo/worktrees/a");
            match self.2 {
                2 => drop(layout::materialize(
                    &store,
                    &agent,
                    &layout::Options::default(),
                )),
                3 => std::fs::write(directory.join("f"), "by a tool\n").unwrap(),
                4 => std::fs::write(directory.join("made"), "too\n").unwrap(),
                7 => drop(layout::settle(&store, &agent, layout::Insist::No)),
                _ => {}
            }
            let script = [
                "create --base=HEAD a",
                "read a f",
                "read a f",
                "read a f",
                "read a made",
                "diff --name-status a",
                "write a f 1\nx",
                "read a made",
                "write a f 1\nx",
            ];
            let Some(command) = script.get(self.2) else {
                return Ok(0);
            };
            self.2 += 1;
            let line = format!("{command}\n");
            buffer[..line.len()].copy_from_slice(line.as_bytes());
            Ok(line.len())
        }
    }
    let mut output = Vec::new();
    let tool = Tool(&sandbox, repository.reopen().unwrap(), 0);
    batch::run(&repository, &|| 1, tool, &mut output, LINES).unwrap();
    let found = answers(&output, false);
    let bodies: Vec<_> = found.iter().map(|(_, body)| body.as_bstr()).collect();
    assert_eq!(bodies[1], bodies[2], "nothing has been done yet");
    assert_eq!(bodies[3], "by a tool\n");
    assert_eq!(bodies[4], "too\n");
    assert_eq!(bodies[5], "M\tf\nA\tmade\n");
    assert!(
        found[6].0.starts_with("1 write materialized"),
        "{}",
        found[6].0
    );
    assert_eq!(bodies[7], "too\n");
    assert!(found[8].0.starts_with("0 write"), "{}", found[8].0);
}

#[test]
fn a_revision_of_somebody_else_is_seen_by_the_next_read() {
    let sandbox = sandbox();
    let repository = open(&sandbox);
    run(&repository, b"create --base=HEAD a\n", LINES);
    /// Publishes a revision each time it is asked for the next command.
    struct Meddler<'r>(&'r Repository, u64);
    impl Read for Meddler<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            if self.1 == 4 {
                return Ok(0);
            }
            let input = format!("write a f 1\n{}\n", self.1);
            run(self.0, input.as_bytes(), LINES);
            self.1 += 1;
            let command = b"read a f\n";
            buffer[..command.len()].copy_from_slice(command);
            Ok(command.len())
        }
    }
    let mut output = Vec::new();
    let other = repository.reopen().unwrap();
    batch::run(&repository, &|| 1, Meddler(&other, 1), &mut output, LINES).unwrap();
    let read: Vec<_> = answers(&output, false)
        .into_iter()
        .map(|(_, body)| body)
        .collect();
    assert_eq!(read, [b"1", b"2", b"3"]);
    sandbox.git(&["pack-refs", "--all"]);
    let (output, _) = run(&repository, b"read a f\nwrite a f 1\n4\nread a f\n", LINES);
    let found = answers(&output, false);
    assert_eq!((&found[0].1[..], &found[2].1[..]), (&b"3"[..], &b"4"[..]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_bytes_are_answered(noise in stream(), nul: bool) {
        thread_local! {
            static PLACE: (Sandbox, Repository) = {
                let sandbox = sandbox();
                let repository = open(&sandbox);
                run(&repository, b"create --base=HEAD a\n", LINES);
                (sandbox, repository)
            };
        }
        PLACE.with(|(_, repository)| {
            let options = Options { nul, ..LINES };
            let (output, ended) = run(repository, &noise, options);
            let found = answers(&output, nul);
            let known = ["0 ", "1 ", "128 ", "129 "];
            for (head, _) in &found {
                prop_assert!(known.iter().any(|status| head.starts_with(status)), "{head}");
            }
            if ended.broken {
                prop_assert!(found.last().unwrap().0.starts_with("129 "));
            } else if !nul && !noise.contains_str("write") {
                // Nothing but a payload takes lines away.
                prop_assert_eq!(found.len(), noise.lines().count());
            }
            Ok(())
        })?;
    }
}

/// Noise of which some is nearly right.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<&[u8]> = vec![
        b"read a f\n",
        b"read",
        b" ",
        b"a",
        b"\n",
        b"\0",
        b"\0\0",
        b"write a f 3\nabc\n",
        b"write a x 2",
        b"write",
        b"begin a\n",
        b"commit\n",
        b"abort\n",
        b"delete -r a dir\n",
        b"\"",
        b"\\377",
        b"ls a\n",
        b"5",
        b"--expect=1",
        b"diff -p a\n",
        b"read\0a\0f\0\0",
        b"begin\0a\0\0",
        b"\xff",
        b"stat a link\n",
        b"write\0a\0f\x003\0\0abc\0",
        b"rename a f dir/k\n",
        b"flush\n",
        b"18446744073709551616",
    ];
    let noise = proptest::collection::vec(any::<u8>(), 0..8);
    let known = proptest::sample::select(pieces).prop_map(<[u8]>::to_vec);
    let piece = prop_oneof![4 => known, 1 => noise];
    proptest::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

/// Prints how long reads take beside git's; asserts only that the answers are equal.
#[test]
fn ten_thousand_reads_beside_cat_file() {
    const FILES: usize = 20_000;
    let sandbox = Sandbox::new();
    let mut stream = b"commit refs/heads/main\ncommitter A <a@b> 1 +0000\ndata 0\n".to_vec();
    for n in 0..FILES {
        let text = format!(
            "// file {n}\n{}",
            "let x = compute(y); // a line\n".repeat(n % 90)
        );
        let path = format!("src/m{:02}/s{:02}/file{n}.rs", n % 37, n / 37 % 23);
        let head = format!("M 100644 inline {path}\ndata {}\n{text}\n", text.len());
        stream.extend(head.into_bytes());
    }
    sandbox.git_with_input(&["fast-import", "--quiet"], &stream);
    let repository = open(&sandbox);
    run(
        &repository,
        b"create --base=main a\nwrite a src/new 1\nx\n",
        LINES,
    );
    let names: Vec<String> = (0..10_000)
        .map(|k| k * 7919 % FILES)
        .map(|n| format!("src/m{:02}/s{:02}/file{n}.rs", n % 37, n / 37 % 23))
        .collect();
    let path = sandbox.repo();
    let ours = std::thread::scope(|scope| {
        let (input, feed) = std::io::pipe().unwrap();
        let (tap, output) = std::io::pipe().unwrap();
        scope.spawn(move || {
            let repository = Repository::open_at(&path, Environment::default()).unwrap();
            batch::run(&repository, &|| 1, input, output, LINES).unwrap();
        });
        let lines: Vec<_> = names
            .iter()
            .map(|name| format!("read a {name}\n"))
            .collect();
        ping(feed, tap, &lines)
    });
    let mut child = sandbox
        .command("git")
        .args(["cat-file", "--batch"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let (feed, tap) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let lines: Vec<_> = names
        .iter()
        .map(|name| format!("refs/relo/vws/a/overlay:{name}\n"))
        .collect();
    let gits = ping(feed, tap, &lines);
    child.wait().unwrap();
    assert!(ours.1 == gits.1, "the contents differ");
    let (together, gits_together) = streams(&sandbox, &repository, &names);
    eprintln!(
        "a read: batch {:.1} us, git cat-file --batch {:.1} us (median of 10,000, each waited for); \
         {together:.1} us, {gits_together:.1} us (mean, sent all at once)",
        ours.0, gits.0
    );
}

/// Microseconds a read where nobody waits for single answers: ours, and git's.
fn streams(sandbox: &Sandbox, repository: &Repository, names: &[String]) -> (f64, f64) {
    let lines = |before: &str| -> String {
        let line = |name: &String| format!("{before}{name}\n");
        names.iter().map(line).collect()
    };
    let each = |start: Instant| start.elapsed().as_secs_f64() * 1e6 / names.len() as f64;
    let input = lines("read a ");
    let start = Instant::now();
    let sink = std::io::sink();
    batch::run(repository, &|| 1, input.as_bytes(), sink, LINES).unwrap();
    let ours = each(start);
    sandbox.write("names", lines("refs/relo/vws/a/overlay:").as_bytes());
    let start = Instant::now();
    let mut git = sandbox.command("git");
    git.args(["cat-file", "--batch"])
        .stdin(std::fs::File::open(sandbox.repo().join("names")).unwrap())
        .stdout(std::process::Stdio::null());
    assert!(git.status().unwrap().success());
    (ours, each(start))
}

/// Sends each line and waits for its answer; the median in microseconds, and all contents.
fn ping(mut feed: impl Write, mut tap: impl Read, lines: &[String]) -> (f64, Vec<u8>) {
    let (mut times, mut contents) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 1 << 20];
    for line in lines {
        let start = Instant::now();
        feed.write_all(line.as_bytes()).unwrap();
        let mut length = 0;
        let (head, size) = loop {
            length += tap.read(&mut buffer[length..]).unwrap();
            let Some(end) = buffer[..length].find_byte(b'\n') else {
                continue;
            };
            let head = buffer[..end].to_str().unwrap();
            let size: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
            if length == end + size + 2 {
                break (end, size);
            }
        };
        times.push(start.elapsed());
        contents.extend_from_slice(&buffer[head + 1..=head + size]);
    }
    drop(feed);
    times.sort();
    (times[times.len() / 2].as_secs_f64() * 1e6, contents)
}
