//! `exp` for slices, the same bits on every platform (the system's own differs between them).

use crate::simd::{Simd, dispatch};

/// Above this the result overflows, below its negative it is zero for any use of ours.
const LIMIT: f32 = 87.0;

/// `eˣ` to about 1e-7 relative error for |x| ≤ 87; arguments beyond are clamped.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // x = n·ln 2 + r with |r| ≤ ln 2 / 2; adding 1.5·2²³ rounds x/ln 2 to the integer n.
    const ROUND: f32 = 12_582_912.0;
    let x = x.clamp(-LIMIT, LIMIT);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    // ln 2 in two parts, the first exact in few bits, so that r keeps its precision.
    let r = (x - n * 0.693_359_4) + n * 2.121_944_4e-4;
    let p = 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    let power = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32) + 127;
    p * f32::from_bits((power as u32) << 23)
}

dispatch! {
    /// `x = exp(factor · (x − shift))` for every value; returns their sum.
    pub(crate) fn exp_and_sum(values: &mut [f32], factor: f32, shift: f32) -> f32 = exp_and_sum_kernel
}

#[inline(always)]
unsafe fn exp_and_sum_kernel<S: Simd>(values: &mut [f32], factor: f32, shift: f32) -> f32 {
    for v in values.iter_mut() {
        *v = exp(factor * (*v - shift));
    }
    values.iter().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_accurate_over_its_range() {
        for i in -8700..=8700 {
            let x = i as f32 * 0.01;
            let want = f64::from(x).exp();
            assert!((f64::from(exp(x)) - want).abs() <= 4e-7 * want, "exp({x})");
        }
        assert_eq!(exp(0.0), 1.0);
        assert!(exp(-1000.0) < 1e-37);
    }

    #[test]
    fn sums_after_the_shift() {
        let mut v = [1.0, 2.0, 3.0];
        let sum = exp_and_sum(&mut v, 2.0, 3.0);
        assert!((v[1] - (-2.0f32).exp()).abs() < 1e-6);
        assert!((sum - ((-4.0f32).exp() + (-2.0f32).exp() + 1.0)).abs() < 1e-6);
    }
}
