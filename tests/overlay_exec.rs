//! Commands in overlays, through the binary: what is captured is what another back end captures, the
//! user's files are out of reach, and what git ignores waits for the next run.
//!
//! Skipped, visibly, where the machine refuses overlays in a namespace of one's own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{BINARY, Outcome, Sandbox};
use git_vws::layout::overlay::probe;

/// A sandbox with a first commit, if overlays work here; says so if not.
fn seeded() -> Option<Sandbox> {
    let sandbox = Sandbox::new();
    if let Err(why) = probe(sandbox.root(), Path::new(BINARY)) {
        assert!(
            !std::env::var("GIT_VWS_TEST_EXPECT").is_ok_and(|list| list.contains("overlay")),
            "overlays were expected to work: {why}"
        );
        println!("skipped: no overlay: {why}");
        return None;
    }
    for path in ["f", "g", "d/a", "d/b", "d/deep/c", "run.sh"] {
        sandbox.write(path, format!("{path}\n"));
    }
    std::os::unix::fs::symlink("d/a", sandbox.repo().join("l")).unwrap();
    std::os::unix::fs::symlink("/outside", sandbox.repo().join("old-leaver")).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(sandbox.repo().join("run.sh"), mode).unwrap();
    sandbox.write(".gitignore", "target/\n*.log\n");
    sandbox.write("d/.gitignore", "*.tmp\n!keep.tmp\n");
    sandbox.commit("one");
    Some(sandbox)
}

fn create(sandbox: &Sandbox, agent: &str) {
    let _ = sandbox
        .vws(&["overlay", "create", "--base=HEAD", agent])
        .success();
}

fn exec(sandbox: &Sandbox, options: &[&str], agent: &str, script: &str) -> Outcome {
    let mut args = vec!["exec"];
    args.extend(options);
    args.extend([agent, "--", "sh", "-euc", script]);
    sandbox.vws(&args)
}

fn tree(sandbox: &Sandbox, agent: &str) -> String {
    sandbox.git_text(&[
        "ls-tree",
        "-r",
        &format!("refs/relo/vws/{agent}/overlay^{{tree}}"),
    ])
}

fn upper(sandbox: &Sandbox, agent: &str) -> PathBuf {
    sandbox.repo().join(".git/relo/upper").join(agent)
}

fn is_open(sandbox: &Sandbox, agent: &str) -> bool {
    let pattern = format!("refs/relo/vws/{agent}/exec");
    !sandbox.git(&["for-each-ref", &pattern]).is_empty()
}

/// The user's files, index and refs.
fn users_side(sandbox: &Sandbox) -> String {
    let mut found = String::new();
    let mut left = vec![sandbox.repo()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if path.ends_with(".git") || path.ends_with(".relo") {
                continue;
            }
            if meta.is_dir() {
                left.push(path);
            } else {
                let text = fs::read(&path).unwrap_or_default();
                found += &format!(
                    "{path:?} {:o} {} {text:?}\n",
                    meta.mode(),
                    meta.mtime_nsec()
                );
            }
        }
    }
    let mut lines: Vec<&str> = found.lines().collect();
    lines.sort_unstable();
    let refs = sandbox.git_text(&["for-each-ref", "refs/heads/main", "refs/tags"]);
    let index = fs::read(sandbox.repo().join(".git/index")).unwrap();
    format!("{}\n{refs}\n{index:?}", lines.join("\n"))
}

/// Each with what is done in a second run, for which an overlay takes up what the first has left.
const ROWS: &[(&str, &str, &str)] = &[
    ("nothing", "", "echo later >f"),
    ("edited", "echo new >f", "echo newer >f"),
    ("touched only", "touch f d/a", "rm f"),
    (
        "new file of old content",
        "cp f t; rm f; mv t f",
        "echo x >>f",
    ),
    ("deleted", "rm f d/a", "echo back >f; echo back >d/a"),
    (
        "folder deleted",
        "rm -r d",
        "mkdir -p d/deep; echo n >d/deep/n",
    ),
    (
        "all deleted",
        "rm -r d f g l run.sh old-leaver .gitignore",
        "echo f >f; echo x >x.log",
    ),
    (
        "new",
        "mkdir -p n/m; echo 1 >n/m/x; echo 2 >y",
        "rm -r n; echo n >n",
    ),
    (
        "empty",
        ": >empty; : >f; mkdir -p e/f",
        "rmdir -p e/f || true; echo e >e",
    ),
    ("renamed", "mv f h; mv d e", "mv e d; mv h f"),
    (
        "renamed within",
        "mv d/deep d/shallow; mv d/a d/z",
        "mv d/shallow/c d/a",
    ),
    (
        "bits",
        "chmod +x f; chmod -x run.sh; chmod 654 g",
        "chmod -x f; chmod +x run.sh",
    ),
    ("file to link", "rm f; ln -s g f", "rm f; echo f >f"),
    ("link to file", "rm l; echo text >l", "rm l; ln -s d/a l"),
    (
        "links",
        "rm l; ln -s g l; ln -s no/where n; ln -s d m; ln -s u u; ln -s ../f d/up",
        "rm l m",
    ),
    (
        "file to folder",
        "rm f; mkdir f; echo 1 >f/x",
        "rm -r f; echo f >f",
    ),
    (
        "file to empty folder",
        "rm f; mkdir f",
        "rmdir f 2>/dev/null || true; echo f >f",
    ),
    (
        "folder to file",
        "rm -r d; echo 1 >d",
        "rm d; mkdir d; echo 2 >d/b",
    ),
    (
        "folder to link",
        "rm -r d; ln -s f d",
        "rm d; mkdir d; echo 2 >d/b",
    ),
    (
        "folder anew",
        "rm -r d; mkdir d; echo a >d/a",
        "rm -r d; mkdir d; echo b >d/b",
    ),
    (
        "folder anew, and one in it",
        "rm -r d; mkdir -p d/deep; echo n >d/deep/n",
        "rm -r d/deep; mkdir -p d/deep/er; echo n >d/deep/er/n",
    ),
    (
        "new folder in place of a deleted",
        "mkdir -p n/deep; echo x >n/deep/x; rm -r d; mv n d",
        "mkdir n; mv d n/d; mv n d",
    ),
    (
        "swapped",
        "mv f t; mv d f; mv t d",
        "mv d t; mv f d; mv t f",
    ),
    (
        "around a slash",
        "echo >d.x; echo >d-x; echo >d0",
        "rm d.x; rm -r d",
    ),
    (
        "hostile names",
        "echo >':(top)x'; echo >'*'; echo >'-n'; echo >\"$(printf 'n\\nl')\"; echo >'#h'",
        "rm -- '*' '-n'",
    ),
    ("same size", "printf 'F\\n' >f", "printf 'f\\n' >f"),
    (
        "our own folder",
        "mkdir -p .relo/x sub/.relo; echo >.relo/x/y; echo >sub/.relo/y",
        "",
    ),
    ("fifo", "mkfifo p; echo new >g", "echo newer >g"),
    ("file to fifo", "rm f; mkfifo f; echo new >g", "cat f"),
    ("folder to fifo", "rm -r d; mkfifo d; echo new >g", "ls d"),
    (
        "fifo in a new folder",
        "mkdir n; mkfifo n/p; echo 1 >n/x",
        "cat n/x",
    ),
    (
        "leaving links",
        "ln -s ../out x; rm f; ln -s /etc/passwd f; echo new >g",
        "",
    ),
    (
        "old leaver anew",
        "rm old-leaver; ln -s /outside old-leaver",
        "",
    ),
    (
        "protected",
        "mkdir n; echo >n/.GIT; echo >'git~1'; echo >.Relo; echo new >g",
        "",
    ),
    (
        "nested repository",
        "git init -q n; echo 1 >n/x; echo new >g",
        "",
    ),
    ("a folder becomes one", "git init -q d; echo new >g", ""),
    (
        "ignored",
        "mkdir target; echo o >target/o; echo l >x.log; echo t >d/t.tmp; echo k >d/keep.tmp",
        "echo more >>d/keep.tmp",
    ),
    (
        "ignored deeper",
        "mkdir -p n/target n/m; echo 1 >n/target/x; echo 2 >n/m/x.log; echo 3 >n/m/y",
        "",
    ),
    (
        "ignore rules change",
        "echo '*.y' >>.gitignore; rm d/.gitignore; echo >a.y; echo >d/t.tmp",
        "rm -f a.y; rm .gitignore; echo >b.y; echo >x.log",
    ),
    (
        "ignore rules in a new folder",
        "mkdir n; echo '*.o' >n/.gitignore; echo >n/a.o; echo >n/a.c",
        "",
    ),
    (
        "ignore rules hidden with a folder",
        "rm -r d; mkdir d; echo >d/t.tmp",
        "echo >d/u.tmp",
    ),
    (
        "forced",
        "echo l >x.log; git add -f x.log",
        "echo more >>x.log",
    ),
    (
        "attributes are added",
        "echo '*.txt text' >.gitattributes; printf 'a\\r\\n' >a.txt; printf 'b\\r\\n' >b",
        "printf 'c\\r\\n' >c.txt",
    ),
    (
        "committed",
        "echo new >f; git add -A; git commit -qm inside; echo newer >f",
        "git log -1 --format=%s",
    ),
    (
        "switched",
        "git switch -qc mine-$GIT_VWS_AGENT; echo new >f; git commit -qam inside",
        "",
    ),
    (
        "reset",
        "echo new >f; git add f; git reset -q --hard; echo n >n",
        "",
    ),
    ("fails", "echo new >f; exit 9", "echo newer >f"),
    (
        "long names",
        "echo >$(printf 'x%.0s' $(seq 255)); mkdir -p a/b/c/d/e/f/g/h; echo >a/b/c/d/e/f/g/h/i",
        "",
    ),
];

#[test]
fn the_same_as_a_checkout() {
    let Some(sandbox) = seeded() else { return };
    let before = users_side(&sandbox);
    let look = "git status --porcelain; git ls-files -s; git diff HEAD --stat; ";
    for (number, (name, first, second)) in ROWS.iter().enumerate() {
        let mut seen = Vec::new();
        for backend in ["checkout", "overlay"] {
            let agent = format!("{backend}-{number}");
            let option = format!("--backend={backend}");
            create(&sandbox, &agent);
            let mut said = String::new();
            for script in [*first, &format!("{look}{second}")] {
                let ended = exec(&sandbox, &[&option], &agent, script);
                // Where the directory stays is another place for each.
                let told = String::from_utf8_lossy(ended.stderr()).into_owned();
                let told = told.lines().filter(|line| line.contains("left out"));
                let told: Vec<&str> = told.collect();
                said += &format!(
                    "{:?} {}\n{}\n{}\n",
                    ended.code(),
                    told.join("\n"),
                    String::from_utf8_lossy(ended.stdout()),
                    tree(&sandbox, &agent)
                );
            }
            let branch = format!("refs/heads/relo/{agent}");
            let branch = sandbox.git_text(&["for-each-ref", "--format=%(tree)", &branch]);
            seen.push(format!("{said}{branch}").replace(&agent, "AGENT"));
            if is_open(&sandbox, &agent) {
                let _ = sandbox.vws(&["settle", "--force", &agent]).success();
            }
        }
        assert_eq!(seen[1], seen[0], "{name}");
    }
    assert_eq!(users_side(&sandbox), before);
    sandbox.git(&["fsck", "--strict", "--no-dangling"]);
}

#[test]
fn the_users_path_leads_to_the_workspace_and_the_checkout_is_out_of_reach() {
    let Some(sandbox) = seeded() else { return };
    sandbox.write("f", "the user's own edit\n");
    sandbox.write("staged", "staged\n");
    sandbox.git(&["add", "staged"]);
    create(&sandbox, "a");
    let before = users_side(&sandbox);
    let top = sandbox.repo();
    let script = format!(
        "pwd; cat f; git status --porcelain; echo in >{top}/f; git diff --stat; git commit -qam in",
        top = top.display()
    );
    let out = exec(&sandbox, &[], "a", &script).success();
    insta::assert_snapshot!(out, @r"
    $SANDBOX/repo
    f
     f | 2 +-
     1 file changed, 1 insertion(+), 1 deletion(-)
    exit: 0
    ");
    assert_eq!(users_side(&sandbox), before);
    let branch = sandbox.git_text(&["log", "-1", "--format=%s", "relo/a"]);
    assert_eq!(branch, "in");
    let script = format!("pwd; echo x >{top}/f", top = top.display());
    let out = exec(&sandbox, &["--at=own"], "a", &script);
    assert!(out.stdout().ends_with(b"/.relo/worktrees/a\n"));
    assert_eq!(out.code(), Some(2), "{out}");
    assert_eq!(users_side(&sandbox), before);
    sandbox.git(&["config", "relo.exec.fence", "false"]);
    let _ = exec(&sandbox, &["--at=own"], "a", &script).success();
    assert_eq!(sandbox.read("f"), b"x\n");
    assert!(!is_open(&sandbox, "a"));
}

#[test]
fn exit_codes_and_refusals() {
    let Some(sandbox) = seeded() else { return };
    sandbox.write("script", "exit 7\n");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(sandbox.repo().join("script"), mode).unwrap();
    sandbox.commit("two");
    create(&sandbox, "a");
    // One that does not say what runs it is for the shell.
    for backend in ["--backend=overlay", "--backend=checkout"] {
        let ended = sandbox.vws(&["exec", backend, "a", "--", "./script"]);
        assert_eq!(ended.code(), Some(7), "{ended}");
    }
    for (command, code) in [
        (&["sh", "-c", "exit 125"][..], 125),
        (&["sh", "-c", "exit 127"], 127),
        (&["no-such-command"], 127),
        (&["./f"], 126),
        (&["true"], 0),
        (&["sh", "-c", "kill -TERM $$"], 143),
    ] {
        let mut args = vec!["exec", "--backend=overlay", "a", "--"];
        args.extend(command);
        let ended = sandbox.vws(&args);
        assert_eq!(ended.code(), Some(code), "{command:?}: {ended}");
        let own = String::from_utf8_lossy(ended.stderr()).contains("fatal: cannot run");
        assert_eq!(own, command.len() == 1 && code >= 126, "{ended}");
        assert!(!is_open(&sandbox, "a"));
    }
    let _ = sandbox.vws(&["materialize", "a"]).success();
    insta::assert_snapshot!(exec(&sandbox, &["--backend=overlay"], "a", "true"), @r"
    --- stderr
    fatal: no overlay here: a directory by 'checkout' is open [unsupported]
    exit: 125
    ");
    // Without the choice, the directory that is open is used.
    let out = exec(&sandbox, &[], "a", "pwd").success();
    assert!(out.stdout().ends_with(b"/.relo/worktrees/a\n"));
}

#[test]
fn ignored_output_waits_for_the_next_run_and_blocks_nothing() {
    let Some(sandbox) = seeded() else { return };
    create(&sandbox, "a");
    let _ = exec(
        &sandbox,
        &[],
        "a",
        "mkdir target; echo built >target/o; echo new >f",
    )
    .success();
    assert!(!is_open(&sandbox, "a"));
    // The view may write, and another revision may be current.
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "d/b"], b"by view\n")
        .success();
    let _ = sandbox.vws(&["overlay", "delete", "a", "g"]).success();
    let _ = sandbox.vws_with_input(&["overlay", "write", "a", "target/tracked"], b"t\n");
    let out = exec(
        &sandbox,
        &[],
        "a",
        "cat target/o f d/b; test ! -e g; git status --porcelain; git diff HEAD --stat",
    )
    .success();
    assert_eq!(out.stdout(), b"built\nnew\nby view\n", "{out}");
    // Another directory in between.
    let _ = sandbox.vws(&["materialize", "a"]).success();
    fs::write(sandbox.repo().join(".relo/worktrees/a/f"), "by hand\n").unwrap();
    let _ = sandbox.vws(&["capture", "a"]).success();
    let _ = exec(&sandbox, &[], "a", "echo more >>f").success();
    let _ = sandbox.vws(&["settle", "a"]).success();
    assert!(!upper(&sandbox, "a").exists());
    let out = exec(&sandbox, &[], "a", "cat f; test ! -e target/o").success();
    assert_eq!(out.stdout(), b"by hand\nmore\n");
    assert!(upper(&sandbox, "a").exists());
    let _ = sandbox
        .vws(&["overlay", "dispose", "--force", "a"])
        .success();
    assert!(!upper(&sandbox, "a").exists());
    let _ = sandbox
        .vws(&["run", "b", "--", "sh", "-c", "echo x >x"])
        .success();
    assert!(!upper(&sandbox, "b").exists());
}

#[test]
fn what_a_killed_run_wrote_is_adopted() {
    let Some(sandbox) = seeded() else { return };
    create(&sandbox, "a");
    let script = "echo one >one; rm g; echo $$ >\"$0\"; exec sleep 100";
    let pid_file = sandbox.root().join("pid");
    let mut child = sandbox
        .command(BINARY)
        .args(["exec", "a", "--", "sh", "-c", script])
        .arg(&pid_file)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let start = Instant::now();
    while !fs::read_to_string(&pid_file).is_ok_and(|pid| pid.ends_with('\n')) {
        assert!(start.elapsed() < Duration::from_secs(20));
        std::thread::sleep(Duration::from_millis(5));
    }
    // A reader sees what is there while the command runs.
    let out = sandbox.vws(&["overlay", "read", "a", "one"]).success();
    assert_eq!(out.stdout(), b"one\n");
    let refused = exec(&sandbox, &[], "a", "true");
    assert_eq!(refused.code(), Some(125), "{refused}");
    assert!(
        String::from_utf8_lossy(refused.stderr()).contains("[locked]"),
        "{refused}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    // The command itself lives on, and nobody gets in beside it.
    let refused = exec(&sandbox, &[], "a", "true");
    assert!(
        String::from_utf8_lossy(refused.stderr()).contains("[locked]"),
        "{refused}"
    );
    assert!(is_open(&sandbox, "a"));
    let pid = fs::read_to_string(&pid_file).unwrap();
    let killed = Command::new("sh")
        .args(["-c", &format!("kill -9 {pid}")])
        .status();
    assert!(killed.unwrap().success());
    fs::write(upper(&sandbox, "a").join("files/late"), "late\n").unwrap();
    // Somebody removes the empty place, and the work is not there.
    fs::remove_dir_all(sandbox.repo().join(".relo")).unwrap();
    let out = exec(
        &sandbox,
        &[],
        "a",
        "cat one late; test ! -e g; echo two >two",
    )
    .success();
    assert_eq!(out.stdout(), b"one\nlate\n");
    assert!(!is_open(&sandbox, "a"));
    let left = sandbox.git_text(&["ls-tree", "--name-only", "refs/relo/vws/a/overlay^{tree}"]);
    assert_eq!(
        left.replace('\n', " "),
        ".gitignore d f l late old-leaver one run.sh two"
    );
}

#[test]
fn build_output_of_the_checkout_is_there_with_its_times() {
    let Some(sandbox) = seeded() else { return };
    sandbox.write("target/out", "built\n");
    let touched = Command::new("touch")
        .args(["-d", "2001-02-03 04:05:06"])
        .arg(sandbox.repo().join("target/out"))
        .status();
    assert!(touched.unwrap().success());
    let f = fs::metadata(sandbox.repo().join("f")).unwrap();
    let script = "cat target/out; stat -c %Y target/out f; echo mine >target/out; git status -s";
    let out = sandbox
        .vws(&["run", "-q", "a", "--", "sh", "-euc", script])
        .success();
    let expected = format!("built\n981173106\n{}\n", f.mtime());
    assert_eq!(String::from_utf8_lossy(out.stdout()), expected);
    assert_eq!(sandbox.read("target/out"), b"built\n");
    sandbox.git(&["config", "relo.template.warm", "false"]);
    let out = sandbox.vws(&["run", "-q", "b", "--", "ls"]).success();
    assert!(!String::from_utf8_lossy(out.stdout()).contains("target"));
    let warmed = sandbox.vws(&["template", "warm"]).success();
    assert!(
        String::from_utf8_lossy(warmed.stdout()).contains("files 10\n"),
        "{warmed}"
    );
    let listed = sandbox.vws(&["template", "list"]).success();
    assert!(listed.stdout().starts_with(b"template "), "{listed}");
    let _ = sandbox
        .vws(&["template", "prune", "--max-bytes=0"])
        .success();
    assert_eq!(sandbox.vws(&["template", "list"]).stdout(), b"");
}

#[test]
fn a_tree_that_git_rewrites_is_laid_out_by_git() {
    let Some(sandbox) = seeded() else { return };
    sandbox.write(".gitattributes", "*.txt eol=crlf\n");
    sandbox.write("a.txt", "a\n");
    sandbox.commit("two");
    create(&sandbox, "a");
    let script = "od -c a.txt | head -n 1; git status -s; pwd; echo o >x.log; echo b >b.txt";
    insta::assert_snapshot!(exec(&sandbox, &[], "a", script), @r"
    0000000   a  \r  \n
    $SANDBOX/repo
    exit: 0
    ");
    let names = |agent: &str| {
        let names = ["overlay", "diff", "--name-status", agent];
        String::from_utf8(sandbox.vws(&names).success().stdout().to_vec()).unwrap()
    };
    assert_eq!(names("a"), "A\tb.txt\n");
    // What the view wrote since is written by the same rules, and what is ignored is still there.
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "c.txt"], b"c\n")
        .success();
    let script = "cat x.log; od -c c.txt | head -n 1; git status -s; git diff HEAD --stat";
    insta::assert_snapshot!(exec(&sandbox, &[], "a", script), @r"
    o
    0000000   c  \r  \n
    exit: 0
    ");
    assert_eq!(names("a"), "A\tb.txt\nA\tc.txt\n");
    // With other rules all is laid out anew, whoever sets them.
    sandbox.git(&["config", "core.autocrlf", "input"]);
    let script = "git status -s; printf '*.txt eol=lf\n' >.gitattributes; echo >n.txt";
    let out = exec(&sandbox, &[], "a", script).success();
    assert_eq!(out.stdout(), b"", "{out}");
    let out = exec(&sandbox, &[], "a", "od -c a.txt | head -n 1; git status -s").success();
    assert_eq!(out.stdout(), b"0000000   a  \\n\n", "{out}");
    assert_eq!(
        names("a"),
        "M\t.gitattributes\nA\tb.txt\nA\tc.txt\nA\tn.txt\n"
    );
}

#[test]
fn a_capture_does_not_walk_the_repository() {
    let Some(sandbox) = seeded() else { return };
    if Command::new("strace").arg("-V").output().is_err() {
        println!("skipped: no strace");
        return;
    }
    for folder in 0..100 {
        for file in 0..20 {
            sandbox.write(
                format!("many/{folder}/{file}"),
                format!("{folder} {file}\n"),
            );
        }
    }
    sandbox.commit("many");
    let mut calls = Vec::new();
    for backend in ["checkout", "overlay"] {
        create(&sandbox, backend);
        let option = format!("--backend={backend}");
        let _ = exec(&sandbox, &[&option], backend, "true").success();
        let count = sandbox.root().join("count");
        let mut command = sandbox.command("strace");
        command
            .args(["-f", "-qq", "-e", "trace=getdents64,newfstatat", "-o"])
            .arg(&count)
            .args([BINARY, "exec", &option, backend, "--"])
            .args(["touch", "many/1/1", "many/2/2", "many/3/3", "f", "new"]);
        let _ = sandbox.outcome(command, b"").success();
        calls.push(fs::read_to_string(&count).unwrap().lines().count());
    }
    assert!(calls[0] > 2000, "{calls:?}");
    assert!(calls[1] < 500, "{calls:?}");
}

/// A workspace of 20 crates, each on the one before it; built in the checkout, nothing is built again.
#[test]
fn cargo_finds_what_was_built_in_the_checkout() {
    let Some(sandbox) = seeded() else { return };
    let cargo = Path::new(env!("CARGO"));
    let mut members = String::new();
    for number in 0..20 {
        let mut manifest = format!(
            "[package]\nname = \"c{number}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\n"
        );
        if number % 5 != 0 {
            let before = number - 1;
            manifest += &format!("c{before} = {{ path = \"../c{before}\" }}\n");
        }
        members += &format!("\"c{number}\", ");
        sandbox.write(format!("c{number}/Cargo.toml"), manifest);
        sandbox.write(
            format!("c{number}/src/lib.rs"),
            format!("pub fn f() -> u32 {{ {number} }}\n"),
        );
    }
    let manifest = format!("[workspace]\nresolver = \"2\"\nmembers = [{members}]\n");
    sandbox.write("Cargo.toml", manifest);
    let build = format!(
        "PATH={}:$PATH cargo build -v --offline 2>&1",
        cargo.parent().unwrap().display()
    );
    let mut first = sandbox.command("sh");
    first.args(["-c", &build]);
    let first = sandbox.outcome(first, b"");
    if first.code() != Some(0) {
        println!("skipped: cargo does not build here: {first}");
        return;
    }
    sandbox.commit("crates");
    let compiled = |out: &Outcome| {
        let text = String::from_utf8_lossy(out.stdout()).into_owned();
        let word = |line: &str| {
            Some(
                line.trim()
                    .strip_prefix("Compiling ")?
                    .split(' ')
                    .next()?
                    .to_owned(),
            )
        };
        let mut names: Vec<String> = text.lines().filter_map(word).collect();
        names.sort();
        (names.join(" "), text.matches("Fresh ").count())
    };
    create(&sandbox, "a");
    let none = exec(&sandbox, &[], "a", &build).success();
    assert_eq!(compiled(&none), (String::new(), 20), "{none}");
    let edit = format!("echo 'pub fn g() {{}}' >>c7/src/lib.rs; {build}");
    let some = exec(&sandbox, &[], "a", &edit).success();
    assert_eq!(compiled(&some), ("c7 c8 c9".to_owned(), 17), "{some}");
    let none = exec(&sandbox, &[], "a", &build).success();
    assert_eq!(compiled(&none), (String::new(), 20), "{none}");
}

#[test]
fn an_unprivileged_user_gets_the_same_as_from_a_checkout() {
    let Some(sandbox) = seeded() else { return };
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can try it as another user; the other tests are that user");
        return;
    }
    let binary = sandbox.root().join("git-vws");
    fs::copy(BINARY, &binary).unwrap();
    let chown = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(sandbox.root())
        .status();
    let start = |args: &[&str]| {
        let mut command = sandbox.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(&binary).args(args);
        sandbox.outcome(command, b"")
    };
    let _ = start(&["overlay", "create", "--base=HEAD", "try"]);
    let tried = start(&["exec", "--backend=overlay", "try", "--", "true"]);
    if !chown.is_ok_and(|status| status.success()) || tried.code() != Some(0) {
        println!("skipped: no user namespaces: {tried}");
        return;
    }
    let rows = [
        "id -u; echo new >f; rm -r d; mkdir d; git add -A; git commit -qm inside",
        "chmod 000 d; echo new >g",
        "chmod 000 f; echo new >g",
        "mkdir n; echo 1 >n/x; chmod 000 n; echo new >g",
        "mkdir -p target/shut; echo 1 >target/shut/x; chmod 000 target/shut",
    ];
    for (number, script) in rows.iter().enumerate() {
        let mut seen = Vec::new();
        for backend in ["checkout", "overlay"] {
            let agent = format!("{backend}-{number}");
            let _ = start(&["overlay", "create", "--base=HEAD", &agent]).success();
            let option = format!("--backend={backend}");
            let ended = start(&["exec", &option, &agent, "--", "sh", "-euc", script]);
            let told = String::from_utf8_lossy(ended.stderr()).into_owned();
            let told: Vec<_> = told
                .lines()
                .filter(|line| line.contains("left out"))
                .collect();
            seen.push(format!(
                "{:?} {:?} {} {}",
                ended.code(),
                String::from_utf8_lossy(ended.stdout()),
                told.join(" "),
                start(&["overlay", "diff", "--name-status", &agent])
            ));
            let settled = start(&["settle", "--force", &agent]);
            assert!(!upper(&sandbox, &agent).exists(), "{script}: {settled}");
        }
        assert_eq!(seen[1], seen[0], "{script}");
    }
    let trash = fs::read_dir(sandbox.repo().join(".git/relo/.trash"));
    assert_eq!(trash.map_or(0, Iterator::count), 0);
}

#[test]
fn where_a_mount_fails_the_command_runs_all_the_same() {
    let Some(sandbox) = seeded() else { return };
    create(&sandbox, "a");
    let _ = exec(&sandbox, &[], "a", "echo one >one").success();
    let templates = sandbox.repo().join(".git/relo/templates");
    let template = fs::read_dir(&templates).unwrap().next().unwrap().unwrap();
    fs::rename(template.path().join("files"), templates.join("moved")).unwrap();
    let out = exec(&sandbox, &[], "a", "pwd; cat one; echo two >two").success();
    assert!(
        out.stdout().ends_with(b"/.relo/worktrees/a\none\n"),
        "{out}"
    );
    let said = String::from_utf8_lossy(out.stderr()).into_owned();
    assert!(said.starts_with("hint: files are written out"), "{out}");
    let out = exec(&sandbox, &[], "a", "cat two").success();
    assert_eq!((out.stdout(), out.stderr()), (&b"two\n"[..], &b""[..]));
    let refused = exec(&sandbox, &["--backend=overlay"], "a", "true");
    assert_eq!(refused.code(), Some(125), "{refused}");
    assert!(!is_open(&sandbox, "a"));
    sandbox.git(&["config", "relo.workspace.materialization", "checkout"]);
    let out = exec(&sandbox, &[], "a", "cat two").success();
    assert_eq!(out.stderr(), b"");
}

#[test]
fn what_is_left_of_an_agent_that_is_gone_is_cleared_away() {
    let Some(sandbox) = seeded() else { return };
    for agent in ["a", "b", "c"] {
        create(&sandbox, agent);
        let _ = exec(&sandbox, &[], agent, "mkdir target; echo 12345 >target/o").success();
    }
    // As a version that did not know of it would have let them go.
    for agent in ["a", "b"] {
        for end in ["overlay", "base"] {
            let name = format!("refs/relo/vws/{agent}/{end}");
            sandbox.git(&["update-ref", "-d", &name]);
        }
    }
    let shown = sandbox.vws(&["sweep", "--dry-run"]).success();
    let text = String::from_utf8_lossy(shown.stdout()).into_owned();
    assert!(text.contains("would-go leftover\n"), "{text}");
    assert!(upper(&sandbox, "a").exists());
    // One in which somebody runs stays.
    let lock = sandbox.repo().join(".git/relo/locks/directories/b");
    let mut holder = Command::new("flock")
        .arg("--no-fork")
        .arg(&lock)
        .args(["sh", "-c", "echo; exec sleep 60"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    let swept = sandbox.vws(&["sweep"]).success();
    holder.kill().unwrap();
    holder.wait().unwrap();
    let text = String::from_utf8_lossy(swept.stdout()).into_owned();
    assert!(text.contains("removed leftover\n"), "{text}");
    assert!(!upper(&sandbox, "a").exists() && upper(&sandbox, "c").exists());
    let text = text
        .split("\n\n")
        .find(|one| one.contains("agent b"))
        .unwrap();
    assert!(text.contains("kept leftover\n"), "{text}");
    let _ = sandbox.vws(&["recover"]).success();
    assert!(!upper(&sandbox, "b").exists() && upper(&sandbox, "c").exists());
}

#[test]
fn what_an_agent_built_is_shared_unless_it_failed() {
    let Some(sandbox) = seeded() else { return };
    for name in ["target/old", "target/gone", "target/deep/x", ".venv/v"] {
        sandbox.write(name, format!("{name}\n"));
    }
    sandbox.write(".gitignore", "target/\n*.log\n.venv/\n");
    sandbox.write("x.log", "log\n");
    sandbox.commit("two");
    create(&sandbox, "a");
    let _ = exec(
        &sandbox,
        &[],
        "a",
        "test ! -e .venv; test ! -e x.log; rm target/gone; rm -r target/deep; mkdir target/deep
         echo new >target/deep/n; echo newer >target/old; mkdir d/target; echo d >d/target/o",
    )
    .success();
    let warm = |from: &str| sandbox.vws(&["template", "warm", &format!("--from={from}")]);
    let sees = |agent: &str| {
        create(&sandbox, agent);
        let script = "find target d/target -type f | LC_ALL=C sort; cat target/old";
        let out = exec(&sandbox, &[], agent, script);
        String::from_utf8_lossy(out.stdout()).into_owned()
    };
    let _ = warm("a").success();
    assert_eq!(sees("b"), "d/target/o\ntarget/deep/n\ntarget/old\nnewer\n");
    // A command that failed, and a proposal that was rejected.
    let _ = exec(&sandbox, &[], "a", "echo bad >target/old; exit 3");
    insta::assert_snapshot!(warm("a"), @r"
    --- stderr
    fatal: the last command of workspace 'a' failed (3): its build output is not shared [unsupported]
    exit: 128
    ");
    let _ = exec(&sandbox, &[], "a", "echo one >one; echo two >two").success();
    let _ = sandbox.vws(&["propose", "a"]).success();
    let _ = sandbox.vws(&["reject", "a", "--", "one"]).success();
    insta::assert_snapshot!(warm("a"), @r"
    --- stderr
    fatal: changes of workspace 'a' were rejected: its build output is not shared [unsupported]
    exit: 128
    ");
    insta::assert_snapshot!(warm("nobody"), @r"
    --- stderr
    fatal: 'nobody' is neither a workspace nor a folder [unsupported]
    exit: 128
    ");
    insta::assert_snapshot!(warm("/"), @r"
    --- stderr
    fatal: '/' is no working tree of this repository [unsupported]
    exit: 128
    ");
    create(&sandbox, "fresh");
    insta::assert_snapshot!(warm("fresh"), @r"
    --- stderr
    fatal: workspace 'fresh' has no directory open
    hint: 'git vws materialize fresh' makes one
    exit: 128
    ");
    // An open directory, named by its path, and a worktree of the user's.
    let laid_out = sandbox.vws(&["materialize", "--backend=checkout", "fresh"]);
    let _ = laid_out.success();
    sandbox.write(".relo/worktrees/fresh/target/old", "by fresh\n");
    let _ = warm(".relo/worktrees/fresh").success();
    assert_eq!(sees("c"), "target/old\nby fresh\n");
    sandbox.git(&["worktree", "add", "-q", "--detach", "../other"]);
    sandbox.write("../other/target/old", "by hand\n");
    let _ = warm("../other").success();
    assert_eq!(sees("d"), "target/old\nby hand\n");
}

#[test]
fn settings_say_what_is_shared_and_when() {
    let Some(sandbox) = seeded() else { return };
    sandbox.write(".gitignore", "target/\n.venv/\n*.env\n");
    for name in ["target/o", ".venv/v", "my.env", "other.env"] {
        sandbox.write(name, format!("{name}\n"));
    }
    sandbox.write(".worktreeinclude", "my.env\n");
    sandbox.commit("two");
    let sees = |agent: &str, settings: &[&str]| {
        create(&sandbox, agent);
        let mut command = sandbox.command("git");
        for setting in settings {
            command.args(["-c", setting]);
        }
        command.args(["vws", "exec", agent, "--", "sh", "-c"]);
        command.arg("ls -d target/* .venv/* *.env 2>/dev/null; true");
        let out = sandbox.outcome(command, b"").success();
        String::from_utf8_lossy(out.stdout()).into_owned()
    };
    assert_eq!(sees("a", &["relo.template.warm=false"]), "");
    assert_eq!(sees("b", &[]), "my.env\ntarget/o\n");
    // Young enough, it is not made again, whatever it would hold now.
    sandbox.write("target/p", "p\n");
    let share = "relo.template.share=.venv";
    assert_eq!(sees("c", &[share]), "my.env\ntarget/o\n");
    let now = "relo.template.warmInterval=0";
    let all = ".venv/v\nmy.env\ntarget/o\ntarget/p\n";
    assert_eq!(sees("d", &[share, now]), all);
    assert_eq!(sees("e", &["relo.template.warm=false"]), "");
}

#[test]
fn the_path_of_the_checkout_is_refused_where_there_is_no_overlay() {
    let Some(sandbox) = seeded() else { return };
    create(&sandbox, "a");
    let out = exec(&sandbox, &["--at=checkout"], "a", "pwd").success();
    assert_eq!(
        out.stdout(),
        format!("{}\n", sandbox.repo().display()).as_bytes()
    );
    let out = exec(&sandbox, &["--at=own"], "a", "pwd").success();
    assert!(out.stdout().ends_with(b"/.relo/worktrees/a\n"), "{out}");
    let _ = sandbox
        .vws(&["materialize", "--backend=checkout", "a"])
        .success();
    insta::assert_snapshot!(exec(&sandbox, &["--at=checkout"], "a", "touch x"), @r"
    --- stderr
    fatal: only an overlay of the command's own is seen at the path of the checkout [unsupported]
    exit: 125
    ");
    assert!(!sandbox.repo().join("x").exists());
}
