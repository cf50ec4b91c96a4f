//! Overlays over templates: a command in one changes nothing below, and what it did is read from the
//! upper folder alone; git inside is the oracle.
//!
//! Skipped, visibly, where the machine refuses overlays in a namespace of one's own.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]
// An outcome is checked by `success`.
#![allow(unused_must_use)]

mod common;
#[path = "common/library.rs"]
mod library;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use bstr::{BString, ByteSlice};
use common::{BINARY, Outcome, Sandbox};
use git_vws::git::tree::diff;
use git_vws::git::{ObjectId, Repository};
use git_vws::layout::overlay::{At, Place, Spec, Stand, Touched, What, expand, probe};
use git_vws::layout::template::{self, warm};
use library::open;

/// A repository with a directory `a` of an overlay, its git dir made by hand.
struct Rig {
    sandbox: Sandbox,
    repository: Repository,
    stand: Stand,
}

/// Whether overlays work here; says so if not.
fn works(sandbox: &Sandbox) -> bool {
    match probe(sandbox.root(), Path::new(BINARY)) {
        Ok(()) => true,
        Err(why) => {
            assert!(
                !std::env::var("GIT_VWS_TEST_EXPECT").is_ok_and(|list| list.contains("overlay")),
                "overlays were expected to work: {why}"
            );
            println!("skipped: no overlay: {why}");
            false
        }
    }
}

fn tree_of(sandbox: &Sandbox, repository: &Repository, revision: &str) -> ObjectId {
    let spec = format!("{revision}^{{tree}}");
    let text = sandbox.git_text(&["rev-parse", &spec]);
    ObjectId::from_str_ext(&text, repository.format()).unwrap()
}

fn place(repository: &Repository) -> Place {
    Place {
        own: repository.work_dir().unwrap().join(".relo/worktrees/a"),
        admin: repository.common_dir().join("worktrees/relo-a"),
        fence: true,
    }
}

fn seeded() -> Sandbox {
    let sandbox = Sandbox::new();
    // It would run on after a commit, and hold the lock.
    sandbox.git(&["config", "maintenance.auto", "false"]);
    sandbox.write("a.txt", "a\n");
    sandbox.write("b.txt", "b\n");
    sandbox.write("run.sh", "#!/bin/sh\n");
    let run = sandbox.repo().join("run.sh");
    fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", sandbox.repo().join("link")).unwrap();
    for name in ["x", "y", "z/deep"] {
        sandbox.write(format!("old/{name}"), name);
        sandbox.write(format!("kept/{name}"), name);
    }
    sandbox.write(".gitignore", "target/\n*.log\n");
    sandbox.commit("one");
    sandbox
}

impl Rig {
    /// A directory with the content of `revision`, above the template of `below`.
    fn new(sandbox: Sandbox, below: &str, revision: &str, with_warm: bool) -> Rig {
        let repository = open(&sandbox);
        let options = template::Options {
            users: Some(sandbox.repo()),
            threads: 2,
        };
        let tree = tree_of(&sandbox, &repository, below);
        let template = template::obtain(&repository, tree, &options).unwrap();
        let revision = tree_of(&sandbox, &repository, revision);
        let warm = with_warm.then(|| {
            let options = warm::Options {
                tree: Some(tree_of(&sandbox, &repository, "HEAD")),
                now: 1_000_000,
                ..warm::Options::default()
            };
            warm::refresh(&repository, &options).unwrap().unwrap()
        });
        let place = place(&repository);
        fs::create_dir_all(&place.admin).unwrap();
        fs::create_dir_all(&place.own).unwrap();
        let root = repository.relo_dir().join("upper/a");
        let index = place.admin.join("index");
        let made = Stand::make(&repository, revision, (&root, &index), &options, warm);
        let stand = made.unwrap();
        assert_eq!(stand.template().tree(), template.tree());
        let commit = [
            "commit-tree",
            "-m",
            "cut",
            "-p",
            "HEAD",
            &revision.to_string(),
        ];
        let commit = sandbox.git_text(&commit);
        fs::write(place.admin.join("HEAD"), format!("{commit}\n")).unwrap();
        fs::write(place.admin.join("commondir"), "../..\n").unwrap();
        let pointer = format!("{}/.git\n", place.own.display());
        fs::write(place.admin.join("gitdir"), pointer).unwrap();
        let exclude = repository.common_dir().join("info/exclude");
        fs::create_dir_all(exclude.parent().unwrap()).unwrap();
        fs::write(exclude, "/.relo/\n").unwrap();
        Rig {
            sandbox,
            repository,
            stand,
        }
    }

    fn spec(&self, at: At, command: &[&str]) -> Spec {
        // As the next process would find it.
        let root = self.stand.upper().root();
        let stand = Stand::open(&self.repository, root).unwrap().unwrap();
        let place = place(&self.repository);
        let spec = stand.spec(&self.repository, &place, at).unwrap();
        Spec {
            command: command.iter().map(Into::into).collect(),
            ..spec
        }
    }

    fn run(&self, at: At, script: &str) -> Outcome {
        self.start(&self.spec(at, &["sh", "-euc", script]))
    }

    fn start(&self, spec: &Spec) -> Outcome {
        let run = spec.invocation(Path::new(BINARY));
        let mut command = self.sandbox.command(run.program);
        command.args(run.args);
        self.sandbox.outcome(command, b"")
    }

    fn touched(&self) -> Vec<Touched> {
        self.stand.touched(&self.repository).unwrap()
    }

    fn list(&self) -> String {
        let line = |touched: &Touched| format!("{:?} {}\n", touched.what, touched.path);
        self.touched().iter().map(line).collect()
    }

    /// What git says in the mount is exactly what the upper folder says.
    fn agrees_with_git(&self) {
        let status = self
            .run(At::Own, "git status --porcelain --no-renames -z -uall")
            .success();
        let mut gits: Vec<(BString, bool)> = status
            .stdout()
            .split_str("\0")
            .filter(|record| !record.is_empty())
            .map(|record| (record[3..].into(), record[..2].contains(&b'D')))
            .collect();
        gits.sort();
        let objects = self.repository.objects().unwrap();
        let mut ours = Vec::new();
        for touched in self.touched() {
            match touched.what {
                What::Folder => {
                    let below = expand(
                        &self.stand.upper().files(),
                        &objects,
                        touched.path.as_bstr(),
                        false,
                    );
                    ours.extend(below.unwrap());
                }
                _ => ours.push(touched),
            }
        }
        let mut ours: Vec<(BString, bool)> = ours
            .into_iter()
            .map(|touched| (touched.path, touched.what == What::Removed))
            // Touched or removed without being different: git says nothing of these.
            .filter(|(path, removed)| {
                let entry =
                    git_vws::git::tree::lookup(&objects, self.stand.revision(), path.as_bstr());
                match entry.unwrap() {
                    // Ignored, and a FIFO, which git does not see.
                    None => {
                        let unseen = path.ends_with(b".log") || path.starts_with(b"target/");
                        !removed && !unseen && path != "pipe"
                    }
                    Some(entry) => {
                        let top = self.stand.upper().files();
                        let bytes = git_vws::disk::read(&top, path.as_bstr(), u64::MAX);
                        let mode = git_vws::disk::mode(&top, path.as_bstr(), true);
                        *removed
                            || mode != Some(entry.mode)
                            || self.repository.hash_blob(&bytes.unwrap()).unwrap() != entry.id
                    }
                }
            })
            .collect();
        ours.sort();
        // A file in a removed one's place is one record for git.
        ours.dedup_by(|b, a| a.0 == b.0);
        assert_eq!(ours, gits);
    }
}

/// All that may change in a checkout: names, modes, content, times.
fn snapshot(top: &Path) -> Vec<(PathBuf, u32, i64, i64, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![top.to_owned()];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if meta.is_dir() {
                if !path.ends_with(".git") && !path.ends_with(".relo") {
                    left.push(path.clone());
                }
                continue;
            }
            let content = fs::read(&path).unwrap_or_default();
            found.push((path, meta.mode(), meta.mtime(), meta.mtime_nsec(), content));
        }
    }
    found.sort();
    found
}

const EDITS: &str = "
    echo more >>a.txt
    rm b.txt
    mv run.sh walk.sh
    rm -r old && mkdir old && echo new >old/n && echo x >old/x
    rm -r kept/z && echo file >kept/z
    rm kept/x && mkdir kept/x && echo below >kept/x/below
    ln -sf b.txt link
    mkdir -p fresh/sub && echo f >fresh/f && echo g >fresh/sub/g
    chmod +x kept/y
    mkfifo pipe
    echo noise >build.log
    mkdir target && echo o >target/o
";

#[test]
fn what_a_command_does_is_read_from_the_upper_folder() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let before = snapshot(&sandbox.repo());
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    rig.run(
        At::Own,
        "git status --porcelain; test -z \"$(git status --porcelain)\"",
    )
    .success();
    assert_eq!(rig.list(), "");
    rig.run(At::Own, EDITS).success();
    insta::assert_snapshot!(rig.list(), @r"
    File a.txt
    Removed b.txt
    File build.log
    Folder fresh
    Removed kept/x
    Folder kept/x
    File kept/y
    File kept/z
    Removed kept/z/deep
    Link link
    File old/n
    File old/x
    Removed old/y
    Removed old/z/deep
    Special pipe
    Removed run.sh
    Folder target
    File walk.sh
    ");
    rig.agrees_with_git();
    assert_eq!(snapshot(&rig.sandbox.repo()), before);
    assert_eq!(rig.sandbox.git_text(&["status", "--porcelain"]), "");
}

#[test]
fn a_folder_in_an_opaque_one_hides_what_is_below_too() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    let script = "
        rm -r old && mkdir -p old/z && echo n >old/z/n
        mkdir -p new/z && echo n >new/z/n && rm -r kept && mv new kept";
    rig.run(At::Own, script).success();
    insta::assert_snapshot!(rig.list(), @r"
    Removed kept/x
    Removed kept/y
    Removed kept/z/deep
    File kept/z/n
    Removed old/x
    Removed old/y
    Removed old/z/deep
    File old/z/n
    ");
    rig.agrees_with_git();
}

#[test]
fn a_near_template_serves_another_revision() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let repo = sandbox.repo();
    sandbox.write("a.txt", "another\n");
    fs::remove_file(repo.join("b.txt")).unwrap();
    fs::remove_dir_all(repo.join("old")).unwrap();
    sandbox.write("old", "a file now\n");
    fs::remove_dir_all(repo.join("kept/z")).unwrap();
    fs::remove_file(repo.join("kept/y")).unwrap();
    sandbox.write("kept/y/inside", "y is a folder\n");
    sandbox.write("added/one", "1\n");
    sandbox.write("added/two", "2\n");
    sandbox.commit("two");
    let rig = Rig::new(sandbox, "HEAD~", "HEAD", false);
    let near = template::find_near(&rig.repository, rig.stand.revision()).unwrap();
    let (near, changes) = near.unwrap();
    assert_eq!(near.tree(), rig.stand.template().tree());
    let objects = rig.repository.objects().unwrap();
    let all = diff(&objects, Some(near.tree()), Some(rig.stand.revision())).unwrap();
    assert_eq!(changes, all);
    rig.run(
        At::Own,
        "test -z \"$(git status --porcelain)\" && test -f old && test -f kept/y/inside",
    )
    .success();
    rig.agrees_with_git();
    // What the revision added leaves no trace above when it goes.
    rig.run(
        At::Own,
        "rm -r added/one kept/y old a.txt; mkdir old; echo b >b.txt; git checkout -q HEAD -- a.txt",
    )
    .success();
    let list = rig.list();
    for line in [
        "Removed added/one",
        "Removed kept/y/inside",
        "Removed old",
        "File b.txt",
    ] {
        assert!(list.lines().any(|have| have == line), "{line} in\n{list}");
    }
    rig.agrees_with_git();
    rig.run(At::Own, "rm -r added old b.txt kept").success();
    rig.agrees_with_git();
}

#[test]
fn the_users_own_path_leads_to_the_workspace() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    sandbox.write("a.txt", "the user's own edit\n");
    sandbox.write("staged", "staged\n");
    sandbox.git(&["add", "staged"]);
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    let before = snapshot(&rig.sandbox.repo());
    let head = rig.sandbox.git_text(&["rev-parse", "HEAD"]);
    let index = rig.sandbox.read(".git/index");
    let out = rig
        .run(
            At::Checkout,
            "pwd; echo $PWD; cat a.txt; git status --porcelain
             echo agent >a.txt; git diff --stat; git commit -qam inside; git log --format=%s -1
             git status --porcelain",
        )
        .success();
    insta::assert_snapshot!(out, @r"
    $SANDBOX/repo
    $SANDBOX/repo
    a
     a.txt | 2 +-
     1 file changed, 1 insertion(+), 1 deletion(-)
    inside
    exit: 0
    ");
    assert_eq!(snapshot(&rig.sandbox.repo()), before);
    assert_eq!(rig.sandbox.git_text(&["rev-parse", "HEAD"]), head);
    assert_eq!(rig.sandbox.read(".git/index"), index);
    assert_eq!(rig.list(), "File a.txt\n");
    // The next run stands on the first one's commit.
    let out = rig
        .run(At::Checkout, "git log --format=%s -1; cat a.txt")
        .success();
    assert_eq!(out.stdout(), b"inside\nagent\n");
}

#[test]
fn the_checkout_is_fenced_off() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    let top = rig.sandbox.repo();
    let script = format!(
        "if echo x >{top}/a.txt; then exit 9; fi
         if rm {top}/b.txt; then exit 9; fi
         echo x >a.txt && git add a.txt && git commit -qm inside",
        top = top.display()
    );
    rig.run(At::Own, &script).success();
    assert_eq!(rig.sandbox.read("a.txt"), b"a\n");
    let template = rig.stand.template().files();
    let inside = template.strip_prefix(&top).unwrap();
    let script = format!(
        "if echo x >.relo/git/{}/a.txt; then exit 9; fi; echo y >a.txt",
        inside.strip_prefix(".git").unwrap().display()
    );
    rig.run(At::Checkout, &script).success();
    assert_eq!(fs::read(template.join("a.txt")).unwrap(), b"a\n");
    assert_eq!(rig.sandbox.read("a.txt"), b"a\n");
}

#[test]
fn one_upper_folder_is_mounted_once_and_keeps_what_is_ignored() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    rig.run(At::Own, "mkdir target && echo built >target/out")
        .success();
    assert_eq!(rig.list(), "Folder target\n");
    let again = rig.run(At::Checkout, "cat target/out").success();
    assert_eq!(again.stdout(), b"built\n");
    let spec = rig.spec(At::Own, &["sh", "-c", "echo ready; read line"]);
    let run = spec.invocation(Path::new(BINARY));
    let mut first = rig
        .sandbox
        .command(&run.program)
        .args(&run.args)
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = [0; 6];
    std::io::Read::read_exact(first.stdout.as_mut().unwrap(), &mut ready).unwrap();
    let second = rig.run(At::Own, "true");
    assert_eq!(second.code(), Some(125));
    let report = fs::read_to_string(rig.stand.upper().root().join("report")).unwrap();
    assert!(report.contains("held by another process"), "{report}");
    drop(first.stdin.take());
    first.wait().unwrap();
    rig.run(At::Own, "true").success();
}

#[test]
fn exit_codes_are_those_of_env() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    for (command, code) in [
        (&["sh", "-c", "exit 7"][..], 7),
        (&["no-such-command"], 127),
        (&["./a.txt"], 126),
        (&["./run.sh"], 0),
    ] {
        let ended = rig.start(&rig.spec(At::Own, command));
        assert_eq!(ended.code(), Some(code), "{command:?}: {ended}");
    }
    let mut broken = rig.spec(At::Own, &["true"]);
    broken.lowers = vec![rig.sandbox.root().join("nowhere")];
    assert_eq!(rig.start(&broken).code(), Some(125));
}

#[test]
fn build_output_is_shared_with_its_times() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    sandbox.write("target/debug/out", "built\n");
    sandbox.write("target/.hidden", "inside a shared folder\n");
    fs::hard_link(
        sandbox.repo().join("target/debug/out"),
        sandbox.repo().join("target/twin"),
    )
    .unwrap();
    symlink("debug", sandbox.repo().join("target/link")).unwrap();
    sandbox.write("kept/target/out", "deeper\n");
    sandbox.write(".venv/target/no", "hidden\n");
    sandbox.write("target/nested/.git/config", "a repository\n");
    sandbox.write("loose.log", "loose\n");
    sandbox.write("wanted.log", "wanted\n");
    sandbox.write(".worktreeinclude", "wanted.log\na.txt\n");
    for path in ["target/debug/out", "a.txt", "target/debug"] {
        let touched = Command::new("touch")
            .args(["-d", "2001-02-03 04:05:06.789"])
            .arg(sandbox.repo().join(path))
            .status();
        assert!(touched.unwrap().success());
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", true);
    let script = "
        stat -c '%n %Y' target/debug/out target/debug a.txt
        stat -c '%n %h' target/twin; readlink target/link
        test target/twin -ef target/debug/out
        cat target/debug/out kept/target/out target/.hidden wanted.log
        ls -d .venv loose.log target/nested/.git || echo absent
        echo more >>target/debug/out
        git status --porcelain";
    let out = rig.run(At::Checkout, script).success();
    insta::assert_snapshot!(String::from_utf8_lossy(out.stdout()), @r"
    target/debug/out 981173106
    target/debug 981173106
    a.txt 981173106
    target/twin 2
    debug
    built
    deeper
    inside a shared folder
    wanted
    absent
    ");
    assert_eq!(rig.sandbox.read("target/debug/out"), b"built\n");
    assert_eq!(rig.list(), "Folder target\n");
}

#[test]
fn a_file_that_the_output_was_not_built_of_is_newer_than_it() {
    let sandbox = seeded();
    if !works(&sandbox) {
        return;
    }
    // The template takes the old time of a file, then the user changes it and builds.
    let repository = open(&sandbox);
    let options = template::Options {
        users: Some(sandbox.repo()),
        threads: 2,
    };
    let first = tree_of(&sandbox, &repository, "HEAD");
    drop(template::obtain(&repository, first, &options).unwrap());
    sandbox.write("a.txt", "changed\n");
    sandbox.commit("two");
    sandbox.write("target/out", "built of the change\n");
    let rig = Rig::new(sandbox, "HEAD~", "HEAD~", true);
    rig.run(
        At::Own,
        "test a.txt -nt target/out && test target/out -nt b.txt",
    )
    .success();
    rig.run(At::Own, "test -z \"$(git status --porcelain)\"")
        .success();
}

#[test]
fn an_unprivileged_user_can_do_it_all() {
    let sandbox = seeded();
    if rustix::process::geteuid().as_raw() != 0 {
        println!("skipped: only root can try it as another user; the other tests are that user");
        return;
    }
    let rig = Rig::new(sandbox, "HEAD", "HEAD", false);
    let binary = rig.sandbox.root().join("git-vws");
    fs::copy(BINARY, &binary).unwrap();
    let chown = Command::new("chown")
        .args(["-R", "65534:65534"])
        .arg(rig.sandbox.root())
        .status();
    let as_nobody = |spec: &Spec| {
        let run = spec.invocation(&binary);
        let mut command = rig.sandbox.command("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command.arg(run.program).args(run.args);
        rig.sandbox.outcome(command, b"")
    };
    let first = as_nobody(&rig.spec(At::Checkout, &["true"]));
    if !chown.is_ok_and(|status| status.success()) || first.code() != Some(0) {
        println!("skipped: no user namespaces: {first}");
        return;
    }
    let edits = format!("{EDITS} git add -A; git commit -qm inside; id -u");
    let out = as_nobody(&rig.spec(At::Checkout, &["sh", "-euc", &edits])).success();
    assert_eq!(out.stdout(), b"65534\n");
    let list = rig.list();
    for line in [
        "File a.txt",
        "Removed b.txt",
        "Removed old/z/deep",
        "Folder kept/x",
        "Special pipe",
    ] {
        assert!(list.lines().any(|have| have == line), "{line} in\n{list}");
    }
    assert_eq!(fs::read(rig.sandbox.repo().join("a.txt")).unwrap(), b"a\n");
}

#[test]
fn a_probe_is_asked_once() {
    let sandbox = Sandbox::new();
    let cache = sandbox.root().join("cache");
    let ask = |program: &str| {
        git_vws::layout::overlay::cached_probe(&cache, sandbox.root(), Path::new(program))
    };
    assert!(ask("/no/such/program").is_err());
    // The answer is kept, right or wrong, until it is forgotten.
    let kept = ask(BINARY).unwrap_err();
    assert!(kept.contains("cannot start"), "{kept}");
    git_vws::layout::overlay::forget_probe(&cache, sandbox.root());
    if works(&sandbox) {
        ask(BINARY).unwrap();
        ask("/no/such/program").unwrap();
    }
    let left = fs::read_dir(sandbox.root()).unwrap();
    let probes = left.filter(|e| {
        let name = e.as_ref().unwrap().file_name();
        name.as_encoded_bytes().starts_with(b"probe-")
    });
    assert_eq!(probes.count(), 0);
}
