//! Commands run in directories. One at a time: a run looks at all children of its process.
#![allow(clippy::unwrap_used)]

mod common;

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use common::Sandbox;
use git_vws::git::{Environment, Repository};
use git_vws::layout::{self, Command, ExitKind, Finished, Options};
use git_vws::model::AgentId;
use git_vws::workspace::{From, Mode, NewWorkspace, Store};

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A repository with a workspace `a`, for one test at a time.
struct Bench {
    sandbox: Sandbox,
    repository: Repository,
    agent: AgentId,
    environment: Environment,
    _turn: MutexGuard<'static, ()>,
}

impl Bench {
    fn new() -> Bench {
        let turn = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let sandbox = Sandbox::new();
        sandbox.write("f", "one\n");
        sandbox.write(".gitignore", "ignored\n");
        sandbox.commit("one");
        let command = sandbox.command("git");
        let variables = command
            .get_envs()
            .filter_map(|(name, value)| Some((name.to_owned(), value?.to_owned())));
        let environment = Environment {
            current_dir: sandbox.repo(),
            variables: variables.collect(),
        };
        let repository = Repository::open_at(&sandbox.repo(), environment.clone()).unwrap();
        let agent = AgentId::new("a").unwrap();
        let new = NewWorkspace {
            from: From::Commit("HEAD".to_owned()),
            mode: Mode::Virtual,
            read_only: false,
            session: None,
        };
        Store::new(&repository, 0).create(&agent, &new).unwrap();
        Bench {
            sandbox,
            repository,
            agent,
            environment,
            _turn: turn,
        }
    }

    fn store(&self) -> Store<'_> {
        Store::new(&self.repository, 0)
    }

    fn run(&self, argv: &[&str]) -> Finished {
        let command = Command {
            argv: argv.iter().map(OsString::from).collect(),
            environment: self.environment.variables.clone(),
        };
        layout::exec(&self.store(), &self.agent, &command, &Options::default()).unwrap()
    }

    fn sh(&self, script: &str) -> Finished {
        self.run(&["sh", "-c", script])
    }

    fn read(&self, path: &str) -> String {
        let spec = format!("refs/relo/vws/a/overlay:{path}");
        self.sandbox.git_text(&["cat-file", "-p", &spec])
    }
}

#[test]
fn what_a_command_makes_is_captured_and_its_code_is_passed_on() {
    let mut bench = Bench::new();
    let nowhere = OsString::from("/nowhere");
    for name in ["GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"] {
        bench
            .environment
            .variables
            .insert(name.into(), nowhere.clone());
    }
    let script = "pwd >where; echo $GIT_VWS_AGENT >who; git status --short >status; exit 3";
    let finished = bench.sh(script);
    assert_eq!(finished.status, ExitKind::Code(3));
    let settled = finished.settled.unwrap();
    assert!(settled.captured.changed);
    assert_eq!(settled.kept, None);
    assert!(!finished.directory.path.exists());
    assert_eq!(
        bench.read("where"),
        finished.directory.path.to_str().unwrap()
    );
    assert_eq!(bench.read("who"), "a");
    assert_eq!(bench.read("status"), "?? status\n?? where\n?? who");
}

#[test]
fn a_command_that_cannot_be_started() {
    let bench = Bench::new();
    let finished = bench.run(&["no-such-program"]);
    assert_eq!(finished.status, ExitKind::NotFound);
    assert!(finished.start_error.is_some());
    assert_eq!(bench.run(&["./f"]).status, ExitKind::NotExecutable);
    assert!(!finished.directory.path.exists());
    let finished = bench.sh("kill -KILL $$");
    assert_eq!(finished.status, ExitKind::Signal(9));
    assert_eq!(finished.status.code(), 137);
}

#[test]
fn a_directory_that_was_open_stays_open() {
    let bench = Bench::new();
    let open = layout::materialize(&bench.store(), &bench.agent, &Options::default()).unwrap();
    let finished = bench.sh("echo two >f; echo x >ignored");
    assert_eq!(finished.settled.unwrap().kept, Some(open.path.clone()));
    assert_eq!(bench.read("f"), "two");
    assert!(open.path.join("ignored").exists());
}

#[test]
fn no_directory_goes_away_under_a_running_command() {
    let bench = Bench::new();
    let script = "git --git-dir=\"$REPO/.git\" rev-parse HEAD >id; : >\"$REPO/../started\"; \
        while ! test -e \"$REPO/../go\"; do sleep 0.01; done; echo late >>f";
    let script = script.replace("$REPO", bench.sandbox.repo().to_str().unwrap());
    let root = bench.sandbox.root().to_owned();
    let environment = bench.environment.clone();
    let agent = bench.agent.clone();
    std::thread::scope(|scope| {
        let other = scope.spawn(move || {
            wait_for(&root.join("started"));
            let repository = Repository::open_at(&root.join("repo"), environment).unwrap();
            let refused = layout::settle(&Store::new(&repository, 0), &agent, Default::default());
            fs::write(root.join("go"), "").unwrap();
            refused.unwrap_err().refusal()
        });
        let finished = bench.sh(&script);
        let refused = other.join().unwrap();
        assert_eq!(refused, Some(git_vws::model::Refusal::Locked));
        assert!(finished.settled.unwrap().captured.changed);
    });
    assert_eq!(bench.read("f"), "one\nlate");
}

fn wait_for(path: &Path) {
    let start = Instant::now();
    while !path.exists() {
        assert!(
            start.elapsed() < Duration::from_secs(20),
            "{path:?} does not appear"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn what_a_command_leaves_behind_is_ended() {
    let bench = Bench::new();
    // One in a session of its own, one that will not listen, one that tidies up.
    let script = "setsid sleep 100 & \
        (trap '' TERM; while :; do sleep 0.05; done) & \
        (trap 'echo tidy >tidied; exit' TERM; : >ready; while :; do sleep 0.05; done) & \
        while ! test -e ready; do sleep 0.01; done";
    let start = Instant::now();
    let finished = bench.sh(script);
    assert_eq!(finished.status, ExitKind::Code(0));
    assert!(finished.ended >= 3, "{}", finished.ended);
    assert_eq!(finished.survivors, 0);
    assert!(start.elapsed() < Duration::from_secs(20));
    assert_eq!(bench.read("tidied"), "tidy");
    assert!(!finished.directory.path.exists());
}

/// Runs itself as a process that can be sent signals: `exec` in a child of the test.
#[test]
fn a_signal_goes_to_the_command_and_what_it_made_is_captured() {
    if std::env::var_os("VWS_TEST_EXEC_AT").is_some() {
        return child();
    }
    for (signal, code) in [("INT", 2), ("TERM", 15), ("HUP", 1)] {
        let bench = Bench::new();
        let mut command = bench.sandbox.command(std::env::current_exe().unwrap());
        command
            .args([
                "--exact",
                "a_signal_goes_to_the_command_and_what_it_made_is_captured",
            ])
            .env("VWS_TEST_EXEC_AT", bench.sandbox.repo());
        let mut child = command.stdout(std::process::Stdio::null()).spawn().unwrap();
        let ready = bench.sandbox.repo().join(".relo/worktrees/a/ready");
        wait_for(&ready);
        let pid = child.id().to_string();
        let mut kill = bench.sandbox.command("sh");
        kill.args(["-c", &format!("kill -{signal} {pid}")]);
        let _ = bench.sandbox.outcome(kill, b"").success();
        assert!(child.wait().unwrap().success(), "{signal}");
        assert_eq!(bench.read("got"), format!("got {code}"));
        assert!(!ready.exists());
    }
}

fn child() {
    let at = std::env::var_os("VWS_TEST_EXEC_AT").unwrap();
    let environment = Environment {
        current_dir: at.clone().into(),
        variables: std::env::vars_os().collect(),
    };
    let repository = Repository::open_at(Path::new(&at), environment.clone()).unwrap();
    let script = "for s in 1 2 15; do trap \"echo got $s >got; exit 7\" $s; done; : >ready; \
        while :; do sleep 0.02; done";
    let command = Command {
        argv: ["sh", "-c", script].map(OsString::from).into(),
        environment: environment.variables,
    };
    let agent = AgentId::new("a").unwrap();
    let store = Store::new(&repository, 0);
    let finished = layout::exec(&store, &agent, &command, &Options::default()).unwrap();
    assert_eq!(finished.status, ExitKind::Code(7));
    finished.settled.unwrap();
}

#[test]
fn closed_folders_and_links_out_do_not_stop_the_removal() {
    let bench = Bench::new();
    let kept = bench.sandbox.root().join("kept");
    fs::create_dir(&kept).unwrap();
    fs::write(kept.join("f"), "x").unwrap();
    let directory = layout::materialize(&bench.store(), &bench.agent, &Options::default()).unwrap();
    let ignored = directory.path.join("ignored");
    fs::create_dir_all(ignored.join("shut")).unwrap();
    symlink(&kept, ignored.join("shut/out")).unwrap();
    fs::set_permissions(ignored.join("shut"), fs::Permissions::from_mode(0o555)).unwrap();
    let settled = layout::settle(&bench.store(), &bench.agent, Default::default()).unwrap();
    assert!(settled.left_behind.is_empty());
    assert!(!directory.path.exists());
    assert!(kept.join("f").exists());
}
