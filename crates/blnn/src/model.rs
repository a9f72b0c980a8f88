//! [`Model`]: a trained encoder, read from a run's checkpoint, that embeds graphs.

use std::path::Path;

use blnn_kernels::{Matrix, Threads};

use crate::augment::Views;
use crate::checkpoint::{Checkpoint, Header};
use crate::config::Config;
use crate::data::own::{Encoding, OwnGraph};
use crate::error::{Error, ErrorKind, Result};
use crate::graph::Graph;
use crate::nn::{Clock, Encoder, Inputs, Memory, Parameters, Run, RunningStatistics, Shape};
use crate::order::Order;
use crate::plan::{Plan, Statistics};
use crate::run::RunFolder;
use crate::stored_run::{no_run, read_encoding, read_own_graph};
use crate::text::grouped;
use crate::trainer::inference::{represent, running_names};

/// The weight whose shape tells how many features a model takes.
const FIRST_WEIGHT: &str = "online.conv1.weight";

/// A trained encoder. It embeds the graph it was trained on to the same bits as training does at
/// its end, and any other graph with the same features.
///
/// # Examples
/// ```
/// use blnn::{Config, Job, Model, RunFolder, data, train};
/// use blnn_kernels::Threads;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let (graph, threads) = (data::load("cora", &[])?, Threads::new(1));
/// let mut config = Config::new();
/// for setting in ["epochs=2", "hidden_width=8", "embedding_width=4"] {
///     config.assign(setting)?;
/// }
/// let (place, plan) = (tempfile::tempdir()?, config.resolve("cora")?);
/// let folder = RunFolder::create(place.path(), false)?;
/// train(
///     &Job { graph: &graph, plan: &plan, threads: &threads, folder: &folder, log_every: 1 },
///     &mut (),
/// )?;
/// let model = Model::read(place.path())?;
/// let trained = data::npy::read_file(&folder.embeddings())?.into_matrix()?;
/// assert_eq!(model.embed(&graph, &threads)?, trained);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Model {
    header: Header,
    plan: Plan,
    features: usize,
    encoding: Option<Encoding>,
    own_graph: Option<OwnGraph>,
    /// Every parameter of the encoder, by name.
    parameters: Vec<(String, Matrix)>,
    running: Vec<RunningStatistics>,
}

impl Model {
    /// The model of a run's folder. A run that was interrupted or still goes on gives the model of
    /// its last checkpoint.
    ///
    /// # Errors
    /// If the folder holds no run, or its checkpoint is not there yet or damaged.
    pub fn read(run: &Path) -> Result<Self> {
        if !RunFolder::holds_run(run) {
            return Err(no_run(run));
        }
        let path = run.join("checkpoint.safetensors");
        if !path.exists() {
            let message = "holds no checkpoint.safetensors, which has the trained weights; \
                           train the run until its first checkpoint, or bring the file back";
            return Err(Error::new(ErrorKind::Checkpoint, message).at(run.display()));
        }
        let model = Self::from_checkpoint(Checkpoint::read(&path)?)?;
        let encoding = read_encoding(run)?;
        if let Some(encoding) = encoding.as_ref().filter(|e| e.features.len() != model.features) {
            let (found, wanted) = (encoding.features.len(), model.features);
            let message = format!(
                "lists {found} features, and the checkpoint beside it has {wanted}; bring the \
                 files of one run together"
            );
            let place = run.join("features.json");
            return Err(Error::new(ErrorKind::Checkpoint, message).at(place.display()));
        }
        Ok(Self { encoding, own_graph: read_own_graph(run)?, ..model })
    }

    /// The model of a checkpoint.
    ///
    /// # Errors
    /// If the checkpoint's settings are not valid, or a tensor is missing or has another shape.
    pub fn from_checkpoint(mut checkpoint: Checkpoint) -> Result<Self> {
        let header = checkpoint.header().clone();
        let mut config = Config::new();
        config.text(&header.config, "the settings in the checkpoint")?;
        let plan = Config::new().resolve_over(config)?;
        let first = checkpoint.tensors().find(|(name, _)| *name == FIRST_WEIGHT);
        let features = first.map_or(0, |(_, weight)| weight.rows());
        let (_, wanted) = encoder(&plan, features, 0);
        let mut parameters = Vec::new();
        for id in wanted.ids() {
            let name = wanted.name(id).to_owned();
            let value = checkpoint.take(&name, wanted.value(id).shape())?;
            parameters.push((name, value));
        }
        let mut running =
            [plan.hidden_width, plan.embedding_width].map(RunningStatistics::new).to_vec();
        for statistic in running_names() {
            let slot = statistic.values_mut(&mut running);
            *slot = checkpoint.take(&statistic.name, (1, slot.len()))?.into_vec();
        }
        let (encoding, own_graph) = (None, None);
        Ok(Self { header, plan, features, encoding, own_graph, parameters, running })
    }

    /// What the checkpoint says about itself: graph, epoch, seed.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The settings of the run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Number of features a node must have.
    pub fn features(&self) -> usize {
        self.features
    }

    /// How the features must be made, for [`own::read_as`](crate::data::own::read_as); `None` if
    /// the run was trained on a public data set.
    pub fn encoding(&self) -> Option<&Encoding> {
        self.encoding.as_ref()
    }

    /// Where the files of the training graph were, if it was the user's own.
    pub fn own_graph(&self) -> Option<&OwnGraph> {
        self.own_graph.as_ref()
    }

    /// Whether the graph is the one that the model was trained on, whatever its labels.
    pub fn was_trained_on(&self, graph: &Graph) -> bool {
        self.header.fits(graph)
    }

    /// Whether all epochs of the plan were done.
    pub fn is_finished(&self) -> bool {
        self.header.epoch >= self.plan.epochs
    }

    /// The same model with the other reading of batch norm's momentum, or the same: a checkpoint
    /// holds the running statistics of both, and no weight depends on them.
    #[must_use]
    pub fn with_statistics(mut self, statistics: Statistics) -> Self {
        self.plan.statistics = statistics;
        self.header.config = self.plan.to_toml();
        self
    }

    /// The embedding of every node of a graph, row by row in the graph's order, with the same bits
    /// at any number of threads. Shape: n × embedding width.
    ///
    /// # Errors
    /// If the graph has another number of features than the model was trained with.
    pub fn embed(&self, graph: &Graph, threads: &Threads) -> Result<Matrix> {
        self.check(graph)?;
        // The order of training: sums over neighbours then have the same order too.
        let order = Order::by_neighbourhood(graph.adjacency());
        let adjacency = order.adjacency(graph.adjacency());
        let mut inputs = Inputs::new(
            &order.features(graph.features()),
            self.plan.precision.arithmetic(),
            threads,
        );
        let views = Views::whole(&adjacency, self.features, threads);
        let (encoder, mut parameters) = encoder(&self.plan, self.features, graph.nodes());
        for (id, (_, value)) in parameters.ids().zip(&self.parameters) {
            parameters.value_mut(id).copy_from(value);
        }
        inputs.set_masks(&views, threads);
        let mut run = Run {
            memory: &mut Memory::default(),
            parameters: &mut parameters,
            running: &mut self.running.clone(),
            views: &views,
            inputs: &inputs,
            threads,
            clock: &mut Clock::new(),
        };
        let representations = represent(&encoder, self.plan.statistics, &mut run);
        Ok(order.restore(&representations))
    }

    fn check(&self, graph: &Graph) -> Result<()> {
        let (found, wanted) = (graph.features().cols(), self.features);
        if found == wanted {
            return Ok(());
        }
        let message = format!(
            "its nodes have {} features, and the model was trained on `{}` with {}; give a graph \
             with the same features in the same order",
            grouped(found),
            self.header.graph,
            grouped(wanted)
        );
        Err(Error::new(ErrorKind::Shape, message).at(graph.name()))
    }
}

/// The encoder of a plan for a graph of some size, with parameters that wait for their values.
fn encoder(plan: &Plan, features: usize, nodes: usize) -> (Encoder, Parameters) {
    let shape = Shape {
        nodes,
        features,
        hidden: plan.hidden_width,
        embedding: plan.embedding_width,
        arithmetic: plan.precision.arithmetic(),
    };
    let mut parameters = Parameters::default();
    let encoder = Encoder::new("online", shape, plan.seed, 0, false, &mut parameters);
    (encoder, parameters)
}

#[cfg(test)]
mod tests;
