//! [`Rows16`]: whole rows of bfloat16 next to each other, and the attention that reads them.
//!
//! A pass that reads all columns of scattered rows waits for memory. Half the bytes, in lines that
//! follow each other and are asked for ahead of time, shorten that more than widening costs.

use std::ops::Range;

use crate::SHARDS;
use crate::bf16::{Panels16, WORDS};
use crate::csr::Pattern;
use crate::panels::{PANEL, Panels, RowsMut, RowsRef};
use crate::par::{Partition, Threads};
use crate::rows::soften;
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::Wide;

/// A matrix of bfloat16 row by row: those of a panel's row as in [`Panels16`], panel after panel.
///
/// It lives in the allocation of a [`Panels`] of half as many rows.
#[derive(Debug, Default)]
pub struct Rows16 {
    rows: usize,
    words: Panels,
}

impl Rows16 {
    /// The shape of the [`Panels`] that holds such a matrix.
    pub fn buffer_shape(rows: usize, cols: usize) -> (usize, usize) {
        Panels16::buffer_shape(rows, cols)
    }

    /// Rounds a matrix into a buffer of the shape [`Rows16::buffer_shape`].
    ///
    /// # Panics
    /// If the buffer has another shape.
    #[track_caller]
    pub fn round(x: &Panels, buffer: Panels, threads: &Threads) -> Self {
        assert_eq!(
            buffer.shape(),
            Self::buffer_shape(x.rows(), x.cols()),
            "rounding into a buffer"
        );
        let mut out = Self { rows: x.rows(), words: buffer };
        let partition = Partition::even(x.rows());
        let mut shards = out.shards_mut(&partition);
        threads.for_each_owned(&mut shards[..partition.shards()], |s, words| {
            pack_whole_rows(&x.rows_ref(partition.range(s)), words);
        });
        out
    }

    /// The buffer with the contents.
    pub fn into_buffer(self) -> Panels {
        self.words
    }

    /// Words of a row.
    fn width(&self) -> usize {
        self.words.panels() * WORDS
    }

    fn shards_mut(&mut self, partition: &Partition) -> [&mut [f32]; SHARDS] {
        let (rows, width) = (self.rows, self.width());
        partition.split_wide(&mut self.words.data_mut()[..rows * width], width)
    }

    /// Where the rows begin: row `i` is `width()` words from `i * width()` on.
    fn start(&self) -> *const f32 {
        self.words.data().as_ptr()
    }
}

dispatch_rounding! {
    fn pack_whole_rows(rows: &RowsRef<'_>, words: &mut [f32]) = pack_whole_rows_kernel
}

#[inline(always)]
unsafe fn pack_whole_rows_kernel<S: Simd>(rows: &RowsRef<'_>, words: &mut [f32]) {
    let panels = rows.panels();
    assert_eq!(words.len(), rows.rows() * panels * WORDS, "pack: lengths");
    for p in 0..panels {
        let to = words.chunks_exact_mut(WORDS).skip(p).step_by(panels);
        for (row, to) in rows.panel(p).chunks_exact(PANEL).zip(to) {
            // SAFETY: a row holds PANEL floats or WORDS words.
            unsafe { Wide::<S>::load(row.as_ptr()).store16(to.as_mut_ptr()) };
        }
    }
}

/// How many entries before it is read a row is asked for.
const AHEAD: usize = 8;

/// [`crate::rows::softmax_weights`] with rows of bfloat16.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn softmax_weights(
    pattern: &Pattern,
    i: usize,
    anchor: &Panels,
    x: &Rows16,
    factor: f32,
    weights: &mut [f32],
) {
    assert_eq!(weights.len(), pattern.row(i).len(), "softmax: one weight an entry");
    let shapes = ((pattern.cols(), anchor.panels()), (x.rows, x.words.panels()));
    assert_eq!(shapes.0, shapes.1, "softmax: shapes");
    assert!(i < anchor.rows(), "softmax: row {i}");
    if !weights.is_empty() {
        listed_dots(pattern.indices(), pattern.range(i), (anchor, i), x, weights);
        soften(weights, factor);
    }
}

dispatch! {
    /// `out[k] = anchor · x[indices[list[k]]]`, the anchor being a row of a matrix. The listed rows
    /// must exist.
    fn listed_dots(
        indices: &[u32], list: Range<usize>, anchor: (&Panels, usize), x: &Rows16, out: &mut [f32],
    ) = listed_dots_kernel
}

#[inline(always)]
unsafe fn listed_dots_kernel<S: Simd>(
    indices: &[u32],
    list: Range<usize>,
    (anchor, i): (&Panels, usize),
    x: &Rows16,
    out: &mut [f32],
) {
    let (width, stride) = (x.width(), anchor.rows() * PANEL);
    let last = indices.len() - 1;
    // SAFETY: patterns list only columns below their width, which the caller checked to be the
    // number of rows of `x`, as it checked that row `i` exists and has as many panels; asking for a
    // row reads nothing.
    unsafe {
        let anchor = anchor.data().as_ptr().wrapping_add(i * PANEL);
        for (k, out) in list.zip(out) {
            let row = x.start().add(indices[k] as usize * width);
            let later = x.start().wrapping_add(indices[(k + AHEAD).min(last)] as usize * width);
            let mut sum = Wide::<S>::zero();
            for p in 0..width / WORDS {
                S::prefetch_near(later.wrapping_add(p * WORDS));
                let a = Wide::load(anchor.add(p * stride));
                sum = sum.add_product(a, Wide::load16(row.add(p * WORDS)));
            }
            *out = sum.sum();
        }
    }
}

/// `out = own_i + Σ_k weights[k] · x[list[k]]` for row `i` of `pattern`, `out` being row `slot` of
/// the given rows.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn weighted_sum(
    pattern: &Pattern,
    i: usize,
    weights: &[f32],
    (own, x): (&Panels, &Rows16),
    out: &mut RowsMut<'_>,
    slot: usize,
) {
    assert_eq!(weights.len(), pattern.row(i).len(), "weighted sum: one weight an entry");
    assert_eq!((pattern.cols(), x.words.panels()), (x.rows, out.panels()), "weighted sum: shapes");
    assert_eq!(own.panels(), out.panels(), "weighted sum: shapes");
    assert!(i < own.rows(), "weighted sum: row {i}");
    add_weighted(pattern.row(i), weights, (own, i), x, out, slot);
}

dispatch! {
    fn add_weighted(
        list: &[u32], weights: &[f32], own: (&Panels, usize), x: &Rows16, out: &mut RowsMut<'_>, slot: usize,
    ) = add_weighted_kernel
}

#[inline(always)]
unsafe fn add_weighted_kernel<S: Simd>(
    list: &[u32],
    weights: &[f32],
    own: (&Panels, usize),
    x: &Rows16,
    out: &mut RowsMut<'_>,
    slot: usize,
) {
    let panels = out.panels();
    let mut first = 0;
    // SAFETY: as promised by the caller.
    unsafe {
        while first + 4 <= panels {
            add_panels::<S, 4>(list, weights, own, x, (&mut *out, slot), first);
            first += 4;
        }
        for p in first..panels {
            add_panels::<S, 1>(list, weights, own, x, (&mut *out, slot), p);
        }
    }
}

/// The panels from `first` on, as many as sums fit the registers.
///
/// # Safety
/// The listed rows and the panels must exist; the CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn add_panels<S: Simd, const P: usize>(
    list: &[u32],
    weights: &[f32],
    (own, i): (&Panels, usize),
    x: &Rows16,
    (out, slot): (&mut RowsMut<'_>, usize),
    first: usize,
) {
    // SAFETY: as promised by the caller; a row of a panel holds PANEL floats or WORDS words.
    unsafe {
        let start = x.start().wrapping_add(first * WORDS);
        let mut sums: [Wide<S>; P] =
            std::array::from_fn(|p| Wide::load(own.row_of(first + p, i).as_ptr()));
        for (&j, &weight) in list.iter().zip(weights) {
            let row = start.add(j as usize * x.width());
            for (p, sum) in sums.iter_mut().enumerate() {
                *sum = sum.add_scaled(weight, Wide::load16(row.add(p * WORDS)));
            }
        }
        for (p, sum) in sums.into_iter().enumerate() {
            sum.store(out.panel_mut(first + p)[slot * PANEL..][..PANEL].as_mut_ptr());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Matrix, bf16, rows};

    /// A graph where some have no neighbour and some many.
    fn pattern(nodes: u32) -> Pattern {
        let list = |i: u32| (0..nodes).filter(move |j| (i * 7 + j * 3) % 5 < i % 4);
        let lists: Vec<Vec<u32>> = (0..nodes).map(|i| list(i).collect()).collect();
        let ends = lists.iter().scan(0, |end, list| {
            *end += list.len();
            Some(*end)
        });
        let offsets = std::iter::once(0).chain(ends).collect();
        Pattern::new(nodes as usize, offsets, lists.concat()).unwrap()
    }

    fn sample(nodes: usize, cols: usize, seed: f32) -> Panels {
        Panels::from_matrix(&Matrix::from_fn(nodes, cols, |i, j| {
            bf16::round(((i * 13 + j * 7) as f32 * 0.21 + seed).sin())
        }))
    }

    #[test]
    fn attention_to_rounded_rows_is_that_to_rows_of_the_same_values() {
        for (nodes, cols) in [(23, 1), (23, 32), (23, 37), (40, 128), (17, 200), (9, 300)] {
            let (adjacency, h) = (pattern(nodes as u32), sample(nodes, cols, 0.1));
            let y = sample(nodes, cols, 0.5);
            let buffer_shape = Rows16::buffer_shape(nodes, cols);
            let threads = Threads::new(2);
            let words = Rows16::round(&y, Panels::zeros(buffer_shape.0, buffer_shape.1), &threads);
            let [mut out, mut want] = [(); 2].map(|()| Panels::zeros(nodes, cols));
            for i in 0..nodes {
                let mut weights = vec![0.0; adjacency.row(i).len()];
                let mut of_floats = weights.clone();
                softmax_weights(&adjacency, i, &h, &words, 0.3, &mut weights);
                rows::softmax_weights(&adjacency, i, &h, &y, 0.3, &mut of_floats);
                assert_eq!(weights, of_floats, "weights of row {i} of {nodes}×{cols}");
                let rows = 0..nodes;
                let both = (&y, &words);
                weighted_sum(&adjacency, i, &weights, both, &mut out.rows_mut(rows.clone()), i);
                rows::weighted_sum(&adjacency, i, &weights, &y, &mut want.rows_mut(rows), i);
            }
            for (got, want) in out.data().iter().zip(want.data()) {
                assert!((got - want).abs() < 1e-5, "{got} and {want} of {nodes}×{cols}");
            }
        }
    }

    #[test]
    fn values_between_two_of_bfloat16_are_rounded() {
        let x = Panels::from_matrix(&Matrix::from_fn(3, 40, |i, j| (i * 40 + j) as f32 * 0.3333));
        let (rows, cols) = Rows16::buffer_shape(3, 40);
        let words = Rows16::round(&x, Panels::zeros(rows, cols), &Threads::new(1));
        let adjacency = Pattern::new(3, vec![0, 0, 0, 1], vec![1]).unwrap();
        let (zero, mut out) = (Panels::zeros(3, 40), Panels::zeros(3, 40));
        let both = (&zero, &words);
        weighted_sum(&adjacency, 2, &[1.0], both, &mut out.rows_mut(0..3), 2);
        for j in 0..40 {
            assert_eq!(out.get(2, j), bf16::round(x.get(1, j)));
        }
    }
}
