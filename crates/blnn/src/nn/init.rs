//! Initial values of parameters, drawn from their own streams.

use blnn_kernels::{Matrix, Panels};

use crate::rng::{Draws, Stream};

/// `rows × cols` values from U(−bound, bound).
fn uniform(rows: usize, cols: usize, bound: f64, seed: u64, index: u32) -> Panels {
    let draws = Draws::new(seed, Stream::Parameter { index }, 0);
    let value = |i, j| {
        let unit = f64::from(draws.uniform(i * cols + j));
        (bound * (2.0 * unit - 1.0)) as f32
    };
    Panels::from_matrix(&Matrix::from_fn(rows, cols, value))
}

/// Glorot's uniform initialisation: bound √(6 / (inputs + outputs)).
pub(crate) fn glorot_uniform(inputs: usize, outputs: usize, seed: u64, index: u32) -> Panels {
    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
    uniform(inputs, outputs, bound, seed, index)
}

/// The default of PyTorch's linear layer, for weight and bias alike: bound 1/√inputs.
pub(crate) fn linear_default(
    rows: usize,
    cols: usize,
    inputs: usize,
    seed: u64,
    index: u32,
) -> Panels {
    uniform(rows, cols, 1.0 / (inputs as f64).sqrt(), seed, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fill_the_range_evenly() {
        let w = glorot_uniform(60, 40, 1, 0).to_matrix();
        let bound = 0.06f32.sqrt();
        let mean: f32 = w.data().iter().sum::<f32>() / 2400.0;
        let largest = w.data().iter().fold(0f32, |a, b| a.max(b.abs()));
        assert!(mean.abs() < 0.01 && largest <= bound && largest > 0.98 * bound);
        assert_ne!(w, glorot_uniform(60, 40, 1, 1).to_matrix());
    }
}
