//! The packs held against Git: what we write, git must verify, list, read, collect and repack.

#![allow(clippy::unwrap_used)]

mod roll;

use super::listing::{MAGIC, ours};
use super::*;
use crate::git::scratch::Scratch;
use crate::git::{ObjectFormat, ObjectId, ObjectKind};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

const FORMATS: [ObjectFormat; 2] = [ObjectFormat::Sha1, ObjectFormat::Sha256];

/// Tests need the order of events, not the flushes.
const LAX: PackOptions = PackOptions {
    fsync: false,
    mode: None,
};

type Objects = BTreeMap<Vec<u8>, (ObjectId, ObjectKind, Vec<u8>)>;

fn noise(len: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut step = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..len).map(|_| step()).collect()
}

fn add(writer: &mut PackWriter, objects: &mut Objects, kind: ObjectKind, data: &[u8]) -> ObjectId {
    let id = writer.add(kind, data).unwrap();
    objects.insert(id.as_bytes().to_vec(), (id, kind, data.to_vec()));
    id
}

/// A commit with everything below it: blobs of many sizes, two trees, a tag.
fn history(writer: &mut PackWriter, objects: &mut Objects, salt: &str) -> ObjectId {
    let mut tree = Vec::new();
    let mut row = |mode: &str, name: &str, id: ObjectId| {
        tree.extend_from_slice(format!("{mode} {name}\0").as_bytes());
        tree.extend_from_slice(id.as_bytes());
    };
    let blob = ObjectKind::Blob;
    row("100644", "big", add(writer, objects, blob, &noise(5 << 20)));
    row("100644", "byte", add(writer, objects, blob, b"x"));
    row("100755", "empty", add(writer, objects, blob, b""));
    let text = format!("{salt} line of text\n").repeat(100_000 / (salt.len() + 14));
    row(
        "100644",
        "text",
        add(writer, objects, blob, text.as_bytes()),
    );
    let sub = tree.clone();
    let sub = add(writer, objects, ObjectKind::Tree, &sub);
    let mut top = b"40000 sub\0".to_vec();
    top.extend_from_slice(sub.as_bytes());
    let top = add(writer, objects, ObjectKind::Tree, &top);
    let who = "A U Thor <author@example.com> 1700000000 +0000";
    let commit = format!("tree {top}\nauthor {who}\ncommitter {who}\n\n{salt}\n");
    let commit = add(writer, objects, ObjectKind::Commit, commit.as_bytes());
    let tag = format!("object {commit}\ntype commit\ntag {salt}\ntagger {who}\n\n{salt}\n");
    add(writer, objects, ObjectKind::Tag, tag.as_bytes());
    commit
}

fn small(writer: &mut PackWriter, objects: &mut Objects, salt: usize) -> ObjectId {
    let text = format!("content {salt}\n");
    let blob = add(writer, objects, ObjectKind::Blob, text.as_bytes());
    let mut tree = b"100644 file\0".to_vec();
    tree.extend_from_slice(blob.as_bytes());
    let tree = add(writer, objects, ObjectKind::Tree, &tree);
    let who = "A U Thor <author@example.com> 1700000000 +0000";
    let commit = format!("tree {tree}\nauthor {who}\ncommitter {who}\n\nn {salt}\n");
    add(writer, objects, ObjectKind::Commit, commit.as_bytes())
}

/// One pack with one small commit, let go at once, and its commit.
fn publish_small(repo: &Scratch, objects: &mut Objects, salt: usize) -> ObjectId {
    let mut writer = PackWriter::new(repo.format);
    let commit = small(&mut writer, objects, salt);
    let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
    held.release().unwrap();
    commit
}

/// git lists exactly these objects, and each with this kind and content.
fn assert_git_has(repo: &Scratch, objects: &Objects) {
    let listed = repo.line(&["cat-file", "--batch-check", "--batch-all-objects"]);
    let expected: Vec<String> = objects
        .values()
        .map(|(id, kind, data)| format!("{id} {kind} {}", data.len()))
        .collect();
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    let input: String = objects.values().map(|o| format!("{}\n", o.0)).collect();
    let mut wanted = Vec::new();
    for (id, kind, data) in objects.values() {
        wanted.extend_from_slice(format!("{id} {kind} {}\n", data.len()).as_bytes());
        wanted.extend_from_slice(data);
        wanted.push(b'\n');
    }
    assert!(repo.git_with(&["cat-file", "--batch"], input.as_bytes()) == wanted);
}

fn assert_healthy(repo: &Scratch) {
    repo.git(&["fsck", "--full", "--strict", "--no-progress"]);
    let count = repo.line(&["count-objects", "-v"]);
    assert!(count.contains("\ngarbage: 0\n"), "{count}");
}

fn packs(repo: &Scratch) -> Vec<String> {
    ours(&repo.objects().join("pack"))
        .unwrap()
        .into_keys()
        .collect()
}

#[test]
fn git_and_libgit2_read_what_is_written() {
    for format in FORMATS {
        let repo = Scratch::new(format);
        let (mut writer, mut objects) = (PackWriter::new(format), Objects::new());
        let commit = history(&mut writer, &mut objects, "v1");
        assert_eq!(writer.len(), objects.len());
        let held = writer
            .publish(&repo.objects(), PackOptions::default())
            .unwrap()
            .unwrap();
        let path = held.path().to_owned();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.starts_with(&format!("pack-{MAGIC}")), "{name}");
        for suffix in ["pack", "idx"] {
            let mode = fs::metadata(path.with_extension(suffix))
                .unwrap()
                .permissions();
            assert_eq!(mode.mode() & 0o333, 0, "{suffix} is read only");
        }
        held.release().unwrap();
        assert!(!path.with_extension("keep").exists());

        let verified = repo.line(&["verify-pack", "-v", path.to_str().unwrap()]);
        let total = format!("non delta: {} objects", objects.len());
        assert!(verified.contains(&total), "{verified}");
        repo.git(&["update-ref", "refs/heads/main", &commit.to_string()]);
        let tag = objects.values().find(|o| o.1 == ObjectKind::Tag).unwrap().0;
        repo.git(&["update-ref", "refs/tags/v1", &tag.to_string()]);
        assert_healthy(&repo);
        assert_git_has(&repo, &objects);

        let lib = git2::Repository::open(repo.top()).unwrap();
        let odb = lib.odb().unwrap();
        for (id, kind, data) in objects.values() {
            let read = odb.read(*id).unwrap();
            assert_eq!((read.kind(), read.data() == data), (*kind, true), "{id}");
        }
        repo.git(&["multi-pack-index", "write", "--no-progress"]);
        repo.git(&["multi-pack-index", "verify", "--no-progress"]);
        repo.git(&["repack", "-q", "-a", "-d"]);
        assert_eq!(
            packs(&repo),
            [""; 0],
            "git has taken the pack's objects over"
        );
        assert_healthy(&repo);
        assert_git_has(&repo, &objects);
    }
}

#[test]
fn entries_made_on_threads_are_the_same() {
    let data: Vec<Vec<u8>> = (0..40).map(|n| noise(n * 100)).collect();
    let make = |d: &Vec<u8>| PackEntry::new(ObjectFormat::Sha1, ObjectKind::Blob, d).unwrap();
    let one: Vec<_> = data.iter().map(make).collect();
    let two: Vec<_> = std::thread::scope(|scope| {
        let (left, right) = data.split_at(20);
        let left = scope.spawn(move || left.iter().map(make).collect::<Vec<_>>());
        let right = scope.spawn(move || right.iter().map(make).collect::<Vec<_>>());
        [left.join().unwrap(), right.join().unwrap()].concat()
    });
    for (one, two) in one.iter().zip(&two) {
        assert_eq!((one.id, &one.body, one.crc), (two.id, &two.body, two.crc));
    }
}

#[test]
fn a_held_pack_outlives_collection_and_a_released_one_does_not() {
    for format in FORMATS {
        let repo = Scratch::new(format);
        let (mut writer, mut objects) = (PackWriter::new(format), Objects::new());
        let commit = small(&mut writer, &mut objects, 1);
        let held = writer.publish(&repo.objects(), LAX).unwrap().unwrap();
        let keep = held.path().with_extension("keep");
        let text = fs::read_to_string(&keep).unwrap();
        assert_eq!(text, format!("git-vws pid {}\n", std::process::id()));
        repo.git(&["gc", "-q", "--prune=now"]);
        repo.git(&["prune", "--expire=now"]);
        assert!(repo.has(commit));
        drop(held);
        assert!(!keep.exists());
        assert!(repo.has(commit), "dropping the hold leaves the pack");
        repo.git(&["gc", "-q", "--prune=now"]);
        assert!(!repo.has(commit));
        assert_eq!(packs(&repo), [""; 0]);
    }
}

#[test]
fn the_same_objects_published_twice_are_two_packs() {
    let repo = Scratch::new(ObjectFormat::Sha1);
    let publish = || {
        let mut writer = PackWriter::new(repo.format);
        let commit = small(&mut writer, &mut Objects::new(), 1);
        (
            commit,
            writer.publish(&repo.objects(), LAX).unwrap().unwrap(),
        )
    };
    let ((commit, one), (_, two)) = (publish(), publish());
    assert_ne!(one.path(), two.path());
    one.release().unwrap();
    repo.git(&["gc", "-q", "--prune=now"]);
    assert!(repo.has(commit), "the second hold still counts");
    drop(two);
}

#[test]
fn permission_bits_of_a_shared_repository() {
    let repo = Scratch::new(ObjectFormat::Sha1);
    let mut writer = PackWriter::new(repo.format);
    small(&mut writer, &mut Objects::new(), 1);
    let options = PackOptions {
        fsync: false,
        mode: Some(0o440),
    };
    let held = writer.publish(&repo.objects(), options).unwrap().unwrap();
    for suffix in ["pack", "idx", "keep"] {
        let meta = fs::metadata(held.path().with_extension(suffix)).unwrap();
        assert_eq!(meta.permissions().mode() & 0o777, 0o440, "{suffix}");
    }
}

#[test]
fn a_publish_that_fails_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("pack"), "not a directory").unwrap();
    let mut writer = PackWriter::new(ObjectFormat::Sha1);
    writer.add(ObjectKind::Blob, b"x").unwrap();
    let error = writer.publish(dir.path(), LAX).unwrap_err();
    assert!(
        matches!(
            error,
            Error::Io {
                action: "create",
                ..
            }
        ),
        "{error}"
    );

    // A missing directory is made, as git makes it.
    let dir = tempfile::tempdir().unwrap();
    let mut writer = PackWriter::new(ObjectFormat::Sha1);
    writer.add(ObjectKind::Blob, b"x").unwrap();
    let held = writer
        .publish(&dir.path().join("objects"), LAX)
        .unwrap()
        .unwrap();
    assert!(held.path().exists());
}
