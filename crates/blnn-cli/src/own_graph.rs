//! The flags for a user's own graph, and what is said of it before anything is done with it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use blnn::data::own::{
    self, ColumnNames, Encoding, Loaded, Origin, OwnGraph, Structural, Understood,
};
use blnn::{Graph, Model, data};
use blnn_kernels::Threads;
use clap::Args;

use crate::args::named;
use crate::commands::datasets;
use crate::output::{note, shell_word};

/// Under which `--help` lists these flags.
const HEADING: &str = "Your own graph";

/// A graph of your own.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OwnGraphArgs {
    /// The edges: csv, tsv, parquet, a SciPy .npz or an array of pairs .npy; plain or gzip
    #[arg(long, help_heading = HEADING, value_name = "FILE")]
    pub(crate) edges: Option<PathBuf>,

    /// The nodes: a csv, tsv or parquet table with an id column, or a matrix .npy or .npz
    ///
    /// Columns of numbers become features, columns of at most 64 different texts too (one-hot).
    /// Without this file the nodes are those that the edges name.
    #[arg(long, help_heading = HEADING, value_name = "FILE", requires = "edges")]
    pub(crate) nodes: Option<PathBuf>,

    /// The nodes' column with their classes, or a .npy vector of them; for scores only
    #[arg(long, help_heading = HEADING, value_name = "COLUMN|FILE.npy")]
    pub(crate) label: Option<String>,

    /// The nodes' column with their ids [default: id, node, name, ... or the first]
    #[arg(long, help_heading = HEADING, value_name = "COLUMN")]
    pub(crate) id_column: Option<String>,

    /// The edges' first column [default: source, src, from, u, ... or the first]
    #[arg(long, help_heading = HEADING, value_name = "COLUMN")]
    pub(crate) source_column: Option<String>,

    /// The edges' second column [default: target, dst, to, v, ... or the second]
    #[arg(long, help_heading = HEADING, value_name = "COLUMN")]
    pub(crate) target_column: Option<String>,

    /// A column of the nodes that is to be left out; may be repeated
    #[arg(long, help_heading = HEADING, value_name = "COLUMN")]
    pub(crate) skip_column: Vec<String>,

    /// The first line of the tables is data; columns are told by their numbers, from 1
    ///
    /// A table of which a column is told by name has a header all the same.
    #[arg(long, help_heading = HEADING)]
    pub(crate) no_header: bool,

    /// Compute the features from the edges [default: random-walk if the nodes have none]
    ///
    /// random-walk: where short walks from a node end; nodes with common surroundings are alike.
    /// degree: the degree, and that of the neighbours. onehot-degree: the degree as a category.
    #[arg(long, help_heading = HEADING, value_name = "KIND", value_parser = named(Structural::ALL, Structural::name))]
    pub(crate) features: Option<Structural>,
}

/// Where a graph is to come from.
enum Source<'a> {
    /// A data set, or a file with no options.
    Known(&'a str),
    /// The user's own files.
    Files(OwnGraph),
}

/// Says what was understood of a user's files.
fn told(loaded: Loaded, files: OwnGraph) -> LoadedGraph {
    note(loaded.understood.to_string().trim_end());
    LoadedGraph { graph: loaded.graph, encoding: Some(loaded.encoding), files: Some(files) }
}

/// Says what was understood of files for a trained model, which needs no labels.
fn tell_for_model(understood: &Understood) {
    let mut lines = understood.lines();
    lines.retain(|(subject, _)| subject != "labels" || understood.labels.is_some());
    for (subject, line) in lines {
        note(format_args!("{subject:<9} {line}"));
    }
}

/// A run on a data set takes features that are used as they are only: it has no names to find
/// columns by.
fn check_matrix(model: &Model, request: &OwnGraph, loaded: &Loaded) -> Result<()> {
    if loaded.encoding.origin() == Some(Origin::Matrix) {
        return Ok(());
    }
    bail!(
        "{}: the run was trained on the data set `{}` and has no features.json, so columns cannot \
         be found by name; give its {} features as a matrix (.npy or .npz)",
        request.nodes.as_ref().unwrap_or(&request.edges).display(),
        model.header().graph,
        model.features()
    )
}

/// A graph, and how its features were made if it is the user's own.
#[derive(Debug)]
pub(crate) struct LoadedGraph {
    pub(crate) graph: Graph,
    pub(crate) encoding: Option<Encoding>,
    /// The user's own files.
    pub(crate) files: Option<OwnGraph>,
}

impl From<&OwnGraph> for OwnGraphArgs {
    fn from(graph: &OwnGraph) -> Self {
        let ColumnNames { source, target, id, label, skip, no_header } = graph.columns.clone();
        Self {
            edges: Some(graph.edges.clone()),
            nodes: graph.nodes.clone(),
            label,
            id_column: id,
            source_column: source,
            target_column: target,
            skip_column: skip,
            no_header,
            features: graph.features,
        }
    }
}

impl OwnGraphArgs {
    /// What the flags say of columns.
    pub(crate) fn columns(&self) -> ColumnNames {
        ColumnNames {
            source: self.source_column.clone(),
            target: self.target_column.clone(),
            id: self.id_column.clone(),
            label: self.label.clone(),
            skip: self.skip_column.clone(),
            no_header: self.no_header,
        }
    }

    /// The flags as words of a shell command, with a blank before each.
    pub(crate) fn words(&self) -> String {
        let path = |flag: &str, path: Option<&PathBuf>| {
            path.map_or_else(String::new, |path| format!(" {flag} {}", shell_word(path)))
        };
        let word = |flag: &str, word: Option<&str>| {
            word.map_or_else(String::new, |word| format!(" {flag} {}", shell_word(Path::new(word))))
        };
        let mut words =
            path("--edges", self.edges.as_ref()) + &path("--nodes", self.nodes.as_ref());
        for (flag, value) in [
            ("--label", self.label.as_deref()),
            ("--id-column", self.id_column.as_deref()),
            ("--source-column", self.source_column.as_deref()),
            ("--target-column", self.target_column.as_deref()),
            ("--features", self.features.map(Structural::name)),
        ] {
            words += &word(flag, value);
        }
        for column in &self.skip_column {
            words += &word("--skip-column", Some(column));
        }
        if self.no_header {
            words += " --no-header";
        }
        words
    }

    /// The flag that was given, if any was, for messages.
    fn given(&self) -> Option<&'static str> {
        let flags = [
            ("--edges", self.edges.is_some()),
            ("--label", self.label.is_some()),
            ("--id-column", self.id_column.is_some()),
            ("--source-column", self.source_column.is_some()),
            ("--target-column", self.target_column.is_some()),
            ("--skip-column", !self.skip_column.is_empty()),
            ("--no-header", self.no_header),
            ("--features", self.features.is_some()),
        ];
        flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag)
    }

    /// Loads what the user named: a data set, a file, or the files of the flags. What was
    /// understood of a user's files is told on stderr.
    pub(crate) fn load(
        &self,
        named: Option<&str>,
        data_dir: Option<&Path>,
        threads: &Threads,
    ) -> Result<LoadedGraph> {
        let source = match (named, &self.edges) {
            (None, None) => self.source(Some("cora"))?,
            _ => self.source(named)?,
        };
        match source {
            Some(Source::Files(request)) => Ok(told(own::read(&request, threads)?, request)),
            Some(Source::Known(name)) => self.load_known(name, data_dir),
            None => bail!("name a graph, or its files with --edges"),
        }
    }

    /// Loads what the user named, if anything was.
    pub(crate) fn load_named(
        &self,
        named: Option<&str>,
        data_dir: Option<&Path>,
        threads: &Threads,
    ) -> Result<Option<Graph>> {
        Ok(match self.source(named)? {
            None => None,
            Some(_) => Some(self.load(named, data_dir, threads)?.graph),
        })
    }

    /// Loads what the user named for a trained model, whose features are found by their names;
    /// `None` if nothing was named.
    pub(crate) fn load_for(
        &self,
        model: &Model,
        named: Option<&str>,
        data_dir: Option<&Path>,
        threads: &Threads,
    ) -> Result<Option<Graph>> {
        let loaded = match (self.source(named)?, model.encoding()) {
            (None, _) => return Ok(None),
            (Some(Source::Files(request)), Some(encoding)) => {
                own::read_as(&request, encoding, threads)?
            }
            (Some(Source::Files(request)), None) => {
                let loaded = own::read(&request, threads)?;
                check_matrix(model, &request, &loaded)?;
                loaded
            }
            (Some(Source::Known(name)), encoding) => {
                let other = encoding.filter(|e| e.origin() != Some(Origin::Matrix));
                if let Some(other) = other {
                    let trained = other.describe();
                    bail!("{name}: the run was trained with {trained}; name files with --edges");
                }
                return Ok(Some(self.load_known(name, data_dir)?.graph));
            }
        };
        tell_for_model(&loaded.understood);
        Ok(Some(loaded.graph))
    }

    /// What the user named.
    fn source<'a>(&self, named: Option<&'a str>) -> Result<Option<Source<'a>>> {
        let edges = match (&self.edges, named) {
            (Some(_), Some(named)) => {
                bail!("`{named}` and --edges are two graphs; leave one of them out")
            }
            (Some(edges), None) => edges.clone(),
            (None, Some(named)) => {
                // A pipe is no file to the system, and one to users.
                let is_there = Path::new(named).exists() && !Path::new(named).is_dir();
                let is_table = data::find(named).is_none() && is_there;
                let is_json = Path::new(named).extension().is_some_and(|e| e == "json");
                if !is_table || is_json {
                    return Ok(Some(Source::Known(named)));
                }
                PathBuf::from(named)
            }
            (None, None) => match self.given() {
                Some(flag) => bail!("{flag} is about files; name those of the graph with --edges"),
                None => return Ok(None),
            },
        };
        Ok(Some(Source::Files(OwnGraph {
            edges,
            nodes: self.nodes.clone(),
            columns: self.columns(),
            features: self.features,
        })))
    }

    fn load_known(&self, named: &str, data_dir: Option<&Path>) -> Result<LoadedGraph> {
        let graph = data::load(named, &datasets::search_folders(data_dir))?;
        if let Some(flag) = self.given() {
            bail!(
                "{flag} is for a graph of your own, and `{named}` needs no flags; give --edges FILE"
            );
        }
        let files = data::find(named).is_none().then(|| Path::new(named));
        let files = files.filter(|path| path.is_file()).map(OwnGraph::new);
        Ok(LoadedGraph { graph, encoding: None, files })
    }
}
