//! [`Sizes`]: all that the cost of training depends on, of a graph that need not be in memory.

use blnn_kernels::mixed::Arithmetic;

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

/// How training multiplies attributes by weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Products {
    /// By the values that are not zero.
    Sparse,
    /// By all values.
    Dense,
    /// By all values, on tiles.
    Tiled,
}

/// Where one in so many values is not zero, a matrix unit multiplies all of them faster than other
/// kernels the ones that are not: measured, both are level at one in eight to eleven (`BENCHMARKS.md`),
/// and all values take more memory.
const ONE_IN_SO_MANY: usize = 7;

impl Attributes {
    /// The attributes of a graph.
    pub(crate) fn of(features: &Features) -> Self {
        match features {
            Features::Dense(_) => Self::Dense,
            Features::Sparse(x) => {
                Self::Sparse { values: x.values().len(), alike: x.row_factors().is_some() }
            }
        }
    }

    /// How these attributes of so many nodes are multiplied.
    pub(crate) fn products(
        self,
        nodes: usize,
        features: usize,
        arithmetic: Arithmetic,
    ) -> Products {
        let is_full = match self {
            Self::Sparse { values, .. } => {
                let dense_enough =
                    values.saturating_mul(ONE_IN_SO_MANY) >= nodes.saturating_mul(features);
                arithmetic.uses_matrix_unit() && dense_enough
            }
            Self::Dense => arithmetic.uses_tiles(),
        };
        match self {
            _ if is_full => Products::Tiled,
            Self::Sparse { .. } => Products::Sparse,
            Self::Dense => Products::Dense,
        }
    }
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
            attributes: Attributes::of(graph.features()),
            labelled: graph.classes() > 0,
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

    /// How training multiplies the attributes by weights.
    pub(crate) fn products(&self, arithmetic: Arithmetic) -> Products {
        self.attributes.products(self.nodes, self.features, arithmetic)
    }

    /// Number of attribute values in memory; the largest number there is, of a graph that need not
    /// exist, where it is larger.
    pub fn values(&self) -> usize {
        match self.attributes {
            Attributes::Sparse { values, .. } => values,
            Attributes::Dense => self.nodes.saturating_mul(self.features),
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
    fn only_a_matrix_unit_multiplies_zeros() {
        let sparse = |values| Attributes::Sparse { values, alike: true };
        let [f32, bf16] = [Arithmetic::F32, Arithmetic::bf16()];
        assert_eq!(sparse(100).products(10, 10, f32), Products::Sparse);
        assert_eq!(sparse(14).products(10, 10, bf16), Products::Sparse);
        assert_eq!(Attributes::Dense.products(10, 10, f32), Products::Dense);
        let if_so = |tiled, other| if tiled { Products::Tiled } else { other };
        let on_unit = if_so(bf16.uses_matrix_unit(), Products::Sparse);
        assert_eq!(sparse(15).products(10, 10, bf16), on_unit);
        let on_tiles = if_so(bf16.uses_tiles(), Products::Dense);
        assert_eq!(Attributes::Dense.products(10, 10, bf16), on_tiles);
    }

    #[test]
    fn a_larger_graph_keeps_its_degree() {
        let sizes = Sizes { entries: 6, ..Sizes::of(&graph(Features::Dense(Matrix::zeros(2, 5)))) };
        let larger = sizes.scaled_to(200);
        assert_eq!((larger.nodes, larger.entries, larger.values()), (200, 600, 1000));
    }
}
