//! [`Footprint`]: the memory a [`Trainer`](super::Trainer) takes, counted from shapes.

use std::sync::Arc;

use blnn_kernels::{Matrix, PANEL, Pattern, SHARDS};

use super::{add_predictor, training_tape};
use crate::error::Result;
use crate::graph::{Features, Graph};
use crate::method;
use crate::nn::{Encoder, Normalization, Parameters, Rehearsal, RunningStatistics, Shape, Tape};
use crate::plan::{Method, Objective, Plan};
use crate::sizes::{Attributes, Products, Sizes};

/// Rows of the blocks that operations work on (see `nn/hidden.rs` and `nn/predict.rs`).
const BLOCK_ROWS: usize = 128;
/// The columns of a block of attributes (see `blnn_kernels::masked`): the least there can be.
const NEAR_COLUMNS: usize = 384;
const FAR_COLUMNS: usize = 8704;
const LIST_GOAL: usize = 64;

/// Bytes by what they are for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Footprint {
    /// The order of the nodes, and the attributes in the form the products need.
    pub(crate) inputs: u64,
    /// The two views of the graph.
    pub(crate) views: u64,
    /// Weights, gradients, the target network, the optimiser's moments.
    pub(crate) model: u64,
    /// What a checkpoint holds: the model without gradients.
    pub(crate) saved: u64,
    /// What operations keep between steps for themselves.
    pub(crate) operations: u64,
    /// What the operations that make an embedding take, for as long as that lasts.
    pub(crate) embedding: u64,
    /// Matrices with a row a node: the pool of the tape.
    pub(crate) matrices: u64,
}

impl Footprint {
    /// The footprint of a trainer that has taken a step.
    ///
    /// # Errors
    /// None that a valid plan can cause.
    pub(crate) fn new(sizes: &Sizes, plan: &Plan) -> Result<Self> {
        let (model, saved) = model_bytes(sizes, plan);
        Ok(Self {
            inputs: 8 * sizes.nodes as u64 + input_bytes(sizes, plan),
            views: view_bytes(sizes),
            model,
            saved,
            operations: operation_bytes(sizes, plan),
            embedding: 2 * layer_bytes(plan) + tiled_weights(sizes, plan),
            matrices: rehearse(sizes, plan)?,
        })
    }

    /// All of it.
    pub(crate) fn total(&self) -> u64 {
        self.inputs + self.views + self.model + self.operations + self.matrices
    }
}

/// Bytes of the stored floats of a matrix, whose columns are padded to whole panels.
fn panels(rows: usize, cols: usize) -> u64 {
    4 * rows as u64 * cols.next_multiple_of(PANEL) as u64
}

/// Bytes of a [`Pattern`].
pub(crate) fn pattern(rows: usize, entries: usize) -> u64 {
    8 * (rows as u64 + 1) + 4 * entries as u64
}

/// Blocks that the lists of a sparse matrix are cut into.
fn blocks(rows: usize, cols: usize, entries: usize) -> usize {
    let average = (entries / rows.max(1)).max(1);
    let block = (cols * LIST_GOAL / average).clamp(NEAR_COLUMNS, FAR_COLUMNS);
    cols.div_ceil(block).max(1)
}

fn input_bytes(sizes: &Sizes, plan: &Plan) -> u64 {
    let Sizes { nodes, features, attributes, .. } = *sizes;
    if sizes.products(plan.precision.arithmetic()) == Products::Tiled {
        // Two forms of two bytes a value, and again of the columns that one view alone keeps.
        let alone = (plan.columns_of_one_view() * features as f64).ceil() as usize;
        let rows = nodes.next_multiple_of(PANEL);
        return panels(rows, features) + panels(rows, alone) + (4 * nodes + features) as u64;
    }
    match attributes {
        Attributes::Dense => panels(nodes, features) + 4 * nodes as u64,
        Attributes::Sparse { values, alike } => {
            let (by_row, by_column) =
                (blocks(nodes, features, values), blocks(features, nodes, values));
            let lists = pattern(nodes, values) + pattern(features, values);
            let starts = 8 * (nodes * by_row + features * by_column + 2);
            let ordered = 4 * values * if alike { 1 } else { 4 };
            let counts = 12 * nodes * by_row;
            lists + (starts + ordered + counts + 4 * nodes + features) as u64
        }
    }
}

fn view_bytes(sizes: &Sizes) -> u64 {
    let (nodes, entries) = (sizes.nodes as u64, sizes.entries as u64);
    let selection = 12 * nodes + 4 * (nodes + entries);
    let view = entries + sizes.features as u64 + 2 * selection + 4 * nodes;
    pattern(sizes.nodes, sizes.entries) + 4 * entries + 2 * view
}

/// Bytes of the model, and of what a checkpoint holds of it.
fn model_bytes(sizes: &Sizes, plan: &Plan) -> (u64, u64) {
    let (hidden, width, wide) = (plan.hidden_width, plan.embedding_width, plan.predictor_width);
    let encoder = panels(sizes.features, hidden)
        + panels(hidden, width)
        + 2 * (panels(1, hidden) + panels(1, width) + panels(1, 1));
    let predictor = panels(width, wide)
        + panels(wide, width)
        + panels(1, wide)
        + panels(1, width)
        + panels(1, 1);
    // Online and target values, the gradient, two moments.
    (5 * encoder + 4 * predictor, 4 * encoder + 3 * predictor)
}

/// Bytes of the prepared operands of products; without rounding there are none.
fn operands(plan: &Plan, bytes: u64) -> u64 {
    if plan.precision.arithmetic().is_bf16() { bytes } else { 0 }
}

/// Bytes of a block of so many columns in every shard.
fn blocks_of(cols: usize) -> u64 {
    SHARDS as u64 * panels(BLOCK_ROWS, cols)
}

/// What a hidden layer of one network and view keeps.
fn layer_bytes(plan: &Plan) -> u64 {
    let (hidden, width) = (plan.hidden_width, plan.embedding_width);
    let rounded = blocks_of(hidden) + blocks_of(width) + panels(hidden, width);
    blocks_of(hidden) + operands(plan, rounded)
}

/// Blocks, shares of gradients and operands of the layers and the predictor.
fn operation_bytes(sizes: &Sizes, plan: &Plan) -> u64 {
    let (hidden, width, wide) = (plan.hidden_width, plan.embedding_width, plan.predictor_width);
    let shards = SHARDS as u64;
    let predicting = method::predicting_views(plan).iter().filter(|&&p| p).count() as u64;
    let trained = shards * panels(hidden, width)
        + operands(plan, blocks_of(width) + panels(width, hidden))
        + 4 * sizes.nodes as u64;
    let weights = panels(width, wide) + panels(wide, width);
    // Rows of half a block and what is summed over four such, at two bytes: 5/4 of a block of floats.
    let rounded = 2 * (blocks_of(wide) * 5 / 4 + blocks_of(width) * 5 / 4 + weights);
    let before_activation = if plan.precision.arithmetic().is_bf16() { 2 } else { 4 };
    let predict = (8 + before_activation) * blocks_of(wide) / 4
        + 2 * blocks_of(width)
        + (shards + 1) * weights;
    let layers = 4 * layer_bytes(plan) + predicting * trained;
    let inputs = 2 * tiled_weights(sizes, plan) + tiled_gradient(sizes, plan);
    layers + predict + inputs + operands(plan, rounded) + method_bytes(sizes, plan)
}

/// The first weights under both masks, in two bytes a value, where tiles multiply the
/// attributes by them.
fn tiled_weights(sizes: &Sizes, plan: &Plan) -> u64 {
    match sizes.products(plan.precision.arithmetic()) {
        Products::Tiled => {
            let whole = panels(sizes.features.next_multiple_of(PANEL), plan.hidden_width) as f64;
            (whole * (1.0 + plan.columns_of_one_view()) / 2.0) as u64
        }
        Products::Sparse | Products::Dense => 0,
    }
}

/// The gradient of one view as such a unit needs it.
fn tiled_gradient(sizes: &Sizes, plan: &Plan) -> u64 {
    match sizes.products(plan.precision.arithmetic()) {
        Products::Tiled => panels(sizes.nodes.next_multiple_of(PANEL), plan.hidden_width) / 2,
        Products::Sparse | Products::Dense => 0,
    }
}

/// Weights of neighbours that a method keeps.
fn method_bytes(sizes: &Sizes, plan: &Plan) -> u64 {
    let weights = 4 * sizes.entries as u64;
    match (plan.method, plan.objective) {
        // By anchor and by neighbour, or for each of two directions.
        (Method::Blnn, Objective::PublishedCode)
        | (Method::BgrlNoisy | Method::BgrlClean, Objective::Paper) => 2 * weights,
        (Method::BgrlNoisy | Method::BgrlClean, _) => weights,
        (Method::Blnn | Method::Bgrl, _) => 0,
    }
}

/// Goes through two steps and an embedding.
fn rehearse(sizes: &Sizes, plan: &Plan) -> Result<u64> {
    let shape = Shape {
        nodes: sizes.nodes,
        features: sizes.features,
        hidden: plan.hidden_width,
        embedding: plan.embedding_width,
        arithmetic: plan.precision.arithmetic(),
    };
    let (online, target) = (Encoder::outline(shape), Encoder::outline(shape));
    let tiny = Plan { embedding_width: 1, predictor_width: 1, ..plan.clone() };
    let predictor = add_predictor(&tiny, &mut Parameters::default());
    let loss = Arc::default();
    let training = training_tape(&lone_node()?, plan, shape, [&online, &target], predictor, &loss)?;
    let mut embedding = Tape::default();
    let fixed = |_| Normalization::Fixed(RunningStatistics::new(1), plan.statistics);
    let [output, _] = online.encode(&mut embedding, [false, false], fixed);
    embedding.output(output);
    let mut rehearsal = Rehearsal::default();
    let products = sizes.products(plan.precision.arithmetic());
    let shape = (sizes.nodes, sizes.features);
    for _ in 0..2 {
        rehearsal.run(&training, shape, products, true);
    }
    rehearsal.run(&embedding, shape, products, false);
    Ok(rehearsal.bytes())
}

/// Stands for the graph where only its weights would be read.
fn lone_node() -> Result<Graph> {
    let adjacency = Pattern::new(1, vec![0, 0], vec![]).unwrap_or_default();
    let features = Features::Dense(Matrix::zeros(1, 1));
    Graph::new("outline", adjacency, features)?.with_labels(vec![0], Vec::new())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::generated;
    use crate::plan::Precision;
    use crate::trainer::Trainer;
    use blnn_kernels::{Panels, Threads};

    fn dense(graph: &Graph) -> Graph {
        let features = Matrix::from_fn(graph.nodes(), 40, |i, j| ((i * 7 + j) % 5) as f32);
        let labels = graph.labels().unwrap().to_vec();
        let made = Graph::new("dense", graph.adjacency().clone(), Features::Dense(features));
        made.unwrap().with_labels(labels, Vec::new()).unwrap()
    }

    /// The buffers of a real run are those of the rehearsal, to the byte.
    #[test]
    fn a_rehearsal_allocates_what_a_run_does() {
        let sparse = generated(300, 1).unwrap();
        for graph in [dense(&sparse), sparse] {
            for method in Method::ALL {
                for objective in Objective::ALL {
                    for precision in Precision::ALL {
                        let widths = (90, 40, 100);
                        let plan = Plan {
                            method,
                            objective,
                            precision,
                            hidden_width: widths.0,
                            embedding_width: widths.1,
                            predictor_width: widths.2,
                            ..Plan::sample()
                        };
                        let mut trainer = Trainer::new(&graph, &plan, &Threads::new(1)).unwrap();
                        trainer.step();
                        trainer.step();
                        trainer.embed();
                        let expected = rehearse(&Sizes::of(&graph), &plan).unwrap();
                        let found = trainer.memory.bytes();
                        assert_eq!(found, expected, "{} {plan:?}", graph.name());
                    }
                }
            }
        }
    }

    #[test]
    fn the_model_is_counted_tensor_by_tensor() {
        let graph = generated(200, 1).unwrap();
        let plan = Plan::sample();
        let trainer = Trainer::new(&graph, &plan, &Threads::new(1)).unwrap();
        let stored: u64 = trainer.parameters.ids().map(|id| value_bytes(&trainer, id)).sum();
        let moments: u64 = trainer.optimizer.slots().iter().map(|s| bytes(&s.first)).sum();
        let (model, saved) = model_bytes(&Sizes::of(&graph), &plan);
        // A gradient for each trained tensor, as large as its first moment.
        assert_eq!(model, stored + 3 * moments);
        assert_eq!(saved, stored + 2 * moments);
    }

    fn value_bytes(trainer: &Trainer, id: crate::nn::ParameterId) -> u64 {
        bytes(trainer.parameters.value(id))
    }

    fn bytes(panels: &Panels) -> u64 {
        4 * panels.capacity() as u64
    }

    /// A graph far too large for any machine is estimated in an instant, without being made.
    #[test]
    fn a_graph_need_not_exist() {
        let sizes = Sizes::of(&generated(200, 1).unwrap()).scaled_to(1_000_000_000);
        let footprint = Footprint::new(&sizes, &Plan::sample()).unwrap();
        assert!(footprint.total() > 1_000_000_000_000);
        assert!(footprint.matrices > footprint.model);
    }
}
