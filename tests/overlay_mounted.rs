//! Directories by overlay that stay: mounted for all to see, where the caller may mount.
//!
//! Skipped, visibly, where that is not so.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs)]

mod common;

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use common::{Outcome, Sandbox};

/// A sandbox with a first commit and a workspace with an open directory, if overlays can be mounted
/// here; says so if not.
fn opened() -> Option<(Sandbox, Mount)> {
    let sandbox = Sandbox::new();
    for path in ["f", "g", "d/a", "d/b"] {
        sandbox.write(path, format!("{path}\n"));
    }
    sandbox.write(".gitignore", "target/\n");
    sandbox.commit("one");
    let _ = sandbox
        .vws(&["overlay", "create", "--base=HEAD", "a"])
        .success();
    let laid_out = sandbox.vws(&["materialize", "--backend=overlay", "a"]);
    let said = String::from_utf8_lossy(laid_out.stderr()).into_owned();
    if said.contains("[unsupported]") {
        assert!(
            !std::env::var("GIT_VWS_TEST_EXPECT").is_ok_and(|list| list.contains("overlay")),
            "a mount was expected to work: {said}"
        );
        println!("skipped: no mount for all to see: {said}");
        return None;
    }
    let _ = laid_out.success();
    let mount = Mount(sandbox.repo().join(".relo/worktrees/a"));
    Some((sandbox, mount))
}

/// The directory; what is mounted there goes with it.
struct Mount(PathBuf);

impl Mount {
    fn is_there(&self) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        table.contains(self.0.to_str().unwrap())
    }

    fn unmount(&self) {
        let done = Command::new("umount").arg(&self.0).status().unwrap();
        assert!(done.success());
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.is_there() {
            let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        }
    }
}

fn diff(sandbox: &Sandbox) -> String {
    let shown = sandbox.vws(&["overlay", "diff", "--name-status", "a"]);
    String::from_utf8(shown.success().stdout().to_vec()).unwrap()
}

fn text(outcome: &Outcome) -> String {
    String::from_utf8_lossy(outcome.stderr()).into_owned()
}

#[test]
fn everybody_sees_it_and_what_is_written_is_read_at_once() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    let git = |args: &[&str]| {
        let mut command = sandbox.command("git");
        let output = command.current_dir(&mount.0).args(args).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(mount.is_there());
    assert_eq!(git(&["status", "--porcelain"]), "");
    fs::write(mount.path("f"), "new\n").unwrap();
    fs::remove_dir_all(mount.path("d")).unwrap();
    fs::create_dir(mount.path("target")).unwrap();
    fs::write(mount.path("target/o"), "o\n").unwrap();
    assert_eq!(git(&["status", "--porcelain"]), " D d/a\n D d/b\n M f\n");
    let read = sandbox.vws(&["overlay", "read", "a", "f"]).success();
    assert_eq!(read.stdout(), b"new\n");
    assert_eq!(diff(&sandbox), "D\td/a\nD\td/b\nM\tf\n");
    // A commit inside becomes the agent's, and another call gives the same directory back.
    git(&["commit", "-qam", "inside"]);
    let again = sandbox.vws(&["materialize", "a"]).success();
    assert!(!String::from_utf8_lossy(again.stdout()).contains("fresh"));
    // Commands run in it, whatever else they would get.
    for options in [&["exec", "a"][..], &["exec", "--backend=overlay", "a"]] {
        let script = ["--", "sh", "-c", "pwd; cat target/o; echo >>n"];
        let out = sandbox.vws(&[options, &script].concat()).success();
        let expected = format!("{}\no\n", mount.0.display());
        assert_eq!(out.stdout(), expected.as_bytes(), "{out}");
        assert_eq!(out.stderr(), b"");
    }
    // The file that makes it a worktree comes back, as in any directory.
    fs::remove_file(mount.path(".git")).unwrap();
    assert_eq!(diff(&sandbox), "D\td/a\nD\td/b\nM\tf\nA\tn\n");
    assert!(mount.path(".git").exists());
    let _ = sandbox.vws(&["settle", "a"]).success();
    assert!(!mount.is_there() && !mount.0.exists());
    assert!(!sandbox.repo().join(".git/relo/upper/a").exists());
    assert_eq!(diff(&sandbox), "D\td/a\nD\td/b\nM\tf\nA\tn\n");
    // Dispose takes the mount with it.
    let _ = sandbox
        .vws(&["materialize", "--backend=overlay", "a"])
        .success();
    assert!(mount.is_there());
    let _ = sandbox
        .vws(&["overlay", "dispose", "--force", "a"])
        .success();
    assert!(!mount.is_there() && !mount.0.exists());
}

#[test]
fn while_somebody_is_in_it_it_stays() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    fs::write(mount.path("f"), "new\n").unwrap();
    let mut child = Command::new("sleep")
        .arg("60")
        .current_dir(&mount.0)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let refused = sandbox.vws(&["settle", "a"]);
    let said = text(&refused);
    assert_eq!(refused.code(), Some(128), "{refused}");
    let expected = format!("busy: in use by process {} (sleep) [locked]", child.id());
    assert!(said.contains(&expected), "{said}");
    assert!(mount.is_there());
    assert_eq!(fs::read(mount.path("f")).unwrap(), b"new\n");
    assert_eq!(diff(&sandbox), "M\tf\n");
    child.kill().unwrap();
    child.wait().unwrap();
    // What cannot be captured keeps it, too.
    fs::create_dir_all(mount.path("n/.git")).unwrap();
    fs::write(mount.path("n/.git/HEAD"), "ref: refs/heads/x\n").unwrap();
    let kept = sandbox.vws(&["settle", "a"]);
    assert_eq!(kept.code(), Some(1), "{kept}");
    assert!(mount.is_there());
    let _ = sandbox.vws(&["settle", "--force", "a"]).success();
    assert!(!mount.is_there() && !mount.0.exists());
    assert_eq!(diff(&sandbox), "M\tf\n");
}

#[test]
fn when_the_mount_goes_nothing_goes_with_it() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    fs::write(mount.path("f"), "new\n").unwrap();
    mount.unmount();
    assert_eq!(diff(&sandbox), "M\tf\n");
    let _ = sandbox.vws(&["recover"]).success();
    let _ = sandbox.vws(&["materialize", "a"]).success();
    assert!(mount.is_there());
    assert_eq!(fs::read(mount.path("f")).unwrap(), b"new\n");
    fs::write(mount.path("g"), "newer\n").unwrap();
    mount.unmount();
    // The place goes, too: it comes back.
    fs::remove_dir_all(&mount.0).unwrap();
    assert_eq!(diff(&sandbox), "M\tf\nM\tg\n");
    // Whatever somebody writes into the place meanwhile is not ours to hide or remove.
    fs::write(mount.path("stray"), "mine\n").unwrap();
    for command in ["materialize", "settle"] {
        let refused = sandbox.vws(&[command, "a"]);
        assert_eq!(refused.code(), Some(128), "{refused}");
        assert!(text(&refused).contains("'stray' was written"), "{refused}");
    }
    assert_eq!(fs::read(mount.path("stray")).unwrap(), b"mine\n");
    fs::remove_file(mount.path("stray")).unwrap();
    // Not mounted, it is settled all the same.
    let _ = sandbox.vws(&["settle", "a"]).success();
    assert!(!mount.0.exists());
    assert_eq!(diff(&sandbox), "M\tf\nM\tg\n");
}

#[test]
fn what_a_run_left_is_taken_up_and_a_second_mount_is_refused() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    let _ = sandbox.vws(&["settle", "a"]).success();
    let script = [
        "exec",
        "a",
        "--",
        "sh",
        "-c",
        "mkdir target; echo o >target/o; echo x >f",
    ];
    let _ = sandbox.vws(&script).success();
    let _ = sandbox
        .vws_with_input(&["overlay", "write", "a", "g"], b"by view\n")
        .success();
    let _ = sandbox
        .vws(&["materialize", "--backend=overlay", "a"])
        .success();
    for (name, text) in [("target/o", "o\n"), ("f", "x\n"), ("g", "by view\n")] {
        assert_eq!(fs::read_to_string(mount.path(name)).unwrap(), text);
    }
    // Somebody's namespace holds the mount, and ours goes.
    let mut holder = Command::new("unshare")
        .args([
            "-m",
            "--propagation=private",
            "sh",
            "-c",
            "echo; exec sleep 60",
        ])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = [0];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut line).unwrap();
    mount.unmount();
    let refused = sandbox.vws(&["materialize", "a"]);
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(text(&refused).contains("still mounted"), "{refused}");
    assert!(text(&refused).contains("[locked]"), "{refused}");
    let _ = sandbox.vws(&["materialize", "a"]).success();
    let _ = sandbox.vws(&["settle", "a"]).success();
    assert_eq!(diff(&sandbox), "M\tf\nM\tg\n");
}

#[test]
fn who_may_not_mount_is_told_what_to_do() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    let _ = sandbox.vws(&["settle", "a"]).success();
    // Without the one right, root is as anybody.
    let mut command = sandbox.command("setpriv");
    command
        .args(["--bounding-set=-sys_admin", "--inh-caps=-sys_admin", "--"])
        .args(["git", "vws", "materialize", "--backend=overlay", "a"]);
    if command.output().is_err() {
        println!("skipped: no setpriv");
        return;
    }
    let refused = sandbox.outcome(command, b"");
    assert_eq!(refused.code(), Some(128), "{refused}");
    let said = text(&refused);
    assert!(said.contains("no overlay for all to see here: "), "{said}");
    assert!(
        said.contains("[unsupported]\nhint: '--backend=checkout'"),
        "{said}"
    );
    assert!(!mount.0.exists());
    let refs = sandbox.git_text(&["for-each-ref", "refs/relo/vws/a/exec"]);
    assert_eq!(refs, "");
}

/// The points that a command passes.
fn points(sandbox: &Sandbox, args: &[&str]) -> Vec<String> {
    let trace = sandbox.root().join("trace");
    let _ = fs::remove_file(&trace);
    let mut command = sandbox.command(common::BINARY);
    let armed = format!("trace:{}", trace.display());
    command.args(args).env("GIT_VWS_FAULT", armed);
    let _ = sandbox.outcome(command, b"").success();
    let text = fs::read_to_string(trace).unwrap();
    let mut points: Vec<String> = text.lines().map(str::to_owned).collect();
    points.sort_unstable();
    points.dedup();
    // The others are those of every directory.
    let own = [
        "layout-placed",
        "layout-unmounted",
        "settle-unmounted",
        "settle-aside",
        "settle-unmarked",
    ];
    if std::env::var_os("GIT_VWS_TEST_LONG").is_none() {
        points.retain(|point| own.contains(&point.as_str()));
    }
    points
}

fn kill_at(sandbox: &Sandbox, point: &str, args: &[&str]) {
    let mut command = sandbox.command(common::BINARY);
    command.args(args).env("GIT_VWS_FAULT", point);
    let killed = sandbox.outcome(command, b"");
    assert_eq!(killed.code(), None, "{point}: {killed}");
}

#[test]
fn killed_at_every_point_it_is_taken_in_hand_again() {
    let Some((sandbox, mount)) = opened() else {
        return;
    };
    let settle = ["settle", "a"];
    let lay_out = ["materialize", "--backend=overlay", "a"];
    let expected = "M\tf\n";
    fs::write(mount.path("f"), "new\n").unwrap();
    let at_settle = points(&sandbox, &settle);
    assert!(at_settle.contains(&"settle-unmounted".to_owned()));
    let at_layout = points(&sandbox, &lay_out);
    assert!(at_layout.contains(&"layout-unmounted".to_owned()));
    for point in &at_layout {
        let _ = sandbox.vws(&settle).success();
        kill_at(&sandbox, point, &lay_out);
        assert_eq!(diff(&sandbox), expected, "{point}");
        let _ = sandbox.vws(&lay_out).success();
        assert!(mount.is_there(), "{point}");
        assert_eq!(fs::read(mount.path("f")).unwrap(), b"new\n", "{point}");
    }
    for (at, point) in at_settle.iter().enumerate() {
        let _ = sandbox.vws(&lay_out).success();
        let name = format!("n{at}");
        fs::write(mount.path(&name), "n\n").unwrap();
        kill_at(&sandbox, point, &settle);
        // Whoever comes next: a recovery, a reader, or somebody who wants it again.
        match at % 3 {
            0 => drop(sandbox.vws(&["recover"]).success()),
            1 => drop(diff(&sandbox)),
            _ => drop(sandbox.vws(&lay_out).success()),
        }
        let shown = diff(&sandbox);
        assert!(shown.contains(&format!("A\t{name}\n")), "{point}: {shown}");
    }
    let _ = sandbox.vws(&["recover"]);
    let _ = sandbox.vws(&settle);
    assert!(!mount.is_there());
    assert!(diff(&sandbox).starts_with(expected));
}
