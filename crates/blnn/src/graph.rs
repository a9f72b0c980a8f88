//! [`Graph`]: an undirected attributed graph, the input of every method.

mod labels;

use blnn_kernels::{Csr, Matrix, Pattern};
use sha2::{Digest, Sha256};

pub use labels::Labelled;

use crate::error::{Error, ErrorKind, Result};

/// Class numbers are below this: a larger one is an id that was mistaken for a class, and would
/// make every table of classes enormous.
const MAX_CLASSES: u32 = 1 << 16;

/// Node attributes: an `n × f` matrix, row `i` the attributes of node `i`.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Mostly zeros: only the non-zero values are kept.
    Sparse(Csr),
    /// All values.
    Dense(Matrix),
}

impl Features {
    /// Number of nodes.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(x) => x.pattern().rows(),
            Self::Dense(x) => x.rows(),
        }
    }

    /// Number of attributes.
    pub fn cols(&self) -> usize {
        match self {
            Self::Sparse(x) => x.pattern().cols(),
            Self::Dense(x) => x.cols(),
        }
    }

    /// The share of values that are not zero, in [0, 1].
    ///
    /// ```
    /// use blnn::{Features, Matrix};
    /// let x = Features::Dense(Matrix::from_vec(2, 2, vec![0.5, 0.0, 0.0, 0.0]));
    /// assert_eq!(x.density(), 0.25);
    /// ```
    pub fn density(&self) -> f64 {
        let nonzero = self.values().iter().filter(|&&v| v != 0.0).count();
        nonzero as f64 / (self.rows() as f64 * self.cols() as f64).max(1.0)
    }

    fn values(&self) -> &[f32] {
        match self {
            Self::Sparse(x) => x.values(),
            Self::Dense(x) => x.data(),
        }
    }

    /// Refuses values that cannot be computed with, and says where the first of them is.
    pub(crate) fn check_finite(&self) -> Result<()> {
        let values = self.values();
        let Some(k) = values.iter().position(|v| !v.is_finite()) else {
            return Ok(());
        };
        let (node, column) = self.position(k);
        let what = if values[k].is_nan() {
            "is NaN, which is no value"
        } else {
            "is infinite, or too large for 32 bits (beyond 3.4e38)"
        };
        shape(format!("feature {column} of node {node} (both from 0) {what}; replace or drop it"))
    }

    /// Node and attribute of the `k`-th stored value.
    fn position(&self, k: usize) -> (usize, usize) {
        match self {
            Self::Sparse(x) => {
                let row = x.pattern().offsets().partition_point(|&o| o <= k) - 1;
                (row, x.pattern().indices()[k] as usize)
            }
            Self::Dense(x) => (k / x.cols(), k % x.cols()),
        }
    }
}

/// Splits that come with a graph. Each mask holds `n` flags, one a node; `train` and
/// `validation` hold the same number of masks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    /// One training mask a split.
    pub train: Vec<Vec<bool>>,
    /// One validation mask a split.
    pub validation: Vec<Vec<bool>>,
    /// One test mask a split, or a single one that all splits share.
    pub test: Vec<Vec<bool>>,
}

/// An undirected attributed graph of `n` nodes with `f` attributes each.
///
/// | part | shape | invariant |
/// |---|---|---|
/// | [`adjacency`](Graph::adjacency) | `n × n`, `n ≥ 1` | symmetric: each edge is stored in both directions; a self-loop, where the data set keeps them, is stored once; no edges and isolated nodes are fine |
/// | [`features`](Graph::features) | `n × f`, `f ≥ 1` | every value finite |
/// | [`labels`](Graph::labels) | `n` or absent | class numbers from 0, below 65,536; see [`labelled`](Graph::labelled) for labels of some nodes |
/// | [`class_names`](Graph::class_names) | none, or at least [`classes`](Graph::classes) | name `k` belongs to class `k` |
/// | [`node_ids`](Graph::node_ids) | `n` or absent | the user's names, in row order |
/// | [`feature_names`](Graph::feature_names) | `f` or absent | in column order |
/// | [`splits`](Graph::splits) | masks of `n` flags, or absent | see [`Splits`] |
///
/// [`Graph::new`] and the `with_…` methods check these, so code that holds a graph need not.
///
/// # Examples
/// Two papers that cite each other, and one that nobody cites:
/// ```
/// use blnn::{Features, Graph, Matrix, Pattern};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let adjacency = Pattern::new(3, vec![0, 1, 2, 2], vec![1, 0])?;
/// let features = Features::Dense(Matrix::from_vec(3, 1, vec![1.0, 0.5, 0.0]));
/// let graph = Graph::new("papers", adjacency, features)?.with_labels(vec![0, 0, 1], vec![])?;
/// assert_eq!((graph.nodes(), graph.entries(), graph.classes()), (3, 2, 2));
/// assert_eq!(graph.edge_homophily(), Some(1.0));
/// assert_eq!(graph.isolated_nodes(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Graph {
    name: String,
    adjacency: Pattern,
    features: Features,
    labels: Option<Vec<u32>>,
    /// Labels of some nodes, if others have none.
    some_labels: Option<Vec<Option<u32>>>,
    class_names: Vec<String>,
    node_ids: Option<Vec<String>>,
    feature_names: Option<Vec<String>>,
    splits: Option<Splits>,
}

impl Splits {
    /// The test mask of a split.
    ///
    /// # Panics
    /// If there is no such split.
    pub fn test_mask(&self, split: usize) -> &[bool] {
        if self.test.len() == 1 { &self.test[0] } else { &self.test[split] }
    }
}

impl Graph {
    /// A graph without labels, ids or splits.
    ///
    /// # Errors
    /// If there are no nodes, the adjacency is not square and symmetric, the features have
    /// another number of rows, or a feature value is not finite.
    pub fn new(name: impl Into<String>, adjacency: Pattern, features: Features) -> Result<Self> {
        let graph = Self {
            name: name.into(),
            adjacency,
            features,
            labels: None,
            some_labels: None,
            class_names: Vec::new(),
            node_ids: None,
            feature_names: None,
            splits: None,
        };
        graph.check().map_err(|e| e.at(&graph.name))?;
        Ok(graph)
    }

    fn check(&self) -> Result<()> {
        let n = self.adjacency.rows();
        if n == 0 {
            return shape("the graph has no nodes");
        }
        if self.adjacency.cols() != n {
            let cols = self.adjacency.cols();
            return shape(format!("the adjacency is {n}×{cols}, it must be square"));
        }
        if let Some((i, j)) = one_way_edge(&self.adjacency) {
            return shape(format!(
                "the adjacency is not symmetric at nodes {i} and {j}; add the missing directions"
            ));
        }
        if self.features.rows() != n {
            let rows = self.features.rows();
            return shape(format!("{rows} feature rows for {n} nodes"));
        }
        if self.features.cols() == 0 {
            return shape("the nodes have no features");
        }
        self.features.check_finite()
    }

    /// Adds a class number for each node, with the names of the classes (or none).
    ///
    /// # Errors
    /// If there is not one label a node, a label is 65,536 or more, or there are names but not
    /// one for every class.
    pub fn with_labels(mut self, labels: Vec<u32>, class_names: Vec<String>) -> Result<Self> {
        check_labels(&labels, &class_names, self.nodes()).map_err(|e| e.at(&self.name))?;
        self.labels = Some(labels);
        self.some_labels = None;
        self.class_names = class_names;
        Ok(self)
    }

    /// Adds the user's name of each node.
    ///
    /// # Errors
    /// If there is not one id a node.
    pub fn with_node_ids(mut self, ids: Vec<String>) -> Result<Self> {
        if ids.len() != self.nodes() {
            let message = format!("{} ids for {} nodes", ids.len(), self.nodes());
            return Err(Error::new(ErrorKind::Shape, message).at(&self.name));
        }
        self.node_ids = Some(ids);
        Ok(self)
    }

    /// Adds the name of each feature.
    ///
    /// # Errors
    /// If there is not one name a feature.
    pub fn with_feature_names(mut self, names: Vec<String>) -> Result<Self> {
        let features = self.features.cols();
        if names.len() != features {
            let message = format!("{} feature names for {features} features", names.len());
            return Err(Error::new(ErrorKind::Shape, message).at(&self.name));
        }
        self.feature_names = Some(names);
        Ok(self)
    }

    /// Adds the public splits of a data set; every mask must hold one flag a node.
    #[must_use]
    pub fn with_splits(mut self, splits: Splits) -> Self {
        self.splits = Some(splits);
        self
    }

    /// Gives the graph another name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The graph's name: that of its data set, or of its file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.adjacency.rows()
    }

    /// Number of directed entries: each edge counts twice, a self-loop once.
    pub fn entries(&self) -> usize {
        self.adjacency.entries()
    }

    /// The symmetric adjacency; row `i` lists the neighbours of node `i`.
    pub fn adjacency(&self) -> &Pattern {
        &self.adjacency
    }

    /// Node attributes.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The class number of each node, if known of all of them.
    pub fn labels(&self) -> Option<&[u32]> {
        self.labels.as_deref()
    }

    /// Number of classes: one more than the largest label, 0 without labels.
    pub fn classes(&self) -> usize {
        let some = self.some_labels.iter().flatten().copied().flatten();
        let all = self.labels.iter().flatten().copied();
        all.chain(some).max().map_or(0, |largest| largest as usize + 1)
    }

    /// Names of the classes, possibly none.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The user's name of each node, if there are any.
    pub fn node_ids(&self) -> Option<&[String]> {
        self.node_ids.as_deref()
    }

    /// The name of each feature, if they have any.
    pub fn feature_names(&self) -> Option<&[String]> {
        self.feature_names.as_deref()
    }

    /// The public splits of the data set, if it has any.
    pub fn splits(&self) -> Option<&Splits> {
        self.splits.as_ref()
    }

    /// The share of edges that join nodes of one class (the paper's `H`), among those whose ends
    /// both have a label, or `None` without such edges.
    pub fn edge_homophily(&self) -> Option<f64> {
        let (mut same, mut all) = (0_usize, 0_usize);
        for i in 0..self.nodes() {
            let Some(own) = self.label_of(i) else { continue };
            let others = self.adjacency.row(i).iter().filter_map(|&j| self.label_of(j as usize));
            for other in others {
                all += 1;
                same += usize::from(own == other);
            }
        }
        (all > 0).then(|| same as f64 / all as f64)
    }

    /// Number of nodes without any entry.
    pub fn isolated_nodes(&self) -> usize {
        let rows = 0..self.nodes();
        rows.filter(|&i| self.adjacency.row(i).is_empty()).count()
    }

    /// Number of nodes joined to themselves.
    pub fn self_loops(&self) -> usize {
        let is_loop = |&i: &usize| self.adjacency.row(i).binary_search(&(i as u32)).is_ok();
        (0..self.nodes()).filter(is_loop).count()
    }

    /// The share of the `n²` possible directed entries that are there.
    pub fn density(&self) -> f64 {
        let n = self.nodes() as f64;
        self.entries() as f64 / (n * n)
    }

    /// A hex SHA-256 of what training and scoring see: adjacency, features and labels, in a byte
    /// order of our own, so that every platform gives the same text. Names, node ids and splits do
    /// not count.
    ///
    /// ```
    /// use blnn::{Features, Graph, Matrix, Pattern};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let lone = |x| {
    ///     let adjacency = Pattern::new(1, vec![0, 0], vec![])?;
    ///     let features = Features::Dense(Matrix::from_vec(1, 1, vec![x]));
    ///     Ok::<_, Box<dyn std::error::Error>>(Graph::new("lone", adjacency, features)?)
    /// };
    /// assert_eq!(lone(1.0)?.fingerprint(), lone(1.0)?.with_name("other").fingerprint());
    /// assert_ne!(lone(1.0)?.fingerprint(), lone(2.0)?.fingerprint());
    /// # Ok(())
    /// # }
    /// ```
    pub fn fingerprint(&self) -> String {
        self.fingerprints().whole
    }

    /// The fingerprint with and without labels.
    pub(crate) fn fingerprints(&self) -> Fingerprints {
        let mut digest = Sha256::new_with_prefix(b"blnn graph 1\n");
        hash_pattern(&mut digest, &self.adjacency);
        match &self.features {
            Features::Sparse(x) => {
                digest.update(b"sparse");
                hash_pattern(&mut digest, x.pattern());
                hash_words(&mut digest, x.values(), f32::to_le_bytes);
            }
            Features::Dense(x) => {
                digest.update(b"dense");
                hash_words(&mut digest, &[x.rows(), x.cols()], |v| (v as u64).to_le_bytes());
                hash_words(&mut digest, x.data(), f32::to_le_bytes);
            }
        }
        let unlabelled = hex(&digest.clone().finalize());
        if let Some(labels) = &self.labels {
            digest.update(b"labels");
            hash_words(&mut digest, labels, u32::to_le_bytes);
        }
        if let Some(labels) = &self.some_labels {
            digest.update(b"some labels");
            hash_words(&mut digest, labels, |l| l.unwrap_or(u32::MAX).to_le_bytes());
        }
        Fingerprints { whole: hex(&digest.finalize()), unlabelled }
    }
}

/// Two texts that tell graphs apart.
pub(crate) struct Fingerprints {
    /// Of edges, features and labels.
    pub(crate) whole: String,
    /// Of edges and features: the same as the other one if there are no labels.
    pub(crate) unlabelled: String,
}

fn shape<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::new(ErrorKind::Shape, message))
}

fn count_classes(labels: &[u32]) -> usize {
    labels.iter().max().map_or(0, |&largest| largest as usize + 1)
}

fn check_labels(labels: &[u32], names: &[String], nodes: usize) -> Result<()> {
    if labels.len() != nodes {
        return shape(format!("{} labels for {nodes} nodes", labels.len()));
    }
    if let Some(node) = labels.iter().position(|&label| label >= MAX_CLASSES) {
        let label = labels[node];
        return shape(format!(
            "node {node} has class {label}; number the classes from 0, below {MAX_CLASSES}"
        ));
    }
    let classes = count_classes(labels);
    if !names.is_empty() && names.len() < classes {
        return shape(format!("{} class names for {classes} classes", names.len()));
    }
    Ok(())
}

/// The first entry whose reverse is missing, in one pass without building the transpose: row by
/// row, the entries `(i, j)` must meet the entries of row `j` in their own increasing order.
fn one_way_edge(adjacency: &Pattern) -> Option<(usize, usize)> {
    let mut met = vec![0; adjacency.rows()];
    for i in 0..adjacency.rows() {
        for &j in adjacency.row(i) {
            let j = j as usize;
            match adjacency.row(j).get(met[j]) {
                Some(&back) if back as usize == i => met[j] += 1,
                Some(&back) if (back as usize) < i => return Some((j, back as usize)),
                _ => return Some((i, j)),
            }
        }
    }
    None
}

fn hash_pattern(digest: &mut Sha256, pattern: &Pattern) {
    let shape = [pattern.rows(), pattern.cols(), pattern.entries()];
    hash_words(digest, &shape, |v| (v as u64).to_le_bytes());
    hash_words(digest, pattern.offsets(), |v| (v as u64).to_le_bytes());
    hash_words(digest, pattern.indices(), u32::to_le_bytes);
}

/// Feeds the little-endian bytes of `words` to the digest, a block at a time.
fn hash_words<T: Copy, const N: usize>(digest: &mut Sha256, words: &[T], bytes: fn(T) -> [u8; N]) {
    let mut block = Vec::with_capacity(1024 * N);
    for chunk in words.chunks(1024) {
        block.clear();
        block.extend(chunk.iter().flat_map(|&word| bytes(word)));
        digest.update(&block);
    }
}

/// Lower-case hexadecimal digits of `bytes`.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digits = bytes.iter().flat_map(|b| [b >> 4, b & 15]);
    digits.map(|d| DIGITS[d as usize] as char).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn dense(rows: usize, data: Vec<f32>) -> Features {
        Features::Dense(Matrix::from_vec(rows, data.len() / rows.max(1), data))
    }

    fn pair() -> Pattern {
        Pattern::new(2, vec![0, 1, 2], vec![1, 0]).unwrap()
    }

    fn message(result: Result<Graph>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        error.to_string()
    }

    #[test]
    fn each_broken_invariant_is_named() {
        let none = Pattern::new(0, vec![0], vec![]).unwrap();
        assert!(message(Graph::new("g", none, dense(0, vec![]))).contains("no nodes"));
        let wide = Pattern::new(3, vec![0, 0, 0], vec![]).unwrap();
        assert!(message(Graph::new("g", wide, dense(2, vec![0.0; 2]))).contains("2×3"));
        let one_way = Pattern::new(2, vec![0, 1, 1], vec![1]).unwrap();
        let text = message(Graph::new("g", one_way, dense(2, vec![0.0; 2])));
        assert!(text.contains("not symmetric at nodes 0 and 1"), "{text}");
        let text = message(Graph::new("g", pair(), dense(3, vec![0.0; 3])));
        assert_eq!(text, "g: 3 feature rows for 2 nodes");
        let text = message(Graph::new("g", pair(), dense(2, vec![])));
        assert!(text.contains("no features"), "{text}");
    }

    #[test]
    fn a_feature_that_is_not_finite_is_located() {
        let x = dense(2, vec![0.0, 1.0, 2.0, f32::NAN]);
        let text = message(Graph::new("g", pair(), x));
        assert!(text.contains("feature 1 of node 1 (both from 0) is NaN"), "{text}");
        let pattern = Pattern::new(9, vec![0, 1, 2], vec![3, 7]).unwrap();
        let x = Csr::new(pattern, vec![1.0, f32::INFINITY]).unwrap();
        let text = message(Graph::new("g", pair(), Features::Sparse(x)));
        assert!(text.contains("feature 7 of node 1 (both from 0) is infinite"), "{text}");
    }

    #[test]
    fn labels_ids_and_names_must_fit() {
        let graph = || Graph::new("g", pair(), dense(2, vec![0.0; 2])).unwrap();
        assert!(message(graph().with_labels(vec![0], vec![])).contains("1 labels for 2 nodes"));
        let text = message(graph().with_labels(vec![0, 70_000], vec![]));
        assert!(text.contains("node 1 has class 70000"), "{text}");
        let text = message(graph().with_labels(vec![0, 1], vec!["one".into()]));
        assert!(text.contains("1 class names for 2 classes"), "{text}");
        assert!(message(graph().with_node_ids(vec![])).contains("0 ids"));
        let text = message(graph().with_feature_names(vec![]));
        assert!(text.contains("0 feature names for 1 features"), "{text}");
        let one_class = graph().with_labels(vec![0, 0], vec![]).unwrap();
        assert_eq!((one_class.classes(), one_class.edge_homophily()), (1, Some(1.0)));
    }

    #[test]
    fn statistics_of_a_small_graph() {
        // 0 – 1, 1 – 1, and 2 alone.
        let adjacency = Pattern::new(3, vec![0, 1, 3, 3], vec![1, 0, 1]).unwrap();
        let graph = Graph::new("g", adjacency, dense(3, vec![0.0, 2.0, 0.0])).unwrap();
        assert_eq!(graph.edge_homophily(), None);
        assert_eq!((graph.isolated_nodes(), graph.self_loops()), (1, 1));
        assert!((graph.density() - 1.0 / 3.0).abs() < 1e-12);
        assert!((graph.features().density() - 1.0 / 3.0).abs() < 1e-12);
        let graph = graph.with_labels(vec![0, 1, 0], vec![]).unwrap();
        assert_eq!(graph.edge_homophily(), Some(1.0 / 3.0));
    }

    #[test]
    fn the_fingerprint_depends_on_every_part_it_should() {
        let graph = || Graph::new("g", pair(), dense(2, vec![0.5, 1.0])).unwrap();
        let print = graph().fingerprint();
        assert_eq!(print.len(), 64);
        let labelled = graph().with_labels(vec![0, 1], vec![]).unwrap().fingerprint();
        let relabelled = graph().with_labels(vec![1, 0], vec![]).unwrap().fingerprint();
        let apart = Pattern::new(2, vec![0, 0, 0], vec![]).unwrap();
        let apart = Graph::new("g", apart, dense(2, vec![0.5, 1.0])).unwrap().fingerprint();
        let sparse = Pattern::new(1, vec![0, 1, 2], vec![0, 0]).unwrap();
        let sparse = Features::Sparse(Csr::new(sparse, vec![0.5, 1.0]).unwrap());
        let sparse = Graph::new("g", pair(), sparse).unwrap().fingerprint();
        let mut all = vec![print, labelled, relabelled, apart, sparse];
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 5);
    }

    /// A checkpoint names its graph by this text: it must not change between versions.
    #[test]
    fn the_fingerprint_is_pinned() {
        let graph = Graph::new("g", pair(), dense(2, vec![0.5, -1.0])).unwrap();
        let graph = graph.with_labels(vec![3, 0], vec![]).unwrap();
        assert_eq!(
            graph.fingerprint(),
            "e10995e2d111b7c9e272f219415763e13c523165347054b390f7d7670e8fe77c"
        );
    }

    proptest! {
        #[test]
        fn the_symmetry_check_agrees_with_the_transpose(
            cells in prop::collection::vec(any::<bool>(), 36),
            mirror in any::<bool>(),
        ) {
            let set = |i: usize, j: usize| cells[i * 6 + j] || (mirror && cells[j * 6 + i]);
            let mut offsets = vec![0];
            let mut indices = Vec::new();
            for i in 0..6 {
                indices.extend((0..6).filter(|&j| set(i, j)).map(|j| j as u32));
                offsets.push(indices.len());
            }
            let adjacency = Pattern::new(6, offsets, indices).unwrap();
            let symmetric = adjacency.transpose().0 == adjacency;
            prop_assert_eq!(one_way_edge(&adjacency).is_none(), symmetric);
        }
    }
}
