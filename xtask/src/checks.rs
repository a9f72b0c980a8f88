//! `cargo xtask test`: everything CI checks, in one command that stops at the first failure.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::args::Args;
use crate::tally::Tally;
use crate::test_binaries::{self, TestBinary};
use crate::{browser, large_graphs, matrix_unit, workspace};

/// Packages whose results depend on the kernels.
const NUMERIC_PACKAGES: [&str; 2] = ["blnn-kernels", "blnn"];

/// Runs all checks.
pub(crate) fn run(args: Args) -> Result<ExitCode> {
    args.finish()?;
    let mut report = Report::default();
    let outcome = run_all(&mut report);
    report.print(outcome.as_ref().err());
    let nothing_ran = outcome.is_ok() && report.tally.passed == 0;
    if nothing_ran {
        println!("refused: not a single test ran");
    }
    let good = outcome.is_ok() && report.tally.failed == 0 && !nothing_ran;
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Cheap checks come first, so that a slip shows within seconds.
fn run_all(report: &mut Report) -> Result<()> {
    report.step("formatting", |_| succeed(&mut workspace::cargo(["fmt", "--all", "--check"])))?;
    report.step("lints", |_| {
        let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
        succeed(&mut workspace::cargo(words))
    })?;
    let tests = report.step("compile the tests", |_| test_binaries::build())?;
    report.step("tests", |report| all_tests(report, &tests))?;
    report.step("tests of the matrix unit", |report| matrix_unit_tests(report, &tests))?;
    report.step("tests with lesser kernels", |report| forced_kernel_tests(report, &tests))?;
    report.step("documentation", |_| {
        // `--lib`: the command and the library are both called blnn and would overwrite each other.
        let words = ["doc", "--workspace", "--lib", "--no-deps", "--document-private-items"];
        succeed(workspace::cargo(words).env("RUSTDOCFLAGS", "-D warnings"))
    })
}

/// Unit, integration and doc tests; those on the large graphs only where the graphs are, those in
/// a browser only where there is one or one can be had.
fn all_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mut command = workspace::cargo(["test", "--workspace"]);
    let mut skipped = Vec::new();
    match large_graphs::find() {
        Some(folder) => drop(command.env("BLNN_DATA_DIR", folder)),
        None => skipped.push((large_graphs::TEST_MARK, "the large graphs", large_graphs::FETCH)),
    }
    if !browser::is_ready() {
        skipped.push((browser::TEST_MARK, "a browser", browser::INSTALL));
    }
    if !skipped.is_empty() {
        command.arg("--");
    }
    for (mark, want, remedy) in skipped {
        command.args(["--skip", mark]);
        report.not_run.push(NotRun::new(want, remedy, mark, tests)?);
    }
    report.count(&mut command)
}

/// Tests that were left out, and what they wanted.
struct NotRun {
    want: &'static str,
    remedy: &'static str,
    names: Vec<String>,
}

impl NotRun {
    fn new(
        want: &'static str,
        remedy: &'static str,
        mark: &str,
        tests: &[TestBinary],
    ) -> Result<Self> {
        let mut names = Vec::new();
        for test in tests {
            names.extend(test.tests_with(mark)?);
        }
        Ok(Self { want, remedy, names })
    }
}

/// What only a CPU with a matrix unit can run; elsewhere it is listed, not counted, and training on
/// the unit is tested with its instructions emulated.
fn matrix_unit_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mark = matrix_unit::TEST_MARK;
    let marked = NotRun::new("a matrix unit", matrix_unit::REMEDY, mark, tests)?;
    // The run of all tests counted them as ignored.
    report.tally.ignored = report.tally.ignored.saturating_sub(marked.names.len());
    if !matrix_unit::is_here() {
        report.not_run.push(marked);
        return matrix_unit::emulated().map_or(Ok(()), |mut command| report.count(&mut command));
    }
    for test in tests {
        if !test.tests_with(mark)?.is_empty() {
            report.count(&mut matrix_unit::command(test))?;
        }
    }
    Ok(())
}

/// The same tests must pass with lesser kernels than this CPU's best: the scalar ones are the
/// oracle and the fallback, the AVX2 ones are what most users have.
fn forced_kernel_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let is_numeric = |test: &&TestBinary| NUMERIC_PACKAGES.contains(&test.package.as_str());
    for kernels in ["scalar", "avx2"] {
        for test in tests.iter().filter(is_numeric) {
            let mut command = test.command();
            command.env("BLNN_KERNELS", kernels);
            for mark in [large_graphs::TEST_MARK, matrix_unit::TEST_MARK] {
                command.args(["--skip", mark]);
            }
            report.count(&mut command)?;
        }
    }
    Ok(())
}

/// What has been done so far.
#[derive(Default)]
struct Report {
    steps: Vec<(&'static str, bool, Duration)>,
    tally: Tally,
    not_run: Vec<NotRun>,
}

impl Report {
    fn step<T>(
        &mut self,
        name: &'static str,
        check: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        println!("\n== {name}");
        let start = Instant::now();
        let outcome = check(self);
        self.steps.push((name, outcome.is_ok(), start.elapsed()));
        outcome.context(name)
    }

    /// Runs test programs, shows what they print, and counts.
    fn count(&mut self, command: &mut Command) -> Result<()> {
        let mut child = command.stdout(Stdio::piped()).spawn().context("cannot start")?;
        let stdout = child.stdout.take().context("no output to read")?;
        for line in BufReader::new(stdout).lines() {
            let line = line?;
            println!("{line}");
            self.tally += Tally::from_line(&line).unwrap_or_default();
        }
        check_status(child.wait()?)
    }

    fn print(&self, failure: Option<&anyhow::Error>) {
        println!("\n== summary");
        for (name, good, time) in &self.steps {
            let word = if *good { "ok" } else { "FAILED" };
            println!("{name:<28} {word:<8} {:>7.1} s", time.as_secs_f64());
        }
        self.print_not_run();
        if let Some(error) = failure {
            println!("stopped at {error:#}");
        }
        println!("{} passed, {} failed", self.tally.passed, self.tally.failed);
    }

    fn print_not_run(&self) {
        for NotRun { want, remedy, names } in &self.not_run {
            println!("not run, for want of {want} ({remedy}):");
            for name in names {
                println!("    {name}");
            }
        }
        if self.tally.ignored > 0 {
            println!("{} tests are marked as ignored", self.tally.ignored);
        }
    }
}

fn succeed(command: &mut Command) -> Result<()> {
    check_status(command.status().context("cannot start")?)
}

fn check_status(status: std::process::ExitStatus) -> Result<()> {
    if !status.success() {
        bail!("{status}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_stops_and_is_named() {
        let mut report = Report::default();
        report.step("first", |_| Ok(())).unwrap();
        let error = report.step("second", |_| -> Result<()> { bail!("exit status: 1") });
        assert_eq!(format!("{:#}", error.unwrap_err()), "second: exit status: 1");
        let outcomes: Vec<_> = report.steps.iter().map(|s| (s.0, s.1)).collect();
        assert_eq!(outcomes, [("first", true), ("second", false)]);
    }
}
