//! The readers over bytes in memory, each returning how much it found: for tests that feed them
//! damaged files.

use std::io::Cursor;

use blnn_kernels::Threads;

use super::chunks::Chunks;
use super::encoding::Encoding;
use super::matrices::{SparseMatrix, WholeGraph};
use super::node_table::NodeTable;
use super::parquet_table::ParquetTable;
use super::text_table::TextTable;
use super::{ColumnNames, edge_list, node_text};
use crate::data::npz::Archive;
use crate::error::Result;

/// The number of edges of an edge list in delimited text.
///
/// # Errors
/// If it is not one.
///
/// ```
/// use blnn::data::own::{ColumnNames, bytes};
/// use blnn_kernels::Threads;
/// let found = bytes::edge_list(b"a,b\nb,c\n", &ColumnNames::default(), &Threads::new(1));
/// assert_eq!(found.unwrap(), 2);
/// ```
pub fn edge_list(bytes: &[u8], columns: &ColumnNames, threads: &Threads) -> Result<usize> {
    let mut table = TextTable::new(Chunks::new(bytes)?)?;
    let layout = edge_list::layout(&mut table, columns)?;
    let ends = edge_list::read(&mut table, layout, threads)?;
    Ok(ends.into_graph(threads).1.len())
}

/// The number of nodes of a node table in delimited text.
///
/// # Errors
/// If it is not one.
pub fn node_table(bytes: &[u8], columns: &ColumnNames, threads: &Threads) -> Result<usize> {
    let open = || TextTable::new(Chunks::new(bytes)?);
    node_text::read(&open, columns, None, threads).and_then(|(table, _)| encoded(&table))
}

/// The number of edges of a parquet table.
///
/// # Errors
/// If it is not one.
pub fn parquet_edges(bytes: &[u8], columns: &ColumnNames, threads: &Threads) -> Result<usize> {
    let table = ParquetTable::new(::bytes::Bytes::copy_from_slice(bytes))?;
    let (ends, _) = table.edges(columns)?;
    Ok(ends.into_graph(threads).1.len())
}

/// The number of nodes of a parquet table.
///
/// # Errors
/// If it is not one.
pub fn parquet_nodes(bytes: &[u8], columns: &ColumnNames) -> Result<usize> {
    let table = ParquetTable::new(::bytes::Bytes::copy_from_slice(bytes))?;
    encoded(&table.nodes(columns, None)?)
}

fn encoded(table: &NodeTable) -> Result<usize> {
    let nodes = table.ids.len();
    let (encoding, _) = Encoding::learn(&table.columns, nodes);
    encoding.apply(&table.columns, nodes).map(|_| nodes)
}

/// The number of entries of a matrix that SciPy saved.
///
/// # Errors
/// If it is not one.
pub fn scipy_matrix(bytes: &[u8], threads: &Threads) -> Result<usize> {
    let mut archive = Archive::open(Cursor::new(bytes), bytes.len() as u64)?;
    let _ = SparseMatrix::read(&mut archive)?.into_features()?;
    let (ends, _) = SparseMatrix::read(&mut archive)?.into_edges()?;
    Ok(ends.into_graph(threads).1.len())
}

/// The number of edges of an archive with edges and node features.
///
/// # Errors
/// If it is not one.
pub fn whole_graph(bytes: &[u8]) -> Result<usize> {
    let mut archive = Archive::open(Cursor::new(bytes), bytes.len() as u64)?;
    WholeGraph::read(&mut archive).map(|graph| graph.edges.len())
}
