//! Refs through `git` itself: reftable, and repositories whose `reference-transaction` hook has a say.

use std::collections::BTreeMap;

use super::{Expect, RefUpdate, Refs};
use crate::git::{Error, ObjectId, Result};

impl Refs<'_> {
    pub(super) fn listed_by_git(&self, pattern: &str) -> Result<BTreeMap<String, ObjectId>> {
        let out = self
            .repository
            .git()
            .args(["for-each-ref", "--format=%(objectname) %(refname)"])
            .arg(pattern.trim_end_matches('/'))
            .output()?;
        let mut found = BTreeMap::new();
        for line in String::from_utf8_lossy(&out).lines() {
            if let Some((id, name)) = line.split_once(' ')
                && let Ok(id) = ObjectId::from_str_ext(id, self.repository.format())
            {
                found.insert(name.to_owned(), id);
            }
        }
        Ok(found)
    }

    pub(super) fn apply_by_git(&self, updates: &[RefUpdate]) -> Result<()> {
        let zero = "0".repeat(crate::git::hex_len(self.repository.format()));
        let mut input = Vec::from(*b"start\0");
        for update in updates {
            let old = match update.expect {
                Expect::Anything => String::new(),
                Expect::Missing => zero.clone(),
                Expect::Is(id) => id.to_string(),
            };
            let line = match update.new {
                Some(new) => format!("update {}\0{new}\0{old}\0", update.name),
                None => format!("delete {}\0{old}\0", update.name),
            };
            input.extend_from_slice(line.as_bytes());
        }
        input.extend_from_slice(b"prepare\0commit\0");
        let mut command = self
            .repository
            .git()
            .with_user_hooks()
            .in_our_name()
            .args(["-c", "core.fsync=committed,reference"])
            .args(["update-ref", "--stdin", "-z"]);
        if let Some(message) = updates.iter().rev().find_map(|u| u.log.as_deref()) {
            command = command.args(["--create-reflog", "-m", message]);
        }
        let done = command.stdin(input).run()?;
        if done.success() {
            return Ok(());
        }
        // What went wrong is told from the state, not from git's words.
        for update in updates {
            let found = self.find(&update.name)?;
            let expected = match update.expect {
                Expect::Anything => continue,
                Expect::Missing => None,
                Expect::Is(id) => Some(id),
            };
            if found != expected {
                return Err(Error::Moved {
                    name: update.name.clone(),
                    expected,
                    found,
                });
            }
        }
        let name = updates[updates.len() - 1].name.clone();
        if self.lock_in_the_way(&name).exists() {
            return Err(Error::Locked {
                path: self.lock_in_the_way(&name),
            });
        }
        let why = done.last_line();
        Err(if self.repository.has_transaction_hook()? {
            Error::Hook { name, why }
        } else {
            Error::Ref {
                action: "update",
                name,
                why,
            }
        })
    }
}
