//! The metadata of a revision: the message of its commit.
//!
//! The subject is for people who run `git log`; the body is one JSON object. Content and metadata
//! are one commit, so they cannot disagree. Fields that this version does not know survive a
//! rewrite; a higher `format` is refused by name, never guessed at.

use bstr::{BStr, BString, ByteSlice, ByteVec};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Error, Result};
use crate::git::{ObjectFormat, ObjectId};
use crate::model::{AgentId, Revision, json_path, path_from_json};

/// The metadata format that this version writes and the highest it reads.
pub const FORMAT: u64 = 1;

/// How many changed paths a revision names; beyond that only their count is kept.
const NAMED_PATHS: usize = 32;

/// What a revision did. Also the `<kind>` of its `workspace.<kind>` event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The first revision.
    Create,
    /// Files were written.
    Write,
    /// Files were deleted.
    Delete,
    /// A file or folder got another name.
    Rename,
    /// A file's executable bit changed.
    Chmod,
    /// A link was made.
    Symlink,
    /// A patch was applied.
    Apply,
    /// Several edits at once.
    Batch,
    /// The overlay went to the agent's branch.
    Commit,
    /// The base moved.
    Rebase,
    /// A directory's files were imported.
    Capture,
    /// Edits were taken back to the base.
    Discard,
    /// Files of another agent were taken over.
    Import,
    /// A change was rejected.
    Reject,
    /// An earlier revision became current again.
    Restore,
    /// Only the metadata changed.
    Note,
}

impl Kind {
    /// The word in subjects, events and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Create => "create",
            Kind::Write => "write",
            Kind::Delete => "delete",
            Kind::Rename => "rename",
            Kind::Chmod => "chmod",
            Kind::Symlink => "symlink",
            Kind::Apply => "apply",
            Kind::Batch => "batch",
            Kind::Commit => "commit",
            Kind::Rebase => "rebase",
            Kind::Capture => "capture",
            Kind::Discard => "discard",
            Kind::Import => "import",
            Kind::Reject => "reject",
            Kind::Restore => "restore",
            Kind::Note => "note",
        }
    }
}

/// How a workspace is held; it keeps the form it was made with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// A tree in the object database; a directory only while a tool needs one.
    #[default]
    Virtual,
    /// A git worktree that stays.
    Worktree,
}

impl Mode {
    /// The word in settings and records.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::Virtual => "virtual",
            Mode::Worktree => "worktree",
        }
    }
}

/// The metadata of one revision.
#[derive(Clone, Debug)]
pub struct Metadata {
    /// The workspace.
    pub agent: AgentId,
    /// The orchestrator's session, if it named one.
    pub session: Option<String>,
    /// The number of this revision.
    pub revision: Revision,
    /// What this revision did.
    pub kind: Kind,
    /// The paths it changed, the first [`NAMED_PATHS`] of them.
    pub paths: Vec<BString>,
    /// How many paths it changed.
    pub path_count: u64,
    /// The base commit.
    pub base: ObjectId,
    /// How the workspace is held.
    pub mode: Mode,
    /// Whether the workspace refuses every write.
    pub read_only: bool,
    /// The revision of the newest proposal, if there is one.
    pub proposal: Option<Revision>,
    /// Fields of later versions and of other parts, kept as they are.
    pub extra: Map<String, Value>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Stored {
    format: u64,
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    session: Option<String>,
    revision: Revision,
    kind: Kind,
    #[serde(default)]
    paths: Vec<Value>,
    #[serde(default)]
    path_count: u64,
    base: String,
    #[serde(default)]
    mode: Mode,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    read_only: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proposal: Option<Revision>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

impl Metadata {
    /// The metadata of the revision after this one: same workspace, next number, nothing changed.
    pub fn next(&self, kind: Kind, paths: &[BString]) -> Self {
        Metadata {
            revision: self.revision.next(),
            kind,
            paths: paths.iter().take(NAMED_PATHS).cloned().collect(),
            path_count: paths.len() as u64,
            ..self.clone()
        }
    }

    /// The commit message.
    pub fn to_message(&self) -> Vec<u8> {
        let stored = Stored {
            format: FORMAT,
            agent: self.agent.to_string(),
            session: self.session.clone(),
            revision: self.revision,
            kind: self.kind,
            paths: self
                .paths
                .iter()
                .take(NAMED_PATHS)
                .map(|path| json_path(path.as_bstr()))
                .collect(),
            path_count: self.path_count,
            base: self.base.to_string(),
            mode: self.mode,
            read_only: self.read_only,
            proposal: self.proposal,
            extra: self.extra.clone(),
        };
        let mut message = self.subject();
        message.push_str("\n\n");
        let body = serde_json::to_string(&stored).expect("invariant: plain data");
        message.push_str(body);
        message.push_char('\n');
        message.into()
    }

    fn subject(&self) -> BString {
        let mut line = BString::from(format!(
            "vws {} r{}: {}",
            self.agent,
            self.revision,
            self.kind.as_str()
        ));
        match (self.path_count, self.paths.first()) {
            (1, Some(path)) => {
                line.push_char(' ');
                // A subject is one line of text; the exact name is in the body.
                line.extend(
                    path.iter()
                        .map(|b| if *b < b' ' || *b == 0x7f { b'?' } else { *b }),
                );
            }
            (0, _) => {}
            (n, _) => line.push_str(format!(" {n} paths")),
        }
        line
    }

    /// Reads the metadata back from a revision's commit message.
    ///
    /// # Errors
    /// [`Error::Damaged`] when it is not one of ours or its format is higher than [`FORMAT`].
    pub fn parse(commit: ObjectId, message: &BStr, format: ObjectFormat) -> Result<Self> {
        let damaged = |why: String| Error::Damaged {
            what: format!("revision {commit}"),
            why,
        };
        let (_, body) = message
            .split_once_str("\n\n")
            .ok_or_else(|| damaged("it holds no metadata".to_owned()))?;
        let value: Value = serde_json::from_slice(body).map_err(|e| damaged(e.to_string()))?;
        let found = value.get("format").and_then(Value::as_u64);
        if found.is_some_and(|found| found > FORMAT) {
            return Err(damaged(format!(
                "its format is {}, this git-vws reads up to {FORMAT}",
                found.unwrap_or_default()
            )));
        }
        let stored: Stored = serde_json::from_value(value).map_err(|e| damaged(e.to_string()))?;
        let base = ObjectId::from_str_ext(&stored.base, format)
            .map_err(|_| damaged(format!("its base '{}' is no object id", stored.base)))?;
        Ok(Metadata {
            agent: AgentId::new(&stored.agent).map_err(|e| damaged(e.to_string()))?,
            session: stored.session,
            revision: stored.revision,
            kind: stored.kind,
            paths: stored.paths.iter().filter_map(path_from_json).collect(),
            path_count: stored.path_count,
            base,
            mode: stored.mode,
            read_only: stored.read_only,
            proposal: stored.proposal,
            extra: stored.extra,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn sample() -> Metadata {
        Metadata {
            agent: AgentId::new("a").unwrap(),
            session: Some("s1".to_owned()),
            revision: "7".parse().unwrap(),
            kind: Kind::Write,
            paths: vec!["dir/f".into(), b"\xff\n".into()],
            path_count: 2,
            base: ObjectId::from_str("0123456789012345678901234567890123456789").unwrap(),
            mode: Mode::Virtual,
            read_only: false,
            proposal: None,
            extra: Map::new(),
        }
    }

    fn back(message: &[u8]) -> Result<Metadata> {
        Metadata::parse(sample().base, message.as_bstr(), ObjectFormat::Sha1)
    }

    #[test]
    fn a_message_reads_back_as_written() {
        let message = sample().to_message();
        let read = back(&message).unwrap();
        assert_eq!(read.to_message(), message);
        assert_eq!(read.paths, sample().paths);
        assert!(message.starts_with(b"vws a r7: write 2 paths\n\n{\"format\":1,"));
    }

    #[test]
    fn unknown_fields_survive_and_a_higher_format_is_refused() {
        let message = sample().to_message();
        let text = message.to_str().unwrap();
        let newer = text.replace("\"kind\"", "\"colour\":[1,{\"x\":2}],\"kind\"");
        let read = back(newer.as_bytes()).unwrap();
        let next = read.next(Kind::Delete, &[]);
        assert!(next.to_message().contains_str("\"colour\":[1,{\"x\":2}]"));
        assert_eq!(next.revision.to_string(), "8");
        let higher = text.replace("\"format\":1", "\"format\":2");
        let refused = back(higher.as_bytes()).unwrap_err();
        assert!(refused.to_string().contains("its format is 2"), "{refused}");
    }

    #[test]
    fn a_subject_is_one_line() {
        let mut meta = sample();
        meta.paths = vec!["a\nb".into()];
        meta.path_count = 1;
        assert!(meta.to_message().starts_with(b"vws a r7: write a?b\n\n"));
    }

    #[test]
    fn what_is_not_ours_is_damaged_not_a_panic() {
        for message in ["", "x", "x\n\n", "x\n\n{}", "x\n\n{\"format\":1}"] {
            assert!(matches!(
                back(message.as_bytes()),
                Err(Error::Damaged { .. })
            ));
        }
    }
}
