//! [`Search`]: the nearest rows of a matrix by cosine, exactly.
//!
//! Blocks of rows are compared with all rows by dense products; only the few best of each are
//! kept, so no `n × n` matrix exists.

use std::sync::Mutex;

use blnn_kernels::gemm::{Operand, gemm};
use blnn_kernels::product::Store;
use blnn_kernels::{Matrix, Threads};

use crate::error::{Error, ErrorKind, Result};

/// Rows whose neighbours are sought together, and rows they are compared with at a time. Their
/// products fill half a megabyte, which stays in a core's cache until it has been searched.
pub(crate) const BLOCK: usize = 128;
const CANDIDATES: usize = 1024;

/// Products skipped at once when none of them is among the best.
const STRIDE: usize = 32;

/// A row near another one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Neighbour {
    /// The row's number.
    pub node: u32,
    /// The cosine of the two rows, from −1 to 1.
    pub cosine: f32,
}

/// Rows scaled to length one, ready to be searched.
///
/// ```
/// use blnn::{Matrix, search::Search};
///
/// let points = Matrix::from_vec(3, 2, vec![1.0, 0.0, 0.0, 2.0, 3.0, 4.0]);
/// let nearest = Search::new(&points)?.of(0, 1);
/// assert_eq!(nearest[0].node, 2);
/// assert!((nearest[0].cosine - 0.6).abs() < 1e-6);
/// # Ok::<(), blnn::Error>(())
/// ```
#[derive(Debug)]
pub struct Search {
    unit: Matrix,
}

impl Search {
    /// Prepares the rows of `points`. A row of zeros has no direction: its cosine with every
    /// other row counts as 0.
    ///
    /// # Errors
    /// If a value is not finite. The message names the row.
    pub fn new(points: &Matrix) -> Result<Self> {
        let mut unit = points.clone();
        for i in 0..points.rows() {
            let norm = points.row(i).iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>();
            if !norm.is_finite() {
                let message =
                    format!("row {i} holds NaN or infinite values; replace them or drop the node");
                return Err(Error::new(ErrorKind::Shape, message));
            }
            let scale = if norm > 0.0 { norm.sqrt().recip() } else { 0.0 };
            unit.row_mut(i).iter_mut().for_each(|v| *v = (f64::from(*v) * scale) as f32);
        }
        Ok(Self { unit })
    }

    /// The rows, scaled to length one.
    pub fn unit_rows(&self) -> &Matrix {
        &self.unit
    }

    /// The `k` rows nearest to row `node` without itself, nearest first; of several equally near
    /// the lower number comes first. Fewer if there are not so many.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn of(&self, node: usize, k: usize) -> Vec<Neighbour> {
        let own = self.unit.row(node);
        let mut nearest = Nearest::new(node, k);
        for other in 0..self.unit.rows() {
            let products = own.iter().zip(self.unit.row(other));
            let cosine = products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum::<f64>();
            nearest.offer(other, cosine as f32);
        }
        nearest.into_best()
    }

    /// The `k` nearest rows of every row, or all others if there are fewer: row after row, nearest
    /// first. `progress` hears how many of how many pieces of work are done.
    ///
    /// The result is the same, bit for bit, for any number of threads.
    pub fn all(
        &self,
        k: usize,
        threads: &Threads,
        progress: &mut (dyn FnMut(usize, usize) + Send),
    ) -> Vec<Neighbour> {
        let total = self.unit.rows().div_ceil(BLOCK);
        let state = Mutex::new((0, progress));
        let mut found: Vec<Vec<Vec<Neighbour>>> = vec![Vec::new(); total];
        threads.for_each_owned(&mut found, |block, out| {
            *out = block_of_nearest(&self.unit, block * BLOCK, k);
            if let Ok(mut state) = state.lock() {
                state.0 += 1;
                let done = state.0;
                (state.1)(done, total);
            }
        });
        found.into_iter().flatten().flatten().collect()
    }
}

/// The `most` nearest others of the rows `first .. first + BLOCK`. `unit` has rows of length one.
pub(crate) fn block_of_nearest(unit: &Matrix, first: usize, most: usize) -> Vec<Vec<Neighbour>> {
    let queries = first..(first + BLOCK).min(unit.rows());
    let mut nearest: Vec<Nearest> = queries.clone().map(|q| Nearest::new(q, most)).collect();
    let mut products = vec![0.0; BLOCK * CANDIDATES];
    for start in (0..unit.rows()).step_by(CANDIDATES) {
        let count = CANDIDATES.min(unit.rows() - start);
        let products = &mut products[..queries.len() * count];
        let others = rows(unit, start, count).transposed();
        gemm(rows(unit, first, queries.len()), others, products, Store::Overwrite);
        for (nearest, products) in nearest.iter_mut().zip(products.chunks(count)) {
            nearest.search(start, products);
        }
    }
    nearest.into_iter().map(Nearest::into_best).collect()
}

fn rows(x: &Matrix, first: usize, count: usize) -> Operand<'_> {
    let d = x.cols();
    Operand::new(&x.data()[first * d..(first + count) * d], count, d)
}

/// The nearest other rows of one row so far, nearest first.
struct Nearest {
    node: usize,
    most: usize,
    best: Vec<(f32, usize)>,
}

impl Nearest {
    fn new(node: usize, most: usize) -> Self {
        Self { node, most, best: Vec::new() }
    }

    /// A product must exceed this to enter: among equals the earlier row stays.
    fn threshold(&self) -> f32 {
        if self.best.len() < self.most {
            return f32::NEG_INFINITY;
        }
        self.best.last().map_or(f32::INFINITY, |b| b.0)
    }

    /// Takes in the products with the rows from `first` on.
    fn search(&mut self, first: usize, products: &[f32]) {
        for (stride, products) in products.chunks(STRIDE).enumerate() {
            let threshold = self.threshold();
            // The maximum is found without branches, unlike the first that exceeds.
            let largest =
                products.iter().fold(f32::NEG_INFINITY, |m, &p| if p > m { p } else { m });
            if largest > threshold {
                for (offset, &product) in products.iter().enumerate() {
                    self.offer(first + stride * STRIDE + offset, product);
                }
            }
        }
    }

    fn offer(&mut self, node: usize, product: f32) {
        if node != self.node && product > self.threshold() {
            let place = self.best.partition_point(|b| b.0 >= product);
            self.best.insert(place, (product, node));
            self.best.truncate(self.most);
        }
    }

    fn into_best(self) -> Vec<Neighbour> {
        let neighbour = |(cosine, node): (f32, usize)| Neighbour {
            node: node as u32,
            cosine: cosine.clamp(-1.0, 1.0),
        };
        self.best.into_iter().map(neighbour).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(n: usize) -> Matrix {
        Matrix::from_fn(n, 5, |i, j| ((i * 7 + j * 3 + i * i * j) as f32 * 0.73).sin() + 0.01)
    }

    #[test]
    fn all_and_one_agree_on_any_number_of_threads() {
        let search = Search::new(&points(700)).unwrap();
        let one = search.all(6, &Threads::new(1), &mut |_, _| ());
        let mut last = (0, 0);
        let two = search.all(6, &Threads::new(2), &mut |done, total| last = (done, total));
        assert_eq!(one, two);
        assert_eq!(last, (6, 6));
        for i in [0, 127, 128, 699] {
            let (block, single) = (&one[i * 6..(i + 1) * 6], search.of(i, 6));
            for (a, b) in block.iter().zip(&single) {
                assert!((a.cosine - b.cosine).abs() < 1e-6, "{a:?} {b:?}");
            }
            assert!(block.iter().all(|n| n.node as usize != i));
        }
    }

    #[test]
    fn small_and_odd_inputs() {
        let none = Search::new(&Matrix::zeros(0, 4)).unwrap();
        assert!(none.all(3, &Threads::new(1), &mut |_, _| ()).is_empty());
        let one = Search::new(&points(1)).unwrap();
        assert!(one.of(0, 3).is_empty());
        let few = Search::new(&points(3)).unwrap();
        assert_eq!(few.all(10, &Threads::new(1), &mut |_, _| ()).len(), 6);
        let zeros = Search::new(&Matrix::zeros(4, 2)).unwrap();
        let nearest: Vec<u32> = zeros.of(2, 2).iter().map(|n| n.node).collect();
        assert_eq!(nearest, [0, 1]);
        let bad = Matrix::from_vec(2, 1, vec![1.0, f32::NAN]);
        assert!(Search::new(&bad).unwrap_err().to_string().contains("row 1"));
    }
}
