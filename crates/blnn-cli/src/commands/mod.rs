//! One file a command, each with a `run` that returns the exit code.

pub(crate) mod bench;
pub(crate) mod eval;
mod eval_report;
pub(crate) mod train;

use std::path::Path;

use blnn::{Graph, data};

/// Loads the graph a user named.
pub(crate) fn load_graph(name: &str, data_dir: Option<&Path>) -> anyhow::Result<Graph> {
    let folders = data::folders::search(data_dir, |variable| std::env::var_os(variable));
    Ok(data::load(name, &folders)?)
}

/// The name a graph's presets and run folders go by: that of its data set, or of its file.
pub(crate) fn dataset_name(graph: &str) -> String {
    Path::new(graph).file_stem().map_or_else(
        || graph.to_owned(),
        |stem| stem.to_string_lossy().into_owned(),
    )
}
