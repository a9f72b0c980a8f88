//! [`BatchNorm`]: propagation over a view with batch normalisation and PReLU, as far as two
//! operations share it ([`super::Convolve`] and [`super::HiddenLayer`]).

use std::sync::Mutex;

use blnn_kernels::bf16::{AnyPanels, Panels16, Values, View16};
use blnn_kernels::gather::{
    gather_cell, gather_round16, gather_strip_round16, gather_strip16, gather_sum, gather_sum16,
};
use blnn_kernels::norm::{
    Affine, AffineGradient, AffineSums, Columns, Moments, affine_backward, affine_backward_words,
    affine_backward16, moments,
};
use blnn_kernels::{Cell, PANEL, Panels, SHARDS};

use super::{BufferShape, ParameterId, Run, Var};
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

/// The parameters of one normalised layer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerParameters {
    /// γ
    pub(crate) weight: ParameterId,
    /// β
    pub(crate) bias: ParameterId,
    /// The PReLU's slope.
    pub(crate) slope: ParameterId,
}

/// What U is, and how it is stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// U is the projection of the attributes: its gradient is scaled for [`super::Inputs`].
    pub(crate) from_inputs: bool,
    /// U is stored as bfloat16, and if it is the projection of the attributes, so are its gradient
    /// and C with its own: they are the widest matrices that pass through memory.
    pub(crate) narrow: bool,
}

impl Source {
    /// Whether C is stored as bfloat16.
    pub(crate) fn narrow_propagated(self) -> bool {
        self.from_inputs && self.narrow
    }
}

/// The gradient of H, to be turned into that of C.
pub(super) enum Upstream<'a> {
    Floats(&'a mut Panels),
    /// Where C is stored as bfloat16.
    Words(&'a mut Panels16),
}

/// `H = PReLU(BatchNorm(C))`, `C = D (A + I) U` for one view: its parameters, and what the
/// forward pass leaves for the backward pass.
///
/// U holds projected rows already multiplied by `1/√d`; the bias of the convolution is left out,
/// because batch normalisation takes it away again.
///
/// Shapes: U, C, H n×h; weight (γ) and bias (β) 1×h; slope 1×1.
pub(super) struct BatchNorm {
    layer: LayerParameters,
    view: usize,
    normalization: Normalization,
    source: Source,
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

impl BatchNorm {
    pub(super) fn new(
        layer: LayerParameters,
        view: usize,
        normalization: Normalization,
        source: Source,
    ) -> Self {
        Self {
            layer,
            view,
            normalization,
            source,
            statistics: ColumnStatistics::default(),
            maps: Vec::new(),
            moments: Vec::new(),
            sums: Vec::new(),
            gradients: Vec::new(),
            row_scale: Vec::new(),
            weight_grad: Vec::new(),
            bias_grad: Vec::new(),
        }
    }

    /// The view that is propagated over.
    pub(super) fn view(&self) -> usize {
        self.view
    }

    /// The map from C to H, a panel each.
    pub(super) fn maps(&self) -> &[Affine] {
        &self.maps
    }

    /// C as it is stored.
    pub(super) fn stored<'a>(&self, propagated: &'a Panels, rows: usize) -> AnyPanels<'a> {
        if self.source.narrow_propagated() {
            AnyPanels::Words(View16::new(propagated, rows))
        } else {
            AnyPanels::Floats(propagated)
        }
    }

    /// Computes C in its buffer, and from its columns the map to H.
    pub(super) fn propagate(&mut self, run: &mut Run<'_>, input: Var, out: &mut Panels) {
        let (rows, cols) = (run.views.view(self.view).incoming().rows(), out.cols());
        if self.source.narrow_propagated() {
            let mut words = Panels16::in_buffer(std::mem::take(out), rows);
            self.gather_words(run, input, &mut words);
            *out = words.into_buffer();
        } else {
            self.gather(run, input, out);
        }
        if let Normalization::Batch { running } = self.normalization {
            self.statistics.merge(cols, &self.moments);
            if let Some(layer) = running {
                run.running[layer].update(&self.statistics, rows);
            }
        }
        self.prepare_maps(run, cols);
        run.clock.mark("gather");
    }

    /// Gathers, and takes the moments of each cell while it is in the cache.
    fn gather(&mut self, run: &Run<'_>, input: Var, out: &mut Panels) {
        let input = run.memory.value(input);
        let view = run.views.view(self.view);
        let words = self.source.narrow.then(|| View16::new(input, view.incoming().cols()));
        self.moments.resize_with(input.panels() * SHARDS, Mutex::default);
        let (list, scale) = (view.incoming(), view.scale());
        if let Some(words) = words {
            run.threads.for_each_strip(list.partition(), [out], |strip, [mut out]| {
                gather_strip16(list, &strip, words, scale, out.each_mut().map(|out| &mut **out));
                for (cell, out) in strip.cells().zip(out) {
                    self.take_moments(&cell, Values::Floats(out));
                }
            });
        } else {
            run.threads.for_each_cell(list.partition(), [out], |cell, [out]| {
                gather_cell(list, &cell, input, scale, out);
                self.take_moments(&cell, Values::Floats(out));
            });
        }
    }

    /// [`Self::gather`] with sums that are rounded to bfloat16.
    fn gather_words(&mut self, run: &Run<'_>, input: Var, out: &mut Panels16) {
        let input = run.memory.value(input);
        let view = run.views.view(self.view);
        let words = View16::new(input, view.incoming().cols());
        self.moments.resize_with(input.panels() * SHARDS, Mutex::default);
        let (list, scale) = (view.incoming(), view.scale());
        run.threads.for_each_strip16(list.partition(), [out], |strip, [mut out]| {
            gather_strip_round16(list, &strip, words, scale, out.each_mut().map(|out| &mut **out));
            for (cell, out) in strip.cells().zip(out) {
                self.take_moments(&cell, Values::Words(out));
            }
        });
    }

    fn take_moments(&self, cell: &Cell, values: Values<'_>) {
        let batch = matches!(self.normalization, Normalization::Batch { .. });
        if batch && values.rows() > 0 {
            let shift = values.row(0);
            let part =
                CellMoments { rows: cell.rows.len(), shift, moments: moments(values, &shift) };
            *lock(&self.moments[cell.panel * SHARDS + cell.shard]) = part;
        }
    }

    fn prepare_maps(&mut self, run: &Run<'_>, cols: usize) {
        if let Normalization::Fixed(running, kind) = &self.normalization {
            let widen = |v: &[f32]| v.iter().map(|&x| f64::from(x)).collect();
            self.statistics = ColumnStatistics {
                mean: widen(&running.mean[kind.index()]),
                variance: widen(&running.variance[kind.index()]),
            };
        }
        let LayerParameters { weight, bias, slope } = self.layer;
        let [weight, bias, slope] = [weight, bias, slope].map(|id| run.parameters.value(id));
        let statistics = &self.statistics;
        self.maps.clear();
        self.maps.extend((0..cols.div_ceil(PANEL)).map(|p| {
            affine(statistics, weight.row_of(p, 0), bias.row_of(p, 0), slope.get(0, 0), p)
        }));
    }

    /// Makes room for the sums of all panels and shards, all zero.
    pub(super) fn clear_sums(&mut self) {
        self.sums.resize_with(self.maps.len() * SHARDS, Mutex::default);
        for sums in &self.sums {
            *lock(sums) = AffineSums::default();
        }
    }

    /// Adds to the sums of a panel and shard. Calls for one shard must come in a fixed order.
    pub(super) fn add_sums(&self, panel: usize, shard: usize, part: &AffineSums) {
        lock(&self.sums[panel * SHARDS + shard]).add(part);
    }

    /// Turns the gradient of H into that of U: the gradients of γ, β and the slope from the sums,
    /// then that of C, then along the edges back.
    pub(super) fn backward(
        &mut self,
        run: &mut Run<'_>,
        propagated: Var,
        grad: Upstream<'_>,
        input: Var,
    ) {
        let view = run.views.view(self.view);
        self.finish_sums(run, view.scale().len());
        if self.source.from_inputs {
            let factors = view.scale().iter().zip(run.inputs.row_scale()).map(|(a, b)| a * b);
            self.row_scale.clear();
            self.row_scale.extend(factors);
        }
        let mut input_grad = run.memory.take_grad(input);
        match grad {
            Upstream::Floats(grad) if self.source.narrow => {
                self.propagate_back16(run, propagated, grad, &mut input_grad);
            }
            Upstream::Floats(grad) => self.propagate_back(run, propagated, grad, &mut input_grad),
            Upstream::Words(grad) => {
                input_grad = self.propagate_words_back(run, propagated, grad, input_grad);
            }
        }
        run.memory.put_grad(input, input_grad);
        run.clock.mark("gather");
    }

    /// The buffers that [`Self::backward`] borrows for a gradient of this shape.
    pub(super) fn borrowed_by_backward(&self, (rows, cols): BufferShape) -> Vec<BufferShape> {
        let rounds = self.source.narrow && !self.source.narrow_propagated();
        if rounds { vec![Panels16::buffer_shape(rows, cols)] } else { vec![] }
    }

    /// The gradient of C in place of that of H, and along the edges back.
    fn propagate_back(
        &self,
        run: &mut Run<'_>,
        propagated: Var,
        grad: &mut Panels,
        input_grad: &mut Panels,
    ) {
        let view = run.views.view(self.view);
        let propagated = run.memory.value(propagated);
        run.threads.for_each_cell(view.incoming().partition(), [grad], |cell, [grad]| {
            let (map, gradient) = (&self.maps[cell.panel], &self.gradients[cell.panel]);
            let scale = &view.scale()[cell.rows.clone()];
            affine_backward(map, gradient, propagated.cell(&cell), scale, grad);
        });
        run.clock.mark("normalise");
        gather_sum(view.outgoing(), grad, self.back_scale(run), input_grad, run.threads);
    }

    /// The same with a gradient of C that is stored as bfloat16, to be gathered.
    fn propagate_back16(
        &self,
        run: &mut Run<'_>,
        propagated: Var,
        grad: &Panels,
        input_grad: &mut Panels,
    ) {
        let (rows, cols) = Panels16::buffer_shape(grad.rows(), grad.cols());
        let mut words = Panels16::in_buffer(run.memory.scratch(rows, cols), grad.rows());
        let view = run.views.view(self.view);
        let inputs = run.memory.value(propagated);
        let partition = view.incoming().partition();
        run.threads.for_each_cell16(partition, [&mut words], |cell, [words]| {
            let (map, gradient) = (&self.maps[cell.panel], &self.gradients[cell.panel]);
            let scale = &view.scale()[cell.rows.clone()];
            affine_backward16(map, gradient, inputs.cell(&cell), scale, grad.cell(&cell), words);
        });
        run.clock.mark("normalise");
        let scale = self.back_scale(run);
        gather_sum16(view.outgoing(), words.view(), scale, input_grad, run.threads);
        run.memory.release(words.into_buffer());
    }

    /// The same where everything is stored as bfloat16. Takes and gives back the buffer of the
    /// gradient of U.
    fn propagate_words_back(
        &self,
        run: &mut Run<'_>,
        propagated: Var,
        grad: &mut Panels16,
        input_grad: Panels,
    ) -> Panels {
        let view = run.views.view(self.view);
        let rows = grad.rows();
        let inputs = View16::new(run.memory.value(propagated), rows);
        run.threads.for_each_cell16(view.incoming().partition(), [&mut *grad], |cell, [words]| {
            let (map, gradient) = (&self.maps[cell.panel], &self.gradients[cell.panel]);
            let scale = &view.scale()[cell.rows.clone()];
            affine_backward_words(map, gradient, inputs.cell(&cell), scale, words);
        });
        run.clock.mark("normalise");
        let mut narrow = Panels16::in_buffer(input_grad, rows);
        let scale = self.back_scale(run);
        gather_round16(view.outgoing(), grad.view(), scale, &mut narrow, run.threads);
        narrow.into_buffer()
    }

    /// The factors of the rows of the gradient of U.
    fn back_scale<'a>(&'a self, run: &Run<'a>) -> &'a [f32] {
        if self.source.from_inputs { &self.row_scale } else { run.views.view(self.view).scale() }
    }

    /// The gradients of γ, β and the slope, and the map that turns the gradient of H into that
    /// of C.
    fn finish_sums(&mut self, run: &mut Run<'_>, rows: usize) {
        self.gradients.clear();
        self.weight_grad.clear();
        self.bias_grad.clear();
        let mut slope = 0.0;
        for (map, shards) in self.maps.iter().zip(self.sums.chunks_exact(SHARDS)) {
            let mut total = AffineSums::default();
            for shard in shards {
                total.add(&lock(shard));
            }
            slope += total.slope.iter().sum::<f64>();
            self.gradients.push(input_gradient(map, &total, rows));
            self.weight_grad.extend(total.weight);
            self.bias_grad.extend(total.bias);
        }
        run.parameters.add_grad(self.layer.weight, self.weight_grad.iter().copied());
        run.parameters.add_grad(self.layer.bias, self.bias_grad.iter().copied());
        run.parameters.add_grad(self.layer.slope, std::iter::once(slope));
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
