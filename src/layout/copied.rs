//! Laying out by copying a template that lies ready.
//!
//! None is made for that: to write one costs what a layout costs, and its files take the same space
//! once more, so on a disk that shares no blocks it pays only where something else (an overlay,
//! `template warm`) has made it already.
//!
//! Files keep the template's times, which are the user's own where the bytes are the same. The user's
//! build output is not copied: it may be many times the size of the files.

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

use super::backend::{Job, is_final};
use super::checkout::times;
use super::put::Users;
use super::spread::{By, Plan};
use super::{Error, Result, Stats, removal, template};

/// Copies a near template; `None`, and the folder is empty again, where there is none to be had.
///
/// # Errors
/// As [`super::backend::Backend::lay_out`], for what no other way would get around.
pub(super) fn lay_out(job: &Job<'_, '_>) -> Result<Option<Stats>> {
    let Some((template, changes)) = template::ready(job.repository, job.tree)? else {
        return Ok(None);
    };
    let failed = |error: Errno| Error::io("open", job.into, error);
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let top = rustix::fs::open(job.into, flags, Mode::empty()).map_err(failed)?;
    let plan = Plan {
        repository: job.repository,
        tree: job.tree,
        template: &template,
        changes: &changes,
        by: By::Copying,
        users: job.repository.work_dir().and_then(Users::open),
        times: Some(times(&top).map_err(failed)?),
    };
    match plan.fill(job.into, &job.admin.join("index")) {
        Ok(stats) => Ok(Some(stats)),
        Err(error) if is_final(&error) => Err(error),
        // A template is a cache: what is wrong with it is no reason to fail.
        Err(_) => {
            removal::refill(job.into)?;
            Ok(None)
        }
    }
}
