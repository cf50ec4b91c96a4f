//! What JSON records and messages need of a path.
//!
//! The forms themselves are in `model`, since metadata in commit messages uses the same ones; who
//! prints records finds them here beside [`quote`](super::quote).

pub use crate::model::json::{json_path, path_from_json};
pub use crate::model::text::sanitize_terminal;
