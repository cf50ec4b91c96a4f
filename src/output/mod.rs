//! Records on their way out: porcelain, NUL-separated, JSON.

pub mod json;
pub mod quote;
