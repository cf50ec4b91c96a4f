//! Directories by overlay mount: below, a frozen [template](super::template); above, the workspace's
//! own folder.
//!
//! Laying out writes what differs from the template, a capture reads what the upper folder holds, and
//! removal deletes that: nothing costs more than the change. A mount for a command exists only in a
//! namespace of that command, needs no root, and keeps the caller's own uid:
//!
//! - [`Spec`] says what is mounted where; it travels as arguments of a second start of this very
//!   program ([`Spec::invocation`]), because only a process with one thread may enter a user
//!   namespace;
//! - [`enter`] is what that second start does before anything else: it mounts and then becomes the
//!   command; where the caller may mount by itself, [`inside`] does without it;
//! - [`fill`](upper::fill) puts the difference between template and revision into the upper folder,
//!   [`read_back`] lists what may differ from the revision afterwards;
//! - [`Stand`] puts these together for one workspace;
//! - [`visible`] mounts one that stays, where the caller may, for all to see;
//! - [`probe`] finds out by doing whether all this works on a file system.
//!
//! # Rules
//!
//! - A folder stands above one mount at a time: `enter` holds a lock on it that the command inherits.
//! - Attributes of the overlay are written in the form of `user.` names, also by root, so that an
//!   upper folder reads the same whoever mounts it; both forms are understood.
//! - `redirect_dir` and `metacopy` are off: with them a folder above would hold less than it shows.

mod backend;
pub(super) mod marks;
mod merged;
mod namespace;
mod probe;
mod read_back;
mod spec;
mod stand;
mod take_up;
mod upper;
pub(super) mod visible;

pub(super) use backend::Overlay;
pub use merged::merged_file;
pub use namespace::{Failure, enter, enter_main, inside};
pub use probe::{cached_probe, forget_probe, probe};
pub use read_back::{Touched, What, expand, read_back};
pub use spec::{ENTER, Invocation, Spec};
pub(super) use stand::NOTE;
pub use stand::{At, Place, Stand};
pub use upper::{Upper, fill};
