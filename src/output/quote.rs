//! What lines need of a path.
//!
//! The form itself is in `model`, since the header lines of a patch, far below, use the same one.

pub use crate::model::quote::{UnquoteError, quote_c, unquote_c};
