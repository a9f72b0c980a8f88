//! Operations on whole rows: norms, cosines, and sums of rows weighted by a softmax.

use crate::csr::Pattern;
use crate::exp::exp_and_sum;
use crate::panels::{PANEL, Panels, RowsMut};
use crate::simd::{Simd, dispatch};
use crate::wide::Wide;

/// Norms below this count as this, so that a zero row stays zero when it is normalised.
const SMALLEST_NORM: f32 = 1e-12;

/// `1 / ‖row i‖` for each row of a range, `out[0]` being that of row `first`.
///
/// # Panics
/// If the rows do not exist.
#[track_caller]
pub fn inverse_norms(x: &Panels, first: usize, out: &mut [f32]) {
    assert!(first + out.len() <= x.rows(), "norms: rows");
    for (i, out) in out.iter_mut().enumerate() {
        *out = 1.0 / row_dot(x, first + i, x, first + i).sqrt().max(SMALLEST_NORM);
    }
}

dispatch! {
    /// The dot product of two rows.
    fn row_dot(a: &Panels, i: usize, b: &Panels, j: usize) -> f32 = row_dot_kernel
}

#[inline(always)]
unsafe fn row_dot_kernel<S: Simd>(a: &Panels, i: usize, b: &Panels, j: usize) -> f32 {
    assert!(a.cols() == b.cols());
    // SAFETY: a row of a panel holds PANEL floats.
    unsafe {
        let mut sum = Wide::<S>::zero();
        for p in 0..a.panels() {
            let (a, b) = (a.row_of(p, i), b.row_of(p, j));
            sum = sum.add_product(Wide::load(a.as_ptr()), Wide::load(b.as_ptr()));
        }
        sum.sum()
    }
}

/// Divides every row by its norm.
pub fn normalize(rows: &mut RowsMut<'_>) {
    for i in 0..rows.rows() {
        normalize_row(rows, i);
    }
}

dispatch! {
    fn normalize_row(rows: &mut RowsMut<'_>, i: usize) = normalize_row_kernel
}

#[inline(always)]
unsafe fn normalize_row_kernel<S: Simd>(rows: &mut RowsMut<'_>, i: usize) {
    // SAFETY: a row of a panel holds PANEL floats.
    unsafe {
        let mut squares = Wide::<S>::zero();
        for p in 0..rows.panels() {
            let x = Wide::load(rows.panel(p)[i * PANEL..][..PANEL].as_ptr());
            squares = squares.add_product(x, x);
        }
        let inverse = 1.0 / squares.sum().sqrt().max(SMALLEST_NORM);
        for p in 0..rows.panels() {
            let row = &mut rows.panel_mut(p)[i * PANEL..][..PANEL];
            Wide::<S>::load(row.as_ptr()).store_scaled(inverse, row.as_mut_ptr());
        }
    }
}

/// The softmax over the entries `j` of row `i` of `pattern` of `factor · (anchor_i · x_j)`,
/// written to `weights`, one value an entry.
///
/// # Panics
/// If the shapes disagree.
#[track_caller]
pub fn softmax_weights(
    pattern: &Pattern,
    i: usize,
    anchor: &Panels,
    x: &Panels,
    factor: f32,
    weights: &mut [f32],
) {
    assert_eq!(weights.len(), pattern.row(i).len(), "softmax: one weight an entry");
    assert_eq!((pattern.cols(), anchor.cols()), (x.rows(), x.cols()), "softmax: shapes");
    if weights.is_empty() {
        return;
    }
    listed_dots(pattern.row(i), anchor, i, x, weights);
    soften(weights, factor);
}

/// The softmax of `factor` times the given values, in their place.
pub(crate) fn soften(weights: &mut [f32], factor: f32) {
    let largest = weights.iter().fold(f32::NEG_INFINITY, |a, &b| a.max(b));
    let inverse = 1.0 / exp_and_sum(weights, factor, largest);
    for weight in weights {
        *weight *= inverse;
    }
}

dispatch! {
    /// `out[k] = anchor[i] · x[list[k]]`. The listed rows must exist.
    fn listed_dots(list: &[u32], anchor: &Panels, i: usize, x: &Panels, out: &mut [f32]) = listed_dots_kernel
}

#[inline(always)]
unsafe fn listed_dots_kernel<S: Simd>(
    list: &[u32],
    anchor: &Panels,
    i: usize,
    x: &Panels,
    out: &mut [f32],
) {
    let stride = x.rows() * PANEL;
    // SAFETY: patterns list only columns below their width, which the caller checked to be the
    // number of rows of `x`; a row of a panel holds PANEL floats.
    unsafe {
        for (&j, out) in list.iter().zip(out) {
            let row = x.data().as_ptr().add(j as usize * PANEL);
            let mut sum = Wide::<S>::zero();
            for p in 0..x.panels() {
                let a = Wide::load(anchor.row_of(p, i).as_ptr());
                sum = sum.add_product(a, Wide::load(row.add(p * stride)));
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
    x: &Panels,
    out: &mut RowsMut<'_>,
    slot: usize,
) {
    assert_eq!(weights.len(), pattern.row(i).len(), "weighted sum: one weight an entry");
    assert_eq!((pattern.cols(), x.panels()), (x.rows(), out.panels()), "weighted sum: shapes");
    for p in 0..x.panels() {
        let out = &mut out.panel_mut(p)[slot * PANEL..][..PANEL];
        weighted_row(pattern.row(i), weights, x.panel(p), x.row_of(p, i), out);
    }
}

dispatch! {
    fn weighted_row(list: &[u32], weights: &[f32], x: &[f32], own: &[f32], out: &mut [f32]) = weighted_row_kernel
}

#[inline(always)]
unsafe fn weighted_row_kernel<S: Simd>(
    list: &[u32],
    weights: &[f32],
    x: &[f32],
    own: &[f32],
    out: &mut [f32],
) {
    assert!(own.len() == PANEL && out.len() == PANEL);
    // SAFETY: the caller checked that the pattern lists only rows of `x`; `own` and `out` hold
    // PANEL floats.
    unsafe {
        let sum = crate::wide::sum_weighted::<S>(list, weights, x.as_ptr());
        Wide::load(own.as_ptr()).add(sum).store(out.as_mut_ptr());
    }
}

/// What [`cosine_gradient`] found out about a row.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cosine {
    /// `z/‖z‖ · t`: the whole target.
    pub whole: f32,
    /// `z/‖z‖ · s`: the node's own part of the target.
    pub own: f32,
}

dispatch! {
    /// For row `slot` of a block `z`: its direction's products with row `i` of `target` and of
    /// `own`; and `grad = scale · (t − ẑ (ẑ·t)) / ‖z‖`, the gradient of `scale · ẑ·t`.
    pub fn cosine_gradient(
        z: &Panels, slot: usize, target: &Panels, own: &Panels, i: usize, scale: f32, grad: &mut Panels,
    ) -> Cosine = cosine_kernel
}

#[inline(always)]
unsafe fn cosine_kernel<S: Simd>(
    z: &Panels,
    slot: usize,
    target: &Panels,
    own: &Panels,
    i: usize,
    scale: f32,
    grad: &mut Panels,
) -> Cosine {
    assert!(z.cols() == target.cols() && z.cols() == own.cols() && z.cols() == grad.cols());
    // SAFETY: a row of a panel holds PANEL floats.
    unsafe {
        let load = |m: &Panels, p: usize, i: usize| Wide::<S>::load(m.row_of(p, i).as_ptr());
        let (mut zz, mut zt, mut zs) = (Wide::<S>::zero(), Wide::zero(), Wide::zero());
        for p in 0..z.panels() {
            let row = load(z, p, slot);
            zz = zz.add_product(row, row);
            zt = zt.add_product(row, load(target, p, i));
            zs = zs.add_product(row, load(own, p, i));
        }
        let inverse = 1.0 / zz.sum().sqrt().max(SMALLEST_NORM);
        let cosine = Cosine { whole: zt.sum() * inverse, own: zs.sum() * inverse };
        let along = -scale * cosine.whole * inverse * inverse;
        for p in 0..z.panels() {
            let row = load(z, p, slot).map(|v| S::mul(v, S::splat(along)));
            let row = row.add_scaled(scale * inverse, load(target, p, i));
            row.store(grad.panel_mut(p)[slot * PANEL..][..PANEL].as_mut_ptr());
        }
        cosine
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;

    fn sample(rows: usize, cols: usize, seed: f32) -> Matrix {
        Matrix::from_fn(rows, cols, |i, j| ((i * 13 + j * 7) as f32 * 0.21 + seed).sin())
    }

    fn dot(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    #[test]
    fn normalized_rows_have_norm_one_and_zero_rows_stay_zero() {
        let mut m = sample(5, 40, 0.2);
        m.row_mut(3).fill(0.0);
        let mut p = Panels::from_matrix(&m);
        let mut inverse = [0.0; 3];
        inverse_norms(&p, 1, &mut inverse);
        assert!((inverse[0] - 1.0 / dot(m.row(1), m.row(1)).sqrt()).abs() < 1e-5);
        normalize(&mut p.rows_mut(0..5));
        let got = p.to_matrix();
        assert!((dot(got.row(4), got.row(4)) - 1.0).abs() < 1e-5);
        assert!(got.row(3).iter().all(|&v| v == 0.0));
    }

    #[test]
    fn softmax_weighted_sum_agrees_with_naive_code() {
        let pattern =
            Pattern::new(5, vec![0, 3, 3, 4, 4, 9], vec![0, 2, 4, 1, 0, 1, 2, 3, 4]).unwrap();
        let (h, x) = (sample(5, 37, 0.1), sample(5, 37, 0.5));
        let (hp, xp) = (Panels::from_matrix(&h), Panels::from_matrix(&x));
        let mut out = Panels::zeros(5, 37);
        for i in 0..5 {
            let list = pattern.row(i);
            let mut weights = vec![0.0; list.len()];
            softmax_weights(&pattern, i, &hp, &xp, 0.7, &mut weights);
            weighted_sum(&pattern, i, &weights, &xp, &mut out.rows_mut(0..5), i);
            let exps: Vec<f32> =
                list.iter().map(|&j| (0.7 * dot(h.row(i), x.row(j as usize))).exp()).collect();
            let total: f32 = exps.iter().sum();
            for c in 0..37 {
                let part = |(&j, e): (&u32, &f32)| e / total * x.get(j as usize, c);
                let want = x.get(i, c) + list.iter().zip(&exps).map(part).sum::<f32>();
                assert!((out.get(i, c) - want).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn cosine_gradient_agrees_with_finite_differences() {
        let (mut z, t, s) = (sample(2, 40, 0.3), sample(3, 40, 0.6), sample(3, 40, 0.9));
        let (tp, sp) = (Panels::from_matrix(&t), Panels::from_matrix(&s));
        let mut grad = Panels::zeros(2, 40);
        let value = |z: &Matrix, grad: &mut Panels| {
            cosine_gradient(&Panels::from_matrix(z), 1, &tp, &sp, 2, 0.5, grad)
        };
        let at = value(&z, &mut grad);
        let norm = dot(z.row(1), z.row(1)).sqrt();
        assert!((at.whole - dot(z.row(1), t.row(2)) / norm).abs() < 1e-5);
        assert!((at.own - dot(z.row(1), s.row(2)) / norm).abs() < 1e-5);
        let analytic = grad.clone();
        for c in 0..40 {
            let old = z.get(1, c);
            z.row_mut(1)[c] = old + 1e-2;
            let up = value(&z, &mut grad).whole;
            z.row_mut(1)[c] = old - 1e-2;
            let down = value(&z, &mut grad).whole;
            z.row_mut(1)[c] = old;
            assert!((0.5 * (up - down) / 2e-2 - analytic.get(1, c)).abs() < 1e-3);
        }
    }
}
