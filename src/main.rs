//! git-vws
fn main() {}
