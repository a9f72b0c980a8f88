//! [`Sizes`]: all that the cost of training depends on, of a graph that need not be in memory.

use crate::graph::{Features, Graph};

/// How attributes are stored, and how many values that takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes {
    /// Only the values that are not zero.
    Sparse {
        /// Number of stored values.
        values: usize,
        /// The values of a node are all alike, so that one factor stands for them.
        alike: bool,
    },
    /// All values.
    Dense,
}

/// The sizes of an attributed graph.
///
/// ```
/// use blnn::Sizes;
/// let cora = Sizes::of(&blnn::data::load("cora", &[])?);
/// assert_eq!((cora.nodes, cora.entries, cora.features), (2708, 10_556, 1433));
/// # Ok::<(), blnn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of directed entries: each edge counts twice, a self-loop once.
    pub entries: usize,
    /// Number of attributes of a node.
    pub features: usize,
    /// How the attributes are stored.
    pub attributes: Attributes,
    /// Whether the nodes have classes, by which embeddings are scored.
    pub labelled: bool,
    /// Bytes of the nodes' names.
    pub id_bytes: usize,
}

impl Sizes {
    /// The sizes of a graph.
    pub fn of(graph: &Graph) -> Self {
        Self {
            nodes: graph.nodes(),
            entries: graph.entries(),
            features: graph.features().cols(),
            attributes: attributes_of(graph.features()),
            labelled: graph.labels().is_some(),
            id_bytes: graph.node_ids().map_or(0, |ids| ids.iter().map(String::len).sum()),
        }
    }

    /// The same graph with `nodes` nodes: edges and values a node stay what they are.
    #[must_use]
    pub fn scaled_to(self, nodes: usize) -> Self {
        let scaled = |count: usize| {
            (count as f64 * nodes as f64 / self.nodes.max(1) as f64).round() as usize
        };
        let attributes = match self.attributes {
            Attributes::Sparse { values, alike } => {
                Attributes::Sparse { values: scaled(values), alike }
            }
            Attributes::Dense => Attributes::Dense,
        };
        Self {
            nodes,
            entries: scaled(self.entries),
            attributes,
            id_bytes: scaled(self.id_bytes),
            ..self
        }
    }

    /// Number of attribute values in memory.
    pub fn values(&self) -> usize {
        match self.attributes {
            Attributes::Sparse { values, .. } => values,
            Attributes::Dense => self.nodes * self.features,
        }
    }
}

fn attributes_of(features: &Features) -> Attributes {
    match features {
        Features::Dense(_) => Attributes::Dense,
        Features::Sparse(x) => {
            let alike = |i: usize| x.row(i).1.windows(2).all(|pair| pair[0] == pair[1]);
            let rows = 0..x.pattern().rows();
            Attributes::Sparse { values: x.values().len(), alike: rows.into_iter().all(alike) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use blnn_kernels::{Csr, Matrix, Pattern};

    fn graph(features: Features) -> Graph {
        let adjacency = Pattern::new(2, vec![0, 1, 2], vec![1, 0]).unwrap();
        Graph::new("pair", adjacency, features).unwrap()
    }

    #[test]
    fn rows_of_equal_values_are_told_from_others() {
        let csr = |values: Vec<f32>| {
            Features::Sparse(
                Csr::new(Pattern::new(3, vec![0, 2, 3], vec![0, 2, 1]).unwrap(), values).unwrap(),
            )
        };
        let alike = |values| match Sizes::of(&graph(csr(values))).attributes {
            Attributes::Sparse { values: 3, alike } => alike,
            other => panic!("{other:?}"),
        };
        assert!(alike(vec![0.5, 0.5, 1.0]));
        assert!(!alike(vec![0.5, 0.25, 1.0]));
        let dense = Sizes::of(&graph(Features::Dense(Matrix::zeros(2, 5))));
        assert_eq!((dense.attributes, dense.values()), (Attributes::Dense, 10));
    }

    #[test]
    fn a_larger_graph_keeps_its_degree() {
        let sizes = Sizes { entries: 6, ..Sizes::of(&graph(Features::Dense(Matrix::zeros(2, 5)))) };
        let larger = sizes.scaled_to(200);
        assert_eq!((larger.nodes, larger.entries, larger.values()), (200, 600, 1000));
    }
}
