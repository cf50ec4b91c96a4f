//! The tools as a client lists them, and their arguments as they are read. The two stand side by
//! side because they say the same: a test holds them together.

use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    pub(super) base: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Read {
    pub(super) path: String,
    #[serde(default)]
    pub(super) base: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Write {
    pub(super) path: String,
    pub(super) content: String,
    #[serde(default)]
    pub(super) encoding: Encoding,
    pub(super) executable: Option<bool>,
}

/// How `content` holds the bytes.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum Encoding {
    #[default]
    #[serde(rename = "utf-8")]
    Utf8,
    #[serde(rename = "base64")]
    Base64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Edit {
    pub(super) path: String,
    pub(super) old: String,
    pub(super) new: String,
    #[serde(default)]
    pub(super) all: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Delete {
    pub(super) path: String,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct List {
    pub(super) path: Option<String>,
    #[serde(default)]
    pub(super) recursive: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Diff {
    pub(super) path: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Propose {
    pub(super) message: Option<String>,
}

/// The tools.
pub(super) fn list() -> Value {
    let path = json!({ "type": "string", "description": "Path from the top, e.g. src/main.rs" });
    let text = |what: &str| json!({ "type": "string", "description": what });
    let yes = |what: &str| json!({ "type": "boolean", "description": what });
    json!([
        tool(
            "create",
            false,
            "Make the workspace, from the user's working tree as it is or from a commit. Not \
             needed before other tools: they make it from the working tree.",
            json!({ "base": text("A commit to start from instead of the working tree") }),
            &[],
        ),
        tool(
            "read",
            true,
            "Read a file.",
            json!({ "path": path, "base": yes("As it was before any change of yours") }),
            &["path"],
        ),
        tool(
            "write",
            false,
            "Write a whole file; folders are made as needed.",
            json!({
                "path": path,
                "content": text("The new content"),
                "encoding": {
                    "type": "string",
                    "enum": ["utf-8", "base64"],
                    "description": "How content holds the bytes; utf-8 if left out",
                },
                "executable": yes("Whether the file can be run; as it was if left out"),
            }),
            &["path", "content"],
        ),
        tool(
            "edit",
            false,
            "Replace text in a file. The old text must occur exactly once, unless all is true.",
            json!({
                "path": path,
                "old": text("The text to replace, exactly as it is in the file"),
                "new": text("What to put in its place"),
                "all": yes("Replace every occurrence"),
            }),
            &["path", "old", "new"],
        ),
        tool(
            "delete",
            false,
            "Delete a file, or a folder with all that is in it.",
            json!({ "path": path, "recursive": yes("Delete folders") }),
            &["path"],
        ),
        tool(
            "list",
            true,
            "List files and folders, as 'git ls-tree' does.",
            json!({
                "path": text("A folder; the top if left out"),
                "recursive": yes("List the files in folders, too"),
            }),
            &[],
        ),
        tool(
            "diff",
            true,
            "Show what you changed since the workspace was made, as a patch.",
            json!({ "path": text("Only this file or folder") }),
            &[],
        ),
        tool(
            "propose",
            false,
            "Offer all changes to the user for a decision. Call it when the work is done; it can \
             be called again after more changes.",
            json!({ "message": text("What was done, for the commit on your branch") }),
            &[],
        ),
    ])
}

fn tool(name: &str, reads: bool, description: &str, properties: Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "annotations": { "readOnlyHint": reads, "openWorldHint": false },
    })
}
