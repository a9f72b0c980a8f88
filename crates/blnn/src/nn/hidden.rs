//! [`HiddenLayer`]: a graph convolution and the projection that follows it.
//!
//! The hidden representations H are wide and used by one product only, so they are never stored:
//! a block of rows is computed from C, multiplied while it is in the cache, and computed again
//! from C when the backward pass needs it.

use std::ops::Range;

use blnn_kernels::bf16::{AnyPanels, Panels16, RowsMut16, Values, pack_rows, pack_scaled};
use blnn_kernels::mixed::{
    Arithmetic, Operand, Prepared, Uses, product, product_each, transposed_product,
};
use blnn_kernels::norm::{ShortSums, add_to, affine_forward, affine_forward_and_sums, scale_rows};
use blnn_kernels::product::Store;
use blnn_kernels::{Panels, Partition, RowsMut, SHARDS, Threads};

use super::batch_norm::{BatchNorm, Upstream};
use super::{
    BufferShape, Gradient, LayerParameters, Normalization, Op, ParameterId, Ports, Run, Source,
    Stage, Var,
};

/// Most rows of a block: its matrices fit the level-2 cache, and its sums single precision.
const BLOCK_ROWS: usize = 128;
const _: () = assert!(BLOCK_ROWS <= ShortSums::ROWS);

/// `V = D H W`, `H = PReLU(BatchNorm(C))`, `C = D (A + I) U` for one view (see [`BatchNorm`]).
///
/// V is stored with row `i` multiplied by the view's `1/√d_i`, ready to be gathered; its gradient
/// arrives as that of `H W`, without the factor.
///
/// Shapes: U, C, H n×h; W h×d; V n×d.
pub(crate) struct HiddenLayer {
    /// U
    input: Var,
    /// C
    propagated: Var,
    /// V
    output: Var,
    /// W
    weight: ParameterId,
    norm: BatchNorm,
    gradient: bool,
    arithmetic: Arithmetic,
    /// W and Wᵀ.
    factors: [Operand; 2],
    /// One a shard.
    blocks: Vec<Block>,
    /// A shard's share of the gradient of W.
    shares: Vec<Panels>,
}

/// A block of H, and the operands of its products.
struct Block {
    hidden: Panels,
    hidden_operand: Operand,
    grad_operand: Operand,
    /// A block of V before it is rounded.
    projected: Panels,
    /// A block's sums for the gradients of the normalisation, a panel each.
    sums: Vec<ShortSums>,
}

impl Block {
    fn new((width, cols): (usize, usize), arithmetic: Arithmetic) -> Self {
        let [hidden_operand, grad_operand] = [(); 2].map(|()| Operand::new(arithmetic));
        let rounded_rows = if arithmetic.is_bf16() { BLOCK_ROWS } else { 0 };
        let projected = Panels::zeros(rounded_rows, cols);
        let hidden = Panels::zeros(BLOCK_ROWS, width);
        let sums = vec![ShortSums::default(); hidden.panels()];
        Self { hidden, hidden_operand, grad_operand, projected, sums }
    }
}

/// A shard of V, or of the gradient of H.
enum Part<'a> {
    Floats(RowsMut<'a>),
    Words(RowsMut16<'a>),
}

impl Part<'_> {
    fn range(&self) -> Range<usize> {
        match self {
            Self::Floats(part) => part.range(),
            Self::Words(part) => part.range(),
        }
    }

    /// Rows `rows` of the matrix: `scale ∘ (a · b)`, through `plain` if they are to be rounded.
    fn write(
        &mut self,
        a: &Prepared<'_>,
        b: &Prepared<'_>,
        scale: Option<&[f32]>,
        rows: Range<usize>,
        plain: &mut Panels,
    ) {
        match self {
            Self::Floats(part) => {
                let first = part.range().start;
                let mut out = part.part(rows.start - first..rows.end - first);
                product(a, b, &mut out, Store::Overwrite);
                if let Some(scale) = scale {
                    (0..out.panels()).for_each(|p| scale_rows(out.panel_mut(p), scale));
                }
            }
            Self::Words(part) => product_each(a, b, plain, |p, at, values| {
                let words = part.words_mut(p, rows.start + at.start..rows.start + at.end);
                match scale {
                    Some(scale) => pack_scaled(values, &scale[at], words),
                    None => pack_rows(values, words),
                }
            }),
        }
    }

    /// Rows `rows` of panel `p`.
    fn values(&mut self, p: usize, rows: Range<usize>) -> Values<'_> {
        match self {
            Self::Floats(part) => {
                let first = part.range().start;
                Values::Floats(part.panel(p)).part(rows.start - first..rows.end - first)
            }
            Self::Words(part) => Values::Words(part.words_mut(p, rows)),
        }
    }
}

impl std::fmt::Debug for HiddenLayer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HiddenLayer(view {})", self.norm.view())
    }
}

impl HiddenLayer {
    /// The operation from `[U, C, V]`.
    pub(crate) fn new(
        [input, propagated, output]: [Var; 3],
        weight: ParameterId,
        layer: LayerParameters,
        view: usize,
        normalization: Normalization,
        gradient: bool,
        arithmetic: Arithmetic,
    ) -> Self {
        let source = Source { from_inputs: true, narrow: arithmetic.is_bf16() };
        let norm = BatchNorm::new(layer, view, normalization, source);
        let (blocks, shares, factors) =
            (Vec::new(), Vec::new(), [(); 2].map(|()| Operand::new(arithmetic)));
        Self {
            input,
            propagated,
            output,
            weight,
            norm,
            gradient,
            arithmetic,
            factors,
            blocks,
            shares,
        }
    }
}

/// The rows of a shard in blocks of whole register tiles, as ranges of the whole matrix.
fn blocks_of(range: Range<usize>, arithmetic: Arithmetic) -> impl Iterator<Item = Range<usize>> {
    let end = range.end;
    let step = BLOCK_ROWS / arithmetic.tile_rows() * arithmetic.tile_rows();
    range.step_by(step).map(move |start| start..(start + step).min(end))
}

/// Rows `rows` of H, from those of C, as the operand of a product.
fn hidden_block<'a>(
    norm: &BatchNorm,
    c: AnyPanels<'_>,
    rows: &Range<usize>,
    plain: &'a mut Panels,
    (operand, uses): (&'a mut Operand, Uses),
) -> Prepared<'a> {
    operand.fill(rows.len(), plain, uses, |p, at, values| {
        let c = c.panel(p).part(rows.start + at.start..rows.start + at.end);
        affine_forward(&norm.maps()[p], c, values);
    })
}

impl Op for HiddenLayer {
    fn ports(&self) -> Ports {
        let (gradient, keeps) = if self.gradient {
            (Gradient::Backward, vec![self.propagated])
        } else {
            (Gradient::None, vec![])
        };
        let writes = vec![self.propagated, self.output];
        Ports { reads: vec![self.input], writes, keeps, in_place: false, gradient }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        let mut propagated = run.memory.take_value(self.propagated);
        self.norm.propagate(run, self.input, &mut propagated);
        let mut output = run.memory.take_value(self.output);
        let nodes = run.views.view(self.norm.view()).scale().len();
        let partition = Partition::even(nodes);
        if self.arithmetic.is_bf16() {
            let mut words = Panels16::in_buffer(output, nodes);
            self.project(run, &propagated, words.shards_mut(&partition).map(Part::Words));
            output = words.into_buffer();
        } else {
            self.project(run, &propagated, output.shards_mut(&partition).map(Part::Floats));
        }
        run.memory.put_value(self.propagated, propagated);
        run.memory.put_value(self.output, output);
        run.clock.mark("dense");
    }

    fn backward(&mut self, run: &mut Run<'_>) {
        let (width, cols) = run.parameters.value(self.weight).shape();
        let mut transposed = run.memory.scratch(cols, width);
        run.parameters.value(self.weight).transpose_into(&mut transposed);
        let nodes = run.views.view(self.norm.view()).scale().len();
        let (rows, _) = self.hidden_grad_shape((nodes, width));
        let mut buffer = run.memory.scratch(rows, width);
        let partition = Partition::even(nodes);
        if self.arithmetic.is_bf16() {
            let mut words = Panels16::in_buffer(buffer, nodes);
            self.hidden_gradient(run, &transposed, words.shards_mut(&partition).map(Part::Words));
            self.collect(run);
            self.norm.backward(run, self.propagated, Upstream::Words(&mut words), self.input);
            buffer = words.into_buffer();
        } else {
            self.hidden_gradient(run, &transposed, buffer.shards_mut(&partition).map(Part::Floats));
            self.collect(run);
            self.norm.backward(run, self.propagated, Upstream::Floats(&mut buffer), self.input);
        }
        run.memory.release(buffer);
        run.memory.release(transposed);
    }

    fn borrows(&self, stage: &Stage<'_>) -> [Vec<BufferShape>; 2] {
        let width = stage.value(self.propagated).1;
        let cols = stage.value(self.output).1;
        let mut back = vec![(cols, width), self.hidden_grad_shape((stage.nodes, width))];
        back.extend(self.norm.borrowed_by_backward((stage.nodes, width)));
        [vec![], if self.gradient { back } else { vec![] }]
    }
}

impl HiddenLayer {
    /// The buffer that the gradient of H needs.
    fn hidden_grad_shape(&self, (nodes, width): BufferShape) -> BufferShape {
        if self.arithmetic.is_bf16() {
            Panels16::buffer_shape(nodes, width)
        } else {
            (nodes, width)
        }
    }

    /// Adds up the shares of the gradient of W.
    fn collect(&self, run: &mut Run<'_>) {
        let (shares, threads) = (&self.shares, run.threads);
        run.parameters.write_grad(self.weight, |out, fresh| {
            sum_shares(&|s| &shares[s], out, fresh, threads);
        });
        run.clock.mark("dense");
    }
}

impl HiddenLayer {
    /// V from C, one part a shard.
    fn project(&mut self, run: &Run<'_>, propagated: &Panels, parts: [Part<'_>; SHARDS]) {
        let weight = run.parameters.value(self.weight);
        let scale = run.views.view(self.norm.view()).scale();
        let (norm, arithmetic) = (&self.norm, self.arithmetic);
        let propagated = norm.stored(propagated, scale.len());
        self.blocks.resize_with(SHARDS, || Block::new(weight.shape(), arithmetic));
        let weight = self.factors[0].prepare(weight.rows_ref(0..weight.rows()), Uses::WEIGHTS);
        let mut blocks = self.blocks.iter_mut();
        let mut shards = parts.map(|part| (part, blocks.next().expect("a block for each shard")));
        run.threads.for_each_owned(&mut shards, |_, (part, block)| {
            for rows in blocks_of(part.range(), arithmetic) {
                let Block { hidden, hidden_operand, projected, .. } = &mut **block;
                let operand = (hidden_operand, Uses::ROWS);
                let h = hidden_block(norm, propagated, &rows, hidden, operand);
                part.write(&h, &weight, Some(&scale[rows.clone()]), rows, projected);
            }
        });
    }

    /// The gradient of H, the shares of that of W, and the sums for those of the normalisation,
    /// all from one visit to each block of rows.
    fn hidden_gradient(&mut self, run: &Run<'_>, transposed: &Panels, parts: [Part<'_>; SHARDS]) {
        let grad = run.memory.grad(self.output);
        let c = self.norm.stored(run.memory.value(self.propagated), grad.rows());
        self.norm.clear_sums();
        self.shares.resize_with(SHARDS, || Panels::zeros(transposed.cols(), grad.cols()));
        let mut buffers = self.blocks.iter_mut().zip(&mut self.shares);
        let mut shards = parts.map(|part| (part, buffers.next().expect("SHARDS shards")));
        let (norm, arithmetic) = (&self.norm, self.arithmetic);
        let transposed = transposed.rows_ref(0..transposed.rows());
        let transposed = self.factors[1].prepare(transposed, Uses::WEIGHTS);
        run.threads.for_each_owned(&mut shards, |shard, (part, (block, share))| {
            let first = part.range().start;
            let Block { hidden, hidden_operand, grad_operand, sums, .. } = &mut **block;
            for rows in blocks_of(part.range(), arithmetic) {
                // The first block overwrites what an earlier step left.
                let store = if rows.start == first { Store::Overwrite } else { Store::Add };
                let g = grad_operand.prepare(grad.rows_ref(rows.clone()), Uses::GRADIENT);
                part.write(&g, &transposed, None, rows.clone(), hidden);
                // H again, and the sums while C is at hand.
                sums.fill(ShortSums::default());
                let h = hidden_operand.fill(rows.len(), hidden, Uses::TURNED, |p, at, values| {
                    let at = rows.start + at.start..rows.start + at.end;
                    let (grad, c) = (part.values(p, at.clone()), c.panel(p).part(at));
                    affine_forward_and_sums(&norm.maps()[p], grad, c, &mut sums[p], values);
                });
                for (p, sums) in sums.iter().enumerate() {
                    norm.add_sums(p, shard, &sums.widened());
                }
                transposed_product(&h, &g, share, store);
            }
        });
    }
}

/// Adds up the shards' shares of a gradient in shard order; with `fresh`, in place of what was
/// there.
pub(super) fn sum_shares<'a>(
    share: &(dyn Fn(usize) -> &'a Panels + Sync),
    out: &mut Panels,
    fresh: bool,
    threads: &Threads,
) {
    let pieces = Partition::even(out.rows());
    threads.for_each_cell(&pieces, [out], |cell, [out]| {
        if fresh {
            out.fill(0.0);
        }
        for shard in 0..SHARDS {
            add_to(share(shard).cell(&cell), out);
        }
    });
}
