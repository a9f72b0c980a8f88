//! [`Trainer`]: a model and everything that trains it, one step at a time.

pub(crate) mod inference;

use std::sync::{Arc, Mutex, PoisonError};

use blnn_kernels::{Matrix, Panels, Threads};

use self::inference::running_names;
use crate::augment::Views;
use crate::error::Result;
use crate::graph::Graph;
use crate::method::{self, Representations};
use crate::nn::{
    Clock, Encoder, INITIAL_SLOPE, Inputs, Loss, Memory, Normalization, NormalizeRows, ParameterId,
    Parameters, Predict, PredictorParameters, Run, RunningStatistics, Shape, Tape, linear_default,
};
use crate::optim::{Optimizer, ema_decay, learning_rate};
use crate::order::Order;
use crate::plan::{Plan, Statistics};

/// What one training step reported.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Number of steps done, this one included.
    pub epoch: usize,
    /// The objective.
    pub loss: f64,
    /// Its first term: nodes and themselves.
    pub node_loss: f64,
    /// Its second term: nodes and their neighbours.
    pub neighbour_loss: f64,
    /// The learning rate of this step.
    pub learning_rate: f64,
    /// The decay of the target's moving average at this step.
    pub ema_decay: f64,
}

/// A model in training: online and target encoder, predictor, optimiser, and the graph's views.
///
/// All randomness is keyed by the plan's seed and the epoch, so tensors and epoch are the whole
/// state: a restored trainer goes on with the same bits.
#[derive(Debug)]
pub struct Trainer {
    plan: Plan,
    threads: Threads,
    /// The order the nodes are worked on in.
    order: Order,
    inputs: Inputs,
    views: Views,
    parameters: Parameters,
    running: Vec<RunningStatistics>,
    online: Encoder,
    optimizer: Optimizer,
    tape: Tape,
    memory: Memory,
    loss: Arc<Mutex<Loss>>,
    clock: Clock,
    epoch: usize,
}

/// Gives the tensor of a name and a shape: where a saved state comes from.
pub type TensorSource<'a> = dyn FnMut(&str, (usize, usize)) -> Result<Matrix> + 'a;

/// The names of the convolutions' biases. Batch normalisation cancels them, so they are always
/// zero and never computed; checkpoints hold them for tools that expect them.
const ZERO_BIASES: [&str; 4] =
    ["online.conv1.bias", "online.conv2.bias", "target.conv1.bias", "target.conv2.bias"];

impl Trainer {
    /// A freshly initialised model for a graph.
    ///
    /// # Errors
    /// If the graph has no edges, or the method needs labels that it does not have.
    pub fn new(graph: &Graph, plan: &Plan, threads: &Threads) -> Result<Self> {
        let order = Order::by_neighbourhood(graph.adjacency());
        Self::in_order(graph, plan, threads, order)
    }

    /// The trainer that works on the graph's nodes in the given order.
    fn in_order(graph: &Graph, plan: &Plan, threads: &Threads, order: Order) -> Result<Self> {
        method::check(plan.method, graph)?;
        let graph = &reordered(graph, &order)?;
        let features = graph.features().cols();
        let shape = Shape {
            nodes: graph.nodes(),
            features,
            hidden: plan.hidden_width,
            embedding: plan.embedding_width,
            arithmetic: plan.precision.arithmetic(),
        };
        let mut parameters = Parameters::default();
        let online = Encoder::new("online", shape, plan.seed, 0, true, &mut parameters);
        let predictor = add_predictor(plan, &mut parameters);
        // The target starts from its own random weights, as in the published code.
        let target = Encoder::new("target", shape, plan.seed, 16, false, &mut parameters);
        let mut optimizer = Optimizer::default();
        for (own, average) in online.parameters().zip(target.parameters()) {
            optimizer.add(&parameters, own, Some(average));
        }
        let PredictorParameters { weight1, bias1, slope, weight2, bias2 } = predictor;
        for own in [weight1, bias1, slope, weight2, bias2] {
            optimizer.add(&parameters, own, None);
        }
        let loss = Arc::default();
        let tape = training_tape(graph, plan, shape, [&online, &target], predictor, &loss)?;
        Ok(Self {
            plan: plan.clone(),
            threads: threads.clone(),
            order,
            inputs: Inputs::new(graph.features(), shape.arithmetic, threads),
            views: Views::whole(graph.adjacency(), features, threads),
            parameters,
            running: [shape.hidden, shape.embedding].map(RunningStatistics::new).into(),
            online,
            optimizer,
            tape,
            memory: Memory::default(),
            loss,
            clock: Clock::new(),
            epoch: 0,
        })
    }

    /// Number of steps done.
    pub fn epoch(&self) -> usize {
        self.epoch
    }

    /// One full-batch step. After the first one, nothing is allocated.
    pub fn step(&mut self) -> Step {
        self.clock.skip();
        let Plan { seed, edge_drop, feature_drop, .. } = self.plan;
        self.views.draw(seed, self.epoch, edge_drop, feature_drop, &self.threads);
        self.inputs.set_masks(&self.views, &self.threads);
        self.clock.mark("views");
        self.advance()
    }

    /// The rest of a step, once the views are drawn.
    fn advance(&mut self) -> Step {
        self.run_tape();
        let t = self.epoch;
        self.optimizer.step(&self.plan, t, &mut self.parameters, &self.threads);
        self.clock.mark("update");
        self.epoch += 1;
        self.report(t)
    }

    /// Forward and backward pass over the views as they are.
    fn run_tape(&mut self) {
        self.parameters.begin_step();
        let (tape, mut run) = self.parts();
        tape.forward(&mut run);
        tape.backward(&mut run);
    }

    /// The training tape, and all that a tape runs on.
    fn parts(&mut self) -> (&mut Tape, Run<'_>) {
        let run = Run {
            memory: &mut self.memory,
            parameters: &mut self.parameters,
            running: &mut self.running,
            views: &self.views,
            inputs: &self.inputs,
            threads: &self.threads,
            clock: &mut self.clock,
        };
        (&mut self.tape, run)
    }

    fn report(&self, t: usize) -> Step {
        let loss = *self.loss.lock().unwrap_or_else(PoisonError::into_inner);
        let node_loss = method::constant(&self.plan) + loss.nodes;
        Step {
            epoch: t + 1,
            loss: node_loss + loss.neighbours,
            node_loss,
            neighbour_loss: loss.neighbours,
            learning_rate: learning_rate(&self.plan, t),
            ema_decay: ema_decay(&self.plan, t),
        }
    }

    /// The embedding of every node: the online encoder on the whole graph, normalised with the
    /// plan's running statistics. Shape: n × embedding width.
    pub fn embed(&mut self) -> Matrix {
        self.embed_with(self.plan.statistics)
    }

    /// Like [`Trainer::embed`], with the running statistics of either momentum.
    pub fn embed_with(&mut self, statistics: Statistics) -> Matrix {
        let online = self.online.clone();
        self.views.keep_all(&self.threads);
        self.inputs.set_masks(&self.views, &self.threads);
        let representations = inference::represent(&online, statistics, &mut self.parts().1);
        self.order.restore(&representations)
    }

    /// The whole state but the epoch, by name:
    /// `online.*`, `target.*`, `predictor.*` the parameters;
    /// `online.norm<k>.<statistics>.mean` and `.variance` the running statistics;
    /// `adam.first.*` and `adam.second.*` the optimiser's.
    pub fn tensors(&self) -> Vec<(String, Matrix)> {
        let value = |id| self.parameters.value(id).to_matrix();
        let named = |id| (self.parameters.name(id).to_owned(), value(id));
        let mut all: Vec<_> = self.parameters.ids().map(named).collect();
        all.extend(ZERO_BIASES.iter().map(|name| {
            let width = if name.contains("conv1") {
                self.plan.hidden_width
            } else {
                self.plan.embedding_width
            };
            ((*name).to_owned(), Matrix::zeros(1, width))
        }));
        all.extend(running_names().map(|statistic| {
            let values = statistic.values(&self.running).to_vec();
            (statistic.name, Matrix::from_vec(1, values.len(), values))
        }));
        for slot in self.optimizer.slots() {
            let name = self.parameters.name(slot.parameter);
            all.push((format!("adam.first.{name}"), slot.first.to_matrix()));
            all.push((format!("adam.second.{name}"), slot.second.to_matrix()));
        }
        all
    }

    /// Takes over a saved state. `tensor` gives the tensor of a name and a shape.
    ///
    /// # Errors
    /// Those of `tensor`. The trainer is then not fit for use.
    pub fn restore(&mut self, epoch: usize, tensor: &mut TensorSource<'_>) -> Result<()> {
        for id in self.parameters.ids() {
            let value = tensor(self.parameters.name(id), self.parameters.value(id).shape())?;
            self.parameters.value_mut(id).copy_from(&value);
        }
        for statistic in running_names() {
            let slot = statistic.values_mut(&mut self.running);
            *slot = tensor(&statistic.name, (1, slot.len()))?.into_vec();
        }
        for slot in self.optimizer.slots_mut() {
            let name = self.parameters.name(slot.parameter);
            slot.first.copy_from(&tensor(&format!("adam.first.{name}"), slot.first.shape())?);
            slot.second.copy_from(&tensor(&format!("adam.second.{name}"), slot.second.shape())?);
        }
        self.epoch = epoch;
        Ok(())
    }

    /// Seconds spent in each stage of the steps so far.
    pub fn stage_seconds(&self) -> Vec<(&'static str, f64)> {
        self.clock.seconds()
    }
}

/// The graph with its nodes in another order; ids and splits stay behind.
fn reordered(graph: &Graph, order: &Order) -> Result<Graph> {
    let (adjacency, features) =
        (order.adjacency(graph.adjacency()), order.features(graph.features()));
    let reordered = Graph::new(graph.name(), adjacency, features)?;
    if graph.classes() == 0 {
        return Ok(reordered);
    }
    let labels: Vec<Option<u32>> = (0..graph.nodes()).map(|node| graph.label_of(node)).collect();
    reordered.with_some_labels(order.values(&labels), Vec::new())
}

fn add_predictor(plan: &Plan, parameters: &mut Parameters) -> PredictorParameters {
    let (width, hidden, seed) = (plan.embedding_width, plan.predictor_width, plan.seed);
    let mut add = |name: &str, value: Panels| -> ParameterId {
        parameters.add_trained(format!("predictor.{name}"), value)
    };
    let slope = Panels::from_matrix(&Matrix::from_fn(1, 1, |_, _| INITIAL_SLOPE));
    PredictorParameters {
        weight1: add("linear1.weight", linear_default(width, hidden, width, seed, 32)),
        bias1: add("linear1.bias", linear_default(1, hidden, width, seed, 33)),
        slope: add("act.slope", slope),
        weight2: add("linear2.weight", linear_default(hidden, width, hidden, seed, 34)),
        bias2: add("linear2.bias", linear_default(1, width, hidden, seed, 35)),
    }
}

/// The operations of one step: target encoder, online encoder, the method's targets, prediction.
fn training_tape(
    graph: &Graph,
    plan: &Plan,
    shape: Shape,
    [online, target]: [&Encoder; 2],
    predictor: PredictorParameters,
    loss: &Arc<Mutex<Loss>>,
) -> Result<Tape> {
    let mut tape = Tape::default();
    let batch = |_| Normalization::Batch { running: None };
    let targets = target.encode(&mut tape, [false, false], batch).map(|input| {
        let output = tape.matrix(shape.nodes, shape.embedding, false);
        tape.push(NormalizeRows { input, output });
        output
    });
    // Both online passes run even where a prediction is unused: they fill the running statistics.
    let tracked = |layer| Normalization::Batch { running: Some(layer) };
    let hidden = online.encode(&mut tape, method::predicting_views(plan), tracked);
    let h = Representations {
        online: hidden,
        target: targets,
        nodes: shape.nodes,
        width: shape.embedding,
        narrow: shape.arithmetic.is_bf16(),
    };
    let directions = method::directions(&mut tape, plan, graph, h)?;
    tape.push(Predict::new(directions, predictor, shape.arithmetic, loss.clone()));
    Ok(tape)
}

pub(crate) mod footprint;

#[cfg(test)]
mod battery;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod precision;
