//! `cargo xtask golden`: the golden arrays of the engine's tests, written anew with PyTorch.

use std::process::ExitCode;

use anyhow::{Context, Result};

use crate::args::Args;
use crate::{python, workspace};

const SCRIPT: &str = "crates/blnn/tests/golden/make_golden.py";

/// Runs the script that writes the arrays, or compares them with `--check`.
pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let check = args.flag("--check");
    let given = args.value("--python")?;
    args.finish()?;
    let mut command = python::with_modules(given.as_deref(), &["torch", "numpy"])?.command();
    command.arg(workspace::root().join(SCRIPT));
    if check {
        command.arg("--check");
    }
    let status = command.status().context("cannot start python")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
