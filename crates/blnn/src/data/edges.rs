//! Turning a list of directed edges into a symmetric adjacency.

use blnn_kernels::Pattern;

use crate::error::{Error, ErrorKind, Result};

/// What becomes of edges from a node to itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SelfLoops {
    /// They stay, stored once.
    Keep,
    /// They are left out.
    Drop,
}

/// The adjacency of `nodes` nodes with every edge in both directions and none twice.
///
/// # Errors
/// If an edge names a node that does not exist, or there are more entries than a graph can hold.
///
/// # Examples
/// ```
/// use blnn::data::{SelfLoops, undirected};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let edges = [(0, 2), (2, 0), (0, 2), (1, 1)];
/// let adjacency = undirected(3, &edges, SelfLoops::Drop)?;
/// assert_eq!(adjacency.offsets(), [0, 1, 1, 2]);
/// assert_eq!(adjacency.indices(), [2, 0]);
/// assert_eq!(undirected(3, &edges, SelfLoops::Keep)?.row(1), [1]);
/// # Ok(())
/// # }
/// ```
pub fn undirected(nodes: usize, edges: &[(u32, u32)], self_loops: SelfLoops) -> Result<Pattern> {
    check(nodes, edges)?;
    let wanted = |&&(i, j): &&(u32, u32)| i != j || self_loops == SelfLoops::Keep;
    let (mut offsets, mut indices) = scatter(nodes, edges.iter().filter(wanted));
    compact(&mut offsets, &mut indices);
    Pattern::new(nodes, offsets, indices)
        .map_err(|e| Error::new(ErrorKind::Shape, e.to_string()).with_source(e))
}

fn check(nodes: usize, edges: &[(u32, u32)]) -> Result<()> {
    // Entries are numbered in 32 bits, two for every edge.
    if nodes > u32::MAX as usize || edges.len() > (u32::MAX / 2) as usize {
        let count = edges.len();
        let message = format!("{nodes} nodes and {count} edges are more than a graph can hold");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    let outside = |&&(i, j): &&(u32, u32)| i.max(j) as usize >= nodes;
    if let Some((i, j)) = edges.iter().find(outside) {
        let message = format!("edge {i} → {j} leaves the graph, whose {nodes} nodes count from 0");
        return Err(Error::new(ErrorKind::Shape, message));
    }
    Ok(())
}

/// Rows of both directions of every edge, in no order and with repetitions.
fn scatter<'a>(
    nodes: usize,
    edges: impl Iterator<Item = &'a (u32, u32)> + Clone,
) -> (Vec<usize>, Vec<u32>) {
    let mut offsets = vec![0; nodes + 1];
    for &(i, j) in edges.clone() {
        offsets[i as usize + 1] += 1;
        offsets[j as usize + 1] += 1;
    }
    for row in 0..nodes {
        offsets[row + 1] += offsets[row];
    }
    let mut next = offsets.clone();
    let mut indices = vec![0; offsets[nodes]];
    for &(i, j) in edges {
        for (row, column) in [(i, j), (j, i)] {
            indices[next[row as usize]] = column;
            next[row as usize] += 1;
        }
    }
    (offsets, indices)
}

/// Sorts every row and removes repetitions, in place.
fn compact(offsets: &mut [usize], indices: &mut Vec<u32>) {
    let mut kept = 0;
    let mut start = 0;
    for row in 0..offsets.len() - 1 {
        let end = offsets[row + 1];
        indices[start..end].sort_unstable();
        let first = kept;
        for entry in start..end {
            let column = indices[entry];
            if kept == first || indices[kept - 1] != column {
                indices[kept] = column;
                kept += 1;
            }
        }
        offsets[row + 1] = kept;
        start = end;
    }
    indices.truncate(kept);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn edges_outside_the_graph_are_refused() {
        let error = undirected(3, &[(0, 1), (2, 3)], SelfLoops::Keep).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Shape);
        assert!(error.to_string().contains("2 → 3"), "{error}");
    }

    #[test]
    fn no_edges_and_no_nodes_are_fine() {
        assert_eq!(undirected(2, &[], SelfLoops::Keep).unwrap().offsets(), [0, 0, 0]);
        assert_eq!(undirected(0, &[], SelfLoops::Keep).unwrap().rows(), 0);
    }

    fn entries(pattern: &Pattern) -> Vec<(u32, u32)> {
        let row = |i: usize| pattern.row(i).iter().map(move |&j| (i as u32, j));
        (0..pattern.rows()).flat_map(row).collect()
    }

    proptest! {
        #[test]
        fn agrees_with_a_set_and_is_idempotent(
            edges in prop::collection::vec((0u32..7, 0u32..7), 0..40),
            keep in any::<bool>(),
        ) {
            let loops = if keep { SelfLoops::Keep } else { SelfLoops::Drop };
            let adjacency = undirected(7, &edges, loops).unwrap();
            let both = edges.iter().flat_map(|&(i, j)| [(i, j), (j, i)]);
            let expected: BTreeSet<_> = both.filter(|(i, j)| keep || i != j).collect();
            let found = entries(&adjacency);
            prop_assert_eq!(&found, &expected.into_iter().collect::<Vec<_>>());
            prop_assert_eq!(undirected(7, &found, loops).unwrap(), adjacency);
        }
    }
}
