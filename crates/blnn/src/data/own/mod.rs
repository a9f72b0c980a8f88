//! Graphs that users bring: tables of edges and nodes, matrices, and archives of both.
//!
//! [`read`] takes an [`OwnGraph`], finds out by itself what kind of file each is, and returns the
//! graph together with [`Understood`], which says what was made of the files. `docs/DATA.md` shows
//! every format by an example.
//!
//! # Examples
//! ```
//! use blnn::data::own::{OwnGraph, read};
//! use blnn_kernels::Threads;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let folder = tempfile::tempdir()?;
//! let edges = folder.path().join("edges.csv");
//! std::fs::write(&edges, "source,target\nann,bob\nbob,cy\nbob,ann\n")?;
//! let loaded = read(&OwnGraph::new(edges), &Threads::new(1))?;
//! assert_eq!(loaded.graph.nodes(), 3);
//! assert_eq!((loaded.understood.edges, loaded.understood.merged), (2, 1));
//! assert_eq!(loaded.graph.node_ids().unwrap()[2], "cy");
//! # Ok(())
//! # }
//! ```

mod assemble;
pub mod bytes;
mod chunks;
mod columns;
mod doubts;
mod edge_faults;
mod edge_list;
mod encoding;
mod endpoints;
mod files;
mod flags;
mod foreign;
mod header;
mod ids;
mod known;
mod matrices;
mod node_table;
mod node_text;
mod parquet_table;
mod record;
mod row_numbers;
mod saved;
mod source;
mod structural;
mod text_edges;
mod text_table;
mod understood;
mod weight_column;

use std::path::{Path, PathBuf};

use blnn_kernels::Threads;
use serde::{Deserialize, Serialize};

pub use encoding::{ColumnUse, Encoding, Fate, Feature, Origin, Rule};
pub use files::{TableLabels, label_array, labels};
pub use known::Unseen;
pub use matrices::Classes;
pub use structural::Structural;
pub use understood::{FeatureSource, FileNote, IdKind, LabelNote, Understood, Why};

use crate::error::{Error, Result};
use crate::graph::Graph;

/// The files of a graph and how to read them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnGraph {
    /// The edges, or a whole graph in one file.
    pub edges: PathBuf,
    /// What is known of the nodes: a table, or a matrix of features.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<PathBuf>,
    /// Which column is which, where names do not tell.
    #[serde(default)]
    pub columns: ColumnNames,
    /// Features to be computed from the edges instead of those of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Structural>,
}

impl OwnGraph {
    /// A graph whose edges, or all of it, are in one file.
    pub fn new(edges: impl Into<PathBuf>) -> Self {
        Self { edges: edges.into(), ..Self::default() }
    }

    /// The same with paths that hold from any folder.
    ///
    /// # Errors
    /// If the current folder is not known.
    pub fn absolute(&self) -> Result<Self> {
        let absolute =
            |path: &Path| std::path::absolute(path).map_err(|e| Error::io("find", path, e));
        let mut columns = self.columns.clone();
        if let Some(file) = columns.label.as_deref().filter(|label| is_label_file(label)) {
            columns.label = Some(absolute(Path::new(file))?.display().to_string());
        }
        Ok(Self {
            edges: absolute(&self.edges)?,
            nodes: self.nodes.as_deref().map(absolute).transpose()?,
            columns,
            features: self.features,
        })
    }

    /// The files.
    pub fn paths(&self) -> Vec<&Path> {
        let label = self.columns.label.as_deref();
        let label = label.filter(|label| is_label_file(label)).map(Path::new);
        [Some(self.edges.as_path()), self.nodes.as_deref(), label].into_iter().flatten().collect()
    }
}

/// Which column is which; by name, or by number from 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ColumnNames {
    /// The column of the edges that holds one end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// The column of the edges that holds the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The column of the nodes that holds their ids.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The column of the nodes that holds their classes, or a `.npy` file of classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Columns of the nodes that are left out.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skip: Vec<String>,
    /// Whether the first line is data, whatever it looks like, unless a column of the table is told
    /// by a name that stands there.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_header: bool,
}

/// A graph and what was understood of its files.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The graph.
    pub graph: Graph,
    /// What was made of the files.
    pub understood: Understood,
    /// How the features were made; the way to make those of other nodes.
    pub encoding: Encoding,
}

/// Reads a graph from the user's files.
///
/// # Errors
/// If a file cannot be read, is not of a known kind or is damaged, or if the files do not belong
/// together. The message names file, place and remedy.
pub fn read(request: &OwnGraph, threads: &Threads) -> Result<Loaded> {
    assemble::graph(request, None, threads)
}

/// Reads a graph for a model that was trained with the features of `encoding`: they are found by
/// their names and scaled as they were at training, whatever the order of the columns. Other
/// columns are left out, and [`Understood`] says which.
///
/// # Errors
/// As for [`read`], and if a column is missing or holds another type of values, if a matrix has
/// another width, or if the features come from another kind of file.
///
/// # Examples
/// ```
/// use blnn::data::own::{OwnGraph, read, read_as};
/// use blnn::Features;
/// use blnn_kernels::Threads;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (folder, threads) = (tempfile::tempdir()?, Threads::new(1));
/// let write = |name: &str, text: &str| {
///     let path = folder.path().join(name);
///     std::fs::write(&path, text).map(|()| path)
/// };
/// let trained = OwnGraph {
///     nodes: Some(write("nodes.csv", "id,age,land\nann,20,de\nbob,40,fr\ncy,60,fr\ndi,0,de\n")?),
///     ..OwnGraph::new(write("edges.csv", "source,target\nann,bob\nbob,cy\n")?)
/// };
/// let encoding = read(&trained, &threads)?.encoding;
/// let new = OwnGraph {
///     nodes: Some(write("new.csv", "id,land,shoes,age\nzoe,fr,3,30\nyan,it,,30\n")?),
///     ..OwnGraph::new(write("new-edges.csv", "source,target\nzoe,yan\n")?)
/// };
/// let loaded = read_as(&new, &encoding, &threads)?;
/// assert_eq!(encoding.names(), ["age", "land=de", "land=fr"]);
/// let Features::Dense(x) = loaded.graph.features() else { panic!("dense") };
/// assert_eq!((x.row(0), x.row(1)), (&[0.0, 0.0, 1.0][..], &[0.0, 0.0, 0.0][..]));
/// assert_eq!(loaded.understood.unseen[0].example, "it");
/// # Ok(())
/// # }
/// ```
pub fn read_as(request: &OwnGraph, encoding: &Encoding, threads: &Threads) -> Result<Loaded> {
    assemble::graph(request, Some(encoding), threads)
}

/// Whether `--label` names a file of classes and no column.
fn is_label_file(label: &str) -> bool {
    Path::new(label).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("npy"))
}

/// The name of a graph after its file: without folders and endings.
pub fn name_of(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The shell's name of a pipe is a number.
    if path.parent().is_some_and(|folder| folder.ends_with("fd")) && name.parse::<u32>().is_ok() {
        return "pipe".into();
    }
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = Path::new(name).file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}
