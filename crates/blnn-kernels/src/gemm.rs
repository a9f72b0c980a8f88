//! Dense products of row-major or transposed slices, for callers that do not keep [`Panels`].
//!
//! The operands are packed into panels, multiplied by [`crate::product`] and copied out. Each
//! call runs on the calling thread and reuses that thread's buffers. Callers split work into
//! shards by size alone (see [`crate::par`]), so the bits of a product never depend on the thread
//! count.

use std::cell::RefCell;

use crate::panels::{PANEL, Panels};
use crate::product::{Store, product};

thread_local! {
    /// Packed A, packed B and the packed product.
    static BUFFERS: RefCell<[Panels; 3]> = RefCell::default();
}

/// A dense operand: element `(i, j)` is `data[i * row_stride + j * col_stride]`.
#[derive(Clone, Copy, Debug)]
pub struct Operand<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> Operand<'a> {
    /// A row-major operand.
    ///
    /// # Panics
    /// If `data` is shorter than `rows * cols`.
    #[track_caller]
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        assert!(data.len() >= rows * cols, "operand {rows}×{cols} from {} values", data.len());
        Self { data, rows, cols, row_stride: cols, col_stride: 1 }
    }

    /// The same values read as the transposed matrix.
    #[must_use]
    pub fn transposed(self) -> Self {
        Self {
            rows: self.cols,
            cols: self.rows,
            row_stride: self.col_stride,
            col_stride: self.row_stride,
            ..self
        }
    }
}

/// `out = a · b` or `out += a · b`, with `out` row-major.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn gemm(a: Operand<'_>, b: Operand<'_>, out: &mut [f32], store: Store) {
    assert_eq!(a.cols, b.rows, "gemm: A is {}×{}, B is {}×{}", a.rows, a.cols, b.rows, b.cols);
    assert_eq!(out.len(), a.rows * b.cols, "gemm: output is not {}×{}", a.rows, b.cols);
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    if a.cols == 0 {
        if store == Store::Overwrite {
            out.fill(0.0);
        }
        return;
    }
    BUFFERS.with_borrow_mut(|[packed_a, packed_b, packed_out]| {
        pack(a, packed_a);
        pack(b, packed_b);
        packed_out.reshape(a.rows, b.cols);
        let rows = &mut packed_out.rows_mut(0..a.rows);
        product(&packed_a.rows_ref(0..a.rows), packed_b, rows, Store::Overwrite);
        unpack(packed_out, out, store);
    });
}

/// Copies an operand into panels, the last one padded with zeros.
fn pack(from: Operand<'_>, to: &mut Panels) {
    to.reshape(from.rows, from.cols);
    for p in 0..to.panels() {
        let columns = to.columns(p);
        for (i, row) in to.panel_mut(p).chunks_exact_mut(PANEL).enumerate() {
            let start = i * from.row_stride + columns.start * from.col_stride;
            let (used, padding) = row.split_at_mut(columns.len());
            if from.col_stride == 1 {
                used.copy_from_slice(&from.data[start..start + columns.len()]);
            } else {
                let values = from.data[start..].iter().step_by(from.col_stride);
                used.iter_mut().zip(values).for_each(|(slot, value)| *slot = *value);
            }
            padding.fill(0.0);
        }
    }
}

fn unpack(from: &Panels, out: &mut [f32], store: Store) {
    for p in 0..from.panels() {
        let columns = from.columns(p);
        for (row, out) in from.panel(p).chunks_exact(PANEL).zip(out.chunks_exact_mut(from.cols())) {
            let pairs = out[columns.clone()].iter_mut().zip(row);
            match store {
                Store::Overwrite => pairs.for_each(|(slot, value)| *slot = *value),
                Store::Add => pairs.for_each(|(slot, value)| *slot += *value),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn naive(a: &[f32], b: &[f32], m: usize, k: usize, n: usize) -> Vec<f32> {
        let at = |i: usize, j: usize| (0..k).map(|p| a[i * k + p] * b[p * n + j]).sum();
        (0..m * n).map(|x| at(x / n, x % n)).collect()
    }

    #[test]
    fn agrees_with_naive_product_on_odd_shapes() {
        for (m, k, n) in [(1, 1, 1), (3, 5, 7), (17, 33, 9), (64, 128, 65), (5, 0, 4)] {
            let a: Vec<f32> = (0..m * k).map(|i| (i as f32 * 0.37).sin()).collect();
            let b: Vec<f32> = (0..k * n).map(|i| (i as f32 * 0.61).cos()).collect();
            let expected = naive(&a, &b, m, k, n);
            let transpose = |x: &[f32], r: usize, c: usize| -> Vec<f32> {
                (0..r * c).map(|i| x[(i % r) * c + i / r]).collect()
            };
            let (at, bt) = (transpose(&a, m, k), transpose(&b, k, n));
            let operands = [
                (Operand::new(&a, m, k), Operand::new(&b, k, n)),
                (Operand::new(&at, k, m).transposed(), Operand::new(&bt, n, k).transposed()),
            ];
            for (a, b) in operands {
                let mut out = vec![1.0; m * n];
                gemm(a, b, &mut out, Store::Add);
                for (got, want) in out.iter().zip(&expected) {
                    assert!((got - 1.0 - want).abs() < 1e-4);
                }
                gemm(a, b, &mut out, Store::Overwrite);
                for (got, want) in out.iter().zip(&expected) {
                    assert!((got - want).abs() < 1e-4);
                }
            }
        }
    }
}
