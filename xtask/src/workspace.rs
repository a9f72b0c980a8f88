//! Where the workspace is and how its cargo is called.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Where build products go; our own caches live there too.
pub(crate) fn target_dir() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR");
    root().join(given.unwrap_or_else(|| "target".into()))
}

/// `cargo ARGS` at the root, without what the outer `cargo run` set for this program: some build
/// scripts watch those variables and would compile half the dependencies again.
pub(crate) fn cargo<A: AsRef<OsStr>>(args: impl IntoIterator<Item = A>) -> Command {
    let program = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(program);
    command.args(args).current_dir(root());
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(is_of_the_outer_run) {
            command.env_remove(name);
        }
    }
    command
}

fn is_of_the_outer_run(name: &str) -> bool {
    name.starts_with("CARGO_PKG_")
        || name.starts_with("CARGO_MANIFEST_")
        || ["CARGO_BIN_NAME", "CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE"].contains(&name)
}
