//! Rotating the features onto their principal axes, which changes no fit but speeds up all.
//!
//! `½‖w‖² + C Σ loss(w·x)` keeps its minimum's value and decisions under any rotation of `x` and
//! `w`. On the principal axes of the data the Hessian is nearly diagonal, so conjugate gradients
//! preconditioned by its diagonal need a few steps where the raw features need dozens. The axes
//! are computed once for all nodes and serve every split, fold, class and `C`.

use blnn_kernels::gemm::{Operand, gemm};
use blnn_kernels::product::Store;
use blnn_kernels::{Matrix, Partition, Threads};

/// Widest features that are rotated. The rotation costs O(d³) on one thread; beyond this the fits
/// gain less than it costs.
const MAX_WIDTH: usize = 600;

/// Passes of Jacobi rotations. Nearly diagonal is enough; the rotation is orthogonal after any
/// number of passes.
const PASSES: usize = 4;

/// `[x, 1] · V` with an orthogonal `V` that almost diagonalises the second moments of `[x, 1]`.
pub(super) fn with_intercept_on_axes(x: &Matrix, threads: &Threads) -> Matrix {
    let wide = x.cols() + 1;
    let mut data = Vec::with_capacity(x.rows() * wide);
    for i in 0..x.rows() {
        data.extend_from_slice(x.row(i));
        data.push(1.0);
    }
    let extended = Matrix::from_vec(x.rows(), wide, data);
    if wide > MAX_WIDTH {
        return extended;
    }
    let axes = principal_axes(second_moments(&extended, threads), wide);
    project(&extended, &axes, threads)
}

/// `xᵀx`, summed over shards in their order.
fn second_moments(x: &Matrix, threads: &Threads) -> Vec<f64> {
    let (rows, d) = x.shape();
    let partition = Partition::even(rows);
    let mut partial = vec![vec![0.0_f32; d * d]; partition.shards()];
    threads.for_each_owned(&mut partial, |shard, out| {
        let range = partition.range(shard);
        let part = &x.data()[range.start * d..range.end * d];
        let part = Operand::new(part, range.len(), d);
        gemm(part.transposed(), part, out, Store::Overwrite);
    });
    let sum = |e: usize| partial.iter().map(|p| f64::from(p[e])).sum();
    (0..d * d).map(sum).collect()
}

/// Rows are almost eigenvectors of the symmetric `d × d` matrix `a` (cyclic Jacobi).
fn principal_axes(mut a: Vec<f64>, d: usize) -> Vec<f64> {
    let mut axes = vec![0.0; d * d];
    (0..d).for_each(|i| axes[i * d + i] = 1.0);
    let scale: f64 = (0..d).map(|i| a[i * d + i].abs()).sum();
    for _ in 0..PASSES {
        for p in 0..d {
            for q in p + 1..d {
                if a[p * d + q].abs() > 1e-12 * scale {
                    rotate_pair(&mut a, &mut axes, d, p, q);
                }
            }
        }
    }
    axes
}

/// Turns axes `p` and `q` so that `a[p, q]` becomes zero.
fn rotate_pair(a: &mut [f64], axes: &mut [f64], d: usize, p: usize, q: usize) {
    let off = a[p * d + q];
    let (app, aqq) = (a[p * d + p], a[q * d + q]);
    let theta = (aqq - app) / (2.0 * off);
    let tan = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
    let cos = 1.0 / (tan * tan + 1.0).sqrt();
    let sin = tan * cos;
    rotate_rows(a, d, p, q, cos, sin);
    rotate_rows(axes, d, p, q, cos, sin);
    for k in 0..d {
        a[k * d + p] = a[p * d + k];
        a[k * d + q] = a[q * d + k];
    }
    a[p * d + p] = app - tan * off;
    a[q * d + q] = aqq + tan * off;
    a[p * d + q] = 0.0;
    a[q * d + p] = 0.0;
}

fn rotate_rows(m: &mut [f64], d: usize, p: usize, q: usize, cos: f64, sin: f64) {
    let (head, tail) = m.split_at_mut(q * d);
    for (x, y) in head[p * d..(p + 1) * d].iter_mut().zip(&mut tail[..d]) {
        (*x, *y) = (cos * *x - sin * *y, sin * *x + cos * *y);
    }
}

/// `x · axesᵀ`.
fn project(x: &Matrix, axes: &[f64], threads: &Threads) -> Matrix {
    let (rows, d) = x.shape();
    let axes: Vec<f32> = axes.iter().map(|&v| v as f32).collect();
    let mut out = Matrix::zeros(rows, d);
    let partition = Partition::even(rows);
    let mut shards = partition.split_wide(out.data_mut(), d);
    threads.for_each_owned(&mut shards[..partition.shards()], |shard, out| {
        let range = partition.range(shard);
        let part = &x.data()[range.start * d..range.end * d];
        let part = Operand::new(part, range.len(), d);
        gemm(part, Operand::new(&axes, d, d).transposed(), out, Store::Overwrite);
    });
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_keeps_products_and_diagonalises() {
        let x = Matrix::from_fn(300, 12, |i, j| ((i * 13 + j * j * 7) as f32 * 0.21).sin());
        let turned = with_intercept_on_axes(&x, &Threads::new(2));
        let dot = |m: &Matrix, a: usize, b: usize| -> f32 {
            m.row(a).iter().zip(m.row(b)).map(|(x, y)| x * y).sum()
        };
        for (a, b) in [(0, 0), (3, 250), (17, 18)] {
            assert!((dot(&x, a, b) + 1.0 - dot(&turned, a, b)).abs() < 1e-4);
        }
        let moments = second_moments(&turned, &Threads::new(1));
        let largest = (0..13).map(|j| moments[j * 14]).fold(0.0, f64::max);
        for e in (0..169).filter(|e| e / 13 != e % 13) {
            assert!(moments[e].abs() < 1e-4 * largest, "{} {largest}", moments[e]);
        }
    }
}
