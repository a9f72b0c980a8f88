//! [`TallMatrix`]: a tall matrix packed once for many narrow products with it and its transpose.
//!
//! Linear models and k-means multiply the same `n × d` matrix by a handful of vectors hundreds of
//! times. A general product would pack the tall side again on every call and pad the narrow one;
//! here the packing happens once. A block holds [`BLOCK`] rows column by column:
//!
//! ```text
//!   block p:   column 0 of rows 128p .. 128p+128, column 1 of the same rows, …
//! ```
//!
//! so both directions of the product read it in order and vectorise over rows, with no padding of
//! columns or of vectors. Missing rows of the last block are zero and contribute nothing.
//! Everything runs on the calling thread, in an order fixed by the shape.

use crate::Matrix;

mod lanes;
mod sweep;

pub use sweep::{logistic_into, nearest_into};

/// Rows of one block. A block of 256 columns is 128 KiB: it stays in the second-level cache
/// while both directions of a product pass over it.
pub const BLOCK: usize = 128;

/// Partial sums kept for one element of a transposed product, see [`TallMatrix::add_transposed`].
pub const LANES: usize = 16;

/// Rows are handled in groups of this many, so the last block wastes fewer than a group.
const GROUP: usize = 64;

/// A tall matrix in blocks of [`BLOCK`] rows.
#[derive(Clone, Debug)]
pub struct TallMatrix {
    rows: usize,
    cols: usize,
    data: Vec<f32>,
}

impl TallMatrix {
    /// Packs all rows of `x`.
    pub fn new(x: &Matrix) -> Self {
        Self::pack(x, x.rows(), |i| i)
    }

    /// Packs the rows of `x` that `rows` lists, in that order.
    ///
    /// # Panics
    /// If a listed row does not exist.
    #[track_caller]
    pub fn gather(x: &Matrix, rows: &[u32]) -> Self {
        Self::pack(x, rows.len(), |i| rows[i] as usize)
    }

    fn pack(x: &Matrix, rows: usize, source: impl Fn(usize) -> usize) -> Self {
        let cols = x.cols();
        let mut data = vec![0.0; rows.div_ceil(BLOCK) * cols * BLOCK];
        for i in 0..rows {
            let start = i / BLOCK * cols * BLOCK + i % BLOCK;
            for (j, &value) in x.row(source(i)).iter().enumerate() {
                data[start + j * BLOCK] = value;
            }
        }
        Self { rows, cols, data }
    }

    /// Number of rows packed.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// Number of blocks.
    pub fn count(&self) -> usize {
        self.rows.div_ceil(BLOCK)
    }

    /// How many rows of `block` are in the matrix.
    pub fn rows_in(&self, block: usize) -> usize {
        (self.rows - block * BLOCK).min(BLOCK)
    }

    fn columns(&self, block: usize) -> &[f32] {
        &self.data[block * self.cols * BLOCK..(block + 1) * self.cols * BLOCK]
    }

    /// Rows of `block` that the kernels visit: those in the matrix, rounded up to a group.
    fn visited(&self, block: usize) -> usize {
        self.rows_in(block).next_multiple_of(GROUP)
    }

    /// `out[v * BLOCK + i] = Σ_j vectors[which[v] * cols + j] · x[i, j]` over the rows `i` of
    /// `block`: its product with the vectors that `which` lists.
    ///
    /// # Panics
    /// If `vectors` lacks a listed vector or `out` is shorter than `which.len() * BLOCK`.
    #[track_caller]
    pub fn times(&self, block: usize, vectors: &[f32], which: &[u32], out: &mut [f32]) {
        self.check(vectors, which);
        assert!(out.len() >= which.len() * BLOCK, "block product: output");
        sweep::times(self.columns(block), self.visited(block), vectors, which, out);
    }

    /// `sums[v][j] += Σ_i values[v * BLOCK + i] · x[i, j]` over the rows `i` of `block`, where an
    /// element `sums[v][j]` is kept as [`LANES`] partial sums at `(v * cols + j) * LANES`.
    /// [`fold_lanes`] adds them up after the last block.
    ///
    /// # Panics
    /// If `values` or `sums` is too short for `vectors` vectors.
    #[track_caller]
    pub fn add_transposed(&self, block: usize, values: &[f32], vectors: usize, sums: &mut [f32]) {
        assert!(values.len() >= vectors * BLOCK, "block product: values");
        assert!(sums.len() >= vectors * self.cols * LANES, "block product: sums");
        sweep::add_transposed::<false>(
            self.columns(block),
            self.visited(block),
            values,
            vectors,
            sums,
        );
    }

    /// As [`TallMatrix::add_transposed`] with `x[i, j]²` in place of `x[i, j]`.
    ///
    /// # Panics
    /// If `values` or `sums` is too short for `vectors` vectors.
    #[track_caller]
    pub fn add_transposed_squares(
        &self,
        block: usize,
        values: &[f32],
        vectors: usize,
        sums: &mut [f32],
    ) {
        assert!(values.len() >= vectors * BLOCK, "block product: values");
        assert!(sums.len() >= vectors * self.cols * LANES, "block product: sums");
        sweep::add_transposed::<true>(
            self.columns(block),
            self.visited(block),
            values,
            vectors,
            sums,
        );
    }

    #[track_caller]
    fn check(&self, vectors: &[f32], which: &[u32]) {
        let held = vectors.len() / self.cols.max(1);
        assert!(
            which.iter().all(|&v| (v as usize) < held),
            "block product: a listed vector is not among the {held} given"
        );
    }
}

/// `out[e] = Σ_l sums[e * LANES + l]`: ends a transposed product.
///
/// # Panics
/// If `sums` does not hold [`LANES`] values for each of `out`.
#[track_caller]
pub fn fold_lanes(sums: &[f32], out: &mut [f32]) {
    assert!(sums.len() >= out.len() * LANES, "fold: partial sums");
    for (lanes, out) in sums.chunks_exact(LANES).zip(out) {
        let mut half = [0.0; LANES / 2];
        for (h, (a, b)) in half.iter_mut().zip(lanes.iter().zip(&lanes[LANES / 2..])) {
            *h = a + b;
        }
        *out =
            (half[0] + half[4] + (half[1] + half[5])) + (half[2] + half[6] + (half[3] + half[7]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(rows: usize, cols: usize) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 31 + j * 17) as f32 * 0.37).sin())
    }

    fn vectors(count: usize, cols: usize) -> Vec<f32> {
        (0..count * cols).map(|i| (i as f32 * 0.61).cos()).collect()
    }

    /// Every number of vectors that ends in a tile of its own size.
    const SHAPES: [(usize, usize, usize); 11] = [
        (1, 1, 1),
        (63, 5, 2),
        (65, 6, 3),
        (128, 17, 4),
        (300, 33, 5),
        (129, 7, 6),
        (64, 130, 7),
        (200, 9, 8),
        (100, 12, 9),
        (40, 3, 17),
        (129, 130, 30),
    ];

    #[test]
    fn product_agrees_with_the_definition_for_any_choice_of_vectors() {
        for (n, d, k) in SHAPES {
            let (x, w) = (sample(n, d), vectors(k + 2, d));
            let blocks = TallMatrix::new(&x);
            let which: Vec<u32> = (0..k as u32).rev().map(|v| v + 1).collect();
            let mut out = vec![0.0; k * BLOCK];
            for p in 0..blocks.count() {
                blocks.times(p, &w, &which, &mut out);
                for (slot, &v) in which.iter().enumerate() {
                    for i in 0..blocks.rows_in(p) {
                        let row = x.row(p * BLOCK + i);
                        let want: f32 = (0..d).map(|j| row[j] * w[v as usize * d + j]).sum();
                        let got = out[slot * BLOCK + i];
                        assert!((got - want).abs() < 1e-4, "{n}×{d}×{k}: {got} for {want}");
                    }
                }
            }
        }
    }

    #[test]
    fn transposed_product_agrees_with_the_definition() {
        for (n, d, k) in SHAPES {
            let (x, blocks) = (sample(n, d), TallMatrix::new(&sample(n, d)));
            let value = |v: usize, i: usize| ((v * 7 + i * 3) as f32 * 0.29).sin();
            let (mut sums, mut squares) = (vec![0.0; k * d * LANES], vec![0.0; k * d * LANES]);
            for p in 0..blocks.count() {
                let at = |s: usize| value(s / BLOCK, p * BLOCK + s % BLOCK);
                let values: Vec<f32> = (0..k * BLOCK).map(at).collect();
                blocks.add_transposed(p, &values, k, &mut sums);
                blocks.add_transposed_squares(p, &values, k, &mut squares);
            }
            let (mut got, mut got2) = (vec![0.0; k * d], vec![0.0; k * d]);
            fold_lanes(&sums, &mut got);
            fold_lanes(&squares, &mut got2);
            for e in 0..k * d {
                let (v, j) = (e / d, e % d);
                let want: f32 = (0..n).map(|i| value(v, i) * x.get(i, j)).sum();
                let want2: f32 = (0..n).map(|i| value(v, i) * x.get(i, j).powi(2)).sum();
                assert!((got[e] - want).abs() < 1e-3, "{n}×{d}×{k}: {} for {want}", got[e]);
                assert!((got2[e] - want2).abs() < 1e-3, "squares {}: {want2}", got2[e]);
            }
        }
    }

    #[test]
    fn gather_packs_listed_rows() {
        let x = sample(10, 3);
        let blocks = TallMatrix::gather(&x, &[7, 2]);
        let mut out = vec![0.0; BLOCK];
        blocks.times(0, &[0.0, 1.0, 0.0], &[0], &mut out);
        assert_eq!((blocks.rows(), out[0], out[1]), (2, x.get(7, 1), x.get(2, 1)));
    }

    #[test]
    #[should_panic(expected = "listed vector")]
    fn missing_vectors_are_refused() {
        TallMatrix::new(&sample(4, 3)).times(0, &[0.0; 6], &[2], &mut [0.0; BLOCK]);
    }
}
