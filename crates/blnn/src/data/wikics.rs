//! WikiCS in its own `data.json`, prepared as the bootstrap methods prepare it.
//!
//! | key | shape | meaning |
//! |---|---|---|
//! | `features` | `n × f` | attributes (means of word vectors; may be negative) |
//! | `labels` | `n` | class numbers from 0 |
//! | `links` | `n` lists | the nodes that each node links to |
//! | `train_masks`, `val_masks` | `s × n` | public splits (20 in the published file) |
//! | `test_mask` | `n` | the test nodes, shared by all splits |
//!
//! Other keys (`stopping_masks` among them) are passed over. Links become undirected, none twice;
//! self-loops stay. Features are row-normalised ([`RowNormalisation`]), then every column is
//! shifted and scaled to mean 0 and (population) standard deviation 1. Sums are taken in `f64`, in
//! a fixed order. A constant column becomes 0.

use std::path::Path;

use blnn_kernels::Matrix;
use serde::{Deserialize, Deserializer};

use crate::data::edges::{SelfLoops, undirected};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph, Splits};

/// How rows are normalised before the columns are standardised. PyTorch Geometric changed its
/// recipe in release 2.0.4, and WikiCS, which has negative values, changes with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowNormalisation {
    /// Subtract the smallest value of the whole matrix, then divide each row by the larger of 1
    /// and its sum: the recipe since 2.0.4, which BLNN was published with.
    #[default]
    Shifted,
    /// Divide each row by the larger of 1 and its sum: the recipe of BGRL's time.
    Unshifted,
}

/// Reads the `data.json` at `path`; the graph is named after the file.
///
/// # Errors
/// If the file cannot be read, or does not hold a graph in this layout.
pub fn read_file(path: &Path, rows: RowNormalisation) -> Result<Graph> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    from_bytes(&name, &bytes, rows).map_err(|e| e.at(path.display()))
}

/// Reads the graph in the bytes of a `data.json`.
///
/// # Errors
/// If the bytes do not hold a graph in this layout.
///
/// # Examples
/// ```
/// use blnn::data::wikics::{self, RowNormalisation};
/// # fn main() -> Result<(), blnn::Error> {
/// let json = br#"{"features": [[1, -1], [0, 3]], "labels": [0, 1], "links": [[1], []],
///     "train_masks": [[true, false]], "val_masks": [[false, false]], "test_mask": [false, true]}"#;
/// let graph = wikics::from_bytes("tiny", json, RowNormalisation::Shifted)?;
/// assert_eq!((graph.nodes(), graph.entries(), graph.classes()), (2, 2, 2));
/// # Ok(())
/// # }
/// ```
pub fn from_bytes(name: &str, bytes: &[u8], rows: RowNormalisation) -> Result<Graph> {
    let file: DataFile = serde_json::from_slice(bytes).map_err(|e| {
        Error::new(ErrorKind::Parse, format!("is not a WikiCS data.json: {e}")).with_source(e)
    })?;
    let nodes = file.features.len();
    let splits = file.splits(nodes)?;
    let edges = file.edges(nodes)?;
    let mut features = matrix(file.features)?;
    normalise_rows(&mut features, rows);
    standardise_columns(&mut features);
    let adjacency = undirected(nodes, &edges, SelfLoops::Keep)?;
    let graph = Graph::new(name, adjacency, Features::Dense(features))?;
    Ok(graph.with_labels(file.labels, Vec::new())?.with_splits(splits))
}

#[derive(Deserialize)]
struct DataFile {
    features: Vec<Vec<f32>>,
    labels: Vec<u32>,
    links: Vec<Vec<u32>>,
    train_masks: Vec<Mask>,
    val_masks: Vec<Mask>,
    test_mask: Mask,
}

/// Flags written as `true` and `false`, or as 1 and 0.
struct Mask(Vec<bool>);

impl<'de> Deserialize<'de> for Mask {
    fn deserialize<D: Deserializer<'de>>(source: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Flag {
            Bool(bool),
            Number(u8),
        }
        let flags = Vec::<Flag>::deserialize(source)?;
        let flag = |flag| match flag {
            Flag::Bool(set) => set,
            Flag::Number(number) => number != 0,
        };
        Ok(Self(flags.into_iter().map(flag).collect()))
    }
}

fn shape<T>(message: String) -> Result<T> {
    Err(Error::new(ErrorKind::Shape, message))
}

impl DataFile {
    fn edges(&self, nodes: usize) -> Result<Vec<(u32, u32)>> {
        if self.links.len() != nodes {
            let found = self.links.len();
            return shape(format!("links: {found} lists for {nodes} nodes"));
        }
        let lists = self.links.iter().enumerate();
        Ok(lists.flat_map(|(i, list)| list.iter().map(move |&j| (i as u32, j))).collect())
    }

    fn splits(&self, nodes: usize) -> Result<Splits> {
        let (train, validation) = (self.train_masks.len(), self.val_masks.len());
        if train != validation {
            return shape(format!("{train} train_masks, but {validation} val_masks"));
        }
        let masks = self.train_masks.iter().chain(&self.val_masks).chain([&self.test_mask]);
        if let Some(mask) = masks.into_iter().find(|mask| mask.0.len() != nodes) {
            return shape(format!("a mask has {} flags for {nodes} nodes", mask.0.len()));
        }
        let flags = |masks: &[Mask]| masks.iter().map(|mask| mask.0.clone()).collect();
        Ok(Splits {
            train: flags(&self.train_masks),
            validation: flags(&self.val_masks),
            test: vec![self.test_mask.0.clone()],
        })
    }
}

fn matrix(rows: Vec<Vec<f32>>) -> Result<Matrix> {
    let cols = rows.first().map_or(0, Vec::len);
    if let Some(node) = rows.iter().position(|row| row.len() != cols) {
        let found = rows[node].len();
        return shape(format!("features: node {node} has {found} values, node 0 has {cols}"));
    }
    for (node, row) in rows.iter().enumerate() {
        if let Some(column) = row.iter().position(|value| !value.is_finite()) {
            return shape(format!("features: value {column} of node {node} must be finite"));
        }
    }
    let count = rows.len();
    Ok(Matrix::from_vec(count, cols, rows.into_iter().flatten().collect()))
}

fn normalise_rows(x: &mut Matrix, rows: RowNormalisation) {
    if rows == RowNormalisation::Shifted {
        let smallest = x.data().iter().copied().fold(f32::INFINITY, f32::min);
        for value in x.data_mut() {
            *value -= smallest;
        }
    }
    for i in 0..x.rows() {
        let row = x.row_mut(i);
        let sum: f64 = row.iter().map(|&value| f64::from(value)).sum();
        let divisor = sum.max(1.0) as f32;
        for value in row {
            *value /= divisor;
        }
    }
}

fn standardise_columns(x: &mut Matrix) {
    let n = x.rows() as f64;
    let column_sums = |x: &Matrix, term: &dyn Fn(usize, f64) -> f64| {
        let mut sums = vec![0.0; x.cols()];
        for i in 0..x.rows() {
            for (j, &value) in x.row(i).iter().enumerate() {
                sums[j] += term(j, f64::from(value));
            }
        }
        sums
    };
    let mut mean = column_sums(x, &|_, value| value);
    for sum in &mut mean {
        *sum /= n;
    }
    let squares = column_sums(x, &|j, value| (value - mean[j]).powi(2));
    for i in 0..x.rows() {
        for (j, value) in x.row_mut(i).iter_mut().enumerate() {
            let deviation = (squares[j] / n).sqrt();
            let centred = f64::from(*value) - mean[j];
            *value = if deviation == 0.0 { 0.0 } else { (centred / deviation) as f32 };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn valid() -> Value {
        json!({
            "features": [[1.0, -2.0, 4.0], [3.0, 0.5, 4.0], [-1.0, 2.0, 4.0], [0.0, 0.25, 4.0]],
            "labels": [0, 1, 1, 2],
            "links": [[1, 2, 1], [0], [2], []],
            "train_masks": [[true, false, false, false], [false, true, false, false]],
            "val_masks": [[0, 1, 0, 0], [1, 0, 0, 0]],
            "stopping_masks": [[false, false, false, false]],
            "test_mask": [false, false, true, true],
            "another key": {"of": "no interest"},
        })
    }

    fn load(file: &Value, rows: RowNormalisation) -> Result<Graph> {
        from_bytes("w", file.to_string().as_bytes(), rows)
    }

    fn dense(graph: &Graph) -> &Matrix {
        match graph.features() {
            Features::Dense(x) => x,
            Features::Sparse(_) => panic!("WikiCS features are dense"),
        }
    }

    #[test]
    fn links_become_undirected_and_self_loops_stay() {
        let graph = load(&valid(), RowNormalisation::Shifted).unwrap();
        let adjacency = graph.adjacency();
        let rows: Vec<&[u32]> = (0..4).map(|i| adjacency.row(i)).collect();
        assert_eq!(rows, [&[1, 2][..], &[0], &[0, 2], &[]]);
        assert_eq!((graph.self_loops(), graph.isolated_nodes()), (1, 1));
        assert_eq!(graph.labels().unwrap(), [0, 1, 1, 2]);
    }

    #[test]
    fn splits_are_kept() {
        let graph = load(&valid(), RowNormalisation::Shifted).unwrap();
        let splits = graph.splits().unwrap();
        assert_eq!((splits.train.len(), splits.validation.len()), (2, 2));
        assert_eq!(splits.train[1], [false, true, false, false]);
        assert_eq!(splits.validation[0], [false, true, false, false]);
        assert_eq!(splits.test, [[false, false, true, true]]);
    }

    /// Expected values from NumPy: `x -= x.min(); x /= maximum(x.sum(1), 1)`, then
    /// `(x - x.mean(0)) / x.std(0)`; the first step is left out for the old recipe.
    #[test]
    fn features_are_normalised_and_standardised() {
        let expect = |rows, expected: &[f32]| {
            let graph = load(&valid(), rows).unwrap();
            for (found, expected) in dense(&graph).data().iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        };
        expect(RowNormalisation::Shifted, &SHIFTED);
        expect(RowNormalisation::Unshifted, &UNSHIFTED);
    }

    #[rustfmt::skip]
    const SHIFTED: [f32; 12] = [
        0.770_403, -1.482_768, 1.327_688, 1.102_575, -0.053_250, -1.450_908,
        -1.403_813, 1.324_285, -0.187_909, -0.469_165, 0.211_733, 0.311_129,
    ];
    #[rustfmt::skip]
    const UNSHIFTED: [f32; 12] = [
        0.816_497, -1.620_281, 1.493_045, 1.088_662, 0.261_660, -1.275_874,
        -1.360_828, 1.117_088, -0.352_901, -0.544_331, 0.241_533, 0.135_731,
    ];

    #[test]
    fn a_constant_column_becomes_zero() {
        let mut file = valid();
        file["features"] = json!([[0, 1], [0, 0], [0, 1], [0, 0]]);
        let graph = load(&file, RowNormalisation::Shifted).unwrap();
        let expected = [0.0, 1.0, 0.0, -1.0, 0.0, 1.0, 0.0, -1.0];
        assert_eq!(dense(&graph).data(), expected);
    }

    #[test]
    fn a_graph_without_nodes_is_refused() {
        let empty = json!({
            "features": [], "labels": [], "links": [],
            "train_masks": [[]], "val_masks": [[]], "test_mask": [],
        });
        let error = load(&empty, RowNormalisation::Shifted).unwrap_err();
        assert!(error.to_string().contains("no nodes"), "{error}");
    }

    #[test]
    fn broken_files_are_refused_by_name() {
        let broken = |key: &str, value: Value| {
            let mut file = valid();
            file[key] = value;
            load(&file, RowNormalisation::Shifted).unwrap_err().to_string()
        };
        assert!(broken("features", json!([])).contains("4 flags for 0 nodes"));
        assert!(broken("features", json!([[1], [2, 3], [4], [5]])).contains("node 1 has 2 values"));
        assert!(broken("features", json!([[], [], [], []])).contains("no features"));
        assert!(broken("features", json!([[1e39], [0], [0], [0]])).contains("out of range"));
        assert!(broken("features", json!("text")).contains("data.json"));
        assert!(broken("labels", json!([0])).contains("1 labels for 4 nodes"));
        assert!(broken("labels", json!([0, -1, 0, 0])).contains("-1"));
        assert!(broken("links", json!([[4], [], [], []])).contains("0 → 4"));
        assert!(broken("links", json!([[]])).contains("1 lists for 4 nodes"));
        assert!(broken("test_mask", json!([true])).contains("1 flags for 4 nodes"));
        assert!(broken("val_masks", json!([])).contains("2 train_masks, but 0"));
        let cut = valid().to_string();
        let error = from_bytes("w", &cut.as_bytes()[..60], RowNormalisation::Shifted).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Parse);
        assert!(error.to_string().contains("line 1"), "{error}");
    }
}
