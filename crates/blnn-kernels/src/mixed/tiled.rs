//! [`TiledInputs`]: a full input matrix, packed as tiles once and multiplied at every step.
//!
//! It is what [`MaskedInputs`] is for sparse ones, and like it sums what both masks keep once: the
//! whole matrix is multiplied by weights whose other rows are zero, and the few columns that one mask
//! alone keeps are taken out into a narrow matrix of their own.
//!
//! [`MaskedInputs`]: crate::masked::MaskedInputs

use std::ops::Range;

use super::{Arithmetic, Kind, Operand};
use crate::Matrix;
use crate::bf16::{Panels16, RowsMut16, pack_scaled};
use crate::masked::KeptBy;
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
    /// Whether both masks keep a column.
    kept_by_both: Vec<bool>,
    /// The columns that the first mask alone keeps, and the second.
    only: [Columns; 2],
}

/// Some columns of the matrix.
#[derive(Clone, Debug, Default)]
struct Columns {
    /// Their numbers, rising.
    list: Vec<u32>,
    /// As in [`TiledInputs`].
    rows: Panels16,
    turned: Packed,
}

impl Columns {
    /// Takes the listed columns out of a matrix of so many rows.
    fn take(&mut self, from: &Packed, rows: usize, threads: &Threads) {
        let [height, width] = [rows, self.list.len()].map(|n| n.next_multiple_of(PANEL));
        self.rows.reshape(height, width);
        self.turned.turn_listed(from, (&self.list, rows), &mut self.rows, threads);
    }
}

/// Weights as [`TiledInputs`] multiplies by them. The buffers are used again.
#[derive(Clone, Debug, Default)]
pub struct TiledWeights {
    /// With zeros in place of the rows that not both masks keep.
    both: Packed,
    /// The rows that the first mask alone keeps, and the second.
    only: [Packed; 2],
}

impl TiledInputs {
    /// The matrix with one row for each factor of `row_scale`, which `write_row(i, row)` writes
    /// without that factor into zeros. All columns start out kept by both masks.
    ///
    /// # Panics
    /// If the arithmetic has no tiles.
    #[track_caller]
    pub fn new(
        arithmetic: Arithmetic,
        row_scale: Vec<f32>,
        cols: usize,
        mut write_row: impl FnMut(usize, &mut [f32]),
    ) -> Self {
        assert!(arithmetic.uses_tiles(), "an arithmetic on tiles");
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
        let (kept_by_both, only) = (vec![true; cols], Default::default());
        Self { arithmetic, row_scale, rows, turned, kept_by_both, only }
    }

    /// The factor that each row of a gradient must be multiplied by before it is given to
    /// [`TiledInputs::gradient_of_both`]; [`TiledInputs::product16`] applies it by itself.
    pub fn row_scale(&self) -> &[f32] {
        &self.row_scale
    }

    /// Sets both masks: for each column, which of them keep it.
    ///
    /// # Panics
    /// If there is not one class a column.
    #[track_caller]
    pub fn set_masks(&mut self, classes: impl Iterator<Item = KeptBy>, threads: &Threads) {
        self.kept_by_both.clear();
        self.only.iter_mut().for_each(|only| only.list.clear());
        for (column, class) in classes.enumerate() {
            self.kept_by_both.push(class == KeptBy::Both);
            match class {
                KeptBy::First => self.only[0].list.push(column as u32),
                KeptBy::Second => self.only[1].list.push(column as u32),
                KeptBy::Both | KeptBy::Neither => {}
            }
        }
        assert_eq!(self.kept_by_both.len(), self.rows.cols(), "one class a column");
        let (turned, rows) = (&self.turned, self.row_scale.len());
        self.only.iter_mut().for_each(|only| only.take(turned, rows, threads));
    }

    /// Prepares the weights of products under these masks.
    ///
    /// # Panics
    /// If there is not one row a column.
    #[track_caller]
    pub fn prepare_weights(&self, w: &Panels, out: &mut TiledWeights, threads: &Threads) {
        assert_eq!(w.rows(), self.rows.cols(), "tiled product: rows of the weights");
        out.both.pair_kept(w, &self.kept_by_both, threads);
        for (out, only) in out.only.iter_mut().zip(&self.only) {
            out.pair_listed(w, &only.list, threads);
        }
    }

    /// `out[m] = scale[m] ∘ (X ∘ mask_m) · w` for both masks `m` and weights that were prepared under
    /// them, where `scale` has one factor a row.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn product16(
        &self,
        w: &TiledWeights,
        scale: [&[f32]; 2],
        out: [&mut Panels16; 2],
        threads: &Threads,
    ) {
        let rows = self.row_scale.len();
        assert!(scale.iter().all(|s| s.len() == rows), "tiled product: one scale a row");
        let panels = out.each_ref().map(|out| out.cols().div_ceil(PANEL));
        assert_eq!([w.both.panels(); 2], panels, "tiled product: output shape");
        let partition = Partition::of_panels(rows, 1);
        let [mut first, mut second] = out.map(|out| out.shards_mut(&partition).into_iter());
        let mut shards: [_; SHARDS] = std::array::from_fn(|_| [first.next(), second.next()]);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, parts| {
            let [Some(first), Some(second)] = parts else { return };
            let range = partition.range(s);
            for start in range.clone().step_by(NEAR_ROWS) {
                let rows = start..(start + NEAR_ROWS).min(range.end);
                self.product_rows(rows, w, scale, [&mut *first, &mut *second]);
            }
        });
    }

    /// Some rows of [`TiledInputs::product16`].
    fn product_rows(
        &self,
        range: Range<usize>,
        w: &TiledWeights,
        scale: [&[f32]; 2],
        mut out: [&mut RowsMut16<'_>; 2],
    ) {
        let whole = range.start..range.end.next_multiple_of(PANEL);
        let take = |mask: usize, p: usize, first: usize, sums: &mut [f32]| {
            let rows = first..(first + PANEL).min(range.end);
            let mut factors = [0.0; PANEL];
            for (slot, i) in factors.iter_mut().zip(rows.clone()) {
                *slot = scale[mask][i] * self.row_scale[i];
            }
            let (sums, factors) = (&sums[..rows.len() * PANEL], &factors[..rows.len()]);
            pack_scaled(sums, factors, out[mask].words_mut(p, rows));
        };
        let only = [0, 1].map(|m| (self.only[m].rows.view(), &w.only[m]));
        let both = (self.rows.view(), &w.both);
        with_tiles!(self.arithmetic, product_branches(both, only, whole, take));
    }

    /// `out = Xᵀ · g` for the weights of the columns that both masks keep, zero for the others: what
    /// they have in common of `Σ_m (X ∘ mask_m)ᵀ · g_m`, where `g` is `Σ_m g_m`, prepared from words.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn gradient_of_both(&self, g: &Operand, out: &mut Panels, threads: &Threads) {
        assert_eq!(out.rows(), self.rows.cols(), "tiled gradient: output rows");
        self.transposed_product(&self.turned, g, out, threads);
        threads.for_each_cell(&Partition::even(out.rows()), [out], |cell, [out]| {
            let rows = out.chunks_exact_mut(PANEL).zip(&self.kept_by_both[cell.rows]);
            rows.filter(|(_, kept)| !**kept).for_each(|(row, _)| row.fill(0.0));
        });
    }

    /// Writes `Xᵀ · g` for the weights of the columns that mask `m` alone keeps, from the gradient of
    /// that mask, prepared from words. `share` has room for as many rows as `out`, rounded up to
    /// whole panels.
    ///
    /// # Panics
    /// If the shapes disagree.
    #[track_caller]
    pub fn gradient_of_one(
        &self,
        m: usize,
        g: &Operand,
        share: &mut Panels,
        out: &mut Panels,
        threads: &Threads,
    ) {
        let Columns { list, turned, .. } = &self.only[m];
        assert!(share.rows() >= list.len().next_multiple_of(PANEL), "tiled gradient: room");
        self.transposed_product(turned, g, share, threads);
        threads.for_each_cell(&Partition::even(out.rows()), [out], |cell, [out]| {
            let first = list.partition_point(|&column| (column as usize) < cell.rows.start);
            let listed = list[first..].iter().map(|&column| column as usize);
            for (slot, column) in listed.take_while(|&c| c < cell.rows.end).enumerate() {
                let to = &mut out[(column - cell.rows.start) * PANEL..][..PANEL];
                to.copy_from_slice(share.row_of(cell.panel, first + slot));
            }
        });
    }

    /// The rows of `out` that belong to columns of `turned`: `turnedᵀ · g`.
    fn transposed_product(
        &self,
        turned: &Packed,
        g: &Operand,
        out: &mut Panels,
        threads: &Threads,
    ) {
        assert_eq!(out.panels(), g.pairs.panels(), "tiled gradient: output columns");
        let partition = Partition::of_panels(out.rows(), PIECE_PANELS);
        let mut shards = out.shards_mut(&partition);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, out| {
            let panel = partition.range(s).start / PANEL;
            let rows = (turned.panels().saturating_sub(panel) * PANEL).min(out.rows());
            if rows > 0 {
                let out = &mut out.part(0..rows);
                let (right, store) = (&g.pairs, Store::Overwrite);
                with_tiles!(self.arithmetic, transposed_product(turned, panel, right, out, store));
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::naive;
    use super::*;

    const EMULATED: Arithmetic = Arithmetic(Kind::Emulated);
    const PLAIN_DOTS: Arithmetic = Arithmetic(Kind::PlainDots);

    fn wave(rows: usize, cols: usize, step: f32) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 7 + j * 3) as f32 * step).sin())
    }

    fn tiled(arithmetic: Arithmetic, x: &Matrix, row_scale: Vec<f32>) -> TiledInputs {
        TiledInputs::new(arithmetic, row_scale, x.cols(), |i, row| row.copy_from_slice(x.row(i)))
    }

    fn factors(count: usize, first: f32) -> Vec<f32> {
        (0..count).map(|i| first + 0.01 * i as f32).collect()
    }

    fn class(j: usize) -> KeptBy {
        KeptBy::new(!j.is_multiple_of(3), j % 4 != 1)
    }

    fn is_kept(class: KeptBy, mask: usize) -> bool {
        class == KeptBy::Both || class == [KeptBy::First, KeptBy::Second][mask]
    }

    /// The attributes under masks, after others that keep more: what those leave must not matter.
    fn masked(arithmetic: Arithmetic, (n, f): (usize, usize), threads: &Threads) -> TiledInputs {
        let mut x = tiled(arithmetic, &wave(n, f, 0.13), factors(n, 0.5));
        x.set_masks((0..f).map(|j| KeptBy::new(true, j % 2 == 0)), threads);
        x.set_masks((0..f).map(class), threads);
        x
    }

    /// Less than a tile of everything, remainders, several shards, and more rows than stay near.
    const SHAPES: [(usize, usize, usize); 5] =
        [(1, 1, 1), (33, 40, 31), (130, 65, 33), (64, 96, 64), (1100, 200, 40)];

    fn each_shape() -> impl Iterator<Item = (Arithmetic, (usize, usize, usize))> {
        SHAPES.into_iter().flat_map(|shape| [(EMULATED, shape), (PLAIN_DOTS, shape)])
    }

    fn products(
        arithmetic: Arithmetic,
        (n, f, h): (usize, usize, usize),
        threads: usize,
    ) -> Vec<Matrix> {
        let threads = Threads::new(threads);
        let x = masked(arithmetic, (n, f), &threads);
        let mut weights = TiledWeights::default();
        // Others first: what they leave in the buffers must not matter.
        for step in [0.7, 0.3] {
            x.prepare_weights(&Panels::from_matrix(&wave(f, h, step)), &mut weights, &threads);
        }
        let scale = [1.0, 2.0].map(|first| factors(n, first));
        let mut out = [(); 2].map(|()| Panels16::zeros(n, h));
        let [first, second] = &mut out;
        x.product16(&weights, [&scale[0], &scale[1]], [first, second], &threads);
        out.map(|out| Matrix::from_fn(n, h, |i, j| out.view().get(i, j))).into()
    }

    fn words(m: &Matrix) -> Panels16 {
        Panels16::from_panels(&Panels::from_matrix(m))
    }

    const GRADIENTS: [f32; 3] = [0.9, 0.4, 0.2];

    /// From the sum of both masks' gradients and from each: three waves.
    fn gradient(
        arithmetic: Arithmetic,
        (n, f, h): (usize, usize, usize),
        threads: usize,
    ) -> Panels {
        let threads = Threads::new(threads);
        let x = masked(arithmetic, (n, f), &threads);
        let mut operand = Operand::new(arithmetic);
        // A larger one first: what it leaves in the buffers must not matter.
        operand.prepare_words(words(&wave(n + 40, h, 0.9)).view(), &threads);
        let filled = |rows| Panels::from_matrix(&Matrix::from_fn(rows, h, |_, _| f32::NAN));
        let (mut out, mut share) = (filled(f), filled(f.next_multiple_of(PANEL)));
        let [both, only @ ..] = GRADIENTS.map(|step| words(&wave(n, h, step)));
        operand.prepare_words(both.view(), &threads);
        x.gradient_of_both(&operand, &mut out, &threads);
        for (m, g) in only.iter().enumerate() {
            operand.prepare_words(g.view(), &threads);
            x.gradient_of_one(m, &operand, &mut share, &mut out, &threads);
        }
        out
    }

    #[test]
    fn products_are_those_of_rounded_operands_masked_scaled_and_rounded() {
        for (arithmetic, (n, f, h)) in each_shape() {
            let (x, row_scale, w) = (wave(n, f, 0.13), factors(n, 0.5), wave(f, h, 0.3));
            for (mask, found) in products(arithmetic, (n, f, h), 2).iter().enumerate() {
                let scale = factors(n, 1.0 + mask as f32);
                let kept = |k, j| if is_kept(class(k), mask) { w.get(k, j) } else { 0.0 };
                for i in 0..n {
                    for j in 0..h {
                        let sum = naive(f, |k| x.get(i, k), |k| kept(k, j));
                        let want = scale[i] * row_scale[i] * sum;
                        let error = (found.get(i, j) - want).abs();
                        assert!(error <= want.abs() / 256.0 + 1e-4, "{n}×{f}×{h} ({i}, {j})");
                    }
                }
            }
        }
    }

    #[test]
    fn gradients_are_those_of_rounded_operands_by_class() {
        for (arithmetic, (n, f, h)) in each_shape() {
            let (x, gradients) = (wave(n, f, 0.13), GRADIENTS.map(|step| wave(n, h, step)));
            let found = gradient(arithmetic, (n, f, h), 2);
            for i in 0..f {
                let source = gradients.get(class(i) as usize);
                for j in 0..h {
                    let want = source.map_or(0.0, |g| naive(n, |k| x.get(k, i), |k| g.get(k, j)));
                    let error = (found.get(i, j) - want).abs();
                    assert!(error <= 1e-6 * n as f32 + 1e-5, "{n}×{f}×{h} ({i}, {j})");
                }
            }
        }
    }

    #[test]
    fn columns_that_are_all_kept_need_no_masks() {
        let (n, f, h) = SHAPES[1];
        let threads = Threads::new(1);
        let plain = tiled(EMULATED, &wave(n, f, 0.13), factors(n, 0.5));
        let mut set = plain.clone();
        set.set_masks((0..f).map(|_| KeptBy::Both), &threads);
        let [plain, set] = [plain, set].map(|x| {
            let (mut weights, mut out) =
                (TiledWeights::default(), [(); 2].map(|()| Panels16::zeros(n, h)));
            x.prepare_weights(&Panels::from_matrix(&wave(f, h, 0.3)), &mut weights, &threads);
            let (ones, [first, second]) = (vec![1.0; n], &mut out);
            x.product16(&weights, [&ones, &ones], [first, second], &threads);
            out.map(|out| Matrix::from_fn(n, h, |i, j| out.view().get(i, j)))
        });
        assert_eq!(plain, set);
        assert_eq!(plain[0], plain[1]);
    }

    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn tile_instructions_have_the_bits_of_their_twin() {
        if !crate::tiles::amx::available() {
            crate::tiles::trap::install();
        }
        assert_same_bits(Arithmetic(Kind::Amx), EMULATED);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    #[ignore = "needs AVX-512 BF16"]
    fn needs_avx512bf16_attributes_have_the_bits_of_their_twin() {
        assert!(std::arch::is_x86_feature_detected!("avx512bf16"), "this CPU has no AVX-512 BF16");
        assert_same_bits(Arithmetic(Kind::Dots), PLAIN_DOTS);
    }

    #[cfg(target_arch = "x86_64")]
    fn assert_same_bits(instructions: Arithmetic, twin: Arithmetic) {
        for shape in SHAPES {
            assert_eq!(products(instructions, shape, 2), products(twin, shape, 2));
            assert_eq!(gradient(instructions, shape, 2), gradient(twin, shape, 2));
        }
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let shape = SHAPES[4];
        assert_eq!(products(EMULATED, shape, 1), products(EMULATED, shape, 3));
        assert_eq!(gradient(EMULATED, shape, 1), gradient(EMULATED, shape, 3));
    }
}
