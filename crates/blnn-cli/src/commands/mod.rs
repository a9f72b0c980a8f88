//! One file a command, each with a `run` that returns the exit code.

pub(crate) mod bench;
pub(crate) mod eval;
mod eval_report;
pub(crate) mod train;

use std::path::Path;

use blnn::Graph;

/// Loads the graph a user named.
pub(crate) fn load_graph(name: &str, _data_dir: Option<&Path>) -> anyhow::Result<Graph> {
    use blnn_kernels::{Matrix, Pattern};
    let n = if name == "cora" { 2708 } else { 100 };
    let indices = (0..n).flat_map(|i: u32| {
        let mut row = [(i + 1) % n, (i + n - 1) % n];
        row.sort_unstable();
        row
    });
    let pattern = Pattern::new(
        n as usize,
        (0..=n as usize).map(|i| i * 2).collect(),
        indices.collect(),
    )?;
    let features = Matrix::from_fn(n as usize, 40, |i, j| ((i * 7 + j * 3) % 11) as f32);
    Ok(Graph::new(name, pattern, blnn::Features::Dense(features))?)
}

/// The name a graph's presets and run folders go by: that of its data set, or of its file.
pub(crate) fn dataset_name(graph: &str) -> String {
    Path::new(graph).file_stem().map_or_else(
        || graph.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}
