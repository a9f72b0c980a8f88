//! Dense products of [`Panels`] on the calling thread: `A · B` and `Aᵀ · B`.
//!
//! The layout is the packing: the tile of `A` that a register tile needs is contiguous, and so is
//! the panel of `B` it streams through. Nothing is allocated.

use crate::norm::scale_rows;
use crate::panels::{PANEL, Panels, RowsMut, RowsRef};
use crate::par::{Partition, Threads};
use crate::simd::{Simd, dispatch};

/// What a product does with the previous contents of its output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    /// `out = a · b`
    Overwrite,
    /// `out += a · b`
    Add,
}

/// `out = A · B` (or `+=`): rows of `A` times the weights `B`.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn product(a: &RowsRef<'_>, b: &Panels, out: &mut RowsMut<'_>, store: Store) {
    product_rows(a, &b.rows_ref(0..b.rows()), out, store);
}

/// [`product`] with some rows of a matrix as the weights.
#[track_caller]
pub(crate) fn product_rows(a: &RowsRef<'_>, b: &RowsRef<'_>, out: &mut RowsMut<'_>, store: Store) {
    assert_eq!(a.panels(), b.rows().div_ceil(PANEL), "product: A's columns, B's rows");
    assert_eq!((a.rows(), b.panels()), (out.rows(), out.panels()), "product: output shape");
    if a.rows() == 0 {
        return;
    }
    let ((inputs, stride), (all, panel_floats)) = (a.strided(), b.strided());
    for p in 0..b.panels() {
        let (panel, following) = (b.panel(p), &all[p * panel_floats..]);
        for (block, weights) in panel.chunks(DEPTH * PANEL).enumerate() {
            let inputs = &inputs[block * (DEPTH / PANEL) * stride..];
            let next = &following[block * DEPTH * PANEL + weights.len()..];
            let add = block > 0 || store == Store::Add;
            rows_by_panel(inputs, stride, weights, next, out.panel_mut(p), add);
        }
    }
}

/// `out = Aᵀ · B` (or `+=`): the gradient of weights from rows of inputs and of output gradients.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn transposed_product(a: &RowsRef<'_>, b: &RowsRef<'_>, out: &mut Panels, store: Store) {
    assert_eq!(a.rows(), b.rows(), "transposed product: rows");
    assert_eq!(
        (a.panels(), b.panels()),
        (out.rows().div_ceil(PANEL), out.panels()),
        "transposed product: output shape"
    );
    for p in 0..b.panels() {
        for q in 0..a.panels() {
            let height = PANEL.min(out.rows() - q * PANEL);
            let target = &mut out.panel_mut(p)[q * PANEL * PANEL..][..height * PANEL];
            columns_by_panel(a.panel(q), b.panel(p), target, height, store == Store::Add);
        }
    }
}

/// Rows of a block of the operands that stays in the level-2 cache.
const BLOCK_ROWS: usize = 256;

/// Panels of `A` that share one pass over a panel of `B` in [`transposed_product_all`].
const PIECE_PANELS: usize = 4;

/// Floats in a line of the cache.
const LINE: usize = 16;

/// Rows of `B` that stay in the level-1 cache while all rows of `A` pass by.
const DEPTH: usize = 128;

/// `out = Aᵀ · B` (or `+=`) over all rows, in parallel over pieces of the output, without partial sums.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn transposed_product_all(
    a: &Panels,
    b: &Panels,
    out: &mut Panels,
    store: Store,
    threads: &Threads,
) {
    assert_eq!(a.rows(), b.rows(), "transposed product: rows");
    assert_eq!((a.cols(), b.cols()), out.shape(), "transposed product: output shape");
    let pieces = Partition::of_panels(out.rows(), PIECE_PANELS);
    threads.for_each_cell(&pieces, [out], |cell, [out]| {
        for start in (0..a.rows()).step_by(BLOCK_ROWS) {
            let add = start > 0 || store == Store::Add;
            let rows = start * PANEL..(start + BLOCK_ROWS).min(a.rows()) * PANEL;
            for (k, target) in out.chunks_mut(PANEL * PANEL).enumerate() {
                let inputs = &a.panel(cell.rows.start / PANEL + k)[rows.clone()];
                let height = target.len() / PANEL;
                columns_by_panel(inputs, &b.panel(cell.panel)[rows.clone()], target, height, add);
            }
        }
    });
}

/// `out = A · B` over all rows in parallel, each row then multiplied by its factor of `scale`.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn product_all(
    a: &Panels,
    b: &Panels,
    scale: Option<&[f32]>,
    out: &mut Panels,
    threads: &Threads,
) {
    let partition = Partition::even(out.rows());
    let mut shards = out.shards_mut(&partition);
    threads.for_each_owned(&mut shards[..partition.shards()], |s, out| {
        let range = partition.range(s);
        for start in range.clone().step_by(BLOCK_ROWS) {
            let rows = start..(start + BLOCK_ROWS).min(range.end);
            let mut block = out.part(rows.start - range.start..rows.end - range.start);
            product(&a.rows_ref(rows.clone()), b, &mut block, Store::Overwrite);
            if let Some(scale) = scale {
                (0..block.panels())
                    .for_each(|p| scale_rows(block.panel_mut(p), &scale[rows.clone()]));
            }
        }
    });
}

dispatch! {
    /// `out[i][..] (+)= Σ_k a[i][k] · b[k][..]` for all rows `i` and all rows `k` of `b`; the
    /// panels of `a` lie `stride` floats apart. What is used `next` is brought near meanwhile.
    fn rows_by_panel(a: &[f32], stride: usize, b: &[f32], next: &[f32], out: &mut [f32], add: bool) = rows_kernel
}

dispatch! {
    /// `out[m][..] (+)= Σ_i a[i][m] · b[i][..]` for `m < height ≤ PANEL`, over all rows `i`.
    fn columns_by_panel(a: &[f32], b: &[f32], out: &mut [f32], height: usize, add: bool) = columns_kernel
}

#[inline(always)]
unsafe fn rows_kernel<S: Simd>(
    a: &[f32],
    stride: usize,
    b: &[f32],
    next: &[f32],
    out: &mut [f32],
    add: bool,
) {
    let (rows, depth) = (out.len() / PANEL, b.len() / PANEL);
    assert!(a.len() >= (depth.div_ceil(PANEL) - 1) * stride + rows * PANEL);
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: `i + R <= rows` and `j + width <= PANEL`, so every tile lies inside the slices,
    // whose lengths were checked above.
    unsafe {
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        let mut next = next.chunks(LINE * depth);
        for j in (0..PANEL).step_by(width) {
            let mut i = 0;
            macro_rules! tiles {
                ($($r:literal)*) => {$(
                    while $r <= S::TILE_ROWS && rows - i >= $r {
                        let (a, b, out) = (a.add(i * PANEL), b.add(j), out.add(i * PANEL + j));
                        let next = next.next().map_or(b, <[f32]>::as_ptr);
                        match S::TILE_VECTORS {
                            2 => tile::<S, $r, 2, PANEL, 1>(a, stride, b, Some(next), out, depth, add),
                            _ => tile::<S, $r, 4, PANEL, 1>(a, stride, b, Some(next), out, depth, add),
                        }
                        i += $r;
                    }
                )*};
            }
            tiles!(14 6 4 2 1);
        }
    }
}

#[inline(always)]
unsafe fn columns_kernel<S: Simd>(a: &[f32], b: &[f32], out: &mut [f32], height: usize, add: bool) {
    assert!(a.len() == b.len() && out.len() == height * PANEL && height <= PANEL);
    let depth = a.len() / PANEL;
    let width = S::TILE_VECTORS * S::LANES;
    // SAFETY: `m + R <= height <= PANEL` and `j + width <= PANEL`, so every tile lies inside the
    // slices, whose lengths were checked above.
    unsafe {
        let (a, b, out) = (a.as_ptr(), b.as_ptr(), out.as_mut_ptr());
        for j in (0..PANEL).step_by(width) {
            let mut m = 0;
            macro_rules! tiles {
                ($($r:literal)*) => {$(
                    while $r <= S::TILE_ROWS && height - m >= $r {
                        let (a, b, out) = (a.add(m), b.add(j), out.add(m * PANEL + j));
                        match S::TILE_VECTORS {
                            2 => tile::<S, $r, 2, 1, PANEL>(a, PANEL * PANEL, b, None, out, depth, add),
                            _ => tile::<S, $r, 4, 1, PANEL>(a, PANEL * PANEL, b, None, out, depth, add),
                        }
                        m += $r;
                    }
                )*};
            }
            tiles!(8 4 2 1);
        }
    }
}

/// The register tile: `R` rows by `V` vectors of the output stay in registers while `depth`
/// products are added. Element `(r, k)` of A is `a[r * A_ROW + k * A_COL]` within a segment of
/// `PANEL` values of `k`; segments lie `stride` floats apart. A line at `next` is prefetched for
/// each `k`.
///
/// # Safety
/// All addressed elements must exist; the CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn tile<S: Simd, const R: usize, const V: usize, const A_ROW: usize, const A_COL: usize>(
    a: *const f32,
    stride: usize,
    b: *const f32,
    next: Option<*const f32>,
    out: *mut f32,
    depth: usize,
    add: bool,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        let mut acc = [[S::splat(0.0); V]; R];
        if add {
            for (r, row) in acc.iter_mut().enumerate() {
                for (v, lanes) in row.iter_mut().enumerate() {
                    *lanes = S::load(out.add(r * PANEL + v * S::LANES));
                }
            }
        }
        let whole = depth / PANEL;
        for q in 0..whole {
            let (a, b) = (a.add(q * stride), b.add(q * PANEL * PANEL));
            let next = next.map(|p| p.wrapping_add(q * PANEL * LINE));
            segment::<S, R, V, A_ROW, A_COL>(&mut acc, a, b, next, PANEL);
        }
        // Behind the last whole panel there may be nothing, not even an address to form.
        if !depth.is_multiple_of(PANEL) {
            let (a, b) = (a.add(whole * stride), b.add(whole * PANEL * PANEL));
            let next = next.map(|p| p.wrapping_add(whole * PANEL * LINE));
            segment::<S, R, V, A_ROW, A_COL>(&mut acc, a, b, next, depth % PANEL);
        }
        for (r, row) in acc.iter().enumerate() {
            for (v, &lanes) in row.iter().enumerate() {
                S::store(out.add(r * PANEL + v * S::LANES), lanes);
            }
        }
    }
}

/// Adds the products of at most `PANEL` values of `k` to a register tile.
///
/// # Safety
/// As for [`tile`].
#[inline(always)]
unsafe fn segment<
    S: Simd,
    const R: usize,
    const V: usize,
    const A_ROW: usize,
    const A_COL: usize,
>(
    acc: &mut [[S::V; V]; R],
    a: *const f32,
    b: *const f32,
    next: Option<*const f32>,
    depth: usize,
) {
    for k in 0..depth {
        // SAFETY: as promised by the caller.
        unsafe {
            if let Some(next) = next {
                S::prefetch(next.wrapping_add(k * LINE));
            }
            let b: [S::V; V] = std::array::from_fn(|v| S::load(b.add(k * PANEL + v * S::LANES)));
            for (r, row) in acc.iter_mut().enumerate() {
                let x = S::splat(*a.add(r * A_ROW + k * A_COL));
                for (lanes, &b) in row.iter_mut().zip(&b) {
                    *lanes = S::fma(x, b, *lanes);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn sample(rows: usize, cols: usize, seed: f32) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 31 + j * 17) as f32 * 0.13 + seed).sin())
    }

    fn naive(a: &Matrix, b: &Matrix) -> Matrix {
        let dot = |i, j| (0..a.cols()).map(|k| a.get(i, k) * b.get(k, j)).sum();
        Matrix::from_fn(a.rows(), b.cols(), dot)
    }

    fn transpose(a: &Matrix) -> Matrix {
        Matrix::from_fn(a.cols(), a.rows(), |i, j| a.get(j, i))
    }

    fn assert_close(got: &Panels, want: &Matrix, offset: f32) {
        for i in 0..want.rows() {
            for j in 0..want.cols() {
                let (g, w) = (got.get(i, j), want.get(i, j) + offset);
                assert!((g - w).abs() < 2e-4 * w.abs().max(1.0), "({i}, {j}): {g} instead of {w}");
            }
        }
    }

    const SHAPES: [(usize, usize, usize); 7] = [
        (1, 1, 1),
        (3, 5, 7),
        (17, 33, 9),
        (64, 128, 65),
        (29, 64, 32),
        (6, 31, 96),
        (15, 600, 33),
    ];

    #[test]
    fn product_agrees_with_naive_on_all_remainders() {
        for (m, k, n) in SHAPES {
            let (a, b) = (sample(m, k, 0.1), sample(k, n, 0.7));
            let want = naive(&a, &b);
            let (a, b) = (Panels::from_matrix(&a), Panels::from_matrix(&b));
            let mut out = Panels::zeros(m, n);
            product(&a.rows_ref(0..m), &b, &mut out.rows_mut(0..m), Store::Overwrite);
            assert_close(&out, &want, 0.0);
            (0..m * n).for_each(|x| out.set(x / n, x % n, 1.0));
            product(&a.rows_ref(0..m), &b, &mut out.rows_mut(0..m), Store::Add);
            assert_close(&out, &want, 1.0);
        }
    }

    #[test]
    fn transposed_product_agrees_with_naive_on_all_remainders() {
        for (k, m, n) in SHAPES {
            let (a, b) = (sample(k, m, 0.3), sample(k, n, 0.9));
            let want = naive(&transpose(&a), &b);
            let (a, b) = (Panels::from_matrix(&a), Panels::from_matrix(&b));
            let mut out = Panels::zeros(m, n);
            transposed_product(&a.rows_ref(0..k), &b.rows_ref(0..k), &mut out, Store::Overwrite);
            assert_close(&out, &want, 0.0);
            transposed_product(&a.rows_ref(0..k), &b.rows_ref(0..k), &mut out, Store::Add);
            assert_close(&out, &Matrix::from_fn(m, n, |i, j| 2.0 * want.get(i, j)), 0.0);
        }
    }

    #[test]
    fn parallel_products_agree_with_naive_ones() {
        let threads = Threads::new(2);
        for (rows, m, n) in [(700, 70, 40), (5, 33, 9), (300, 256, 64)] {
            let (a, b) = (sample(rows, m, 0.3), sample(rows, n, 0.9));
            let (pa, pb) = (Panels::from_matrix(&a), Panels::from_matrix(&b));
            let mut out = Panels::zeros(m, n);
            transposed_product_all(&pa, &pb, &mut out, Store::Overwrite, &threads);
            assert_close(&out, &naive(&transpose(&a), &b), 0.0);
            let w = sample(m, n, 0.5);
            let scale: Vec<f32> = (0..rows).map(|i| 1.0 + i as f32 * 0.001).collect();
            let mut out = Panels::zeros(rows, n);
            product_all(&pa, &Panels::from_matrix(&w), Some(&scale), &mut out, &threads);
            let plain = naive(&a, &w);
            assert_close(&out, &Matrix::from_fn(rows, n, |i, j| scale[i] * plain.get(i, j)), 0.0);
        }
    }

    #[test]
    fn padding_stays_zero() {
        let (a, b) =
            (Panels::from_matrix(&sample(9, 40, 0.0)), Panels::from_matrix(&sample(40, 33, 0.0)));
        let mut out = Panels::zeros(9, 33);
        product(&a.rows_ref(0..9), &b, &mut out.rows_mut(0..9), Store::Overwrite);
        assert!((0..9).all(|i| out.row_of(1, i)[1..].iter().all(|&v| v == 0.0)));
    }
}
