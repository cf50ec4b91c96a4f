//! Answers on their way out: each a head that ends in the size of what follows it.

use std::io::Write;

use bstr::ByteSlice;
use serde_json::{Map, Value};

use super::{Error, Options, Result, Status};
use crate::model::{Refusal, json_path, sanitize_terminal};
use crate::output::sentence;
use crate::workspace;
use crate::{integrate, layout};

/// So many bytes are gathered before they are written, whether or not anybody waits for them.
const GATHERED: usize = 256 << 10;

/// The answer to one command.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) command: &'static str,
    pub(super) status: Status,
    /// What stands in the head, each with its JSON key.
    pub(super) fields: Vec<(&'static str, Value)>,
    pub(super) body: Body,
}

/// What follows the head.
#[derive(Debug)]
pub(super) enum Body {
    Nothing,
    /// Bytes as they are.
    Content(Vec<u8>),
    /// Records in the form that was asked for.
    Printed(Vec<u8>),
    /// Words for people.
    Message(String),
}

impl Answer {
    pub(super) fn done(command: &'static str, body: Body) -> Self {
        Answer {
            command,
            status: Status::Done,
            fields: Vec::new(),
            body,
        }
    }

    pub(super) fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, value.into()));
        self
    }

    pub(super) fn failed(command: &'static str, failure: &Failure) -> Self {
        let kind = failure.kind.unwrap_or("-");
        Answer {
            command,
            status: failure.status,
            fields: vec![("kind", kind.into())],
            body: Body::Message(failure.message.clone()),
        }
    }
}

/// Why a command was not carried out.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    pub(super) status: Status,
    pub(super) kind: Option<&'static str>,
    pub(super) message: String,
}

impl Failure {
    fn new(error: &dyn std::error::Error, refusal: Option<Refusal>, missing: bool) -> Self {
        let (status, kind) = match refusal {
            Some(kind) => (status_of(kind), Some(kind.as_str())),
            None if missing => (Status::Refused, Some("missing")),
            None => (Status::Failed, None),
        };
        Failure {
            status,
            kind,
            message: sentence(error),
        }
    }

    pub(super) fn usage(message: impl Into<String>) -> Self {
        Failure {
            status: Status::Usage,
            kind: None,
            message: message.into(),
        }
    }
}

impl From<&workspace::Error> for Failure {
    fn from(error: &workspace::Error) -> Self {
        // A caller has to tell "not there" from "could not look".
        let missing = matches!(error, workspace::Error::NoPath { .. });
        Failure::new(error, error.refusal(), missing)
    }
}

impl From<&layout::Error> for Failure {
    fn from(error: &layout::Error) -> Self {
        match error {
            layout::Error::Workspace(error) => error.into(),
            _ => Failure::new(error, error.refusal(), false),
        }
    }
}

impl From<&integrate::Error> for Failure {
    fn from(error: &integrate::Error) -> Self {
        match error {
            integrate::Error::Workspace(error) => error.into(),
            integrate::Error::Layout(error) => error.into(),
            _ => Failure::new(error, error.refusal(), false),
        }
    }
}

/// The status of each kind of refusal, as the exit codes have it.
fn status_of(kind: Refusal) -> Status {
    match kind {
        Refusal::Damaged | Refusal::Locked | Refusal::Moved | Refusal::Unsupported => {
            Status::Failed
        }
        _ => Status::Refused,
    }
}

/// The output, buffered.
pub(super) struct Output<W> {
    inner: W,
    buffer: Vec<u8>,
    json: bool,
    end: u8,
}

impl<W: Write> Output<W> {
    pub(super) fn new(inner: W, options: &Options) -> Self {
        Output {
            inner,
            buffer: Vec::new(),
            json: options.json,
            end: if options.nul { 0 } else { b'\n' },
        }
    }

    /// Takes an answer; it is written when there is much of it, or on [`Output::flush`].
    pub(super) fn push(&mut self, answer: Answer) -> Result<()> {
        match self.json {
            true => self.json(answer),
            false => self.text(&answer),
        }
        if self.buffer.len() > GATHERED {
            self.drain()?;
        }
        Ok(())
    }

    /// Writes everything and hands it over.
    pub(super) fn flush(&mut self) -> Result<()> {
        self.drain()?;
        self.inner.flush().map_err(Error::Write)
    }

    /// Whether nothing waits to be written.
    pub(super) fn is_idle(&self) -> bool {
        self.buffer.is_empty()
    }

    fn drain(&mut self) -> Result<()> {
        self.inner.write_all(&self.buffer).map_err(Error::Write)?;
        self.buffer.clear();
        Ok(())
    }

    fn text(&mut self, answer: &Answer) {
        let out = &mut self.buffer;
        let mut field = |text: &str| {
            out.extend_from_slice(text.as_bytes());
            out.push(b' ');
        };
        field(answer.status.as_str());
        field(answer.command);
        for (_, value) in &answer.fields {
            match value.as_str() {
                Some(text) => field(text),
                None => field(&value.to_string()),
            }
        }
        let message;
        let body: &[u8] = match &answer.body {
            Body::Nothing => b"",
            Body::Content(bytes) | Body::Printed(bytes) => bytes,
            Body::Message(text) => {
                message = sanitize_terminal(text.as_str().into());
                message.as_bytes()
            }
        };
        out.extend_from_slice(body.len().to_string().as_bytes());
        out.push(self.end);
        out.extend_from_slice(body);
        out.push(self.end);
    }

    fn json(&mut self, answer: Answer) {
        let mut object = Map::new();
        object.insert("v".to_owned(), 1.into());
        object.insert("status".to_owned(), answer.status.code().into());
        object.insert("command".to_owned(), answer.command.into());
        for (key, value) in answer.fields {
            let value = match value.as_str() {
                Some("-") => Value::Null,
                _ => value,
            };
            object.insert(key.to_owned(), value);
        }
        let mut records = None;
        match answer.body {
            Body::Nothing => {}
            Body::Content(bytes) => {
                object.insert("size".to_owned(), bytes.len().into());
                object.insert("content".to_owned(), json_path(bytes.as_bstr()));
            }
            Body::Message(text) => {
                object.insert("message".to_owned(), text.into());
            }
            // One object a line already.
            Body::Printed(lines) => records = Some(lines),
        }
        let line = Value::Object(object).to_string();
        let Some(records) = records else {
            self.buffer.extend_from_slice(line.as_bytes());
            self.buffer.push(b'\n');
            return;
        };
        let open = line.strip_suffix('}').unwrap_or(&line);
        self.buffer.extend_from_slice(open.as_bytes());
        self.buffer.extend_from_slice(b",\"records\":[");
        let lines: Vec<&[u8]> = records.lines().collect();
        self.buffer.extend_from_slice(&lines.join(&b','));
        self.buffer.extend_from_slice(b"]}\n");
    }
}
