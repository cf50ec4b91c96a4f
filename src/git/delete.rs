//! Deleting refs in the files back end, as git does it and libgit2 does not.
//!
//! libgit2 locks the packed refs only when it sees the ref in them. A `git pack-refs` that has read the
//! ref's file by then writes it to the packed refs afterwards, and the deleted ref is back. So the lock on
//! the packed refs is taken first and always, then the ref's own; the packed line goes before the file
//! does, so that a death in between leaves the ref as it was.
//!
//! Deletions that follow each other are carried out together: all locks are taken and all expectations
//! looked at before the first ref goes, then they go in the given order.
//!
//! No folder is flushed: what a power failure brings back is a ref that nobody needed, and its object with
//! it, for whoever collects objects flushes more than that. Git does not flush deletions either.
//!
//! Our locks are hard links to the mark of the steps under way (see [`super::marks`]): complete with their
//! content from the first moment, and known as a dead process's by their inode.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use bstr::ByteSlice;

use super::held::{Failed, Held, failed};
use super::marks::Mark;
use super::{RefUpdate, Refs, fault};

impl Refs<'_> {
    /// Deletes refs that hold what is expected of them, with their reflogs, in the given order; nothing
    /// goes where one of them does not hold it. The first `done` of the list are gone already, and it
    /// grows with each that goes, for the next try. The error's code is one of those that libgit2
    /// gives: `Locked`, `Modified`, `NotFound`.
    pub(super) fn delete(
        &self,
        list: &[RefUpdate],
        done: &mut usize,
        mark: Option<&Mark>,
    ) -> Result<(), Failed> {
        let root = self.repository().common_dir();
        let start = *done;
        let last = list.len() - 1;
        let packed = Held::take(root.join("packed-refs.lock"), mark)
            .map_err(|error| (start.min(last), error))?;
        let mut own = Vec::with_capacity(list.len() - start);
        for (at, update) in list.iter().enumerate().skip(start) {
            let lock = self.path_of(&format!("{}.lock", update.name));
            own.push(Held::take(lock, mark).map_err(|error| (at, error))?);
        }
        fault::point("delete-locked");
        for (at, update) in list.iter().enumerate().skip(start) {
            self.check(update).map_err(|error| (at, error))?;
        }
        // Nobody else adds or removes a file under the locks.
        let loose: Vec<bool> = list
            .iter()
            .map(|update| self.path_of(&update.name).symlink_metadata().is_ok())
            .collect();
        // As long as its file is there, the packed line of a ref says nothing.
        let mut lines: BTreeSet<&[u8]> = (start..list.len())
            .filter(|at| loose[*at])
            .map(|at| list[at].name.as_bytes())
            .collect();
        while *done < list.len() {
            let packed_only = (*done..list.len()).take_while(|at| !loose[*at]);
            let gone = packed_only.clone().count();
            lines.extend(packed_only.map(|at| list[at].name.as_bytes()));
            without_packed(root, &lines)
                .map_err(|e| (*done, failed(&root.join("packed-refs"), &e)))?;
            lines.clear();
            fault::point("delete-unpacked");
            *done += gone;
            while *done < list.len() && loose[*done] {
                let file = self.path_of(&list[*done].name);
                remove(&file).map_err(|error| (*done, error))?;
                fault::point("delete-gone");
                *done += 1;
            }
        }
        for update in list {
            remove(&root.join("logs").join(&update.name)).map_err(|error| (last, error))?;
        }
        drop(own);
        drop(packed);
        prune(root, list.iter().map(|update| update.name.as_str()));
        Ok(())
    }
}

/// Takes refs out of the packed refs, whose lock the caller holds.
fn without_packed(root: &Path, names: &BTreeSet<&[u8]>) -> io::Result<()> {
    if names.is_empty() {
        return Ok(());
    }
    let path = root.join("packed-refs");
    let old = match fs::read(&path) {
        Ok(old) => old,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut text = Vec::with_capacity(old.len());
    let mut dropping = false;
    for line in old.lines_with_terminator() {
        // `<id> <name>`, and what a tag peels to in a line of its own after it.
        if line.starts_with(b"^") && dropping {
            continue;
        }
        dropping = !line.starts_with(b"#")
            && line
                .trim_ascii_end()
                .split_once_str(" ")
                .is_some_and(|(_, found)| names.contains(found));
        if !dropping {
            text.extend_from_slice(line);
        }
    }
    if text.len() == old.len() {
        return Ok(());
    }
    // Git's own name for it: under the lock nobody else writes it, and a left one is replaced.
    let new = root.join("packed-refs.new");
    let write = || {
        let mut file = File::create(&new)?;
        file.set_permissions(fs::metadata(&path)?.permissions())?;
        file.write_all(&text)?;
        file.sync_data()?;
        fault::point("delete-repacked");
        fs::rename(&new, &path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&new);
    }
    written
}

fn remove(path: &Path) -> Result<(), git2::Error> {
    match fs::remove_file(path) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            Err(failed(path, &error))
        }
        _ => Ok(()),
    }
}

/// Removes the folders of refs that are gone, and those above them, where they are empty now; but not one
/// like `refs/relo`.
fn prune<'n>(root: &Path, names: impl Iterator<Item = &'n str>) {
    let mut folders = BTreeSet::new();
    for name in names {
        let ends = name.match_indices('/').map(|(end, _)| end).skip(2);
        folders.extend(ends.map(|end| &name[..end]));
    }
    let logs = root.join("logs");
    // What is below comes first: what is above may be empty only then.
    for folder in folders.iter().rev() {
        let _ = fs::remove_dir(root.join(folder));
        let _ = fs::remove_dir(logs.join(folder));
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::git::scratch::Scratch;
    use crate::git::{Error, Expect, ObjectFormat, ObjectId};

    /// Refs of two agents: some in the packed list only, some in files only, some in both.
    fn refs(scratch: &Scratch) -> (Vec<String>, ObjectId) {
        scratch.git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let old = scratch
            .id(&["commit-tree", "-m", "old", "HEAD^{tree}"])
            .to_string();
        let id = scratch.id(&["rev-parse", "HEAD"]);
        let name = |agent: &str, what: &str| format!("refs/relo/vws/{agent}/{what}");
        let packed = [name("a", "base"), name("b", "base"), name("b", "overlay")];
        let both = [name("a", "overlay"), name("a", "snap/2")];
        for name in &packed {
            scratch.git(&["update-ref", name, &id.to_string()]);
        }
        for name in &both {
            scratch.git(&["update-ref", name, &old]);
        }
        scratch.git(&["pack-refs", "--all"]);
        let loose = [name("b", "snap/3"), name("c", "overlay")];
        for name in both.iter().chain(&loose) {
            scratch.git(&["update-ref", "--create-reflog", name, &id.to_string()]);
        }
        let all = packed.into_iter().chain(both).chain(loose);
        (all.collect(), id)
    }

    fn left(scratch: &Scratch) -> String {
        scratch.line(&["for-each-ref", "--format=%(refname)", "refs/relo"])
    }

    #[test]
    fn many_go_together_from_files_and_from_the_packed_list() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let (mut names, id) = refs(&scratch);
        let kept = names.pop().unwrap();
        let deletions = names
            .iter()
            .map(|name| RefUpdate::delete(name, Expect::Is(id)));
        let deletions: Vec<_> = deletions.collect();
        scratch.open().refs().apply(&deletions).unwrap();
        assert_eq!(left(&scratch), kept);
        let git = scratch.top().join(".git");
        let gone = [
            "refs/relo/vws/a",
            "refs/relo/vws/b",
            "logs/refs/relo/vws/a",
            "packed-refs.lock",
        ];
        assert!(gone.iter().all(|path| !git.join(path).exists()));
        assert!(git.join("logs").join(&kept).exists());
        let packed = fs::read_to_string(git.join("packed-refs")).unwrap();
        assert!(!packed.contains("relo"), "{packed}");
        assert!(scratch.succeeds(&["fsck", "--strict"]));
    }

    #[test]
    fn where_one_is_not_as_expected_all_stay() {
        let scratch = Scratch::new(ObjectFormat::Sha1);
        let (names, id) = refs(&scratch);
        let before = left(&scratch);
        let wrong = scratch.id(&["rev-parse", "HEAD^{tree}"]);
        for odd in 0..names.len() {
            let expect = |at| if at == odd { wrong } else { id };
            let deletions = names.iter().enumerate();
            let deletions: Vec<_> = deletions
                .map(|(at, name)| RefUpdate::delete(name, Expect::Is(expect(at))))
                .collect();
            match scratch.open().refs().apply(&deletions) {
                Err(Error::Moved { name, .. }) => assert_eq!(name, names[odd]),
                other => panic!("{odd}: {other:?}"),
            }
            assert_eq!(left(&scratch), before, "{odd}");
        }
        // Somebody's lock is told by its name, and nothing has gone.
        let lock = scratch
            .top()
            .join(".git")
            .join(format!("{}.lock", names[2]));
        fs::create_dir_all(lock.parent().unwrap()).unwrap();
        fs::write(&lock, "").unwrap();
        let deletions = names
            .iter()
            .map(|name| RefUpdate::delete(name, Expect::Is(id)));
        let deletions: Vec<_> = deletions.collect();
        match scratch.open().refs().apply(&deletions) {
            Err(Error::Locked { path }) => assert!(path.ends_with(format!("{}.lock", names[2]))),
            other => panic!("{other:?}"),
        }
        assert_eq!(left(&scratch), before);
        assert!(!scratch.top().join(".git/packed-refs.lock").exists());
    }
}
