//! Notes the commit the program is built from, so that results can name it.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // A change of the sources makes the tree dirty; a commit or checkout moves the log.
    for sources in ["src", "../blnn/src", "../blnn-kernels/src"] {
        println!("cargo::rerun-if-changed={sources}");
    }
    if let Some(folder) = git(&["rev-parse", "--absolute-git-dir"]) {
        let log = Path::new(&folder).join("logs/HEAD");
        println!("cargo::rerun-if-changed={}", log.display());
    }
    // Without git, or in a released archive, there is no commit to name.
    if let Some(commit) = git(&["describe", "--always", "--dirty", "--exclude=*", "--abbrev=12"]) {
        println!("cargo::rustc-env=BLNN_COMMIT={commit}");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
