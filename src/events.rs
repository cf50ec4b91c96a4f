//! The log of what happened: `<common-dir>/relo/events.jsonl`, one JSON object a line.
//!
//! It is written after the fact and never read as truth; deleting it loses nothing but the log. A
//! line is one `write(2)` to a file opened for appending, so lines of several processes do not mix.

use std::fs::{File, OpenOptions};
use std::io::Write;

use bstr::{BString, ByteSlice};
use serde_json::json;

use crate::git::Repository;
use crate::model::{Revision, json_path};

/// One thing that happened to a workspace.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    /// Seconds since 1970.
    pub time: i64,
    /// What happened; logged as `workspace.<kind>`.
    pub kind: &'a str,
    /// The workspace.
    pub agent: &'a str,
    /// The orchestrator's session, if it named one.
    pub session: Option<&'a str>,
    /// The revision after it.
    pub revision: Revision,
    /// The paths it was about, perhaps not all of them.
    pub paths: &'a [BString],
    /// How many paths it was about.
    pub path_count: u64,
}

/// Appends an event. A log that cannot be written is not worth failing for: the revision it would
/// tell of is published.
pub fn append(repository: &Repository, event: &Event<'_>) {
    let folder = repository.relo_dir();
    let path = folder.join("events.jsonl");
    let open = || OpenOptions::new().create(true).append(true).open(&path);
    let file: std::io::Result<File> = open().or_else(|_| {
        std::fs::create_dir_all(&folder)?;
        open()
    });
    if let Ok(mut file) = file {
        let _ = file.write_all(&line(event));
    }
}

fn line(event: &Event<'_>) -> Vec<u8> {
    let paths: Vec<_> = event.paths.iter().map(|p| json_path(p.as_bstr())).collect();
    let mut object = json!({
        "v": 1,
        "time": event.time,
        "event": format!("workspace.{}", event.kind),
        "agent": event.agent,
        "revision": event.revision,
        "paths": paths,
        "pathCount": event.path_count,
    });
    if let Some(session) = event.session {
        object["session"] = session.into();
    }
    let mut line = object.to_string().into_bytes();
    line.push(b'\n');
    line
}
