//! The meter on standard error, in git's manner: `Laying out files:  34% (6800/20000)`.
//!
//! On a terminal, and only for what takes longer than a second; with `--progress` anywhere and at once.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use git_vws::model::Progress;

use super::session::Session;

/// What takes less is not worth a line.
const DELAY: Duration = Duration::from_secs(1);
/// How often the line is written anew.
const PACE: Duration = Duration::from_millis(100);

/// Whether progress is shown.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct ProgressArgs {
    /// Show progress even where standard error is no terminal
    #[arg(long, overrides_with = "no_progress")]
    progress: bool,
    /// Show no progress
    #[arg(long, overrides_with = "progress")]
    no_progress: bool,
}

impl ProgressArgs {
    /// Lets the library tell how far it is, where that is wanted.
    pub(crate) fn show(self, session: &Session, quiet: bool) {
        let on_terminal = !quiet && io::stderr().is_terminal();
        if !self.no_progress && (self.progress || on_terminal) {
            let delay = match self.progress {
                true => Duration::ZERO,
                false => DELAY,
            };
            let meter = Meter::new(delay, Box::new(io::stderr()));
            session.repository().set_progress(Arc::new(meter));
        }
    }
}

struct Meter {
    delay: Duration,
    state: Mutex<State>,
}

struct State {
    to: Box<dyn Write + Send>,
    work: Option<Work>,
}

struct Work {
    what: &'static str,
    done: u64,
    total: Option<u64>,
    /// When the line is to be written next.
    due: Instant,
    /// How long the last line was; 0 before the first.
    shown: usize,
}

impl Meter {
    fn new(delay: Duration, to: Box<dyn Write + Send>) -> Self {
        Meter {
            delay,
            state: Mutex::new(State { to, work: None }),
        }
    }

    fn with(&self, on: impl FnOnce(&mut State)) {
        on(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Progress for Meter {
    fn start(&self, what: &'static str, total: Option<u64>) {
        let due = Instant::now() + self.delay;
        self.with(|state| {
            state.work = Some(Work {
                what,
                done: 0,
                total,
                due,
                shown: 0,
            });
        });
    }

    fn step(&self, steps: u64) {
        self.with(|State { to, work }| {
            let Some(work) = work else { return };
            work.done += steps;
            let now = Instant::now();
            if now >= work.due {
                work.due = now + PACE;
                work.write(to, "\r");
            }
        });
    }

    fn end(&self) {
        self.with(|State { to, work }| {
            if let Some(mut work) = work.take().filter(|work| work.shown > 0) {
                work.write(to, ", done.\n");
            }
        });
    }
}

impl Work {
    fn write(&mut self, to: &mut dyn Write, end: &str) {
        let mut line = format!("{}: ", self.what);
        let _ = match self.total {
            Some(total) => {
                let percent = (self.done * 100).checked_div(total).unwrap_or(100);
                write!(line, "{percent:3}% ({}/{total})", self.done)
            }
            None => write!(line, "{}", self.done),
        };
        self.shown = line.len();
        line.push_str(end);
        // A closed standard error is nobody's failure.
        let _ = to.write_all(line.as_bytes()).and_then(|()| to.flush());
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[derive(Clone, Default)]
    struct Screen(Arc<Mutex<Vec<u8>>>);

    impl Write for Screen {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn shown(delay: Duration, total: Option<u64>) -> String {
        let screen = Screen::default();
        let meter = Meter::new(delay, Box::new(screen.clone()));
        meter.start("Laying out files", total);
        meter.step(6800);
        meter.step(200);
        meter.end();
        meter.end();
        let bytes = screen.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn the_line_is_gits() {
        assert_eq!(
            shown(Duration::ZERO, Some(20000)),
            "Laying out files:  34% (6800/20000)\rLaying out files:  35% (7000/20000), done.\n"
        );
        assert_eq!(
            shown(Duration::ZERO, None),
            "Laying out files: 6800\rLaying out files: 7000, done.\n"
        );
        assert_eq!(shown(DELAY, Some(20000)), "");
    }

    #[test]
    fn nothing_of_nothing_is_all() {
        let mut work = Work {
            what: "Removing files",
            done: 0,
            total: Some(0),
            due: Instant::now(),
            shown: 0,
        };
        let mut line = Vec::new();
        work.write(&mut line, "\n");
        assert_eq!(line, b"Removing files: 100% (0/0)\n");
    }
}
