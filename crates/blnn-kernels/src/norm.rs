//! Column statistics, and the affine map with leaky activation that batch normalisation needs.
//!
//! All functions work on one cell (some rows of one panel) on the calling thread. Sums are taken
//! in `f32` over short runs of rows and added up in `f64`, so that their error does not grow with
//! the number of rows.

use crate::bf16::{Values, WORDS};
use crate::panels::PANEL;
use crate::simd::{Simd, dispatch, dispatch_rounding};
use crate::wide::{Floats, Stored, Wide, Words};

/// One value for each column of a panel.
pub type Columns = [f32; PANEL];

/// Rows summed in single precision before the sum goes to double precision.
const RUN: usize = 128;

/// First and second moments of the columns of a cell, about a shift.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    /// `Σ (x − shift)`
    pub sum: [f64; PANEL],
    /// `Σ (x − shift)²`
    pub squares: [f64; PANEL],
}

impl Default for Moments {
    fn default() -> Self {
        Self { sum: [0.0; PANEL], squares: [0.0; PANEL] }
    }
}

/// Sums that the gradients of an [`Affine`] need, over the rows of a cell.
#[derive(Clone, Copy, Debug)]
pub struct AffineSums {
    /// `Σ dy`
    pub bias: [f64; PANEL],
    /// `Σ dy · x̂`
    pub weight: [f64; PANEL],
    /// `Σ dout · min(y, 0)`, a column each
    pub slope: [f64; PANEL],
}

impl Default for AffineSums {
    fn default() -> Self {
        Self { bias: [0.0; PANEL], weight: [0.0; PANEL], slope: [0.0; PANEL] }
    }
}

impl AffineSums {
    /// Adds the sums of further rows.
    pub fn add(&mut self, part: &Self) {
        for c in 0..PANEL {
            self.bias[c] += part.bias[c];
            self.weight[c] += part.weight[c];
            self.slope[c] += part.slope[c];
        }
    }
}

/// [`AffineSums`] of a few rows, in single precision.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShortSums([Columns; 3]);

impl ShortSums {
    /// Most rows that may be summed in single precision.
    pub const ROWS: usize = RUN;

    /// The same in double precision.
    pub fn widened(&self) -> AffineSums {
        let [bias, weight, slope] = self.0.map(|sums| sums.map(f64::from));
        AffineSums { bias, weight, slope }
    }
}

/// The map `x ↦ act(weight · x̂ + bias)`, `x̂ = x · inv_std + center`, for the columns of a panel,
/// where `act(y) = y` above zero and `slope · y` below.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    /// Factor of `x`: `weight / std`.
    pub factor: Columns,
    /// Added after the factor: `bias − mean · weight / std`.
    pub offset: Columns,
    /// `1 / std`
    pub inv_std: Columns,
    /// `− mean / std`
    pub center: Columns,
    /// Slope below zero.
    pub slope: f32,
}

fn widen_into(total: &mut [f64; PANEL], part: &Columns) {
    total.iter_mut().zip(part).for_each(|(t, &p)| *t += f64::from(p));
}

/// Moments of the columns of a cell about `shift`.
pub fn moments(cell: Values<'_>, shift: &Columns) -> Moments {
    let mut total = Moments::default();
    for first in (0..cell.rows()).step_by(RUN) {
        let run = cell.part(first..(first + RUN).min(cell.rows()));
        let (mut sum, mut squares) = ([0.0; PANEL], [0.0; PANEL]);
        moments_run(run, shift, &mut sum, &mut squares);
        widen_into(&mut total.sum, &sum);
        widen_into(&mut total.squares, &squares);
    }
    total
}

dispatch! {
    fn moments_run(run: Values<'_>, shift: &Columns, sum: &mut Columns, squares: &mut Columns) = moments_kernel
}

#[inline(always)]
unsafe fn moments_kernel<S: Simd>(
    run: Values<'_>,
    shift: &Columns,
    sum: &mut Columns,
    squares: &mut Columns,
) {
    // SAFETY: as promised by the caller.
    unsafe {
        match run {
            Values::Floats(run) => moments_of::<S, Floats>(run, shift, sum, squares),
            Values::Words(run) => moments_of::<S, Words>(run, shift, sum, squares),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn moments_of<S: Simd, F: Stored>(
    run: &[f32],
    shift: &Columns,
    sum: &mut Columns,
    squares: &mut Columns,
) {
    // SAFETY: a row is one of `F`, and columns hold PANEL floats each.
    unsafe {
        let shift = Wide::<S>::load(shift.as_ptr());
        let (mut s, mut q) = (Wide::<S>::zero(), Wide::<S>::zero());
        for row in run.chunks_exact(F::ROW) {
            let x = F::load::<S>(row.as_ptr()).zip(shift, |a, b| S::sub(a, b));
            s = s.add(x);
            q = q.add_product(x, x);
        }
        s.store(sum.as_mut_ptr());
        q.store(squares.as_mut_ptr());
    }
}

dispatch! {
    /// `out = act(factor · input + offset)`, column by column.
    pub fn affine_forward(map: &Affine, input: Values<'_>, out: &mut [f32]) = affine_kernel
}

#[inline(always)]
unsafe fn affine_kernel<S: Simd>(map: &Affine, input: Values<'_>, out: &mut [f32]) {
    assert_eq!(input.rows() * PANEL, out.len(), "affine: lengths");
    // SAFETY: as promised by the caller.
    unsafe {
        match input {
            Values::Floats(input) => affine_rows::<S, Floats>(map, input, out),
            Values::Words(input) => affine_rows::<S, Words>(map, input, out),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn affine_rows<S: Simd, F: Stored>(map: &Affine, input: &[f32], out: &mut [f32]) {
    // SAFETY: a row of the input is one of `F`; rows and columns hold PANEL floats each.
    unsafe {
        let (factor, offset) =
            (Wide::<S>::load(map.factor.as_ptr()), Wide::load(map.offset.as_ptr()));
        let slope = S::splat(map.slope);
        for (x, out) in input.chunks_exact(F::ROW).zip(out.chunks_exact_mut(PANEL)) {
            let y = offset.add_product(factor, F::load(x.as_ptr()));
            y.map(|y| S::if_positive(y, y, S::mul(slope, y))).store(out.as_mut_ptr());
        }
    }
}

dispatch! {
    /// [`affine_forward`] in place.
    pub fn affine_in_place(map: &Affine, cell: &mut [f32]) = in_place_kernel
}

#[inline(always)]
unsafe fn in_place_kernel<S: Simd>(map: &Affine, cell: &mut [f32]) {
    // SAFETY: rows and columns hold PANEL floats each.
    unsafe {
        let (factor, offset) =
            (Wide::<S>::load(map.factor.as_ptr()), Wide::load(map.offset.as_ptr()));
        let slope = S::splat(map.slope);
        for row in cell.chunks_exact_mut(PANEL) {
            let y = offset.add_product(factor, Wide::load(row.as_ptr()));
            y.map(|y| S::if_positive(y, y, S::mul(slope, y))).store(row.as_mut_ptr());
        }
    }
}

/// The sums for the gradients of `weight`, `bias` and `slope`, from the gradient of the output
/// and the input of [`affine_forward`].
///
/// # Panics
/// If the lengths differ.
pub fn affine_sums(map: &Affine, grad: Values<'_>, input: Values<'_>) -> AffineSums {
    assert_eq!(grad.rows(), input.rows(), "affine: lengths");
    let mut total = AffineSums::default();
    for first in (0..grad.rows()).step_by(RUN) {
        let run = first..(first + RUN).min(grad.rows());
        let mut sums = ShortSums::default();
        sums_run(map, grad.part(run.clone()), input.part(run), &mut sums, None);
        total.add(&sums.widened());
    }
    total
}

/// [`affine_forward`], with the sums of [`affine_sums`] added to those of the rows before, of which
/// there are at most [`ShortSums::ROWS`] in all.
///
/// # Panics
/// If the lengths differ.
pub fn affine_forward_and_sums(
    map: &Affine,
    grad: Values<'_>,
    input: Values<'_>,
    sums: &mut ShortSums,
    out: &mut [f32],
) {
    assert_eq!(grad.rows(), input.rows(), "affine: lengths");
    assert_eq!(input.rows() * PANEL, out.len(), "affine: lengths");
    sums_run(map, grad, input, sums, Some(out));
}

dispatch! {
    fn sums_run(
        map: &Affine, grad: Values<'_>, input: Values<'_>, sums: &mut ShortSums, out: Option<&mut [f32]>,
    ) = sums_kernel
}

#[inline(always)]
unsafe fn sums_kernel<S: Simd>(
    map: &Affine,
    grad: Values<'_>,
    input: Values<'_>,
    sums: &mut ShortSums,
    out: Option<&mut [f32]>,
) {
    use Values as V;
    // SAFETY: as promised by the caller.
    unsafe {
        match (grad, input) {
            (V::Floats(g), V::Floats(x)) => sums_of::<S, Floats, Floats>(map, g, x, sums, out),
            (V::Words(g), V::Words(x)) => sums_of::<S, Words, Words>(map, g, x, sums, out),
            (V::Floats(g), V::Words(x)) => sums_of::<S, Floats, Words>(map, g, x, sums, out),
            (V::Words(g), V::Floats(x)) => sums_of::<S, Words, Floats>(map, g, x, sums, out),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`; `out` must have room for all rows.
#[inline(always)]
unsafe fn sums_of<S: Simd, G: Stored, X: Stored>(
    map: &Affine,
    grad: &[f32],
    input: &[f32],
    sums: &mut ShortSums,
    mut out: Option<&mut [f32]>,
) {
    // SAFETY: rows are those of `G` and `X`, and columns hold PANEL floats each.
    unsafe {
        let (factor, offset) =
            (Wide::<S>::load(map.factor.as_ptr()), Wide::load(map.offset.as_ptr()));
        let (inv_std, center) =
            (Wide::<S>::load(map.inv_std.as_ptr()), Wide::load(map.center.as_ptr()));
        let (slope, zero) = (S::splat(map.slope), S::splat(0.0));
        let mut totals = [0, 1, 2].map(|k: usize| Wide::<S>::load(sums.0[k].as_ptr()));
        for (i, (g, x)) in grad.chunks_exact(G::ROW).zip(input.chunks_exact(X::ROW)).enumerate() {
            let (g, x) = (G::load::<S>(g.as_ptr()), X::load::<S>(x.as_ptr()));
            let y = offset.add_product(factor, x);
            let dy = y.zip(g, |y, g| S::if_positive(y, g, S::mul(slope, g)));
            totals[0] = totals[0].add(dy);
            totals[1] = totals[1].add_product(dy, center.add_product(inv_std, x));
            totals[2] = totals[2].add_product(g, y.map(|y| S::if_positive(y, zero, y)));
            if let Some(out) = &mut out {
                let act = y.map(|y| S::if_positive(y, y, S::mul(slope, y)));
                act.store(out.as_mut_ptr().add(i * PANEL));
            }
        }
        for (total, out) in totals.iter().zip(&mut sums.0) {
            total.store(out.as_mut_ptr());
        }
    }
}

/// The linear map of [`affine_backward`]: `dx = factor · dy − constant − linear · x`.
#[derive(Clone, Copy, Debug)]
pub struct AffineGradient {
    /// Subtracted from every row.
    pub constant: Columns,
    /// Times the input, subtracted.
    pub linear: Columns,
}

dispatch! {
    /// The gradient of the input of [`affine_forward`], times one factor a row, in place of the
    /// gradient of its output.
    pub fn affine_backward(
        map: &Affine, gradient: &AffineGradient, input: &[f32], row_scale: &[f32], grad: &mut [f32],
    ) = backward_kernel
}

dispatch_rounding! {
    /// [`affine_backward`] with the result in `words`, rounded to bfloat16.
    pub fn affine_backward16(
        map: &Affine, gradient: &AffineGradient, input: &[f32], row_scale: &[f32], grad: &[f32],
        words: &mut [f32],
    ) = backward16_kernel
}

dispatch_rounding! {
    /// [`affine_backward`] with input and gradients of bfloat16.
    pub fn affine_backward_words(
        map: &Affine, gradient: &AffineGradient, input: &[f32], row_scale: &[f32], words: &mut [f32],
    ) = backward_words_kernel
}

#[inline(always)]
unsafe fn backward_kernel<S: Simd>(
    map: &Affine,
    gradient: &AffineGradient,
    input: &[f32],
    row_scale: &[f32],
    grad: &mut [f32],
) {
    assert!(input.len() == grad.len() && row_scale.len() * PANEL == grad.len(), "affine: lengths");
    let (input, out) = (input.as_ptr(), grad.as_mut_ptr());
    // SAFETY: all have that many rows. A row of the gradient is read before it is overwritten.
    unsafe { backward_rows::<S, Floats, Floats>(map, gradient, input, row_scale, out, out) };
}

#[inline(always)]
unsafe fn backward16_kernel<S: Simd>(
    map: &Affine,
    gradient: &AffineGradient,
    input: &[f32],
    row_scale: &[f32],
    grad: &[f32],
    words: &mut [f32],
) {
    assert!(input.len() == grad.len() && row_scale.len() * PANEL == grad.len(), "affine: lengths");
    assert_eq!(grad.len(), words.len() * 2, "affine: lengths");
    let (input, grad, words) = (input.as_ptr(), grad.as_ptr(), words.as_mut_ptr());
    // SAFETY: all have that many rows.
    unsafe { backward_rows::<S, Floats, Words>(map, gradient, input, row_scale, grad, words) };
}

#[inline(always)]
unsafe fn backward_words_kernel<S: Simd>(
    map: &Affine,
    gradient: &AffineGradient,
    input: &[f32],
    row_scale: &[f32],
    words: &mut [f32],
) {
    assert!(
        input.len() == words.len() && row_scale.len() * WORDS == words.len(),
        "affine: lengths"
    );
    let (input, out) = (input.as_ptr(), words.as_mut_ptr());
    // SAFETY: all have that many rows. A row of the gradient is read before it is overwritten.
    unsafe { backward_rows::<S, Words, Words>(map, gradient, input, row_scale, out, out) };
}

/// From rows of `F` to rows of `G`.
///
/// # Safety
/// Behind the pointers there must be as many rows as factors in `row_scale`; `out` may be `grad`
/// if the rows are alike. The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn backward_rows<S: Simd, F: Stored, G: Stored>(
    map: &Affine,
    gradient: &AffineGradient,
    input: *const f32,
    row_scale: &[f32],
    grad: *const f32,
    out: *mut f32,
) {
    // SAFETY: columns hold PANEL floats each, and the caller promises the rows.
    unsafe {
        let (factor, offset) =
            (Wide::<S>::load(map.factor.as_ptr()), Wide::load(map.offset.as_ptr()));
        let constant = Wide::<S>::load(gradient.constant.as_ptr());
        let linear = Wide::<S>::load(gradient.linear.as_ptr());
        let slope = S::splat(map.slope);
        for (i, &scale) in row_scale.iter().enumerate() {
            let x = F::load::<S>(input.add(i * F::ROW));
            let g = F::load::<S>(grad.add(i * F::ROW));
            let y = offset.add_product(factor, x);
            let dy = y.zip(g, |y, g| S::if_positive(y, g, S::mul(slope, g)));
            let rest = constant.add_product(linear, x);
            let dx = factor.zip(dy, |a, b| S::mul(a, b)).zip(rest, |a, b| S::sub(a, b));
            let scale = S::splat(scale);
            G::store(dx.map(|v| S::mul(v, scale)), out.add(i * G::ROW));
        }
    }
}

dispatch! {
    /// `pre = cell + bias`, `cell = act(pre)` with slope below zero: a bias and activation on a block.
    pub fn bias_act(cell: &mut [f32], bias: &Columns, slope: f32, pre: &mut [f32]) = bias_act_kernel
}

dispatch_rounding! {
    /// [`bias_act`] with `pre` rounded to words.
    pub fn bias_act16(cell: &mut [f32], bias: &Columns, slope: f32, pre: &mut [f32]) = bias_act16_kernel
}

#[inline(always)]
unsafe fn bias_act_kernel<S: Simd>(cell: &mut [f32], bias: &Columns, slope: f32, pre: &mut [f32]) {
    // SAFETY: as promised by the caller.
    unsafe { bias_act_rows::<S, Floats>(cell, bias, slope, pre) };
}

#[inline(always)]
unsafe fn bias_act16_kernel<S: Simd>(
    cell: &mut [f32],
    bias: &Columns,
    slope: f32,
    pre: &mut [f32],
) {
    // SAFETY: as promised by the caller.
    unsafe { bias_act_rows::<S, Words>(cell, bias, slope, pre) };
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn bias_act_rows<S: Simd, P: Stored>(
    cell: &mut [f32],
    bias: &Columns,
    slope: f32,
    pre: &mut [f32],
) {
    assert_eq!(pre.len() / P::ROW, cell.len() / PANEL, "bias and activation: lengths");
    // SAFETY: rows and columns hold PANEL floats each, those of `pre` are of `P`.
    unsafe {
        let (bias, slope) = (Wide::<S>::load(bias.as_ptr()), S::splat(slope));
        for (cell, pre) in cell.chunks_exact_mut(PANEL).zip(pre.chunks_exact_mut(P::ROW)) {
            let y = Wide::<S>::load(cell.as_ptr()).add(bias);
            P::store(y, pre.as_mut_ptr());
            y.map(|y| S::if_positive(y, y, S::mul(slope, y))).store(cell.as_mut_ptr());
        }
    }
}

dispatch! {
    /// Turns the gradient of `act(pre)` into that of `pre`, in place, and adds `Σ grad` to `bias`
    /// and `Σ grad · min(pre, 0)` to `slopes`, column by column.
    pub fn act_backward(
        pre: Values<'_>, slope: f32, grad: &mut [f32], bias: &mut Columns, slopes: &mut Columns,
    ) = act_backward_kernel
}

#[inline(always)]
unsafe fn act_backward_kernel<S: Simd>(
    pre: Values<'_>,
    slope: f32,
    grad: &mut [f32],
    bias: &mut Columns,
    slopes: &mut Columns,
) {
    assert_eq!(pre.rows() * PANEL, grad.len(), "activation: lengths");
    // SAFETY: as promised by the caller.
    unsafe {
        match pre {
            Values::Floats(pre) => act_back_rows::<S, Floats>(pre, slope, grad, bias, slopes),
            Values::Words(pre) => act_back_rows::<S, Words>(pre, slope, grad, bias, slopes),
        }
    }
}

/// # Safety
/// The CPU must have the instructions of `S`.
#[inline(always)]
unsafe fn act_back_rows<S: Simd, P: Stored>(
    pre: &[f32],
    slope: f32,
    grad: &mut [f32],
    bias: &mut Columns,
    slopes: &mut Columns,
) {
    // SAFETY: rows and columns hold PANEL floats each, those of `pre` are of `P`.
    unsafe {
        let (slope, zero) = (S::splat(slope), S::splat(0.0));
        let (mut b, mut s) = (Wide::<S>::load(bias.as_ptr()), Wide::<S>::load(slopes.as_ptr()));
        for (y, grad) in pre.chunks_exact(P::ROW).zip(grad.chunks_exact_mut(PANEL)) {
            let (y, g) = (P::load::<S>(y.as_ptr()), Wide::load(grad.as_ptr()));
            s = s.add_product(g, y.map(|y| S::if_positive(y, zero, y)));
            let dy = y.zip(g, |y, g| S::if_positive(y, g, S::mul(slope, g)));
            b = b.add(dy);
            dy.store(grad.as_mut_ptr());
        }
        b.store(bias.as_mut_ptr());
        s.store(slopes.as_mut_ptr());
    }
}

dispatch! {
    /// `cell += bias`, row by row.
    pub fn add_bias(cell: &mut [f32], bias: &Columns) = add_bias_kernel
}

#[inline(always)]
unsafe fn add_bias_kernel<S: Simd>(cell: &mut [f32], bias: &Columns) {
    // SAFETY: rows and columns hold PANEL floats each.
    unsafe {
        let bias = Wide::<S>::load(bias.as_ptr());
        for row in cell.chunks_exact_mut(PANEL) {
            Wide::load(row.as_ptr()).add(bias).store(row.as_mut_ptr());
        }
    }
}

dispatch! {
    /// Adds the sum of a block's rows to `total`.
    pub fn add_column_sums(cell: &[f32], total: &mut Columns) = column_sums_kernel
}

#[inline(always)]
unsafe fn column_sums_kernel<S: Simd>(cell: &[f32], total: &mut Columns) {
    // SAFETY: rows and columns hold PANEL floats each.
    unsafe {
        let mut sum = Wide::<S>::load(total.as_ptr());
        for row in cell.chunks_exact(PANEL) {
            sum = sum.add(Wide::load(row.as_ptr()));
        }
        sum.store(total.as_mut_ptr());
    }
}

dispatch! {
    /// `cell[i] *= scale[i]`, row by row.
    pub fn scale_rows(cell: &mut [f32], scale: &[f32]) = scale_rows_kernel
}

#[inline(always)]
unsafe fn scale_rows_kernel<S: Simd>(cell: &mut [f32], scale: &[f32]) {
    assert_eq!(cell.len(), scale.len() * PANEL, "scale: one factor a row");
    for (row, &scale) in cell.chunks_exact_mut(PANEL).zip(scale) {
        // SAFETY: a row holds PANEL floats.
        unsafe { Wide::<S>::load(row.as_ptr()).store_scaled(scale, row.as_mut_ptr()) };
    }
}

dispatch! {
    /// `out = a + b`, element by element.
    pub fn add_into(a: &[f32], b: &[f32], out: &mut [f32]) = add_into_kernel
}

#[inline(always)]
unsafe fn add_into_kernel<S: Simd>(a: &[f32], b: &[f32], out: &mut [f32]) {
    for ((&a, &b), out) in a.iter().zip(b).zip(out) {
        *out = a + b;
    }
}

dispatch! {
    /// `total += part`, element by element.
    pub fn add_to(part: &[f32], total: &mut [f32]) = add_to_kernel
}

#[inline(always)]
unsafe fn add_to_kernel<S: Simd>(part: &[f32], total: &mut [f32]) {
    for (total, &part) in total.iter_mut().zip(part) {
        *total += part;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(n: usize, step: f32) -> Vec<f32> {
        (0..n * PANEL).map(|i| (i as f32 * step).sin() + 0.1).collect()
    }

    fn columns(f: impl Fn(usize) -> f32) -> Columns {
        std::array::from_fn(f)
    }

    #[test]
    fn moments_about_any_shift_agree_with_double_precision() {
        let cell = sample(300, 0.37);
        let shift = columns(|c| c as f32 * 0.01);
        let got = moments(Values::Floats(&cell), &shift);
        for c in 0..PANEL {
            let deviations = (0..300).map(|i| f64::from(cell[i * PANEL + c]) - f64::from(shift[c]));
            let sum: f64 = deviations.clone().sum();
            let squares: f64 = deviations.map(|d| d * d).sum();
            assert!((got.sum[c] - sum).abs() < 1e-3 && (got.squares[c] - squares).abs() < 1e-3);
        }
    }

    #[test]
    fn activation_and_its_gradient_agree_with_naive_code() {
        let bias = columns(|c| 0.3 - c as f32 * 0.02);
        let (before, given) = (sample(9, 0.71), sample(9, 0.53));
        for rounded in [false, true] {
            let (mut out, mut grad) = (before.clone(), given.clone());
            let mut pre = vec![0.0; if rounded { out.len() / 2 } else { out.len() }];
            let act = if rounded { bias_act16 } else { bias_act };
            act(&mut out, &bias, 0.25, &mut pre);
            let pre = if rounded { Values::Words(&pre) } else { Values::Floats(&pre) };
            let (mut sums, mut slopes) = ([0.0; PANEL], [0.0; PANEL]);
            act_backward(pre, 0.25, &mut grad, &mut sums, &mut slopes);
            let (mut want_sums, mut want_slopes) = ([0.0; PANEL], [0.0; PANEL]);
            for (i, &g) in given.iter().enumerate() {
                let y = before[i] + bias[i % PANEL];
                let (act, dy) = if y > 0.0 { (y, g) } else { (0.25 * y, 0.25 * g) };
                assert!((out[i] - act).abs() < 1e-6 && (grad[i] - dy).abs() < 1e-6);
                let kept = if rounded { crate::bf16::round(y) } else { y };
                want_sums[i % PANEL] += dy;
                want_slopes[i % PANEL] += g * kept.min(0.0);
            }
            for c in 0..PANEL {
                assert!((sums[c] - want_sums[c]).abs() < 1e-5);
                assert!((slopes[c] - want_slopes[c]).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn forward_with_sums_in_pieces_has_the_bits_of_both_alone() {
        let (grad, input) = (sample(96, 0.3), sample(96, 0.7));
        let (grad, input) = (Values::Floats(&grad), Values::Floats(&input));
        let (mut out, mut want) = (vec![0.0; 96 * PANEL], vec![0.0; 96 * PANEL]);
        let mut sums = ShortSums::default();
        for (piece, out) in out.chunks_exact_mut(32 * PANEL).enumerate() {
            let rows = 32 * piece..32 * (piece + 1);
            let (grad, input) = (grad.part(rows.clone()), input.part(rows));
            affine_forward_and_sums(&map(), grad, input, &mut sums, out);
        }
        affine_forward(&map(), input, &mut want);
        let (got, all) = (sums.widened(), affine_sums(&map(), grad, input));
        assert_eq!(out, want);
        assert_eq!([got.bias, got.weight, got.slope], [all.bias, all.weight, all.slope]);
    }

    fn map() -> Affine {
        Affine {
            factor: columns(|c| 0.5 + c as f32 * 0.01),
            offset: columns(|c| 0.2 - c as f32 * 0.02),
            inv_std: columns(|c| 1.0 + c as f32 * 0.03),
            center: columns(|c| c as f32 * 0.01 - 0.1),
            slope: 0.25,
        }
    }

    #[test]
    fn words_are_read_and_written_as_the_floats_they_stand_for() {
        let rows = 131;
        let [input, grad] = [0.37, 0.53].map(|step| {
            let rounded: Vec<f32> =
                sample(rows, step).into_iter().map(crate::bf16::round).collect();
            let mut words = vec![0.0; rows * WORDS];
            crate::bf16::pack_rows(&rounded, &mut words);
            (rounded, words)
        });
        let both = |pair: &'static str| match pair {
            "floats" => [Values::Floats(&input.0), Values::Floats(&grad.0)],
            _ => [Values::Words(&input.1), Values::Words(&grad.1)],
        };
        let shift = columns(|c| c as f32 * 0.01);
        let results = ["floats", "words"].map(|kind| {
            let [input, grad] = both(kind);
            let mut out = vec![0.0; rows * PANEL];
            affine_forward(&map(), input, &mut out);
            let (sums, moments) = (affine_sums(&map(), grad, input), moments(input, &shift));
            (out, format!("{sums:?} {moments:?}"))
        });
        assert_eq!(results[0], results[1]);
        let gradient =
            AffineGradient { constant: columns(|_| 0.1), linear: columns(|c| c as f32 * 0.01) };
        let scale: Vec<f32> = (0..rows).map(|i| 0.5 + i as f32 * 0.01).collect();
        let (mut from_floats, mut in_place) = (vec![0.0; rows * WORDS], grad.1.clone());
        affine_backward16(&map(), &gradient, &input.0, &scale, &grad.0, &mut from_floats);
        affine_backward_words(&map(), &gradient, &input.1, &scale, &mut in_place);
        let bits = |words: &[f32]| words.iter().map(|w| w.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&from_floats), bits(&in_place));
    }

    #[test]
    fn rows_are_scaled_and_summed() {
        let mut cell = vec![2.0; 3 * PANEL];
        scale_rows(&mut cell, &[1.0, 0.5, 2.0]);
        add_bias(&mut cell, &columns(|_| 1.0));
        let mut total = [0.0; PANEL];
        add_column_sums(&cell, &mut total);
        assert!(total.iter().all(|&t| t == 10.0));
    }
}
