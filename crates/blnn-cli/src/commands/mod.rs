//! One file a command, each with a `run` that returns the exit code.

pub(crate) mod bench;
pub(crate) mod datasets;
pub(crate) mod doctor;
pub(crate) mod embed;
pub(crate) mod eval;
mod eval_nodes;
mod eval_report;
pub(crate) mod plan;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod shell;
pub(crate) mod similar;
pub(crate) mod train;
mod train_summary;
mod train_words;

use std::path::Path;

use blnn::{Graph, data};

/// Loads the graph a user named: a data set or a file.
pub(crate) fn load_graph(name: &str, data_dir: Option<&Path>) -> blnn::Result<Graph> {
    data::load(name, &datasets::search_folders(data_dir))
}

/// The name a graph's presets and run folders go by: that of its data set, or of its file.
pub(crate) fn dataset_name(graph: &str) -> String {
    let of_file = || data::own::name_of(Path::new(graph));
    data::find(graph).map_or_else(of_file, |dataset| dataset.name.to_owned())
}

/// The data set whose preset a graph gets: a data set that is named, never a user's own file,
/// whatever that is called.
pub(crate) fn preset_name<'a>(graph: &'a str, edges: Option<&Path>) -> &'a str {
    let known = data::find(graph).filter(|_| edges.is_none());
    known.map_or("", |dataset| dataset.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_after_data_set_or_file() {
        assert_eq!(dataset_name("photo"), "photo");
        assert_eq!(dataset_name("my/graph.npz"), "graph");
        assert_eq!(dataset_name("my/edges.csv.gz"), "edges");
    }

    #[test]
    fn a_file_gets_no_preset_by_its_name() {
        assert_eq!(preset_name("photo", None), "photo");
        assert_eq!(preset_name("photo.csv", None), "");
        assert_eq!(preset_name("cora", Some(Path::new("photo.csv"))), "");
    }
}
