//! A record: attributes with names, in the order in which they are printed.
//!
//! One description serves every form. A line has the key in kebab case, JSON the same key in camel
//! case; what may occur more than once is one line each there and an array here. In JSON every key
//! of a record is always there (`false`, `null` or `[]` where lines leave it out), so that a reader
//! can tell "no" from "older version".

use bstr::{BStr, BString, ByteSlice, ByteVec};
use serde_json::Map;

use super::json::json_path;
use super::quote::quote_c;
use crate::git::ObjectId;
use crate::model::{AgentId, RepoPath, Revision};

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text; quoted like a path where it holds what could break a line.
    Text(String),
    /// A number.
    Number(u64),
    /// A path.
    Path(BString),
    /// Several values that belong together, each with its JSON key. In a line they are separated by
    /// a blank, so only the last may hold blanks.
    Group(Vec<(&'static str, Value)>),
}

#[derive(Clone, Debug)]
enum Content {
    Flag(bool),
    One(Option<Value>),
    List(&'static str, Vec<Value>),
}

/// Attributes in order.
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct Record {
    fields: Vec<(&'static str, Content)>,
}

impl Record {
    /// A record without attributes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an attribute.
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((key, Content::One(Some(value.into()))));
        self
    }

    /// Adds an attribute that may be absent: no line, `null` in JSON.
    pub fn maybe(mut self, key: &'static str, value: Option<impl Into<Value>>) -> Self {
        self.fields.push((key, Content::One(value.map(Into::into))));
        self
    }

    /// Adds a yes or no: the bare key where it is yes, a truth value in JSON.
    pub fn flag(mut self, key: &'static str, set: bool) -> Self {
        self.fields.push((key, Content::Flag(set)));
        self
    }

    /// Adds a list: a line with `key` for each value, an array named `plural` in JSON.
    pub fn list<V: Into<Value>>(
        mut self,
        key: &'static str,
        plural: &'static str,
        values: impl IntoIterator<Item = V>,
    ) -> Self {
        let values = values.into_iter().map(Into::into).collect();
        self.fields.push((key, Content::List(plural, values)));
        self
    }

    /// The record's lines, without their ends. Values are raw unless `quote_path` is given, which
    /// is `core.quotePath`.
    pub(super) fn lines(&self, quote_path: Option<bool>) -> Vec<BString> {
        let mut lines = Vec::with_capacity(self.fields.len());
        let mut push = |key: &str, value: Option<&Value>| {
            let mut line = BString::from(key);
            if let Some(value) = value {
                line.push(b' ');
                value.render(quote_path, &mut line);
            }
            lines.push(line);
        };
        for (key, content) in &self.fields {
            match content {
                Content::Flag(true) => push(key, None),
                Content::Flag(false) | Content::One(None) => {}
                Content::One(Some(value)) => push(key, Some(value)),
                Content::List(_, values) => values.iter().for_each(|v| push(key, Some(v))),
            }
        }
        lines
    }

    /// The record as a JSON object, `"v":1` first.
    pub(super) fn to_json(&self) -> serde_json::Value {
        let mut object = Map::new();
        object.insert("v".to_owned(), 1.into());
        for (key, content) in &self.fields {
            let (name, value) = match content {
                Content::Flag(set) => (*key, (*set).into()),
                Content::One(value) => (*key, value.as_ref().map(Value::to_json).into()),
                Content::List(plural, values) => {
                    (*plural, values.iter().map(Value::to_json).collect())
                }
            };
            object.insert(camel_case(name), value);
        }
        object.into()
    }
}

impl Value {
    fn render(&self, quote_path: Option<bool>, line: &mut BString) {
        let mut push = |bytes: &BStr| match quote_path {
            None => line.push_str(bytes),
            Some(full) => line.push_str(quote_c(bytes, full).as_bytes()),
        };
        match self {
            Value::Text(text) => push(text.as_str().into()),
            Value::Path(path) => push(path.as_bstr()),
            Value::Number(number) => line.push_str(number.to_string()),
            Value::Group(values) => {
                for (at, (_, value)) in values.iter().enumerate() {
                    if at > 0 {
                        line.push(b' ');
                    }
                    value.render(quote_path, line);
                }
            }
        }
    }

    fn to_json(&self) -> serde_json::Value {
        match self {
            Value::Text(text) => text.as_str().into(),
            Value::Number(number) => (*number).into(),
            Value::Path(path) => json_path(path.as_bstr()),
            Value::Group(values) => values
                .iter()
                .map(|(key, value)| (camel_case(key), value.to_json()))
                .collect::<Map<_, _>>()
                .into(),
        }
    }
}

/// Turns `left-out` into `leftOut`.
fn camel_case(key: &str) -> String {
    let mut name = String::with_capacity(key.len());
    for (at, part) in key.split('-').enumerate() {
        match part.chars().next() {
            Some(first) if at > 0 => {
                name.push(first.to_ascii_uppercase());
                name.push_str(&part[first.len_utf8()..]);
            }
            _ => name.push_str(part),
        }
    }
    name
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text)
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Number(number)
    }
}

impl From<usize> for Value {
    fn from(number: usize) -> Self {
        Value::Number(number as u64)
    }
}

impl From<Revision> for Value {
    fn from(revision: Revision) -> Self {
        Value::Number(revision.get())
    }
}

impl From<ObjectId> for Value {
    fn from(id: ObjectId) -> Self {
        Value::Text(id.to_string())
    }
}

impl From<&AgentId> for Value {
    fn from(agent: &AgentId) -> Self {
        Value::Text(agent.to_string())
    }
}

impl From<&RepoPath> for Value {
    fn from(path: &RepoPath) -> Self {
        Value::Path(path.as_bstr().to_owned())
    }
}

impl From<BString> for Value {
    fn from(path: BString) -> Self {
        Value::Path(path)
    }
}

impl From<&BString> for Value {
    fn from(path: &BString) -> Self {
        Value::Path(path.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        let left_out = |kind: &str, path: &[u8]| {
            Value::Group(vec![
                ("kind", kind.into()),
                ("path", BString::from(path).into()),
            ])
        };
        Record::new()
            .with("agent", "a")
            .with("path-count", 2_u64)
            .flag("read-only", true)
            .flag("edited", false)
            .maybe("session", Some("two\nlines"))
            .maybe("branch", None::<&str>)
            .list("dirty", "dirty", [BString::from("d/\u{fc} x")])
            .list("left-out", "left-out", [left_out("too_large", b"b\xff g")])
            .list("snap", "snaps", Vec::<u64>::new())
    }

    #[test]
    fn lines_leave_out_what_is_not_there() {
        assert_eq!(
            sample().lines(Some(true)),
            [
                "agent a",
                "path-count 2",
                "read-only",
                r#"session "two\nlines""#,
                r#"dirty "d/\303\274 x""#,
                r#"left-out too_large "b\377 g""#,
            ]
        );
        let raw = sample().lines(None);
        assert_eq!(raw[3], "session two\nlines");
        assert_eq!(raw[5], &b"left-out too_large b\xff g"[..]);
    }

    #[test]
    fn json_has_every_key() {
        assert_eq!(
            sample().to_json().to_string(),
            concat!(
                r#"{"v":1,"agent":"a","pathCount":2,"readOnly":true,"edited":false,"#,
                r#""session":"two\nlines","branch":null,"dirty":["d/ü x"],"#,
                r#""leftOut":[{"kind":"too_large","path":{"bytes":"Yv8gZw=="}}],"snaps":[]}"#
            )
        );
    }
}
