//! [`Graph`]: an undirected attributed graph, the input of every method.

use blnn_kernels::{Csr, Matrix, Pattern};

use crate::error::{Error, ErrorKind, Result};

/// Node attributes, one row a node.
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

    fn values(&self) -> &[f32] {
        match self {
            Self::Sparse(x) => x.values(),
            Self::Dense(x) => x.data(),
        }
    }
}

/// Public splits that come with a data set: each mask holds one flag a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Splits {
    /// One training mask a split.
    pub train: Vec<Vec<bool>>,
    /// One validation mask a split.
    pub validation: Vec<Vec<bool>>,
    /// The test mask, shared by all splits.
    pub test: Vec<bool>,
}

/// An undirected attributed graph of `n` nodes.
///
/// Invariants, checked by [`Graph::new`]:
/// - `adjacency` is `n × n` and symmetric, each edge stored in both directions; a self-loop, where
///   the data set keeps them, is stored once;
/// - `features` has `n` rows of finite values;
/// - `labels`, if present, holds `n` class numbers below `classes()`.
#[derive(Clone, Debug)]
pub struct Graph {
    name: String,
    adjacency: Pattern,
    features: Features,
    labels: Option<Vec<u32>>,
    class_names: Vec<String>,
    node_ids: Option<Vec<String>>,
    splits: Option<Splits>,
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
            class_names: Vec::new(),
            node_ids: None,
            splits: None,
        };
        graph.check()?;
        Ok(graph)
    }

    fn check(&self) -> Result<()> {
        let n = self.adjacency.rows();
        let shape = |message: String| Err(Error::new(ErrorKind::Shape, message).at(&self.name));
        if n == 0 {
            return shape("the graph has no nodes".into());
        }
        if self.adjacency.cols() != n || self.adjacency.transpose().0 != self.adjacency {
            return shape("the adjacency is not symmetric; add the missing directions".into());
        }
        if self.features.rows() != n {
            return shape(format!(
                "{} feature rows for {n} nodes",
                self.features.rows()
            ));
        }
        if self.features.cols() == 0 {
            return shape("the nodes have no features".into());
        }
        if self.features.values().iter().any(|v| !v.is_finite()) {
            return shape("a feature is NaN or infinite; replace or drop it".into());
        }
        Ok(())
    }

    /// Adds a class number for each node, with the names of the classes (or none).
    ///
    /// # Errors
    /// If there is not one label a node.
    pub fn with_labels(mut self, labels: Vec<u32>, class_names: Vec<String>) -> Result<Self> {
        if labels.len() != self.nodes() {
            let message = format!("{} labels for {} nodes", labels.len(), self.nodes());
            return Err(Error::new(ErrorKind::Shape, message).at(&self.name));
        }
        self.labels = Some(labels);
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

    /// Adds the public splits of a data set.
    #[must_use]
    pub fn with_splits(mut self, splits: Splits) -> Self {
        self.splits = Some(splits);
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

    /// The class number of each node, if known.
    pub fn labels(&self) -> Option<&[u32]> {
        self.labels.as_deref()
    }

    /// Number of classes: one more than the largest label, 0 without labels.
    pub fn classes(&self) -> usize {
        self.labels
            .as_deref()
            .map_or(0, |l| l.iter().max().map_or(0, |&m| m as usize + 1))
    }

    /// Names of the classes, possibly none.
    pub fn class_names(&self) -> &[String] {
        &self.class_names
    }

    /// The user's name of each node, if there are any.
    pub fn node_ids(&self) -> Option<&[String]> {
        self.node_ids.as_deref()
    }

    /// The public splits of the data set, if it has any.
    pub fn splits(&self) -> Option<&Splits> {
        self.splits.as_ref()
    }

    /// The share of edges that join nodes of one class (the paper's `H`), or `None` without
    /// labels or edges.
    pub fn edge_homophily(&self) -> Option<f64> {
        let labels = self.labels()?;
        let same = |i: usize| {
            self.adjacency
                .row(i)
                .iter()
                .filter(|&&j| labels[i] == labels[j as usize])
                .count()
        };
        let total: usize = (0..self.nodes()).map(same).sum();
        (self.entries() > 0).then(|| total as f64 / self.entries() as f64)
    }
}
