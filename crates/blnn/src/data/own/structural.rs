//! Features for graphs that have none, computed from the edges.

use blnn_kernels::{Csr, Matrix, Partition, Pattern, SHARDS, Threads};
use serde::{Deserialize, Serialize};

use super::encoding::{Encoding, Feature, Rule};
use super::ids::NodeIds;
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Features;

/// What is computed from the edges where the nodes have no attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Structural {
    /// Five numbers: the logarithm of one plus the degree, and least, mean, deviation and largest
    /// of it over the neighbours. Says how a node is joined, not where it is.
    Degree,
    /// The degree as a 1 among zeros: each up to 31 on its own, then one for each doubling.
    OnehotDegree,
    /// Where random walks of one to four steps from a node end: the shares of all nodes, pressed
    /// into 256 numbers by random signs that follow from the ids. Nodes with common surroundings
    /// get similar features.
    RandomWalk,
}

impl Structural {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::RandomWalk, Self::Degree, Self::OnehotDegree];

    /// The name by which users choose it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Degree => "degree",
            Self::OnehotDegree => "onehot-degree",
            Self::RandomWalk => "random-walk",
        }
    }
}

/// Degrees up to this have a feature of their own.
const OWN_DEGREES: usize = 31;
/// Width of the random-walk features.
const WALK_WIDTH: usize = 256;
/// Columns of them that are computed together; no more than the bits of a word.
const WALK_BLOCK: usize = 64;
/// Number of steps of the longest walk.
const WALK_STEPS: usize = 4;

/// The features of all nodes of a graph, and how they are made: with the means and scales of
/// `saved`, the encoding of the same kind that a model was trained with, or with their own.
///
/// # Errors
/// If there are no nodes, or they have no edge at all.
pub(crate) fn features(
    kind: Structural,
    adjacency: &Pattern,
    ids: &NodeIds,
    saved: Option<&Encoding>,
    threads: &Threads,
) -> Result<(Features, Encoding)> {
    if adjacency.entries() == 0 {
        let message = "there are neither features nor edges to compute some from";
        return Err(Error::new(ErrorKind::Shape, message));
    }
    match kind {
        Structural::Degree => Ok(degree_profile(adjacency, saved)),
        Structural::OnehotDegree => onehot_degree(adjacency),
        Structural::RandomWalk => Ok(random_walk(adjacency, ids, threads)),
    }
}

fn structure(kind: Structural, name: String, mean: f32, scale: f32) -> Feature {
    Feature { name, rule: Rule::Structure { kind, mean, scale } }
}

fn log_degree(adjacency: &Pattern, node: usize) -> f64 {
    (adjacency.row(node).len() as f64).ln_1p()
}

/// The local degree profile, each of its columns standardised.
fn degree_profile(adjacency: &Pattern, saved: Option<&Encoding>) -> (Features, Encoding) {
    const NAMES: [&str; 5] = [
        "degree",
        "neighbour degree, least",
        "neighbour degree, mean",
        "neighbour degree, deviation",
        "neighbour degree, largest",
    ];
    let nodes = adjacency.rows();
    let profile = |node: usize| {
        let degrees = adjacency.row(node).iter().map(|&j| log_degree(adjacency, j as usize));
        let count = (adjacency.row(node).len() as f64).max(1.0);
        let mean = degrees.clone().sum::<f64>() / count;
        let variance = degrees.clone().map(|d| (d - mean).powi(2)).sum::<f64>() / count;
        let least = degrees.clone().reduce(f64::min).unwrap_or(0.0);
        let largest = degrees.reduce(f64::max).unwrap_or(0.0);
        [log_degree(adjacency, node), least, mean, variance.sqrt(), largest]
    };
    let rows: Vec<[f64; 5]> = (0..nodes).map(profile).collect();
    let mut matrix = Matrix::zeros(nodes, NAMES.len());
    let mut features = Vec::new();
    for (column, name) in NAMES.into_iter().enumerate() {
        let (mean, scale) = saved_moments(saved, column).unwrap_or_else(|| moments(&rows, column));
        for (node, row) in rows.iter().enumerate() {
            let value = (row[column] - f64::from(mean)) / f64::from(scale);
            matrix.row_mut(node)[column] = value as f32;
        }
        features.push(structure(Structural::Degree, name.into(), mean, scale));
    }
    (Features::Dense(matrix), Encoding { features })
}

/// Mean and deviation of a column, as precise as they are kept: a model that meets the same graph
/// again then meets the same features.
fn moments(rows: &[[f64; 5]], column: usize) -> (f32, f32) {
    let nodes = rows.len() as f64;
    let mean = rows.iter().map(|row| row[column]).sum::<f64>() / nodes;
    let square = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>();
    let deviation = (square / nodes).sqrt();
    // All nodes alike: the column is about zero whatever it is divided by.
    let scale = if deviation > 1e-9 { deviation } else { 1.0 };
    (mean as f32, scale as f32)
}

fn saved_moments(saved: Option<&Encoding>, column: usize) -> Option<(f32, f32)> {
    match saved?.features.get(column)?.rule {
        Rule::Structure { mean, scale, .. } => Some((mean, scale)),
        _ => None,
    }
}

/// The place of a degree among the features.
fn degree_place(degree: usize) -> usize {
    match degree.checked_sub(OWN_DEGREES + 1) {
        None => degree,
        Some(_) => OWN_DEGREES + 1 + (degree.ilog2() - (OWN_DEGREES + 1).ilog2()) as usize,
    }
}

fn degree_name(place: usize) -> String {
    match place.checked_sub(OWN_DEGREES + 1) {
        None => format!("degree={place}"),
        Some(doubling) => {
            let from = (OWN_DEGREES + 1) << doubling;
            format!("degree={from}–{}", 2 * from - 1)
        }
    }
}

fn onehot_degree(adjacency: &Pattern) -> Result<(Features, Encoding)> {
    let nodes = adjacency.rows();
    let places: Vec<u32> =
        (0..nodes).map(|node| degree_place(adjacency.row(node).len()) as u32).collect();
    // The same number of features for every graph, so that a model fits a new one.
    let width = degree_place(u32::MAX as usize) + 1;
    let invalid = |e: blnn_kernels::CsrError| Error::new(ErrorKind::Shape, e.to_string());
    let pattern = Pattern::new(width, (0..=nodes).collect(), places).map_err(invalid)?;
    let csr = Csr::new(pattern, vec![1.0; nodes]).map_err(invalid)?;
    let feature = |place| structure(Structural::OnehotDegree, degree_name(place), 0.0, 1.0);
    Ok((Features::Sparse(csr), Encoding { features: (0..width).map(feature).collect() }))
}

/// `Σ_k Pᵏ R`, each term and the sum scaled to rows of one length, with `P` the walk that also may
/// stay where it is and `R` a matrix of random signs whose rows follow from the ids of the nodes.
/// A block of columns at a time, so that little memory is needed beside the result.
fn random_walk(adjacency: &Pattern, ids: &NodeIds, threads: &Threads) -> (Features, Encoding) {
    let nodes = adjacency.rows();
    let mut features = Matrix::zeros(nodes, WALK_WIDTH);
    let mut ends = Matrix::zeros(nodes, WALK_BLOCK);
    let mut next = Matrix::zeros(nodes, WALK_BLOCK);
    for block in 0..WALK_WIDTH / WALK_BLOCK {
        let columns = block * WALK_BLOCK..(block + 1) * WALK_BLOCK;
        for_rows(&mut ends, threads, |node, row| signs(&ids.text(node), block, row));
        for _ in 0..WALK_STEPS {
            for_rows(&mut next, threads, |node, row| step(adjacency, &ends, node, row));
            std::mem::swap(&mut ends, &mut next);
            for_rows(&mut features, threads, |node, row| {
                add_unit(ends.row(node), &mut row[columns.clone()]);
            });
        }
    }
    for_rows(&mut features, threads, |_, row| {
        // Values of about one, as standardised columns have.
        let scale = (WALK_WIDTH as f32).sqrt() / length(row).max(f32::MIN_POSITIVE);
        for value in row {
            *value *= scale;
        }
    });
    let feature = |k: usize| structure(Structural::RandomWalk, format!("walk {}", k + 1), 0.0, 1.0);
    (Features::Dense(features), Encoding { features: (0..WALK_WIDTH).map(feature).collect() })
}

/// Calls `fill` with every row of a matrix and its number, on all threads.
fn for_rows(matrix: &mut Matrix, threads: &Threads, fill: impl Fn(usize, &mut [f32]) + Sync) {
    let (rows, width) = matrix.shape();
    let partition = Partition::even(rows);
    let mut shards: [&mut [f32]; SHARDS] = partition.split_wide(matrix.data_mut(), width);
    threads.for_each_owned(&mut shards[..partition.shards()], |shard, data| {
        for (row, out) in partition.range(shard).zip(data.chunks_exact_mut(width)) {
            fill(row, out);
        }
    });
}

/// Where one more step leads: the mean over the node itself and its neighbours.
fn step(adjacency: &Pattern, ends: &Matrix, node: usize, out: &mut [f32]) {
    out.copy_from_slice(ends.row(node));
    for &neighbour in adjacency.row(node) {
        let other = ends.row(neighbour as usize);
        out.iter_mut().zip(other).for_each(|(o, v)| *o += v);
    }
    let share = 1.0 / (adjacency.row(node).len() + 1) as f32;
    for o in out {
        *o *= share;
    }
}

fn length(row: &[f32]) -> f32 {
    row.iter().map(|v| v * v).sum::<f32>().sqrt()
}

fn add_unit(row: &[f32], sum: &mut [f32]) {
    let scale = 1.0 / length(row).max(f32::MIN_POSITIVE);
    sum.iter_mut().zip(row).for_each(|(s, v)| *s += v * scale);
}

/// Random signs that follow from an id and the number of the block alone, so that a node keeps
/// them when the graph grows.
fn signs(id: &str, block: usize, out: &mut [f32]) {
    // FNV-1a, then SplitMix64: short, fixed for ever, and evenly spread.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let state = hash.wrapping_add((block as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut bits = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    for (k, value) in out.iter_mut().enumerate() {
        *value = if bits >> k & 1 == 1 { 1.0 } else { -1.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::{SelfLoops, undirected};

    /// Two triangles joined by one edge, and a node alone.
    fn graph() -> (Pattern, NodeIds) {
        let edges = [(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (3, 5), (2, 3)];
        let ids = NodeIds::of_numbers((0..7).collect()).unwrap();
        (undirected(7, &edges, SelfLoops::Drop).unwrap(), ids)
    }

    fn dense(kind: Structural, threads: usize) -> Matrix {
        let (adjacency, ids) = graph();
        match features(kind, &adjacency, &ids, None, &Threads::new(threads)).unwrap().0 {
            Features::Dense(x) => x,
            Features::Sparse(_) => panic!("dense"),
        }
    }

    #[test]
    fn degrees_are_standardised() {
        let x = dense(Structural::Degree, 1);
        assert_eq!(x.shape(), (7, 5));
        for column in 0..5 {
            let sum: f32 = (0..7).map(|i| x.get(i, column)).sum();
            assert!(sum.abs() < 1e-5, "column {column}: {sum}");
        }
        assert_eq!(x.row(0), x.row(1), "alike by structure");
        assert!(x.get(2, 0) > x.get(0, 0) && x.get(6, 0) < x.get(0, 0));
    }

    #[test]
    fn onehot_degrees_have_names_without_gaps() {
        let (adjacency, ids) = graph();
        let (x, encoding) =
            features(Structural::OnehotDegree, &adjacency, &ids, None, &Threads::new(1)).unwrap();
        let Features::Sparse(x) = x else { panic!("sparse") };
        assert_eq!(x.pattern().indices(), [2, 2, 3, 3, 2, 2, 0]);
        let names = encoding.names();
        assert_eq!(names.len(), x.pattern().cols());
        assert_eq!((names[31].as_str(), names[32].as_str()), ("degree=31", "degree=32–63"));
        assert_eq!((degree_place(63), degree_place(64)), (32, 33));
    }

    fn cosine(x: &Matrix, i: usize, j: usize) -> f32 {
        let dot: f32 = x.row(i).iter().zip(x.row(j)).map(|(a, b)| a * b).sum();
        dot / (length(x.row(i)) * length(x.row(j)))
    }

    #[test]
    fn walks_tell_neighbourhoods_apart() {
        let x = dense(Structural::RandomWalk, 1);
        assert!(cosine(&x, 0, 1) > 0.9);
        assert!(cosine(&x, 0, 1) > cosine(&x, 0, 5) + 0.3);
        assert!(cosine(&x, 6, 0).abs() < 0.3, "the node alone has its own signs");
        assert_eq!(x, dense(Structural::RandomWalk, 2), "on any number of threads");
    }

    #[test]
    fn no_edges_are_refused() {
        let (_, ids) = graph();
        let empty = undirected(7, &[], SelfLoops::Drop).unwrap();
        let walk = Structural::RandomWalk;
        let error = features(walk, &empty, &ids, None, &Threads::new(1)).unwrap_err();
        assert!(error.to_string().contains("neither features nor edges"), "{error}");
    }
}
