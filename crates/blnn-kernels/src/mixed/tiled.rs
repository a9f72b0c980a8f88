//! [`TiledInputs`]: a full input matrix, packed for a matrix unit once and multiplied at every step.
//!
//! It is what [`MaskedInputs`](crate::masked::MaskedInputs) is for sparse ones. Zeros are multiplied
//! like any value, and masks go to rows of the weights.

use std::ops::Range;

use super::{Arithmetic, Kind, Operand};
use crate::Matrix;
use crate::bf16::{Panels16, RowsMut16, pack_scaled};
use crate::panels::{PANEL, Panels};
use crate::par::{Partition, SHARDS, Threads};
use crate::product::Store;
use crate::tiles::Packed;

/// Panels of the matrix that share one pass over a gradient, or more where there are many.
const PIECE_PANELS: usize = 2;

/// Rows that stay in the level-2 cache while all weights pass by.
const NEAR_ROWS: usize = 128;

/// A full input matrix in bfloat16. See the module's documentation.
#[derive(Clone, Debug)]
pub struct TiledInputs {
    arithmetic: Arithmetic,
    /// Factor of each row, kept out of the rounding.
    row_scale: Vec<f32>,
    /// Left of `X · W`, with room for a multiple of 32 rows.
    rows: Panels16,
    /// Left of `Xᵀ · G`.
    turned: Packed,
}

impl TiledInputs {
    /// The matrix with one row for each factor of `row_scale`, which `write_row(i, row)` writes
    /// without that factor into zeros.
    ///
    /// # Panics
    /// If the arithmetic has no matrix unit.
    #[track_caller]
    pub fn new(
        arithmetic: Arithmetic,
        row_scale: Vec<f32>,
        cols: usize,
        mut write_row: impl FnMut(usize, &mut [f32]),
    ) -> Self {
        assert!(arithmetic.uses_tiles(), "tiles are for a matrix unit");
        let count = row_scale.len();
        let mut rows = Panels16::zeros(count.next_multiple_of(PANEL), cols);
        let mut turned = Packed::default();
        turned.shape(count, cols.div_ceil(PANEL));
        for (group, first) in (0..count).step_by(PANEL).enumerate() {
            let mut block = Matrix::zeros(PANEL.min(count - first), cols);
            (0..block.rows()).for_each(|slot| write_row(first + slot, block.row_mut(slot)));
            let block = Panels::from_matrix(&block);
            rows.copy_from(first, &block.rows_ref(0..block.rows()));
            (0..block.panels()).for_each(|p| turned.turn_group(p, group, block.panel(p)));
        }
        Self { arithmetic, row_scale, rows, turned }
    }

    /// The factor that each row of a gradient must be multiplied by before it is given to
    /// [`TiledInputs::transposed_product`]; [`TiledInputs::product16`] applies it by itself.
    pub fn row_scale(&self) -> &[f32] {
        &self.row_scale
    }

    /// `out[m] = scale[m] ∘ X · w[m]` for two weights that were prepared as such, where `scale` has
    /// one factor a row.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn product16(
        &self,
        w: [&Operand; 2],
        scale: [&[f32]; 2],
        out: [&mut Panels16; 2],
        threads: &Threads,
    ) {
        let rows = self.row_scale.len();
        assert!(scale.iter().all(|s| s.len() == rows), "tiled product: one scale a row");
        let panels = out.each_ref().map(|out| out.cols().div_ceil(PANEL));
        assert_eq!(w.map(|w| w.pairs.panels()), panels, "tiled product: output shape");
        let partition = Partition::of_panels(rows, 1);
        let [mut first, mut second] = out.map(|out| out.shards_mut(&partition).into_iter());
        let mut shards: [_; SHARDS] = std::array::from_fn(|_| [first.next(), second.next()]);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, parts| {
            let range = partition.range(s);
            for start in range.clone().step_by(NEAR_ROWS) {
                let rows = start..(start + NEAR_ROWS).min(range.end);
                for ((part, w), scale) in parts.iter_mut().flatten().zip(w).zip(scale) {
                    self.product_rows(rows.clone(), w, scale, part);
                }
            }
        });
    }

    /// Some rows of one output of [`TiledInputs::product16`].
    fn product_rows(
        &self,
        range: Range<usize>,
        w: &Operand,
        scale: &[f32],
        out: &mut RowsMut16<'_>,
    ) {
        let whole = range.start..range.end.next_multiple_of(PANEL);
        let take = |p: usize, first: usize, sums: &mut [f32]| {
            let rows = first..(first + PANEL).min(range.end);
            let mut factors = [0.0; PANEL];
            for (slot, i) in factors.iter_mut().zip(rows.clone()) {
                *slot = scale[i] * self.row_scale[i];
            }
            let (sums, factors) = (&sums[..rows.len() * PANEL], &factors[..rows.len()]);
            pack_scaled(sums, factors, out.words_mut(p, rows));
        };
        with_tiles!(self.arithmetic, product_blocks(self.rows.view(), whole, &w.pairs, take));
    }

    /// `out = Xᵀ · g` for a gradient that was prepared from words.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn transposed_product(&self, g: &Operand, out: &mut Panels, threads: &Threads) {
        let panels = out.panels();
        assert_eq!((out.rows(), panels), (self.rows.cols(), g.pairs.panels()), "tiled gradient");
        let partition = Partition::of_panels(out.rows(), PIECE_PANELS);
        let mut shards = out.shards_mut(&partition);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, out| {
            let (turned, panel) = (&self.turned, partition.range(s).start / PANEL);
            let store = Store::Overwrite;
            with_tiles!(self.arithmetic, transposed_product(turned, panel, &g.pairs, out, store));
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::naive;
    use super::*;

    const EMULATED: Arithmetic = Arithmetic(Kind::Emulated);

    fn wave(rows: usize, cols: usize, step: f32) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 3) as f32 * step).sin())
    }

    fn tiled(arithmetic: Arithmetic, x: &Matrix, row_scale: Vec<f32>) -> TiledInputs {
        TiledInputs::new(arithmetic, row_scale, x.cols(), |i, row| row.copy_from_slice(x.row(i)))
    }

    fn factors(count: usize, first: f32) -> Vec<f32> {
        (0..count).map(|i| first + 0.01 * i as f32).collect()
    }

    fn kept(rows: usize) -> Vec<bool> {
        (0..rows).map(|i| i % 3 != 1).collect()
    }

    /// Less than a tile of everything, remainders, several shards, and more rows than stay near.
    const SHAPES: [(usize, usize, usize); 5] =
        [(1, 1, 1), (33, 40, 31), (130, 65, 33), (64, 96, 64), (1100, 200, 40)];

    fn products(
        arithmetic: Arithmetic,
        shape: (usize, usize, usize),
        threads: usize,
    ) -> Vec<Matrix> {
        let (n, f, h) = shape;
        let threads = Threads::new(threads);
        let x = tiled(arithmetic, &wave(n, f, 0.13), factors(n, 0.5));
        let weights = [0.3, 0.7].map(|step| {
            let mut operand = Operand::new(arithmetic);
            // A larger one first: what it leaves in the buffers must not matter.
            for rows in [f + 40, f] {
                let w = Panels::from_matrix(&wave(rows, h, step));
                operand.prepare_kept(&w, &kept(rows), &threads);
            }
            operand
        });
        let scale = [1.0, 2.0].map(|first| factors(n, first));
        let mut out = [(); 2].map(|()| Panels16::zeros(n, h));
        let [first, second] = &mut out;
        let scale = [&scale[0][..], &scale[1][..]];
        x.product16(weights.each_ref(), scale, [first, second], &threads);
        out.map(|out| Matrix::from_fn(n, h, |i, j| out.view().get(i, j))).into()
    }

    fn gradient(arithmetic: Arithmetic, shape: (usize, usize, usize), threads: usize) -> Panels {
        let (n, f, h) = shape;
        let threads = Threads::new(threads);
        let x = tiled(arithmetic, &wave(n, f, 0.13), factors(n, 0.5));
        let mut operand = Operand::new(arithmetic);
        // A larger one first: what it leaves in the buffers must not matter.
        for rows in [n + 40, n] {
            let g = Panels16::from_panels(&Panels::from_matrix(&wave(rows, h, 0.9)));
            operand.prepare_words(g.view(), &threads);
        }
        let mut out = Panels::from_matrix(&Matrix::from_fn(f, h, |_, _| f32::NAN));
        x.transposed_product(&operand, &mut out, &threads);
        out
    }

    #[test]
    fn products_are_those_of_rounded_operands_scaled_and_rounded() {
        for (n, f, h) in SHAPES {
            let (x, row_scale) = (wave(n, f, 0.13), factors(n, 0.5));
            let found = products(EMULATED, (n, f, h), 2);
            for (found, (step, first)) in found.iter().zip([(0.3, 1.0), (0.7, 2.0)]) {
                let (w, scale, keep) = (wave(f, h, step), factors(n, first), kept(f));
                let w = Matrix::from_fn(f, h, |k, j| if keep[k] { w.get(k, j) } else { 0.0 });
                for i in 0..n {
                    for j in 0..h {
                        let sum = naive(f, |k| x.get(i, k), |k| w.get(k, j));
                        let want = scale[i] * row_scale[i] * sum;
                        let error = (found.get(i, j) - want).abs();
                        assert!(error <= want.abs() / 256.0 + 1e-4, "{n}×{f}×{h} ({i}, {j})");
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_are_those_of_rounded_operands() {
        for (n, f, h) in SHAPES {
            let (x, g) = (wave(n, f, 0.13), wave(n, h, 0.9));
            let found = gradient(EMULATED, (n, f, h), 2);
            for i in 0..f {
                for j in 0..h {
                    let want = naive(n, |k| x.get(k, i), |k| g.get(k, j));
                    let error = (found.get(i, j) - want).abs();
                    assert!(error <= 1e-6 * n as f32 + 1e-5, "{n}×{f}×{h} ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let shape = SHAPES[4];
        assert_eq!(products(EMULATED, shape, 1), products(EMULATED, shape, 3));
        assert_eq!(gradient(EMULATED, shape, 1), gradient(EMULATED, shape, 3));
    }
}
