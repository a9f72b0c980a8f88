//! Reading each kind of file.

use std::path::Path;

use blnn_kernels::Threads;

use super::encoding::Encoding;
use super::endpoints::EndPoints;
use super::known::Known;
use super::matrices::{Classes, SPARSE, SparseMatrix, WHOLE, WholeGraph, named_classes, pairs};
use super::node_table::NodeTable;
use super::parquet_table::ParquetTable;
use super::source::{Kind, Reader, Source};
use super::text_table::TextTable;
use super::understood::FileNote;
use super::{ColumnNames, edge_list, name_of, node_text};
use crate::data::npy::{self, Array};
use crate::data::npz::{self, Archive};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph};

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

fn archive(source: &Source) -> Result<Archive<Reader>> {
    Archive::open(source.reader()?, source.length()?)
}

/// What archives in the layout of gnn-benchmark hold.
const BENCHMARK: [&str; 12] = [
    "adj_data",
    "adj_indices",
    "adj_indptr",
    "adj_shape",
    "attr_data",
    "attr_indices",
    "attr_indptr",
    "attr_shape",
    "attr_names",
    "labels",
    "class_names",
    "node_names",
];

/// What the file of the edges holds.
pub(super) enum EdgeFile {
    /// Edges between ids; a matrix also tells the number of its nodes.
    Edges { ends: EndPoints, nodes: Option<usize> },
    /// A graph in the layout of gnn-benchmark, with the edges as it lists them.
    Benchmark { graph: Box<Graph>, listed: Vec<(u32, u32)> },
    /// Edges, features, labels and splits.
    Whole(WholeGraph),
}

/// Reads the file of the edges.
pub(super) fn edges(
    source: &Source,
    columns: &ColumnNames,
    threads: &Threads,
) -> Result<(EdgeFile, FileNote)> {
    noted(source, || match source.kind() {
        Kind::Text => text_edges(source, columns, threads),
        Kind::Parquet => parquet_edges(source, columns),
        Kind::Npy => {
            let mut ends = EndPoints::new();
            ends.push_numbers(pairs(array(source)?, true)?);
            Ok((EdgeFile::Edges { ends, nodes: None }, "array of edges".into()))
        }
        Kind::Npz => npz_edges(source),
    })
}

/// What is said of a file.
struct Told {
    read_as: String,
    remarks: Vec<String>,
}

impl<S: Into<String>> From<S> for Told {
    fn from(read_as: S) -> Self {
        Self { read_as: read_as.into(), remarks: Vec::new() }
    }
}

/// Reads a file with the clock running, and names it in errors.
fn noted<T>(source: &Source, read: impl FnOnce() -> Result<(T, Told)>) -> Result<(T, FileNote)> {
    let path = source.path();
    let (file, told) = read().map_err(|error| match error.kind() {
        // The operating system's errors name their file already.
        ErrorKind::Io => error,
        _ => error.at(path.display()),
    })?;
    let Told { read_as, remarks } = told;
    Ok((file, FileNote { path: path.to_owned(), read_as, remarks, seconds: source.seconds() }))
}

fn array(source: &Source) -> Result<Array> {
    npy::read(source.reader()?, source.length()?)
}

fn text_edges(
    source: &Source,
    columns: &ColumnNames,
    threads: &Threads,
) -> Result<(EdgeFile, Told)> {
    let mut table = TextTable::open(source)?;
    let layout = edge_list::layout(&mut table, columns)?;
    let ends = edge_list::read(&mut table, layout, threads)?;
    let [source, target] = layout.ends.map(|place| table.column_name(place));
    let names: Vec<String> = (0..table.width()).map(|place| table.column_name(place)).collect();
    let mut remarks = table.remarks().to_vec();
    remarks.extend(other_columns(&names, layout.ends));
    let read_as = format!("{}; `{source}` → `{target}`", about_text(&table));
    Ok((EdgeFile::Edges { ends, nodes: None }, Told { read_as, remarks }))
}

fn about_text(table: &TextTable<'_>) -> String {
    let header = if table.header().is_some() { "with a header" } else { "without a header" };
    let comments = match table.comments() {
        0 => String::new(),
        1 => ", after 1 comment line".into(),
        count => format!(", after {count} comment lines"),
    };
    format!("text separated by {}, {header}{comments}", table.separator())
}

/// What is said of columns beside the two ends.
fn other_columns(names: &[String], ends: [usize; 2]) -> Option<String> {
    let others = names.iter().enumerate().filter(|(place, _)| !ends.contains(place));
    let others: Vec<&str> = others.map(|(_, name)| name.as_str()).collect();
    passed_over(&others, "columns beside the two ends, such as weights, are not used")
}

/// What is said of members of an archive that nobody reads.
fn other_members(archive: &Archive<Reader>, known: &[&str]) -> Vec<String> {
    let mut members = archive.members();
    members.sort_unstable();
    let is_known = |member: &str| known.contains(&member);
    let others: Vec<&str> = members.iter().map(String::as_str).filter(|m| !is_known(m)).collect();
    passed_over(&others, &format!("known are {}", known.join(", "))).into_iter().collect()
}

fn passed_over(names: &[&str], why: &str) -> Option<String> {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!names.is_empty()).then(|| format!("passed over: {}{more} ({why})", shown.join(", ")))
}

fn parquet_edges(source: &Source, columns: &ColumnNames) -> Result<(EdgeFile, Told)> {
    let table = ParquetTable::open(source)?;
    let (ends, places) = table.edges(columns)?;
    let [source, target] = places.map(|place| &table.names()[place]);
    let read_as = format!("parquet; `{source}` → `{target}`");
    let remarks = other_columns(table.names(), places).into_iter().collect();
    Ok((EdgeFile::Edges { ends, nodes: None }, Told { read_as, remarks }))
}

fn npz_edges(source: &Source) -> Result<(EdgeFile, Told)> {
    let mut archive = archive(source)?;
    if archive.has("adj_shape") || archive.has("adj_indptr") {
        let (graph, listed) = npz::read_archive(&name_of(source.path()), &mut archive)?;
        let remarks = other_members(&archive, &BENCHMARK);
        let told = Told { read_as: "gnn-benchmark archive".into(), remarks };
        return Ok((EdgeFile::Benchmark { graph: Box::new(graph), listed }, told));
    }
    if archive.has("edges") {
        let graph = WholeGraph::read(&mut archive)?;
        let read_as = format!("archive of edges and {}", graph.nodes.1);
        let remarks = other_members(&archive, &WHOLE);
        return Ok((EdgeFile::Whole(graph), Told { read_as, remarks }));
    }
    if archive.has("format") && archive.has("shape") {
        let (ends, nodes) = SparseMatrix::read(&mut archive)?.into_edges()?;
        let read_as = "SciPy sparse matrix, an edge for every entry that is not 0".into();
        let remarks = other_members(&archive, &SPARSE);
        return Ok((EdgeFile::Edges { ends, nodes: Some(nodes) }, Told { read_as, remarks }));
    }
    let mut members = archive.members();
    members.sort_unstable();
    members.truncate(12);
    let found = if members.is_empty() { "nothing".into() } else { members.join(", ") };
    Err(parse(format!(
        "holds {found}, which is no graph; known are archives with adj_* and attr_* \
         (gnn-benchmark), with edges and node_features, and SciPy's save_npz; unpack a zip of \
         tables, save a workbook as csv"
    )))
}

/// What the file of the nodes holds.
pub(super) enum NodeFile {
    Table(NodeTable),
    Matrix(Features),
}

impl NodeFile {
    /// How many nodes it tells of.
    pub(super) fn rows(&self) -> usize {
        match self {
            Self::Table(table) => table.ids.len(),
            Self::Matrix(features) => features.rows(),
        }
    }
}

/// Reads the file of the nodes; with `known`, only the columns that a model was trained with.
pub(super) fn nodes(
    source: &Source,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
    threads: &Threads,
) -> Result<(NodeFile, FileNote)> {
    noted(source, || match source.kind() {
        Kind::Text => text_nodes(source, columns, known, threads),
        Kind::Parquet => {
            let table = ParquetTable::open(source)?.nodes(columns, known)?;
            let read_as = format!("parquet; ids in `{}`", table.id_name);
            Ok((NodeFile::Table(table), read_as.into()))
        }
        Kind::Npy => {
            let matrix = array(source)?.into_matrix()?;
            Ok((NodeFile::Matrix(Features::Dense(matrix)), "matrix, row i for node i".into()))
        }
        Kind::Npz => {
            let mut archive = archive(source)?;
            if !archive.has("format") || !archive.has("shape") {
                return Err(parse("is no sparse matrix; save one with scipy.sparse.save_npz"));
            }
            let features = SparseMatrix::read(&mut archive)?.into_features()?;
            Ok((NodeFile::Matrix(features), "sparse matrix, row i for node i".into()))
        }
    })
}

fn text_nodes(
    source: &Source,
    columns: &ColumnNames,
    known: Option<&Known<'_>>,
    threads: &Threads,
) -> Result<(NodeFile, Told)> {
    let (nodes, table) = node_text::read(&|| TextTable::open(source), columns, known, threads)?;
    let read_as = format!("{}; ids in `{}`", about_text(&table), nodes.id_name);
    let remarks = table.remarks().to_vec();
    Ok((NodeFile::Table(nodes), Told { read_as, remarks }))
}

/// Classes of nodes from a `.npy` vector: integers, names or flags, numbered in their order.
///
/// # Errors
/// If the file cannot be read, or holds no such vector.
pub fn label_array(path: &Path) -> Result<Classes> {
    let source = Source::open(path)?;
    let classes = array(&source).and_then(|array| named_classes(&array));
    classes.map_err(|error| error.at(path.display()))
}

/// The ids of a table's nodes, the class of each that has one, and the names of the classes.
pub type TableLabels = (Vec<String>, Vec<Option<u32>>, Vec<String>);

/// The id of each node of a table, its class where it has one, and the names of the classes.
///
/// # Errors
/// If the table cannot be read or has no such column, or if no node has a class.
pub fn labels(path: &Path, columns: &ColumnNames) -> Result<TableLabels> {
    // No column but those of ids and classes matters here.
    let none = Encoding { features: Vec::new() };
    let known = Known::of(&none);
    let (NodeFile::Table(table), _) =
        nodes(&Source::open(path)?, columns, Some(&known), &Threads::new(0))?
    else {
        return Err(parse("is a matrix; labels need a table of nodes").at(path.display()));
    };
    let ids = (0..table.ids.len()).map(|row| table.ids.text(row).into_owned()).collect();
    let Some(label) = table.label else {
        let message = "name the column of the classes with --label";
        return Err(Error::new(ErrorKind::Config, message).at(path.display()));
    };
    Ok((ids, label.classes, label.names))
}
