//! What is mounted where, and how that reaches the process that mounts it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The hidden command of the binary that calls [`super::enter_main`].
pub const ENTER: &str = "__enter";

/// One run of a command in an overlay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Spec {
    /// The folders below, the first on top: a template's files, then warm layers.
    pub lowers: Vec<PathBuf>,
    /// The folder above, which takes every change.
    pub upper: PathBuf,
    /// The overlay's own scratch folder, beside the upper one on the same file system. What an
    /// earlier mount left in it is removed.
    pub work: PathBuf,
    /// Held while anything runs inside: nobody mounts one upper folder twice.
    pub lock: PathBuf,
    /// Where the overlay is mounted: an existing folder.
    pub target: PathBuf,
    /// Folders that must stay reachable, and where: taken before the overlay hides them, bound after.
    pub binds: Vec<(PathBuf, PathBuf)>,
    /// The user's checkout, which becomes read-only as a whole; the target may lie inside.
    pub fence: Option<PathBuf>,
    /// Folders that become read-only, as they are named inside.
    pub read_only: Vec<PathBuf>,
    /// The `gitdir` file of the directory's git dir: git rewrites one that is older than a day, and
    /// under the user's own path it would write a wrong one.
    pub fresh: Option<PathBuf>,
    /// Where the command starts.
    pub cwd: PathBuf,
    /// Takes the reason when the command could not even be started. Without it nobody but the
    /// standard error hears of it.
    pub report: Option<PathBuf>,
    /// Whether the upper folder need not survive a power cut, which saves a flush for each first
    /// write. What counts is captured, and flushed then.
    pub volatile: bool,
    /// The program and its arguments; empty for a probe, which tries the mount and ends.
    pub command: Vec<OsString>,
}

/// A process to be started by the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invocation {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
}

impl Spec {
    /// The process that enters the namespace and becomes the command; `own_program` is this binary.
    pub fn invocation(&self, own_program: &Path) -> Invocation {
        let mut args = vec![OsString::from(ENTER)];
        let mut add = |name: &str, values: &[&Path]| {
            args.push(name.into());
            args.extend(values.iter().map(|value| value.as_os_str().to_owned()));
        };
        for lower in &self.lowers {
            add("lower", &[lower]);
        }
        add("upper", &[&self.upper]);
        add("work", &[&self.work]);
        add("lock", &[&self.lock]);
        add("target", &[&self.target]);
        for (from, to) in &self.binds {
            add("bind", &[from, to]);
        }
        for folder in &self.read_only {
            add("read-only", &[folder]);
        }
        for (name, path) in [
            ("fence", &self.fence),
            ("fresh", &self.fresh),
            ("report", &self.report),
        ] {
            if let Some(path) = path {
                add(name, &[path]);
            }
        }
        if self.volatile {
            add("volatile", &[]);
        }
        add("cwd", &[&self.cwd]);
        args.push("--".into());
        args.extend(self.command.iter().cloned());
        Invocation {
            program: own_program.to_owned(),
            args,
        }
    }

    /// Reads the arguments that [`Spec::invocation`] makes, those after [`ENTER`]. `None` for
    /// anything else.
    pub fn from_args(args: impl IntoIterator<Item = OsString>) -> Option<Spec> {
        let mut args = args.into_iter();
        let mut spec = Spec::default();
        loop {
            let name = args.next()?;
            if name == OsStr::new("--") {
                spec.command = args.collect();
                return Some(spec);
            }
            if name == OsStr::new("volatile") {
                spec.volatile = true;
                continue;
            }
            let value = PathBuf::from(args.next()?);
            match name.to_str()? {
                "lower" => spec.lowers.push(value),
                "upper" => spec.upper = value,
                "work" => spec.work = value,
                "lock" => spec.lock = value,
                "target" => spec.target = value,
                "bind" => spec.binds.push((value, args.next()?.into())),
                "read-only" => spec.read_only.push(value),
                "fence" => spec.fence = Some(value),
                "fresh" => spec.fresh = Some(value),
                "report" => spec.report = Some(value),
                "cwd" => spec.cwd = value,
                _ => return None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn arguments_go_there_and_back() {
        let odd = Path::new(OsStr::from_bytes(b"/a:b,c\\d \xff\n")).to_owned();
        let full = Spec {
            lowers: vec![odd.clone(), "/l".into()],
            upper: "--".into(),
            work: odd.clone(),
            lock: "volatile".into(),
            target: odd.clone(),
            binds: vec![("bind".into(), odd.clone())],
            fence: Some("/f".into()),
            read_only: vec![odd.clone(), "/r".into()],
            fresh: Some("/g".into()),
            cwd: "/c".into(),
            report: Some(odd),
            volatile: true,
            command: vec!["--".into(), OsStr::from_bytes(b"\xfe").to_owned()],
        };
        for spec in [full, Spec::default()] {
            let made = spec.invocation(Path::new("/me"));
            assert_eq!(made.program, Path::new("/me"));
            assert_eq!(made.args[0], ENTER);
            assert_eq!(Spec::from_args(made.args[1..].to_vec()), Some(spec));
        }
    }

    #[test]
    fn other_arguments_are_refused() {
        for args in [&["upper"][..], &["upper", "/u"], &["what", "/u", "--"], &[]] {
            let args = args.iter().map(OsString::from);
            assert_eq!(Spec::from_args(args), None);
        }
    }
}
