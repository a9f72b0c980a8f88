//! Finding the graph again that a run was trained on.

use std::path::Path;

use blnn::data::own::{self, OwnGraph};
use blnn::{Graph, Header, data};
use blnn_kernels::Threads;

use crate::commands::load_graph;
use crate::output::{note, shell_word};
use crate::own_graph::OwnGraphArgs;

/// What a run says of its graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainedOn<'a> {
    pub(crate) name: &'a str,
    /// Not known of a run without a checkpoint.
    pub(crate) header: Option<&'a Header>,
    /// The user's own files.
    pub(crate) files: Option<&'a OwnGraph>,
}

/// Whether to say what was understood of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Understood,
    Nothing,
}

/// Why a graph cannot be had, and what could be typed in its place.
#[derive(Debug)]
pub(crate) enum Lost {
    /// It is not where it was, or nobody knows where that is.
    Elsewhere { why: String, words: String },
    /// It is not what it was.
    Changed { why: String, words: String },
}

impl TrainedOn<'_> {
    /// Loads the graph from where it was, unless it changed.
    pub(crate) fn load(
        self,
        data_dir: Option<&Path>,
        tell: Tell,
        threads: &Threads,
    ) -> Result<Graph, Lost> {
        let elsewhere = |why: String| Lost::Elsewhere { why, words: self.words("FILE") };
        let (graph, what) = match self.files {
            None => {
                let name = self.name;
                if data::find(name).is_none() && !name.starts_with("generated-") {
                    let why = format!("the run does not say where the graph `{name}` is");
                    return Err(elsewhere(why));
                }
                let graph = load_graph(name, data_dir).map_err(|e| elsewhere(e.to_string()))?;
                (graph, format!("the data set `{name}`"))
            }
            Some(files) => {
                if let Some(gone) = files.paths().into_iter().find(|path| !path.is_file()) {
                    let gone = gone.display();
                    let why = format!("the run was trained on {gone}, which is not there any more");
                    return Err(elsewhere(why));
                }
                let changed = |e: blnn::Error| self.changed(&e.to_string());
                (read(files, tell, threads).map_err(changed)?, shown(files))
            }
        };
        if self.header.is_some_and(|header| !header.fits(&graph)) {
            return Err(self.changed(&format!("{what} changed since the run was trained")));
        }
        Ok(graph)
    }

    fn changed(self, why: &str) -> Lost {
        let edges = self.files.map_or_else(String::new, |files| files.edges.display().to_string());
        Lost::Changed { why: why.to_owned(), words: self.words(&edges) }
    }

    /// What names the graph on a command line, with the files where they were unless `edges` is
    /// another one.
    fn words(self, edges: &str) -> String {
        let Some(files) = self.files else {
            return "GRAPH".to_owned();
        };
        let mut files = files.clone();
        if files.edges != Path::new(edges) {
            files.edges = edges.into();
            files.nodes = files.nodes.map(|_| edges.into());
        }
        if is_wikics(&files.edges) {
            return shell_word(&files.edges);
        }
        OwnGraphArgs::from(&files).words().trim_start().to_owned()
    }
}

/// Whether a file is read as WikiCS's: by its ending, as in `train`.
fn is_wikics(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "json")
}

/// The files, for people.
fn shown(files: &OwnGraph) -> String {
    let paths: Vec<String> = files.paths().iter().map(|path| path.display().to_string()).collect();
    if paths.len() == 1 { paths.concat() } else { format!("one of {}", paths.join(", ")) }
}

fn read(files: &OwnGraph, tell: Tell, threads: &Threads) -> blnn::Result<Graph> {
    if is_wikics(&files.edges) {
        return data::read_file(&files.edges);
    }
    let loaded = own::read(files, threads)?;
    if tell == Tell::Understood {
        note(loaded.understood.to_string().trim_end());
    }
    Ok(loaded.graph)
}
