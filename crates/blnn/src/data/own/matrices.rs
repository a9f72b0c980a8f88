//! Graphs and features in NumPy and SciPy files: `.npy` arrays and `.npz` archives.
//!
//! | archive | members |
//! |---|---|
//! | SciPy's `save_npz` (`csr`, `csc`, `coo`) | `format`, `shape`, `data` and `indices`, `indptr` or `row`, `col` |
//! | a graph in one file | `edges` (`e × 2`), `node_features` (`n × f`) or `node_labels` (`n`) or both, optionally `node_ids` (`n`), `train_masks`, `val_masks`, `test_masks` (`splits × n`) |

use std::io::{Read, Seek};

use blnn_kernels::{Csr, Matrix, Pattern};

use super::endpoints::EndPoints;
use super::ids::{IdColumn, NodeIds};
use crate::data::npy::{Array, Values};
use crate::data::npz::{Archive, Positions};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Splits};

fn parse(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Parse, message)
}

/// A matrix that SciPy saved: where its entries are, row by row, and what they are.
pub(crate) struct SparseMatrix {
    rows: usize,
    cols: usize,
    entries: Vec<(u32, u32)>,
    values: Vec<f32>,
}

impl SparseMatrix {
    pub(crate) fn read<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Self> {
        let format = archive.required("format")?.into_text().map_err(|e| e.at("format"))?;
        let values = archive.required("data")?.into_f32().map_err(|e| e.at("data"))?;
        let format = format.first().map_or("", String::as_str);
        let (rows, cols, mut entries) = match format {
            "csr" | "csc" => {
                let mut shape = archive.integers("shape")?;
                if format == "csc" {
                    shape.reverse();
                }
                let (offsets, indices) =
                    (archive.integers("indptr")?, archive.integers("indices")?);
                let positions = Positions::new(&shape, &offsets, &indices)?;
                (positions.rows(), positions.cols(), positions.entries())
            }
            "coo" => coordinates(archive)?,
            other => {
                return Err(parse(format!(
                    "holds a `{other}` matrix; save it as csr, as with scipy.sparse.save_npz(path, \
                     matrix.tocsr())"
                )));
            }
        };
        let (mut rows, mut cols) = (rows, cols);
        if format == "csc" {
            std::mem::swap(&mut rows, &mut cols);
            for entry in &mut entries {
                *entry = (entry.1, entry.0);
            }
        }
        if entries.len() != values.len() {
            let (entries, values) = (entries.len(), values.len());
            return Err(parse(format!("data has {values} values for {entries} entries")));
        }
        Ok(Self { rows, cols, entries, values })
    }

    /// The matrix as edges between its rows; entries that are zero are none.
    pub(crate) fn into_edges(self) -> Result<(EndPoints, usize)> {
        let (rows, cols) = (self.rows, self.cols);
        if rows != cols {
            let message = format!("the adjacency is {rows}×{cols}, it must be square");
            return Err(Error::new(ErrorKind::Shape, message));
        }
        let kept = self.entries.iter().zip(&self.values).filter(|(_, value)| **value != 0.0);
        let edges = kept.map(|(&(i, j), _)| [i64::from(i), i64::from(j)]).collect();
        let mut ends = EndPoints::new();
        ends.push_numbers(edges);
        Ok((ends, rows))
    }

    /// The matrix as features; entries at one place are added up, as SciPy does.
    pub(crate) fn into_features(self) -> Result<Features> {
        let mut order: Vec<usize> = (0..self.entries.len()).collect();
        order.sort_by_key(|&k| self.entries[k]);
        let (mut offsets, mut indices) = (vec![0; self.rows + 1], Vec::new());
        let mut values: Vec<f32> = Vec::new();
        let mut last = None;
        for k in order {
            let (row, column) = self.entries[k];
            match values.last_mut() {
                Some(value) if last == Some((row, column)) => *value += self.values[k],
                _ => {
                    indices.push(column);
                    values.push(self.values[k]);
                    offsets[row as usize + 1] += 1;
                }
            }
            last = Some((row, column));
        }
        for row in 0..self.rows {
            offsets[row + 1] += offsets[row];
        }
        let invalid = |e: blnn_kernels::CsrError| Error::new(ErrorKind::Shape, e.to_string());
        let pattern = Pattern::new(self.cols, offsets, indices).map_err(invalid)?;
        Ok(Features::Sparse(Csr::new(pattern, values).map_err(invalid)?))
    }
}

type Coordinates = (usize, usize, Vec<(u32, u32)>);

fn coordinates<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Coordinates> {
    let shape = archive.integers("shape")?;
    let &[rows, cols] = &shape[..] else {
        return Err(parse(format!("shape has {} numbers, a matrix has 2", shape.len())));
    };
    let limit = |side: i64| u32::try_from(side).map_err(|_| parse(format!("shape {rows}×{cols}")));
    let (rows, cols) = (limit(rows)?, limit(cols)?);
    let (row, col) = (archive.integers("row")?, archive.integers("col")?);
    if row.len() != col.len() {
        return Err(parse(format!("row has {} numbers and col {}", row.len(), col.len())));
    }
    // A shape costs memory: one that few entries claim is a damaged file.
    if rows.max(cols) as usize > 64 * row.len() + (1 << 24) {
        return Err(parse(format!("a {rows}×{cols} matrix of {} entries", row.len())));
    }
    let within = |index: i64, side: u32| u32::try_from(index).ok().filter(|&i| i < side);
    let entry = |(&i, &j): (&i64, &i64)| match (within(i, rows), within(j, cols)) {
        (Some(i), Some(j)) => Ok((i, j)),
        _ => Err(parse(format!("entry ({i}, {j}) is outside of {rows}×{cols}"))),
    };
    let entries = row.iter().zip(&col).map(entry).collect::<Result<_>>()?;
    Ok((rows as usize, cols as usize, entries))
}

/// The pairs of an `e × 2` or `2 × e` array of integers; two by two counts as `2 × e`, the layout
/// of PyTorch Geometric's `edge_index`, only for `.npy` files.
pub(crate) fn pairs(array: Array, two_rows_first: bool) -> Result<Vec<[i64; 2]>> {
    let shape = array.shape().to_vec();
    let values = array.into_int()?;
    match shape[..] {
        [2, count] if two_rows_first || count != 2 => {
            let (sources, targets) = values.split_at(count);
            Ok(sources.iter().zip(targets).map(|(&i, &j)| [i, j]).collect())
        }
        [_, 2] => Ok(values.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect()),
        _ => {
            let message = format!("the edges have the shape {shape:?}; they must be e×2 or 2×e");
            Err(Error::new(ErrorKind::Shape, message))
        }
    }
}

/// A graph in one archive: edges, features, labels, splits.
pub(crate) struct WholeGraph {
    pub(crate) edges: Vec<[i64; 2]>,
    /// Number of nodes, and the member that tells it.
    pub(crate) nodes: (usize, &'static str),
    pub(crate) features: Option<Matrix>,
    pub(crate) labels: Option<Classes>,
    pub(crate) splits: Option<Splits>,
    /// How the nodes are called, if not by their rows.
    pub(crate) ids: Option<NodeIds>,
}

impl WholeGraph {
    pub(crate) fn read<R: Read + Seek>(archive: &mut Archive<R>) -> Result<Self> {
        let edges = pairs(archive.required("edges")?, false).map_err(|e| e.at("edges"))?;
        let features = archive.member(FEATURES, false)?.map(Array::into_matrix);
        let features = features.transpose().map_err(|e| e.at(FEATURES))?;
        let labels = archive.member(LABELS, false)?.map(|array| row_classes(&array));
        let labels = labels.transpose().map_err(|e| e.at(LABELS))?;
        let nodes = match (&features, &labels) {
            (Some(features), _) => (features.rows(), FEATURES),
            (None, Some((classes, _))) => (classes.len(), LABELS),
            (None, None) => {
                return Err(parse(format!(
                    "holds edges, but neither {FEATURES} nor {LABELS}; add one of them, or save \
                     the edges alone with numpy.save"
                )));
            }
        };
        let splits = splits(archive, nodes.0)?;
        let ids = archive.member(IDS, false)?.map(|array| node_ids(&array, nodes.0));
        let ids = ids.transpose().map_err(|e| e.at(IDS))?;
        Ok(Self { edges, nodes, features, labels, splits, ids })
    }
}

const FEATURES: &str = "node_features";
pub(crate) const LABELS: &str = "node_labels";
const IDS: &str = "node_ids";
const MASKS: [&str; 3] = ["train_masks", "val_masks", "test_masks"];
/// What is read of an archive that holds a whole graph.
pub(crate) const WHOLE: [&str; 7] = ["edges", FEATURES, LABELS, IDS, MASKS[0], MASKS[1], MASKS[2]];
/// What SciPy saves of a matrix.
pub(crate) const SPARSE: [&str; 8] =
    ["format", "shape", "data", "indices", "indptr", "row", "col", "_is_array"];

/// How the rows are called; edges count rows, whatever their names.
fn node_ids(array: &Array, nodes: usize) -> Result<NodeIds> {
    let texts: Vec<String> = match array.values() {
        Values::Int(values) => values.iter().map(i64::to_string).collect(),
        Values::Text(texts) => texts.clone(),
        _ => return Err(parse("are not integers or texts; convert them, as with ids.astype(str)")),
    };
    if texts.len() != nodes {
        let message = format!("has {} ids for {nodes} nodes", texts.len());
        return Err(Error::new(ErrorKind::Shape, message));
    }
    if let Some(row) = texts.iter().position(String::is_empty) {
        return Err(parse(format!("the id of row {row} is empty; fill it in")));
    }
    let mut column = IdColumn::new();
    let repeated = texts.iter().position(|id| !column.push(id));
    let ids = repeated.map_or_else(|| column.finish(), Err).map_err(|row| {
        parse(format!("the id `{}` of row {row} stands before; ids must differ", texts[row]))
    })?;
    check_order(&ids)?;
    Ok(ids)
}

/// Refuses ids that edges may mean in place of the rows without anybody noticing.
fn check_order(ids: &NodeIds) -> Result<()> {
    let NodeIds::Numbers { ids: numbers, .. } = ids else {
        return Ok(());
    };
    let is_row = |&id: &i64| usize::try_from(id).is_ok_and(|row| row < numbers.len());
    if ids.names().is_none() || !numbers.iter().all(is_row) {
        return Ok(());
    }
    Err(parse(
        "are the numbers of the rows in another order, and edges count rows; sort the rows by \
         them, or put a letter before each",
    ))
}

/// The class of each row, and the names of the classes if they are not numbered from 0.
pub type Classes = (Vec<u32>, Vec<String>);

/// The classes of an archive: numbers from 0 stay as they are, others are named.
fn row_classes(array: &Array) -> Result<Classes> {
    let number = |&class: &i64| u16::try_from(class).map(u32::from).ok();
    if let (Values::Int(values), 1) = (array.values(), array.shape().len())
        && let Some(classes) = values.iter().map(number).collect::<Option<Vec<u32>>>()
    {
        return Ok((classes, Vec::new()));
    }
    named_classes(array)
}

/// The classes of a vector of integers, names or flags, numbered in their order, with their names.
pub(crate) fn named_classes(array: &Array) -> Result<Classes> {
    if array.shape().len() != 1 {
        let message = format!("labels have {} axes, a vector has 1", array.shape().len());
        return Err(Error::new(ErrorKind::Shape, message));
    }
    match array.values() {
        Values::Int(values) => Ok(numbered(values)),
        Values::Text(names) => Ok(numbered(names)),
        Values::Bool(values) => Ok(numbered(values)),
        _ => {
            let message = "labels are not integers or names; convert them, as with \
                           labels.astype(int)";
            Err(parse(message))
        }
    }
}

fn numbered<T: Ord + ToString>(values: &[T]) -> Classes {
    let mut distinct: Vec<&T> = values.iter().collect();
    distinct.sort();
    distinct.dedup();
    let class = |value: &T| distinct.partition_point(|other| *other < value) as u32;
    (values.iter().map(class).collect(), distinct.iter().map(|&name| name.to_string()).collect())
}

fn splits<R: Read + Seek>(archive: &mut Archive<R>, nodes: usize) -> Result<Option<Splits>> {
    let mut found = Vec::new();
    for name in MASKS {
        found.extend(archive.member(name, false)?.map(|array| (name, array)));
    }
    if found.is_empty() {
        return Ok(None);
    }
    if found.len() < MASKS.len() {
        let present: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
        return Err(parse(format!(
            "has {} but not all of {}; add what is missing or leave all of them out",
            present.join(", "),
            MASKS.join(", ")
        )));
    }
    let mut masks = Vec::new();
    for (name, array) in found {
        masks.push(flags(&array, nodes).map_err(|e| e.at(name))?);
    }
    let counts: Vec<usize> = masks.iter().map(Vec::len).collect();
    let [train, validation, test] = &counts[..] else { return Ok(None) };
    if train != validation || (test != train && *test != 1) {
        return Err(parse(format!(
            "has {train} train_masks, {validation} val_masks and {test} test_masks; it needs as \
             many of each"
        )));
    }
    let mut masks = masks.into_iter();
    let mut next = || masks.next().unwrap_or_default();
    Ok(Some(Splits { train: next(), validation: next(), test: next() }))
}

/// One mask a row; a vector is a single mask.
fn flags(array: &Array, nodes: usize) -> Result<Vec<Vec<bool>>> {
    let flags: Vec<bool> = match array.values() {
        Values::Bool(values) => values.clone(),
        Values::Int(values) if values.iter().all(|v| (0..=1).contains(v)) => {
            values.iter().map(|&v| v == 1).collect()
        }
        _ => return Err(parse("masks are flags; save them as bool")),
    };
    match *array.shape() {
        [columns] | [_, columns] if columns == nodes && nodes > 0 => {
            Ok(flags.chunks_exact(nodes).map(<[bool]>::to_vec).collect())
        }
        _ => {
            let message = format!("the shape {:?} is not splits × {nodes} nodes", array.shape());
            Err(Error::new(ErrorKind::Shape, message))
        }
    }
}
