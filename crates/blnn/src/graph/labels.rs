//! Labels that some nodes have and others do not.

use super::{Graph, check_labels, shape};
use crate::error::Result;

/// The nodes of a graph that have a label: all that can be scored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Labelled {
    /// The nodes, in increasing order.
    pub nodes: Vec<usize>,
    /// The class of each of them.
    pub classes: Vec<u32>,
}

impl Graph {
    /// Adds class numbers for some of the nodes. If every node has one, this is
    /// [`with_labels`](Self::with_labels); else [`labels`](Self::labels) stays empty, so that
    /// nothing takes a node for one of a class it has not, and [`labelled`](Self::labelled) lists
    /// the nodes that have one.
    ///
    /// # Errors
    /// As for [`with_labels`](Self::with_labels), and if no node has a label.
    ///
    /// # Examples
    /// ```
    /// use blnn::{Features, Graph, Matrix, Pattern};
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let adjacency = Pattern::new(3, vec![0, 1, 2, 2], vec![1, 0])?;
    /// let graph = Graph::new("g", adjacency, Features::Dense(Matrix::zeros(3, 1)))?
    ///     .with_some_labels(vec![Some(1), None, Some(0)], vec![])?;
    /// let labelled = graph.labelled().unwrap();
    /// assert_eq!((labelled.nodes, labelled.classes), (vec![0, 2], vec![1, 0]));
    /// assert_eq!((graph.classes(), graph.without_label(), graph.labels()), (2, 1, None));
    /// # Ok(())
    /// # }
    /// ```
    pub fn with_some_labels(
        mut self,
        labels: Vec<Option<u32>>,
        class_names: Vec<String>,
    ) -> Result<Self> {
        let known: Vec<u32> = labels.iter().copied().flatten().collect();
        if known.len() == labels.len() {
            return self.with_labels(known, class_names);
        }
        if known.is_empty() {
            return shape("no node has a label").map_err(|e| e.at(&self.name));
        }
        if labels.len() != self.nodes() {
            let message = format!("{} labels for {} nodes", labels.len(), self.nodes());
            return shape(message).map_err(|e| e.at(&self.name));
        }
        check_labels(&known, &class_names, known.len()).map_err(|e| e.at(&self.name))?;
        self.labels = None;
        self.some_labels = Some(labels);
        self.class_names = class_names;
        Ok(self)
    }

    /// The class of a node, if it has one.
    pub fn label_of(&self, node: usize) -> Option<u32> {
        match (&self.labels, &self.some_labels) {
            (Some(labels), _) => labels.get(node).copied(),
            (None, Some(labels)) => labels.get(node).copied().flatten(),
            (None, None) => None,
        }
    }

    /// The nodes that have a label, or `None` if no node has one.
    pub fn labelled(&self) -> Option<Labelled> {
        if self.labels.is_none() && self.some_labels.is_none() {
            return None;
        }
        let of = |node| Some((node, self.label_of(node)?));
        let (nodes, classes) = (0..self.nodes()).filter_map(of).unzip();
        Some(Labelled { nodes, classes })
    }

    /// Number of nodes without a label in a graph where others have one.
    pub fn without_label(&self) -> usize {
        self.some_labels.as_ref().map_or(0, |all| all.iter().filter(|l| l.is_none()).count())
    }
}

#[cfg(test)]
mod tests {
    use blnn_kernels::{Matrix, Pattern};

    use super::*;
    use crate::graph::Features;

    /// The path 0 – 1 – 2 – 3.
    fn path() -> Graph {
        let adjacency = Pattern::new(4, vec![0, 1, 3, 5, 6], vec![1, 0, 2, 1, 3, 2]).unwrap();
        Graph::new("path", adjacency, Features::Dense(Matrix::zeros(4, 1))).unwrap()
    }

    #[test]
    fn labels_of_all_nodes_are_labels() {
        let all = vec![Some(0), Some(1), Some(0), Some(1)];
        let graph = path().with_some_labels(all, vec![]).unwrap();
        let same = path().with_labels(vec![0, 1, 0, 1], vec![]).unwrap();
        assert_eq!((graph.labels(), graph.without_label()), (same.labels(), 0));
        assert_eq!(graph.labelled().unwrap().nodes, [0, 1, 2, 3]);
        assert_eq!(graph.fingerprint(), same.fingerprint());
    }

    #[test]
    fn homophily_counts_edges_with_two_labels() {
        let some = vec![Some(2), Some(2), None, Some(0)];
        let graph = path().with_some_labels(some.clone(), vec![]).unwrap();
        assert_eq!((graph.edge_homophily(), graph.classes()), (Some(1.0), 3));
        assert_eq!((graph.label_of(1), graph.label_of(2)), (Some(2), None));
        let other = vec![Some(2), Some(2), None, Some(1)];
        let other = path().with_some_labels(other, vec![]).unwrap();
        assert_ne!(graph.fingerprint(), other.fingerprint());
        assert_ne!(graph.fingerprint(), path().fingerprint());
        let lone = path().with_some_labels(vec![Some(0), None, None, None], vec![]).unwrap();
        assert_eq!(lone.edge_homophily(), None);
    }

    #[test]
    fn labels_that_do_not_fit_are_refused() {
        let refusal = |labels, names: Vec<String>| {
            path().with_some_labels(labels, names).unwrap_err().to_string()
        };
        assert_eq!(refusal(vec![None; 4], vec![]), "path: no node has a label");
        let text = refusal(vec![Some(0), None], vec![]);
        assert!(text.contains("2 labels for 4 nodes"), "{text}");
        let text = refusal(vec![Some(1), None, None, None], vec!["one".into()]);
        assert!(text.contains("1 class names for 2 classes"), "{text}");
    }
}
