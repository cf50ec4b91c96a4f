//! A repository to work in, and the main job: from a dirty tree to an accept, its undo and a reject, a
//! stack of two, and a death in the middle. It is done in one way of holding files after the other.
//!
//! Every step is held against git: the base against `git add -A` with a private index, the overlay
//! against what git makes of the same files, the accept against `git merge-file`. What is the user's
//! (index, config, `HEAD`) is compared byte for byte before and after.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use bstr::{BString, ByteSlice};

use crate::common::{BINARY, Outcome, Sandbox, directories_stay};
use crate::ways::{self, Way};

/// Where a job is done.
pub struct Site {
    pub sandbox: Sandbox,
    /// The top of the user's working tree.
    pub top: PathBuf,
    /// Where commands run.
    pub cwd: PathBuf,
    /// Variables of our commands alone; git, the witness, does not see them.
    pub world: Vec<(String, String)>,
    /// How files are held.
    pub way: Way,
}

/// The user's file `f`, with some lines of its own.
pub fn lines(own: &[(usize, &str)]) -> String {
    (1..=12)
        .map(|n| match own.iter().find(|(line, _)| *line == n) {
            Some((_, text)) => format!("{text}\n"),
            None => format!("line {n}\n"),
        })
        .collect()
}

impl Site {
    /// A fresh repository with nothing in it.
    pub fn empty() -> Site {
        Site::with_init(&[])
    }

    /// As [`Site::empty`], made with these options of `git init`.
    pub fn with_init(options: &[&str]) -> Site {
        let sandbox = Sandbox::without_repo();
        let args: Vec<&str> = ["init", "-q"].iter().chain(options).copied().collect();
        sandbox.git(&args);
        Site::of(sandbox)
    }

    /// The sandbox's `repo/`.
    pub fn of(sandbox: Sandbox) -> Site {
        let top = sandbox.repo();
        Site {
            sandbox,
            cwd: top.clone(),
            top,
            world: Vec::new(),
            way: Way::usual(),
        }
    }

    /// A repository with one commit of every kind of entry.
    pub fn committed() -> Site {
        let site = Site::empty();
        site.fill();
        site.commit("first");
        site
    }

    /// The files of the first commit.
    pub fn fill(&self) {
        self.write("f", lines(&[]));
        self.write("in/g", lines(&[]));
        self.write("out/h", lines(&[]));
        self.write("gone", "gone\n");
        self.write("bin", b"\0\x01\xff");
        self.write("run.sh", "#!/bin/sh\n");
        fs::set_permissions(self.top.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink("f", self.top.join("l")).unwrap();
    }

    /// Work under way: an edit, a staged edit, a new file.
    pub fn soil(&self) {
        self.write("in/g", lines(&[(1, "staged")]));
        self.git(&["add", "in/g"]);
        self.write("f", lines(&[(1, "user")]));
        self.write("new", "new\n");
    }

    pub fn commit(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "-q", "-m", message]);
    }

    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, path: &str) -> BString {
        let path = self.top.join(path);
        fs::read(&path)
            .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
            .into()
    }

    /// Sets a variable of our commands.
    pub fn set(&mut self, name: &str, value: impl AsRef<Path>) {
        let value = value.as_ref().to_str().unwrap().to_owned();
        self.world.push((name.to_owned(), value));
    }

    /// Writes an executable script.
    pub fn script(&self, path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn command(&self, program: &str) -> Command {
        let mut command = self.sandbox.command(program);
        command.current_dir(&self.cwd);
        command
    }

    /// Runs git at the top of the working tree; panics when it fails.
    #[track_caller]
    pub fn git(&self, args: &[&str]) -> BString {
        self.git_in(&self.top, args)
    }

    #[track_caller]
    pub fn git_in(&self, folder: &Path, args: &[&str]) -> BString {
        let mut command = self.command("git");
        let output = command.current_dir(folder).args(args).output().unwrap();
        assert!(
            output.status.success(),
            "git {args:?}: {}",
            output.stderr.as_bstr()
        );
        output.stdout.into()
    }

    #[track_caller]
    pub fn git_line(&self, args: &[&str]) -> String {
        self.git(args).trim().to_str().unwrap().to_owned()
    }

    /// Whether git can do this here at all.
    pub fn git_can(&self, args: &[&str]) -> bool {
        let mut command = self.command("git");
        command.current_dir(&self.top).args(args);
        command.output().unwrap().status.success()
    }

    pub fn vws(&self, args: &[&str]) -> Outcome {
        self.vws_with(args, b"")
    }

    pub fn vws_with(&self, args: &[&str], input: &[u8]) -> Outcome {
        let mut command = self.command("git");
        command.arg("vws").args(args);
        command.envs(self.world.iter().map(|(name, value)| (name, value)));
        self.sandbox.outcome(command, input)
    }

    /// Holds files in another way from now on.
    pub fn hold(&mut self, way: Way) {
        self.way = way;
        if directories_stay() {
            return;
        }
        let count = if way == Way::Stays { "1" } else { "0" };
        self.sandbox.set_env("GIT_CONFIG_COUNT", count);
        self.sandbox
            .set_env("GIT_CONFIG_KEY_0", "relo.workspace.mode");
        self.sandbox.set_env("GIT_CONFIG_VALUE_0", "worktree");
    }

    /// Whether a workspace has a directory as long as it lives.
    pub fn stays(&self) -> bool {
        self.way == Way::Stays || directories_stay()
    }

    /// Runs a script at the top of a workspace's files; gives what it printed.
    #[track_caller]
    pub fn run_in(&self, agent: &str, script: &str) -> BString {
        let script = format!("cd \"$(git rev-parse --show-toplevel)\" && {script}");
        let mut args = vec!["exec"];
        args.extend(self.way.option());
        args.extend([agent, "--", "sh", "-c", &script]);
        self.ok(&args)
    }

    /// Runs a command of ours that is killed at this point, and puts in order what it left.
    #[track_caller]
    fn killed_at(&self, point: &str, args: &[&str]) {
        let mut command = self.command(BINARY);
        command.args(args).env("GIT_VWS_FAULT", point);
        command.envs(self.world.iter().map(|(name, value)| (name, value)));
        let outcome = self.sandbox.outcome(command, b"");
        assert_eq!(
            outcome.code(),
            None,
            "{args:?} passes by {point}: {outcome}"
        );
        self.ok(&["recover"]);
    }

    /// The files of a commit as git writes them out, in a folder beside the repository.
    pub fn written_out(&self, commit: &str) -> PathBuf {
        let (place, index) = ["written-out", "index-of-it"]
            .map(|name| self.sandbox.root().join(name))
            .into();
        let _ = fs::remove_dir_all(&place);
        let prefix = format!("--prefix={}/", place.display());
        for args in [
            &["read-tree", commit][..],
            &["checkout-index", "--all", "--force", &prefix],
        ] {
            let mut command = self.command("git");
            command
                .current_dir(&self.top)
                .env("GIT_INDEX_FILE", &index)
                .args(["-c", "core.sparseCheckout=false"])
                .args(["-c", "core.splitIndex=false"]);
            let output = command.args(args).output().unwrap();
            assert!(output.status.success(), "{}", output.stderr.as_bstr());
        }
        let _ = fs::remove_file(&index);
        place
    }

    /// Runs a command that must succeed; gives its output.
    #[track_caller]
    pub fn ok(&self, args: &[&str]) -> BString {
        self.vws(args).success().stdout().into()
    }

    #[track_caller]
    pub fn ok_with(&self, args: &[&str], input: &[u8]) -> BString {
        self.vws_with(args, input).success().stdout().into()
    }

    /// Runs a command that must refuse with this exit code, saying this.
    #[track_caller]
    pub fn refused(&self, args: &[&str], code: i32, says: &str) {
        let outcome = self.vws(args);
        assert_eq!(outcome.code(), Some(code), "{args:?}: {outcome}");
        assert!(outcome.stderr().contains_str(says), "{args:?}: {outcome}");
    }

    fn git_path(&self, name: &str) -> PathBuf {
        self.top
            .join(self.git_line(&["rev-parse", "--git-path", name]))
    }

    /// What git would record of the working tree: `git add -A` with a copy of the user's index. A
    /// split or sparse index needs its own place, so the copy lies beside it.
    pub fn recorded(&self) -> String {
        let index = self.git_path("index");
        let copy = index.with_file_name("index-of-the-test");
        let _ = fs::remove_file(&copy);
        if index.exists() {
            fs::copy(&index, &copy).unwrap();
        }
        let git = |args: &[&str]| {
            let mut command = self.command("git");
            command.current_dir(&self.top).env("GIT_INDEX_FILE", &copy);
            command.args([
                "-c",
                "core.safecrlf=false",
                "-c",
                "advice.addEmbeddedRepo=false",
            ]);
            let output = command.args(args).output().unwrap();
            assert!(output.status.success(), "{}", output.stderr.as_bstr());
            output.stdout.trim().to_str().unwrap().to_owned()
        };
        git(&["add", "--all"]);
        let tree = git(&["write-tree"]);
        let _ = fs::remove_file(&copy);
        tree
    }

    /// What is the user's and must never change: config, index, HEAD, branches, stages.
    pub fn users_side(&self) -> BTreeMap<&'static str, BString> {
        let mut state = BTreeMap::new();
        for name in [
            "config",
            "config.worktree",
            "index",
            "HEAD",
            "shallow",
            "MERGE_HEAD",
        ] {
            let bytes = fs::read(self.git_path(name)).unwrap_or_else(|_| b"<none>".into());
            state.insert(name, bytes.into());
        }
        for (name, args) in [
            (
                "refs",
                &[
                    "for-each-ref",
                    "refs/heads",
                    "refs/tags",
                    "refs/stash",
                    "refs/remotes",
                ][..],
            ),
            ("unmerged", &["ls-files", "-u"]),
            ("flags", &["ls-files", "-v"]),
            ("worktrees", &["worktree", "list", "--porcelain"]),
        ] {
            let mut command = self.command("git");
            command
                .current_dir(&self.top)
                .env("GIT_OPTIONAL_LOCKS", "0");
            let output = command.args(args).output().unwrap();
            let lines = output.stdout.lines();
            let theirs = lines.filter(|line| !line.contains_str("refs/heads/relo/"));
            state.insert(name, bstr::join("\n", theirs).into());
        }
        state
    }
}

/// The value of a field in a record of `key value` lines.
pub fn field(record: &BString, key: &str) -> String {
    let line = record.lines().find_map(|line| {
        let (found, value) = line.split_once_str(" ")?;
        (found == key.as_bytes()).then(|| value.to_str_lossy().into_owned())
    });
    line.unwrap_or_else(|| panic!("no '{key}' in: {record}"))
}

/// Every file below a folder, the repository itself apart.
pub fn files(top: &Path) -> BTreeMap<String, (u32, BString)> {
    fn look(top: &Path, folder: &Path, found: &mut BTreeMap<String, (u32, BString)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            let meta = fs::symlink_metadata(&path).unwrap();
            if name == ".git" || name == ".relo" {
                continue;
            }
            if meta.is_dir() {
                look(top, &path, found);
            } else if meta.is_symlink() {
                found.insert(
                    name,
                    (0, fs::read_link(&path).unwrap().to_str().unwrap().into()),
                );
            } else {
                let mode = meta.permissions().mode() & 0o111;
                found.insert(name, (mode, fs::read(&path).unwrap().into()));
            }
        }
    }
    let mut found = BTreeMap::new();
    look(top, top, &mut found);
    found
}

/// The main job, in the ways whose turn it is. The site has the files of [`Site::fill`] and is dirty or not, as the form has it.
#[track_caller]
pub fn main_job(site: &mut Site) {
    let line = std::panic::Location::caller().line();
    // Of the forms that one test goes through, the first has the long end of the job as well.
    let whole = ways::long() || ways::is_first();
    for way in ways::turn(line) {
        job(site, way, whole);
        site.ok(&["overlay", "dispose", "--force", "keep"]);
    }
    site.ok(&["overlay", "create", "keep"]);
    site.ok_with(&["overlay", "write", "keep", "kept"], b"kept\n");
}

/// The whole of the main job in one way; the workspace `keep` is there afterwards.
pub fn main_job_in(site: &mut Site, way: Way) {
    job(site, way, true);
}

fn job(site: &mut Site, way: Way, whole: bool) {
    site.hold(way);
    eprintln!("way: {way:?}");
    let site = &*site;
    let before = site.users_side();
    site.ok(&["overlay", "list"]);

    // The base is what git would record.
    let record = site.ok(&["overlay", "create", "a"]);
    assert_eq!(field(&record, "tree"), site.recorded(), "the base is git's");
    let base = site.read("f");
    assert_eq!(site.ok(&["overlay", "read", "a", "f"]), base);
    assert_eq!(
        site.ok(&["overlay", "read", "a", "in/g"]),
        site.read("in/g")
    );

    // One edit through the view, the others by a tool in a directory.
    let agents = base.replace("line 12\n", "agent\n");
    site.ok_with(&["overlay", "write", "a", "f"], &agents);
    let status = site.run_in(
        "a",
        "unset GIT_CONFIG_GLOBAL GIT_EXTERNAL_DIFF && git status --porcelain && git diff HEAD &&
        rm gone && echo made >made && chmod +x made && mkdir -p in/deep && echo d >in/deep/d",
    );
    if !site.stays() {
        assert_eq!(status, "", "a directory is clean as it is laid out");
    }
    let diff = site.ok(&["overlay", "diff", "--name-status", "a"]);
    assert_eq!(diff, "M\tf\nD\tgone\nA\tin/deep/d\nA\tmade\n");
    let show = site.ok(&["overlay", "show", "a"]);
    let listed = site.ok(&["overlay", "ls", "-r", "a"]);
    assert_eq!(listed, site.git(&["ls-tree", "-r", &field(&show, "tree")]));

    // A directory is what git would write out, and git finds it clean.
    let mut args = vec!["materialize", "a"];
    args.extend(site.way.option_of_a_directory());
    let directory = PathBuf::from(field(&site.ok(&args), "directory"));
    let expected = files(&site.written_out("refs/relo/vws/a/overlay"));
    assert_eq!(files(&directory), expected, "{}", directory.display());
    if !site.stays() {
        let status = site.git_in(&directory, &["status", "--porcelain"]);
        assert_eq!(status, "");
    }
    let captured = site.ok(&["capture", "a"]);
    assert!(captured.contains_str("unchanged"), "{captured}");
    site.ok(&["settle", "a"]);

    // The user goes on meanwhile: what lands is git's own merge.
    let users = base.replace("line 6\n", "user meanwhile\n");
    site.write("f", &users);
    let theirs = site.sandbox.root().join("theirs");
    let ours = site.sandbox.root().join("ours");
    let old = site.sandbox.root().join("old");
    for (file, bytes) in [(&theirs, agents.as_slice()), (&ours, &users), (&old, &base)] {
        fs::write(file, bytes).unwrap();
    }
    let [theirs, ours, old] = [&theirs, &ours, &old].map(|file| file.to_str().unwrap());
    let merged = site.git(&["merge-file", "-p", ours, old, theirs]);
    site.ok(&["propose", "a"]);
    site.ok(&["accept", "a"]);
    assert_eq!(site.read("f"), merged);
    assert_eq!(site.read("made"), "made\n");
    assert_eq!(site.read("in/deep/d"), "d\n");
    assert!(!site.top.join("gone").exists());

    // And back, and once more.
    site.ok(&["undo"]);
    assert_eq!(site.read("f"), users.as_bstr());
    assert_eq!(site.read("gone"), "gone\n");
    assert!(!site.top.join("made").exists());
    site.ok(&["accept", "a"]);
    assert_eq!(site.read("f"), merged);
    site.ok(&["undo"]);

    // Another agent, turned down.
    let mut args = vec!["run"];
    args.extend(site.way.option());
    let script = "cd \"$(git rev-parse --show-toplevel)\" && echo b >f";
    args.extend(["b", "--", "sh", "-c", script]);
    site.ok(&args);
    site.ok(&["reject", "b"]);
    assert_eq!(site.read("f"), users.as_bstr());
    if whole {
        stacked(site);
        killed(site);
    }
    // With the last decision they are released; what was never offered stays.
    site.ok(&["overlay", "create", "keep"]);
    site.ok_with(&["overlay", "write", "keep", "kept"], b"kept\n");
    let list = site.ok(&["overlay", "list"]);
    assert_eq!(
        list.lines().filter(|l| *l == b"agent keep").count(),
        1,
        "{list}"
    );
    assert_eq!(site.ok(&["overlay", "read", "keep", "kept"]), "kept\n");
    site.git(&["fsck", "--no-dangling", "--no-progress"]);

    site.write("f", &base);
    let after = site.users_side();
    for (name, bytes) in &before {
        // The one that was kept has its directory.
        if site.stays() && *name == "worktrees" {
            continue;
        }
        assert_eq!(bytes, &after[name], "{name} is the user's");
    }
}

/// A child on the unaccepted work of its parent: its diff is its own, and both land together.
fn stacked(site: &Site) {
    let users = site.read("in/g");
    let parents = users.replace("line 12\n", "parent\n");
    site.ok(&["overlay", "create", "parent"]);
    site.ok_with(&["overlay", "write", "parent", "in/g"], &parents);
    site.ok(&["stack", "child", "--on=parent", "--strict"]);
    assert_eq!(
        site.ok(&["overlay", "read", "child", "in/g"]),
        parents.as_bstr()
    );
    site.run_in(
        "child",
        "sed 's/^line 6$/child/' in/g >g && cat g >in/g && rm g && echo child >in/child",
    );
    let both = parents.replace("line 6\n", "child\n");
    let diff = site.ok(&["overlay", "diff", "--numstat", "child"]);
    assert_eq!(diff, "1\t0\tin/child\n1\t1\tin/g\n");
    site.ok(&["propose", "parent"]);
    site.ok(&["propose", "child"]);
    site.ok(&["accept", "--with-parents", "child"]);
    assert_eq!(site.read("in/g"), both.as_bstr());
    assert_eq!(site.read("in/child"), "child\n");
    while site.read("in/g") != users {
        site.ok(&["undo"]);
    }
    assert!(!site.top.join("in/child").exists());
    site.ok(&["reject", "child"]);
    site.ok(&["reject", "parent"]);
}

/// Killed between the objects and the ref, and between the files of an accept: nothing is lost, and
/// nothing lands by half.
#[cfg(not(debug_assertions))]
fn killed(_: &Site) {}

/// Killed between the objects and the ref, and between the files of an accept: nothing is lost, and
/// nothing lands by half.
#[cfg(debug_assertions)]
fn killed(site: &Site) {
    let before = site.read("in/g");
    site.ok(&["overlay", "create", "late"]);
    let script = "cd \"$(git rev-parse --show-toplevel)\" && echo late >in/g && echo late >in/late";
    let mut args = vec!["exec"];
    args.extend(site.way.option());
    args.extend(["late", "--", "sh", "-c", script]);
    site.killed_at("objects-durable", &args);
    assert_eq!(site.ok(&["overlay", "read", "late", "in/g"]), "late\n");
    assert_eq!(site.ok(&["overlay", "read", "late", "in/late"]), "late\n");
    site.ok(&["settle", "late"]);
    site.ok(&["propose", "late"]);
    site.killed_at("step-swapped", &["accept", "--atomic", "late"]);
    let landed = site.read("in/g") != before;
    assert_eq!(site.top.join("in/late").exists(), landed, "by half");
    if !landed {
        site.ok(&["accept", "--atomic", "late"]);
    }
    assert_eq!(site.read("in/g"), "late\n");
    assert_eq!(site.read("in/late"), "late\n");
    site.ok(&["undo"]);
    assert_eq!(site.read("in/g"), before);
    assert!(!site.top.join("in/late").exists());
    site.ok(&["reject", "late"]);
}
