//! `blnn doctor`: what this machine has and what this program makes of it.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use blnn::Precision;
use blnn::data::{self, folders};
use blnn_kernels::probe::Peaks;
use blnn_kernels::{Isa, Threads, isa};
use clap::Args;
use serde::Serialize;

use crate::args::{Format, MachineArgs};
use crate::commands::datasets::search_folders;

/// Show the CPU's instructions and the kernels chosen, threads, memory and data folders.
///
/// With --probe the machine's peaks are measured too, for about a second: what `blnn bench` rates
/// are held against. Let nothing else run meanwhile.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  blnn doctor
  blnn doctor --probe --format json")]
pub(crate) struct DoctorArgs {
    /// Measure the machine's peaks
    #[arg(long)]
    probe: bool,

    /// How to print the findings
    #[arg(long, value_enum, default_value_t = Format::Table)]
    format: Format,

    #[command(flatten)]
    machine: MachineArgs,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Findings {
    version: &'static str,
    cpu: Option<String>,
    /// Instruction sets with kernels that this CPU has, the best first.
    available: Vec<&'static str>,
    /// The one in use.
    kernels: &'static str,
    /// What `--precision auto` chooses here, and the kernels of its dense products.
    precision: &'static str,
    products: &'static str,
    cores: usize,
    threads: usize,
    memory_gb: Option<f64>,
    free_memory_gb: Option<f64>,
    /// Where data sets are looked for, and which are there.
    folders: Vec<PathBuf>,
    cache: Option<PathBuf>,
    datasets: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    peaks: Option<MeasuredPeaks>,
}

#[derive(Debug, Serialize)]
struct MeasuredPeaks {
    gflops: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tile_gflops: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loaded_tile_gflops: Option<f64>,
    near_gather_gbs: f64,
    far_gather_gbs: f64,
    stream_gbs: f64,
}

pub(crate) fn run(args: &DoctorArgs) -> anyhow::Result<ExitCode> {
    let findings = examine(args);
    let mut out = io::stdout().lock();
    match args.format {
        Format::Json => writeln!(out, "{}", serde_json::to_string(&findings)?)?,
        Format::Table => {
            for (label, value) in rows(&findings) {
                writeln!(out, "{label:<10} {value}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn examine(args: &DoctorArgs) -> Findings {
    let threads = Threads::new(args.machine.threads.into());
    let folders = search_folders(args.machine.data_dir.as_deref());
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    // The embedded graph has no file.
    let there = |d: &&data::Dataset| d.file().is_none() || d.locate(&folders).is_some();
    Findings {
        version: env!("CARGO_PKG_VERSION"),
        cpu: std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| cpu_name(&text)),
        available: Isa::available().into_iter().map(Isa::name).collect(),
        kernels: isa().name(),
        precision: Precision::auto().name(),
        products: Precision::auto().kernels().dense,
        cores: std::thread::available_parallelism().map_or(1, usize::from),
        threads: threads.count(),
        memory_gb: gigabytes(&memory, "MemTotal"),
        free_memory_gb: gigabytes(&memory, "MemAvailable"),
        cache: folders::cache(|name| std::env::var_os(name)),
        datasets: data::registry().iter().filter(there).map(|d| d.name).collect(),
        folders,
        peaks: args.probe.then(|| measured(Peaks::measure(&threads))),
    }
}

fn measured(peaks: Peaks) -> MeasuredPeaks {
    MeasuredPeaks {
        gflops: peaks.gflops,
        tile_gflops: peaks.tile_gflops,
        loaded_tile_gflops: peaks.loaded_tile_gflops,
        near_gather_gbs: peaks.near_gather,
        far_gather_gbs: peaks.far_gather,
        stream_gbs: peaks.stream,
    }
}

fn cpu_name(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find_map(|line| line.strip_prefix("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// A line of /proc/meminfo in GB of 10⁹ bytes.
fn gigabytes(meminfo: &str, name: &str) -> Option<f64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e9)
}

fn rows(found: &Findings) -> Vec<(&'static str, String)> {
    let unknown = || "unknown on this system".to_owned();
    let memory = found.memory_gb.zip(found.free_memory_gb);
    let memory = memory.map(|(all, free)| format!("{all:.1} GB, {free:.1} GB of it free"));
    let folders: Vec<String> = found.folders.iter().map(|f| f.display().to_string()).collect();
    let datasets = found.datasets.join(", ");
    let mut rows = vec![
        ("blnn", found.version.to_owned()),
        ("cpu", found.cpu.clone().unwrap_or_else(unknown)),
        ("kernels", format!("{} (this CPU has {})", found.kernels, found.available.join(", "))),
        ("precision", format!("auto is {}: {} products", found.precision, found.products)),
        ("threads", format!("{} on {} cores", found.threads, found.cores)),
        ("memory", memory.unwrap_or_else(unknown)),
        ("data", format!("{datasets} (looked for in {})", folders.join(", "))),
        ("cache", found.cache.as_ref().map_or_else(unknown, |c| c.display().to_string())),
    ];
    if let Some(peaks) = &found.peaks {
        rows.push(("peaks", format!("{:.0} GF/s multiply-add in f32", peaks.gflops)));
        rows.extend(tile_peaks(peaks).map(|line| ("", line)));
        let gathers = format!(
            "{:.0} GB/s gathered from 1 MiB, {:.0} from 64 MiB, {:.0} in order",
            peaks.near_gather_gbs, peaks.far_gather_gbs, peaks.stream_gbs
        );
        rows.push(("", gathers));
    }
    rows
}

fn tile_peaks(peaks: &MeasuredPeaks) -> Option<String> {
    let loaded = peaks.loaded_tile_gflops?;
    Some(match peaks.tile_gflops {
        Some(peak) => format!("{peak:.0} GF/s bf16 on tile registers, {loaded:.0} with loads"),
        None => format!("{loaded:.0} GF/s bf16 in pairs, with loads"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_and_the_memory_are_read() {
        let text = "processor\t: 0\nmodel name\t: A CPU @ 2 GHz\n";
        assert_eq!(cpu_name(text).as_deref(), Some("A CPU @ 2 GHz"));
        assert_eq!(gigabytes("MemTotal:  2000000 kB\n", "MemTotal"), Some(2.048));
        assert_eq!(gigabytes("MemTotal:  2000000 kB\n", "MemAvailable"), None);
    }
}
