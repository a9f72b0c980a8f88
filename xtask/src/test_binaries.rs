//! The compiled test programs of the workspace, to run again with other kernels.
//!
//! `cargo test -p blnn` would select features for one package only and compile the dependencies
//! anew; the programs of the whole workspace are there already.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

/// One test program.
pub(crate) struct TestBinary {
    /// Name of its package's folder, which is the package's name.
    pub(crate) package: String,
    folder: PathBuf,
    program: PathBuf,
}

impl TestBinary {
    /// A call of the program where cargo would call it.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        command
    }

    /// A call of the tests that are ignored for what they need, and whose path contains `mark`.
    pub(crate) fn marked(&self, mark: &str) -> Command {
        let mut command = self.command();
        command.args(["--ignored", mark]);
        command
    }

    /// The tests whose path contains `mark`.
    pub(crate) fn tests_with(&self, mark: &str) -> Result<Vec<String>> {
        let output = self
            .command()
            .args(["--list", "--format", "terse", mark])
            .output()
            .with_context(|| format!("cannot list the tests of {}", self.program.display()))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let names = text.lines().filter_map(|line| line.strip_suffix(": test"));
        Ok(names.map(|name| format!("{}: {name}", self.package)).collect())
    }
}

/// Compiles all tests and lists their programs.
pub(crate) fn build() -> Result<Vec<TestBinary>> {
    let output = workspace::cargo(["test", "--workspace", "--no-run"])
        .arg("--message-format=json-render-diagnostics")
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the tests do not compile");
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(text.lines().filter_map(parse).collect())
}

/// Reads one of cargo's messages; `None` unless it tells of a finished test program.
fn parse(message: &str) -> Option<TestBinary> {
    let message: Value = serde_json::from_str(message).ok()?;
    if !message["profile"]["test"].as_bool()? {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
    Some(TestBinary {
        package: folder.file_name()?.to_str()?.to_owned(),
        folder: folder.to_owned(),
        program: message["executable"].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_test_programs_count() {
        let test = r#"{"reason":"compiler-artifact","manifest_path":"/a/blnn/Cargo.toml",
            "profile":{"test":true},"executable":"/t/blnn-1"}"#;
        assert_eq!(parse(test).unwrap().package, "blnn");
        assert!(parse(&test.replace("true", "false")).is_none());
        assert!(parse(r#"{"reason":"build-finished","success":true}"#).is_none());
    }
}
