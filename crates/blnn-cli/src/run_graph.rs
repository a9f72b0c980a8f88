//! Finding the graph again that a run was trained on.

use std::path::Path;

use anyhow::{Result, bail};
use blnn::data::own::{self, OwnGraph};
use blnn::{Graph, data};
use blnn_kernels::Threads;

use crate::commands::load_graph;
use crate::output::note;
use crate::own_graph::OwnGraphArgs;

/// What a run says of its graph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TrainedOn<'a> {
    pub(crate) name: &'a str,
    /// Not known of a run without a checkpoint.
    pub(crate) fingerprint: Option<&'a str>,
    /// The user's own files.
    pub(crate) files: Option<&'a OwnGraph>,
}

/// Whether to say what was understood of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tell {
    Understood,
    Nothing,
}

impl TrainedOn<'_> {
    /// Loads the graph from where it was.
    ///
    /// # Errors
    /// If it is not there any more, or not as it was; the message says which.
    pub(crate) fn load(
        self,
        data_dir: Option<&Path>,
        tell: Tell,
        threads: &Threads,
    ) -> Result<Graph> {
        let Some(files) = self.files else {
            if data::find(self.name).is_none() && !self.name.starts_with("generated-") {
                bail!("the run does not say where the graph `{}` is", self.name);
            }
            let graph = load_graph(self.name, data_dir)?;
            return self.unchanged(graph, &format!("the data set `{}`", self.name));
        };
        if let Some(gone) = files.paths().into_iter().find(|path| !path.is_file()) {
            bail!("the run was trained on {}, which is not there any more", gone.display());
        }
        let graph = read(files, tell, threads)?;
        let paths = files.paths().iter().map(|path| path.display().to_string()).collect::<Vec<_>>();
        self.unchanged(graph, &paths.join(" and "))
    }

    fn unchanged(self, graph: Graph, what: &str) -> Result<Graph> {
        if self.fingerprint.is_some_and(|trained| trained != graph.fingerprint()) {
            bail!("{what} changed since the run was trained");
        }
        Ok(graph)
    }

    /// What names the graph on a command line.
    pub(crate) fn words(self) -> String {
        match self.files {
            Some(files) => OwnGraphArgs::from(files).words().trim_start().to_owned(),
            None => "GRAPH".to_owned(),
        }
    }
}

fn read(files: &OwnGraph, tell: Tell, threads: &Threads) -> Result<Graph> {
    // WikiCS's layout is read by its ending, as in `train`.
    if files.edges.extension().is_some_and(|ending| ending == "json") {
        return Ok(data::read_file(&files.edges)?);
    }
    let loaded = own::read(files, threads)?;
    if tell == Tell::Understood {
        note(loaded.understood.to_string().trim_end());
    }
    Ok(loaded.graph)
}
