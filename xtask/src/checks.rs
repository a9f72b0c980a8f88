//! `cargo xtask test`: everything CI checks, in one command that stops at the first failure.

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use blnn_kernels::Isa;

use crate::args::Args;
use crate::tally::Tally;
use crate::test_binaries::{self, TestBinary};
use crate::{browser, fuzz, large_graphs, matrix_unit, pairs, workspace};

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
    report.step("tests of the large graphs", |report| large_graph_tests(report, &tests))?;
    report.step("tests of the matrix unit", |report| matrix_unit_tests(report, &tests))?;
    report.step("tests of products of pairs", |report| pair_tests(report, &tests))?;
    report.step("tests with lesser kernels", |report| forced_kernel_tests(report, &tests))?;
    report.step("fuzz targets compile", |_| succeed(&mut fuzz::check()))?;
    report.step("documentation", |_| {
        // `--lib`: the command and the library are both called blnn and would overwrite each other.
        let words = ["doc", "--workspace", "--lib", "--no-deps", "--document-private-items"];
        succeed(workspace::cargo(words).env("RUSTDOCFLAGS", "-D warnings"))
    })
}

/// Unit, integration and doc tests; those in a browser only where there is one or one can be had.
fn all_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mut command = workspace::cargo(["test", "--workspace"]);
    if !browser::is_ready() {
        let mark = browser::TEST_MARK;
        command.args(["--", "--skip", mark]);
        report.not_run.push(NotRun::new("a browser", browser::INSTALL, mark, tests)?);
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

    /// The kernels that this CPU has not: none of the numeric tests ran with them.
    fn kernels(available: &[&str]) -> Option<Self> {
        let all = ["avx512bf16", "avx512", "avx2", "neon"];
        let missing = all.into_iter().filter(|name| !available.contains(name));
        let names: Vec<String> =
            missing.map(|name| format!("all with the {name} kernels")).collect();
        let (want, remedy) = ("another CPU", "a machine that has these instructions");
        (!names.is_empty()).then_some(Self { want, remedy, names })
    }
}

/// What needs the large graphs runs where they are.
fn large_graph_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mark = large_graphs::TEST_MARK;
    let marked = NotRun::new("the large graphs", large_graphs::FETCH, mark, tests)?;
    let folder = large_graphs::find();
    report.marked(mark, marked, tests, folder.is_some(), |command| {
        command.envs(folder.as_ref().map(|folder| ("BLNN_DATA_DIR", folder)));
    })
}

/// What only a CPU with a matrix unit can run; elsewhere training on the unit is tested with its
/// instructions emulated.
fn matrix_unit_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mark = matrix_unit::TEST_MARK;
    let marked = NotRun::new("a matrix unit", matrix_unit::REMEDY, mark, tests)?;
    let is_here = matrix_unit::is_here();
    report.marked(mark, marked, tests, is_here, |_| ())?;
    let emulated = if is_here { None } else { matrix_unit::emulated() };
    emulated.map_or(Ok(()), |mut command| report.count(&mut command))
}

/// What only a CPU with AVX-512 BF16 can run.
fn pair_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let mark = pairs::TEST_MARK;
    let marked = NotRun::new("AVX-512 BF16", pairs::REMEDY, mark, tests)?;
    report.marked(mark, marked, tests, pairs::are_here(), |_| ())
}

/// The same tests must pass with lesser kernels than this CPU's best: the scalar ones are the
/// oracle and the fallback, the AVX2 ones are what most users have, and those of AVX-512 with and
/// without BF16 round otherwise than a matrix unit.
fn forced_kernel_tests(report: &mut Report, tests: &[TestBinary]) -> Result<()> {
    let is_numeric = |test: &&TestBinary| NUMERIC_PACKAGES.contains(&test.package.as_str());
    let available: Vec<&str> = Isa::available().into_iter().map(Isa::name).collect();
    let default = if matrix_unit::is_here() { "amx" } else { available[0] };
    let others = ["scalar", "avx2", "avx512", "avx512bf16"];
    let are_here = |name: &&str| available.contains(name) && *name != default;
    for kernels in others.into_iter().filter(are_here) {
        for test in tests.iter().filter(is_numeric) {
            let mut command = test.command();
            command.env("BLNN_KERNELS", kernels);
            for mark in [large_graphs::TEST_MARK, matrix_unit::TEST_MARK, pairs::TEST_MARK] {
                command.args(["--skip", mark]);
            }
            report.count(&mut command)?;
        }
    }
    report.not_run.extend(NotRun::kernels(&available));
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

    /// Runs the tests that are marked as needing something, or lists them as not run. The run of
    /// all tests counted them as ignored.
    fn marked(
        &mut self,
        mark: &str,
        marked: NotRun,
        tests: &[TestBinary],
        is_here: bool,
        prepare: impl Fn(&mut Command),
    ) -> Result<()> {
        self.tally.ignored = self.tally.ignored.saturating_sub(marked.names.len());
        if !is_here {
            self.not_run.push(marked);
            return Ok(());
        }
        for test in tests {
            if !test.tests_with(mark)?.is_empty() {
                let mut command = test.marked(mark);
                prepare(&mut command);
                self.count(&mut command)?;
            }
        }
        Ok(())
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
