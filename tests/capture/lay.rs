//! A workspace with a directory laid out by hand, and the oracle.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::{BString, ByteSlice};
use git_vws::git::index::{IndexEntry, StatData, write_index};
use git_vws::git::{Environment, ObjectId, RefUpdate, Repository, tree};
use git_vws::layout::{Captured, Directory, Error, Stats, capture_directory};
use git_vws::model::AgentId;
use git_vws::workspace::{From, Mode, NewWorkspace, Store, Workspace, names};

use crate::common::Sandbox;

pub(crate) const NOW: i64 = 1_700_000_000;

pub(crate) fn agent() -> AgentId {
    AgentId::new("a").unwrap()
}

/// The environment of the sandbox's own commands, as the library takes it.
pub(crate) fn environment(sandbox: &Sandbox) -> Environment {
    let command = sandbox.command("git");
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())))
        .collect();
    Environment {
        current_dir: sandbox.repo(),
        variables,
    }
}

/// A directory of agent `a`, cut from `HEAD` of the sandbox.
pub(crate) struct Laid {
    pub(crate) sandbox: Sandbox,
    pub(crate) directory: Directory,
    /// The row of a table that a failure names.
    pub(crate) row: String,
}

impl Laid {
    /// Commits what `build` writes into the repository, and lays that commit out.
    pub(crate) fn new(build: impl FnOnce(&Sandbox)) -> Laid {
        let sandbox = Sandbox::new();
        build(&sandbox);
        sandbox.commit("base");
        Laid::out(sandbox, false)
    }

    /// Lays `HEAD` of the sandbox out.
    pub(crate) fn out(sandbox: Sandbox, read_only: bool) -> Laid {
        let repository = Repository::open_at(&sandbox.repo(), environment(&sandbox)).unwrap();
        let store = Store::new(&repository, NOW);
        let new = NewWorkspace {
            from: From::Commit("HEAD".to_owned()),
            mode: Mode::Virtual,
            read_only,
            session: None,
        };
        let cut = store.create(&agent(), &new).unwrap().workspace;
        let pin = RefUpdate::create(names::exec(&agent()), cut.commit);
        repository.refs().apply(&[pin]).unwrap();
        let path = sandbox.root().join("relo-a");
        let text = path.to_str().unwrap();
        sandbox.git(&[
            "worktree",
            "add",
            "-q",
            "--detach",
            text,
            &cut.commit.to_string(),
        ]);
        let directory = Directory {
            agent: agent(),
            admin: sandbox.repo().join(".git/worktrees/relo-a"),
            path,
            cut,
            backend: "checkout".to_owned(),
            mounted: false,
            only: Vec::new(),
            reason: String::new(),
            fallback: None,
            fresh: true,
            replaced: None,
            stats: Stats::default(),
        };
        write_manifest(&repository, &directory);
        Laid {
            sandbox,
            directory,
            row: String::new(),
        }
    }

    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        self.directory.path.join(path)
    }

    pub(crate) fn write(&self, path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub(crate) fn link(&self, target: &str, path: &str) {
        let path = self.path(path);
        let _ = fs::remove_file(&path);
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    /// Runs git in the directory.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let mut all = vec!["-C", self.directory.path.to_str().unwrap()];
        all.extend(args);
        String::from_utf8_lossy(&self.sandbox.git(&all))
            .trim_end()
            .to_owned()
    }

    /// Runs a shell script in the directory.
    pub(crate) fn sh(&self, script: &str) {
        let mut command = self.sandbox.command("sh");
        command
            .current_dir(&self.directory.path)
            .args(["-e", "-c", script]);
        let done = command.output().unwrap();
        assert!(done.status.success(), "{script}: {}", done.stderr.as_bstr());
    }

    pub(crate) fn repository(&self) -> Repository {
        Repository::open_at(&self.sandbox.repo(), environment(&self.sandbox)).unwrap()
    }

    pub(crate) fn try_capture(&self) -> Result<Captured, Error> {
        let repository = self.repository();
        capture_directory(&Store::new(&repository, NOW), &self.directory)
    }

    pub(crate) fn capture(&self) -> Captured {
        self.try_capture().unwrap()
    }

    pub(crate) fn current(&self) -> Workspace {
        let repository = self.repository();
        Store::new(&repository, NOW).load(&agent()).unwrap()
    }

    /// What the overlay holds: `<mode> <id>` by path.
    pub(crate) fn overlay(&self) -> BTreeMap<BString, String> {
        self.listed(&self.current().tree.to_string())
    }

    /// What a tree holds: `<mode> <id>` by path.
    pub(crate) fn listed(&self, tree: &str) -> BTreeMap<BString, String> {
        let out = self
            .sandbox
            .git(&["ls-tree", "-r", "-z", "--full-tree", tree]);
        out.split_str("\0")
            .filter(|line| !line.is_empty())
            .map(|line| {
                let (entry, path) = line.split_once_str("\t").unwrap();
                (path.into(), entry.as_bstr().to_string())
            })
            .collect()
    }

    /// What `git add --all` makes of the directory, starting from the index of the cut.
    pub(crate) fn added(&self) -> BTreeMap<BString, String> {
        let index = self.sandbox.root().join("oracle-index");
        let _ = fs::remove_file(&index);
        let git = |args: &[&str]| {
            let mut command = self.sandbox.command("git");
            command
                .current_dir(&self.directory.path)
                .env("GIT_INDEX_FILE", &index)
                .args(args);
            let done = command.output().unwrap();
            assert!(
                done.status.success(),
                "git {args:?}: {}",
                done.stderr.as_bstr()
            );
            done.stdout.trim_end().to_str_lossy().into_owned()
        };
        git(&["read-tree", &self.directory.cut.tree.to_string()]);
        git(&["add", "--all"]);
        self.listed(&git(&["write-tree"]))
    }

    /// Captures, and holds the result against git's and against the paths to be left out.
    #[track_caller]
    pub(crate) fn expect(&self, left_out: &[(&str, &str)]) -> Captured {
        let captured = self.capture();
        assert_eq!(self.overlay(), self.added(), "{}", self.row);
        assert_eq!(
            self.left_out(&captured),
            self.wanted(left_out),
            "{}",
            self.row
        );
        self.check_repeat(&captured);
        captured
    }

    /// As [`Laid::expect`], where git cannot say what is right: the paths with their content.
    #[track_caller]
    pub(crate) fn expect_files(
        &self,
        files: &[(&str, &str)],
        left_out: &[(&str, &str)],
    ) -> Captured {
        let captured = self.capture();
        assert_eq!(self.files(), self.wanted(files), "{}", self.row);
        assert_eq!(
            self.left_out(&captured),
            self.wanted(left_out),
            "{}",
            self.row
        );
        self.check_repeat(&captured);
        captured
    }

    /// The overlay's files with their content.
    pub(crate) fn files(&self) -> Vec<(String, String)> {
        let blob = |entry: &str| {
            let mut fields = entry.split(' ').skip(1);
            match (fields.next(), fields.next()) {
                (Some("blob"), Some(id)) => self.sandbox.git(&["cat-file", "blob", id]),
                (kind, _) => kind.unwrap().into(),
            }
        };
        self.overlay()
            .iter()
            .map(|(path, entry)| (path.to_string(), blob(entry).as_bstr().to_string()))
            .collect()
    }

    fn wanted(&self, pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let owned = |(a, b): &(&str, &str)| ((*a).to_owned(), (*b).to_owned());
        pairs.iter().map(owned).collect()
    }

    fn left_out(&self, captured: &Captured) -> Vec<(String, String)> {
        captured
            .left_out
            .iter()
            .map(|one| (one.path.to_string(), one.kind.to_string()))
            .collect()
    }

    /// A second capture says the same and publishes nothing.
    #[track_caller]
    fn check_repeat(&self, first: &Captured) {
        let second = self.capture();
        assert!(!second.changed, "published twice: {}", self.row);
        assert_eq!(second.workspace.commit, first.workspace.commit);
        assert_eq!(second.left_out, first.left_out);
        self.sandbox
            .git(&["fsck", "--connectivity-only", "--no-dangling"]);
    }
}

/// Writes down the directory as it is.
pub(crate) fn write_manifest(repository: &Repository, directory: &Directory) {
    let objects = repository.objects().unwrap();
    let entries: Vec<IndexEntry> = tree::listing(&objects, directory.cut.tree)
        .unwrap()
        .files
        .into_iter()
        .map(|(path, entry)| {
            let file = directory.path.join(os(&path));
            let stat = rustix::fs::lstat(&file).unwrap();
            let stat = match entry.mode {
                tree::GITLINK => StatData::default(),
                _ => StatData::from(&stat),
            };
            let (mode, id) = (entry.mode, entry.id);
            IndexEntry {
                path,
                mode,
                id,
                stat,
            }
        })
        .collect();
    // A tick later than the files: what is found unchanged is found by its stat data.
    std::thread::sleep(std::time::Duration::from_millis(15));
    write_index(
        &directory.manifest_path(),
        repository.format(),
        &entries,
        None,
    )
    .unwrap();
}

pub(crate) fn os(path: &BString) -> &OsStr {
    git_vws::git::os_str(path.as_bstr())
}

pub(crate) fn id(laid: &Laid, text: &str) -> ObjectId {
    ObjectId::from_str_ext(text, laid.repository().format()).unwrap()
}
