//! `cargo xtask fuzz`: every reader of foreign bytes against libFuzzer, with the stable compiler.
//!
//! Coverage needs no more than compiler flags that are stable; only the sanitisers of `cargo fuzz`
//! need a nightly. Our readers are safe Rust, so what they could do wrong is panic, hang or
//! take too much memory, and libFuzzer sees these by itself.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::workspace;

/// What libFuzzer needs of the compiler: counters on every edge, compared values, and checks on.
const FLAGS: &str = "-Cpasses=sancov-module \
    -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares \
    --cfg fuzzing -Cdebug-assertions=on -Coverflow-checks=on";

/// Inputs are grown up to this many bytes; every format here has all its parts in fewer.
const LIMITS: [&str; 4] =
    ["-max_len=16384", "-timeout=10", "-rss_limit_mb=3000", "-malloc_limit_mb=2000"];

/// Builds the targets and runs those that were named, or all of them.
pub(crate) fn run(mut args: Args) -> Result<ExitCode> {
    let seconds = args.count("--seconds", 60)?;
    let targets = chosen_targets(&args.words()?)?;
    let programs = build()?;
    let mut broken = Vec::new();
    for target in &targets {
        println!("{target}: {seconds} s");
        if !survives(target, &programs, seconds)? {
            broken.push(target.as_str());
        }
    }
    if broken.is_empty() {
        println!("{} targets, nothing found", targets.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("found something: {}; the inputs are in fuzz/artifacts", broken.join(", "));
    Ok(ExitCode::FAILURE)
}

fn chosen_targets(named: &[String]) -> Result<Vec<String>> {
    let known = known_targets()?;
    if let Some(stranger) = named.iter().find(|name| !known.contains(name)) {
        bail!("there is no target `{stranger}`; there are {}", known.join(", "));
    }
    Ok(if named.is_empty() { known } else { named.to_vec() })
}

/// The names of the files in `fuzz/fuzz_targets`.
fn known_targets() -> Result<Vec<String>> {
    let folder = workspace::root().join("fuzz/fuzz_targets");
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        if let Some(name) = entry?.path().file_stem().and_then(|stem| stem.to_str()) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Builds all targets and returns the folder they are in.
fn build() -> Result<PathBuf> {
    let host = host()?;
    let folder = workspace::target_dir().join("fuzz");
    // With a target named, build scripts and macros are built without the counters.
    let mut cargo = workspace::cargo(["build", "--release", "--target", &host]);
    cargo.current_dir(workspace::root().join("fuzz")).env("RUSTFLAGS", FLAGS);
    cargo.arg("--target-dir").arg(&folder);
    if !cargo.status().context("cannot start cargo")?.success() {
        bail!("the fuzz targets do not build");
    }
    Ok(folder.join(host).join("release"))
}

/// A call that checks whether the targets still compile. Nothing is linked, so that libFuzzer need
/// not be there, nor a compiler for it.
pub(crate) fn check() -> Command {
    let mut cargo = workspace::cargo(["check", "--manifest-path", "fuzz/Cargo.toml"]);
    cargo.arg("--target-dir").arg(workspace::target_dir().join("fuzz-check"));
    cargo.current_dir(workspace::root()).env("CUSTOM_LIBFUZZER_PATH", "none/libfuzzer.a");
    cargo
}

/// The triple this machine compiles for.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("cannot start rustc")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.context("`rustc -vV` names no host")?.to_owned())
}

/// Runs one target: what it learns stays in `fuzz/corpus`, what breaks it in `fuzz/artifacts`.
fn survives(target: &str, programs: &Path, seconds: usize) -> Result<bool> {
    let fuzz = workspace::root().join("fuzz");
    let (corpus, artifacts) =
        (fuzz.join("corpus").join(target), fuzz.join("artifacts").join(target));
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    }
    let mut command = Command::new(programs.join(target));
    command.arg(&corpus).args(Some(fuzz.join("seeds").join(target)).filter(|seeds| seeds.is_dir()));
    command.args(LIMITS).arg("-print_final_stats=1").arg(format!("-max_total_time={seconds}"));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    let status = command.status().with_context(|| format!("cannot start the target {target}"))?;
    Ok(status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_target_is_known_and_nothing_else() {
        let all = chosen_targets(&[]).unwrap();
        assert!(all.contains(&"npz".to_owned()) && all.len() > 5, "{all:?}");
        assert_eq!(chosen_targets(&["npz".into()]).unwrap(), ["npz"]);
        assert!(chosen_targets(&["nzp".into()]).is_err());
    }

    #[test]
    fn every_target_has_a_seed() {
        for target in known_targets().unwrap() {
            let seeds = workspace::root().join("fuzz/seeds").join(&target);
            assert!(fs::read_dir(&seeds).is_ok_and(|mut files| files.next().is_some()), "{target}");
        }
    }
}
