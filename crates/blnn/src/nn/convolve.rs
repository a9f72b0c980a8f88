//! [`Convolve`]: the last graph convolution of an encoder, whose representations are kept.

use blnn_kernels::bf16::Values;
use blnn_kernels::norm::{affine_forward, affine_in_place, affine_sums};

use super::batch_norm::{BatchNorm, Upstream};
use super::{
    BufferShape, Gradient, LayerParameters, Normalization, Op, Ports, Run, Source, Stage, Var,
};

/// `H = PReLU(BatchNorm(C))`, `C = D (A + I) U` for one view (see [`BatchNorm`]).
///
/// Shapes: U, C, H n×d.
pub(crate) struct Convolve {
    /// U
    input: Var,
    /// C: kept for the backward pass. Without one, H takes its place.
    propagated: Var,
    /// H
    output: Var,
    norm: BatchNorm,
    gradient: bool,
}

impl std::fmt::Debug for Convolve {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Convolve(view {})", self.norm.view())
    }
}

impl Convolve {
    /// The operation from `[U, C, H]`.
    pub(crate) fn new(
        [input, propagated, output]: [Var; 3],
        layer: LayerParameters,
        view: usize,
        normalization: Normalization,
        gradient: bool,
        source: Source,
    ) -> Self {
        let norm = BatchNorm::new(layer, view, normalization, source);
        Self { input, propagated, output, norm, gradient }
    }
}

impl Op for Convolve {
    fn ports(&self) -> Ports {
        let reads = vec![self.input];
        if !self.gradient {
            let gradient = Gradient::None;
            return Ports {
                reads,
                writes: vec![self.output],
                keeps: vec![],
                in_place: false,
                gradient,
            };
        }
        Ports {
            reads,
            writes: vec![self.propagated, self.output],
            keeps: vec![self.propagated],
            in_place: false,
            gradient: Gradient::Backward,
        }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let target = if self.gradient { self.propagated } else { self.output };
        let mut propagated = run.memory.take_value(target);
        self.norm.propagate(run, self.input, &mut propagated);
        let partition = run.views.view(self.norm.view()).incoming().partition();
        let maps = self.norm.maps();
        if self.gradient {
            let mut output = run.memory.take_value(self.output);
            run.threads.for_each_cell(partition, [&mut output], |cell, [out]| {
                let c = Values::Floats(propagated.cell(&cell));
                affine_forward(&maps[cell.panel], c, out);
            });
            run.memory.put_value(self.output, output);
        } else {
            run.threads.for_each_cell(partition, [&mut propagated], |cell, [out]| {
                affine_in_place(&maps[cell.panel], out);
            });
        }
        run.memory.put_value(target, propagated);
        run.clock.mark("normalise");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let mut grad = run.memory.take_grad(self.output);
        let propagated = run.memory.value(self.propagated);
        let partition = run.views.view(self.norm.view()).incoming().partition();
        self.norm.clear_sums();
        let norm = &self.norm;
        run.threads.for_each_cell(partition, [&mut grad], |cell, [grad]| {
            let c = Values::Floats(propagated.cell(&cell));
            let part = affine_sums(&norm.maps()[cell.panel], Values::Floats(grad), c);
            norm.add_sums(cell.panel, cell.shard, &part);
        });
        self.norm.backward(run, self.propagated, Upstream::Floats(&mut grad), self.input);
        run.memory.put_grad(self.output, grad);
    }

    fn borrows(&self, stage: &Stage<'_>) -> [Vec<BufferShape>; 2] {
        let back = self.norm.borrowed_by_backward(stage.value(self.output));
        [vec![], if self.gradient { back } else { vec![] }]
    }
}
