//! A scripted client of `git vws mcp`: the handshake, every tool, and what goes wrong.
#![allow(clippy::unwrap_used, missing_docs, unused_must_use)]

mod common;

use common::Sandbox;
use serde_json::{Value, json};

/// Sends messages, one a line, and returns the answers.
fn serve(sandbox: &Sandbox, agent: &str, messages: &[Value]) -> Vec<Value> {
    let lines: String = messages.iter().map(|m| format!("{m}\n")).collect();
    let outcome = sandbox.vws_with_input(&["mcp", agent], lines.as_bytes());
    let outcome = outcome.success();
    assert_eq!(outcome.stderr(), b"", "{outcome}");
    let text = String::from_utf8(outcome.stdout().to_vec()).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn call(id: u64, tool: &str, arguments: Value) -> Value {
    json!({
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": { "name": tool, "arguments": arguments },
    })
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap()
}

fn started() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("README.md", "hello\nhello world\n");
    sandbox.write("bin", b"\0\xff");
    sandbox.write("d/e/f", "deep\n");
    sandbox.commit("start");
    sandbox.write("README.md", "hello\nhello world\nedited by the user\n");
    sandbox
}

#[test]
fn a_client_creates_reads_edits_and_proposes() {
    let sandbox = started();
    let client = json!({ "name": "test", "version": "0" });
    let answers = serve(
        &sandbox,
        "alice",
        &[
            json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client } }),
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
            json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }),
            call(2, "create", json!({})),
            call(3, "read", json!({ "path": "README.md" })),
            call(
                4,
                "edit",
                json!({ "path": "README.md", "old": "hello world", "new": "hallo" }),
            ),
            call(
                5,
                "write",
                json!({ "path": "new/run.sh", "content": "#!/bin/sh\n", "executable": true }),
            ),
            call(
                6,
                "write",
                json!({ "path": "raw", "content": "AP8=", "encoding": "base64" }),
            ),
            call(7, "delete", json!({ "path": "d", "recursive": true })),
            call(8, "list", json!({ "path": ".", "recursive": true })),
            call(9, "diff", json!({ "path": "README.md" })),
            call(10, "propose", json!({ "message": "greet in German" })),
            json!({ "jsonrpc": "2.0", "id": "p", "method": "ping" }),
        ],
    );
    let ids: Vec<_> = answers.iter().map(|answer| answer["id"].clone()).collect();
    let wanted = json!([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, "p"]);
    assert_eq!(Value::from(ids), wanted, "one answer each, in order");
    assert_eq!(answers[0]["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "git-vws");
    let tools = answers[1]["result"]["tools"].as_array().unwrap();
    let names: Vec<_> = tools
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    let all = [
        "create", "read", "write", "edit", "delete", "list", "diff", "propose",
    ];
    assert_eq!(names, all);
    assert_eq!(answers[2]["result"]["structuredContent"]["revision"], 1);
    // The user's own edits are in the base.
    assert_eq!(
        text(&answers[3]),
        "hello\nhello world\nedited by the user\n"
    );
    assert_eq!(answers[4]["result"]["structuredContent"]["revision"], 2);
    let entries = answers[8]["result"]["structuredContent"]["entries"]
        .as_array()
        .unwrap();
    let paths: Vec<_> = entries
        .iter()
        .map(|e| e["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["README.md", "bin", "new/run.sh", "raw"]);
    assert_eq!(entries[2]["mode"], "100755");
    let diff = text(&answers[9]);
    assert!(
        diff.contains("-hello world\n+hallo\n") && !diff.contains("run.sh"),
        "{diff}"
    );
    let changes = answers[10]["result"]["structuredContent"]["changes"]
        .as_array()
        .unwrap();
    assert_eq!(changes.len(), 4);
    assert_eq!(answers[11]["result"], json!({}));
    assert_eq!(
        sandbox.git_text(&["log", "-1", "--format=%s", "relo/alice"]),
        "greet in German"
    );

    // The user's tree has not moved; the user decides.
    assert!(sandbox.read("README.md").ends_with(b"edited by the user\n"));
    sandbox.vws(&["accept", "alice"]).success();
    assert_eq!(
        sandbox.read("README.md"),
        b"hello\nhallo\nedited by the user\n"
    );
    assert_eq!(sandbox.read("raw"), b"\0\xff");
}

#[test]
fn a_missing_workspace_is_made_and_bytes_travel_as_a_blob() {
    let sandbox = started();
    let answers = serve(
        &sandbox,
        "bob",
        &[call(1, "read", json!({ "path": "bin" }))],
    );
    let resource = &answers[0]["result"]["content"][0]["resource"];
    assert_eq!(resource["blob"], "AP8=");
    sandbox.vws(&["overlay", "show", "bob"]).success();
}

#[test]
fn what_a_tool_runs_into_is_told_to_the_model() {
    let sandbox = started();
    let trouble = |tool: &str, arguments: Value| {
        let answers = serve(&sandbox, "a", &[call(1, tool, arguments)]);
        assert_eq!(answers[0]["result"]["isError"], true, "{}", answers[0]);
        text(&answers[0]).to_owned()
    };
    let missing = trouble("read", json!({ "path": "nope" }));
    assert_eq!(missing, "path 'nope' does not exist in the overlay");
    let out = trouble("write", json!({ "path": "../x", "content": "" }));
    assert!(out.ends_with(" [escapes]"), "{out}");
    let git = trouble("write", json!({ "path": ".git/config", "content": "" }));
    assert!(git.ends_with(" [protected_path]"), "{git}");
    let twice = trouble(
        "edit",
        json!({ "path": "README.md", "old": "hello", "new": "x" }),
    );
    assert!(twice.contains("2 times"), "{twice}");
    let not = trouble(
        "write",
        json!({ "path": "x", "content": "!", "encoding": "base64" }),
    );
    assert_eq!(not, "the content is not base64");
    let again = trouble("create", json!({}));
    assert!(again.contains("'a'"), "{again}");
    // A directory is the authority while it is open.
    sandbox.vws(&["materialize", "a"]).success();
    let open = trouble("write", json!({ "path": "x", "content": "" }));
    assert!(open.ends_with(" [materialized]"), "{open}");
    sandbox.write(".relo/worktrees/a/made", "by a tool\n");
    let answers = serve(&sandbox, "a", &[call(1, "read", json!({ "path": "made" }))]);
    assert_eq!(text(&answers[0]), "by a tool\n");
}

#[test]
fn malformed_messages_have_the_protocols_codes() {
    let sandbox = started();
    let code = |message: &str| {
        let outcome = sandbox.vws_with_input(&["mcp", "a"], format!("{message}\n").as_bytes());
        let outcome = outcome.success();
        let answer: Value = serde_json::from_slice(outcome.stdout()).unwrap();
        answer["error"]["code"].as_i64().unwrap()
    };
    assert_eq!(code("nonsense"), -32700);
    assert_eq!(code("[]"), -32600);
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), -32600);
    assert_eq!(
        code(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#),
        -32601
    );
    let tool = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"no"}}"#;
    assert_eq!(code(tool), -32602);
    let arguments = call(1, "read", json!({ "path": 7 }));
    assert_eq!(code(&arguments.to_string()), -32602);
    // An array of messages has an array of answers; notifications have none.
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled" });
    let answers = serve(&sandbox, "a", &[note.clone(), json!([ping, note])]);
    assert_eq!(
        answers,
        [json!([{ "jsonrpc": "2.0", "id": 1, "result": {} }])]
    );
}
