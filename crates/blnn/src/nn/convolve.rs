//! [`Convolve`]: propagation over a view, batch normalisation and `PReLU` as one operation.

use std::sync::Mutex;

use blnn_kernels::gather::{gather_cell, gather_sum};
use blnn_kernels::norm::{
    Affine, AffineGradient, AffineSums, Columns, Moments, affine_backward, affine_forward,
    affine_in_place, affine_sums, moments,
};
use blnn_kernels::{PANEL, Panels, SHARDS};

use super::{Gradient, Op, ParameterId, Ports, Run, Var};
use crate::plan::Statistics;

/// PyTorch's constant under the root of the variance.
const EPSILON: f64 = 1e-5;

/// Mean and variance of a layer's columns for use after training, under both momenta.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunningStatistics {
    /// One mean a column, for [`Statistics::LastView`] and [`Statistics::Averaged`].
    pub(crate) mean: [Vec<f32>; 2],
    /// One variance a column, likewise.
    pub(crate) variance: [Vec<f32>; 2],
}

impl RunningStatistics {
    /// Mean 0 and variance 1.
    pub(crate) fn new(cols: usize) -> Self {
        let both = |value| [vec![value; cols], vec![value; cols]];
        Self { mean: both(0.0), variance: both(1.0) }
    }

    /// `running ← (1 − m) running + m batch`, the variance being the unbiased one.
    fn update(&mut self, batch: &ColumnStatistics, rows: usize) {
        let unbias = rows as f64 / (rows.max(2) - 1) as f64;
        for kind in [Statistics::LastView, Statistics::Averaged] {
            let m = kind.momentum();
            let blend = |old: &mut f32, new: f64| {
                *old = ((1.0 - m) * f64::from(*old) + m * new) as f32;
            };
            let k = kind.index();
            self.mean[k].iter_mut().zip(&batch.mean).for_each(|(o, &n)| blend(o, n));
            let variances = self.variance[k].iter_mut().zip(&batch.variance);
            variances.for_each(|(o, &n)| blend(o, n * unbias));
        }
    }
}

/// Which statistics normalise the columns.
#[derive(Clone, Debug)]
pub(crate) enum Normalization {
    /// Those of the batch. With `running`, that layer's running statistics are updated.
    Batch {
        /// The layer whose running statistics are updated.
        running: Option<usize>,
    },
    /// The given ones: the encoder is used, not trained.
    Fixed(RunningStatistics, Statistics),
}

/// Mean and biased variance of every column.
#[derive(Clone, Debug, Default)]
struct ColumnStatistics {
    mean: Vec<f64>,
    variance: Vec<f64>,
}

/// `H = PReLU(BatchNorm(C))`, `C = D (A + I) U` for one view.
///
/// U holds projected rows already multiplied by `1/√d` (see [`super::Project`]); the bias of the
/// convolution is left out, because batch normalisation takes it away again.
///
/// Shapes: U, C, H n×h; weight (γ) and bias (β) 1×h; slope 1×1.
pub(crate) struct Convolve {
    /// U
    pub(crate) input: Var,
    /// C: kept for the backward pass.
    pub(crate) propagated: Var,
    /// H
    pub(crate) output: Var,
    /// γ
    pub(crate) weight: ParameterId,
    /// β
    pub(crate) bias: ParameterId,
    /// The `PReLU`'s slope.
    pub(crate) slope: ParameterId,
    /// The view that is propagated over.
    pub(crate) view: usize,
    /// What normalises the columns.
    pub(crate) normalization: Normalization,
    /// Whether a gradient is passed back.
    pub(crate) gradient: bool,
    /// The input is that of the attributes: its gradient is scaled for [`super::Inputs`].
    pub(crate) from_inputs: bool,
    state: State,
}

/// Buffers of one convolution, sized at its first run.
#[derive(Default)]
struct State {
    statistics: ColumnStatistics,
    maps: Vec<Affine>,
    moments: Vec<Mutex<CellMoments>>,
    sums: Vec<Mutex<AffineSums>>,
    gradients: Vec<AffineGradient>,
    row_scale: Vec<f32>,
    weight_grad: Vec<f64>,
    bias_grad: Vec<f64>,
}

#[derive(Clone, Copy, Default)]
struct CellMoments {
    rows: usize,
    shift: Columns,
    moments: Moments,
}

impl std::fmt::Debug for Convolve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Convolve(view {})", self.view)
    }
}

/// The parameters of one normalised layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerParameters {
    /// γ
    pub(crate) weight: ParameterId,
    /// β
    pub(crate) bias: ParameterId,
    /// The `PReLU`'s slope.
    pub(crate) slope: ParameterId,
}

impl Convolve {
    /// The operation from `[input, propagated, output]`.
    pub(crate) fn new(
        [input, propagated, output]: [Var; 3],
        layer: LayerParameters,
        view: usize,
        normalization: Normalization,
        gradient: bool,
        from_inputs: bool,
    ) -> Self {
        let LayerParameters { weight, bias, slope } = layer;
        let state = State::default();
        Self {
            input,
            propagated,
            output,
            weight,
            bias,
            slope,
            view,
            normalization,
            gradient,
            from_inputs,
            state,
        }
    }

    /// Propagates, and takes the moments of each cell while it is in the cache.
    fn propagate(&mut self, run: &Run<'_>, out: &mut Panels) {
        let input = run.memory.value(self.input);
        let view = run.views.view(self.view);
        let batch = matches!(self.normalization, Normalization::Batch { .. });
        let cells = input.panels() * SHARDS;
        self.state.moments.resize_with(cells, Mutex::default);
        let moments_of = &self.state.moments;
        run.threads.for_each_cell(view.incoming().partition(), [out], |cell, [out]| {
            gather_cell(view.incoming(), &cell, input, view.scale(), out);
            if batch && !out.is_empty() {
                let shift: Columns = std::array::from_fn(|c| out[c]);
                let part =
                    CellMoments { rows: cell.rows.len(), shift, moments: moments(out, &shift) };
                *lock(&moments_of[cell.panel * SHARDS + cell.shard]) = part;
            }
        });
        if batch {
            self.state.statistics.merge(out.cols(), &self.state.moments);
        }
    }

    fn prepare_maps(&mut self, run: &Run<'_>, cols: usize) {
        if let Normalization::Fixed(running, kind) = &self.normalization {
            let widen = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect();
            self.state.statistics = ColumnStatistics {
                mean: widen(&running.mean[kind.index()]),
                variance: widen(&running.variance[kind.index()]),
            };
        }
        let [weight, bias, slope] =
            [self.weight, self.bias, self.slope].map(|id| run.parameters.value(id));
        let statistics = &self.state.statistics;
        self.state.maps.clear();
        self.state.maps.extend((0..cols.div_ceil(PANEL)).map(|p| {
            affine(statistics, weight.row_of(p, 0), bias.row_of(p, 0), slope.get(0, 0), p)
        }));
    }

    /// The gradients of γ, β and the slope, and the map that turns the gradient of H into that
    /// of C.
    fn finish_sums(&mut self, run: &mut Run<'_>, rows: usize, cols: usize) {
        let total = |p: usize| {
            let mut total = AffineSums::default();
            for part in &self.state.sums[p * SHARDS..(p + 1) * SHARDS] {
                let part = lock(part);
                for c in 0..PANEL {
                    total.bias[c] += part.bias[c];
                    total.weight[c] += part.weight[c];
                    total.slope[c] += part.slope[c];
                }
            }
            total
        };
        self.state.gradients.clear();
        let mut slope = 0.0;
        self.state.weight_grad.clear();
        self.state.bias_grad.clear();
        for p in 0..cols.div_ceil(PANEL) {
            let sums = total(p);
            slope += sums.slope.iter().sum::<f64>();
            self.state.gradients.push(input_gradient(&self.state.maps[p], &sums, rows));
            self.state.weight_grad.extend(sums.weight);
            self.state.bias_grad.extend(sums.bias);
        }
        run.parameters.add_grad(self.weight, self.state.weight_grad.iter().copied());
        run.parameters.add_grad(self.bias, self.state.bias_grad.iter().copied());
        run.parameters.add_grad(self.slope, std::iter::once(slope));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl ColumnStatistics {
    /// Combines the moments of all cells in a fixed order (Chan's formula).
    fn merge(&mut self, cols: usize, cells: &[Mutex<CellMoments>]) {
        self.mean.clear();
        self.variance.clear();
        for c in 0..cols {
            let (panel, lane) = (c / PANEL, c % PANEL);
            let (mut n, mut mean, mut squares) = (0.0, 0.0, 0.0);
            for cell in &cells[panel * SHARDS..(panel + 1) * SHARDS] {
                let cell = lock(cell);
                if cell.rows == 0 {
                    continue;
                }
                let rows = cell.rows as f64;
                let sum = cell.moments.sum[lane];
                let cell_mean = f64::from(cell.shift[lane]) + sum / rows;
                let cell_squares = cell.moments.squares[lane] - sum * sum / rows;
                let delta = cell_mean - mean;
                squares += cell_squares + delta * delta * n * rows / (n + rows);
                mean += delta * rows / (n + rows);
                n += rows;
            }
            self.mean.push(mean);
            self.variance.push((squares / n).max(0.0));
        }
    }
}

/// The map of panel `p`; padded columns map to zero.
fn affine(
    statistics: &ColumnStatistics,
    weight: &[f32],
    bias: &[f32],
    slope: f32,
    p: usize,
) -> Affine {
    let mut map = Affine {
        factor: [0.0; PANEL],
        offset: [0.0; PANEL],
        inv_std: [0.0; PANEL],
        center: [0.0; PANEL],
        slope,
    };
    let columns = p * PANEL..((p + 1) * PANEL).min(statistics.mean.len());
    for (lane, c) in columns.enumerate() {
        let inv_std = 1.0 / (statistics.variance[c] + EPSILON).sqrt();
        let factor = f64::from(weight[lane]) * inv_std;
        map.factor[lane] = factor as f32;
        map.offset[lane] = (f64::from(bias[lane]) - statistics.mean[c] * factor) as f32;
        map.inv_std[lane] = inv_std as f32;
        map.center[lane] = (-statistics.mean[c] * inv_std) as f32;
    }
    map
}

/// `dC = γ/σ (dy − Σdy/n − x̂ Σ(dy x̂)/n)`, written as a linear function of C.
fn input_gradient(map: &Affine, sums: &AffineSums, rows: usize) -> AffineGradient {
    let n = rows as f64;
    let mean = |sum: &[f64; PANEL], c: usize| f64::from(map.factor[c]) * sum[c] / n;
    AffineGradient {
        constant: std::array::from_fn(|c| {
            (mean(&sums.bias, c) + mean(&sums.weight, c) * f64::from(map.center[c])) as f32
        }),
        linear: std::array::from_fn(|c| (mean(&sums.weight, c) * f64::from(map.inv_std[c])) as f32),
    }
}

impl Op for Convolve {
    fn ports(&self) -> Ports {
        let (gradient, keeps) = if self.gradient {
            (Gradient::Backward, vec![self.propagated])
        } else {
            (Gradient::None, vec![])
        };
        let writes =
            if self.gradient { vec![self.propagated, self.output] } else { vec![self.output] };
        Ports { reads: vec![self.input], writes, keeps, in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut output = run.memory.take_value(self.output);
        let mut propagated = if self.gradient {
            run.memory.take_value(self.propagated)
        } else {
            std::mem::take(&mut output)
        };
        self.propagate(run, &mut propagated);
        run.clock.mark("gather");
        let cols = propagated.cols();
        if let Normalization::Batch { running: Some(layer) } = self.normalization {
            let rows = propagated.rows();
            run.running[layer].update(&self.state.statistics, rows);
        }
        self.prepare_maps(run, cols);
        let (maps, partition) =
            (&self.state.maps, run.views.view(self.view).incoming().partition());
        if self.gradient {
            let source = &propagated;
            run.threads.for_each_cell(partition, [&mut output], |cell, [out]| {
                affine_forward(&maps[cell.panel], source.cell(&cell), out);
            });
            run.memory.put_value(self.propagated, propagated);
            run.memory.put_value(self.output, output);
        } else {
            run.threads.for_each_cell(partition, [&mut propagated], |cell, [out]| {
                affine_in_place(&maps[cell.panel], out);
            });
            run.memory.put_value(self.output, propagated);
        }
        run.clock.mark("normalise");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let mut grad = run.memory.take_grad(self.output);
        let propagated = run.memory.value(self.propagated);
        let (rows, cols) = grad.shape();
        let view = run.views.view(self.view);
        let partition = view.incoming().partition();
        self.state.sums.resize_with(grad.panels() * SHARDS, Mutex::default);
        let (maps, sums) = (&self.state.maps, &self.state.sums);
        run.threads.for_each_cell(partition, [&mut grad], |cell, [grad]| {
            let part = affine_sums(&maps[cell.panel], grad, propagated.cell(&cell));
            *lock(&sums[cell.panel * SHARDS + cell.shard]) = part;
        });
        self.finish_sums(run, rows, cols);
        let propagated = run.memory.value(self.propagated);
        let (maps, gradients) = (&self.state.maps, &self.state.gradients);
        run.threads.for_each_cell(partition, [&mut grad], |cell, [grad]| {
            let (map, gradient) = (&maps[cell.panel], &gradients[cell.panel]);
            let scale = &view.scale()[cell.rows.clone()];
            affine_backward(map, gradient, propagated.cell(&cell), scale, grad);
        });
        run.clock.mark("normalise");
        let mut input_grad = run.memory.take_grad(self.input);
        let scale = if self.from_inputs {
            let factors = view.scale().iter().zip(run.inputs.row_scale()).map(|(a, b)| a * b);
            self.state.row_scale.clear();
            self.state.row_scale.extend(factors);
            &self.state.row_scale
        } else {
            view.scale()
        };
        gather_sum(view.outgoing(), &grad, scale, &mut input_grad, run.threads);
        run.memory.put_grad(self.input, input_grad);
        run.memory.put_grad(self.output, grad);
        run.clock.mark("gather");
    }
}
