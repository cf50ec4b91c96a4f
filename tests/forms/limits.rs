//! Repositories in which not all can be done: what can is done, the rest is refused by name and
//! leaves nothing behind.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use bstr::ByteSlice;

use crate::common::{BINARY, Outcome, directories_stay};
use crate::job::{Site, lines};
use crate::kinds::{skip, url};

/// Somebody who owns nothing here.
const NOBODY: &str = "65534";

/// Every ref there is.
fn refs(site: &Site) -> bstr::BString {
    site.git(&["for-each-ref"])
}

#[test]
fn bare() {
    if directories_stay() {
        return skip("bare", "it is about a workspace without a directory");
    }
    let mut site = Site::committed();
    site.git(&["clone", "-q", "--bare", ".", "../b.git"]);
    site.top = site.sandbox.root().join("b.git");
    site.cwd = site.top.clone();
    site.refused(&["overlay", "create", "a"], 128, "work tree");
    site.ok(&["overlay", "create", "a", "--base=HEAD"]);
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), lines(&[]));
    site.ok_with(&["overlay", "write", "a", "f"], b"edited\n");
    let status = site.ok(&[
        "exec",
        "a",
        "--",
        "sh",
        "-c",
        "git status --porcelain; echo x >>f",
    ]);
    assert_eq!(status, "");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), "edited\nx\n");
    let directory = site.ok(&["materialize", "a"]);
    let directory = crate::job::field(&directory, "directory");
    assert_eq!(
        fs::read(Path::new(&directory).join("f")).unwrap(),
        b"edited\nx\n"
    );
    site.ok(&["settle", "a"]);
    site.ok(&["propose", "a"]);
    site.refused(&["accept", "a"], 128, "work tree");
    site.refused(&["undo"], 128, "");
    site.ok(&["reject", "a"]);
    assert_eq!(site.git(&["rev-parse", "--is-bare-repository"]), "true\n");
    site.git(&["fsck", "--no-dangling", "--no-progress"]);
}

/// A partial clone without any blob, and its origin.
fn partial() -> Site {
    let mut site = Site::committed();
    site.git(&["config", "uploadpack.allowFilter", "true"]);
    site.git(&["config", "uploadpack.allowAnySHA1InWant", "true"]);
    for text in ["older", "newer"] {
        site.write("f", lines(&[(3, text)]));
        site.commit(text);
    }
    let args = ["clone", "-q", "--filter=blob:none", &url(&site), "../p"];
    site.git(&args);
    site.top = site.sandbox.root().join("p");
    site.cwd = site.top.clone();
    site
}

#[test]
fn partial_clone() {
    let mut site = partial();
    site.soil();
    crate::job::main_job(&mut site);
}

#[test]
fn partial_clone_fetches_what_is_read() {
    if directories_stay() {
        return skip(
            "partial clone fetches what is read",
            "it is about a workspace without a directory",
        );
    }
    let site = partial();
    site.ok(&["overlay", "create", "a", "--base=HEAD~1"]);
    // Only the old version of `f` is missing: it is fetched when it is read, and not before.
    let id = site.git_line(&["rev-parse", "HEAD~1:f"]);
    let missing = ["rev-list", "--objects", "--all", "--missing=print"];
    assert!(site.git(&missing).contains_str(format!("?{id}")));
    assert_eq!(
        site.ok(&["overlay", "read", "a", "f"]),
        lines(&[(3, "older")])
    );
    assert!(!site.git(&missing).contains_str(format!("?{id}")));
}

#[test]
fn a_layout_of_a_partial_clone_fetches_once() {
    if directories_stay() {
        return skip(
            "a layout of a partial clone fetches once",
            "it is about a workspace without a directory",
        );
    }
    let site = partial();
    site.git(&["checkout", "-q", "HEAD~2"]);
    for n in 0..20 {
        site.write(&format!("many/{n}"), format!("{n}\n"));
    }
    site.commit("many");
    site.git(&["push", "-q", "origin", "HEAD:refs/heads/many"]);
    let mut site = site;
    let args = [
        "clone",
        "-q",
        "--filter=blob:none",
        "--no-checkout",
        &origin(&site),
        "../q",
    ];
    site.git(&args);
    site.top = site.sandbox.root().join("q");
    site.cwd = site.top.clone();
    site.ok(&["overlay", "create", "a", "--base=origin/many"]);
    let mut command = site.command("git");
    let trace = site.sandbox.root().join("trace");
    command
        .env("GIT_TRACE", &trace)
        .args(["vws", "exec", "a", "--", "cat", "many/7"]);
    let read = site.sandbox.outcome(command, b"").success();
    assert_eq!(read.stdout(), b"7\n");
    let fetches = fs::read(&trace).unwrap();
    let fetches = fetches
        .lines()
        .filter(|line| line.contains_str("run_command: git") && line.contains_str(" fetch "));
    assert_eq!(
        fetches.count(),
        1,
        "{}",
        fs::read(&trace).unwrap().as_bstr()
    );
}

fn origin(site: &Site) -> String {
    site.git_line(&["config", "remote.origin.url"])
}

#[test]
fn partial_clone_whose_remote_is_gone() {
    if directories_stay() {
        return skip(
            "partial clone whose remote is gone",
            "it is about a workspace without a directory",
        );
    }
    let site = partial();
    site.ok(&["overlay", "create", "a", "--base=HEAD~1"]);
    let id = site.git_line(&["rev-parse", "HEAD~1:f"]);
    fs::rename(site.sandbox.repo(), site.sandbox.root().join("away")).unwrap();
    let before = refs(&site);
    for args in [
        &["overlay", "read", "a", "f"][..],
        &["materialize", "a"],
        &["exec", "a", "--", "true"],
    ] {
        let outcome = site.vws(args);
        let said = outcome.to_string();
        let code = if args[0] == "exec" { 125 } else { 128 };
        assert_eq!(outcome.code(), Some(code), "{args:?}: {said}");
        assert!(outcome.stdout().is_empty(), "{args:?}: {said}");
        let stderr = outcome.stderr();
        assert!(
            stderr.contains_str(&id),
            "{args:?} names the object: {said}"
        );
        assert!(
            stderr.contains_str("'f'"),
            "{args:?} names the path: {said}"
        );
        assert!(
            stderr.contains_str("promisor remote"),
            "{args:?} says why: {said}"
        );
    }
    assert_eq!(refs(&site), before);
    assert!(!site.top.join(".relo/worktrees/a").exists());
    // What is here works all the same.
    site.ok_with(&["overlay", "write", "a", "f"], b"written\n");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), "written\n");
    assert_eq!(site.ok(&["overlay", "read", "a", "gone"]), "gone\n");
}

#[test]
fn owned_by_somebody_else() {
    let mut site = Site::committed();
    site.cwd = site.top.join("in");
    let commands = [
        &["overlay", "list"][..],
        &["overlay", "create", "a", "--base=HEAD"],
        &["base"],
    ];
    let check = |outcome: &Outcome| {
        let said = outcome.to_string();
        assert_eq!(outcome.code(), Some(128), "{said}");
        let fatal = "fatal: detected dubious ownership in repository at '$SANDBOX/repo'";
        assert!(said.contains(fatal), "{said}");
        let hint = "hint: to trust it: 'git config --global --add safe.directory $SANDBOX/repo'";
        assert!(said.contains(hint), "{said}");
    };
    let config = fs::read(site.sandbox.home().join(".gitconfig")).unwrap();
    for args in commands {
        let mut command = site.command("git");
        command.arg("vws").args(args);
        command.env("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
        check(&site.sandbox.outcome(command, b""));
    }
    if !rustix::process::geteuid().is_root() {
        return skip("other owner", "only root can give a repository away");
    }
    chown(&site.top);
    for args in commands {
        check(&site.vws(args));
    }
    let home = site.sandbox.home().join(".gitconfig");
    assert_eq!(
        fs::read(&home).unwrap(),
        config,
        "nobody was trusted on our own"
    );
    // Trusted, as git trusts it: in the file, or on the command line.
    let safe = format!("safe.directory={}", site.top.display());
    let mut command = site.command("git");
    command.args(["-c", &safe, "vws", "overlay", "list"]);
    let theirs = site
        .command("git")
        .args(["-c", &safe, "status"])
        .output()
        .unwrap();
    let ours = site.sandbox.outcome(command, b"");
    assert_eq!(ours.code() == Some(0), theirs.status.success(), "{ours}");
    let mut global = config.clone();
    global.extend_from_slice(format!("[safe]\n\tdirectory = {}\n", site.top.display()).as_bytes());
    fs::write(&home, global).unwrap();
    site.ok(&["overlay", "create", "a"]);
    site.ok(&["run", "a", "--", "sh", "-c", "git status && echo edited >f"]);
}

fn chown(folder: &Path) {
    let mut command = Command::new("chown");
    let done = command.args(["-R", NOBODY]).arg(folder).status().unwrap();
    assert!(done.success());
}

/// Runs a command of ours as somebody who may only read.
fn as_nobody(site: &Site, args: &[&str], input: &[u8]) -> Outcome {
    let sealed = site.command("git");
    let program = site.sandbox.root().join("bin/git-vws");
    let mut path = program.parent().unwrap().as_os_str().to_owned();
    path.push(":/usr/local/bin:/usr/bin:/bin");
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        let ids = ["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"];
        command.args(ids).arg(&program);
        command
    } else {
        Command::new(&program)
    };
    command.args(args).current_dir(&site.cwd).env_clear();
    for (name, value) in sealed.get_envs() {
        if let Some(value) = value {
            command.env(name, value);
        }
    }
    command.env("PATH", path).env("TMPDIR", "/tmp");
    site.sandbox.outcome(command, input)
}

#[test]
fn read_only_repository() {
    let site = Site::committed();
    let root = rustix::process::geteuid().is_root();
    if root && Command::new("setpriv").arg("--version").output().is_err() {
        return skip("read-only", "no setpriv to stop being root with");
    }
    site.soil();
    site.ok(&["overlay", "create", "a"]);
    site.ok_with(&["overlay", "write", "a", "f"], b"edited\n");
    site.ok(&["propose", "a"]);
    // One whose directory is open is read, too: as it was captured last.
    site.ok(&["overlay", "create", "open"]);
    site.ok(&["materialize", "open"]);
    let bin = site.sandbox.root().join("bin");
    fs::create_dir(&bin).unwrap();
    fs::copy(BINARY, bin.join("git-vws")).unwrap();
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(site.sandbox.root(), open).unwrap();
    let mut global = fs::read(site.sandbox.home().join(".gitconfig")).unwrap();
    global.extend_from_slice(b"[safe]\n\tdirectory = *\n");
    fs::write(site.sandbox.home().join(".gitconfig"), global).unwrap();
    let chmod = |mode| {
        let mut command = Command::new("chmod");
        let done = command.args(["-R", mode]).arg(&site.top).status().unwrap();
        assert!(done.success());
    };
    chmod("a-w");
    for (args, shows) in [
        (&["overlay", "list"][..], "agent a"),
        (&["overlay", "show", "a"], "last commit"),
        (&["overlay", "read", "a", "f"], "edited"),
        (&["overlay", "ls", "a"], "run.sh"),
        (&["overlay", "show", "open"], "revision 1"),
        (&["overlay", "read", "open", "gone"], "gone"),
        (&["overlay", "diff", "a"], "M\tf"),
        (&["changes", "a"], "proposed M"),
        (&["journal"], ""),
        (&["context", "a"], "revision 3"),
    ] {
        let outcome = as_nobody(&site, args, b"");
        assert_eq!(outcome.code(), Some(0), "{args:?}: {outcome}");
        assert!(outcome.stdout().contains_str(shows), "{args:?}: {outcome}");
        let said = outcome.stderr();
        let only_hints = said.lines().all(|line| line.starts_with(b"hint: "));
        assert!(only_hints, "{args:?}: {outcome}");
    }
    for args in [
        &["overlay", "create", "b"][..],
        &["overlay", "write", "a", "f"],
        &["base"],
        &["materialize", "a"],
        &["snap", "a"],
        &["propose", "a"],
        &["accept", "a"],
        &["reject", "a"],
        &["overlay", "dispose", "--force", "a"],
        &["capture", "open"],
        &["propose", "open"],
    ] {
        let outcome = as_nobody(&site, args, b"text\n");
        assert_eq!(outcome.code(), Some(128), "{args:?}: {outcome}");
        let said = outcome.stderr().to_str_lossy().into_owned();
        assert!(said.contains("ermission denied"), "{args:?}: {said}");
        let named = site.top.to_str().unwrap();
        assert!(said.contains(named), "{args:?} names what: {said}");
    }
    chmod("u+w");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), "edited\n");
    site.ok(&["accept", "a"]);
}

#[test]
fn outside_of_any_repository() {
    let site = Site::of(crate::common::Sandbox::without_repo());
    site.refused(&["overlay", "list"], 128, "hint: 'git init' makes one here");
    let names: Vec<_> = fs::read_dir(&site.top).unwrap().collect();
    assert!(names.is_empty());
}
