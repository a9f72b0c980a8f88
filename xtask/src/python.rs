//! A Python that has the modules we need: a given one, one on the path, or one of our own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace;

/// A Python program.
pub(crate) struct Python(PathBuf);

impl Python {
    pub(crate) fn command(&self) -> Command {
        Command::new(&self.0)
    }

    fn has(&self, modules: &[&str]) -> bool {
        let script = format!("import {}", modules.join(", "));
        let mut command = self.command();
        command.args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// Finds a Python with all `modules`, or makes an environment in the target folder that has them.
pub(crate) fn with_modules(given: Option<&str>, modules: &[&str]) -> Result<Python> {
    if let Some(path) = given {
        let python = Python(path.into());
        if !python.has(modules) {
            bail!("--python {path}: it cannot import {}", modules.join(", "));
        }
        return Ok(python);
    }
    let own = environment();
    let known = [python_of(&own), "python3".into(), "python".into()];
    if let Some(python) = known.into_iter().map(Python).find(|python| python.has(modules)) {
        return Ok(python);
    }
    make_environment(&own, modules)?;
    Ok(Python(python_of(&own)))
}

fn environment() -> PathBuf {
    workspace::target_dir().join("peer-venv")
}

fn python_of(environment: &Path) -> PathBuf {
    if cfg!(windows) {
        environment.join("Scripts/python.exe")
    } else {
        environment.join("bin/python")
    }
}

fn make_environment(folder: &Path, modules: &[&str]) -> Result<()> {
    eprintln!("no Python with {} found: making one in {}", modules.join(", "), folder.display());
    let mut make = Command::new("python3");
    succeed(make.args(["-m", "venv"]).arg(folder), "make a Python environment")?;
    let mut install = Command::new(python_of(folder));
    install.args(["-m", "pip", "install", "--quiet"]).args(modules);
    succeed(&mut install, "install the modules with pip")
}

/// Runs with its output on stderr: stdout may be read as JSON.
fn succeed(command: &mut Command, action: &str) -> Result<()> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot {action}; name a Python with --python"))?;
    eprint!("{}", String::from_utf8_lossy(&output.stdout));
    if !output.status.success() {
        bail!("cannot {action} ({}); name a Python with --python", output.status);
    }
    Ok(())
}
