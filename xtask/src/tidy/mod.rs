//! Rules about the repository's text that no compiler checks: which module may use which, where
//! `unsafe` may stand, and what must never be committed.

mod layers;
mod source;
mod unsafety;
mod words;

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::workspace;

/// A file of the repository: its path from the root, with forward slashes, and its text.
struct File {
    path: String,
    text: String,
}

impl File {
    fn is_a(&self, extension: &str) -> bool {
        Path::new(&self.path).extension().is_some_and(|found| found == extension)
    }
}

/// All text files that git tracks.
fn files() -> Vec<File> {
    let output = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(workspace::root())
        .output()
        .expect("git lists the files to check");
    assert!(output.status.success(), "the checks need a git checkout");
    let paths = String::from_utf8(output.stdout).expect("paths are UTF-8");
    let read = |path: &str| {
        let text = fs::read_to_string(workspace::root().join(path)).ok()?;
        let path = path.to_owned();
        Some(File { path, text })
    };
    paths.split_terminator('\0').filter_map(read).collect()
}

/// Fails with all complaints of a rule at once.
fn assert_none(complaints: &[String]) {
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}

#[test]
fn the_checks_see_the_repository() {
    let files = files();
    let has = |path: &str| files.iter().any(|file| file.path == path);
    assert!(has("Cargo.toml") && has("crates/blnn/src/lib.rs") && has("xtask/src/tidy/mod.rs"));
}

#[test]
fn library_modules_use_only_lower_layers() {
    assert_none(&layers::check(&files()));
}

#[test]
fn unsafe_code_stays_in_the_kernels_and_says_why() {
    assert_none(&unsafety::check(&files()));
}

#[test]
fn no_machine_paths_or_registry_hosts() {
    assert_none(&words::check(&files()));
}
