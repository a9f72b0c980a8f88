//! [`Predict`]: predictor, cosine loss and their gradients, a block of rows at a time.
//!
//! The predictor's hidden layer is the widest matrix of the model. Going forward, to the loss and
//! back again for a hundred rows before the next hundred keeps it in the cache and out of memory.

use std::ops::Range;

use blnn_kernels::bf16::{Panels16, Values};
use blnn_kernels::mixed::{
    Arithmetic, Operand, Prepared, Uses, product, product_prepared, transposed_product,
};
use blnn_kernels::norm::{Columns, act_backward, add_bias, add_column_sums, bias_act, bias_act16};
use blnn_kernels::product::Store;
use blnn_kernels::rows::cosine_gradient;
use blnn_kernels::{PANEL, Panels, Partition, RowsMut, RowsRef, SHARDS};

use super::hidden::sum_shares;
use super::{Gradient, Op, ParameterId, Parameters, Ports, Run, Var};

/// Most rows of a block: all of its matrices fit the level-2 cache.
const BLOCK_ROWS: usize = 128;

/// Rows of a block of a shard: even blocks of whole register tiles.
fn block_rows(shard_rows: usize, arithmetic: Arithmetic) -> usize {
    let tile = arithmetic.tile_rows();
    // On tiles packed copies join the block's matrices: half the rows fit as well.
    let room = if arithmetic.uses_tiles() { BLOCK_ROWS / 2 } else { BLOCK_ROWS };
    let most = room / tile * tile;
    let blocks = shard_rows.div_ceil(most).max(1);
    shard_rows.div_ceil(blocks).next_multiple_of(tile).clamp(tile, most)
}

/// Rows whose shares of the gradients of the weights are summed in one go: all of a shard's share
/// passes through the cache each time, so on tiles several blocks wait for each other.
fn rows_at_once(block_rows: usize, arithmetic: Arithmetic) -> usize {
    if arithmetic.uses_tiles() { 4 * block_rows } else { block_rows }
}

/// The predictor's parameters: `z = PReLU(h W₁ + b₁) W₂ + b₂`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PredictorParameters {
    /// W₁, d×p
    pub(crate) weight1: ParameterId,
    /// b₁, 1×p
    pub(crate) bias1: ParameterId,
    /// The `PReLU`'s slope, 1×1.
    pub(crate) slope: ParameterId,
    /// W₂, p×d
    pub(crate) weight2: ParameterId,
    /// b₂, 1×d
    pub(crate) bias2: ParameterId,
}

/// One prediction and what it is pulled towards.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Direction {
    /// Online representations the prediction is made from.
    pub(crate) online: Var,
    /// T: the sum of all target directions of a node, each with its weight; a constant.
    pub(crate) target: Var,
    /// The part of T that is the node itself, to report the two terms apart.
    pub(crate) own: Var,
}

/// The value of the objective, without its constant.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Loss {
    /// `− (1/n) Σ ẑ_i · own_i` over all directions.
    pub(crate) nodes: f64,
    /// `− (1/n) Σ ẑ_i · (T_i − own_i)` over all directions.
    pub(crate) neighbours: f64,
}

/// `L = − (1/n) Σ_directions Σ_i ẑ_i · T_i` with ẑ the normalised prediction. The gradient flows
/// through ẑ only.
///
/// Shapes: online, T, own n×d.
#[derive(Debug)]
pub(crate) struct Predict {
    directions: Vec<Direction>,
    parameters: PredictorParameters,
    arithmetic: Arithmetic,
    shards: Vec<Shard>,
    transposed: [Panels; 2],
    /// W₁, W₂, W₁ᵀ and W₂ᵀ, prepared once a step.
    weights: [Operand; 4],
    loss: std::sync::Arc<std::sync::Mutex<Loss>>,
}

/// Buffers of one shard of rows: a block's matrices, and the shard's share of the gradients.
#[derive(Debug, Default)]
struct Shard {
    operands: Operands,
    pre: BeforeActivation,
    act: Panels,
    hidden_grad: Panels,
    z: Panels,
    z_grad: Panels,
    weight1: Panels,
    weight2: Panels,
    bias1: Panels,
    bias2: Panels,
    slopes: Panels,
    loss: Loss,
    /// The shares of the weights hold an earlier step's: the first block overwrites them.
    is_stale: bool,
}

/// A block of the hidden layer before its activation: its signs, and for the slope's gradient its
/// values, for which bfloat16 does.
#[derive(Debug)]
enum BeforeActivation {
    Floats(Panels),
    Words(Panels16),
}

impl Default for BeforeActivation {
    fn default() -> Self {
        Self::Floats(Panels::default())
    }
}

impl BeforeActivation {
    fn new(rows: usize, cols: usize, arithmetic: Arithmetic) -> Self {
        if arithmetic.is_bf16() {
            Self::Words(Panels16::zeros(rows, cols))
        } else {
            Self::Floats(Panels::zeros(rows, cols))
        }
    }

    /// Keeps `values + bias` as some rows of panel `p`, and activates it in its place.
    fn keep(
        &mut self,
        p: usize,
        rows: Range<usize>,
        values: &mut [f32],
        bias: &Columns,
        slope: f32,
    ) {
        match self {
            Self::Floats(pre) => bias_act(values, bias, slope, part_mut(pre, p, rows)),
            Self::Words(pre) => bias_act16(values, bias, slope, pre.rows_of_mut(p, rows)),
        }
    }

    /// Some rows of panel `p`.
    fn values(&self, p: usize, rows: Range<usize>) -> Values<'_> {
        match self {
            Self::Floats(pre) => Values::Floats(pre.panel(p)),
            Self::Words(pre) => Values::Words(pre.view().panel(p)),
        }
        .part(rows)
    }
}

/// The left operands of a block's products, prepared where they arise.
#[derive(Debug, Default)]
struct Operands {
    input: Operand,
    act: Operand,
    z_grad: Operand,
    hidden_grad: Operand,
}

impl Operands {
    fn new(arithmetic: Arithmetic) -> Self {
        let [input, act, z_grad, hidden_grad] = [(); 4].map(|()| Operand::new(arithmetic));
        Self { input, act, z_grad, hidden_grad }
    }
}

impl Shard {
    fn new(width: usize, hidden: usize, arithmetic: Arithmetic) -> Self {
        Self {
            operands: Operands::new(arithmetic),
            pre: BeforeActivation::new(BLOCK_ROWS, hidden, arithmetic),
            act: Panels::zeros(BLOCK_ROWS, hidden),
            hidden_grad: Panels::zeros(BLOCK_ROWS, hidden),
            z: Panels::zeros(BLOCK_ROWS, width),
            z_grad: Panels::zeros(BLOCK_ROWS, width),
            weight1: Panels::zeros(width, hidden),
            weight2: Panels::zeros(hidden, width),
            bias1: Panels::zeros(1, hidden),
            bias2: Panels::zeros(1, width),
            slopes: Panels::zeros(1, hidden),
            loss: Loss::default(),
            is_stale: false,
        }
    }

    /// Begins a step. A shard with rows overwrites its shares of the weights, which saves a pass
    /// over them; one without never has any but zero.
    fn clear(&mut self) {
        for share in [&mut self.bias1, &mut self.bias2, &mut self.slopes] {
            share.data_mut().fill(0.0);
        }
        self.loss = Loss::default();
        self.is_stale = true;
    }
}

/// One of the gradients a shard has a share of.
type Share = fn(&Shard) -> &Panels;

/// What all shards read.
struct Shared<'a> {
    weight1: Prepared<'a>,
    weight2: Prepared<'a>,
    weight1_t: Prepared<'a>,
    weight2_t: Prepared<'a>,
    bias1: &'a Panels,
    bias2: &'a Panels,
    slope: f32,
    /// Number of nodes.
    nodes: usize,
}

/// All rows of a weight that was prepared before.
fn prepared<'a>(operand: &'a Operand, weight: &'a Panels) -> Prepared<'a> {
    operand.prepared(weight.rows_ref(0..weight.rows()))
}

/// Some rows of a panel.
fn part_mut(matrix: &mut Panels, p: usize, rows: Range<usize>) -> &mut [f32] {
    &mut matrix.panel_mut(p)[rows.start * PANEL..rows.end * PANEL]
}

fn columns(row: &[f32]) -> &Columns {
    row.try_into().expect("a panel's row holds PANEL floats")
}

fn columns_mut(row: &mut [f32]) -> &mut Columns {
    row.try_into().expect("a panel's row holds PANEL floats")
}

impl Shard {
    /// Forward, loss and backward for some rows of one direction, block by block.
    fn rows(
        &mut self,
        shared: &Shared<'_>,
        matrices: [&Panels; 3],
        rows: Range<usize>,
        step: usize,
        online_grad: &mut RowsMut<'_>,
    ) {
        let Operands { input, act, z_grad, hidden_grad } = &mut self.operands;
        for operand in [input, act, z_grad, hidden_grad] {
            operand.collect(rows.len());
        }
        let mut last = rows.start..rows.start;
        for start in rows.clone().step_by(step) {
            last = start..(start + step).min(rows.end);
            let mut grad = online_grad.part(last.start - rows.start..last.end - rows.start);
            self.block(shared, matrices, last.clone(), &mut grad);
        }
        self.add_weights(matrices[0].rows_ref(last));
    }

    /// Forward, loss and backward for a block of one direction, without the weights' gradients.
    fn block(
        &mut self,
        shared: &Shared<'_>,
        [online, target, own]: [&Panels; 3],
        rows: Range<usize>,
        online_grad: &mut RowsMut<'_>,
    ) {
        self.forward(shared, online.rows_ref(rows.clone()));
        self.pull(target, own, rows.clone(), shared.nodes);
        self.back(shared, rows.len(), online_grad);
    }

    /// A block's predictions.
    fn forward(&mut self, shared: &Shared<'_>, input: RowsRef<'_>) {
        let rows = input.rows();
        let Self { operands, pre, act, z, .. } = self;
        let input = operands.input.prepare(input, Uses::INPUT);
        let hidden = (&mut operands.act, Uses::INPUT);
        let act = product_prepared(&input, &shared.weight1, act, hidden, |p, rows, values| {
            pre.keep(p, rows, values, columns(shared.bias1.panel(p)), shared.slope);
        });
        product(&act, &shared.weight2, &mut z.rows_mut(0..rows), Store::Overwrite);
        for p in 0..z.panels() {
            add_bias(&mut z.panel_mut(p)[..rows * PANEL], columns(shared.bias2.panel(p)));
        }
    }

    /// The loss of a block's predictions and its gradient.
    fn pull(&mut self, target: &Panels, own: &Panels, rows: Range<usize>, nodes: usize) {
        let scale = -1.0 / nodes as f32;
        let mut block = Loss::default();
        for (slot, i) in rows.enumerate() {
            let cosine = cosine_gradient(&self.z, slot, target, own, i, scale, &mut self.z_grad);
            block.nodes += f64::from(cosine.own);
            block.neighbours += f64::from(cosine.whole) - f64::from(cosine.own);
        }
        self.loss.nodes -= block.nodes / nodes as f64;
        self.loss.neighbours -= block.neighbours / nodes as f64;
    }

    /// From the gradient of a block's predictions to those of the biases, the slope and the input.
    fn back(&mut self, shared: &Shared<'_>, rows: usize, online_grad: &mut RowsMut<'_>) {
        let Self { operands, pre, bias1, bias2, slopes, .. } = self;
        let z_grad = operands.z_grad.prepare(self.z_grad.rows_ref(0..rows), Uses::GRADIENT);
        for p in 0..self.z_grad.panels() {
            let total = columns_mut(bias2.panel_mut(p));
            add_column_sums(&self.z_grad.panel(p)[..rows * PANEL], total);
        }
        let (hidden, of_hidden) = (&mut self.hidden_grad, &mut operands.hidden_grad);
        let of_hidden = (of_hidden, Uses::GRADIENT);
        let hidden =
            product_prepared(&z_grad, &shared.weight2_t, hidden, of_hidden, |p, rows, grad| {
                let [bias, slopes] =
                    [&mut *bias1, slopes].map(|sums| columns_mut(sums.panel_mut(p)));
                act_backward(pre.values(p, rows), shared.slope, grad, bias, slopes);
            });
        product(&hidden, &shared.weight1_t, online_grad, Store::Overwrite);
    }

    /// The shares of the weights' gradients, from all blocks since the operands began to collect.
    fn add_weights(&mut self, last_input: RowsRef<'_>) {
        let rows = last_input.rows();
        let store = if self.is_stale { Store::Overwrite } else { Store::Add };
        self.is_stale = false;
        let input = self.operands.input.prepared(last_input);
        let act = self.operands.act.prepared(self.act.rows_ref(0..rows));
        let z_grad = self.operands.z_grad.prepared(self.z_grad.rows_ref(0..rows));
        let hidden = self.operands.hidden_grad.prepared(self.hidden_grad.rows_ref(0..rows));
        transposed_product(&act, &z_grad, &mut self.weight2, store);
        transposed_product(&input, &hidden, &mut self.weight1, store);
    }
}

impl Predict {
    /// The operation for one or two directions. The loss of each run is left in `loss`.
    ///
    /// # Panics
    /// If there are more than two directions.
    pub(crate) fn new(
        directions: Vec<Direction>,
        parameters: PredictorParameters,
        arithmetic: Arithmetic,
        loss: std::sync::Arc<std::sync::Mutex<Loss>>,
    ) -> Self {
        assert!(directions.len() <= 2, "a prediction from each view at most");
        Self {
            directions,
            parameters,
            arithmetic,
            shards: Vec::new(),
            transposed: Default::default(),
            weights: [(); 4].map(|()| Operand::new(arithmetic)),
            loss,
        }
    }

    fn prepare(&mut self, parameters: &Parameters) {
        let [w1, w2] =
            [self.parameters.weight1, self.parameters.weight2].map(|id| parameters.value(id));
        let (width, hidden) = w1.shape();
        if self.shards.is_empty() {
            self.shards.resize_with(SHARDS, || Shard::new(width, hidden, self.arithmetic));
            self.transposed = [Panels::zeros(hidden, width), Panels::zeros(width, hidden)];
        }
        let [w1_t, w2_t] = &mut self.transposed;
        w1.transpose_into(w1_t);
        w2.transpose_into(w2_t);
        for (operand, weight) in self.weights.iter_mut().zip([w1, w2, w1_t, w2_t]) {
            operand.prepare(weight.rows_ref(0..weight.rows()), Uses::WEIGHTS);
        }
    }

    /// Adds up the shards' shares, in shard order.
    fn collect(&mut self, run: &mut Run<'_>) {
        let ids = &self.parameters;
        let shares: [(ParameterId, Share); 4] = [
            (ids.weight1, |s| &s.weight1),
            (ids.weight2, |s| &s.weight2),
            (ids.bias1, |s| &s.bias1),
            (ids.bias2, |s| &s.bias2),
        ];
        for (id, share) in shares {
            let shards = &self.shards;
            let threads = run.threads;
            run.parameters.write_grad(id, |grad, fresh| {
                sum_shares(&|s| share(&shards[s]), grad, fresh, threads);
            });
        }
        let slope = |s: &Shard| s.slopes.data().iter().map(|&v| f64::from(v)).sum::<f64>();
        let total = self.shards.iter().map(slope).sum::<f64>();
        run.parameters.add_grad(ids.slope, std::iter::once(total));
        let mut loss = Loss::default();
        for shard in &self.shards {
            loss.nodes += shard.loss.nodes;
            loss.neighbours += shard.loss.neighbours;
        }
        *self.loss.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = loss;
    }
}

impl Op for Predict {
    fn ports(&self) -> Ports {
        let reads = self.directions.iter().flat_map(|d| [d.online, d.target, d.own]).collect();
        Ports { reads, writes: vec![], keeps: vec![], in_place: false, gradient: Gradient::Eager }
    }

    fn forward(&mut self, run: &mut Run<'_>) {
        self.prepare(run.parameters);
        let value = |id| run.parameters.value(id);
        let ids = self.parameters;
        let nodes = run.memory.value(self.directions[0].online).rows();
        let shared = Shared {
            weight1: prepared(&self.weights[0], value(ids.weight1)),
            weight2: prepared(&self.weights[1], value(ids.weight2)),
            weight1_t: prepared(&self.weights[2], &self.transposed[0]),
            weight2_t: prepared(&self.weights[3], &self.transposed[1]),
            bias1: value(ids.bias1),
            bias2: value(ids.bias2),
            slope: value(ids.slope).get(0, 0),
            nodes,
        };
        let mut grads: [Panels; 2] = std::array::from_fn(|d| {
            self.directions.get(d).map_or_else(Panels::default, |d| run.memory.take_grad(d.online))
        });
        let partition = Partition::even(nodes);
        {
            let [first, second] = &mut grads;
            let mut first = first.shards_mut(&partition).map(Some);
            let mut second = match self.directions.len() {
                2 => second.shards_mut(&partition).map(Some),
                _ => std::array::from_fn(|_| None),
            };
            let mut shards = self.shards.iter_mut();
            let mut work: [_; SHARDS] = std::array::from_fn(|s| {
                (shards.next().expect("SHARDS shards"), [first[s].take(), second[s].take()])
            });
            let (directions, memory, arithmetic) =
                (&self.directions, &*run.memory, self.arithmetic);
            run.threads.for_each_owned(&mut work, |s, (shard, grads)| {
                shard.clear();
                if s >= partition.shards() {
                    return;
                }
                let range = partition.range(s);
                for (direction, grad) in directions.iter().zip(grads) {
                    let Some(grad) = grad else { continue };
                    let matrices = [direction.online, direction.target, direction.own]
                        .map(|var| memory.value(var));
                    let step = block_rows(range.len(), arithmetic);
                    let at_once = rows_at_once(step, arithmetic);
                    for start in range.clone().step_by(at_once) {
                        let rows = start..(start + at_once).min(range.end);
                        let from = start - range.start;
                        let mut part = grad.part(from..from + rows.len());
                        shard.rows(&shared, matrices, rows, step, &mut part);
                    }
                }
            });
        }
        for (direction, grad) in self.directions.iter().zip(grads) {
            run.memory.put_grad(direction.online, grad);
        }
        self.collect(run);
        run.clock.mark("predict");
    }
}
