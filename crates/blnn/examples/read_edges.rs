//! How long a graph of one's own takes to read: `cargo run --release --example read_edges -- FILE`.
//!
//! Prints one JSON object: seconds to read the file, seconds until the graph is ready, peak memory.

#![expect(clippy::print_stdout, reason = "an example prints")]

use std::time::Instant;

use blnn::data::own::{OwnGraph, Structural, read};
use blnn_kernels::Threads;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("name the file of the edges")?;
    let threads = std::env::args().nth(2).map_or(Ok(0), |count| count.parse())?;
    let start = Instant::now();
    // The degree costs next to nothing, so that the time is that of reading.
    let request = OwnGraph { features: Some(Structural::OnehotDegree), ..OwnGraph::new(path) };
    let loaded = read(&request, &Threads::new(threads))?;
    let ready = start.elapsed().as_secs_f64();
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let report = serde_json::json!({
        "read_seconds": loaded.understood.files[0].seconds,
        "graph_seconds": ready,
        "peak_memory": peak.map(str::trim),
        "understood": loaded.understood,
    });
    println!("{report}");
    Ok(())
}
