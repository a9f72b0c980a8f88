//! The `blnn` command.
fn main() {}
