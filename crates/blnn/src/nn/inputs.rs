//! [`Inputs`]: the node attributes, and [`InputProject`], their product with the first weights.

use blnn_kernels::masked::{KeptBy, MaskedInputs};
use blnn_kernels::norm::add_into;
use blnn_kernels::product::{Store, product_all, transposed_product_all};
use blnn_kernels::{Panels, Partition, Threads};

use super::{Gradient, Memory, Op, ParameterId, Ports, Run, Var};
use crate::augment::Views;
use crate::graph::Features;

/// The node attributes in the form the products need.
#[derive(Debug)]
pub(crate) enum Inputs {
    /// Stored as lists of columns, ordered anew for each pair of masks.
    Sparse(Box<MaskedInputs>),
    /// Stored in full; the masks go to rows of the weights.
    Dense {
        /// The attributes.
        x: Panels,
        /// One factor a node: all ones.
        ones: Vec<f32>,
    },
}

impl Inputs {
    /// Prepares the attributes of a graph.
    pub(crate) fn new(features: &Features, threads: &Threads) -> Self {
        match features {
            Features::Sparse(x) => Self::Sparse(Box::new(MaskedInputs::new(x, threads))),
            Features::Dense(x) => {
                Self::Dense { x: Panels::from_matrix(x), ones: vec![1.0; x.rows()] }
            }
        }
    }

    /// Takes over the column masks of both views.
    pub(crate) fn set_masks(&mut self, views: &Views, threads: &Threads) {
        if let Self::Sparse(inputs) = self {
            let [first, second] = [0, 1].map(|v| views.view(v).keep_features().iter());
            inputs.set_masks(first.zip(second).map(|(&a, &b)| KeptBy::new(a, b)), threads);
        }
    }

    /// The factor that a gradient's rows are multiplied by before they come here: the rows of
    /// sparse attributes whose values are all alike are stored as a factor and a pattern.
    pub(crate) fn row_scale(&self) -> &[f32] {
        match self {
            Self::Sparse(inputs) => inputs.row_scale(),
            Self::Dense { ones, .. } => ones,
        }
    }
}

/// `U_v = D_v (X∘m_v) W` for both views `v`: the first layer's weights applied to the masked
/// attributes. As everywhere, a projected matrix is stored with row `i` multiplied by the view's
/// `1/√d_i`, ready to be gathered.
///
/// Shapes: X n×F, W F×h, `U_v` n×h. Its gradients arrive without that factor but multiplied by
/// [`Inputs::row_scale`].
#[derive(Debug)]
pub(crate) struct InputProject {
    /// W
    pub(crate) weight: ParameterId,
    /// U of both views.
    pub(crate) outputs: [Var; 2],
    /// Which views pass a gradient back.
    pub(crate) gradient: [bool; 2],
}

impl Op for InputProject {
    fn ports(&self) -> Ports {
        let gradient =
            if self.gradient.contains(&true) { Gradient::Backward } else { Gradient::None };
        let writes = self.outputs.to_vec();
        Ports { reads: vec![], writes, keeps: vec![], in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let weight = run.parameters.value(self.weight);
        let [mut first, mut second] = self.outputs.map(|v| run.memory.take_value(v));
        let scale = [0, 1].map(|v| run.views.view(v).scale());
        match run.inputs {
            Inputs::Sparse(inputs) => {
                inputs.product(weight, scale, [&mut first, &mut second], run.threads);
            }
            Inputs::Dense { x, .. } => {
                for (v, out) in [&mut first, &mut second].into_iter().enumerate() {
                    let keep = run.views.view(v).keep_features();
                    let masked = masked_rows(weight, keep, run.memory);
                    product_all(x, &masked, Some(scale[v]), out, run.threads);
                    run.memory.release(masked);
                }
            }
        }
        run.memory.put_value(self.outputs[0], first);
        run.memory.put_value(self.outputs[1], second);
        run.clock.mark("inputs");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let both = self.sum_of_gradients(run);
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let dense = matches!(run.inputs, Inputs::Dense { .. });
        let mut share = dense.then(|| run.memory.scratch(rows, cols));
        let grads = [0, 1].map(|v| self.gradient[v].then(|| run.memory.grad(self.outputs[v])));
        let (inputs, views, threads) = (run.inputs, run.views, run.threads);
        match inputs {
            Inputs::Sparse(inputs) => run.parameters.write_grad(self.weight, |out, _| {
                let shared = both.as_ref().or(grads[0]).or(grads[1]);
                inputs.gradient([shared, grads[0], grads[1]], out, threads);
            }),
            Inputs::Dense { x, .. } => run.parameters.write_grad(self.weight, |out, _| {
                let share = share.as_mut().expect("a buffer for dense attributes");
                dense_gradient(x, grads, views, share, out, threads);
            }),
        }
        for buffer in [both, share].into_iter().flatten() {
            run.memory.release(buffer);
        }
        run.clock.mark("inputs");
    }
}

impl InputProject {
    /// The sum of both views' gradients, where sparse attributes need it.
    fn sum_of_gradients(&self, run: &mut Run<'_>) -> Option<Panels> {
        if self.gradient != [true, true] || matches!(run.inputs, Inputs::Dense { .. }) {
            return None;
        }
        let (rows, cols) = run.memory.grad(self.outputs[0]).shape();
        let mut both = run.memory.scratch(rows, cols);
        let [a, b] = self.outputs.map(|v| run.memory.grad(v));
        let partition = Partition::even(rows);
        run.threads.for_each_cell(&partition, [&mut both], |cell, [out]| {
            add_into(a.cell(&cell), b.cell(&cell), out);
        });
        Some(both)
    }
}

/// The weights with the rows of masked columns set to zero.
fn masked_rows(weight: &Panels, keep: &[bool], memory: &mut Memory) -> Panels {
    let mut masked = memory.scratch(weight.rows(), weight.cols());
    masked.data_mut().copy_from_slice(weight.data());
    clear_rows(&mut masked, keep);
    masked
}

fn clear_rows(matrix: &mut Panels, keep: &[bool]) {
    for p in 0..matrix.panels() {
        let rows = matrix.panel_mut(p).chunks_exact_mut(blnn_kernels::PANEL);
        rows.zip(keep).filter(|(_, keep)| !**keep).for_each(|(row, _)| row.fill(0.0));
    }
}

/// `Σ_v m_v ∘ (Xᵀ G_v)` for attributes stored in full.
fn dense_gradient(
    x: &Panels,
    grads: [Option<&Panels>; 2],
    views: &Views,
    share: &mut Panels,
    out: &mut Panels,
    threads: &Threads,
) {
    out.data_mut().fill(0.0);
    for (v, grad) in grads.iter().enumerate() {
        let Some(grad) = grad else { continue };
        transposed_product_all(x, grad, share, Store::Overwrite, threads);
        clear_rows(share, views.view(v).keep_features());
        out.data_mut().iter_mut().zip(share.data()).for_each(|(o, s)| *o += s);
    }
}
