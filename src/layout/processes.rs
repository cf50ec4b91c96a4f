//! The processes that a command leaves behind.
//!
//! On Linux we ask to inherit them (a *child subreaper*), find them in `/proc`, ask them to end, and
//! after a short grace end them. Elsewhere they are out of our reach.
//!
//! Reading `/proc` costs what the machine runs, not what we do, so the kernel is asked first whether
//! there is anybody at all: who inherits every orphan and has no child has nothing below it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::thread::sleep;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitOptions, getpid, kill_process, waitid, waitpid,
};

/// How long they have to end by themselves: `git commit` leaves a `git maintenance` behind that is
/// about to, and so do most tools that tidy up.
const PATIENCE: Duration = Duration::from_millis(250);
/// How long they have to end when asked, that first time included.
const GRACE: Duration = Duration::from_millis(1_500);
/// How long we try to end those that would not.
const LIMIT: Duration = Duration::from_secs(6);
const NAP: Duration = Duration::from_millis(5);

/// One line of `/proc/<pid>/stat`, as far as we read it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: i32,
    ended: bool,
    started: u64,
}

/// Attention to the processes that start from now on.
pub(super) struct Watch {
    /// Children that we had before, with their start times: not the command's.
    before: BTreeSet<(i32, u64)>,
}

impl Watch {
    pub(super) fn start() -> Self {
        #[cfg(target_os = "linux")]
        {
            // Without it, what is left behind goes to the system's init and is not found.
            let _ = rustix::process::set_child_subreaper(Some(getpid()));
        }
        if childless() {
            return Watch {
                before: BTreeSet::new(),
            };
        }
        let own = getpid().as_raw_nonzero().get();
        let before = table()
            .into_iter()
            .filter(|(_, process)| process.parent == own)
            .map(|(pid, process)| (pid, process.started))
            .collect();
        Watch { before }
    }

    /// Ends what has been left behind; gives back how many had to be asked and how many are left.
    pub(super) fn end(self) -> (usize, usize) {
        let mut seen = BTreeSet::new();
        let mut waited = Duration::ZERO;
        let left = loop {
            let running = self.running();
            if running.is_empty() || waited >= LIMIT {
                break running.len();
            }
            if waited >= GRACE {
                seen.extend(&running);
                signal(&running, Signal::KILL);
            } else if waited >= PATIENCE {
                let mut new = running;
                new.retain(|pid| seen.insert(*pid));
                signal(&new, Signal::TERM);
                // One that is stopped could not even hear it.
                signal(&new, Signal::CONT);
            }
            sleep(NAP);
            waited += NAP;
        };
        #[cfg(target_os = "linux")]
        let _ = rustix::process::set_child_subreaper(None);
        (seen.len(), left)
    }

    /// The processes below us that the command has left; those that have ended are reaped.
    fn running(&self) -> Vec<i32> {
        if childless() {
            return Vec::new();
        }
        let table = table();
        let own = getpid().as_raw_nonzero().get();
        let mut below = vec![own];
        let mut running = Vec::new();
        let mut at = 0;
        while let Some(parent) = below.get(at).copied() {
            at += 1;
            for (pid, process) in &table {
                if process.parent != parent || self.before.contains(&(*pid, process.started)) {
                    continue;
                }
                below.push(*pid);
                if !process.ended {
                    running.push(*pid);
                } else if parent == own
                    && let Some(pid) = Pid::from_raw(*pid)
                {
                    let _ = waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
        }
        running
    }
}

/// Whether the kernel says that we have no child, of whatever kind, running or ended. "Could not tell"
/// is no.
fn childless() -> bool {
    /// `__WALL`: children that send another signal than `SIGCHLD`, or none, count as well.
    #[cfg(target_os = "linux")]
    const EVERY_KIND: WaitIdOptions = WaitIdOptions::from_bits_retain(0x4000_0000);
    #[cfg(not(target_os = "linux"))]
    const EVERY_KIND: WaitIdOptions = WaitIdOptions::empty();
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT | EVERY_KIND;
    matches!(waitid(WaitId::All, look), Err(Errno::CHILD))
}

fn signal(processes: &[i32], signal: Signal) {
    for pid in processes {
        if let Some(pid) = Pid::from_raw(*pid) {
            let _ = kill_process(pid, signal);
        }
    }
}

/// All processes that `/proc` shows; none where there is no such folder.
fn table() -> BTreeMap<i32, Process> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .flatten()
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let line = fs::read(entry.path().join("stat")).ok()?;
            Some((pid, parse(&line)?))
        })
        .collect()
}

/// Reads a line of `/proc/<pid>/stat`. The second field is a name in brackets that may hold anything.
fn parse(line: &[u8]) -> Option<Process> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(line.get(end + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process {
        parent,
        ended: matches!(state, "Z" | "X"),
        // The 22nd field of the line.
        started: fields.nth(17)?.parse().ok()?,
    })
}

/// The signals that this process ignores, as a bit set with signal 1 lowest.
pub(super) fn ignored_signals() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_blanks() {
        let line = b"42 (a) b (c) S 7 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 12345 1 1\n";
        let expected = Process {
            parent: 7,
            ended: false,
            started: 12345,
        };
        assert_eq!(parse(line), Some(expected));
        assert_eq!(parse(b"42 (x) Z 7"), None);
        assert_eq!(parse(b""), None);
    }

    #[test]
    fn we_are_in_the_table() {
        let own = getpid().as_raw_nonzero().get();
        if cfg!(target_os = "linux") {
            assert!(table().contains_key(&own));
        }
    }
}
