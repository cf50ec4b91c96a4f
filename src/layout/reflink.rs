//! The `reflink` back end: a directory that shares its blocks with a template.
//!
//! On btrfs it is a snapshot of a subvolume that holds the template's files: a few milliseconds,
//! whatever the repository holds, and with the template's own stat data, so that the template's index
//! is right as it is (git compares no device numbers). Elsewhere each file is cloned.
//!
//! The template's own folder is no subvolume, for overlays stand on it: an overlay shows inode numbers of
//! the file system below, and two subvolumes have the same ones, so that two files would pass for one.
//! The subvolume is a twin beside it.
//!
//! A template is made where there is none, for it costs one layout and next to nothing on the disk
//! afterwards. The user's build output comes along as in an overlay, by clones; what differs from the
//! files that it was built of gets the time of now, everything else written anew a time that makes no
//! entry of the index racy.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bstr::{BStr, BString, ByteSlice};
use rustix::fs::{AtFlags, Mode, OFlags, Timestamps, unlinkat, utimensat};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::backend::{Backend, Fit, Ground, Job, is_final};
use super::checkout::times;
use super::put::{Root, Users};
use super::queue::threads;
use super::spread::{By, Plan};
use super::template::{self, Template, Written, lay_index};
use super::{Error, Result, Stats, probes, sys};
use crate::git::index::StatData;
use crate::git::tree::{Change, GITLINK};
use crate::git::{Repository, fault, os_str};

/// The back end.
pub(super) struct Reflink;

/// How blocks are shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sharing {
    Snapshots,
    Clones,
}

impl Sharing {
    fn word(self) -> &'static str {
        match self {
            Sharing::Snapshots => "snapshots",
            Sharing::Clones => "clones",
        }
    }
}

impl Backend for Reflink {
    fn name(&self) -> &'static str {
        "reflink"
    }

    fn fits(&self, ground: &Ground<'_, '_>) -> Result<Fit> {
        let repository = ground.store.repository();
        if let Some(why) = template::unfit(repository, ground.tree)? {
            return Ok(Err(why.to_owned()));
        }
        Ok(sharing(repository, ground.root).map(|how| format!("{} work here", how.word())))
    }

    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats> {
        let root = job.into.parent().unwrap_or(job.into);
        let done = lay_out(job, root);
        if done.as_ref().is_err_and(|error| !is_final(error)) {
            probes::forget(
                &probes::cache(job.repository),
                key(job.repository, root).as_deref(),
            );
        }
        done
    }
}

fn lay_out(job: &Job<'_, '_>, root: &Path) -> Result<Stats> {
    let repository = job.repository;
    let options = template::Options {
        users: repository.work_dir().map(Path::to_owned),
        threads: threads(),
    };
    let (template, mut changes) = match template::find_near(repository, job.tree)? {
        Some(near) => near,
        None => (
            template::obtain(repository, job.tree, &options)?,
            Vec::new(),
        ),
    };
    // Without it a build starts from nothing, and that is all.
    let warm = match template::warm_layer(job.store).unwrap_or(None) {
        Some(warm) if warm.freshen(repository, job.tree, &mut changes)? => Some(warm),
        _ => None,
    };
    let top = Root::open(job.into)?;
    let quiet = match &warm {
        Some(_) => None,
        None => Some(times(top.fd()).map_err(|e| Error::io("look at", job.into, e))?),
    };
    let index = job.admin.join("index");
    let users = options.users.as_deref().and_then(Users::open);
    let refused = |why| Error::refused(crate::model::Refusal::Unsupported, why);
    let stats = match sharing(repository, root).map_err(refused)? {
        Sharing::Snapshots => {
            let twin = template::twin(repository, &template, By::Sharing)?;
            snapshot(&twin, job.into)?;
            fault::point("snapshot-made");
            for change in &changes {
                if let Some(entry) = change.new {
                    super::legal::check(&change.path, entry.mode)?;
                }
            }
            let written = amend(job, &changes, users.as_ref(), quiet.as_ref())?;
            lay_index(repository, &twin, (&changes, &written), job.tree, &index)?;
            Stats {
                files: written.len() as u64,
                bytes: written.iter().map(|one| u64::from(one.stat.size)).sum(),
                threads: 1,
            }
        }
        Sharing::Clones => Plan {
            repository,
            tree: job.tree,
            template: &template,
            changes: &changes,
            by: By::Sharing,
            users,
            times: quiet,
        }
        .fill(job.into, &index)?,
    };
    fault::point("template-cloned");
    if let Some(warm) = warm {
        warm.pour(repository, job.into, job.admin)?;
    }
    Ok(stats)
}

/// How blocks can be shared between templates and directories in `root`; the answer is kept.
fn sharing(repository: &Repository, root: &Path) -> std::result::Result<Sharing, String> {
    let answer = probes::kept(
        &probes::cache(repository),
        key(repository, root).as_deref(),
        || match probe(&repository.relo_dir(), root) {
            Ok(sharing) => sharing.word().to_owned(),
            Err(why) => format!("no: {why}"),
        },
    );
    match answer.strip_prefix("no: ") {
        Some(why) => Err(why.to_owned()),
        None if answer == Sharing::Snapshots.word() => Ok(Sharing::Snapshots),
        None => Ok(Sharing::Clones),
    }
}

fn key(repository: &Repository, root: &Path) -> Option<String> {
    let relo = repository.relo_dir();
    // Not there yet: nothing could be kept in it either.
    let (from, to) = (probes::device(&relo)?, probes::device(root)?);
    Some(format!("reflink-{from}-{to}-{}", geteuid().as_raw()))
}

/// Shares one block, and takes one snapshot, from the repository's side to that of the directories.
fn probe(relo: &Path, root: &Path) -> std::result::Result<Sharing, String> {
    let said = |e: std::io::Error| e.to_string();
    let scratch = |folder: &Path| {
        fs::create_dir_all(folder)?;
        tempfile::Builder::new()
            .prefix(".probe-")
            .tempdir_in(folder)
    };
    let (from, to) = (scratch(relo).map_err(said)?, scratch(root).map_err(said)?);
    let (source, target) = (from.path().join("f"), to.path().join("f"));
    fs::write(&source, [7; 4096]).map_err(said)?;
    let source = fs::File::open(source).map_err(said)?;
    let target = fs::File::create(target).map_err(said)?;
    rustix::fs::ioctl_ficlone(&target, &source)
        .map_err(|e| format!("blocks cannot be shared: {}", std::io::Error::from(e)))?;
    let snapshots = (|| {
        let (from, to) = (open(from.path())?, open(to.path())?);
        sys::create_subvolume(&from, b"s")?;
        let source = rustix::fs::openat(&from, "s", FOLDER, Mode::empty())?;
        let file = rustix::fs::openat(
            &source,
            "f",
            OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC,
            Mode::from_raw_mode(0o600),
        )?;
        drop(file);
        sys::snapshot(&source, &to, b"s")?;
        rustix::fs::statat(&to, "s/f", AtFlags::SYMLINK_NOFOLLOW).map(drop)
    })();
    for place in [from.path(), to.path()] {
        let _ = super::removal::delete(place, "s");
    }
    Ok(match snapshots {
        Ok(()) => Sharing::Snapshots,
        Err(_) => Sharing::Clones,
    })
}

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::CLOEXEC);

fn open(path: &Path) -> rustix::io::Result<std::os::fd::OwnedFd> {
    rustix::fs::open(path, FOLDER, Mode::empty())
}

/// Makes `into`, an empty folder, a snapshot of the twin.
fn snapshot(twin: &Template, into: &Path) -> Result<()> {
    let parent = into.parent().unwrap_or(into);
    fs::remove_dir(into).map_err(|e| Error::io("replace", into, e))?;
    let name = into.file_name().unwrap_or_default().as_encoded_bytes();
    let snapshot = || sys::snapshot(open(&twin.files())?, open(parent)?, name);
    // Another layout may have found the folder around it empty in this moment, and removed it.
    super::removal::despite_removals(|| {
        fs::create_dir_all(parent)?;
        snapshot().map_err(std::io::Error::from)
    })
    .map_err(|e| Error::io("take a snapshot at", into, e))
}

/// Makes the snapshot of a near template a layout of the tree.
fn amend(
    job: &Job<'_, '_>,
    changes: &[Change],
    users: Option<&Users>,
    quiet: Option<&Timestamps>,
) -> Result<Vec<Written>> {
    if changes.is_empty() {
        return Ok(Vec::new());
    }
    let root = Root::open(job.into)?;
    for change in changes {
        if let Some(old) = change.old {
            remove(&root, change, old.mode == GITLINK)?;
        }
    }
    let objects = job.repository.objects()?;
    let mut folders: BTreeSet<BString> = BTreeSet::new();
    let mut written = Vec::new();
    for change in changes {
        let Some(entry) = change.new else { continue };
        let path = change.path.as_bstr();
        for end in path.find_iter("/") {
            if folders.insert(path[..end].into()) {
                root.folder(path[..end].as_bstr())?;
            }
        }
        let stored = match entry.mode {
            GITLINK => Vec::new(),
            _ => objects.blob_at(path, entry.id)?,
        };
        let put = root.put(path, entry.mode, &stored, users)?;
        let mut stat = put.stat;
        if let Some(times) = quiet.filter(|_| !put.adopted) {
            let failed = |e: Errno| Error::io("set the times of", os_str(path), e);
            let flags = AtFlags::SYMLINK_NOFOLLOW;
            utimensat(root.fd(), path.as_bytes(), times, flags).map_err(failed)?;
            let now = rustix::fs::statat(root.fd(), path.as_bytes(), flags).map_err(failed)?;
            stat = StatData::from(&now);
        }
        written.push(Written {
            path: change.path.clone(),
            entry,
            stat,
        });
    }
    Ok(written)
}

/// Removes what the template has at a path, and the folders that hold nothing any more.
fn remove(root: &Root, change: &Change, is_folder: bool) -> Result<()> {
    let path = change.path.as_bstr();
    let flags = |folder| match folder {
        true => AtFlags::REMOVEDIR,
        false => AtFlags::empty(),
    };
    unlinkat(root.fd(), path.as_bytes(), flags(is_folder))
        .map_err(|e| Error::io("remove", os_str(path), e))?;
    if change.new.is_some() {
        return Ok(());
    }
    let mut folder: &BStr = path;
    while let Some((above, _)) = folder.rsplit_once_str("/") {
        folder = above.as_bstr();
        match unlinkat(root.fd(), folder.as_bytes(), AtFlags::REMOVEDIR) {
            Ok(()) => {}
            Err(Errno::NOTEMPTY | Errno::EXIST) => break,
            Err(error) => return Err(Error::io("remove", os_str(folder), error)),
        }
    }
    Ok(())
}
