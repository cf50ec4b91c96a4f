//! Fault points: named places at which a test can have the process killed.
//!
//! Each is a line between two steps that a crash may fall between. They exist in debug builds, and in
//! a release build with the feature `fault-points`; in any other build a point is nothing. Nothing
//! is armed unless somebody calls [`arm`]: the library does not read the environment.

#[cfg(any(debug_assertions, feature = "fault-points"))]
pub use armed::arm;

/// A place to die at. `name` is stable: tests and `GIT_VWS_FAULT` spell it.
#[inline]
pub fn point(name: &str) {
    leaving(name, || {});
}

/// As [`point`], for a step inside somebody else's code (libgit2's): `leave` makes what a death in the
/// middle of that step leaves behind.
#[inline]
pub fn leaving(name: &str, leave: impl FnOnce()) {
    #[cfg(any(debug_assertions, feature = "fault-points"))]
    armed::reach(name, leave);
    #[cfg(not(any(debug_assertions, feature = "fault-points")))]
    let _ = (name, leave);
}

/// For [`leaving`]: makes an empty file, with its folder.
pub(super) fn empty_file(path: &std::path::Path) {
    let _ = path.parent().map(std::fs::create_dir_all);
    let _ = std::fs::write(path, "");
}

#[cfg(any(debug_assertions, feature = "fault-points"))]
mod armed {
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU32, Ordering};

    struct Armed {
        name: String,
        left: AtomicU32,
        trace: Option<PathBuf>,
    }

    static ARMED: OnceLock<Armed> = OnceLock::new();

    /// Arms one point for this process: `<name>` dies at its first pass, `<name>:<n>` at its n-th.
    /// `trace:<file>` dies nowhere, and adds the name of each point that is passed to the file. Only
    /// the first call counts.
    pub fn arm(spec: &str) {
        let (name, pass) = spec.split_once(':').unwrap_or((spec, "1"));
        let _ = ARMED.set(Armed {
            name: name.to_owned(),
            trace: (name == "trace").then(|| pass.into()),
            left: AtomicU32::new(pass.parse().unwrap_or(1)),
        });
    }

    pub(super) fn reach(name: &str, leave: impl FnOnce()) {
        let Some(armed) = ARMED.get() else { return };
        if let Some(file) = &armed.trace {
            let file = OpenOptions::new().create(true).append(true).open(file);
            let _ = file.and_then(|mut file| writeln!(file, "{name}"));
        }
        if armed.name == name && armed.left.fetch_sub(1, Ordering::SeqCst) == 1 {
            leave();
            // Killed, not exited: no destructor runs, no buffer is flushed, as in a real crash.
            let me = rustix::process::getpid();
            let _ = rustix::process::kill_process(me, rustix::process::Signal::KILL);
            loop {
                std::thread::park();
            }
        }
    }
}
