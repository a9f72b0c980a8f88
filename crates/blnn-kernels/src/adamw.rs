//! The optimiser's step and the moving average of the weights, in one pass over memory.

use crate::simd::{Simd, dispatch};

/// The scalars of one AdamW step and one step of the moving average.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// Decay of the mean gradient.
    pub beta1: f32,
    /// Decay of the mean squared gradient.
    pub beta2: f32,
    /// `1 − learning rate · weight decay`
    pub shrink: f32,
    /// `learning rate / (1 − beta1ᵗ)`
    pub step_size: f32,
    /// `1 / √(1 − beta2ᵗ)`
    pub root_correction: f32,
    /// Added to the root of the mean squared gradient.
    pub epsilon: f32,
    /// Weight of the old value in the moving average.
    pub average_decay: f32,
}

/// One parameter's state, all slices of one length.
#[derive(Debug)]
pub struct AdamState<'a> {
    /// The parameter.
    pub value: &'a mut [f32],
    /// Its gradient.
    pub grad: &'a [f32],
    /// Mean gradient.
    pub first: &'a mut [f32],
    /// Mean squared gradient.
    pub second: &'a mut [f32],
    /// The moving average of the parameter; empty if there is none.
    pub average: &'a mut [f32],
}

dispatch! {
    /// AdamW with decoupled weight decay, then `average = decay · average + (1 − decay) · value`.
    ///
    /// # Panics
    /// If the slices differ in length.
    pub fn adamw(step: AdamStep, state: AdamState<'_>) = adamw_kernel
}

#[inline(always)]
unsafe fn adamw_kernel<S: Simd>(step: AdamStep, state: AdamState<'_>) {
    let n = state.value.len();
    let AdamState { value, grad, first, second, average } = state;
    assert!(grad.len() == n && first.len() == n && second.len() == n, "AdamW: lengths");
    for (((value, &grad), first), second) in value.iter_mut().zip(grad).zip(first).zip(second) {
        *first = step.beta1 * *first + (1.0 - step.beta1) * grad;
        *second = step.beta2 * *second + (1.0 - step.beta2) * grad * grad;
        let root = second.sqrt() * step.root_correction + step.epsilon;
        *value = step.shrink * *value - step.step_size * *first / root;
    }
    if !average.is_empty() {
        assert_eq!(average.len(), n, "moving average: lengths");
        for (average, &value) in average.iter_mut().zip(&*value) {
            *average = step.average_decay * *average + (1.0 - step.average_decay) * value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_step_moves_by_the_learning_rate_against_the_gradient() {
        let step = AdamStep {
            beta1: 0.9,
            beta2: 0.999,
            shrink: 1.0 - 0.01 * 0.1,
            step_size: 0.01 / (1.0 - 0.9),
            root_correction: 1.0 / (1.0f32 - 0.999).sqrt(),
            epsilon: 1e-8,
            average_decay: 0.75,
        };
        let (mut value, mut first, mut second) = ([1.0, -2.0], [0.0; 2], [0.0; 2]);
        let mut average = [4.0, 4.0];
        let grad = [0.5, -3.0];
        let state = AdamState {
            value: &mut value,
            grad: &grad,
            first: &mut first,
            second: &mut second,
            average: &mut average,
        };
        adamw(step, state);
        assert!((value[0] - (0.999 - 0.01)).abs() < 1e-6);
        assert!((value[1] - (-1.998 + 0.01)).abs() < 1e-6);
        assert!((average[0] - (3.0 + 0.25 * value[0])).abs() < 1e-6);
    }
}
