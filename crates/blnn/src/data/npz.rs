//! Graphs in the gnn-benchmark `.npz` layout, read as PyTorch Geometric's loader does.
//!
//! | member | dtype | shape | meaning |
//! |---|---|---|---|
//! | `adj_indices`, `adj_indptr`, `adj_shape` | integer | `e`, `n + 1`, 2 | adjacency in CSR form, `n × n`; every entry is an edge, whatever `adj_data` holds |
//! | `attr_data`, `attr_indices`, `attr_indptr`, `attr_shape` | number, integer ×3 | `m`, `m`, `n + 1`, 2 | attributes in CSR form, `n × f` |
//! | `labels` | integer | `n` | class numbers from 0 (optional) |
//! | `class_names`, `node_names` | unicode | at least the classes, `n` | names (optional) |
//!
//! Self-loops are dropped, every edge is stored in both directions and none twice. Every positive
//! attribute becomes 1 and each row is divided by the larger of 1 and its sum, so that a row with
//! `k` non-zeros holds `1/k` at each of them. A negative attribute has no place in this recipe and
//! is refused. Members may be stored or deflated; others (`attr_names` among them) are passed over.
//! Optional names that are pickled (as in the Coauthor files) are skipped; a pickled array that is
//! needed is refused.

use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek};
use std::path::Path;

use blnn_kernels::{Csr, Pattern};
use zip::ZipArchive;
use zip::result::ZipError;

use crate::data::edges::{SelfLoops, undirected};
use crate::data::npy::{self, Array};
use crate::data::npy_header::{Dtype, Header};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph};

/// More attributes than any model here could have weights for: such a shape is a damaged file.
const MAX_FEATURES: usize = 1 << 24;
/// Members may unpack to this many bytes, and [`EXPANSION`] times the size of the file more. A
/// CSR graph shrinks 64-fold at the very most; an archive made to exhaust the memory a
/// thousand-fold.
const ALLOWANCE: u64 = 256 << 20;
/// See [`ALLOWANCE`].
const EXPANSION: u64 = 64;

/// Reads the `.npz` file at `path`; the graph is named after the file.
///
/// # Errors
/// If the file cannot be read, or does not hold a graph in this layout.
pub fn read_file(path: &Path) -> Result<Graph> {
    let file = File::open(path).map_err(|e| Error::io("read", path, e))?;
    let length = file.metadata().map_err(|e| Error::io("read", path, e))?.len();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    read(&name, BufReader::new(file), length).map_err(|e| e.at(path.display()))
}

/// Reads the graph in the bytes of a `.npz` file.
///
/// # Errors
/// If the bytes do not hold a graph in this layout.
///
/// # Examples
/// ```
/// let error = blnn::data::npz::from_bytes("mine", b"not an archive").unwrap_err();
/// assert_eq!(error.kind(), blnn::ErrorKind::Parse);
/// ```
pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Graph> {
    read(name, Cursor::new(bytes), bytes.len() as u64)
}

fn read(name: &str, source: impl Read + Seek, length: u64) -> Result<Graph> {
    read_archive(name, &mut Archive::open(source, length)?).map(|(graph, _)| graph)
}

/// The graph in an opened archive, and the edges as the file lists them.
pub(crate) fn read_archive<R: Read + Seek>(
    name: &str,
    archive: &mut Archive<R>,
) -> Result<(Graph, Vec<(u32, u32)>)> {
    let (adjacency, listed) = adjacency(&archive.csr("adj")?)?;
    let attributes = archive.csr("attr")?;
    let values = archive.required("attr_data")?.into_f32().map_err(|e| e.at("attr_data"))?;
    let features = Features::Sparse(row_normalised(&attributes, &values)?);
    let mut graph = Graph::new(name, adjacency, features)?;
    if let Some(labels) = archive.classes("labels")? {
        let names = archive.names("class_names")?.unwrap_or_default();
        graph = graph.with_labels(labels, names)?;
    }
    if let Some(ids) = archive.names("node_names")? {
        graph = graph.with_node_ids(ids)?;
    }
    Ok((graph, listed))
}

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// The members of a `.npz` file.
pub(crate) struct Archive<R> {
    zip: ZipArchive<R>,
    /// How many more bytes may be unpacked.
    budget: u64,
}

impl<R: Read + Seek> Archive<R> {
    pub(crate) fn open(source: R, length: u64) -> Result<Self> {
        let zip = ZipArchive::new(source).map_err(|e| {
            parse(format!("is not a whole .npz archive ({e}); download or save it again"))
        })?;
        let budget = ALLOWANCE.saturating_add(length.saturating_mul(EXPANSION));
        Ok(Self { zip, budget })
    }

    /// Whether there is a member `name`.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.zip.index_for_name(&format!("{name}.npy")).is_some()
    }

    /// The names of all members.
    pub(crate) fn members(&self) -> Vec<String> {
        let names = self.zip.file_names().flatten();
        names.map(|name| name.trim_end_matches(".npy").to_owned()).collect()
    }

    /// The member `name`, unless there is none or it is pickled and `skip_pickled`.
    pub(crate) fn member(&mut self, name: &str, skip_pickled: bool) -> Result<Option<Array>> {
        let mut file = match self.zip.by_name(&format!("{name}.npy")) {
            Ok(file) => file,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(e) => return Err(parse(format!("cannot be unpacked ({e})")).at(name)),
        };
        let size = file.size();
        let Some(rest) = self.budget.checked_sub(size) else {
            let message = format!("unpacks to {size} bytes, out of proportion to the file");
            return Err(parse(message).at(name));
        };
        self.budget = rest;
        let header = Header::read(&mut file).map_err(|e| e.at(name))?;
        if header.dtype == Dtype::Object && skip_pickled {
            return Ok(None);
        }
        npy::read_values(&header, file, size).map(Some).map_err(|e| e.at(name))
    }

    pub(crate) fn required(&mut self, name: &str) -> Result<Array> {
        let array = self.member(name, false)?;
        array.ok_or_else(|| parse(format!("has no member `{name}`; {LAYOUT}")))
    }

    pub(crate) fn integers(&mut self, name: &str) -> Result<Vec<i64>> {
        self.required(name)?.into_int().map_err(|e| e.at(name))
    }

    /// Optional names; pickled ones count as absent.
    fn names(&mut self, name: &str) -> Result<Option<Vec<String>>> {
        let array = self.member(name, true)?;
        array.map(|array| array.into_text().map_err(|e| e.at(name))).transpose()
    }

    /// Class numbers from 0, if there is such a member.
    pub(crate) fn classes(&mut self, name: &str) -> Result<Option<Vec<u32>>> {
        let Some(array) = self.member(name, false)? else {
            return Ok(None);
        };
        let labels = array.into_int().map_err(|e| e.at(name))?;
        let class = |(node, label): (usize, i64)| {
            u32::try_from(label).map_err(|_| {
                parse(format!("node {node} has class {label}; number the classes from 0")).at(name)
            })
        };
        labels.into_iter().enumerate().map(class).collect::<Result<_>>().map(Some)
    }

    /// The positions of the matrix whose members begin with `prefix`.
    fn csr(&mut self, prefix: &str) -> Result<Positions> {
        let shape = self.integers(&format!("{prefix}_shape"))?;
        let offsets = self.integers(&format!("{prefix}_indptr"))?;
        let indices = self.integers(&format!("{prefix}_indices"))?;
        Positions::new(&shape, &offsets, &indices).map_err(|e| e.at(prefix))
    }
}

/// What is said of an archive with a member missing.
const LAYOUT: &str = "a graph needs adj_indices, adj_indptr, adj_shape and attr_data, \
                      attr_indices, attr_indptr, attr_shape";

/// Where the entries of a CSR matrix are. Unlike a [`Pattern`], rows may be in any order and hold
/// repetitions, as SciPy allows.
pub(crate) struct Positions {
    cols: usize,
    offsets: Vec<usize>,
    indices: Vec<u32>,
}

impl Positions {
    pub(crate) fn new(shape: &[i64], offsets: &[i64], indices: &[i64]) -> Result<Self> {
        let &[rows, cols] = shape else {
            return Err(parse(format!("shape has {} numbers, a matrix has 2", shape.len())));
        };
        let (Ok(rows), Ok(cols)) = (u32::try_from(rows), u32::try_from(cols)) else {
            return Err(parse(format!("shape {rows}×{cols} is not that of a graph")));
        };
        if offsets.len() != rows as usize + 1 {
            let found = offsets.len();
            return Err(parse(format!(
                "indptr has {found} numbers for {rows} rows, needs one more"
            )));
        }
        Ok(Self {
            cols: cols as usize,
            offsets: check_offsets(offsets, indices.len())?,
            indices: check_indices(indices, cols)?,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(crate) fn cols(&self) -> usize {
        self.cols
    }

    /// Row and column of every entry.
    pub(crate) fn entries(&self) -> Vec<(u32, u32)> {
        let mut entries = Vec::with_capacity(self.indices.len());
        for (row, bounds) in self.offsets.windows(2).enumerate() {
            let columns = &self.indices[bounds[0]..bounds[1]];
            entries.extend(columns.iter().map(|&column| (row as u32, column)));
        }
        entries
    }
}

fn check_offsets(offsets: &[i64], entries: usize) -> Result<Vec<usize>> {
    if offsets.first() != Some(&0) || offsets.last() != Some(&(entries as i64)) {
        return Err(parse(format!("indptr must run from 0 to the {entries} entries")));
    }
    if let Some(row) = offsets.windows(2).position(|pair| pair[0] > pair[1]) {
        return Err(parse(format!("indptr falls at row {row}")));
    }
    Ok(offsets.iter().map(|&offset| offset as usize).collect())
}

fn check_indices(indices: &[i64], cols: u32) -> Result<Vec<u32>> {
    let column = |(entry, &index): (usize, &i64)| {
        u32::try_from(index).ok().filter(|&column| column < cols).ok_or_else(|| {
            parse(format!("entry {entry} has column {index} of a matrix with {cols} columns"))
        })
    };
    indices.iter().enumerate().map(column).collect()
}

fn adjacency(positions: &Positions) -> Result<(Pattern, Vec<(u32, u32)>)> {
    let (rows, cols) = (positions.rows(), positions.cols);
    if rows != cols {
        let message = format!("the adjacency is {rows}×{cols}, it must be square");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let edges = positions.entries();
    Ok((undirected(rows, &edges, SelfLoops::Drop)?, edges))
}

/// `1/k` at each of the `k` positive attributes of a row.
fn row_normalised(positions: &Positions, values: &[f32]) -> Result<Csr> {
    let (entries, count) = (positions.indices.len(), values.len());
    if entries != count {
        let message = format!("attr_data has {count} values for {entries} entries");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    if positions.cols > MAX_FEATURES {
        return Err(parse(format!("{} attributes are too many", positions.cols)).at("attr_shape"));
    }
    check_attributes(positions, values)?;
    let mut offsets = vec![0];
    let mut indices = Vec::with_capacity(entries);
    let mut normalised = Vec::with_capacity(entries);
    let mut row = Vec::new();
    for bounds in positions.offsets.windows(2) {
        row.clear();
        let positive = (bounds[0]..bounds[1]).filter(|&entry| values[entry] > 0.0);
        row.extend(positive.map(|entry| positions.indices[entry]));
        row.sort_unstable();
        row.dedup();
        indices.extend_from_slice(&row);
        normalised.resize(indices.len(), 1.0 / row.len() as f32);
        offsets.push(indices.len());
    }
    let invalid = |e: blnn_kernels::CsrError| Error::new(ErrorKind::Shape, e.to_string());
    let pattern = Pattern::new(positions.cols, offsets, indices).map_err(invalid)?;
    Csr::new(pattern, normalised).map_err(invalid)
}

fn check_attributes(positions: &Positions, values: &[f32]) -> Result<()> {
    let Some(entry) = values.iter().position(|&v| !(v >= 0.0 && v.is_finite())) else {
        return Ok(());
    };
    let node = positions.offsets.partition_point(|&offset| offset <= entry) - 1;
    let (attribute, value) = (positions.indices[entry], values[entry]);
    let message = format!(
        "attribute {attribute} of node {node} is {value}; attributes of this format are counts or \
         flags, finite and not negative"
    );
    Err(Error::new(ErrorKind::Shape, message).at("attr_data"))
}
