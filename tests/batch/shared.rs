//! What agents have of each other: stacks, references and checks through the stream, beside what the commands
//! themselves print.

use bstr::ByteSlice;

use super::{Answer, JSON, LINES, NUL, answers, run, sandbox};
use crate::common::Sandbox;
use crate::library::open;

fn told(sandbox: &Sandbox, input: &str) -> Vec<Answer> {
    let output = run(&open(sandbox), input.as_bytes(), LINES).0;
    answers(&output, false)
}

fn prints(sandbox: &Sandbox, args: &[&str]) -> Vec<u8> {
    let out = sandbox.vws(args);
    out.stdout().to_vec()
}

const TWO: &str = "create --base=HEAD a\nwrite a f 4\none\n\nwrite a new 2\nn\n\n\
                   create --base=HEAD c\nwrite c f 6\nother\n\n";

#[test]
fn stacks_are_made_moved_and_looked_at() {
    let sandbox = sandbox();
    let found = told(
        &sandbox,
        &format!(
            "{TWO}stack --on=a,c --strict b\n\
             stack --on=a --session=s b\n\
             write b own 2\nb\n\n\
             stack --status\n\
             write a new 2\nm\n\n\
             stack --status b\n\
             rebase-onto b HEAD\n\
             read b new\n\
             recut c HEAD\n\
             stack --on=b --base=worktree --read-only d\n\
             write d x 0\n\n\
             rebase-onto --without=a b HEAD\n\
             read b new\n\
             log -n1 b\n"
        ),
    );
    let heads: Vec<&str> = found[5..]
        .iter()
        .map(|(head, _)| &head[..head.rfind(' ').unwrap()])
        .collect();
    assert!(heads[7].starts_with("0 read 100644 "), "{heads:?}");
    assert_eq!(
        heads,
        [
            "1 stack conflict",
            "0 stack",
            "0 write 2",
            "0 stack",
            "0 write 4",
            "0 stack",
            "0 rebase-onto",
            heads[7],
            "0 recut",
            "0 stack",
            "1 write read_only",
            "0 rebase-onto",
            "1 read missing",
            "0 log",
        ]
    );
    let text = |at: usize| found[5 + at].1.to_str().unwrap();
    assert!(
        text(0).ends_with("left-out c\nconflict c conflict f\n\n"),
        "{}",
        text(0)
    );
    assert!(text(3).contains("\nstate current\n") && text(5).contains("\nstate behind\n"));
    assert_eq!(text(7), "m\n");
    assert!(text(8).contains("\nunchanged\n"));
    assert_eq!(
        text(13).as_bytes(),
        prints(&sandbox, &["log", "-n", "1", "b"])
    );
    let status = prints(&sandbox, &["stack", "--status"]);
    assert_eq!(told(&sandbox, "stack --status\n")[0].1, status);
}

#[test]
fn a_move_that_would_contradict_is_answered_with_the_conflicts() {
    let sandbox = sandbox();
    let _ = told(&sandbox, TWO);
    sandbox.write("f", b"the user\n");
    let found = told(
        &sandbox,
        "recut a worktree\nrecut --expect=1 a worktree\nrecut --without=c a worktree\n\
         recut --keep-conflicts a worktree\nread a f\n",
    );
    assert!(found[0].0.starts_with("1 recut conflict "), "{found:?}");
    assert!(
        found[0]
            .1
            .contains_str("\nunchanged\nconflict a conflict f\n")
    );
    assert!(found[1].0.starts_with("1 recut stale "));
    assert!(found[2].0.starts_with("129 recut "));
    assert!(found[3].0.starts_with("0 recut "));
    assert_eq!(found[4].1, b"one\n");
    let json = run(&open(&sandbox), b"recut c worktree\n", JSON).0;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(
        (&json["status"], &json["kind"]),
        (&1.into(), &"conflict".into())
    );
    assert_eq!(json["records"][0]["conflicts"][0]["path"], "f");
}

#[test]
fn references_travel_in_one_word() {
    let sandbox = sandbox();
    let made = told(
        &sandbox,
        "create --base=HEAD s\nwrite s \"a name\" 2\ns\n\nwrite s f 2\ns\n\ncreate --base=HEAD r\n\
         reference s \"a name\" f\nreference s dir/g\nreference s\n",
    );
    assert!(made[4].0.starts_with("0 reference "));
    let reference = made[4].1.trim().to_str().unwrap();
    assert_eq!(
        made[4].1,
        prints(&sandbox, &["reference", "s", "--", "a name", "f"])
    );
    assert!(made[5].0.starts_with("1 reference missing "), "{made:?}");
    assert!(made[6].0.starts_with("129 reference "));
    let quoted = format!("\"{}\"", reference.replace('"', "\\\""));
    let found = told(
        &sandbox,
        &format!(
            "import r {quoted} \"a name\"\nread r \"a name\"\nimport --expect=1 r {quoted} f\n\
             import r {{}} f\nimport r {quoted} dir/g\nread r f\n"
        ),
    );
    assert!(found[0].0.starts_with("0 import 2 "), "{found:?}");
    assert_eq!(found[1].1, b"s\n");
    assert!(found[2].0.starts_with("1 import stale "));
    assert!(found[3].0.starts_with("128 import - "));
    assert!(found[4].0.starts_with("1 import missing "));
    assert_eq!(found[5].1, b"one\ntwo\n");
    // With -z no quoting is needed.
    let input = format!("import\0r\0{reference}\0f\0\0");
    let output = run(&open(&sandbox), input.as_bytes(), NUL).0;
    assert!(answers(&output, true)[0].0.starts_with("0 import 3 "));
}

#[test]
fn what_an_agent_knows_is_checked_in_the_stream() {
    let sandbox = sandbox();
    let _ = told(&sandbox, TWO);
    let f = sandbox.git_text(&["rev-parse", "HEAD:f"]);
    let g = sandbox.git_text(&["rev-parse", "HEAD:dir/g"]);
    let input = format!(
        "context --check a {f} f {g} dir/g {g} link {g} \"no where\"\ncontext --check a {f}\n\
         context --check a 12 f\ncontext --check a\nbegin a\ncontext --check a {f} f\nabort\n"
    );
    let found = told(&sandbox, &input);
    let expected =
        format!("stale {f}\tf\nfresh {g}\tdir/g\nfresh {g}\tlink\ndeleted {g}\tno where\n");
    assert_eq!(found[0].1.as_bstr(), expected);
    for at in [1, 2] {
        assert!(found[at].0.starts_with("129 context "), "{found:?}");
    }
    assert_eq!(found[3].0, "0 context 0");
    assert!(found[5].0.starts_with("129 context "), "not within begin");
    let lines = format!("{f} f\n{g} dir/g\n{g} link\n{g} no where\n");
    let out = sandbox.vws_with_input(&["context", "--check", "a"], lines.as_bytes());
    assert_eq!(out.stdout().as_bstr(), expected);
}

#[test]
fn a_released_agent_still_has_a_history() {
    let sandbox = sandbox();
    let _ = told(&sandbox, TWO);
    let all = prints(&sandbox, &["log", "a"]);
    let _ = sandbox.vws(&["propose", "a"]).success();
    let proposed = prints(&sandbox, &["log", "a"]);
    let _ = sandbox.vws(&["accept", "a"]).success();
    let released = prints(&sandbox, &["log", "a"]);
    assert!(
        proposed.ends_with(&all) && released.ends_with(&all),
        "{}",
        released.as_bstr()
    );
    assert!(
        !sandbox
            .vws(&["overlay", "show", "a"])
            .stdout()
            .contains_str("agent a")
    );
    assert_eq!(told(&sandbox, "log a\n")[0].1, released);
    // From the trash, and not at all.
    let of_c = prints(&sandbox, &["log", "c"]);
    let _ = sandbox
        .vws(&["overlay", "dispose", "--force", "c"])
        .success();
    assert_eq!(prints(&sandbox, &["log", "c"]), of_c);
    assert!(told(&sandbox, "log nobody\n")[0].0.starts_with("128 log "));
}
