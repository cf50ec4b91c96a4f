//! `git vws mcp`: one workspace as the tools of a Model Context Protocol server.
//!
//! A runtime that lets its model read and write through these tools works in a workspace that has
//! no directory at all. The protocol is JSON-RPC 2.0, one message a line, from a stream of bytes to
//! another; it is spoken here on serde_json, because the official SDK brings an asynchronous
//! runtime and network code, and one stream answered in order needs neither.
//!
//! As in `batch`, nothing is decided here: a call is read, one library call made, its report
//! framed. What a tool runs into is told to the model in the result (`isError`, with the kind of a
//! refusal in brackets at its end); protocol errors are for calls that are not well-formed.
//!
//! The workspace is made from the user's working tree at the first call that needs it, as `git vws
//! run` does, or by the tool `create`. Answers come in the order of the requests.

mod call;
mod tools;

use std::io::{self, BufRead, BufReader, Read, Write};

use serde_json::{Value, json};

use crate::git::{self, Repository};
use crate::model::AgentId;
use crate::workspace;

use call::Server;

/// The versions of the protocol that are spoken, the newest first. They differ in nothing that is
/// used here but that a message may be an array in the middle one, which is taken in all.
const VERSIONS: [&str; 3] = ["2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

/// Why a stream could not be processed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The input cannot be read.
    #[error("cannot read standard input: {0}")]
    Read(#[source] io::Error),
    /// The output takes no more answers.
    #[error("cannot write to standard output: {0}")]
    Write(#[source] io::Error),
    /// The repository's settings cannot be read.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
}

impl From<git::Error> for Error {
    fn from(error: git::Error) -> Self {
        Error::Workspace(error.into())
    }
}

/// The result of a stream.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request has no result: the code and a sentence.
type Fault = (i64, String);

/// Serves the workspace of an agent until the input ends. `clock` gives the seconds since 1970.
///
/// # Errors
/// [`Error::Read`] and [`Error::Write`] when the streams fail; what the calls run into is answered
/// in the stream.
pub fn run(
    repository: &Repository,
    agent: &AgentId,
    clock: &dyn Fn() -> i64,
    input: impl Read,
    mut output: impl Write,
) -> Result<()> {
    let server = Server::new(repository, agent, clock);
    // JSON may spell a byte in six.
    let limit = workspace::max_file_size(repository)?
        .saturating_mul(6)
        .saturating_add(64 << 10);
    let mut input = BufReader::new(input);
    while let Some(line) = next_line(&mut input, limit)? {
        let answer = match line {
            Line::Message(line) if line.trim_ascii().is_empty() => None,
            Line::Message(line) => match serde_json::from_slice(&line) {
                Ok(message) => answer_all(&server, message),
                Err(error) => Some(fault(&Value::Null, (PARSE_ERROR, error.to_string()))),
            },
            Line::TooLong => {
                let what = format!("the message is longer than {limit} bytes");
                Some(fault(&Value::Null, (INVALID_REQUEST, what)))
            }
        };
        if let Some(answer) = answer {
            let mut bytes = answer.to_string().into_bytes();
            bytes.push(b'\n');
            output.write_all(&bytes).map_err(Error::Write)?;
            output.flush().map_err(Error::Write)?;
        }
    }
    Ok(())
}

enum Line {
    Message(Vec<u8>),
    /// It was skipped.
    TooLong,
}

fn next_line(input: &mut impl BufRead, limit: u64) -> Result<Option<Line>> {
    let mut line = Vec::new();
    let read = input.take(limit).read_until(b'\n', &mut line);
    if read.map_err(Error::Read)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || (line.len() as u64) < limit {
        return Ok(Some(Line::Message(line)));
    }
    input.skip_until(b'\n').map_err(Error::Read)?;
    Ok(Some(Line::TooLong))
}

/// Answers a message, or an array of them. Notifications and answers to us have no answer.
fn answer_all(server: &Server<'_, '_>, message: Value) -> Option<Value> {
    match message {
        Value::Array(all) if all.is_empty() => {
            let what = "an array of no messages".to_owned();
            Some(fault(&Value::Null, (INVALID_REQUEST, what)))
        }
        Value::Array(all) => {
            let answers: Vec<_> = all.iter().filter_map(|one| answer(server, one)).collect();
            (!answers.is_empty()).then_some(Value::Array(answers))
        }
        one => answer(server, &one),
    }
}

fn answer(server: &Server<'_, '_>, message: &Value) -> Option<Value> {
    let id = message.get("id").unwrap_or(&Value::Null);
    let Some(method) = message.get("method").and_then(Value::as_str) else {
        // We ask nothing, so an answer is none of ours; what is no message at all is told.
        let is_answer = message.get("result").is_some() || message.get("error").is_some();
        let what = "expected an object with 'jsonrpc', 'id' and 'method'".to_owned();
        return (!is_answer).then(|| fault(id, (INVALID_REQUEST, what)));
    };
    message.get("id")?;
    let none = json!({});
    let params = message.get("params").unwrap_or(&none);
    let result = match method {
        "initialize" => Ok(initialize(params)),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(json!({ "tools": tools::list() })),
        "tools/call" => server.call(params),
        _ => Err((METHOD_NOT_FOUND, format!("there is no method '{method}'"))),
    };
    Some(match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(why) => fault(id, why),
    })
}

fn fault(id: &Value, (code, message): Fault) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Speaks the client's version if it is known, else the newest.
fn initialize(params: &Value) -> Value {
    let asked = params.get("protocolVersion").and_then(Value::as_str);
    let known = VERSIONS.into_iter().find(|version| Some(*version) == asked);
    json!({
        "protocolVersion": known.unwrap_or(VERSIONS[0]),
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "git-vws", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "The files of your own workspace of a Git repository. Paths are relative \
            to its top. Nothing you do here touches the user's files; when the work is done, call \
            'propose', and the user decides.",
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lines_are_bounded() {
        let mut input: &[u8] = b"one\n12345678901\ntwo\nlast";
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, 8).unwrap() {
            lines.push(match line {
                Line::Message(bytes) => String::from_utf8(bytes).unwrap(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        assert_eq!(lines, ["one\n", "too long", "two\n", "last"]);
    }

    #[test]
    fn the_clients_version_is_spoken_if_it_is_known() {
        let spoken = |asked: &str| {
            let result = initialize(&json!({ "protocolVersion": asked }));
            result["protocolVersion"].as_str().unwrap().to_owned()
        };
        assert_eq!(spoken("2024-11-05"), "2024-11-05");
        assert_eq!(spoken("1999-01-01"), VERSIONS[0]);
    }
}
