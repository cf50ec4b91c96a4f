//! A repository with workspaces in it, and short names for what the tests do to them.

use std::fs;

use git_vws::git::{Environment, Repository};
use git_vws::integrate::undo::Undone;
use git_vws::integrate::{self, Accept, Accepted, Proposal, Which};
use git_vws::model::{AgentId, RepoPath};
use git_vws::workspace::{Edit, From, Mode, NewWorkspace, Store, Terms};

use crate::common::Sandbox;

/// A sandbox with a repository of a few files, opened.
pub struct Place {
    pub sandbox: Sandbox,
    pub repository: Repository,
}

impl Place {
    pub fn new(files: &[(&str, &str)]) -> Place {
        Place::with(Sandbox::new(), files)
    }

    pub fn with(sandbox: Sandbox, files: &[(&str, &str)]) -> Place {
        for (path, text) in files {
            sandbox.write(path, text.as_bytes());
        }
        sandbox.git_text(&["add", "-A"]);
        sandbox.git_text(&["commit", "-qm", "base", "--allow-empty"]);
        let repository = open(&sandbox);
        Place {
            sandbox,
            repository,
        }
    }

    pub fn store(&self) -> Store<'_> {
        Store::new(&self.repository, 1_700_000_000)
    }

    /// Makes a workspace of the user's tree as it is.
    pub fn create(&self, agent: &str) {
        let new = NewWorkspace {
            from: From::WorkTree,
            mode: Mode::Virtual,
            read_only: false,
            session: Some("s1".to_owned()),
        };
        self.store().create(&id(agent), &new).unwrap();
    }

    pub fn edit(&self, agent: &str, edits: &[Edit]) {
        self.store()
            .edit(&id(agent), Terms::default(), edits)
            .unwrap();
    }

    pub fn write(&self, agent: &str, path: &str, text: &str) {
        self.edit(agent, &[write(path, text)]);
    }

    pub fn propose(&self, agent: &str) -> Proposal {
        integrate::propose(&self.store(), &id(agent), None).unwrap()
    }

    pub fn accept(&self, agent: &str, paths: &[&str]) -> Accepted {
        let request = request(agent, paths);
        integrate::accept(&self.store(), &request).unwrap()
    }

    pub fn undo(&self) -> Undone {
        integrate::undo(&self.store(), None, &[]).unwrap()
    }

    pub fn reject(&self, agent: &str, paths: &[&str]) -> integrate::Rejected {
        integrate::reject(&self.store(), &id(agent), &repo_paths(paths)).unwrap()
    }

    /// The states of an agent's changes, over all of its proposals: `r<n> <path> <state>`.
    pub fn states(&self, agent: &str) -> Vec<String> {
        let agent = id(agent);
        let all = integrate::changes(&self.store(), Some((&agent, None))).unwrap();
        all.iter()
            .flat_map(|proposal| {
                let revision = proposal.revision;
                proposal.changes.iter().map(move |change| {
                    format!("r{revision} {} {}", change.path, change.state.as_str())
                })
            })
            .collect()
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.sandbox.repo().join(path)).unwrap()
    }

    pub fn exists(&self, path: &str) -> bool {
        fs::symlink_metadata(self.sandbox.repo().join(path)).is_ok()
    }

    pub fn overlay(&self, agent: &str, path: &str) -> String {
        let spec = format!("refs/relo/vws/{agent}/overlay:{path}");
        String::from_utf8(self.sandbox.git(&["show", &spec])).unwrap()
    }

    pub fn has_workspace(&self, agent: &str) -> bool {
        self.store().find(&id(agent)).unwrap().is_some()
    }

    /// What no command of ours may change.
    pub fn users(&self) -> (Vec<u8>, String, String, Vec<u8>) {
        let git_dir = self.sandbox.repo().join(".git");
        let index = fs::read(git_dir.join("index")).unwrap();
        let head = fs::read_to_string(git_dir.join("HEAD")).unwrap();
        let format = "--format=%(refname) %(objectname)";
        let refs = self.sandbox.git_text(&["for-each-ref", format]);
        let refs = refs
            .lines()
            .filter(|line| !line.contains("relo/"))
            .collect::<Vec<_>>()
            .join("\n");
        (index, head, refs, fs::read(git_dir.join("config")).unwrap())
    }

    /// Collects everything that no ref reaches, and checks that nothing is missing.
    pub fn collect(&self) {
        self.sandbox.git_text(&[
            "-c",
            "gc.reflogExpire=now",
            "-c",
            "gc.reflogExpireUnreachable=now",
            "reflog",
            "expire",
            "--expire=now",
            "--all",
        ]);
        self.sandbox.git_text(&["gc", "-q", "--prune=now"]);
        self.sandbox
            .git_text(&["fsck", "--strict", "--no-dangling"]);
    }
}

pub fn open(sandbox: &Sandbox) -> Repository {
    let variables = [
        ("PATH", std::env::var_os("PATH").unwrap()),
        ("HOME", sandbox.home().into()),
        ("GIT_CONFIG_NOSYSTEM", "1".into()),
        ("LC_ALL", "C".into()),
    ];
    let environment = Environment {
        current_dir: sandbox.repo(),
        variables: variables.map(|(k, v)| (k.into(), v)).into(),
    };
    Repository::open_at(&sandbox.repo(), environment).unwrap()
}

pub fn text_with(place: &Place, args: &[&str], input: &[u8]) -> String {
    String::from_utf8(place.sandbox.git_with_input(args, input)).unwrap()
}

pub fn id(agent: &str) -> AgentId {
    AgentId::new(agent).unwrap()
}

pub fn path(path: &str) -> RepoPath {
    RepoPath::new(path).unwrap()
}

pub fn repo_paths(paths: &[&str]) -> Vec<RepoPath> {
    paths.iter().map(|p| path(p)).collect()
}

pub fn write(at: &str, text: &str) -> Edit {
    Edit::Write {
        path: path(at),
        bytes: text.into(),
        executable: None,
    }
}

pub fn delete(at: &str) -> Edit {
    Edit::Delete {
        path: path(at),
        recursive: true,
    }
}

pub fn request(agent: &str, paths: &[&str]) -> Accept {
    Accept::new(Which::Of {
        agent: id(agent),
        paths: repo_paths(paths),
    })
}

pub fn all() -> Accept {
    Accept::new(Which::All)
}

/// `<path> <verdict>` of each outcome.
pub fn verdicts(accepted: &Accepted) -> Vec<String> {
    let line = |o: &integrate::Outcome| format!("{} {}", o.path, o.verdict.as_str());
    accepted.outcomes.iter().map(line).collect()
}

pub const TEN: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";

pub fn ten(at: usize, text: &str) -> String {
    let lines = TEN.lines().enumerate();
    let lines = lines.map(|(n, line)| if n + 1 == at { text } else { line });
    lines.map(|line| format!("{line}\n")).collect()
}
