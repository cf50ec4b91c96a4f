//! An entry as text: `entry.json`, one JSON object, and the subject of its commit.
//!
//! ```json
//! {"format":1,"id":7,"kind":"accept","state":"done","worktree":null,"time":1700000000,
//!  "steps":[{"path":"f","group":0,
//!            "before":{"mode":"100644","blob":"<id>","permissions":"0644"},
//!            "after":{"mode":"100755","blob":"<id>"},
//!            "agent":"a","proposal":3,"outcome":"written"}],
//!  "folders":[{"path":"d","existed":false,"prune":true}]}
//! ```
//! An undo has `"kind":"undo"` and `"of":<id>`; a step taken back has `"undone":<id>`. The outcomes are
//! `pending`, `written`, `identical`, `refused` (with `"reason":<kind>`), `failed` (with `"why"`),
//! `rolled-back` and `overtaken`. Keys that are not known survive a rewrite.

use bstr::ByteSlice;
use serde_json::{Map, Value};

use super::entry::{Entry, FileState, Folder, JournalId, Kind, Outcome, State, Step};
use crate::git::{ObjectFormat, ObjectId};
use crate::model::{AgentId, RepoPath, Revision, json_path, path_from_json};

/// The format that this version writes, and the highest that it reads.
const FORMAT: u64 = 1;

/// The first line of an entry's commit.
pub(super) fn subject(entry: &Entry) -> String {
    let (id, state) = (entry.id, state_word(entry.state));
    let what = match entry.kind {
        Kind::Accept => "accept".to_owned(),
        Kind::Undo { of } => format!("undo of {of}"),
    };
    format!(
        "vws journal {id}: {what}, {} paths, {state}\n",
        entry.steps.len()
    )
}

/// The text of `entry.json`.
pub(super) fn write(entry: &Entry) -> Vec<u8> {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("format", FORMAT.into());
    put("id", entry.id.get().into());
    match entry.kind {
        Kind::Accept => {
            put("kind", "accept".into());
        }
        Kind::Undo { of } => {
            put("kind", "undo".into());
            put("of", of.get().into());
        }
    }
    put("state", state_word(entry.state).into());
    let worktree = entry.worktree.as_ref();
    put(
        "worktree",
        worktree.map_or(Value::Null, |name| json_path(name.as_bstr())),
    );
    put("time", entry.time.into());
    put("steps", entry.steps.iter().map(write_step).collect());
    put("folders", entry.folders.iter().map(write_folder).collect());
    let known = object.clone();
    object.extend(
        entry
            .extra
            .clone()
            .into_iter()
            .filter(|(key, _)| !known.contains_key(key)),
    );
    let mut text = serde_json::to_vec(&object).expect("invariant: plain data");
    text.push(b'\n');
    text
}

fn state_word(state: State) -> &'static str {
    match state {
        State::Open => "open",
        State::Done => "done",
        State::RolledBack => "rolled-back",
    }
}

fn write_step(step: &Step) -> Value {
    let mut object = Map::new();
    let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
    put("path", json_path(step.path.as_bstr()));
    put("group", step.group.into());
    put(
        "before",
        step.before.as_ref().map_or(Value::Null, write_file),
    );
    put("after", step.after.as_ref().map_or(Value::Null, write_file));
    if let Some(agent) = &step.agent {
        put("agent", agent.as_str().into());
    }
    if let Some(proposal) = step.proposal {
        put("proposal", proposal.get().into());
    }
    let word = match &step.outcome {
        Outcome::Pending => "pending",
        Outcome::Written => "written",
        Outcome::Identical => "identical",
        Outcome::Refused(kind) => {
            put("reason", kind.as_str().into());
            "refused"
        }
        Outcome::Failed(why) => {
            put("why", why.as_str().into());
            "failed"
        }
        Outcome::RolledBack => "rolled-back",
        Outcome::Overtaken => "overtaken",
    };
    put("outcome", word.into());
    if let Some(undone) = step.undone {
        put("undone", undone.get().into());
    }
    let known = object.clone();
    object.extend(
        step.extra
            .clone()
            .into_iter()
            .filter(|(key, _)| !known.contains_key(key)),
    );
    object.into()
}

fn write_file(file: &FileState) -> Value {
    let mut object = Map::new();
    object.insert("mode".to_owned(), format!("{:06o}", file.mode).into());
    object.insert("blob".to_owned(), file.id.to_string().into());
    if let Some(bits) = file.permissions {
        object.insert("permissions".to_owned(), format!("{bits:04o}").into());
    }
    object.into()
}

fn write_folder(folder: &Folder) -> Value {
    let mut object = Map::new();
    object.insert("path".to_owned(), json_path(folder.path.as_bstr()));
    object.insert("existed".to_owned(), folder.existed.into());
    object.insert("prune".to_owned(), folder.prune.into());
    if let Some(bits) = folder.permissions {
        object.insert("permissions".to_owned(), format!("{bits:04o}").into());
    }
    object.into()
}

/// Reads `entry.json`; the error says what is wrong with it.
pub(super) fn read(text: &[u8], commit: ObjectId, format: ObjectFormat) -> Result<Entry, String> {
    let value: Value = serde_json::from_slice(text).map_err(|error| error.to_string())?;
    let Value::Object(mut object) = value else {
        return Err("it is no object".to_owned());
    };
    match take(&mut object, "format")?.as_u64() {
        Some(FORMAT) => {}
        Some(higher) if higher > FORMAT => {
            return Err(format!(
                "its format is {higher}, this git-vws reads up to {FORMAT}"
            ));
        }
        _ => return Err("its format is no number".to_owned()),
    }
    let id = journal_id(&take(&mut object, "id")?)?;
    let kind = match text_of(&take(&mut object, "kind")?)? {
        "accept" => Kind::Accept,
        "undo" => Kind::Undo {
            of: journal_id(&take(&mut object, "of")?)?,
        },
        other => return Err(format!("its kind is '{other}'")),
    };
    let state = match text_of(&take(&mut object, "state")?)? {
        "open" => State::Open,
        "done" => State::Done,
        "rolled-back" => State::RolledBack,
        other => return Err(format!("its state is '{other}'")),
    };
    let worktree = match take(&mut object, "worktree")? {
        Value::Null => None,
        name => Some(path_from_json(&name).ok_or("its worktree is no name")?),
    };
    let time = take(&mut object, "time")?
        .as_i64()
        .ok_or("its time is no number")?;
    let steps = list(take(&mut object, "steps")?)?;
    let folders = list(object.remove("folders").unwrap_or(Value::Array(Vec::new())))?;
    Ok(Entry {
        id,
        commit,
        kind,
        state,
        worktree,
        time,
        steps: steps
            .into_iter()
            .map(|step| read_step(step, format))
            .collect::<Result<_, _>>()?,
        folders: folders
            .into_iter()
            .map(read_folder)
            .collect::<Result<_, _>>()?,
        extra: object,
    })
}

fn read_step(mut object: Map<String, Value>, format: ObjectFormat) -> Result<Step, String> {
    let path = path_from_json(&take(&mut object, "path")?).ok_or("a path is no path")?;
    let path = RepoPath::new(path).map_err(|error| error.to_string())?;
    let group = take(&mut object, "group")?
        .as_u64()
        .and_then(|n| u32::try_from(n).ok());
    let before = read_file(take(&mut object, "before")?, format)?;
    let after = read_file(take(&mut object, "after")?, format)?;
    let agent = match object.remove("agent") {
        None => None,
        Some(agent) => Some(AgentId::new(text_of(&agent)?).map_err(|error| error.to_string())?),
    };
    let proposal = object
        .remove("proposal")
        .and_then(|n| n.as_u64())
        .and_then(Revision::new);
    let outcome = match text_of(&take(&mut object, "outcome")?)? {
        "pending" => Outcome::Pending,
        "written" => Outcome::Written,
        "identical" => Outcome::Identical,
        "refused" => {
            let reason = take(&mut object, "reason")?;
            let kind = text_of(&reason)?.parse();
            Outcome::Refused(kind.map_err(|error: crate::model::UnknownRefusal| error.to_string())?)
        }
        "failed" => Outcome::Failed(text_of(&take(&mut object, "why")?)?.to_owned()),
        "rolled-back" => Outcome::RolledBack,
        "overtaken" => Outcome::Overtaken,
        other => return Err(format!("the outcome of a step is '{other}'")),
    };
    let undone = object
        .remove("undone")
        .map(|id| journal_id(&id))
        .transpose()?;
    Ok(Step {
        path,
        group: group.ok_or("a group is no number")?,
        before,
        after,
        agent,
        proposal,
        outcome,
        undone,
        extra: object,
    })
}

fn read_file(value: Value, format: ObjectFormat) -> Result<Option<FileState>, String> {
    let Value::Object(mut object) = value else {
        return match value {
            Value::Null => Ok(None),
            _ => Err("a file is no object".to_owned()),
        };
    };
    let mode = octal(&take(&mut object, "mode")?)?;
    if !matches!(mode, 0o100_644 | 0o100_755 | 0o120_000) {
        return Err(format!("a file has the mode {mode:o}"));
    }
    let blob = take(&mut object, "blob")?;
    let id = ObjectId::from_str_ext(text_of(&blob)?, format).map_err(|_| "a blob is no id")?;
    let permissions = object.get("permissions").map(octal).transpose()?;
    Ok(Some(FileState {
        mode,
        id,
        permissions,
    }))
}

fn read_folder(mut object: Map<String, Value>) -> Result<Folder, String> {
    let path = path_from_json(&take(&mut object, "path")?).ok_or("a folder is no path")?;
    RepoPath::new(&path).map_err(|error| error.to_string())?;
    let flag = |value: Option<Value>| value.and_then(|value| value.as_bool());
    Ok(Folder {
        path,
        existed: flag(object.remove("existed")).ok_or("a folder is not known to have existed")?,
        permissions: object.get("permissions").map(octal).transpose()?,
        prune: flag(object.remove("prune")).unwrap_or(false),
    })
}

fn take(object: &mut Map<String, Value>, key: &str) -> Result<Value, String> {
    object
        .remove(key)
        .ok_or_else(|| format!("it has no '{key}'"))
}

fn list(value: Value) -> Result<Vec<Map<String, Value>>, String> {
    let Value::Array(items) = value else {
        return Err("a list is no list".to_owned());
    };
    let objects = items.into_iter().map(|item| match item {
        Value::Object(object) => Ok(object),
        _ => Err("a list holds what is no object".to_owned()),
    });
    objects.collect()
}

fn text_of(value: &Value) -> Result<&str, String> {
    value.as_str().ok_or_else(|| "a text is no text".to_owned())
}

fn octal(value: &Value) -> Result<u32, String> {
    u32::from_str_radix(text_of(value)?, 8).map_err(|_| "a mode is no octal number".to_owned())
}

fn journal_id(value: &Value) -> Result<JournalId, String> {
    let id = value.as_u64().and_then(JournalId::new);
    id.ok_or_else(|| "an id is no number above 0".to_owned())
}
