//! The `overlay` back end: fills nothing but an upper folder, and takes a parked one up again.

use std::path::Path;

use super::{Spec, Stand, upper};
use crate::layout::backend::{Backend, Fit, Ground, Job};
use crate::layout::filtered::PLAIN;
use crate::layout::template::{self, warm};
use crate::layout::{Result, Stats, parked};
use crate::model::AgentId;
use crate::workspace::Store;

/// The back end, for one workspace. Who uses it has [probed](super::probe) whether it works.
pub(in crate::layout) struct Overlay<'a, 'r> {
    pub(in crate::layout) store: &'a Store<'r>,
    pub(in crate::layout) agent: &'a AgentId,
    /// This very program, which mounts when it is started again.
    pub(in crate::layout) program: &'a Path,
    /// Whether it is to be mounted for all to see.
    pub(in crate::layout) mounted: bool,
}

impl Backend for Overlay<'_, '_> {
    fn name(&self) -> &'static str {
        parked::OVERLAY
    }

    fn mounts(&self) -> bool {
        self.mounted
    }

    /// What differs from the revision is read from the upper folder.
    fn keeps_manifest(&self) -> bool {
        false
    }

    fn fits(&self, _: &Ground<'_, '_>) -> Result<Fit> {
        Ok(Ok("overlays work here".to_owned()))
    }

    fn lay_out(&self, job: &Job<'_, '_>) -> Result<Stats> {
        let root = parked::root(job.repository, self.agent);
        if let Ok(Some(mut stand)) = Stand::open(job.repository, &root)
            && stand.is_parked()
        {
            let index = job.admin.join("index");
            let move_on = |stand: &Stand| self.move_on(job, stand);
            let taken = stand.take_up(job.repository, job.tree, &index, move_on);
            if taken.is_ok() {
                return Ok(Stats::default());
            }
            // A cache that is spoilt.
            let _ = std::fs::remove_file(&index);
        }
        upper::remove(&root)?;
        let options = template::Options {
            users: job.repository.work_dir().map(Path::to_owned),
            threads: 0,
        };
        // Without it a build starts from nothing, and that is all.
        let warm = template::warm_layer(self.store).unwrap_or(None);
        let index = job.admin.join("index");
        Stand::make(job.repository, job.tree, (&root, &index), &options, warm)?;
        Ok(Stats::default())
    }
}

impl Overlay<'_, '_> {
    /// Lets git bring the files above, and their index, from the tree that was parked to the job's.
    fn move_on(&self, job: &Job<'_, '_>, stand: &Stand) -> Result<()> {
        let upper = stand.upper();
        let mut lowers = vec![stand.template().files()];
        lowers.extend(stand.warm().map(warm::Warm::files));
        let spec = Spec {
            lowers,
            upper: upper.files(),
            work: upper.work(),
            lock: upper.lock(),
            target: job.into.to_owned(),
            cwd: job.into.to_owned(),
            volatile: true,
            ..Spec::default()
        };
        let run = spec.invocation(self.program);
        let mut git = job
            .repository
            .git()
            .in_directory(job.into, job.admin)
            .through([run.program.into_os_string()].into_iter().chain(run.args));
        for setting in PLAIN {
            git = git.args(["-c", setting]);
        }
        git.args(["read-tree", "--reset", "-u"])
            .arg(job.tree.to_string())
            .output()?;
        Ok(())
    }
}
