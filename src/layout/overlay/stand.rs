//! One workspace's overlay as a whole: which template and warm layer it stands on, what is above, and
//! how a command gets in.
//!
//! It outlives the process: a note in the upper folder's root says what it stands on, so that the next
//! run of the same agent finds the same layers below, and its own ignored output above.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Spec, Touched, Upper, fill, read_back};
use crate::disk::Volume;
use crate::git::tree::Change;
use crate::git::{ObjectId, Repository};
use crate::layout::directory::{path_bytes, replace, replace_in_order};
use crate::layout::legal::check;
use crate::layout::template::{self, Template, lay_index, warm, warm::Warm};
use crate::layout::{Error, Result};

/// The format of the note that this version writes and the only one it reads.
const FORMAT: u64 = 1;
/// The folder in which the repository's git dir appears at the user's own path.
const GIT_INSIDE: &str = ".relo/git";
/// The note's name in the upper folder's root.
pub(in crate::layout) const NOTE: &str = "stand.json";

/// An overlay, not mounted: its layers are held against removal as long as this value lives.
#[derive(Debug)]
pub struct Stand {
    pub(super) upper: Upper,
    pub(super) template: Template,
    warm: Option<Warm>,
    /// The name of the template that it was laid out on.
    pub(super) name: String,
    pub(super) revision: ObjectId,
    pub(super) parked: bool,
    /// Where the note is kept in order with the refs.
    volume: Option<Volume>,
}

/// Where the directory is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// At a place of its own, `<top>/.relo/worktrees/<agent>`.
    Own,
    /// At the user's own checkout path, which it hides.
    Checkout,
}

/// The paths of a directory.
#[derive(Clone, Debug)]
pub struct Place {
    /// Its own place: an existing folder, empty outside the mount.
    pub own: PathBuf,
    /// Its git dir, a folder in the `worktrees` of the common one.
    pub admin: PathBuf,
    /// Whether the user's checkout is fenced off.
    pub fence: bool,
}

#[derive(Serialize, Deserialize)]
struct Note {
    format: u64,
    template: String,
    /// The template's name: with other settings, the same tree is another one.
    #[serde(default)]
    name: String,
    revision: String,
    warm: Option<String>,
    #[serde(default)]
    parked: bool,
}

impl Stand {
    /// Makes one at `root`, which must not exist, with the content of the tree `revision`, and writes the
    /// directory's index to `index`. A template that is near enough is used as it is; else one is made.
    ///
    /// # Errors
    /// As [`template::obtain`] and [`fill`]. What is left at `root` then, the caller removes.
    pub fn make(
        repository: &Repository,
        revision: ObjectId,
        (root, index): (&Path, &Path),
        options: &template::Options,
        warm: Option<Warm>,
    ) -> Result<Stand> {
        let upper = Upper::create(root)?;
        let (template, mut changes) = match template::find_near(repository, revision)? {
            Some(near) => near,
            None => (template::obtain(repository, revision, options)?, Vec::new()),
        };
        // Before anything is above them, so that nothing goes from below meanwhile.
        template.stand(root)?;
        let warm = match warm {
            Some(warm) => above_warm(repository, warm, revision, root, &mut changes)?,
            None => None,
        };
        for change in &changes {
            if let Some(entry) = change.new {
                check(&change.path, entry.mode)?;
            }
        }
        let users = options.users.as_deref();
        let place = (&*upper.files(), template.is_by_git());
        let written = fill(place, repository, &changes, revision, users)?;
        lay_index(repository, &template, (&changes, &written), revision, index)?;
        let stand = Stand {
            upper,
            name: template.name().to_owned(),
            template,
            warm,
            revision,
            parked: false,
            volume: repository.volume(),
        };
        stand.note_filled(repository, written)?;
        stand.write()?;
        Ok(stand)
    }

    pub(super) fn write(&self) -> Result<()> {
        let note = Note {
            format: FORMAT,
            template: self.template.tree().to_string(),
            name: self.name.clone(),
            revision: self.revision.to_string(),
            warm: self.warm.as_ref().map(|warm| warm.name().to_owned()),
            parked: self.parked,
        };
        let json = serde_json::to_vec(&note).expect("invariant: plain data");
        replace_in_order(&self.upper.root().join(NOTE), &json, self.volume)
    }

    /// Notes that no directory is open any more, and that what is above is the tree `revision`, apart
    /// from what git ignores.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn park(mut self, revision: ObjectId) -> Result<()> {
        (self.revision, self.parked) = (revision, true);
        self.write()
    }

    /// Notes that a directory is open after all: its parking was cut short.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn hold(&mut self) -> Result<()> {
        if self.parked {
            self.parked = false;
            self.write()?;
        }
        Ok(())
    }

    /// Whether it was [parked](Stand::park), and not taken up since.
    pub fn is_parked(&self) -> bool {
        self.parked
    }

    /// The one at `root`, if there is a complete one. A warm layer that is gone is gone: it holds
    /// nothing that cannot be built again.
    ///
    /// # Errors
    /// [`Error::Io`] when the template is gone: without it nobody can tell what was changed.
    pub fn open(repository: &Repository, root: &Path) -> Result<Option<Stand>> {
        let file = root.join(NOTE);
        let bytes = match fs::read(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            bytes => bytes.map_err(|e| Error::io("read", &file, e))?,
        };
        let damaged = || Error::io("understand", &file, ErrorKind::InvalidData);
        let note: Note = serde_json::from_slice(&bytes).map_err(|_| damaged())?;
        let id =
            |hex: &str| ObjectId::from_str_ext(hex, repository.format()).map_err(|_| damaged());
        if note.format != FORMAT {
            return Err(damaged());
        }
        let tree = id(&note.template)?;
        let template = match template::find(repository, tree)? {
            Some(template) => template,
            // Lost to a power cut, or to somebody's `rm`: the same tree gives the same files.
            None => template::obtain(repository, tree, &template::Options::default())?,
        };
        let warm = match note.warm {
            Some(name) => warm::find(repository, &name)?,
            None => None,
        };
        let upper = Upper::open(root).ok_or_else(damaged)?;
        Ok(Some(Stand {
            upper,
            name: note.name,
            template,
            warm,
            revision: id(&note.revision)?,
            parked: note.parked,
            volume: repository.volume(),
        }))
    }

    /// What is above.
    pub fn upper(&self) -> &Upper {
        &self.upper
    }

    /// What is below.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The shared build output, if any.
    pub fn warm(&self) -> Option<&Warm> {
        self.warm.as_ref()
    }

    /// The tree that was laid out.
    pub fn revision(&self) -> ObjectId {
        self.revision
    }

    /// Every path that may not be as the revision has it; costs what is above.
    ///
    /// # Errors
    /// As [`read_back`].
    pub fn touched(&self, repository: &Repository) -> Result<Vec<Touched>> {
        let objects = repository.objects()?;
        let below = self.template.tree();
        read_back(&self.upper.files(), &objects, below, self.revision)
    }

    /// Gets everything ready for one run and says how to start it. The caller fills in the command, and
    /// calls [`Spec::invocation`].
    ///
    /// # Errors
    /// [`Error::Git`] at the user's own path of a bare repository, [`Error::Io`].
    pub fn spec(&self, repository: &Repository, place: &Place, at: At) -> Result<Spec> {
        let common = repository.common_dir();
        let top = repository.work_dir();
        let (target, git) = match at {
            At::Own => (place.own.as_path(), common.to_owned()),
            At::Checkout => {
                let top = repository.require_work_dir()?;
                // A git dir that the overlay does not hide stays where it is.
                let git = if common.starts_with(top) {
                    top.join(GIT_INSIDE)
                } else {
                    common.to_owned()
                };
                (top, git)
            }
        };
        let hidden = git != common;
        let files = self.upper.files();
        if hidden {
            let folder = files.join(GIT_INSIDE);
            fs::create_dir_all(&folder).map_err(|e| Error::io("create", folder, e))?;
        }
        let admin = place.admin.strip_prefix(common).unwrap_or(&place.admin);
        let mut pointer = b"gitdir: ".to_vec();
        pointer.extend_from_slice(path_bytes(&git.join(admin)));
        pointer.push(b'\n');
        replace(&files.join(".git"), &pointer)?;
        let fence = top.filter(|top| place.fence && *top != target);
        // Inside the fence the git dir must stay writable.
        let bound = hidden || fence.is_some_and(|top| common.starts_with(top));
        let relo = git.join("relo");
        let shelves = ["templates", "warm"].map(|name| relo.join(name));
        let mut lowers = vec![self.template.files()];
        lowers.extend(self.warm.as_ref().map(Warm::files));
        let there = |inside: &PathBuf| {
            let outside = inside.strip_prefix(&git).map(|rest| common.join(rest));
            outside.is_ok_and(|outside| outside.is_dir())
        };
        Ok(Spec {
            lowers,
            upper: files,
            work: self.upper.work(),
            lock: self.upper.lock(),
            target: target.to_owned(),
            binds: match bound {
                true => vec![(common.to_owned(), git.clone())],
                false => Vec::new(),
            },
            fence: fence.map(Path::to_owned),
            read_only: shelves.into_iter().filter(there).collect(),
            fresh: Some(place.admin.join("gitdir")),
            cwd: target.to_owned(),
            report: Some(self.upper.root().join("report")),
            volatile: true,
            command: Vec::new(),
        })
    }

    /// Removes what is above, and with it all that a command did since the last capture.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn remove(self) -> Result<()> {
        self.upper.remove()
    }
}

/// Stands above a warm layer. `None` where nobody knows any more what its output was built of.
fn above_warm(
    repository: &Repository,
    warm: Warm,
    revision: ObjectId,
    root: &Path,
    changes: &mut Vec<Change>,
) -> Result<Option<Warm>> {
    if !warm.freshen(repository, revision, changes)? {
        return Ok(None);
    }
    warm.stand(root)?;
    Ok(Some(warm))
}
