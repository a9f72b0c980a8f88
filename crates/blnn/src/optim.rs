//! `AdamW`, the learning-rate schedule and the moving average of the target network.

use std::f64::consts::PI;

use blnn_kernels::adamw::{AdamState, AdamStep, adamw};
use blnn_kernels::{Panels, Partition, SHARDS, Threads};

use crate::nn::{ParameterId, Parameters};
use crate::plan::Plan;

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// The learning rate of step `t` (from 0): linear warm-up from exactly 0, then a half cosine down
/// to 0 at the last step.
pub(crate) fn learning_rate(plan: &Plan, t: usize) -> f64 {
    let (warmup, total) = (plan.warmup_epochs, plan.epochs);
    if t < warmup {
        return plan.learning_rate * t as f64 / warmup as f64;
    }
    let progress = (t - warmup) as f64 / (total - warmup) as f64;
    plan.learning_rate * (1.0 + (PI * progress).cos()) / 2.0
}

/// The weight of the target's old value at step `t`: from `ema_start` to 1 along a half cosine.
pub(crate) fn ema_decay(plan: &Plan, t: usize) -> f64 {
    let progress = t as f64 / plan.epochs as f64;
    1.0 - (1.0 - plan.ema_start) * (1.0 + (PI * progress).cos()) / 2.0
}

/// A trained parameter with its optimiser state.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The parameter.
    pub(crate) parameter: ParameterId,
    /// The target network's copy, which follows as a moving average.
    pub(crate) average: Option<ParameterId>,
    /// Mean gradient.
    pub(crate) first: Panels,
    /// Mean squared gradient.
    pub(crate) second: Panels,
}

/// `AdamW` over all trained parameters (betas 0.9 and 0.999, epsilon 1e-8, weight decay on every
/// tensor), with the moving average in the same pass.
#[derive(Debug, Default)]
pub(crate) struct Optimizer {
    slots: Vec<Slot>,
}

impl Optimizer {
    /// Registers a parameter and the copy that follows it.
    pub(crate) fn add(
        &mut self,
        parameters: &Parameters,
        parameter: ParameterId,
        average: Option<ParameterId>,
    ) {
        let (rows, cols) = parameters.value(parameter).shape();
        let [first, second] = [(); 2].map(|()| Panels::zeros(rows, cols));
        self.slots.push(Slot { parameter, average, first, second });
    }

    /// All registered parameters.
    pub(crate) fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// All registered parameters, for writing.
    pub(crate) fn slots_mut(&mut self) -> &mut [Slot] {
        &mut self.slots
    }

    /// Step `t` (from 0) with the gradients in `parameters`.
    pub(crate) fn step(
        &mut self,
        plan: &Plan,
        t: usize,
        parameters: &mut Parameters,
        threads: &Threads,
    ) {
        let rate = learning_rate(plan, t);
        let corrected = |beta: f64| 1.0 - beta.powi(t as i32 + 1);
        let step = AdamStep {
            beta1: BETA1 as f32,
            beta2: BETA2 as f32,
            // In f32 the published decay of 1e-5 at rates below 1e-3 rounds to a factor of one, in
            // PyTorch as here: it has never had an effect.
            shrink: (1.0 - rate * plan.weight_decay) as f32,
            step_size: (rate / corrected(BETA1)) as f32,
            root_correction: (1.0 / corrected(BETA2).sqrt()) as f32,
            epsilon: EPSILON as f32,
            average_decay: ema_decay(plan, t) as f32,
        };
        for slot in &mut self.slots {
            slot.update(step, parameters, threads);
        }
    }
}

impl Slot {
    fn update(&mut self, step: AdamStep, parameters: &mut Parameters, threads: &Threads) {
        let (mut value, grad) = parameters.take(self.parameter);
        let mut average = self.average.map(|id| parameters.take(id));
        let partition = Partition::even(value.data().len());
        let mut values = partition.split_rows(value.data_mut());
        let mut firsts = partition.split_rows(self.first.data_mut());
        let mut seconds = partition.split_rows(self.second.data_mut());
        let mut averages = match &mut average {
            Some((average, _)) => partition.split_rows(average.data_mut()),
            None => std::array::from_fn(|_| &mut [][..]),
        };
        let mut shards: [_; SHARDS] = std::array::from_fn(|s| {
            [&mut values, &mut firsts, &mut seconds, &mut averages]
                .map(|all| std::mem::take(&mut all[s]))
        });
        threads.for_each_owned(&mut shards[..partition.shards()], |s, shard| {
            let [value, first, second, average] = shard;
            let grad = &grad.data()[partition.range(s)];
            adamw(step, AdamState { value, grad, first, second, average });
        });
        parameters.put(self.parameter, (value, grad));
        if let (Some(id), Some(pair)) = (self.average, average) {
            parameters.put(id, pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        Plan {
            learning_rate: 0.1,
            warmup_epochs: 10,
            epochs: 110,
            ema_start: 0.99,
            ..Plan::sample()
        }
    }

    #[test]
    fn learning_rate_starts_at_zero_peaks_after_warmup_and_ends_near_zero() {
        let plan = plan();
        assert_eq!(learning_rate(&plan, 0), 0.0);
        assert!((learning_rate(&plan, 5) - 0.05).abs() < 1e-12);
        assert!((learning_rate(&plan, 10) - 0.1).abs() < 1e-12);
        assert!((learning_rate(&plan, 60) - 0.05).abs() < 1e-12);
        assert!(learning_rate(&plan, 109) < 1e-4);
    }

    #[test]
    fn ema_decay_rises_from_its_start_to_one() {
        let plan = plan();
        assert!((ema_decay(&plan, 0) - 0.99).abs() < 1e-12);
        assert!((ema_decay(&plan, 55) - 0.995).abs() < 1e-12);
        assert!(ema_decay(&plan, 110) > 0.999_999);
    }
}
