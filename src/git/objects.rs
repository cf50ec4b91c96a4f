//! Reading objects, and staging new ones for one publish.

use std::rc::Rc;

use bstr::{BStr, BString, ByteSlice};
use git2::ErrorCode;

use super::pack::{self, PackEntry, PackOptions, PackWriter, WrittenPack};
use super::tree::{self, BlobSource, TreeSource, TreeStore};
use super::{Error, Lock, ObjectFormat, ObjectId, ObjectKind, Repository, Result};

/// So many packs of ours become one.
const PACKS: usize = 24;

/// The object database of a repository.
pub struct Objects<'r> {
    repository: &'r Repository,
    odb: git2::Odb<'r>,
}

/// A commit, as far as we read one.
#[derive(Clone, Debug)]
pub struct Commit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// When it was committed, in seconds since 1970.
    pub time: i64,
    /// Its message, as stored.
    pub message: BString,
}

/// What a new commit is made of. Ours carry a fixed identity and are never signed: no setting of
/// the user's changes an id or asks for a passphrase.
#[derive(Clone, Debug)]
pub struct NewCommit<'a> {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: &'a [ObjectId],
    /// Seconds since 1970, for author and committer.
    pub time: i64,
    /// The message.
    pub message: &'a [u8],
}

impl Repository {
    /// The object database.
    ///
    /// # Errors
    /// [`Error::Library`] when it cannot be opened.
    pub fn objects(&self) -> Result<Objects<'_>> {
        Ok(Objects {
            repository: self,
            odb: self.raw().odb()?,
        })
    }
}

impl<'r> Objects<'r> {
    /// The hash of the objects.
    pub fn format(&self) -> ObjectFormat {
        self.repository.format()
    }

    /// The bytes of an object, which must be of the given kind.
    ///
    /// In a partial clone, `git` fetches what is missing.
    ///
    /// # Errors
    /// [`Error::MissingObject`], [`Error::DamagedObject`] for another kind, [`Error::Object`].
    pub fn read(&self, id: ObjectId, kind: ObjectKind) -> Result<Vec<u8>> {
        let object = match self.odb.read(id) {
            Ok(object) => object,
            Err(e) if e.code() == ErrorCode::NotFound && self.repository.is_partial() => {
                return self.fetch(id, kind);
            }
            Err(e) if e.code() == ErrorCode::NotFound => {
                // A pack may have been replaced under us by a repack: look once more.
                self.odb.refresh()?;
                self.odb.read(id).map_err(|e| unreadable(id, e))?
            }
            Err(e) => return Err(unreadable(id, e)),
        };
        if object.kind() != kind {
            return Err(Error::DamagedObject {
                id,
                why: format!("it is a {}, not a {kind}", object.kind()),
            });
        }
        Ok(object.data().to_vec())
    }

    /// The bytes of a blob.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub fn blob(&self, id: ObjectId) -> Result<Vec<u8>> {
        self.read(id, ObjectKind::Blob)
    }

    /// As [`Objects::blob`], for the blob at a path, which an error then names.
    ///
    /// # Errors
    /// [`Error::At`].
    pub fn blob_at(&self, path: &BStr, id: ObjectId) -> Result<Vec<u8>> {
        self.blob(id).map_err(|error| error.at(path))
    }

    /// The size of a blob in bytes, without reading it.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub fn blob_size(&self, id: ObjectId) -> Result<u64> {
        match self.odb.read_header(id) {
            Ok((size, _)) => Ok(size as u64),
            Err(_) => Ok(self.blob(id)?.len() as u64),
        }
    }

    /// A commit.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub fn commit(&self, id: ObjectId) -> Result<Commit> {
        let data = self.read(id, ObjectKind::Commit)?;
        parse_commit(&data, self.format()).ok_or_else(|| Error::DamagedObject {
            id,
            why: "its header makes no sense".to_owned(),
        })
    }

    /// Whether an object is there.
    pub fn exists(&self, id: ObjectId) -> bool {
        self.odb.exists(id)
    }

    fn fetch(&self, id: ObjectId, kind: ObjectKind) -> Result<Vec<u8>> {
        let done = self
            .repository
            .git()
            .args(["cat-file", &kind.to_string(), &id.to_string()])
            .run()?;
        if done.success() {
            return Ok(done.stdout);
        }
        Err(Error::NotGiven {
            id,
            why: done.first_line(),
        })
    }
}

fn unreadable(id: ObjectId, source: git2::Error) -> Error {
    match source.code() {
        ErrorCode::NotFound => Error::MissingObject { id },
        _ => Error::Object { id, source },
    }
}

fn parse_commit(data: &[u8], format: ObjectFormat) -> Option<Commit> {
    let id = |text: &[u8]| ObjectId::from_str_ext(text.to_str().ok()?, format).ok();
    let (header, message) = data.split_once_str("\n\n")?;
    let mut tree = None;
    let mut parents = Vec::new();
    let mut time = 0;
    for line in header.lines() {
        match line.split_once_str(" ") {
            Some((b"tree", value)) => tree = Some(id(value)?),
            Some((b"parent", value)) => parents.push(id(value)?),
            Some((b"committer", value)) => time = seconds(value.as_bstr()).unwrap_or(0),
            _ => {}
        }
    }
    Some(Commit {
        tree: tree?,
        parents,
        time,
        message: message.into(),
    })
}

/// The seconds in a `Name <mail> seconds zone` line.
fn seconds(line: &BStr) -> Option<i64> {
    let (_, after) = line.rsplit_once_str("> ")?;
    after.split_str(" ").next()?.to_str().ok()?.parse().ok()
}

/// New objects on their way into one pack, readable before they are published.
///
/// Every new object is written, even one that the database already holds: an existing copy that no
/// ref reaches may be removed by a `git gc` at this very moment, ours is held by its `.keep`.
pub struct Staging<'r> {
    objects: Objects<'r>,
    pack: PackWriter,
}

impl<'r> Staging<'r> {
    /// Starts with nothing staged.
    ///
    /// # Errors
    /// As [`Repository::objects`].
    pub fn new(repository: &'r Repository) -> Result<Self> {
        Ok(Staging {
            objects: repository.objects()?,
            pack: PackWriter::new(repository.format()),
        })
    }

    /// The object database below.
    pub fn objects(&self) -> &Objects<'r> {
        &self.objects
    }

    /// The repository that the objects are for.
    pub(super) fn repository(&self) -> &'r Repository {
        self.objects.repository
    }

    /// Stages an object.
    ///
    /// # Errors
    /// When it cannot be hashed or compressed: out of memory.
    pub fn add(&mut self, kind: ObjectKind, data: &[u8]) -> Result<ObjectId> {
        Ok(self.pack.add(kind, data)?)
    }

    /// Stages an object that another thread has hashed and compressed.
    pub fn push(&mut self, entry: PackEntry) -> ObjectId {
        self.pack.push(entry)
    }

    /// Stages a copy of an object that is in the database but may not be reachable.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub fn copy(&mut self, id: ObjectId, kind: ObjectKind) -> Result<()> {
        if !self.pack.contains(id) {
            let data = self.objects.read(id, kind)?;
            self.pack.add(kind, &data)?;
        }
        Ok(())
    }

    /// The bytes of an object, staged or published.
    ///
    /// # Errors
    /// As [`Objects::read`].
    pub fn read(&self, id: ObjectId, kind: ObjectKind) -> Result<Vec<u8>> {
        match self.pack.read(id) {
            Some((found, data)) if found == kind => Ok(data),
            _ => self.objects.read(id, kind),
        }
    }

    /// A commit, staged or published.
    ///
    /// # Errors
    /// As [`Objects::commit`].
    pub fn read_commit(&self, id: ObjectId) -> Result<Commit> {
        let data = self.read(id, ObjectKind::Commit)?;
        parse_commit(&data, self.objects.format()).ok_or_else(|| Error::DamagedObject {
            id,
            why: "its header makes no sense".to_owned(),
        })
    }

    /// Stages a commit with our fixed identity.
    ///
    /// # Errors
    /// As [`Staging::add`].
    pub fn commit(&mut self, commit: &NewCommit<'_>) -> Result<ObjectId> {
        let mut data = format!("tree {}\n", commit.tree).into_bytes();
        for parent in commit.parents {
            data.extend_from_slice(format!("parent {parent}\n").as_bytes());
        }
        for role in ["author", "committer"] {
            let (name, mail) = (super::IDENTITY_NAME, super::IDENTITY_EMAIL);
            let line = format!("{role} {name} <{mail}> {} +0000\n", commit.time);
            data.extend_from_slice(line.as_bytes());
        }
        data.push(b'\n');
        data.extend_from_slice(commit.message);
        self.add(ObjectKind::Commit, &data)
    }

    /// Whether nothing is staged.
    pub fn is_empty(&self) -> bool {
        self.pack.is_empty()
    }

    /// Writes what is staged as one pack, for [`super::Publish`] to flush; `None` where nothing is.
    pub(super) fn write(self) -> Result<Option<WrittenPack>> {
        let folder = self.objects.repository.objects_dir();
        Ok(self.pack.write(folder, PackOptions::default())?)
    }
}

impl TreeSource for Objects<'_> {
    fn read_tree(&self, id: ObjectId) -> Result<Option<Rc<[u8]>>, tree::StoreError> {
        match self.read(id, ObjectKind::Tree) {
            Ok(data) => Ok(Some(data.into())),
            Err(Error::MissingObject { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn format(&self) -> ObjectFormat {
        self.repository.format()
    }
}

impl BlobSource for Objects<'_> {
    fn read_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, tree::StoreError> {
        Ok(self.blob(id)?.into())
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, tree::StoreError> {
        Ok(Objects::blob_size(self, id)?)
    }
}

impl BlobSource for Staging<'_> {
    fn read_blob(&self, id: ObjectId) -> Result<Rc<[u8]>, tree::StoreError> {
        Ok(self.read(id, ObjectKind::Blob)?.into())
    }

    fn blob_size(&self, id: ObjectId) -> Result<u64, tree::StoreError> {
        match self.pack.read(id) {
            Some((_, data)) => Ok(data.len() as u64),
            None => BlobSource::blob_size(&self.objects, id),
        }
    }
}

impl TreeSource for Staging<'_> {
    fn read_tree(&self, id: ObjectId) -> Result<Option<Rc<[u8]>>, tree::StoreError> {
        match self.pack.read(id) {
            Some((ObjectKind::Tree, data)) => Ok(Some(data.into())),
            _ => self.objects.read_tree(id),
        }
    }

    fn format(&self) -> ObjectFormat {
        self.objects.format()
    }
}

impl TreeStore for Staging<'_> {
    fn write_tree(&mut self, data: Vec<u8>) -> Result<ObjectId, tree::StoreError> {
        Ok(self.add(ObjectKind::Tree, &data)?)
    }
}

impl Repository {
    /// The id that a blob with these bytes has.
    ///
    /// # Errors
    /// When it cannot be hashed: out of memory.
    pub fn hash_blob(&self, bytes: &[u8]) -> Result<ObjectId> {
        let kind = ObjectKind::Blob;
        Ok(ObjectId::hash_object_ext(kind, bytes, self.format())?)
    }

    /// Whether no file that holds objects may be deleted here (`extensions.preciousObjects`). A
    /// value that makes no sense counts as yes.
    pub fn keeps_every_object(&self) -> bool {
        let set = self
            .config()
            .and_then(|c| c.bool("extensions.preciousobjects"));
        !matches!(set, Ok(None | Some(false)))
    }

    /// The commit that a submodule's own `HEAD` names; `None` where it is not checked out.
    ///
    /// # Errors
    /// [`Error::NoWorkTree`].
    pub fn submodule_head(&self, path: &BStr) -> Result<Option<ObjectId>> {
        let folder = self.require_work_dir()?.join(super::os_str(path));
        let head = git2::Repository::open(folder)
            .and_then(|sub| sub.head()?.peel_to_commit().map(|c| c.id()));
        Ok(head.ok())
    }

    /// Keeps the number of our packs small: at about two dozen they become one. Best effort: what
    /// fails here is tried again after the next publish. With `extensions.preciousObjects` no
    /// object's file is ever deleted, so there the packs stay.
    pub fn tidy_packs(&self) {
        if self.keeps_every_object() {
            return;
        }
        let lock = self.relo_dir().join("locks/packs");
        // The roll-up takes the lock itself; somebody else at it already is just as good.
        if let Ok(lock) = Lock::open(&lock) {
            let options = PackOptions::default();
            let _ = pack::roll_up(self.objects_dir(), self.format(), PACKS, options, &lock);
        }
    }
}
