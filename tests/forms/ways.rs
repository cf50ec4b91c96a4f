//! The ways of holding files that the job is done in, and whose turn it is.
//!
//! In the short form of the tests each call does the job in one way, in rotation, so that every form is
//! done in some way and every way over some forms; the long form (`GIT_VWS_TEST_LONG=1`) does all.

use std::cell::Cell;
use std::path::Path;

use crate::common::{BINARY, directories_stay};
use crate::kinds::skip;

/// How the files of a workspace are held while a tool works in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As it is where nobody asks for anything.
    Auto,
    /// Written out by us.
    Checkout,
    /// Written out by git.
    Worktree,
    /// Mounted: for one command in a namespace of its own, as a directory by root.
    Overlay,
    /// Blocks shared with a template, where the file system can.
    Reflink,
    /// A directory that is there as long as the workspace is.
    Stays,
}

/// Those that every machine's disk can have.
pub const ALL: [Way; 4] = [Way::Checkout, Way::Overlay, Way::Worktree, Way::Stays];

impl Way {
    /// The one of this run of the tests.
    pub fn usual() -> Way {
        match directories_stay() {
            true => Way::Stays,
            false => Way::Auto,
        }
    }

    /// The option of a command that runs another one.
    pub fn option(self) -> Option<&'static str> {
        match self {
            Way::Auto | Way::Stays => None,
            Way::Checkout => Some("--backend=checkout"),
            Way::Worktree => Some("--backend=worktree"),
            Way::Overlay => Some("--backend=overlay"),
            Way::Reflink => Some("--backend=reflink"),
        }
    }

    /// The option of a command that lays out a directory for all to see.
    pub fn option_of_a_directory(self) -> Option<&'static str> {
        match self {
            Way::Overlay if !rustix::process::geteuid().is_root() => Way::Checkout.option(),
            _ => self.option(),
        }
    }

    /// Whether this machine has it; says so where it has not. `GIT_VWS_TEST_EXPECT` makes that a failure.
    pub fn is_here(self) -> bool {
        if self != Way::Overlay {
            return true;
        }
        let Err(why) = git_vws::layout::overlay::probe(&std::env::temp_dir(), Path::new(BINARY))
        else {
            return true;
        };
        let expected = std::env::var("GIT_VWS_TEST_EXPECT").unwrap_or_default();
        assert!(!expected.contains("overlay"), "no overlay: {why}");
        skip("overlay", &why);
        false
    }
}

pub fn long() -> bool {
    std::env::var_os("GIT_VWS_TEST_LONG").is_some()
}

thread_local! {
    /// How often this test has asked.
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// These ways, and the one of this run of the tests first: a directory is a checkout then.
pub fn with_the_usual(ways: Vec<Way>) -> Vec<Way> {
    let mut all = vec![Way::usual()];
    let others = ways.into_iter().filter(|way| *way != Way::usual());
    all.extend(others.filter(|way| *way != Way::Checkout));
    all
}

/// Whether this test has not asked for a turn yet.
pub fn is_first() -> bool {
    ASKED.get() == 0
}

/// The ways of the next call from a line of a test.
pub fn turn(line: u32) -> Vec<Way> {
    let asked = ASKED.replace(ASKED.get() + 1);
    if directories_stay() {
        return vec![Way::Stays];
    }
    if long() {
        return ALL.into_iter().filter(|way| way.is_here()).collect();
    }
    let way = ALL[(line as usize + asked) % ALL.len()];
    vec![if way.is_here() { way } else { Way::Checkout }]
}
