//! Carries out calls of tools over the library's calls.

use bstr::ByteSlice;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{Fault, INVALID_PARAMS, tools};
use crate::git::Repository;
use crate::git::tree::Change;
use crate::integrate;
use crate::layout;
use crate::model::json::{decode_base64, encode_base64};
use crate::model::{AgentId, Refusal, RepoPath};
use crate::output::{Form, Printer, Record, report};
use crate::workspace::{self, Edit, From, NewWorkspace, Published, Side, Store, Terms, Workspace};

/// How often an edit is made anew when another writer was faster.
const ATTEMPTS: usize = 5;

/// Why a tool did not do what it was asked to; the model is told.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
    #[error(transparent)]
    Layout(#[from] layout::Error),
    #[error(transparent)]
    Integrate(#[from] integrate::Error),
    #[error("{0}")]
    Refused(String),
}

impl Trouble {
    fn kind(&self) -> Option<Refusal> {
        match self {
            Trouble::Workspace(error) => error.refusal(),
            Trouble::Layout(error) => error.refusal(),
            Trouble::Integrate(error) => error.refusal(),
            Trouble::Refused(_) => None,
        }
    }
}

impl std::convert::From<crate::git::Error> for Trouble {
    fn from(error: crate::git::Error) -> Self {
        workspace::Error::from(error).into()
    }
}

impl std::convert::From<crate::model::PathError> for Trouble {
    fn from(error: crate::model::PathError) -> Self {
        workspace::Error::from(error).into()
    }
}

type Outcome = Result<Value, Trouble>;

/// One workspace, served.
pub(super) struct Server<'r, 'c> {
    repository: &'r Repository,
    agent: &'c AgentId,
    clock: &'c dyn Fn() -> i64,
}

impl<'r, 'c> Server<'r, 'c> {
    pub(super) fn new(
        repository: &'r Repository,
        agent: &'c AgentId,
        clock: &'c dyn Fn() -> i64,
    ) -> Self {
        Server {
            repository,
            agent,
            clock,
        }
    }

    /// Answers `tools/call`.
    pub(super) fn call(&self, params: &Value) -> Result<Value, Fault> {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| (INVALID_PARAMS, "missing 'name'".to_owned()))?;
        let none = json!({});
        let arguments = params.get("arguments").unwrap_or(&none);
        let outcome = match name {
            "create" => self.create(&read(name, arguments)?),
            "read" => self.read(&read(name, arguments)?),
            "write" => self.write(read(name, arguments)?),
            "edit" => self.edit(&read(name, arguments)?),
            "delete" => self.delete(&read(name, arguments)?),
            "list" => self.list(&read(name, arguments)?),
            "diff" => self.diff(&read(name, arguments)?),
            "propose" => self.propose(&read(name, arguments)?),
            _ => return Err((INVALID_PARAMS, format!("there is no tool '{name}'"))),
        };
        Ok(outcome.unwrap_or_else(|trouble| {
            let kind = trouble.kind();
            let kind = kind.map(|kind| format!(" [{kind}]")).unwrap_or_default();
            let mut result = text(&format!("{trouble}{kind}"));
            result["isError"] = true.into();
            result
        }))
    }

    fn store(&self) -> Store<'r> {
        layout::store(self.repository, (self.clock)())
    }

    /// The workspace with what tools did in its directory, if one is open; made where it is missing.
    fn workspace(&self, store: &Store<'_>) -> Result<Workspace, Trouble> {
        if store.find(self.agent)?.is_none() {
            self.make(store, From::WorkTree)?;
        }
        Ok(layout::import(store, self.agent)?)
    }

    fn make(&self, store: &Store<'_>, from: From) -> Result<workspace::Created, Trouble> {
        let new = NewWorkspace {
            from,
            mode: store.form(None)?.mode,
            read_only: false,
            session: None,
        };
        Ok(store.create(self.agent, &new)?)
    }

    fn create(&self, wanted: &tools::Create) -> Outcome {
        let from = match &wanted.base {
            Some(base) => From::Commit(base.clone()),
            None => From::WorkTree,
        };
        let created = self.make(&self.store(), from)?;
        let record = object(&report::created(&created))?;
        let said = format!(
            "workspace '{}' is at revision {}",
            self.agent,
            created.workspace.revision()
        );
        Ok(with(text(&said), record))
    }

    fn read(&self, wanted: &tools::Read) -> Outcome {
        let path = RepoPath::new(&wanted.path)?;
        let store = self.store();
        let workspace = self.workspace(&store)?;
        let side = if wanted.base {
            Side::Base
        } else {
            Side::Overlay
        };
        let bytes = store.read(&workspace, side, &path)?;
        Ok(match bytes.to_str() {
            Ok(content) => text(content),
            Err(_) => json!({ "content": [{
                "type": "resource",
                "resource": {
                    "uri": format!("vws:///{}/{path}", self.agent),
                    "mimeType": "application/octet-stream",
                    "blob": encode_base64(&bytes),
                },
            }] }),
        })
    }

    fn write(&self, wanted: tools::Write) -> Outcome {
        let bytes = match wanted.encoding {
            tools::Encoding::Utf8 => wanted.content.into_bytes(),
            tools::Encoding::Base64 => decode_base64(wanted.content.as_bytes())
                .ok_or_else(|| Trouble::Refused("the content is not base64".to_owned()))?,
        };
        let edit = Edit::Write {
            path: RepoPath::new(&wanted.path)?,
            bytes,
            executable: wanted.executable,
        };
        let store = self.store();
        self.workspace(&store)?;
        published(&store.edit(self.agent, Terms::default(), &[edit])?)
    }

    /// Reads, replaces, writes on the condition that nobody wrote meanwhile; else once more.
    fn edit(&self, wanted: &tools::Edit) -> Outcome {
        let path = RepoPath::new(&wanted.path)?;
        let mut left = ATTEMPTS;
        loop {
            let store = self.store();
            let workspace = self.workspace(&store)?;
            let before = store.read(&workspace, Side::Overlay, &path)?;
            let edit = Edit::Write {
                path: path.clone(),
                bytes: replace(&before, wanted)?,
                executable: None,
            };
            let terms = Terms {
                expect: Some(workspace.revision()),
                ..Terms::default()
            };
            left -= 1;
            match store.edit(self.agent, terms, &[edit]) {
                Err(error) if error.refusal() == Some(Refusal::Stale) && left > 0 => {}
                done => return published(&done?),
            }
        }
    }

    fn delete(&self, wanted: &tools::Delete) -> Outcome {
        let edit = Edit::Delete {
            path: folder(&wanted.path)?,
            recursive: wanted.recursive,
        };
        let store = self.store();
        self.workspace(&store)?;
        published(&store.edit(self.agent, Terms::default(), &[edit])?)
    }

    fn list(&self, wanted: &tools::List) -> Outcome {
        let under = wanted.path.as_deref().and_then(below_top);
        let under = under.map(folder).transpose()?;
        let store = self.store();
        let workspace = self.workspace(&store)?;
        let found = store.ls(&workspace, Side::Overlay, under.as_ref(), wanted.recursive)?;
        let mut lines = String::new();
        let mut entries = Vec::with_capacity(found.len());
        for (path, entry) in &found {
            let fields = report::entry_fields(entry);
            lines.push_str(&format!("{fields}\t{path}\n"));
            entries.push(object(&report::entry(path, entry))?);
        }
        Ok(with(text(&lines), json!({ "entries": entries })))
    }

    fn diff(&self, wanted: &tools::Diff) -> Outcome {
        let under = wanted.path.as_deref().and_then(below_top);
        let under = under.map(folder).transpose()?;
        let store = self.store();
        let workspace = self.workspace(&store)?;
        let is_asked = |change: &Change| match &under {
            None => true,
            Some(under) => RepoPath::from_tree(&change.path)
                .is_ok_and(|path| path == *under || path.starts_with_dir(under.as_bstr())),
        };
        let mut changes = store.diff(&workspace)?;
        changes.retain(is_asked);
        let objects = self.repository.objects()?;
        let patch = workspace::patch(&|id| Ok(objects.blob(id)?), &changes, true)?;
        Ok(text(&patch.to_str_lossy()))
    }

    fn propose(&self, wanted: &tools::Propose) -> Outcome {
        let store = self.store();
        self.workspace(&store)?;
        let message = wanted.message.as_deref().map(Into::into);
        let proposal = integrate::propose(&store, self.agent, message)?;
        let mut lines = String::new();
        let mut changes = Vec::with_capacity(proposal.changes.len());
        for change in &proposal.changes {
            let fields = report::proposed_fields(&proposal, change);
            lines.push_str(&format!("{fields}\t{}\n", change.path));
            changes.push(object(&report::proposed(&proposal, change))?);
        }
        if changes.is_empty() {
            lines.push_str("there is nothing to propose\n");
        }
        Ok(with(text(&lines), json!({ "changes": changes })))
    }
}

/// Reads the arguments of a tool.
fn read<T: DeserializeOwned>(tool: &str, arguments: &Value) -> Result<T, Fault> {
    let known = T::deserialize(arguments);
    known.map_err(|error| (INVALID_PARAMS, format!("arguments of '{tool}': {error}")))
}

/// A path unless it is one of the ways to write the top.
fn below_top(path: &str) -> Option<&str> {
    Some(path).filter(|path| !["", ".", "./", "/"].contains(path))
}

/// A path that may be a folder, and may be written as one.
fn folder(path: &str) -> Result<RepoPath, Trouble> {
    let name = path.strip_suffix('/').filter(|name| !name.is_empty());
    Ok(RepoPath::new(name.unwrap_or(path))?)
}

fn replace(before: &[u8], wanted: &tools::Edit) -> Result<Vec<u8>, Trouble> {
    let old = wanted.old.as_bytes();
    let refused = |what: String| Err(Trouble::Refused(what));
    let path = &wanted.path;
    if old.is_empty() {
        return refused("the old text is empty; 'write' writes a whole file".to_owned());
    }
    match before.find_iter(old).count() {
        0 => refused(format!("'{path}' does not hold the old text")),
        count if count > 1 && !wanted.all => refused(format!(
            "'{path}' holds the old text {count} times; give more of it, or set 'all'"
        )),
        _ => Ok(before.replace(old, wanted.new.as_bytes())),
    }
}

fn published(published: &Published) -> Outcome {
    let revision = published.workspace.revision();
    let said = match published.changed {
        true => format!("revision {revision}"),
        false => format!("nothing changed, revision {revision}"),
    };
    Ok(with(text(&said), object(&report::published(published))?))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn with(mut result: Value, structured: Value) -> Value {
    result["structuredContent"] = structured;
    result
}

/// A record as the object that `--json` prints.
fn object(record: &Record) -> Outcome {
    let mut bytes = Vec::new();
    let mut printer = Printer::new(&mut bytes, Form::Json, true);
    let printed = printer.record(record).and_then(|()| printer.finish());
    printed.map_err(|error| Trouble::Refused(error.to_string()))?;
    serde_json::from_slice(&bytes).map_err(|error| Trouble::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tools_take_what_they_list_and_nothing_else() {
        for tool in tools::list().as_array().unwrap() {
            let name = tool["name"].as_str().unwrap();
            let schema = &tool["inputSchema"];
            let sample = |property: &Value| match property["type"].as_str().unwrap() {
                "boolean" => json!(true),
                _ if property["enum"].is_array() => property["enum"][0].clone(),
                _ => json!("x"),
            };
            let properties = schema["properties"].as_object().unwrap();
            let all: serde_json::Map<_, _> = properties
                .iter()
                .map(|(key, property)| (key.clone(), sample(property)))
                .collect();
            let takes = |arguments: Value| match name {
                "create" => read::<tools::Create>(name, &arguments).is_ok(),
                "read" => read::<tools::Read>(name, &arguments).is_ok(),
                "write" => read::<tools::Write>(name, &arguments).is_ok(),
                "edit" => read::<tools::Edit>(name, &arguments).is_ok(),
                "delete" => read::<tools::Delete>(name, &arguments).is_ok(),
                "list" => read::<tools::List>(name, &arguments).is_ok(),
                "diff" => read::<tools::Diff>(name, &arguments).is_ok(),
                "propose" => read::<tools::Propose>(name, &arguments).is_ok(),
                _ => panic!("{name} is listed and not served"),
            };
            assert!(takes(all.clone().into()), "{name}");
            let mut more = all.clone();
            more.insert("unknown".to_owned(), json!("x"));
            assert!(!takes(more.into()), "{name}");
            let required: Vec<_> = schema["required"].as_array().unwrap().iter().collect();
            for (key, _) in &all {
                let mut fewer = all.clone();
                fewer.remove(key);
                let needed = required.iter().any(|one| *one == key);
                assert_eq!(takes(fewer.into()), !needed, "{name} without {key}");
            }
        }
    }

    #[test]
    fn an_edit_replaces_what_is_there_once() {
        let edit = |old: &str, all| tools::Edit {
            path: "f".to_owned(),
            old: old.to_owned(),
            new: "N".to_owned(),
            all,
        };
        let ok = |old, all| replace(b"a b\xff a", &edit(old, all)).ok();
        assert_eq!(ok("b", false).unwrap(), b"a N\xff a");
        assert_eq!(ok("a", true).unwrap(), b"N b\xff N");
        assert_eq!(ok("a", false), None);
        assert_eq!(ok("c", true), None);
        assert_eq!(ok("", true), None);
    }
}
