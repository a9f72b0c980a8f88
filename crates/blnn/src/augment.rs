//! [`Views`]: two random views of one graph, redrawn in place at every step.
//!
//! A view drops each *directed* edge independently and masks whole feature columns (paper,
//! appendix A.3). The graph is never rebuilt: a view is a list of kept neighbours for the forward
//! pass, the same by the reverse-edge map for the backward pass, a factor a node, and a mask over
//! the columns.

use blnn_kernels::gather::Selection;
use blnn_kernels::{Partition, Pattern, Threads};

use crate::rng::{Draws, Stream};

/// One view of a graph.
#[derive(Debug)]
pub(crate) struct View {
    /// Flag of each directed entry; the entry in row `i`, column `j` is the message from j to i.
    keep_edges: Vec<bool>,
    /// Flag of each feature column.
    keep_features: Vec<bool>,
    /// Kept senders of each node, itself included: the rows of A + I.
    incoming: Selection,
    /// Kept receivers of each node, itself included: the rows of (A + I)ᵀ.
    outgoing: Selection,
    /// `1/√d`, d being the number of kept senders of a node, itself included.
    scale: Vec<f32>,
}

impl View {
    fn whole(adjacency: &Pattern, features: usize, threads: &Threads) -> Self {
        let mut view = Self {
            keep_edges: vec![true; adjacency.entries()],
            keep_features: vec![true; features],
            incoming: Selection::all(adjacency, true, threads),
            outgoing: Selection::all(adjacency, true, threads),
            scale: vec![0.0; adjacency.rows()],
        };
        view.measure();
        view
    }

    fn measure(&mut self) {
        for (i, scale) in self.scale.iter_mut().enumerate() {
            *scale = 1.0 / (self.incoming.row(i).len() as f32).sqrt();
        }
    }

    /// Kept senders of each node, itself included.
    pub(crate) fn incoming(&self) -> &Selection {
        &self.incoming
    }

    /// Kept receivers of each node, itself included.
    pub(crate) fn outgoing(&self) -> &Selection {
        &self.outgoing
    }

    /// The factor `1/√d` of each node.
    pub(crate) fn scale(&self) -> &[f32] {
        &self.scale
    }

    /// Which feature columns the view keeps.
    pub(crate) fn keep_features(&self) -> &[bool] {
        &self.keep_features
    }
}

/// Two views of one graph.
#[derive(Debug)]
pub(crate) struct Views {
    adjacency: Pattern,
    /// For the entry (i, j), the entry (j, i).
    reverse: Vec<u32>,
    pair: [View; 2],
}

impl Views {
    /// Two views that keep everything.
    pub(crate) fn whole(adjacency: &Pattern, features: usize, threads: &Threads) -> Self {
        let (_, reverse) = adjacency.transpose();
        let pair = [(); 2].map(|()| View::whole(adjacency, features, threads));
        Self { adjacency: adjacency.clone(), reverse, pair }
    }

    /// One of the two views.
    pub(crate) fn view(&self, view: usize) -> &View {
        &self.pair[view]
    }

    /// The undropped adjacency.
    pub(crate) fn adjacency(&self) -> &Pattern {
        &self.adjacency
    }

    /// The cut of the nodes into shards of nearly equal numbers of undropped edges.
    pub(crate) fn partition(&self) -> &Partition {
        self.pair[0].incoming.partition()
    }

    /// For each entry (i, j) of the adjacency, the entry (j, i).
    pub(crate) fn reverse(&self) -> &[u32] {
        &self.reverse
    }

    /// Redraws both views for an epoch.
    pub(crate) fn draw(
        &mut self,
        seed: u64,
        epoch: usize,
        edge_drop: [f32; 2],
        feature_drop: [f32; 2],
        threads: &Threads,
    ) {
        for (v, view) in self.pair.iter_mut().enumerate() {
            let number = v as u32;
            Draws::new(seed, Stream::Edges { view: number }, epoch).keep_flags(
                edge_drop[v],
                &mut view.keep_edges,
                threads,
            );
            Draws::new(seed, Stream::Features { view: number }, epoch).keep_flags(
                feature_drop[v],
                &mut view.keep_features,
                threads,
            );
        }
        self.refresh(threads);
    }

    /// Makes both views keep everything.
    pub(crate) fn keep_all(&mut self, threads: &Threads) {
        for view in &mut self.pair {
            view.keep_edges.fill(true);
            view.keep_features.fill(true);
        }
        self.refresh(threads);
    }

    /// Sets the flags of both views by hand.
    #[cfg(test)]
    pub(crate) fn set(&mut self, edges: [&[bool]; 2], features: [&[bool]; 2], threads: &Threads) {
        for (v, view) in self.pair.iter_mut().enumerate() {
            view.keep_edges.copy_from_slice(edges[v]);
            view.keep_features.copy_from_slice(features[v]);
        }
        self.refresh(threads);
    }

    fn refresh(&mut self, threads: &Threads) {
        for view in &mut self.pair {
            let keep = &view.keep_edges;
            view.incoming.select(&self.adjacency, true, keep, threads);
            view.outgoing.select_transposed(&self.adjacency, true, keep, &self.reverse, threads);
            view.measure();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path() -> Pattern {
        Pattern::new(4, vec![0, 1, 3, 5, 6], vec![1, 0, 2, 1, 3, 2]).unwrap()
    }

    #[test]
    fn outgoing_is_the_transpose_of_incoming() {
        let threads = Threads::new(1);
        let mut views = Views::whole(&path(), 3, &threads);
        let edges = [true, false, true, true, false, false];
        views.set([&edges; 2], [&[true, false, true]; 2], &threads);
        let view = views.view(0);
        assert_eq!(view.incoming().row(1), [2, 1]);
        assert_eq!(view.outgoing().row(1), [0, 2, 1]);
        assert_eq!(view.outgoing().row(3), [3]);
        assert!((view.scale()[2] - 1.0 / 2f32.sqrt()).abs() < 1e-6);
    }

    #[test]
    fn views_are_drawn_apart_and_repeatably() {
        let threads = Threads::new(1);
        let offsets: Vec<usize> = (0..=60).map(|i| i * 59).collect();
        let indices = (0..60).flat_map(|i| (0..60).filter(move |&j| j != i)).collect();
        let complete = Pattern::new(60, offsets, indices).unwrap();
        let mut views = Views::whole(&complete, 40, &threads);
        views.draw(3, 8, [0.5, 0.5], [0.2, 0.2], &threads);
        let first = views.view(0).keep_edges.clone();
        assert_ne!(first, views.view(1).keep_edges);
        views.draw(3, 9, [0.5, 0.5], [0.2, 0.2], &threads);
        assert_ne!(first, views.view(0).keep_edges);
        views.draw(3, 8, [0.5, 0.5], [0.2, 0.2], &threads);
        assert_eq!(first, views.view(0).keep_edges);
    }
}
