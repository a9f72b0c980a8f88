//! Generated graphs of any size, to measure how cost grows and to try things out.

use blnn_kernels::{Csr, Matrix, Pattern};

use super::{SelfLoops, undirected};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::{Features, Graph};
use crate::rng::{Draws, Stream};
use crate::sizes::{Attributes, Sizes};

/// What the name of a generated graph starts with; its number of nodes follows.
const PREFIX: &str = "generated-";

const CLASSES: usize = 10;
/// Edges that start at a node: nodes have twice as many neighbours on average.
const EDGES: usize = 5;
const WORDS: usize = 500;
const WORDS_A_NODE: usize = 16;
/// Shares of edges within a class, and of words from the class's own tenth of all words.
const LOYALTY: f32 = 0.8;
const FEWEST: usize = 100;
const MOST: usize = 100_000_000;
/// Nodes of the graph whose sizes stand for those of larger ones.
const SAMPLED: usize = 10_000;

/// The graph named `generated-N`, if that is what `name` says.
///
/// # Errors
/// If the number of nodes is no number or out of range.
pub(super) fn named(name: &str) -> Option<Result<Graph>> {
    Some(nodes_in(name)?.and_then(|nodes| generated(nodes, 1)))
}

/// The number of nodes that the name of a generated graph asks for.
fn nodes_in(name: &str) -> Option<Result<usize>> {
    let nodes = name.strip_prefix(PREFIX)?;
    let nodes = nodes.replace('_', "").parse().ok().filter(|n| (FEWEST..=MOST).contains(n));
    Some(nodes.ok_or_else(|| out_of_range(name)))
}

/// The sizes of the graph named `generated-N`, if that is what `name` says, without making it:
/// those of a graph of ten thousand nodes, scaled.
///
/// ```
/// let sizes = blnn::data::generated_sizes("generated-5000000").unwrap()?;
/// assert_eq!((sizes.nodes, sizes.features), (5_000_000, 500));
/// assert!(blnn::data::generated_sizes("photo").is_none());
/// # Ok::<(), blnn::Error>(())
/// ```
///
/// # Errors
/// If the number of nodes is no number or out of range.
pub fn generated_sizes(name: &str) -> Option<Result<Sizes>> {
    let sample = |nodes: usize| Ok(Sizes::of(&generated(nodes.min(SAMPLED), 1)?).scaled_to(nodes));
    Some(nodes_in(name)?.and_then(sample))
}

fn out_of_range(name: &str) -> Error {
    let message = format!(
        "`{name}` names no generated graph; give {PREFIX}N with N from {FEWEST} to {MOST}, \
         such as {PREFIX}10000"
    );
    Error::new(ErrorKind::Dataset, message)
}

/// A graph of ten classes with about ten neighbours a node, four in five edges within a class,
/// and sixteen words a node out of 500, most of them from its class's own fifty. The same seed
/// gives the same graph.
///
/// ```
/// let graph = blnn::data::generated(1000, 1)?;
/// assert_eq!((graph.nodes(), graph.classes()), (1000, 10));
/// assert!(graph.edge_homophily().unwrap() > 0.7);
/// # Ok::<(), blnn::Error>(())
/// ```
///
/// # Errors
/// If there are fewer nodes than classes, or more than a graph can hold.
pub fn generated(nodes: usize, seed: u64) -> Result<Graph> {
    if nodes < CLASSES {
        let message = format!("a generated graph has at least {CLASSES} nodes, not {nodes}");
        return Err(Error::new(ErrorKind::Dataset, message));
    }
    let adjacency = undirected(nodes, &edges(nodes, seed), SelfLoops::Drop)?;
    let labels = (0..nodes).map(|i| class_of(i) as u32).collect();
    let names = (0..CLASSES).map(|c| format!("class {c}")).collect();
    Graph::new(format!("{PREFIX}{nodes}"), adjacency, words(nodes, seed)?)?
        .with_labels(labels, names)
}

/// A random graph of about the given sizes, to measure on: edges between any two nodes, values in
/// any column. Without labels.
///
/// ```
/// use blnn::{Sizes, data};
/// let sizes = Sizes::of(&data::load("cora", &[])?).scaled_to(900);
/// let graph = data::resembling(&sizes, 1)?;
/// assert_eq!((graph.nodes(), graph.features().cols()), (900, 1433));
/// # Ok::<(), blnn::Error>(())
/// ```
///
/// # Errors
/// If there are no nodes or no features, or more than a graph can hold.
pub fn resembling(sizes: &Sizes, seed: u64) -> Result<Graph> {
    let Sizes { nodes, entries, features, attributes, .. } = *sizes;
    let draws = Draws::new(seed, Stream::Generated { part: 2 }, 0);
    let end = |draw: usize| pick(draws.uniform(draw), nodes) as u32;
    // At least one: a graph without any edge cannot be trained on.
    let count = (entries / 2).max(1);
    let mut edges: Vec<(u32, u32)> = Vec::with_capacity(count);
    if nodes > 1 {
        let partner = |i: u32, j: u32| if i == j { (j + 1) % nodes as u32 } else { j };
        edges.extend((0..count).map(|e| (end(2 * e), partner(end(2 * e), end(2 * e + 1)))));
    }
    let adjacency = undirected(nodes, &edges, SelfLoops::Drop)?;
    let features = match attributes {
        Attributes::Dense => random_matrix(nodes, features, seed),
        Attributes::Sparse { values, alike } => {
            random_lists((nodes, features), values / nodes.max(1), alike, seed)?
        }
    };
    Graph::new(format!("resembling-{nodes}"), adjacency, features)
}

fn random_matrix(nodes: usize, features: usize, seed: u64) -> Features {
    let draws = Draws::new(seed, Stream::Generated { part: 3 }, 0);
    Features::Dense(Matrix::from_fn(nodes, features, |i, j| draws.uniform(i * features + j) - 0.5))
}

/// Rows of `length` columns each, one apart at random in every row's even steps.
fn random_lists(
    (nodes, features): (usize, usize),
    length: usize,
    alike: bool,
    seed: u64,
) -> Result<Features> {
    let draws = Draws::new(seed, Stream::Generated { part: 3 }, 0);
    let length = length.clamp(1, features.max(1));
    let mut indices = Vec::with_capacity(nodes * length);
    for node in 0..nodes {
        // One column of each of `length` equal ranges: sorted, and none twice.
        let column = |k: usize| {
            let (from, to) = (k * features / length, (k + 1) * features / length);
            from + pick(draws.uniform(node * length + k), (to - from).max(1))
        };
        indices.extend((0..length).map(|k| column(k) as u32));
    }
    let offsets = (0..=nodes).map(|i| i * length).collect();
    let value = |k: usize| if alike { 1.0 } else { 1.0 + (k % 2) as f32 };
    let values = (0..indices.len()).map(value).collect();
    let made = Pattern::new(features, offsets, indices).and_then(|p| Csr::new(p, values));
    made.map(Features::Sparse)
        .map_err(|e| Error::new(ErrorKind::Shape, e.to_string()).with_source(e))
}

fn class_of(node: usize) -> usize {
    node % CLASSES
}

/// A number below `count` from a draw in [0, 1).
fn pick(draw: f32, count: usize) -> usize {
    ((f64::from(draw) * count as f64) as usize).min(count - 1)
}

fn edges(nodes: usize, seed: u64) -> Vec<(u32, u32)> {
    let draws = Draws::new(seed, Stream::Generated { part: 0 }, 0);
    let partner = |edge: usize| {
        let (node, loyal) = (edge / EDGES, draws.uniform(2 * edge) < LOYALTY);
        let draw = draws.uniform(2 * edge + 1);
        let class = class_of(node);
        let members = (nodes - class).div_ceil(CLASSES);
        if loyal { pick(draw, members) * CLASSES + class } else { pick(draw, nodes) }
    };
    (0..nodes * EDGES).map(|edge| ((edge / EDGES) as u32, partner(edge) as u32)).collect()
}

fn words(nodes: usize, seed: u64) -> Result<Features> {
    let draws = Draws::new(seed, Stream::Generated { part: 1 }, 0);
    let topic = WORDS / CLASSES;
    let (mut offsets, mut indices) = (vec![0], Vec::with_capacity(nodes * WORDS_A_NODE));
    let mut values = Vec::with_capacity(nodes * WORDS_A_NODE);
    for node in 0..nodes {
        let mut row: Vec<u32> = (0..WORDS_A_NODE)
            .map(|k| {
                let item = 2 * (node * WORDS_A_NODE + k);
                let (loyal, draw) = (draws.uniform(item) < LOYALTY, draws.uniform(item + 1));
                let own = class_of(node) * topic + pick(draw, topic);
                (if loyal { own } else { pick(draw, WORDS) }) as u32
            })
            .collect();
        row.sort_unstable();
        row.dedup();
        values.extend(std::iter::repeat_n(1.0 / row.len() as f32, row.len()));
        indices.extend(row);
        offsets.push(indices.len());
    }
    let made = Pattern::new(WORDS, offsets, indices).and_then(|p| Csr::new(p, values));
    made.map(Features::Sparse)
        .map_err(|e| Error::new(ErrorKind::Shape, e.to_string()).with_source(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_names_one_graph() {
        let [a, b, c] = [(500, 1), (500, 1), (500, 2)].map(|(n, s)| generated(n, s).unwrap());
        assert_eq!(a.fingerprint(), b.fingerprint());
        assert_ne!(a.fingerprint(), c.fingerprint());
    }

    #[test]
    fn degree_and_words_do_not_depend_on_the_size() {
        for nodes in [1000, 5000] {
            let graph = generated(nodes, 3).unwrap();
            let degree = graph.entries() as f64 / nodes as f64;
            assert!((9.0..=10.0).contains(&degree), "{degree}");
            let Features::Sparse(x) = graph.features() else { panic!("words are sparse") };
            let words = x.values().len() as f64 / nodes as f64;
            assert!((12.0..=16.0).contains(&words), "{words}");
        }
    }

    #[test]
    fn sizes_are_known_without_the_graph() {
        let sizes = generated_sizes("generated-30_000").unwrap().unwrap();
        let made = Sizes::of(&generated(30_000, 1).unwrap());
        let near = |a: usize, b: usize| (a as f64 / b as f64 - 1.0).abs() < 0.01;
        assert!(near(sizes.entries, made.entries) && near(sizes.values(), made.values()));
        assert_eq!(
            Sizes { entries: 0, attributes: Attributes::Dense, ..sizes },
            Sizes { entries: 0, attributes: Attributes::Dense, ..made }
        );
        assert!(generated_sizes("generated-5").unwrap().is_err());
    }

    #[test]
    fn a_resembling_graph_has_the_sizes_asked_for() {
        let base = Sizes::of(&generated(2000, 1).unwrap());
        for attributes in
            [base.attributes, Attributes::Dense, Attributes::Sparse { values: 6001, alike: false }]
        {
            let wanted = Sizes { attributes, labelled: false, ..base };
            let made = Sizes::of(&resembling(&wanted, 1).unwrap());
            let near = |a: usize, b: usize| (a as f64 / b as f64 - 1.0).abs() < 0.1;
            assert!(near(made.entries, wanted.entries) && near(made.values(), wanted.values()));
            assert_eq!((made.nodes, made.features), (wanted.nodes, wanted.features));
        }
        let tiny = Sizes { nodes: 2, entries: 0, features: 1, ..base };
        assert_eq!(resembling(&tiny, 1).unwrap().entries(), 2);
    }

    #[test]
    fn names_are_read_and_refused() {
        assert_eq!(named("generated-1_000").unwrap().unwrap().nodes(), 1000);
        for bad in ["generated-", "generated-x", "generated-5", "generated-999999999"] {
            let text = named(bad).unwrap().unwrap_err().to_string();
            assert!(text.contains("generated-10000"), "{text}");
        }
        assert!(named("photo").is_none());
    }
}
