//! What the tests of trees share: a store in a real repository, a hermetic `git`, a seeded generator.
#![allow(clippy::unwrap_used)]

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::rc::Rc;

use bstr::{BString, ByteSlice};

use super::{
    BlobSource, EXECUTABLE, Entry, GITLINK, LINK, REGULAR, StoreError, TREE, TreeSource, TreeStore,
};
use crate::git::{ObjectFormat, ObjectId, ObjectKind};

/// A generator of numbers (splitmix64), the same for the same seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }

    pub(crate) fn pick<'a, T: ?Sized>(&mut self, from: &[&'a T]) -> &'a T {
        from[self.below(from.len())]
    }

    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

/// A git command that sees nothing of the machine.
pub(crate) fn git_command(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// Runs a command with `input` on its stdin.
pub(crate) fn run(mut command: Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&input));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    output
}

/// A store of trees and blobs in a bare repository, with counts of what was read and written.
pub(crate) struct Store {
    pub(crate) directory: tempfile::TempDir,
    repository: git2::Repository,
    format: ObjectFormat,
    pub(crate) reads: Cell<usize>,
    pub(crate) writes: usize,
}

/// The content of a tree, as a flat list.
pub(crate) type Flat = BTreeMap<BString, Entry>;

impl Store {
    pub(crate) fn new(format: ObjectFormat) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut command = git_command(directory.path());
        command.args(["init", "-q", "--bare", "--object-format"]);
        command.arg(format.str()).arg(".");
        assert!(command.status().unwrap().success());
        let repository = git2::Repository::open(directory.path()).unwrap();
        Self {
            directory,
            repository,
            format,
            reads: Cell::new(0),
            writes: 0,
        }
    }

    pub(crate) fn blob(&self, content: &[u8]) -> ObjectId {
        let odb = self.repository.odb().unwrap();
        odb.write(ObjectKind::Blob, content).unwrap()
    }

    /// Runs git in the repository and returns its stdout.
    pub(crate) fn git(&self, args: &[&str], input: &[u8]) -> Vec<u8> {
        let mut command = git_command(self.directory.path());
        command.args(args);
        let output = run(command, input);
        let said = output.stderr.as_bstr();
        assert!(output.status.success(), "git {args:?}: {said}");
        output.stdout
    }

    /// The tree that git itself makes of a flat list.
    pub(crate) fn write_flat(&self, flat: &Flat) -> ObjectId {
        let mut input = Vec::new();
        for (path, entry) in flat {
            input.extend_from_slice(format!("{:o} {}\t", entry.mode, entry.id).as_bytes());
            input.extend_from_slice(path);
            input.push(0);
        }
        let _ = std::fs::remove_file(self.directory.path().join("index"));
        self.git(&["update-index", "-z", "--index-info"], &input);
        self.id(&self.git(&["write-tree", "--missing-ok"], b""))
    }

    /// The tree of a flat list, made in process: [`edit`](super::edit) has tests of its own.
    pub(crate) fn build(&mut self, flat: &Flat) -> ObjectId {
        let edits = flat
            .iter()
            .map(|(path, entry)| (path.clone(), Some(*entry)));
        let root = super::empty_tree(self.format);
        super::edit(self, root, &edits.collect()).unwrap()
    }

    pub(crate) fn id(&self, hex: &[u8]) -> ObjectId {
        let hex = hex.trim().to_str().unwrap();
        ObjectId::from_str_ext(hex, self.format).unwrap()
    }

    /// A random file, link or submodule out of a small number of different ones.
    pub(crate) fn random_entry(&self, random: &mut Random) -> Entry {
        let mode = random.pick(&[&REGULAR, &REGULAR, &REGULAR, &EXECUTABLE, &LINK, &GITLINK]);
        let content = format!("content {}\n", random.below(6));
        Entry {
            mode: *mode,
            id: self.blob(content.as_bytes()),
        }
    }

    /// A random flat list of hostile paths.
    pub(crate) fn random_flat(&self, random: &mut Random, count: usize) -> Flat {
        let mut flat = Flat::new();
        for _ in 0..count {
            let (path, entry) = (random_path(random), self.random_entry(random));
            set(&mut flat, path, entry);
        }
        flat
    }

    /// A few random changes to a flat list.
    pub(crate) fn mutate(&self, random: &mut Random, flat: &mut Flat) {
        for _ in 0..=random.below(6) {
            let old: Vec<&BString> = flat.keys().collect();
            let known = (!old.is_empty()).then(|| old[random.below(old.len())].clone());
            match (random.below(3), known) {
                (0, Some(path)) => {
                    flat.remove(&path);
                }
                (1, Some(path)) => set(flat, path, self.random_entry(random)),
                _ => set(flat, random_path(random), self.random_entry(random)),
            }
        }
    }
}

/// Names whose order tells trees from paths, and names that break careless quoting.
const NAMES: [&[u8]; 14] = [
    b"a",
    b"a.b",
    b"a-b",
    b"a0",
    b"a b",
    b"b",
    b"b\"q",
    b"new\nline",
    b"\xff\xfe",
    b"\xc3\xa9",
    b"A",
    b"tab\tx",
    b"-",
    b"~",
];

pub(crate) fn random_path(random: &mut Random) -> BString {
    let mut path = BString::from(random.pick(&NAMES));
    while random.chance(45) {
        path.push(b'/');
        path.extend_from_slice(random.pick(&NAMES));
    }
    path
}

/// Removes a path and all below it.
pub(crate) fn remove(flat: &mut Flat, path: &BString) {
    flat.retain(|other, _| !super::diff::within(other, path));
}

/// Sets a path as an index does: what stands in its way goes.
pub(crate) fn set(flat: &mut Flat, path: BString, entry: Entry) {
    remove(flat, &path);
    flat.retain(|other, _| !super::diff::within(&path, other));
    flat.insert(path, entry);
}

impl TreeSource for Store {
    fn read_tree(&self, id: ObjectId) -> Result<Option<Rc<[u8]>>, StoreError> {
        self.reads.set(self.reads.get() + 1);
        let odb = self.repository.odb()?;
        match odb.read(id) {
            Ok(object) if object.kind() == ObjectKind::Tree => Ok(Some(Rc::from(object.data()))),
            Ok(_) => Err("no tree".into()),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn format(&self) -> ObjectFormat {
        self.format
    }
}

impl TreeStore for Store {
    fn write_tree(&mut self, data: Vec<u8>) -> Result<ObjectId, StoreError> {
        self.writes += 1;
        Ok(self.repository.odb()?.write(ObjectKind::Tree, &data)?)
    }
}

impl BlobSource for Store {
    fn read_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, StoreError> {
        Ok(Rc::from(self.repository.odb()?.read(id)?.data()))
    }
}

/// A folder's entry.
pub(crate) fn tree_entry(id: ObjectId) -> Entry {
    Entry { mode: TREE, id }
}
