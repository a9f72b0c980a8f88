//! `blnn bench`: seconds per epoch, peak memory and where the time goes.

use std::io::{self, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, bail};
use blnn::{Config, StageCost, Trainer, step_cost};
use blnn_kernels::Threads;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::args::{BenchArgs, Format};
use crate::commands::{load_graph, preset_name};

/// Epochs before the clock starts: buffers, caches and threads are then in place.
const WARMUP: usize = 3;

/// The measurement of one graph.
#[derive(Debug, Serialize, Deserialize)]
struct Measurement {
    graph: String,
    method: String,
    precision: String,
    /// Vector instructions and dense products.
    kernels: String,
    threads: usize,
    /// Median.
    seconds_per_epoch: f64,
    peak_rss_mb: f64,
    /// Share of the training time each stage takes.
    stages: Map<String, Value>,
    /// Rates of the stages whose work can be counted: `gflops`, and `gathered_gbs` where rows are
    /// gathered.
    rates: Map<String, Value>,
}

pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    let mut out = io::stdout().lock();
    for (row, graph) in args.graphs.iter().enumerate() {
        let measurement =
            if args.here { measure(args, graph)? } else { measure_in_child(args, graph)? };
        match args.format {
            Format::Json => writeln!(out, "{}", serde_json::to_string(&measurement)?)?,
            Format::Table => {
                if row == 0 {
                    writeln!(out, "{}", table_head())?;
                }
                writeln!(out, "{}", table_row(&measurement))?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures in a process of its own: the peak memory of a process never goes down, so the graphs
/// measured before would count too.
fn measure_in_child(args: &BenchArgs, graph: &str) -> anyhow::Result<Measurement> {
    let program = std::env::current_exe().context("cannot find this program to start it again")?;
    let mut child = Command::new(program);
    child.args(["bench", "--here", "--format", "json"]);
    child.args(["--epochs", &args.epochs.to_string()]);
    child.args(["--threads", &args.machine.threads.to_string()]);
    child.args(["--precision", &args.precision]);
    if let Some(method) = args.method {
        child.args(["--method", method.name()]);
    }
    if let Some(folder) = &args.machine.data_dir {
        child.arg("--data-dir").arg(folder);
    }
    child.arg("--").arg(graph).stderr(Stdio::inherit());
    let output = child.output().context("cannot start the measuring process")?;
    if !output.status.success() {
        bail!("measuring `{graph}` failed ({})", output.status);
    }
    serde_json::from_slice(&output.stdout).context("the measuring process printed no measurement")
}

fn measure(args: &BenchArgs, name: &str) -> anyhow::Result<Measurement> {
    let mut config = Config::new();
    if let Some(method) = args.method {
        config.flag("method", method.name());
    }
    config.flag("precision", args.precision.as_str());
    let plan = config.resolve(preset_name(name, None))?;
    let graph = load_graph(name, args.machine.data_dir.as_deref())?;
    let threads = Threads::new(args.machine.threads.into());
    let mut trainer = Trainer::new(&graph, &plan, &threads)?;
    for _ in 0..WARMUP {
        trainer.step();
    }
    let before = trainer.stage_seconds();
    let mut seconds: Vec<f64> = (0..args.epochs)
        .map(|_| {
            let began = Instant::now();
            trainer.step();
            began.elapsed().as_secs_f64()
        })
        .collect();
    let seconds_per_epoch = median(&mut seconds);
    let stages = shares(&before, &trainer.stage_seconds());
    Ok(Measurement {
        graph: graph.name().to_owned(),
        method: plan.method().name().to_owned(),
        precision: plan.precision().name().to_owned(),
        kernels: plan.precision().kernels().to_string(),
        threads: threads.count(),
        seconds_per_epoch,
        peak_rss_mb: peak_rss_mb()?,
        rates: rates(&step_cost(&graph, &plan), &stages, seconds_per_epoch),
        stages,
    })
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len().is_multiple_of(2) {
        f64::midpoint(values[middle - 1], values[middle])
    } else {
        values[middle]
    }
}

/// Each stage's share of the time between two readings; the shares sum to 1.
fn shares(before: &[(&'static str, f64)], after: &[(&'static str, f64)]) -> Map<String, Value> {
    let earlier = |name: &str| before.iter().find(|(n, _)| *n == name).map_or(0.0, |b| b.1);
    let spent = after.iter().map(|(name, s)| (*name, (s - earlier(name)).max(0.0)));
    let spent: Vec<(&str, f64)> = spent.collect();
    let total: f64 = spent.iter().map(|(_, s)| s).sum();
    let share = |s: f64| Value::from(s / total.max(f64::MIN_POSITIVE));
    spent.into_iter().map(|(name, s)| (name.to_owned(), share(s))).collect()
}

/// The counted work of each stage over its time.
fn rates(costs: &[StageCost], stages: &Map<String, Value>, epoch: f64) -> Map<String, Value> {
    let rate = |cost: &StageCost| {
        let seconds = stages.get(cost.stage)?.as_f64()? * epoch;
        let giga = |work: f64| work / seconds.max(f64::MIN_POSITIVE) / 1e9;
        let mut rate = Map::new();
        rate.insert("gflops".to_owned(), giga(cost.operations).into());
        if cost.gathered_bytes > 0.0 {
            rate.insert("gathered_gbs".to_owned(), giga(cost.gathered_bytes).into());
        }
        Some((cost.stage.to_owned(), rate.into()))
    };
    costs.iter().filter_map(rate).collect()
}

/// The most memory this process ever held, in MB of 10⁶ bytes, as the Linux kernel counts it.
fn peak_rss_mb() -> anyhow::Result<f64> {
    let status = std::fs::read_to_string("/proc/self/status")
        .context("peak memory is read from /proc/self/status, which only Linux has")?;
    peak_of(&status).context("/proc/self/status has no line `VmHWM`")
}

fn peak_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

fn table_head() -> String {
    format!(
        "{:<12} {:<11} {:<9} {:>7} {:>12} {:>10}  {}",
        "graph", "method", "precision", "threads", "ms/epoch", "peak MB", "stages"
    )
}

fn table_row(m: &Measurement) -> String {
    let percent = |(name, share): (&String, &Value)| {
        let share = 100.0 * share.as_f64().unwrap_or_default();
        let rate = |unit: &str| m.rates.get(name).and_then(|r| r.get(unit)?.as_f64());
        let rate = match (rate("gathered_gbs"), rate("gflops")) {
            (Some(gbs), _) => format!(" ({gbs:.0} GB/s)"),
            (None, Some(gflops)) => format!(" ({gflops:.0} GF/s)"),
            (None, None) => String::new(),
        };
        format!("{name} {share:.0} %{rate}")
    };
    let stages: Vec<String> = m.stages.iter().map(percent).collect();
    format!(
        "{:<12} {:<11} {:<9} {:>7} {:>12.1} {:>10.0}  {}",
        m.graph,
        m.method,
        m.precision,
        m.threads,
        1e3 * m.seconds_per_epoch,
        m.peak_rss_mb,
        stages.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "halves are exact")]
    fn median_of_odd_and_even_counts() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
    }

    #[test]
    fn shares_leave_out_the_warmup_and_sum_to_one() {
        let shares = shares(&[("a", 5.0), ("b", 1.0)], &[("a", 6.0), ("b", 4.0)]);
        assert_eq!(shares["a"], 0.25);
        assert_eq!(shares["b"], 0.75);
    }

    #[test]
    fn rates_are_work_over_time() {
        let cost =
            |stage, operations, gathered_bytes| StageCost { stage, operations, gathered_bytes };
        let costs = [cost("a", 4e9, 0.0), cost("b", 1e9, 6e9), cost("absent", 1.0, 1.0)];
        let stages = shares(&[], &[("a", 1.0), ("b", 3.0)]);
        let rates = rates(&costs, &stages, 2.0);
        assert_eq!(rates["a"]["gflops"], 8.0);
        assert_eq!(rates["b"]["gathered_gbs"], 4.0);
        assert!(rates["a"].get("gathered_gbs").is_none() && rates.len() == 2);
    }

    #[test]
    fn peak_memory_is_read_in_kib() {
        assert_eq!(peak_of("Name:\tx\nVmHWM:\t    2000 kB\n"), Some(2.048));
        assert_eq!(peak_of("Name:\tx\n"), None);
    }
}
