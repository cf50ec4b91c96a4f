//! Change references: pointers to files that an agent changed, for a message to another agent.
//!
//! A reference carries no content and delivers nothing. It names a revision of the sender, which is
//! pinned, and some of the paths that the sender changed in it. When somebody imports from it, all
//! that is checked again against the repository: that the revision is one of the sender's, that it is
//! the one that the reference describes, and that each path is a change of the sender's. What is
//! imported is recorded in the recipient's lineage.

use std::collections::BTreeMap;

use bstr::BString;
use serde_json::{Value, json};

use super::lineage::{Origin, patch_hash};
use super::{Change, Edit, Editor, Error, Kind, Published, Result, Store, Terms, Workspace, names};
use crate::git::tree::{self, Entry};
use crate::git::{Lock, ObjectId, ObjectKind, Staging};
use crate::model::{AgentId, Refusal, RepoPath, Revision, json_path, path_from_json};

/// How many paths a reference may name.
pub const MAX_PATHS: usize = 32;
/// How long a path in a reference may be, in bytes.
pub const MAX_PATH_LENGTH: usize = 512;

/// A pointer to files that an agent changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Who changed them.
    pub sender: AgentId,
    /// The sender's branch, whether it has commits yet or not.
    pub branch: String,
    /// The commit of the revision.
    pub commit: ObjectId,
    /// The number of the revision.
    pub revision: Revision,
    /// The base that the sender started from.
    pub base: ObjectId,
    /// The paths.
    pub paths: Vec<RepoPath>,
}

/// What an import takes: the sender's version of some paths.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The paths with what they become; `None` where the sender deleted them.
    pub entries: BTreeMap<RepoPath, Option<Entry>>,
    /// Where they come from, for the lineage.
    pub(super) origins: Vec<Origin>,
}

impl Reference {
    /// The reference as one JSON object.
    pub fn to_json(&self) -> Value {
        let paths: Vec<Value> = self.paths.iter().map(|p| json_path(p.as_bstr())).collect();
        json!({
            "senderAgent": self.sender,
            "branch": self.branch,
            "commit": self.commit.to_string(),
            "revision": self.revision,
            "baseCommit": self.base.to_string(),
            "paths": paths,
        })
    }
}

impl Store<'_> {
    /// Makes a reference to paths that an agent changed, at its current revision, and pins that.
    ///
    /// # Errors
    /// [`Error::NoPath`] for a path that the agent did not change; the refusal `too_large` for more
    /// than [`MAX_PATHS`] paths or a path longer than [`MAX_PATH_LENGTH`].
    pub fn reference(&self, sender: &AgentId, paths: &[RepoPath]) -> Result<Reference> {
        check_bounds(paths)?;
        let workspace = self.load(sender)?;
        self.changes_of(&workspace, paths)?;
        let pinned = self.snap(sender, Some(workspace.revision()))?;
        Ok(Reference {
            sender: sender.clone(),
            branch: names::branch(sender),
            commit: pinned.commit,
            revision: pinned.revision(),
            base: pinned.base(),
            paths: paths.to_vec(),
        })
    }

    /// Reads a reference from its JSON object; the truth of it is for [`Store::resolve_reference`].
    ///
    /// # Errors
    /// [`Error::Invalid`] when it is none; the refusals of a path that no workspace can hold, and
    /// `too_large`.
    pub fn parse_reference(&self, text: &[u8]) -> Result<Reference> {
        let invalid = |why: &str| Error::Invalid(format!("not a change reference: {why}"));
        let value: Value =
            serde_json::from_slice(text).map_err(|error| invalid(&error.to_string()))?;
        let text = |key: &str| {
            let text = value.get(key).and_then(Value::as_str);
            text.ok_or_else(|| invalid(&format!("it has no '{key}'")))
        };
        let id = |key: &str| {
            ObjectId::from_str_ext(text(key)?, self.repository().format())
                .map_err(|_| invalid(&format!("'{key}' is no object id")))
        };
        let sender = AgentId::new(text("senderAgent")?).map_err(|e| invalid(&e.to_string()))?;
        let revision = value.get("revision").and_then(Value::as_u64);
        let listed = value.get("paths").and_then(Value::as_array);
        let mut paths = Vec::new();
        for path in listed.ok_or_else(|| invalid("it has no 'paths'"))? {
            let path = path_from_json(path).ok_or_else(|| invalid("a path makes no sense"))?;
            paths.push(RepoPath::new(path)?);
        }
        check_bounds(&paths)?;
        Ok(Reference {
            sender,
            branch: text("branch")?.to_owned(),
            commit: id("commit")?,
            revision: revision
                .and_then(Revision::new)
                .ok_or_else(|| invalid("it has no 'revision'"))?,
            base: id("baseCommit")?,
            paths,
        })
    }

    /// Checks a reference against the repository, and finds the sender's version of some of its
    /// paths.
    ///
    /// # Errors
    /// The refusal `stale` when the sender has no such revision, or it is another one than the
    /// reference describes; [`Error::NoPath`] for a path that the reference does not name or that
    /// the sender did not change.
    pub fn resolve_reference(&self, reference: &Reference, paths: &[RepoPath]) -> Result<Imported> {
        let Reference {
            sender, revision, ..
        } = reference;
        let stale = |what: &str| {
            let what = format!("the reference to revision {revision} of '{sender}' {what}");
            Error::refused(Refusal::Stale, what)
        };
        let pinned = self
            .repository()
            .refs()
            .find(&names::snap(sender, *revision))?;
        if pinned != Some(reference.commit) {
            match self.load_at(sender, *revision) {
                Ok(found) if found.commit == reference.commit => {}
                Ok(_) => return Err(stale("names another commit than that revision has")),
                Err(Error::NoWorkspace { .. } | Error::NoRevision { .. }) => {
                    return Err(stale("is out of date: there is no such revision any more"));
                }
                Err(error) => return Err(error),
            }
        }
        let workspace = self.read_revision(sender, reference.commit)?;
        if workspace.revision() != *revision {
            return Err(stale("names the commit of another revision"));
        }
        if workspace.base() != reference.base {
            return Err(stale("names another base than that revision has"));
        }
        if reference.branch != names::branch(sender) {
            return Err(stale("names a branch that is not the sender's"));
        }
        if let Some(path) = paths.iter().find(|path| !reference.paths.contains(path)) {
            return Err(Error::NoPath {
                path: path.as_bstr().to_owned(),
                place: "the reference".to_owned(),
            });
        }
        let changes = self.changes_of(&workspace, paths)?;
        let mut imported = Imported {
            entries: BTreeMap::new(),
            origins: Vec::new(),
        };
        for (path, change) in paths.iter().zip(changes) {
            let hash = patch_hash(self.repository(), &change)?;
            imported.origins.push(Origin {
                agent: sender.clone(),
                proposal: self.proposal_number(&workspace)?,
                path: change.path.clone(),
                patch_hash: hash.to_string(),
                imported: true,
            });
            imported.entries.insert(path.clone(), change.new);
        }
        Ok(imported)
    }

    /// The number that the edits of a revision are proposed with: its own, or that of the revision
    /// that was proposed where nothing was edited since; higher than those of earlier workspaces of
    /// the name.
    ///
    /// # Errors
    /// When an earlier revision cannot be read.
    pub fn proposal_number(&self, workspace: &Workspace) -> Result<Revision> {
        let Some(proposed) = workspace.meta.proposal else {
            let free = workspace.meta.former().map(Revision::next);
            return Ok(free.map_or(workspace.revision(), |free| free.max(workspace.revision())));
        };
        let mut at = workspace.clone();
        let objects = self.repository().objects()?;
        while at.revision() > proposed {
            if at.tree != workspace.tree {
                return Ok(workspace.revision());
            }
            match objects.commit(at.commit)?.parents.get(1) {
                Some(before) => at = self.read_revision(&workspace.agent, *before)?,
                None => break,
            }
        }
        let same = at.revision() == proposed && at.tree == workspace.tree;
        Ok(if same { proposed } else { workspace.revision() })
    }

    /// The highest number of a proposal under this name, of whichever workspace.
    pub(super) fn last_proposal(&self, agent: &AgentId) -> Result<Option<Revision>> {
        let prefix = format!("{}{agent}/", names::CHANGES);
        let found = self.repository().refs().list(&prefix)?;
        let numbers = found.keys().filter_map(|name| name.strip_prefix(&prefix));
        Ok(numbers.filter_map(|number| number.parse().ok()).max())
    }

    /// What an agent did to each of some paths.
    fn changes_of(&self, workspace: &Workspace, paths: &[RepoPath]) -> Result<Vec<tree::Change>> {
        let objects = self.repository().objects()?;
        let base = self.stored_base(workspace)?;
        let find = |root, path: &RepoPath| {
            let entry = tree::lookup(&objects, root, path.as_bstr())?;
            Ok::<_, Error>(entry.filter(|entry| !entry.is_tree()))
        };
        let change = |path: &RepoPath| {
            let change = tree::Change {
                path: path.as_bstr().to_owned(),
                old: find(base, path)?,
                new: find(workspace.tree, path)?,
            };
            if change.old == change.new {
                return Err(Error::NoPath {
                    path: change.path,
                    place: format!("the changes of '{}'", workspace.agent),
                });
            }
            Ok(change)
        };
        paths.iter().map(change).collect()
    }

    /// Publishes what an import takes, and adds it to the recipient's lineage. The caller holds the
    /// recipient's lock; nothing is written through a link of the recipient's.
    ///
    /// # Errors
    /// The refusals of [`Store::edit`] and [`Store::publish`].
    pub fn publish_import(
        &self,
        lock: &Lock,
        recipient: &AgentId,
        imported: &Imported,
        terms: Terms,
    ) -> Result<Published> {
        self.publish_locked(lock, recipient, terms, |workspace, staging| {
            let tree = self.import_tree(staging, workspace.tree, imported)?;
            let paths: Vec<BString> = imported
                .entries
                .keys()
                .map(|p| p.as_bstr().to_owned())
                .collect();
            let mut change = Change::new(Kind::Import, paths, tree);
            let origins = imported.origins.clone();
            let before = workspace.meta.extra.clone();
            let mut after = workspace.meta.clone();
            after.add_lineage(&origins);
            if tree == workspace.tree && after.extra == before {
                return Ok(None);
            }
            change.amend = Some(Box::new(move |meta| meta.add_lineage(&origins)));
            Ok(Some(change))
        })
    }

    /// A recipient's tree with what an import takes in it.
    ///
    /// # Errors
    /// The refusals of [`Store::edit`]; `nested_repository` for a submodule.
    pub fn import_tree(
        &self,
        staging: &mut Staging<'_>,
        tree: ObjectId,
        imported: &Imported,
    ) -> Result<ObjectId> {
        let limit = super::max_file_size(self.repository())?;
        let mut editor = Editor::new(tree, limit);
        // What goes makes room for what comes.
        let (gone, come): (Vec<_>, Vec<_>) = imported
            .entries
            .iter()
            .partition(|(_, entry)| entry.is_none());
        for (path, _) in gone {
            if tree::lookup(staging, tree, path.as_bstr())?.is_some() {
                let edit = Edit::Delete {
                    path: path.clone(),
                    recursive: false,
                };
                editor.apply(staging, &edit)?;
            }
        }
        for (path, entry) in come {
            let Some(entry) = entry else { continue };
            let path = path.clone();
            if entry.mode == tree::GITLINK {
                let what = format!("'{path}' is a submodule");
                return Err(Error::refused(Refusal::NestedRepository, what));
            }
            let bytes = staging.read(entry.id, ObjectKind::Blob)?;
            let edit = match entry.mode {
                tree::LINK => Edit::Symlink {
                    path,
                    target: bytes.into(),
                },
                mode => Edit::Write {
                    path,
                    bytes,
                    executable: Some(mode == tree::EXECUTABLE),
                },
            };
            editor.apply(staging, &edit)?;
        }
        editor.finish(staging)
    }
}

fn check_bounds(paths: &[RepoPath]) -> Result<()> {
    if paths.len() > MAX_PATHS {
        let what = format!(
            "{} paths are more than the {MAX_PATHS} of a reference",
            paths.len()
        );
        return Err(Error::refused(Refusal::TooLarge, what));
    }
    match paths
        .iter()
        .find(|path| path.as_bstr().len() > MAX_PATH_LENGTH)
    {
        None => Ok(()),
        Some(path) => {
            let what =
                format!("'{path}' is longer than the {MAX_PATH_LENGTH} bytes of a reference");
            Err(Error::refused(Refusal::TooLarge, what))
        }
    }
}
