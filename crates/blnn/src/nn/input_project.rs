//! [`InputProject`]: the product of the node attributes with the first weights.

use blnn_kernels::bf16::{Panels16, View16, add_words};
use blnn_kernels::masked::MaskedInputs;
use blnn_kernels::mixed::{Arithmetic, Operand, TiledInputs, TiledWeights};
use blnn_kernels::norm::{add_into, add_to};
use blnn_kernels::product::{Store, product_all, transposed_product_all};
use blnn_kernels::{PANEL, Panels, Partition, Threads};

use super::{BufferShape, Gradient, Inputs, Memory, Op, ParameterId, Ports, Run, Stage, Var};
use crate::sizes::Products;

/// `U_v = D_v (X∘m_v) W` for both views `v`: the first layer's weights applied to the masked
/// attributes. As everywhere, a projected matrix is stored with row `i` multiplied by the view's
/// `1/√d_i`, ready to be gathered.
///
/// Shapes: X n×F, W F×h, `U_v` n×h. Its gradients arrive without that factor but multiplied by
/// [`Inputs::row_scale`].
#[derive(Debug)]
pub(crate) struct InputProject {
    /// W
    weight: ParameterId,
    /// U of both views.
    outputs: [Var; 2],
    /// Which views pass a gradient back.
    gradient: [bool; 2],
    /// U and its gradient are stored as bfloat16, and so are the weights that are gathered.
    narrow: bool,
    /// What the attributes are multiplied by on tiles: W under the masks.
    tiled_weights: TiledWeights,
    /// … and a gradient of U.
    gradient_operand: Operand,
}

impl Op for InputProject {
    fn ports(&self) -> Ports {
        let gradient =
            if self.gradient.contains(&true) { Gradient::Backward } else { Gradient::None };
        let writes = self.outputs.to_vec();
        Ports { reads: vec![], writes, keeps: vec![], in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let outputs = self.outputs.map(|v| run.memory.take_value(v));
        let outputs = match run.inputs {
            Inputs::Tiled(x) => self.project_tiles(run, x, outputs),
            _ if self.narrow => self.project16(run, outputs),
            _ => self.project(run, outputs),
        };
        for (var, output) in self.outputs.into_iter().zip(outputs) {
            run.memory.put_value(var, output);
        }
        run.clock.mark("inputs");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let both = self.sum_of_gradients(run);
        match run.inputs {
            Inputs::Sparse(inputs) => self.sparse_gradient(run, inputs, both.as_ref()),
            Inputs::Dense { x, .. } => self.dense_gradient(run, x),
            Inputs::Tiled(x) => self.tiled_gradient(run, x, both.as_ref()),
        }
        if let Some(both) = both {
            run.memory.release(both);
        }
        run.clock.mark("inputs");
    }

    fn borrows(&self, stage: &Stage<'_>) -> [Vec<BufferShape>; 2] {
        let (features, nodes) = (stage.features, stage.nodes);
        let cols = stage.value(self.outputs[0]).1;
        let weight = (features, cols);
        let wide = |count: usize| if self.narrow { vec![(nodes, cols); count] } else { vec![] };
        let predicting = self.gradient.iter().filter(|&&g| g).count();
        let both = (predicting == 2).then(|| stage.grad(self.outputs[0]));
        match stage.products {
            Products::Tiled => {
                let share = (features.next_multiple_of(PANEL), cols);
                [vec![], both.into_iter().chain([share]).collect()]
            }
            Products::Dense => {
                [[wide(2), vec![weight]].concat(), [vec![weight], wide(predicting)].concat()]
            }
            Products::Sparse => {
                let rounded = self.narrow.then(|| Panels16::buffer_shape(features, cols));
                [rounded.into_iter().collect(), both.into_iter().collect()]
            }
        }
    }
}

impl InputProject {
    /// The operation for the weights `weight`, from which U of both views goes to `outputs`.
    pub(crate) fn new(
        weight: ParameterId,
        outputs: [Var; 2],
        gradient: [bool; 2],
        arithmetic: Arithmetic,
    ) -> Self {
        let (tiled_weights, gradient_operand) = (TiledWeights::default(), Operand::new(arithmetic));
        let narrow = arithmetic.is_bf16();
        Self { weight, outputs, gradient, narrow, tiled_weights, gradient_operand }
    }

    /// Fills and gives back the buffers of U of both views.
    fn project(&self, run: &mut Run<'_>, [mut first, mut second]: [Panels; 2]) -> [Panels; 2] {
        let weight = run.parameters.value(self.weight);
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
            Inputs::Tiled(_) => unreachable!("tiles have products of their own"),
        }
        [first, second]
    }

    /// [`Self::project`] on tiles, with U as bfloat16.
    fn project_tiles(
        &mut self,
        run: &mut Run<'_>,
        x: &TiledInputs,
        outputs: [Panels; 2],
    ) -> [Panels; 2] {
        let weight = run.parameters.value(self.weight);
        x.prepare_weights(weight, &mut self.tiled_weights, run.threads);
        let scale = [0, 1].map(|v| run.views.view(v).scale());
        let mut words = outputs.map(|buffer| Panels16::in_buffer(buffer, x.row_scale().len()));
        let [first, second] = &mut words;
        x.product16(&self.tiled_weights, scale, [first, second], run.threads);
        words.map(Panels16::into_buffer)
    }

    /// [`Self::project`] with U as bfloat16. Attributes stored in full are multiplied as `f32`.
    fn project16(&self, run: &mut Run<'_>, outputs: [Panels; 2]) -> [Panels; 2] {
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let nodes = run.inputs.row_scale().len();
        if let Inputs::Dense { .. } = run.inputs {
            let floats = [(); 2].map(|()| run.memory.scratch(nodes, cols));
            let floats = self.project(run, floats);
            let mut outputs = outputs.into_iter();
            return floats.map(|u| {
                let buffer = outputs.next().expect("a buffer for each view");
                let mut words = Panels16::in_buffer(buffer, nodes);
                words.round_from(&u, run.threads);
                run.memory.release(u);
                words.into_buffer()
            });
        }
        let (buffer_rows, _) = Panels16::buffer_shape(rows, cols);
        let mut weight = Panels16::in_buffer(run.memory.scratch(buffer_rows, cols), rows);
        weight.round_from(run.parameters.value(self.weight), run.threads);
        let scale = [0, 1].map(|v| run.views.view(v).scale());
        let mut words = outputs.map(|buffer| Panels16::in_buffer(buffer, nodes));
        if let Inputs::Sparse(inputs) = run.inputs {
            let [first, second] = &mut words;
            inputs.product16(weight.view(), scale, [first, second], run.threads);
        }
        run.memory.release(weight.into_buffer());
        words.map(Panels16::into_buffer)
    }

    /// The gradients of both views, where there are any.
    fn grads<'a>(&self, memory: &'a Memory) -> [Option<&'a Panels>; 2] {
        [0, 1].map(|v| self.gradient[v].then(|| memory.grad(self.outputs[v])))
    }

    fn sparse_gradient(&self, run: &mut Run<'_>, inputs: &MaskedInputs, both: Option<&Panels>) {
        let grads = self.grads(run.memory);
        let sources = [both.or(grads[0]).or(grads[1]), grads[0], grads[1]];
        let threads = run.threads;
        run.parameters.write_grad(self.weight, |out, _| {
            if self.narrow {
                let view = |g: Option<_>| g.map(|g| View16::new(g, inputs.rows()));
                inputs.gradient16(sources.map(view), out, threads);
            } else {
                inputs.gradient(sources, out, threads);
            }
        });
    }

    fn dense_gradient(&self, run: &mut Run<'_>, x: &Panels) {
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let mut share = run.memory.scratch(rows, cols);
        let wide = self.narrow.then(|| {
            [0, 1].map(|v| {
                self.gradient[v].then(|| {
                    let mut wide = run.memory.scratch(x.rows(), cols);
                    let grad = run.memory.grad(self.outputs[v]);
                    View16::new(grad, x.rows()).widen_into(&mut wide, run.threads);
                    wide
                })
            })
        });
        let (views, threads) = (run.views, run.threads);
        let grads = match &wide {
            Some(wide) => wide.each_ref().map(Option::as_ref),
            None => self.grads(run.memory),
        };
        run.parameters.write_grad(self.weight, |out, _| {
            let given = grads.into_iter().enumerate().filter_map(|(v, grad)| Some((v, grad?)));
            for (nth, (v, grad)) in given.enumerate() {
                transposed_product_all(x, grad, &mut share, Store::Overwrite, threads);
                add_kept(&share, views.view(v).keep_features(), nth == 0, out, threads);
            }
        });
        let wide = wide.into_iter().flatten().flatten();
        wide.chain([share]).for_each(|buffer| run.memory.release(buffer));
    }

    fn tiled_gradient(&mut self, run: &mut Run<'_>, x: &TiledInputs, both: Option<&Panels>) {
        let (rows, cols) = run.parameters.value(self.weight).shape();
        let mut share = run.memory.scratch(rows.next_multiple_of(PANEL), cols);
        let grads = self.grads(run.memory);
        let (operand, threads) = (&mut self.gradient_operand, run.threads);
        let nodes = x.row_scale().len();
        let prepare = |operand: &mut Operand, grad| {
            operand.prepare_words(View16::new(grad, nodes), threads);
        };
        run.parameters.write_grad(self.weight, |out, _| {
            if let Some(grad) = both.or(grads[0]).or(grads[1]) {
                prepare(operand, grad);
                x.gradient_of_both(operand, out, threads);
            }
            for (v, grad) in grads.into_iter().enumerate() {
                if let Some(grad) = grad {
                    prepare(operand, grad);
                    x.gradient_of_one(v, operand, &mut share, out, threads);
                }
            }
        });
        run.memory.release(share);
    }

    /// The sum of both views' gradients, where it is multiplied by the attributes that both keep.
    fn sum_of_gradients(&self, run: &mut Run<'_>) -> Option<Panels> {
        if self.gradient != [true, true] || matches!(run.inputs, Inputs::Dense { .. }) {
            return None;
        }
        let (rows, cols) = run.memory.grad(self.outputs[0]).shape();
        let mut both = run.memory.scratch(rows, cols);
        let [a, b] = self.outputs.map(|v| run.memory.grad(v));
        let partition = Partition::even(rows);
        if self.narrow {
            let nodes = run.inputs.row_scale().len();
            let [a, b] = [a, b].map(|g| View16::new(g, nodes));
            let mut words = Panels16::in_buffer(both, nodes);
            let partition = Partition::even(nodes);
            run.threads.for_each_cell16(&partition, [&mut words], |cell, [out]| {
                add_words(a.cell(&cell), b.cell(&cell), out);
            });
            return Some(words.into_buffer());
        }
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
        let rows = matrix.panel_mut(p).chunks_exact_mut(PANEL);
        rows.zip(keep).filter(|(_, keep)| !**keep).for_each(|(row, _)| row.fill(0.0));
    }
}

/// `out = m ∘ share` for the mask of a view, or `+=` if there is something already.
fn add_kept(share: &Panels, keep: &[bool], fresh: bool, out: &mut Panels, threads: &Threads) {
    threads.for_each_cell(&Partition::even(out.rows()), [out], |cell, [out]| {
        if fresh {
            out.fill(0.0);
        }
        let rows = share.cell(&cell).chunks_exact(PANEL).zip(out.chunks_exact_mut(PANEL));
        let kept = rows.zip(&keep[cell.rows.clone()]).filter(|(_, keep)| **keep);
        kept.for_each(|((share, out), _)| add_to(share, out));
    });
}
