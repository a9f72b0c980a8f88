//! An order of the nodes in which neighbours stand close together.
//!
//! Gathering the rows of a node's neighbours is fast when they lie near each other, because they
//! are then in a near cache. The reverse Cuthill–McKee order (breadth first from a node of low
//! degree, neighbours by degree, reversed) brings them together. Training works on the graph in
//! this order; everything that leaves it is put back into the user's.

use blnn_kernels::{Csr, Matrix, Pattern};

use crate::graph::Features;

/// A new order of the nodes: position `k` holds node `order[k]`.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    nodes: Vec<u32>,
    positions: Vec<u32>,
}

impl Order {
    /// The order as it is.
    #[cfg(test)]
    pub(crate) fn identity(nodes: usize) -> Self {
        let nodes: Vec<u32> = (0..nodes as u32).collect();
        Self { positions: nodes.clone(), nodes }
    }

    /// The reverse Cuthill–McKee order of a symmetric adjacency.
    pub(crate) fn by_neighbourhood(adjacency: &Pattern) -> Self {
        let degree = |i: u32| adjacency.row(i as usize).len();
        let mut starts: Vec<u32> = (0..adjacency.rows() as u32).collect();
        starts.sort_by_key(|&i| (degree(i), i));
        let mut seen = vec![false; adjacency.rows()];
        let mut nodes: Vec<u32> = Vec::with_capacity(adjacency.rows());
        for start in starts {
            if std::mem::replace(&mut seen[start as usize], true) {
                continue;
            }
            let mut next = nodes.len();
            nodes.push(start);
            while next < nodes.len() {
                let first_new = nodes.len();
                for &j in adjacency.row(nodes[next] as usize) {
                    if !std::mem::replace(&mut seen[j as usize], true) {
                        nodes.push(j);
                    }
                }
                nodes[first_new..].sort_by_key(|&j| (degree(j), j));
                next += 1;
            }
        }
        nodes.reverse();
        let mut positions = vec![0; nodes.len()];
        nodes.iter().enumerate().for_each(|(k, &i)| positions[i as usize] = k as u32);
        Self { nodes, positions }
    }

    /// The adjacency with its nodes in this order.
    pub(crate) fn adjacency(&self, adjacency: &Pattern) -> Pattern {
        let neighbours = |i: u32| {
            let mut row: Vec<u32> =
                adjacency.row(i as usize).iter().map(|&j| self.positions[j as usize]).collect();
            row.sort_unstable();
            row
        };
        let rows = self.nodes.iter().map(|&i| (neighbours(i), ()));
        pattern(adjacency.cols(), adjacency.entries(), rows).0
    }

    /// The attributes with their rows in this order.
    pub(crate) fn features(&self, features: &Features) -> Features {
        match features {
            Features::Dense(x) => Features::Dense(Matrix::from_fn(x.rows(), x.cols(), |k, j| {
                x.get(self.nodes[k] as usize, j)
            })),
            Features::Sparse(x) => {
                let rows = self.nodes.iter().map(|&i| {
                    let (columns, values) = x.row(i as usize);
                    (columns.to_vec(), values)
                });
                let (pattern, values) = pattern(x.pattern().cols(), x.values().len(), rows);
                let values = values.into_iter().flatten().copied().collect();
                Features::Sparse(Csr::new(pattern, values).expect("a value an entry"))
            }
        }
    }

    /// One value a node, in this order.
    pub(crate) fn values<T: Copy>(&self, values: &[T]) -> Vec<T> {
        self.nodes.iter().map(|&i| values[i as usize]).collect()
    }

    /// The rows of a matrix that is in this order, back in the user's.
    pub(crate) fn restore(&self, matrix: &Matrix) -> Matrix {
        let mut out = Matrix::zeros(matrix.rows(), matrix.cols());
        for (k, &i) in self.nodes.iter().enumerate() {
            out.row_mut(i as usize).copy_from_slice(matrix.row(k));
        }
        out
    }
}

/// A pattern from its rows, with what came along with each row.
fn pattern<T>(
    cols: usize,
    entries: usize,
    rows: impl Iterator<Item = (Vec<u32>, T)>,
) -> (Pattern, Vec<T>) {
    let (mut offsets, mut indices, mut extras) = (vec![0], Vec::with_capacity(entries), Vec::new());
    for (row, extra) in rows {
        indices.extend(row);
        offsets.push(indices.len());
        extras.push(extra);
    }
    (Pattern::new(cols, offsets, indices).expect("rows of a valid pattern"), extras)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path 0 – 3 – 1 – 4 – 2 and the lone node 5.
    fn path() -> Pattern {
        let rows: [&[u32]; 6] = [&[3], &[3, 4], &[4], &[0, 1], &[1, 2], &[]];
        let offsets = rows.iter().scan(0, |at, row| {
            *at += row.len();
            Some(*at)
        });
        Pattern::new(6, std::iter::once(0).chain(offsets).collect(), rows.concat()).unwrap()
    }

    #[test]
    fn a_path_is_laid_out_as_a_path() {
        let order = Order::by_neighbourhood(&path());
        let reordered = order.adjacency(&path());
        let distance = |i: usize| {
            let far = |&j: &u32| (j as usize).abs_diff(i);
            reordered.row(i).iter().map(far).max().unwrap_or(0)
        };
        assert!((0..6).all(|i| distance(i) <= 1));
        assert_eq!(reordered.entries(), path().entries());
    }

    #[test]
    fn what_was_reordered_comes_back() {
        let order = Order::by_neighbourhood(&path());
        let x = Matrix::from_fn(6, 3, |i, j| (10 * i + j) as f32);
        let Features::Dense(moved) = order.features(&Features::Dense(x.clone())) else { panic!() };
        assert_ne!(moved, x);
        assert_eq!(order.restore(&moved), x);
        assert_eq!(order.values(&[0, 1, 2, 3, 4, 5])[0], moved.get(0, 0) as i32 / 10);
    }
}
